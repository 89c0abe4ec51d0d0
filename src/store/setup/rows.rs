//! [`SetupStore`] in the tables: the reads, and the writes as operations of the writer.

use async_trait::async_trait;

use super::{
    CONFIG_VERSIONS, ConfigVersion, DraftRow, DraftWrite, PageSessionRow, SetupStore, SetupWrite, sql,
};
use crate::core::digest::Digest;
use crate::core::id::{Id, Scope};
use crate::core::tool::ToolKey;
use crate::store::engine::Engine;
use crate::store::sql_store::read_scope;
use crate::store::writer::Operation;
use crate::store::writes::{WriteCatalog, WriteConfig, begin, scope_state, stored_scope};
use crate::store::{ScopeRow, SqlStore, StoreError};

/// Keeps the document that a config has now, and drops those that are one too many.
pub(in crate::store) async fn note_version<E: Engine>(
    connection: &mut E::Connection,
    [kind, id]: [&str; 2],
    at_ms: i64,
    actor: &str,
) -> Result<(), StoreError> {
    let put = sqlx::query(sql::VERSION_PUT).bind(kind).bind(id).bind(at_ms).bind(actor);
    put.execute(&mut *connection).await?;
    let trim = sqlx::query(sql::VERSIONS_TRIM).bind(kind).bind(id).bind(i64::from(CONFIG_VERSIONS));
    trim.execute(connection).await?;
    Ok(())
}

fn bytes(hex: &str) -> Result<Vec<u8>, StoreError> {
    hex::decode(hex).map_err(|_| StoreError::Corrupt("secret"))
}

#[async_trait]
impl<E: Engine> SetupStore for SqlStore<E> {
    async fn scopes(&self, after: Option<&Scope>, limit: u32) -> Result<Vec<Scope>, StoreError> {
        let (kind, id) = after.map_or(("", ""), |scope| (scope.kind(), scope.id().as_str()));
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::SCOPES).bind(kind).bind(id).bind(i64::from(limit));
            Ok(query.fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(String, String)> = read.await?;
        rows.iter().map(|(kind, id)| stored_scope(kind, id)).collect()
    }

    async fn write_setup(&self, scope: &Scope, write: SetupWrite) -> Result<ScopeRow, StoreError> {
        let SetupWrite { config, catalog } = write;
        let config = config.map(|write| WriteConfig { scope: scope.clone(), write });
        let catalog = catalog.map(|write| WriteCatalog { scope: scope.clone(), write });
        self.writer.submit(WriteSetup { scope: scope.clone(), config, catalog }).await
    }

    async fn config_versions(&self, scope: &Scope) -> Result<Vec<ConfigVersion>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::VERSIONS).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(i64, String, i64, String)> = read.await?;
        let version = |(revision, config, at_ms, actor)| ConfigVersion { revision, config, at_ms, actor };
        Ok(rows.into_iter().map(version).collect())
    }

    async fn draft(&self, scope: &Scope) -> Result<Option<DraftRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::DRAFT).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        let row: Option<(String, Option<String>, i64, i64)> = read.await?;
        let draft = |(body, sealed, updated_at_ms, revision): (String, Option<String>, i64, i64)| {
            let sealed = sealed.as_deref().map(bytes).transpose()?;
            Ok(DraftRow { body, sealed, updated_at_ms, revision })
        };
        row.map(draft).transpose()
    }

    async fn write_draft(&self, scope: &Scope, write: DraftWrite) -> Result<i64, StoreError> {
        self.writer.submit(WriteDraft { scope: scope.clone(), write }).await
    }

    async fn delete_draft(&self, scope: &Scope) -> Result<(), StoreError> {
        self.writer.submit(DeleteDraft(scope.clone())).await
    }

    async fn expire_drafts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(Expire { statement: sql::DRAFTS_EXPIRE, before_ms, limit }).await
    }

    async fn page_session(&self, digest: Digest, now_ms: i64) -> Result<Option<PageSessionRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::SESSION).bind(digest.to_string()).bind(now_ms);
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        let row: Option<(String, i64)> = read.await?;
        let session = |(sealed, expires_at_ms): (String, i64)| {
            Ok(PageSessionRow { digest, sealed: bytes(&sealed)?, expires_at_ms })
        };
        row.map(session).transpose()
    }

    async fn begin_page_session(&self, row: PageSessionRow) -> Result<(), StoreError> {
        self.writer.submit(BeginPageSession(row)).await
    }

    async fn end_page_session(&self, digest: Digest) -> Result<(), StoreError> {
        self.writer.submit(EndPageSession(digest)).await
    }

    async fn warm_counts(&self, user: &Id, most: u32) -> Result<Vec<(ToolKey, u64)>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::WARM_COUNTS).bind(user.as_str()).bind(i64::from(most));
            Ok(query.fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(String, String, i64)> = read.await?;
        let counted =
            |(group, name, count): (String, String, i64)| (ToolKey::new(&group, &name), count.unsigned_abs());
        Ok(rows.into_iter().map(counted).collect())
    }

    async fn expire_page_sessions(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(Expire { statement: sql::SESSIONS_EXPIRE, before_ms, limit }).await
    }
}

