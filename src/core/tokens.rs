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
    use super::*;

    #[test]
    fn counts_are_those_of_o200k() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count(r#"{"name":"x"}"#), 5);
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
