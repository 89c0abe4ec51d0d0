//! An overview without numbers: how one begins, and what is set up but was not asked yet.

use maud::{Markup, html};

use crate::core::id::Scope;
use crate::ui::language::Language;
use crate::ui::parts::{card, empty};
use crate::ui::scopes::first_steps;
use crate::ui::skill;
use crate::ui::visitor::Place;

/// A scope without tools and without requests.
pub(super) fn first_run(place: &Place) -> Markup {
    let language = place.visitor.language;
    let option = match &place.scope {
        Scope::User(_) => "--user",
        Scope::Project(_) => "--project",
    };
    let import = html! { a.btn.primary href=(place.path("setup/import")) { (language.say("Import tools", "导入工具")) } };
    html! {
        section.card {
            (empty(
                language.say("No tools yet", "还没有工具"),
                language.say(
                    "Bring the tool list of your agent. It is kept here, and each turn gets the few tools that it needs; the model finds the rest when it asks.",
                    "导入代理的工具列表。工具保存在这里，每回合只发送需要的少数几个；其余由模型按需查找。",
                ),
                Some(import),
            ))
        }
        (first_steps(language))
        (skill::about(place))
        (card(language.say("Or from a terminal", "或使用终端"), copy(language), &html! {
            pre #import-command tabindex="0" { "toolrack import tools.json " (option) " " (place.scope.id()) }
        }))
    }
}

fn copy(language: Language) -> Markup {
    html! {
        button.btn.small type="button" data-copy="import-command" data-copied=(language.say("Copied", "已复制")) {
            (language.say("Copy", "复制"))
        }
    }
}

/// A scope with tools that nobody asked for.
pub(super) fn unused(place: &Place, days: u32) -> Markup {
    let language = place.visitor.language;
    let text = match language {
        Language::English => format!(
            "No agent asked in the last {days} days. The tokens above are what its next turn would get; charts begin with the first request."
        ),
        Language::Chinese => {
            format!("最近 {days} 天没有代理请求。上面是下一回合将收到的词元；首次请求后开始显示图表。")
        }
    };
    let ways = html! {
        span.actions {
            a.btn.primary href=(place.path("playground")) { (language.say("Try a query", "试一个查询")) }
            a.btn href="/docs" { (language.say("How agents ask", "代理如何请求")) }
        }
    };
    html! {
        section.card { (empty(language.say("Ready, and not asked yet", "已就绪，尚无请求"), text, Some(ways))) }
        (skill::about(place))
    }
}
