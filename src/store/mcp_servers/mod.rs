//! MCP servers of scopes: their rows, when they are due, and how the last time went. What a spec means is not known here.

mod rows;
mod sql;

use async_trait::async_trait;

use super::{AuditWrite, SealedSecret, SecretAction, StoreError, WriteNotes};
use crate::core::id::Scope;

/// The secret of a server: what is sent to it and never shown. It is none of the scope's matcher, whose secrets go with the
/// config.
pub fn mcp_secret(name: &str) -> String {
    format!("mcp/{name}")
}

/// A stored server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerRow {
    pub scope: Scope,
    pub name: String,
    /// Opaque JSON text, without secrets.
    pub spec: String,
    /// Sealed for the place that [`mcp_secret`] names.
    pub secret: Option<SealedSecret>,
    pub watched: bool,
    /// Tells one version of the spec from another.
    pub written_at_ms: i64,
    /// 0: not by itself.
    pub next_sync_at_ms: i64,
    /// How often it failed since it last went well.
    pub failures: i64,
    /// When the last time ended, well or not; 0: never.
    pub last_sync_at_ms: i64,
    /// Opaque JSON text; empty before the first time.
    pub last_status: String,
    /// Tools that the server had when it last went well.
    pub tools: i64,
}

/// A whole server, new or in the place of the one of its name. What is known of the last time stays.
#[derive(Debug, Clone)]
pub struct McpServerWrite {
    pub name: String,
    pub spec: String,
    /// `None` keeps the stored secret.
    pub secret: Option<SecretAction>,
    pub watched: bool,
    pub next_sync_at_ms: i64,
    /// Servers that a scope may have; one more is [`StoreError::TooMany`].
    pub most: u32,
    pub now_ms: i64,
    pub notes: WriteNotes,
}

/// How a time went.
#[derive(Debug, Clone)]
pub struct McpSyncNote {
    pub next_sync_at_ms: i64,
    pub failures: i64,
    pub now_ms: i64,
    pub status: String,
    /// `None` keeps the number.
    pub tools: Option<i64>,
}

/// The MCP servers of a store; part of [`super::Store`], with its promises.
#[async_trait]
pub trait McpServerStore {
    /// The servers of a scope, by name.
    async fn mcp_servers(&self, scope: &Scope) -> Result<Vec<McpServerRow>, StoreError>;

    /// One server; `None` when it does not exist.
    async fn mcp_server(&self, scope: &Scope, name: &str) -> Result<Option<McpServerRow>, StoreError>;

    /// Stores a server with its secret.
    async fn write_mcp_server(&self, scope: &Scope, write: McpServerWrite) -> Result<(), StoreError>;

    /// Deletes a server with its secret. Answers whether there was one; only then an entry is written.
    async fn delete_mcp_server(
        &self,
        scope: &Scope,
        name: &str,
        audit: Option<AuditWrite>,
    ) -> Result<bool, StoreError>;

    /// Notes how a time went with the server as it was written at `written_at_ms`; another version of it knows nothing of that.
    async fn note_mcp_sync(
        &self,
        scope: &Scope,
        name: &str,
        written_at_ms: i64,
        note: McpSyncNote,
    ) -> Result<(), StoreError>;

    /// Up to `limit` servers that are due by now, the longest due first.
    async fn due_mcp_servers(&self, now_ms: i64, limit: u32) -> Result<Vec<McpServerRow>, StoreError>;

    /// Takes a server that is due at a time, so that it is due at another one; whether it still was. Of several processes one
    /// takes it.
    async fn claim_mcp_server(
        &self,
        scope: &Scope,
        name: &str,
        due_ms: i64,
        until_ms: i64,
    ) -> Result<bool, StoreError>;

    /// Up to `limit` servers that are to be watched and that no other holder watches at this time; those of the holder come first,
    /// then the ones that were written first.
    async fn watched_mcp_servers(
        &self,
        limit: u32,
        holder: &str,
        now_ms: i64,
    ) -> Result<Vec<McpServerRow>, StoreError>;

    /// Takes the watch of a server, or takes it again, until a time; whether no other holder has it. Of several processes one has it.
    async fn claim_watch(
        &self,
        scope: &Scope,
        name: &str,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<bool, StoreError>;

    /// Gives up all watches of a holder.
    async fn release_watches(&self, holder: &str) -> Result<(), StoreError>;
}
