//! Names that a reader takes for one another.
//!
//! Owns what makes two names alike: the same skeleton (Unicode Technical Standard 39, section 4), or nothing but case, `-` and `_`
//! between them. It says nothing about who may have a name.

use std::collections::HashMap;

use super::catalog::Catalog;
use super::grant::BridgeTool;
use super::management::ManagementTool;
use super::text::visible;
use super::tool::ToolKey;
use super::warning::Warning;

/// Sets of one catalog that are told.
const MAX_TOLD: usize = 50;

/// Characters of a name that are compared.
const MAX_CHARS: usize = 256;

/// Two names that are taken for one another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lookalike<'a> {
    name: &'a str,
    /// The first name that it looks like.
    like: &'a str,
    /// How many further names look like that one.
    others: usize,
    /// What `like` is where it is a tool of ours: `bridge` or `management`.
    own: Option<&'static str>,
}

/// Of which names of a set it is told that they look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Its second name, or the only one beside that of a tool of ours: once for the set.
    One,
    /// All of them: each is somebody's tool.
    Each,
}

/// Sets of names that look alike, in the order of `names`. Only sets with a name that `concerns` are told. `names` are unique.
fn lookalikes<'a>(names: &[&'a str], of: Of, concerns: impl Fn(&str) -> bool) -> Vec<Lookalike<'a>> {
    let mut sets: HashMap<String, Vec<&'a str>> = HashMap::new();
    for name in names {
        let (shape, folded) = (shape(name), folded(name));
        // `I` and `l` are one in shape, `I` and `i` in case: a name stands under both, told apart by the letter before.
        for key in [format!("s{shape}"), format!("f{folded}")] {
            sets.entry(key).or_default().push(name);
        }
    }
    let mut own: HashMap<String, (&'static str, &'static str)> = HashMap::new();
    let bridge = BridgeTool::ALL.map(|tool| (tool.base_name(), "bridge"));
    let management = ManagementTool::ALL.map(|tool| (tool.base_name(), "management"));
    for (name, kind) in bridge.into_iter().chain(management) {
        own.insert(format!("s{}", shape(name)), (name, kind));
        own.insert(format!("f{}", folded(name)), (name, kind));
    }
    let mut told: HashMap<&str, Lookalike<'a>> = HashMap::new();
    for (key, set) in &sets {
        if !set.iter().any(|name| concerns(name)) {
            continue;
        }
        let mut found = match (own.get(key), set.as_slice()) {
            (Some((like, kind)), names) => {
                let others = names.len().saturating_sub(1);
                let alike = |name: &&'a str| Lookalike { name, like, others, own: Some(kind) };
                names.iter().map(alike).collect()
            }
            (None, [first, second, others @ ..]) => {
                let alike = |name, like| Lookalike { name, like, others: others.len(), own: None };
                let later = others.iter().map(|name| alike(*name, *first));
                [alike(*second, *first), alike(*first, *second)].into_iter().chain(later).collect()
            }
            _ => Vec::new(),
        };
        if of == Of::One {
            found.truncate(1);
        }
        for found in found {
            // The larger of two sets that a name is told for.
            let known = told.entry(found.name).or_insert_with(|| found.clone());
            if (found.own.is_some(), found.others, known.like)
                > (known.own.is_some(), known.others, found.like)
            {
                *known = found;
            }
        }
    }
    names.iter().filter_map(|name| told.remove(name)).collect()
}

/// The warnings about a catalog's stored names, as far as tools that `concerns` names take part.
pub fn warnings(catalog: &Catalog, concerns: impl Fn(&ToolKey) -> bool) -> Vec<Warning> {
    let told = told(catalog, Of::One, concerns);
    let more = told.len().saturating_sub(MAX_TOLD);
    let named = told.into_iter().take(MAX_TOLD);
    let mut warnings: Vec<Warning> =
        named.map(|(name, detail)| Warning::new("lookalike_name", detail).for_tool(name)).collect();
    if more > 0 {
        warnings.push(Warning::new("more_warnings", format!("{more} more sets of names look alike")));
    }
    warnings
}

