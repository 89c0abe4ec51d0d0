//! Nothing outside a grant shows anywhere, and no user sees another's text.
//!
//! The tools that must stay hidden carry a word that nothing else has, in name, group, description and schema; the
//! requests never say it, but ask for these tools in every other way.

use serde_json::{Value, json};

use crate::app::{Answer, TestApp, User};
use crate::keys::make;
use crate::messy;
use crate::model::{FORMATS, model_call};

/// The word of the hidden tools.
const CANARY: &str = "zqx";

fn hidden_tools() -> Vec<Value> {
    let tool = |name: &str, description: &str| {
        json!({
            "group": "cellar zqx", "name": name, "description": format!("{description} zqx"),
            "parameters": {"type": "object", "required": ["zqx_key"], "properties": {"zqx_key": {"type": "string"}}},
            "aliases": ["fetch a bottle zqx"]
        })
    };
    vec![
        tool("zqx_cellar_open", "Opens the sealed wine cellar."),
        tool("zqx_cellar_inventory", "Counts the barrels of the sealed wine cellar."),
        tool("open.cellar.zqx", "Opens the wine cellar by remote control."),
    ]
}

/// Requests that the hidden tools would answer best. Every answer that an agent can get is here.
async fn probe(user: &User, grant: &Value) -> Vec<Answer> {
    let with = |more: Value| {
        let mut body = grant.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let session = json!({"session": "probe"});
    let mut answers = Vec::new();
    for format in FORMATS {
        answers.push(
            user.assemble(with(json!({"session": "probe", "format": format, "context_window": 2_000_000})))
                .await,
        );
        answers.push(user.assemble(with(json!({ "format": format }))).await);
    }
    let names =
        json!(["cellar_open", "open_cellar", "cellar_inventory", "zq_cellar_open", "open.cellar", "cellar"]);
    for place in [json!({}), session] {
        let with = |more: Value| {
            let mut body = with(place.clone());
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let queries = json!([
            "open the sealed wine cellar",
            "count barrels",
            "fetch a bottle",
            "unlock the strongroom",
            "cellar",
            "qqqq wwww"
        ]);
        for detail in ["names", "brief", "full"] {
            answers.push(user.search(with(json!({"queries": queries, "detail": detail, "limit": 20}))).await);
        }
        answers.push(user.describe(with(json!({ "names": names }))).await);
        let calls: Vec<Value> =
            names.as_array().unwrap().iter().map(|name| json!({ "name": name })).collect();
        answers.push(user.call(with(json!({ "calls": calls }))).await);
        for format in FORMATS {
            let calls = [
                model_call(format, "1", "tool_search", &json!({ "query": queries })),
                model_call(format, "2", "tool_describe", &json!({ "names": names })),
                model_call(format, "3", "tool_call", &json!({ "calls": calls })),
                model_call(format, "4", "cellar_open", &json!({})),
            ];
            answers.push(user.bridge(with(json!({"format": format, "calls": calls}))).await);
        }
    }
    let project = grant["project"].as_str().map(|project| format!("?project={project}")).unwrap_or_default();
    for action in ["pin", "unpin", "release"] {
        let path = user.path(&["sessions", "probe", action]) + &project;
        answers.push(user.client().post(&path, &json!({"names": ["cellar_open"]})).await);
    }
    answers.push(user.client().get(&(user.path(&["sessions", "probe"]) + &project)).await);
    answers.push(user.client().get(&user.path(&["sessions"])).await);
    answers.push(user.assemble(with(json!({"session": "probe"}))).await);
    answers.push(user.client().get("/metrics").await);
    answers
}

fn leaks(answers: &[Answer]) -> Vec<&str> {
    answers.iter().map(Answer::text).filter(|text| text.contains(CANARY)).collect()
}

async fn assert_hidden(way: &str, user: &User, grant: &Value, visible: usize) {
    let answers = probe(user, grant).await;
    if let Some(leak) = leaks(&answers).first() {
        let at = leak.find(CANARY).unwrap_or_default();
        let start = leak.floor_char_boundary(at.saturating_sub(400));
        panic!("{way}: {}", &leak[start..leak.ceil_char_boundary(at + 100)]);
    }
    let assembled = answers[1].ok();
    let counts = &assembled["counts"];
    let total = counts["core"].as_u64().unwrap() + counts["deferred"].as_u64().unwrap();
    assert_eq!(total, visible as u64, "{way}: {counts}");
    // Forbidden and unknown names get the same answer.
    for (hidden, unknown) in [("zqx_cellar_open", "zzz_cellar_open"), ("open.cellar.zqx", "open.cellar.zzz")]
    {
        for route in ["/v1/describe", "/v1/call"] {
            let mut of = Vec::new();
            for name in [hidden, unknown] {
                let mut body = grant.clone();
                body["name"] = json!(name);
                of.push(user.post(route, body).await.text().replace("zqx", "zzz"));
            }
            assert_eq!(of[0], of[1], "{way}");
        }
    }
}

#[tokio::test]
async fn nothing_outside_the_grant_shows() {
    let app = TestApp::start().await;
    let rest = messy::catalog(8, 120);
    let tools: Vec<Value> = rest.iter().cloned().chain(hidden_tools()).collect();
    let seen = app.user();
    let open = seen.put_catalog(&tools).await.ok();
    let visible = open["added"]["count"].as_u64().unwrap() as usize - 3;
    let answers = probe(&seen, &json!({})).await;
    assert!(leaks(&answers).len() > 20, "allowed, the probes find the tools: {}", leaks(&answers).len());

    let aliases =
        json!({"zqx_cellar_open": ["unlock the strongroom"], "open.cellar.zqx": ["fetch a bottle"]});
    for (way, config, grant) in [
        ("names", json!({"deny": ["zqx_cellar_open", "zqx_cellar_inventory", "open.cellar.zqx"]}), json!({})),
        ("prefixes", json!({"deny": ["zqx*", "open.cellar*"], "core": ["zqx*"]}), json!({})),
        ("the group", json!({"deny": ["@cellar zqx"], "aliases": aliases}), json!({})),
        (
            "a group of the config",
            json!({"deny": ["@wine"], "groups": [
            {"name": "wine", "description": "zqx", "prefixes": ["zqx"], "tools": ["open.cellar.zqx"]}]}),
            json!({}),
        ),
        // A session shows the limits that its own agent set: these must not say the word.
        (
            "the request",
            json!({"groups": [{"name": "wine", "description": "zqx", "prefixes": ["zqx", "open.cellar"]}]}),
            json!({"deny": ["@wine"]}),
        ),
    ] {
        let user = app.user();
        user.put_catalog(&tools).await.ok();
        user.put_config(&config).await.ok();
        assert_hidden(way, &user, &grant, visible).await;
    }
    let few: Vec<Value> =
        rest.iter().filter(|tool| messy::identity(tool).1.is_ascii()).take(30).cloned().collect();
    let few_names: Vec<&str> = few.iter().map(|tool| messy::identity(tool).1).collect();
    let user = app.user();
    let many: Vec<Value> = few.iter().cloned().chain(hidden_tools()).collect();
    let visible = user.put_catalog(&many).await.ok()["added"]["count"].as_u64().unwrap() as usize - 3;
    assert_hidden("allow in the request", &user, &json!({"allow": few_names}), visible).await;
    user.put_config(&json!({"toolsets": [{"name": "few", "tools": few_names}]})).await.ok();
    assert_hidden("a toolset", &user, &json!({"toolsets": ["few"]}), visible).await;
    user.put_config(&json!({"allow": few_names})).await.ok();
    assert_hidden("allow in the config", &user, &json!({}), visible).await;
}

#[tokio::test]
async fn nothing_outside_a_keys_limits_shows_whatever_its_holder_asks_for() {
    let app = TestApp::start().await;
    let few: Vec<Value> = messy::catalog(8, 120)
        .into_iter()
        .filter(|tool| messy::identity(tool).1.is_ascii())
        .take(30)
        .collect();
    let few_names: Vec<&str> = few.iter().map(|tool| messy::identity(tool).1).collect();
    let tools: Vec<Value> = few.iter().cloned().chain(hidden_tools()).collect();
    for (way, limits) in [
        (
            "a key's deny, names",
            json!({"deny": ["zqx_cellar_open", "zqx_cellar_inventory", "open.cellar.zqx"]}),
        ),
        ("a key's deny, prefixes", json!({"deny": ["zqx*", "open.cellar*"]})),
        ("a key's deny, a group", json!({"deny": ["@cellar zqx"]})),
        ("a key's allow", json!({ "allow": few_names })),
        ("a key's toolsets", json!({"toolsets": ["few"]})),
    ] {
        let owner = app.user();
        let visible = owner.put_catalog(&tools).await.ok()["added"]["count"].as_u64().unwrap() as usize - 3;
        owner
            .put_config(&json!({"toolsets": [{"name": "few", "tools": few_names}], "core": ["zqx*"]}))
            .await
            .ok();
        // Another key has found and pinned the tools in the session that the probes ask in.
        owner.assemble(json!({"session": "probe"})).await.ok();
        let warmed = json!({"session": "probe", "names": ["zqx_cellar_inventory", "open.cellar.zqx"]});
        assert!(owner.describe(warmed).await.text().contains(CANARY), "{way}");
        let pin = json!({"names": ["open.cellar.zqx"]});
        owner.client().post(&owner.path(&["sessions", "probe", "pin"]), &pin).await.ok();

        let mut bindings = limits;
        bindings["users"] = json!([owner.id]);
        let key = make(&app, "agent", bindings).await;
        let user = app.user_with_key(&owner.id, &key.key);
        assert_hidden(way, &user, &json!({}), visible).await;
        for wide in [
            json!({"toolsets": []}),
            json!({"toolsets": ["*"], "allow": ["*"]}),
            json!({"allow": ["@cellar*", "*"]}),
        ] {
            assert_hidden(way, &user, &wide, visible).await;
        }
        // Live tools are limited alike.
        let live = user.assemble(json!({"session": "live", "tools": tools})).await.ok();
        let live_ref = json!({"tools_ref": live["tools_ref"]});
        for answer in probe(&user, &live_ref).await.iter().filter(|answer| answer.status == 200) {
            assert!(!answer.text().contains(CANARY), "{way}: {}", answer.text());
        }
        // The other key sees as much as before.
        assert!(owner.assemble(json!({})).await.text().contains(CANARY), "{way}");
    }
}

#[tokio::test]
async fn warm_and_pinned_tools_that_are_denied_later_do_not_show() {
    let app = TestApp::start().await;
    let user = app.user();
    let tools: Vec<Value> = messy::catalog(9, 60).into_iter().chain(hidden_tools()).collect();
    let visible = user.put_catalog(&tools).await.ok()["added"]["count"].as_u64().unwrap() as usize - 3;
    user.describe(json!({"session": "probe", "names": ["zqx_cellar_open", "open.cellar.zqx"]})).await.ok();
    let pin = json!({"names": ["zqx_cellar_open"]});
    user.client().post(&user.path(&["sessions", "probe", "pin"]), &pin).await.ok();
    user.put_config(&json!({"deny": ["@cellar zqx"]})).await.ok();
    assert_hidden("after warming", &user, &json!({}), visible).await;
    // More tools are found than there is room beside the hidden pin; what is evicted may be a hidden one.
    for tool in messy::catalog(9, 60).iter().take(12) {
        let warmed = user.describe(json!({"session": "probe", "name": messy::identity(tool).1})).await;
        assert!(!warmed.text().contains(CANARY), "{}", warmed.text());
    }
}

#[tokio::test]
async fn tools_that_both_catalogs_have_and_nobody_may_see_do_not_show_in_warnings() {
    let app = TestApp::start().await;
    let user = app.user();
    let project = crate::app::unique("project");
    let tools: Vec<Value> = messy::catalog(10, 60).into_iter().chain(hidden_tools()).collect();
    let visible = user.put_catalog(&tools).await.ok()["added"]["count"].as_u64().unwrap() as usize - 3;
    let mut others = hidden_tools();
    for tool in &mut others {
        tool["description"] = json!("Something else entirely, zqx.");
        tool["override"] = json!(true);
    }
    let path = crate::app::path(&["v1", "projects", &project, "catalog"]);
    user.client().put(&path, &json!({"tools": others})).await.ok();
    let seen = user.assemble(json!({ "project": project })).await;
    assert!(seen.text().contains("catalog_clash"), "{}", seen.text());
    user.put_config(&json!({"deny": ["@cellar zqx"]})).await.ok();
    assert_hidden("a clash", &user, &json!({ "project": project }), visible).await;
}

#[tokio::test]
async fn users_and_projects_do_not_see_each_other() {
    let app = TestApp::start().await;
    let (owner, other) = (app.user(), app.user());
    let tools: Vec<Value> = messy::catalog(11, 60).into_iter().chain(hidden_tools()).collect();
    owner.put_catalog(&tools).await.ok();
    owner.put_config(&json!({"core": ["zqx*"]})).await.ok();
    let live = owner.assemble(json!({"session": "probe", "tools": tools})).await.ok();
    let visible = other.put_catalog(&messy::catalog(11, 60)).await.ok()["added"]["count"].as_u64().unwrap();
    assert_hidden("another user", &other, &json!({}), visible as usize).await;
    other.assemble(json!({"tools_ref": live["tools_ref"]})).await.problem(412, "unknown_tools_ref");

    let project = crate::app::unique("project");
    let path = crate::app::path(&["v1", "projects", &project, "catalog"]);
    owner.client().put(&path, &json!({"tools": hidden_tools()})).await.ok();
    assert_hidden("a project that was not named", &other, &json!({}), visible as usize).await;
    let elsewhere = json!({"project": crate::app::unique("project")});
    assert_hidden("another project", &other, &elsewhere, visible as usize).await;
    let named = other.assemble(json!({ "project": project })).await;
    assert!(named.text().contains(CANARY), "projects are global");
}
