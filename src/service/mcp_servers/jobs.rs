//! Syncs that run or ran lately: at most one of each server at a time, with how far it is.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::sync::McpSynced;
use super::{McpFaultDocument, ServerKey};
use crate::service::{Error, Kind, lock, now_ms};

/// Jobs that are remembered, each with the names that it changed; those that have ended go first.
const MAX_JOBS: usize = 64;

/// Syncs of one user or project that run at the same time, so that others get theirs.
const MAX_OF_SCOPE: usize = 16;

/// Where a sync is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Connecting,
    Listing,
    Storing,
}

const STEPS: [(Step, &str); 3] =
    [(Step::Connecting, "connecting"), (Step::Listing, "listing"), (Step::Storing, "storing")];

/// A sync as it is shown while it runs and after it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct McpJobDocument {
    pub id: String,
    /// `running`, `done` or `failed`.
    #[schema(value_type = String)]
    pub state: &'static str,
    /// `connecting`, `listing` or `storing`: where it is, or where it ended.
    #[schema(value_type = String)]
    pub step: &'static str,
    pub tools_read: usize,
    pub started_at_ms: i64,
    /// How long that is ago; for pages.
    #[serde(skip)]
    pub waited_ms: u64,
    /// Whether it stores nothing.
    pub dry_run: bool,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<McpFaultDocument>,
}

/// How a sync ended.
pub(super) type Outcome = Result<Arc<McpSynced>, McpFaultDocument>;

/// A sync.
#[derive(Debug)]
pub(super) struct Job {
    id: u64,
    started_at_ms: i64,
    pub(super) dry_run: bool,
    step: AtomicU8,
    tools_read: AtomicUsize,
    outcome: OnceLock<Outcome>,
    done: CancellationToken,
}

impl Job {
    fn new(dry_run: bool) -> Self {
        Self {
            id: rand::random(),
            started_at_ms: now_ms(),
            dry_run,
            step: AtomicU8::new(0),
            tools_read: AtomicUsize::new(0),
            outcome: OnceLock::new(),
            done: CancellationToken::new(),
        }
    }

    pub(super) fn at(&self, step: Step) {
        let at = STEPS.iter().position(|(known, _)| *known == step).unwrap_or_default();
        self.step.store(u8::try_from(at).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(super) fn read(&self, tools: usize) {
        self.at(Step::Listing);
        self.tools_read.store(tools, Ordering::Relaxed);
    }

    pub(super) fn end(&self, outcome: Outcome) {
        // There is one task that ends it.
        drop(self.outcome.set(outcome));
        self.done.cancel();
    }

    pub(super) async fn ended(&self) {
        self.done.cancelled().await;
    }

    pub(super) fn outcome(&self) -> Option<&Outcome> {
        self.outcome.get()
    }

    /// What it did, once it is done.
    pub(super) fn result(&self) -> Option<Arc<McpSynced>> {
        self.outcome().and_then(|outcome| outcome.as_ref().ok()).cloned()
    }

    pub(super) fn document(&self) -> McpJobDocument {
        let (state, fault) = match self.outcome() {
            None => ("running", None),
            Some(Ok(_)) => ("done", None),
            Some(Err(fault)) => ("failed", Some(fault.clone())),
        };
        let step = STEPS.get(usize::from(self.step.load(Ordering::Relaxed)));
        McpJobDocument {
            id: format!("{:016x}", self.id),
            state,
            step: step.map_or("connecting", |(_, name)| name),
            tools_read: self.tools_read.load(Ordering::Relaxed),
            started_at_ms: self.started_at_ms,
            waited_ms: now_ms().saturating_sub(self.started_at_ms).max(0).unsigned_abs(),
            dry_run: self.dry_run,
            fault,
        }
    }
}

/// Ends a job also where its task does not get to its end.
pub(super) struct EndsJob(pub(super) Arc<Job>);

impl Drop for EndsJob {
    fn drop(&mut self) {
        self.0.end(Err(McpFaultDocument::not_stored("the service had a fault; its log tells more")));
    }
}

/// The jobs of all servers.
#[derive(Default)]
pub(super) struct Jobs(Mutex<HashMap<ServerKey, Arc<Job>>>);

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jobs")
    }
}

impl Jobs {
    /// The last job of a server.
    pub(super) fn of(&self, server: &ServerKey) -> Option<Arc<Job>> {
        lock(&self.0).get(server).cloned()
    }

    /// The job that runs for a server, or a new one, which the caller has to run; the flag says that it is new.
    pub(super) fn begin(&self, server: &ServerKey, dry_run: bool) -> Result<(Arc<Job>, bool), Error> {
        let mut jobs = lock(&self.0);
        if let Some(running) = jobs.get(server).filter(|job| job.outcome().is_none()) {
            return Ok((Arc::clone(running), false));
        }
        if jobs.len() >= MAX_JOBS && !jobs.contains_key(server) {
            jobs.retain(|_, job| job.outcome().is_none());
            if jobs.len() >= MAX_JOBS {
                return Err(Error::new(Kind::Unavailable, "too many MCP servers are read at this moment"));
            }
        }
        let running = jobs.iter().filter(|((scope, _), job)| *scope == server.0 && job.outcome().is_none());
        if running.count() >= MAX_OF_SCOPE {
            let detail = format!("{MAX_OF_SCOPE} MCP servers of one user or project are read at a time");
            return Err(Error::new(Kind::Unavailable, detail));
        }
        let job = Arc::new(Job::new(dry_run));
        jobs.insert(server.clone(), Arc::clone(&job));
        Ok((job, true))
    }

    pub(super) fn forget(&self, server: &ServerKey) {
        let mut jobs = lock(&self.0);
        if jobs.get(server).is_some_and(|job| job.outcome().is_some()) {
            jobs.remove(server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::{Id, Scope};

    fn server(name: &str) -> ServerKey {
        (Scope::User(Id::parse("u").unwrap()), name.to_owned())
    }

    #[test]
    fn one_job_of_a_server_runs_at_a_time() {
        let jobs = Jobs::default();
        let (first, is_new) = jobs.begin(&server("a"), false).unwrap();
        assert!(is_new);
        let (same, is_new) = jobs.begin(&server("a"), true).unwrap();
        assert!(!is_new && Arc::ptr_eq(&first, &same));
        drop(EndsJob(first));
        assert_eq!(jobs.of(&server("a")).unwrap().document().state, "failed");
        assert!(jobs.begin(&server("a"), true).unwrap().1);
    }

    #[test]
    fn nobody_gets_all_jobs() {
        let jobs = Jobs::default();
        for at in 0..MAX_OF_SCOPE {
            jobs.begin(&server(&at.to_string()), false).unwrap();
        }
        assert_eq!(jobs.begin(&server("more"), false).unwrap_err().kind(), Kind::Unavailable);
        assert!(jobs.begin(&(Scope::User(Id::parse("v").unwrap()), "a".to_owned()), false).unwrap().1);
    }

    #[test]
    fn jobs_that_ended_make_room() {
        let server = |name: &str| (Scope::User(Id::parse(name).unwrap()), name.to_owned());
        let jobs = Jobs::default();
        let running: Vec<Arc<Job>> =
            (0..MAX_JOBS).map(|at| jobs.begin(&server(&at.to_string()), false).unwrap().0).collect();
        assert_eq!(jobs.begin(&server("more"), false).unwrap_err().kind(), Kind::Unavailable);
        running[7].end(Err(McpFaultDocument::not_stored("x")));
        assert!(jobs.begin(&server("more"), false).unwrap().1);
        assert!(jobs.of(&server("7")).is_none() && jobs.of(&server("8")).is_some());
    }
}
