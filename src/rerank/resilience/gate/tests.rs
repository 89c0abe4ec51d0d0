use std::time::Duration;

use super::*;

fn gates(calls: usize, waiting: usize) -> Gates<&'static str> {
    Gates::new(GateLimits { calls, waiting, endpoints: 2 })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Polls once, so that the future takes its place in the queue.
async fn queues<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    let mut future = Some(future);
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(future.take().is_none_or(|future| future.poll(context).is_pending()))
    })
    .await
}

#[tokio::test]
async fn no_more_calls_than_places_and_the_first_in_the_queue_is_next() {
    let gates = gates(2, 2);
    let first = gates.enter("a", soon()).await.unwrap();
    let _second = gates.enter("a", soon()).await.unwrap();
    let mut third = Box::pin(gates.enter("a", soon()));
    let mut fourth = Box::pin(gates.enter("a", soon()));
    assert!(queues(third.as_mut()).await);
    assert!(queues(fourth.as_mut()).await);
    assert_eq!(gates.enter("a", soon()).await.unwrap_err(), Crowded::Full);
    drop(first);
    let third = third.await.unwrap();
    assert!(queues(fourth.as_mut()).await);
    drop(third);
    fourth.await.unwrap();
}

#[tokio::test]
async fn the_deadline_ends_the_wait() {
    let gates = gates(1, 1);
    let slot = gates.enter("a", soon()).await.unwrap();
    assert_eq!(gates.enter("a", Instant::now()).await.unwrap_err(), Crowded::Late);
    drop(slot);
    // A free place is taken even at the last moment.
    gates.enter("a", Instant::now()).await.unwrap();
}

#[tokio::test]
async fn one_endpoint_does_not_wait_for_another_and_their_number_is_bounded() {
    let gates = gates(1, 0);
    let _a = gates.enter("a", soon()).await.unwrap();
    let b = gates.enter("b", soon()).await.unwrap();
    assert_eq!(gates.enter("c", soon()).await.unwrap_err(), Crowded::Full);
    drop(b);
    let _c = gates.enter("c", soon()).await.unwrap();
}

#[tokio::test]
async fn who_leaves_the_queue_leaves_nothing_behind() {
    let gates = gates(1, 1);
    let slot = gates.enter("a", soon()).await.unwrap();
    for _ in 0..3 {
        let mut waiting = Box::pin(gates.enter("a", soon()));
        assert!(queues(waiting.as_mut()).await);
    }
    drop(slot);
    assert!(lock(&gates.open).is_empty());
}
