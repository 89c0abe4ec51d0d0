//! [`AuditStore`] in the tables, and writing an entry inside the operation of a change.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{AuditEntry, AuditQuery, AuditRow, AuditStore, AuditWrite, sql};
use crate::core::id::Id;
use crate::store::engine::Engine;
use crate::store::writer::Operation;
use crate::store::{SqlStore, StoreError};

/// One user or project gets a tenth of the entries, so that nobody's changes push out all of the others'.
const SHARE: i64 = 10;

/// So many entries may be too many for a while.
const TRIM_EVERY: i64 = 64;

/// Writes an entry, with what the operation knows of before and after, and drops those that are one too many.
pub(in crate::store) async fn note<E: Engine>(
    connection: &mut E::Connection,
    audit: &AuditWrite,
    before: Option<String>,
    after: Option<String>,
) -> Result<(), StoreError> {
    let AuditWrite { entry, most } = audit;
    let (id,): (i64,) = sqlx::query_as(sql::NEXT_ID).fetch_one(&mut *connection).await?;
    let text = |id: &Option<Id>| id.as_ref().map(ToString::to_string);
    sqlx::query(sql::INSERT)
        .bind(id)
        .bind(entry.at_ms)
        .bind(entry.actor.as_str())
        .bind(entry.action.as_str())
        .bind(text(&entry.user))
        .bind(text(&entry.project))
        .bind(text(&entry.session))
        .bind(entry.key.map(|key| key.to_string()))
        .bind(before.or_else(|| entry.before.clone()))
        .bind(after.or_else(|| entry.after.clone()))
        .bind(entry.summary.as_str())
        .bind(entry.request_id.as_deref())
        .execute(&mut *connection)
        .await?;
    let most = i64::from(*most);
    if sql::is_of_admins(&entry.action) {
        sqlx::query(sql::TRIM_OF_ADMINS).bind(most).execute(&mut *connection).await?;
    }
    // Finding the oldest that is kept reads all that are younger, so not at every entry.
    if id % TRIM_EVERY.min(most / SHARE).max(1) == 0 {
        let share = (most / SHARE).max(1);
        for (text, id) in [(sql::TRIM_OF_USER, &entry.user), (sql::TRIM_OF_PROJECT, &entry.project)] {
            if let Some(id) = id {
                sqlx::query(text).bind(id.to_string()).bind(share).execute(&mut *connection).await?;
            }
        }
        sqlx::query(sql::TRIM).bind(most).execute(connection).await?;
    }
    Ok(())
}

fn row<E: Engine>(row: &E::Row) -> Result<AuditRow, StoreError> {
    let id = |column: &str| -> Result<Option<Id>, StoreError> {
        let text: Option<String> = row.try_get(column)?;
        text.map(|text| Id::parse(&text)).transpose().map_err(|_| StoreError::Corrupt("identifier"))
    };
    let key: Option<String> = row.try_get("key_id")?;
    Ok(AuditRow {
        id: row.try_get("id")?,
        entry: AuditEntry {
            at_ms: row.try_get("at")?,
            actor: row.try_get("actor")?,
            action: row.try_get("action")?,
            user: id("user_id")?,
            project: id("project_id")?,
            session: id("session_id")?,
            key: key.and_then(|key| key.parse().ok()),
            before: row.try_get("revision_before")?,
            after: row.try_get("revision_after")?,
            summary: row.try_get("summary")?,
            request_id: row.try_get("request_id")?,
        },
    })
}

#[async_trait]
impl<E: Engine> AuditStore for SqlStore<E> {
    async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditRow>, StoreError> {
        let text = match (&query.user, &query.project) {
            (None, None) => sql::LIST,
            (Some(_), None) => sql::LIST_OF_USER,
            (None, Some(_)) => sql::LIST_OF_PROJECT,
            (Some(_), Some(_)) => sql::LIST_OF_BOTH,
        };
        let query = &query;
        let read = self.read(|mut reader| async move {
            let mut statement = sqlx::query(text)
                .bind(query.before.unwrap_or(i64::MAX))
                .bind(query.since_ms)
                .bind(query.actor.clone())
                .bind(query.action.clone())
                .bind(i64::from(query.sessions))
                .bind(i64::from(query.limit));
            for id in [&query.user, &query.project].into_iter().flatten() {
                statement = statement.bind(id.to_string());
            }
            Ok(statement.fetch_all(&mut *reader).await?)
        });
        let rows = read.await?;
        rows.iter().map(row::<E>).collect()
    }

    async fn expire_audit(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(ExpireAudit { before_ms, limit }).await
    }
}

struct ExpireAudit {
    before_ms: i64,
    limit: u32,
}

impl<E: Engine> Operation<E> for ExpireAudit {
    type Output = u64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<u64, StoreError> {
        let expire = sqlx::query(sql::EXPIRE).bind(self.before_ms).bind(i64::from(self.limit));
        Ok(E::rows_affected(&expire.execute(connection).await?))
    }
}
