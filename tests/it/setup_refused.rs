//! Drafts and what a write would refuse: a form that brings a fault is told so and changes nothing, and a draft that has one from
//! before opens on every step.

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, TestApp, User};
use crate::pages::{Browser, of};

const STEPS: [&str; 6] = ["import", "review", "groups", "matcher", "scope", "apply"];

fn tool(name: &str, group: &str) -> Value {
    json!({"name": name, "description": format!("Does {name} with a thing."), "group": group})
}

/// Two tools in two groups, which a draft has entries for.
async fn begun(user: &User, browser: &Browser) {
    user.put_catalog(&[tool("open_page", "browser"), tool("move_card", "kanban")]).await.ok();
    for group in ["browser", "kanban"] {
        let edit = [("do", "edit"), ("group", group), ("name", group), ("description", "About it")];
        browser.submit(&of(user, "setup/groups"), &edit).await.expect_status(303);
    }
}

async fn opens(user: &User, browser: &Browser) {
    for step in STEPS {
        let page = browser.page(&of(user, &format!("setup/{step}"))).await;
        assert!(
            page.contains("aria-current=\"step\"") && page.contains("Throw draft away"),
            "{step}: {page}"
        );
    }
}

#[tokio::test]
async fn a_form_that_brings_a_fault_changes_nothing_and_names_the_field() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    begun(&user, &browser).await;
    for at in 0..50 {
        let alias = [("do", "alias"), ("alias", &*format!("phrase {at}")), ("tool", "open_page")];
        browser.submit(&of(&user, "setup/review"), &alias).await.expect_status(303);
    }
    let (name, about, alias) = ("n".repeat(300), "d".repeat(5_000), "a".repeat(500));
    let edit = [("do", "edit"), ("group", "browser")];
    let to_alias = [("do", "alias"), ("tool", "open_page")];
    let endpoint = [("do", "on"), ("endpoint", "https://rank.example/rerank")];
    let before = browser.page(&of(&user, "setup/apply")).await;
    for (step, form, more, field) in [
        ("groups", &edit[..], &[("name", name.as_str())][..], "Name of a group"),
        ("groups", &edit, &[("name", "browser"), ("description", &about)], "Description for the listing"),
        ("groups", &[], &[("do", "core"), ("more", "@")], "Core tools"),
        ("review", &to_alias, &[("alias", "one more")], "Alias of open_page"),
        ("review", &[("do", "alias"), ("tool", "move_card")], &[("alias", &alias)], "Alias of move_card"),
        ("scope", &[], &[("max_warm_tools", "abc")], "Warm tools at most"),
        ("scope", &[], &[("max_warm_tools", "-3")], "Warm tools at most"),
        ("scope", &[], &[("preload", "on"), ("preload_top_k", "some")], "How many"),
        ("matcher", &endpoint, &[("top_n", "many")], "Matches asked for"),
        ("matcher", &[], &[("do", "test"), ("endpoint", "nowhere")], "Endpoint"),
    ] {
        let path = of(&user, &format!("setup/{step}"));
        let refused = browser.submit(&path, &[form, more].concat()).await;
        let text = refused.text();
        assert!(text.contains("Not kept:") && text.contains(&format!("<b>{field}</b>")), "{field}: {text}");
        assert!(text.contains("aria-current=\"step\""), "{field}: {text}");
        let (_, typed) = more.last().unwrap();
        assert!(text.contains(&typed[..typed.len().min(200)]), "{field}: what was typed is shown: {text}");
        opens(&user, &browser).await;
    }
    let after = browser.page(&of(&user, "setup/apply")).await;
    let lines = |page: &str| {
        page.split_once("class=\"diff").map(|(_, diff)| diff.split("</ul>").next().map(str::to_owned))
    };
    assert!(lines(&before).is_some() && lines(&before) == lines(&after), "{after}");
}

