//! Configs of users and projects: writing, merging, the effective view, and secrets that nobody reads back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, Client, TestApp, path, unique};

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

        let config = json!({"max_warm_tools": 3, "core": ["a", "b*"], "enabled": true, "aliases": {"a": ["x"]}});
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
        let patched = client.patch(&at, &json!({"max_warm_tools": null, "core": ["c"], "listing": "off"})).await;
        let document = patched.ok();
        assert_eq!(document["config"].get("max_warm_tools"), None);
        assert_eq!((&document["config"]["core"], &document["config"]["listing"]), (&json!(["c"]), &json!("off")));
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
        tokio::spawn(async move { send(&client, Method::PUT, &at, "\"0\"", &json!({"max_warm_tools": number})).await.status })
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
    assert_eq!((&patched["config"], &patched["changes"]["removed"]), (&json!({}), &json!(["max_warm_tools"])));
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
        for (sent, kept) in [(json!(low - 1), low), (json!(high + 1), high), (json!(1e300), high), (json!(-1e300), low)] {
            let written = user.put_config(&json!({key: sent})).await.ok();
            let is = written["config"][key].as_i64().unwrap();
            // The default limit is bounded by the other key as well.
            assert!(is == kept || (key == "search_default_limit" && sent.as_f64() > Some(20.0)), "{key} = {sent}: {is}");
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
            assert!(first == pointer || pointer.starts_with(&first) || first.starts_with("/matcher/") && pointer == "/matcher", "{bad}: {problem}");
        }
    }
    let several = user.put_config(&json!({"a": 1, "core": 7, "max_warm_tools": 9})).await.problem(422, "invalid_request");
    assert_eq!(several["errors"].as_array().unwrap().len(), 2, "all faults at once: {several}");
    assert_eq!(client.get(&user.path(&["config"])).await.ok(), json!({"max_warm_tools": 5}));
}

#[tokio::test]
async fn what_is_reserved_is_refused_and_its_default_accepted() {
    let app = TestApp::start().await;
    let user = app.user();
    let matcher = |key: &str, value: Value| json!({"matcher": {"endpoint": "https://x.example/rerank", key: value}});
    for (config, pointer) in [
        (json!({"semantic": false}), "/semantic"),
        (json!({"profile": "openai"}), "/profile"),
        (json!({"exposure": "native"}), "/exposure"),
        (json!({"management_tools": true}), "/management_tools"),
        (json!({"require_review_on_change": true}), "/require_review_on_change"),
        (json!({"keep_missed_queries": true}), "/keep_missed_queries"),
        (json!({"hot_tools": {"enabled": true}}), "/hot_tools"),
        (json!({"usage_prior": {"enabled": true}}), "/usage_prior"),
        (json!({"preload": {"enabled": true}}), "/preload"),
        (matcher("kind", json!("embedding")), "/matcher/kind"),
        (matcher("dialect", json!("tei")), "/matcher/dialect"),
        (matcher("fusion", json!("on")), "/matcher/fusion"),
        (matcher("fusion", json!("off")), "/matcher/fusion"),
        (matcher("extra_body", json!({"a": 1})), "/matcher/extra_body"),
        (matcher("extra_headers", json!({"a": "b"})), "/matcher/extra_headers"),
        (matcher("auth_header", json!("X-Key")), "/matcher/auth_header"),
        (matcher("auth_scheme", json!("Token")), "/matcher/auth_scheme"),
        (matcher("omit_model", json!(true)), "/matcher/omit_model"),
    ] {
        let answer = user.put_config(&config).await;
        // A preload without a matcher is a warning by its own rule; with the feature itself not there, both will do.
        if pointer == "/preload" && answer.status == 200 {
            assert!(!answer.ok()["warnings"].as_array().unwrap().is_empty(), "{config}");
            continue;
        }
        let problem = answer.problem(422, "unsupported");
        let at = problem["errors"][0]["pointer"].as_str().unwrap();
        assert!(at.starts_with(pointer), "{config}: {problem}");
    }
    let defaults = json!({
        "semantic": true, "profile": "generic", "exposure": "bridge", "management_tools": false,
        "require_review_on_change": false, "keep_missed_queries": false, "hot_tools": {"enabled": false},
        "usage_prior": {"enabled": false}, "preload": {"enabled": false, "top_k": 5},
        "matcher": {"endpoint": "https://x.example/rerank", "kind": "rerank", "dialect": "auto", "fusion": "auto"},
    });
    let written = user.put_config(&defaults).await.ok();
    assert_eq!(written["warnings"], json!([]));
    user.put_config(&matcher("dialect", json!("cohere"))).await.ok();

    for format in ["openai_responses", "gemini", "bedrock_converse", "mcp"] {
        for (route, mut body) in [
            ("/v1/assemble", json!({})),
            ("/v1/search", json!({"query": "a"})),
            ("/v1/describe", json!({"name": "a"})),
            ("/v1/call", json!({"name": "a"})),
            ("/v1/bridge", json!({"call": {"name": "a"}})),
        ] {
            body["format"] = json!(format);
            let problem = user.post(route, body).await.problem(422, "unsupported");
            assert_eq!(problem["errors"][0]["pointer"], "/format");
        }
    }
    for (route, body, pointer) in [
        ("/v1/search", json!({"query": "a", "explain": true}), "/explain"),
        ("/v1/search", json!({"query": "a", "context": "b"}), "/context"),
        ("/v1/search", json!({"query": "a", "detail": "signature"}), "/detail"),
        ("/v1/assemble", json!({"profile": "openai"}), "/profile"),
        ("/v1/search", json!({"query": "a", "profile": "openai"}), "/profile"),
    ] {
        let problem = user.post(route, body).await.problem(422, "unsupported");
        assert_eq!(problem["errors"][0]["pointer"], pointer);
    }
    user.search(json!({"query": "a", "explain": false, "profile": "generic", "context": null})).await.ok();
}

