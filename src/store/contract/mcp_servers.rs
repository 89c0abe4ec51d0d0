//! MCP servers of scopes: with their secrets, when they are due, and apart from the secrets of a config.

use super::*;
use crate::store::{McpServerRow, McpServerWrite, McpSyncNote, SealedSecret, SecretAction, SecretChange};

on_every_backend!(
    servers_are_kept_with_their_secrets,
    a_config_goes_without_the_secrets_of_servers,
    a_scope_has_so_many_servers,
    what_is_due_comes_first_and_a_note_is_of_one_version,
    some_are_watched,
);

fn sealed(text: &str) -> SealedSecret {
    SealedSecret { origin: "https://h:443".to_owned(), last4: None, bytes: text.as_bytes().to_vec() }
}

fn server(name: &str, next: i64) -> McpServerWrite {
    McpServerWrite {
        name: name.to_owned(),
        spec: format!("{{\"of\":\"{name}\"}}"),
        secret: Some(SecretAction::Set(sealed(name))),
        watched: false,
        next_sync_at_ms: next,
        most: 3,
        now_ms: 10,
        notes: WriteNotes::default(),
    }
}

fn names(rows: &[McpServerRow]) -> Vec<&str> {
    rows.iter().map(|row| row.name.as_str()).collect()
}

async fn servers_are_kept_with_their_secrets(on: Backend) {
    let fixture = Fixture::new(on).await;
    for name in ["b", "a"] {
        fixture.store.write_mcp_server(&user("u"), server(name, 0)).await.unwrap();
    }
    fixture.store.write_mcp_server(&Scope::Project(id("u")), server("a", 0)).await.unwrap();
    let Fixture { store, directory: _directory } = fixture.reopen().await;
    let rows = store.mcp_servers(&user("u")).await.unwrap();
    assert_eq!(names(&rows), ["a", "b"]);
    assert_eq!(rows[0].secret, Some(sealed("a")));
    assert_eq!((rows[0].last_sync_at_ms, rows[0].last_status.as_str(), rows[0].tools), (0, "", 0));
    assert_eq!(store.mcp_server(&user("u"), "a").await.unwrap().as_ref(), Some(&rows[0]));
    assert_eq!(store.mcp_server(&user("u"), "c").await.unwrap(), None);
    assert_eq!(store.scope(&user("u")).await.unwrap().secrets, [], "they are none of a config");
    assert_eq!(store.sealed_secrets().await.unwrap().len(), 3, "and sealed anew with all others");

    let kept = McpServerWrite { secret: None, spec: "{}".to_owned(), ..server("a", 5) };
    store.write_mcp_server(&user("u"), kept).await.unwrap();
    let row = store.mcp_server(&user("u"), "a").await.unwrap().unwrap();
    assert_eq!((row.spec.as_str(), row.secret.is_some(), row.next_sync_at_ms), ("{}", true, 5));
    let cleared = McpServerWrite { secret: Some(SecretAction::Clear), ..server("a", 5) };
    store.write_mcp_server(&user("u"), cleared).await.unwrap();
    assert_eq!(store.mcp_server(&user("u"), "a").await.unwrap().unwrap().secret, None);

    assert!(store.delete_mcp_server(&user("u"), "b", None).await.unwrap());
    assert!(!store.delete_mcp_server(&user("u"), "b", None).await.unwrap());
    assert_eq!(names(&store.mcp_servers(&user("u")).await.unwrap()), ["a"]);
    assert_eq!(store.sealed_secrets().await.unwrap().len(), 1);
    assert_eq!(names(&store.mcp_servers(&Scope::Project(id("u"))).await.unwrap()), ["a"]);
}

async fn a_config_goes_without_the_secrets_of_servers(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    store.write_mcp_server(&user("u"), server("a", 0)).await.unwrap();
    let action = SecretAction::Set(sealed("key"));
    let secrets = vec![SecretChange { name: "matcher.api_key".to_owned(), action }];
    store.write_config(&user("u"), ConfigWrite { secrets, ..config("{}", None) }).await.unwrap();
    assert_eq!(store.scope(&user("u")).await.unwrap().secrets.len(), 1);
    store.write_config(&user("u"), deletion()).await.unwrap();
    assert_eq!(store.scope(&user("u")).await.unwrap().secrets, []);
    assert_eq!(store.mcp_server(&user("u"), "a").await.unwrap().unwrap().secret, Some(sealed("a")));
}

