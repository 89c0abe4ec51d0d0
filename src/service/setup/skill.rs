//! The setup skill: a text that leads an agent through the setup flow.

use crate::core::id::Id;

const TEXT: &str = include_str!("skill.md");

/// The text for a user and a project; the placeholder of one that is not named stays.
pub fn setup_skill(user: Option<&Id>, project: Option<&Id>) -> String {
    let mut text = TEXT.to_owned();
    for (placeholder, id) in [("{user}", user), ("{project}", project)] {
        // An id has no character that Markdown, JSON or a path would take for more.
        if let Some(id) = id {
            text = text.replace(placeholder, id.as_str());
        }
    }
    text
}
