//! The setup flow as a browser walks it, from an empty scope to an applied setup, and what stands in its way.

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, TestApp};
use crate::pages::{Browser, HOSTILE, key, of};
use crate::setup_many::made_for;

const SECRET: &str = "sk-a-secret-that-nobody-reads-back";

fn mail(name: &str, about: &str) -> Value {
    json!({"name": name, "description": about, "group": "mail", "parameters": {"type": "object"}})
}

fn list() -> String {
    json!({"tools": [
        mail("send_mail", "Sends a message to somebody."),
        mail("read_mail", "Reads the messages of a folder."),
        mail("odd", HOSTILE),
    ]})
    .to_string()
}

#[tokio::test]
async fn nothing_is_written_before_it_is_applied_and_then_all_of_it() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let to = |page: &str| of(&user, page);
    let read = browser.submit(&to("setup/import"), &[("do", "text"), ("text", &list())]).await;
    assert_eq!(read.header("location"), Some(to("setup/review").as_str()), "{read:?}");
    let review = browser.page(&to("setup/review")).await;
    assert!(review.contains("send_mail") && !review.contains("<img"), "{review}");
    browser.submit(&to("setup/review"), &[("do", "exclude"), ("tool", "odd")]).await.expect_status(303);
    let alias = [("do", "alias"), ("alias", "write a letter"), ("tool", "send_mail")];
    browser.submit(&to("setup/review"), &alias).await.expect_status(303);
    let core = [("do", "core"), ("more", "read_mail")];
    browser.submit(&to("setup/groups"), &core).await.expect_status(303);
    let unnamed = [("do", "edit"), ("group", "mail"), ("name", " "), ("description", "Post")];
    let refused = browser.submit(&to("setup/groups"), &unnamed).await;
    let refused = browser.page(refused.header("location").unwrap().split('#').next().unwrap()).await;
    assert!(refused.contains("a group needs a name") && refused.contains("Yes, throw it away"), "{refused}");
    let named = [("do", "edit"), ("group", "mail"), ("name", "letters"), ("description", "Post")];
    browser.submit(&to("setup/groups"), &named).await.expect_status(303);
    assert!(browser.page(&to("setup/groups")).await.contains("letters"));
    let matcher = [("do", "on"), ("endpoint", "https://rank.example/rerank"), ("api_key", SECRET)];
    browser.submit(&to("setup/matcher"), &matcher).await.expect_status(303);
    let scope = [("warm_policy", "epoch"), ("max_warm_tools", "5"), ("keep_missed_queries", "on")];
    browser.submit(&to("setup/scope"), &scope).await.expect_status(303);

    let client = user.client();
    assert_eq!(client.get(&user.path(&["config"])).await.json(), json!({}), "a draft is not in force");
    assert_eq!(client.get(&user.path(&["catalog"])).await.json()["tools"], json!([]));
    let shown = browser.page(&to("setup/apply")).await;
    assert!(shown.contains("letters") && !shown.contains(SECRET), "{shown}");
    browser.submit(&to("setup/apply"), &[]).await.expect_status(303);

    let config = client.get(&user.path(&["config"])).await.json();
    let expected = json!({
        "core": ["read_mail"], "deny": ["odd"], "aliases": {"send_mail": ["write a letter"]},
        "max_warm_tools": 5, "warm_policy": "epoch", "keep_missed_queries": true,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&config[key], value, "{config}");
    }
    assert_eq!(config["groups"][0]["name"], "letters");
    // What is left out is in no group of what agents see.
    assert_eq!(config["groups"][0]["tools"], json!(["read_mail", "send_mail"]), "{config}");
    assert_eq!(config["matcher"]["api_key"]["set"], true, "{config}");
    let tools = client.get(&user.path(&["catalog"])).await.json();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 3);
    // The draft is used up.
    assert!(browser.page(&to("setup/apply")).await.contains("Nothing to apply."));
}

