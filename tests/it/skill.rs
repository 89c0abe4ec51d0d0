//! The management tools in arrays and over the bridge, and the setup skill: what it says is there, and walking it ends where the
//! pages end.

use serde_json::{Value, json};

use crate::app::{Client, TestApp, User};
use crate::checker::faults;
use crate::keys::make;
use crate::messy;
use crate::model::{FORMATS, array_names, definition, entries, model_call, read_message};
use crate::provider_rules::ways;

mod text;
mod walk;

pub(crate) const TOOLS: [&str; 2] = ["toolrack_catalog", "toolrack_update_config"];

/// One call of a model over the bridge, as the holder of a key sends it: what the model reads, and whether that is an error.
pub(crate) async fn ask(
    client: &Client,
    who: &Value,
    format: &str,
    name: &str,
    arguments: Value,
) -> (Value, bool) {
    let mut body = who.clone();
    body["format"] = json!(format);
    body["call"] = model_call(format, "c1", name, &arguments);
    let answer = client.post("/v1/bridge", &body).await.ok();
    let result = &answer["results"][0];
    assert_eq!(result["action"], "respond", "{answer}");
    let (_, content, _) = read_message(format, &result["message"]);
    let content = serde_json::from_str(&content).unwrap_or_else(|_| panic!("{content}"));
    (content, result["is_error"] == true)
}

/// All lines of a catalog, page by page, with the pages' own answers.
pub(crate) async fn catalog(
    client: &Client,
    who: &Value,
    format: &str,
    query: Value,
) -> (Vec<String>, Vec<Value>) {
    let (mut lines, mut pages, mut offset) = (Vec::new(), Vec::new(), json!(0));
    while !offset.is_null() {
        let mut arguments = query.clone();
        arguments["offset"] = offset;
        let (page, is_error) = ask(client, who, format, TOOLS[0], arguments).await;
        assert!(!is_error, "{page}");
        for group in page["groups"].as_array().unwrap() {
            let told = group["tools"].as_array().unwrap().iter();
            lines.extend(
                told.map(|line| format!("{}/{}", group["group"].as_str().unwrap(), line.as_str().unwrap())),
            );
        }
        offset = page["next_offset"].clone();
        pages.push(page);
    }
    (lines, pages)
}

fn mail(name: &str, about: &str) -> Value {
    json!({"name": name, "description": about, "group": "mail"})
}

/// A user with three tools, of which one is core and one is kept away.
async fn desk(app: &TestApp) -> User {
    let user = app.user();
    let tools =
        [mail("read", "Reads letters."), mail("send", "Sends letters."), mail("shred", "Destroys letters.")];
    user.put_catalog(&tools).await.ok();
    let config = json!({"management_tools": true, "enabled": "on", "core": ["read"], "deny": ["shred"]});
    user.put_config(&config).await.ok();
    user
}

async fn key(app: &TestApp, role: &str, user: &User) -> (Client, String) {
    let made = make(app, role, json!({"users": [user.id], "projects": ["*"]})).await;
    (app.with_key(&made.key), made.id().to_owned())
}

#[tokio::test]
async fn arrays_end_in_the_management_tools_byte_for_byte_and_every_provider_takes_them() {
    let app = TestApp::start().await;
    let user = app.user();
    let tools = messy::catalog(4, 60);
    user.put_catalog(&tools).await.ok();
    for format in FORMATS {
        user.put_config(&json!({})).await.ok();
        let without = user.assemble(json!({"format": format, "session": format})).await.ok();
        user.put_config(&json!({"management_tools": true})).await.ok();
        let with = user.assemble(json!({"format": format, "session": format})).await.ok();
        assert_eq!(with["counts"]["bridge"], json!(5), "{format}");
        let [before, after] = [&without, &with].map(|answer| entries(&answer["tools"]));
        assert_eq!(after[..before.len()], *before, "{format}: what stood there stays");
        assert_eq!(array_names(&with)[before.len()..], TOOLS, "{format}");
        assert_eq!(with["cache"]["breakpoint"], json!(after.len() - 1), "{format}");
        // What is found comes behind them.
        let call = json!({"format": format, "session": format, "query": tools[7]["name"]});
        let found = user.search(call).await.ok();
        let again = user.assemble(json!({"format": format, "session": format})).await.ok();
        assert_eq!(entries(&again["tools"])[..after.len()], *after, "{format}: {found}");
        assert_eq!(again["cache"]["break"], json!(false), "{format}");
        let anew = user.assemble(json!({"format": format})).await;
        assert_eq!(anew.text(), user.assemble(json!({"format": format})).await.text());
    }
    for way in ways() {
        let asked = way.asked;
        let mut body = json!({"profile": asked.profile, "format": asked.format, "strict": way.strict});
        if asked.openapi {
            body["schema_dialect"] = json!("openapi");
        }
        let answer = user.assemble(body).await.ok();
        assert_eq!(faults(asked, &answer["tools"]), Vec::<String>::new(), "{way:?}");
        let names = array_names(&answer);
        assert_eq!(names[names.len() - 2..], TOOLS, "{way:?}");
    }
    for (format, exposure, bridge) in
        [("anthropic", "native", 3), ("openai_responses", "native", 3), ("openai_responses", "namespaced", 5)]
    {
        let answer = user.assemble(json!({"format": format, "exposure": exposure})).await.ok();
        assert_eq!(answer["counts"]["bridge"], json!(bridge), "{format} {exposure}");
        let management: Vec<&Value> = entries(&answer["tools"])
            .iter()
            .filter(|entry| TOOLS.contains(&definition(entry)["name"].as_str().unwrap_or_default()))
            .collect();
        assert!(management.len() == 2 && management.iter().all(|entry| entry.get("defer_loading").is_none()));
    }
}

