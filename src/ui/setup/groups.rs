//! Step three: groups, core tools and toolsets as they are proposed, edited, and what a turn costs with them.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::lists::{Groups, add_names, remove_names};
use super::{Step, keep, step_page};
use crate::core::policy::apply_patch;
use crate::core::proposal::{Origin, Proposal, ProposedGroup, TokenPrediction};
use crate::http::problem::Problem;
use crate::service::{PlanFields, PreviewAnswer, SetupDraft, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::{Language, number};
use crate::ui::layout::token;
use crate::ui::parts::{Share, State as Standing, card, notice, tag, token_bar, warnings};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// Tools of a group that are named.
const SHOWN_TOOLS: usize = 200;

pub(super) async fn show(State(service): State<Toolrack>, place: Place) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let proposal = service.propose_setup(draft.input(place.caller()), PlanFields::default()).await?;
    let now = service.preview_setup(draft.input(place.caller()), PlanFields::default()).await?;
    Ok(groups_page(&place, &draft, &proposal, &now))
}

/// Keeps an edit in the draft.
pub(super) async fn edit(
    State(service): State<Toolrack>,
    place: Place,
    form: Form,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    let proposal = service.propose_setup(draft.input(place.caller()), PlanFields::default()).await?;
    let group = form.text("group");
    let proposed = proposal.groups.iter().find(|proposed| proposed.name == group);
    let tools: Vec<String> = proposed.map(|proposed| proposed.tools.clone()).unwrap_or_default();
    let name = form.text("name");
    match form.text("do") {
        "take" => {
            let config = Value::Object(std::mem::take(&mut draft.config));
            let config = apply_patch(&config, &Value::Object(proposal.patch));
            draft.config = config.as_object().cloned().unwrap_or_default();
        }
        "again" => {
            for key in ["groups", "core", "toolsets"] {
                draft.config.shift_remove(key);
            }
        }
        "core" => {
            let listed: Vec<&str> = form.all("listed").collect();
            let chosen: Vec<&str> = form.all("selector").collect();
            remove_names(&mut draft.config, "core", &listed);
            add_names(&mut draft.config, "core", &chosen);
            add_names(
                &mut draft.config,
                "core",
                form.text("more").split_whitespace().collect::<Vec<_>>().as_slice(),
            );
        }
        "split" => {
            let parts = proposed.and_then(|proposed| proposed.split.as_ref()).map(|split| &split.parts);
            // The part without a word is the rest, which stays where it is.
            for part in parts.into_iter().flatten().filter(|part| part.word.is_some()) {
                Groups(&mut draft.config).place(&part.name, part.description.as_deref(), &part.tools);
            }
        }
        "move" if !name.is_empty() => {
            let chosen: Vec<String> = form.all("tool").map(str::to_owned).collect();
            Groups(&mut draft.config).place(name, None, &chosen);
        }
        "merge" if !name.is_empty() && name != group => Groups(&mut draft.config).merge(group, &tools, name),
        "forget" => Groups(&mut draft.config).forget(group),
        "edit" => Groups(&mut draft.config).edit(group, &tools, name, form.text("description")),
        _ => {}
    }
    keep(&service, &place, &mut draft, Step::Groups.path()).await
}

fn groups_page(place: &Place, draft: &SetupDraft, proposal: &Proposal, now: &PreviewAnswer) -> Response {
    let language = place.visitor.language;
    let is_new = !proposal.patch.is_empty();
    let content = html! {
        (warnings(language, &proposal.warnings))
        @if is_new {
            form.notice method="post" action=(place.path(Step::Groups.path())) {
                (token(&place.visitor))
                div {
                    strong { (language.say("A proposal is here.", "已有建议。")) } " "
                    (language.say("From servers, common beginnings of names and shared words; the same tools always give the same. Take it, then change what you like.",
                        "依据服务器、名称前缀和共同词汇；相同的工具总得到相同的建议。采用后可自由修改。"))
                }
                button.btn.primary type="submit" name="do" value="take" { (language.say("Take the proposal", "采用建议")) }
            }
        }
        div.columns.wide-left {
            div {
                (card(language.say("Groups", "分组"), html! { (number(proposal.groups.len())) }, &html! {
                    @for group in &proposal.groups { (group_fold(place, group, &proposal.groups)) }
                }))
                (toolsets(language, proposal))
            }
            div {
                (cost(language, now, is_new.then_some(&proposal.tokens)))
                (core(place, proposal))
                form method="post" action=(place.path(Step::Groups.path())) {
                    (token(&place.visitor))
                    button.btn type="submit" name="do" value="again" { (language.say("Start again from the proposal", "从建议重新开始")) }
                }
            }
        }
    };
    let about =
        language.say("Is the proposal right, and what will a turn cost?", "建议是否合适？每轮开销多少？");
    step_page(
        place,
        Step::Groups,
        draft,
        (language.say("Groups and core tools", "分组与核心工具"), about),
        &content,
        None,
    )
}

