//! Step three: groups, core tools and toolsets as they are proposed, edited, and what a turn costs with them.
//!
//! A catalog may have two thousand groups and twenty thousand tools: the page tells of the groups, a page of them at a time, and has the
//! inside of a group (`group.rs`) loaded when it is opened.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::core::core;
use super::cost::cost;
use super::group::{Typed, body};
use super::lists::{Groups, add_names, remove_names, selectors};
use super::names::names;
use super::outcome::{TAKEN, TOOK, added, counts, outcome};
use super::refused::unreadable;
use super::{DraftForm, Step, keep, made_for, offer, step_page, toolsets};
use crate::core::proposal::{Origin, Proposal, ProposedGroup};
use crate::http::problem::{Code, Problem};
use crate::service::{SetupDraft, SetupPlan, Toolrack};
use crate::ui::language::number;
use crate::ui::layout::with_query;
use crate::ui::parts::{
    Slice, State as Standing, asked_first, card, pager, tag, token_count, tools, visible_name, warnings,
};
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// Groups of one page.
const ON_A_PAGE: usize = 100;

/// The group that is open, which page of its tools, else the page of groups; and what was said of the last step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    pub(super) group: String,
    pub(super) tools: String,
    page: String,
    said: String,
    /// Groups, core tools and toolsets that were taken of a proposal.
    took: String,
}

impl Asked {
    pub(super) fn path(&self, place: &Place) -> String {
        let Self { group, tools, page, said, took } = self;
        let fields = [("group", group), ("tools", tools), ("page", page), ("said", said), ("took", took)];
        with_query(&place.path(Step::Groups.path()), &fields.map(|(name, value)| (name, value.as_str())))
    }

    /// The page with this group open, at these tools.
    pub(super) fn of(group: &str, tools: usize) -> Self {
        let tools = if tools > 1 { tools.to_string() } else { String::new() };
        Self { group: group.to_owned(), tools, ..Self::default() }
    }
}

/// The page; for a group that is opened in it, the inside of that group alone.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    asked: Query<Asked>,
) -> Result<Response, Problem> {
    show_typed(State(service), place, asked, None).await
}

/// The same with what somebody typed that was not taken.
pub(super) async fn show_typed(
    State(service): State<Toolrack>,
    place: Place,
    Query(mut asked): Query<Asked>,
    typed: Option<Typed>,
) -> Result<Response, Problem> {
    if let Some(typed) = &typed {
        typed.group.clone_into(&mut asked.group);
    }
    let typed = typed.as_ref();
    let draft = service.draft(&place.scope).await?;
    let plan = match service.plan_setup(draft.input(place.caller())).await {
        Ok(plan) => plan,
        Err(error) => return unreadable(&place, Step::Groups, &draft, error.into()),
    };
    if place.visitor.part {
        let group = plan.proposal.groups.iter().find(|group| group.name == asked.group);
        let group = group.ok_or_else(Problem::nothing_here)?;
        return Ok(shown(body(&place, &draft, group, &asked, None)));
    }
    Ok(groups_page(&place, &draft, &plan, &asked, typed))
}

/// Keeps an edit in the draft.
pub(super) async fn edit(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
    mut form: DraftForm,
) -> Result<Response, Problem> {
    let mut draft = std::mem::take(&mut form.draft);
    // Beginning anew mends what a plan cannot be made of.
    if form.text("do") == "again" {
        begin_anew(&mut draft);
        let on = place.path(Step::Groups.path());
        return keep(service, place, &mut draft, &form, &on).await;
    }
    let proposal = match service.plan_setup(draft.input(place.caller())).await {
        Ok(plan) => plan.proposal,
        Err(error) => return unreadable(&place, Step::Groups, &draft, error.into()),
    };
    let group = form.text("group");
    let mut next = Asked { said: String::new(), took: String::new(), ..asked };
    let proposed = proposal.groups.iter().find(|proposed| proposed.name == group);
    let before = counts(&draft.config);
    let done = if group.is_empty() {
        edit_all(&mut draft, &proposal, &form)
    } else if let Some(proposed) = proposed {
        let is_taken = |name: &str| name != group && proposal.groups.iter().any(|other| other.name == name);
        if form.text("do") == "edit" && is_taken(form.text("name")) {
            Err(TAKEN)
        } else {
            edit_group(&mut draft, proposed, &form, &mut next)
        }
    } else {
        Err("gone")
    };
    done.unwrap_or_else(|said| said).clone_into(&mut next.said);
    if done == Ok(TOOK) {
        next.took = added(before, counts(&draft.config));
    }
    let anchor = match (next.said.is_empty(), next.group.is_empty()) {
        (false, _) => "#said",
        (true, false) => "#open",
        (true, true) => "",
    };
    let on = format!("{}{anchor}", next.path(&place));
    match done {
        Ok(_) => keep(service, place, &mut draft, &form, &on).await,
        Err(TAKEN) => {
            // Nothing was sent away yet, so that what was typed stands there again.
            let mut response = show_typed(State(service), place, Query(next), Typed::of(&form)).await?;
            *response.status_mut() = Code::InvalidRequest.status();
            Ok(response)
        }
        Err(_) => Ok(go(&on)),
    }
}

