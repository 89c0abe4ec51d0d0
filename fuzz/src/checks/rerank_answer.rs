//! Answers of rerank and embedding endpoints. The input is how many documents were sent, the status and perhaps `html` on a
//! line, and behind an empty line the answer.
//!
//! A ranking is of documents that were sent, each once, best first; vectors are as many as texts, and all of one width.

use super::{parse, refusal, vectors};
use crate::core::policy::Dialect;

/// Most documents of one request (`matcher.max_documents`).
const MOST: usize = 1_000;

pub(crate) fn check(input: &[u8]) {
    let Some(at) = input.windows(2).position(|pair| pair == b"\n\n") else { return };
    let (head, answer) = (&input[..at], &input[at + 2..]);
    let Ok(head) = std::str::from_utf8(head) else { return };
    let mut words = head.split_whitespace();
    let documents = words.next().and_then(|word| word.parse().ok()).unwrap_or(3).min(MOST);
    let status = words.next().and_then(|word| word.parse().ok()).unwrap_or(400);
    let is_html = words.next() == Some("html");
    for dialect in Dialect::ALL {
        ranking(answer, dialect, documents, is_html);
        if let Ok(vectors) = vectors::all(answer, dialect, documents, is_html) {
            assert_eq!(vectors.len(), documents, "{dialect:?}");
            let mut widths = vectors.iter().flatten().map(crate::core::embedding::Embedding::width);
            let width = widths.next();
            assert!(width.is_some() && widths.all(|other| Some(other) == width), "{dialect:?}");
        }
    }
    if let Ok(text) = std::str::from_utf8(answer) {
        assert!(refusal::limit(status, text, documents).is_none_or(|limit| (1..documents).contains(&limit)));
        let _wanted = refusal::wanted(status, text);
    }
}

fn ranking(answer: &[u8], dialect: Dialect, documents: usize, is_html: bool) {
    let Ok(read) = parse::ranking(answer, dialect, documents, is_html) else { return };
    assert!(!read.rows.is_empty(), "{dialect:?}");
    let mut seen = vec![false; documents];
    for row in &read.rows {
        assert!(row.index < documents && row.raw.is_finite(), "{dialect:?} {row:?} of {documents}");
        assert!(!std::mem::replace(&mut seen[row.index], true), "{dialect:?} twice: {row:?}");
    }
    assert!(read.rows.is_sorted_by(|a, b| a.raw >= b.raw), "{dialect:?} {read:?}");
}
