//! What is said on the page of groups about the last step.

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::ui::language::{Language, counted};
use crate::ui::parts::{State as Standing, notice};

/// What is said when a proposal was taken.
pub(super) const TOOK: &str = "took";

/// What is said when a group was not renamed, since another one has the name.
pub(super) const TAKEN: &str = "taken";

/// Groups, core tools and toolsets of a config.
pub(super) fn counts(config: &Map<String, Value>) -> [usize; 3] {
    ["groups", "core", "toolsets"].map(|key| config.get(key).and_then(Value::as_array).map_or(0, Vec::len))
}

/// How many of each came, as a page is told of it.
pub(super) fn added(before: [usize; 3], now: [usize; 3]) -> String {
    let added = now.into_iter().zip(before).map(|(now, before)| now.saturating_sub(before).to_string());
    added.collect::<Vec<_>>().join("-")
}

/// What came of the last step, where the page begins to be read.
pub(super) fn outcome(language: Language, said: &str, took: &str) -> Markup {
    let told = what_came(language, said, took);
    html! { @if !said.is_empty() { div #said tabindex="-1" { (told) } } }
}

fn what_came(language: Language, said: &str, took: &str) -> Markup {
    let not = |english, chinese| {
        notice(
            Standing::Warn,
            language.say("Nothing was changed:", "未作更改："),
            language.say(english, chinese),
        )
    };
    let done = |english, chinese| notice(Standing::Ok, language.say(english, chinese), "");
    match said {
        TOOK => taken(language, took),
        "none" => not("no tool was chosen. Tick those to move.", "没有选择工具，请勾选要移动的工具。"),
        "name" => not("say into which group.", "请填写目标分组。"),
        "parts" => not("tick what is to be taken.", "请勾选要采用的内容。"),
        "set-out" => done("The toolset is left out.", "已排除该工具集。"),
        "set-back" => done("The toolset is proposed again.", "将再次建议该工具集。"),
        "set-unnamed" => not("a toolset needs a name.", "工具集需要名称。"),
        "set-taken" => not("another toolset has this name.", "已有同名工具集。"),
        "unnamed" => not(
            "a group needs a name. To take its entry away, use “Forget this entry”.",
            "分组需要名称。如需移除此项，请使用“移除此项”。",
        ),
        "same" => not("the tools are in this group already.", "这些工具已在此分组中。"),
        TAKEN => not(
            "another group has this name. To put all tools there, merge them into it below.",
            "已有同名分组。如需合并，请使用下方的“全部并入”。",
        ),
        "gone" => not("there is no such group any more.", "该分组已不存在。"),
        "out" => done("The group is left out.", "已排除该分组。"),
        "back" => done("They are let in again.", "已恢复。"),
        _ => html! {},
    }
}

/// How much of a proposal was taken.
fn taken(language: Language, took: &str) -> Markup {
    let mut counts = took.split('-').map(|count| count.parse::<u64>().unwrap_or_default());
    let mut next = || counts.next().unwrap_or_default();
    let counts = [next(), next(), next()];
    if counts == [0; 3] {
        return notice(
            Standing::Info,
            language.say("There was nothing to take:", "没有可采用的内容："),
            language.say("the draft has all of the proposal.", "草稿已包含全部建议。"),
        );
    }
    let [groups, core, toolsets] = counts;
    let parts = [
        counted(language, groups, "group", "groups", "个分组"),
        counted(language, core, "core tool", "core tools", "个核心工具"),
        counted(language, toolsets, "toolset", "toolsets", "个工具集"),
    ];
    notice(
        Standing::Ok,
        language.say("The proposal is taken:", "已采用建议："),
        html! {
            (parts.join(language.say(", ", "，"))) (language.say(". ", "。"))
            (language.say("They are in the draft: change what you like, then go on.", "已写入草稿：可自由修改，然后继续。"))
        },
    )
}
