//! The `matcher` key: the external endpoint that ranks tools, and what a write says about its secret. Never
//! holds the key itself past the reading of a write; knows nothing of HTTP or of where secrets are kept.

use std::fmt;

use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use super::dialect::{Dialect, DialectChoice};
use super::reader::Reader;
use super::request::{
    AUTH_HEADER, AuthHeader, AuthScheme, ExtraBody, ExtraBodyRule, ExtraHeader, ExtraHeaders,
    ExtraHeadersRule, MAX_HEADER_BYTES, is_header_text,
};
use super::rules::{Choice, Int, Named, Number, Object, Record, Rule, Text, of};
use super::values::{Flag, Origin};

/// Longest endpoint, in characters: what servers commonly take as a URL.
const MAX_ENDPOINT_CHARS: usize = 2_048;

inner_table! {
    /// `matcher` as one layer says it, without the secret.
    MatcherSetting {
        kind: MatcherKind = Some(MatcherKind::Rerank), by Choice::new(), "What the endpoint does: `rerank` orders given texts, `embedding` makes vectors of them (OpenAI's `/v1/embeddings`, \
             also of Ollama, vLLM, TEI and LiteLLM), and tools are ranked by cosine.";
        endpoint: Endpoint = None::<Endpoint>, by EndpointRule,
            "Address of the endpoint; required. A path that ends in a rerank route is used as it is; a base is completed \
             with the dialect's route, never doubling what is there.";
        dialect: DialectChoice = Some(DialectChoice::Auto), by Choice::new(),
            "The shape of requests to the endpoint. `auto`: by its address, else by asking it; `openai` with kind `embedding`, \
             which has no other.";
        model: String = None::<String>, by Text::up_to(256), "The model's name, sent as it is.";
        top_n: u32 = Some(20), by Int { min: 1, max: 200 }, "How many ranked documents are asked for, with `fusion: off`; joined orders need all that were sent.";
        max_documents: u32 = Some(200), by Int { min: 1, max: 1_000 },
            "How many tools are sent to be ranked; the keyword ranking picks them. With `embedding`: how many are \
             ranked, and how many texts without a vector a search waits for.";
        timeout_ms: u32 = Some(15_000), by Int { min: 100, max: 60_000 },
            "Deadline of a whole call, in milliseconds; after it the keyword ranking answers.";
        hedge_ms: u32 = None::<u32>, by Int { min: 10, max: 60_000 },
            "A request that is not answered after so many milliseconds is sent a second time beside the first, and the \
             first good answer counts. Absent, never. What is sent twice is paid twice, so set it to what nearly all \
             calls take. Not in the minute after a 429, and not while the endpoint is tried again after failures.";
        min_score: f64 = None::<f64>, by Number::any(), "Matches that score lower are left out; scores are normalised to 0..1.";
        instruction: String = None::<String>, by Text::up_to(2_000),
            "Told to rerank endpoints that take an instruction; absent, one for tools is. With `embedding` it stands \
             right before the query as it is (`query: `), and absent nothing does.";
        embedding_model: String = None::<String>, by Text::up_to(256),
            "With `rerank`: an embedding model, served by the same host with the same key, that helps to choose what is \
             sent where there are more than `max_documents` tools.";
        embedding_endpoint: Endpoint = None::<Endpoint>, by EndpointRule,
            "Address of that model, of the same scheme, host and port as `endpoint`; absent, `/embeddings` beside its \
             rerank route.";
        fusion: Fusion = Some(Fusion::Auto), by Choice::new(),
            "Whether the endpoint's order is joined with the keyword order, so that a weak model does not drag the answer \
             down; `off` for strong ones. `auto` is `on`.";
        extra_body: ExtraBody = Some(ExtraBody::default()), by ExtraBodyRule,
            "More fields of the request body; a null takes a field out of it (in a PATCH it takes the field out \
             of this key).";
        extra_headers: ExtraHeaders = Some(ExtraHeaders::default()), by ExtraHeadersRule,
            "More headers of the request. Write-only like `api_key`: sealed, read back as `{set: true}` each, and cleared when \
             the endpoint moves to another scheme, host or port.";
        auth_header: String = Some(AUTH_HEADER.to_owned()), by AuthHeader,
            "The header that carries the key. Where it is absent, a dialect may know better (pinecone: `Api-Key`).";
        auth_scheme: String = Some("Bearer".to_owned()), by AuthScheme,
            "What stands before the key in that header; \"\" sends the key alone. Where it is absent, a dialect \
             may know better (elastic: `ApiKey`), and a header other than `Authorization` carries the key alone.";
        omit_model: bool = Some(false), by Flag,
            "Leaves the model out of the request body, for endpoints whose address names it.";
    }
}

