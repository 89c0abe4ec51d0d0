use super::*;
use crate::core::digest::Digest;
use crate::core::id::{Id, Scope, SessionKey};
use crate::core::tool::ToolKey;
use crate::store::contract::{has_postgres, new_database};
use crate::store::{
    CatalogOwner, CatalogWrite, ConfigWrite, ReviewWrite, SessionWrite, Store, ToolRow, VectorRow,
    VectorSpace, WarmRow, WriteNotes,
};

async fn open(place: &Place) -> Box<dyn Store> {
    match place {
        Place::File(file) => Box::new(SqliteStore::open(file, |_| {}).await.unwrap()),
        Place::Server(server) => Box::new(PostgresStore::connect(server, |_| {}).await.unwrap()),
    }
}

#[tokio::test]
async fn every_table_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.db");
    SqliteStore::open(&file, |_| {}).await.unwrap().close().await.unwrap();
    let mut connection = sqlite::connect(&file).await.unwrap();
    let query = sqlx::query_scalar(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'",
    );
    let mut stored: Vec<String> = query.fetch_all(&mut connection).await.unwrap();
    let mut known = TABLES.map(str::to_owned);
    stored.sort();
    known.sort();
    assert_eq!(stored, known);
}

#[tokio::test]
async fn what_a_newer_program_has_expanded_is_for_that_program_to_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (expanded, to) = (folder.path().join("a.db"), folder.path().join("b.db"));
    SqliteStore::open(&expanded, |_| {}).await.unwrap().close().await.unwrap();
    let known = MIGRATIONS[MIGRATIONS.len() - 1].0;
    let expand = format!(
        "ALTER TABLE meta ADD COLUMN more TEXT NOT NULL DEFAULT ''; INSERT INTO _sqlx_migrations \
         (version, description, success, checksum, execution_time) VALUES (99, 'more_from_{known}', 1, x'00', 0)"
    );
    let mut connection = sqlite::connect(&expanded).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(expand)).execute(&mut connection).await.unwrap();
    let error = copy(&Place::File(expanded), &Place::File(to)).await.unwrap_err();
    assert!(matches!(error, CopyError::Newer { found: 99, .. }), "{error}");
}

#[tokio::test]
async fn what_is_there_is_there_after_two_copies() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = vec![Place::File(folder.path().join("a.db"))];
    if has_postgres() {
        places.extend([Place::Server(new_database().await), Place::Server(new_database().await)]);
    }
    places.push(Place::File(folder.path().join("b.db")));
    let scope = Scope::User(Id::parse("ann").unwrap());
    let key = SessionKey { user: Id::parse("ann").unwrap(), project: None, session: Id::parse("s").unwrap() };
    let space = VectorSpace { owner: scope.clone(), space: Digest::of(b"space") };
    let store = open(&places[0]).await;
    let config = ConfigWrite {
        config: Some("{\"a\": 1}".to_owned()),
        expected_raw_revision: None,
        secrets: Vec::new(),
        now_ms: 1,
        forget_missed_queries: false,
        notes: WriteNotes::default(),
    };
    store.write_config(&scope, config).await.unwrap();
    let tool = |at: usize| ToolRow {
        group: "g".to_owned(),
        name: format!("t{at:03}"),
        body: format!("{{ \"é\":\t{at} }}").into(),
        digest: "d".to_owned(),
        tokens: "[]".to_owned(),
    };
    let catalog = CatalogWrite {
        expected_version: String::new(),
        new_version: "v".to_owned(),
        remove: Vec::new(),
        upsert: (0..150).map(tool).collect(),
        reviews: ReviewWrite::default(),
        by: "ann".to_owned(),
        now_ms: 1,
        notes: WriteNotes::default(),
    };
    store.write_catalog(&scope, catalog).await.unwrap();
    let warm = WarmRow {
        tool: ToolKey::new("g", "t001"),
        first_seq: 1,
        last_used_ms: 2,
        pinned: true,
        pending: false,
    };
    store
        .write_session(SessionWrite { upsert: vec![warm], ..SessionWrite::new(key.clone(), 5) })
        .await
        .unwrap();
    let vector = VectorRow { text: Digest::of(b"t"), vector: vec![0, 255, 7], used_at_ms: 3 };
    store.write_vectors(&space, vec![vector.clone()], 10).await.unwrap();
    let (scope_row, session_row) = (store.scope(&scope).await.unwrap(), store.session(&key).await.unwrap());
    let rows = store.catalog(&CatalogOwner::Scope(scope.clone())).await.unwrap();
    store.close().await.unwrap();

    for pair in places.windows(2) {
        // The document of the config that is in force stands among its versions, too.
        assert_eq!(copy(&pair[0], &pair[1]).await.unwrap(), 155);
        assert!(matches!(copy(&pair[0], &pair[1]).await, Err(CopyError::NotEmpty(_))));
        let store = open(&pair[1]).await;
        assert_eq!(store.scope(&scope).await.unwrap(), scope_row);
        assert_eq!(store.session(&key).await.unwrap(), session_row);
        assert_eq!(store.catalog(&CatalogOwner::Scope(scope.clone())).await.unwrap(), rows);
        let vectors = store.vectors(&space, &[vector.text]).await.unwrap();
        assert_eq!(vectors, std::slice::from_ref(&vector));
        store.close().await.unwrap();
    }
}
