//! What every [`Store`] does, as one suite. It uses the trait only, apart from [`Fixture`]. Each part
//! names its tests at its head: they run on every backend.

/// Makes of functions that take a [`Backend`] tests on each of them.
macro_rules! on_every_backend {
    ($($name:ident,)*) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(super::Backend::Sqlite).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $name() {
                    if crate::store::contract::has_postgres() {
                        super::$name(super::Backend::Postgres).await;
                    }
                }
            )*
        }
    };
}

mod audit;
mod backend;
mod keys;
mod listing_bases;
mod mcp_servers;
mod rankings;
mod reviews;
mod secrets;
mod sessions;
mod setup;
mod usage;
mod vector_claims;
mod warm_model;

use std::task::{Context, Waker};

use secrecy::ExposeSecret;

use super::*;
use crate::core::id::SessionKey;
use backend::{Backend, Fixture};
pub(super) use backend::{has_postgres, new_database};

on_every_backend!(
    what_was_never_written_reads_as_empty,
    a_config_revision_never_comes_back,
    a_renewal_is_counted_and_changes_nothing_else,
    of_writers_with_the_same_revision_one_wins,
    secrets_are_kept_replaced_cleared_and_go_with_their_config,
    a_catalog_changes_as_a_whole_and_only_from_the_version_it_was_read_at,
    a_tool_keeps_when_it_came_and_who_brought_what_it_is,
    the_largest_catalog_comes_back_byte_for_byte,
    inline_catalogs_belong_to_one_user_and_expire_with_their_tools,
    vectors_are_kept_by_scope_space_and_text,
    vectors_in_use_never_expire,
    a_caller_that_goes_away_does_not_cancel_its_write,
    a_closed_store_says_so,
    meta_values_are_settled_by_the_first_write,
);

fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

fn user(text: &str) -> Scope {
    Scope::User(id(text))
}

fn session(user: &str, project: Option<&str>, session: &str) -> SessionKey {
    SessionKey { user: id(user), project: project.map(id), session: id(session) }
}

fn config(text: &str, expected: Option<i64>) -> ConfigWrite {
    ConfigWrite {
        config: Some(text.to_owned()),
        expected_raw_revision: expected,
        secrets: Vec::new(),
        now_ms: 1,
        forget_missed_queries: false,
        notes: WriteNotes::default(),
    }
}

fn deletion() -> ConfigWrite {
    ConfigWrite { config: None, ..config("", None) }
}

fn tool(group: &str, name: &str, body: &str) -> ToolRow {
    ToolRow {
        group: group.to_owned(),
        name: name.to_owned(),
        body: body.into(),
        digest: format!("digest of {body}"),
        tokens: "[1,2]".to_owned(),
    }
}

fn catalog(expected: &str, new: &str, remove: &[(&str, &str)], upsert: Vec<ToolRow>) -> CatalogWrite {
    CatalogWrite {
        expected_version: expected.to_owned(),
        new_version: new.to_owned(),
        remove: remove.iter().map(|&(group, name)| ToolKey::new(group, name)).collect(),
        upsert,
        reviews: ReviewWrite::default(),
        by: "tester".to_owned(),
        now_ms: 1,
        notes: WriteNotes::default(),
    }
}

fn warm(name: &str, first_seq: i64, last_used_ms: i64) -> WarmRow {
    WarmRow { tool: ToolKey::new("g", name), first_seq, last_used_ms, pinned: false, pending: false }
}

/// Of a session that was begun at a time.
fn touch((key, created_at_ms): (&SessionKey, i64), last_seen_ms: i64, warm: &[(&str, i64)]) -> SessionTouch {
    let warm =
        warm.iter().map(|&(name, last_used_ms)| WarmTouch { tool: ToolKey::new("g", name), last_used_ms });
    let counts = SessionCounts::default();
    SessionTouch { key: key.clone(), created_at_ms, last_seen_ms, counts, warm: warm.collect() }
}

async fn what_was_never_written_reads_as_empty(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    assert_eq!(store.scope(&user("u")).await.unwrap(), ScopeRow::default());
    assert_eq!(store.catalog(&CatalogOwner::Scope(user("u"))).await.unwrap(), CatalogRows::default());
    assert_eq!(store.session(&session("u", None, "s")).await.unwrap(), None);
    assert_eq!(store.meta("k").await.unwrap(), None);
    store.health().await.unwrap();
}

