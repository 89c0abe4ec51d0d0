//! What a patch that stands in a conversation must not hold: secrets, which the model's provider and every log of the agent have
//! seen by then.

use serde_json::Value;

use crate::core::warning::pointer_push;

/// The place of a secret in a patch of a config. Taking one away, or meaning the stored one (`{set: true}`), is none.
pub fn secret_in(patch: &Value) -> Option<String> {
    let matcher = patch.get("matcher")?;
    if matcher.get("api_key").is_some_and(is_text) {
        return Some("/matcher/api_key".to_owned());
    }
    let headers = matcher.get("extra_headers")?.as_object()?;
    let (name, _) = headers.iter().find(|(_, text)| is_text(text))?;
    let mut pointer = "/matcher/extra_headers".to_owned();
    pointer_push(&mut pointer, name);
    Some(pointer)
}

/// Whether a value could be the text of a secret.
fn is_text(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Object(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_found_where_they_stand() {
        let found = |patch: Value| secret_in(&patch);
        assert_eq!(found(json!({"matcher": {"api_key": "sk-1"}})).as_deref(), Some("/matcher/api_key"));
        assert_eq!(found(json!({"matcher": {"api_key": 5}})).as_deref(), Some("/matcher/api_key"));
        assert_eq!(
            found(json!({"matcher": {"extra_headers": {"x-a": {"set": true}, "x/b": "s"}}})).as_deref(),
            Some("/matcher/extra_headers/x~1b")
        );
        for patch in [
            json!({"matcher": {"api_key": null, "extra_headers": {"x-a": null}}}),
            json!({"matcher": {"api_key": {"set": true}}}),
            json!({"matcher": null}),
            json!({"core": ["api_key"]}),
            json!("sk-1"),
        ] {
            assert_eq!(found(patch), None);
        }
    }
}
