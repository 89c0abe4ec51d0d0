//! Copying all rows of one database into another, of whatever kind: as they are at one moment, in one transaction.

use futures_util::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Database, Postgres, Row as _, Sqlite, TypeInfo as _,
};

use super::engine::Engine;
use super::failures::told;
use super::open::{OpenError, Place};
use super::schema::MIGRATIONS;
use super::{PostgresStore, SqliteStore, Store as _, StoreError, postgres, sqlite};

/// Rows of one statement.
const ROWS: usize = 64;

/// Every table; one that others refer to stands before them.
const TABLES: [&str; 23] = [
    "meta",
    "scopes",
    "secrets",
    "tools",
    "inline_catalogs",
    "sessions",
    "warm",
    "vectors",
    "listing_bases",
    "api_keys",
    "counters",
    "audit",
    "held_tools",
    "removed_tools",
    "usage_days",
    "tool_usage",
    "missed_queries",
    "config_versions",
    "setup_drafts",
    "page_sessions",
    "mcp_servers",
    "rankings",
    "vector_claims",
];

/// Why nothing was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0} holds rows already; a copy is made into an empty database")]
    NotEmpty(Place),
    #[error(
        "{place} has what a newer program added (schema {found}, this program knows {known}); copy with that program"
    )]
    Newer { place: Place, found: i64, known: i64 },
    #[error("the table {} cannot be copied, and nothing was: {}", .0, told(.1))]
    Table(&'static str, #[source] sqlx::Error),
    #[error("nothing was copied: {0}")]
    Failed(#[from] StoreError),
}

impl From<sqlx::Error> for CopyError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Brings both databases to the present schema and copies the rows of one into the other, which is empty. Tells how many there
/// were. Nobody serves either of them meanwhile.
pub async fn copy(from: &Place, to: &Place) -> Result<u64, CopyError> {
    let known = MIGRATIONS.last().map_or(0, |(version, ..)| *version);
    for place in [from, to] {
        let found = match place {
            Place::File(file) => {
                SqliteStore::open(file, |_| {}).await?.close().await?;
                newest::<Sqlite>(&mut sqlite::connect(file).await?).await?
            }
            Place::Server(server) => {
                PostgresStore::connect(server, |_| {}).await?.close().await?;
                newest::<Postgres>(&mut postgres::connect(server).await?).await?
            }
        };
        if found > known {
            return Err(CopyError::Newer { place: place.clone(), found, known });
        }
    }
    let copied = match (from, to) {
        (Place::File(a), Place::File(b)) => {
            copy_all::<Sqlite, Sqlite>(sqlite::connect(a).await?, sqlite::connect(b).await?).await
        }
        (Place::File(a), Place::Server(b)) => {
            copy_all::<Sqlite, Postgres>(sqlite::connect(a).await?, postgres::connect(b).await?).await
        }
        (Place::Server(a), Place::File(b)) => {
            copy_all::<Postgres, Sqlite>(postgres::connect(a).await?, sqlite::connect(b).await?).await
        }
        (Place::Server(a), Place::Server(b)) => {
            copy_all::<Postgres, Postgres>(postgres::connect(a).await?, postgres::connect(b).await?).await
        }
    };
    copied?.ok_or_else(|| CopyError::NotEmpty(to.clone()))
}

/// `None`: there are rows already.
async fn copy_all<A: Engine, B: Engine>(
    mut from: A::Connection,
    mut to: B::Connection,
) -> Result<Option<u64>, CopyError> {
    execute::<A>(&mut from, "BEGIN").await?;
    execute::<B>(&mut to, "BEGIN").await?;
    let mut rows = 0;
    for table in TABLES {
        let any = sqlx::query(AssertSqlSafe(format!("SELECT 1 FROM {table} LIMIT 1")));
        if any.fetch_optional(&mut to).await?.is_some() {
            return Ok(None);
        }
        rows += copy_table::<A, B>(&mut from, &mut to, table)
            .await
            .map_err(|error| CopyError::Table(table, error))?;
    }
    execute::<B>(&mut to, "COMMIT").await?;
    to.close().await?;
    from.close().await?;
    Ok(Some(rows))
}

/// The last file of the schema that was run.
async fn newest<E: Engine>(connection: &mut E::Connection) -> Result<i64, sqlx::Error> {
    let (version,): (i64,) =
        sqlx::query_as("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    Ok(version)
}

async fn execute<E: Engine>(connection: &mut E::Connection, text: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(text).execute(connection).await.map(drop)
}

async fn copy_table<A: Engine, B: Engine>(
    from: &mut A::Connection,
    to: &mut B::Connection,
    table: &str,
) -> Result<u64, sqlx::Error> {
    let mut found = sqlx::query(AssertSqlSafe(format!("SELECT * FROM {table}"))).fetch(from);
    let mut waiting = Vec::with_capacity(ROWS);
    let mut rows = 0;
    while let Some(row) = found.try_next().await? {
        waiting.push(row);
        if waiting.len() == ROWS {
            rows += insert::<A, B>(to, table, &waiting).await?;
            waiting.clear();
        }
    }
    Ok(rows + insert::<A, B>(to, table, &waiting).await?)
}

async fn insert<A: Engine, B: Engine>(
    to: &mut B::Connection,
    table: &str,
    rows: &[A::Row],
) -> Result<u64, sqlx::Error> {
    let Some(first) = rows.first() else { return Ok(0) };
    let columns = first.columns();
    let names: Vec<&str> = columns.iter().map(<A as Database>::Column::name).collect();
    let values = (0..rows.len()).map(|row| {
        let places: Vec<String> =
            (1..=columns.len()).map(|column| format!("${}", row * columns.len() + column)).collect();
        format!("({})", places.join(", "))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let mut statement =
        sqlx::query(AssertSqlSafe(format!("INSERT INTO {table} ({}) VALUES {values}", names.join(", "))));
    for row in rows {
        for (at, column) in columns.iter().enumerate() {
            statement = match column.type_info().name() {
                "TEXT" => statement.bind(row.try_get::<Option<String>, _>(at)?),
                number if number.contains("INT") => statement.bind(row.try_get::<Option<i64>, _>(at)?),
                // The one column of bytes; SQLite has no name for what is declared as BYTEA.
                _ => statement.bind(row.try_get::<Vec<u8>, _>(at)?),
            };
        }
    }
    Ok(B::rows_affected(&statement.execute(to).await?))
}

#[cfg(test)]
mod tests;
