//! Who changes something, and the log of what administrators changed.
//!
//! An entry tells names and numbers, never a value that was set: a value may be a secret.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Error, Toolrack, now_ms};
use crate::core::id::{Id, Scope, SessionKey};
use crate::core::keys::{KeyId, Principal, Role};
use crate::core::policy::ConfigDiff;
use crate::core::text::clip;
use crate::store::{AuditEntry, AuditQuery, AuditRow, AuditWrite, Beginner, ReviewWrite};

use super::catalogs::{CatalogWritten, NameList};

/// Names of one list that an entry tells; their number is always whole.
pub(super) const MAX_NAMES: usize = 20;

/// Longest name in an entry, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Entries that are deleted at once when they are old.
const EXPIRED_AT_ONCE: u32 = 1_000;

/// How much of the log is kept.
#[derive(Debug, Clone, Copy)]
pub struct AuditLimits {
    pub entries: u32,
    pub age_ms: i64,
}

/// Who changes something.
#[derive(Debug, Clone)]
pub struct Actor {
    who: Who,
    request_id: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Key(KeyId, Role),
    /// The admin key of the settings.
    Admin,
    /// Anybody, where there is no authentication.
    Anybody,
    /// A command of the program itself.
    Program,
    /// The service itself, when it reads an MCP server again.
    Sync,
}

impl Actor {
    /// Who sends a request. `is_open`: where there is no authentication.
    pub fn of(principal: &Principal, is_open: bool, request_id: Option<String>) -> Self {
        let who = match principal {
            Principal::Key(rights) => Who::Key(rights.id, rights.role),
            Principal::Admin if is_open => Who::Anybody,
            Principal::Admin => Who::Admin,
        };
        Self { who, request_id }
    }

    /// A command of the program.
    pub fn program() -> Self {
        Self { who: Who::Program, request_id: None }
    }

    /// The service itself, when it reads an MCP server again.
    pub(super) fn sync() -> Self {
        Self { who: Who::Sync, request_id: None }
    }

    /// As the log of changes and what is stored tell it.
    pub(super) fn name(&self) -> String {
        match self.who {
            Who::Key(id, _) => id.to_string(),
            Who::Admin => "admin".to_owned(),
            Who::Anybody => "no-auth".to_owned(),
            Who::Program => "cli".to_owned(),
            Who::Sync => "sync".to_owned(),
        }
    }

    pub(super) fn is_admin(&self) -> bool {
        !matches!(self.who, Who::Key(_, role) if role != Role::Admin)
    }

    pub(super) fn is_setup(&self) -> bool {
        matches!(self.who, Who::Key(_, Role::Setup))
    }

    /// Whether configs and catalogs are theirs to read and write, of the scopes that the key covers.
    pub(super) fn may_set_up(&self) -> bool {
        self.is_admin() || self.is_setup()
    }

    fn is_agent(&self) -> bool {
        matches!(self.who, Who::Key(_, Role::Agent))
    }
}