/// The matcher in force. Belongs to one layer, and so does its secret. `Debug` shows of the extra body and
/// headers the names alone.
#[derive(Clone, PartialEq)]
pub struct Matcher {
    /// [`Origin::User`] or [`Origin::Project`]: the scope whose secret belongs to this endpoint, and no
    /// other.
    pub layer: Origin,
    pub kind: MatcherKind,
    /// `http` or `https`, without user info and fragment.
    pub endpoint: Url,
    pub dialect: DialectChoice,
    pub model: Option<String>,
    /// 1 to 200 documents.
    pub top_n: u32,
    /// 1 to 1,000 documents.
    pub max_documents: u32,
    /// 100 to 60,000 milliseconds.
    pub timeout_ms: u32,
    /// 10 to 60,000 milliseconds; none is never.
    pub hedge_ms: Option<u32>,
    /// Matches that score lower are left out.
    pub min_score: Option<f64>,
    pub instruction: Option<String>,
    /// A first stage for large catalogs.
    pub embedding_model: Option<String>,
    /// Of the origin of `endpoint`.
    pub embedding_endpoint: Option<Url>,
    pub fusion: Fusion,
    /// At most 16 KiB of JSON and 64 levels; nulls are kept.
    pub extra_body: Map<String, Value>,
    /// At most 32, valid, none of them framing, each name once whatever its case.
    pub extra_headers: Vec<ExtraHeader>,
    /// A valid header name, as written; `Authorization` where nothing is.
    pub auth_header: String,
    /// At most 32 visible ASCII characters; `""` is the key alone. None where nothing is written: what then
    /// stands before the key depends on the header and the dialect.
    pub auth_scheme: Option<String>,
    pub omit_model: bool,
}

/// What the endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatcherKind {
    /// Ranks given documents for a query.
    Rerank,
    /// Makes vectors of texts; tools are ranked by the cosine of theirs and the query's.
    Embedding,
}

impl Named for MatcherKind {
    const NAMES: &'static [(&'static str, Self)] =
        &[("rerank", Self::Rerank), ("embedding", Self::Embedding)];
}

/// Whether the endpoint's order is joined with the keyword order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fusion {
    /// As `On`.
    Auto,
    /// Both orders count.
    On,
    /// The endpoint's order alone: for strong models.
    Off,
}

impl Named for Fusion {
    const NAMES: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("on", Self::On), ("off", Self::Off)];
}

/// An endpoint's address: the text as it was written, to show and to store, and its parsed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    text: String,
    url: Url,
}

/// What a write says about `matcher.api_key`.
#[derive(Debug)]
pub enum SecretWrite {
    /// The stored key stays (absent, or `{set: true}`), if the endpoint's origin does.
    Keep,
    /// This key is to be stored.
    Set(SecretString),
    /// No key is to be stored: `null`, `{set: false}`, or no matcher at all in the document.
    Clear,
}

