//! What single steps of the setup flow promise: what an outer layer sets can be set off, keys of endpoints stay or are said to
//! be gone, and who wrote what is told by name.

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, TestApp, unique};
use crate::pages::{Browser, key, of};
use crate::samples::painter;

const SECRET: &str = "sk-typed-and-never-given-back";

#[tokio::test]
async fn what_a_user_sets_a_project_sets_off_or_leaves() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let project = unique("project");
    let outer = json!({"management_tools": true, "hot_tools": {"enabled": true, "auto": true}, "preload": {"enabled": true, "top_k": 7}});
    user.put_config(&outer).await.ok();
    let to = |page: &str| format!("/ui/projects/{project}/{page}");
    let page = browser.page(&to("setup/scope")).await;
    assert!(page.contains("As each user has it, else off, by default"), "{page}");
    assert!(browser.page(&of(&user, "setup/scope")).await.contains("As inherited: off, by default"));

    let effective = async |key: &str| {
        let path = format!("/v1/config/effective?user={}&project={project}", user.id);
        app.admin().get(&path).await.ok()["config"][key]["value"].clone()
    };
    let apply = async |fields: &[(&str, &str)]| {
        browser.submit(&to("setup/scope"), fields).await.expect_status(303);
        browser.submit(&to("setup/apply"), &[]).await.expect_status(303);
    };
    let off = [("management_tools", "off"), ("hot_tools", "off"), ("preload", "off"), ("preload_top_k", "")];
    apply(&off).await;
    assert_eq!(effective("management_tools").await, json!(false));
    assert_eq!(
        (&effective("hot_tools").await["enabled"], &effective("preload").await["enabled"]),
        (&json!(false), &json!(false))
    );
    let shown = browser.page(&to("setup/scope")).await;
    let of_switch = shown.split_once("id=\"management_tools\"").unwrap().1;
    assert!(of_switch.split_once("</select>").unwrap().0.contains("value=\"off\" selected"), "{shown}");
    // Nothing said again: what the user has holds.
    apply(&[
        ("management_tools", "inherit"),
        ("hot_tools", "inherit"),
        ("preload", "inherit"),
        ("preload_top_k", "5"),
    ])
    .await;
    assert_eq!(effective("management_tools").await, json!(true));
    assert_eq!(
        (&effective("hot_tools").await["auto"], &effective("preload").await["top_k"]),
        (&json!(true), &json!(7))
    );
    let stored = app.admin().get(&format!("/v1/projects/{project}/config")).await.ok();
    assert_eq!(stored, json!({}));
}

#[tokio::test]
async fn the_scope_step_shows_what_is_in_force_and_what_the_draft_makes_of_it() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    user.put_config(&json!({"max_warm_tools": 7, "deny": ["nothing"]})).await.ok();
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "9")]).await.expect_status(303);
    let page = browser.page(&of(&user, "setup/scope")).await;
    let row = |key: &str| {
        let (_, rest) = page.split_once(&format!("scope=\"row\">{key}</th>")).unwrap();
        let row = rest.split("</tr>").next().unwrap();
        row.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect::<String>()
    };
    assert_eq!(row("max_warm_tools"), "7 (user)changed 9 (user)");
    assert_eq!(row("deny"), "[&quot;nothing&quot;] (user)the same");
}

#[tokio::test]
async fn choosing_a_provider_keeps_a_key_that_is_for_it_and_says_when_it_is_not() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/matcher");
    let choose = async |fields: &[(&str, &str)]| {
        browser.submit(&page, fields).await.expect_status(303);
        browser.page(&page).await
    };
    // Typed first, chosen then.
    let cohere = choose(&[("endpoint", ""), ("api_key", SECRET), ("preset", "rerank Cohere")]).await;
    assert!(cohere.contains("api.cohere.com") && cohere.contains("One is kept in this draft"), "{cohere}");
    let jina = choose(&[("endpoint", "https://api.cohere.com/v2/rerank"), ("preset", "rerank Jina")]).await;
    assert!(jina.contains("was cleared, because the endpoint has another address"), "{jina}");
    let keyed = choose(&[
        ("endpoint", "https://api.jina.ai/v1/rerank"),
        ("api_key", SECRET),
        ("preset", "embedding Jina"),
    ])
    .await;
    assert!(
        keyed.contains("https://api.jina.ai/v1/embeddings") && keyed.contains("One is kept in this draft"),
        "{keyed}"
    );
    assert!(keyed.contains("value=\"embedding\" selected") && !keyed.contains(SECRET), "{keyed}");
    // A key that is too long to be kept, and a number that is none, are told at their fields, and nothing typed is lost.
    let long = "k".repeat(20_000);
    for (field, value, told) in
        [("api_key", long.as_str(), "<b>Key</b>"), ("top_n", "many", "<b>Matches asked for</b>")]
    {
        let typed = [
            ("do", "test"),
            ("endpoint", "https://api.jina.ai/v1/embeddings"),
            ("query", "find it"),
            (field, value),
        ];
        let refused = browser.submit(&page, &typed).await;
        refused.expect_status(200);
        assert!(
            refused.text().contains(told) && refused.text().contains("value=\"find it\""),
            "{field}: {refused:?}"
        );
        assert!(!refused.text().contains(&long), "{field}");
    }
    let typed = [
        ("do", "on"),
        ("endpoint", "https://api.jina.ai/v1/embeddings"),
        ("kind", "embedding"),
        ("top_n", ""),
    ];
    browser.submit(&page, &typed).await.expect_status(303);
    browser.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
    let stored = user.client().get(&user.path(&["config"])).await.ok();
    assert_eq!(
        (&stored["matcher"]["kind"], &stored["matcher"]["api_key"]["set"]),
        (&json!("embedding"), &json!(true))
    );
}

