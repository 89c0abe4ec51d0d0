//! Whatever the text: an answer or a refusal, bounded.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::core::policy;

/// What holds of every import that is not refused.
fn check_promises(texts: &[&str], wanted: Option<Kind>) -> Result<(), TestCaseError> {
    let Ok(imported) = import_as(texts, wanted, Some("g")) else { return Ok(()) };
    let document = Value::Object(imported.config.clone());
    let parsed = policy::parse(&document);
    prop_assert!(parsed.is_ok(), "{document}: {parsed:?}");
    prop_assert!(
        parsed
            .is_ok_and(|parsed| parsed.warnings.is_empty() || document.get("search_default_limit").is_some())
    );
    prop_assert!(document.pointer("/matcher/api_key").is_none());
    prop_assert!(imported.warnings.len() <= 202, "{}", imported.warnings.len());
    for warning in &imported.warnings {
        prop_assert!(
            warning.pointer.as_deref().is_some_and(|at| at.starts_with("/texts/"))
                || warning.code == "more_warnings",
            "{warning:?}"
        );
    }
    Ok(())
}

fn any_kind() -> impl Strategy<Value = Option<Kind>> {
    prop::option::of(prop::sample::select(Kind::NAMED.to_vec()))
}

proptest! {
    #[test]
    fn any_json_is_an_answer_or_a_refusal(first in any_json(), second in any_json(), wanted in any_kind()) {
        let (first, second) = (first.to_string(), second.to_string());
        check_promises(&[&first, &second], wanted)?;
    }

    #[test]
    fn any_text_is_an_answer_or_a_refusal(text in "([a-c:,\\-{}\\[\\]&*\"'/# \n\\\\]|core|tools|name|enabled|true|\\PC){0,60}", wanted in any_kind()) {
        check_promises(&[&text], wanted)?;
    }

    /// Pieces of a real file, cut and joined anywhere.
    #[test]
    fn broken_files_are_an_answer_or_a_refusal(cut in 0usize..400, junk in "\\PC{0,5}", wanted in any_kind()) {
        let file = r#"{"version":1,"groups":[{"name":"git","tools":["a"],"prefixes":["b_"]}],"matcher":{"endpoint":"https://a.example/v1","apiKey":"sk-1","topN":20},"core":["x"],
"mcpServers":{"a":{"command":"npx","args":["-y"],"env":{"A":"${env:A}"}},"b":{"url":"https://b.example","alwaysLoad":true}},"tools":{"tool_search":{"enabled":true}}}"#;
        let cut = file.floor_char_boundary(cut.min(file.len()));
        let text = format!("{}{junk}{}", &file[..cut], &file[cut..]);
        check_promises(&[&text, &file[..cut]], wanted)?;
    }
}

#[test]
fn many_faults_make_a_short_answer() {
    let unknown: Map<String, Value> = (0..50_000).map(|at| (format!("k{at}"), json!(1))).collect();
    let text = json!({"matcher": unknown, "core": vec![json!(1); 10_000]}).to_string();
    let imported = good(&[&text]);
    assert!(imported.warnings.len() <= 202, "{}", imported.warnings.len());
    assert_eq!(imported.warnings.last().map(|warning| warning.code), Some("more_warnings"));
    let answer: usize = imported.warnings.iter().map(|warning| warning.detail.len()).sum();
    assert!(answer < 250_000, "{answer}");
}

#[test]
fn sizes_are_bounded() {
    let many = format!("[{}7]", "7,".repeat(MAX_TOOLS));
    assert_eq!(fault(&[&many]).0, "too_many");
    let lines = "7\n".repeat(MAX_TOOLS + 1);
    assert_eq!(fault(&[&lines]).0, "not_understood");
    let long = json!({"core": ["x".repeat(MAX_SETTINGS_BYTES)]}).to_string();
    assert_eq!(fault(&[&long]).0, "too_large");
    let nested = (0..50).fold("[]".to_owned(), |inner, _| format!("{{\"tools\":[{inner}]}}"));
    assert_eq!(fault(&[&nested]).0, "too_deep");
    let deep = "[".repeat(1_000_000);
    assert_eq!(fault(&[&deep]).0, "not_understood");
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(fault(&[&deep]).0, "too_deep");
    let deep = format!("{{\"core\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(fault(&[&deep]).0, "too_deep");
    let servers = format!("{{{}\"z\":[]}}", "\"a\":[],".repeat(10_000));
    assert_eq!(fault(&[&servers]).0, "unknown_import");
    let deep = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert!(import(&[&deep]).is_err());
}
