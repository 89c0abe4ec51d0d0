//! [`Store`] on one SQLite file: opening and migrating it, the reads, and the way to the writer.
//!
//! One write connection belongs to the writer task; reads go through a few read-only connections. The file is in
//! WAL mode, so readers never wait for the writer.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor, SqlSafeStr, Sqlite, SqliteConnection, SqlitePool};
use tokio::time::Instant;

use crate::core::digest::Digest;
use crate::core::id::{Id, Scope, SessionKey};
use crate::core::tool::ToolKey;

use super::check::{Check, check_file, is_full, open_error, sqlite_code};
use super::private_file::open_private;
use super::writer::Writer;
use super::writes::{self, stored_id, stored_project, stored_scope};
use super::{
    AuditWrite, CatalogOwner, CatalogRows, CatalogWrite, Committed, ConfigWrite, InlineKey, InlineTouch,
    InlineWrite, ListingBaseTouch, ProjectFilter, Provenance, Reseal, ScopeRow, SealedSecret, SecretPlace,
    SecretRow, SessionQuery, SessionRow, SessionSummary, SessionTouch, SessionWrite, Store, StoreError,
    StoreLoad, ToolRow, VectorRow, VectorSpace, WarmRow, sql,
};

/// Read connections. Each is a thread; point reads take some 50 µs, so a few serve many callers.
const READERS: u32 = 4;

/// How long a connection waits for another process's lock (`import` beside `serve`).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two attempts where SQLite does not wait by itself.
const BUSY_RETRY: Duration = Duration::from_millis(10);

/// How long a read waits for a free connection before it fails.
const READER_WAIT: Duration = Duration::from_secs(10);

/// Sessions in one operation of a flush, so that a large flush lets other writes in between.
const TOUCHES_PER_OPERATION: usize = 512;

/// Vectors in one operation, some kilobytes each.
const VECTORS_PER_OPERATION: usize = 128;

/// Every schema file, in order. Released files are never changed; their checksums are in the database.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "init", include_str!("../../migrations/0001_init.sql")),
    (2, "vectors", include_str!("../../migrations/0002_vectors.sql")),
    (3, "listing_bases", include_str!("../../migrations/0003_listing_bases.sql")),
    (4, "keys", include_str!("../../migrations/0004_keys.sql")),
    (5, "provenance", include_str!("../../migrations/0005_provenance.sql")),
    (6, "audit", include_str!("../../migrations/0006_audit.sql")),
    (7, "reviews", include_str!("../../migrations/0007_reviews.sql")),
    (8, "usage", include_str!("../../migrations/0008_usage.sql")),
    (9, "setup", include_str!("../../migrations/0009_setup.sql")),
    (10, "mcp_servers", include_str!("../../migrations/0010_mcp_servers.sql")),
];

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0:?} is not a database URL; use sqlite://PATH (a file, for example sqlite://toolrack.db)")]
    Url(String),
    #[error("PostgreSQL is not supported yet; use sqlite://PATH")]
    PostgresUnsupported,
    #[error("cannot open the database file {0} for reading and writing: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error(
        "the database file {0} cannot be used: {1}; the file and its folder must be writable (beside it stand {0}-wal, \
         {0}-shm and {0}.lock)"
    )]
    NotWritable(PathBuf, #[source] sqlx::Error),
    #[error("{0} is no SQLite database; nothing was written to it")]
    NoDatabase(PathBuf),
    #[error(
        "the database file {0} is damaged, and nothing was written to it ({1}); put it aside together with {0}-wal and \
         {0}-shm, and put a backup in its place (docs/backup.md)"
    )]
    Damaged(PathBuf, String),
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}; \
         use the newer program that wrote it, or a backup from before it (the database was left as it is)"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error(
        "schema version {0} of the database is not the one of this program (the file of that migration was changed \
         or removed after it was applied); use the program that made the database"
    )]
    ForeignSchema(i64),
    #[error("the database cannot be brought to the current schema, and was left as it is: {0}")]
    Migrate(#[source] MigrateError),
    #[error("the database cannot be used: {0}")]
    Database(#[from] sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolClosed => Self::Closed,
            full if is_full(&full) => Self::Full,
            other => Self::Database(Arc::new(other)),
        }
    }
}

