//! Showing a key, and leaving again.

use axum::extract::{FromRef as _, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::form::Form;
use super::language::{self, Language};
use super::layout::solo;
use super::parts::{State as Standing, notice};
use super::visitor::Visitor;
use super::{go, shown};
use crate::http::auth::Auth;
use crate::http::layers::HttpContext;
use crate::http::pages::{SIGN_IN, came_securely, cookie, set_cookie};
use crate::http::problem::{Code, Problem};
use crate::http::router::AppState;
use crate::service::{PAGE_SESSION_SECONDS, Toolrack};

/// Where to go on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Next {
    next: String,
}

impl Next {
    /// A path of a page here, whatever was sent.
    fn path(&self) -> &str {
        local(&self.next).unwrap_or("/ui")
    }
}

/// A path below the pages of this server; nothing for anything else.
fn local(path: &str) -> Option<&str> {
    let is_page = path == "/ui" || path.starts_with("/ui/");
    let is_plain = path.bytes().all(|byte| (0x21..0x7f).contains(&byte) && byte != b'\\');
    (is_page && is_plain && !path.contains("//")).then_some(path)
}

/// The form that a key is shown in.
pub(super) async fn form(
    State(context): State<HttpContext>,
    headers: HeaderMap,
    Query(next): Query<Next>,
) -> Response {
    if matches!(context.auth(), Auth::None) {
        return go("/ui");
    }
    shown(sign_in_page(Language::of(&headers), next.path(), None))
}

fn sign_in_page(language: Language, next: &str, problem: Option<&Problem>) -> Markup {
    let content = html! {
        h1 { (language.say("Sign in", "登录")) }
        p.about {
            (language.say(
                "With an admin or setup key. The browser stays signed in for 12 hours; the key itself is not kept in it.",
                "使用 admin 或 setup 密钥。登录保持 12 小时，浏览器不保存密钥本身。",
            ))
        }
        @if let Some(problem) = problem {
            (notice(Standing::Bad, language.say("Not signed in:", "登录失败："), problem.detail()))
        }
        form.card.form method="post" action=(SIGN_IN) {
            input type="hidden" name="next" value=(next);
            div.field {
                label for="key" { (language.say("Key", "密钥")) }
                input #key type="password" name="key" required autofocus autocomplete="current-password" spellcheck="false"
                    aria-invalid=[problem.map(|_| "true")] aria-describedby="key-hint";
                p.hint #key-hint {
                    (language.say("Begins with trk_. The first one was printed when the server started; ", "以 trk_ 开头。首个密钥在服务器启动时显示；"))
                    code { "toolrack keys create" } (language.say(" makes more.", " 可创建更多。"))
                }
            }
            button.btn.primary type="submit" { (language.say("Sign in", "登录")) }
        }
    };
    solo(language, SIGN_IN, language.say("Sign in", "登录"), &content)
}

/// Signs in, or says why not.
pub(super) async fn enter(State(state): State<AppState>, headers: HeaderMap, form: Form) -> Response {
    let context = HttpContext::from_ref(&state);
    let next = Next { next: form.text("next").to_owned() };
    match context.auth().sign_in(form.text("key")).await {
        Ok(token) => {
            let cookie = set_cookie(token.expose_secret(), PAGE_SESSION_SECONDS, came_securely(&headers));
            with_cookie(go(next.path()), cookie)
        }
        Err(problem) if matches!(problem.code(), Code::Unauthorized | Code::Forbidden) => {
            let page = sign_in_page(Language::of(&headers), next.path(), Some(&problem));
            (StatusCode::UNPROCESSABLE_ENTITY, shown(page)).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Signs out: the cookie is worth nothing from then on.
pub(super) async fn leave(
    State(service): State<Toolrack>,
    _visitor: Visitor,
    headers: HeaderMap,
    _form: Form,
) -> Result<Response, Problem> {
    if let Some(token) = cookie(&headers) {
        service.end_page_session(token).await?;
    }
    Ok(with_cookie(go(SIGN_IN), set_cookie("", 0, came_securely(&headers))))
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    response
}

/// The language that somebody chose.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    to: String,
    back: String,
}

/// Remembers a language.
pub(super) async fn choose_language(Query(choice): Query<Choice>) -> Response {
    let response = go(local(&choice.back).unwrap_or("/ui"));
    let language = Language::parse(&choice.to).unwrap_or(Language::English);
    let name = language::COOKIE;
    let text = format!("{name}={}; Path=/ui; HttpOnly; SameSite=Strict; Max-Age=31536000", language.tag());
    with_cookie(response, HeaderValue::try_from(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_led_to_pages_of_this_server_only() {
        for good in ["/ui", "/ui/users/alice/overview", "/ui/users/a/catalog?q=x&page=2"] {
            assert_eq!(local(good), Some(good));
        }
        for bad in [
            "",
            "/",
            "https://evil.example/ui",
            "//evil.example/ui",
            "/uix",
            "/ui//evil",
            "/ui/\\evil",
            "/ui/\r\nx",
        ] {
            assert_eq!(local(bad), None, "{bad}");
        }
    }
}
