//! The listing: the text that tells the model which deferred tools exist, within a budget of tokens.
//!
//! Every group starts full; while the text is over budget the group with the largest rendering goes down one step, so
//! that one huge server never takes a small server's lines away. Deterministic, and every line is safe: labels, names
//! and descriptions went through `text`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::catalog::listing_line;
use super::format::native::Exposure;
use super::target::Target;
use super::text::{clip, label, one_line};
use super::tokens;

/// How much of a group is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// One line per tool: `- name: short description`.
    Full,
    /// All names on one line.
    Names,
    /// One line per group: `group (n tools) - description`.
    Lines,
}

/// What [`Listing::form`] can say.
pub const FORMS: [&str; 4] = ["full", "names", "lines", "mixed"];

/// A deferred tool, ready to be listed.
#[derive(Debug, Clone, Copy)]
pub struct ListedTool<'a> {
    pub wire_name: &'a str,
    pub short: &'a str,
    /// Tokens of the tool's line and of its name, as stored with it.
    pub line_tokens: usize,
    pub name_tokens: usize,
}

/// A group with its deferred tools, in order of their names.
#[derive(Debug, Clone)]
pub struct ListedGroup<'a> {
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub tools: Vec<ListedTool<'a>>,
}

/// A rendered listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub text: String,
    pub tokens: usize,
    /// One of [`FORMS`].
    pub form: &'static str,
    /// 1 when every group is full, 2 when the worst one shows names, 3 when one shows less.
    pub tier: u8,
    /// Whether only the header stands there because not even that fits the budget with a group.
    pub header_only: bool,
}

/// The first line of every listing: how its tools are reached.
///
/// `some_left_out` says that the provider does not take some of them.
pub fn header(target: Target, bridge_prefix: &str, some_left_out: bool) -> String {
    if target.exposure == Exposure::Native {
        let search = target.search_name(bridge_prefix);
        let others = if some_left_out {
            format!("; those that are not found so with {bridge_prefix}tool_call")
        } else {
            String::new()
        };
        return format!(
            "These tools are available too, though they are not loaded unless they also stand in your tool list: find them \
             with {search} (a name of this list finds its tool), then call them directly{others}.\n"
        );
    }
    format!(
        "These tools are available too, though they are not in your tool list unless they also stand there: call one \
         by name with {bridge_prefix}tool_call ({bridge_prefix}tool_describe shows its arguments), or find more with \
         {bridge_prefix}tool_search.\n"
    )
}

struct Rendering<'a> {
    group: &'a ListedGroup<'a>,
    label: String,
    description: String,
    form: Form,
    dropped: bool,
    tokens: usize,
}

impl Rendering<'_> {
    fn head(&self) -> String {
        if self.description.is_empty() {
            self.label.clone()
        } else {
            format!("{} - {}", self.label, self.description)
        }
    }

    fn write(&self, out: &mut String) {
        match self.form {
            Form::Full => {
                out.push_str(&self.head());
                out.push_str(":\n");
                self.group
                    .tools
                    .iter()
                    .for_each(|tool| out.push_str(&listing_line(tool.wire_name, tool.short)));
            }
            Form::Names => {
                out.push_str(&self.label);
                let names = self.group.tools.iter().map(|tool| tool.wire_name);
                names.enumerate().for_each(|(at, name)| {
                    out.push_str(if at == 0 { ": " } else { ", " });
                    out.push_str(name);
                });
                out.push('\n');
            }
            Form::Lines => {
                let count = self.group.tools.len();
                let plural = if count == 1 { "" } else { "s" };
                out.push_str(&format!("{} ({count} tool{plural})", self.label));
                if !self.description.is_empty() {
                    out.push_str(" - ");
                    out.push_str(&self.description);
                }
                out.push('\n');
            }
        }
    }

    /// Tokens of the present form, from stored counts where there are many tools.
    fn count(&self) -> usize {
        match self.form {
            Form::Full => {
                let head = tokens::count(&format!("{}:\n", self.head()));
                head + self.group.tools.iter().map(|tool| tool.line_tokens).sum::<usize>()
            }
            Form::Names => {
                let head = tokens::count(&self.label) + 1;
                head + self.group.tools.iter().map(|tool| tool.name_tokens).sum::<usize>()
            }
            Form::Lines => {
                let mut line = String::new();
                self.write(&mut line);
                tokens::count(&line)
            }
        }
    }
}