#[tokio::test]
async fn a_draft_that_waits_is_told_of_where_one_comes_by() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let to = |page: &str| of(&user, page);
    browser.submit(&to("setup/import"), &[("do", "text"), ("text", &list())]).await.expect_status(303);
    for page in [to("overview"), "/ui/scopes".to_owned()] {
        let shown = browser.page(&page).await;
        assert!(
            shown.contains("A draft with 3 tools waits:") && shown.contains(&to("setup/review")),
            "{shown}"
        );
    }
    browser.submit(&to("setup/discard"), &[]).await.expect_status(303);
    assert!(!browser.page("/ui/scopes").await.contains("A draft"));
}

#[tokio::test]
async fn names_that_were_typed_with_commas_are_several_and_those_without_a_tool_are_marked() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let to = |page: &str| of(&user, page);
    let odd = mail("a, b", "Has a comma in its name.");
    let list = json!({"tools": [mail("send_mail", "Sends."), mail("read_mail", "Reads."), odd]}).to_string();
    browser.submit(&to("setup/import"), &[("do", "text"), ("text", &list)]).await.expect_status(303);
    for more in ["send_mail, read_mail、nosuch", "a, b"] {
        browser.submit(&to("setup/groups"), &[("do", "core"), ("more", more)]).await.expect_status(303);
    }
    let alias = [("do", "alias"), ("alias", "PR, 合并请求"), ("tool", "send_mail")];
    browser.submit(&to("setup/review"), &alias).await.expect_status(303);
    let groups = browser.page(&to("setup/groups")).await;
    let (fold, field) =
        (groups.find("<details class=\"notice warn\" open"), groups.find("These mean no tool"));
    assert!(fold.is_some() && field.is_some() && groups.contains("no such tool"), "{groups}");
    browser.submit(&to("setup/apply"), &[]).await.expect_status(303);
    let config = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(config["core"], json!(["send_mail", "read_mail", "nosuch", "a, b"]));
    assert_eq!(config["aliases"]["send_mail"], json!(["PR", "合并请求"]));
}

#[tokio::test]
async fn a_draft_outlives_a_kill_and_its_key_is_sealed() {
    let mut app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let matcher = [("do", "on"), ("endpoint", "https://rank.example/rerank"), ("api_key", SECRET)];
    browser.submit(&of(&user, "setup/matcher"), &matcher).await.expect_status(303);
    app.kill();
    for entry in std::fs::read_dir(app.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    }
    app.start_again().await;
    let browser = Browser::sign_in(&app, ADMIN_KEY).await;
    let page = browser.page(&of(&user, "setup/matcher")).await;
    assert!(
        page.contains("https://rank.example/rerank") && page.contains("One is kept in this draft"),
        "{page}"
    );
    assert!(!page.contains(SECRET));
}

#[tokio::test]
async fn a_draft_begins_its_scope() {
    let app = TestApp::builder().set("TOOLRACK_LIMITS_SCOPES_PER_KEY", 2).start().await;
    let setup = Browser::sign_in(&app, &key(&app, "setup", &["team-*"], &[]).await).await;
    let save = async |user: &str| {
        let page = format!("/ui/users/{user}/setup/scope");
        setup.submit(&page, &[("max_warm_tools", "5")]).await.status
    };
    assert_eq!((save("team-a").await, save("team-b").await, save("team-c").await), (303, 303, 422));
    // Going on with it, and writing it, begins nothing more.
    assert_eq!(save("team-a").await, 303);
    setup.submit("/ui/users/team-a/setup/apply", &[]).await.expect_status(303);
    let config = app.admin().get("/v1/users/team-a/config").await.ok();
    assert_eq!(config, json!({"max_warm_tools": 5}));
}

