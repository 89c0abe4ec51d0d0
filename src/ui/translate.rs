//! Texts of the service in the language of a page: what the core and the service say in English sentences, which the API gives
//! as they are.
//!
//! Owns one table of such texts, in parts by what they are about. Names and numbers in a text are places: `{}` in the English
//! one, `{0}`, `{1}` in the other; what stands in a place may be such a text again. What is not in the table stays as it is:
//! names, words of servers and of tools.

mod faults;
mod imports;
mod lints;
mod problems;
mod proposals;
mod remarks;
mod warnings;

use std::borrow::Cow;

use super::language::Language;

/// A text with places, in English and in Chinese; without the full stop at its end.
type Row = (&'static str, &'static str);

/// The table. What is more special stands first.
const TABLES: [&[Row]; 7] = [
    remarks::ROWS,
    proposals::ROWS,
    imports::ROWS,
    faults::ROWS,
    warnings::ROWS,
    problems::ROWS,
    lints::ROWS,
];

/// Longest text that is looked for, in bytes, and how many sentences or parts of it are told apart.
const MOST_BYTES: usize = 4_096;
const MOST_PARTS: usize = 12;

/// How deep texts stand inside of texts.
const MOST_DEPTH: usize = 3;

/// A text of the service, in the language of a page.
pub(super) fn tell(language: Language, text: &str) -> Cow<'_, str> {
    match language {
        Language::English => Cow::Borrowed(text),
        Language::Chinese => chinese(text, 0).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// What a warning says. Where its own words are not known, what its code means stands before them.
pub(super) fn tell_warning<'a>(language: Language, code: &str, detail: &'a str) -> Cow<'a, str> {
    let told = tell(language, detail);
    match (language, &told) {
        (Language::Chinese, Cow::Borrowed(_)) => match warnings::meaning(code) {
            Some(meaning) => Cow::Owned(format!("{meaning}（{detail}）")),
            None => told,
        },
        _ => told,
    }
}

/// What a finding about a schema says; where its own words are not known, what its code means.
pub(super) fn tell_lint<'a>(language: Language, code: &str, detail: &'a str) -> Cow<'a, str> {
    let told = tell(language, detail);
    let meaning = || lints::MEANINGS.iter().find(|(known, _)| *known == code);
    match (language, &told) {
        (Language::Chinese, Cow::Borrowed(_)) => {
            meaning().map_or(told, |(_, chinese)| Cow::Borrowed(*chinese))
        }
        _ => told,
    }
}

fn chinese(text: &str, depth: usize) -> Option<String> {
    if depth > MOST_DEPTH || text.is_empty() || text.len() > MOST_BYTES {
        return None;
    }
    let (bare, stop) = match text.strip_suffix('.') {
        Some(bare) => (bare, "。"),
        None => (text, ""),
    };
    let told = exact(bare)
        .or_else(|| sentences(bare, depth, true))
        .or_else(|| pattern(bare, depth))
        .or_else(|| list(bare, depth))
        .or_else(|| sentences(bare, depth, false));
    told.map(|told| told + stop)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.iter().copied().flatten()
}

/// A text without places.
fn exact(text: &str) -> Option<String> {
    rows().find(|(english, _)| *english == text).map(|(_, chinese)| (*chinese).to_owned())
}

/// A text with places.
fn pattern(text: &str, depth: usize) -> Option<String> {
    let begins =
        |with_a_place: bool| rows().filter(move |(english, _)| english.starts_with("{}") == with_a_place);
    // Those that begin with words of their own are the surer ones.
    let mut found = begins(false).chain(begins(true)).filter(|(english, _)| english.contains("{}"));
    let (places, row) = found.find_map(|(english, chinese)| Some((matched(english, text)?, *chinese)))?;
    let mut told = row.to_owned();
    for (at, place) in places.into_iter().enumerate() {
        let place = chinese(place, depth + 1).map_or(Cow::Borrowed(place), Cow::Owned);
        told = told.replacen(&format!("{{{at}}}"), &place, 1);
    }
    Some(told)
}

/// Several texts with semicolons between them, of which at least one is known.
fn list(text: &str, depth: usize) -> Option<String> {
    let pieces: Vec<&str> = text.splitn(MOST_PARTS, "; ").collect();
    let told: Vec<Option<String>> = match pieces.len() {
        0 | 1 => return None,
        _ => pieces.iter().map(|piece| chinese(piece, depth + 1)).collect(),
    };
    let told_or_not = told.iter().zip(&pieces).map(|(told, piece)| told.as_deref().unwrap_or(piece));
    told.iter().any(Option::is_some).then(|| told_or_not.collect::<Vec<_>>().join("；"))
}