/// Renders the listing of groups (sorted by name) below a [`header`], within `budget` tokens; nothing when there is nothing
/// to list.
pub fn render(groups: &[ListedGroup<'_>], budget: usize, header: String) -> Option<Listing> {
    if groups.is_empty() {
        return None;
    }
    let (renderings, fitted) = fit(groups, budget, &header);
    Some(match fitted {
        Some((text, tokens)) => {
            let (form, tier) = summary(&renderings);
            Listing { text, tokens, form, tier, header_only: false }
        }
        None => {
            let tokens = tokens::count(&header);
            Listing { text: header, tokens, form: "lines", tier: 3, header_only: true }
        }
    })
}

/// Takes groups down until the text fits; no text where not even the header fits with a group.
fn fit<'a>(
    groups: &'a [ListedGroup<'a>],
    budget: usize,
    header: &str,
) -> (Vec<Rendering<'a>>, Option<(String, usize)>) {
    let mut renderings: Vec<Rendering<'a>> = groups.iter().map(start).collect();
    // Counts of parts may differ from the count of the whole by a token here and there: the whole text decides, and
    // what it is over by is taken off the budget of the parts.
    let mut allowed = budget.saturating_sub(tokens::count(header));
    loop {
        let fits = shrink(&mut renderings, allowed);
        let text = write(header, &renderings);
        let tokens = tokens::count(&text);
        if fits && tokens <= budget {
            return (renderings, Some((text, tokens)));
        }
        if !fits || allowed == 0 {
            return (renderings, None);
        }
        allowed = allowed.saturating_sub(tokens.saturating_sub(budget).max(1));
    }
}

/// What a group would cost in each form, in tokens, and which one it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCost {
    pub full: usize,
    pub names: usize,
    pub line: usize,
    /// Nothing where the group is among those that are only counted.
    pub shown: Option<Form>,
}

/// What a listing within `budget` makes of its groups, in their order.
pub fn costs(groups: &[ListedGroup<'_>], budget: usize, header: &str) -> Vec<GroupCost> {
    let (renderings, fitted) = fit(groups, budget, header);
    let cost = |mut rendering: Rendering<'_>| {
        let shown = (fitted.is_some() && !rendering.dropped).then_some(rendering.form);
        let mut of = |form| {
            rendering.form = form;
            rendering.count()
        };
        GroupCost { full: of(Form::Full), names: of(Form::Names), line: of(Form::Lines), shown }
    };
    renderings.into_iter().map(cost).collect()
}