fn group_fold(place: &Place, group: &ProposedGroup, all: &[ProposedGroup]) -> Markup {
    let language = place.visitor.language;
    let post = place.path(Step::Groups.path());
    let field = format!("name-{}", group.name);
    html! {
        details.fold {
            summary {
                (group.name) " "
                @if group.origin == Origin::Proposed { (tag(Standing::Info, language.say("proposed", "建议"))) }
                span.note {
                    (number(group.tools.len())) (language.say(" tools, ", " 个工具，")) (number(group.tokens)) (language.say(" tokens", " 词元"))
                    @if let Some(listing) = &group.listing { (language.say(", listing ", "，清单 ")) (number(listing.full)) }
                }
            }
            div.body {
                form.form method="post" action=(post) {
                    (token(&place.visitor))
                    input type="hidden" name="group" value=(group.name);
                    div.two {
                        div.field {
                            label for=(field) { (language.say("Name", "名称")) }
                            input id=(field) type="text" name="name" value=(group.name) maxlength="128";
                        }
                        div.field {
                            label for={(field) "-about"} { (language.say("Description for the listing", "清单中的描述")) }
                            input id={(field) "-about"} type="text" name="description" value=(group.description.as_deref().unwrap_or_default()) maxlength="500";
                        }
                    }
                    div.actions {
                        button.btn.small type="submit" name="do" value="edit" { (language.say("Keep", "保存")) }
                        button.btn.small type="submit" name="do" value="forget" { (language.say("Forget this entry", "移除此项")) }
                    }
                }
                @if let Some(split) = &group.split {
                    form method="post" action=(post) {
                        (token(&place.visitor))
                        input type="hidden" name="group" value=(group.name);
                        (notice(Standing::Info, language.say("It could be split:", "可以拆分："), html! {
                            (tell(language, &split.reason)) " "
                            @for part in &split.parts { b { (part.name) } " (" (number(part.tools.len())) ") " }
                        }))
                        button.btn.small type="submit" name="do" value="split" { (language.say("Split", "拆分")) }
                    }
                }
                form.form method="post" action=(post) {
                    (token(&place.visitor))
                    input type="hidden" name="group" value=(group.name);
                    fieldset.choice {
                        legend { (language.say("Tools", "工具")) }
                        @for tool in group.tools.iter().take(SHOWN_TOOLS) {
                            label { input type="checkbox" name="tool" value=(tool); " " span.name { (tool) } }
                        }
                        @if group.tools.len() > SHOWN_TOOLS { p.note { "… " (number(group.tools.len() - SHOWN_TOOLS)) } }
                    }
                    div.actions {
                        input type="text" name="name" list="groups" aria-label=(language.say("Another group", "其他分组")) placeholder=(language.say("another group, or a new one", "其他分组或新名称")) maxlength="128";
                        button.btn.small type="submit" name="do" value="move" { (language.say("Move chosen there", "移动所选")) }
                        button.btn.small type="submit" name="do" value="merge" { (language.say("Merge all into it", "全部并入")) }
                    }
                }
            }
        }
        @if all.first().is_some_and(|first| first.name == group.name) {
            datalist #groups { @for group in all { option value=(group.name) {} } }
        }
    }
}

