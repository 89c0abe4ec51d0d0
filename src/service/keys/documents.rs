//! Keys as documents: making, listing, changing, revoking and rotating them.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::core::keys::{Bindings, KeyDigest, KeyId, Pattern, Role, format_key};
use crate::core::rate::KeyRate;
use crate::core::text::one_line;
use crate::core::warning::FieldError;
use crate::service::audit::{Actor, Subject, names};
use crate::service::{Error, Kind, Toolrack, now_ms, uncancelled};
use crate::store::{AuditWrite, KeyChange, KeyRotation, KeyRow, StoreError};

/// Longest name of a key, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Longest life of a key, in seconds: 10 years.
pub const MAX_KEY_SECONDS: u64 = 315_360_000;

/// How long the old key of a rotation is accepted beside the new one, in seconds: a day, at most 30.
pub const DEFAULT_OVERLAP_SECONDS: u64 = 86_400;
pub const MAX_OVERLAP_SECONDS: u64 = 2_592_000;

/// A key to make.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub name: String,
    pub role: Role,
    pub bindings: Bindings,
    /// `None`: it does not expire.
    pub expires_in_seconds: Option<u64>,
}

/// What to change of a key; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct KeyPatch {
    pub name: Option<String>,
    /// From now on; `Some(None)`: it does not expire any more.
    pub expires_in_seconds: Option<Option<u64>>,
    /// In the place of the whole rate of before; the default: as usual.
    pub rate: Option<KeyRate>,
}

/// Whether a key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    Active,
    Expired,
    Revoked,
}

/// A key, without what makes it one.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KeyDocument {
    /// What stands between the first two `_` of the key.
    #[schema(value_type = String)]
    pub id: KeyId,
    pub name: String,
    #[schema(value_type = String, example = "agent")]
    pub role: String,
    pub status: KeyStatus,
    /// The users that it covers: names, `prefix*`, or `*`.
    pub users: Vec<String>,
    /// The projects that it covers. Requests without a project need none.
    pub projects: Vec<String>,
    /// Toolsets that every grant under this key is limited to; empty: no limit.
    pub toolsets: Vec<String>,
    /// The only tools to be seen under this key; empty: no limit.
    pub allow: Vec<String>,
    /// Tools that are not to be seen under this key.
    pub deny: Vec<String>,
    /// How often its holder may ask.
    pub rate: KeyRateDocument,
    pub created_at_ms: i64,
    /// Null: it does not expire.
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
    /// To about a second; null: never.
    pub last_used_ms: Option<i64>,
    /// The key that this one takes the place of.
    #[schema(value_type = Option<String>)]
    pub predecessor: Option<KeyId>,
    /// The key that takes the place of this one.
    #[schema(value_type = Option<String>)]
    pub successor: Option<KeyId>,
}

/// How often the holder of a key may ask. A number that is absent is as the operator set it (`GET /v1/limits`); 0: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRateDocument {
    /// Requests per second, in the long run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub requests_per_second: Option<u32>,
    /// Requests that may come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub burst: Option<u32>,
    /// Searches per minute that ask an endpoint; over it they rank by keywords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub rerank_per_minute: Option<u32>,
}

impl From<KeyRateDocument> for KeyRate {
    fn from(document: KeyRateDocument) -> Self {
        let KeyRateDocument { requests_per_second, burst, rerank_per_minute } = document;
        Self { requests_per_second, burst, rerank_per_minute }
    }
}

impl From<KeyRate> for KeyRateDocument {
    fn from(rate: KeyRate) -> Self {
        let KeyRate { requests_per_second, burst, rerank_per_minute } = rate;
        Self { requests_per_second, burst, rerank_per_minute }
    }
}

/// A key that was just made: the one time that it is shown.
#[derive(Serialize, ToSchema)]
pub struct KeyCreated {
    /// For `Authorization: Bearer`. It cannot be shown again.
    #[schema(value_type = String)]
    #[serde(serialize_with = "exposed")]
    pub key: SecretString,
    #[serde(flatten)]
    pub document: KeyDocument,
}

/// The one place where a key stands in an answer of the API.
fn exposed<S: serde::Serializer>(key: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.expose_secret())
}

