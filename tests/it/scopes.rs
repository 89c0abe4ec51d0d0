//! Configs of users and projects: writing, merging, the effective view, and secrets that nobody reads back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, Client, TestApp, path, unique};

mod layers;
mod matcher;
mod secrets;

async fn send(client: &Client, method: Method, path: &str, if_match: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("if-match", if_match)];
    client.send(method, path, &headers, body.to_string().into()).await
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_default().to_owned()
}

fn has_warning(document: &Value, code: &str, pointer: &str) -> bool {
    let warnings = document["warnings"].as_array().unwrap().iter();
    warnings.clone().any(|warning| warning["code"] == code && warning["pointer"] == pointer)
}

#[tokio::test]
async fn a_config_is_written_read_changed_and_deleted_for_users_and_projects() {
    let app = TestApp::start().await;
    let client = app.admin();
    for kind in ["users", "projects"] {
        let at = path(&["v1", kind, &unique("scope"), "config"]);
        let unwritten = client.get(&at).await;
        assert_eq!((unwritten.ok(), etag(&unwritten)), (json!({}), "\"0\"".to_owned()));

        let config =
            json!({"max_warm_tools": 3, "core": ["a", "b*"], "enabled": true, "aliases": {"a": ["x"]}});
        let put = client.put(&at, &config).await;
        assert_eq!(put.ok()["config"]["max_warm_tools"], 3);
        assert_eq!(etag(&put), "\"1\"");
        let read = client.get(&at).await;
        assert_eq!((&read.ok()["core"], etag(&read)), (&json!(["a", "b*"]), "\"1\"".to_owned()));
        assert_eq!(read.ok()["aliases"], json!({"a": ["x"]}));

        let known = client.send(Method::GET, &at, &[("if-none-match", "\"1\"")], "".into()).await;
        known.expect_status(304);
        assert!(known.body.is_empty());
        client.send(Method::GET, &at, &[("if-none-match", "\"0\"")], "".into()).await.ok();

        // RFC 7396: null inherits again, arrays are replaced whole, what is absent stays.
        let patched =
            client.patch(&at, &json!({"max_warm_tools": null, "core": ["c"], "listing": "off"})).await;
        let document = patched.ok();
        assert_eq!(document["config"].get("max_warm_tools"), None);
        assert_eq!(
            (&document["config"]["core"], &document["config"]["listing"]),
            (&json!(["c"]), &json!("off"))
        );
        assert_eq!(document["config"]["aliases"], json!({"a": ["x"]}));
        assert_eq!(document["changes"]["added"], json!(["listing"]));
        assert_eq!(document["changes"]["removed"], json!(["max_warm_tools"]));
        assert_eq!(document["changes"]["changed"][0]["key"], "core");
        assert_eq!(document["changes"]["changed"][0]["from"], json!(["a", "b*"]));

        // A PUT is the whole layer: what it does not say is inherited again.
        let replaced = client.put(&at, &json!({"listing": "off"})).await.ok();
        assert_eq!(replaced["config"], json!({"listing": "off"}));

        client.delete(&at).await.expect_status(204);
        client.delete(&at).await.expect_status(204);
        let gone = client.get(&at).await;
        assert_eq!(gone.ok(), json!({}));
    }
}

