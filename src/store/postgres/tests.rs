use super::*;
use crate::core::id::{Id, Scope};
use crate::store::Store as _;
use crate::store::contract::{has_postgres, new_database};
use crate::store::{Changes, ConfigWrite, WriteNotes};

#[tokio::test]
async fn texts_are_compared_as_bytes() {
    if !has_postgres() {
        return;
    }
    let mut connection = new_database().await.connect().await.unwrap();
    let others: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns \
         WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' \
         AND table_name <> '_sqlx_migrations'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test]
async fn processes_that_open_a_new_database_at_once_all_succeed() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let mut connection = server.connect().await.unwrap();
    sqlx::raw_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public").execute(&mut connection).await.unwrap();
    let stores = (0..4).map(|_| PostgresStore::connect(&server, |_| {}));
    for store in futures_util::future::join_all(stores).await {
        store.unwrap().health().await.unwrap();
    }
}

async fn cut_all(server: &Server) {
    let mut connection = server.connect().await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
               AND pid <> pg_backend_pid()";
    sqlx::query(cut).execute(&mut connection).await.unwrap();
}

#[tokio::test]
async fn what_one_writes_the_others_hear() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let open = || PostgresStore::connect(&server, |_| {});
    let (one, other) = (open().await.unwrap(), open().await.unwrap());
    for store in [&one, &other] {
        assert!(store.next_changes().await.missed, "what was before it listened");
        assert!(store.hears_changes());
    }
    let scope = |id: &str| Scope::User(Id::parse(id).unwrap());
    let write = async |store: &PostgresStore, id: &str| {
        let write = ConfigWrite {
            config: Some("{}".to_owned()),
            expected_raw_revision: None,
            secrets: Vec::new(),
            now_ms: 1,
            forget_missed_queries: false,
            notes: WriteNotes::default(),
        };
        store.write_config(&scope(id), write).await.unwrap();
    };
    write(&one, "ada").await;
    assert_eq!(other.next_changes().await, Changes { scopes: [scope("ada")].into(), ..Changes::default() });
    write(&other, "bo").await;
    assert_eq!(one.next_changes().await, Changes { scopes: [scope("bo")].into(), ..Changes::default() });
    // A connection that is cut is made again, and what was written meanwhile may be anything.
    let mut connection = server.connect().await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
               AND pid <> pg_backend_pid()";
    sqlx::query(cut).execute(&mut connection).await.unwrap();
    assert!(one.next_changes().await.missed);
    write(&other, "ada").await;
    let heard = one.next_changes().await;
    assert_eq!(heard.scopes, [scope("ada")].into(), "{heard:?}");
}

#[tokio::test]
async fn a_write_waits_for_a_new_connection_when_its_own_was_cut() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let store = PostgresStore::connect(&server, |_| {}).await.unwrap();
    store.init_meta("a", "1".to_owned()).await.unwrap();
    cut_all(&server).await;
    assert_eq!(store.init_meta("b", "2".to_owned()).await.unwrap(), "2");
    assert_eq!(store.init_meta("a", "3".to_owned()).await.unwrap(), "1");
}

#[tokio::test]
async fn a_read_whose_connection_was_cut_is_made_on_another_one() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let store = PostgresStore::connect(&server, |_| {}).await.unwrap();
    store.init_meta("a", "1".to_owned()).await.unwrap();
    for _ in 0..5 {
        // As many as there are connections, and more.
        let reads = || futures_util::future::join_all((0..20).map(|_| store.meta("a")));
        for read in reads().await {
            assert_eq!(read.unwrap().as_deref(), Some("1"));
        }
        cut_all(&server).await;
        for read in reads().await {
            assert_eq!(read.unwrap().as_deref(), Some("1"));
        }
        store.health().await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_missing_is_run_on_what_the_files_before_it_made() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let mut connection = server.connect().await.unwrap();
    sqlx::raw_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public").execute(&mut connection).await.unwrap();
    let (last, before) = MIGRATIONS.split_last().unwrap();
    let mut transaction = connection.begin().await.unwrap();
    schema::update::<Postgres>(&mut transaction, before, schema_text).await.unwrap();
    sqlx::raw_sql("INSERT INTO meta VALUES ('kept', 'yes')").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    let store = PostgresStore::connect(&server, |_| {}).await.unwrap();
    assert_eq!(store.meta("kept").await.unwrap().as_deref(), Some("yes"));
    let newest: (i64,) =
        sqlx::query_as("SELECT max(version) FROM _sqlx_migrations").fetch_one(&mut connection).await.unwrap();
    assert_eq!(newest.0, last.0);
}
