//! The inside of a group: its name and description, how it could be split, and its tools page by page.

use maud::{Markup, html};

use super::groups::Asked;
use super::made_for;
use crate::core::proposal::ProposedGroup;
use crate::service::SetupDraft;
use crate::ui::form::Form;
use crate::ui::language::{Language, number};
use crate::ui::parts::{Slice, State as Standing, notice, pager};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// What somebody typed about a group that was not taken.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) group: String,
    name: String,
    description: String,
}

impl Typed {
    /// Of a form that renames or describes a group.
    pub(super) fn of(form: &Form) -> Option<Self> {
        let field = |name: &str| form.text(name).to_owned();
        let typed = Self { group: field("group"), name: field("name"), description: field("description") };
        (form.text("do") == "edit" && !typed.group.is_empty()).then_some(typed)
    }
}

/// Tools of one page.
const ON_A_PAGE: usize = 100;

/// `typed`: what stands in the fields in the place of what the group has.
pub(super) fn body(
    place: &Place,
    draft: &SetupDraft,
    group: &ProposedGroup,
    asked: &Asked,
    typed: Option<&Typed>,
) -> Markup {
    let language = place.visitor.language;
    let slice = Slice::of(group.tools.len(), ON_A_PAGE, &asked.tools);
    // After a step the same tools are shown again.
    let post = Asked::of(&group.name, slice.page).path(place);
    let form = |class: &str, inside: Markup| {
        html! {
            form class=(class) method="post" action=(post) {
                (made_for(place, draft))
                input type="hidden" name="group" value=(group.name);
                (inside)
            }
        }
    };
    html! {
        div.body {
            (form("form", names(language, group, typed)))
            @if let Some(split) = &group.split {
                (form("", html! {
                    (notice(Standing::Info, language.say("It could be split:", "可以拆分："), html! {
                        (tell(language, &split.reason)) " "
                        @for part in &split.parts { b { (part.name) } " (" (number(part.tools.len())) ") " }
                    }))
                    button.btn.small type="submit" name="do" value="split" { (language.say("Split", "拆分")) }
                }))
            }
            (form("form", html! {
                fieldset.choice {
                    legend { (language.say("Tools", "工具")) }
                    @for tool in group.tools.iter().skip(slice.from).take(slice.to - slice.from) {
                        label { input type="checkbox" name="tool" value=(tool); " " span.name { (tool) } }
                    }
                }
                (pager(language, slice, |text, page| way(place, group, text, page)))
                div.actions {
                    input type="text" name="name" list="groups" aria-label=(language.say("Another group", "其他分组")) placeholder=(language.say("another group, or a new one", "其他分组或新名称")) maxlength="128";
                    button.btn.small type="submit" name="do" value="move" { (language.say("Move chosen there", "移动所选")) }
                    button.btn.small type="submit" name="do" value="merge" { (language.say("Merge all into it", "全部并入")) }
                }
            }))
        }
    }
}

fn names(language: Language, group: &ProposedGroup, typed: Option<&Typed>) -> Markup {
    let typed = typed.filter(|typed| typed.group == group.name);
    let name = typed.map_or(&group.name, |typed| &typed.name);
    let description = typed.map(|typed| typed.description.as_str()).or(group.description.as_deref());
    let field = format!("name-{}", group.name);
    html! {
        div.two {
            div.field {
                label for=(field) { (language.say("Name", "名称")) }
                input id=(field) type="text" name="name" value=(name) maxlength="128" aria-invalid=[typed.map(|_| "true")];
            }
            div.field {
                label for={(field) "-about"} { (language.say("Description for the listing", "清单中的描述")) }
                input id={(field) "-about"} type="text" name="description" value=(description.unwrap_or_default()) maxlength="500";
            }
        }
        div.actions {
            button.btn.small type="submit" name="do" value="edit" { (language.say("Keep", "保存")) }
            button.btn.small type="submit" name="do" value="forget" { (language.say("Forget this entry", "移除此项")) }
            button.btn.small.danger type="submit" name="do" value="out" { (language.say("Leave the group out", "排除此分组")) }
        }
    }
}

/// The way to another page of the tools, which stays in the list where scripts run.
fn way(place: &Place, group: &ProposedGroup, text: &str, page: usize) -> Markup {
    let to = Asked::of(&group.name, page).path(place);
    html! {
        a.btn.small href={(to) "#open"} hx-get=(to) hx-target="closest .body" hx-swap="outerHTML" { (text) }
    }
}
