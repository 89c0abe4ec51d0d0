//! Words that say nothing about which tool is meant: function words, the filler of requests, weak words.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::analyzer::is_dense;
use super::lexicon::{MAX_DENSE, of_dense};

/// Function words and the commonest words of requests. Not indexed outside names and aliases; dropped from a query that has others.
const STOP: &str = "\
    a about above after again all also am an and any anything are around as at be because been before being \
    below between both but by can cannot could couldn d did didn do does doesn doing don down during each \
    either etc every few for from further had has have having he hello her here hers hey hi him his how i if \
    in into is isn it its itself just kindly let lets like ll m may maybe me might mine more most must my \
    myself need needs neither nor now of off ok okay on once only onto or other our ours out over own please \
    re really s same shall she should since so some something such t than thank thanks that the their theirs \
    them then there these they this those through to too under until up upon us ve very via want wanted \
    wants was wasn we were what when where whether which while who whom whose why will with within without \
    won would wouldn yet you your yours yourself";

/// The same of languages in other scripts, which no word of English is.
const FOREIGN_STOP: &str = "\
    в во на и с со по для из к ко у о об от до за при а но или что чтобы как это этот эта эти мне мой моя мои мое меня я ты вы \
    мы он она они его ее их бы же ли пожалуйста можно нужно надо хочу все в حتى من الى إلى على في عن مع هذا هذه ذلك التي الذي \
    أن ان هل ما يا لي أريد اريد من فضلك رجاء में के की का को से पर और है हैं हूँ मेरे मेरा मेरी मुझे यह इस ये वह कृपया लिए ने कि तो भी एक \
    करना करें करो कर";

/// Words that occur in requests far more often than they tell tools apart; they count with [`WEAK_WEIGHT`].
const WEAK: &str = "\
    able available best certain currently detail details different especially exactly favorite final finally \
    first friend friends further furthermore future general give given good great help helpful idea ideas \
    info information interested interesting kind know looking make many much new next nice part particular \
    perfect planning popular possible provide provided recent recently related relevant several show \
    specific suggest suggestions sure tell thing things tool tools try trying understand upcoming use used \
    useful using various way ways well work working wondering january february march april june july august \
    september october november december monday tuesday wednesday thursday friday saturday sunday one two \
    three four five six seven eight nine ten curious hoping hope ensure additionally lastly moreover besides \
    however already quite soon today tomorrow tonight yesterday morning evening afternoon week weekend day \
    month year people someone everyone anyone family party fun amazing exciting important necessary required \
    needed wish prefer preferably ideal ideally amount variety options option choice choices based according \
    regarding concerning including include includes along learn knowledge insight insights advice tips guide \
    guidance question questions answer purpose reason enhance improve better worth plan discover explore \
    assist assistance lot bit couple big small large little love please kindly quickly easily simply \
    actually basically probably maybe happen happening going come coming want thinking organize gather enjoy \
    decide proper correctly";

static STOP_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| STOP.split_whitespace().chain(FOREIGN_STOP.split_whitespace()).collect());
static WEAK_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| WEAK.split_whitespace().collect());

/// Share of its weight that a weak word or a bare number keeps.
const WEAK_WEIGHT: f32 = 0.6;

/// Filler of requests in scripts without spaces; cut from a query before it is read. Single characters are too often part
/// of a word (`请` of `邀请`, to invite), so there are none.
const DENSE_FILLER: &str = "\
    请帮我 请帮忙 帮我 帮忙 请问 请你 麻烦你 麻烦 我想要 我想 我要 我需要 能不能 可不可以 可以 能否 一下 \
    怎么样 怎么 如何 什么 有没有 看看 給我 给我 請幫我 幫我 してください して下さい をください ください 下さい \
    してほしい したいです したい お願いします 教えて ですか ますか 해주세요 해줘 주세요 싶어요 싶습니다";

/// Characters that stand between the words of scripts without spaces: particles, pronouns, auxiliary verbs.
const DENSE_GRAMMAR: &str = "的了地得着过個个一两封首条條张張篇份这那我你他她它们和与或在把将給给从到是有吗呢吧啊请讓让對对為为及某些想要能会帮去来就都也还\
    을를이가은는에의로도와과만";