#[tokio::test]
async fn names_that_deceive_are_told_where_they_are_typed() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    begun(&user, &browser).await;
    let groups = of(&user, "setup/groups");
    for (name, why) in [
        ("*", "`*` already means everything"),
        ("mail\u{202e}liam", "1 character that nobody sees"),
        ("\u{200b}\u{2060}", "2 characters that nobody sees"),
    ] {
        for form in [[("do", "edit"), ("description", "x")], [("do", "move"), ("tool", "open_page")]] {
            let form = [&form[..], &[("group", "browser"), ("name", name)]].concat();
            let refused = browser.submit(&groups, &form).await;
            let text = refused.text();
            assert!(text.contains("Name of a group") && text.contains(why), "{name:?}: {text}");
            let is_edit = form[0].1 == "edit";
            assert_eq!(
                text.contains("value=\"x\" maxlength=\"500\""),
                is_edit,
                "the description stands there: {text}"
            );
        }
        let import = [("do", "text"), ("text", "[{\"name\":\"a\",\"description\":\"b\"}]"), ("group", name)];
        let refused = browser.submit(&of(&user, "setup/import"), &import).await;
        assert!(refused.text().contains(why), "{name:?}: {}", refused.text());
        // The config says the same.
        let config = json!({"groups": [{"name": name}], "toolsets": [{"name": name}]});
        let problem = user.put_config(&config).await.problem(422, "invalid_request");
        let at: Vec<&str> = problem["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["pointer"].as_str().unwrap())
            .collect();
        assert_eq!(at, ["/groups/0/name", "/toolsets/0/name"], "{problem}");
    }
    // What may be meant is kept, and marked.
    let odd = [("do", "edit"), ("group", "browser"), ("name", "@mail"), ("description", "")];
    browser.submit(&groups, &odd).await.expect_status(303);
    let core = [("do", "core"), ("more", "no_such_tool @nobody")];
    browser.submit(&groups, &core).await.expect_status(303);
    let page = browser.page(&groups).await;
    for told in ["odd_name", "@@mail", "`no_such_tool` in `core`", "`@nobody` in `core`"] {
        assert!(page.contains(told), "{told}: {page}");
    }
}

#[tokio::test]
async fn names_of_an_upload_are_shown_as_they_are_seen() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let tools = json!([tool("a\u{202e}b", "\u{200b}"), tool("plain", "team\u{202e}liam")]).to_string();
    let read = browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &tools)]).await;
    read.expect_status(303);
    let review = browser.page(&of(&user, "setup/review")).await;
    for seen in [">ab<", ">(a name that nobody sees)<", ">teamliam<"] {
        assert!(review.contains(seen), "{seen}: {review}");
    }
    // The proposal takes them as they are, and nothing of it is refused.
    let groups = of(&user, "setup/groups");
    assert!(browser.page(&groups).await.contains("(a name that nobody sees)"));
    browser.submit(&groups, &[("do", "take")]).await.expect_status(303);
    let again = browser.submit(&groups, &[("do", "take")]).await;
    let to = again.header("location").expect("a way on").split('#').next().unwrap_or_default().to_owned();
    assert!(browser.page(&to).await.contains("There was nothing to take:"));
    browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
}

#[tokio::test]
async fn an_endpoint_that_may_not_be_called_is_told_where_it_is_typed() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/matcher");
    for endpoint in ["https://127.0.0.1/rerank", "http://rank.example/rerank", "https://169.254.169.254/x"] {
        for deed in ["on", "test"] {
            let refused =
                browser.submit(&page, &[("do", deed), ("endpoint", endpoint), ("model", "m")]).await;
            let text = refused.text();
            assert!(text.contains("Not kept:") && text.contains("<b>Endpoint</b>"), "{text}");
            assert!(
                text.contains(&format!("value=\"{endpoint}\"")) && text.contains("value=\"m\""),
                "{text}"
            );
        }
    }
    assert!(browser.page(&page).await.contains("Nothing changed yet."));
    // One that came with an import is told on this step too.
    let file =
        json!({"version": 1, "groups": [], "matcher": {"endpoint": "https://10.0.0.1/rerank"}}).to_string();
    browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &file)]).await.expect_status(200);
    let shown = browser.page(&page).await;
    assert!(shown.contains("This cannot be applied yet:") && shown.contains("<b>Endpoint</b>"), "{shown}");
}

