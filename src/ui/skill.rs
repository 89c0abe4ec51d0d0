//! The setup skill: where administrators look, what it is for, and its text for this user or project.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::layout::with_query;
use super::parts::{State as Standing, notice};
use super::visitor::Place;
use crate::core::id::Scope;
use crate::service::setup_skill;

/// The page below a scope that gives the text.
pub(super) const PATH: &str = "setup/skill";

/// What it is for, with the ways to it.
pub(super) fn about(place: &Place) -> Markup {
    let language = place.visitor.language;
    let query = [(place.scope.kind(), place.scope.id().as_str())];
    let route = with_query("/v1/setup/skill", &query);
    notice(
        Standing::Info,
        language.say("Or let an agent do it with you.", "或让代理与您一起完成。"),
        html! {
            (language.say("The ", "“"))
            a href=(place.path(PATH)) download="SKILL.md" { (language.say("setup skill", "设置技能")) }
            (language.say(
                " is a text that leads it through the same steps in a conversation; it asks you before it writes. Its two tools come with ",
                "”是一段文本，引导代理在对话中完成相同步骤，写入前会征求您的同意。其两个工具随 ",
            ))
            a href=(place.path("setup/scope")) { code { "management_tools" } }
            (language.say(", and writing takes a key of the role setup. For programs: ", " 提供，写入需要 setup 角色的密钥。供程序使用："))
            code { "GET " (route) }
        },
    )
}

/// The text, as a file.
pub(super) async fn text(place: Place) -> Response {
    let text = match &place.scope {
        Scope::User(user) => setup_skill(Some(user), None),
        Scope::Project(project) => setup_skill(None, Some(project)),
    };
    let headers = [
        (header::CONTENT_TYPE, "text/markdown; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"SKILL.md\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}
