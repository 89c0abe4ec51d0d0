//! The calls of the management tools: what a catalog holds, and changes of a config that a person agreed to.
//!
//! They stand in a conversation, so no secret goes in or out, and what is written goes the way of every other write of a config.

use serde_json::{Map, Value, json};

use super::audit::Actor;
use super::bridge::{BridgeRequest, Handled};
use super::context::{Caller, Context};
use super::search::state;
use super::{ConfigWritten, Error, Kind, ToolState, Toolrack, blocking};
use crate::core::calls::read_arguments;
use crate::core::format::ModelCall;
use crate::core::id::Scope;
use crate::core::management::{CatalogQuery, EntryState, ManagementTool, entries, page, secret_in};
use crate::core::text::{clip, visible};
use crate::core::tokens;
use crate::core::warm::WarmSet;

/// What a page's own members may take beside its tools, in tokens, for a number or a comma that comes on top.
const PAGE_MARGIN: usize = 8;

/// Warnings that a model reads of one write.
const MAX_WARNINGS: usize = 20;

/// What is answered to a key that may call management tools alone, for other calls.
pub(super) fn not_a_management_call(context: &Context) -> Handled {
    let message = if context.view().manages {
        "a key of the role setup is answered the management tools alone; send other calls with an agent's key"
    } else {
        "the config of this user and project has no `management_tools`; set it to true by a PATCH of the config"
    };
    refused("forbidden", message)
}

/// An error that the model reads.
fn refused(code: &str, message: impl Into<String>) -> Handled {
    let message: String = message.into();
    Handled::error(&json!({"error": {"code": code, "message": message}}))
}

impl Toolrack {
    /// Answers one call of a management tool.
    pub(super) async fn manage(
        &self,
        context: &Context,
        request: &BridgeRequest,
        tool: ManagementTool,
        call: &ModelCall,
    ) -> Result<Handled, Error> {
        let arguments = match read_arguments(call.arguments.as_ref()) {
            Ok(arguments) => arguments,
            Err(fault) => return Ok(refused(fault.code, fault.message)),
        };
        match tool {
            ManagementTool::Catalog => self.list_catalog(context, &request.actor, &arguments).await,
            ManagementTool::UpdateConfig => {
                self.update_config(context, &request.caller, &request.actor, &arguments).await
            }
        }
    }

    async fn list_catalog(
        &self,
        context: &Context,
        actor: &Actor,
        arguments: &Map<String, Value>,
    ) -> Result<Handled, Error> {
        let text = |key: &str| {
            let text = arguments.get(key).and_then(Value::as_str).unwrap_or_default();
            clip(text.trim(), self.0.limits.query_chars).into_owned()
        };
        // What the config keeps from agents is told to who could read it there.
        let query =
            CatalogQuery { query: text("query"), group: text("group"), with_excluded: actor.may_set_up() };
        let offset = arguments.get("offset").and_then(whole_number).unwrap_or_default();
        let revisions = actor.may_set_up().then(|| revisions(context));
        let plan = self.plan(context).await?;
        let context = context.clone();
        let list = move || {
            let (view, plan, nothing) = (context.view(), &plan.plan, WarmSet::default());
            let warm = context.session.as_ref().map_or(&nothing, |(_, session)| &session.warm);
            let entries =
                entries(view, &context.entry.catalogs, context.policy(), &query, |tool| {
                    match state(tool, plan, warm) {
                        ToolState::Core => EntryState::Core,
                        ToolState::Warm => EntryState::Warm,
                        ToolState::Pending | ToolState::Deferred => EntryState::Deferred,
                    }
                });
            let search = plan.target.search_name(&view.bridge_prefix);
            let note = format!(
                "Listed here is not callable: only tools marked core or warm stand in your tool list. Reach deferred \
                 ones with {search}."
            );
            let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(entries.len());
            let mut answer = json!({"note": note, "total": entries.len(), "offset": offset});
            if let Some(revisions) = revisions {
                answer["config_revisions"] = revisions;
            }
            answer["next_offset"] = json!(entries.len());
            answer["groups"] = json!([]);
            let budget = context.policy().max_answer_tokens as usize;
            let beside = tokens::count(&answer.to_string()) + PAGE_MARGIN;
            let page = page(&entries, offset, budget.saturating_sub(beside));
            answer["next_offset"] = page.next.map_or(Value::Null, Value::from);
            answer["groups"] = Value::from(page.groups);
            answer
        };
        Ok(Handled::answer(&blocking(list).await?))
    }

    async fn update_config(
        &self,
        context: &Context,
        caller: &Caller,
        actor: &Actor,
        arguments: &Map<String, Value>,
    ) -> Result<Handled, Error> {
        if !actor.may_set_up() {
            let message = "nothing was written: this key may not change configs. Whoever runs this agent sends the call with \
                a key of the role `setup` that covers the user and the project; a person can also set it up at /ui.";
            return Ok(refused("forbidden", message));
        }
        let Update { patch, scope, expected, dry_run } = match Update::read(arguments, caller) {
            Ok(update) => update,
            Err(refusal) => return Ok(refusal),
        };
        let budget = context.policy().max_answer_tokens as usize;
        match self.patch_config(actor, &scope, patch, expected, dry_run).await {
            Ok(mut written) => {
                // First what the write comes to: a model reads only so many.
                let config = Value::Object(written.config.clone());
                let project = caller.project.clone().filter(|_| matches!(scope, Scope::Project(_)));
                let caller = Caller { project, session: None, ..caller.clone() };
                match self.effect_warnings(caller, Some(config), None).await {
                    Ok(effect) => drop(written.warnings.splice(0..0, effect)),
                    // It may be written already, which must be told.
                    Err(error) => tracing::debug!(%error, "what a config comes to could not be told"),
                }
                Ok(told(&written, &scope, budget))
            }
            Err(error) if is_theirs(error.kind()) => {
                let places: Vec<Value> = error
                    .errors()
                    .iter()
                    .take(MAX_WARNINGS)
                    .map(
                        |fault| json!({"pointer": fault.pointer, "code": fault.code, "detail": fault.detail}),
                    )
                    .collect();
                let mut text = json!({"error": {"code": code(error.kind()),
                    "message": format!("nothing was written: {}", error.detail())}});
                if !places.is_empty() {
                    text["error"]["errors"] = Value::from(places);
                }
                Ok(Handled::text(visible(&text.to_string()).into_owned(), true))
            }
            Err(error) => Err(error),
        }
    }
}

