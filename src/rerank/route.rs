//! From what an administrator typed to the URLs that may serve it.
//!
//! Owns the completion of URLs. Scheme, host, port and query string are never changed: a key goes to the host that it
//! was set for.

use url::Url;

use super::providers::{self, Provider, Routing};
use super::vectors;
use crate::core::policy::{Dialect, DialectChoice};

/// Last path segments that are a rerank route already, besides all that end with `rerank`: DashScope's compatible
/// API, Baidu, llama.cpp or Mixedbread, NIM, vLLM, Bedrock, TEI behind SageMaker's path.
const ROUTES: [&str; 7] = ["reranks", "rerankers", "reranking", "ranking", "score", "invoke", "invocations"];
/// Last segments of bases without a version in the end: Novita, ZeroEntropy.
const BASES: [&str; 2] = ["openai", "models"];
/// Ends of other routes of the same servers, which people copy from their chat or embedding settings.
pub(super) const SIBLINGS: [&str; 3] = ["/chat/completions", "/completions", "/embeddings"];
const DASHSCOPE_NATIVE: &str = "/api/v1/services/rerank/text-rerank/text-rerank";
const DASHSCOPE_FLAT: &str = "/compatible-api/v1/reranks";

/// Where a request may go.
#[derive(Debug)]
pub(super) struct Route {
    pub provider: Option<&'static Provider>,
    /// `None` when only a probe can tell.
    pub dialect: Option<Dialect>,
    /// At least one; the likeliest first.
    pub urls: Vec<Url>,
    /// The model as the provider spells it.
    pub model: Option<String>,
    /// What was changed, in words for the administrator.
    pub notes: Vec<String>,
}

/// The URLs to call for what was typed: a full route is kept, a base is completed.
///
/// The last segment decides, never a part of the text: hosts are called `rerank.example.com` too. A trailing slash
/// goes, because servers redirect it and a redirect is not followed.
pub(super) fn route(endpoint: &Url, choice: DialectChoice, model: Option<&str>) -> Route {
    // What is known about hosts is about their rerankers.
    let provider = providers::find(endpoint).filter(|_| choice != DialectChoice::Fixed(Dialect::Openai));
    let model = model.filter(|model| !model.trim().is_empty());
    let fixed = match choice {
        DialectChoice::Auto => None,
        DialectChoice::Fixed(dialect) => Some(dialect),
    };
    let mut route = Route {
        provider,
        dialect: fixed.or_else(|| provider.and_then(|provider| provider.dialect)),
        urls: Vec::new(),
        model: model.map(str::to_owned),
        notes: Vec::new(),
    };
    if fixed == Some(Dialect::Openai) {
        route.urls = vec![with_path(endpoint, &vectors::path(endpoint.path()))];
        return route;
    }
    let path = without_sibling(endpoint.path().trim_end_matches('/'));
    // A dialect that was set against the table: the host is not what it seems.
    let row = provider.filter(|row| row.dialect.is_none() || row.dialect == route.dialect);
    let mut paths = match row.map(|row| row.routing) {
        Some(Routing::Dashscope) if matches!(fixed, None | Some(Dialect::Dashscope | Dialect::Cohere)) => {
            vec![dashscope(&mut route, path, fixed)]
        }
        Some(Routing::NvidiaHosted) if !is_route(path) => vec![nvidia(model)],
        Some(Routing::Base(base)) if !is_route(path) => {
            vec![below(path, base, route.dialect.unwrap_or(Dialect::Cohere))]
        }
        _ => usual(path, route.dialect, model),
    };
    paths.dedup();
    route.urls = paths.iter().map(|path| with_path(endpoint, path)).collect();
    route
}

fn with_path(endpoint: &Url, path: &str) -> Url {
    let mut url = endpoint.clone();
    url.set_path(path);
    url.set_fragment(None);
    url
}

pub(super) fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether a path names a rerank route by itself.
pub(super) fn is_route(path: &str) -> bool {
    let last = last_segment(path);
    is_leaf(&last) || last.contains(":rank") || path.contains("/_inference/") || path.contains("/ai/run/")
}

/// Whether a last segment, in small letters, is one that reranks.
pub(super) fn is_leaf(last: &str) -> bool {
    last.ends_with("rerank") || ROUTES.contains(&last)
}

/// The base of another route of the same API, which people copy from their chat or embedding settings.
fn without_sibling(path: &str) -> &str {
    SIBLINGS
        .iter()
        .find_map(|sibling| path.strip_suffix(sibling))
        .filter(|base| has_version(base))
        .unwrap_or(path)
}

pub(super) fn has_version(path: &str) -> bool {
    path.split('/').any(is_version)
}

/// `v1`, `v2`, what other providers count up to (`/api/paas/v4`), and Google's `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|number| {
        number.starts_with(|first: char| first.is_ascii_digit())
            && number.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// A provider whose base is known: a part of the base, or nothing, is completed to it.
