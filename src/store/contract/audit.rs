//! The log of changes as the service meets it: written with its change, paged, bounded.

use super::*;
use crate::store::{AuditEntry, AuditQuery, AuditRow, AuditWrite, Beginner};

on_every_backend!(
    an_entry_stands_with_its_change_or_not_at_all,
    the_oldest_entries_go,
    nobodys_entries_push_out_those_of_others_or_of_administrators,
    a_key_begins_so_many_scopes_and_no_more,
    a_user_begins_so_many_sessions_and_no_more,
);

fn entry(actor: &str, at_ms: i64) -> AuditEntry {
    AuditEntry {
        at_ms,
        actor: actor.to_owned(),
        action: "config.put".to_owned(),
        user: Some(id("u")),
        project: None,
        session: None,
        key: None,
        before: None,
        after: None,
        summary: "{}".to_owned(),
        request_id: Some("r".to_owned()),
    }
}

fn noted(entry: AuditEntry, most: u32) -> WriteNotes {
    WriteNotes { audit: Some(AuditWrite { entry, most }), beginner: None }
}

fn everything() -> AuditQuery {
    AuditQuery {
        user: None,
        project: None,
        sessions: true,
        actor: None,
        action: None,
        since_ms: i64::MIN,
        before: None,
        limit: 100,
    }
}

fn actors(rows: &[AuditRow]) -> Vec<&str> {
    rows.iter().map(|row| row.entry.actor.as_str()).collect()
}

async fn an_entry_stands_with_its_change_or_not_at_all(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let notes = noted(entry("a", 5), 100);
    let write = ConfigWrite { notes: notes.clone(), ..config("{\"x\":1}", Some(0)) };
    store.write_config(&user("u"), write.clone()).await.unwrap();
    assert!(matches!(store.write_config(&user("u"), write).await, Err(StoreError::Conflict)));
    let gone = ConfigWrite { notes: notes.clone(), ..deletion() };
    store.write_config(&user("u"), gone.clone()).await.unwrap();
    // Nothing is there to delete any more.
    store.write_config(&user("u"), gone).await.unwrap();
    let stale = CatalogWrite { notes, ..catalog("other", "v1", &[], vec![]) };
    assert!(store.write_catalog(&user("u"), stale).await.is_err());
    let key = session("u", None, "s");
    let audit = notes_of_session(&key);
    assert!(!store.delete_session(&key, Some(audit.clone())).await.unwrap());
    store.write_session(SessionWrite::new(key.clone(), 1)).await.unwrap();
    assert!(store.delete_session(&key, Some(audit)).await.unwrap());

    let rows = store.audit(everything()).await.unwrap();
    assert_eq!(actors(&rows), ["s", "a", "a"]);
    let versions = |row: &AuditRow| (row.entry.before.clone().unwrap(), row.entry.after.clone().unwrap());
    assert_eq!(versions(&rows[1]), ("1".to_owned(), "0".to_owned()));
    assert_eq!(versions(&rows[2]), ("0".to_owned(), "1".to_owned()));
    assert_eq!(rows[2].entry.user, Some(id("u")));
    let scopes = store.audit(AuditQuery { sessions: false, ..everything() }).await.unwrap();
    assert_eq!(actors(&scopes), ["a", "a"]);
}

fn notes_of_session(key: &SessionKey) -> AuditWrite {
    AuditWrite { entry: AuditEntry { session: Some(key.session.clone()), ..entry("s", 6) }, most: 100 }
}