/// Revisions of the configs that a request goes by.
fn revisions(context: &Context) -> Value {
    let mut revisions = json!({"user": context.heads.user.row.config_revision});
    revisions["project"] = json!(context.heads.project.row.config_revision);
    revisions
}

/// A change that a model asks for.
struct Update {
    patch: Value,
    scope: Scope,
    expected: Option<i64>,
    dry_run: bool,
}

impl Update {
    fn read(arguments: &Map<String, Value>, caller: &Caller) -> Result<Self, Handled> {
        let patch = match arguments.get("patch") {
            // Models write objects as their JSON text.
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            other => other.cloned(),
        };
        let Some(patch) = patch.filter(Value::is_object) else {
            let message = "`patch` is the JSON Merge Patch: an object of config keys, such as {\"core\": [\"send_mail\"]}";
            return Err(refused("missing_patch", message));
        };
        if let Some(pointer) = secret_in(&patch) {
            let message = format!(
                "nothing was written: {pointer} is a secret, and this conversation has seen it. Leave it out. The person enters it \
                 at /ui (Setup, Matcher) or sends it by a PATCH of the config; one that stood here should be replaced where it \
                 was issued."
            );
            return Err(refused("secret_in_conversation", message));
        }
        let scope = match (arguments.get("scope").and_then(Value::as_str), &caller.project) {
            (Some("user"), _) | (None, None) => Scope::User(caller.user.clone()),
            (Some("project"), Some(project)) => Scope::Project(project.clone()),
            (Some("project"), None) => {
                return Err(refused(
                    "no_project",
                    "this conversation names no project; only `user` can be set up",
                ));
            }
            _ => return Err(refused("missing_scope", "say in `scope` what is set up: `user` or `project`")),
        };
        let expected = match arguments.get("if_revision") {
            None | Some(Value::Null) => None,
            Some(revision) => match whole_number(revision) {
                Some(revision) => Some(revision),
                None => {
                    return Err(refused("invalid_value", "`if_revision` is the whole number of a revision"));
                }
            },
        };
        let dry_run = match arguments.get("dry_run") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(dry_run)) => *dry_run,
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => false,
            // Whatever else it is: what may have been meant as a question writes nothing.
            Some(_) => true,
        };
        Ok(Self { patch, scope, expected, dry_run })
    }
}

/// A number of 0 or more, also as its text.
fn whole_number(value: &Value) -> Option<i64> {
    let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (number >= 0).then_some(number)
}

/// Whether the one who asks can do something about it.
fn is_theirs(kind: Kind) -> bool {
    !matches!(kind, Kind::Unavailable | Kind::ReadOnly | Kind::Internal | Kind::StorageFull)
}

fn code(kind: Kind) -> &'static str {
    match kind {
        Kind::PreconditionFailed | Kind::Conflict => "changed_meanwhile",
        Kind::Forbidden => "forbidden",
        Kind::TooManyScopes => "too_many_scopes",
        Kind::Unsupported => "unsupported",
        _ => "invalid_config",
    }
}

/// What a write did, or would do, within a budget: the difference goes before the whole config.
fn told(written: &ConfigWritten, scope: &Scope, budget: usize) -> Handled {
    let note = if written.dry_run {
        format!(
            "Nothing was written. Show the person what would change; once they agree, send the same patch with if_revision {} and \
             without dry_run.",
            written.revision
        )
    } else if written.changes.is_empty() {
        "It was like this already.".to_owned()
    } else {
        "Written. It holds from the next assembly on.".to_owned()
    };
    let warnings = written.warnings.iter().take(MAX_WARNINGS);
    let mut text = json!({
        "dry_run": written.dry_run,
        "scope": {scope.kind(): scope.id().as_str()},
        "revision": written.revision,
        "changes": written.changes,
        "warnings": warnings.map(|warning| json!({"code": warning.code, "detail": warning.detail})).collect::<Vec<_>>(),
        "note": note,
    });
    let more = written.warnings.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        text["more_warnings"] = json!(more);
    }
    let fits = |text: &Value| tokens::count(&text.to_string()) <= budget;
    let mut whole = text.clone();
    whole["config"] = Value::Object(written.config.clone());
    let text = if fits(&whole) {
        whole
    } else {
        text["left_out"] = json!(["config"]);
        if !fits(&text) {
            let keys: Vec<&str> = written.changes.changed.iter().map(|change| change.key.as_str()).collect();
            text["changes"]["changed"] = json!(keys);
            text["left_out"] = json!(["config", "values of changes"]);
        }
        text
    };
    Handled::text(visible(&text.to_string()).into_owned(), false)
}
