//! [`McpServerStore`] in the tables: the reads, and the writes as operations of the writer.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{McpServerRow, McpServerStore, McpServerWrite, McpSyncNote, mcp_secret, sql};
use crate::core::id::Scope;
use crate::store::audit::note;
use crate::store::engine::Engine;
use crate::store::writer::Operation;
use crate::store::writes::{begin, change_secret, scope_state, stored_scope};
use crate::store::{AuditWrite, SealedSecret, SecretAction, SecretChange, SqlStore, StoreError};

fn row<E: Engine>(row: &E::Row) -> Result<McpServerRow, StoreError> {
    let (kind, id): (String, String) = (row.try_get("kind")?, row.try_get("id")?);
    let sealed: Option<String> = row.try_get("sealed")?;
    let secret = match (row.try_get("origin")?, sealed) {
        (Some(origin), Some(sealed)) => {
            let bytes = hex::decode(sealed).map_err(|_| StoreError::Corrupt("secret"))?;
            Some(SealedSecret { origin, last4: row.try_get("last4")?, bytes })
        }
        _ => None,
    };
    let watched: i64 = row.try_get("watched")?;
    Ok(McpServerRow {
        scope: stored_scope(&kind, &id)?,
        name: row.try_get("name")?,
        spec: row.try_get("spec")?,
        secret,
        watched: watched != 0,
        written_at_ms: row.try_get("written_at")?,
        next_sync_at_ms: row.try_get("next_sync_at")?,
        failures: row.try_get("failures")?,
        last_sync_at_ms: row.try_get("last_sync_at")?,
        last_status: row.try_get("last_status")?,
        tools: row.try_get("tools")?,
    })
}

fn rows<E: Engine>(found: &[E::Row]) -> Result<Vec<McpServerRow>, StoreError> {
    found.iter().map(row::<E>).collect()
}

#[async_trait]
impl<E: Engine> McpServerStore for SqlStore<E> {
    async fn mcp_servers(&self, scope: &Scope) -> Result<Vec<McpServerRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query(sql::OF_SCOPE).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.fetch_all(&mut *reader).await?)
        });
        rows::<E>(&read.await?)
    }

    async fn mcp_server(&self, scope: &Scope, name: &str) -> Result<Option<McpServerRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query(sql::ONE).bind(scope.kind()).bind(scope.id().as_str()).bind(name);
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        read.await?.as_ref().map(row::<E>).transpose()
    }

    async fn write_mcp_server(&self, scope: &Scope, write: McpServerWrite) -> Result<(), StoreError> {
        self.writer.submit(WriteMcpServer { scope: scope.clone(), write }).await
    }

    async fn delete_mcp_server(
        &self,
        scope: &Scope,
        name: &str,
        audit: Option<AuditWrite>,
    ) -> Result<bool, StoreError> {
        let delete = DeleteMcpServer { scope: scope.clone(), name: name.to_owned(), audit };
        self.writer.submit(delete).await
    }

    async fn note_mcp_sync(
        &self,
        scope: &Scope,
        name: &str,
        written_at_ms: i64,
        note: McpSyncNote,
    ) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.writer.submit(NoteMcpSync { scope: scope.clone(), name, written_at_ms, note }).await
    }

    async fn claim_mcp_server(
        &self,
        scope: &Scope,
        name: &str,
        due_ms: i64,
        until_ms: i64,
    ) -> Result<bool, StoreError> {
        let claim = ClaimMcpServer { scope: scope.clone(), name: name.to_owned(), due_ms, until_ms };
        self.writer.submit(claim).await
    }

    async fn due_mcp_servers(&self, now_ms: i64, limit: u32) -> Result<Vec<McpServerRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query(sql::DUE).bind(now_ms).bind(i64::from(limit));
            Ok(query.fetch_all(&mut *reader).await?)
        });
        rows::<E>(&read.await?)
    }

    async fn watched_mcp_servers(
        &self,
        limit: u32,
        holder: &str,
        now_ms: i64,
    ) -> Result<Vec<McpServerRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query(sql::WATCHED).bind(i64::from(limit)).bind(holder).bind(now_ms);
            Ok(query.fetch_all(&mut *reader).await?)
        });
        rows::<E>(&read.await?)
    }

    async fn claim_watch(
        &self,
        scope: &Scope,
        name: &str,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<bool, StoreError> {
        let (scope, name, holder) = (scope.clone(), name.to_owned(), holder.to_owned());
        self.writer.submit(ClaimWatch { scope, name, holder, now_ms, until_ms }).await
    }

    async fn release_watches(&self, holder: &str) -> Result<(), StoreError> {
        self.writer.submit(ReleaseWatches(holder.to_owned())).await
    }
}

