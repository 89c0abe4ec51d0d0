//! A call that takes long is sent a second time, where that is asked for.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::*;

/// A server that answers each request as its turn says, when that is through.
async fn serve_by_turn<R>(
    answer: impl Fn(usize) -> R + Clone + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>)
where
    R: Future<Output = (u16, &'static str)> + Send + 'static,
{
    let calls = Arc::<AtomicUsize>::default();
    let turns = Arc::clone(&calls);
    let handler = move || {
        let answer = answer(turns.fetch_add(1, Ordering::Relaxed));
        async move {
            let (status, body) = answer.await;
            (StatusCode::from_u16(status).unwrap(), body)
        }
    };
    (listen(Router::new().fallback(handler)).await, calls)
}

/// A server whose first request hangs.
async fn hanging_first(second: (u16, &'static str)) -> (String, Arc<AtomicUsize>) {
    serve_by_turn(move |turn| async move { if turn == 0 { pending().await } else { second } }).await
}

fn ask_within(url: &str, hedge_ms: Option<u64>, deadline_ms: u64) -> RerankRequest {
    RerankRequest {
        hedge_after: hedge_ms.map(Duration::from_millis),
        deadline: Duration::from_millis(deadline_ms),
        ..ask(url)
    }
}

fn count(calls: &AtomicUsize) -> usize {
    calls.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_second_request_answers_for_one_that_hangs() {
    let (url, calls) = hanging_first((200, GOOD)).await;
    assert_eq!(rows(ask_within(&url, Some(10), 10_000)).await, Ok(BEST_IS_SECOND.to_vec()));
    assert_eq!(count(&calls), 2);
}

#[tokio::test]
async fn what_is_answered_in_time_is_sent_once() {
    let (url, calls) = serve_by_turn(|_| async { (200, GOOD) }).await;
    assert_eq!(rows(ask_within(&url, Some(9_000), 10_000)).await, Ok(BEST_IS_SECOND.to_vec()));
    assert_eq!(count(&calls), 1);
    // A failure is tried again as ever, and that once.
    for (second, expected) in [(200, Ok(BEST_IS_SECOND.to_vec())), (503, Err(RerankFault::refused(503)))] {
        let (url, calls) =
            serve_by_turn(move |turn| async move { (if turn == 0 { 503 } else { second }, GOOD) }).await;
        assert_eq!(rows(ask_within(&url, Some(9_000), 10_000)).await, expected);
        assert_eq!(count(&calls), 2);
    }
}

#[tokio::test]
async fn nothing_is_sent_twice_unasked_or_without_room() {
    for hedge_ms in [None, Some(150), Some(60_000)] {
        let (url, calls) = hanging_first((200, GOOD)).await;
        assert_eq!(rows(ask_within(&url, hedge_ms, 150)).await, Err(RerankFault::Timeout), "{hedge_ms:?}");
        assert_eq!(count(&calls), 1, "{hedge_ms:?}");
    }
}

#[tokio::test]
async fn the_second_request_is_the_last() {
    let (url, calls) = hanging_first((503, "busy")).await;
    assert_eq!(
        rows(ask_within(&url, Some(10), 300)).await,
        Err(RerankFault::Timeout),
        "the first may still come"
    );
    assert_eq!(count(&calls), 2);

    // The first is answered after the second has failed.
    for (first, expected) in [(200, Ok(BEST_IS_SECOND.to_vec())), (503, Err(RerankFault::refused(503)))] {
        let failed = Arc::new(Notify::new());
        let (url, calls) = serve_by_turn(move |turn| {
            let failed = Arc::clone(&failed);
            async move {
                if turn == 0 {
                    failed.notified().await;
                    return (first, GOOD);
                }
                failed.notify_one();
                (503, "busy")
            }
        })
        .await;
        assert_eq!(rows(ask_within(&url, Some(10), 10_000)).await, expected);
        assert_eq!(count(&calls), 2);
    }
}

#[tokio::test]
async fn what_a_second_attempt_does_not_mend_ends_both() {
    let (url, calls) = hanging_first((401, "who are you")).await;
    assert_eq!(rows(ask_within(&url, Some(10), 60_000)).await, Err(RerankFault::refused(401)));
    assert_eq!(count(&calls), 2);
}

#[tokio::test]
async fn after_a_rate_limit_its_server_is_not_asked_twice_at_once() {
    let client = client(private());
    for (status, limit) in [(429, "slow down"), (200, r#"{"error":{"code":429,"message":"slow down"}}"#)] {
        let (url, calls) = serve_by_turn(move |turn| async move {
            match turn {
                0 => (status, limit),
                1 => (200, GOOD),
                _ => pending().await,
            }
        })
        .await;
        assert!(client.rerank(ask_within(&url, None, 10_000)).await.is_ok());
        let late = client.rerank(ask_within(&url, Some(10), 300)).await;
        assert_eq!((late, count(&calls)), (Err(RerankFault::Timeout.into()), 3), "{status}");
    }
    // Another server has its own limit.
    let (url, calls) = hanging_first((200, GOOD)).await;
    assert!(client.rerank(ask_within(&url, Some(10), 10_000)).await.is_ok());
    assert_eq!(count(&calls), 2);
}
