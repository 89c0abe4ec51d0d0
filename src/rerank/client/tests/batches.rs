//! Many documents, limits of providers, and limits learned from errors.

use super::*;

/// Takes at most this many documents; says so in the words given.
async fn limited(most: usize, status: u16, words: &'static str) -> Server {
    serve(move |seen, _| {
        let documents = seen.texts("documents");
        if documents.len() > most {
            reply(status, words)
        } else {
            // Each document is its own score, so the best is the last.
            let row = |(index, text): (usize, &String)| json!({"index": index, "score": text.parse::<f64>().unwrap()});
            let rows: Vec<_> = documents.iter().enumerate().map(row).collect();
            reply(200, json!({ "results": rows }).to_string())
        }
    })
    .await
}

fn numbers(count: usize, server: &Server) -> RerankRequest {
    let documents = (0..count).map(|n| n.to_string()).collect();
    RerankRequest { documents, top_n: count, ..ask(&server.url) }
}

#[tokio::test]
async fn batches_are_merged_into_one_ranking() {
    let server = limited(1_000, 200, "").await;
    let ranking = rerank(numbers(250, &server)).await.unwrap();
    assert_eq!(server.calls(), 3, "an unknown server gets at most 100 documents");
    let indexes: Vec<usize> = ranking.rows.iter().map(|row| row.index).collect();
    assert_eq!(indexes, (0..250).rev().collect::<Vec<_>>());
    assert!(ranking.rows.iter().all(|row| (0.0..=1.0).contains(&row.score)), "logits are seen in the whole");
    assert!(ranking.rows[249].score > 0.499, "also where a batch alone would not show it");

    let few = rerank(RerankRequest { top_n: 3, ..numbers(250, &server) }).await.unwrap();
    assert_eq!(few.rows.iter().map(|row| row.index).collect::<Vec<_>>(), [249, 248, 247]);
}

#[tokio::test]
async fn a_limit_that_an_error_names_is_used_and_told() {
    for (status, words, limit) in [
        (422, r#"{"error":"batch size 100 > maximum allowed batch size 32","error_type":"Validation"}"#, 32),
        (400, "at most 64 documents are allowed", 64),
        (413, "payload too large", 50),
    ] {
        let server = limited(limit, status, words).await;
        let ranking = rerank(numbers(100, &server)).await.unwrap();
        assert_eq!((ranking.rows.len(), ranking.learned_limit), (100, Some(limit)), "{words}");
        assert!(ranking.notes.iter().any(|note| note.contains(&limit.to_string())));
        let before = server.calls();
        let again = RerankRequest { known_limit: ranking.learned_limit, ..numbers(100, &server) };
        assert_eq!(rerank(again).await.unwrap().learned_limit, None);
        assert_eq!(server.calls() - before, 100_usize.div_ceil(limit), "a known limit costs no error");
    }
}

#[tokio::test]
async fn a_limit_is_learned_only_once_in_a_call() {
    let server = limited(10, 413, "payload too large").await;
    assert_eq!(rerank(numbers(100, &server)).await, Err(RerankFault::refused(413)));
    assert!(server.calls() <= 1 + 2);
    // What was learned is told all the same, also where the time runs out on the second try.
    let failed = client(private()).rerank(numbers(100, &server)).await.unwrap_err();
    assert_eq!((failed.fault, failed.learned_limit), (RerankFault::refused(413), Some(50)));
    let server = serve(|_, turn| if turn == 0 { reply(413, "too large") } else { reply(503, "") }).await;
    let failed = client(private()).rerank(numbers(100, &server)).await.unwrap_err();
    assert_eq!((failed.fault, failed.learned_limit), (RerankFault::refused(503), Some(50)));
    let server = serve_in_turn(vec![(400, "model `m` is unknown")]).await;
    assert_eq!(rerank(numbers(100, &server)).await, Err(RerankFault::refused(400)));
    assert_eq!(server.calls(), 1, "a refusal about something else is final");
}

#[tokio::test]
async fn one_failed_batch_fails_the_whole() {
    let server = serve(|seen, _| {
        let documents = seen.texts("documents");
        if documents.iter().any(|text| text == "250") {
            reply(400, "DataInspectionFailed")
        } else {
            reply(200, ranked_rows(&documents, "score").to_string())
        }
    })
    .await;
    assert_eq!(rows(numbers(300, &server)).await, Err(RerankFault::refused(400)));
}

#[tokio::test]
async fn at_most_four_requests_run_at_a_time() {
    let running = Arc::new(Mutex::new((0_usize, 0_usize)));
    let gauge = Arc::clone(&running);
    let app = Router::new().fallback(move |request: Request| {
        let gauge = Arc::clone(&gauge);
        async move {
            {
                let mut gauge = gauge.lock().unwrap();
                gauge.0 += 1;
                gauge.1 = gauge.1.max(gauge.0);
            }
            let body = axum::body::to_bytes(request.into_body(), 10_000_000).await.unwrap();
            tokio::task::yield_now().await;
            let body: Value = serde_json::from_slice(&body).unwrap();
            let count = body["documents"].as_array().unwrap().len();
            gauge.lock().unwrap().0 -= 1;
            let rows: Vec<_> = (0..count).map(|index| json!({"index": index, "score": 0.5})).collect();
            Value::from(rows).to_string()
        }
    });
    let server = Server { url: listen(app).await, seen: Arc::default() };
    let ranking = rerank(RerankRequest { known_limit: Some(10), ..numbers(300, &server) }).await.unwrap();
    assert_eq!(ranking.rows.len(), 300);
    assert!(running.lock().unwrap().1 <= 4);
}

#[tokio::test]
async fn what_an_answer_leaves_out_is_noted() {
    let server = serve_in_turn(vec![(200, r#"[{"index":0,"score":0.5},{"index":1,"score":NaN}]"#)]).await;
    let ranking = rerank(ask(&server.url)).await.unwrap();
    assert_eq!(ranking.rows.len(), 1);
    assert!(ranking.notes.iter().any(|note| note.contains("1 without a score")), "{:?}", ranking.notes);
}