struct WriteMcpServer {
    scope: Scope,
    write: McpServerWrite,
}

impl<E: Engine> Operation<E> for WriteMcpServer {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let Self { scope, write } = self;
        let [kind, id] = [scope.kind(), scope.id().as_str()];
        let state = scope_state::<E>(connection, scope).await?;
        let others = sqlx::query_as(sql::OTHERS).bind(kind).bind(id).bind(write.name.as_str());
        let (others,): (i64,) = others.fetch_one(&mut *connection).await?;
        if others >= i64::from(write.most) {
            return Err(StoreError::TooMany);
        }
        begin::<E>(connection, &state, write.notes.beginner).await?;
        sqlx::query(sql::SCOPE_PUT).bind(kind).bind(id).bind(write.now_ms).execute(&mut *connection).await?;
        sqlx::query(sql::PUT)
            .bind(kind)
            .bind(id)
            .bind(write.name.as_str())
            .bind(write.spec.as_str())
            .bind(i64::from(write.watched))
            .bind(write.now_ms)
            .bind(write.next_sync_at_ms)
            .execute(&mut *connection)
            .await?;
        if let Some(action) = &write.secret {
            let change = SecretChange { name: mcp_secret(&write.name), action: action.clone() };
            change_secret::<E>(connection, [kind, id], &change).await?;
        }
        match &write.notes.audit {
            Some(audit) => note::<E>(connection, audit, None, None).await,
            None => Ok(()),
        }
    }
}

struct DeleteMcpServer {
    scope: Scope,
    name: String,
    audit: Option<AuditWrite>,
}

impl<E: Engine> Operation<E> for DeleteMcpServer {
    type Output = bool;

    async fn apply(&self, connection: &mut E::Connection) -> Result<bool, StoreError> {
        let owner = [self.scope.kind(), self.scope.id().as_str()];
        let delete = sqlx::query(sql::DELETE).bind(owner[0]).bind(owner[1]).bind(self.name.as_str());
        let there = E::rows_affected(&delete.execute(&mut *connection).await?) > 0;
        let change = SecretChange { name: mcp_secret(&self.name), action: SecretAction::Clear };
        change_secret::<E>(connection, owner, &change).await?;
        if let Some(audit) = self.audit.as_ref().filter(|_| there) {
            note::<E>(connection, audit, None, None).await?;
        }
        Ok(there)
    }
}

struct ClaimMcpServer {
    scope: Scope,
    name: String,
    due_ms: i64,
    until_ms: i64,
}

impl<E: Engine> Operation<E> for ClaimMcpServer {
    type Output = bool;

    async fn apply(&self, connection: &mut E::Connection) -> Result<bool, StoreError> {
        let claim = sqlx::query(sql::CLAIM)
            .bind(self.scope.kind())
            .bind(self.scope.id().as_str())
            .bind(self.name.as_str())
            .bind(self.due_ms)
            .bind(self.until_ms);
        Ok(E::rows_affected(&claim.execute(connection).await?) > 0)
    }
}

struct ClaimWatch {
    scope: Scope,
    name: String,
    holder: String,
    now_ms: i64,
    until_ms: i64,
}

impl<E: Engine> Operation<E> for ClaimWatch {
    type Output = bool;

    async fn apply(&self, connection: &mut E::Connection) -> Result<bool, StoreError> {
        let claim = sqlx::query(sql::WATCH)
            .bind(self.scope.kind())
            .bind(self.scope.id().as_str())
            .bind(self.name.as_str())
            .bind(self.holder.as_str())
            .bind(self.now_ms)
            .bind(self.until_ms);
        Ok(E::rows_affected(&claim.execute(connection).await?) > 0)
    }
}

struct ReleaseWatches(String);

impl<E: Engine> Operation<E> for ReleaseWatches {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        sqlx::query(sql::UNWATCH).bind(self.0.as_str()).execute(connection).await?;
        Ok(())
    }
}

struct NoteMcpSync {
    scope: Scope,
    name: String,
    written_at_ms: i64,
    note: McpSyncNote,
}

impl<E: Engine> Operation<E> for NoteMcpSync {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        sqlx::query(sql::NOTE)
            .bind(self.scope.kind())
            .bind(self.scope.id().as_str())
            .bind(self.name.as_str())
            .bind(self.written_at_ms)
            .bind(self.note.next_sync_at_ms)
            .bind(self.note.failures)
            .bind(self.note.now_ms)
            .bind(self.note.status.as_str())
            .bind(self.note.tools)
            .execute(connection)
            .await?;
        Ok(())
    }
}
