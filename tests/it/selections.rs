//! What a grant holds, and how much of it an assembly sends.

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::model::{BRIDGE, array_names, strings, warning_codes};
use crate::samples::{painter, paints, shown};

/// The names that a grant holds, read from an assembly that sends everything.
async fn granted(user: &User, mut body: Value) -> (Vec<String>, Vec<String>) {
    body["context_window"] = json!(1_000_000);
    let answer = user.assemble(body).await.ok();
    let codes = warning_codes(&answer).into_iter().map(str::to_owned).collect();
    (array_names(&answer).into_iter().map(str::to_owned).collect(), codes)
}

#[tokio::test]
async fn selections_of_config_and_request_only_ever_narrow() {
    let app = TestApp::start().await;
    let user = painter(
        &app,
        json!({
            "enabled": "off",
            "groups": [{"name": "warm colours", "tools": ["amber", "red"], "prefixes": ["cri"]}],
            "toolsets": [
                {"name": "sea", "tools": ["navy", "teal"], "includes": ["sky"]},
                {"name": "sky", "tools": ["blue"], "includes": ["sea"]},
                {"name": "fire", "groups": ["warm colours"]},
                {"name": "all", "includes": ["*"]}
            ],
            "deny": ["gold", "@nothing"]
        }),
    )
    .await;
    let none: [&str; 0] = [];
    for (body, names, codes) in [
        (json!({"toolsets": ["sea"]}), &["blue", "navy", "teal"][..], &none[..]),
        (json!({"toolsets": ["fire", "sky"]}), &["amber", "blue", "crimson", "navy", "red", "teal"], &none),
        (json!({"toolsets": ["fire", "nowhere"]}), &["amber", "crimson", "red"], &["unknown_toolset"]),
        (json!({"allow": ["gol*", "jade"]}), &["jade"], &none),
        (json!({"allow": ["@warm colours"], "deny": ["re*"]}), &["amber", "crimson"], &none),
        (json!({"toolsets": ["sea"], "allow": ["blue", "amber"]}), &["blue"], &none),
        (json!({"toolsets": ["sea"], "allow": ["amber"]}), &none, &["empty_grant"]),
    ] {
        assert_eq!(granted(&user, body.clone()).await, (to_owned(names), to_owned(codes)), "{body}");
    }
    let everything = granted(&user, json!({"toolsets": ["all"]})).await.0;
    assert_eq!((everything.len(), everything.contains(&"gold".to_owned())), (19, false));
    assert_eq!(granted(&user, json!({"toolsets": []})).await.0, everything);

    user.put_config(&json!({
        "enabled": "off", "allow": ["amber", "blue", "red"], "toolsets": [{"name": "two", "tools": ["blue", "red"]}],
        "default_toolsets": ["two"]
    }))
    .await
    .ok();
    assert_eq!(granted(&user, json!({})).await.0, ["blue", "red"]);
    assert_eq!(granted(&user, json!({"toolsets": ["*"]})).await.0, ["amber", "blue", "red"]);
    assert_eq!(granted(&user, json!({"allow": ["blue", "jade"]})).await.0, ["blue"]);
}

fn to_owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn small_grants_and_switches_decide_the_tier() {
    let app = TestApp::start().await;
    let user = app.user();
    let nothing = user.assemble(json!({})).await.ok();
    assert_eq!(
        (&nothing["tools"], &nothing["tier"], &nothing["listing"]),
        (&Value::Null, &json!(0), &Value::Null)
    );
    assert_eq!(warning_codes(&nothing), ["empty_catalog"]);
    let search = user.search(json!({"query": "anything"})).await.ok();
    assert_eq!(search["results"][0]["matches"], json!([]));
    assert!(search["results"][0]["hint"].is_string());

    user.put_catalog(&paints()[..12]).await.ok();
    let small = shown(&user, "s", json!({})).await;
    assert_eq!((&small["tier"], array_names(&small).len()), (&json!(0), 12), "at most min_catalog_size");
    let found = user.search(json!({"session": "s", "query": "amber"})).await.ok();
    assert_eq!((&found["warmed"], &found["results"][0]["matches"][0]["state"]), (&json!([]), &json!("core")));

    user.put_catalog(&paints()).await.ok();
    let tier = async |config: Value| {
        user.put_config(&config).await.ok();
        let answer = user.assemble(json!({})).await.ok();
        (answer["tier"].as_u64().unwrap(), array_names(&answer).len(), answer["listing"]["form"].clone())
    };
    assert_eq!(tier(json!({})).await, (1, 3, json!("full")));
    assert_eq!(tier(json!({"enabled": false})).await, (0, 20, Value::Null));
    assert_eq!(tier(json!({"activation_pct": 10})).await, (0, 20, Value::Null));
    assert_eq!(tier(json!({"activation_pct": 10, "enabled": "on"})).await, (1, 3, json!("full")));
    assert_eq!(
        tier(json!({"core": ["*"], "enabled": "on"})).await,
        (0, 20, Value::Null),
        "every tool is core"
    );
    assert_eq!(tier(json!({"listing_max_tokens": 200})).await, (2, 3, json!("names")));
    assert_eq!(tier(json!({"threshold_pct": 0})).await.0, 3);
    assert_eq!(tier(json!({"threshold_pct": 0, "listing": "on"})).await, (1, 3, json!("full")));
    user.put_config(&json!({"listing": "off"})).await.ok();
    let off = user.assemble(json!({})).await.ok();
    assert_eq!(
        (&off["tier"], &off["listing"], warning_codes(&off)),
        (&json!(3), &Value::Null, vec!["listing_off"])
    );

    user.put_config(&json!({"listing_placement": "bridge", "bridge_prefix": "my_"})).await.ok();
    let inside = user.assemble(json!({"format": "anthropic"})).await.ok();
    assert_eq!(inside["listing"]["placement"], "bridge");
    assert_eq!(array_names(&inside), BRIDGE.map(|name| format!("my_{name}")));
    let text = inside["listing"]["text"].as_str().unwrap();
    assert!(inside["tools"][0]["description"].as_str().unwrap().contains(text.trim_end()));
    let outside = user.assemble(json!({"format": "openai_chat"})).await.ok();
    assert_eq!(
        (&outside["listing"]["placement"], outside["warnings"].as_array().unwrap().len()),
        (&json!("separate"), 1)
    );
    assert_eq!(strings(&outside["warm"]), [""; 0]);
}
