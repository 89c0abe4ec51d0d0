//! Token counts: exact for o200k (the vocabulary of current OpenAI models), the unit of every budget here.
//!
//! The vocabulary comes with the crate `tiktoken`. It takes about 130 ms and 22 MiB to load, so nothing counts
//! before it has to: tools are counted once, at upload, and the counts are stored with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An assembly's counts as the provider itself would make them, about: its vocabulary is another one than o200k, or not public.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenEstimate {
    /// Tokens of the provider for one of o200k; `docs/profiles.md` tells where it comes from. It holds for the other counts
    /// of this service as well.
    pub factor: f64,
    /// `all`, `tools`, `listing` and `saved` times the factor.
    pub all: usize,
    pub tools: usize,
    pub listing: usize,
    pub saved: i64,
}

impl TokenEstimate {
    /// What exact counts are with a factor in hundredths. `sent` is the array, with the listing where it is separate.
    pub(super) fn new(hundredths: u32, all: usize, tools: usize, listing: usize, sent: usize) -> Self {
        let times = |count: usize| count.saturating_mul(hundredths as usize).saturating_add(50) / 100;
        Self {
            factor: f64::from(hundredths) / 100.0,
            all: times(all),
            tools: times(tools),
            listing: times(listing),
            saved: times(all) as i64 - times(sent) as i64,
        }
    }
}

/// The exact number of o200k tokens of a text.
pub fn count(text: &str) -> usize {
    if text.is_empty() {
        return 0;
    }
    // The vocabulary is compiled in, so there always is one.
    tiktoken::get_encoding("o200k_base").map_or(0, |vocabulary| vocabulary.count(text))
}

/// Tokens of the end of `text` together with `end`, which begins with punctuation and stands behind it.
///
/// What counts is the difference of two such numbers: it is the difference of the full counts of `text` with either
/// end. o200k splits text into pieces before it merges bytes, and a run of punctuation with one space before it
/// begins a piece of its own, so nothing before the last run has to be counted again.
pub fn of_end(text: &str, end: &str) -> usize {
    let run_start = text
        .char_indices()
        .rev()
        .take_while(|(_, character)| !character.is_alphanumeric() && !character.is_whitespace())
        .last()
        .map_or(text.len(), |(at, _)| at);
    let with_space = if text[..run_start].ends_with(' ') { run_start - 1 } else { run_start };
    count(&format!("{}{end}", &text[with_space..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two implementations of one vocabulary agree, whatever the text is.
        #[test]
        fn counts_are_those_of_another_implementation(
            text in prop_oneof![
                any::<String>(),
                "[ \\n\\t\\r]{0,20}([A-Za-z']{0,12}[ .,:;{}\"_-]{0,4}){0,20}",
                "(<\\|endoftext\\|>|'s|'LL|[0-9]{1,9}|[\\p{Han}\\p{Hangul}\\p{Arabic}]{1,8}|[\\u{1f300}-\\u{1f6ff}]|  +|\\n+){0,20}",
            ]
        ) {
            prop_assert_eq!(count(&text), bpe_openai::o200k_base().count(&text));
        }
    }

    #[test]
    fn counts_are_those_of_o200k() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count(r#"{"name":"x"}"#), 5);
    }

    /// The numbers are those that two implementations of o200k, the crates `tiktoken` and `bpe-openai`, agree on.
    #[test]
    fn no_script_is_guessed() {
        for (text, tokens) in [
            ("查询指定城市未来七天的天气预报，包括气温、降水概率和风速。", 21),
            ("指定した都市の今後7日間の天気予報を取得します。カタカナもひらがなも。", 29),
            ("지정한 도시의 향후 7일간 일기 예보를 조회합니다.", 19),
            ("𠮷野家で𩸽を食べる", 15),
            ("ｆｕｌｌｗｉｄｔｈ　テキスト", 21),
            ("🎉🚀👍", 5),
            // A family and a flag of joined characters, a skin tone, a flag of two letters.
            ("👨\u{200d}👩\u{200d}👧\u{200d}👦🏳\u{fe0f}\u{200d}🌈👋🏽🇩🇪", 25),
            ("Send a 🎂 to 山田さん — «срочно»!", 15),
            ("e\u{301}\u{302}\u{200d}\u{feff}", 5),
            ("مرحبا بالعالم हिन्दी भाषा ไทย", 7),
            ("{\"name\":\"天气\",\"description\":\"🌦\u{fe0f} 天气预报\"}", 15),
            // The same name as escapes, which is not the same text.
            (r#"{"name":"\u5929\u6c14"}"#, 12),
            ("\n\n  \t", 2),
        ] {
            assert_eq!(count(text), tokens, "{text}");
        }
    }

    #[test]
    fn an_estimate_is_rounded_and_adds_up() {
        let estimate = TokenEstimate::new(120, 1_002, 301, 204, 505);
        assert_eq!((estimate.factor, estimate.all, estimate.tools, estimate.listing), (1.2, 1_202, 361, 245));
        assert_eq!(estimate.saved, 1_202 - 606);
        let negative = TokenEstimate::new(104, 100, 400, 0, 400);
        assert_eq!((negative.saved, negative.listing), (104 - 416, 0));
    }

    #[test]
    fn ends_differ_as_the_full_counts_do() {
        for text in [
            r#"{"a":["b"]"#,
            r#"{"a": { "#,
            "{\"a\":{\n  ",
            r#"{"a":"法令。""#,
            r#"{"a":{"type":"object","properties":{}"#,
        ] {
            for end in ["}", "}}", "}}}", r#"},"strict":false}"#, r#"}},"title":"A b"}"#] {
                let exact = count(&format!("{text}{end}")) - count(&format!("{text}}}"));
                assert_eq!(of_end(text, end) - of_end(text, "}"), exact, "{text} {end}");
            }
        }
    }
}
