//! Sessions and their warm sets.

use super::*;

on_every_backend!(
    a_session_keeps_what_a_write_does_not_name,
    a_session_counts_its_writes,
    a_session_is_changed_by_one_that_knows_it,
    sessions_of_one_id_share_nothing_and_start_empty_after_deletion,
    touches_renew_and_never_revive,
    a_session_that_was_seen_meanwhile_is_not_idle,
    a_large_flush_reaches_every_session,
    listing_pages_through_every_session_once,
    idle_sessions_expire_oldest_first,
);

async fn a_session_keeps_what_a_write_does_not_name(on: Backend) {
    let fixture = Fixture::new(on).await;
    let key = session("u", None, "s");
    let first = SessionWrite {
        settings: Some("{\"x\":1}".to_owned()),
        upsert: vec![warm("b", 2, 100), warm("a", 1, 100), warm("c", 3, 100)],
        ..SessionWrite::new(key.clone(), 100)
    };
    fixture.store.write_session(first).await.unwrap();
    let second = SessionWrite {
        remove: vec![ToolKey::new("g", "c")],
        upsert: vec![
            WarmRow { pinned: true, ..warm("a", 9, 50) },
            WarmRow { pending: true, ..warm("d", 4, 90) },
            warm("c", 5, 90),
        ],
        ..SessionWrite::new(key.clone(), 90)
    };
    fixture.store.write_session(second).await.unwrap();

    let fixture = fixture.reopen().await;
    let row = fixture.store.session(&key).await.unwrap().unwrap();
    assert_eq!((row.settings.as_str(), row.counts), ("{\"x\":1}", SessionCounts::default()));
    assert_eq!((row.created_at_ms, row.last_seen_ms), (100, 100), "time does not go back");
    let expected = [
        WarmRow { pinned: true, ..warm("a", 1, 100) },
        warm("b", 2, 100),
        WarmRow { pending: true, ..warm("d", 4, 90) },
        warm("c", 5, 90),
    ];
    assert_eq!(row.warm, expected, "a warm tool keeps its place, one removed and warmed again is last");

    let cleared =
        SessionWrite { clear: true, upsert: vec![warm("z", 1, 1)], ..SessionWrite::new(key.clone(), 200) };
    fixture.store.write_session(cleared).await.unwrap();
    assert_eq!(fixture.store.session(&key).await.unwrap().unwrap().warm, [warm("z", 1, 1)]);
}

async fn a_session_counts_its_writes(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = session("u", Some("p"), "s");
    assert_eq!(store.session_state(&key).await.unwrap(), None);
    assert_eq!(store.write_session(SessionWrite::new(key.clone(), 5)).await.unwrap(), 1);
    let write = SessionWrite { upsert: vec![warm("a", 1, 1)], ..SessionWrite::new(key.clone(), 7) };
    assert_eq!(store.write_session(write).await.unwrap(), 2);
    store.touch_sessions(vec![touch((&key, 5), 9, &[("a", 9)])]).await.unwrap();
    let state = SessionState { created_at_ms: 5, revision: 2, last_seen_ms: 9 };
    assert_eq!(store.session_state(&key).await.unwrap(), Some(state), "a touch is no write");
    assert_eq!(store.session(&key).await.unwrap().unwrap().revision, 2);
}

