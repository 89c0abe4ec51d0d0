//! Importing what other programs keep: nothing is stored, and what is answered can be written as it is.

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, TestApp, User};
use crate::pages::{Browser, of};

const ROUTE: &str = "/v1/setup/import";

/// As people have it.
const DSH: &str = r#"{
  "version": 1,
  "groups": [
    { "name": "git", "tools": ["git_status", "git_diff"], "prefixes": [] },
    { "name": "mcp-github", "tools": [], "prefixes": ["mcp_github_"] }
  ],
  "matcher": { "endpoint": "https://dashscope.aliyuncs.com/compatible-mode/v1/rerank", "apiKey": "sk-import-canary-5513", "model": "qwen3-reranker", "topN": 20 },
  "preload": { "enabled": false, "topK": 5 },
  "core": ["read_file", "write_file"]
}"#;

const STATIC: &str =
    "enabled: true\nthresholdPct: 8\nconfigScope: user\nmaxWarmTools: 12\nmatcherTimeoutMs: 2500\n";

async fn import(user: &User, body: Value) -> Value {
    user.post(ROUTE, body).await.ok()
}

fn codes(answer: &Value) -> Vec<&str> {
    answer["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_file_and_its_static_part_become_the_config_that_they_say() {
    let app = TestApp::start().await;
    let user = app.user();
    let read = user.post(ROUTE, json!({"texts": [DSH, STATIC]})).await;
    assert!(!read.text().contains("canary"), "{}", read.text());
    let answer = read.ok();
    assert_eq!((&answer["kind"], &answer["tools"]), (&json!("dsh"), &json!([])));
    assert_eq!(codes(&answer), ["no_counterpart", "secret_left_out"]);
    assert_eq!(answer["warnings"][1]["pointer"], "/texts/0/matcher/apiKey");
    let stored = user.client().get(&user.path(&["config"])).await.ok();
    assert_eq!(stored, json!({}), "nothing is stored");

    let written = user.client().patch(&user.path(&["config"]), &answer["config"]).await.ok();
    assert_eq!(written["warnings"], json!([]));
    let effective = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await.ok();
    let value = |key: &str| &effective["config"][key]["value"];
    for (key, expected) in [
        ("enabled", json!("on")),
        ("threshold_pct", json!(8)),
        ("max_warm_tools", json!(12)),
        ("core", json!(["read_file", "write_file"])),
        ("preload", json!({"enabled": false, "top_k": 5})),
        (
            "groups",
            json!([{"name": "git", "tools": ["git_status", "git_diff"]}, {"name": "mcp-github", "prefixes": ["mcp_github_"]}]),
        ),
    ] {
        assert_eq!(*value(key), expected, "{key}");
    }
    let matcher = value("matcher");
    assert_eq!(
        (&matcher["endpoint"], &matcher["model"], &matcher["top_n"], &matcher["timeout_ms"]),
        (
            &json!("https://dashscope.aliyuncs.com/compatible-mode/v1/rerank"),
            &json!("qwen3-reranker"),
            &json!(20),
            &json!(2500)
        )
    );

    // The key is sent with the config, as the warning says.
    let mut matcher = answer["config"]["matcher"].clone();
    matcher["api_key"] = json!("sk-import-canary-5513");
    let keyed = user.client().patch(&user.path(&["config"]), &json!({ "matcher": matcher })).await.ok();
    assert_eq!(keyed["config"]["matcher"]["api_key"]["set"], true);
    assert!(!app.logs().contains("canary"));
}

#[tokio::test]
async fn tools_come_back_ready_to_be_stored() {
    let app = TestApp::start().await;
    let user = app.user();
    let lists = json!({
        "mail": [{"name": "send", "description": "Sends a mail.", "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}}],
        "git": {"tools": [
            {"type": "function", "function": {"name": "status", "description": "Shows what changed."}},
            {"name": "broken", "inputSchema": []},
            {"name": "send", "description": "Sends a patch."},
        ]},
    });
    let answer = import(&user, json!({"document": lists, "as": "auto"})).await;
    assert_eq!(answer["kind"], "tools");
    assert_eq!(
        answer["groups"],
        json!([{"name": "git", "tools": ["send", "status"]}, {"name": "mail", "tools": ["send"]}])
    );
    let quarantined = &answer["quarantined"];
    assert_eq!(
        (&quarantined[0]["pointer"], &quarantined[0]["reason"], &quarantined[0]["name"]),
        (&json!("/document/git/tools/1/inputSchema"), &json!("bad_schema"), &json!("broken"))
    );
    assert_eq!(quarantined.as_array().unwrap().len(), 1);
    let put = user.client().put(&user.path(&["catalog"]), &json!({"tools": answer["tools"]})).await.ok();
    assert_eq!(put["added"]["names"], json!(["git__send", "mail__send", "status"]));

    let lines =
        "{\"name\":\"a\",\"description\":\"Does a.\"}\n{\"name\":\"b\",\"description\":\"Does b.\"}\n";
    let answer = import(&user, json!({"texts": [lines], "group": "lines"})).await;
    assert_eq!(answer["groups"], json!([{"name": "lines", "tools": ["a", "b"]}]));
    // A tool with a fault of its text costs only itself.
    let twice = r#"[{"name":"a","description":"x"},{"name":"b","name":"c"}]"#;
    let answer = import(&user, json!({"texts": [twice]})).await;
    assert_eq!(answer["tools"].as_array().unwrap().len(), 1);
    assert_eq!(answer["quarantined"][0]["reason"], "duplicate_key");
    assert_eq!(answer["quarantined"][0]["pointer"], "/texts/0/1/name");
}

#[tokio::test]
async fn servers_are_named_without_their_secrets() {
    let app = TestApp::start().await;
    let user = app.user();
    let file = r#"{
        // As VS Code keeps it.
        "inputs": [{"id": "token", "type": "promptString", "description": "Token of GitHub", "password": true}],
        "servers": {
            "github": {"type": "http", "url": "https://u:canary@api.example/mcp?key=canary", "headers": {"Authorization": "Bearer ${input:token}"}, "alwaysLoad": true},
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "canary"}},
        },
    }"#;
    let read = user.post(ROUTE, json!({"texts": [file]})).await;
    assert!(!read.text().contains("canary"), "{}", read.text());
    let answer = read.ok();
    assert_eq!(
        answer["servers"],
        json!([
            {"name": "github", "transport": "http", "url": "https://api.example/mcp",
             "url_left_out": ["user", "query"], "headers": ["Authorization"],
             "always_load": true, "placeholders": ["${input:token}"]},
            {"name": "files", "transport": "stdio", "command": "npx", "args": ["-y", "files"], "env": ["TOKEN"], "always_load": false},
        ])
    );
    assert_eq!((&answer["kind"], &answer["config"]), (&json!("mcp"), &json!({"core": ["@github"]})));
    assert_eq!(codes(&answer), ["placeholder_kept", "secret_left_out", "secret_left_out"]);
    assert!(answer["warnings"][0]["detail"].as_str().unwrap().contains("Token of GitHub"));
    let left_out = answer["warnings"][1]["detail"].as_str().unwrap();
    assert!(left_out.contains("the query of `url`") && left_out.contains("user and password"), "{left_out}");

    // Somebody with nothing but a query learns that it is gone: in the list, and where the server is set up.
    let file = r#"{"mcpServers": {"maps": {"url": "https://maps.example/mcp?token=canary"}}}"#;
    let only = import(&user, json!({"texts": [file]})).await;
    assert_eq!(codes(&only), ["secret_left_out"]);
    let browser = Browser::sign_in(&app, ADMIN_KEY).await;
    let page = of(&user, "setup/import");
    browser.submit(&page, &[("do", "text"), ("text", file)]).await;
    let list = browser.page(&page).await;
    assert!(
        list.contains("type them again") && list.contains("name=\"left_out\"") && !list.contains("canary"),
        "{list}"
    );
    let form = of(&user, "setup/servers?name=maps&url=https://maps.example/mcp&left_out=1");
    assert!(browser.page(&form).await.contains("type them again"));
    assert!(!app.logs().contains("canary"));
}

