//! Keys: what a write answers is what every later read shows.

use super::*;
use crate::core::keys::{KeyDigest, KeyId};

on_every_backend!(
    keys_are_kept_and_changed_in_an_order_that_can_be_followed,
    a_rotation_happens_once_and_as_a_whole,
    keys_are_listed_by_age_touched_and_forgotten,
    the_projects_of_a_users_sessions_are_named_once,
);

fn key_row(at: u8, created_at_ms: i64) -> KeyRow {
    KeyRow {
        id: KeyId::new([at; 8]),
        name: format!("key {at}"),
        digest: KeyDigest::of(&[at]),
        role: "agent".to_owned(),
        bindings: "{\"users\": [\"é*\"]}".to_owned(),
        created_at_ms,
        expires_at_ms: None,
        revoked_at_ms: None,
        last_used_ms: None,
        predecessor: None,
        successor: None,
        revision: 0,
    }
}

fn ids(rows: &[KeyRow]) -> Vec<KeyId> {
    rows.iter().map(|row| row.id).collect()
}

const A: KeyId = KeyId::new([1; 8]);
const B: KeyId = KeyId::new([2; 8]);
const C: KeyId = KeyId::new([3; 8]);

async fn keys_are_kept_and_changed_in_an_order_that_can_be_followed(on: Backend) {
    let fixture = Fixture::new(on).await;
    let store = &*fixture.store;
    assert!(store.key_changes(0).await.unwrap().is_empty() && store.key(A).await.unwrap().is_none());
    // The first one is made once, also when two ask for it.
    let (one, other) = tokio::join!(
        store.insert_key(key_row(1, 10), true, None),
        store.insert_key(key_row(1, 10), true, None)
    );
    assert_ne!(one.unwrap().map(|row| row.id), other.unwrap().map(|row| row.id));
    let second = store
        .insert_key(KeyRow { expires_at_ms: Some(500), ..key_row(2, 10) }, false, None)
        .await
        .unwrap()
        .unwrap();
    assert!(store.insert_key(key_row(2, 11), false, None).await.is_err(), "an id is taken once");

    let fixture = fixture.reopen().await;
    let store = &*fixture.store;
    let stored = store.key(B).await.unwrap().unwrap();
    assert_eq!((stored.name.as_str(), stored.bindings.as_str()), ("key 2", "{\"users\": [\"é*\"]}"));
    assert!(stored.digest.is(&KeyDigest::of(&[2])) && stored.revision == second.revision);
    assert_eq!((stored.expires_at_ms, stored.revoked_at_ms, stored.last_used_ms), (Some(500), None, None));

    let changes = store.key_changes(0).await.unwrap();
    assert_eq!(ids(&changes), [A, B]);
    let read = changes[1].revision;
    assert!(store.key_changes(read).await.unwrap().is_empty());
    let change =
        KeyChange { name: Some("new".to_owned()), expires_at_ms: Some(None), ..KeyChange::default() };
    let changed = store.change_key(B, change).await.unwrap().unwrap();
    assert_eq!((changed.name.as_str(), changed.expires_at_ms), ("new", None));
    assert_eq!(changed.bindings, stored.bindings);
    let rebind = KeyChange { bindings: Some("{}".to_owned()), ..KeyChange::default() };
    let changed = store.change_key(B, rebind).await.unwrap().unwrap();
    assert_eq!((changed.bindings.as_str(), changed.name.as_str()), ("{}", "new"));
    let revoke = |at| KeyChange { revoked_at_ms: Some(at), ..KeyChange::default() };
    store.change_key(A, revoke(70)).await.unwrap();
    let revoked = store.change_key(A, revoke(80)).await.unwrap().unwrap();
    assert_eq!((revoked.revoked_at_ms, revoked.name.as_str()), (Some(70), "key 1"));
    assert_eq!(ids(&store.key_changes(read).await.unwrap()), [B, A], "in the order of their changes");
    assert!(store.change_key(C, revoke(1)).await.unwrap().is_none());
}

