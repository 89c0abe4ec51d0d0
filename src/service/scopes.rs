//! Configs of users and projects: reading, writing, merging, and the secret that belongs to an endpoint.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::audit::{Actor, Subject, of_config};
use super::heads::{API_KEY, Head};
use super::preload::preload_obstacle;
use super::ranking::endpoints;
use super::reviews::{check_gate, review_gate};
use super::secrets::Credentials;
use super::stripes::Guard;
use super::{Error, Kind, Toolrack, WRITE_TRIES, now_ms, uncancelled, uptime_ms};
use crate::core::id::{Id, Scope};
use crate::core::policy::{self, ConfigDiff, Matcher, MatcherKind, SecretWrite, origin_of};
use crate::core::suspicion::config_warning;
use crate::core::warning::{FieldError, Warning};
use crate::rerank::{EndpointStatus, RerankRequest, State, check_url};
use crate::store::{
    ConfigWrite, ScopeRow, SealedSecret, SecretAction, SecretChange, SecretRow, StoreError, WriteNotes,
    secret_aad,
};

/// From this length on, the last four characters of a secret may be shown.
const LAST4_FROM_CHARS: usize = 12;

/// A config as it is stored.
#[derive(Debug)]
pub struct ConfigDocument {
    pub document: Map<String, Value>,
    /// 0 while unwritten.
    pub revision: i64,
}

/// What a write of a config did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConfigWritten {
    /// The whole document of this layer as it is now (with `dry_run`: as it would be).
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
    /// The row's revision, also in the ETag.
    pub revision: i64,
    /// Keys that were added, changed and removed.
    pub changes: ConfigDiff,
    /// Whether nothing was written.
    pub dry_run: bool,
    pub warnings: Vec<Warning>,
}

/// Whether the merged matcher can be used.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MatcherState {
    /// `none` (keyword ranking), `configured`, `failing` (the endpoint is left alone for a while; the detail tells why),
    /// `key_unreadable` (sealed with another master key) or `blocked_address`.
    #[schema(value_type = String)]
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a request with this user and project sees.
#[derive(Debug, Serialize, ToSchema)]
pub struct EffectiveConfig {
    #[schema(value_type = Option<String>)]
    pub user: Option<Id>,
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    /// Per key `{value, origin, parts?}`; origin is `default`, `user`, `project` or `merged`.
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
    pub matcher: MatcherState,
    pub warnings: Vec<Warning>,
}

/// How a write changes a document.
pub(super) enum Edit {
    Replace(Value),
    Patch(Value),
    /// Replaces it by one that it was.
    Restore(Value),
}

impl Toolrack {
    pub async fn config(&self, scope: &Scope) -> Result<ConfigDocument, Error> {
        let head = self.fresh_head(scope).await?;
        Ok(ConfigDocument { document: self.shown(scope, &head), revision: head.row.config_revision })
    }

    /// Replaces the document of a scope.
    pub async fn put_config(
        &self,
        actor: &Actor,
        scope: &Scope,
        document: Value,
        expected: Option<i64>,
        dry_run: bool,
    ) -> Result<ConfigWritten, Error> {
        self.edit_config(actor, scope, Edit::Replace(document), expected, dry_run).await
    }

    /// Applies a JSON Merge Patch (RFC 7396) to the document of a scope.
    pub async fn patch_config(
        &self,
        actor: &Actor,
        scope: &Scope,
        patch: Value,
        expected: Option<i64>,
        dry_run: bool,
    ) -> Result<ConfigWritten, Error> {
        self.edit_config(actor, scope, Edit::Patch(patch), expected, dry_run).await
    }

