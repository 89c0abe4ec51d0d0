//! What every answer tells browsers: what a page may load, that nobody may frame or sniff it, and whose pages may read it.
//!
//! Owns these headers for all routes, pages to come included: a page holds no script and no style itself, only files of
//! this server. Must not know routes; what holds tenants' data is all that needs a key.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::auth::is_open;
use crate::http::pages::is_page;
use crate::http::problem::{Code, Problem};

/// For HTML that says nothing else, the API browser: files and answers of this server, pictures that style sheets hold, and nothing else.
const DOCS_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// For all else, should a browser ever show it as a page.
const DATA_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// For every answer. X-Frame-Options says to old browsers what `frame-ancestors` says.
const ALWAYS: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

/// What pages of other origins may send, and read of an answer.
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, if-match, if-none-match, traceparent, tracestate, x-request-id, \
     x-toolrack-revision",
);
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "allow, etag, location, ratelimit, ratelimit-policy, retry-after, server-timing, traceresponse, x-request-id, \
     x-toolrack-revision",
);
/// Whose pages may read `Server-Timing` (<https://www.w3.org/TR/resource-timing/#sec-timing-allow-origin>).
const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");
/// How long a browser may remember a permission, in seconds.
const PERMISSION_AGE: HeaderValue = HeaderValue::from_static("600");

/// Adds the headers to the answer for a path. A policy or a rule for caches that its handler wrote stays.
pub(crate) fn protect(headers: &mut HeaderMap, path: &str) {
    let is_html = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/html"));
    let policy = if is_html { DOCS_POLICY } else { DATA_POLICY };
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    // Where not even this server is told of a page, a browser does not say where its forms come from either.
    let referrer = if is_page(path) { "same-origin" } else { "no-referrer" };
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static(referrer));
    for (name, value) in ALWAYS {
        headers.insert(name, value);
    }
    if !is_open(path) {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
}

/// The origins of other sites whose pages may read answers; none by default.
#[derive(Debug, Clone, Default)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Of origins as browsers write them: `https://app.example:8443`.
    pub fn new(origins: &[String]) -> Self {
        Self(origins.to_vec())
    }

    /// The origin of a request, where it is one of these.
    pub(crate) fn reader(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        self.0.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
    }

    /// Lets the pages of `reader` read an answer. No credentials are allowed, so that a browser sends no cookie along.
    pub(crate) fn open(headers: &mut HeaderMap, reader: &HeaderValue) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, reader.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        headers.insert(TIMING_ALLOW_ORIGIN, reader.clone());
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }

    /// The answer to a browser that asks whether a page of these origins may send a request. It sends no key with that.
    pub(crate) fn preflight(&self, parts: &Parts) -> Option<Response> {
        let asks = parts.method == Method::OPTIONS
            && parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
            && self.reader(&parts.headers).is_some();
        asks.then(|| {
            let headers = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
                (header::ACCESS_CONTROL_MAX_AGE, PERMISSION_AGE),
            ];
            (StatusCode::NO_CONTENT, headers, Body::empty()).into_response()
        })
    }

    /// Refuses what a browser sends for a page of another site, for a server that asks for no key: such a page could write
    /// without reading the answer, and read it all under a name of its own that it lets lead to this machine.
    pub(crate) fn check_own(&self, parts: &Parts) -> Result<(), Problem> {
        let host = parts.headers.get(header::HOST).map(HeaderValue::as_bytes);
        let host = host.or_else(|| parts.uri.authority().map(|host| host.as_str().as_bytes()));
        let Some(host) = host.and_then(|host| std::str::from_utf8(host).ok()) else { return Ok(()) };
        if !is_this_machine(host) {
            let detail = "without keys this server answers under localhost, 127.0.0.1 and [::1] alone";
            return Err(Problem::new(Code::Forbidden, detail));
        }
        let Some(origin) = parts.headers.get(header::ORIGIN) else { return Ok(()) };
        let own = origin.as_bytes().strip_prefix(b"http://").is_some_and(|origin| origin == host.as_bytes());
        if own || self.reader(&parts.headers).is_some() {
            return Ok(());
        }
        let detail = "without keys this server answers pages of its own and of server.cors_origins alone";
        Err(Problem::new(Code::Forbidden, detail))
    }
}

/// Whether a name with or without a port can only mean this machine.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::*;

    fn own(host: &str, origin: Option<&str>) -> bool {
        let mut request = Request::builder().uri("/v1/limits").header(header::HOST, host);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let (parts, _) = request.body(Body::empty()).unwrap().into_parts();
        Origins::new(&["https://app.example".to_owned()]).check_own(&parts).is_ok()
    }

    #[test]
    fn a_server_without_keys_answers_its_own_pages_alone() {
        for host in ["localhost", "LOCALHOST:8480", "127.0.0.1:8480", "127.0.0.1", "[::1]:8480", "[::1]"] {
            assert!(own(host, None), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8480", "127.0.0.1.evil.example", "localhost.evil.example:1", ""]
        {
            assert!(!own(host, None), "{host}");
        }
        assert!(own("localhost:8480", Some("http://localhost:8480")));
        assert!(own("localhost:8480", Some("https://app.example")));
        for origin in
            ["http://localhost:3000", "http://evil.example", "null", "http://localhost:8480.evil.example"]
        {
            assert!(!own("localhost:8480", Some(origin)), "{origin}");
        }
    }
}