async fn a_renewal_is_counted_and_changes_nothing_else(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    assert_eq!(store.renew_scope(&user("u")).await.unwrap(), ScopeRow::default());
    let written = store.write_config(&user("u"), config("{\"a\":1}", None)).await.unwrap();
    let renewed = store.renew_scope(&user("u")).await.unwrap();
    assert_eq!(renewed, ScopeRow { renewals: 1, ..written });
    assert_eq!(store.scope(&user("u")).await.unwrap(), renewed);
    let deleted = store.write_config(&user("u"), deletion()).await.unwrap();
    assert_eq!(deleted.renewals, 1, "it never goes back");
}

async fn a_config_revision_never_comes_back(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let u = user("u");
    let untouched = store.write_config(&u, deletion()).await.unwrap();
    assert_eq!(untouched, ScopeRow::default(), "deleting what is not written changes nothing");
    let first = store.write_config(&u, config("{\"a\": 1}", Some(0))).await.unwrap();
    assert_eq!((first.config.as_str(), first.config_revision, first.raw_revision), ("{\"a\": 1}", 1, 1));
    let stale = store.write_config(&u, config("{}", Some(0))).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    let stale = store.write_config(&u, ConfigWrite { expected_raw_revision: Some(7), ..deletion() }).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    assert_eq!(store.scope(&u).await.unwrap(), first, "a conflict changes nothing");

    let gone = store.write_config(&u, deletion()).await.unwrap();
    assert_eq!((gone.config.as_str(), gone.config_revision, gone.raw_revision), ("{}", 0, 2));
    assert_eq!(store.write_config(&u, deletion()).await.unwrap().raw_revision, 2);
    let again = store.write_config(&u, config("{}", Some(2))).await.unwrap();
    assert_eq!((again.config_revision, again.raw_revision), (3, 3));
    assert_eq!(store.scope(&Scope::Project(id("u"))).await.unwrap(), ScopeRow::default());
}

async fn of_writers_with_the_same_revision_one_wins(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let u = user("u");
    let writes = (0..20).map(|_| store.write_config(&u, config("{}", Some(0))));
    let answers = futures_util::future::join_all(writes).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(store.scope(&u).await.unwrap().raw_revision, 1);
}

async fn secrets_are_kept_replaced_cleared_and_go_with_their_config(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = MasterKey::from_setting(&"5a".repeat(32)).unwrap();
    let u = user("u");
    let set = |name: &str, text: &str| {
        let sealed = SealedSecret {
            origin: "https://a.example:443".to_owned(),
            last4: None,
            bytes: key.seal(&secret_aad(&u, name), text).unwrap(),
        };
        SecretChange { name: name.to_owned(), action: SecretAction::Set(sealed) }
    };
    let write = |secrets| ConfigWrite { secrets, ..config("{}", None) };
    store.write_config(&u, write(vec![set("b", "one"), set("a", "two")])).await.unwrap();
    let row = store.write_config(&u, write(vec![set("b", "three")])).await.unwrap();
    assert_eq!(row, store.scope(&u).await.unwrap());
    let opened: Vec<_> = row
        .secrets
        .iter()
        .map(|secret| {
            let text = key.open(&secret_aad(&u, &secret.name), &secret.sealed.bytes).unwrap();
            (secret.name.as_str(), text.expose_secret().to_owned())
        })
        .collect();
    assert_eq!(opened, [("a", "two".to_owned()), ("b", "three".to_owned())]);
    assert_eq!(row.secrets[0].sealed.origin, "https://a.example:443");

    let clear = SecretChange { name: "a".to_owned(), action: SecretAction::Clear };
    let row = store.write_config(&u, write(vec![clear])).await.unwrap();
    assert_eq!(row.secrets.len(), 1);
    assert!(store.write_config(&u, deletion()).await.unwrap().secrets.is_empty());
    assert!(store.write_config(&u, write(vec![])).await.unwrap().secrets.is_empty());
}

