use super::*;
use crate::core::id::{Id, Scope};
use crate::store::Store as _;
use crate::store::contract::{has_postgres, new_database};
use crate::store::{Changes, ConfigWrite, StoreError, WriteNotes};

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

struct Panics;

impl<E: Engine> crate::store::writer::Operation<E> for Panics {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, "panics").await?;
        panic!("as a fault of the program does");
    }
}

#[tokio::test]
async fn a_write_that_panics_ends_no_task() {
    if !has_postgres() {
        return;
    }
    let store = PostgresStore::connect(&new_database().await, |_| {}).await.unwrap();
    for _ in 0..WRITERS + 1 {
        assert!(matches!(store.writer.submit(Panics).await, Err(StoreError::Panicked)));
    }
    assert_eq!(store.init_meta("a", "1".to_owned()).await.unwrap(), "1");
}

#[tokio::test]
async fn only_a_server_that_does_not_answer_is_away() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let mut connection = server.connect().await.unwrap();
    let mut failure = async |text: &'static str| {
        sqlx::raw_sql(text).execute(&mut connection).await.map_err(StoreError::from).unwrap_err()
    };
    for text in [
        "SELECT CAST('x' AS BIGINT)",
        "SELECT 1 / 0",
        "INSERT INTO meta VALUES ('a', 'b'), ('a', 'c')",
        "SELECT nothing FROM meta",
    ] {
        let failure = failure(text).await;
        assert!(matches!(failure, StoreError::Refused(_)), "{text}: {failure:?}");
    }
    let late = failure("SET statement_timeout = 1; SELECT pg_sleep(10)").await;
    assert!(matches!(late, StoreError::Busy), "{late:?}");
    let cut = failure("SELECT pg_terminate_backend(pg_backend_pid())").await;
    assert!(matches!(cut, StoreError::Away(_)), "{cut:?}");

    // All connections are in use, and the server answers others.
    let store = PostgresStore::connect(&server, |_| {}).await.unwrap();
    let held = (0..READERS).map(|_| store.readers.pool.acquire());
    let held = futures_util::future::try_join_all(held).await.unwrap();
    let full = store.meta("a").await;
    assert!(matches!(full, Err(StoreError::Busy)), "{full:?}");
    drop(held);
    store.meta("a").await.unwrap();
}

/// Lets connections through to a server, and loses those that there are when it is told to: both ends wait for the other.
struct Network {
    port: u16,
    lost: tokio::sync::watch::Sender<u64>,
}

impl Network {
    async fn to(server: std::net::SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lost = tokio::sync::watch::Sender::new(0);
        let told = lost.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut told = told.subscribe();
                tokio::spawn(async move {
                    let mut far = tokio::net::TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = told.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { port, lost }
    }
}

#[tokio::test]
async fn a_connection_that_the_network_loses_is_given_up_though_the_server_answers_others() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let (port,): (i32,) = sqlx::query_as("SELECT current_setting('port')::int")
        .fetch_one(&mut server.connect().await.unwrap())
        .await
        .unwrap();
    let network = Network::to(([127, 0, 0, 1], u16::try_from(port).unwrap()).into()).await;
    let url = as_asked(&server, Some(network.port)).await;
    let store = PostgresStore::connect(&Server::parse(&url).unwrap(), |_| {}).await.unwrap();
    let writes = async |turn: &str| {
        let all = (0..WRITERS).map(|at| store.init_meta("a", format!("{turn}{at}")));
        futures_util::future::join_all(all).await
    };
    writes("first").await.into_iter().for_each(|written| drop(written.unwrap()));
    store.meta("a").await.unwrap();
    network.lost.send_modify(|times| *times += 1);
    let (failed, read) = tokio::join!(writes("second"), store.meta("a"));
    // Some may have been made on a connection that was made since.
    let failures: Vec<_> = failed.into_iter().filter_map(Result::err).collect();
    assert!(!failures.is_empty());
    for failure in failures {
        assert!(matches!(&failure, StoreError::Database(_)), "{failure:?}");
        assert!(failure.to_string().contains("answers others"), "{failure}");
    }
    assert!(read.unwrap().is_some(), "a read is made again");
    // What the lost ones locked is free.
    writes("third").await.into_iter().for_each(|written| drop(written.unwrap()));
}

/// The URL of a role that is bound by limits, for a database, over this port.
async fn as_asked(server: &Server, port: Option<u16>) -> String {
    let mut connection = server.connect().await.unwrap();
    let grant = "GRANT ALL ON ALL TABLES IN SCHEMA public TO asked";
    sqlx::raw_sql(grant).execute(&mut connection).await.unwrap();
    let (own, name): (i32, String) =
        sqlx::query_as("SELECT current_setting('port')::int, current_database()::text")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    let port = port.map_or(own, i32::from);
    format!("postgres://asked:s3cret@127.0.0.1:{port}/{name}")
}

#[tokio::test]
async fn writes_go_on_where_the_server_lets_in_fewer_than_there_are_tasks() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let url = as_asked(&server, None).await;
    let (_, name) = url.rsplit_once('/').unwrap();
    let limit = format!("ALTER DATABASE {name} CONNECTION LIMIT 4");
    sqlx::raw_sql(AssertSqlSafe(limit)).execute(&mut server.connect().await.unwrap()).await.unwrap();
    let store = PostgresStore::connect(&Server::parse(&url).unwrap(), |_| {}).await.unwrap();
    for turn in 0..20 {
        let all = (0..100).map(|at| store.init_meta("a", format!("{turn}/{at}")));
        for written in futures_util::future::join_all(all).await {
            assert!(written.unwrap().starts_with("0/"), "turn {turn}");
        }
    }
    store.close().await.unwrap();
}

/// Takes longer than it takes to ask what became of it.
struct Slow;

impl crate::store::writer::Operation<Postgres> for Slow {
    type Output = ();

    async fn apply(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        Ok(sqlx::raw_sql("SELECT pg_sleep(6)").execute(connection).await.map(drop)?)
    }
}

#[tokio::test]
async fn a_slow_write_is_not_ended_where_the_server_does_not_tell_what_its_sessions_do() {
    if !has_postgres() {
        return;
    }
    let server = new_database().await;
    let mut connection = server.connect().await.unwrap();
    let off = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_activities = off', current_database()); END $$";
    sqlx::raw_sql(off).execute(&mut connection).await.unwrap();
    let store = PostgresStore::connect(&server, |_| {}).await.unwrap();
    store.writer.submit(Slow).await.unwrap();
}