impl MatcherSetting {
    /// The matcher of this setting; none without an endpoint, which [`MatcherRule`] never lets through.
    pub(super) fn matcher(&self, layer: Origin) -> Option<Matcher> {
        let full = self.filled();
        Some(Matcher {
            layer,
            kind: full.kind?,
            endpoint: full.endpoint?.url,
            dialect: full.dialect?,
            model: full.model,
            top_n: full.top_n?,
            max_documents: full.max_documents?,
            timeout_ms: full.timeout_ms?,
            hedge_ms: full.hedge_ms,
            min_score: full.min_score,
            instruction: full.instruction,
            embedding_model: full.embedding_model,
            embedding_endpoint: full.embedding_endpoint.map(|endpoint| endpoint.url),
            fusion: full.fusion?,
            extra_body: full.extra_body?.0,
            extra_headers: full.extra_headers?.0,
            auth_header: full.auth_header?,
            auth_scheme: self.auth_scheme.clone(),
            omit_model: full.omit_model?,
        })
    }

    /// The setting with its defaults, as shown. How the key travels is shown only where it is written: else
    /// it may depend on the dialect, and the default of the table would be a false claim.
    pub(super) fn view(&self) -> Value {
        let (auth_header, auth_scheme) = (self.auth_header.clone(), self.auth_scheme.clone());
        Value::Object(Self { auth_header, auth_scheme, ..self.filled() }.write())
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("layer", &self.layer)
            .field("kind", &self.kind)
            .field("endpoint", &self.endpoint.as_str())
            .field("dialect", &self.dialect)
            .field("model", &self.model)
            .field("top_n", &self.top_n)
            .field("max_documents", &self.max_documents)
            .field("timeout_ms", &self.timeout_ms)
            .field("hedge_ms", &self.hedge_ms)
            .field("min_score", &self.min_score)
            .field("instruction", &self.instruction)
            .field("embedding_model", &self.embedding_model)
            .field("embedding_endpoint", &self.embedding_endpoint.as_ref().map(Url::as_str))
            .field("fusion", &self.fusion)
            .field("extra_body", &self.extra_body.keys().collect::<Vec<_>>())
            .field("extra_headers", &self.extra_headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("auth_header", &self.auth_header)
            .field("auth_scheme", &self.auth_scheme)
            .field("omit_model", &self.omit_model)
            .finish()
    }
}

impl Endpoint {
    /// Reads an address; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err("an endpoint holds no spaces");
        }
        let url = Url::parse(text).map_err(|_| "an endpoint is an http or https URL")?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err("an endpoint is an http or https URL");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an endpoint holds no user info; put the key into `api_key`");
        }
        if url.fragment().is_some() {
            return Err("an endpoint holds no fragment (`#...`)");
        }
        Ok(Self { text: text.to_owned(), url })
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn url(&self) -> &Url {
        &self.url
    }
}

/// The origin of an address, `scheme://host:port`: a secret goes only to the origin that it was stored for.
pub fn origin_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

struct EndpointRule;

impl Rule for EndpointRule {
    type Out = Endpoint;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Endpoint> {
        let text = reader.text(value, MAX_ENDPOINT_CHARS)?;
        match Endpoint::parse(text) {
            Ok(endpoint) => Some(endpoint),
            Err(reason) => {
                reader.fault("invalid_value", reason);
                None
            }
        }
    }

    fn write(&self, endpoint: &Endpoint) -> Value {
        Value::from(endpoint.as_str())
    }

    fn range(&self) -> String {
        "an http or https URL".to_owned()
    }
}

/// Reads the whole key. Its `api_key` is known here and read by [`read_secret`].
pub(super) struct MatcherRule;

impl Rule for MatcherRule {
    type Out = MatcherSetting;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<MatcherSetting> {
        let mut known = MatcherSetting::KEYS.to_vec();
        known.push("api_key");
        let mut setting = MatcherSetting::default();
        reader.object(value, &known, |reader, key, value| setting.set(key, value, reader))?;
        if value.get("endpoint").is_none_or(Value::is_null) {
            reader.fault("missing_key", "a matcher needs an `endpoint`");
        }
        check_embedding(&mut setting, reader);
        setting.endpoint.is_some().then_some(setting)
    }