async fn a_scope_has_so_many_servers(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for name in ["a", "b", "c", "a"] {
        store.write_mcp_server(&user("u"), server(name, 0)).await.unwrap();
    }
    let more = store.write_mcp_server(&user("u"), server("d", 0)).await;
    assert!(matches!(more, Err(StoreError::TooMany)));
    store.write_mcp_server(&user("v"), server("d", 0)).await.unwrap();
}

async fn what_is_due_comes_first_and_a_note_is_of_one_version(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for (name, next) in [("late", 30), ("never", 0), ("soon", 20)] {
        store.write_mcp_server(&user("u"), server(name, next)).await.unwrap();
    }
    let due = async |now| names(&store.due_mcp_servers(now, 9).await.unwrap()).join(" ");
    assert_eq!((&*due(19).await, &*due(20).await, &*due(99).await), ("", "soon", "soon late"));
    assert_eq!(names(&store.due_mcp_servers(99, 1).await.unwrap()), ["soon"]);

    let before = store.mcp_server(&user("u"), "soon").await.unwrap().unwrap();
    let claim =
        async || store.claim_mcp_server(&user("u"), "soon", before.next_sync_at_ms, 1_000).await.unwrap();
    let claims = [claim().await, claim().await];
    assert_eq!(claims, [true, false], "one takes it");
    let note = |failures, tools| McpSyncNote {
        next_sync_at_ms: 50,
        failures,
        now_ms: 21,
        status: "{\"x\":1}".to_owned(),
        tools,
    };
    store.note_mcp_sync(&user("u"), "soon", before.written_at_ms, note(0, Some(7))).await.unwrap();
    store.note_mcp_sync(&user("u"), "soon", before.written_at_ms, note(2, None)).await.unwrap();
    let row = store.mcp_server(&user("u"), "soon").await.unwrap().unwrap();
    assert_eq!((row.next_sync_at_ms, row.failures, row.last_sync_at_ms, row.tools), (50, 2, 21, 7));
    assert_eq!((row.last_status.as_str(), row.written_at_ms), ("{\"x\":1}", before.written_at_ms));

    // Written again within the same millisecond.
    store.write_mcp_server(&user("u"), server("soon", 0)).await.unwrap();
    let newer = store.mcp_server(&user("u"), "soon").await.unwrap().unwrap();
    assert!(newer.written_at_ms > before.written_at_ms && newer.failures == 0);
    store.note_mcp_sync(&user("u"), "soon", before.written_at_ms, note(5, None)).await.unwrap();
    assert_eq!(store.mcp_server(&user("u"), "soon").await.unwrap().unwrap(), newer);
}

async fn some_are_watched(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for (name, watched) in [("a", true), ("b", false), ("c", true)] {
        let write = McpServerWrite { watched, ..server(name, 0) };
        store.write_mcp_server(&user("u"), write).await.unwrap();
    }
    let seen = async |holder, limit, now_ms| {
        names(&store.watched_mcp_servers(limit, holder, now_ms).await.unwrap()).join(" ")
    };
    assert_eq!((&*seen("x", 9, 1).await, &*seen("x", 1, 1).await), ("a c", "a"));
    // One watches, and another one only when it does not say so again.
    let claim = async |holder, name, now_ms| {
        store.claim_watch(&user("u"), name, holder, now_ms, now_ms + 10).await.unwrap()
    };
    assert_eq!([claim("x", "c", 1).await, claim("y", "c", 11).await], [true, false]);
    assert_eq!((&*seen("x", 9, 2).await, &*seen("y", 9, 2).await), ("c a", "a"));
    assert_eq!(
        [claim("x", "c", 12).await, claim("y", "c", 22).await, claim("y", "c", 23).await],
        [true, false, true]
    );
    assert!(!claim("x", "c", 24).await && !claim("x", "gone", 24).await);
    store.release_watches("x").await.unwrap();
    assert!(!claim("x", "c", 24).await, "what it lost is another's");
    store.release_watches("y").await.unwrap();
    assert!(claim("x", "c", 24).await);
}
