//! What the text of a refusal says about the request: a limit on documents, or another shape that is wanted.
//!
//! Owns the reading of error texts. They are hostile and may echo query and documents, so they go no further than
//! here: numbers and dialects come out, never text.

use crate::core::policy::Dialect;
use serde::Deserialize;
use serde_json::Value;

/// Bytes of an error body that are read; Infinity's echo a whole request.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Characters in the beginning that are looked at: messages come before echoes.
const MAX_TEXT: usize = 2_000;
/// Characters before a number in which it is called a limit.
const BEFORE: usize = 48;

/// The shape that a server asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Dialect(Dialect),
    /// The same without the number of wanted results.
    WithoutTop,
}

/// Whether a refusal's text is worth reading.
pub(super) fn may_explain(status: u16) -> bool {
    matches!(status, 400 | 413 | 422)
}

/// The number of documents per request to use instead of `sent`: what the text names, or half. `None` when the refusal
/// is about something else, or one document was sent.
pub(super) fn limit(status: u16, text: &str, sent: usize) -> Option<usize> {
    if !may_explain(status) || sent < 2 {
        return None;
    }
    let text = beginning(text);
    let is_about_batches = status == 413
        || [
            "batch size",
            "batch_size",
            "too many",
            "number of documents",
            "number of texts",
            "number of passages",
        ]
        .iter()
        .any(|words| text.contains(words))
        || (text.contains("total") && text.contains("token"));
    named_limit(&text, sent).or_else(|| is_about_batches.then_some(sent / 2))
}

/// The first number below `sent` that is called a limit and does not count tokens or characters.
fn named_limit(text: &str, sent: usize) -> Option<usize> {
    const LIMITS: [&str; 13] = [
        "max",
        "at most",
        "limit",
        "exceed",
        "larger than",
        "greater than",
        "more than",
        "up to",
        "less than",
        "fewer than",
        "<=",
        "range",
        "between",
    ];
    const OTHER: [&str; 6] = ["token", "char", "byte", "length", "context", "second"];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            at += 1;
            continue;
        }
        let end = at + length;
        // Slices are at the borders of ASCII digits, or moved to those of characters.
        let before = &text[text.floor_char_boundary(at.saturating_sub(BEFORE))..at];
        let after = &text[end..text.floor_char_boundary((end + 12).min(text.len()))];
        let is_limit = LIMITS.iter().any(|word| before.contains(word))
            && !OTHER.iter().any(|word| before.contains(word) || after.contains(word));
        // `[1, 25]`, `between 1 and 25`: the other end is meant.
        let begins_range = [",", "-", " and ", " to ", ".."].iter().any(|joint| {
            let rest = after.strip_prefix(joint).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
        });
        // Nobody ranks one document, so 1 counts something else.
        let number = text[at..end].parse::<usize>().ok().filter(|number| (2..sent).contains(number));
        if let Some(number) = number.filter(|_| is_limit && !begins_range) {
            return Some(number);
        }
        at = end;
    }
    None
}

fn beginning(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect::<String>().to_ascii_lowercase()
}

/// The shape that a 400 or 422 asks for.
pub(super) fn wanted(status: u16, text: &str) -> Option<Wanted> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    validation_errors(text)
        .map_or_else(|| wanted_by_words(&beginning(text)), |errors| wanted_by_fields(&errors))
}

/// A field that a pydantic server complains about (`{"detail":[{"type","loc","msg",..}]}`), and how.
struct FieldError {
    field: String,
    kind: String,
}

/// Such servers echo the request under the key `input`, so their texts cannot be searched for words.
fn validation_errors(text: &str) -> Option<Vec<FieldError>> {
    #[derive(Deserialize)]
    struct Answer {
        detail: Vec<Detail>,
    }
    #[derive(Deserialize)]
    struct Detail {
        loc: Vec<Value>,
        #[serde(rename = "type", default)]
        kind: String,
    }
    let answer: Answer = serde_json::from_str(text).ok()?;
    let field = |detail: Detail| {
        let field = detail.loc.iter().filter_map(Value::as_str).find(|part| *part != "body")?.to_owned();
        Some(FieldError { field, kind: detail.kind })
    };
    Some(answer.detail.into_iter().filter_map(field).collect())
}

fn wanted_by_fields(errors: &[FieldError]) -> Option<Wanted> {
    errors.iter().find_map(|error| match (error.field.as_str(), error.kind.as_str()) {
        ("texts", _) => Some(Wanted::Dialect(Dialect::Tei)),
        ("passages", _) => Some(Wanted::Dialect(Dialect::Nim)),
        ("input", _) => Some(Wanted::Dialect(Dialect::Mixedbread)),
        ("top_k", "missing") => Some(Wanted::Dialect(Dialect::Voyage)),
        ("top_n", _) => Some(Wanted::WithoutTop),
        ("documents", kind) if kind.contains("dict") || kind.contains("model") => {
            Some(Wanted::Dialect(Dialect::Pinecone))
        }
        _ => None,
    })
}

