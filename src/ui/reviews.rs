//! Changed tools that wait: what changed, and approving or rejecting it.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::form::Form;
use super::language::{Language, number, time};
use super::layout::{Section, page, token, with_query};
use super::parts::{State as Standing, card, empty, head, notice, warnings};
use super::setup::{diff_list, difference};
use super::visitor::Place;
use super::{go, shown};
use crate::core::digest::Digest;
use crate::http::problem::{Code, Problem};
use crate::service::{HeldTool, HeldTools, ReviewedTool, Toolrack, Verdict};

/// Tools of one page: each is read by somebody.
const SHOWN: usize = 20;

/// From where on, and what was just done.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    after: String,
    approved: String,
    rejected: String,
}

/// The tools that wait.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let language = place.visitor.language;
    let after = Some(asked.after.clone()).filter(|after| !after.is_empty());
    let held = service.held_tools(&place.scope, after).await?;
    let title = language.say("Changed tools", "已变更的工具");
    let about = language.say(
        "Uploads that change a tool wait here. Agents keep the approved version until an administrator agrees.",
        "更改工具的上传在此等待。管理员同意之前，代理继续使用已批准的版本。",
    );
    let content = html! {
        (head(title, about, None))
        @if !asked.approved.is_empty() {
            (notice(Standing::Ok, html! { code { (asked.approved) } }, language.say("is approved; agents get it from the next request on.", "已批准；代理自下个请求起使用。")))
        }
        @if !asked.rejected.is_empty() {
            (notice(Standing::Ok, html! { code { (asked.rejected) } }, language.say("is rejected; the tool stays as it is.", "已拒绝；工具保持不变。")))
        }
        (list(&place, &held))
    };
    Ok(shown(page(&place, Section::Overview, title, &content)))
}

fn list(place: &Place, held: &HeldTools) -> Markup {
    let language = place.visitor.language;
    if held.tools.is_empty() {
        let text = language.say(
            "With require_review_on_change, changes of tools wait here for an administrator.",
            "启用 require_review_on_change 后，工具变更在此等待管理员。",
        );
        let back =
            html! { a.btn href=(place.path("overview")) { (language.say("To the overview", "返回概览")) } };
        return html! { section.card { (empty(language.say("Nothing waits", "没有等待的变更"), text, Some(back))) } };
    }
    let (first, rest) = held.tools.split_at(held.tools.len().min(SHOWN));
    html! {
        @if !place.visitor.is_admin() {
            (notice(Standing::Info, language.say("Only an administrator approves.", "仅管理员可批准。"), ""))
        }
        @for tool in first { (one(place, tool)) }
        @if let Some(last) = first.last().filter(|_| !rest.is_empty() || held.more > 0) {
            nav.pages aria-label=(language.say("Pages", "分页")) {
                a.btn rel="next" href=(with_query(&place.path("reviews"), &[("after", &last.name)])) {
                    (language.say("Next", "下一页")) " (" (number(rest.len() + held.more)) ")"
                }
            }
        }
    }
}

fn one(place: &Place, tool: &HeldTool) -> Markup {
    let language = place.visitor.language;
    let before = tool.approved.as_deref().map(members).unwrap_or_default();
    let lines = difference(&before, &members(&tool.held));
    let note = match language {
        Language::English => format!("{} UTC, by {}", time(tool.held_at_ms), tool.uploaded_by),
        Language::Chinese => format!("{} UTC，上传者 {}", time(tool.held_at_ms), tool.uploaded_by),
    };
    let name = html! {
        a.name href=(with_query(&place.path("catalog/tool"), &[("name", &tool.name)])) { (tool.name) } " "
        span.note { (tool.group) }
    };
    let content = html! {
        div.body {
            ul.chips { @for member in &tool.differs { li { (member) } } }
            (warnings(language, &tool.warnings))
        }
        @if lines.is_empty() { p.body.note { (language.say("Only the order of keys differs.", "仅键的顺序不同。")) } }
        @else { (diff_list(&lines)) }
        @if place.visitor.is_admin() { (verdicts(place, tool)) }
    };
    card(name, note, &content)
}

fn verdicts(place: &Place, tool: &HeldTool) -> Markup {
    let language = place.visitor.language;
    html! {
        form.bar method="post" action=(place.path("reviews")) {
            (token(&place.visitor))
            input type="hidden" name="name" value=(tool.name);
            input type="hidden" name="digest" value=(tool.held_digest);
            button.btn.primary type="submit" name="do" value="approve" { (language.say("Approve", "批准")) }
            button.btn.danger type="submit" name="do" value="reject" { (language.say("Reject", "拒绝")) }
        }
    }
}

/// The members of a tool's document.
fn members(document: &RawValue) -> Map<String, Value> {
    serde_json::from_str(document.get()).unwrap_or_default()
}

/// Approves or rejects the version that the page showed, and no other one.
pub(super) async fn decide(
    State(service): State<Toolrack>,
    place: Place,
    form: Form,
) -> Result<Response, Problem> {
    if !place.visitor.is_admin() {
        return Err(Problem::new(Code::Forbidden, "only an administrator approves or rejects"));
    }
    let verdict = match form.text("do") {
        "approve" => Some((Verdict::Approve, "approved")),
        "reject" => Some((Verdict::Reject, "rejected")),
        _ => None,
    };
    let (Some((verdict, done)), Some(digest)) = (verdict, Digest::from_hex(form.text("digest"))) else {
        return Err(Problem::new(Code::InvalidRequest, "this form asks for nothing that can be done"));
    };
    // As it was sent: a name may begin or end with white space.
    let name = form.all("name").next().unwrap_or_default().to_owned();
    let reviewed = ReviewedTool { group: None, name: name.clone(), digest };
    service.review(&place.visitor.actor, &place.scope, verdict, vec![reviewed], None).await?;
    Ok(go(&with_query(&place.path("reviews"), &[(done, &name)])))
}
