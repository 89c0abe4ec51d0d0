//! Drafts, browsers that are signed in, documents that a config was, and configs with catalogs in one write.

use super::*;

on_every_backend!(
    a_draft_is_written_over_the_one_it_was_made_from_alone,
    a_draft_begins_its_scope_once,
    browsers_are_signed_in_until_they_expire_or_leave,
    a_new_master_key_leaves_neither_draft_keys_nor_browsers,
    the_latest_documents_of_a_config_are_kept,
    a_config_and_a_catalog_are_written_together_or_not_at_all,
);

fn draft(body: &str, expected_revision: i64, now_ms: i64) -> DraftWrite {
    DraftWrite { body: body.to_owned(), sealed: None, expected_revision, now_ms, beginner: None }
}

async fn a_draft_is_written_over_the_one_it_was_made_from_alone(on: Backend) {
    let fixture = Fixture::new(on).await;
    let (u, p) = (user("same"), Scope::Project(id("same")));
    assert_eq!(fixture.store.draft(&u).await.unwrap(), None);
    let sealed = Some(vec![0, 255, 7]);
    let write = DraftWrite { sealed: sealed.clone(), ..draft("{\"é\": 1}", 0, 5) };
    assert_eq!(fixture.store.write_draft(&u, write).await.unwrap(), 1);
    // A second window that began with nothing.
    assert!(matches!(fixture.store.write_draft(&u, draft("{}", 0, 6)).await, Err(StoreError::Conflict)));
    let fixture = fixture.reopen().await;
    let store = &*fixture.store;
    let kept = DraftRow { body: "{\"é\": 1}".to_owned(), sealed, updated_at_ms: 5, revision: 1 };
    assert_eq!(store.draft(&u).await.unwrap(), Some(kept));
    assert_eq!(store.draft(&p).await.unwrap(), None);
    assert_eq!(store.write_draft(&u, draft("two", 1, 7)).await.unwrap(), 2);
    assert!(matches!(store.write_draft(&u, draft("three", 1, 8)).await, Err(StoreError::Conflict)));
    assert_eq!(store.draft(&u).await.unwrap().unwrap().body, "two");

    store.delete_draft(&u).await.unwrap();
    store.delete_draft(&u).await.unwrap();
    assert!(matches!(store.write_draft(&u, draft("late", 2, 9)).await, Err(StoreError::Conflict)));
    for (name, now_ms) in [("a", 10), ("b", 20), ("c", 30)] {
        store.write_draft(&user(name), draft(name, 0, now_ms)).await.unwrap();
    }
    assert_eq!(store.expire_drafts(25, 1).await.unwrap(), 1);
    assert_eq!(store.draft(&user("a")).await.unwrap(), None);
    assert_eq!(
        (store.expire_drafts(25, 9).await.unwrap(), store.expire_drafts(25, 9).await.unwrap()),
        (1, 0)
    );
    assert!(store.draft(&user("c")).await.unwrap().is_some());
}

async fn a_draft_begins_its_scope_once(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let beginner = Some(Beginner { key: "00000000000000aa".parse().unwrap(), most: 1 });
    let begun = |expected| DraftWrite { beginner, ..draft("{}", expected, 1) };
    assert_eq!(store.write_draft(&user("a"), begun(0)).await.unwrap(), 1);
    assert!(matches!(store.write_draft(&user("b"), begun(0)).await, Err(StoreError::TooMany)));
    assert_eq!(store.draft(&user("b")).await.unwrap(), None);
    assert_eq!(store.write_draft(&user("a"), begun(1)).await.unwrap(), 2);
    // It reads as before, and what is written next is its first config.
    assert_eq!(store.scope(&user("a")).await.unwrap(), ScopeRow::default());
    let notes = WriteNotes { beginner, audit: None };
    let written =
        store.write_config(&user("a"), ConfigWrite { notes, ..config("{}", Some(0)) }).await.unwrap();
    assert_eq!((written.config_revision, written.raw_revision), (1, 1));
}

