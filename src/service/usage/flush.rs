//! Counts on their way into the store, and out of it when they are old.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::buffer::{Buffer, Missed, Taken};
use super::{MISSED_QUERIES, USAGE_DAYS};
use crate::core::id::Scope;
use crate::core::usage::{DAY_MS, ToolCounts, day_of};
use crate::service::heads::Head;
use crate::service::{Error, Toolrack, WRITE_TRIES, now_ms, uncancelled};
use crate::store::{MissedQuery, StoreError, ToolUsageAdd, UsageAdd};
use crate::telemetry::warn_of;

/// Rows of one write, so that a large flush lets other writes in between.
const ROWS_AT_ONCE: usize = 512;

/// Rows of tools that a scope may have: 1,000 tools a day, or a catalog of 20,000 for some days.
const TOOL_ROWS: u32 = 100_000;

/// Rows that a scope is given before somebody looks whether there are too many.
const TRIM_EVERY: usize = 20_000;

/// Scopes whose written rows are remembered.
const TRIM_SCOPES: usize = 10_000;

/// Rows that are deleted at once when they are too old.
const EXPIRED_AT_ONCE: u32 = 500;

/// Rows of tools that each scope was given since it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Written(HashMap<Scope, usize>);

impl Written {
    /// Notes rows; whether the scope is to be looked at now.
    fn note(&mut self, scope: &Scope, rows: usize) -> bool {
        if self.0.len() >= TRIM_SCOPES && !self.0.contains_key(scope) {
            self.0.clear();
        }
        let written = self.0.entry(scope.clone()).or_default();
        *written += rows;
        let is_due = *written >= TRIM_EVERY;
        if is_due {
            *written = 0;
        }
        is_due
    }
}

impl Toolrack {
    /// Stores what was counted. What could not be stored is counted on. Answers when flushes that were under way are done too.
    pub(in crate::service) async fn flush_usage(&self) -> Result<(), Error> {
        let guard = Arc::clone(&self.0.usage.flushing).lock_owned().await;
        let service = self.clone();
        uncancelled(async move { service.store_usage(guard).await }).await
    }

    async fn store_usage(&self, mut written: OwnedMutexGuard<Written>) -> Result<(), Error> {
        let buffer = &self.0.usage.buffer;
        let left_out = buffer.take_left_out();
        if left_out > 0 {
            tracing::warn!(left_out, "usage was not counted, because too much of it waits to be stored");
        }
        let (mut adds, mut tools, mut missed) = (Vec::new(), Vec::new(), Vec::new());
        for Taken { scope, day, counts, tools: of_scope, missed: queries } in buffer.take() {
            adds.extend(counts.rows().into_iter().map(|(counter, value)| {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                UsageAdd { scope: scope.clone(), day, counter, value }
            }));
            let add = |(tool, counts)| ToolUsageAdd { scope: scope.clone(), day, tool, counts };
            tools.extend(of_scope.into_iter().map(add));
            if !queries.is_empty() {
                missed.push((scope, day, queries));
            }
        }
        let mut failure = None;
        for part in adds.chunks(ROWS_AT_ONCE) {
            if let Err(error) = unless(&failure, self.0.store.add_usage(part.to_vec())).await {
                failure = Some(error);
                part.iter().for_each(|add| give_back(buffer, add));
            }
        }
        for part in tools.chunks(ROWS_AT_ONCE) {
            if let Err(error) = unless(&failure, self.0.store.add_tool_usage(part.to_vec())).await {
                failure = Some(error);
                part.iter().for_each(|add| give_tool_back(buffer, add));
                continue;
            }
            for of_scope in part.chunk_by(|a, b| a.scope == b.scope) {
                let Some(ToolUsageAdd { scope, .. }) = of_scope.first() else { continue };
                if of_scope.iter().any(|add| add.counts.calls > 0) {
                    self.0.usage.calls.invalidate(scope).await;
                }
                if written.note(scope, of_scope.len())
                    && let Err(error) = self.0.store.trim_tool_usage(scope, TOOL_ROWS).await
                {
                    warn_of!(error, "old usage of tools could not be deleted");
                }
            }
        }
        for (scope, day, queries) in missed {
            if let Err(error) = unless(&failure, self.store_missed(&scope, &queries)).await {
                failure = Some(error);
                buffer.record(&scope, day, |usage| {
                    queries.into_iter().for_each(|(query, missed)| usage.missed(query, missed));
                });
            }
        }
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Stores queries that found nothing, if the scope's config keeps them: as it is when they are stored, whoever wrote it.
    async fn store_missed(&self, scope: &Scope, queries: &HashMap<String, Missed>) -> Result<(), StoreError> {
        let rows = queries.iter().map(|(query, missed)| MissedQuery {
            query: query.clone(),
            count: missed.count,
            last_at_ms: missed.last_at_ms,
        });
        let rows: Vec<MissedQuery> = rows.collect();
        let mut tries = 0;
        loop {
            tries += 1;
            let head = Head::new(self.0.store.scope(scope).await?);
            if !head.keeps_missed_queries() {
                return Ok(());
            }
            let revision = head.row.raw_revision;
            match self.0.store.add_missed_queries(scope, revision, rows.clone(), MISSED_QUERIES).await {
                Err(StoreError::Conflict) if tries < WRITE_TRIES => {}
                written => return written,
            }
        }
    }

    /// Deletes usage that is too old.
    pub(in crate::service) async fn expire_usage(&self) -> Result<(), Error> {
        let now = now_ms();
        let first_day = day_of(now) - i64::from(USAGE_DAYS) + 1;
        let oldest_ms = now - i64::from(USAGE_DAYS) * DAY_MS;
        while self.0.store.expire_usage(first_day, oldest_ms, EXPIRED_AT_ONCE).await?
            >= u64::from(EXPIRED_AT_ONCE)
        {}
        Ok(())
    }
}

/// The write, unless one failed before.
async fn unless(
    failure: &Option<StoreError>,
    write: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    match failure {
        Some(error) => Err(error.clone()),
        None => write.await,
    }
}

fn give_back(buffer: &Buffer, add: &UsageAdd) {
    let value = u64::try_from(add.value).unwrap_or_default();
    buffer.record(&add.scope, add.day, |usage| usage.counts.add(&add.counter, value));
}

fn give_tool_back(buffer: &Buffer, add: &ToolUsageAdd) {
    let ToolUsageAdd { scope, day, tool, counts } = add;
    let counts: ToolCounts = *counts;
    buffer.record(scope, *day, |usage| usage.tool(tool.clone(), counts));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;

    #[test]
    fn a_scope_is_looked_at_after_so_many_rows() {
        let scope = |name: &str| Scope::User(Id::parse(name).unwrap());
        let mut written = Written::default();
        assert!(!written.note(&scope("a"), TRIM_EVERY - 1));
        assert!(!written.note(&scope("b"), 1));
        assert!(written.note(&scope("a"), 1));
        assert!(!written.note(&scope("a"), TRIM_EVERY - 1));
        for at in 0..2 * TRIM_SCOPES {
            assert!(!written.note(&scope(&format!("u{at}")), 1));
        }
        assert!(written.0.len() <= TRIM_SCOPES);
    }
}
