//! How the layers of user and project join.

use serde_json::{Value, json};

use crate::app::{TestApp, path, unique};

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
        ("hot_tools", json!({"enabled": false, "auto": false, "top_k": 5, "window_days": 14})),
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
        let mut names: Vec<String> =
            value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
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
        let (client, user, at, project) =
            (client.clone(), user.clone(), project_config.clone(), project.clone());
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
        (
            json!({"toolsets": [{"name": "t", "tools": ["a1"]}]}),
            json!({"default_toolsets": ["t"]}),
            json!({}),
            &["a1"],
        ),
        (
            json!({"toolsets": [{"name": "t", "tools": ["a1"]}], "default_toolsets": ["t"]}),
            json!({}),
            json!({"toolsets": []}),
            &["a1", "a2", "b1", "b2", "c1"],
        ),
        (
            json!({"toolsets": [{"name": "t", "tools": ["a1"]}, {"name": "u", "groups": ["b"],
                "includes": ["t"]}]}),
            json!({"toolsets": [{"name": "t", "tools": ["a2"], "includes": ["u"]}]}),
            json!({"toolsets": ["u"]}),
            &["a2", "b1", "b2"],
        ),
        (
            json!({"toolsets": [{"name": "all", "tools": ["*"]}]}),
            json!({}),
            json!({"toolsets": ["all"], "deny": ["a*"]}),
            &["b1", "b2", "c1"],
        ),
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
    assert!(
        unknown["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "unknown_toolset")
    );
}
