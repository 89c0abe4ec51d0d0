//! A form that was refused: its page again, with what was typed and a notice that names the fields. Secrets are typed anew.
//! And a draft that an earlier version stored and this one cannot read.

use axum::response::Response;
use maud::{Markup, html};

use super::{Step, made_for, matcher, step_page};
use crate::http::problem::{Code, Problem};
use crate::service::SetupDraft;
use crate::ui::language::Language;
use crate::ui::parts::{State as Standing, notice};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// Longest text that a page gives back, in bytes; a longer one is pasted again.
pub(super) const GIVEN_BACK_BYTES: usize = 1024 * 1024;

/// Whether a problem is one that somebody mends in the form: all but those about who asks, and those of the service.
pub(super) fn is_mended_in_the_form(problem: &Problem) -> bool {
    let elsewhere = matches!(
        problem.code(),
        Code::Unauthorized
            | Code::Forbidden
            | Code::NotFound
            | Code::Conflict
            | Code::PreconditionFailed
            | Code::RateLimited
    );
    problem.code().status().is_client_error() && !elsewhere
}

/// What is wrong, each fault with the field that it is about. `field`: what the page calls the field at a pointer.
pub(super) fn refusal(
    language: Language,
    title: &str,
    problem: &Problem,
    field: impl Fn(&str) -> Option<String>,
) -> Markup {
    notice(
        Standing::Bad,
        title,
        html! {
            @if problem.errors().is_empty() { (tell(language, problem.detail())) }
            @else {
                ul.lines {
                    @for error in problem.errors() {
                        li {
                            @match field(&error.pointer) {
                                Some(name) => b { (name) },
                                None => code { (error.pointer) },
                            }
                            ": " (tell(language, &error.detail))
                        }
                    }
                }
            }
        },
    )
}

/// What a draft was not kept for.
pub(super) fn not_kept(language: Language, problem: &Problem) -> Markup {
    let title = language.say("Not kept:", "未保存：");
    refusal(language, title, problem, |pointer| setting_name(language, pointer))
}

/// What the steps call the setting at a pointer into the config.
pub(super) fn setting_name(language: Language, pointer: &str) -> Option<String> {
    let pointer = pointer.strip_prefix("/config").unwrap_or(pointer);
    let mut parts = pointer.split('/').skip(1);
    let name = match (parts.next()?, parts.next(), parts.next()) {
        ("groups", Some(_), Some("name")) => language.say("Name of a group", "分组名称"),
        ("groups", Some(_), Some("description")) => {
            language.say("Description for the listing", "清单中的描述")
        }
        ("groups", ..) => language.say("Groups", "分组"),
        ("core", ..) => language.say("Core tools", "核心工具"),
        ("deny", ..) => language.say("Left out", "已排除"),
        ("aliases", Some(tool), _) => {
            let tool = tool.replace("~1", "/").replace("~0", "~");
            return Some(format!("{} {tool}", language.say("Alias of", "别名：")));
        }
        ("max_warm_tools", ..) => language.say("Warm tools at most", "热集上限"),
        ("context_window", ..) => language.say("Context window, tokens", "上下文窗口（词元）"),
        ("preload", Some("top_k"), _) => language.say("How many", "数量"),
        ("warm_policy", ..) => {
            language.say("When does a found tool enter the array?", "找到的工具何时进入数组？")
        }
        ("profile", ..) => language.say("Provider", "模型服务商"),
        ("matcher", Some(_), _) => return matcher::field_name(language, pointer),
        _ => return None,
    };
    Some(name.to_owned())
}

/// A step whose draft cannot be read, so that only the draft can be mended or thrown away.
///
/// # Errors
/// What is wrong with something else than the draft.
pub(super) fn unreadable(
    place: &Place,
    step: Step,
    draft: &SetupDraft,
    problem: Problem,
) -> Result<Response, Problem> {
    let is_of_draft = |pointer: &str| pointer.starts_with("/config") || pointer.starts_with("/tools");
    let mut errors = problem.errors().iter();
    if place.visitor.part
        || !is_mended_in_the_form(&problem)
        || !errors.any(|error| is_of_draft(&error.pointer))
    {
        return Err(problem);
    }
    let language = place.visitor.language;
    let title = language.say("This draft cannot be used as it is:", "此草稿目前无法使用：");
    let content = html! {
        (refusal(language, title, &problem, |pointer| setting_name(language, pointer)))
        @if step == Step::Groups {
            form method="post" action=(place.path(step.path())) {
                (made_for(place, draft))
                button.btn type="submit" name="do" value="again" {
                    (language.say("Forget its groups, core tools and toolsets", "清除其分组、核心工具和工具集"))
                }
            }
        }
    };
    let about = language
        .say("Mend what is named in its step, or throw the draft away.", "请在相应步骤中改正，或丢弃草稿。");
    Ok(step_page(place, step, draft, (step.name(place), about), &content, None))
}
