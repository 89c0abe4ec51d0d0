//! PostgreSQL: a server is reached and its database brought to the present schema.
//!
//! Reads go through a pool of connections; the writer has a few of its own. Several processes may stand on one database.

mod listen;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgQueryResult};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, SqlSafeStr, SqlStr};

use tokio::time::timeout;

use super::changes::Heard;
use super::engine::Engine;
use super::open::OpenError;
use super::outage::Outage;
use super::pulse::{Pulse, answers, silent};
use super::reads::Readers;
use super::schema::{self, MIGRATIONS};
use super::server::Server;
use super::sql_store::Listening;
use super::writer::Writer;
use super::{Observe, SqlStore};

/// Connections for reads at most, of one process.
const READERS: u32 = 8;

/// Connections for writes, of one process: a few share the server's time on its disk.
const WRITERS: usize = 8;

/// How long a start waits for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a read waits for a connection, and for a server that is away, before it fails.
const READER_WAIT: Duration = Duration::from_secs(5);

/// The least version of the server that is supported in its own community, as `server_version_num` tells it
/// (<https://www.postgresql.org/support/versioning/>).
const LEAST_VERSION: u32 = 14_00_00;

/// A connection that was not used for so long is tried before it is used.
pub(super) const DOUBTED_AFTER: Duration = Duration::from_secs(1);

/// Statements that a connection keeps prepared: all of them, those of many rows in all their sizes.
const STATEMENTS: usize = 512;

/// What each session asks of the server, in milliseconds: how long a statement runs, how long it waits for a lock, and how long
/// a transaction whose process does not go on keeps its locks.
const SESSION_LIMITS: [(&str, &str); 3] = [
    ("statement_timeout", "30000"),
    ("lock_timeout", "5000"),
    ("idle_in_transaction_session_timeout", "10000"),
];

/// How long a start waits for another process that brings the schema up to date.
const MIGRATION_WAIT: &str = "SET LOCAL client_min_messages = warning; SET LOCAL lock_timeout = 60000; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0";

const LONG_WORK: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
     SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ";

/// What processes that bring the schema up to date exclude each other by.
const MIGRATION: &str = "migration";

/// Durable state in a database of a PostgreSQL server.
pub type PostgresStore = SqlStore<Postgres>;

impl Engine for Postgres {
    const SYSTEM: &'static str = "postgresql";
    const SHARED: bool = true;
    const CLOCK: Option<&'static str> =
        Some("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)");
    const IS_STANDBY: &'static str = "SELECT CAST(CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END AS BIGINT)";
    const HAS_MIGRATIONS: &'static str =
        "SELECT CAST(1 AS BIGINT) FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')";

    fn rows_affected(result: &PgQueryResult) -> u64 {
        result.rows_affected()
    }

    async fn exclude(connection: &mut PgConnection, name: &str) -> Result<(), sqlx::Error> {
        let lock = sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").bind(name);
        lock.execute(connection).await.map(drop)
    }

    async fn tell(connection: &mut PgConnection, what: &str) -> Result<(), sqlx::Error> {
        listen::tell(connection, what).await
    }
}

impl SqlStore<Postgres> {
    /// Reaches the server and brings the database to the present schema, once for all processes that start together.
    pub async fn connect(server: &Server, observe: Observe) -> Result<Self, OpenError> {
        let name = listen::Writer::random();
        let options = name.on(options(server));
        let connected = timeout(CONNECT, options.connect()).await.unwrap_or_else(|_| Err(silent()));
        let mut connection = connected.map_err(|error| server.refusal(error))?;
        look_at(server, &mut connection).await?;
        migrate(&mut connection).await?;
        connection.close().await?;
        let pulse = Arc::new(Pulse::new(options.clone()));
        let trust = Arc::clone(&pulse);
        let pool = PgPoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READER_WAIT)
            .test_before_acquire(false)
            .before_acquire(move |connection, state| {
                let is_trusted = trust.trusts(state.age);
                Box::pin(async move {
                    Ok(is_trusted && (state.idle_for < DOUBTED_AFTER || answers(connection).await))
                })
            })
            .connect_lazy_with(options.clone());
        let heard = Arc::<Heard>::default();
        let outage = Arc::<Outage>::default();
        let task = listen::start(options.clone(), name, Arc::clone(&heard), Arc::clone(&outage));
        let listening = Listening { heard, task };
        let (asked, noted) = (Some(Arc::clone(&pulse)), Arc::clone(&outage));
        let readers = Readers { pool, patience: READER_WAIT, pulse: asked, outage: noted, observe };
        let writer = Writer::start_lanes(options, pulse, outage, WRITERS, observe);
        Ok(Self { readers, writer, listening: Some(listening) })
    }
}

/// A connection for work that takes long, whose transactions show one moment.
pub(super) async fn connect(server: &Server) -> Result<PgConnection, sqlx::Error> {
    let mut connection = options(server).connect().await?;
    sqlx::raw_sql(LONG_WORK).execute(&mut connection).await?;
    Ok(connection)
}

fn options(server: &Server) -> PgConnectOptions {
    let options = server.options().clone().statement_cache_capacity(STATEMENTS);
    let options = match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("toolrack"),
    };
    options.options(SESSION_LIMITS).disable_statement_logging()
}

/// Refuses a server or a database that would not keep what is stored as it is.
async fn look_at(server: &Server, connection: &mut PgConnection) -> Result<(), OpenError> {
    let version = connection.server_version_num().unwrap_or_default();
    if version < LEAST_VERSION {
        return Err(OpenError::OldServer {
            server: server.to_string(),
            found: format!("{}.{}", version / 10_000, version % 10_000),
            least: LEAST_VERSION / 10_000,
        });
    }
    let (standby,): (i64,) = sqlx::query_as(Postgres::IS_STANDBY).fetch_one(&mut *connection).await?;
    if standby != 0 {
        return Err(OpenError::Standby { server: server.to_string() });
    }
    let (encoding,): (String,) =
        sqlx::query_as("SELECT current_setting('server_encoding')").fetch_one(connection).await?;
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { server: server.to_string(), encoding });
    }
    Ok(())
}

/// Texts are ordered as bytes, wherever they are.
fn schema_text(text: &'static str) -> SqlStr {
    AssertSqlSafe(text.replace(" TEXT", " TEXT COLLATE \"C\"")).into_sql_str()
}

/// One transaction for all of it, while other processes wait.
async fn migrate(connection: &mut PgConnection) -> Result<(), OpenError> {
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql(MIGRATION_WAIT).execute(&mut *transaction).await?;
    Postgres::exclude(&mut transaction, MIGRATION).await?;
    schema::update::<Postgres>(&mut transaction, MIGRATIONS, schema_text).await?;
    Ok(transaction.commit().await?)
}

#[cfg(test)]
mod tests;
