//! MCP servers that the tools of a user or project come from.
//!
//! Owns what is stored of a server and what is shown of it. `spec` has the rules, `sync` reads a server into the catalog,
//! `jobs` remembers how far that is, `rounds` does it by the clock and when servers tell of changes, `look` reads one
//! without storing anything.

mod args;
mod jobs;
mod look;
mod rounds;
mod spec;
mod sync;

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use utoipa::ToSchema;

use self::args::take_secrets;
use self::spec::{ReadSpec, Said, StoredSpec, Text, check_name};
use super::audit::{Actor, Subject};
use super::scopes::{begun_too_many, last4};
use super::{Error, Kind, Toolrack, now_ms, uncancelled};
use crate::core::id::Scope;
use crate::core::secret_args::masked;
use crate::core::warning::{Warning, pointer_push};
use crate::mcp::{McpFailure, McpFault};
use crate::store::{
    McpServerRow, McpServerWrite, SealedSecret, SecretAction, StoreError, WriteNotes, mcp_secret, secret_aad,
};

pub use self::jobs::McpJobDocument;
pub use self::look::{McpToolsAnswer, McpToolsRequest};
pub use self::spec::McpServerSpec;
pub use self::sync::{McpServerInfo, McpSyncAnswer, McpSynced};

/// Most servers of one user or project.
const MAX_SERVERS: u32 = 64;

/// A server by its scope and name.
type ServerKey = (Scope, String);

/// What the service keeps of servers in memory.
#[derive(Debug, Default)]
pub(super) struct McpState {
    jobs: jobs::Jobs,
    /// Told when a server was written or deleted.
    written: Notify,
}

/// Why a server's tools are not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpFaultDocument {
    /// `unreachable`, `refused_address`, `not_mcp`, `unauthorized`, `timeout`, `too_large`, `command_not_allowed`,
    /// `command_failed` or `protocol`; `not_stored` where the catalog or the config did not take it.
    pub reason: String,
    /// What happened, and what to do.
    pub detail: String,
}

impl McpFaultDocument {
    fn not_stored(detail: &str) -> Self {
        let end = if detail.ends_with('.') { "" } else { "." };
        Self { reason: "not_stored".to_owned(), detail: format!("{detail}{end}") }
    }
}

impl From<McpFailure> for McpFaultDocument {
    fn from(McpFailure { fault, detail }: McpFailure) -> Self {
        Self { reason: fault.as_str().to_owned(), detail: format!("{detail}. {}", fault.help()) }
    }
}

/// How the last sync went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpStatusDocument {
    /// `ok` or `failed`.
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<McpFaultDocument>,
    /// Tools that it added, changed and removed.
    #[serde(default)]
    pub added: usize,
    #[serde(default)]
    pub changed: usize,
    #[serde(default)]
    pub removed: usize,
}

impl McpStatusDocument {
    fn failed(fault: McpFaultDocument) -> Self {
        Self { outcome: "failed".to_owned(), fault: Some(fault), added: 0, changed: 0, removed: 0 }
    }
}

/// What is told of a header or variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct McpTextShown {
    /// Whether one is stored that can be used.
    pub set: bool,
    /// Its last characters, where it is long enough to show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last4: Option<String>,
}

/// A stored server.
#[derive(Debug, Serialize, ToSchema)]
pub struct McpServerDocument {
    /// Also the group of its tools.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, McpTextShown>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Secrets in them as `***`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, McpTextShown>>,
    pub resync_minutes: u32,
    pub watch: bool,
    pub write_group_description: bool,
    /// When the last sync ended, well or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_at_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_status: Option<McpStatusDocument>,
    /// When the next one begins by itself, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_sync_at_ms: Option<i64>,
    /// Tools of its group after the last sync that went well.
    pub tools: i64,
    /// The sync that runs or ran last; forgotten at a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<McpJobDocument>,
    /// What that sync did, once it is done; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<McpSynced>)]
    pub result: Option<Arc<McpSynced>>,
}