/// Takes away what a proposal says anew.
fn begin_anew(draft: &mut SetupDraft) {
    let config = &mut draft.config;
    Groups(config).clear();
    config.shift_remove("core");
    config.shift_remove("toolsets");
    draft.refused_toolsets.clear();
}

/// Edits what is no single group; answers what is to be said of it, or why nothing was done.
fn edit_all(
    draft: &mut SetupDraft,
    proposal: &Proposal,
    form: &DraftForm,
) -> Result<&'static str, &'static str> {
    match form.text("do") {
        "take" => return offer::take(draft, proposal, form),
        "set-out" | "set-back" | "set-name" => return toolsets::edit(draft, form),
        "core" => {
            let config = &mut draft.config;
            let listed: Vec<&str> = form.all("listed").collect();
            let chosen: Vec<&str> = form.all("selector").collect();
            remove_names(config, "core", &listed);
            add_names(config, "core", &chosen);
            add_names(config, "core", &names(form.text("more"), |name| is_known(proposal, name)));
        }
        "back" => {
            remove_names(&mut draft.config, "deny", &[form.text("entry")]);
            return Ok("back");
        }
        _ => return Err(""),
    }
    Ok("")
}

/// Whether a name is that of a tool, or `@` and that of a group.
fn is_known(proposal: &Proposal, name: &str) -> bool {
    let mut groups = proposal.groups.iter();
    match name.strip_prefix('@') {
        Some(group) => groups.any(|known| known.name == group),
        None => groups.any(|group| group.tools.iter().any(|tool| tool == name)),
    }
}

/// Edits one group. `next` is what is shown then.
fn edit_group(
    draft: &mut SetupDraft,
    proposed: &ProposedGroup,
    form: &DraftForm,
    next: &mut Asked,
) -> Result<&'static str, &'static str> {
    let mut groups = Groups(&mut draft.config);
    let (group, name) = (proposed.name.as_str(), form.text("name"));
    match form.text("do") {
        "split" => {
            let parts = proposed.split.iter().flat_map(|split| &split.parts);
            // The part without a word is the rest, which stays where it is.
            for part in parts.filter(|part| part.word.is_some()) {
                groups.place(&part.name, part.description.as_deref(), &part.tools);
            }
        }
        "move" | "merge" if name.is_empty() => return Err("name"),
        "move" | "merge" if name == group => return Err("same"),
        "move" => {
            let chosen: Vec<String> = form.all("tool").map(str::to_owned).collect();
            if chosen.is_empty() {
                return Err("none");
            }
            groups.place(name, None, &chosen);
        }
        "merge" => {
            groups.merge(group, &proposed.tools, name);
            *next = Asked::of(name, 1);
        }
        "out" => {
            leave_out(&mut groups, proposed);
            *next = Asked::default();
            return Ok("out");
        }
        "forget" => groups.forget(group),
        "edit" if name.is_empty() => return Err("unnamed"),
        "edit" => {
            if !groups.edit(group, &proposed.tools, name, form.text("description")) {
                return Err(TAKEN);
            }
            *next = Asked::of(name, 1);
        }
        _ => return Err(""),
    }
    Ok("")
}

/// Leaves all tools of a group out.
fn leave_out(groups: &mut Groups<'_>, group: &ProposedGroup) {
    match group.by {
        // Its name is that of all tools without a group, also of those that are proposed for others.
        "none" => groups.leave_out_tools(&group.tools),
        "prefix" | "words" => {
            groups.ensure(&group.name, &group.tools);
            groups.leave_out(&group.name, &group.tools);
        }
        _ => groups.leave_out(&group.name, &group.tools),
    }
}