struct WriteSetup {
    scope: Scope,
    config: Option<WriteConfig>,
    catalog: Option<WriteCatalog>,
}

impl<E: Engine> Operation<E> for WriteSetup {
    type Output = ScopeRow;

    async fn apply(&self, connection: &mut E::Connection) -> Result<ScopeRow, StoreError> {
        // Refusals come before anything is changed.
        if let Some(catalog) = &self.catalog {
            catalog.check::<E>(connection).await?;
        }
        if let Some(config) = &self.config {
            Operation::<E>::apply(config, connection).await?;
        }
        if let Some(catalog) = &self.catalog {
            Operation::<E>::apply(catalog, connection).await?;
        }
        read_scope(connection, &self.scope).await
    }
}

/// What writes of a draft exclude each other by.
fn draft(scope: &Scope) -> String {
    format!("draft/{}/{}", scope.kind(), scope.id())
}

struct WriteDraft {
    scope: Scope,
    write: DraftWrite,
}

impl<E: Engine> Operation<E> for WriteDraft {
    type Output = i64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<i64, StoreError> {
        E::exclude(connection, &draft(&self.scope)).await?;
        let DraftWrite { body, sealed, expected_revision, now_ms, beginner } = &self.write;
        let state = scope_state::<E>(connection, &self.scope).await?;
        begin::<E>(connection, &state, *beginner).await?;
        let began =
            sqlx::query(sql::SCOPE_BEGIN).bind(self.scope.kind()).bind(self.scope.id().as_str()).bind(now_ms);
        began.execute(&mut *connection).await?;
        if *expected_revision > 0 {
            // A row that is gone is not the revision that was meant.
            let stored = sqlx::query_as(sql::DRAFT).bind(self.scope.kind()).bind(self.scope.id().as_str());
            let stored: Option<(String, Option<String>, i64, i64)> =
                stored.fetch_optional(&mut *connection).await?;
            if stored.is_none_or(|(.., revision)| revision != *expected_revision) {
                return Err(StoreError::Conflict);
            }
        }
        let put = sqlx::query_as(sql::DRAFT_PUT)
            .bind(self.scope.kind())
            .bind(self.scope.id().as_str())
            .bind(body.as_str())
            .bind(sealed.as_ref().map(hex::encode))
            .bind(now_ms)
            .bind(expected_revision);
        let row: Option<(i64,)> = put.fetch_optional(connection).await?;
        row.map(|(revision,)| revision).ok_or(StoreError::Conflict)
    }
}

struct DeleteDraft(Scope);

impl<E: Engine> Operation<E> for DeleteDraft {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, &draft(&self.0)).await?;
        let delete = sqlx::query(sql::DRAFT_DELETE).bind(self.0.kind()).bind(self.0.id().as_str());
        delete.execute(connection).await?;
        Ok(())
    }
}

struct BeginPageSession(PageSessionRow);

impl<E: Engine> Operation<E> for BeginPageSession {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let PageSessionRow { digest, sealed, expires_at_ms } = &self.0;
        let put = sqlx::query(sql::SESSION_PUT)
            .bind(digest.to_string())
            .bind(hex::encode(sealed))
            .bind(expires_at_ms);
        put.execute(connection).await?;
        Ok(())
    }
}

struct EndPageSession(Digest);

impl<E: Engine> Operation<E> for EndPageSession {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        sqlx::query(sql::SESSION_DELETE).bind(self.0.to_string()).execute(connection).await?;
        Ok(())
    }
}

/// Deletes what is older than a time.
struct Expire {
    statement: &'static str,
    before_ms: i64,
    limit: u32,
}

impl<E: Engine> Operation<E> for Expire {
    type Output = u64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<u64, StoreError> {
        E::exclude(connection, self.statement).await?;
        let expire = sqlx::query(self.statement).bind(self.before_ms).bind(i64::from(self.limit));
        Ok(E::rows_affected(&expire.execute(connection).await?))
    }
}
