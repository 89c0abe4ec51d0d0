use proptest::prelude::*;

use super::*;

/// Four documents were sent; gives `index:score` in the order of the ranking.
fn read_four(answer: &str) -> Result<String, RerankFault> {
    let rows = read(answer.as_bytes(), 4, false)?.rows;
    Ok(rows.iter().map(|row| format!("{}:{}", row.index, row.raw)).collect::<Vec<_>>().join(" "))
}

fn check(answer: &str, expected: &str) {
    assert_eq!(read_four(answer), Ok(expected.to_owned()), "{answer}");
}

fn fault(answer: &str, expected: RerankFault) {
    assert_eq!(read_four(answer), Err(expected), "{answer}");
}

fn flaw(answer: &str, expected: Flaw) {
    fault(answer, RerankFault::Malformed(expected));
}

#[test]
fn the_list_is_found_wherever_a_provider_puts_it() {
    for (provider, answer) in [
        (
            "cohere",
            r#"{"id":"x","results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}],"meta":{}}"#,
        ),
        (
            "jina",
            r#"{"results":[{"index":1,"relevance_score":0.9,"document":"b"},{"index":0,"relevance_score":0.1,"document":{"text":"a"}}]}"#,
        ),
        (
            "xinference, infinity",
            r#"{"results":[{"index":1,"relevance_score":0.9,"document":null},{"index":0,"relevance_score":0.1,"document":null}]}"#,
        ),
        (
            "vllm",
            r#"{"results":[{"index":1,"document":{"text":"[b","multi_modal":null},"relevance_score":0.9},{"index":0,"document":{"text":"a"},"relevance_score":0.1}]}"#,
        ),
        (
            "vllm score",
            r#"{"object":"list","data":[{"index":0,"object":"score","score":0.1},{"index":1,"object":"score","score":0.9}]}"#,
        ),
        (
            "voyage, fireworks",
            r#"{"object":"list","data":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}],"usage":{"total_tokens":2}}"#,
        ),
        ("tei", r#"[{"index":1,"score":0.9},{"index":0,"score":0.1}]"#),
        (
            "sglang",
            r#"[{"score":0.9,"document":null,"index":1,"meta_info":{}},{"score":0.1,"document":"a","index":0}]"#,
        ),
        (
            "dashscope",
            r#"{"request_id":"r","output":{"results":[{"index":1,"relevance_score":0.9,"document":{"text":"b"}},{"index":0,"relevance_score":0.1}]},"usage":{}}"#,
        ),
        (
            "mixedbread, pinecone",
            r#"{"data":[{"index":1,"score":0.9,"document":{"text":"b"}},{"index":0,"score":0.1}]}"#,
        ),
        ("nim", r#"{"rankings":[{"index":1,"logit":0.9},{"index":0,"logit":0.1}]}"#),
        (
            "elastic",
            r#"{"rerank":[{"index":1,"relevance_score":"0.9","text":"b"},{"index":0,"relevance_score":"0.1"}]}"#,
        ),
        (
            "cloudflare",
            r#"{"success":true,"errors":[],"result":{"response":[{"id":1,"score":0.9},{"id":0,"score":0.1}]}}"#,
        ),
        ("vertex", r#"{"records":[{"id":"1","score":0.9,"title":"b"},{"id":"0","score":0.1}]}"#),
        ("bedrock", r#"{"results":[{"index":1,"relevanceScore":0.9},{"index":0,"relevanceScore":0.1}]}"#),
        (
            "zhipu",
            r#"{"code":200,"results":[{"document":"b","index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}]}"#,
        ),
        (
            "gateway",
            r#"{"code":0,"msg":"ok","data":{"results":[{"index":1,"score":0.9},{"index":0,"score":0.1}]}}"#,
        ),
        ("sentence-transformers", r#"[{"corpus_id":1,"score":0.9},{"corpus_id":0,"score":0.1}]"#),
        (
            "others",
            r#"{"results":[{"document_index":1,"similarity":0.9},{"document_index":0,"rerank_score":0.1}]}"#,
        ),
    ] {
        assert_eq!(read_four(answer), Ok("1:0.9 0:0.1".to_owned()), "{provider}");
    }
}

#[test]
fn numbers_are_read_in_any_dress() {
    check(r#"{"results":[{"index":"2","score":"0.25"},{"index":1.0,"score":0}]}"#, "2:0.25 1:0");
    check(r#"{"results":[{"index":0,"relevance_score":null,"score":0.5}]}"#, "0:0.5");
    check(r#"{"results":null,"data":[{"index":0,"logit":-1.5}]}"#, "0:-1.5");
    check("\u{feff} [{\"index\":0,\"score\":1}] ", "0:1");
    check(r#"[{"index":null,"id":3,"score":6.83}]"#, "3:6.83");
}

#[test]
fn scores_by_position_need_one_for_each_document() {
    check(r#"{"scores":[0.1,0.4,null,0.2]}"#, "1:0.4 3:0.2 0:0.1");
    check(r#"{"data":{"scores":[0.1,0.4,0.3,0.2]}}"#, "1:0.4 2:0.3 3:0.2 0:0.1");
    flaw(r#"{"scores":[0.1,0.4,0.3]}"#, Flaw::WrongLength);
    flaw(r#"{"scores":[0.1,0.4,0.3,0.2,0.9]}"#, Flaw::WrongLength);
    flaw(r#"{"scores":[null,null,null,null]}"#, Flaw::NoScores);
}

#[test]
fn an_unsorted_answer_is_sorted_and_ties_of_a_sorted_one_stay() {
    let row = |index, score| format!(r#"{{"index":{index},"score":{score}}}"#);
    check(&format!("[{},{},{}]", row(2, 0.1), row(1, 0.7), row(0, 0.7)), "0:0.7 1:0.7 2:0.1");
    check(&format!("[{},{},{}]", row(3, 1.0), row(1, 1.0), row(2, 0.5)), "3:1 1:1 2:0.5");
}

#[test]
fn what_is_dropped_is_counted() {
    let answer = r#"[{"index":0,"score":0.5},{"index":1,"score":null},{"index":2,"score":"high"},{"index":0,"score":0.9},
        {"index":3},{"index":99,"score":1}]"#;
    let found = read(answer.as_bytes(), 4, false).unwrap();
    assert_eq!(found.rows, [Row { index: 0, raw: 0.5 }], "the first of two rows stays");
    assert_eq!(found.dropped, Dropped { bad_index: 1, unscored: 3, duplicates: 1 });
}

#[test]
fn more_than_a_fifth_of_bad_indexes_refuses_the_answer() {
    let good = r#"{"index":0,"score":1},{"index":1,"score":1},{"index":2,"score":1},{"index":3,"score":1}"#;
    check(&format!(r#"[{good},{{"index":9,"score":1}}]"#), "0:1 1:1 2:1 3:1");
    for bad in [
        r#"{"index":9,"score":1}"#,
        r#"{"index":-1,"score":1}"#,
        r#"{"index":true,"score":1}"#,
        "1",
        "null",
        r#"{"score":1}"#,
        r#"{"index":0.5,"score":1}"#,
        r#"{"index":1e300,"score":1}"#,
        r#"{"id":"tool-1","score":1}"#,
        "[]",
        "[0,0,0,0,1]",
    ] {
        flaw(&format!("[{good},{bad},{bad}]"), Flaw::BadIndexes);
    }
}

#[test]
fn a_server_that_counts_from_one_is_not_trusted() {
    let row = |index| format!(r#"{{"index":{index},"score":1}}"#);
    flaw(&format!("[{},{},{},{}]", row(1), row(2), row(3), row(4)), Flaw::CountsFromOne);
    flaw(&format!("[{},{}]", row(4), row(2)), Flaw::CountsFromOne);
    check(&format!("[{},{}]", row(3), row(2)), "3:1 2:1");
}

#[test]
fn bare_nan_costs_its_row_only() {
    check(
        r#"{"note":"NaN \" -Infinity","results":[{"index":0,"score":NaN},{"index":1,"score":0.5},{"index":2,"score":-Infinity},{"index":3,"score":1e999}]}"#,
        "1:0.5",
    );
    check(r#"[{"index":0,"score":"NaN"},{"index":1,"score":"0.5"}]"#, "1:0.5");
    check(r#"{"scores":[NaN,1,Infinity,2]}"#, "3:2 1:1");
    flaw(r#"{"results":[{"index":0,"score":NaN}]}"#, Flaw::NoScores);
}

#[test]
fn an_error_inside_a_good_status_is_an_error() {
    let refused = RerankFault::refused;
    for (answer, expected) in [
        (r#"{"error":{"message":"slow down","type":"rate_limit_error","code":null}}"#, refused(429)),
        (r#"{"error":{"message":"x","code":"429"}}"#, refused(429)),
        (r#"{"error":{"message":"x","code":503}}"#, refused(503)),
        (r#"{"error":{"code":401}}"#, refused(401)),
        (r#"{"error":"no quota"}"#, RerankFault::Reported),
        (r#"{"error":{"message":"no quota"}}"#, RerankFault::Reported),
        (r#"{"error":"x","results":[{"index":0,"score":1}]}"#, RerankFault::Reported),
        (r#"{"error_code":17,"error_msg":"daily limit"}"#, RerankFault::Reported),
        (r#"{"code":"Throttling.RateQuota","message":"x","request_id":"r"}"#, refused(429)),
        (r#"{"code":"InvalidApiKey","message":"x"}"#, refused(401)),
        (r#"{"code":"Arrearage","message":"x"}"#, refused(402)),
        (r#"{"code":"AccessDenied.Unpurchased","message":"x"}"#, refused(403)),
        (r#"{"code":"DataInspectionFailed","message":"x"}"#, RerankFault::Reported),
        (r#"{"object":"error","message":"x","code":404}"#, refused(404)),
        (r#"{"code":1,"data":null}"#, RerankFault::Reported),
    ] {
        fault(answer, expected);
    }
    check(r#"{"code":20000,"error":null,"results":[{"index":0,"score":1}]}"#, "0:1");
    check(r#"{"error":"","results":[{"index":0,"score":1}]}"#, "0:1");
}

#[test]
fn answers_without_a_ranking_say_what_is_wrong() {
    for (answer, expected) in [
        ("", Flaw::NotJson),
        ("NaN", Flaw::NoRows),
        ("null", Flaw::NoRows),
        ("1", Flaw::NoRows),
        ("\"results\"", Flaw::NoRows),
        ("{}", Flaw::NoRows),
        (r#"{"code":"Success"}"#, Flaw::NoRows),
        (r#"{"results":{"index":0}}"#, Flaw::NoRows),
        ("[]", Flaw::NoScores),
        (r#"{"results":[]}"#, Flaw::NoScores),
        (r#"{"results":[{"index":0,"relevance_score":null}]}"#, Flaw::NoScores),
        (r#"{"data":[{"embedding":[1.0],"index":0}]}"#, Flaw::NoScores),
        (r#"{"data":[{"embedding":[1.0]}]}"#, Flaw::BadIndexes),
        (r#"{"results":[{"index":0,"score":1}]"#, Flaw::NotJson),
        (r#"[{"index":0,"score":1}] trailing"#, Flaw::NotJson),
        ("upstream connect error", Flaw::NotJson),
    ] {
        flaw(answer, expected);
    }
    assert_eq!(read(b"[\xff]", 4, false), Err(RerankFault::Malformed(Flaw::NotJson)));
    fault(" <!doctype html><title>Sign in</title>", RerankFault::WebPage);
    assert_eq!(read(b"Sign in", 4, true), Err(RerankFault::WebPage));
    assert!(read(br#"[{"index":0,"score":1}]"#, 4, true).is_ok(), "a wrong content type alone is forgiven");
}

#[test]
fn nesting_is_bounded() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    check(&format!(r#"{{"x":{open}{close},"results":[{{"index":0,"score":1}}]}}"#), "0:1");
    assert!(read_four(&open).is_err());
    assert!(read_four(&r#"{"output":"#.repeat(100_000)).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, 4, false);
    }

    #[test]
    fn near_json_is_read_without_a_panic(text in r#"([\[\]{},:"\\]|NaN|-|I|Infinity|"index"|"score"|"output"|"error"|results|é|[0-9]){0,60}"#) {
        let _ = read(text.as_bytes(), 4, false);
        if let Some(mended) = without_bare_nan(&text) {
            prop_assert!(mended.contains("null"));
        }
    }

    #[test]
    fn a_ranking_is_sorted_unique_finite_and_in_range(
        rows in prop::collection::vec((-1i64..10, prop::option::of(-5.0f64..5.0)), 1..30),
        documents in 1usize..10,
    ) {
        let row = |(index, score): &(i64, Option<f64>)| {
            format!(r#"{{"index":{index},"score":{}}}"#, score.map_or("NaN".to_owned(), |score| score.to_string()))
        };
        let answer: Vec<_> = rows.iter().map(row).collect();
        if let Ok(found) = read(format!("[{}]", answer.join(",")).as_bytes(), documents, false) {
            prop_assert!(found.rows.is_sorted_by(|a, b| a.raw >= b.raw));
            let mut indexes: Vec<_> = found.rows.iter().map(|row| row.index).collect();
            indexes.sort_unstable();
            indexes.dedup();
            prop_assert_eq!(indexes.len(), found.rows.len());
            prop_assert!(indexes.iter().all(|index| *index < documents));
            let Dropped { bad_index, unscored, duplicates } = found.dropped;
            prop_assert_eq!(indexes.len() + bad_index + unscored + duplicates, rows.len());
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(order in Just((0usize..8).collect::<Vec<_>>()).prop_shuffle()) {
        let answer: Vec<_> = order.iter().map(|index| format!(r#"{{"index":{index},"score":{index}}}"#)).collect();
        let found = read(format!("[{}]", answer.join(",")).as_bytes(), 8, false).unwrap();
        let indexes: Vec<_> = found.rows.iter().map(|row| row.index).collect();
        prop_assert_eq!(indexes, (0..8).rev().collect::<Vec<_>>());
    }
}
