//! What endpoints do wrong, each with its end.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;

use super::*;
use crate::rerank::fault::Flaw;

/// A bare TCP server that hands each connection, with its request read, to the next of the actions.
fn serve_raw(actions: Vec<fn(std::net::TcpStream)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for action in actions {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            // The body of `ask` ends with the value of `top_n`.
            while !request.ends_with(b"\"top_n\":2}") {
                let mut chunk = [0; 1024];
                let read = stream.read(&mut chunk).unwrap();
                request.extend_from_slice(&chunk[..read]);
            }
            action(stream);
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn each_refusal_has_its_reason_and_its_number_of_attempts() {
    for (status, reason, attempts) in [
        (301, "redirected", 1),
        (307, "redirected", 1),
        (400, "http_error", 1),
        (401, "unauthorized", 1),
        (402, "payment_required", 1),
        (403, "unauthorized", 1),
        (404, "not_found", 1),
        (405, "not_found", 1),
        (408, "http_error", 2),
        (409, "http_error", 1),
        (413, "http_error", 2),
        (415, "http_error", 1),
        (422, "http_error", 1),
        (424, "http_error", 1),
        (425, "http_error", 2),
        (429, "rate_limited", 2),
        (498, "unauthorized", 1),
        (500, "http_error", 2),
        (502, "http_error", 2),
        (503, "http_error", 2),
        (504, "http_error", 2),
        (529, "http_error", 2),
    ] {
        let server = serve_in_turn(vec![(status, GOOD)]).await;
        let fault = rerank(ask(&server.url)).await.unwrap_err();
        assert_eq!(fault, RerankFault::refused(status));
        assert_eq!(fault.reason(), reason, "{status}");
        // 413 is asked again with one document each, at once for both.
        let attempts = if status == 413 { 2..=3 } else { attempts..=attempts };
        assert!(attempts.contains(&server.calls()), "{status}: {} calls", server.calls());
    }
}

#[tokio::test]
async fn passing_refusals_are_tried_a_second_time() {
    for status in [408, 425, 429, 500, 502, 503, 504, 529] {
        let server = serve_in_turn(vec![(status, "busy"), (200, GOOD)]).await;
        assert_eq!(rows(ask(&server.url)).await, Ok(BEST_IS_SECOND.to_vec()), "{status}");
    }
    let inside = r#"{"error":{"code":429,"message":"slow down"}}"#;
    let server = serve_in_turn(vec![(200, inside), (200, GOOD)]).await;
    assert_eq!(rows(ask(&server.url)).await, Ok(BEST_IS_SECOND.to_vec()), "a refusal inside a 200");
}

#[tokio::test]
async fn the_servers_pause_is_kept_where_it_fits() {
    for header in
        [("retry-after", "60"), ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"), ("retry-after-ms", "60000")]
    {
        let server = serve(move |_, _| Reply(429, vec![header], "slow down".to_owned())).await;
        let fault = rerank(ask(&server.url)).await.unwrap_err();
        assert_eq!((fault.reason(), server.calls()), ("rate_limited", 1), "{header:?}");
        assert!(fault.retry_after() >= Some(Duration::from_secs(60)));
    }
    let server = serve(|_, turn| match turn {
        0 => Reply(503, vec![("retry-after-ms", "400")], String::new()),
        _ => reply(200, GOOD),
    })
    .await;
    let started = Instant::now();
    assert_eq!(rows(ask(&server.url)).await, Ok(BEST_IS_SECOND.to_vec()));
    assert!(started.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn slow_answers_are_timeouts() {
    let never = Router::new().fallback(std::future::pending::<&'static str>);
    let endless = Router::new()
        .fallback(|| async { Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()) });
    let refusal = Router::new().fallback(|| async {
        let body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        (StatusCode::UNPROCESSABLE_ENTITY, body)
    });
    for app in [never, endless, refusal] {
        let request = RerankRequest { deadline: Duration::from_millis(150), ..ask(&listen(app).await) };
        assert_eq!(rows(request).await, Err(RerankFault::Timeout));
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_tried_again() {
    let whole = |mut stream: std::net::TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{GOOD}", GOOD.len()).unwrap();
    };
    let half = |mut stream: std::net::TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{{\"results\":").unwrap();
    };
    for first in [drop as fn(std::net::TcpStream), half] {
        assert_eq!(rows(ask(&serve_raw(vec![first, whole]))).await, Ok(BEST_IS_SECOND.to_vec()));
    }
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    // Bound but never listening: the port stays ours and every connection is refused.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    assert_eq!(rows(ask(&endpoint)).await, Err(RerankFault::Unreachable));
}

#[tokio::test]
async fn answers_without_a_ranking_are_faults_at_once() {
    let malformed = RerankFault::Malformed;
    for (answer, fault) in [
        ("<html><body>Sign in</body></html>", RerankFault::WebPage),
        ("", malformed(Flaw::NotJson)),
        (r#"{"results":[{"index":0"#, malformed(Flaw::NotJson)),
        ("null", malformed(Flaw::NoRows)),
        (r#"{"scores":[1,2,3]}"#, malformed(Flaw::WrongLength)),
        (r#"{"results":[]}"#, malformed(Flaw::NoScores)),
        (r#"[{"index":0,"score":null},{"index":1,"score":NaN}]"#, malformed(Flaw::NoScores)),
        (r#"[{"index":1,"score":1},{"index":2,"score":0}]"#, malformed(Flaw::CountsFromOne)),
        (r#"[{"index":0,"score":1},{"index":7,"score":0}]"#, malformed(Flaw::BadIndexes)),
        (r#"{"error":{"message":"upstream"}}"#, RerankFault::Reported),
        (r#"{"code":"InvalidApiKey","message":"x"}"#, RerankFault::refused(401)),
    ] {
        let server = serve_in_turn(vec![(200, answer)]).await;
        assert_eq!(rows(ask(&server.url)).await, Err(fault), "{answer}");
        assert_eq!(server.calls(), 1, "asking again would give the same");
    }
}

#[tokio::test]
async fn odd_answers_that_hold_a_ranking_are_read() {
    for answer in [
        r#"{"results":[{"index":0,"relevance_score":0.2},{"index":1,"relevance_score":0.9}]}"#,
        r#"{"results":[{"index":"1","relevance_score":"0.9"},{"index":"0","relevance_score":"0.2"}]}"#,
        r#"[{"index":1,"score":0.9},{"index":0,"score":0.2},{"index":1,"score":0.1}]"#,
        r#"{"scores":[0.2,0.9]}"#,
    ] {
        let server = serve_in_turn(vec![(200, answer)]).await;
        assert_eq!(rows(ask(&server.url)).await, Ok(BEST_IS_SECOND.to_vec()), "{answer}");
    }
    let server = serve_in_turn(vec![(200, r#"[{"index":1,"score":0.9}]"#)]).await;
    assert_eq!(rows(ask(&server.url)).await, Ok(BEST_IS_SECOND[..1].to_vec()), "partial");
}

#[tokio::test]
async fn a_huge_answer_is_given_up() {
    let announced = Router::new().fallback(|| async { vec![b' '; 4 * 1024 * 1024 + 1] });
    let endless = Router::new().fallback(|| async {
        let chunk = Bytes::from_static(&[b' '; 65_536]);
        Body::from_stream(stream::repeat(Ok::<_, std::convert::Infallible>(chunk)))
    });
    for app in [announced, endless] {
        assert_eq!(rows(ask(&listen(app).await)).await, Err(RerankFault::TooLarge));
    }
}

#[tokio::test]
async fn an_endless_refusal_is_read_in_part_only() {
    let app = Router::new().fallback(|| async {
        let chunk = Bytes::from_static(&[b'x'; 65_536]);
        let body = Body::from_stream(stream::repeat(Ok::<_, std::convert::Infallible>(chunk)));
        (StatusCode::UNPROCESSABLE_ENTITY, body)
    });
    assert_eq!(rows(ask(&listen(app).await)).await, Err(RerankFault::refused(422)));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = serve(|seen, _| match seen.path.as_str() {
        "/elsewhere" => reply(200, GOOD),
        _ => Reply(307, vec![("location", "/elsewhere")], String::new()),
    })
    .await;
    let fault = rerank(ask(&server.url)).await.unwrap_err();
    assert_eq!((fault.reason(), fault.is_configuration()), ("redirected", true));
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn a_deadline_of_any_length_is_kept() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let request = RerankRequest { deadline: Duration::MAX, ..ask(&server.url) };
    assert_eq!(rows(request).await, Ok(BEST_IS_SECOND.to_vec()));
}

#[tokio::test]
async fn neither_faults_nor_notes_repeat_what_was_said_or_sent() {
    let server = serve_in_turn(vec![(422, "hush: query weather tomorrow")]).await;
    let endpoint = format!("{}/rerank?token=hush", server.url);
    for request in [ask(&endpoint), ask_auto(&endpoint)] {
        let fault = rerank(request).await.unwrap_err();
        assert!(!format!("{fault} {fault:?}").contains("hush"));
    }
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let ranking = rerank(ask_auto(&format!("{}/rerank?token=hush", server.url))).await.unwrap();
    assert!(!format!("{ranking:?}").contains("hush"));
}