/// What was changed.
pub(super) enum Subject<'a> {
    Scope(&'a Scope),
    Session(&'a SessionKey),
    Key(KeyId),
}

/// What changes are called.
pub const AUDIT_ACTIONS: [&str; 17] = [
    "config.put",
    "config.patch",
    "config.restore",
    "config.delete",
    "catalog.put",
    "catalog.patch",
    "catalog.delete",
    "tool.approve",
    "tool.reject",
    "mcp_server.put",
    "mcp_server.delete",
    "key.create",
    "key.patch",
    "key.revoke",
    "key.rotate",
    "session.delete",
    "session.reset",
];

/// One change by an administrator.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditDocument {
    pub at_ms: i64,
    /// The id of a key; or `admin` (the admin key of the settings), `no-auth`, `cli` (a command of the program) or
    /// `sync` (an MCP server that is read again by itself).
    pub actor: String,
    /// `config.put`, `config.patch`, `config.restore`, `config.delete`, `catalog.put`, `catalog.patch`, `catalog.delete`,
    /// `tool.approve`, `tool.reject`, `mcp_server.put`, `mcp_server.delete`, `key.create`, `key.patch`, `key.revoke`,
    /// `key.rotate`, `session.delete` or `session.reset`; later versions may have others.
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub session: Option<Id>,
    /// The key that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key: Option<KeyId>,
    /// Revision of the config or version of the catalog before the change; `0` or empty: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Names and numbers of what changed, never its values; long lists are cut, with their whole number beside them.
    #[schema(value_type = Object)]
    pub summary: Value,
    /// The `x-request-id` of the request, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A page of changes, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditPage {
    pub entries: Vec<AuditDocument>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which changes to show.
#[derive(Debug)]
pub struct AuditListQuery {
    pub user: Option<Id>,
    pub project: Option<Id>,
    pub actor: Option<String>,
    pub action: Option<String>,
    pub since_ms: Option<i64>,
    pub cursor: Option<String>,
    pub limit: u32,
    /// Only changes of the scopes themselves, not of sessions in them.
    pub scopes_only: bool,
}

impl Toolrack {
    /// A page of the log.
    pub async fn audit(&self, query: AuditListQuery) -> Result<AuditPage, Error> {
        let before = query.cursor.as_deref().map(read_cursor).transpose()?;
        // One more than asked for tells whether there is a next page.
        let rows = AuditQuery {
            user: query.user,
            project: query.project,
            sessions: !query.scopes_only,
            actor: query.actor,
            action: query.action,
            since_ms: query.since_ms.unwrap_or(i64::MIN),
            before,
            limit: query.limit + 1,
        };
        let mut rows = self.0.store.audit(rows).await?;
        let more = rows.len() > query.limit as usize;
        rows.truncate(query.limit as usize);
        let next_cursor = rows.last().filter(|_| more).map(|row| format!("{:x}", row.id));
        Ok(AuditPage { entries: rows.into_iter().map(document).collect(), next_cursor })
    }

    /// The entry of a change.
    pub(super) fn audited(
        &self,
        actor: &Actor,
        action: &str,
        subject: &Subject<'_>,
        summary: &Value,
    ) -> AuditWrite {
        let mut entry = AuditEntry {
            at_ms: now_ms(),
            actor: actor.name(),
            action: action.to_owned(),
            user: None,
            project: None,
            session: None,
            key: None,
            before: None,
            after: None,
            summary: summary.to_string(),
            request_id: actor.request_id.clone(),
        };
        match subject {
            Subject::Scope(Scope::User(user)) => entry.user = Some(user.clone()),
            Subject::Scope(Scope::Project(project)) => entry.project = Some(project.clone()),
            Subject::Session(key) => {
                entry.user = Some(key.user.clone());
                entry.project.clone_from(&key.project);
                entry.session = Some(key.session.clone());
            }
            Subject::Key(id) => entry.key = Some(*id),
        }
        AuditWrite { entry, most: self.0.limits.audit.entries }
    }

    /// The entry of a change of a session; agents change their own without one.
    pub(super) fn session_audited(
        &self,
        actor: &Actor,
        action: &str,
        key: &SessionKey,
    ) -> Option<AuditWrite> {
        (!actor.is_agent()).then(|| self.audited(actor, action, &Subject::Session(key), &json!({})))
    }

    /// Who begins a scope that was never written, where that is counted.
    pub(super) fn beginner(&self, actor: &Actor) -> Option<Beginner> {
        match actor.who {
            Who::Key(key, Role::Setup) => Some(Beginner { key, most: self.0.limits.keys.scopes }),
            _ => None,
        }
    }

    /// Deletes entries that are too old.
    pub(super) async fn expire_audit(&self) -> Result<(), Error> {
        let before = now_ms().saturating_sub(self.0.limits.audit.age_ms);
        while self.0.store.expire_audit(before, EXPIRED_AT_ONCE).await? == u64::from(EXPIRED_AT_ONCE) {}
        Ok(())
    }
}

/// The keys of a config that changed.
pub(super) fn of_config(diff: &ConfigDiff) -> Value {
    let changed = diff.changed.iter().map(|change| change.key.as_str());
    json!({
        "added": names(diff.added.iter().map(String::as_str)),
        "changed": names(changed),
        "removed": names(diff.removed.iter().map(String::as_str)),
    })
}

/// The tools of a catalog that changed, and the versions that wait from now on or no more.
pub(super) fn of_catalog(written: &CatalogWritten, reviews: &ReviewWrite) -> Value {
    let (diff, list) = (&written.diff, |list: &NameList| names(list.names.iter().map(String::as_str)));
    let mut summary =
        json!({"added": list(&diff.added), "changed": list(&diff.changed), "removed": list(&diff.removed)});
    if written.held.count > 0 {
        summary["held"] = list(&written.held);
    }
    if !reviews.drop.is_empty() {
        summary["held_dropped"] = names(reviews.drop.iter().map(|tool| &*tool.name));
    }
    summary
}

/// The first names with the number of all.
pub(super) fn names<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> Value {
    let count = all.len();
    let first: Vec<_> = all.take(MAX_NAMES).map(|name| clip(name, MAX_NAME_CHARS)).collect();
    json!({"count": count, "names": first})
}

fn document(row: AuditRow) -> AuditDocument {
    let entry = row.entry;
    AuditDocument {
        at_ms: entry.at_ms,
        actor: entry.actor,
        action: entry.action,
        user: entry.user,
        project: entry.project,
        session: entry.session,
        key: entry.key,
        before: entry.before,
        after: entry.after,
        // What a later version wrote may be anything.
        summary: serde_json::from_str(&entry.summary).unwrap_or_default(),
        request_id: entry.request_id,
    }
}

/// A cursor is the id of the last entry.
fn read_cursor(cursor: &str) -> Result<i64, Error> {
    i64::from_str_radix(cursor, 16)
        .map_err(|_| Error::invalid("/cursor", "invalid_value", "this is not a cursor of this list"))
}
