use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;

use super::*;

type Answer = Result<u32, &'static str>;

/// Calls whose results the test gives.
#[derive(Default)]
struct Upstream {
    calls: AtomicUsize,
}

impl Upstream {
    /// What a caller would start, and what ends it. A dropped sender is a call that panics.
    fn call(
        &self,
    ) -> (impl FnOnce() -> Pin<Box<dyn Future<Output = Answer> + Send>>, oneshot::Sender<Answer>) {
        let (end, ended) = oneshot::channel();
        let start = || -> Pin<Box<dyn Future<Output = Answer> + Send>> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { ended.await.expect("the call panics here") })
        };
        (start, end)
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Polls once, so that the call is joined or started.
async fn waits<F: Future>(mut future: Pin<&mut F>) -> bool {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

#[tokio::test]
async fn identical_calls_are_made_once_and_others_are_not_mixed_up() {
    let (flights, upstream) = (Flights::new(8), Upstream::default());
    let (start, end) = upstream.call();
    let mut leader = pin!(flights.join("a", soon(), start));
    assert!(waits(leader.as_mut()).await);
    let mut followers = Vec::new();
    for _ in 0..31 {
        let (start, _) = upstream.call();
        let mut follower = Box::pin(flights.join("a", soon(), start));
        assert!(waits(follower.as_mut()).await);
        followers.push(follower);
    }
    let (start, other_end) = upstream.call();
    let mut other = pin!(flights.join("b", soon(), start));
    assert!(waits(other.as_mut()).await);
    assert_eq!((upstream.calls(), flights.under_way()), (2, 2));

    other_end.send(Ok(2)).unwrap();
    assert_eq!(other.await, Ok(Ok(2)));
    end.send(Ok(1)).unwrap();
    assert_eq!(leader.await, Ok(Ok(1)));
    for follower in followers {
        assert_eq!(follower.await, Ok(Ok(1)));
    }
    assert_eq!(flights.under_way(), 0);
}

#[tokio::test]
async fn errors_are_shared_but_not_remembered() {
    let (flights, upstream) = (Flights::new(8), Upstream::default());
    let (start, end) = upstream.call();
    let mut leader = pin!(flights.join("a", soon(), start));
    assert!(waits(leader.as_mut()).await);
    let (start, _) = upstream.call();
    let mut follower = pin!(flights.join("a", soon(), start));
    assert!(waits(follower.as_mut()).await);
    end.send(Err("down")).unwrap();
    assert_eq!(leader.await, Ok(Err("down")));
    // It joined before the end, so it has the result however late it looks.
    assert_eq!(follower.await, Ok(Err("down")));

    let (start, end) = upstream.call();
    end.send(Ok(1)).unwrap();
    assert_eq!(flights.join("a", soon(), start).await, Ok(Ok(1)));
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test]
async fn who_goes_away_takes_the_result_from_nobody() {
    let (flights, upstream) = (Flights::new(8), Upstream::default());
    let (start, end) = upstream.call();
    let mut leader = Box::pin(flights.join("a", soon(), start));
    assert!(waits(leader.as_mut()).await);
    let (start, _) = upstream.call();
    let mut leaver = Box::pin(flights.join("a", soon(), start));
    assert!(waits(leaver.as_mut()).await);
    let (start, _) = upstream.call();
    let mut stayer = Box::pin(flights.join("a", soon(), start));
    assert!(waits(stayer.as_mut()).await);
    drop(leader);
    drop(leaver);
    end.send(Ok(1)).unwrap();
    assert_eq!(stayer.await, Ok(Ok(1)));
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn a_call_ends_even_when_nobody_waits() {
    let flights = Flights::new(8);
    let (end, ended) = oneshot::channel::<()>();
    let (tell, told) = oneshot::channel();
    let mut leader = Box::pin(flights.join("a", soon(), || async move {
        ended.await.unwrap();
        tell.send("kept").unwrap();
    }));
    assert!(waits(leader.as_mut()).await);
    drop(leader);
    end.send(()).unwrap();
    assert_eq!(told.await, Ok("kept"));
}

#[tokio::test]
async fn each_waiter_has_its_own_deadline() {
    let (flights, upstream) = (Flights::new(8), Upstream::default());
    let (start, end) = upstream.call();
    assert_eq!(flights.join("a", Instant::now(), start).await, Err(Missed::Late));
    let (start, _) = upstream.call();
    let mut patient = pin!(flights.join("a", soon(), start));
    assert!(waits(patient.as_mut()).await);
    end.send(Ok(1)).unwrap();
    assert_eq!(patient.await, Ok(Ok(1)));
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn a_call_that_panics_frees_its_waiters_and_its_key() {
    let (flights, upstream) = (Flights::new(8), Upstream::default());
    let (start, end) = upstream.call();
    let mut waiter = pin!(flights.join("a", soon(), start));
    assert!(waits(waiter.as_mut()).await);
    drop(end);
    assert_eq!(waiter.await, Err(Missed::Lost));
    assert_eq!(flights.under_way(), 0);
}

#[tokio::test]
async fn the_number_of_calls_is_bounded_and_joining_is_not() {
    let (flights, upstream) = (Flights::new(1), Upstream::default());
    let (start, end) = upstream.call();
    let mut leader = pin!(flights.join("a", soon(), start));
    assert!(waits(leader.as_mut()).await);
    let (start, _) = upstream.call();
    assert_eq!(flights.join("b", soon(), start).await, Err(Missed::Full));
    let (start, _) = upstream.call();
    let mut follower = pin!(flights.join("a", soon(), start));
    assert!(waits(follower.as_mut()).await);
    end.send(Ok(1)).unwrap();
    assert_eq!((leader.await, follower.await, upstream.calls()), (Ok(Ok(1)), Ok(Ok(1)), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_on_many_threads_share_one_call() {
    let (flights, calls) = (Arc::new(Flights::new(8)), Arc::new(AtomicUsize::new(0)));
    let (end, _) = watch::channel(false);
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let (flights, calls, mut ended) = (Arc::clone(&flights), Arc::clone(&calls), end.subscribe());
            tokio::spawn(async move {
                let call = || async move {
                    calls.fetch_add(1, Ordering::SeqCst);
                    ended.wait_for(|ended| *ended).await.map(|_| 1).unwrap()
                };
                flights.join("a", soon(), call).await
            })
        })
        .collect();
    // All but the leader's call have dropped their subscription once they joined.
    while end.receiver_count() > 1 {
        tokio::task::yield_now().await;
    }
    end.send_replace(true);
    for caller in callers {
        assert_eq!(caller.await.unwrap(), Ok(1));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
