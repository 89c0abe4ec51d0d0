//! Token counts: exact for o200k (the vocabulary of current OpenAI models), the unit of every budget here.
//!
//! The vocabulary comes with the crate `bpe-openai`. It takes about 70 ms and 65 MiB to load, so nothing counts
//! before it has to: tools are counted once, at upload, and the counts are stored with them.

/// How counts were made, as answers name it.
pub const METHOD: &str = "o200k";

/// The exact number of o200k tokens of a text.
pub fn count(text: &str) -> usize {
    if text.is_empty() { 0 } else { bpe_openai::o200k_base().count(text) }
}

/// What a text's count grows by when `suffix` (punctuation only) is appended.
///
/// o200k splits text into pieces before it merges bytes; a run of punctuation with one space before it is a piece
/// of its own, so only the last run has to be counted again.
pub fn growth(text: &str, suffix: &str) -> usize {
    let run_start = text
        .char_indices()
        .rev()
        .take_while(|(_, character)| !character.is_alphanumeric() && !character.is_whitespace())
        .last()
        .map_or(text.len(), |(at, _)| at);
    let with_space = if text[..run_start].ends_with(' ') { run_start - 1 } else { run_start };
    let run = &text[with_space..];
    count(&format!("{run}{suffix}")).saturating_sub(count(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_o200k() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count(r#"{"name":"x"}"#), 5);
    }

    #[test]
    fn growth_is_the_difference_of_full_counts() {
        for text in [
            r#"{"a":["b"]}"#,
            r#"{"a": { } }"#,
            "{\"a\":{\n  }\n}",
            r#"{"a":{"type":"object","properties":{}}}"#,
        ] {
            assert_eq!(growth(text, "}"), count(&format!("{text}}}")) - count(text), "{text}");
        }
    }
}