/// The servers of a user or project.
#[derive(Debug, Serialize, ToSchema)]
pub struct McpServerList {
    /// By name.
    pub servers: Vec<McpServerDocument>,
}

/// A server as it is after a write.
#[derive(Debug, Serialize, ToSchema)]
pub struct McpServerWritten {
    #[serde(flatten)]
    pub server: McpServerDocument,
    pub warnings: Vec<Warning>,
}

impl Toolrack {
    /// The servers of a scope.
    pub async fn mcp_servers(&self, scope: &Scope) -> Result<McpServerList, Error> {
        let rows = self.0.store.mcp_servers(scope).await?;
        let servers = rows.iter().map(|row| self.mcp_document(row)).collect::<Result<_, _>>()?;
        Ok(McpServerList { servers })
    }

    /// One server of a scope.
    pub async fn mcp_server(&self, scope: &Scope, name: &str) -> Result<McpServerDocument, Error> {
        let document = self.mcp_document(&self.mcp_row(scope, name).await?)?;
        let job = self.0.mcp.jobs.of(&(scope.clone(), name.to_owned()));
        Ok(McpServerDocument { result: job.and_then(|job| job.result()), ..document })
    }

    /// Stores a server, in the place of the one of its name; its tools stay until the next sync.
    ///
    /// # Errors
    /// What is wrong with the spec, at its place.
    pub async fn put_mcp_server(
        &self,
        actor: &Actor,
        scope: &Scope,
        name: &str,
        spec: McpServerSpec,
    ) -> Result<McpServerWritten, Error> {
        check_name(name)?;
        let mut read = spec::read(spec, "")?;
        self.check_mcp(&read.stored, "")?;
        let before = self.0.store.mcp_server(scope, name).await?;
        let mut warnings = Vec::new();
        self.keep_args(before.as_ref(), &mut read, "")?;
        let args = take_secrets(&mut read.stored);
        let mut texts = self.kept_texts(before.as_ref(), &read, "", &mut warnings);
        read.stored.texts = texts.iter().map(|(name, _)| name.clone()).collect();
        texts.extend(args);
        let secret = self.seal_texts(scope, name, &read.stored, &texts)?;
        let moved = match &before {
            Some(row) => stored_spec(row).map_err(Error::internal)?.origin() != read.stored.origin(),
            None => false,
        };
        let summary = json!({
            "server": name, "transport": read.stored.transport(), "is_new": before.is_none(), "is_elsewhere": moved,
            (read.stored.texts_key()): &read.stored.texts,
        });
        let audit = self.audited(actor, "mcp_server.put", &Subject::Scope(scope), &summary);
        let now_ms = now_ms();
        let write = McpServerWrite {
            name: name.to_owned(),
            spec: json!(read.stored).to_string(),
            secret: Some(secret),
            watched: read.stored.watch,
            next_sync_at_ms: sync::next_sync(now_ms, read.stored.resync_minutes, 0),
            most: MAX_SERVERS,
            now_ms,
            notes: WriteNotes { beginner: self.beginner(actor), audit: Some(audit) },
        };
        let (service, owner) = (self.clone(), scope.clone());
        let most = self.0.limits.keys.scopes;
        uncancelled(async move {
            let written = service.0.store.write_mcp_server(&owner, write).await;
            // A scope that was not begun yet has no servers.
            if matches!(written, Err(StoreError::TooMany))
                && !service.0.store.mcp_servers(&owner).await?.is_empty()
            {
                let detail = format!("a {} has at most {MAX_SERVERS} MCP servers", owner.kind());
                return Err(Error::invalid("/name", "too_many", detail));
            }
            written.map_err(|error| begun_too_many(error, most))
        })
        .await?;
        self.0.mcp.jobs.forget(&(scope.clone(), name.to_owned()));
        self.0.mcp.written.notify_one();
        Ok(McpServerWritten { server: self.mcp_server(scope, name).await?, warnings })
    }

