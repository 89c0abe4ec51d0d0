//! The `matcher` key: the external endpoint that ranks tools, and what a write says about its secret. Never
//! holds the key itself past the reading of a write; knows nothing of HTTP or of where secrets are kept.

use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use super::reader::Reader;
use super::rules::{Choice, Empty, Int, Named, Number, Object, Record, Reserved, Rule, Text, of};
use super::values::{Flag, Origin};

/// Longest `matcher.api_key`, in bytes: no header of a common server takes more.
const MAX_API_KEY_BYTES: usize = 8_192;

/// Longest endpoint, in characters: what servers commonly take as a URL.
const MAX_ENDPOINT_CHARS: usize = 2_048;

inner_table! {
    /// `matcher` as one layer says it, without the secret.
    MatcherSetting {
        kind: MatcherKind = Some(MatcherKind::Rerank), by Choice::new(), "What the endpoint does.";
        endpoint: Endpoint = None::<Endpoint>, by EndpointRule, "Address of the endpoint; required. A path that ends in a rerank route is used as it is; otherwise `/rerank` is appended behind `/v1` or `/v2`, else `/v1/rerank`.";
        dialect: Dialect = Some(Dialect::Auto), by Choice::new(),
            "The request and answer shapes of the endpoint.";
        model: String = None::<String>, by Text::up_to(256), "The model's name, sent as it is.";
        top_n: u32 = Some(20), by Int { min: 1, max: 200 }, "How many ranked documents are asked for.";
        max_documents: u32 = Some(200), by Int { min: 1, max: 1_000 },
            "How many tools are sent to be ranked; the keyword ranking picks them.";
        timeout_ms: u32 = Some(15_000), by Int { min: 100, max: 60_000 },
            "Deadline of a whole call, in milliseconds; after it the keyword ranking answers.";
        min_score: f64 = None::<f64>, by Number::any(), "Matches that score lower are left out.";
        instruction: String = None::<String>, by Text::up_to(2_000),
            "Told to endpoints that take an instruction.";
        fusion: Fusion = Some(Fusion::Auto), by Choice::new(),
            "Whether the endpoint's order is joined with the keyword order.";
        extra_body: Empty = Some(Empty), by Empty, "More fields of the request body.";
        extra_headers: Empty = Some(Empty), by Empty, "More headers of the request.";
        auth_header: String = Some("Authorization".to_owned()),
            by Reserved(Text::up_to(64), "Authorization".to_owned()),
            "The header that carries the key.";
        auth_scheme: String = Some("Bearer".to_owned()),
            by Reserved(Text::up_to(64), "Bearer".to_owned()),
            "What stands before the key in that header.";
        omit_model: bool = Some(false), by Reserved(Flag, false), "Leaves the model out of the request body.";
    }
}

/// The matcher in force. Belongs to one layer, and so does its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Matcher {
    /// [`Origin::User`] or [`Origin::Project`]: the scope whose secret belongs to this endpoint, and no
    /// other.
    pub layer: Origin,
    pub kind: MatcherKind,
    /// `http` or `https`, without user info and fragment.
    pub endpoint: Url,
    pub dialect: Dialect,
    pub model: Option<String>,
    /// 1 to 200 documents.
    pub top_n: u32,
    /// 1 to 1,000 documents.
    pub max_documents: u32,
    /// 100 to 60,000 milliseconds.
    pub timeout_ms: u32,
    /// Matches that score lower are left out.
    pub min_score: Option<f64>,
    pub instruction: Option<String>,
    pub fusion: Fusion,
}

/// What the endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatcherKind {
    /// Ranks given documents for a query.
    Rerank,
}

impl Named for MatcherKind {
    const NAMES: &'static [(&'static str, Self)] = &[("rerank", Self::Rerank)];
    const LATER: &'static [&'static str] = &["embedding"];
}

/// The shapes that the endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Chosen by the endpoint's address.
    Auto,
    /// `{model, query, documents, top_n}` -> `results[].{index, relevance_score}`.
    Cohere,
}

impl Named for Dialect {
    const NAMES: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("cohere", Self::Cohere)];
    const LATER: &'static [&'static str] =
        &["tei", "dashscope", "voyage", "nim", "mixedbread", "pinecone", "elastic", "jina", "openai"];
}

/// Whether the endpoint's order is joined with the keyword order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fusion {
    Auto,
}

impl Named for Fusion {
    const NAMES: &'static [(&'static str, Self)] = &[("auto", Self::Auto)];
    const LATER: &'static [&'static str] = &["on", "off"];
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
            min_score: full.min_score,
            instruction: full.instruction,
            fusion: full.fusion?,
        })
    }

    /// The setting with its defaults, as shown.
    pub(super) fn view(&self) -> Value {
        Value::Object(self.filled().write())
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
        Value::String(key) if is_header_value(key) => {
            return SecretWrite::Set(SecretString::from(key.as_str()));
        }
        Value::String(_) => {
            let detail = format!(
                "a key is 1 to {MAX_API_KEY_BYTES} visible ASCII characters, no spaces around it; null clears"
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

/// Whether the key can be sent in a header as it is.
fn is_header_value(key: &str) -> bool {
    let visible = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (1..=MAX_API_KEY_BYTES).contains(&key.len()) && visible && key.trim() == key
}