#[tokio::test]
async fn writes_hold_to_the_revision_that_they_name() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["config"]);
    send(client, Method::PUT, &at, "\"3\"", &json!({})).await.problem(412, "precondition_failed");
    let first = send(client, Method::PUT, &at, "\"0\"", &json!({"max_warm_tools": 1})).await;
    first.ok();
    let first = etag(&first);
    for (method, body) in [
        (Method::PUT, json!({"max_warm_tools": 2})),
        (Method::PATCH, json!({"max_warm_tools": 2})),
        (Method::DELETE, Value::Null),
    ] {
        let refused = send(client, method, &at, "\"0\"", &body).await;
        refused.problem(412, "precondition_failed");
        let now = client.get(&at).await;
        assert_eq!((now.ok(), etag(&now)), (json!({"max_warm_tools": 1}), first.clone()));
    }
    let second = send(client, Method::PATCH, &at, &first, &json!({"max_warm_tools": 2})).await;
    second.ok();
    assert_ne!(etag(&second), first);
    send(client, Method::PATCH, &at, "*", &json!({"max_warm_tools": 4})).await.ok();
    let present = etag(&client.get(&at).await);
    send(client, Method::DELETE, &at, &present, &Value::Null).await.expect_status(204);
    // A revision never comes back with another content.
    let again = client.put(&at, &json!({"max_warm_tools": 9})).await;
    assert!(![first, etag(&second), present].contains(&etag(&again)));
    for weird in ["1", "W/\"1\"", "\"x\"", "\"\"", "\"99999999999999999999\""] {
        let answer = send(client, Method::PUT, &at, weird, &json!({})).await;
        assert!([400, 412, 422].contains(&answer.status), "{weird}: {}", answer.status);
        assert_eq!(client.get(&at).await.ok(), json!({"max_warm_tools": 9}));
    }
}

#[tokio::test]
async fn one_of_two_writers_of_a_revision_wins() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["config"]);
    let writes = (1..=8).map(|number| {
        let (client, at) = (client.clone(), at.clone());
        tokio::spawn(async move {
            send(&client, Method::PUT, &at, "\"0\"", &json!({"max_warm_tools": number})).await.status
        })
    });
    let mut statuses = Vec::new();
    for write in writes.collect::<Vec<_>>() {
        statuses.push(write.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
    assert_eq!(etag(&client.get(&at).await), "\"1\"");
}

#[tokio::test]
async fn a_dry_run_tells_and_writes_nothing() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["config"]);
    let dry = format!("{at}?dry_run=true");
    let written = client.put(&dry, &json!({"max_warm_tools": 100, "core": ["a"]})).await.ok();
    assert_eq!((&written["dry_run"], &written["config"]["max_warm_tools"]), (&json!(true), &json!(64)));
    assert!(has_warning(&written, "clamped", "/max_warm_tools"), "{written}");
    assert_eq!(written["changes"]["added"].as_array().unwrap().len(), 2);
    let now = client.get(&at).await;
    assert_eq!((now.ok(), etag(&now)), (json!({}), "\"0\"".to_owned()));

    client.put(&at, &json!({"max_warm_tools": 2})).await.ok();
    let patched = client.patch(&dry, &json!({"max_warm_tools": null})).await.ok();
    assert_eq!(
        (&patched["config"], &patched["changes"]["removed"]),
        (&json!({}), &json!(["max_warm_tools"]))
    );
    client.patch(&dry, &json!({"max_warm_tool": 1})).await.problem(422, "invalid_request");
    assert_eq!(client.get(&at).await.ok(), json!({"max_warm_tools": 2}));
    client.put(&format!("{at}?dry_run=maybe"), &json!({})).await.problem(422, "invalid_request");
    client.delete(&dry).await.problem(422, "invalid_request");
    assert_eq!(client.get(&at).await.ok(), json!({"max_warm_tools": 2}));
    client.put(&format!("{at}?dry_run=false"), &json!({})).await.ok();
    assert_eq!(client.get(&at).await.ok(), json!({}));
}

