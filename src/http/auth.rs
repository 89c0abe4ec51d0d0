//! Who is asking. Runs before paths, bodies and 404s are looked at.
//!
//! Owns the open paths, the bearer scheme and the comparison of keys. What an identity may do is decided where the
//! request is handled; where keys are stored is not known here.

use std::fmt;

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::http::problem::{Code, Problem};

/// Paths that need no key, with everything below `/docs`.
const OPEN: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/docs"];

/// Whether a path is answered without a key.
pub fn is_open(path: &str) -> bool {
    OPEN.contains(&path) || path.starts_with("/docs/")
}

/// Who sends a request; stands in the extensions of every request that a handler of a closed path sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// May do everything.
    Admin,
}

/// SHA-256 of a key. Keys are long and random, so a fast digest is enough, and digests compare in constant time
/// whatever the length of what was sent.
#[derive(Clone, Copy)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    fn is_of(&self, key: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(key).into();
        self.0.ct_eq(&digest).into()
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest")
    }
}

/// How requests are told apart.
#[derive(Debug, Clone, Copy)]
pub enum Auth {
    /// One static admin key.
    Key(KeyDigest),
    /// Everybody is admin; for a service that only this machine can reach.
    None,
}

impl Auth {
    /// Who sends a request with these headers, or the 401 that answers it.
    pub fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let Self::Key(digest) = self else { return Ok(Identity::Admin) };
        let refuse = |detail: &str| Err(Problem::new(Code::Unauthorized, detail));
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return refuse("send one header 'Authorization: Bearer KEY'");
        };
        match bearer(value.as_bytes()) {
            Some(key) if digest.is_of(key) => Ok(Identity::Admin),
            Some(_) => refuse("this key is not known"),
            None => refuse("the Authorization header is not 'Bearer KEY'"),
        }
    }
}

/// The token of a bearer header; the scheme's case does not matter (RFC 9110, section 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(6)?;
    let token = token.strip_prefix(b" ")?.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn ask(values: &[&str]) -> Result<Identity, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        Auth::Key(KeyDigest::of(KEY)).identify(&headers)
    }

    #[test]
    fn only_the_whole_key_opens() {
        for good in [format!("Bearer {KEY}"), format!("bearer  {KEY} ")] {
            assert_eq!(ask(&[&good]).ok(), Some(Identity::Admin), "{good}");
        }
        let (short, long) = (format!("Bearer {}", &KEY[..31]), format!("Bearer {KEY}0"));
        let (joined, basic) = (format!("Bearer{KEY}"), format!("Basic {KEY}"));
        for bad in [&*short, &long, &joined, &basic, KEY, "Bearer", "Bearer ", ""] {
            assert_eq!(ask(&[bad]).map_err(|problem| problem.code()), Err(Code::Unauthorized), "{bad}");
        }
        let good = format!("Bearer {KEY}");
        assert!(ask(&[]).is_err() && ask(&[&good, &good]).is_err());
    }

    #[test]
    fn only_the_listed_paths_are_open() {
        for open in ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/", "/docs/errors"] {
            assert!(is_open(open), "{open}");
        }
        for closed in ["/", "/metrics", "/healthz/", "/docsx", "/v1/docs", "/ui", "/v1/limits"] {
            assert!(!is_open(closed), "{closed}");
        }
    }
}
