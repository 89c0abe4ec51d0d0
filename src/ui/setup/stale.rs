//! Forms of a step carry the draft that their page was made for. One that was made for another draft than there is now changes nothing: its
//! sender gets the present page, with what was sent. So does who sent what the draft was refused for.

use std::ops::Deref;

use axum::extract::{FromRef as _, FromRequest, FromRequestParts as _, Query, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::group::Typed;
use super::refused::not_kept;
use super::{Step, apply, groups, import, matcher, review, scope};
use crate::core::text::clip;
use crate::http::problem::Problem;
use crate::http::router::AppState;
use crate::service::{SetupDraft, Toolrack};
use crate::ui::form::{Form, TOKEN_FIELD, Upload};
use crate::ui::language::Language;
use crate::ui::layout::token;
use crate::ui::parts::{State as Standing, notice};
use crate::ui::visitor::Place;

/// The field with the draft that a page was made for.
const DRAFT_FIELD: &str = "draft";

/// Longest form that can be sent again as it is, in bytes.
const MOST_AGAIN: usize = 32 * 1024;

/// Fields that are shown, and characters of each.
const MOST_SHOWN: usize = 200;
const SHOWN_CHARS: usize = 300;

/// The hidden fields of every form of a step.
pub(super) fn made_for(place: &Place, draft: &SetupDraft) -> Markup {
    html! {
        (token(&place.visitor))
        input type="hidden" name=(DRAFT_FIELD) value=(draft.tag());
    }
}

/// A form that was made for the draft that there is. Without the field, which every page has, it is for whatever there is.
pub(super) struct DraftForm {
    form: Form,
    uri: Uri,
    pub(super) draft: SetupDraft,
}

impl DraftForm {
    /// The page of the form's step as it is now, with what was refused of the form and what was sent.
    pub(super) async fn refused(&self, service: Toolrack, place: Place, problem: &Problem) -> Response {
        let language = place.visitor.language;
        let sent = shown_fields(&self.form);
        let told = html! {
            (not_kept(language, problem))
            @if !sent.is_empty() { (what_was_sent(language, &sent, &html! {})) }
        };
        let place = Place { told: Some(told), ..place };
        present_page(service, place, &self.uri, &self.form, problem.code().status()).await
    }
}

impl Deref for DraftForm {
    type Target = Form;

    fn deref(&self) -> &Form {
        &self.form
    }
}

/// The same for a page that takes its form back where a part of it cannot be read.
pub(super) struct DraftUpload {
    pub(super) form: Form,
    pub(super) fault: Option<Problem>,
}

impl FromRequest<AppState> for DraftForm {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let uri = request.uri().clone();
        match read(request, state).await? {
            (Upload { fault: Some(fault), .. }, _) => Err(fault.into_response()),
            (Upload { form, fault: None }, draft) => Ok(Self { form, uri, draft }),
        }
    }
}

impl FromRequest<AppState> for DraftUpload {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let (Upload { form, fault }, _) = read(request, state).await?;
        Ok(Self { form, fault })
    }
}

/// A form and the draft that it was made for; else the present page.
async fn read(request: Request, state: &AppState) -> Result<(Upload, SetupDraft), Response> {
    let refused = |problem: Problem| problem.into_response();
    let (mut parts, body) = request.into_parts();
    let place = Place::from_request_parts(&mut parts, state).await.map_err(refused)?;
    let uri = parts.uri.clone();
    let upload = Upload::from_request(Request::from_parts(parts, body), state).await.map_err(refused)?;
    let service = Toolrack::from_ref(state);
    let draft = service.draft(&place.scope).await.map_err(|error| refused(error.into()))?;
    let wanted = upload.form.text(DRAFT_FIELD);
    if wanted.is_empty() || wanted == draft.tag() {
        return Ok((upload, draft));
    }
    let told = Some(told(&place, step_of(&uri), &uri, &upload.form, &draft));
    Err(present_page(service, Place { told, ..place }, &uri, &upload.form, StatusCode::CONFLICT).await)
}

/// The step whose form was sent to an address.
fn step_of(uri: &Uri) -> Step {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    Step::ALL.into_iter().find(|step| step.path().ends_with(last)).unwrap_or(Step::Apply)
}