async fn a_catalog_changes_as_a_whole_and_only_from_the_version_it_was_read_at(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let (u, owner) = (user("u"), CatalogOwner::Scope(user("u")));
    store.write_config(&u, config("{\"k\":1}", None)).await.unwrap();
    let tools = vec![tool("b", "x", "1"), tool("a", "y", "2"), tool("a", "Z", "3"), tool("a", "é", "4")];
    store.write_catalog(&u, catalog("", "v1", &[], tools)).await.unwrap();
    let rows = store.catalog(&owner).await.unwrap();
    let names: Vec<_> = rows.tools.iter().map(|row| (row.group.as_str(), row.name.as_str())).collect();
    assert_eq!(names, [("a", "Z"), ("a", "y"), ("a", "é"), ("b", "x")], "ordered as bytes");

    let stale = store.write_catalog(&u, catalog("", "v2", &[("a", "y")], vec![])).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    assert_eq!(store.catalog(&owner).await.unwrap(), rows);

    let change = catalog("v1", "v2", &[("a", "y"), ("b", "x"), ("no", "no")], vec![tool("b", "x", "new")]);
    store.write_catalog(&u, change).await.unwrap();
    let rows = store.catalog(&owner).await.unwrap();
    assert_eq!(rows.version, "v2");
    assert_eq!(rows.tools, [tool("a", "Z", "3"), tool("a", "é", "4"), tool("b", "x", "new")]);
    let scope = store.scope(&u).await.unwrap();
    assert_eq!((scope.catalog_version.as_str(), scope.config.as_str()), ("v2", "{\"k\":1}"));
    assert_eq!(scope.raw_revision, 1, "a catalog write is no config write");
    assert_eq!(scope.writes, 3, "and a write of the scope all the same");

    store.write_catalog(&u, catalog("v2", "", &[], vec![])).await.unwrap();
    assert_eq!(store.catalog(&owner).await.unwrap(), CatalogRows::default());
}

async fn a_tool_keeps_when_it_came_and_who_brought_what_it_is(on: Backend) {
    let fixture = Fixture::new(on).await;
    let u = user("u");
    let write = |expected: &str, new: &str, by: &str, now_ms: i64, tools| CatalogWrite {
        by: by.to_owned(),
        now_ms,
        ..catalog(expected, new, &[], tools)
    };
    let (same, old, new) = (tool("g", "same", "1"), tool("g", "x", "1"), tool("g", "x", "2"));
    fixture.store.write_catalog(&u, write("", "v1", "ann", 10, vec![same.clone(), old])).await.unwrap();
    fixture.store.write_catalog(&u, write("v1", "v2", "bob", 20, vec![same, new.clone()])).await.unwrap();
    let fixture = fixture.reopen().await;
    let read = async |name: &str| fixture.store.provenance(&u, &ToolKey::new("g", name)).await.unwrap();
    let told = |found: Option<Provenance>| {
        found.map(|found| (found.first_seen_ms, found.changed_at_ms, found.uploaded_by))
    };
    assert_eq!(told(read("same").await), Some((10, 10, "ann".to_owned())));
    assert_eq!(read("x").await.map(|found| found.digest), Some(new.digest.clone()));
    assert_eq!(told(read("x").await), Some((10, 20, "bob".to_owned())));
    assert_eq!(read("no").await, None);
    let elsewhere = fixture.store.provenance(&user("v"), &ToolKey::new("g", "x")).await.unwrap();
    assert_eq!(elsewhere, None);
    // Gone and come back is come anew.
    let remove = vec![ToolKey::new("g", "x")];
    fixture
        .store
        .write_catalog(&u, CatalogWrite { remove, ..catalog("v2", "v3", &[], vec![]) })
        .await
        .unwrap();
    fixture.store.write_catalog(&u, write("v3", "v4", "cy", 30, vec![new])).await.unwrap();
    assert_eq!(told(read("x").await), Some((30, 30, "cy".to_owned())));
}