fn core(place: &Place, proposal: &Proposal) -> Markup {
    let language = place.visitor.language;
    card(
        language.say("Core tools", "核心工具"),
        language.say("in every turn", "每轮都在"),
        &html! {
            form.form method="post" action=(place.path(Step::Groups.path())) {
                (token(&place.visitor))
                fieldset.choice {
                    legend.quiet { (language.say("Core tools", "核心工具")) }
                    @for entry in &proposal.core {
                        @let selector = entry.selector.to_string();
                        label {
                            input type="hidden" name="listed" value=(selector);
                            input type="checkbox" name="selector" value=(selector) checked[entry.origin == Origin::Existing];
                            " " span.name { (selector) } " "
                            span.note { (number(entry.tokens)) (language.say(" tokens. ", " 词元。")) (tell(language, &entry.reason)) }
                        }
                    }
                }
                div.field {
                    label for="more-core" { (language.say("More: names, prefix* or @group", "更多：名称、前缀* 或 @分组")) }
                    input #more-core.mono type="text" name="more" spellcheck="false" autocomplete="off";
                }
                button.btn type="submit" name="do" value="core" { (language.say("Keep", "保存")) }
            }
        },
    )
}

fn toolsets(language: Language, proposal: &Proposal) -> Markup {
    if proposal.toolsets.is_empty() {
        return html! {};
    }
    card(
        language.say("Toolsets", "工具集"),
        language.say("a session can be limited to one", "会话可限定于其中之一"),
        &html! {
            ul.rows {
                @for set in &proposal.toolsets {
                    li {
                        div {
                            b { (set.name) } " "
                            @if set.origin == Origin::Proposed { (tag(Standing::Info, language.say("proposed", "建议"))) }
                            p.note { (tell(language, set.description.as_deref().unwrap_or(&set.reason))) }
                        }
                        span.note { (set.groups.join(", ")) }
                    }
                }
            }
        },
    )
}

fn cost(language: Language, preview: &PreviewAnswer, with_proposal: Option<&TokenPrediction>) -> Markup {
    let now = &preview.tokens;
    // Groups need not be told alike: where there is room, some are told in more words.
    let is_mixed = preview.listing.as_ref().is_some_and(|listing| listing.form == "mixed");
    let shares = |tokens: &TokenPrediction| {
        let share = |class, tokens: usize| Share { class, tokens: tokens as u64 };
        [
            share("core", tokens.core),
            share("bridge", tokens.bridge),
            share("listing", tokens.listing.tokens),
            share("rest", tokens.all.saturating_sub(tokens.assembled)),
        ]
    };
    card(
        language.say("What a turn will cost", "每轮开销"),
        format!("{} {}", number(now.context_window), language.say("window", "窗口")),
        &html! {
            div.body {
                p.big-figure { (number(now.assembled)) " " small { (language.say("tokens of ", "词元，共 ")) (number(now.all)) } }
                (token_bar(language, &shares(now), "big"))
                @if let Some(proposed) = with_proposal {
                    p { (language.say("With the proposal: ", "采用建议后：")) b { (number(proposed.assembled)) } }
                }
                p.note { (tell(language, &now.listing.reason)) }
            }
            table {
                thead { tr {
                    th scope="col" { (language.say("Tier", "层级")) }
                    th scope="col" { (language.say("Listing", "清单")) }
                    th.number scope="col" { (language.say("Listing", "清单词元")) }
                    th.number scope="col" { (language.say("Turn", "每轮")) }
                } }
                tbody {
                    @for tier in &now.listing.tiers {
                        @let chosen = tier.tier == now.listing.tier;
                        tr.chosen[chosen] {
                            th scope="row" { (tier.tier) }
                            td {
                                @if chosen && is_mixed { (language.say("By group, as many words as fit", "按分组，在预算内尽量详细")) }
                                @else { (tier_name(language, tier.tier)) }
                            }
                            td.number { (number(if chosen { now.listing.tokens } else { tier.listing })) }
                            td.number { (number(if chosen { now.assembled } else { tier.turn })) }
                        }
                    }
                }
            }
        },
    )
}

fn tier_name(language: Language, tier: u8) -> &'static str {
    match tier {
        0 => language.say("Everything, no search", "全部发送"),
        1 => language.say("Names and short descriptions", "名称与简述"),
        2 => language.say("Names only", "仅名称"),
        _ => language.say("One line per group", "每组一行"),
    }
}
