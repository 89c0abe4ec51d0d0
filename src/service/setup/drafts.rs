//! Setups that are being prepared: one for each scope, kept in the store until it is applied, thrown away or thirty days old.
//! What agents see does not change by a draft.

use std::collections::BTreeSet;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

use super::SetupInput;
use crate::core::id::Scope;
use crate::core::policy::{self, origin_of};
use crate::core::warning::FieldError;
use crate::rerank::check_url;
use crate::service::scopes::{begun_too_many, refused};
use crate::service::{Actor, Caller, Error, InlineTools, Kind, Toolrack, blocking, now_ms};
use crate::store::{DraftRow, DraftWrite, StoreError};

/// How long a draft is kept that nobody goes on with: thirty days.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
const EXPIRED_AT_ONCE: u32 = 100;

/// What a draft was begun from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftBase {
    pub config_revision: i64,
    pub catalog_version: String,
}

/// Tools that a draft puts beside those that are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedTools {
    /// By group and name, as they were uploaded.
    pub tools: BTreeSet<(String, String)>,
    /// Groups of which nothing else shall be there.
    pub groups: BTreeSet<String>,
}

/// A setup that is being prepared.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SetupDraft {
    /// Entries of an upload that shall replace the catalog; nothing: the stored catalog stays.
    pub tools: Option<Vec<Box<RawValue>>>,
    /// What of `tools` was put beside the stored ones; nothing where they take the place of all of them.
    pub added: Option<AddedTools>,
    /// Where the tools come from, for people.
    pub source: String,
    /// The whole document of the scope's config, as a PUT takes it, without secrets.
    pub config: Map<String, Value>,
    /// Servers that shall be stored with it, as they were imported, without secrets.
    pub servers: Vec<Value>,
    /// What was told of each import, for people.
    pub notes: Vec<Value>,
    /// Names of toolsets that are not to be proposed.
    pub refused_toolsets: BTreeSet<String>,
    pub base: DraftBase,
    /// The config that it was begun from, without secrets: what differs from it is what the draft changes.
    pub base_config: Map<String, Value>,
    /// A key for the endpoint of the matcher, which goes nowhere else.
    #[serde(skip)]
    key: Option<DraftKey>,
    /// The origin of the sealed key.
    key_origin: Option<String>,
    /// A key was given up, because the endpoint got another origin.
    pub key_cleared: bool,
    /// What a write of the stored config would be refused for: a later edit has not brought it.
    #[serde(skip)]
    faults: Vec<FieldError>,
    /// Counts its writes; 0: not stored.
    #[serde(skip)]
    pub revision: i64,
    #[serde(skip)]
    pub updated_at_ms: i64,
}

/// A key with the origin that it was given for.
struct DraftKey {
    origin: String,
    text: SecretString,
}

impl std::fmt::Debug for SetupDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetupDraft").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl SetupDraft {
    /// The origin of the endpoint that the draft has now.
    fn endpoint_origin(&self) -> Option<String> {
        let endpoint = self.config.get("matcher")?.get("endpoint")?.as_str()?;
        Url::parse(endpoint).ok().map(|url| origin_of(&url))
    }

    /// What the agents of its scope would go by with it: per key `{value, origin, parts?}`, as an effective config has it.
    pub fn effective(&self, scope: &Scope) -> Map<String, Value> {
        let (layer, _) = policy::load(&Value::Object(self.config.clone()));
        let nothing = policy::Layer::default();
        match scope {
            Scope::User(_) => policy::effective(&layer, &nothing),
            Scope::Project(_) => policy::effective(&nothing, &layer),
        }
    }

    /// The key for the present endpoint: one that was given for another origin is none.
    pub fn api_key(&self) -> Option<&SecretString> {
        let key = self.key.as_ref()?;
        (self.endpoint_origin().as_deref() == Some(&key.origin)).then_some(&key.text)
    }

    /// Sets the key for the present endpoint, or takes it away.
    pub fn set_api_key(&mut self, key: Option<SecretString>) {
        let origin = self.endpoint_origin();
        self.key = origin.zip(key).map(|(origin, text)| DraftKey { origin, text });
        self.key_cleared = false;
    }

    /// The config as it would be written, with the key.
    pub fn document(&self) -> Value {
        let mut config = self.config.clone();
        if let (Some(key), Some(Value::Object(matcher))) = (self.api_key(), config.get_mut("matcher")) {
            matcher.insert("api_key".to_owned(), key.expose_secret().into());
        }
        Value::Object(config)
    }

    /// The draft as what a review or a proposal is about.
    pub fn input(&self, caller: Caller) -> SetupInput {
        let tools = self.tools.as_deref().map(as_array);
        SetupInput { caller, tools, config: Some(Value::Object(self.config.clone())) }
    }

    /// Names what a page was made for: no other draft of a scope has it, nor has this one after a write.
    pub fn tag(&self) -> String {
        format!("{}-{}", self.revision, self.updated_at_ms)
    }
}

