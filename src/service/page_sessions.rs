//! Browsers that are signed in to the pages: a random token for each, kept by its digest, with the key that was shown.
//!
//! The key is asked for anew with every page: one that was revoked or has expired signs its browsers out.

use secrecy::{ExposeSecret as _, SecretString};

use super::{Error, Toolrack, now_ms};
use crate::core::digest::Digest;
use crate::core::keys::{KeyDigest, KeyId};
use crate::store::PageSessionRow;

/// How long a browser stays signed in: twelve hours.
pub const PAGE_SESSION_SECONDS: u32 = 12 * 60 * 60;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Rows that are deleted at once when they have expired.
const EXPIRED_AT_ONCE: u32 = 500;

/// The key that a browser was signed in with.
#[derive(Debug, Clone)]
pub struct PageSession {
    /// Nothing: the admin key of the settings.
    pub key: Option<KeyId>,
    pub digest: KeyDigest,
}

/// What a token is kept under.
fn digest_of(token: &str) -> Digest {
    Digest::of(token.as_bytes())
}

fn aad(digest: &Digest) -> String {
    format!("page_sessions|{digest}")
}

impl PageSession {
    fn to_text(&self) -> String {
        let key = self.key.map(|key| key.to_string()).unwrap_or_default();
        format!("{key}:{}", self.digest.to_hex())
    }

    fn from_text(text: &str) -> Option<Self> {
        let (key, digest) = text.split_once(':')?;
        let key = if key.is_empty() { None } else { Some(key.parse().ok()?) };
        Some(Self { key, digest: KeyDigest::from_hex(digest)? })
    }
}

impl Toolrack {
    /// Signs a browser in; answers the token for its cookie.
    pub async fn begin_page_session(&self, session: &PageSession) -> Result<SecretString, Error> {
        let token = hex::encode(rand::random::<[u8; TOKEN_BYTES]>());
        let digest = digest_of(&token);
        let sealed = self.0.master_key.seal(&aad(&digest), &session.to_text()).map_err(Error::internal)?;
        let expires_at_ms = now_ms() + i64::from(PAGE_SESSION_SECONDS) * 1_000;
        self.0.store.begin_page_session(PageSessionRow { digest, sealed, expires_at_ms }).await?;
        Ok(SecretString::from(token))
    }

    /// The key behind a token; nothing when it is not known, has expired, or was sealed with another master key.
    pub async fn page_session(&self, token: &str) -> Result<Option<PageSession>, Error> {
        let digest = digest_of(token);
        let Some(row) = self.0.store.page_session(digest, now_ms()).await? else { return Ok(None) };
        let opened = self.0.master_key.open(&aad(&digest), &row.sealed).ok();
        Ok(opened.and_then(|text| PageSession::from_text(text.expose_secret())))
    }

    /// Signs a browser out.
    pub async fn end_page_session(&self, token: &str) -> Result<(), Error> {
        Ok(self.0.store.end_page_session(digest_of(token)).await?)
    }

    /// Deletes what has expired.
    pub(super) async fn expire_page_sessions(&self) -> Result<(), Error> {
        while self.0.store.expire_page_sessions(now_ms(), EXPIRED_AT_ONCE).await?
            == u64::from(EXPIRED_AT_ONCE)
        {}
        Ok(())
    }
}