#[tokio::test]
async fn numbers_out_of_range_are_clamped_and_told() {
    let app = TestApp::start().await;
    let user = app.user();
    for (key, low, high) in [
        ("min_catalog_size", 0, 10_000),
        ("activation_pct", 0, 100),
        ("threshold_pct", 0, 100),
        ("listing_max_tokens", 200, 60_000),
        ("context_window", 1_000, 10_000_000),
        ("search_default_limit", 1, 20),
        ("max_search_limit", 1, 50),
        ("max_answer_tokens", 200, 50_000),
        ("max_warm_tools", 0, 64),
    ] {
        for (sent, kept) in
            [(json!(low - 1), low), (json!(high + 1), high), (json!(1e300), high), (json!(-1e300), low)]
        {
            let written = user.put_config(&json!({key: sent})).await.ok();
            let is = written["config"][key].as_i64().unwrap();
            // The default limit is bounded by the other key as well.
            assert!(
                is == kept || (key == "search_default_limit" && sent.as_f64() > Some(20.0)),
                "{key} = {sent}: {is}"
            );
            assert!(has_warning(&written, "clamped", &format!("/{key}")), "{key} = {sent}: {written}");
        }
        for kept in [low, high] {
            let written = user.put_config(&json!({key: kept})).await.ok();
            assert_eq!((&written["config"][key], &written["warnings"]), (&json!(kept), &json!([])), "{key}");
        }
    }
    for (key, low, high) in [("top_n", 1, 200), ("max_documents", 1, 1_000), ("timeout_ms", 100, 60_000)] {
        for (sent, kept) in [(low - 1, low), (high + 1, high)] {
            let config = json!({"matcher": {"endpoint": "https://rerank.example.com/v2/rerank", key: sent}});
            let written = user.put_config(&config).await.ok();
            assert_eq!(written["config"]["matcher"][key], kept, "{key}");
            assert!(has_warning(&written, "clamped", &format!("/matcher/{key}")), "{written}");
        }
    }
}

#[tokio::test]
async fn wrong_types_and_unknown_keys_name_their_place_and_change_nothing() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    user.put_config(&json!({"max_warm_tools": 5})).await.ok();
    let long = "n".repeat(513);
    for (bad, pointer) in [
        (json!({"max_warm_tool": 5}), "/max_warm_tool"),
        (json!({"max_warm_tools": "5"}), "/max_warm_tools"),
        (json!({"max_warm_tools": 2.5}), "/max_warm_tools"),
        (json!({"enabled": "maybe"}), "/enabled"),
        (json!({"enabled": 1}), "/enabled"),
        (json!({"listing": "full"}), "/listing"),
        (json!({"listing_placement": "system"}), "/listing_placement"),
        (json!({"core": "a"}), "/core"),
        (json!({"core": ["a", 7]}), "/core/1"),
        (json!({"core": [""]}), "/core/0"),
        (json!({"deny": [long]}), "/deny/0"),
        (json!({"allow": {}}), "/allow"),
        (json!({"groups": {}}), "/groups"),
        (json!({"groups": [{"tools": []}]}), "/groups/0/name"),
        (json!({"groups": [{"name": "g", "tool": []}]}), "/groups/0/tool"),
        (json!({"groups": [{"name": "g", "tools": [7]}]}), "/groups/0/tools/0"),
        (json!({"toolsets": [{"name": "t", "includes": "x"}]}), "/toolsets/0/includes"),
        (json!({"default_toolsets": [1]}), "/default_toolsets/0"),
        (json!({"aliases": {"t": 7}}), "/aliases/t"),
        (json!({"aliases": {"a/b": [1]}}), "/aliases/a~1b/0"),
        (json!({"warm_policy": "later"}), "/warm_policy"),
        (json!({"bridge_prefix": "0x"}), "/bridge_prefix"),
        (json!({"bridge_prefix": "a b"}), "/bridge_prefix"),
        (json!({"bridge_prefix": "x".repeat(33)}), "/bridge_prefix"),
        (json!({"matcher": []}), "/matcher"),
        (json!({"matcher": {}}), "/matcher"),
        (json!({"matcher": {"endpoint": 7}}), "/matcher/endpoint"),
        (json!({"matcher": {"endpoint": "ftp://x"}}), "/matcher/endpoint"),
        (json!({"matcher": {"endpoint": "https://user:pw@x.example"}}), "/matcher/endpoint"),
        (json!({"matcher": {"endpoint": "https://x.example", "api_key": 7}}), "/matcher/api_key"),
        (json!({"matcher": {"endpoint": "https://x.example", "api_key": "a\nb"}}), "/matcher/api_key"),
        (json!({"matcher": {"endpoint": "https://x.example", "topn": 7}}), "/matcher/topn"),
        (json!({"preload": {"enabld": true}}), "/preload/enabld"),
    ] {
        for answer in [user.put_config(&bad).await, client.patch(&user.path(&["config"]), &bad).await] {
            let problem = answer.problem(422, "invalid_request");
            let first = problem["errors"][0]["pointer"].as_str().unwrap().to_owned();
            assert!(
                first == pointer
                    || pointer.starts_with(&first)
                    || first.starts_with("/matcher/") && pointer == "/matcher",
                "{bad}: {problem}"
            );
        }
    }
    let several = user
        .put_config(&json!({"a": 1, "core": 7, "max_warm_tools": 9}))
        .await
        .problem(422, "invalid_request");
    assert_eq!(several["errors"].as_array().unwrap().len(), 2, "all faults at once: {several}");
    assert_eq!(client.get(&user.path(&["config"])).await.ok(), json!({"max_warm_tools": 5}));
}