    fn write(&self, setting: &MatcherSetting) -> Value {
        Value::Object(setting.write())
    }

    fn range(&self) -> String {
        let range = Object::<MatcherSetting>::new().range();
        format!("{range}, `api_key`")
    }
}

/// What the keys about embeddings must agree on; those that do not are taken out.
fn check_embedding(setting: &mut MatcherSetting, reader: &mut Reader) {
    let makes_vectors = setting.kind == Some(MatcherKind::Embedding);
    if let Some(DialectChoice::Fixed(dialect)) = setting.dialect
        && makes_vectors != (dialect == Dialect::Openai)
    {
        setting.dialect = None;
        let detail = "`openai` goes with kind `embedding`, and the others with kind `rerank`";
        reader.at("dialect", |reader| reader.fault("invalid_value", detail));
    }
    let origin = |endpoint: &Option<Endpoint>| endpoint.as_ref().map(|endpoint| endpoint.url.origin());
    if setting.embedding_endpoint.is_some()
        && origin(&setting.embedding_endpoint) != origin(&setting.endpoint)
    {
        setting.embedding_endpoint = None;
        // The key goes to one origin.
        let detail = "this address must have the scheme, host and port of `endpoint`";
        reader.at("embedding_endpoint", |reader| reader.fault("invalid_value", detail));
    }
}

/// The documentation of the keys inside `matcher`, the write-only one last.
pub(super) fn documentation() -> Vec<super::KeyDoc> {
    let mut documents = MatcherSetting::documentation("matcher");
    documents.push(super::KeyDoc {
        key: "matcher.api_key".to_owned(),
        default: Value::Null,
        range: "a text; null clears; absent or {set: true} keeps the stored one".to_owned(),
        meaning: "The endpoint's key. Write-only: never shown, sent only to the origin it was stored for.",
    });
    documents
}

/// What the document says about the secret. Reports faults of `/matcher/api_key`; no message repeats the key.
pub(super) fn read_secret(document: &Value, reader: &mut Reader) -> SecretWrite {
    let Some(matcher) = document.get("matcher").and_then(Value::as_object) else {
        return SecretWrite::Clear;
    };
    let Some(value) = matcher.get("api_key") else {
        return SecretWrite::Keep;
    };
    reader.at("matcher", |reader| reader.at("api_key", |reader| read_api_key(value, reader)))
}

fn read_api_key(value: &Value, reader: &mut Reader) -> SecretWrite {
    match value {
        Value::Null => return SecretWrite::Clear,
        Value::String(key) if !key.is_empty() && is_header_text(key) => {
            return SecretWrite::Set(SecretString::from(key.as_str()));
        }
        Value::String(_) => {
            let detail = format!(
                "a key is 1 to {MAX_HEADER_BYTES} visible ASCII characters, no spaces around it; null clears"
            );
            reader.fault("invalid_value", detail);
        }
        Value::Object(mask) => return read_mask(mask, reader),
        // Not `wrong_type`, which quotes the value: a key of digits may have come as a number.
        _ => reader.fault("wrong_type", "a text, null or {\"set\": true} is wanted here"),
    }
    SecretWrite::Keep
}

/// Reads what stands in place of the key when it is shown: `{set, last4}`.
fn read_mask(mask: &Map<String, Value>, reader: &mut Reader) -> SecretWrite {
    let shown = Value::Object(mask.clone());
    let mut set = None;
    reader.object(&shown, &["set", "last4"], |reader, key, value| {
        if key == "set" {
            set = Flag.read(value, reader);
        }
    });
    match set {
        Some(false) => SecretWrite::Clear,
        Some(true) => SecretWrite::Keep,
        None => {
            reader.fault("missing_key", "write {\"set\": true} to keep the stored key");
            SecretWrite::Keep
        }
    }
}
