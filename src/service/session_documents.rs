//! Sessions as documents: showing, listing, and what can be done to their warm sets by hand.

use serde::Serialize;
use utoipa::ToSchema;

use super::audit::Actor;
use super::away::remembered_warning;
use super::context::{Caller, Context, GrantFields};
use super::ledger::LedgerDocument;
use super::sessions::{Deed, Session, SessionSettings, Update, warm_limits};
use super::{Error, Toolrack};
use crate::core::grant::Selection;
use crate::core::id::{Id, SessionKey};
use crate::core::keys::Principal;
use crate::core::tool::ToolKey;
use crate::core::warm::WarmSet;
use crate::core::warning::Warning;
use crate::store::{ProjectFilter, SessionQuery, SessionSummary};

/// A tool of a session's warm set, as shown.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarmDocument {
    /// Stored name.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    pub group: String,
    pub pinned: bool,
    /// Found, and waiting for an epoch.
    pub pending: bool,
    pub last_used_ms: i64,
}

/// A session, as shown. An unknown one is empty.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionDocument {
    #[schema(value_type = String)]
    pub user: Id,
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    #[schema(value_type = String)]
    pub session: Id,
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// The session's own limits, from its last assembly; null before the first.
    #[schema(value_type = Option<Object>)]
    pub selection: Option<Selection>,
    pub format: Option<String>,
    pub profile: Option<String>,
    pub exposure: Option<String>,
    /// Whether schemas are of OpenAPI's subset.
    pub openapi: Option<bool>,
    pub strict: Option<bool>,
    pub context_window: Option<u32>,
    pub tools_ref: Option<String>,
    /// Stored names of the hot tools that it has in core beside those of the config, by group and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<String>,
    /// Found tools in the order of first warming. Tools that the session may not see are left out.
    pub warm: Vec<WarmDocument>,
    pub ledger: LedgerDocument,
    pub warnings: Vec<Warning>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionSummaryDocument {
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    #[schema(value_type = String)]
    pub session: Id,
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// Tools in the warm set, pending and hidden ones included.
    pub warm: i64,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionSummaryDocument>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which sessions to list.
#[derive(Debug)]
pub struct SessionListQuery {
    pub user: Id,
    /// Only sessions of this project; without it those of all projects and of none.
    pub project: Option<Id>,
    pub cursor: Option<String>,
    pub limit: u32,
    /// Sessions of projects that it does not cover are not shown.
    pub principal: Principal,
}

/// Most names in one change of a warm set: as many as a warm set can hold.
pub const MAX_SESSION_NAMES: usize = 64;

/// What to do with named tools of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmAction {
    Pin,
    Unpin,
    Release,
}

impl Toolrack {
    /// A session with its warm set.
    pub async fn session_document(&self, caller: &Caller) -> Result<SessionDocument, Error> {
        let context = self.context(caller, &GrantFields::default()).await?;
        let Some((key, session)) = &context.session else { return Err(no_session()) };
        let ledger = self.session_ledger(key, session).await?;
        Ok(document(key, session, ledger, &context, remembered_warning().into_iter().collect()))
    }

    /// Whether a session was begun: it is stored, or did something that is not written yet.
    pub async fn has_session(&self, caller: &Caller) -> Result<bool, Error> {
        let key = caller.session_key().ok_or_else(no_session)?;
        let session = self.session(&key).await?;
        Ok(session.is_stored() || session.is_dirty())
    }

    /// Empties a session: warm set, pins and what it kept of its last assembly.
    pub async fn reset_session(&self, actor: &Actor, caller: &Caller) -> Result<SessionDocument, Error> {
        let key = caller.session_key().ok_or_else(no_session)?;
        let audit = self.session_audited(actor, "session.reset", &key);
        self.update_session(&key, Deed::Change, |_, warm, _| {
            *warm = WarmSet::default();
            let settings = Some(SessionSettings::default());
            Ok((Update { settings, clear: true, audit: audit.clone(), ..Update::default() }, ()))
        })
        .await?;
        self.session_document(caller).await
    }

    /// Pins, unpins or releases tools of a session.
    pub async fn change_warm(
        &self,
        caller: &Caller,
        action: WarmAction,
        names: &[String],
    ) -> Result<SessionDocument, Error> {
        let context = self.context(caller, &GrantFields::default()).await?;
        let Some((key, _)) = &context.session else { return Err(no_session()) };
        let mut warnings = Vec::new();
        let keys = resolve_names(&context, action, names, &mut warnings)?;
        let plan = self.plan(&context).await?;
        let limits = warm_limits(context.policy(), &plan.plan);
        self.update_session(key, Deed::Change, |_, warm, now| {
            let change = match action {
                WarmAction::Pin => warm.pin(&keys, limits, now).map_err(|wanted| {
                    let detail =
                        format!("{wanted} pins are more than max_warm_tools ({}) allows", limits.max);
                    Error::invalid("/names", "too_many_pins", detail)
                })?,
                WarmAction::Unpin => warm.unpin(&keys),
                WarmAction::Release => warm.release(&keys),
            };
            Ok((Update::of(change), ()))
        })
        .await?;
        let session = self.session(key).await?;
        let ledger = self.session_ledger(key, &session).await?;
        warnings.extend(remembered_warning());
        Ok(document(key, &session, ledger, &context, warnings))
    }