#[tokio::test]
async fn what_is_reserved_is_refused_and_its_default_accepted() {
    let app = TestApp::start().await;
    let user = app.user();
    let reserved = json!({"usage_prior": {"enabled": true}});
    let problem = user.put_config(&reserved).await.problem(422, "unsupported");
    assert!(problem["errors"][0]["pointer"].as_str().unwrap().starts_with("/usage_prior"), "{problem}");
    let defaults = json!({
        "semantic": true, "profile": "generic", "exposure": "bridge", "management_tools": false,
        "require_review_on_change": false, "keep_missed_queries": false, "hot_tools": {"enabled": false},
        "usage_prior": {"enabled": false}, "preload": {"enabled": false, "top_k": 5},
        "matcher": {"endpoint": "https://x.example/rerank", "kind": "rerank", "dialect": "auto", "fusion": "auto"},
    });
    let written = user.put_config(&defaults).await.ok();
    assert_eq!(written["warnings"], json!([]));
}

#[tokio::test]
async fn limits_are_published() {
    let app = TestApp::start().await;
    let limits = app.admin().get("/v1/limits").await.ok();
    for (key, value) in [
        ("body_bytes", 16 * 1024 * 1024),
        ("depth", 64),
        ("tools_per_catalog", 20_000),
        ("tool_bytes", 256 * 1024),
        ("query_chars", 2_000),
        ("queries", 10),
        ("names", 20),
        ("calls", 20),
        ("session_ttl_seconds", 7 * 24 * 3600),
    ] {
        assert_eq!(limits[key], value, "{key}");
    }
    let small = TestApp::builder()
        .set("TOOLRACK_LIMITS_QUERIES", 2)
        .set("TOOLRACK_LIMITS_TOOLS_PER_CATALOG", 3)
        .start()
        .await;
    assert_eq!(small.admin().get("/v1/limits").await.ok()["queries"], 2);
    let user = small.user();
    user.search(json!({"queries": ["a", "b", "c"]})).await.problem(422, "invalid_request");
    let tool = |name: &str| json!({"name": name});
    user.put_catalog(&[tool("a"), tool("b"), tool("c"), tool("d")]).await.problem(422, "too_many_tools");
    assert_eq!(small.admin().get(&user.path(&["catalog"])).await.ok()["tools"], json!([]));
    user.put_catalog(&[tool("a"), tool("b"), tool("c")]).await.ok();
    let patch = json!({"upsert": [tool("d")]});
    small.admin().patch(&user.path(&["catalog"]), &patch).await.problem(422, "too_many_tools");
    let swap = json!({"upsert": [tool("d")], "remove": ["a"]});
    small.admin().patch(&user.path(&["catalog"]), &swap).await.ok();
}

#[tokio::test]
async fn the_key_is_asked_for_before_anything_else() {
    let app = TestApp::start().await;
    for client in [app.anonymous(), app.with_key("x"), app.with_key(&"y".repeat(40))] {
        for place in ["/v1/limits", "/v1/users/a%20b/config", "/nowhere", "/metrics", "/v1/assemble"] {
            let refused = client.get(place).await;
            refused.problem(401, "unauthorized");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        client.post("/v1/search", &json!({"nonsense": true})).await.problem(401, "unauthorized");
        for open in ["/healthz", "/readyz", "/openapi.json", "/docs/", "/docs/errors"] {
            client.get(open).await.ok();
        }
    }
    let open = TestApp::builder().no_auth().start().await;
    open.anonymous().get("/v1/limits").await.ok();
}
