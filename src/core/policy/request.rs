//! What the owner of a matcher adds to its requests: fields of the body, headers, and how the key travels.
//! Knows the syntax of headers and which fields of a body are not theirs, and nothing of any provider. Values may be secrets: no message and no `Debug`
//! repeats one.

use std::fmt;
use std::io;

use serde_json::{Map, Value, json};

use super::reader::Reader;
use super::rules::Rule;

/// Longest value of a header, in bytes: no header of a common server takes more.
pub(super) const MAX_HEADER_BYTES: usize = 8_192;

/// The header of the key where nothing else is said (RFC 9110, section 11.6.2).
pub(super) const AUTH_HEADER: &str = "Authorization";

/// Longest name of a header, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Longest `auth_scheme`, in characters.
const MAX_SCHEME_CHARS: usize = 32;

/// Most `extra_headers`.
const MAX_HEADERS: usize = 32;

/// Largest `extra_body`, in bytes of compact JSON.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// Deepest `extra_body`, in objects and lists inside each other.
const MAX_BODY_DEPTH: usize = 64;

/// Fields of a rerank request that carry the query and the documents, in any dialect. Nobody else sets them: an answer
/// could not be matched to the tools any more.
pub const TEXT_FIELDS: [&str; 5] = ["query", "documents", "texts", "passages", "input"];

/// Headers, in lower case, that no setting may send: they frame the message, speak for a proxy or for the
/// server behind the host (RFC 9110, section 7.6.1), or carry a session.
const FRAMING: [&str; 15] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// More fields of the request body. `Debug` shows their names alone.
#[derive(Clone, Default, PartialEq)]
pub struct ExtraBody(pub(super) Map<String, Value>);

impl fmt::Debug for ExtraBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A header's name as it was written, and its text; none where the stored one is meant (`{set: true}`).
pub type ExtraHeader = (String, Option<String>);

/// More headers, each name once whatever its case. Write-only like the key: what is stored and shown of them is that they
/// are set. `Debug` shows their names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExtraHeaders(pub(super) Vec<ExtraHeader>);

impl ExtraHeaders {
    pub fn entries(&self) -> &[ExtraHeader] {
        &self.0
    }
}

impl fmt::Debug for ExtraHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Reads `extra_body`. A null in it is a value like others.
pub(super) struct ExtraBodyRule;

impl Rule for ExtraBodyRule {
    type Out = ExtraBody;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<ExtraBody> {
        let Value::Object(fields) = value else {
            // Not `Reader::wrong_type`, which quotes the value.
            reader.fault("wrong_type", "an object of body fields is wanted here");
            return None;
        };
        // The depth first: writing a value out takes stack for every level.
        if is_deeper_than(value, MAX_BODY_DEPTH) {
            reader.fault("invalid_value", format!("at most {MAX_BODY_DEPTH} levels of nesting"));
            return None;
        }
        if serde_json::to_writer(Room(MAX_BODY_BYTES), value).is_err() {
            reader.fault("too_long", format!("at most {MAX_BODY_BYTES} bytes of JSON"));
            return None;
        }
        refuse_texts(fields, reader);
        Some(ExtraBody(fields.clone()))
    }

    fn write(&self, body: &ExtraBody) -> Value {
        Value::Object(body.0.clone())
    }

    fn range(&self) -> String {
        format!("an object of at most {MAX_BODY_BYTES} bytes")
    }
}

/// A fault for each field that would replace or remove a text. `input` may be an object, as DashScope's is, that adds
/// other fields beside its texts.
fn refuse_texts(fields: &Map<String, Value>, reader: &mut Reader) {
    for (key, value) in fields.iter().filter(|(key, _)| TEXT_FIELDS.contains(&key.as_str())) {
        reader.at(key, |reader| match (key.as_str(), value) {
            ("input", Value::Object(inner)) => refuse_texts(inner, reader),
            _ => reader.fault("invalid_value", "the query and the documents go here; leave this field out"),
        });
    }
}

/// Takes so many bytes and no more; keeps none.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Recurses no deeper than `levels`.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| is_deeper_than(item, levels - 1)),
        _ => false,
    }
}

/// Reads `extra_headers`; a null is an absent header, and so is one that says that it is not set.
pub(super) struct ExtraHeadersRule;

impl Rule for ExtraHeadersRule {
    type Out = ExtraHeaders;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<ExtraHeaders> {
        let Value::Object(entries) = value else {
            reader.fault("wrong_type", "an object of header names and their texts is wanted here");
            return None;
        };
        if entries.len() > MAX_HEADERS {
            reader.fault("too_many", format!("at most {MAX_HEADERS} headers, not {}", entries.len()));
            return None;
        }
        let mut headers: Vec<ExtraHeader> = Vec::new();
        let is_absent = |value: &Value| value.is_null() || *value == json!({"set": false});
        for (name, value) in entries.iter().filter(|(_, value)| !is_absent(value)) {
            reader.at(name, |reader| match header_value(name, value, &headers) {
                Ok(text) => headers.push((name.clone(), text.map(str::to_owned))),
                Err((code, detail)) => reader.fault(code, detail),
            });
        }
        Some(ExtraHeaders(headers))
    }