async fn browsers_are_signed_in_until_they_expire_or_leave(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let digest = |name: &str| Digest::of(name.as_bytes());
    let row = |name: &str, expires_at_ms| PageSessionRow {
        digest: digest(name),
        sealed: vec![1, 2],
        expires_at_ms,
    };
    for (name, expires) in [("a", 10), ("b", 20), ("c", 30)] {
        store.begin_page_session(row(name, expires)).await.unwrap();
    }
    assert_eq!(store.page_session(digest("b"), 19).await.unwrap(), Some(row("b", 20)));
    assert_eq!(store.page_session(digest("b"), 20).await.unwrap(), None);
    assert_eq!(store.page_session(digest("nobody"), 0).await.unwrap(), None);
    store.end_page_session(digest("c")).await.unwrap();
    store.end_page_session(digest("c")).await.unwrap();
    assert_eq!(store.page_session(digest("c"), 0).await.unwrap(), None);
    assert_eq!(store.expire_page_sessions(15, 9).await.unwrap(), 1);
    assert_eq!(
        (store.expire_page_sessions(99, 1).await.unwrap(), store.expire_page_sessions(99, 1).await.unwrap()),
        (1, 0)
    );
}

async fn a_new_master_key_leaves_neither_draft_keys_nor_browsers(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let write = DraftWrite { sealed: Some(vec![9]), ..draft("kept", 0, 1) };
    store.write_draft(&user("u"), write).await.unwrap();
    let digest = Digest::of(b"browser");
    store.begin_page_session(PageSessionRow { digest, sealed: vec![9], expires_at_ms: 99 }).await.unwrap();
    store.reseal(Vec::new(), ("k".to_owned(), "v".to_owned())).await.unwrap();
    let left = store.draft(&user("u")).await.unwrap().unwrap();
    assert_eq!((left.body.as_str(), left.sealed), ("kept", None));
    // Who had it open with its key does not put it back.
    assert!(matches!(store.write_draft(&user("u"), draft("back", 1, 2)).await, Err(StoreError::Conflict)));
    assert_eq!(store.page_session(digest, 0).await.unwrap(), None);
}

async fn the_latest_documents_of_a_config_are_kept(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for at in 1..=15 {
        let text = format!("{{\"max_warm_tools\":{at}}}");
        store.write_config(&user("u"), ConfigWrite { now_ms: at, ..config(&text, None) }).await.unwrap();
    }
    store.write_config(&user("other"), config("{}", None)).await.unwrap();
    let versions = store.config_versions(&user("u")).await.unwrap();
    let revisions: Vec<i64> = versions.iter().map(|version| version.revision).collect();
    assert_eq!(revisions, (5..=15).rev().collect::<Vec<i64>>());
    assert_eq!((versions[10].config.as_str(), versions[10].at_ms), ("{\"max_warm_tools\":5}", 5));
    store.write_config(&user("u"), deletion()).await.unwrap();
    assert!(!store.config_versions(&user("u")).await.unwrap().is_empty(), "a deletion can be undone");

    let of = async |after: Option<&Scope>, limit| store.scopes(after, limit).await.unwrap();
    assert_eq!(of(None, 9).await, [user("other"), user("u")]);
    assert_eq!(of(None, 1).await, [user("other")]);
    assert_eq!(of(Some(&user("other")), 9).await, [user("u")]);
}

async fn a_config_and_a_catalog_are_written_together_or_not_at_all(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let both = |expected_config, expected_catalog: &str, new: &str| SetupWrite {
        config: Some(config("{\"core\":[\"a\"]}", Some(expected_config))),
        catalog: Some(catalog(expected_catalog, new, &[], vec![tool("g", "a", "{}")])),
    };
    let row = store.write_setup(&user("u"), both(0, "", "v1")).await.unwrap();
    assert_eq!((row.config.as_str(), row.catalog_version.as_str()), ("{\"core\":[\"a\"]}", "v1"));
    for stale in [both(row.raw_revision, "old", "v2"), both(row.raw_revision + 7, "v1", "v2")] {
        assert!(matches!(store.write_setup(&user("u"), stale).await, Err(StoreError::Conflict)));
        assert_eq!(store.scope(&user("u")).await.unwrap(), row);
    }
    let tools = store.catalog(&CatalogOwner::Scope(user("u"))).await.unwrap().tools;
    assert_eq!(tools, [tool("g", "a", "{}")]);
}
