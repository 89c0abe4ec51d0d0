//! [`UsageStore`] in the tables: the reads, and the writes as operations of the writer.

use async_trait::async_trait;

use super::{MissedQuery, ToolUsageAdd, ToolUsageRow, UsageAdd, UsageRow, UsageStore, sql};
use crate::core::id::Scope;
use crate::core::tool::ToolKey;
use crate::core::usage::ToolCounts;
use crate::store::engine::Engine;
use crate::store::writer::Operation;
use crate::store::writes::{execute_rows, scope_state};
use crate::store::{SqlStore, StoreError};

/// What all writes of usage exclude each other by: each changes many rows at once.
const ALL: &str = "usage";

/// A count as it is stored.
fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[async_trait]
impl<E: Engine> UsageStore for SqlStore<E> {
    async fn add_usage(&self, adds: Vec<UsageAdd>) -> Result<(), StoreError> {
        self.writer.submit(AddUsage(adds)).await
    }

    async fn add_tool_usage(&self, adds: Vec<ToolUsageAdd>) -> Result<(), StoreError> {
        self.writer.submit(AddToolUsage(adds)).await
    }

    async fn usage(&self, scope: &Scope, since_day: i64) -> Result<Vec<UsageRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::DAYS).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.bind(since_day).fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(i64, String, i64)> = read.await?;
        Ok(rows.into_iter().map(|(day, counter, value)| UsageRow { day, counter, value }).collect())
    }

    async fn tool_usage(
        &self,
        scope: &Scope,
        since_day: i64,
        limit: u32,
    ) -> Result<Vec<ToolUsageRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::TOOLS).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.bind(since_day).bind(i64::from(limit)).fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(String, String, i64, i64)> = read.await?;
        let count = |value: i64| u64::try_from(value).unwrap_or_default();
        let read = |(group, name, finds, calls): (String, String, i64, i64)| ToolUsageRow {
            tool: ToolKey { group: group.into(), name: name.into() },
            counts: ToolCounts { finds: count(finds), calls: count(calls) },
        };
        Ok(rows.into_iter().map(read).collect())
    }

    async fn trim_tool_usage(&self, scope: &Scope, most: u32) -> Result<(), StoreError> {
        self.writer.submit(TrimToolUsage { scope: scope.clone(), most }).await
    }

    async fn add_missed_queries(
        &self,
        scope: &Scope,
        raw_revision: i64,
        queries: Vec<MissedQuery>,
        most: u32,
    ) -> Result<(), StoreError> {
        let add = AddMissedQueries { scope: scope.clone(), raw_revision, queries, most };
        self.writer.submit(add).await
    }

    async fn missed_queries(&self, scope: &Scope, limit: u32) -> Result<Vec<MissedQuery>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::MISSED).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.bind(i64::from(limit)).fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(String, i64, i64)> = read.await?;
        let read = |(query, count, last_at_ms)| MissedQuery { query, count, last_at_ms };
        Ok(rows.into_iter().map(read).collect())
    }

    async fn expire_usage(&self, before_day: i64, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(ExpireUsage { before_day, before_ms, limit }).await
    }
}

/// Deletes all queries of a scope that found nothing, inside another operation.
pub(in crate::store) async fn forget_missed_queries<E: Engine>(
    connection: &mut E::Connection,
    scope: &Scope,
) -> Result<(), StoreError> {
    let forget = sqlx::query(sql::MISSED_FORGET).bind(scope.kind()).bind(scope.id().as_str());
    forget.execute(connection).await?;
    Ok(())
}

struct AddUsage(Vec<UsageAdd>);

impl<E: Engine> Operation<E> for AddUsage {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL).await?;
        execute_rows::<E, _>(connection, &sql::ADD, &[], &self.0, |statement, add| {
            statement
                .bind(add.scope.kind())
                .bind(add.scope.id().to_string())
                .bind(add.day)
                .bind(add.counter.clone())
                .bind(add.value)
        })
        .await
    }
}

struct AddToolUsage(Vec<ToolUsageAdd>);

impl<E: Engine> Operation<E> for AddToolUsage {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL).await?;
        execute_rows::<E, _>(connection, &sql::TOOLS_ADD, &[], &self.0, |statement, add| {
            statement
                .bind(add.scope.kind())
                .bind(add.scope.id().to_string())
                .bind(add.day)
                .bind(add.tool.group.to_string())
                .bind(add.tool.name.to_string())
                .bind(stored(add.counts.finds))
                .bind(stored(add.counts.calls))
        })
        .await
    }
}

struct TrimToolUsage {
    scope: Scope,
    most: u32,
}

impl<E: Engine> Operation<E> for TrimToolUsage {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL).await?;
        let (owner, most) = ([self.scope.kind(), self.scope.id().as_str()], i64::from(self.most));
        let count = sqlx::query_as(sql::TOOLS_COUNT).bind(owner[0]).bind(owner[1]);
        let (rows,): (i64,) = count.fetch_one(&mut *connection).await?;
        // Most scopes have few, and ordering them takes longer than counting.
        if rows > most {
            let trim = sqlx::query(sql::TOOLS_TRIM).bind(owner[0]).bind(owner[1]).bind(most);
            trim.execute(connection).await?;
        }
        Ok(())
    }
}

struct AddMissedQueries {
    scope: Scope,
    raw_revision: i64,
    queries: Vec<MissedQuery>,
    most: u32,
}

impl<E: Engine> Operation<E> for AddMissedQueries {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        if scope_state::<E>(connection, &self.scope).await?.raw_revision != self.raw_revision {
            return Err(StoreError::Conflict);
        }
        E::exclude(connection, ALL).await?;
        let owner = [self.scope.kind(), self.scope.id().as_str()];
        execute_rows::<E, _>(connection, &sql::MISSED_ADD, &owner, &self.queries, |statement, missed| {
            statement.bind(missed.query.clone()).bind(missed.count).bind(missed.last_at_ms)
        })
        .await?;
        let trim = sqlx::query(sql::MISSED_TRIM).bind(owner[0]).bind(owner[1]).bind(i64::from(self.most));
        trim.execute(connection).await?;
        Ok(())
    }
}

struct ExpireUsage {
    before_day: i64,
    before_ms: i64,
    limit: u32,
}

impl<E: Engine> Operation<E> for ExpireUsage {
    type Output = u64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<u64, StoreError> {
        E::exclude(connection, ALL).await?;
        let mut expired = 0;
        for (text, before) in [
            (sql::DAYS_EXPIRE, self.before_day),
            (sql::TOOLS_EXPIRE, self.before_day),
            (sql::MISSED_EXPIRE, self.before_ms),
        ] {
            let expire = sqlx::query(text).bind(before).bind(i64::from(self.limit));
            expired += E::rows_affected(&expire.execute(&mut *connection).await?);
        }
        Ok(expired)
    }
}