#[tokio::test]
async fn a_small_catalog_and_an_empty_one_have_them_too() {
    let app = TestApp::start().await;
    let user = app.user();
    user.put_config(&json!({"management_tools": true, "bridge_prefix": "my_"})).await.ok();
    for (tools, core) in
        [(Vec::new(), 0), (vec![mail("read", "Reads."), mail("my_toolrack_catalog", "Poses.")], 2)]
    {
        if !tools.is_empty() {
            user.put_catalog(&tools).await.ok();
        }
        let answer = user.assemble(json!({})).await.ok();
        assert_eq!(
            (&answer["tier"], &answer["counts"]["bridge"], &answer["counts"]["core"]),
            (&json!(0), &json!(2), &json!(core))
        );
        let names = array_names(&answer);
        assert_eq!(names[names.len() - 2..], ["my_toolrack_catalog", "my_toolrack_update_config"]);
        let preview = user.post("/v1/setup/preview", json!({})).await.ok();
        let sent = answer["tokens"]["all"].as_i64().unwrap() - answer["tokens"]["saved"].as_i64().unwrap();
        assert_eq!(preview["tokens"]["assembled"], json!(sent));
        assert_eq!(preview["tokens"]["listing"]["tiers"][0]["turn"], json!(sent));
    }
    // A tool that is called like one of them has another name on the wire, and the name means ours.
    let answer = user.assemble(json!({})).await.ok();
    let posing =
        array_names(&answer).into_iter().find(|name| name.starts_with("my_toolrack_catalog_")).unwrap();
    assert_eq!(answer["name_map"][posing], "my_toolrack_catalog");
    let who = json!({"user": user.id});
    let (page, is_error) = ask(user.client(), &who, "canonical", "my_toolrack_catalog", json!({})).await;
    assert!(!is_error && page["total"] == 2, "{page}");
    let call = json!({"user": user.id, "call": {"id": "1", "name": posing, "arguments": {}}});
    let dispatched = user.client().post("/v1/bridge", &call).await.ok();
    assert_eq!(dispatched["results"][0]["calls"][0]["name"], "my_toolrack_catalog");
}

#[tokio::test]
async fn a_catalog_marks_every_tool_and_tells_an_agent_nothing_outside_its_grant() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let who = json!({"user": user.id, "session": "s"});
    user.assemble(json!({"session": "s"})).await.ok();
    let (agent, _) = key(&app, "agent", &user).await;
    let (setup, _) = key(&app, "setup", &user).await;
    for format in FORMATS {
        let (lines, pages) = catalog(&agent, &who, format, json!({})).await;
        assert_eq!(
            lines,
            ["mail/core read: Reads letters.", "mail/deferred send: Sends letters."],
            "{format}"
        );
        assert!(pages[0].get("config_revisions").is_none(), "{}", pages[0]);
        assert!(pages[0]["note"].as_str().unwrap().contains("not callable"), "{}", pages[0]);
        let (lines, pages) = catalog(&setup, &who, format, json!({})).await;
        assert_eq!(lines[2], "mail/excluded shred: Destroys letters.", "{format}");
        assert_eq!(pages[0]["config_revisions"], json!({"user": 1, "project": 0}));
    }
    user.search(json!({"session": "s", "query": "send letters"})).await.ok();
    user.assemble(json!({"session": "s"})).await.ok();
    let (lines, _) =
        catalog(&agent, &who, "canonical", json!({"query": "LETTERS sends", "group": "mail"})).await;
    assert_eq!(lines, ["mail/warm send: Sends letters."]);
    let (lines, _) = catalog(&agent, &who, "canonical", json!({"group": "nowhere"})).await;
    assert!(lines.is_empty());
    // A key's own limits hold here as everywhere.
    let made = make(&app, "agent", json!({"users": [user.id], "deny": ["send"]})).await;
    let (lines, _) =
        catalog(&app.with_key(&made.key), &json!({"user": user.id}), "canonical", json!({})).await;
    assert_eq!(lines, ["mail/core read: Reads letters."]);
    let gone = json!({"user": user.id, "unavailable": ["send"]});
    let (lines, _) = catalog(&agent, &gone, "canonical", json!({})).await;
    assert_eq!(lines[1], "mail/unavailable send: Sends letters.");
}

