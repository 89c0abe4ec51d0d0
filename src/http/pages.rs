//! What pages for people need of HTTP: their paths, the cookie of a browser that is signed in, the token that its forms carry,
//! and problems shown as pages.
//!
//! Owns who may open a page and that nobody else's page can write: the cookie is sent by pages of this server only, the
//! browser says where a write comes from, and each form carries a token that only this browser was given. Must not know what
//! a page shows; that is [`Pages`]'s.

use axum::Router;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::core::keys::{Access, Role};
use crate::http::problem::{Code, Problem};
use crate::http::router::AppState;

/// Below which path all pages are.
pub const PAGES: &str = "/ui";

/// Below which path the files of pages are, which everybody may read.
pub const ASSETS: &str = "/ui/assets/";

/// Where a key is shown.
pub const SIGN_IN: &str = "/ui/sign-in";

/// Pages that need no key.
const OPEN: [&str; 2] = [SIGN_IN, "/ui/language"];

/// Who may open pages.
pub const VISITORS: Access = Access::Roles(&[Role::Admin, Role::Setup]);

/// The name of the cookie.
const COOKIE: &str = "toolrack";

/// For pages: files and answers of this server, and forms that are sent to it.
pub const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'",
);

/// The pages of a server, made elsewhere.
#[derive(Debug, Clone)]
pub struct Pages {
    pub router: Router<AppState>,
    /// Every route of a page that needs a key.
    pub routes: Vec<(Method, &'static str)>,
    /// Shows a problem.
    pub problem: ProblemPage,
}

/// Shows a problem as a page, in the language of its reader.
pub type ProblemPage = fn(&Problem, &Visit<'_>) -> Response;

/// Where a problem was met.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'a> {
    pub uri: &'a Uri,
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    pub request_id: &'a str,
}

/// The way to the pages for a browser that asks for the root of the server: who reads HTML is a person.
pub(crate) fn front_door(parts: &Parts) -> Option<Response> {
    let mut accepted = parts.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_reading = parts.method == Method::GET || parts.method == Method::HEAD;
    if parts.uri.path() != "/" || !is_reading || !accepted.any(|types| types.contains("text/html")) {
        return None;
    }
    let way = [(header::LOCATION, "/ui"), (header::VARY, "accept")];
    Some((StatusCode::SEE_OTHER, way).into_response())
}

/// Whether a path is that of a page, or of a file of pages.
pub fn is_page(path: &str) -> bool {
    path.strip_prefix(PAGES).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a page needs no key.
pub fn is_open_page(path: &str) -> bool {
    OPEN.contains(&path) || path.starts_with(ASSETS)
}

/// What the forms of a browser carry. In the extensions of every request for a page that needs a key.
#[derive(Clone, PartialEq, Eq)]
pub struct FormToken(String);

impl std::fmt::Debug for FormToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FormToken")
    }
}

impl FormToken {
    /// The token that belongs to a cookie, which cannot be told from it.
    pub fn of(cookie: &str) -> Self {
        let digest = Sha256::new().chain_update(b"toolrack form|").chain_update(cookie).finalize();
        Self(hex::encode(digest))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a form carries it; takes the same time wherever the two differ.
    pub fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

/// The token of a browser's cookie.
pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    cookie_named(headers, COOKIE)
}

/// The value of a cookie.
pub fn cookie_named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(key, value)| (key == name).then_some(value))
}

/// Sets the cookie for so many seconds; nothing and 0 take it away. `is_secure`: the browser came by HTTPS.
pub fn set_cookie(token: &str, seconds: u32, is_secure: bool) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={token}; Path={PAGES}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).ok()
}

/// Whether a browser came by HTTPS, as it says itself or the proxies before this server do: it only makes a cookie stricter.
pub fn came_securely(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = |name: &str| text(name).split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    text("origin").starts_with("https://")
        || first("x-forwarded-proto") == "https"
        || first("forwarded").split(';').any(|pair| pair.trim() == "proto=https")
}

/// Refuses a write that a browser sends for a page of another site.
pub(crate) fn check_sender(parts: &Parts) -> Result<(), Problem> {
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let refuse = || Err(Problem::new(Code::Forbidden, "a page of another site may not write here"));
    if let Some(site) = parts.headers.get("sec-fetch-site")
        && !matches!(site.as_bytes(), b"same-origin" | b"none")
    {
        return refuse();
    }
    let Some(origin) = parts.headers.get(header::ORIGIN) else { return Ok(()) };
    let host = parts.headers.get(header::HOST).map(HeaderValue::as_bytes);
    let host = host.or_else(|| parts.uri.authority().map(|host| host.as_str().as_bytes()));
    let of_origin = origin.as_bytes().split(|byte| *byte == b'/').nth(2);
    if of_origin.is_some() && of_origin == host { Ok(()) } else { refuse() }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::Request;

    use super::*;

    #[test]
    fn paths_are_told_apart() {
        for page in ["/ui", "/ui/", "/ui/users/alice/overview", SIGN_IN] {
            assert!(is_page(page), "{page}");
        }
        for other in ["/", "/uix", "/v1/ui", "/docs"] {
            assert!(!is_page(other), "{other}");
        }
        for open in [SIGN_IN, "/ui/assets/ui.css", "/ui/language"] {
            assert!(is_open_page(open), "{open}");
        }
        for closed in ["/ui", "/ui/", "/ui/assets", "/ui/sign-in/x", "/ui/users/alice/setup/apply"] {
            assert!(!is_open_page(closed), "{closed}");
        }
    }

    #[test]
    fn only_pages_of_this_server_write() {
        let taken = |method: Method, headers: &[(&str, &str)]| {
            let mut request = Request::builder().method(method).uri("/ui/x").header("host", "rack.example");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            check_sender(&request.body(Body::empty()).unwrap().into_parts().0).is_ok()
        };
        assert!(taken(Method::POST, &[]));
        assert!(taken(
            Method::POST,
            &[("origin", "https://rack.example"), ("sec-fetch-site", "same-origin")]
        ));
        assert!(taken(Method::GET, &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]));
        for refused in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "https://rack.example.evil.example")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert!(!taken(Method::POST, refused), "{refused:?}");
        }
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; toolrack=abc; language=zh"));
        assert_eq!(cookie(&headers), Some("abc"));
        assert_eq!(cookie_named(&headers, "language"), Some("zh"));
        assert_eq!(cookie_named(&headers, "tool"), None);
        assert!(FormToken::of("abc").is(FormToken::of("abc").as_str()));
        assert!(!FormToken::of("abc").is(FormToken::of("abd").as_str()) && !FormToken::of("abc").is(""));
    }
}
