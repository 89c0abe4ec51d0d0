//! The toolsets of a draft and those that are proposed: leaving out, taking back, renaming.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{Step, made_for};
use crate::core::proposal::{Origin, Proposal, ProposedToolset};
use crate::service::SetupDraft;
use crate::ui::form::Form;
use crate::ui::parts::{State as Standing, card, tag};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// The entries of a draft's own toolsets.
fn entries(config: &mut Map<String, Value>) -> Option<&mut Vec<Value>> {
    config.get_mut("toolsets").and_then(Value::as_array_mut)
}

fn is_called(entry: &Value, name: &str) -> bool {
    entry.get("name").and_then(Value::as_str) == Some(name)
}

fn has(draft: &SetupDraft, name: &str) -> bool {
    let list = draft.config.get("toolsets").and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|entry| is_called(entry, name)))
}

/// Edits one toolset; answers what is to be said of it, or why nothing was done.
pub(super) fn edit(draft: &mut SetupDraft, form: &Form) -> Result<&'static str, &'static str> {
    let (entry, name) = (form.text("entry"), form.text("name").trim());
    match form.text("do") {
        "set-out" => {
            remove(&mut draft.config, entry);
            draft.refused_toolsets.insert(entry.to_owned());
            Ok("set-out")
        }
        "set-back" => {
            draft.refused_toolsets.remove(entry);
            Ok("set-back")
        }
        "set-name" if name.is_empty() => Err("set-unnamed"),
        "set-name" if name != entry && has(draft, name) => Err("set-taken"),
        "set-name" => {
            rename(&mut draft.config, entry, name);
            if name != entry {
                // What it was proposed as is not proposed beside it.
                draft.refused_toolsets.insert(entry.to_owned());
            }
            draft.refused_toolsets.remove(name);
            Ok("")
        }
        _ => Err(""),
    }
}

fn remove(config: &mut Map<String, Value>, name: &str) {
    let is_empty = entries(config).is_some_and(|list| {
        list.retain(|entry| !is_called(entry, name));
        list.is_empty()
    });
    if is_empty {
        config.shift_remove("toolsets");
    }
}

/// Gives a toolset another name, wherever the document has it.
fn rename(config: &mut Map<String, Value>, name: &str, new: &str) {
    let replace = |list: Option<&mut Value>| {
        for text in list.and_then(Value::as_array_mut).into_iter().flatten() {
            if text.as_str() == Some(name) {
                *text = new.into();
            }
        }
    };
    for entry in entries(config).into_iter().flatten() {
        if is_called(entry, name) {
            entry["name"] = new.into();
        }
        replace(entry.get_mut("includes"));
    }
    replace(config.get_mut("default_toolsets"));
}

/// The card; nothing where there is none.
pub(super) fn list(place: &Place, draft: &SetupDraft, proposal: &Proposal) -> Markup {
    let language = place.visitor.language;
    if proposal.toolsets.is_empty() {
        return html! {};
    }
    card(
        language.say("Toolsets", "工具集"),
        language.say("a session can be limited to one", "会话可限定于其中之一"),
        &html! { ul.rows { @for set in &proposal.toolsets { li { (row(place, draft, set)) } } } },
    )
}

fn row(place: &Place, draft: &SetupDraft, set: &ProposedToolset) -> Markup {
    let language = place.visitor.language;
    let is_own = has(draft, &set.name);
    let is_out = !is_own && draft.refused_toolsets.contains(&set.name);
    let button = |deed: &str, word: &str| {
        html! {
            form method="post" action=(place.path(Step::Groups.path())) {
                (made_for(place, draft))
                input type="hidden" name="entry" value=(set.name);
                button.btn.small type="submit" name="do" value=(deed) aria-label={ (word) " " (set.name) } { (word) }
            }
        }
    };
    html! {
        div {
            b { (set.name) } " "
            @if is_out { (tag(Standing::Warn, language.say("left out", "已排除"))) }
            @else if set.origin == Origin::Proposed { (tag(Standing::Info, language.say("proposed", "建议"))) }
            p.note { (tell(language, set.description.as_deref().unwrap_or(&set.reason))) }
            p.note { (set.groups.join(", ")) }
            @if is_own {
                details.more {
                    summary { (language.say("Rename", "重命名")) }
                    form.actions method="post" action=(place.path(Step::Groups.path())) {
                        (made_for(place, draft))
                        input type="hidden" name="entry" value=(set.name);
                        input type="text" name="name" value=(set.name) maxlength="128" aria-label={ (language.say("Name of ", "名称：")) (set.name) };
                        button.btn.small type="submit" name="do" value="set-name" { (language.say("Keep", "保存")) }
                    }
                }
            }
        }
        @if is_out { (button("set-back", language.say("Take back", "恢复"))) }
        @else if is_own || set.origin == Origin::Proposed { (button("set-out", language.say("Leave out", "排除"))) }
        @else { span.note { (language.say("of the other scope", "来自另一范围")) } }
    }
}