async fn the_largest_catalog_comes_back_byte_for_byte(on: Backend) {
    let fixture = Fixture::new(on).await;
    let tools: Vec<_> = (0..20_000)
        .map(|number| {
            let text = format!("{{ \"name\":\"t{number}\",\r\n\t\"d\": \"\\u00e9 é 𝄞 ' ; -- $1\"}} ");
            tool(&format!("g{}", number % 7), &format!("t{number:05}"), &text)
        })
        .collect();
    fixture.store.write_catalog(&user("u"), catalog("", "v1", &[], tools.clone())).await.unwrap();
    let fixture = fixture.reopen().await;
    let rows = fixture.store.catalog(&CatalogOwner::Scope(user("u"))).await.unwrap();
    let mut sorted = tools;
    sorted.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    assert!(rows.tools == sorted);

    let remove = sorted.iter().map(|row| ToolKey::new(&row.group, &row.name)).skip(1).collect();
    let write = CatalogWrite { remove, ..catalog("v1", "v2", &[], vec![]) };
    fixture.store.write_catalog(&user("u"), write).await.unwrap();
    let rows = fixture.store.catalog(&CatalogOwner::Scope(user("u"))).await.unwrap();
    assert_eq!(rows.tools, sorted[..1]);
}

async fn inline_catalogs_belong_to_one_user_and_expire_with_their_tools(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let key = |user: &str, reference: &str| InlineKey { user: id(user), reference: reference.to_owned() };
    let write = |key: InlineKey, body: &str, now_ms| InlineWrite {
        key,
        version: "v".to_owned(),
        tools: vec![tool("g", "t", body)],
        now_ms,
    };
    store.write_inline(write(key("u", "r1"), "one", 10)).await.unwrap();
    store.write_inline(write(key("u", "r2"), "two", 20)).await.unwrap();
    store.write_inline(write(key("w", "r2"), "three", 30)).await.unwrap();
    assert_eq!(store.inline_catalog(&key("w", "r1")).await.unwrap(), None);
    assert_eq!(store.inline_catalog(&key("u", "r1")).await.unwrap().as_deref(), Some("v"));
    let owner = CatalogOwner::Inline(key("u", "r2"));
    let rows = store.catalog(&owner).await.unwrap();
    assert_eq!((rows.version.as_str(), rows.tools), ("v", vec![tool("g", "t", "two")]));

    // Written again and touched, both make it younger, never older.
    store.write_inline(write(key("u", "r1"), "other", 40)).await.unwrap();
    let touches = [("u", "r1", 5), ("u", "r2", 50), ("u", "gone", 60)];
    let touches = touches
        .map(|(user, reference, last_used_ms)| InlineTouch { key: key(user, reference), last_used_ms });
    store.touch_inline(touches.into()).await.unwrap();
    assert_eq!(store.inline_catalog(&key("u", "gone")).await.unwrap(), None);

    assert_eq!(store.expire_inline(45, 1).await.unwrap(), [key("w", "r2")]);
    assert_eq!(store.expire_inline(45, 10).await.unwrap(), [key("u", "r1")]);
    assert_eq!(store.catalog(&CatalogOwner::Inline(key("u", "r1"))).await.unwrap(), CatalogRows::default());
    assert_eq!(store.catalog(&owner).await.unwrap().tools.len(), 1);
    store.write_inline(write(key("u", "r1"), "fresh", 70)).await.unwrap();
    let rows = store.catalog(&CatalogOwner::Inline(key("u", "r1"))).await.unwrap();
    assert_eq!(rows.tools, [tool("g", "t", "fresh")]);
}

