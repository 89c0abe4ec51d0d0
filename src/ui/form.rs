//! What a form sends: its fields by name, once its token was checked.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRef, FromRequest, Multipart, Request};
use axum::http::header;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::core::import::decode;
use crate::core::text::{clip, one_line, size_in_words};
use crate::http::auth::Auth;
use crate::http::layers::HttpContext;
use crate::http::pages::FormToken;
use crate::http::problem::{Code, Problem};

/// The field that every form carries.
pub(super) const TOKEN_FIELD: &str = "form_token";

/// Longest form of somebody who is not signed in.
const STRANGER_BYTES: usize = 16 * 1024;

/// How long it may take to send it.
const STRANGER_TIME: Duration = Duration::from_secs(10);

/// More than a page asks for: each of the 20,000 tools that a catalog may have is one field or two.
const MOST_FIELDS: usize = 100_000;

/// A field as it was sent.
struct Field {
    name: String,
    text: String,
    /// What the browser calls the file that was chosen.
    file: Option<String>,
}

/// The fields of a form, in their order.
#[derive(Default)]
pub(crate) struct Form(Vec<Field>);

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may hold a key.
        f.debug_list().entries(self.0.iter().map(|field| &field.name)).finish()
    }
}

/// A form whose page takes it back with what was typed where a part of it cannot be read, such as a file that is no text.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Without the part that cannot be read, and without what comes after one that is too large.
    pub(super) form: Form,
    pub(super) fault: Option<Problem>,
}

impl Form {
    /// The first value of a field, without white space around it; empty when it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|field| field.name == name).map(|field| field.text.trim()).unwrap_or_default()
    }

    /// All values of a field.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |field| field.name == name).map(|field| field.text.as_str())
    }

    /// The same with the names of files.
    pub(super) fn sent<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (Option<&'a str>, &'a str)> {
        let fields = self.0.iter().filter(move |field| field.name == name);
        fields.map(|field| (field.file.as_deref(), field.text.as_str()))
    }

    /// All fields with their values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|field| (field.name.as_str(), field.text.as_str()))
    }

    /// Whether a field is there, as a checked box is.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|field| field.name == name)
    }
}

impl<S> FromRequest<S> for Form
where
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let token: Option<FormToken> = request.extensions().get().cloned();
        let Upload { form, fault } = if is_stranger(&request, state) {
            let read = tokio::time::timeout(STRANGER_TIME, Self::read(request, state, STRANGER_BYTES)).await;
            read.map_err(|_| Problem::new(Code::Timeout, "the form was not sent in time"))??
        } else {
            let limit = HttpContext::from_ref(state).limits().body_bytes;
            Self::read(request, state, limit).await?
        };
        match fault {
            Some(fault) => Err(fault),
            None => form.checked(token.as_ref()),
        }
    }
}

impl<S> FromRequest<S> for Upload
where
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let token: Option<FormToken> = request.extensions().get().cloned();
        let limit = HttpContext::from_ref(state).limits().body_bytes;
        let Self { form, fault } = Form::read(request, state, limit).await?;
        Ok(Self { form: form.checked(token.as_ref())?, fault })
    }
}

impl Form {
    /// The form, where it carries the token of its browser. Pages that need no key have none; nobody else's page can send them
    /// anything (`check_sender`).
    fn checked(self, token: Option<&FormToken>) -> Result<Self, Problem> {
        if token.is_some_and(|token| !token.is(self.text(TOKEN_FIELD))) {
            let detail = "this form is from before you signed in; load the page again";
            return Err(Problem::new(Code::Forbidden, detail));
        }
        Ok(self)
    }

    async fn read<S>(request: Request, state: &S, limit: usize) -> Result<Upload, Problem>
    where
        S: Send + Sync,
    {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_multipart = kind.is_some_and(|kind| kind.starts_with("multipart/form-data"));
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, limit);
        if !is_multipart {
            let read = body.collect().await.map_err(|error| refused(&*error, limit))?;
            let read = read.to_bytes();
            let fields = url::form_urlencoded::parse(&read).into_owned().take(MOST_FIELDS + 1);
            let field = |(name, text)| Field { name, text, file: None };
            let form = Self(fields.map(field).collect());
            return if form.0.len() > MOST_FIELDS {
                Err(too_many())
            } else {
                Ok(Upload { form, fault: None })
            };
        }
        let request = Request::from_parts(parts, Body::new(body));
        let unreadable = || Problem::new(Code::InvalidRequest, "this form cannot be read");
        let mut multipart = Multipart::from_request(request, state).await.map_err(|_| unreadable())?;
        let mut read = Upload { form: Self::default(), fault: None };
        while let Some(field) = multipart.next_field().await.map_err(|_| unreadable())? {
            let name = field.name().unwrap_or_default().to_owned();
            let file = field.file_name().map(str::to_owned);
            let Ok(bytes) = field.bytes().await else {
                let detail = too_long(limit);
                read.fault = Some(Problem::new(Code::PayloadTooLarge, detail));
                break;
            };
            if read.form.0.len() == MOST_FIELDS {
                return Err(too_many());
            }
            match decode(bytes.to_vec()) {
                Ok(text) => read.form.0.push(Field { name, text, file }),
                Err(why) => {
                    let what = file.unwrap_or(name);
                    let detail = format!("the file `{}` {why}", clip(&one_line(&what), 100));
                    read.fault.get_or_insert(Problem::new(Code::InvalidUtf8, detail));
                }
            }
        }
        Ok(read)
    }
}

/// A key and where to go on is all that somebody sends who is not signed in.
fn is_stranger<S>(request: &Request, state: &S) -> bool
where
    HttpContext: FromRef<S>,
{
    let asks_for_keys = !matches!(HttpContext::from_ref(state).auth(), Auth::None);
    asks_for_keys && request.extensions().get::<FormToken>().is_none()
}

/// Of what is sent in all.
fn too_long(limit: usize) -> String {
    format!("what is sent has at most {}", size_in_words(limit))
}

fn too_many() -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("a form has at most {MOST_FIELDS} fields"))
}

fn refused(error: &(dyn std::error::Error + 'static), limit: usize) -> Problem {
    if error.is::<LengthLimitError>() {
        return Problem::new(Code::PayloadTooLarge, too_long(limit));
    }
    Problem::new(Code::InvalidRequest, "the form was cut off")
}
