//! Who is asking. Runs before paths, bodies and 404s are looked at.
//!
//! Owns the open paths, the bearer scheme and the admin key of the settings. Stored keys are the service's; what a role may
//! ask is decided by `access`, whose data by `scoped`.

use std::sync::LazyLock;

use axum::http::{HeaderMap, header};
use secrecy::SecretString;

use crate::core::keys::{KeyDigest, Principal, key_id};
use crate::http::gate::Counted;
use crate::http::pages::{self, FormToken, is_open_page};
use crate::http::problem::{Code, Problem};
use crate::service::{KeyRefusal, PageSession, Toolrack};

/// Paths that need no key, with everything below `/docs`.
const OPEN: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/docs"];

/// What the forms of a server without keys carry: nobody signs in there.
static OPEN_FORMS: LazyLock<FormToken> =
    LazyLock::new(|| FormToken::of(&hex::encode(rand::random::<[u8; 32]>())));

/// Whether a path is answered without a key.
pub fn is_open(path: &str) -> bool {
    OPEN.contains(&path) || path.starts_with("/docs/") || is_open_page(path)
}

/// How requests are told apart.
#[derive(Debug, Clone)]
pub enum Auth {
    /// By keys: that of the settings, which is an admin's, and those that the service has stored.
    Keys { admin: Option<KeyDigest>, service: Toolrack },
    /// Everybody is admin; for a service that only this machine can reach.
    None,
}

impl Auth {
    /// Who sends a request with these headers, or the 401 that answers it; nothing when [`Self::identify_anew`] has to be
    /// asked.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Option<Result<Principal, Problem>> {
        let Self::Keys { admin, service } = self else { return Some(Ok(Principal::Admin)) };
        let (key, digest) = match presented(headers) {
            Ok(presented) => presented,
            Err(problem) => return Some(Err(problem)),
        };
        if admin.is_some_and(|admin| admin.is(&digest)) {
            return Some(Ok(Principal::Admin));
        }
        service.identify(key, &digest).map(|identified| identified.map_err(refused))
    }

    /// As [`Self::identify`], after what other processes changed about keys was read.
    pub(crate) async fn identify_anew(&self, headers: &HeaderMap) -> Result<Principal, Problem> {
        let Self::Keys { service, .. } = self else { return Ok(Principal::Admin) };
        let (key, digest) = presented(headers)?;
        service.identify_anew(key, &digest).await?.map_err(refused)
    }

    /// Who looks at a page, and what the forms of this browser carry.
    pub(crate) async fn identify_page(&self, headers: &HeaderMap) -> Result<(Principal, FormToken), Problem> {
        let Self::Keys { admin, service } = self else { return Ok((Principal::Admin, OPEN_FORMS.clone())) };
        let signed_out = || Problem::new(Code::Unauthorized, "sign in first");
        let token = pages::cookie(headers).ok_or_else(signed_out)?;
        let session = service.page_session(token).await?.ok_or_else(signed_out)?;
        let principal = match session.key {
            Some(id) => service.identify_again(id, &session.digest).await?.map_err(refused)?,
            None if admin.is_some_and(|admin| admin.is(&session.digest)) => Principal::Admin,
            None => return Err(signed_out()),
        };
        Ok((principal, FormToken::of(token)))
    }

    /// Signs a browser in with a key of the roles that may open pages; answers the token for its cookie.
    pub async fn sign_in(&self, key: &str) -> Result<SecretString, Problem> {
        let Self::Keys { admin, service } = self else {
            return Err(Problem::new(Code::InvalidRequest, "this server asks for no key"));
        };
        let digest = KeyDigest::of(key.as_bytes());
        let session = if admin.is_some_and(|admin| admin.is(&digest)) {
            PageSession { key: None, digest }
        } else {
            let principal = service.identify_anew(key.as_bytes(), &digest).await?.map_err(refused)?;
            if !pages::VISITORS.allows(principal.role()) {
                let detail =
                    format!("a key of the role {} opens no pages; admin and setup do", principal.role());
                return Err(Problem::new(Code::Forbidden, detail));
            }
            // Each browser that is signed in is a row of the database.
            if let Some(allowance) = principal.allowances().and_then(|all| all.requests.as_ref()) {
                Counted::take(allowance).1?;
            }
            PageSession { key: key_id(key.as_bytes()), digest }
        };
        Ok(service.begin_page_session(&session).await?)
    }
}

/// The key in the headers of a request, with its digest.
fn presented(headers: &HeaderMap) -> Result<(&[u8], KeyDigest), Problem> {
    let refuse = |detail: &str| Err(Problem::new(Code::Unauthorized, detail));
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return refuse("send one header 'Authorization: Bearer KEY'");
    };
    match bearer(value.as_bytes()) {
        Some(key) => Ok((key, KeyDigest::of(key))),
        None => refuse("the Authorization header is not 'Bearer KEY'"),
    }
}

fn refused(refusal: KeyRefusal) -> Problem {
    let detail = match refusal {
        KeyRefusal::Misspelt => "this key is cut off or misspelt: its check does not fit",
        KeyRefusal::Unknown => "this key is not known",
        KeyRefusal::Expired => "this key has expired",
        KeyRefusal::Revoked => "this key was revoked",
    };
    Problem::new(Code::Unauthorized, detail)
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
    use crate::http::tests::service;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    #[tokio::test]
    async fn only_the_whole_key_opens() {
        let folder = tempfile::tempdir().unwrap();
        let admin = Some(KeyDigest::of(KEY.as_bytes()));
        let auth = Auth::Keys { admin, service: service(folder.path()).await };
        let ask = async |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            let identified = match auth.identify(&headers) {
                Some(identified) => identified,
                None => auth.identify_anew(&headers).await,
            };
            identified.map(|principal| principal.role().as_str()).map_err(|problem| problem.code())
        };
        for good in [format!("Bearer {KEY}"), format!("bearer  {KEY} ")] {
            assert_eq!(ask(&[&good]).await, Ok("admin"), "{good}");
        }
        let (short, long) = (format!("Bearer {}", &KEY[..31]), format!("Bearer {KEY}0"));
        let (joined, basic) = (format!("Bearer{KEY}"), format!("Basic {KEY}"));
        for bad in [&*short, &long, &joined, &basic, KEY, "Bearer", "Bearer ", ""] {
            assert_eq!(ask(&[bad]).await, Err(Code::Unauthorized), "{bad}");
        }
        let good = format!("Bearer {KEY}");
        assert!(ask(&[]).await.is_err() && ask(&[&good, &good]).await.is_err());
    }

    #[test]
    fn only_the_listed_paths_are_open() {
        for open in ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/", "/docs/errors", "/ui/sign-in"]
        {
            assert!(is_open(open), "{open}");
        }
        for closed in ["/", "/metrics", "/healthz/", "/docsx", "/v1/docs", "/ui", "/v1/limits"] {
            assert!(!is_open(closed), "{closed}");
        }
    }
}
