//! Listings of uploaded tools: within the budget, counted exactly, and each line tells of a group or a tool that is there.
//!
//! The input is `{"budget":300,"native":false,"groups":[{"name":…,"description":…,"tools":[{"name":…,"description":…}]}]}`.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::upload;
use crate::core::catalog::listing_line;
use crate::core::format::Format;
use crate::core::format::native::Exposure;
use crate::core::listing::{ListedGroup, ListedTool, Listing, header, render};
use crate::core::target::Target;
use crate::core::text::{is_hidden, label};
use crate::core::tokens;

pub(crate) fn check(input: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(input) else { return };
    let groups: Vec<&Value> =
        input.get("groups").and_then(Value::as_array).into_iter().flatten().take(20).collect();
    let entries: Vec<Value> = groups
        .iter()
        .flat_map(|group| {
            let tools = group.get("tools").and_then(Value::as_array).into_iter().flatten().take(20);
            tools.map(|tool| {
                json!({"name": tool.get("name"), "description": tool.get("description"), "group": group.get("name")})
            })
        })
        .collect();
    let catalog = upload::catalog(&Value::Array(entries).to_string());
    let mut listed: Vec<ListedGroup<'_>> = Vec::new();
    for tool in catalog.tools() {
        let name = tool.tool.group();
        let shown = ListedTool {
            wire_name: tool.wire_name(),
            short: &tool.short,
            line_tokens: tool.counts.line as usize,
            name_tokens: tool.counts.name as usize,
        };
        match listed.iter_mut().find(|known| known.name == name) {
            Some(known) => known.tools.push(shown),
            None => {
                let named = groups.iter().find(|group| group.get("name").is_some_and(|given| given == name));
                let description = named.and_then(|group| group.get("description")?.as_str());
                listed.push(ListedGroup { name, description, tools: vec![shown] });
            }
        }
    }
    listed.sort_by_key(|group| group.name);
    let budget = input.get("budget").and_then(Value::as_u64).unwrap_or(500).min(60_000) as usize;
    let native = input.get("native") == Some(&Value::Bool(true));
    let exposure = if native { Exposure::Native } else { Exposure::Bridge };
    let head = header(Target { exposure, ..Target::of(Format::Anthropic) }, "", native);
    let listing = render(&listed, budget, head.clone());
    assert_eq!(listing, render(&listed, budget, head.clone()), "two listings");
    match listing {
        None => assert!(listed.is_empty()),
        Some(listing) => lines(&listing, &listed, budget, &head),
    }
}

fn lines(listing: &Listing, groups: &[ListedGroup<'_>], budget: usize, head: &str) {
    assert_eq!(listing.tokens, tokens::count(&listing.text));
    assert!(listing.tokens <= budget || listing.header_only, "{listing:?} in {budget}");
    let hides =
        |c: char| (c.is_control() && c != '\n') || is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}');
    assert!(!listing.text.contains(hides), "{listing:?}");
    let body = listing.text.strip_prefix(head).expect("the header comes first");
    let mut tools: HashSet<String> = groups
        .iter()
        .flat_map(|group| &group.tools)
        .map(|tool| listing_line(tool.wire_name, tool.short).trim_end_matches('\n').to_owned())
        .collect();
    let mut heads = 0;
    for line in body.lines() {
        if line.starts_with("- ") {
            assert!(tools.remove(line), "a line of no tool, or twice: {line:?}");
            continue;
        }
        heads += 1;
        let is_rest =
            line.starts_with("and ") && (line.ends_with(" more group") || line.ends_with(" more groups"));
        let is_group = groups.iter().any(|group| is_line_of(line, group));
        assert!(is_group || is_rest, "a line of no group: {line:?}");
    }
    assert!(heads <= groups.len(), "{listing:?}");
}

/// `label:`, `label - description:`, `label: names`, `label (n tools)` or `label (n tools) - description`.
fn is_line_of(line: &str, group: &ListedGroup<'_>) -> bool {
    let Some(rest) = line.strip_prefix(&label(group.name)) else { return false };
    let count = group.tools.len();
    let counted = format!(" ({count} tool{})", if count == 1 { "" } else { "s" });
    let names: Vec<&str> = group.tools.iter().map(|tool| tool.wire_name).collect();
    rest == ":"
        || rest == format!(": {}", names.join(", "))
        || rest.strip_prefix(&counted).is_some_and(|rest| rest.is_empty() || rest.starts_with(" - "))
        || (rest.starts_with(" - ") && rest.ends_with(':'))
}