    /// A page of a user's sessions.
    pub async fn list_sessions(&self, query: SessionListQuery) -> Result<SessionList, Error> {
        let after = query.cursor.as_deref().map(read_cursor).transpose()?;
        let project = query.project.map_or(ProjectFilter::Any, |project| ProjectFilter::Only(Some(project)));
        let covers_all = project != ProjectFilter::Any || query.principal.covers_all_projects();
        // One more than asked for tells whether there is a next page.
        let rows = SessionQuery { user: query.user, project, after, limit: query.limit + 1 };
        let mut sessions = if covers_all {
            self.0.store.list_sessions(rows).await?
        } else {
            self.covered_sessions(rows, &query.principal).await?
        };
        let more = sessions.len() > query.limit as usize;
        sessions.truncate(query.limit as usize);
        let next_cursor =
            sessions.last().filter(|_| more).map(|last| cursor(last.project.as_ref(), &last.session));
        let shown = sessions.into_iter().map(|row| SessionSummaryDocument {
            project: row.project,
            session: row.session,
            created_at_ms: row.created_at_ms,
            last_seen_ms: row.last_seen_ms,
            warm: row.warm,
        });
        Ok(SessionList { sessions: shown.collect(), next_cursor })
    }
}

impl Toolrack {
    /// Sessions of all projects that a principal covers, and of none, in the order of the list of all.
    async fn covered_sessions(
        &self,
        query: SessionQuery,
        principal: &Principal,
    ) -> Result<Vec<SessionSummary>, Error> {
        let mut projects = self.0.store.session_projects(&query.user).await?;
        projects.retain(|project| principal.covers(None, project.as_ref()));
        projects.sort();
        let mut sessions = Vec::new();
        for project in projects {
            let left = query.limit.saturating_sub(u32::try_from(sessions.len()).unwrap_or(u32::MAX));
            let after = match &query.after {
                Some((last, _)) if project < *last => continue,
                after => after.clone().filter(|(last, _)| *last == project),
            };
            if left == 0 {
                break;
            }
            let (user, project) = (query.user.clone(), ProjectFilter::Only(project));
            let rows = SessionQuery { user, project, after, limit: left };
            sessions.extend(self.0.store.list_sessions(rows).await?);
        }
        Ok(sessions)
    }
}

fn no_session() -> Error {
    Error::invalid("/session", "missing_key", "this needs a session")
}

fn resolve_names(
    context: &Context,
    action: WarmAction,
    names: &[String],
    warnings: &mut Vec<Warning>,
) -> Result<Vec<ToolKey>, Error> {
    let mut keys: Vec<ToolKey> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let pointer = format!("/names/{at}");
        let ids = context.view().select(name);
        if ids.is_empty() && action == WarmAction::Pin {
            return Err(Error::invalid(pointer, "unknown_tool", format!("there is no tool `{name}` to pin")));
        }
        if ids.is_empty() {
            warnings.push(Warning::new("unknown_tool", format!("there is no tool `{name}`")).at(pointer));
        }
        for tool in ids.iter().filter_map(|id| context.view().get(*id)) {
            if action == WarmAction::Pin && tool.core {
                let detail = "a core tool is always in the array; it takes no pin";
                warnings.push(Warning::new("core_tool", detail).for_tool(tool.stored_name()));
            } else if !keys.contains(&tool.tool.tool.key()) {
                keys.push(tool.tool.tool.key());
            }
        }
    }
    Ok(keys)
}

fn document(
    key: &SessionKey,
    session: &Session,
    ledger: LedgerDocument,
    context: &Context,
    warnings: Vec<Warning>,
) -> SessionDocument {
    let view = context.view();
    let tools = session.warm.tools().iter().flat_map(|warm| {
        view.by_key(&warm.key).into_iter().filter_map(|id| view.get(id)).map(move |tool| (warm, tool))
    });
    let shown = tools.map(|(warm, tool)| WarmDocument {
        name: tool.stored_name().to_owned(),
        wire_name: tool.mapped_name().map(str::to_owned),
        group: view.group(tool).to_owned(),
        pinned: warm.pinned,
        pending: warm.pending,
        last_used_ms: warm.last_used_ms,
    });
    let hot = context.hot.iter().flat_map(|key| view.by_key(key)).filter_map(|id| view.get(id));
    let assembled = session.settings.assembled.as_deref();
    SessionDocument {
        user: key.user.clone(),
        project: key.project.clone(),
        session: key.session.clone(),
        created_at_ms: session.created_at_ms(),
        last_seen_ms: session.last_seen(),
        selection: assembled.map(|assembled| assembled.selection.clone()),
        format: assembled.map(|assembled| assembled.format.clone()),
        profile: assembled.map(|assembled| assembled.profile.clone()),
        exposure: assembled.map(|assembled| assembled.target().exposure.as_str().to_owned()),
        openapi: assembled.map(|assembled| assembled.openapi),
        strict: assembled.map(|assembled| assembled.strict),
        context_window: assembled.map(|assembled| assembled.window),
        tools_ref: assembled.and_then(|assembled| assembled.tools_ref.clone()),
        hot: hot.map(|tool| tool.stored_name().to_owned()).collect(),
        warm: shown.collect(),
        ledger,
        warnings,
    }
}

/// A cursor is the place of the last row; `/` cannot occur in identifiers.
fn cursor(project: Option<&Id>, session: &Id) -> String {
    hex::encode(format!("{}/{session}", project.map_or("", Id::as_str)))
}

fn read_cursor(cursor: &str) -> Result<(Option<Id>, Id), Error> {
    let read = || {
        let text = String::from_utf8(hex::decode(cursor).ok()?).ok()?;
        let (project, session) = text.split_once('/')?;
        let project = if project.is_empty() { None } else { Some(Id::parse(project).ok()?) };
        Some((project, Id::parse(session).ok()?))
    };
    read().ok_or_else(|| Error::invalid("/cursor", "invalid_value", "this is not a cursor of this list"))
}