/// Every stored name of a catalog that looks like another one, and what is told of it.
pub(super) fn of_each(catalog: &Catalog) -> Vec<(&str, String)> {
    told(catalog, Of::Each, |_| true)
}

/// The sets of a catalog's stored names that look alike and that `concerns` a tool of: names that it is told for, and what is told.
fn told(catalog: &Catalog, of: Of, concerns: impl Fn(&ToolKey) -> bool) -> Vec<(&str, String)> {
    let names: Vec<&str> = catalog.tools().iter().map(|tool| &*tool.stored_name).collect();
    let group = |name: &str| catalog.get(name).map_or("", |tool| tool.tool.group());
    let found =
        lookalikes(&names, of, |name| catalog.get(name).is_some_and(|tool| concerns(&tool.tool.key())));
    let tell = |Lookalike { name, like, others, own }| {
        let mut detail = if let Some(kind) = own {
            format!("`{name}` of `{}` is easily taken for the {kind} tool `{like}`", group(name))
        } else {
            let (of, like_of) = (group(name), group(like));
            format!("`{name}` of `{of}` is easily taken for `{like}` of `{like_of}`")
        };
        if others > 0 {
            detail.push_str(&format!(", and so are {others} more"));
        }
        (name, detail)
    };
    found.into_iter().map(tell).collect()
}

/// A name by the shape of its characters.
fn shape(name: &str) -> String {
    let name: String = visible(name).chars().take(MAX_CHARS).collect();
    unicode_security::skeleton(&name).collect()
}

/// A name without what many readers pass over: case, `-` and `_`.
fn folded(name: &str) -> String {
    let lower: String = visible(name)
        .chars()
        .take(MAX_CHARS)
        .flat_map(char::to_lowercase)
        .filter(|c| !is_joint(*c))
        .collect();
    let skeleton = unicode_security::skeleton(&lower);
    skeleton.flat_map(char::to_lowercase).filter(|c| !is_joint(*c)).collect()
}

fn is_joint(character: char) -> bool {
    matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&str]) -> Vec<(String, String)> {
        let all = lookalikes(names, Of::One, |_| true);
        all.iter().map(|found| (found.name.to_owned(), found.like.to_owned())).collect()
    }

    #[test]
    fn twins_to_the_eye_are_told() {
        for (one, other) in [
            ("search", "se\u{0430}rch"),
            ("Search", "search"),
            ("get_user", "get-user"),
            ("getUser", "get_user"),
            ("list_I", "list_l"),
            ("pay\u{200b}", "pay"),
            ("Ｓend", "send"),
            ("tool_searcһ", "tool_search"),
        ] {
            let found = pairs(&[one, other]);
            assert!(!found.is_empty(), "{one} {other}");
        }
        for names in [["create", "delete"], ["get_user", "get_users"], ["发送", "发出"]] {
            assert_eq!(pairs(&names), [], "{names:?}");
        }
    }

    #[test]
    fn a_set_is_told_once_and_a_name_of_ours_goes_first() {
        let names = ["getUser", "get-user", "get_user"];
        let told = lookalikes(&names, Of::One, |_| true);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].name, told[0].like, told[0].others), ("get-user", "getUser", 1));
        assert!(lookalikes(&names, Of::One, |name| name == "other").is_empty());
        let each = lookalikes(&names, Of::Each, |_| true);
        let each: Vec<_> = each.iter().map(|found| (found.name, found.like, found.others)).collect();
        let all = [("getUser", "get-user", 1), ("get-user", "getUser", 1), ("get_user", "getUser", 1)];
        assert_eq!(each, all, "each is told of another one");
        let bridge = lookalikes(&["Tool-Search"], Of::One, |_| true);
        assert_eq!((bridge[0].like, bridge[0].own), ("tool_search", Some("bridge")));
        let management = lookalikes(&["toolrack-catalog"], Of::One, |_| true);
        assert_eq!((management[0].like, management[0].own), ("toolrack_catalog", Some("management")));
    }
}
