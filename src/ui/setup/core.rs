//! The core tools on the page of groups: which stand in every turn, and which entries mean no tool.

use maud::{Markup, html};
use serde_json::Value;

use super::{Step, made_for};
use crate::core::proposal::{Origin, Proposal, ProposedCore};
use crate::service::SetupDraft;
use crate::ui::language::number;
use crate::ui::parts::{State as Standing, card, tag, token_count};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// The card; an entry that means no tool is marked, and beside the field named.
pub(super) fn core(place: &Place, draft: &SetupDraft, proposal: &Proposal) -> Markup {
    let language = place.visitor.language;
    let all = draft.config.get("core").and_then(Value::as_array).map_or(0, Vec::len);
    let shown = proposal.core.iter().filter(|entry| entry.origin == Origin::Existing).count();
    let hidden = all.saturating_sub(shown);
    let is_lost = |entry: &ProposedCore| entry.origin == Origin::Existing && entry.tools == 0;
    let lost: Vec<String> =
        proposal.core.iter().filter(|entry| is_lost(entry)).map(|entry| entry.selector.to_string()).collect();
    card(
        language.say("Core tools", "核心工具"),
        language.say("in every turn", "每轮都在"),
        &html! {
            form.form method="post" action=(place.path(Step::Groups.path())) {
                (made_for(place, draft))
                fieldset.choice {
                    legend.quiet { (language.say("Core tools", "核心工具")) }
                    @for entry in &proposal.core {
                        @let selector = entry.selector.to_string();
                        label {
                            input type="hidden" name="listed" value=(selector);
                            input type="checkbox" name="selector" value=(selector) checked[entry.origin == Origin::Existing];
                            " " span.name { (selector) } " "
                            @if is_lost(entry) { (tag(Standing::Bad, language.say("no such tool", "没有此工具"))) " " }
                            span.note { (token_count(language, entry.tokens)) (language.say(". ", "。")) (tell(language, &entry.reason)) }
                        }
                    }
                }
                @if hidden > 0 {
                    p.note {
                        a href={(place.path(Step::Review.path())) "?kind=core"} {
                            (language.say("and ", "另有 ")) (number(hidden)) (language.say(" more by name", " 个按名称指定"))
                        }
                    }
                }
                div.field {
                    label for="more-core" { (language.say("More: names, prefix* or @group", "更多：名称、前缀* 或 @分组")) }
                    input #more-core.mono type="text" name="more" spellcheck="false" autocomplete="off" aria-describedby="more-core-hint"
                        aria-invalid=[(!lost.is_empty()).then_some("true")];
                    p.hint #more-core-hint {
                        @if lost.is_empty() { (language.say("Several with commas or spaces between them.", "多个之间用逗号或空格分隔。")) }
                        @else {
                            strong { (language.say("These mean no tool: ", "以下没有对应的工具：")) (lost.join(", ")) } " "
                            (language.say("Correct them, or untick them above and keep.", "请更正，或在上方取消勾选后保存。"))
                        }
                    }
                }
                button.btn type="submit" name="do" value="core" { (language.say("Keep", "保存")) }
            }
        },
    )
}
