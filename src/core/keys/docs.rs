//! The table of roles as text, for the documentation.

use std::fmt::Write as _;

use super::{Access, Role, operation};

/// What each role may ask, as Markdown. `routes` are method, path and operation id, in the order of the API document.
pub fn documentation<'a>(routes: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let mut text = String::from("| role | what it is for |\n|---|---|\n");
    for role in Role::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{role}` | {} |", role.about());
    }
    text.push_str("\n| route |");
    for role in Role::ALL {
        let _ = write!(text, " {role} |");
    }
    text.push_str(" must cover |\n|---|");
    text.push_str(&"---|".repeat(Role::ALL.len() + 1));
    text.push('\n');
    for (method, path, id) in routes {
        let Some(row) = operation(id) else { continue };
        let _ = write!(text, "| `{method} {path}` |");
        for role in Role::ALL {
            let mark = match row.access {
                Access::Open => "no key",
                access if access.allows(role) => "yes",
                _ => "",
            };
            let _ = write!(text, " {mark} |");
        }
        let _ = writeln!(text, " {} |", row.covers.about());
    }
    text
}