/// The file that a database URL names: `sqlite://PATH` or `sqlite:PATH`, relative or absolute, taken literally.
pub fn database_file(url: &str) -> Result<PathBuf, OpenError> {
    let (scheme, rest) = url.split_once(':').ok_or_else(|| OpenError::Url(url.to_owned()))?;
    if matches!(scheme, "postgres" | "postgresql") {
        return Err(OpenError::PostgresUnsupported);
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    // '?' would begin connection settings, which are not taken; ":memory:" is a database per connection.
    if scheme != "sqlite" || path.is_empty() || path.contains(['?', '\0']) || path == ":memory:" {
        // A URL of another database may hold a password.
        return Err(OpenError::Url(if scheme == "sqlite" {
            url.to_owned()
        } else {
            format!("{scheme}:...")
        }));
    }
    Ok(PathBuf::from(path))
}

/// How a database file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SqliteOptions {
    pub check: Check,
    /// The file grows up to this size and no more; one that is larger already does not grow.
    pub max_bytes: Option<u64>,
}

/// Durable state in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) readers: SqlitePool,
    pub(super) writer: Writer,
}

impl SqliteStore {
    /// Opens the file, makes it when it does not exist (private to its owner), and brings it to the current schema.
    /// `group_committed` is told of each commit (for metrics); it runs in the writer's task.
    pub async fn open(file: &Path, group_committed: fn(&Committed<'_>)) -> Result<Self, OpenError> {
        Self::open_with(file, SqliteOptions::default(), group_committed).await
    }

    /// As [`SqliteStore::open`], with a look at the file first or a bound of its size.
    pub async fn open_with(
        file: &Path,
        options: SqliteOptions,
        group_committed: fn(&Committed<'_>),
    ) -> Result<Self, OpenError> {
        let SqliteOptions { check, max_bytes } = options;
        open_private(File::options().read(true).write(true).create(true), file)
            .map_err(|error| OpenError::File(file.to_owned(), error))?;
        check_file(file, check).await?;
        let failed = |error| open_error(file, error);
        let options = SqliteConnectOptions::new()
            .filename(file)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let write_options =
            options.clone().journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Normal);
        let mut connection = connect_patiently(&write_options).await.map_err(failed)?;
        migrate(&mut connection, MIGRATIONS).await?;
        if let Some(bytes) = max_bytes {
            limit_size(&mut connection, bytes).await.map_err(failed)?;
        }
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READER_WAIT)
            // A connection to a file does not go stale: checking or replacing it only costs time.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.read_only(true))
            .await
            .map_err(failed)?;
        Ok(Self { readers, writer: Writer::start(connection, group_committed) })
    }
}

/// Connects, also while another process opens the same new file: the switch to WAL is the one thing that SQLite
/// refuses at once instead of waiting.
async fn connect_patiently(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                tokio::time::sleep(BUSY_RETRY).await;
            }
            settled => return settled,
        }
    }
}

/// SQLITE_BUSY (<https://sqlite.org/rescode.html>).
fn is_busy(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(5)
}

/// Keeps the file from growing beyond so many bytes. Holds for this connection, the only one that writes.
async fn limit_size(connection: &mut SqliteConnection, bytes: u64) -> Result<(), sqlx::Error> {
    let (page,): (i64,) = sqlx::query_as("PRAGMA page_size").fetch_one(&mut *connection).await?;
    let pages = bytes / u64::try_from(page).unwrap_or(u64::MAX).max(1);
    // 4,294,967,294 is the most that SQLite takes; 0 would only ask.
    let pages = pages.clamp(1, 4_294_967_294);
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")))
        .execute(connection)
        .await?;
    Ok(())
}

/// One transaction for all of it: two processes that open a new file at once do not meet half-way.
async fn migrate(
    connection: &mut SqliteConnection,
    migrations: &[(i64, &'static str, &'static str)],
) -> Result<(), OpenError> {
    let migration = |&(version, name, text): &(i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
    };
    let known = migrations.iter().map(|&(version, ..)| version).max().unwrap_or_default();
    let migrator = Migrator::with_migrations(migrations.iter().map(migration).collect());
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    migrator.run(&mut *transaction).await.map_err(|error| match error {
        MigrateError::VersionMissing(found) if found > known => OpenError::NewerSchema { found, known },
        MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
            OpenError::ForeignSchema(version)
        }
        other => OpenError::Migrate(other),
    })?;
    Ok(transaction.commit().await?)
}