/// Several sentences, of which all or at least one are known. A known text may hold several itself.
fn sentences(text: &str, depth: usize, all: bool) -> Option<String> {
    let pieces: Vec<&str> = text.splitn(MOST_PARTS, ". ").collect();
    let (mut told, mut known, mut at) = (Vec::new(), 0, 0);
    while let Some(piece) = pieces.get(at).filter(|_| pieces.len() > 1) {
        let longest = (at + 1..=pieces.len()).rev().find_map(|end| {
            let joined = pieces.get(at..end)?.join(". ");
            Some((end, exact(&joined)?))
        });
        let found = longest.or_else(|| Some((at + 1, pattern(piece, depth)?)));
        match found {
            Some((end, text)) => {
                known += 1;
                told.push(text);
                at = end;
            }
            None if all => return None,
            None => {
                told.push((*piece).to_owned());
                at += 1;
            }
        }
    }
    (known > 0).then(|| told.join("。"))
}

/// What stands in the places of a text, where it is this one.
fn matched<'a>(row: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut literals = row.split("{}");
    let mut rest = text.strip_prefix(literals.next()?)?;
    let mut places = Vec::new();
    let mut literals = literals.peekable();
    while let Some(literal) = literals.next() {
        let end = if literals.peek().is_none() {
            rest.len().checked_sub(literal.len()).filter(|end| rest.get(*end..) == Some(literal))?
        } else {
            rest.find(literal)?
        };
        let (place, after) = rest.split_at(end);
        if place.is_empty() {
            return None;
        }
        places.push(place);
        rest = &after[literal.len()..];
    }
    rest.is_empty().then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::remarks::Kind;
    use crate::core::warning::WARNINGS;
    use crate::http::problem::Code;
    use crate::mcp::McpFault;
    use crate::rerank::RerankFault;
    use crate::service::MatcherFault;

    /// No three Latin words after each other outside of backticks: a sentence that was left in English.
    fn is_chinese(text: &str) -> bool {
        let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join("·");
        let is_word = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let words: Vec<&str> = outside.split([' ', ',']).collect();
        text.chars().any(|char| char >= '\u{2e80}')
            && !words.windows(3).any(|three| three.iter().all(|word| is_word(word)))
    }

    fn assert_told(text: &str) {
        let told = tell(Language::Chinese, text);
        assert!(is_chinese(&told), "{text} -> {told}");
        assert_eq!(tell(Language::English, text), text);
    }

    #[test]
    fn every_text_of_a_closed_set_is_told() {
        for kind in Kind::ALL {
            assert_told(kind.costs());
            assert_told(kind.mends());
        }
        for (code, _) in WARNINGS {
            let told = tell_warning(Language::Chinese, code, "words that nobody knows");
            assert!(told.starts_with(|char| char > '\u{2e80}' || char == '`'), "{code} -> {told}");
        }
        for code in Code::ALL {
            assert_told(code.title());
        }
        for fault in McpFault::ALL {
            assert_told(&format!("HTTP 500. {}", fault.help()));
        }
        let mut faults: Vec<RerankFault> =
            (300..=599).map(|status| RerankFault::Refused { status, retry_after: None }).collect();
        faults.extend([
            RerankFault::Timeout,
            RerankFault::Unreachable,
            RerankFault::Reported,
            RerankFault::WebPage,
            RerankFault::TooLarge,
            RerankFault::Forbidden,
            RerankFault::CircuitOpen,
            RerankFault::Overloaded,
        ]);
        for fault in faults {
            assert_told(&MatcherFault::from(fault).detail);
        }
    }

    #[test]
    fn names_stay_and_texts_inside_of_texts_are_told() {
        let told = |text: &str| tell(Language::Chinese, text).into_owned();
        assert_eq!(told("1200 tokens."), "1200 词元。");
        assert_eq!(
            told("openai, gemini: the name is sent as `a_b`; and 2 more."),
            "openai, gemini：名称以 `a_b` 发送；另有 2 条。"
        );
        assert_eq!(told("what nobody says"), "what nobody says");
        assert_eq!(
            told(
                "no connection could be made. Check that the server runs, and that its host and port can be reached from this service."
            ),
            "无法建立连接。请确认服务器正在运行，且本服务可访问其主机和端口。"
        );
    }

    #[test]
    fn places_fill_in_their_order() {
        assert_eq!(matched("`{}` of `{}` is", "`a` of `b` is"), Some(vec!["a", "b"]));
        assert_eq!(matched("{} tokens", "12 tokens"), Some(vec!["12"]));
        assert_eq!(matched("{} tokens", " tokens"), None);
        assert_eq!(matched("x", "xy"), None);
        for table in TABLES {
            for (english, chinese) in table {
                let places = english.matches("{}").count();
                for at in 0..places {
                    assert!(chinese.contains(&format!("{{{at}}}")), "{english}");
                }
                assert!(!chinese.contains(&format!("{{{places}}}")) && !english.ends_with('.'), "{english}");
            }
        }
    }

    #[test]
    fn hostile_texts_cost_little_and_break_nothing() {
        for text in
            ["; ".repeat(2_000), ". ".repeat(2_000), "`".repeat(4_000), "é; ü. ".repeat(300), "{0}{1}".into()]
        {
            tell(Language::Chinese, &text);
        }
    }
}