#[tokio::test]
async fn who_applies_second_sees_both_and_overwrites_nothing() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    user.put_config(&json!({"max_warm_tools": 3})).await.ok();
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "5")]).await.expect_status(303);
    user.put_config(&json!({"max_warm_tools": 4, "threshold_pct": 7.5})).await.ok();
    for _ in 0..2 {
        let conflict = browser.page(&of(&user, "setup/apply")).await;
        assert!(conflict.contains("Edit conflict") && conflict.contains("threshold_pct"), "{conflict}");
        browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(200);
    }
    let stored = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(stored, json!({"max_warm_tools": 4, "threshold_pct": 7.5}), "nothing was overwritten");
    // What only they changed is taken; of what both changed, the draft's holds.
    browser.submit(&of(&user, "setup/rebase"), &[]).await.expect_status(303);
    browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
    let stored = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(stored, json!({"max_warm_tools": 5, "threshold_pct": 7.5}));
    // And back again.
    let versions = browser.page(&of(&user, "setup/versions")).await;
    assert!(versions.contains("Put version 1 back"), "{versions}");
    let back = [("revision", "1"), ("expected", "3")];
    browser.submit(&of(&user, "setup/versions"), &back).await.expect_status(303);
    assert_eq!(user.client().get(&user.path(&["config"])).await.json(), json!({"max_warm_tools": 3}));
}

#[tokio::test]
async fn what_cannot_be_read_or_stored_is_told_where_it_was_typed() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    for text in ["", "neither: [json", "{\"a\": 1}"] {
        let answer = browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", text)]).await;
        answer.expect_status(200);
        assert!(answer.text().contains("Not read:"), "{text}: {}", answer.text());
    }
    let private = [("do", "mcp"), ("name", "local"), ("url", "http://127.0.0.1:1/mcp")];
    let answer = browser.submit(&of(&user, "setup/import"), &private).await;
    assert!(answer.text().contains("Not asked:") || answer.text().contains("refused_address"), "{answer:?}");
    let dead = [("do", "test"), ("endpoint", "https://rank.invalid/rerank")];
    let answer = browser.submit(&of(&user, "setup/matcher"), &dead).await;
    answer.expect_status(200);
    assert!(answer.text().contains("unreachable"), "{}", answer.text());
    let many = browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "many")]).await;
    many.expect_status(422);
    let text = many.text();
    assert!(text.contains("Not kept:") && text.contains("<b>Warm tools at most</b>"), "{text}");
    assert!(text.contains("value=\"many\""), "{text}");
}

#[tokio::test]
async fn a_form_of_nobody_else_is_taken() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    for page in [
        "setup/import",
        "setup/review",
        "setup/groups",
        "setup/matcher",
        "setup/scope",
        "setup/apply",
        "setup/rebase",
        "setup/versions",
        "setup/servers",
        "setup/discard",
    ] {
        browser.send(&of(&user, page), &[("do", "on")]).await.expect_status(403);
    }
}

#[tokio::test]
async fn a_server_is_told_by_its_address_or_by_a_command_that_is_allowed() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/servers");
    let fields =
        [("do", "save"), ("name", "files"), ("url", "npx -y @scope/files /srv"), ("header_value", "")];
    let refused = browser.submit(&page, &fields).await;
    refused.expect_status(422);
    assert!(refused.text().contains("this service runs no commands"), "{refused:?}");
    let imported =
        json!({"mcpServers": {"files": {"command": "npx", "args": ["-y", "@scope/files"]}}}).to_string();
    browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &imported)]).await;
    let shown = browser.page(&of(&user, "setup/import")).await;
    assert!(shown.contains("value=\"npx -y @scope/files\""), "{shown}");
    let begun = browser.page(&format!("{page}?name=files&url=npx+-y+%40scope%2Ffiles")).await;
    assert!(begun.contains("value=\"npx -y @scope/files\""), "{begun}");
}

#[tokio::test]
async fn a_large_file_is_read_and_one_that_holds_nothing_is_refused() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/import");
    let about = "It does much. ".repeat(500);
    let tools: Vec<Value> = (0..600).map(|at| mail(&format!("tool_{at}"), &about)).collect();
    let file = json!({ "tools": tools }).to_string();
    assert!(file.len() > 4_000_000);
    let read = browser.upload(&page, &[("do", "text")], &file).await;
    assert_eq!(read.header("location"), Some(of(&user, "setup/review").as_str()), "{}", read.status);
    assert!(browser.page(&of(&user, "setup/review")).await.contains("600"));
    let empty = browser.submit(&page, &[("do", "text"), ("text", "{\"tools\": []}")]).await;
    assert!(empty.text().contains("nothing was found in it"), "{empty:?}");
    // Settings alone lead nowhere but here, with what was told of them.
    let settings = json!({"version": 1, "core": ["tool_1"], "odd": 1}).to_string();
    let read = browser.submit(&page, &[("do", "text"), ("text", &settings)]).await;
    assert!(read.text().contains("and no tools") && read.text().contains("odd"), "{read:?}");
}