impl fmt::Debug for KeyCreated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyCreated").field("document", &self.document).finish_non_exhaustive()
    }
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyList {
    pub keys: Vec<KeyDocument>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which keys to list.
#[derive(Debug)]
pub struct KeyListQuery {
    pub cursor: Option<String>,
    pub limit: u32,
}

impl Toolrack {
    /// Makes a key.
    pub async fn create_key(&self, actor: &Actor, new: NewKey) -> Result<KeyCreated, Error> {
        new.bindings.check(new.role).map_err(|error| Error::with_errors(Kind::Invalid, vec![error]))?;
        let (key, row) = make(&new, now_ms())?;
        let audit = self.key_audited(actor, "key.create", row.id, &summary(&new));
        let service = self.clone();
        let stored = uncancelled(async move { service.insert_key(row, false, audit).await }).await?;
        let stored = stored.ok_or_else(|| Error::internal("a key was refused"))?;
        tracing::info!(key = %stored.id, role = stored.role, "a key was made");
        Ok(KeyCreated { key, document: self.key_document(&stored)? })
    }

    /// Makes an admin key if there is no key at all.
    pub async fn first_key(&self) -> Result<Option<KeyCreated>, Error> {
        let new = NewKey {
            name: "first".to_owned(),
            role: Role::Admin,
            bindings: Bindings::default(),
            expires_in_seconds: None,
        };
        let (key, row) = make(&new, now_ms())?;
        let audit = self.key_audited(&Actor::program(), "key.create", row.id, &summary(&new));
        let Some(stored) = self.insert_key(row, true, audit).await? else { return Ok(None) };
        Ok(Some(KeyCreated { key, document: self.key_document(&stored)? }))
    }

    fn key_audited(&self, actor: &Actor, action: &str, id: KeyId, summary: &Value) -> Option<AuditWrite> {
        Some(self.audited(actor, action, &Subject::Key(id), summary))
    }

    async fn insert_key(
        &self,
        row: KeyRow,
        only_first: bool,
        audit: Option<AuditWrite>,
    ) -> Result<Option<KeyRow>, Error> {
        let stored = self.0.store.insert_key(row, only_first, audit).await?;
        self.0.keys.keep(&stored);
        Ok(stored)
    }

    /// A page of keys, by time of creation.
    pub async fn list_keys(&self, query: KeyListQuery) -> Result<KeyList, Error> {
        let after = query.cursor.as_deref().map(read_cursor).transpose()?;
        // One more than asked for tells whether there is a next page.
        let mut rows = self.0.store.list_keys(after, query.limit + 1).await?;
        let more = rows.len() > query.limit as usize;
        rows.truncate(query.limit as usize);
        let last = rows.last().filter(|_| more);
        let next_cursor = last.map(|row| hex::encode(format!("{}/{}", row.created_at_ms, row.id)));
        // One that this version cannot read is shown to nobody and accepted from nobody.
        let keys = rows.iter().filter_map(|row| self.key_document(row).ok()).collect();
        Ok(KeyList { keys, next_cursor })
    }

    /// One key.
    pub async fn key(&self, id: KeyId) -> Result<KeyDocument, Error> {
        let row = self.0.store.key(id).await?.ok_or_else(no_key)?;
        self.key_document(&row)
    }

    /// Changes name, expiry or rate of a key. A rate holds from the next request on.
    pub async fn change_key(&self, actor: &Actor, id: KeyId, patch: KeyPatch) -> Result<KeyDocument, Error> {
        let name = patch.name.as_deref().map(checked_name).transpose()?;
        let now = now_ms();
        let expires_at_ms = match patch.expires_in_seconds {
            Some(seconds) => Some(expiry(seconds, now)?),
            None => None,
        };
        let bindings = match patch.rate {
            Some(rate) => Some(self.bindings_with(id, rate).await?),
            None => None,
        };
        let changed = [
            ("name", name.is_some()),
            ("expires_in_seconds", expires_at_ms.is_some()),
            ("rate", bindings.is_some()),
        ];
        let changed: Vec<&str> = changed.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect();
        let audit = self.key_audited(actor, "key.patch", id, &json!({ "changed": changed }));
        let change = KeyChange { name, expires_at_ms, bindings, revoked_at_ms: None, audit };
        self.key_document(&self.write_key(id, change).await?)
    }

    /// The bindings of a key with another rate, as stored. Nothing else in them ever changes, so nothing is lost between this
    /// read and the write.
    async fn bindings_with(&self, id: KeyId, rate: KeyRate) -> Result<String, Error> {
        let row = self.0.store.key(id).await?.ok_or_else(no_key)?;
        let bindings: Bindings = serde_json::from_str(&row.bindings).map_err(Error::internal)?;
        let role = Role::parse(&row.role).ok_or_else(|| Error::internal("a role of another version"))?;
        let bindings = Bindings { rate, ..bindings };
        bindings.check(role).map_err(|error| Error::with_errors(Kind::Invalid, vec![error]))?;
        serde_json::to_string(&bindings).map_err(Error::internal)
    }

    /// Revokes a key: the next request with it is refused. One that is revoked already stays so.
    pub async fn revoke_key(&self, actor: &Actor, id: KeyId) -> Result<(), Error> {
        let audit = self.key_audited(actor, "key.revoke", id, &json!({}));
        let change = KeyChange { revoked_at_ms: Some(now_ms()), audit, ..KeyChange::default() };
        self.write_key(id, change).await.inspect_err(|error| {
            // Whoever filled the disk is not let in for it.
            if error.kind() == Kind::StorageFull && self.0.keys.refuse(id, now_ms()) {
                tracing::error!(key = %id, "a key is refused until this process ends, and its revocation is not stored");
            }
        })?;
        tracing::info!(key = %id, "a key was revoked");
        Ok(())
    }

    async fn write_key(&self, id: KeyId, change: KeyChange) -> Result<KeyRow, Error> {
        let service = self.clone();
        uncancelled(async move {
            let row = service.0.store.change_key(id, change).await?.ok_or_else(no_key)?;
            service.0.keys.keep([&row]);
            Ok(row)
        })
        .await
    }

    /// Makes a key of the same rights in the place of another, which is accepted for `overlap_seconds` more. The new one
    /// lives as long as lies between the making and the end of the old one, and at most [`MAX_KEY_SECONDS`].
    pub async fn rotate_key(
        &self,
        actor: &Actor,
        id: KeyId,
        overlap_seconds: u64,
    ) -> Result<KeyCreated, Error> {
        if overlap_seconds > MAX_OVERLAP_SECONDS {
            let detail = format!("an overlap is 0 to {MAX_OVERLAP_SECONDS} seconds");
            return Err(Error::invalid("/overlap_seconds", "invalid_value", detail));
        }
        let old = self.0.store.key(id).await?.ok_or_else(no_key)?;
        let now = now_ms();
        let most = milliseconds(MAX_KEY_SECONDS);
        let life = |expires: i64| expires.saturating_sub(old.created_at_ms).clamp(1, most);
        let expires_at_ms = old.expires_at_ms.map(|expires| now.saturating_add(life(expires)));
        let (key, digest, new_id) = random_key();
        let new = KeyRow {
            id: new_id,
            digest,
            created_at_ms: now,
            expires_at_ms,
            revoked_at_ms: None,
            last_used_ms: None,
            predecessor: Some(id),
            successor: None,
            ..old
        };
        let old_expires_at_ms = now.saturating_add(milliseconds(overlap_seconds));
        let told = json!({"successor": new_id.to_string(), "overlap_seconds": overlap_seconds});
        let audit = self.key_audited(actor, "key.rotate", id, &told);
        let rotation = KeyRotation { old: id, old_expires_at_ms, now_ms: now, new, audit };
        let service = self.clone();
        let stored = uncancelled(async move {
            let rotated = service.0.store.rotate_key(rotation).await;
            let (old, new) = rotated.map_err(not_rotated)?.ok_or_else(no_key)?;
            service.0.keys.keep([&old, &new]);
            Ok(new)
        })
        .await?;
        tracing::info!(key = %id, successor = %stored.id, overlap_seconds, "a key was rotated");
        Ok(KeyCreated { key, document: self.key_document(&stored)? })
    }

    fn key_document(&self, row: &KeyRow) -> Result<KeyDocument, Error> {
        let Bindings { users, projects, toolsets, allow, deny, rate } =
            serde_json::from_str(&row.bindings).map_err(Error::internal)?;
        fn texts<T: ToString>(list: &[T]) -> Vec<String> {
            list.iter().map(T::to_string).collect()
        }
        let status = if row.revoked_at_ms.is_some() {
            KeyStatus::Revoked
        } else if row.expires_at_ms.is_some_and(|expires| expires <= now_ms()) {
            KeyStatus::Expired
        } else {
            KeyStatus::Active
        };
        Ok(KeyDocument {
            id: row.id,
            name: row.name.clone(),
            role: row.role.clone(),
            status,
            users: texts(&users),
            projects: texts(&projects),
            toolsets,
            allow: texts(&allow),
            deny: texts(&deny),
            rate: rate.into(),
            created_at_ms: row.created_at_ms,
            expires_at_ms: row.expires_at_ms,
            revoked_at_ms: row.revoked_at_ms,
            last_used_ms: row.last_used_ms.max(self.0.keys.last_used_ms(row.id)),
            predecessor: row.predecessor,
            successor: row.successor,
        })
    }
}

/// What an entry tells of a new key.
fn summary(new: &NewKey) -> Value {
    let texts = |patterns: &[Pattern]| {
        let all: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        names(all.iter().map(String::as_str))
    };
    json!({
        "name": new.name,
        "role": new.role,
        "users": texts(&new.bindings.users),
        "projects": texts(&new.bindings.projects),
    })
}

fn random_key() -> (SecretString, KeyDigest, KeyId) {
    let id = KeyId::new(rand::random());
    let key = format_key(id, &rand::random());
    let digest = KeyDigest::of(key.expose_secret().as_bytes());
    (key, digest, id)
}

fn make(new: &NewKey, now: i64) -> Result<(SecretString, KeyRow), Error> {
    let (key, digest, id) = random_key();
    let row = KeyRow {
        id,
        name: checked_name(&new.name)?,
        digest,
        role: new.role.as_str().to_owned(),
        bindings: serde_json::to_string(&new.bindings).map_err(Error::internal)?,
        created_at_ms: now,
        expires_at_ms: expiry(new.expires_in_seconds, now)?,
        revoked_at_ms: None,
        last_used_ms: None,
        predecessor: None,
        successor: None,
        revision: 0,
    };
    Ok((key, row))
}

fn checked_name(name: &str) -> Result<String, Error> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || one_line(name) != name {
        let detail =
            format!("a name is one line of 1 to {MAX_NAME_CHARS} characters, single spaces between words");
        return Err(Error::invalid("/name", "invalid_value", detail));
    }
    Ok(name.to_owned())
}