/// The owner of an inline catalog's tools. No user id holds a slash, so two owners never meet.
pub(super) fn inline_owner(key: &InlineKey) -> String {
    format!("{}/{}", key.user, key.reference)
}

/// How a session's project is stored; no project is the empty text.
pub(super) fn project_text(project: Option<&Id>) -> &str {
    project.map_or("", Id::as_str)
}

type ScopeColumns =
    (String, i64, i64, String, Option<String>, Option<String>, Option<String>, Option<String>);

pub(super) async fn read_scope<'c>(
    executor: impl Executor<'c, Database = Sqlite>,
    scope: &Scope,
) -> Result<ScopeRow, StoreError> {
    let rows: Vec<ScopeColumns> =
        sqlx::query_as(sql::SCOPE).bind(scope.kind()).bind(scope.id().as_str()).fetch_all(executor).await?;
    let mut answer = ScopeRow::default();
    for (config, written, revision, catalog_version, name, origin, last4, sealed) in rows {
        answer.config = config;
        answer.config_revision = if written == 0 { 0 } else { revision };
        answer.raw_revision = revision;
        answer.catalog_version = catalog_version;
        if let (Some(name), Some(origin), Some(sealed)) = (name, origin, sealed) {
            let bytes = hex::decode(sealed).map_err(|_| StoreError::Corrupt("secret"))?;
            answer.secrets.push(SecretRow { name, sealed: SealedSecret { origin, last4, bytes } });
        }
    }
    Ok(answer)
}

type CatalogColumns =
    (String, Option<String>, Option<String>, Option<String>, Option<String>, Option<String>);

#[async_trait]
impl Store for SqliteStore {
    async fn scope(&self, scope: &Scope) -> Result<ScopeRow, StoreError> {
        read_scope(&self.readers, scope).await
    }

    async fn write_config(&self, scope: &Scope, write: ConfigWrite) -> Result<ScopeRow, StoreError> {
        self.writer.submit(writes::WriteConfig { scope: scope.clone(), write }).await
    }

    async fn catalog(&self, owner: &CatalogOwner) -> Result<CatalogRows, StoreError> {
        let query = match owner {
            CatalogOwner::Scope(scope) => {
                sqlx::query_as(sql::SCOPE_CATALOG).bind(scope.kind()).bind(scope.id().as_str())
            }
            CatalogOwner::Inline(key) => sqlx::query_as(sql::INLINE_CATALOG)
                .bind(key.user.as_str())
                .bind(key.reference.as_str())
                .bind(inline_owner(key)),
        };
        let rows: Vec<CatalogColumns> = query.fetch_all(&self.readers).await?;
        let mut answer = CatalogRows { version: String::new(), tools: Vec::with_capacity(rows.len()) };
        for (version, group, name, body, digest, tokens) in rows {
            answer.version = version;
            if let (Some(group), Some(name), Some(body), Some(digest), Some(tokens)) =
                (group, name, body, digest, tokens)
            {
                answer.tools.push(ToolRow { group, name, body: body.into(), digest, tokens });
            }
        }
        Ok(answer)
    }

    async fn write_catalog(&self, scope: &Scope, write: CatalogWrite) -> Result<(), StoreError> {
        self.writer.submit(writes::WriteCatalog { scope: scope.clone(), write }).await
    }

    async fn provenance(&self, scope: &Scope, tool: &ToolKey) -> Result<Option<Provenance>, StoreError> {
        let query = sqlx::query_as(sql::PROVENANCE)
            .bind(scope.kind())
            .bind(scope.id().as_str())
            .bind(&*tool.group)
            .bind(&*tool.name);
        let row: Option<(String, i64, i64, String)> = query.fetch_optional(&self.readers).await?;
        Ok(row.map(|(digest, first_seen_ms, changed_at_ms, uploaded_by)| Provenance {
            digest,
            first_seen_ms,
            changed_at_ms,
            uploaded_by,
        }))
    }