async fn vectors_are_kept_by_scope_space_and_text(on: Backend) {
    let fixture = Fixture::new(on).await;
    let digest = |text: &str| Digest::of(text.as_bytes());
    let space = |owner: Scope, space: &str| VectorSpace { owner, space: digest(space) };
    let row = |text: &str, vector: &[u8], used_at_ms| VectorRow {
        text: digest(text),
        vector: vector.to_vec(),
        used_at_ms,
    };
    let mine = space(user("u"), "m");
    let many: Vec<VectorRow> = (0..300).map(|at| row(&at.to_string(), &[at as u8, 0, 255], at)).collect();
    fixture.store.write_vectors(&mine, many.clone(), 1_000).await.unwrap();
    fixture.store.write_vectors(&mine, vec![row("7", &[], 7)], 1_000).await.unwrap();
    let fixture = fixture.reopen().await;
    let texts: Vec<Digest> = (5..400).map(|at| digest(&at.to_string())).collect();
    let mut found = fixture.store.vectors(&mine, &texts).await.unwrap();
    found.sort_by_key(|row| row.used_at_ms);
    assert_eq!(found.len(), 295);
    assert_eq!((&found[0], &found[2]), (&many[5], &row("7", &[], 7)));
    for other in [space(user("u"), "n"), space(user("v"), "m"), space(Scope::Project(id("u")), "m")] {
        assert!(fixture.store.vectors(&other, &texts).await.unwrap().is_empty());
    }
    // The oldest go first, and those that were used again stay.
    fixture.store.touch_vectors(&mine, vec![digest("0"), digest("unknown")], 1_000).await.unwrap();
    assert_eq!(fixture.store.expire_vectors(200, 150).await.unwrap(), 150);
    assert_eq!(fixture.store.expire_vectors(200, 150).await.unwrap(), 49);
    let left = fixture.store.vectors(&mine, &[digest("0"), digest("199"), digest("200")]).await.unwrap();
    assert_eq!(left.len(), 2);

    // One owner's room is bounded, in all spaces together; another's is not touched.
    let (next, theirs) = (space(user("u"), "n"), space(user("v"), "m"));
    fixture.store.write_vectors(&theirs, vec![row("0", &[1], 1)], 10).await.unwrap();
    let newer: Vec<VectorRow> = (0..9).map(|at| row(&at.to_string(), &[2], 2_000 + at)).collect();
    fixture.store.write_vectors(&next, newer, 10).await.unwrap();
    let all: Vec<Digest> = (0..400).map(|at| digest(&at.to_string())).collect();
    let count = async |space: &VectorSpace| fixture.store.vectors(space, &all).await.unwrap().len();
    assert_eq!((count(&mine).await, count(&next).await, count(&theirs).await), (1, 9, 1));
    let kept = fixture.store.vectors(&mine, &[digest("0")]).await.unwrap();
    assert_eq!(kept[0].used_at_ms, 1_000, "what was used last is kept");
    fixture.store.drop_vectors(&next).await.unwrap();
    assert_eq!((count(&mine).await, count(&next).await, count(&theirs).await), (1, 0, 1));
}

async fn vectors_in_use_never_expire(on: Backend) {
    let fixture = Fixture::new(on).await;
    let digest = |at: i64| Digest::of(&at.to_le_bytes());
    let space = VectorSpace { owner: user("u"), space: digest(-1) };
    let rows = (0..300).map(|at| VectorRow { text: digest(at), vector: vec![1], used_at_ms: at });
    fixture.store.write_vectors(&space, rows.collect(), 1_000).await.unwrap();
    // More than fit into one step.
    fixture.store.touch_vectors(&space, (0..299).map(digest).collect(), 5_000).await.unwrap();
    assert_eq!(fixture.store.expire_vectors(5_000, 500).await.unwrap(), 1);
    let texts: Vec<Digest> = (0..300).map(digest).collect();
    assert_eq!(fixture.store.vectors(&space, &texts).await.unwrap().len(), 299);
}

async fn a_caller_that_goes_away_does_not_cancel_its_write(on: Backend) {
    let fixture = Fixture::new(on).await;
    let key = session("u", None, "s");
    let write = SessionWrite { upsert: vec![warm("a", 1, 1)], ..SessionWrite::new(key.clone(), 1) };
    let mut given_up = fixture.store.write_session(write);
    assert!(given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(given_up);
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.session(&key).await.unwrap().unwrap().warm, [warm("a", 1, 1)]);
}

async fn a_closed_store_says_so(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert!(matches!(store.health().await, Err(StoreError::Closed)));
    assert!(matches!(store.scope(&user("u")).await, Err(StoreError::Closed)));
    let write = store.write_session(SessionWrite::new(session("u", None, "s"), 1)).await;
    assert!(matches!(write, Err(StoreError::Closed)));
}

async fn meta_values_are_settled_by_the_first_write(on: Backend) {
    let fixture = Fixture::new(on).await;
    assert_eq!(fixture.store.init_meta("k", "first".to_owned()).await.unwrap(), "first");
    assert_eq!(fixture.store.init_meta("k", "second".to_owned()).await.unwrap(), "first");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.meta("k").await.unwrap().as_deref(), Some("first"));
}