#[tokio::test]
async fn the_effective_view_names_the_layer_of_every_value() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let project = unique("project");
    let view = |query: String| async move { client.get(&format!("/v1/config/effective?{query}")).await.ok() };
    client.get("/v1/config/effective").await.problem(422, "invalid_request");

    let unwritten = view(format!("user={}", user.id)).await;
    for (key, default) in [
        ("enabled", json!("auto")),
        ("min_catalog_size", json!(12)),
        ("activation_pct", json!(0)),
        ("threshold_pct", json!(5)),
        ("listing", json!("auto")),
        ("listing_max_tokens", json!(4_000)),
        ("listing_placement", json!("separate")),
        ("context_window", json!(128_000)),
        ("search_default_limit", json!(5)),
        ("max_search_limit", json!(20)),
        ("max_answer_tokens", json!(2_000)),
        ("core", json!([])),
        ("allow", json!([])),
        ("deny", json!([])),
        ("groups", json!([])),
        ("toolsets", json!([])),
        ("default_toolsets", json!([])),
        ("max_warm_tools", json!(8)),
        ("warm_policy", json!("immediate")),
        ("preload", json!({"enabled": false, "top_k": 5})),
        ("aliases", json!({})),
        ("matcher", Value::Null),
        ("semantic", json!(true)),
        ("profile", json!("generic")),
        ("exposure", json!("bridge")),
        ("bridge_prefix", json!("")),
        ("management_tools", json!(false)),
        ("require_review_on_change", json!(false)),
        ("keep_missed_queries", json!(false)),
        ("hot_tools", json!({"enabled": false})),
        ("usage_prior", json!({"enabled": false})),
    ] {
        let entry = &unwritten["config"][key];
        assert_eq!((&entry["value"], &entry["origin"]), (&default, &json!("default")), "{key}");
    }

    let mine = json!({
        "max_warm_tools": 1, "threshold_pct": 7, "core": ["mine"], "deny": ["bad"], "allow": ["a*", "b*"],
        "groups": [{"name": "g", "tools": ["mine"]}, {"name": "only_mine", "tools": ["x"]}],
        "aliases": {"t": ["mine"], "u": ["mine"]},
        "matcher": {"endpoint": "https://mine.example/rerank", "top_n": 7, "timeout_ms": 900},
    });
    let theirs = json!({
        "max_warm_tools": 2, "core": ["theirs"], "deny": ["worse"], "allow": ["a*"],
        "groups": [{"name": "g", "tools": ["theirs"]}],
        "aliases": {"t": ["theirs"]},
        "matcher": {"endpoint": "https://theirs.example/rerank", "model": "m"},
    });
    user.put_config(&mine).await.ok();
    client.put(&path(&["v1", "projects", &project, "config"]), &theirs).await.ok();
    let both = view(format!("user={}&project={project}", user.id)).await;
    let of = |key: &str| (both["config"][key]["value"].clone(), both["config"][key]["origin"].clone());
    assert_eq!(of("max_warm_tools"), (json!(2), json!("project")));
    assert_eq!(of("threshold_pct"), (json!(7), json!("user")));
    assert_eq!(of("min_catalog_size"), (json!(12), json!("default")));
    let sorted = |value: Value| {
        let mut names: Vec<String> = value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(sorted(of("core").0), ["mine", "theirs"]);
    assert_eq!(sorted(of("deny").0), ["bad", "worse"]);
    assert_eq!(of("core").1, "merged");
    assert_eq!(of("allow").1, "merged");
    let groups = of("groups").0;
    let group = |name: &str| groups.as_array().unwrap().iter().find(|group| group["name"] == name).cloned();
    assert_eq!(group("g").unwrap()["tools"], json!(["theirs"]), "the project's entry wins");
    assert_eq!(group("only_mine").unwrap()["tools"], json!(["x"]));
    assert_eq!(of("aliases").0, json!({"t": ["theirs"], "u": ["mine"]}));
    // A matcher is one value: nothing of the user's shines through the project's.
    let (matcher, origin) = of("matcher");
    assert_eq!((&matcher["endpoint"], origin), (&json!("https://theirs.example/rerank"), json!("project")));
    assert_eq!(matcher["model"], "m");
    assert_ne!(matcher["timeout_ms"], 900);
    assert_ne!(matcher["top_n"], 7);

    let alone = view(format!("project={project}")).await;
    assert_eq!(alone["config"]["threshold_pct"]["origin"], "default");
    assert_eq!(alone["config"]["core"]["value"], json!(["theirs"]));
}