async fn a_rotation_happens_once_and_as_a_whole(on: Backend) {
    let fixture = Fixture::new(on).await;
    let store = &*fixture.store;
    store.insert_key(KeyRow { expires_at_ms: Some(1_000), ..key_row(1, 10) }, false, None).await.unwrap();
    let rotation = |old, new, old_expires_at_ms| KeyRotation {
        old,
        old_expires_at_ms,
        now_ms: 100,
        audit: None,
        new: key_row(new, 100),
    };
    let (old, new) = store.rotate_key(rotation(A, 2, 150)).await.unwrap().unwrap();
    assert_eq!((old.expires_at_ms, old.successor, new.predecessor), (Some(150), Some(B), Some(A)));
    assert!(matches!(store.rotate_key(rotation(A, 3, 150)).await, Err(StoreError::Conflict)));
    assert!(store.key(C).await.unwrap().is_none());
    // It never prolongs the old one, and does not wake up one that has ended.
    store.change_key(B, KeyChange { expires_at_ms: Some(Some(120)), ..KeyChange::default() }).await.unwrap();
    let (old, _) = store.rotate_key(rotation(B, 3, 150)).await.unwrap().unwrap();
    assert_eq!(old.expires_at_ms, Some(120));
    store.change_key(C, KeyChange { expires_at_ms: Some(Some(100)), ..KeyChange::default() }).await.unwrap();
    assert!(matches!(store.rotate_key(rotation(C, 4, 150)).await, Err(StoreError::Conflict)));
    assert!(store.rotate_key(rotation(KeyId::new([9; 8]), 4, 150)).await.unwrap().is_none());
    assert_eq!(ids(&store.key_changes(0).await.unwrap()), [A, B, C]);
}

async fn keys_are_listed_by_age_touched_and_forgotten(on: Backend) {
    let fixture = Fixture::new(on).await;
    let store = &*fixture.store;
    for (at, created) in [(3, 10), (1, 20), (2, 20)] {
        store.insert_key(key_row(at, created), false, None).await.unwrap();
    }
    assert_eq!(ids(&store.list_keys(None, 2).await.unwrap()), [C, A]);
    assert_eq!(ids(&store.list_keys(Some((20, A)), 2).await.unwrap()), [B]);

    let read = store.key_changes(0).await.unwrap().last().unwrap().revision;
    let touch = |id, last_used_ms| KeyTouch { id, last_used_ms };
    store.touch_keys(vec![touch(A, 50), touch(KeyId::new([9; 8]), 50)]).await.unwrap();
    store.touch_keys(vec![touch(A, 40), touch(B, 60)]).await.unwrap();
    store.touch_keys(Vec::new()).await.unwrap();
    let used = async |id| store.key(id).await.unwrap().unwrap().last_used_ms;
    assert_eq!((used(A).await, used(B).await, used(C).await), (Some(50), Some(60), None));
    assert!(store.key_changes(read).await.unwrap().is_empty(), "a use is no change");

    store.change_key(A, KeyChange { revoked_at_ms: Some(70), ..KeyChange::default() }).await.unwrap();
    store.change_key(B, KeyChange { expires_at_ms: Some(Some(80)), ..KeyChange::default() }).await.unwrap();
    assert_eq!(store.expire_keys(70, 10).await.unwrap(), 0);
    assert_eq!(store.expire_keys(100, 1).await.unwrap(), 1);
    assert_eq!(store.expire_keys(100, 10).await.unwrap(), 1);
    assert_eq!(ids(&store.list_keys(None, 10).await.unwrap()), [C]);
}

async fn the_projects_of_a_users_sessions_are_named_once(on: Backend) {
    let fixture = Fixture::new(on).await;
    let store = &*fixture.store;
    for (user, project, name) in [
        ("u", None, "a"),
        ("u", Some("p"), "a"),
        ("u", Some("p"), "b"),
        ("u", Some("q"), "a"),
        ("v", Some("r"), "a"),
    ] {
        store.write_session(SessionWrite::new(session(user, project, name), 1)).await.unwrap();
    }
    let mut projects = store.session_projects(&id("u")).await.unwrap();
    projects.sort();
    assert_eq!(projects, [None, Some(id("p")), Some(id("q"))]);
    assert!(store.session_projects(&id("w")).await.unwrap().is_empty());
}