    async fn inline_catalog(&self, key: &InlineKey) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_as(sql::INLINE_VERSION).bind(key.user.as_str()).bind(key.reference.as_str());
        let row: Option<(String,)> = query.fetch_optional(&self.readers).await?;
        Ok(row.map(|(version,)| version))
    }

    async fn write_inline(&self, write: InlineWrite) -> Result<(), StoreError> {
        self.writer.submit(writes::WriteInline(write)).await
    }

    async fn touch_inline(&self, touches: Vec<InlineTouch>) -> Result<(), StoreError> {
        if touches.is_empty() {
            return Ok(());
        }
        self.writer.submit(writes::TouchInline(touches)).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, StoreError> {
        let rows: Vec<(i64, String, String, i64, i64, i64, i64)> = sqlx::query_as(sql::SESSION)
            .bind(key.user.as_str())
            .bind(project_text(key.project.as_ref()))
            .bind(key.session.as_str())
            .fetch_all(&self.readers)
            .await?;
        let mut rows = rows.into_iter();
        let Some((_, settings, ledger, created_at_ms, last_seen_ms, _, _)) = rows.next() else {
            return Ok(None);
        };
        let warm = rows
            .map(|(_, group, name, first_seq, last_used_ms, pinned, pending)| WarmRow {
                tool: ToolKey { group: group.into(), name: name.into() },
                first_seq,
                last_used_ms,
                pinned: pinned != 0,
                pending: pending != 0,
            })
            .collect();
        Ok(Some(SessionRow { settings, created_at_ms, last_seen_ms, ledger, warm }))
    }

    async fn write_session(&self, write: SessionWrite) -> Result<(), StoreError> {
        self.writer.submit(writes::WriteSession(write)).await
    }

    async fn touch_sessions(&self, touches: Vec<SessionTouch>) -> Result<(), StoreError> {
        let mut touches = touches.into_iter();
        while touches.len() > 0 {
            let part = touches.by_ref().take(TOUCHES_PER_OPERATION).collect();
            self.writer.submit(writes::TouchSessions(part)).await?;
        }
        Ok(())
    }

    async fn delete_session(&self, key: &SessionKey, audit: Option<AuditWrite>) -> Result<bool, StoreError> {
        self.writer.submit(writes::DeleteSession { key: key.clone(), audit }).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, StoreError> {
        // No session id is empty, so the empty text is before all of them.
        let after = query.after.as_ref();
        let after_session = after.map_or("", |(_, session)| session.as_str());
        let (text, project) = match &query.project {
            ProjectFilter::Any => {
                (sql::SESSIONS_OF_USER, project_text(after.and_then(|(project, _)| project.as_ref())))
            }
            ProjectFilter::Only(project) => (sql::SESSIONS_OF_PROJECT, project_text(project.as_ref())),
        };
        let rows: Vec<(String, String, i64, i64, i64)> = sqlx::query_as(text)
            .bind(query.user.as_str())
            .bind(project)
            .bind(after_session)
            .bind(i64::from(query.limit))
            .fetch_all(&self.readers)
            .await?;
        rows.into_iter()
            .map(|(project, session, created_at_ms, last_seen_ms, warm)| {
                Ok(SessionSummary {
                    project: stored_project(&project)?,
                    session: stored_id(&session)?,
                    created_at_ms,
                    last_seen_ms,
                    warm,
                })
            })
            .collect()
    }

    async fn session_projects(&self, user: &Id) -> Result<Vec<Option<Id>>, StoreError> {
        let query = sqlx::query_as(sql::SESSION_PROJECTS).bind(user.as_str());
        let rows: Vec<(String,)> = query.fetch_all(&self.readers).await?;
        rows.iter().map(|(project,)| stored_project(project)).collect()
    }

    async fn expire_sessions(&self, before_ms: i64, limit: u32) -> Result<Vec<SessionKey>, StoreError> {
        self.writer.submit(writes::ExpireSessions { before_ms, limit }).await
    }

    async fn expire_inline(&self, before_ms: i64, limit: u32) -> Result<Vec<InlineKey>, StoreError> {
        self.writer.submit(writes::ExpireInline { before_ms, limit }).await
    }

    async fn listing_base(&self, digest: Digest) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_as(sql::LISTING_BASE).bind(digest.to_string());
        let row: Option<(String,)> = query.fetch_optional(&self.readers).await?;
        Ok(row.map(|(body,)| body))
    }

    async fn write_listing_base(
        &self,
        digest: Digest,
        body: Arc<str>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.writer.submit(writes::WriteListingBase { digest, body, now_ms }).await
    }

    async fn touch_listing_bases(&self, touches: Vec<ListingBaseTouch>) -> Result<(), StoreError> {
        if touches.is_empty() {
            return Ok(());
        }
        self.writer.submit(writes::TouchListingBases(touches)).await
    }

    async fn expire_listing_bases(&self, before_ms: i64, limit: u32) -> Result<Vec<Digest>, StoreError> {
        self.writer.submit(writes::ExpireListingBases { before_ms, limit }).await
    }

    async fn vectors(&self, space: &VectorSpace, texts: &[Digest]) -> Result<Vec<VectorRow>, StoreError> {
        let columns = writes::space_columns(space);
        let mut rows = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while let Some((text, size)) = sql::VECTORS.next(rest.len()) {
            let (now, later) = rest.split_at(size);
            let mut query = sqlx::query_as(text);
            for column in columns.iter().cloned().chain(now.iter().map(Digest::to_string)) {
                query = query.bind(column);
            }
            let found: Vec<(String, Vec<u8>, i64)> = query.fetch_all(&self.readers).await?;
            for (text, vector, used_at_ms) in found {
                // One that names no text is nobody's.
                let text = Digest::from_hex(&text);
                rows.extend(text.map(|text| VectorRow { text, vector, used_at_ms }));
            }
            rest = later;
        }
        Ok(rows)
    }

    async fn write_vectors(
        &self,
        space: &VectorSpace,
        rows: Vec<VectorRow>,
        most: u32,
    ) -> Result<(), StoreError> {
        for rows in rows.chunks(VECTORS_PER_OPERATION) {
            let (space, rows) = (space.clone(), rows.to_vec());
            self.writer.submit(writes::WriteVectors { space, rows, most }).await?;
        }
        Ok(())
    }

    async fn drop_vectors(&self, space: &VectorSpace) -> Result<(), StoreError> {
        self.writer.submit(writes::DropVectors(space.clone())).await
    }

    async fn touch_vectors(
        &self,
        space: &VectorSpace,
        texts: Vec<Digest>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        for texts in texts.chunks(VECTORS_PER_OPERATION) {
            let (space, texts) = (space.clone(), texts.to_vec());
            self.writer.submit(writes::TouchVectors { space, texts, now_ms }).await?;
        }
        Ok(())
    }

    async fn expire_vectors(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(writes::ExpireVectors { before_ms, limit }).await
    }

    async fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        let row: Option<(String,)> =
            sqlx::query_as(sql::META).bind(key).fetch_optional(&self.readers).await?;
        Ok(row.map(|(value,)| value))
    }

    async fn sealed_secrets(&self) -> Result<Vec<SecretPlace>, StoreError> {
        let rows: Vec<(String, String, String, String)> =
            sqlx::query_as(sql::SECRETS).fetch_all(&self.readers).await?;
        let read = |(kind, id, name, sealed): (String, String, String, String)| {
            let scope = stored_scope(&kind, &id)?;
            let sealed = hex::decode(sealed).map_err(|_| StoreError::Corrupt("secret"))?;
            Ok(SecretPlace { scope, name, sealed })
        };
        rows.into_iter().map(read).collect()
    }

    async fn reseal(&self, changes: Vec<Reseal>, meta: (String, String)) -> Result<(), StoreError> {
        self.writer.submit(writes::ResealSecrets { changes, meta }).await
    }

    async fn init_meta(&self, key: &str, value: String) -> Result<String, StoreError> {
        self.writer.submit(writes::InitMeta { key: key.to_owned(), value }).await
    }

    async fn health(&self) -> Result<(), StoreError> {
        if self.writer.is_closed() {
            return Err(StoreError::Closed);
        }
        let _: Option<(i64,)> = sqlx::query_as("SELECT 1").fetch_optional(&self.readers).await?;
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.writer.has_room()
    }

    fn load(&self) -> StoreLoad {
        let open = self.readers.size();
        let idle = u32::try_from(self.readers.num_idle()).unwrap_or(u32::MAX).min(open);
        StoreLoad {
            waiting_writes: self.writer.waiting(),
            connections_in_use: open - idle,
            connections_idle: idle,
            connections_most: READERS,
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        // Readers first: an open one would keep the write-ahead log from being emptied.
        self.readers.close().await;
        self.writer.close().await
    }
}

#[cfg(test)]
mod tests;