fn expiry(seconds: Option<u64>, now: i64) -> Result<Option<i64>, Error> {
    match seconds {
        None => Ok(None),
        Some(seconds @ 1..=MAX_KEY_SECONDS) => Ok(Some(now.saturating_add(milliseconds(seconds)))),
        Some(_) => {
            let detail = format!("a key lives 1 to {MAX_KEY_SECONDS} seconds");
            Err(Error::invalid("/expires_in_seconds", "invalid_value", detail))
        }
    }
}

fn milliseconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000)
}

fn no_key() -> Error {
    Error::new(Kind::NotFound, "there is no key of this id")
}

fn not_rotated(error: StoreError) -> Error {
    match error {
        StoreError::Conflict => {
            Error::new(Kind::Conflict, "the key is revoked, expired or rotated already; make a new one")
        }
        other => other.into(),
    }
}

/// A cursor is the place of the last row.
fn read_cursor(cursor: &str) -> Result<(i64, KeyId), Error> {
    let read = || {
        let text = String::from_utf8(hex::decode(cursor).ok()?).ok()?;
        let (created, id) = text.split_once('/')?;
        Some((created.parse().ok()?, id.parse().ok()?))
    };
    read().ok_or_else(|| {
        let detail = "this is not a cursor of this list";
        Error::with_errors(Kind::Invalid, vec![FieldError::new("/cursor", "invalid_value", detail)])
    })
}
