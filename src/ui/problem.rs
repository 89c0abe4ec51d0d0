//! Problems as pages: what is wrong, what still works, where to go on.

use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::language::Language;
use super::layout::{solo, url_part};
use super::parts::{State, notice};
use super::translate::tell;
use super::{go, shown};
use crate::http::pages::{SIGN_IN, Visit};
use crate::http::problem::{Code, Problem};

/// Shows a problem; who is not signed in is asked to do so.
pub(super) fn page(problem: &Problem, visit: &Visit<'_>) -> Response {
    let language = Language::of(visit.headers);
    let here = visit.uri.path_and_query().map_or("/ui", |here| here.as_str());
    let is_part = visit.headers.contains_key("hx-request");
    if problem.code() == Code::Unauthorized && visit.method == Method::GET && !is_part {
        return go(&format!("{SIGN_IN}?next={}", url_part(here)));
    }
    let (title, advice) = words(language, problem.code());
    let mut response = if is_part {
        // htmx takes no answer of an error into the page; the status says that it is one for whoever looks.
        shown(notice(State::Bad, title, tell(language, problem.detail()))).into_response()
    } else {
        let content = html! {
            h1 { (title) }
            // Where there are faults, the detail repeats the first of them.
            (notice(State::Bad, tell(language, problem.code().title()), html! {
                @if problem.errors().is_empty() { (tell(language, problem.detail())) }
            }))
            @if !problem.errors().is_empty() {
                ul.lines {
                    @for error in problem.errors() { li { code { (error.pointer) } " " (tell(language, &error.detail)) } }
                }
            }
            p { (advice) }
            p.actions {
                a.btn href="/ui" { (language.say("To the start", "回到首页")) }
                @if problem.code() == Code::Unauthorized {
                    a.btn.primary href={ (SIGN_IN) "?next=" (url_part(here)) } { (language.say("Sign in", "登录")) }
                }
            }
            p.note { (language.say("Request", "请求")) " " code { (visit.request_id) } }
        };
        shown(solo(language, "/ui", title, &content))
    };
    *response.status_mut() = problem.code().status();
    problem.headers().for_each(|(name, value)| {
        if *name != header::WWW_AUTHENTICATE {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    });
    response
}

fn words(language: Language, code: Code) -> (&'static str, &'static str) {
    match code {
        Code::NotFound => (
            language.say("There is nothing here", "这里什么都没有"),
            language.say(
                "The address may be misspelt, or your key does not cover this user or project.",
                "地址可能有误，或者您的密钥不涵盖此用户或项目。",
            ),
        ),
        Code::Unauthorized => (
            language.say("You are signed out", "您已退出登录"),
            language.say("Nothing of what you sent was stored.", "您发送的内容没有保存。"),
        ),
        Code::Conflict | Code::PreconditionFailed => (
            language.say("Somebody else was faster", "其他人先做了修改"),
            language.say(
                "Go back, load the page again, and make your change on what is stored now.",
                "请返回并重新加载页面，然后在当前内容上修改。",
            ),
        ),
        _ => (
            language.say("That did not work", "操作未成功"),
            language.say(
                "Nothing was stored. Agents go on with what was there.",
                "没有保存任何内容，代理继续使用原有设置。",
            ),
        ),
    }
}
