//! What a scope's endpoint is sent that nobody reads back: its key and the texts of its headers.
//!
//! Each is a secret of its own, sealed for its place and used with the origin that it was set for. A stored config says of
//! a header that it is set, and nothing more.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use super::heads::{API_KEY, HEADERS, Head, header_secret};
use super::{Error, Toolrack};
use crate::core::id::Scope;
use crate::core::policy::{self, ConfigChange, ConfigDiff, ExtraHeader, Layer, Matcher, origin_of};
use crate::core::warning::{Warning, pointer_push};
use crate::store::{SealedSecret, SecretAction, SecretChange, secret_aad};

/// What goes along with requests to an endpoint. `Debug` shows the names of headers alone.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    pub api_key: Option<SecretString>,
    pub headers: Vec<(String, SecretString)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Credentials")
            .field("has_key", &self.api_key.is_some())
            .field("headers", &names)
            .finish()
    }
}

/// The headers of a layer, as they are written in it.
fn headers_of(layer: &Layer) -> &[ExtraHeader] {
    let headers = layer.matcher.as_ref().and_then(|matcher| matcher.extra_headers.as_ref());
    headers.map(policy::ExtraHeaders::entries).unwrap_or_default()
}

fn origin_of_layer(layer: &Layer) -> Option<String> {
    let endpoint = layer.matcher.as_ref().and_then(|matcher| matcher.endpoint.as_ref());
    endpoint.map(|endpoint| origin_of(endpoint.url()))
}

fn pointer(name: &str) -> String {
    let mut pointer = "/matcher/extra_headers".to_owned();
    pointer_push(&mut pointer, name);
    pointer
}

impl Toolrack {
    /// What belongs to a matcher of this scope; nothing that was stored for another origin.
    pub(super) fn credentials(
        &self,
        scope: &Scope,
        head: &Head,
        matcher: &Matcher,
    ) -> Result<Credentials, &'static str> {
        let origin = origin_of(&matcher.endpoint);
        let api_key = self.open_secret(scope, head, API_KEY, &origin)?;
        let mut headers = Vec::with_capacity(matcher.extra_headers.len());
        for (name, text) in &matcher.extra_headers {
            let text = match text {
                // Of a config that was stored before headers were sealed; its next write seals it.
                Some(text) => Some(SecretString::from(text.as_str())),
                None => self.open_secret(scope, head, &header_secret(name), &origin)?,
            };
            headers.extend(text.map(|text| (name.clone(), text)));
        }
        Ok(Credentials { api_key, headers })
    }

    /// What a write does to the stored headers. Those that the document means and that are not there, or belong to another
    /// origin, are taken out of what is stored, each with a warning.
    pub(super) fn plan_headers(
        &self,
        scope: &Scope,
        before: &Head,
        layer: &Layer,
        document: &mut Map<String, Value>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<SecretChange>, Error> {
        let origin = origin_of_layer(layer).unwrap_or_default();
        let mut changes = Vec::new();
        let mut dropped = Vec::new();
        for (name, text) in headers_of(layer) {
            let secret = header_secret(name);
            let stored = before.secret(&secret);
            // A text that an older version stored as it is.
            let plain = || {
                let known =
                    headers_of(&before.layer).iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                known.filter(|_| origin_of_layer(&before.layer).as_ref() == Some(&origin))?.1.clone()
            };
            let action = match (text.clone().or_else(|| stored.is_none().then(plain)?), stored) {
                (Some(text), _) => {
                    let bytes = self
                        .0
                        .master_key
                        .seal(&secret_aad(scope, &secret), &text)
                        .map_err(|error| Error::invalid(pointer(name), "too_long", error.to_string()))?;
                    SecretAction::Set(SealedSecret { origin: origin.clone(), last4: None, bytes })
                }
                (None, Some(stored)) if stored.origin == origin => continue,
                (None, Some(stored)) => {
                    let detail = format!(
                        "the stored text of this header was cleared, because the endpoint is no longer at {}",
                        stored.origin
                    );
                    warnings.push(Warning::new("secret_cleared", detail).at(pointer(name)));
                    dropped.push(name);
                    SecretAction::Clear
                }
                (None, None) => {
                    let detail =
                        "this header says that it is set, but no text is stored; send the text itself";
                    warnings.push(Warning::new("secret_missing", detail).at(pointer(name)));
                    dropped.push(name);
                    continue;
                }
            };
            changes.push(SecretChange { name: secret, action });
        }
        let meant = |secret: &str| headers_of(layer).iter().any(|(name, _)| header_secret(name) == secret);
        let stored = before.row.secrets.iter().map(|secret| &secret.name);
        let gone = stored.filter(|secret| secret.starts_with(HEADERS) && !meant(secret));
        changes.extend(gone.map(|secret| SecretChange { name: secret.clone(), action: SecretAction::Clear }));
        if let Some(Value::Object(headers)) =
            document.get_mut("matcher").and_then(|matcher| matcher.get_mut("extra_headers"))
        {
            headers.retain(|name, _| !dropped.contains(&name));
        }
        Ok(changes)
    }

    /// The document to show: the key as `{set, last4}`, headers as `{set}`, and as not set where no known key opens them.
    pub(super) fn shown(&self, scope: &Scope, head: &Head) -> Map<String, Value> {
        let mut document = head.layer.to_json();
        let Some(Value::Object(matcher)) = document.get_mut("matcher") else { return document };
        let readable = |name: &str, secret: &SealedSecret| {
            self.0.master_key.open(&secret_aad(scope, name), &secret.bytes).is_ok()
        };
        if let Some(secret) = head.secret(API_KEY) {
            let readable = readable(API_KEY, secret);
            let mut shown = json!({ "set": readable });
            if let Some(last4) = secret.last4.as_ref().filter(|_| readable) {
                shown["last4"] = Value::from(last4.as_str());
            }
            matcher.insert("api_key".to_owned(), shown);
        }
        if let Some(Value::Object(headers)) = matcher.get_mut("extra_headers") {
            for (name, text) in headers_of(&head.layer) {
                let secret = header_secret(name);
                let set =
                    text.is_some() || head.secret(&secret).is_some_and(|sealed| readable(&secret, sealed));
                headers.insert(name.clone(), json!({ "set": set }));
            }
        }
        document
    }

    /// The changes of a write; secrets are told by their shown form.
    pub(super) fn config_changes(&self, scope: &Scope, before: &Head, after: &Head) -> ConfigDiff {
        let mut diff = policy::diff(&before.layer, &after.layer);
        let of = |head: &Head, is_key: bool| -> Vec<_> {
            let secrets = head.row.secrets.iter().filter(|secret| (secret.name == API_KEY) == is_key);
            secrets.cloned().collect()
        };
        for (key, is_key) in [("api_key", true), ("extra_headers", false)] {
            if of(before, is_key) != of(after, is_key) {
                let shown = |head: &Head| self.shown(scope, head).get("matcher")?.get(key).cloned();
                let (from, to) = (shown(before).unwrap_or_default(), shown(after).unwrap_or_default());
                diff.changed.push(ConfigChange { key: format!("matcher.{key}"), from, to });
            }
        }
        diff
    }
}

/// The headers of a request. They leave the shelter of their type here; `Debug` of a request tells how many there are.
pub(super) fn request_headers(credentials: &Credentials) -> Vec<(String, String)> {
    let exposed = |(name, text): &(String, SecretString)| (name.clone(), text.expose_secret().to_owned());
    credentials.headers.iter().map(exposed).collect()
}
