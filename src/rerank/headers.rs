//! The headers of a request: how the key travels, and which headers a user may add.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;

use super::fault::{RerankFault, Unsendable};
use super::request::RerankRequest;
use crate::core::policy::{Dialect, is_framing_header};

/// Pinecone refuses requests without a version.
const PINECONE_VERSION: (&str, &str) = ("x-pinecone-api-version", "2025-01");

/// A header that a user adds.
///
/// # Errors
/// One sentence that never repeats the value.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed = HeaderName::try_from(name).map_err(|_| "it is not a header name".to_owned())?;
    let lower = parsed.as_str();
    if is_framing_header(lower) {
        return Err(format!("the header `{lower}` may not be set"));
    }
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| format!("the value of `{lower}` has characters that a header cannot carry"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// All headers of a request in a dialect.
pub(super) fn headers(request: &RerankRequest, dialect: Dialect) -> Result<HeaderMap, RerankFault> {
    let unsendable = |what| RerankFault::Unsendable(what);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if dialect == Dialect::Pinecone {
        let (name, version) = PINECONE_VERSION;
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(version));
    }
    // Gateways refuse an empty Bearer.
    let key = request.api_key.as_ref().map_or("", |key| key.expose_secret().trim());
    if !key.is_empty() {
        let usual = if dialect == Dialect::Pinecone { "api-key" } else { "authorization" };
        let name = request.auth_header.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let name = HeaderName::try_from(name.unwrap_or(usual))
            .ok()
            .filter(|name| !is_framing_header(name.as_str()))
            .ok_or(unsendable(Unsendable::AuthHeader))?;
        let scheme = match request.auth_scheme.as_deref() {
            Some(scheme) => scheme.trim(),
            None if name != AUTHORIZATION => "",
            None if dialect == Dialect::Elastic => "ApiKey",
            None => "Bearer",
        };
        HeaderValue::try_from(scheme).map_err(|_| unsendable(Unsendable::AuthHeader))?;
        let value = if scheme.is_empty() { key.to_owned() } else { format!("{scheme} {key}") };
        let mut value = HeaderValue::try_from(value).map_err(|_| unsendable(Unsendable::Key))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &request.extra_headers {
        let (name, value) = header(name, value).map_err(|_| unsendable(Unsendable::ExtraHeader))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use url::Url;

    use super::*;

    fn ask(key: &str, header: Option<&str>, scheme: Option<&str>) -> RerankRequest {
        RerankRequest {
            api_key: Some(key.to_owned().into()),
            auth_header: header.map(str::to_owned),
            auth_scheme: scheme.map(str::to_owned),
            ..RerankRequest::new(
                Url::parse("https://h").unwrap(),
                "q".to_owned(),
                Vec::new(),
                Duration::from_secs(1),
            )
        }
    }

    #[test]
    fn the_key_travels_as_the_provider_wants_it() {
        for (dialect, header, scheme, name, value) in [
            (Dialect::Cohere, None, None, "authorization", "Bearer k"),
            (Dialect::Elastic, None, None, "authorization", "ApiKey k"),
            (Dialect::Pinecone, None, None, "api-key", "k"),
            (Dialect::Cohere, Some("api-key"), None, "api-key", "k"),
            (Dialect::Cohere, Some("X-Auth"), Some("Token"), "x-auth", "Token k"),
            (Dialect::Cohere, None, Some(""), "authorization", "k"),
            (Dialect::Elastic, None, Some("Bearer"), "authorization", "Bearer k"),
        ] {
            let headers = headers(&ask(" k ", header, scheme), dialect).unwrap();
            assert_eq!(headers.get(name).unwrap(), value, "{dialect:?} {header:?} {scheme:?}");
            assert!(headers.get(name).unwrap().is_sensitive());
        }
        let pinecone = headers(&ask("k", None, None), Dialect::Pinecone).unwrap();
        assert!(pinecone.contains_key("x-pinecone-api-version"));
        let blank = headers(&ask("  ", None, None), Dialect::Cohere).unwrap();
        assert_eq!(blank.len(), 1, "no empty Bearer");
    }

    #[test]
    fn what_no_header_can_carry_is_refused_before_it_is_sent() {
        let fault = |request: &RerankRequest| headers(request, Dialect::Cohere).unwrap_err();
        assert_eq!(fault(&ask("a\r\nx: b", None, None)), RerankFault::Unsendable(Unsendable::Key));
        for header in ["a b", "Host", "content-length", "a\nb"] {
            let unsendable = RerankFault::Unsendable(Unsendable::AuthHeader);
            assert_eq!(fault(&ask("k", Some(header), None)), unsendable, "{header}");
        }
        assert_eq!(fault(&ask("k", None, Some("a\nb"))), RerankFault::Unsendable(Unsendable::AuthHeader));
        for (name, value) in [("host", "h"), ("Transfer-Encoding", "chunked"), ("x", "a\r\nb"), ("x y", "a")]
        {
            assert!(header(name, value).is_err(), "{name}");
            let extra_headers = vec![(name.to_owned(), value.to_owned())];
            let request = RerankRequest { extra_headers, ..ask("k", None, None) };
            assert_eq!(fault(&request), RerankFault::Unsendable(Unsendable::ExtraHeader));
        }
        assert!(!header("x", "hush\n").unwrap_err().contains("hush"));
    }

    #[test]
    fn extra_headers_come_last() {
        let extra_headers = vec![("Authorization".to_owned(), "Basic x".to_owned())];
        let request = RerankRequest { extra_headers, ..ask("k", None, None) };
        let headers = headers(&request, Dialect::Cohere).unwrap();
        assert_eq!(headers.get("authorization").unwrap(), "Basic x");
    }
}