/// Tokens of a listing that shows every group in one form, whatever the budget.
pub fn uniform(groups: &[ListedGroup<'_>], form: Form, header: &str) -> usize {
    let renderings: Vec<Rendering<'_>> =
        groups.iter().map(|group| Rendering { form, ..start(group) }).collect();
    tokens::count(&write(header, &renderings))
}

fn start<'a>(group: &'a ListedGroup<'a>) -> Rendering<'a> {
    let description =
        group.description.map(|text| clip(&one_line(text), 120).into_owned()).unwrap_or_default();
    let mut rendering = Rendering {
        group,
        label: label(group.name),
        description,
        form: Form::Full,
        dropped: false,
        tokens: 0,
    };
    rendering.tokens = rendering.count();
    rendering
}

/// Takes groups down step by step until their sum is within `allowed`; whether it is in the end.
fn shrink(renderings: &mut [Rendering<'_>], allowed: usize) -> bool {
    let mut total: usize =
        renderings.iter().filter(|rendering| !rendering.dropped).map(|rendering| rendering.tokens).sum();
    let mut largest: BinaryHeap<(usize, Reverse<usize>)> = renderings
        .iter()
        .enumerate()
        .filter(|(_, rendering)| rendering.form < Form::Lines)
        .map(|(at, rendering)| (rendering.tokens, Reverse(at)))
        .collect();
    while total > allowed
        && let Some((_, Reverse(at))) = largest.pop()
    {
        let rendering = &mut renderings[at];
        rendering.form = if rendering.form == Form::Full { Form::Names } else { Form::Lines };
        total -= rendering.tokens;
        rendering.tokens = rendering.count();
        total += rendering.tokens;
        if rendering.form < Form::Lines {
            largest.push((rendering.tokens, Reverse(at)));
        }
    }
    if total <= allowed {
        return true;
    }
    // Lines go now, the smallest groups first.
    let mut order: Vec<usize> = (0..renderings.len()).filter(|at| !renderings[*at].dropped).collect();
    order.sort_by_key(|at| (renderings[*at].group.tools.len(), *at));
    let already = renderings.len() - order.len();
    for (dropped, at) in (already..).zip(order) {
        if total + more_tokens(dropped) <= allowed {
            return true;
        }
        renderings[at].dropped = true;
        total -= renderings[at].tokens;
    }
    more_tokens(renderings.len()) <= allowed
}

fn more_line(dropped: usize) -> String {
    let plural = if dropped == 1 { "" } else { "s" };
    format!("and {dropped} more group{plural}\n")
}

fn more_tokens(dropped: usize) -> usize {
    if dropped == 0 { 0 } else { tokens::count(&more_line(dropped)) }
}

fn write(header: &str, renderings: &[Rendering<'_>]) -> String {
    let mut text = header.to_owned();
    renderings.iter().filter(|rendering| !rendering.dropped).for_each(|rendering| rendering.write(&mut text));
    let dropped = renderings.iter().filter(|rendering| rendering.dropped).count();
    if dropped > 0 {
        text.push_str(&more_line(dropped));
    }
    text
}

fn summary(renderings: &[Rendering<'_>]) -> (&'static str, u8) {
    let form = |rendering: &Rendering<'_>| if rendering.dropped { Form::Lines } else { rendering.form };
    let best = renderings.iter().map(form).min().unwrap_or(Form::Full);
    let worst = renderings.iter().map(form).max().unwrap_or(Form::Full);
    let name = match (best, worst) {
        (Form::Full, Form::Full) => "full",
        (Form::Names, Form::Names) => "names",
        (Form::Lines, Form::Lines) => "lines",
        _ => "mixed",
    };
    (name, worst as u8 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head() -> String {
        header(Target::default(), "", false)
    }

    struct Made {
        group: String,
        description: Option<String>,
        tools: Vec<(String, String)>,
    }

    fn listed(made: &[Made]) -> Vec<ListedGroup<'_>> {
        made.iter()
            .map(|made| ListedGroup {
                name: &made.group,
                description: made.description.as_deref(),
                tools: made
                    .tools
                    .iter()
                    .map(|(name, short)| ListedTool {
                        wire_name: name,
                        short,
                        line_tokens: tokens::count(&listing_line(name, short)),
                        name_tokens: tokens::count(&format!(", {name}")),
                    })
                    .collect(),
            })
            .collect()
    }

    fn group(name: &str, count: usize) -> Made {
        let tools = (0..count)
            .map(|at| (format!("{name}_tool_{at}"), format!("Does thing {at} of {name}.")))
            .collect();
        Made { group: name.to_owned(), description: Some(format!("All about {name}.")), tools }
    }

    #[test]
    fn a_huge_group_shrinks_before_a_small_one() {
        let made = [group("bakery", 3), group("megacloud", 400)];
        let groups = listed(&made);
        let full = render(&groups, 60_000, head()).unwrap();
        assert_eq!((full.form, full.tier), ("full", 1));
        let names = render(&groups, 4_000, head()).unwrap();
        assert_eq!((names.form, names.tier), ("mixed", 2));
        assert!(
            names.text.contains("- bakery_tool_0: Does thing 0 of bakery.")
                && names.text.contains("megacloud: megacloud_tool_0, ")
        );
        let lines = render(&groups, 250, head()).unwrap();
        assert_eq!((lines.form, lines.tier), ("mixed", 3));
        assert!(lines.text.contains("megacloud (400 tools) - All about megacloud.\n"));
        assert!(lines.text.contains("bakery_tool_2"));
    }

    #[test]
    fn groups_that_do_not_fit_are_counted_and_the_largest_stay() {
        let made: Vec<Made> = (0..200).map(|at| group(&format!("server{at:03}"), 1 + at % 7)).collect();
        let listing = render(&listed(&made), 500, head()).unwrap();
        assert_eq!((listing.form, listing.tier), ("lines", 3));
        assert!(listing.text.contains("(7 tools)") && listing.text.contains(" more groups\n"));
        assert!(!listing.text.contains("(1 tool)"));
    }

    #[test]
    fn a_budget_below_the_header_leaves_the_header() {
        let made = [group("a", 1)];
        for budget in [0, 10, head().len() / 8] {
            let listing = render(&listed(&made), budget, head()).unwrap();
            assert!(listing.header_only);
            assert_eq!(listing.text, head());
        }
        assert_eq!(render(&[], 100, head()), None);
    }

    proptest! {
        #[test]
        fn never_over_budget_and_never_a_forged_line(
            made in proptest::collection::vec(
                (any::<String>(), proptest::option::of(any::<String>()), proptest::collection::vec(("[a-zA-Z_][a-zA-Z0-9_-]{0,20}", any::<String>()), 1..8)),
                1..12,
            ),
            budget in 0usize..600,
        ) {
            let made: Vec<Made> = made
                .into_iter()
                .map(|(group, description, tools)| Made {
                    group,
                    description,
                    tools: tools.into_iter().map(|(name, text)| (name, super::super::text::short_description(&text))).collect(),
                })
                .collect();
            let listing = render(&listed(&made), budget, head()).unwrap();
            prop_assert_eq!(listing.tokens, tokens::count(&listing.text));
            prop_assert!(listing.header_only || listing.tokens <= budget);
            let entries = listing.text.lines().filter(|line| line.starts_with("- ")).count();
            let tools: usize = made.iter().map(|made| made.tools.len()).sum();
            prop_assert!(entries <= tools, "{}", listing.text);
            let mut names: Vec<String> = listing.text.lines().filter_map(|line| line.strip_prefix("- ")).map(|line| line.split(':').next().unwrap_or(line).to_owned()).collect();
            names.retain(|name| !made.iter().any(|made| made.tools.iter().any(|(known, _)| known == name)));
            prop_assert!(names.is_empty(), "{:?}", names);
        }
    }
}
