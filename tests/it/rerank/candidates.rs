//! Which tools an endpoint is asked about, what it is told of them, and what is shown of its answer.

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::{allowed, matcher, messenger, names};

#[tokio::test]
async fn the_task_goes_beside_the_query() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let longest = "é".repeat(2_000);
    for (context, query) in [
        (json!("Invite Ana to the  fair"), "send a message\nTask: Invite Ana to the  fair"),
        (json!(longest), &*format!("send a message\nTask: {longest}")),
        // Asked without a task before, so the blank one is answered with that.
        (Value::Null, "send a message"),
    ] {
        let body = json!({"query": "send a message", "context": context});
        assert_eq!(user.search(body).await.ok()["mode"], "rerank");
        let seen = endpoint.take();
        assert_eq!((seen.len(), &seen[0].body["query"]), (1, &json!(query)));
    }
    user.search(json!({"query": "send a message", "context": " \n "})).await.ok();
    assert_eq!(endpoint.count(), 0);

    // It is not part of what is answered.
    let body = json!({"query": "send a message", "context": "CONTEXT-CANARY", "explain": true});
    let answer = user.search(body).await.ok();
    assert!(!answer.to_string().contains("CONTEXT-CANARY") && !app.logs().contains("CONTEXT-CANARY"));
    endpoint.take();

    let body = json!({"query": "send a message", "context": "é".repeat(2_001)});
    let problem = user.search(body).await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/context", "{problem}");
    assert_eq!(endpoint.count(), 0);
}

#[tokio::test]
async fn an_explanation_shows_what_the_endpoint_said() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let body = json!({"query": "send a message", "explain": true});
    let answer = user.search(body.clone()).await.ok();
    let matches = answer["results"][0]["matches"].as_array().unwrap();
    assert_eq!(matches.len(), 3, "{answer}");
    for found in matches {
        assert_eq!(found["explain"]["endpoint_score"], found["score"], "{answer}");
        assert!(found["explain"]["terms"].is_array() && found["explain"]["coverage"].is_number(), "{answer}");
    }
    let plain = user.search(json!({"query": "send a message"})).await.ok();
    assert!(!plain.to_string().contains("endpoint_score"), "{plain}");
    let keywords = messenger(&app, json!({"min_catalog_size": 0})).await.search(body).await.ok();
    assert!(!keywords.to_string().contains("endpoint_score"), "{keywords}");
}

#[tokio::test]
async fn an_endpoint_is_told_words_and_no_schema() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = app.user();
    let parameters = json!({"type": "object", "properties": {
        "chat_id": {"type": "string", "description": "Where it goes.", "pattern": "SCHEMA-CANARY"},
        "body": {"type": "string", "enum": ["SCHEMA-CANARY"]},
    }, "required": ["chat_id"]});
    let tools = [
        json!({"name": "sendChat_message", "group": "chat", "description": "Post a\n text.", "aliases": ["whisper"],
            "parameters": parameters}),
        json!({"name": "blank_one"}),
        json!({"name": "long_one", "description": "word ".repeat(2_000)}),
    ];
    user.put_catalog(&tools).await.ok();
    user.put_config(&matcher(&endpoint.url("/rerank"))).await.ok();
    user.search(json!({"query": "tell somebody"})).await.ok();
    let seen = endpoint.take();
    let documents = seen[0].documents();
    assert_eq!(documents.len(), 3, "{documents:?}");
    let about = |name: &str| documents.iter().find(|text| text.contains(name)).unwrap();
    let chat = about("sendChat_message");
    for part in ["chat", "send Chat message", "Post a text.", "chat_id (Where it goes.)", "body", "whisper"] {
        assert!(chat.contains(part), "{part}: {chat}");
    }
    assert_eq!(chat.matches("sendChat_message").count(), 1, "{chat}");
    assert!(!chat.contains("SCHEMA-CANARY") && !chat.contains('{') && !chat.contains('\n'), "{chat}");
    assert!(about("blank_one").contains("blank one"));
    assert!(about("long_one").chars().count() <= 1_500);
}

#[tokio::test]
async fn of_a_large_catalog_names_aliases_and_every_group_are_sent() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = app.user();
    let mut tools: Vec<Value> = (0..300)
        .map(|at| {
            json!({"name": format!("report_{at}"), "group": "reports",
            "description": format!("Write the monthly report of department {at} and send it.")})
        })
        .collect();
    for group in ["birds", "ships", "trains"] {
        tools.push(
            json!({"name": format!("{group}_go"), "group": group, "description": "Let a pigeon carry it."}),
        );
        tools.push(json!({"name": format!("{group}_stop"), "group": group, "description": "Halt."}));
    }
    tools.push(json!({"name": "zz_exact", "group": "reports", "description": "Nothing of the kind."}));
    tools.push(json!({"name": "other_one", "group": "reports", "description": "Something else.",
        "aliases": ["quarterly digest"]}));
    user.put_catalog(&tools).await.ok();
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"]["max_documents"] = json!(20);
    user.put_config(&config).await.ok();

    let query = "write the monthly report of a department with zz_exact or the quarterly digest and send it";
    let found = user.search(json!({ "query": query })).await.ok();
    let seen = endpoint.take();
    assert_eq!(seen.len(), 1);
    let documents = seen[0].documents();
    assert_eq!(documents.len(), 20, "{documents:?}");
    let mut once = documents.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), 20, "{documents:?}");
    for part in ["(zz_exact)", "(other_one)", "(birds_", "(ships_", "(trains_"] {
        assert!(documents.iter().any(|text| text.contains(part)), "{part}: {documents:?}");
    }
    // What shares no word with the query is found all the same, behind the tool that it names.
    assert_eq!(names(&found)[0], "zz_exact", "{found}");
    assert!(names(&found)[1].ends_with("_go"), "{found}");

    // Up to the number all are sent, in requests that the endpoint can take.
    config["matcher"]["max_documents"] = json!(1_000);
    user.put_config(&config).await.ok();
    assert_eq!(user.search(json!({ "query": query })).await.ok()["mode"], "rerank");
    let sizes: Vec<usize> = endpoint.take().iter().map(|call| call.documents().len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), tools.len(), "{sizes:?}");
    assert!(sizes.len() > 1 && sizes.iter().all(|size| *size <= 100), "{sizes:?}");
}

#[tokio::test]
async fn a_tool_that_was_given_no_score_does_not_pass_the_least_score() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = app.user();
    let mut tools: Vec<Value> = (0..40)
        .map(|at| json!({"name": format!("send_letter_{at}"), "description": "Send a message as a letter."}))
        .collect();
    tools.push(json!({"name": "fly", "description": "Let a pigeon carry it."}));
    user.put_catalog(&tools).await.ok();
    let mut config = matcher(&endpoint.url("/rerank"));
    (config["matcher"]["min_score"], config["matcher"]["top_n"]) = (json!(0.5), json!(5));
    user.put_config(&config).await.ok();
    let found = user.search(json!({"query": "send a message as a letter", "limit": 5})).await.ok();
    assert_eq!(names(&found), ["fly"], "{found}");
}
