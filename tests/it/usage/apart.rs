//! What is counted and kept for one scope shows for no other.

use serde_json::{Value, json};

use super::overview;
use crate::app::{Client, TestApp, path, unique};
use crate::keys::make;
use crate::samples::{painter, paints};

const NOTHING: &str = "xylophone quartet";

fn queries(shown: &Value) -> Vec<(&str, i64)> {
    let rows = shown["missed_queries"]["queries"].as_array().unwrap();
    rows.iter().map(|row| (row["query"].as_str().unwrap(), row["count"].as_i64().unwrap())).collect()
}

async fn project_with(client: &Client, config: &Value) -> String {
    let project = unique("project");
    let tools = json!({"tools": [{"name": "zqx_shared", "group": "zqx", "description": "Shared by all."}]});
    client.put(&path(&["v1", "projects", &project, "catalog"]), &tools).await.ok();
    client.put(&path(&["v1", "projects", &project, "config"]), config).await.ok();
    project
}

#[tokio::test]
async fn queries_are_kept_while_the_config_says_so_and_gone_after() {
    let mut app = TestApp::start().await;
    let id = painter(&app, json!({})).await.id;
    let user = app.user_called(&id);
    let ask = async |text: &str| user.search(json!({"queries": [text, "navy"], "session": "s"})).await.ok();
    let answer = ask(NOTHING).await;
    assert_eq!(answer["results"][0]["matches"], json!([]), "{answer}");
    let shown = overview(app.admin(), "user", &id).await;
    assert_eq!(
        (&shown["totals"]["missed"], &shown["missed_queries"]),
        (&json!(1), &json!({"kept": false, "queries": []}))
    );

    user.put_config(&json!({"keep_missed_queries": true})).await.ok();
    let hostile = format!("{NOTHING}\n\u{202e}\u{200b} <b>{}</b>", "zq ".repeat(200));
    for text in [NOTHING, NOTHING, &hostile] {
        ask(text).await;
    }
    let shown = overview(app.admin(), "user", &id).await;
    let kept = queries(&shown);
    assert_eq!((kept.len(), kept[0]), (2, (NOTHING, 2)));
    assert!(kept[1].0.chars().count() <= 200 && kept[1].0.starts_with("xylophone quartet <b>zq"), "{kept:?}");
    assert!(shown["missed_queries"]["queries"][0]["last_at_ms"].as_i64().unwrap() > 1_700_000_000_000);
    app.kill();
    app.start_again().await;
    assert_eq!(queries(&overview(app.admin(), "user", &id).await).len(), 2);

    // Some wait in memory, some are stored: all of them are gone with the write, and none comes back.
    let user = app.user_called(&id);
    user.search(json!({"query": "sousaphone solo"})).await.ok();
    user.put_config(&json!({"max_warm_tools": 3})).await.ok();
    assert_eq!(
        overview(app.admin(), "user", &id).await["missed_queries"],
        json!({"kept": false, "queries": []})
    );
    user.put_config(&json!({"keep_missed_queries": true})).await.ok();
    assert!(queries(&overview(app.admin(), "user", &id).await).is_empty());
    user.search(json!({"query": NOTHING})).await.ok();
    assert_eq!(queries(&overview(app.admin(), "user", &id).await), [(NOTHING, 1)]);
    user.client().delete(&user.path(&["config"])).await.expect_status(204);
    assert!(queries(&overview(app.admin(), "user", &id).await).is_empty());
    assert!(!app.logs().contains("xylophone") && !app.logs().contains("sousaphone"));
}

