//! Usage in the store: counters by scope and day, finds and calls of tools, and queries that found nothing. What a counter
//! means is not known here. Every write adds to what is stored, so that processes never lose each other's counts.

mod rows;
mod sql;

use async_trait::async_trait;

use super::StoreError;
use crate::core::id::Scope;
use crate::core::tool::ToolKey;
use crate::core::usage::ToolCounts;

pub(super) use rows::forget_missed_queries;

/// What is added to one counter. Days are counted from 1970-01-01 in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAdd {
    pub scope: Scope,
    pub day: i64,
    pub counter: String,
    pub value: i64,
}

/// What is added to the counts of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUsageAdd {
    pub scope: Scope,
    pub day: i64,
    pub tool: ToolKey,
    pub counts: ToolCounts,
}

/// A stored counter of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub day: i64,
    pub counter: String,
    pub value: i64,
}

/// A tool with its counts, summed over days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUsageRow {
    pub tool: ToolKey,
    pub counts: ToolCounts,
}

/// A query that found nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedQuery {
    pub query: String,
    pub count: i64,
    pub last_at_ms: i64,
}

/// The usage of a store; part of [`super::Store`], with its promises.
#[async_trait]
pub trait UsageStore {
    /// Adds to counters. At most one of each scope, day and counter per call.
    async fn add_usage(&self, adds: Vec<UsageAdd>) -> Result<(), StoreError>;

    /// Adds to the counts of tools. At most one of each scope, day and tool per call.
    async fn add_tool_usage(&self, adds: Vec<ToolUsageAdd>) -> Result<(), StoreError>;

    /// The counters of a scope from a day on, by day and name.
    async fn usage(&self, scope: &Scope, since_day: i64) -> Result<Vec<UsageRow>, StoreError>;

    /// The tools of a scope with what they were counted from a day on: the most called first, then the most found, then by
    /// group and name.
    async fn tool_usage(
        &self,
        scope: &Scope,
        since_day: i64,
        limit: u32,
    ) -> Result<Vec<ToolUsageRow>, StoreError>;

    /// Of the rows of a scope's tools, one a day and tool, leaves so many: the youngest, and of a day the most called.
    async fn trim_tool_usage(&self, scope: &Scope, most: u32) -> Result<(), StoreError>;

    /// Adds queries that found nothing; of a scope the `most` that were asked last are left. At most one of each query. Only while
    /// the scope's config is that of a [`super::ScopeRow::raw_revision`], else it is a [`StoreError::Conflict`].
    async fn add_missed_queries(
        &self,
        scope: &Scope,
        raw_revision: i64,
        queries: Vec<MissedQuery>,
        most: u32,
    ) -> Result<(), StoreError>;

    /// Queries of a scope that found nothing, the most frequent first, then the latest, then by text.
    async fn missed_queries(&self, scope: &Scope, limit: u32) -> Result<Vec<MissedQuery>, StoreError>;

    /// Deletes up to `limit` rows each of counters and tools of days before `before_day`, and of queries that were last asked
    /// before `before_ms`; tells how many in all.
    async fn expire_usage(&self, before_day: i64, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