fn groups_page(
    place: &Place,
    draft: &SetupDraft,
    plan: &SetupPlan,
    asked: &Asked,
    typed: Option<&Typed>,
) -> Response {
    let language = place.visitor.language;
    let SetupPlan { proposal, preview, .. } = plan;
    let offer = offer::offered(draft, proposal);
    let is_new = !offer.is_empty();
    let post = place.path(Step::Groups.path());
    // A group is on the page that it is on, whatever page is asked for.
    let open = proposal.groups.iter().position(|group| group.name == asked.group);
    let page = open.map_or_else(|| asked.page.clone(), |at| (at / ON_A_PAGE + 1).to_string());
    let slice = Slice::of(proposal.groups.len(), ON_A_PAGE, &page);
    let way = |text: &str, page: usize| {
        let to = Asked { page: page.to_string(), ..Asked::default() };
        html! { a.btn.small href=(to.path(place)) { (text) } }
    };
    let folds = proposal.groups.iter().skip(slice.from).take(slice.to - slice.from);
    let content = html! {
        (outcome(language, &asked.said, &asked.took))
        (warnings(language, &plan.warnings))
        @if is_new {
            (offer::notice(place, draft, &offer))
        }
        div.columns.wide-left {
            div {
                (card(language.say("Groups", "分组"), html! { (number(proposal.groups.len())) }, &html! {
                    @for group in folds { (fold(place, draft, group, asked, typed)) }
                    @if slice.pages > 1 { div.body { (pager(language, slice, way)) } }
                }))
                datalist #groups { @for group in &proposal.groups { option value=(group.name) {} } }
                (left_out(place, draft))
                (toolsets::list(place, draft, proposal))
            }
            div {
                (cost(language, preview, is_new.then_some(&proposal.tokens)))
                (core(place, draft, proposal))
                form method="post" action=(post) {
                    (made_for(place, draft))
                    (asked_first("", language.say("Start again from the proposal", "从建议重新开始"),
                        language.say("Groups, core tools and toolsets of the draft go, with what you changed of them.", "草稿中的分组、核心工具和工具集将被移除，包括您的更改。"),
                        &html! { button.btn.danger type="submit" name="do" value="again" { (language.say("Yes, start again", "确认重新开始")) } }))
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

/// A group, with its inside where it is open, else with the way to that.
fn fold(
    place: &Place,
    draft: &SetupDraft,
    group: &ProposedGroup,
    asked: &Asked,
    typed: Option<&Typed>,
) -> Markup {
    let language = place.visitor.language;
    let is_open = group.name == asked.group;
    let inside = Asked::of(&group.name, 1).path(place);
    html! {
        details.fold id=[is_open.then_some("open")] open[is_open] {
            summary {
                (visible_name(language, &group.name)) " "
                @match (group.origin, group.by) {
                    (Origin::Proposed, "server") => span.tag { (language.say("from the upload", "来自导入")) }
                    (Origin::Proposed, "none") => span.tag { (language.say("left over", "其余")) }
                    (Origin::Proposed, _) => (tag(Standing::Info, language.say("proposed", "建议")))
                    (Origin::Existing, _) => {}
                }
                span.note {
                    (tools(language, group.tools.len())) (language.say(", ", "，")) (token_count(language, group.tokens))
                    @if let Some(listing) = &group.listing { (language.say(", listing ", "，清单 ")) (number(listing.full)) }
                }
            }
            @if is_open { (body(place, draft, group, asked, typed)) }
            @else {
                div.body hx-get=(inside) hx-trigger="toggle from:closest details once" hx-swap="outerHTML" {
                    a href={(inside) "#open"} { (language.say("Open this group", "打开此分组")) }
                }
            }
        }
    }
}

/// Entries that leave out more than one tool, each to be taken back.
fn left_out(place: &Place, draft: &SetupDraft) -> Markup {
    let language = place.visitor.language;
    let entries: Vec<&str> = selectors(&draft.config, "deny").collect();
    let all = draft.config.get("deny").and_then(Value::as_array).map_or(0, Vec::len);
    if all == 0 {
        return html! {};
    }
    let single = all - entries.len();
    card(
        language.say("Left out", "已排除"),
        language.say("no agent sees these", "代理看不到"),
        &html! {
            @if !entries.is_empty() {
                ul.rows {
                    @for entry in &entries {
                        li {
                            b.name { (entry) }
                            form method="post" action=(place.path(Step::Groups.path())) {
                                (made_for(place, draft))
                                input type="hidden" name="entry" value=(entry);
                                button.btn.small type="submit" name="do" value="back"
                                    aria-label={(language.say("Take back ", "恢复 ")) (entry)} { (language.say("Take back", "恢复")) }
                            }
                        }
                    }
                }
            }
            @if single > 0 {
                p.body {
                    a href={(place.path(Step::Review.path())) "?kind=out"} {
                        (tools(language, single)) (language.say(" by name", "（按名称）"))
                    }
                }
            }
        },
    )
}
