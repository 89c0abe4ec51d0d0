//! What a proposal would bring beside what a draft has, and taking all of it or a part.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::outcome::TOOK;
use super::{Step, made_for};
use crate::core::policy::apply_patch;
use crate::core::proposal::Proposal;
use crate::core::text::clip;
use crate::service::SetupDraft;
use crate::ui::form::Form;
use crate::ui::language::{Language, counted};
use crate::ui::visitor::Place;

/// The parts of a proposal, as keys of a config.
const PARTS: [&str; 3] = ["groups", "core", "toolsets"];

/// Names of a part that are told, and characters of each.
const TOLD_NAMES: usize = 4;
const NAME_CHARS: usize = 40;

/// What an entry of a part is called.
fn name_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.get("name")?.as_str())
}

fn names_of<'a>(config: &'a Map<String, Value>, part: &str) -> impl Iterator<Item = &'a str> {
    config.get(part).and_then(Value::as_array).into_iter().flatten().filter_map(name_of)
}

/// What taking a proposal would write: without toolsets that were left out, and without what the draft has.
pub(super) fn offered(draft: &SetupDraft, proposal: &Proposal) -> Map<String, Value> {
    let mut patch = proposal.patch.clone();
    let is_out = |entry: &Value| {
        let name = name_of(entry).unwrap_or_default();
        draft.refused_toolsets.contains(name)
            && !names_of(&draft.config, "toolsets").any(|known| known == name)
    };
    if let Some(toolsets) = patch.get_mut("toolsets").and_then(Value::as_array_mut) {
        toolsets.retain(|entry| !is_out(entry));
        if toolsets.is_empty() {
            patch.shift_remove("toolsets");
        }
    }
    patch.retain(|part, value| draft.config.get(part) != Some(value));
    patch
}

/// Takes what was ticked; all of it where a form has nothing to tick.
pub(super) fn take(
    draft: &mut SetupDraft,
    proposal: &Proposal,
    form: &Form,
) -> Result<&'static str, &'static str> {
    let mut patch = offered(draft, proposal);
    if form.has("parts") {
        let parts: Vec<&str> = form.all("part").collect();
        patch.retain(|part, _| parts.contains(&part.as_str()));
        if parts.is_empty() {
            return Err("parts");
        }
    }
    let config = std::mem::take(&mut draft.config);
    let patched = apply_patch(&Value::Object(config), &Value::Object(patch));
    draft.config = patched.as_object().cloned().unwrap_or_default();
    Ok(TOOK)
}

/// Says what is proposed, with a tick for each part.
pub(super) fn notice(place: &Place, draft: &SetupDraft, patch: &Map<String, Value>) -> Markup {
    let language = place.visitor.language;
    html! {
        form.notice method="post" action=(place.path(Step::Groups.path())) {
            (made_for(place, draft))
            input type="hidden" name="parts" value="1";
            div {
                strong { (language.say("A proposal is here.", "已有建议。")) } " "
                (language.say("From servers, common beginnings of names and shared words; the same tools always give the same. Take what you want, then change what you like.",
                    "依据服务器、名称前缀和共同词汇；相同的工具总得到相同的建议。选择要采用的部分，之后可自由修改。"))
                fieldset.choice {
                    legend.quiet { (language.say("What is taken", "采用的内容")) }
                    @for part in PARTS.into_iter().filter(|part| patch.contains_key(*part)) {
                        label {
                            input type="checkbox" name="part" value=(part) checked;
                            " " (brought(language, draft, patch, part))
                        }
                    }
                }
            }
            button.btn.primary type="submit" name="do" value="take" { (language.say("Take the proposal", "采用建议")) }
        }
    }
}

/// How much of a part is new, with the first names.
fn brought(language: Language, draft: &SetupDraft, patch: &Map<String, Value>, part: &str) -> Markup {
    let known: std::collections::HashSet<&str> = names_of(&draft.config, part).collect();
    let new: Vec<&str> = names_of(patch, part).filter(|name| !known.contains(name)).collect();
    let count = match part {
        "groups" if new.is_empty() => {
            language.say("descriptions of groups that are there", "现有分组的描述").to_owned()
        }
        "groups" => counted(language, new.len(), "group", "groups", "个分组"),
        "core" => counted(language, new.len(), "core tool", "core tools", "个核心工具"),
        _ => counted(language, new.len(), "toolset", "toolsets", "个工具集"),
    };
    let first: Vec<_> = new.iter().take(TOLD_NAMES).map(|name| clip(name, NAME_CHARS)).collect();
    let more = if new.len() > TOLD_NAMES { ", …" } else { "" };
    html! {
        (count)
        @if !first.is_empty() { span.note { ": " (first.join(", ")) (more) } }
    }
}