#[tokio::test]
async fn a_step_keeps_what_it_does_not_show() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let config = json!({
        "hot_tools": {"enabled": true, "top_k": 12, "window_days": 60}, "preload": {"enabled": false, "top_k": 9},
        "keep_missed_queries": false,
    });
    user.put_config(&config).await.ok();
    browser.submit(&of(&user, "setup/scope"), &[("hot_tools", "propose")]).await.expect_status(303);
    assert!(browser.page(&of(&user, "setup/apply")).await.contains("Nothing to apply."));
    browser.submit(&of(&user, "setup/scope"), &[("hot_tools", "auto")]).await.expect_status(303);
    browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
    let stored = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(stored["hot_tools"], json!({"enabled": true, "top_k": 12, "window_days": 60, "auto": true}));
    assert_eq!((&stored["preload"], &stored["keep_missed_queries"]), (&config["preload"], &json!(false)));
}

#[tokio::test]
async fn what_is_applied_is_what_was_looked_at() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "5")]).await.expect_status(303);
    let looked_at = made_for(&browser.page(&of(&user, "setup/apply")).await);
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "6")]).await.expect_status(303);
    let stale = browser.submit(&of(&user, "setup/apply"), &[("draft", &looked_at)]).await;
    stale.expect_status(409);
    assert!(stale.text().contains("changed in another window"), "{stale:?}");
    assert_eq!(user.client().get(&user.path(&["config"])).await.json(), json!({}));
    let looked_at = made_for(stale.text());
    browser.submit(&of(&user, "setup/apply"), &[("draft", &looked_at)]).await.expect_status(303);
    // The first one can be undone, too.
    let versions = browser.page(&of(&user, "setup/versions")).await;
    assert!(versions.contains("Put version 0 back"), "{versions}");
    let back = [("revision", "0"), ("expected", "1")];
    browser.submit(&of(&user, "setup/versions"), &back).await.expect_status(303);
    assert_eq!(user.client().get(&user.path(&["config"])).await.json(), json!({}));
}

#[tokio::test]
async fn changing_a_server_keeps_the_headers_that_are_not_typed() {
    let app = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let server = user.path(&["mcp-servers", "files"]);
    let url = "http://127.0.0.1:9/mcp";
    let spec = json!({"url": url, "headers": {"Authorization": SECRET, "X-Team": "a"}, "resync_minutes": 60, "watch": true});
    app.admin().put(&server, &spec).await.ok();
    let page = browser.page(&format!("{}?name=files&url={url}", of(&user, "setup/servers"))).await;
    assert!(page.contains("value=\"60\"") && page.contains("name=\"watch\" checked"), "{page}");
    let fields = [("do", "save"), ("name", "files"), ("url", url), ("resync_minutes", "30"), ("watch", "on")];
    let fresh = browser.page(&of(&user, "setup/servers")).await;
    assert!(
        fresh.contains("name=\"describe\" checked") && !page.contains("name=\"describe\" checked"),
        "{fresh}"
    );
    let typed = [("header", "X-Team"), ("header_value", "b"), ("describe", "on")];
    browser.submit(&of(&user, "setup/servers"), &[&fields[..], &typed].concat()).await.expect_status(303);
    let stored = app.admin().get(&server).await.ok();
    let names: Vec<&str> = stored["headers"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((names, &stored["resync_minutes"]), (vec!["Authorization", "X-Team"], &json!(30)), "{stored}");
    assert_eq!(stored["write_group_description"], true, "{stored}");
}