#[tokio::test]
async fn a_group_is_not_renamed_to_another() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    user.put_catalog(&[tool("open_page", "browser"), tool("move_card", "kanban")]).await.ok();
    // With and without an entry of its own in the draft.
    for begins in [false, true] {
        if begins {
            begun(&user, &browser).await;
        }
        let rename =
            [("do", "edit"), ("group", "browser"), ("name", "kanban"), ("description", "What was typed")];
        let answer = browser.submit(&of(&user, "setup/groups"), &rename).await;
        answer.expect_status(422);
        let page = answer.text();
        assert!(page.contains("another group has this name") && page.contains("open_page"), "{page}");
        assert!(page.contains("value=\"What was typed\"") && page.contains("value=\"kanban\""), "{page}");
    }
    opens(&user, &browser).await;
    let merge = [("do", "merge"), ("group", "browser"), ("name", "kanban")];
    browser.submit(&of(&user, "setup/groups"), &merge).await.expect_status(303);
    browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
    let config = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(config["groups"][0]["name"], "kanban", "{config}");
    assert_eq!(config["groups"].as_array().map(Vec::len), Some(1), "{config}");
}

#[tokio::test]
async fn a_draft_that_was_broken_before_opens_and_can_be_mended() {
    let mut app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    begun(&user, &browser).await;
    app.stop().await;
    // As an earlier version stored it.
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(app.folder().join("toolrack.db"));
    let mut database = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let broken = "UPDATE setup_drafts SET body = json_set(body, '$.config.groups[0].name', 'kanban', '$.config.max_warm_tools', 'abc')";
    assert_eq!(sqlx::query(broken).execute(&mut database).await.unwrap().rows_affected(), 1);
    sqlx::Connection::close(database).await.unwrap();
    app.start_again().await;
    let (user, browser) = (app.user_called(&user.id), Browser::sign_in(&app, ADMIN_KEY).await);

    opens(&user, &browser).await;
    for step in ["groups", "review"] {
        let page = browser.page(&of(&user, &format!("setup/{step}"))).await;
        assert!(page.contains("stands twice") && page.contains("<b>Name of a group</b>"), "{step}: {page}");
    }
    let refused = browser.page(&of(&user, "setup/apply")).await;
    assert!(
        refused.contains("This cannot be applied yet") && refused.contains("/max_warm_tools"),
        "{refused}"
    );
    // A form that needs to read the draft says what is wrong with it.
    let core = browser.submit(&of(&user, "setup/groups"), &[("do", "core"), ("more", "open_page")]).await;
    assert!(core.text().contains("This draft cannot be used as it is:"), "{}", core.text());
    // What was wrong before keeps nobody from mending the rest; what is new is refused.
    let alias = [("do", "alias"), ("alias", "card"), ("tool", "move_card")];
    browser.submit(&of(&user, "setup/review"), &alias).await.expect_status(303);
    let more = browser.submit(&of(&user, "setup/scope"), &[("context_window", "wide")]).await;
    let text = more.text();
    assert!(
        text.contains("<b>Context window, tokens</b>") && !text.contains("<b>Warm tools at most</b>"),
        "{text}"
    );
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "5")]).await.expect_status(303);
    browser.submit(&of(&user, "setup/groups"), &[("do", "again")]).await.expect_status(303);
    assert!(browser.page(&of(&user, "setup/groups")).await.contains("browser"));
    browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
    let config = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(config, json!({"max_warm_tools": 5, "aliases": {"move_card": ["card"]}}));
}

#[tokio::test]
async fn with_everything_left_out_no_tool_is_said_to_be_left() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    user.put_catalog(&[tool("open_page", "browser")]).await.ok();
    let out = [("do", "out"), ("group", "browser")];
    browser.submit(&of(&user, "setup/groups"), &out).await.expect_status(303);
    let page = browser.page(&of(&user, "setup/groups")).await;
    assert!(page.contains("No tool is left to send.") && !page.contains("Every tool is core"), "{page}");
    let chinese = browser.in_chinese().page(&of(&user, "setup/groups")).await;
    assert!(chinese.contains("没有可发送的工具"), "{chinese}");
}
