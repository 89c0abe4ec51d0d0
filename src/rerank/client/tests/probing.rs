//! Endpoints of which only the URL is known.

use super::*;

/// A Text Embeddings Inference server.
async fn tei() -> Server {
    serve(|seen, _| match seen.path.as_str() {
        "/rerank" | "/" => match seen.body.get("texts") {
            Some(texts) if texts.as_array().unwrap().len() > 48 => reply(
                422,
                r#"{"error":"batch size 100 > maximum allowed batch size 48","error_type":"Validation"}"#,
            ),
            Some(_) => reply(200, ranked_rows(&seen.texts("texts"), "score").to_string()),
            None => {
                reply(422, "Failed to deserialize the JSON body into the target type: missing field `texts`")
            }
        },
        "/info" => reply(200, r#"{"model_id":"m","max_client_batch_size":48,"max_input_length":512}"#),
        _ => reply(404, ""),
    })
    .await
}

/// A server with one path, which takes `documents`.
async fn cohere_at(path: &'static str, score: &'static str) -> Server {
    serve(move |seen, _| {
        if seen.path == path {
            reply(200, json!({ "results": ranked_rows(&seen.texts("documents"), score) }).to_string())
        } else {
            reply(404, r#"{"detail":"Not Found"}"#)
        }
    })
    .await
}

#[tokio::test]
async fn the_path_is_found_once() {
    for (path, base, calls) in
        [("/v1/rerank", "", 1), ("/rerank", "", 2), ("/rerank", "/v1", 2), ("/gw/rerank", "/gw", 2)]
    {
        let server = cohere_at(path, "relevance_score").await;
        let ranking = rerank(ask_auto(&format!("{}{base}", server.url))).await.unwrap();
        assert_eq!(ranking.rows[0].index, 1);
        assert_eq!(server.calls(), calls + 1, "{path} from {base}: a probe and the query");
        let detected = ranking.detected.unwrap();
        assert_eq!((detected.dialect, detected.url.path()), (Dialect::Cohere, path));
        assert!(detected.notes.iter().any(|note| note.contains("`cohere`") && note.contains(path)));

        let again = RerankRequest { detected: Some(detected), ..ask_auto(&format!("{}{base}", server.url)) };
        let ranking = rerank(again).await.unwrap();
        assert_eq!((ranking.detected, server.calls()), (None, calls + 2), "what was found is used");
    }
}

#[tokio::test]
async fn tei_is_found_within_three_calls() {
    let server = tei().await;
    let ranking = rerank(ask_auto(&server.url)).await.unwrap();
    assert_eq!((ranking.dialect, ranking.rows[0].index), (Dialect::Tei, 1));
    assert_eq!(server.paths(), ["/v1/rerank", "/rerank", "/rerank", "/rerank"]);
    assert_eq!(ranking.detected.unwrap().limit, None, "no call was left for `/info`");
}

#[tokio::test]
async fn a_model_that_is_served_at_the_root_is_found() {
    let server = serve(|seen, _| match (seen.path.as_str(), seen.body.get("texts")) {
        ("/", Some(_)) => reply(200, ranked_rows(&seen.texts("texts"), "score").to_string()),
        _ => reply(404, ""),
    })
    .await;
    let ranking = rerank(ask_auto(&server.url)).await.unwrap();
    assert_eq!((ranking.dialect, ranking.rows[0].index), (Dialect::Tei, 1));
    assert_eq!(server.paths(), ["/v1/rerank", "/rerank", "/", "/"]);
}

#[tokio::test]
async fn tei_with_its_full_url_is_asked_for_its_limit() {
    let server = tei().await;
    let documents = (0..100).map(|n| format!("weather {n}")).collect();
    let request = RerankRequest { documents, top_n: 100, ..ask_auto(&format!("{}/rerank", server.url)) };
    let ranking = rerank(request).await.unwrap();
    assert_eq!((ranking.rows.len(), ranking.learned_limit), (100, None));
    assert_eq!(ranking.detected.unwrap().limit, Some(48));
    assert_eq!(server.paths()[..3], ["/rerank", "/rerank", "/info"]);
    assert_eq!(server.calls(), 3 + 3, "34, 34 and 32 documents");
}

#[tokio::test]
async fn a_set_dialect_is_kept_and_only_the_path_is_sought() {
    let server = tei().await;
    let request = RerankRequest {
        dialect: DialectChoice::Fixed(Dialect::Tei),
        ..ask_auto(&format!("{}/v1", server.url))
    };
    let ranking = rerank(request).await.unwrap();
    assert_eq!(ranking.dialect, Dialect::Tei);
    assert_eq!(server.paths(), ["/v1/rerank", "/rerank", "/info", "/rerank"]);
}

#[tokio::test]
async fn servers_tell_their_shape_in_their_errors() {
    for (needs, error, dialect) in [
        (
            "passages",
            r#"{"detail":[{"type":"missing","loc":["body","passages"],"msg":"Field required","input":{"documents":["texts"],"top_n":2}}]}"#,
            Dialect::Nim,
        ),
        (
            "input",
            r#"{"detail":[{"type":"missing","loc":["body","input"],"msg":"Field required","input":{}}]}"#,
            Dialect::Mixedbread,
        ),
        ("top_k", r#"{"detail":"Argument 'top_n' is not supported, use 'top_k'"}"#, Dialect::Voyage),
    ] {
        let server = serve(move |seen, _| {
            if seen.body.get(needs).is_some() {
                let key = if needs == "top_k" { "documents" } else { needs };
                reply(200, json!({ "data": ranked_rows(&seen.texts(key), "score") }).to_string())
            } else {
                reply(422, error)
            }
        })
        .await;
        let ranking = rerank(ask_auto(&format!("{}/x/rerank", server.url))).await.unwrap();
        assert_eq!((ranking.dialect, ranking.rows[0].index), (dialect, 1));
        assert_eq!(server.calls(), 3);
    }
}

#[tokio::test]
async fn a_server_that_refuses_top_n_is_asked_without() {
    let server = serve(|seen, _| {
        if seen.body.get("top_n").is_some() {
            reply(422, r#"{"message":"unknown field: parameter 'top_n' is not a valid field"}"#)
        } else {
            reply(200, ranked_rows(&seen.texts("documents"), "score").to_string())
        }
    })
    .await;
    let ranking = rerank(ask_auto(&format!("{}/rerank", server.url))).await.unwrap();
    assert_eq!((ranking.dialect, ranking.rows[0].index), (Dialect::Cohere, 1));
    assert!(!ranking.detected.unwrap().sends_top);
}

#[tokio::test]
async fn nothing_is_concluded_from_refusals_that_say_nothing_about_the_shape() {
    for (status, calls) in
        [(401, 1), (402, 1), (403, 1), (307, 1), (400, 1), (422, 1), (429, 2), (500, 2), (503, 2)]
    {
        let server = serve_in_turn(vec![(status, "no `model`")]).await;
        let fault = rerank(ask_auto(&server.url)).await.unwrap_err();
        assert_eq!(fault, RerankFault::refused(status));
        assert_eq!(server.calls(), calls, "{status}");
        assert_eq!(server.paths()[0], server.paths()[calls - 1], "the same path");
    }
    let server = serve_in_turn(vec![(404, "")]).await;
    let fault = rerank(ask_auto(&server.url)).await.unwrap_err();
    assert_eq!(fault.reason(), "not_found");
    assert_eq!(server.paths(), ["/v1/rerank", "/rerank", "/"]);
}

#[tokio::test]
async fn a_site_that_answers_every_path_is_a_web_page() {
    let server = serve_in_turn(vec![(200, "<!doctype html><title>App</title>")]).await;
    assert_eq!(rows(ask_auto(&server.url)).await, Err(RerankFault::WebPage));
    assert_eq!(server.calls(), 3);
}

#[tokio::test]
async fn a_control_pair_that_is_ranked_the_wrong_way_round_is_told() {
    let server = serve(|seen, _| {
        let count = seen.texts("documents").len();
        let rows: Vec<_> = (0..count).map(|index| json!({"index": index, "score": 0.5})).collect();
        reply(200, json!({ "results": rows }).to_string())
    })
    .await;
    let request = ask_auto(&format!("{}/rerank", server.url));
    let detected = client(private()).probe(&request).await.unwrap();
    assert!(detected.notes.iter().any(|note| note.contains("wrong way round")), "{:?}", detected.notes);
    let body = server.seen.lock().unwrap()[0].body.to_string();
    assert!(!body.contains("mail\",\"weather forecast"), "the request's own texts are not sent");

    let good = cohere_at("/rerank", "score").await;
    let request = RerankRequest {
        dialect: DialectChoice::Fixed(Dialect::Cohere),
        ..ask_auto(&format!("{}/rerank", good.url))
    };
    let detected = client(private()).probe(&request).await.unwrap();
    assert!(!detected.notes.iter().any(|note| note.contains("wrong way round")), "{:?}", detected.notes);
    assert_eq!(good.calls(), 1);
}

#[tokio::test]
async fn a_server_that_counts_from_one_is_found_out_by_the_pair() {
    let server = serve_in_turn(vec![(200, r#"[{"index":2,"score":0.9},{"index":1,"score":0.1}]"#)]).await;
    let fault = rerank(ask_auto(&format!("{}/rerank", server.url))).await.unwrap_err();
    assert_eq!(fault.reason(), "malformed_answer");
    assert!(fault.to_string().contains("from 1"));
}

#[tokio::test]
async fn what_was_found_at_another_origin_is_not_used() {
    let (mine, other) = (cohere_at("/rerank", "score").await, cohere_at("/rerank", "score").await);
    let found = |url: &str| Detected {
        dialect: Dialect::Cohere,
        url: Url::parse(&format!("{url}/rerank")).unwrap(),
        sends_top: true,
        limit: None,
        notes: Vec::new(),
    };
    let request = RerankRequest {
        detected: Some(found(&other.url)),
        api_key: Some("secret".to_owned().into()),
        ..ask_auto(&mine.url)
    };
    rerank(request).await.unwrap();
    assert_eq!(other.calls(), 0, "the key stays where it belongs");
}

#[tokio::test]
async fn a_probe_keeps_the_deadline() {
    let app = Router::new().fallback(std::future::pending::<&'static str>);
    let endpoint = listen(app).await;
    let request = RerankRequest { deadline: Duration::from_millis(100), ..ask_auto(&endpoint) };
    assert_eq!(client(private()).probe(&request).await, Err(RerankFault::Timeout));
    assert_eq!(rows(request).await, Err(RerankFault::Timeout));
}