    pub(super) async fn edit_config(
        &self,
        actor: &Actor,
        scope: &Scope,
        edit: Edit,
        expected: Option<i64>,
        dry_run: bool,
    ) -> Result<ConfigWritten, Error> {
        let guard = self.0.scope_writes.guard(scope).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let before = self.fresh_head(scope).await?;
            check_revision(&before, expected)?;
            let PlannedConfig { head, write, warnings } = self.plan_config(actor, scope, &before, &edit)?;
            if dry_run {
                return Ok(self.written(scope, &before, &head, warnings, true));
            }
            let Some(write) = write else {
                // Writing the same again says that the endpoint should be tried again.
                self.renew_matcher(scope, &before).await;
                self.tell_renewal(scope, &before).await;
                return Ok(self.written(scope, &before, &before, warnings, false));
            };
            match self.write_config(scope, write, &guard).await {
                Ok(after) => {
                    self.renew_matchers(scope, &before, &after).await;
                    return Ok(self.written(scope, &before, &after, warnings, false));
                }
                Err(error) if error.kind() == Kind::Conflict && expected.is_some() => {
                    return Err(revision_mismatch());
                }
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What an edit of a config writes; nothing when that is there already.
    pub(super) fn plan_config(
        &self,
        actor: &Actor,
        scope: &Scope,
        before: &Head,
        edit: &Edit,
    ) -> Result<PlannedConfig, Error> {
        let PlannedEdit { text, secrets, gate, warnings } = self.plan_edit(scope, before, edit)?;
        check_gate(actor, &before.layer, gate)?;
        let mut row = ScopeRow { config: text.clone(), ..before.row.clone() };
        secrets.iter().cloned().for_each(|change| apply_secret(&mut row, change));
        let head = Head::new(row);
        let is_there = text == before.row.config && secrets.is_empty() && before.row.config_revision > 0;
        let write = (!is_there).then(|| {
            let action = match edit {
                Edit::Replace(_) => "config.put",
                Edit::Patch(_) => "config.patch",
                Edit::Restore(_) => "config.restore",
            };
            let notes = self.config_notes(actor, action, scope, &self.config_changes(scope, before, &head));
            ConfigWrite {
                config: Some(text),
                expected_raw_revision: Some(before.row.raw_revision),
                secrets,
                now_ms: now_ms(),
                forget_missed_queries: !head.keeps_missed_queries(),
                notes,
            }
        });
        Ok(PlannedConfig { head, write, warnings })
    }

    /// How a write of a config is counted and remembered.
    fn config_notes(&self, actor: &Actor, action: &str, scope: &Scope, diff: &ConfigDiff) -> WriteNotes {
        let audit = self.audited(actor, action, &Subject::Scope(scope), &of_config(diff));
        WriteNotes { beginner: self.beginner(actor), audit: Some(audit) }
    }

    async fn write_config(
        &self,
        scope: &Scope,
        write: ConfigWrite,
        guard: &Guard,
    ) -> Result<Arc<Head>, Error> {
        let (service, written, guard) = (self.clone(), scope.clone(), Guard::clone(guard));
        self.uncancelled_head(scope, async move {
            let _guard = guard;
            let most = service.0.limits.keys.scopes;
            let (forgets, asked_ms) = (write.forget_missed_queries, uptime_ms());
            let stored = service.0.store.write_config(&written, write).await;
            let row = stored.map_err(|error| begun_too_many(error, most))?;
            if forgets {
                service.usage().forget_missed(&written);
            }
            Ok(service.written_head(&written, row, asked_ms).await)
        })
        .await
    }

    /// Checks an edit and seals its secret; nothing is written.
    fn plan_edit(&self, scope: &Scope, before: &Head, edit: &Edit) -> Result<PlannedEdit, Error> {
        let document = match edit {
            Edit::Replace(document) | Edit::Restore(document) => document.clone(),
            Edit::Patch(patch) => policy::apply_patch(&Value::Object(before.layer.to_json()), patch),
        };
        let parsed = policy::parse(&document).map_err(refused)?;
        let mut warnings = parsed.warnings;
        if matches!(edit, Edit::Patch(_)) {
            // What could not be read of the stored document is not in the patched one either.
            warnings.splice(0..0, before.warnings.iter().cloned());
        }
        // What a listing says of groups.
        warnings.extend(document.get("groups").and_then(|groups| config_warning("/groups", groups)));
        // Another layer may have what this one lacks.
        let alone = policy::merge(&parsed.layer, &policy::Layer::default());
        warnings.extend(alone.matcher.as_ref().and_then(idle_setting));
        if let Some(obstacle) = preload_obstacle(&alone) {
            let detail = format!("by this document alone nothing is preloaded: {obstacle}");
            warnings.push(Warning::new("preload_inactive", detail).at("/preload"));
        }
        let endpoint = parsed.layer.matcher.as_ref().and_then(|matcher| matcher.endpoint.as_ref());
        if let Some(endpoint) = endpoint {
            check_url(endpoint.url(), &self.0.addresses)
                .map_err(|why| Error::invalid("/matcher/endpoint", "blocked_address", why))?;
        }
        let origin = endpoint.map(|endpoint| origin_of(endpoint.url())).unwrap_or_default();
        let stored = before.secret(API_KEY);
        let cleared = |why: &str| {
            let detail = format!("the stored api_key was cleared, {why}");
            Warning::new("secret_cleared", detail).at("/matcher/api_key")
        };
        let action = match parsed.secrets {
            SecretWrite::Set(secret) => Some(SecretAction::Set(self.seal_key(scope, &secret, origin)?)),
            SecretWrite::Clear => stored.map(|_| {
                if endpoint.is_none() {
                    warnings.push(cleared("because the document has no matcher any more"));
                }
                SecretAction::Clear
            }),
            SecretWrite::Keep if stored.is_none() && says_set(&document) => {
                let detail = "`api_key` says that one is set, but none is stored; send the key itself";
                warnings.push(Warning::new("secret_missing", detail).at("/matcher/api_key"));
                None
            }
            SecretWrite::Keep => stored.filter(|stored| stored.origin != origin).map(|stored| {
                warnings.push(cleared(&format!("because the endpoint is no longer at {}", stored.origin)));
                SecretAction::Clear
            }),
        };
        let mut secrets: Vec<SecretChange> =
            action.map(|action| SecretChange { name: API_KEY.to_owned(), action }).into_iter().collect();
        let mut stored = parsed.layer.to_json();
        secrets.extend(self.plan_headers(scope, before, &parsed.layer, &mut stored, &mut warnings)?);
        let gate = review_gate(&parsed.layer);
        Ok(PlannedEdit { text: Value::Object(stored).to_string(), gate, secrets, warnings })
    }

    fn seal_key(&self, scope: &Scope, secret: &SecretString, origin: String) -> Result<SealedSecret, Error> {
        let text = secret.expose_secret();
        let bytes = self
            .0
            .master_key
            .seal(&secret_aad(scope, API_KEY), text)
            .map_err(|error| Error::invalid("/matcher/api_key", "too_long", error.to_string()))?;
        Ok(SealedSecret { origin, last4: last4(text), bytes })
    }

    /// A secret of a scope's endpoint; nothing when none is stored for this origin.
    pub(super) fn open_secret(
        &self,
        scope: &Scope,
        head: &Head,
        name: &str,
        origin: &str,
    ) -> Result<Option<SecretString>, &'static str> {
        let Some(sealed) = head.secret(name).filter(|sealed| sealed.origin == origin) else {
            return Ok(None);
        };
        let opened = self.0.master_key.open(&secret_aad(scope, name), &sealed.bytes);
        opened.map(Some).map_err(|_| "key_unreadable")
    }

    pub(super) fn written(
        &self,
        scope: &Scope,
        before: &Head,
        after: &Head,
        warnings: Vec<Warning>,
        dry_run: bool,
    ) -> ConfigWritten {
        ConfigWritten {
            config: self.shown(scope, after),
            revision: after.row.config_revision,
            changes: self.config_changes(scope, before, after),
            dry_run,
            warnings,
        }
    }

    /// Deletes a config with its secrets; deleting nothing is fine.
    pub async fn delete_config(
        &self,
        actor: &Actor,
        scope: &Scope,
        expected: Option<i64>,
    ) -> Result<(), Error> {
        let guard = self.0.scope_writes.guard(scope).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let before = self.fresh_head(scope).await?;
            check_revision(&before, expected)?;
            check_gate(actor, &before.layer, false)?;
            let nothing = Head::new(ScopeRow::default());
            let changes = self.config_changes(scope, &before, &nothing);
            let write = ConfigWrite {
                config: None,
                // What was looked at is what is deleted.
                expected_raw_revision: Some(before.row.raw_revision),
                secrets: Vec::new(),
                now_ms: now_ms(),
                forget_missed_queries: true,
                notes: self.config_notes(actor, "config.delete", scope, &changes),
            };
            match self.write_config(scope, write, &guard).await {
                Err(error) if error.kind() == Kind::Conflict && expected.is_some() => {
                    return Err(revision_mismatch());
                }
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {}
                other => {
                    self.renew_matcher(scope, &before).await;
                    return other.map(|_| ());
                }
            }
        }
    }