#[tokio::test]
async fn a_version_that_comes_back_without_its_key_says_so_and_versions_name_their_writers() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let matcher =
        |host: &str| json!({"matcher": {"endpoint": format!("https://{host}/rerank"), "api_key": SECRET}});
    user.put_config(&matcher("one.example")).await.ok();
    user.put_config(&matcher("two.example")).await.ok();
    let secret = key(&app, "setup", &[&user.id], &[]).await;
    let setup = app.with_key(&secret);
    setup.put(&user.path(&["config"]), &json!({"max_warm_tools": 3})).await.ok();
    let page = of(&user, "setup/versions");
    let shown = browser.page(&page).await;
    assert!(shown.contains("No key goes with its endpoint.") && shown.contains("2 keys differ"), "{shown}");
    let id = secret.split('_').nth(1).unwrap();
    let name = app.admin().get(&format!("/v1/keys/{id}")).await.ok()["name"].as_str().unwrap().to_owned();
    assert!(shown.contains(&format!(">{name}</a>")), "{shown}");
    let covered = Browser::sign_in(&app, &secret).await.page(&page).await;
    assert!(!covered.contains("/ui/keys/"), "who may not see keys sees no way to them");

    let back = browser.submit(&page, &[("revision", "1"), ("expected", "3")]).await;
    let back = browser.page(back.header("location").unwrap()).await;
    assert!(back.contains("was put back.") && back.contains("No key goes with its endpoint."), "{back}");
    // By the API, too.
    let path = user.path(&["config", "restore"]);
    let restored = user.client().post(&path, &json!({"revision": 2})).await.ok();
    let told: Vec<&Value> =
        restored["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
    assert_eq!(told, ["secret_missing"], "{restored}");
    let plain = user.client().post(&path, &json!({"revision": 3})).await.ok();
    assert!(
        plain["warnings"].as_array().unwrap().iter().all(|warning| warning["code"] != "secret_missing"),
        "{plain}"
    );
}

#[tokio::test]
async fn the_overview_of_a_user_leads_to_the_project_where_requests_are_counted() {
    let app = TestApp::start().await;
    let (user, browser) = (painter(&app, json!({})).await, Browser::sign_in(&app, ADMIN_KEY).await);
    let project = unique("project");
    let link = format!("href=\"/ui/projects/{project}/overview\"");
    assert!(!browser.page(&of(&user, "overview")).await.contains(&link));
    user.search(json!({"project": project, "session": "s", "query": "amber"})).await.ok();
    let page = browser.page(&of(&user, "overview")).await;
    assert!(page.contains(&link) && page.contains("is counted there"), "{page}");
    // Not to whom the project is none of their business.
    let setup = Browser::sign_in(&app, &key(&app, "setup", &[&user.id], &[]).await).await;
    assert!(!setup.page(&of(&user, "overview")).await.contains(&project));
}

#[tokio::test]
async fn a_proposal_is_taken_by_its_parts_and_toolsets_are_left_out_and_renamed() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let to = |page: &str| of(&user, page);
    // Most of them say that they change nothing, which suggests a toolset.
    let tool = |name: &str| json!({"name": name, "group": "mail", "description": format!("Does {name}."), "annotations": {"readOnlyHint": name != "send"}});
    let list: Vec<Value> = ["list", "get", "search", "read", "find", "show", "send"].map(tool).into();
    let list = json!({"tools": list}).to_string();
    browser.submit(&to("setup/import"), &[("do", "text"), ("text", &list)]).await.expect_status(303);
    let proposed = browser.page(&to("setup/groups")).await;
    assert!(proposed.contains("name=\"part\" value=\"toolsets\" checked"), "{proposed}");
    let name = proposed.split("value=\"set-out\" aria-label=\"Leave out ").nth(1).unwrap();
    let name = name.split('"').next().unwrap().to_owned();

    // What is left out is not taken, until it is taken back.
    let out = [("do", "set-out"), ("entry", name.as_str())];
    browser.submit(&to("setup/groups"), &out).await.expect_status(303);
    let nothing = browser.submit(&to("setup/groups"), &[("do", "take"), ("parts", "1")]).await;
    assert!(nothing.header("location").unwrap().contains("said=parts"), "{nothing:?}");
    let take = [("do", "take"), ("parts", "1"), ("part", "toolsets")];
    browser.submit(&to("setup/groups"), &take).await.expect_status(303);
    let after = browser.page(&to("setup/groups")).await;
    assert!(after.contains(&format!("Take back {name}")), "{after}");
    let back = [("do", "set-back"), ("entry", name.as_str())];
    browser.submit(&to("setup/groups"), &back).await.expect_status(303);
    browser.submit(&to("setup/groups"), &take).await.expect_status(303);
    let named = [("do", "set-name"), ("entry", name.as_str()), ("name", "looking")];
    browser.submit(&to("setup/groups"), &named).await.expect_status(303);
    browser.submit(&to("setup/apply"), &[]).await.expect_status(303);
    let config = user.client().get(&user.path(&["config"])).await.json();
    assert!(config.get("groups").is_none() && config.get("core").is_none(), "{config}");
    let names: Vec<&str> =
        config["toolsets"].as_array().unwrap().iter().filter_map(|set| set["name"].as_str()).collect();
    assert!(names.contains(&"looking") && !names.contains(&name.as_str()), "{config}");
}