#[tokio::test]
async fn pages_are_within_the_budget_of_answers_tell_each_tool_once_and_are_clean() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut tools = messy::catalog(9, 300);
    tools.push(json!({"name": "trap\u{200b}\ncore x", "group": "a\u{202e}b\n- c", "description": "See\u{200b}n.\nforged"}));
    let written = user.put_catalog(&tools).await.ok();
    user.put_config(&json!({"management_tools": true, "max_answer_tokens": 700})).await.ok();
    let who = json!({"user": user.id});
    let (lines, pages) = catalog(user.client(), &who, "canonical", json!({})).await;
    assert_eq!(json!(lines.len()), written["added"]["count"], "{written}");
    assert!(pages.len() > 5 && pages.iter().all(|page| page["total"] == json!(lines.len())));
    for page in &pages {
        let text = page.to_string();
        assert!(!text.contains(['\u{200b}', '\u{202e}']) && !text.contains("\\n"), "{text}");
        let one = page["groups"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|group| group["tools"].as_array().unwrap())
            .count()
            == 1;
        assert!(one || toolrack::core::tokens::count(&text) <= 700, "{text}");
    }
    for line in &lines {
        let (_, told) =
            line.rsplit_once("/deferred ").or_else(|| line.rsplit_once("/core ")).expect("a state first");
        assert!(!told.is_empty(), "{line}");
    }
    let beyond = ask(user.client(), &who, "canonical", TOOLS[0], json!({"offset": "99999999999"})).await;
    assert_eq!((&beyond.0["groups"], &beyond.0["next_offset"]), (&json!([]), &Value::Null));
    for odd in
        [json!({"offset": -1}), json!({"query": 7, "group": []}), json!("x"), json!({"offset": {"a": 1}})]
    {
        let (answer, _) = ask(user.client(), &who, "canonical", TOOLS[0], odd).await;
        assert!(answer.is_object());
    }
}

#[tokio::test]
async fn a_setup_key_writes_what_a_patch_would_and_the_log_names_it() {
    let app = TestApp::start().await;
    let (user, like) = (desk(&app).await, desk(&app).await);
    let (setup, id) = key(&app, "setup", &user).await;
    let who = json!({"user": user.id, "project": "apollo"});
    app.admin().put("/v1/projects/apollo/config", &json!({"management_tools": true})).await.ok();
    let patch = json!({"core": ["send"], "deny": null, "max_warm_tools": 900, "groups": [{"name": "post", "tools": ["read"]}]});
    for format in ["openai_chat", "gemini"] {
        let dry = json!({"patch": patch, "scope": "user", "dry_run": true});
        let (asked, is_error) = ask(&setup, &who, format, TOOLS[1], dry).await;
        assert!(
            !is_error && asked["dry_run"] == true && asked["changes"]["removed"] == json!(["deny"]),
            "{asked}"
        );
        assert_eq!(asked["changes"]["changed"][0], json!({"key": "core", "from": ["read"], "to": ["send"]}));
        assert_eq!(asked["warnings"][0]["code"], "clamped");
        assert_eq!(asked["config"]["max_warm_tools"], 64);
    }
    assert_eq!(
        user.client().get(&user.path(&["config"])).await.ok()["core"],
        json!(["read"]),
        "asking writes nothing"
    );
    // Somebody else was faster.
    let late = json!({"patch": patch, "scope": "user", "if_revision": 0});
    let (refused, is_error) = ask(&setup, &who, "canonical", TOOLS[1], late).await;
    assert!(is_error && refused["error"]["code"] == "changed_meanwhile", "{refused}");
    let now = json!({"patch": patch.to_string(), "scope": "user", "if_revision": "1"});
    let (written, is_error) = ask(&setup, &who, "anthropic", TOOLS[1], now).await;
    assert!(!is_error && written["revision"] == 2 && written["dry_run"] == false, "{written}");
    let patched = like.client().patch(&like.path(&["config"]), &patch).await.ok();
    let stored = user.client().get(&user.path(&["config"])).await.ok();
    assert_eq!(stored, patched["config"]);

    let shared = json!({"patch": {"core": ["@post"]}, "scope": "project"});
    let (written, _) = ask(&setup, &who, "bedrock_converse", TOOLS[1], shared).await;
    assert_eq!(written["scope"], json!({"project": "apollo"}));
    let log = app.admin().get(&format!("/v1/audit?user={}", user.id)).await.ok();
    let last = &log["entries"][0];
    assert_eq!(
        (&last["action"], &last["actor"], &last["after"]),
        (&json!("config.patch"), &json!(id), &json!("2"))
    );
}