fn wanted_by_words(text: &str) -> Option<Wanted> {
    let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let has_word = |word| text.split(|char: char| !char.is_alphanumeric()).any(|part| part == word);
    if has_word("texts") {
        Some(Wanted::Dialect(Dialect::Tei))
    } else if has_word("passages") {
        Some(Wanted::Dialect(Dialect::Nim))
    } else if any(&["input.documents", "input.query"]) {
        Some(Wanted::Dialect(Dialect::Dashscope))
    } else if any(&["`input`", "'input'", "\\\"input\\\"", "input is required", "input field"]) {
        Some(Wanted::Dialect(Dialect::Mixedbread))
    } else if text.contains("top_n")
        && any(&[
            "not supported",
            "unknown",
            "not a valid",
            "extra",
            "unexpected",
            "unrecognized",
            "not permitted",
            "not allowed",
        ])
    {
        let voyage = text.contains("top_k");
        Some(if voyage { Wanted::Dialect(Dialect::Voyage) } else { Wanted::WithoutTop })
    } else if text.contains("cannot unmarshal string") && text.contains("document") {
        // A gateway in Go that takes documents as objects only.
        Some(Wanted::Dialect(Dialect::Pinecone))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_are_read_from_what_servers_say() {
        for (status, text, sent, expected) in [
            (
                422,
                r#"{"error":"batch size 40 > maximum allowed batch size 32","error_type":"Validation"}"#,
                40,
                Some(32),
            ),
            (413, r#"{"error":"batch size 40 > maximum allowed batch size 32"}"#, 40, Some(32)),
            (413, "length limit exceeded", 100, Some(50)),
            (413, "", 3, Some(1)),
            (400, "documents: at most 64 documents are allowed, got 100", 100, Some(64)),
            (400, "got 200 documents, the limit is 128", 200, Some(128)),
            (
                400,
                r#"{"code":"InvalidParameter","message":"batch size is invalid, it should not be larger than 25.: input.documents"}"#,
                100,
                Some(25),
            ),
            (
                422,
                r#"{"detail":[{"type":"too_long","loc":["body","documents"],"msg":"List should have at most 2048 items after validation, not 3000","input":["x 7"]}]}"#,
                3000,
                Some(2048),
            ),
            (400, "Range of documents should be [1, 25]", 100, Some(25)),
            (400, "the number of documents must be between 2 and 64", 100, Some(64)),
            (400, "at most 1 query and at most 80 documents", 100, Some(80)),
            (422, "too many documents", 100, Some(50)),
            (400, "The total number of tokens exceeds the limit of 30000 tokens", 90, Some(45)),
            (400, "This model's maximum context length is 64 tokens", 100, None),
            (422, "inputs must have less than 50 tokens", 100, None),
            (400, "model `x` is not known", 100, None),
            (422, "missing field `texts`", 100, None),
            (500, "maximum allowed batch size 32", 100, None),
            (413, "x", 1, None),
        ] {
            assert_eq!(limit(status, text, sent), expected, "{status} {text}");
        }
    }

    #[test]
    fn servers_say_which_shape_they_want() {
        use Dialect::{Dashscope, Mixedbread, Nim, Pinecone, Tei, Voyage};
        let dialect = |dialect| Some(Wanted::Dialect(dialect));
        for (text, expected) in [
            (
                "Failed to deserialize the JSON body into the target type: missing field `texts` at line 1",
                dialect(Tei),
            ),
            (
                r#"{"detail":[{"type":"missing","loc":["body","texts"],"msg":"Field required","input":{"query":"q","documents":["a"],"top_n":2}}]}"#,
                dialect(Tei),
            ),
            (
                r#"{"detail":[{"type":"missing","loc":["body","passages"],"msg":"Field required","input":{"top_n":2}}]}"#,
                dialect(Nim),
            ),
            (
                r#"{"detail":[{"type":"missing","loc":["body","input"],"msg":"Field required","input":{"documents":[]}}]}"#,
                dialect(Mixedbread),
            ),
            (
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","top_n"],"msg":"Extra inputs are not permitted","input":2}]}"#,
                Some(Wanted::WithoutTop),
            ),
            (
                r#"{"detail":[{"type":"model_type","loc":["body","documents",0],"msg":"x","input":"a"}]}"#,
                dialect(Pinecone),
            ),
            (
                r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"top_n":2}}]}"#,
                None,
            ),
            (r#"{"detail":"Argument top_n is not supported by this model. Use top_k."}"#, dialect(Voyage)),
            (
                r#"{"message":"unknown field: parameter 'top_n' is not a valid field"}"#,
                Some(Wanted::WithoutTop),
            ),
            (r#"{"code":"InvalidParameter","message":"required: input.documents"}"#, dialect(Dashscope)),
            ("`input` is required", dialect(Mixedbread)),
            ("json: cannot unmarshal string into Go struct field RerankRequest.documents", dialect(Pinecone)),
            (r#"{"error":{"message":"model x not found"}}"#, None),
            ("required properties are 'contexts'", None),
            ("", None),
        ] {
            assert_eq!(wanted(422, text), expected, "{text}");
        }
        assert_eq!(wanted(500, "missing field `texts`"), None);
    }

    proptest! {
        #[test]
        fn a_limit_is_always_smaller_than_what_was_sent(text in "(max |limit |too many |é|[0-9]{1,25}| tokens|.){0,20}", sent in 0usize..300, status in 400u16..430) {
            if let Some(limit) = limit(status, &text, sent) {
                prop_assert!((1..sent).contains(&limit));
            }
            let _ = wanted(status, &text);
        }
    }
}