    /// How the endpoint of a matcher does.
    fn endpoint_state(&self, matcher: &Matcher, credentials: &Credentials) -> MatcherState {
        let mut states = endpoints(matcher, credentials).into_iter().enumerate();
        let failing = states.find_map(|(at, request)| {
            let status = self.0.reranker.status(&request);
            (status.state != State::Closed).then_some((at, status))
        });
        let Some((at, EndpointStatus { fault, retry_in, .. })) = failing else {
            return MatcherState { status: "configured", detail: None };
        };
        let which = if at == 0 { "" } else { "The model of `embedding_model`: " };
        let fault = fault.map(|fault| format!("{which}{fault}. ")).unwrap_or_default();
        let again = match retry_in {
            Some(left) => format!(
                "{fault}It is asked again in {} s; a write to the matcher does so at once.",
                left.as_secs()
            ),
            None => format!("{fault}The next search tries it again."),
        };
        MatcherState { status: "failing", detail: Some(again) }
    }

    /// After a write of a config: what the old settings failed at is nobody's any more.
    pub(super) async fn renew_matchers(&self, scope: &Scope, before: &Head, after: &Head) {
        self.renew_matcher(scope, before).await;
        self.renew_matcher(scope, after).await;
    }

    /// A matcher that was written is asked anew, whatever happened before.
    async fn renew_matcher(&self, scope: &Scope, head: &Head) {
        if head.layer.matcher.is_none() {
            return;
        }
        for request in self.stored_endpoints(scope, head) {
            self.0.reranker.renew(&request).await;
        }
        self.doubt_vectors_of(scope);
    }