#[tokio::test]
async fn a_change_that_leaves_no_tool_or_means_nothing_is_told_to_the_model() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let (setup, _) = key(&app, "setup", &user).await;
    let who = json!({"user": user.id});
    for (patch, code) in [
        (json!({"deny": ["*"]}), "empty_grant"),
        (json!({"core": ["nosuch"]}), "core_not_found"),
        (json!({"default_toolsets": ["zzz"]}), "unknown_toolset"),
    ] {
        let dry = json!({"patch": patch, "scope": "user", "dry_run": true});
        let (asked, is_error) = ask(&setup, &who, "openai_chat", TOOLS[1], dry).await;
        let warnings = asked["warnings"].as_array().cloned().unwrap_or_default();
        assert!(!is_error && warnings.iter().any(|warning| warning["code"] == code), "{patch}: {asked}");
    }
}

#[tokio::test]
async fn an_agents_key_reads_and_does_not_write() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let (agent, _) = key(&app, "agent", &user).await;
    let before = user.client().get(&user.path(&["config"])).await.ok();
    let calls = json!([
        model_call("openai_chat", "1", TOOLS[1], &json!({"patch": {"deny": []}, "scope": "user"})),
        model_call("openai_chat", "2", TOOLS[1], &json!({"patch": {}, "scope": "user", "dry_run": true})),
        model_call("openai_chat", "3", "tool_call", &json!({"name": TOOLS[1], "arguments": {"patch": {}}})),
        model_call("openai_chat", "4", "tool_search", &json!({"query": "send letters"})),
    ]);
    let answer = agent
        .post("/v1/bridge", &json!({"user": user.id, "format": "openai_chat", "calls": calls}))
        .await
        .ok();
    let content = |at: usize| {
        serde_json::from_str::<Value>(answer["results"][at]["content"].as_str().unwrap()).unwrap()
    };
    for at in [0, 1] {
        assert_eq!(answer["results"][at]["is_error"], true);
        assert_eq!(content(at)["error"]["code"], "forbidden");
        assert!(content(at)["error"]["message"].as_str().unwrap().contains("role `setup`"));
    }
    assert_eq!(content(2)["error"]["code"], "bridge_tool", "{answer}");
    assert!(content(3).to_string().contains("send"), "the other calls go on");
    assert_eq!(user.client().get(&user.path(&["config"])).await.ok(), before);
    let called = agent.post("/v1/call", &json!({"user": user.id, "name": TOOLS[1]})).await.ok();
    assert_eq!(called["results"][0]["error"]["code"], "bridge_tool");
    let described = agent.post("/v1/describe", &json!({"user": user.id, "name": TOOLS[0]})).await.ok();
    assert_eq!(described["not_found"][0]["code"], "bridge_tool");
}