async fn the_oldest_entries_go(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    for at in 1..=7_u8 {
        // Of several users, since each may have a share alone.
        let name = format!("u{at}");
        let entry = AuditEntry { user: Some(id(&name)), ..entry(&at.to_string(), i64::from(at) * 10) };
        let notes = noted(entry, 5);
        store.write_config(&user(&name), ConfigWrite { notes, ..config("{}", None) }).await.unwrap();
    }
    assert_eq!(actors(&store.audit(everything()).await.unwrap()), ["7", "6", "5", "4", "3"]);
    assert_eq!(store.expire_audit(50, 1).await.unwrap(), 1);
    assert_eq!(store.expire_audit(50, 10).await.unwrap(), 1);
    let left = store.audit(everything()).await.unwrap();
    assert_eq!(actors(&left), ["7", "6", "5"]);
    let page = store.audit(AuditQuery { before: Some(left[0].id), limit: 1, ..everything() }).await.unwrap();
    assert_eq!(page, left[1..2]);
    let since = store.audit(AuditQuery { since_ms: 60, ..everything() }).await.unwrap();
    assert_eq!(actors(&since), ["7", "6"]);
    for (query, count) in [
        (AuditQuery { user: Some(id("u6")), actor: Some("6".to_owned()), ..everything() }, 1),
        (AuditQuery { action: Some("config.put".to_owned()), ..everything() }, 3),
        (AuditQuery { action: Some("config".to_owned()), ..everything() }, 0),
        (AuditQuery { project: Some(id("u")), ..everything() }, 0),
        (AuditQuery { user: Some(id("u6")), project: Some(id("p")), ..everything() }, 0),
    ] {
        assert_eq!(store.audit(query).await.unwrap().len(), count);
    }
}

async fn nobodys_entries_push_out_those_of_others_or_of_administrators(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let write = async |name: &str, action: &str, at: i64| {
        let entry = AuditEntry { user: Some(id(name)), action: action.to_owned(), ..entry("k", at) };
        let notes = noted(entry, 20);
        store.write_config(&user(name), ConfigWrite { notes, ..config("{}", None) }).await.unwrap();
    };
    write("quiet", "config.put", 1).await;
    write("quiet", "tool.approve", 2).await;
    for at in 3..100 {
        write("busy", "config.put", at).await;
    }
    let left = store.audit(everything()).await.unwrap();
    let of = |name: &str| left.iter().filter(|row| row.entry.user == Some(id(name))).count();
    assert!((2..=4).contains(&of("busy")) && of("quiet") == 2, "{left:?}");
    // Those of administrators have their own number.
    for at in 100..125 {
        write("quiet", "tool.reject", at).await;
    }
    let left = store.audit(AuditQuery { limit: 200, ..everything() }).await.unwrap();
    let rejected = left.iter().filter(|row| row.entry.action == "tool.reject").count();
    assert_eq!((rejected, left.iter().any(|row| row.entry.action == "tool.approve")), (20, false));
}

async fn a_key_begins_so_many_scopes_and_no_more(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let of =
        |key: u8| WriteNotes { beginner: Some(Beginner { key: KeyId::new([key; 8]), most: 2 }), audit: None };
    let put = async |scope: &str, key| {
        store.write_config(&user(scope), ConfigWrite { notes: of(key), ..config("{}", None) }).await
    };
    put("a", 1).await.unwrap();
    put("a", 1).await.unwrap();
    let upload = CatalogWrite { notes: of(1), ..catalog("", "v", &[], vec![]) };
    store.write_catalog(&user("b"), upload.clone()).await.unwrap();
    assert!(matches!(put("c", 1).await, Err(StoreError::TooMany)));
    assert!(matches!(store.write_catalog(&user("c"), upload).await, Err(StoreError::TooMany)));
    put("a", 1).await.unwrap();
    put("c", 2).await.unwrap();
    put("c", 1).await.unwrap();
    assert_eq!(store.scope(&user("d")).await.unwrap(), ScopeRow::default());
}

async fn a_user_begins_so_many_sessions_and_no_more(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let begin = |key: &SessionKey| {
        store.write_session(SessionWrite { most: Some(2), ..SessionWrite::new(key.clone(), 1) })
    };
    let keys = [session("u", None, "a"), session("u", Some("p"), "a"), session("u", None, "b")];
    begin(&keys[0]).await.unwrap();
    begin(&keys[1]).await.unwrap();
    assert!(matches!(begin(&keys[2]).await, Err(StoreError::TooMany)));
    begin(&keys[0]).await.unwrap();
    begin(&session("w", None, "b")).await.unwrap();
    store.delete_session(&keys[1], None).await.unwrap();
    begin(&keys[2]).await.unwrap();
}