    /// Deletes a server; deleting nothing is fine. Its tools stay in the catalog.
    pub async fn delete_mcp_server(&self, actor: &Actor, scope: &Scope, name: &str) -> Result<(), Error> {
        if check_name(name).is_err() {
            return Ok(());
        }
        let audit =
            self.audited(actor, "mcp_server.delete", &Subject::Scope(scope), &json!({"server": name}));
        let (service, owner, server) = (self.clone(), scope.clone(), name.to_owned());
        uncancelled(
            async move { Ok(service.0.store.delete_mcp_server(&owner, &server, Some(audit)).await?) },
        )
        .await?;
        self.0.mcp.jobs.forget(&(scope.clone(), name.to_owned()));
        self.0.mcp.written.notify_one();
        Ok(())
    }

    async fn mcp_row(&self, scope: &Scope, name: &str) -> Result<McpServerRow, Error> {
        // No server has another one.
        let row = match check_name(name) {
            Ok(()) => self.0.store.mcp_server(scope, name).await?,
            Err(_) => None,
        };
        row.ok_or_else(|| Error::new(Kind::NotFound, format!("there is no MCP server `{name}` here")))
    }

    /// Refuses what may not be asked, whatever it answers.
    fn check_mcp(&self, spec: &StoredSpec, root: &str) -> Result<(), Error> {
        self.0.tool_source.check(&spec.address(Vec::new())).map_err(|McpFailure { fault, detail }| {
            let (key, code) = match fault {
                McpFault::CommandNotAllowed => ("command", "command_not_allowed"),
                _ => ("url", "blocked_address"),
            };
            Error::invalid(format!("{root}/{key}"), code, detail)
        })
    }

