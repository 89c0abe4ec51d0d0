mod hostile;
mod lists;
mod servers;
mod settings;

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

/// Reads texts as a request would name them.
fn import(texts: &[&str]) -> Result<Imported, Vec<FieldError>> {
    import_as(texts, None, None)
}

fn import_as(texts: &[&str], wanted: Option<Kind>, group: Option<&str>) -> Result<Imported, Vec<FieldError>> {
    let sources: Vec<(String, Source<'_>)> =
        texts.iter().enumerate().map(|(at, text)| (format!("/texts/{at}"), Source::Text(text))).collect();
    read(&sources, wanted, group)
}

/// What an import must be that is not refused.
fn good(texts: &[&str]) -> Imported {
    import(texts).unwrap_or_else(|faults| panic!("{texts:?}: {faults:?}"))
}

/// Codes and pointers of the warnings.
fn told(imported: &Imported) -> Vec<(&str, &str)> {
    imported
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.pointer.as_deref().unwrap_or_default()))
        .collect()
}

/// The code and the detail of the only fault.
fn fault(texts: &[&str]) -> (&'static str, String) {
    let faults = import(texts).expect_err("refused");
    assert_eq!(faults.len(), 1, "{faults:?}");
    (faults[0].code, faults[0].detail.clone())
}

/// Any JSON, with the words of imports in it more often than chance would have them.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "on",
        "off",
        "auto",
        "yes",
        "12",
        "7.9",
        "a*",
        "",
        "${env:A}",
        "https://a.example/v1/rerank",
        "stdio",
        "npx",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| serde_json::json!(number)),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    let keys = [
        "version",
        "groups",
        "matcher",
        "preload",
        "core",
        "enabled",
        "thresholdPct",
        "threshold_share",
        "listing",
        "contextWindow",
        "configScope",
        "aliases",
        "apiKey",
        "endpoint",
        "topN",
        "topK",
        "name",
        "tools",
        "prefixes",
        "tool_search",
        "defer",
        "eager",
        "mcpServers",
        "servers",
        "inputs",
        "command",
        "args",
        "env",
        "url",
        "headers",
        "alwaysLoad",
        "type",
        "description",
        "inputSchema",
        "result",
        "jsonrpc",
        "matcherTimeoutMs",
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let key = prop_oneof![4 => prop::sample::select(keys.to_vec()).prop_map(str::to_owned), 1 => "[a-zA-Z_]{0,8}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..8).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn entries(imported: &Imported) -> Vec<(&str, &str)> {
    imported.tools.iter().map(|tool| (tool.json.get(), tool.pointer.as_str())).collect()
}

#[test]
fn documents_of_several_kinds_are_joined() {
    let imported = good(&[
        r#"[{"name":"a","description":"x"}]"#,
        r#"{"mcpServers":{"git":{"command":"uvx"}}}"#,
        "core: [a]\nthresholdPct: 10\n",
    ]);
    assert_eq!((imported.kind, imported.tools.len(), imported.servers.len()), (Kind::Mixed, 1, 1));
    assert_eq!(Value::Object(imported.config), serde_json::json!({"threshold_pct": 10, "core": ["a"]}));
    assert!(imported.warnings.is_empty(), "{:?}", imported.warnings);
}

#[test]
fn what_is_nothing_known_says_what_is_taken() {
    let (code, detail) = fault(&[r#"{"openapi":"3.1.0","paths":{}}"#]);
    assert_eq!(code, "unknown_import");
    assert!(detail.contains("`openapi`") && detail.contains("dsh-tool-search.json"), "{detail}");
    assert_eq!(fault(&["7"]).0, "unknown_import");
    assert_eq!(fault(&["{}"]).0, "unknown_import");
    let (code, detail) = fault(&["{\"tools\": [\n{\"name\": }]}"]);
    assert_eq!(code, "not_understood");
    assert!(detail.contains("line 2 column 10"), "{detail}");
    assert_eq!(fault(&[r#"{"jsonrpc":"2.0","error":{"code":-32601}}"#]).0, "unknown_import");
    let faults = import(&["", "{\"a\"", "[]"]).expect_err("two faults");
    let places: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(places, ["/texts/0", "/texts/1"]);
}

#[test]
fn a_json_document_is_read_like_a_text() {
    let json = RawValue::from_string(r#"{"tools":[{"name":"a"}]}"#.to_owned()).unwrap();
    let imported = read(&[("/document".to_owned(), Source::Json(&json))], None, Some("git")).unwrap();
    assert_eq!(entries(&imported), [(r#"{"group":"git","name":"a"}"#, "/document/tools/0")]);
}