/// Whether a character of such a script is grammar and no part of the word beside it. Hiragana is, mostly.
pub(super) fn is_dense_grammar(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{309f}') || DENSE_GRAMMAR.contains(c)
}

/// Whether `word` (folded, lower case) is a function word.
pub(super) fn is_stop(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

/// Whether it is one that other languages have too, so that it does not tell English from them.
pub(super) fn is_shared_stop(word: &str) -> bool {
    matches!(
        word,
        "a" | "am"
            | "an"
            | "as"
            | "do"
            | "he"
            | "i"
            | "in"
            | "is"
            | "it"
            | "m"
            | "me"
            | "no"
            | "on"
            | "or"
            | "s"
            | "so"
            | "was"
    )
}

/// How much a word of a query counts, 0 to 1. Bare numbers are nearly always values of arguments.
pub(super) fn query_weight(word: &str) -> f32 {
    let weak = word.bytes().all(|byte| byte.is_ascii_digit()) || WEAK_WORDS.contains(word);
    if weak { WEAK_WEIGHT } else { 1.0 }
}

/// Number of words at the front of `words` that are a filler phrase, 0 if none. Function words need no phrase here.
pub(super) fn filler_phrase(words: &[&str]) -> usize {
    match words {
        ["let", "me", "know", ..] => 3,
        ["help", "me", "with", ..] | ["i", "was", "wondering", ..] | ["would", "be", "great", ..] => 3,
        ["i", "am", "looking", "for", ..]
        | ["i", "am", "trying", "to", ..]
        | ["i", "am", "interested", "in", ..] => 4,
        ["i", "m", "looking", "for", ..]
        | ["i", "m", "trying", "to", ..]
        | ["i", "m", "interested", "in", ..] => 4,
        ["is", "there", "a", "way", "to", ..] | ["is", "it", "possible", "to", ..] => 4,
        ["i", "would", "like", "to", "know", ..] | ["i", "d", "like", "to", "know", ..] => 5,
        ["i", "want", "to", "know", ..] | ["do", "you", "know", "if", ..] => 4,
        ["help", "me", ..] | ["make", "sure", ..] | ["tell", "me", ..] | ["give", "me", ..] => 2,
        ["show", "me", ..] | ["looking", "for", ..] | ["trying", "to", ..] | ["able", "to", ..] => 2,
        ["as", "well", ..] | ["for", "example", ..] => 2,
        _ => 0,
    }
}

/// `query` with the filler of scripts without spaces replaced by spaces; borrowed when there is none.
pub(super) fn cut_dense_filler<'a>(query: &'a str, buffer: &'a mut String) -> &'a str {
    if query.is_ascii() || !DENSE_FILLER.split_whitespace().any(|filler| query.contains(filler)) {
        return query;
    }
    buffer.clear();
    let mut rest = query;
    while let Some(character) = rest.chars().next() {
        // What the lexicon has stays whole: `吃什么` asks for food.
        let known = longest_known(rest);
        if known > 0 {
            buffer.push_str(&rest[..known]);
            rest = &rest[known..];
        } else if let Some(filler) = DENSE_FILLER.split_whitespace().find(|filler| rest.starts_with(filler)) {
            buffer.push(' ');
            rest = &rest[filler.len()..];
        } else {
            buffer.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    buffer
}

/// Bytes of the longest word of the lexicon, of two characters or more, that `text` begins with.
fn longest_known(text: &str) -> usize {
    let characters: Vec<char> = text.chars().take(MAX_DENSE).take_while(|&c| is_dense(c)).collect();
    let known = (2..=characters.len()).rev().find(|&length| !of_dense(&characters[..length]).is_empty());
    known.map_or(0, |length| characters[..length].iter().map(|c| c.len_utf8()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_whole_words() {
        assert!(is_stop("the") && is_stop("a") && is_stop("yourself"));
        assert!(!is_stop("theme") && !is_stop("list") && !is_stop(""));
    }

    #[test]
    fn filler_is_cut_from_any_script() {
        let mut buffer = String::new();
        assert_eq!(cut_dense_filler("请帮我发送邮件", &mut buffer), " 发送邮件");
        assert_eq!(cut_dense_filler("send mail", &mut buffer), "send mail");
        assert_eq!(filler_phrase(&["let", "me", "know", "the", "weather"]), 3);
        assert_eq!(filler_phrase(&["weather"]), 0);
    }
}