    /// The endpoints of a scope's own matcher.
    pub(super) fn stored_endpoints(&self, scope: &Scope, head: &Head) -> Vec<RerankRequest> {
        let Some(matcher) = policy::merge(&head.layer, &policy::Layer::default()).matcher else {
            return Vec::new();
        };
        let credentials = self.credentials(scope, head, &matcher);
        credentials.map_or_else(|_| Vec::new(), |credentials| endpoints(&matcher, &credentials))
    }

    /// Has the other processes try a scope's endpoints anew, too, and count on no answer that was given before.
    pub(super) async fn tell_renewal(&self, scope: &Scope, head: &Head) {
        if !self.0.store.is_shared() || head.layer.matcher.is_none() {
            return;
        }
        let (service, renewed) = (self.clone(), scope.clone());
        let told = uncancelled(async move {
            let asked_ms = uptime_ms();
            let row = service.0.store.renew_scope(&renewed).await?;
            Ok(service.written_head(&renewed, row, asked_ms).await)
        });
        if let Err(error) = told.await {
            tracing::warn!(%error, "other processes were not told to try an endpoint again");
        }
    }

    /// The merged config, with the layer that each value came from.
    pub async fn effective_config(
        &self,
        user: Option<Id>,
        project: Option<Id>,
    ) -> Result<EffectiveConfig, Error> {
        let user_head = self.optional_head(user.clone().map(Scope::User)).await?;
        let project_head = self.optional_head(project.clone().map(Scope::Project)).await?;
        let mut config = policy::effective(&user_head.layer, &project_head.layer);
        let merged = policy::merge(&user_head.layer, &project_head.layer);
        let mut matcher = MatcherState { status: "none", detail: None };
        if let Some(setting) = &merged.matcher {
            let (scope, head) = match setting.layer {
                policy::Origin::Project => (project.clone().map(Scope::Project), &project_head),
                _ => (user.clone().map(Scope::User), &user_head),
            };
            let shown = scope.as_ref().map(|scope| self.shown(scope, head)).unwrap_or_default();
            let opened = scope
                .map_or_else(|| Ok(Credentials::default()), |scope| self.credentials(&scope, head, setting));
            matcher = match (check_url(&setting.endpoint, &self.0.addresses), opened) {
                (Err(why), _) => MatcherState { status: "blocked_address", detail: Some(why) },
                (_, Err(status)) => {
                    let detail =
                        "a stored secret of this matcher was sealed with another master key; set it again";
                    MatcherState { status, detail: Some(detail.to_owned()) }
                }
                (Ok(()), Ok(credentials)) => self.endpoint_state(setting, &credentials),
            };
            if let (Some(Value::Object(value)), Some(matcher)) =
                (config.get_mut("matcher").and_then(|entry| entry.get_mut("value")), shown.get("matcher"))
            {
                for key in ["api_key", "extra_headers"] {
                    value.extend(matcher.get(key).map(|shown| (key.to_owned(), shown.clone())));
                }
            }
        }
        let mut warnings: Vec<Warning> =
            user_head.warnings.iter().chain(&project_head.warnings).cloned().collect();
        warnings.extend(preload_obstacle(&merged).map(|obstacle| {
            Warning::new("preload_inactive", format!("nothing is preloaded: {obstacle}")).at("/preload")
        }));
        Ok(EffectiveConfig { user, project, config, matcher, warnings })
    }
}