#[tokio::test]
async fn a_setup_key_is_answered_nothing_else_over_the_bridge() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let (setup, _) = key(&app, "setup", &user).await;
    let who = json!({"user": user.id, "session": "s"});
    for name in ["tool_search", "tool_call", "read", "nobodys_tool"] {
        let (refused, is_error) =
            ask(&setup, &who, "canonical", name, json!({"query": "send", "name": "send"})).await;
        assert!(is_error && refused["error"]["code"] == "forbidden", "{name}: {refused}");
    }
    ask(&setup, &who, "canonical", TOOLS[0], json!({})).await;
    let sessions = user.client().get(&user.path(&["sessions"])).await.ok();
    assert_eq!(sessions["sessions"], json!([]), "it leaves no session behind");
    let foreign = json!({"user": "nobody-of-theirs", "call": {"id": "1", "name": TOOLS[0], "arguments": {}}});
    setup.post("/v1/bridge", &foreign).await.problem(404, "not_found");
    // Switched off, the names mean nothing, whoever asks.
    user.put_config(&json!({})).await.ok();
    let (refused, is_error) = ask(&setup, &who, "canonical", TOOLS[0], json!({})).await;
    assert!(
        is_error && refused["error"]["message"].as_str().unwrap().contains("management_tools"),
        "{refused}"
    );
    let call = json!({"user": user.id, "call": {"id": "1", "name": TOOLS[0], "arguments": {}}});
    let answer = user.client().post("/v1/bridge", &call).await.ok();
    assert_eq!(answer["results"][0]["action"], "dispatch", "an agent may have tools of these names");
}

#[tokio::test]
async fn what_must_not_or_cannot_be_written_is_told_to_the_model() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let (setup, _) = key(&app, "setup", &user).await;
    let (who, secret) = (json!({"user": user.id}), "sk-said-in-a-conversation-77");
    let before = user.client().get(&user.path(&["config"])).await.ok();
    let endpoint = "https://rank.example/rerank";
    for (arguments, code) in [
        (
            json!({"patch": {"matcher": {"endpoint": endpoint, "api_key": secret}}, "scope": "user"}),
            "secret_in_conversation",
        ),
        (
            json!({"patch": {"matcher": {"endpoint": endpoint, "extra_headers": {"x-key": secret}}}, "scope": "user"}),
            "secret_in_conversation",
        ),
        (json!({"patch": {"core": 7, "nothing": 1}, "scope": "user"}), "invalid_config"),
        (json!({"patch": {"usage_prior": {"enabled": true}}, "scope": "user"}), "unsupported"),
        (json!({"core": ["send"], "scope": "user"}), "missing_patch"),
        (json!({"patch": ["core"], "scope": "user"}), "missing_patch"),
        (json!({"patch": {"core": []}, "scope": "project"}), "no_project"),
        (json!({"patch": {"core": []}, "scope": "everybody"}), "missing_scope"),
        (json!({"patch": {"core": []}, "scope": "user", "if_revision": "latest"}), "invalid_value"),
        (
            json!({"patch": {"matcher": {"endpoint": "http://127.0.0.1:1/rerank"}}, "scope": "user"}),
            "invalid_config",
        ),
    ] {
        let (refused, is_error) = ask(&setup, &who, "canonical", TOOLS[1], arguments.clone()).await;
        assert!(is_error && refused["error"]["code"] == code, "{arguments}: {refused}");
        assert!(!refused.to_string().contains(secret), "{refused}");
    }
    let (refused, _) = ask(
        &setup,
        &who,
        "canonical",
        TOOLS[1],
        json!({"patch": {"core": 7, "nothing": 1}, "scope": "user"}),
    )
    .await;
    assert_eq!(
        refused["error"]["errors"].as_array().unwrap().len(),
        2,
        "all faults with their places: {refused}"
    );
    assert_eq!(user.client().get(&user.path(&["config"])).await.ok(), before);
    assert!(!app.logs().contains(secret));

    // A gate that only an administrator opens stays shut.
    user.client().patch(&user.path(&["config"]), &json!({"require_review_on_change": true})).await.ok();
    let open = json!({"patch": {"require_review_on_change": null}, "scope": "user"});
    let (refused, is_error) = ask(&setup, &who, "canonical", TOOLS[1], open).await;
    assert!(is_error && refused["error"]["code"] == "forbidden", "{refused}");

    // A stored key stays where it is, and what is long is told by name.
    let keyed = json!({"matcher": {"endpoint": endpoint, "api_key": secret}, "max_answer_tokens": 400});
    user.client().patch(&user.path(&["config"]), &keyed).await.ok();
    let many: Vec<String> = (0..2_000).map(|at| format!("tool_{at}")).collect();
    let long = json!({"patch": {"core": many, "matcher": {"model": "m"}}, "scope": "user", "dry_run": "yes"});
    let (asked, is_error) = ask(&setup, &who, "canonical", TOOLS[1], long).await;
    assert!(!is_error && asked["dry_run"] == true, "{asked}");
    assert_eq!(asked["left_out"], json!(["config", "values of changes"]));
    assert_eq!(asked["changes"]["changed"], json!(["core", "matcher"]));
    assert!(!asked.to_string().contains(secret));
}