#[tokio::test]
async fn secrets_among_arguments_are_not_given_back() {
    let app = TestApp::start().await;
    let user = app.user();
    let file = json!({"mcpServers": {
        "remote": {"command": "npx", "args": ["-y", "mcp-remote", "https://h.example/mcp", "--header", "Authorization: Bearer canary"]},
        "search": {"command": "npx", "args": ["-y", "search", "--api-key", "canary", "--token=canary", "--port", "1"]},
        "plain": {"command": "npx", "args": ["-y", "plain", "--token", "${TOKEN}"]},
    }});
    let file = file.to_string();
    let read = user.post(ROUTE, json!({"texts": [file]})).await;
    assert!(!read.text().contains("canary"), "{}", read.text());
    let answer = read.ok();
    assert_eq!(
        answer["servers"][0]["args"],
        json!(["-y", "mcp-remote", "https://h.example/mcp", "--header", "Authorization: ***"])
    );
    assert_eq!(
        answer["servers"][1]["args"],
        json!(["-y", "search", "--api-key", "***", "--token=***", "--port", "1"])
    );
    assert_eq!(answer["servers"][2]["args"], json!(["-y", "plain", "--token", "${TOKEN}"]));
    let left_out: Vec<&str> = answer["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|warning| warning["code"] == "secret_left_out")
        .map(|warning| warning["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(left_out, ["/texts/0/mcpServers/remote", "/texts/0/mcpServers/search"]);

    let browser = Browser::sign_in(&app, ADMIN_KEY).await;
    let page = of(&user, "setup/import");
    let read = browser.submit(&page, &[("do", "text"), ("text", &file)]).await;
    assert!(read.text().contains("mcp-remote") && !read.text().contains("canary"), "{}", read.text());
    assert!(!browser.page(&page).await.contains("canary") && !app.logs().contains("canary"));
}

#[tokio::test]
async fn what_holds_nothing_says_so() {
    let app = TestApp::start().await;
    let user = app.user();
    for (body, others) in [
        (json!({"texts": ["[]"]}), 0),
        (json!({"document": {"tools": []}}), 0),
        (json!({"texts": [r#"{"groups": [{"name": "*"}], "core": [""]}"#]}), 1),
        (json!({"document": {"mcpServers": {"off": {"command": "x", "disabled": true}}}}), 1),
        (json!({"texts": [r#"[{"description": "no name"}]"#]}), 0),
    ] {
        let answer = import(&user, body.clone()).await;
        assert_eq!(codes(&answer)[0], "nothing_imported", "{body}: {answer}");
        assert_eq!(codes(&answer).len(), 1 + others, "{body}: {answer}");
    }
}

#[tokio::test]
async fn toolsets_and_core_marks_beside_tools_are_read() {
    let app = TestApp::start().await;
    let user = app.user();
    let file = json!({
        "tools": [
            {"name": "search", "description": "Searches.", "toolset": "web", "core": true},
            {"type": "function", "function": {"name": "pull", "description": "Pulls."}, "toolset": "mcp-github"},
            {"name": "own", "description": "Own.", "toolset": "web", "group": "mine", "core": "perhaps"},
        ],
        "core": ["pull"],
        "enabled_toolsets": ["web"],
    });
    let answer = import(&user, json!({ "document": file })).await;
    assert_eq!(
        answer["groups"],
        json!([{"name": "github", "tools": ["pull"]}, {"name": "mine", "tools": ["own"]}, {"name": "web", "tools": ["search"]}])
    );
    assert_eq!(answer["config"], json!({"core": ["pull", "search"]}));
    assert_eq!(codes(&answer), ["no_counterpart", "unusable_import_value"], "{answer}");
    assert!(!answer["tools"].to_string().contains("toolset"), "no provider is sent it: {answer}");
}

#[tokio::test]
async fn hermes_is_read_from_its_own_file() {
    let app = TestApp::start().await;
    let user = app.user();
    let file = "model:\n  default: x\ntools:\n  tool_search:\n    enabled: auto\n    threshold_pct: 150\n    defer: []\n";
    let answer = import(&user, json!({"texts": [file]})).await;
    assert_eq!(
        (&answer["kind"], &answer["config"]),
        (&json!("hermes"), &json!({"enabled": "auto", "threshold_pct": 100}))
    );
    let mut told = codes(&answer);
    told.sort_unstable();
    assert_eq!(told, ["clamped", "no_counterpart", "unknown_import_key"]);
    let answer = import(&user, json!({"document": false, "as": "hermes"})).await;
    assert_eq!(answer["config"], json!({"enabled": "off"}));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_at_its_place() {
    let app = TestApp::start().await;
    let user = app.user();
    let refused = |body: Value| {
        let user = &user;
        async move {
            let problem = user.post(ROUTE, body).await.problem(422, "invalid_request");
            let fault = &problem["errors"][0];
            let text = |key: &str| fault[key].as_str().unwrap().to_owned();
            (text("pointer"), text("code"), text("detail"))
        }
    };
    let (pointer, code, detail) = refused(json!({"texts": ["[]", "{\n  \"core\": [\n}"]})).await;
    assert_eq!((&*pointer, &*code), ("/texts/1", "not_understood"));
    assert!(detail.contains("JSON at line 3 column 1"), "{detail}");
    let (.., detail) = refused(json!({"texts": ["core:\n  - a\n - b\n"]})).await;
    assert!(detail.contains("YAML at line 3 column"), "{detail}");
    let (.., code, detail) = refused(json!({"document": {"openapi": "3.1.0"}})).await;
    assert_eq!(code, "unknown_import");
    assert!(detail.contains("mcp.json"), "{detail}");
    for (body, at, fault) in [
        (json!({}), "/texts", "missing_key"),
        (json!({"texts": []}), "/texts", "missing_key"),
        (json!({"texts": vec!["[]"; 51]}), "/texts", "too_many"),
        (json!({"texts": ["[]"], "document": []}), "/document", "invalid_value"),
        (json!({"texts": ["[]"], "group": " "}), "/group", "invalid_value"),
    ] {
        let (pointer, code, _) = refused(body.clone()).await;
        assert_eq!((&*pointer, &*code), (at, fault), "{body}");
    }
    user.post(ROUTE, json!({"texts": ["[]"], "as": "xml"})).await.problem(422, "invalid_request");
    user.post(ROUTE, json!({"texts": ["[]"], "colour": 1})).await.problem(422, "invalid_request");
}

#[tokio::test]
async fn only_keys_that_cover_the_scope_import() {
    let app = TestApp::start().await;
    let key = |role: &'static str| {
        let app = &app;
        async move {
            let body = json!({"name": role, "role": role, "users": ["mine"]});
            let made = app.admin().post("/v1/keys", &body).await;
            made.json()["key"].as_str().unwrap().to_owned()
        }
    };
    let body = |user: &str| json!({"user": user, "texts": ["core: [a]"]});
    let setup = app.with_key(&key("setup").await);
    setup.post(ROUTE, &body("mine")).await.ok();
    setup.post(ROUTE, &body("other")).await.problem(404, "not_found");
    app.with_key(&key("agent").await).post(ROUTE, &body("mine")).await.problem(403, "forbidden");
}
