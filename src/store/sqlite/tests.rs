use std::path::PathBuf;

use super::*;
use crate::store::{Store as _, StoreError};

async fn open(file: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open_with(file, SqliteOptions { check: Check::Quick, max_bytes: None }, |_| {}).await
}

async fn connect(file: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(file).connect().await.unwrap()
}

#[tokio::test]
async fn a_newer_or_reworked_schema_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.db");
    open(&file).await.unwrap().close().await.unwrap();
    open(&file).await.unwrap().close().await.unwrap();

    let mut connection = connect(&file).await;
    let later = "CREATE TABLE later (id BIGINT)";
    let newer = [MIGRATIONS, &[(99, "later", later)]].concat();
    migrate(&mut connection, &newer).await.unwrap();
    let error = open(&file).await.unwrap_err();
    let last = MIGRATIONS[MIGRATIONS.len() - 1].0;
    assert!(matches!(error, OpenError::NewerSchema { found: 99, known } if known == last), "{error}");

    let mut reworked = newer;
    reworked[0].2 = "CREATE TABLE other (id BIGINT)";
    let error = migrate(&mut connection, &reworked).await.unwrap_err();
    assert!(matches!(error, OpenError::ForeignSchema(1)), "{error}");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.db");
    File::create(&file).unwrap();
    let mut connection = connect(&file).await;
    let broken = [(1, "good", "CREATE TABLE good (id BIGINT)"), (2, "bad", "CREATE TABLE bad (")];
    assert!(matches!(migrate(&mut connection, &broken).await, Err(OpenError::Migrate(_))));
    drop(connection);
    let store = open(&file).await.unwrap();
    let tables: Vec<(String,)> = sqlx::query_as("SELECT name FROM sqlite_master WHERE name = 'good'")
        .fetch_all(&store.readers.pool)
        .await
        .unwrap();
    assert!(tables.is_empty());
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_migration_leaves_the_old_schema_with_its_data() {
    let directory = tempfile::tempdir().unwrap();
    let (file, left) = (directory.path().join("t.db"), directory.path().join("left.db"));
    File::create(&file).unwrap();
    let options = SqliteConnectOptions::new().filename(&file).journal_mode(SqliteJournalMode::Wal);
    let mut connection = options.connect().await.unwrap();
    migrate(&mut connection, &MIGRATIONS[..1]).await.unwrap();
    sqlx::raw_sql("INSERT INTO meta VALUES ('kept', 'yes')").execute(&mut connection).await.unwrap();
    // Pages of the transaction reach the log long before its end.
    sqlx::raw_sql("PRAGMA cache_size = 1").execute(&mut connection).await.unwrap();
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
    for (_, _, text) in &MIGRATIONS[1..] {
        sqlx::raw_sql(*text).execute(&mut *transaction).await.unwrap();
    }
    sqlx::raw_sql("UPDATE meta SET value = 'half'; CREATE TABLE half AS SELECT randomblob(40000)")
        .execute(&mut *transaction)
        .await
        .unwrap();
    // What a kill leaves: the files as they are now.
    let log = |file: &Path| PathBuf::from(format!("{}-wal", file.display()));
    std::fs::copy(&file, &left).unwrap();
    assert!(std::fs::copy(log(&file), log(&left)).unwrap() > 40_000, "the transaction is in the log");
    transaction.rollback().await.unwrap();

    let store = open(&left).await.unwrap();
    assert_eq!(store.meta("kept").await.unwrap().as_deref(), Some("yes"));
    let half = sqlx::query("SELECT 1 FROM half").fetch_optional(&store.readers.pool).await;
    assert!(half.is_err(), "nothing of it is left");
    store.init_meta("later", "works".to_owned()).await.unwrap();
}

#[tokio::test]
async fn a_file_grows_to_its_bound_and_no_further() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.db");
    let options = SqliteOptions { check: Check::Full, max_bytes: Some(300_000) };
    let store = SqliteStore::open_with(&file, options, |_| {}).await.unwrap();
    let mut written = 0;
    let refused = loop {
        match store.init_meta(&format!("key {written}"), "x".repeat(20_000)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Full), "{refused:?}");
    assert!(written > 0);
    store.close().await.unwrap();
    assert!(file.metadata().unwrap().len() <= 300_000);
    let store = open(&file).await.unwrap();
    for at in 0..written {
        assert_eq!(store.meta(&format!("key {at}")).await.unwrap().map(|value| value.len()), Some(20_000));
    }
    store.init_meta("more", "x".repeat(20_000)).await.unwrap();
}

#[tokio::test]
async fn processes_that_open_a_new_file_at_once_all_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.db");
    let stores = futures_util::future::join_all((0..4).map(|_| open(&file))).await;
    for store in stores {
        store.unwrap().health().await.unwrap();
    }
}

#[tokio::test]
async fn readers_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("t.db")).await.unwrap();
    let write = sqlx::query("INSERT INTO meta (key, value) VALUES ('a', 'b')").execute(&store.readers.pool);
    assert!(write.await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_private_and_one_is_left_after_closing() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("t.db")).await.unwrap();
    store.init_meta("a", "b".to_owned()).await.unwrap();
    let files = || std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap);
    assert!(files().count() > 1, "a write-ahead log is in use");
    for file in files() {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
    store.close().await.unwrap();
    assert_eq!(files().count(), 1);
}

#[tokio::test]
async fn what_is_no_database_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.db");
    std::fs::write(&file, "just a text that is long enough to be looked at as a header").unwrap();
    assert!(matches!(open(&file).await, Err(OpenError::NoDatabase(_))));
    let missing = directory.path().join("missing/t.db");
    assert!(matches!(open(&missing).await, Err(OpenError::File(..))));
}