/// Tools as the raw JSON array that the service takes.
pub fn as_array(tools: &[Box<RawValue>]) -> InlineTools {
    let tools: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
    Arc::from(format!("[{}]", tools.join(",")))
}

/// Where a sealed key stands, and where it may be sent.
fn aad(scope: &Scope, origin: &str) -> String {
    format!("setup_drafts|{}|{}|{origin}", scope.kind(), scope.id())
}

/// What a write of a config is refused for.
fn faults(document: &Value) -> Vec<FieldError> {
    policy::parse(document).err().unwrap_or_default()
}

/// The faults that were not there before, wherever in a list they stood.
fn brought(before: &[FieldError], now: &[FieldError]) -> Vec<FieldError> {
    let place = |error: &FieldError| -> String {
        let is_index = |part: &&str| part.parse::<usize>().is_ok();
        error.pointer.split('/').filter(|part| !is_index(part)).collect::<Vec<_>>().join("/")
    };
    let mut known: Vec<_> = before.iter().map(|error| (place(error), error.code, &error.detail)).collect();
    let is_new = |error: &&FieldError| {
        let same = (place(error), error.code, &error.detail);
        let at = known.iter().position(|fault| *fault == same);
        at.map(|at| known.swap_remove(at)).is_none()
    };
    // How many are not listed is no fault of its own.
    now.iter().filter(|error| error.code != "more_faults").filter(is_new).cloned().collect()
}

impl Toolrack {
    /// The draft of a scope; one that nobody began is what is stored.
    pub async fn draft(&self, scope: &Scope) -> Result<SetupDraft, Error> {
        match self.0.store.draft(scope).await? {
            Some(row) => self.read_draft(scope, row).await,
            None => self.draft_base(scope).await,
        }
    }

    /// What is stored of a scope, as a draft begins.
    pub async fn draft_base(&self, scope: &Scope) -> Result<SetupDraft, Error> {
        let head = self.fresh_head(scope).await?;
        let base = DraftBase::of(&head);
        let config = head.layer.to_json();
        Ok(SetupDraft { base_config: config.clone(), config, base, ..SetupDraft::default() })
    }

    async fn read_draft(&self, scope: &Scope, row: DraftRow) -> Result<SetupDraft, Error> {
        let DraftRow { body, sealed, revision, updated_at_ms } = row;
        // It may hold all tools of a large catalog.
        let draft = blocking(move || serde_json::from_str::<SetupDraft>(&body)).await?;
        let draft = draft.map_err(Error::internal)?;
        let sealed = sealed.as_ref().zip(draft.key_origin.clone());
        let key = sealed.as_ref().and_then(|(sealed, origin)| {
            let text = self.0.master_key.open(&aad(scope, origin), sealed).ok()?;
            Some(DraftKey { origin: origin.clone(), text })
        });
        // A change of the master key takes it away.
        let key_cleared = draft.key_cleared || (draft.key_origin.is_some() && key.is_none());
        let mut draft = SetupDraft { key, key_cleared, revision, updated_at_ms, ..draft };
        let document = draft.document();
        draft.faults = blocking(move || faults(&document)).await?;
        Ok(draft)
    }