fn below(path: &str, base: &str, dialect: Dialect) -> String {
    let leaf = dialect.leaf();
    let last = last_segment(path);
    let is_start = base.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_start {
        format!("{base}/{leaf}")
    } else if has_version(path) || BASES.contains(&last.as_str()) {
        format!("{path}/{leaf}")
    } else {
        format!("{path}{base}/{leaf}")
    }
}

/// The usual places of a server of unknown make.
fn usual(path: &str, dialect: Option<Dialect>, model: Option<&str>) -> Vec<String> {
    let last = last_segment(path);
    if dialect == Some(Dialect::Elastic) {
        // The last segment is the name of the inference endpoint.
        let names_one = path.contains("/_inference/") && last != "rerank";
        let base = match path.find("/_inference") {
            Some(at) => &path[..at],
            None => path,
        };
        return match model {
            Some(model) if !names_one && !matches!(model, "." | "..") => {
                vec![format!("{base}/_inference/rerank/{}", segment(model))]
            }
            _ if is_route(path) => vec![path.to_owned()],
            _ => vec![format!("{base}/_inference/rerank")],
        };
    }
    if is_route(path) {
        return vec![path.to_owned()];
    }
    let leaf = dialect.map_or("rerank", Dialect::leaf);
    if is_version(&last) || BASES.contains(&last.as_str()) {
        let mut paths = vec![format!("{path}/{leaf}")];
        // TEI has no `/v1/rerank`, Infinity none by default, but both have other routes under `/v1`.
        if last == "v1" && matches!(dialect, None | Some(Dialect::Tei | Dialect::Cohere)) {
            let parent = path[..path.len() - last.len()].trim_end_matches('/');
            paths.push(if is_route(parent) { parent.to_owned() } else { format!("{parent}/{leaf}") });
        }
        return paths;
    }
    let plain = format!("{path}/{leaf}");
    // A version somewhere before is the version.
    let versioned = if has_version(path) { plain.clone() } else { format!("{path}/v1/{leaf}") };
    match dialect {
        None => vec![versioned, plain, or_root(path)],
        Some(Dialect::Cohere | Dialect::Voyage) => vec![versioned, plain],
        Some(Dialect::Tei) => vec![plain, or_root(path)],
        Some(Dialect::Dashscope) if has_version(path) => vec![plain],
        Some(Dialect::Dashscope) => vec![format!("{path}{DASHSCOPE_NATIVE}")],
        Some(Dialect::Pinecone) => vec![plain],
        Some(Dialect::Nim | Dialect::Mixedbread | Dialect::Elastic | Dialect::Openai) => vec![versioned],
    }
}

fn or_root(path: &str) -> String {
    if path.is_empty() { "/".to_owned() } else { path.to_owned() }
}

/// A name as one path segment.
fn segment(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

/// NVIDIA's hosted models: the path holds the model, with underscores for dots.
fn nvidia(model: Option<&str>) -> String {
    match model {
        Some(model) => {
            let name = model.strip_prefix("nvidia/").unwrap_or(model).replace('.', "_");
            format!("/v1/retrieval/nvidia/{}/reranking", segment(&name))
        }
        None => "/v1/ranking".to_owned(),
    }
}

/// DashScope has a native API and a flat one, each with models of its own; neither is under `compatible-mode`, the
/// path of its other models, which is what people paste.
fn dashscope(route: &mut Route, typed: &str, fixed: Option<Dialect>) -> String {
    // The open weights are called Reranker, the service is not.
    if route.model.as_deref().is_some_and(|model| model.eq_ignore_ascii_case("qwen3-reranker")) {
        route.model = Some("qwen3-rerank".to_owned());
        route.notes.push(
            "the model `qwen3-reranker` is called `qwen3-rerank` at DashScope; that is sent".to_owned(),
        );
    }
    let is_typed_native = format!("{typed}/").contains("/services/rerank/");
    let native = match fixed {
        Some(dialect) => dialect == Dialect::Dashscope,
        None => is_typed_native || route.model.as_deref().is_some_and(is_native_only),
    };
    route.dialect = Some(if native { Dialect::Dashscope } else { Dialect::Cohere });
    if native && is_typed_native && !typed.ends_with("/services/rerank") {
        return typed.to_owned();
    }
    // What a proxy puts before DashScope's own path stays.
    let own = ["/compatible-mode", "/compatible-api", "/api/v1", "/services/rerank"];
    let prefix = own.iter().find_map(|part| typed.find(part)).map_or("", |at| &typed[..at]);
    let path = format!("{prefix}{}", if native { DASHSCOPE_NATIVE } else { DASHSCOPE_FLAT });
    if !path.starts_with(typed) {
        route
            .notes
            .push(format!("the path `{typed}` was changed to `{path}`, where DashScope serves this model"));
    }
    path
}

fn is_native_only(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    model.starts_with("gte-rerank")
        || model.contains("-vl-rerank")
        || model.starts_with("qwen3.7-text-rerank")
}

#[cfg(test)]
mod tests;
