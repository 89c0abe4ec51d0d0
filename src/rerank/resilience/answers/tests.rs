use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const URL: &str = "https://rerank.example/v1/rerank";

fn answers() -> Answers<String> {
    Answers::new(1 << 20, HOUR, String::len)
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

#[tokio::test]
async fn an_answer_is_found_by_all_of_its_key_only() {
    let answers = answers();
    let key = |tenant, url, credential, body: &str| {
        answers.key(digest(tenant), url, digest(credential), body.as_bytes())
    };
    answers.insert(key("t", URL, "k", "body"), "answer".to_owned()).await;
    assert_eq!(answers.get(&key("t", URL, "k", "body")).await.as_deref(), Some("answer"));
    for other in [
        key("u", URL, "k", "body"),
        key("t", "https://rerank.example/v1/reran", "k", "kbody"),
        key("t", URL, "l", "body"),
        key("t", URL, "k", "body "),
    ] {
        assert_eq!(answers.get(&other).await, None);
    }
}

#[tokio::test]
async fn invalidating_a_tenant_is_for_all_of_its_answers_and_for_late_ones() {
    let answers = answers();
    let key = |tenant, body: &str| answers.key(digest(tenant), URL, digest("k"), body.as_bytes());
    let (one, two, other) = (key("t", "1"), key("t", "2"), key("u", "1"));
    for key in [one, two, other] {
        answers.insert(key, "old".to_owned()).await;
    }
    answers.invalidate_tenant(digest("t"));
    // A call that was under way.
    answers.insert(one, "late".to_owned()).await;
    assert_eq!(answers.get(&key("t", "1")).await, None);
    assert_eq!(answers.get(&key("t", "2")).await, None);
    assert_eq!(answers.get(&key("u", "1")).await.as_deref(), Some("old"));
    answers.insert(key("t", "1"), "new".to_owned()).await;
    assert_eq!(answers.get(&key("t", "1")).await.as_deref(), Some("new"));
}

#[tokio::test]
async fn size_is_bounded() {
    let answers: Answers<String> = Answers::new(10_000, HOUR, String::len);
    let key = |at: usize| answers.key(digest("t"), URL, digest("k"), &at.to_le_bytes());
    for at in 0..200 {
        answers.insert(key(at), "x".repeat(1_000)).await;
    }
    answers.insert(key(200), "x".repeat(20_000)).await;
    answers.kept.run_pending_tasks().await;
    assert!(answers.bytes() <= 10_000, "{}", answers.bytes());
    assert!((1..10).contains(&answers.entries()), "{}", answers.entries());
    assert_eq!(answers.get(&key(200)).await, None);
}

#[tokio::test]
async fn age_is_bounded() {
    let answers: Answers<String> = Answers::new(1 << 20, Duration::from_millis(1), String::len);
    let key = answers.key(digest("t"), URL, digest("k"), b"body");
    answers.insert(key, "answer".to_owned()).await;
    // Ends as soon as the answer is too old, however slow the machine.
    while answers.get(&key).await.is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn zero_switches_it_off_and_the_longest_ttl_is_taken() {
    for (bytes, ttl) in [(0, HOUR), (1 << 20, Duration::ZERO)] {
        let answers: Answers<String> = Answers::new(bytes, ttl, String::len);
        let key = answers.key(digest("t"), URL, digest("k"), b"body");
        answers.insert(key, "answer".to_owned()).await;
        answers.kept.run_pending_tasks().await;
        assert_eq!(answers.get(&key).await, None);
    }
    let _ = Answers::<String>::new(1, Duration::MAX, String::len);
}

#[test]
fn debug_shows_no_digest() {
    assert_eq!(format!("{:?}", answers().key(digest("t"), URL, digest("k"), b"body")), "AnswerKey");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put { tenant: u8, body: u8 },
    Get { tenant: u8, body: u8 },
    Invalidate { tenant: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let (tenant, body) = (0u8..6, 0u8..3);
    prop_oneof![
        3 => (tenant.clone(), body.clone()).prop_map(|(tenant, body)| Step::Put { tenant, body }),
        4 => (tenant.clone(), body).prop_map(|(tenant, body)| Step::Get { tenant, body }),
        1 => tenant.prop_map(|tenant| Step::Invalidate { tenant }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Also where more tenants are invalidated than are remembered.
    #[test]
    fn a_tenant_gets_its_own_last_answer_or_none(
        remembered in 1usize..4,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers: Answers<(u8, u8, usize)> = Answers::remembering(remembered, 1 << 20, HOUR, |_| 0);
        let key = |tenant: u8, body: u8| answers.key(Digest::of(&[tenant]), URL, digest("k"), &[body]);
        let mut current: HashMap<(u8, u8), (u8, u8, usize)> = HashMap::new();
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put { tenant, body } => {
                    current.insert((tenant, body), (tenant, body, at));
                    runtime.block_on(answers.insert(key(tenant, body), (tenant, body, at)));
                }
                Step::Get { tenant, body } => {
                    let found = runtime.block_on(answers.get(&key(tenant, body)));
                    prop_assert!(found.is_none() || found.as_ref() == current.get(&(tenant, body)));
                }
                Step::Invalidate { tenant } => {
                    current.retain(|(owner, _), _| *owner != tenant);
                    answers.invalidate_tenant(Digest::of(&[tenant]));
                }
            }
        }
    }
}
