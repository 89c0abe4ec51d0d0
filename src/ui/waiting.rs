//! What is said of a draft that waits, wherever one comes by.

use maud::{Markup, html};

use super::language::{Language, counted, time};
use super::parts::{State as Standing, notice};
use super::visitor::Place;
use crate::core::id::Scope;
use crate::service::WaitingDraft;
use crate::ui::visitor::base;

/// With the way on.
pub(super) fn on_overview(place: &Place, draft: Option<WaitingDraft>) -> Markup {
    let language = place.visitor.language;
    let Some(draft) = draft else { return html! {} };
    let saved = time(draft.updated_at_ms);
    let text = html! {
        (language.say("Agents do not see it before it is applied. Saved ", "应用之前代理看不到。保存于 ")) (saved) " UTC. "
        (way(language, &place.scope, draft))
    };
    notice(Standing::Info, waits(language, draft), text)
}

/// In a list of scopes: short.
pub(super) fn in_list(language: Language, scope: &Scope, draft: Option<WaitingDraft>) -> Markup {
    let Some(draft) = draft else { return html! {} };
    html! { span.note { (waits(language, draft)) " " (way(language, scope, draft)) } }
}

fn waits(language: Language, draft: WaitingDraft) -> String {
    let tools = draft.tools.map(|tools| counted(language, tools, "tool", "tools", "个工具"));
    match (language, tools) {
        (Language::English, Some(tools)) => format!("A draft with {tools} waits:"),
        (Language::English, None) => "A draft waits:".to_owned(),
        (Language::Chinese, Some(tools)) => format!("有待处理的草稿（{tools}）："),
        (Language::Chinese, None) => "有待处理的草稿：".to_owned(),
    }
}

/// To where one goes on: the tools that came, else what would change.
fn way(language: Language, scope: &Scope, draft: WaitingDraft) -> Markup {
    let step = if draft.tools.is_some() { "setup/review" } else { "setup/groups" };
    html! { a href={ (base(scope)) "/" (step) } { (language.say("go on", "继续")) } }
}