    fn write(&self, headers: &ExtraHeaders) -> Value {
        let entries = headers.0.iter().map(|(name, _)| (name.clone(), json!({"set": true})));
        Value::Object(entries.collect())
    }

    fn range(&self) -> String {
        format!("an object of at most {MAX_HEADERS} header names and their texts")
    }
}

/// The text of a header, none for the stored one, or the code and the sentence of what is wrong with it.
fn header_value<'v>(
    name: &str,
    value: &'v Value,
    others: &[ExtraHeader],
) -> Result<Option<&'v str>, (&'static str, String)> {
    check_name(name).map_err(|detail| ("invalid_value", detail))?;
    if others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
        let detail = format!("the header `{}` is there twice", name.to_ascii_lowercase());
        return Err(("duplicate_name", detail));
    }
    if *value == json!({"set": true}) {
        return Ok(None);
    }
    let text = value.as_str().ok_or_else(|| ("wrong_type", "a text is wanted here".to_owned()))?;
    if text.len() > MAX_HEADER_BYTES {
        return Err(("too_long", format!("at most {MAX_HEADER_BYTES} characters")));
    }
    if !is_header_text(text) {
        let detail = "a header's text is printable ASCII on one line, no spaces around it";
        return Err(("invalid_value", detail.to_owned()));
    }
    Ok(Some(text))
}

/// Whether a text can be sent in a header as it is.
pub(super) fn is_header_text(text: &str) -> bool {
    text.len() <= MAX_HEADER_BYTES
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
}

/// Whether a header, in lower case, is left to the program and to proxies alone: no setting may send it.
pub fn is_framing_header(name: &str) -> bool {
    FRAMING.contains(&name) || name.starts_with("proxy-") || name.starts_with("x-forwarded-")
}

/// Whether a setting may send a header of this name; the sentence repeats it only where it is a name.
fn check_name(name: &str) -> Result<(), String> {
    // A token of RFC 9110, section 5.6.2.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.bytes().all(is_token) {
        return Err(format!(
            "a header's name is 1 to {MAX_NAME_CHARS} letters, digits and signs such as `-`, without colon"
        ));
    }
    let lower = name.to_ascii_lowercase();
    if is_framing_header(&lower) {
        return Err(format!(
            "the header `{lower}` may not be set: it frames the message, speaks for a proxy or carries a session"
        ));
    }
    Ok(())
}

/// Whether a header of this name and text may be sent; no sentence repeats the text.
///
/// # Errors
/// What a header may look like.
pub fn check_header(name: &str, text: &str) -> Result<(), String> {
    check_name(name)?;
    if is_header_text(text) {
        Ok(())
    } else {
        Err(format!(
            "a header's text is printable ASCII on one line, no spaces around it, at most {MAX_HEADER_BYTES} characters"
        ))
    }
}

/// Reads `auth_header`.
pub(super) struct AuthHeader;

impl Rule for AuthHeader {
    type Out = String;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<String> {
        let Some(name) = value.as_str() else {
            reader.fault("wrong_type", "the name of a header is wanted here");
            return None;
        };
        match check_name(name) {
            Ok(()) => Some(name.to_owned()),
            Err(detail) => {
                reader.fault("invalid_value", detail);
                None
            }
        }
    }

    fn write(&self, name: &String) -> Value {
        Value::from(name.as_str())
    }

    fn range(&self) -> String {
        format!("a header name of at most {MAX_NAME_CHARS} characters")
    }
}

/// Reads `auth_scheme`.
pub(super) struct AuthScheme;

impl Rule for AuthScheme {
    type Out = String;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<String> {
        let Some(scheme) = value.as_str() else {
            reader.fault("wrong_type", "a text is wanted here");
            return None;
        };
        // Not quoted: the key itself may have been put here.
        if scheme.len() > MAX_SCHEME_CHARS || !scheme.bytes().all(|byte| byte.is_ascii_graphic()) {
            let detail =
                format!("a scheme is at most {MAX_SCHEME_CHARS} visible ASCII characters, no spaces");
            reader.fault("invalid_value", detail);
            return None;
        }
        Some(scheme.to_owned())
    }

    fn write(&self, scheme: &String) -> Value {
        Value::from(scheme.as_str())
    }

    fn range(&self) -> String {
        format!("\"\" or up to {MAX_SCHEME_CHARS} visible ASCII characters")
    }
}
