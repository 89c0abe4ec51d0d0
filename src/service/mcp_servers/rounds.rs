//! Syncs that nobody asks for: by the clock, and when a watched server tells that its tools changed.
//!
//! One task goes round; servers that are due are read one after another, each by one process. Watched servers have a task each, a few
//! of them in one process, and each in one process alone.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ServerKey;
use crate::service::{Actor, Toolrack, now_ms};
use crate::store::{McpServerRow, StoreError};
use crate::telemetry::warn_of;

/// How often servers that are due are looked for.
const ROUND: Duration = Duration::from_secs(15);

/// Servers that are read in one round at most.
const MAX_DUE: u32 = 64;

/// A server that is being read is due again after this time, should its process end meanwhile.
const CLAIM_MS: i64 = 10 * 60 * 1_000;

/// Most servers that are watched by one process.
const MAX_WATCHED: u32 = 16;

/// A process that watches a server says so in every round; after so long another one takes it over.
const WATCH_MS: i64 = 45 * 1_000;

/// Notices of changes within this time are one.
const QUIET: Duration = Duration::from_millis(500);

/// How long a broken connection to a watched server is left: first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(600);

/// A connection that lasted as long was a good one.
const LASTED: Duration = Duration::from_secs(120);

/// The tasks that watch, by server, with the version of the spec that they watch with.
type Watchers = HashMap<ServerKey, (i64, AbortOnDropHandle<()>)>;

impl Toolrack {
    /// Keeps the tools of stored servers up to date until `stop`.
    pub async fn keep_mcp_servers(&self, stop: CancellationToken) {
        let watching = async {
            let mut watchers = Watchers::new();
            loop {
                self.watch_servers(&mut watchers).await;
                // In time or not: there may be others now.
                drop(tokio::time::timeout(ROUND, self.0.mcp.written.notified()).await);
            }
        };
        let syncing = async {
            loop {
                self.sync_due().await;
                tokio::time::sleep(ROUND).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = watching => {}
            () = syncing => {}
        }
        if self.0.store.is_shared()
            && let Err(error) = self.0.store.release_watches(&self.0.holder).await
        {
            warn_of!(error, "other processes watch MCP servers a little later");
        }
    }

    /// Reads the servers that are due, one after another.
    async fn sync_due(&self) {
        let due = match self.0.store.due_mcp_servers(now_ms(), MAX_DUE).await {
            Ok(due) => due,
            Err(error) => return warn_of!(error, "could not look for MCP servers that are due"),
        };
        for row in due {
            // Another process may take it, or an administrator may write it meanwhile.
            let until = now_ms() + CLAIM_MS;
            match self.0.store.claim_mcp_server(&row.scope, &row.name, row.next_sync_at_ms, until).await {
                Ok(true) => self.sync_by_itself(row).await,
                Ok(false) => {}
                Err(error) => warn_of!(error, server = row.name, "an MCP server could not be read"),
            }
        }
    }

    /// One sync to its end.
    async fn sync_by_itself(&self, row: McpServerRow) {
        let name = row.name.clone();
        // One that runs already may have read what is no longer so.
        if let Some(job) = self.0.mcp.jobs.of(&(row.scope.clone(), name.clone())) {
            job.ended().await;
        }
        match self.begin_sync(&Actor::sync(), row, false) {
            Ok(job) => {
                job.ended().await;
                if let Some(Err(fault)) = job.outcome() {
                    tracing::info!(server = name, reason = fault.reason, "an MCP server could not be read");
                }
            }
            Err(error) => warn_of!(error, server = name, "an MCP server could not be read"),
        }
    }

    /// The servers that this process is to watch: that no other one does.
    async fn servers_to_watch(&self) -> Result<Vec<McpServerRow>, StoreError> {
        let (store, holder, now) = (&self.0.store, &self.0.holder, now_ms());
        if !store.is_shared() {
            return store.watched_mcp_servers(MAX_WATCHED, holder, i64::MAX).await;
        }
        let mut wanted = Vec::new();
        for row in store.watched_mcp_servers(MAX_WATCHED, holder, now).await? {
            if store.claim_watch(&row.scope, &row.name, holder, now, now + WATCH_MS).await? {
                wanted.push(row);
            }
        }
        Ok(wanted)
    }

    /// Has one task for each server that is to be watched, and none for others.
    async fn watch_servers(&self, watchers: &mut Watchers) {
        let wanted = match self.servers_to_watch().await {
            Ok(wanted) => wanted,
            Err(error) => return warn_of!(error, "could not look for MCP servers to watch"),
        };
        let key = |row: &McpServerRow| (row.scope.clone(), row.name.clone());
        watchers.retain(|known, (version, _)| {
            wanted.iter().any(|row| key(row) == *known && row.written_at_ms == *version)
        });
        for row in wanted {
            let (version, service) = (row.written_at_ms, self.clone());
            watchers.entry(key(&row)).or_insert_with(|| {
                let task = tokio::spawn(async move { service.watch_server(row).await });
                (version, AbortOnDropHandle::new(task))
            });
        }
    }

    /// Watches a server for as long as it is to be watched; after a failure again, later and later.
    async fn watch_server(&self, row: McpServerRow) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let reason = self.watch_once(&row).await;
            tracing::info!(server = row.name, reason, "a watched MCP server is not connected");
            pause = if began.elapsed() >= LASTED { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            let jitter = rand::random_range(0..=1_000);
            tokio::time::sleep(pause + Duration::from_millis(jitter)).await;
        }
    }

    /// One connection to its end; tells why it ended.
    async fn watch_once(&self, row: &McpServerRow) -> String {
        let Ok(spec) = super::stored_spec(row) else { return "unreadable".to_owned() };
        let texts = match self.mcp_texts(row, &spec) {
            Ok(texts) => texts,
            Err(fault) => return fault.reason,
        };
        let (address, changed) = (spec.address(texts), Notify::new());
        let told = || changed.notify_one();
        let syncs = async {
            loop {
                changed.notified().await;
                tokio::time::sleep(QUIET).await;
                // As it is now: its failures count on.
                match self.0.store.mcp_server(&row.scope, &row.name).await {
                    Ok(Some(now)) if now.written_at_ms == row.written_at_ms => self.sync_by_itself(now).await,
                    _ => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            failure = self.0.tool_source.watch(&address, &told) => failure.fault.as_str().to_owned(),
            () = syncs => "gone".to_owned(),
        }
    }
}
