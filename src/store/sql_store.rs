//! [`Store`] over the tables of a database: the reads, and the way to the writer. Which database it is is told by its
//! [`Engine`].

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Executor;
use tokio::task::JoinHandle;

use crate::core::digest::Digest;
use crate::core::id::{Id, Scope};
use crate::core::tool::ToolKey;

use super::changes::Heard;
use super::engine::Engine;
use super::reads::Readers;
use super::writer::Writer;
use super::writes::{self, stored_scope};
use super::{
    CatalogOwner, CatalogRows, CatalogWrite, Changes, ConfigWrite, InlineKey, InlineTouch, InlineWrite,
    ListingBaseTouch, Provenance, Reseal, ScopeRow, SealedSecret, SecretPlace, SecretRow, Store, StoreError,
    StoreLoad, ToolRow, VectorRow, VectorSpace, sql,
};

/// Vectors in one operation, some kilobytes each.
const VECTORS_PER_OPERATION: usize = 128;

/// Durable state in the tables of one database.
#[derive(Debug)]
pub struct SqlStore<E: Engine> {
    pub(super) readers: Readers<E>,
    pub(super) writer: Writer<E>,
    /// Where others tell what they wrote.
    pub(super) listening: Option<Listening>,
}

/// A task that hears what others wrote, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) heard: Arc<Heard>,
    pub(super) task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
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
    (String, i64, i64, i64, i64, String, Option<String>, Option<String>, Option<String>, Option<String>);

pub(super) async fn read_scope<'c, E: Engine>(
    executor: impl Executor<'c, Database = E>,
    scope: &Scope,
) -> Result<ScopeRow, StoreError> {
    let rows: Vec<ScopeColumns> =
        sqlx::query_as(sql::SCOPE).bind(scope.kind()).bind(scope.id().as_str()).fetch_all(executor).await?;
    let mut answer = ScopeRow::default();
    for (config, written, revision, writes, renewals, catalog_version, name, origin, last4, sealed) in rows {
        answer.config = config;
        answer.config_revision = if written == 0 { 0 } else { revision };
        answer.raw_revision = revision;
        answer.writes = writes;
        answer.renewals = renewals;
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
impl<E: Engine> Store for SqlStore<E> {
    async fn scope(&self, scope: &Scope) -> Result<ScopeRow, StoreError> {
        self.read(|mut reader| async move { read_scope(&mut *reader, scope).await }).await
    }

    async fn write_config(&self, scope: &Scope, write: ConfigWrite) -> Result<ScopeRow, StoreError> {
        self.writer.submit(writes::WriteConfig { scope: scope.clone(), write }).await
    }

    async fn renew_scope(&self, scope: &Scope) -> Result<ScopeRow, StoreError> {
        self.writer.submit(writes::RenewScope(scope.clone())).await
    }

    async fn catalog(&self, owner: &CatalogOwner) -> Result<CatalogRows, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = match owner {
                CatalogOwner::Scope(scope) => {
                    sqlx::query_as(sql::SCOPE_CATALOG).bind(scope.kind()).bind(scope.id().as_str())
                }
                CatalogOwner::Inline(key) => sqlx::query_as(sql::INLINE_CATALOG)
                    .bind(key.user.as_str())
                    .bind(key.reference.as_str())
                    .bind(inline_owner(key)),
            };
            Ok(query.fetch_all(&mut *reader).await?)
        });
        let rows: Vec<CatalogColumns> = read.await?;
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
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::PROVENANCE)
                .bind(scope.kind())
                .bind(scope.id().as_str())
                .bind(&*tool.group)
                .bind(&*tool.name);
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        let row: Option<(String, i64, i64, String)> = read.await?;
        Ok(row.map(|(digest, first_seen_ms, changed_at_ms, uploaded_by)| Provenance {
            digest,
            first_seen_ms,
            changed_at_ms,
            uploaded_by,
        }))
    }

    async fn inline_catalog(&self, key: &InlineKey) -> Result<Option<String>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query =
                sqlx::query_as(sql::INLINE_VERSION).bind(key.user.as_str()).bind(key.reference.as_str());
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        let row: Option<(String,)> = read.await?;
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

    async fn expire_inline(&self, before_ms: i64, limit: u32) -> Result<Vec<InlineKey>, StoreError> {
        self.writer.submit(writes::ExpireInline { before_ms, limit }).await
    }

    async fn listing_base(&self, digest: Digest) -> Result<Option<String>, StoreError> {
        let read = self.read(|mut reader| async move {
            Ok(sqlx::query_as(sql::LISTING_BASE)
                .bind(digest.to_string())
                .fetch_optional(&mut *reader)
                .await?)
        });
        let row: Option<(String,)> = read.await?;
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
        let columns = &writes::space_columns(space);
        let mut rows = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while let Some((text, size)) = sql::VECTORS.next(rest.len()) {
            let (now, later) = rest.split_at(size);
            let read = self.read(|mut reader| async move {
                let mut query = sqlx::query_as(text);
                for column in columns.iter().cloned().chain(now.iter().map(Digest::to_string)) {
                    query = query.bind(column);
                }
                Ok(query.fetch_all(&mut *reader).await?)
            });
            let found: Vec<(String, Vec<u8>, i64)> = read.await?;
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
        let read = self.read(|mut reader| async move {
            Ok(sqlx::query_as(sql::META).bind(key).fetch_optional(&mut *reader).await?)
        });
        let row: Option<(String,)> = read.await?;
        Ok(row.map(|(value,)| value))
    }

    async fn sealed_secrets(&self) -> Result<Vec<SecretPlace>, StoreError> {
        let read =
            self.read(
                |mut reader| async move { Ok(sqlx::query_as(sql::SECRETS).fetch_all(&mut *reader).await?) },
            );
        let rows: Vec<(String, String, String, String)> = read.await?;
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

    fn is_shared(&self) -> bool {
        E::SHARED
    }

    async fn next_changes(&self) -> Changes {
        match &self.listening {
            Some(listening) => listening.heard.next().await,
            None => std::future::pending().await,
        }
    }

    fn hears_changes(&self) -> bool {
        self.listening.as_ref().is_some_and(|listening| listening.heard.is_listening())
    }

    async fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        let Some(clock) = E::CLOCK else { return Ok(None) };
        let read =
            self.read(|mut reader| async move { Ok(sqlx::query_as(clock).fetch_one(&mut *reader).await?) });
        let (now,): (i64,) = read.await?;
        Ok(Some(now))
    }

    async fn health(&self) -> Result<(), StoreError> {
        if self.writer.is_closed() {
            return Err(StoreError::Closed);
        }
        self.look().await
    }

    fn has_room(&self) -> bool {
        self.writer.has_room()
    }

    fn load(&self) -> StoreLoad {
        let pool = &self.readers.pool;
        let open = pool.size();
        let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX).min(open);
        StoreLoad {
            waiting_writes: self.writer.waiting(),
            connections_in_use: open - idle,
            connections_idle: idle,
            connections_most: pool.options().get_max_connections(),
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        if let Some(listening) = &self.listening {
            listening.task.abort();
        }
        // Readers first: an open one would keep the write-ahead log from being emptied.
        self.readers.pool.close().await;
        self.writer.close().await
    }
}