#[tokio::test]
async fn a_query_is_kept_by_the_scope_that_says_so_and_by_no_other() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let keeps = json!({"keep_missed_queries": true});
    let (silent, keeping, refusing) = (
        project_with(admin, &json!({})).await,
        project_with(admin, &keeps).await,
        project_with(admin, &json!({"keep_missed_queries": false})).await,
    );
    let (private, open) = (painter(&app, keeps.clone()).await, painter(&app, json!({})).await);
    for user in [&private, &open] {
        for project in [&silent, &keeping, &refusing] {
            let query = format!("{NOTHING} of {}", user.id);
            let answer = user.search(json!({"project": project, "query": query})).await.ok();
            assert_eq!(answer["results"][0]["matches"], json!([]), "{answer}");
        }
    }
    // The user said so for the user's own queries; a project that says nothing keeps none of them.
    let mine = overview(admin, "user", &private.id).await;
    assert_eq!(queries(&mine), [(&*format!("{NOTHING} of {}", private.id), 1)]);
    assert!(queries(&overview(admin, "user", &open.id).await).is_empty());
    for project in [&silent, &refusing] {
        let shown = overview(admin, "project", project).await;
        assert_eq!((&shown["totals"]["missed"], queries(&shown).len()), (&json!(2), 0));
    }
    assert_eq!(queries(&overview(admin, "project", &keeping).await).len(), 2);
}

#[tokio::test]
async fn counts_and_names_of_others_show_nowhere() {
    let app = TestApp::start().await;
    let project = project_with(app.admin(), &json!({"hot_tools": {"enabled": true}})).await;
    let (one, other) = (painter(&app, json!({})).await, painter(&app, json!({})).await);
    let mut own: Vec<Value> = paints();
    own.push(json!({"name": "zqx_secret", "group": "zqx", "description": "Secret of one."}));
    one.put_catalog(&own).await.ok();
    let live = json!([{"name": "zqx_live", "group": "zqx", "description": "Live of one."}]);
    for _ in 0..4 {
        for body in [json!({}), json!({"tools": live})] {
            let mut body = body;
            body["project"] = json!(project);
            let assembled = one.assemble(body).await.ok();
            let mut call = json!({"project": project, "calls": [
                {"name": "zqx_secret", "arguments": {}}, {"name": "zqx_shared", "arguments": {}}, {"name": "zqx_live", "arguments": {}}]});
            if assembled["tools_ref"].is_string() {
                call["tools_ref"] = assembled["tools_ref"].clone();
            }
            one.call(call).await.ok();
        }
    }
    let of_project = app.admin().get(&format!("/v1/setup/overview?project={project}")).await;
    assert!(of_project.text().contains("zqx_shared"), "{}", of_project.text());
    assert!(!of_project.text().contains("zqx_secret") && !of_project.text().contains("zqx_live"));
    let of_project = of_project.ok();
    assert_eq!(
        (&of_project["totals"]["assemblies"], &of_project["totals"]["calls"]),
        (&json!(8), &json!(12))
    );
    assert_eq!(
        of_project["hot_tools"]["tools"],
        json!([{"name": "zqx_shared", "group": "zqx", "calls": 4,
        "tokens": of_project["hot_tools"]["tools"][0]["tokens"]}])
    );
    let of_one = overview(app.admin(), "user", &one.id).await;
    assert_eq!(of_one["totals"]["assemblies"], 0, "a request counts in one place");
    let called: Vec<(&str, u64, bool)> = of_one["tools"]["most_called"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            (tool["name"].as_str().unwrap(), tool["calls"].as_u64().unwrap(), tool["granted"] == true)
        })
        .collect();
    assert_eq!(called, [("zqx_live", 4, false), ("zqx_secret", 4, true)]);
    let of_other = app.admin().get(&format!("/v1/setup/overview?user={}", other.id)).await;
    assert!(!of_other.text().contains("zqx"), "{}", of_other.text());
    assert_eq!(of_other.ok()["totals"]["calls"], 0);

    // A key of one reads nothing of the other, and nothing of a project that it does not cover.
    let bound = app.with_key(&make(&app, "setup", json!({"users": [one.id]})).await.key);
    bound.get(&format!("/v1/setup/overview?user={}", one.id)).await.ok();
    for foreign in [
        format!("user={}", other.id),
        format!("user={}&project={project}", one.id),
        format!("project={project}"),
    ] {
        bound.get(&format!("/v1/setup/overview?{foreign}")).await.problem(404, "not_found");
    }
    let agent = app.with_key(&make(&app, "agent", json!({"users": [one.id]})).await.key);
    agent.get(&format!("/v1/setup/overview?user={}", one.id)).await.problem(403, "forbidden");
}
