use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::*;
use crate::rerank::resilience::breaker::{FIRST_OPEN, State};

const WRONG_KEY: Verdict<&str> = Verdict::Configuration { fault: "unauthorized" };

fn key(name: &str) -> BreakerKey {
    BreakerKey::new("https://rerank.example/v1", Digest::of(name.as_bytes()), Some("m"))
}

fn call(breakers: &Breakers<&'static str>, key: BreakerKey, verdict: Verdict<&'static str>, now: Instant) {
    let Admission::Go(ticket) = breakers.admit(key, now) else { panic!("not closed") };
    breakers.report(key, ticket, verdict, now, 0.0);
}

#[test]
fn one_wrong_key_stops_nobody_else() {
    let breakers = Breakers::new(8);
    let now = Instant::now();
    let digest = Digest::of(b"key");
    let keys = [
        BreakerKey::new("https://a.example/v1", digest, None),
        BreakerKey::new("https://a.example/v1", Digest::of(b"other"), None),
        BreakerKey::new("https://a.example/v1?token=x", digest, None),
        BreakerKey::new("https://a.example/v1", digest, Some("")),
        BreakerKey::new("https://a.example/v1", digest, Some("m")),
    ];
    call(&breakers, keys[0], WRONG_KEY, now);
    assert_eq!(breakers.admit(keys[0], now), Admission::Refuse);
    for other in &keys[1..] {
        assert!(matches!(breakers.admit(*other, now), Admission::Go(_)));
        assert_eq!(breakers.status(*other, now).state, State::Closed);
    }
    assert_eq!(breakers.reset(keys[0]).map(|change| change.to), Some(State::Closed));
    assert!(matches!(breakers.admit(keys[0], now), Admission::Go(_)));
}

#[test]
fn failures_add_up_over_calls() {
    let breakers = Breakers::new(8);
    let now = Instant::now();
    for _ in 0..5 {
        call(&breakers, key("a"), Verdict::Failure { fault: "timeout", retry_after: None }, now);
    }
    let status = breakers.status(key("a"), now);
    assert_eq!((status.state, status.failures, status.fault), (State::Open, 5, Some("timeout")));
    assert_eq!(status.retry_in, Some(FIRST_OPEN));
}

#[test]
fn healthy_keys_take_no_room_and_the_rest_is_bounded() {
    let breakers = Breakers::new(2);
    let now = Instant::now();
    for name in 0..100 {
        call(&breakers, key(&name.to_string()), Verdict::Success, now);
    }
    assert_eq!(breakers.lock().len(), 0);
    for name in ["a", "b"] {
        call(&breakers, key(name), WRONG_KEY, now);
    }
    assert_eq!(breakers.admit(key("a"), now), Admission::Refuse);
    call(&breakers, key("c"), WRONG_KEY, now);
    assert_eq!(breakers.lock().len(), 2);
    assert_eq!(breakers.status(key("a"), now).state, State::Open);
    assert_eq!(breakers.status(key("b"), now).state, State::Closed);
}

#[test]
fn of_many_callers_at_once_one_probes() {
    let breakers = Breakers::new(8);
    let now = Instant::now();
    call(&breakers, key("a"), WRONG_KEY, now);
    let later = now + Duration::from_secs(60);
    let barrier = Barrier::new(8);
    let probes: usize = thread::scope(|scope| {
        let ask = || {
            barrier.wait();
            (0..100).filter(|_| matches!(breakers.admit(key("a"), later), Admission::Probe(..))).count()
        };
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(probes, 1);
}

#[test]
fn debug_shows_no_digest() {
    assert_eq!(format!("{:?}", key("a")), "BreakerKey");
}