    /// Stores a draft, in the place of the one that it was made from. Its key is given up where its endpoint has another origin
    /// than the key was given for.
    ///
    /// # Errors
    /// What a write of its config would be refused for, as far as the draft that it was made from had none of it; nothing is stored
    /// then.
    pub async fn save_draft(
        &self,
        scope: &Scope,
        draft: &mut SetupDraft,
        actor: &Actor,
    ) -> Result<(), Error> {
        if draft.key.is_some() && draft.api_key().is_none() {
            (draft.key, draft.key_cleared) = (None, true);
        }
        let document = draft.document();
        let found = blocking(move || faults(&document)).await?;
        let new = brought(&draft.faults, &found);
        if !new.is_empty() {
            return Err(refused(new));
        }
        draft.key_origin = draft.key.as_ref().map(|key| key.origin.clone());
        let body = serde_json::to_string(draft).map_err(Error::internal)?;
        let seal =
            |key: &DraftKey| self.0.master_key.seal(&aad(scope, &key.origin), key.text.expose_secret());
        let sealed = draft.key.as_ref().map(seal).transpose();
        let sealed =
            sealed.map_err(|error| Error::invalid("/matcher/api_key", "too_long", error.to_string()))?;
        let now_ms = now_ms();
        let write = DraftWrite {
            body,
            sealed,
            expected_revision: draft.revision,
            now_ms,
            beginner: self.beginner(actor),
        };
        let written = self.0.store.write_draft(scope, write).await;
        draft.revision = written.map_err(|error| match error {
            StoreError::Conflict => {
                Error::new(Kind::Conflict, "this draft was changed in another window in the meantime")
            }
            other => begun_too_many(other, self.0.limits.keys.scopes),
        })?;
        draft.updated_at_ms = now_ms;
        draft.faults = found;
        Ok(())
    }

    /// Why the endpoint of a draft may not be called, as far as can be told without asking for its address.
    pub fn endpoint_fault(&self, draft: &SetupDraft) -> Option<Error> {
        let endpoint = draft.config.get("matcher")?.get("endpoint")?.as_str()?;
        let why = check_url(&Url::parse(endpoint).ok()?, &self.0.addresses).err()?;
        Some(Error::invalid("/matcher/endpoint", "blocked_address", why))
    }

    /// Throws a draft away.
    pub async fn discard_draft(&self, scope: &Scope) -> Result<(), Error> {
        Ok(self.0.store.delete_draft(scope).await?)
    }

    /// Deletes drafts that nobody goes on with.
    pub(in crate::service) async fn expire_drafts(&self) -> Result<(), Error> {
        let before = now_ms() - KEPT_MS;
        while self.0.store.expire_drafts(before, EXPIRED_AT_ONCE).await? == u64::from(EXPIRED_AT_ONCE) {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_that_was_there_is_brought_by_nobody() {
        let of = |config: Value| faults(&config);
        let twice = json!({"groups": [{"name": "a"}, {"name": "b"}, {"name": "b"}], "max_warm_tools": "x"});
        let before = of(twice.clone());
        assert_eq!(before.len(), 2);
        assert_eq!(brought(&before, &of(twice)), []);
        // It stands elsewhere once an entry before it is gone.
        let moved = json!({"groups": [{"name": "b"}, {"name": "b"}]});
        assert_eq!(brought(&before, &of(moved)), []);
        let again = json!({"groups": [{"name": "b"}, {"name": "b"}, {"name": "b"}], "core": ["@"]});
        let new = brought(&before, &of(again));
        let at: Vec<&str> = new.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(at, ["/groups/2/name", "/core/0"]);
    }
}