/// The last characters of a secret, where it is long enough to show them.
pub(super) fn last4(text: &str) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let start = characters.len() - 4.min(characters.len());
    (characters.len() >= LAST4_FROM_CHARS).then(|| characters[start..].iter().collect())
}

/// The refusal of a write that would begin a scope too many.
pub(super) fn begun_too_many(error: StoreError, most: u32) -> Error {
    match error {
        StoreError::TooMany => {
            let detail = format!("with this key {most} users and projects were begun already");
            Error::new(Kind::TooManyScopes, detail)
        }
        other => other.into(),
    }
}

/// What a change of a secret makes of a row.
fn apply_secret(row: &mut ScopeRow, change: SecretChange) {
    row.secrets.retain(|secret| secret.name != change.name);
    if let SecretAction::Set(sealed) = change.action {
        row.secrets.push(SecretRow { name: change.name, sealed });
    }
}

/// What an edit of a config writes.
pub(super) struct PlannedConfig {
    /// The scope as it is then.
    pub head: Head,
    pub write: Option<ConfigWrite>,
    pub warnings: Vec<Warning>,
}

struct PlannedEdit {
    text: String,
    /// Whether changed tools wait.
    gate: bool,
    secrets: Vec<SecretChange>,
    warnings: Vec<Warning>,
}

/// Whether a document repeats the shown form of a stored secret.
fn says_set(document: &Value) -> bool {
    document.pointer("/matcher/api_key/set") == Some(&Value::Bool(true))
}

fn check_revision(head: &Head, expected: Option<i64>) -> Result<(), Error> {
    match expected {
        Some(expected) if expected != head.row.config_revision => Err(revision_mismatch()),
        _ => Ok(()),
    }
}

fn revision_mismatch() -> Error {
    Error::new(Kind::PreconditionFailed, "the stored config is not the revision that If-Match names")
}

/// A setting of a matcher that does nothing beside the others.
pub(super) fn idle_setting(matcher: &Matcher) -> Option<Warning> {
    let (key, detail) = match (matcher.kind, &matcher.embedding_model, &matcher.embedding_endpoint) {
        (MatcherKind::Embedding, Some(_), _) => {
            ("embedding_model", "with kind `embedding` the model is told in `model`; this key does nothing")
        }
        (MatcherKind::Embedding, None, Some(_)) => (
            "embedding_endpoint",
            "with kind `embedding` the address is told in `endpoint`; this key does nothing",
        ),
        (MatcherKind::Rerank, None, Some(_)) => {
            ("embedding_endpoint", "without an `embedding_model` this key does nothing")
        }
        _ => return None,
    };
    Some(Warning::new("setting_without_effect", detail).at(format!("/matcher/{key}")))
}

/// Faults of a document: what is reserved for later is a refusal of its own.
pub(super) fn refused(errors: Vec<FieldError>) -> Error {
    let unsupported = errors.iter().all(|error| error.code == "unsupported");
    Error::with_errors(if unsupported { Kind::Unsupported } else { Kind::Invalid }, errors)
}
