//! The Cohere dialect: `{model?, query, documents, top_n}` to `<base>/rerank`.
//!
//! Owns the URL and the request body of this dialect. Most other providers and servers speak it too. The answer is
//! read by `parse`, which is shared by all dialects.

use serde::Serialize;
use url::Url;

/// Last path segments that are a rerank route already, besides all that end with `rerank`: DashScope's compatible
/// API, Baidu, and llama.cpp or Mixedbread.
const ROUTES: [&str; 3] = ["reranks", "rerankers", "reranking"];

/// The keys that every server of this dialect takes. Nothing else is sent: strict ones (Cohere v2, Fireworks) answer
/// 422 to an unknown key, and others (Scaleway) ask for `top_n`.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    query: &'a str,
    documents: &'a [&'a str],
    top_n: usize,
}

/// The request body as JSON; `top_n` is at least 1, because some servers refuse 0.
pub(super) fn body(
    model: Option<&str>,
    query: &str,
    documents: &[&str],
    top_n: usize,
) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Body { model, query, documents, top_n })
}

/// The URL to call for what an administrator typed: a full route is kept, a base is completed.
///
/// The last segment decides, never a part of the text: hosts are called `rerank.example.com` too. A trailing slash
/// goes, because servers redirect it and a redirect is not followed.
pub(super) fn route(endpoint: &Url) -> Url {
    let path = endpoint.path().trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let path = if last.ends_with("rerank") || ROUTES.contains(&last.as_str()) {
        path.to_owned()
    } else if is_version(&last) {
        format!("{path}/rerank")
    } else {
        format!("{path}/v1/rerank")
    };
    let mut url = endpoint.clone();
    url.set_path(&path);
    url
}

/// `v1`, `v2`, and what other providers count up to (`/api/paas/v4`).
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(typed: &str, called: &str) {
        assert_eq!(route(&Url::parse(typed).unwrap()).as_str(), called, "{typed}");
    }

    #[test]
    fn a_full_route_is_kept() {
        check("https://api.cohere.com/v2/rerank", "https://api.cohere.com/v2/rerank");
        check("http://tei:8080/rerank", "http://tei:8080/rerank");
        check("http://tei:8080/rerank/", "http://tei:8080/rerank");
        check("https://h/compatible-api/v1/reranks", "https://h/compatible-api/v1/reranks");
        check("https://h/v1/Rerank", "https://h/v1/Rerank");
        check("https://h/a%20b/text-rerank//", "https://h/a%20b/text-rerank");
    }

    #[test]
    fn a_base_is_completed() {
        check("https://api.cohere.com", "https://api.cohere.com/v1/rerank");
        check("https://api.cohere.com/v2/", "https://api.cohere.com/v2/rerank");
        check("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/rerank");
        check("https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4/rerank");
        check("https://h/gateway", "https://h/gateway/v1/rerank");
        check("https://h/reranker-small/", "https://h/reranker-small/v1/rerank");
        check("https://h/vendor", "https://h/vendor/v1/rerank");
    }

    #[test]
    fn host_port_and_query_string_stay() {
        check("https://rerank.example.com:8443/?key=1", "https://rerank.example.com:8443/v1/rerank?key=1");
    }

    #[test]
    fn the_body_has_the_common_keys_only() {
        let text = |model| String::from_utf8(body(model, "q", &["a", "b"], 2).unwrap()).unwrap();
        assert_eq!(text(Some("m")), r#"{"model":"m","query":"q","documents":["a","b"],"top_n":2}"#);
        assert_eq!(text(None), r#"{"query":"q","documents":["a","b"],"top_n":2}"#);
    }

    proptest! {
        #[test]
        fn a_completed_route_is_final(path in "(/(v[0-9]|rerank|[a-z]{0,4}|%2F)){0,5}/?") {
            let typed = Url::parse(&format!("https://host{path}")).unwrap();
            let called = route(&typed);
            prop_assert!(called.path().ends_with("rerank"));
            prop_assert_eq!(route(&called), called);
        }
    }
}
