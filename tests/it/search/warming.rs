//! What a session keeps of its searches.

use serde_json::json;

use super::{found, office_of, texts, warm};
use crate::app::TestApp;

#[tokio::test]
async fn found_tools_are_warmed_round_robin_over_the_queries() {
    let app = TestApp::start().await;
    let config = json!({"min_catalog_size": 0, "max_warm_tools": 3, "core": ["send_email"]});
    let user = office_of(&app, config).await;
    user.assemble(json!({"session": "s"})).await.ok();
    let queries =
        ["send delete list email", "create cancel list calendar event", "write read file workspace"];
    let answer = user.search(json!({"session": "s", "queries": queries, "limit": 5})).await.ok();
    let sure = |query: usize| {
        let matches = answer["results"][query]["matches"].as_array().unwrap();
        let warmable =
            matches.iter().filter(|tool| tool["confidence"] != "low" && tool["name"] != "send_email");
        warmable.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected = vec![sure(0)[0].clone(), sure(1)[0].clone(), sure(2)[0].clone()];
    assert_eq!(texts(&answer["warmed"]), expected, "the best of each query: {answer}");
    assert_eq!(warm(&user, "s").await, expected);
    assert_eq!(answer["evicted"], json!([]));
    let of = |name: &str| {
        let results = answer["results"].as_array().unwrap().iter();
        let mut all = results.flat_map(|result| result["matches"].as_array().unwrap());
        all.find(|tool| tool["name"] == name).map(|tool| tool["state"].clone())
    };
    assert_eq!(of("send_email"), Some(json!("core")), "core is never warmed");
    assert_eq!(of(&expected[0]), Some(json!("warm")));
    let unwarmed = sure(0).into_iter().chain(sure(1)).find(|name| !expected.contains(name)).unwrap();
    assert_eq!(of(&unwarmed), Some(json!("deferred")), "the rest is returned unwarmed");

    let assembled = user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(texts(&assembled["warm"]), expected);
    // The next search evicts the oldest, and never what it added itself.
    let next = user
        .search(json!({"session": "s", "queries": ["resize an image", "translate a text",
        "weather forecast", "refund a payment"]}))
        .await
        .ok();
    assert_eq!(texts(&next["warmed"]).len(), 3, "{next}");
    let mut evicted = texts(&next["evicted"]);
    let mut before: Vec<&str> = expected.iter().map(String::as_str).collect();
    evicted.sort_unstable();
    before.sort_unstable();
    assert_eq!(evicted, before);
    assert_eq!(warm(&user, "s").await, texts(&next["warmed"]));
}

#[tokio::test]
async fn what_is_pinned_leaves_less_room_and_stays() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"min_catalog_size": 0, "max_warm_tools": 3})).await;
    user.assemble(json!({"session": "s"})).await.ok();
    let session = user.path(&["sessions", "s"]);
    user.client().post(&format!("{session}/pin"), &json!({"names": ["read_file", "write_file"]})).await.ok();
    let answer =
        user.search(json!({"session": "s", "queries": ["resize an image", "translate a text"]})).await.ok();
    assert_eq!(texts(&answer["warmed"]), ["resize_image"], "one place is left");
    assert_eq!(warm(&user, "s").await, ["read_file", "write_file", "resize_image"]);
    // Too many pins are refused whole.
    let pin = json!({"names": ["send_email", "list_emails"]});
    user.client().post(&format!("{session}/pin"), &pin).await.problem(422, "invalid_request");
    assert_eq!(warm(&user, "s").await, ["read_file", "write_file", "resize_image"]);
}

#[tokio::test]
async fn nothing_is_warmed_where_warming_is_not_wanted() {
    let app = TestApp::start().await;
    let body = json!({"session": "s", "query": "resize an image"});
    let mut unwanted = body.clone();
    unwanted["warm"] = json!(false);
    for (config, body) in [
        (json!({"min_catalog_size": 0}), unwanted),
        (json!({"min_catalog_size": 0, "warm_policy": "off"}), body.clone()),
        (json!({"min_catalog_size": 0, "max_warm_tools": 0}), body.clone()),
        // Tier 0: everything is in the array already.
        (json!({"min_catalog_size": 100}), body.clone()),
        (json!({"enabled": false}), body.clone()),
        (json!({"min_catalog_size": 0, "core": ["*"]}), body.clone()),
    ] {
        let user = office_of(&app, config.clone()).await;
        user.assemble(json!({"session": "s"})).await.ok();
        let answer = user.search(body.clone()).await.ok();
        assert_eq!(found(&answer, 0)[0], "resize_image", "{config}");
        assert_eq!((&answer["warmed"], &answer["evicted"]), (&json!([]), &json!([])), "{config}");
        assert_eq!(warm(&user, "s").await, Vec::<String>::new(), "{config}");
    }
    // Without a session nothing is kept, and nothing is shared.
    let user = office_of(&app, json!({"min_catalog_size": 0})).await;
    let answer = user.search(json!({"query": "resize an image"})).await.ok();
    assert_eq!(answer["warmed"], json!([]));
    assert_eq!(user.assemble(json!({})).await.ok()["warm"], json!([]));
}

#[tokio::test]
async fn a_session_that_waits_for_an_epoch_says_pending() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"min_catalog_size": 0, "warm_policy": "epoch"})).await;
    user.assemble(json!({"session": "s"})).await.ok();
    let answer = user.search(json!({"session": "s", "query": "resize an image"})).await.ok();
    assert_eq!(answer["results"][0]["matches"][0]["state"], "pending");
    assert_eq!(user.assemble(json!({"session": "s"})).await.ok()["warm"], json!([]));
    assert_eq!(
        user.assemble(json!({"session": "s", "epoch": true})).await.ok()["warm"],
        json!(["resize_image"])
    );
    let again = user.search(json!({"session": "s", "query": "resize an image"})).await.ok();
    assert_eq!(again["results"][0]["matches"][0]["state"], "warm");
}
