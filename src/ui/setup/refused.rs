//! A form that was refused: its page again, with what was typed and a notice that names the fields. Secrets are typed anew.

use maud::{Markup, html};

use crate::http::problem::{Code, Problem};
use crate::ui::language::Language;
use crate::ui::parts::{State as Standing, notice};
use crate::ui::translate::tell;

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