/// The page of the form's step as it is now, with what the place tells.
async fn present_page(
    service: Toolrack,
    place: Place,
    uri: &Uri,
    form: &Form,
    status: StatusCode,
) -> Response {
    let service = State(service);
    let shown = match step_of(uri) {
        Step::Import => import::show(service, place).await,
        Step::Review => review::show(service, place, asked(uri)).await,
        Step::Groups => groups::show_typed(service, place, asked(uri), Typed::of(form)).await,
        Step::Matcher => matcher::show(service, place).await,
        Step::Scope => scope::show(service, place).await,
        Step::Apply => apply::show(service, place, asked(uri)).await,
    };
    let mut response = shown.unwrap_or_else(Problem::into_response);
    if response.status().is_success() {
        *response.status_mut() = status;
    }
    response
}

/// What the page was asked for whose form it is.
fn asked<T: Default + serde::de::DeserializeOwned>(uri: &Uri) -> Query<T> {
    Query::try_from_uri(uri).unwrap_or_default()
}

fn told(place: &Place, step: Step, uri: &Uri, form: &Form, draft: &SetupDraft) -> Markup {
    let language = place.visitor.language;
    let sent = shown_fields(form);
    let is_listed = !sent.is_empty() && !matches!(step, Step::Import | Step::Apply);
    // What a page does not show again cannot be sent again by it, and what is applied is to be looked at first.
    let is_whole = form.fields().all(|(name, value)| is_shown(name) || is_own(name) || value.is_empty());
    let bytes: usize = sent.iter().map(|(name, value)| name.len() + value.len()).sum();
    let again = is_whole && bytes <= MOST_AGAIN;
    let what = match language {
        Language::English => {
            "this draft was changed in another window since the page was made. This is what it is now; what you sent was not taken. "
        }
        Language::Chinese => "页面生成后，草稿在另一窗口中有变。以下为当前内容；您发送的内容未被采用。",
    };
    html! {
        (notice(Standing::Warn, language.say("Nothing was changed:", "未作更改："), html! {
            (what)
            @if step == Step::Import { (language.say("Read it again, if you still want that.", "如仍需要，请重新读取。")) }
            @else if !is_whole { (language.say("Secrets are not shown again: type them anew.", "不会再次显示密钥，请重新填写。")) }
        }))
        @if is_listed {
            (what_was_sent(language, &sent, &html! {
                @if again {
                    form.actions method="post" action=(uri.path_and_query().map_or("", |path| path.as_str())) {
                        (made_for(place, draft))
                        @for (name, value) in form.fields().filter(|(name, _)| is_shown(name)) {
                            input type="hidden" name=(name) value=(value);
                        }
                        button.btn.small type="submit" {
                            (language.say("Do it on the present draft all the same", "仍在当前草稿上执行"))
                        }
                    }
                }
            }))
        }
    }
}

/// The fields of a form that may be shown again.
fn shown_fields(form: &Form) -> Vec<(&str, &str)> {
    form.fields().filter(|(name, value)| is_shown(name) && !value.is_empty()).collect()
}

fn what_was_sent(language: Language, sent: &[(&str, &str)], way: &Markup) -> Markup {
    html! {
        details.notice open[sent.len() <= 8] {
            summary { strong { (language.say("What you sent", "您发送的内容")) } }
            ul.lines {
                @for (name, value) in sent.iter().take(MOST_SHOWN) {
                    li { code { (name) } " " (clip(value, SHOWN_CHARS)) }
                }
                @if sent.len() > MOST_SHOWN { li { "… " (sent.len() - MOST_SHOWN) } }
            }
            (way)
        }
    }
}

/// Whether a field belongs to every form.
fn is_own(name: &str) -> bool {
    name == TOKEN_FIELD || name == DRAFT_FIELD
}

/// Whether a field may be shown again: what holds a secret may not.
fn is_shown(name: &str) -> bool {
    let hidden = ["key", "header", "env", "variable", "secret"];
    !is_own(name) && !hidden.iter().any(|part| name.contains(part))
}