#[tokio::test]
async fn layers_join_in_what_a_request_may_see() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let project = unique("project");
    let tools: Vec<Value> = ["a1", "a2", "b1", "b2", "c1"]
        .iter()
        .map(|name| json!({"name": name, "description": format!("Tool {name}."), "group": &name[..1]}))
        .collect();
    user.put_catalog(&tools).await.ok();
    let names = |answer: &Value| {
        let tools = answer["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let project_config = path(&["v1", "projects", &project, "config"]);
    let seen = |mine: Value, theirs: Value, body: Value| {
        let (client, user, at, project) = (client.clone(), user.clone(), project_config.clone(), project.clone());
        async move {
            user.put_config(&mine).await.ok();
            client.put(&at, &theirs).await.ok();
            let mut body = body;
            body["project"] = json!(project);
            user.assemble(body).await.ok()
        }
    };
    for (mine, theirs, body, expected) in [
        (json!({}), json!({}), json!({}), &["a1", "a2", "b1", "b2", "c1"][..]),
        (json!({"allow": []}), json!({"allow": ["@a"]}), json!({}), &["a1", "a2"]),
        (json!({"allow": ["a*", "b1"]}), json!({"allow": ["@a", "@c"]}), json!({}), &["a1", "a2"]),
        (json!({"allow": ["a*", "b1"]}), json!({}), json!({"allow": ["b1", "c1"]}), &["b1"]),
        (json!({"allow": ["a*"]}), json!({"allow": ["b*"]}), json!({}), &[]),
        (json!({"deny": ["a*"]}), json!({"deny": ["@b"]}), json!({}), &["c1"]),
        (json!({"deny": ["a1"], "core": ["a1"], "allow": ["a1", "a2"]}), json!({}), json!({}), &["a2"]),
        (json!({}), json!({}), json!({"deny": ["*"]}), &[]),
        (json!({"toolsets": [{"name": "t", "tools": ["a1"]}]}), json!({"default_toolsets": ["t"]}), json!({}), &["a1"]),
        (json!({"toolsets": [{"name": "t", "tools": ["a1"]}], "default_toolsets": ["t"]}), json!({}), json!({"toolsets": []}), &["a1", "a2", "b1", "b2", "c1"]),
        (
            json!({"toolsets": [{"name": "t", "tools": ["a1"]}, {"name": "u", "groups": ["b"], "includes": ["t"]}]}),
            json!({"toolsets": [{"name": "t", "tools": ["a2"], "includes": ["u"]}]}),
            json!({"toolsets": ["u"]}),
            &["a2", "b1", "b2"],
        ),
        (json!({"toolsets": [{"name": "all", "tools": ["*"]}]}), json!({}), json!({"toolsets": ["all"], "deny": ["a*"]}), &["b1", "b2", "c1"]),
    ] {
        let case = format!("{mine} {theirs} {body}");
        let answer = seen(mine, theirs, body).await;
        assert_eq!(names(&answer), expected, "{case}");
        if expected.is_empty() {
            let warnings = answer["warnings"].as_array().unwrap();
            assert!(!warnings.is_empty(), "an empty grant is told: {case}: {answer}");
        }
    }
    let unknown = seen(json!({}), json!({}), json!({"toolsets": ["nowhere"]})).await;
    assert!(names(&unknown).is_empty(), "{unknown}");
    assert!(unknown["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "unknown_toolset"));
}

const SECRET: &str = "sk-canary-5f3a9c71e2b84d06";

fn matcher(endpoint: &str, api_key: Option<Value>) -> Value {
    let mut matcher = json!({"endpoint": endpoint});
    if let Some(key) = api_key {
        matcher["api_key"] = key;
    }
    json!({ "matcher": matcher })
}

#[tokio::test]
async fn a_secret_is_kept_while_its_origin_stays_and_is_never_read_back() {
    let mut app = TestApp::builder().set("TOOLRACK_LOG_LEVEL", "trace").start().await;
    let user = app.user();
    let at = user.path(&["config"]);
    let here = "https://rerank.example.com/v2/rerank";
    let masked = json!({"set": true, "last4": "4d06"});
    let mut seen = String::new();
    let key_of = |answer: &Answer| answer.ok()["matcher"]["api_key"].clone();

    let put = user.put_config(&matcher(here, Some(json!(SECRET)))).await;
    assert_eq!(put.ok()["config"]["matcher"]["api_key"], masked);
    seen.push_str(put.text());
    for (body, kept) in [
        (matcher(here, None), true),
        (matcher(here, Some(json!({"set": true}))), true),
        (matcher(here, Some(masked.clone())), true),
        (matcher("https://rerank.example.com:443/other/path?x=1", None), true),
        (matcher("https://RERANK.example.com/v2/rerank", None), true),
    ] {
        let answer = user.put_config(&body).await;
        seen.push_str(answer.text());
        let read = app.admin().get(&at).await;
        assert_eq!(key_of(&read) == masked, kept, "{body}");
        assert_eq!(answer.ok()["warnings"], json!([]), "{body}");
        seen.push_str(read.text());
    }
    let effective = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await;
    assert_eq!(effective.ok()["config"]["matcher"]["value"]["api_key"], masked);
    seen.push_str(effective.text());
    let patched = app.admin().patch(&at, &json!({"matcher": {"top_n": 9}})).await;
    seen.push_str(patched.text());
    assert_eq!(key_of(&app.admin().get(&at).await), masked);

    // Another scheme, host or port: the key must not follow.
    for elsewhere in ["https://evil.example.com/v2/rerank", "https://rerank.example.com:8443/v2/rerank"] {
        user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
        for keep in [None, Some(json!({"set": true}))] {
            user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
            let moved = user.put_config(&matcher(elsewhere, keep)).await;
            seen.push_str(moved.text());
            assert!(has_warning(&moved.ok(), "secret_cleared", "/matcher/api_key"), "{}", moved.text());
            assert_eq!(key_of(&app.admin().get(&at).await), Value::Null);
            // Nor does it come back with its host.
            let back = user.put_config(&matcher(here, None)).await.ok();
            assert_eq!(back["config"]["matcher"].get("api_key"), None);
        }
        user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
        let dry = app.admin().put(&format!("{at}?dry_run=true"), &matcher(elsewhere, None)).await;
        assert!(has_warning(&dry.ok(), "secret_cleared", "/matcher/api_key"));
        assert_eq!(key_of(&app.admin().get(&at).await), masked, "a dry run clears nothing");
    }
    let with_both = user.put_config(&matcher("https://other.example.com/", Some(json!("new-key-of-the-other-host")))).await;
    assert_eq!(with_both.ok()["config"]["matcher"]["api_key"]["last4"], "host");
    assert_eq!(with_both.ok()["warnings"], json!([]));

    user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
    user.put_config(&matcher(here, Some(Value::Null))).await.ok();
    assert_eq!(key_of(&app.admin().get(&at).await), Value::Null, "null clears");
    let short = user.put_config(&matcher(here, Some(json!("short-key-1")))).await.ok();
    assert_eq!(short["config"]["matcher"]["api_key"], json!({"set": true}), "too short to show a part");
    user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
    user.put_config(&json!({})).await.ok();
    let back = user.put_config(&matcher(here, None)).await.ok();
    assert_eq!(back["config"]["matcher"].get("api_key"), None, "the key went with its matcher");

    // Refusals do not repeat it either, wherever it was put by mistake.
    for bad in [
        json!({"matcher": {"endpoint": here, "api_key": {"value": SECRET}}}),
        json!({"matcher": {"endpoint": here, "apikey": SECRET}}),
        json!({"matcher": {"endpoint": here, "api_key": format!("{SECRET}\n")}}),
        json!({"matcher": {"endpoint": here, "api_key": [SECRET]}}),
        json!({"matcher": {"endpoint": format!("https://x:{SECRET}@rerank.example.com"), "api_key": SECRET}}),
    ] {
        let refused = user.put_config(&bad).await;
        refused.problem(422, "invalid_request");
        seen.push_str(refused.text());
    }
    user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
    app.restart().await;
    let read = app.admin().get(&at).await;
    assert_eq!(key_of(&read), masked, "sealed, and there after a restart");
    seen.push_str(read.text());
    for place in ["/metrics", "/openapi.json", "/readyz"] {
        seen.push_str(app.admin().get(place).await.text());
    }
    assert!(!seen.contains(SECRET), "an answer holds the key");
    assert!(!app.logs().contains(SECRET), "the log holds the key");
    for entry in std::fs::read_dir(app.folder()).unwrap() {
        let file = entry.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{} holds the key", file.display());
    }
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