async fn a_session_is_changed_by_one_that_knows_it(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = session("u", None, "s");
    let write = |expected, name: &str| SessionWrite {
        expected,
        settings: Some(format!("{{\"by\":\"{name}\"}}")),
        clear: true,
        upsert: vec![warm(name, 1, 1)],
        ..SessionWrite::new(key.clone(), 5)
    };
    let row = |created_at_ms, revision| ExpectedSession::Row { created_at_ms, revision };
    let refused = async |expected| {
        let refused = store.write_session(write(expected, "late")).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "{expected:?}: {refused:?}");
    };
    refused(row(5, 1)).await;
    assert_eq!(store.session(&key).await.unwrap(), None, "what is gone is not begun");
    let begin = ExpectedSession::Absent { revision: 7 };
    assert_eq!(store.write_session(write(begin, "first")).await.unwrap(), 7);
    assert_eq!(store.write_session(write(row(5, 7), "second")).await.unwrap(), 8);
    let stored = store.session(&key).await.unwrap();
    for outdated in [row(5, 7), row(5, 9), row(4, 8), begin] {
        refused(outdated).await;
    }
    assert_eq!(store.session(&key).await.unwrap(), stored, "a refused write leaves nothing");
    let stored = stored.unwrap();
    assert_eq!((stored.settings.as_str(), stored.warm), (r#"{"by":"second"}"#, vec![warm("second", 1, 1)]));
}

async fn sessions_of_one_id_share_nothing_and_start_empty_after_deletion(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let keys = [
        session("u", None, "s"),
        session("u", Some("p"), "s"),
        session("w", None, "s"),
        session("w", Some("p"), "s"),
    ];
    for (number, key) in (1..).zip(&keys) {
        let write = SessionWrite { upsert: vec![warm("t", number, 1)], ..SessionWrite::new(key.clone(), 1) };
        store.write_session(write).await.unwrap();
    }
    assert!(store.delete_session(&keys[1], None).await.unwrap());
    assert!(!store.delete_session(&keys[1], None).await.unwrap());
    assert_eq!(store.session(&keys[1]).await.unwrap(), None);
    for (number, key) in (1..).zip(&keys) {
        if number != 2 {
            assert_eq!(store.session(key).await.unwrap().unwrap().warm, [warm("t", number, 1)]);
        }
    }
    store.write_session(SessionWrite::new(keys[1].clone(), 9)).await.unwrap();
    assert!(store.session(&keys[1]).await.unwrap().unwrap().warm.is_empty());
}

async fn touches_renew_and_never_revive(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = session("u", Some("p"), "s");
    let write = SessionWrite {
        upsert: vec![warm("a", 1, 100), warm("b", 2, 100)],
        ..SessionWrite::new(key.clone(), 100)
    };
    store.write_session(write).await.unwrap();
    let gone = session("u", Some("p"), "gone");
    let counts = SessionCounts::of([1, 2, 3, 4, 5, 6, 7, 8]);
    let counted = SessionTouch { counts, ..touch((&key, 100), 150, &[("a", 150), ("no", 150)]) };
    store.touch_sessions(vec![counted, touch((&gone, 100), 150, &[("a", 150)])]).await.unwrap();
    let again = SessionTouch { counts, ..touch((&key, 100), 120, &[("a", 120), ("b", 130)]) };
    store.touch_sessions(vec![again]).await.unwrap();
    store.touch_sessions(vec![]).await.unwrap();
    let row = store.session(&key).await.unwrap().unwrap();
    assert_eq!((row.last_seen_ms, row.counts), (150, SessionCounts::of([2, 4, 6, 8, 10, 12, 14, 16])));
    assert_eq!(row.warm, [warm("a", 1, 150), warm("b", 2, 130)]);
    assert_eq!(store.session(&gone).await.unwrap(), None);
    // What an earlier session of the name did is not of this one.
    let earlier = SessionTouch { counts, ..touch((&key, 99), 900, &[("a", 900)]) };
    store.touch_sessions(vec![earlier]).await.unwrap();
    assert_eq!(store.session(&key).await.unwrap().unwrap(), row);
}

async fn a_session_that_was_seen_meanwhile_is_not_idle(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = session("u", None, "s");
    store.write_session(SessionWrite::new(key.clone(), 100)).await.unwrap();
    assert!(!store.delete_idle_session(&key, 100).await.unwrap());
    assert!(store.session(&key).await.unwrap().is_some());
    assert!(store.delete_idle_session(&key, 101).await.unwrap());
    assert!(!store.delete_idle_session(&key, 101).await.unwrap(), "it is gone");
}

async fn a_large_flush_reaches_every_session(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let keys: Vec<_> = (0..1_500).map(|number| session("u", None, &format!("s{number:04}"))).collect();
    let writes = keys.iter().map(|key| {
        store.write_session(SessionWrite {
            upsert: vec![warm("a", 1, 1)],
            ..SessionWrite::new(key.clone(), 1)
        })
    });
    for answer in futures_util::future::join_all(writes).await {
        answer.unwrap();
    }
    store.touch_sessions(keys.iter().map(|key| touch((key, 1), 7, &[("a", 8)])).collect()).await.unwrap();
    for key in &keys {
        let row = store.session(key).await.unwrap().unwrap();
        assert_eq!((row.last_seen_ms, row.warm), (7, vec![warm("a", 1, 8)]));
    }
}

async fn listing_pages_through_every_session_once(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for project in [None, Some("p"), Some("q")] {
        for name in ["c", "a", "b"] {
            let write = SessionWrite {
                upsert: vec![warm("t", 1, 1)],
                ..SessionWrite::new(session("u", project, name), 5)
            };
            store.write_session(write).await.unwrap();
        }
    }
    store.write_session(SessionWrite::new(session("other", None, "a"), 5)).await.unwrap();
    let pages = async |project: ProjectFilter| {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let query = SessionQuery { user: id("u"), project: project.clone(), after, limit: 2 };
            let page = store.list_sessions(query).await.unwrap();
            let Some(last) = page.last() else { return found };
            assert!(page.len() <= 2 && page.iter().all(|row| row.warm == 1 && row.last_seen_ms == 5));
            after = Some((last.project.clone(), last.session.clone()));
            found.extend(
                page.into_iter()
                    .map(|row| format!("{}/{}", row.project.as_ref().map_or("", Id::as_str), row.session)),
            );
        }
    };
    let all = ["/a", "/b", "/c", "p/a", "p/b", "p/c", "q/a", "q/b", "q/c"];
    assert_eq!(pages(ProjectFilter::Any).await, all);
    assert_eq!(pages(ProjectFilter::Only(None)).await, all[..3]);
    assert_eq!(pages(ProjectFilter::Only(Some(id("p")))).await, all[3..6]);
    assert!(pages(ProjectFilter::Only(Some(id("none")))).await.is_empty());
}

async fn idle_sessions_expire_oldest_first(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for (name, seen) in [("a", 30), ("b", 10), ("c", 20), ("d", 40)] {
        let write = SessionWrite {
            upsert: vec![warm("t", 1, 1)],
            ..SessionWrite::new(session("u", None, name), seen)
        };
        store.write_session(write).await.unwrap();
    }
    assert_eq!(store.expire_sessions(40, 1).await.unwrap(), [session("u", None, "b")]);
    let mut expired = store.expire_sessions(40, 10).await.unwrap();
    expired.sort();
    assert_eq!(expired, [session("u", None, "a"), session("u", None, "c")]);
    assert!(store.expire_sessions(40, 10).await.unwrap().is_empty());
    store.write_session(SessionWrite::new(session("u", None, "a"), 50)).await.unwrap();
    assert!(store.session(&session("u", None, "a")).await.unwrap().unwrap().warm.is_empty());
}
