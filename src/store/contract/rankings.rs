//! Rankings that processes share.

use super::*;

on_every_backend!(rankings_are_kept_by_owner_and_call_for_a_while,);

async fn rankings_are_kept_by_owner_and_call_for_a_while(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = |owner: &str, call: &str| RankingKey {
        owner: Digest::of(owner.as_bytes()),
        call: Digest::of(call.as_bytes()),
    };
    let put = async |key: RankingKey, body: &str, now_ms| {
        store.write_ranking(key, body.to_owned(), now_ms, 2).await.unwrap();
    };
    put(key("a", "1"), "old", 100).await;
    put(key("a", "1"), "new", 200).await;
    put(key("b", "1"), "b", 50).await;
    let get = async |key: RankingKey, since_ms| store.ranking(&key, since_ms).await.unwrap();
    assert_eq!(get(key("a", "1"), 200).await.as_deref(), Some("new"));
    assert_eq!(get(key("a", "1"), 201).await, None, "too old");
    assert_eq!(get(key("a", "2"), 0).await, None);
    put(key("a", "2"), "second", 300).await;
    put(key("a", "3"), "third", 301).await;
    assert_eq!(get(key("a", "1"), 0).await, None, "two of an owner are left");
    assert_eq!(get(key("b", "1"), 0).await.as_deref(), Some("b"), "another's stays");
    assert_eq!(store.expire_rankings(300, 10).await.unwrap(), 1);
    assert_eq!(get(key("b", "1"), 0).await, None);
    store.forget_rankings(key("a", "").owner).await.unwrap();
    assert_eq!((get(key("a", "2"), 0).await, get(key("a", "3"), 0).await), (None, None));
}