    /// The texts of a new spec, with those that it means of the stored ones.
    fn kept_texts(
        &self,
        before: Option<&McpServerRow>,
        read: &ReadSpec,
        root: &str,
        warnings: &mut Vec<Warning>,
    ) -> Vec<(String, SecretString)> {
        let origin = read.stored.origin();
        let stored = before.map(|row| (row, self.open_texts(row).unwrap_or_default()));
        let moved = before.and_then(|row| row.secret.as_ref()).is_some_and(|secret| secret.origin != origin);
        let before_names =
            before.and_then(|row| stored_spec(row).ok()).map(|spec| spec.texts).unwrap_or_default();
        let pointer = |name: &str| {
            let mut pointer = format!("{root}/{}", read.stored.texts_key());
            pointer_push(&mut pointer, name);
            pointer
        };
        let mut texts = Vec::new();
        let wanted: Vec<Text> = match &read.said {
            Said::Names(named) => {
                let is_named = |name: &String| named.iter().any(|named| named.eq_ignore_ascii_case(name));
                for name in before_names.iter().filter(|name| !is_named(name)) {
                    let detail = "the stored text was removed, because this does not name it";
                    warnings.push(Warning::new("secret_cleared", detail).at(pointer(name)));
                }
                read.texts.clone()
            }
            Said::Nothing => before_names.into_iter().map(|name| (name, None)).collect(),
            Said::Null => Vec::new(),
        };
        for (name, text) in &wanted {
            let kept = || {
                let (_, known) = stored.as_ref().filter(|_| !moved)?;
                known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, text)| text.clone())
            };
            let Some(text) = text.clone().or_else(kept) else {
                let (code, detail) = if moved {
                    ("secret_cleared", "the stored text was cleared, because it was set for another place")
                } else {
                    (
                        "secret_missing",
                        "this says that it is set, but no text is stored; send the text itself",
                    )
                };
                warnings.push(Warning::new(code, detail).at(pointer(name)));
                continue;
            };
            texts.push((name.clone(), text));
        }
        texts
    }

    /// All texts of a server as one secret, bound to where they may be sent.
    fn seal_texts(
        &self,
        scope: &Scope,
        name: &str,
        spec: &StoredSpec,
        texts: &[(String, SecretString)],
    ) -> Result<SecretAction, Error> {
        if texts.is_empty() {
            return Ok(SecretAction::Clear);
        }
        let exposed = texts.iter().map(|(name, text)| (name.clone(), Value::from(text.expose_secret())));
        let plain = SecretString::from(Value::Object(exposed.collect()).to_string());
        let aad = secret_aad(scope, &mcp_secret(name));
        let sealed = self.0.master_key.seal(&aad, plain.expose_secret());
        let bytes = sealed.map_err(|_| {
            let detail = "all headers, or variables and secret arguments, of a server have at most 16384 bytes together";
            Error::invalid(format!("/{}", spec.texts_key()), "too_long", detail)
        })?;
        Ok(SecretAction::Set(SealedSecret { origin: spec.origin(), last4: None, bytes }))
    }

    /// The stored texts of a server; nothing where no known key opens them.
    fn open_texts(&self, row: &McpServerRow) -> Option<Vec<(String, SecretString)>> {
        let Some(secret) = &row.secret else { return Some(Vec::new()) };
        let aad = secret_aad(&row.scope, &mcp_secret(&row.name));
        let plain = self.0.master_key.open(&aad, &secret.bytes).ok()?;
        let texts: Map<String, Value> = serde_json::from_str(plain.expose_secret()).ok()?;
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned().into()));
        Some(texts.into_iter().filter_map(text).collect())
    }

    /// What a server is sent, for a connection to it.
    fn mcp_texts(
        &self,
        row: &McpServerRow,
        spec: &StoredSpec,
    ) -> Result<Vec<(String, SecretString)>, McpFaultDocument> {
        let unreadable = || {
            McpFaultDocument::from(McpFailure::new(
                McpFault::Unauthorized,
                "the stored headers or variables were sealed with another master key; set them again",
            ))
        };
        match &row.secret {
            Some(secret) if secret.origin == spec.origin() => self.open_texts(row).ok_or_else(unreadable),
            _ => Ok(Vec::new()),
        }
    }

    fn mcp_document(&self, row: &McpServerRow) -> Result<McpServerDocument, Error> {
        let spec = stored_spec(row).map_err(Error::internal)?;
        let known = self.open_texts(row).unwrap_or_default();
        let shown = |name: &String| {
            let text = known.iter().find(|(known, _)| known == name).map(|(_, text)| text.expose_secret());
            (name.clone(), McpTextShown { set: text.is_some(), last4: text.and_then(last4) })
        };
        let texts: BTreeMap<String, McpTextShown> = spec.texts.iter().map(shown).collect();
        let is_command = spec.command.is_some();
        let (headers, env) = if is_command { (None, Some(texts)) } else { (Some(texts), None) };
        let some_time = |ms: i64| (ms > 0).then_some(ms);
        let job = self.0.mcp.jobs.of(&(row.scope.clone(), row.name.clone()));
        Ok(McpServerDocument {
            name: row.name.clone(),
            url: spec.url,
            headers,
            command: spec.command,
            args: is_command.then(|| masked(&spec.args)),
            env,
            resync_minutes: spec.resync_minutes,
            watch: spec.watch,
            write_group_description: spec.write_group_description,
            last_sync_at_ms: some_time(row.last_sync_at_ms),
            last_status: serde_json::from_str(&row.last_status).ok(),
            next_sync_at_ms: some_time(row.next_sync_at_ms),
            tools: row.tools,
            job: job.map(|job| job.document()),
            result: None,
        })
    }
}

/// The spec of a row; what does not read was not written by this version.
fn stored_spec(row: &McpServerRow) -> Result<StoredSpec, &'static str> {
    serde_json::from_str(&row.spec)
        .map_err(|_| "a stored MCP server cannot be read by this version; set it again")
}
