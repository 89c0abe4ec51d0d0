//! The base of a session: the listing that it was sent first, with the tools that this listing is about.
//!
//! A session keeps its base while nothing but the catalog changes, so that an edit of deferred tools costs no running
//! session its prompt cache; what is other than in the base is told as [`ListingChanges`]. A base is named by the digest
//! of its text, so all sessions that start from the same state share one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::digest::{Digest, head_text};
use super::grant::{Resolved, View};
use super::listing::FORMS;
use super::plan::PlacedListing;
use super::policy::ListingPlacement;
use super::target::Target;

/// Names of each kind in [`ListingChanges`], and in its text, which is paid for in every later turn.
const MAX_NAMED: usize = 50;
const MAX_TOLD: usize = 20;

/// A tier and a listing as a session was sent them, and the deferred tools of that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingBase {
    pub tier: u8,
    pub listing: PlacedListing,
    /// Wire name and head of the content's digest, by name.
    tools: Vec<(String, u64)>,
}

/// The stored form of a base.
#[derive(Serialize, Deserialize)]
struct Stored<T, L> {
    tier: u8,
    text: T,
    /// Whether it stands in the description of `tool_search`.
    inside: bool,
    tokens: usize,
    form: T,
    /// Digests as 16 hexadecimal digits.
    tools: L,
}

/// What happened to deferred tools since a session's listing was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListingChanges {
    /// Names as the model uses them, sorted; at most 50 of each kind.
    pub added: Vec<String>,
    /// Neither found nor called any more.
    pub removed: Vec<String>,
    pub changed: Vec<String>,
    /// How many more there are than are named.
    pub more: usize,
    /// One line for the end of the conversation. It tells of everything since the listing was made, so the latest one
    /// is enough.
    pub text: String,
}

impl ListingBase {
    /// The base that a session gets from the present state.
    pub fn of(tier: u8, listing: &PlacedListing, view: &View, target: Target) -> Self {
        let tools =
            deferred(view, target).into_iter().map(|(name, digest)| (name.to_owned(), digest)).collect();
        Self { tier, listing: listing.clone(), tools }
    }

    /// What names the base: the digest of its text.
    pub fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    /// The text that is stored.
    pub fn to_text(&self) -> String {
        let stored = Stored {
            tier: self.tier,
            text: self.listing.text.as_str(),
            inside: self.listing.placement == ListingPlacement::Bridge,
            tokens: self.listing.tokens,
            form: self.listing.form,
            tools: self
                .tools
                .iter()
                .map(|(name, digest)| (name.as_str(), head_text(*digest)))
                .collect::<Vec<_>>(),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads a stored text; nothing when another version wrote it.
    pub fn from_text(text: &str) -> Option<Self> {
        let stored: Stored<String, Vec<(String, String)>> = serde_json::from_str(text).ok()?;
        let form = FORMS.into_iter().find(|form| *form == stored.form)?;
        let placement = if stored.inside { ListingPlacement::Bridge } else { ListingPlacement::Separate };
        let listing = PlacedListing { text: stored.text, placement, tokens: stored.tokens, form };
        let tools = stored.tools.into_iter();
        let tools = tools.map(|(name, digest)| Some((name, u64::from_str_radix(&digest, 16).ok()?)));
        Some(Self { tier: stored.tier, listing, tools: tools.collect::<Option<_>>()? })
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.listing.text.len() + self.tools.iter().map(|(name, _)| name.len() + 40).sum::<usize>()
    }

    /// What a view has other than the base; nothing where a model that has the base knows all.
    ///
    /// A tool that stands in the array by now needs no telling, and one that cannot run at the moment is named in the
    /// answer's `unavailable`.
    pub fn changes(&self, view: &View, target: Target) -> Option<ListingChanges> {
        let present = deferred(view, target);
        let find = |name: &str| present.binary_search_by(|(known, _)| (*known).cmp(name)).ok();
        let (mut removed, mut changed) = (Vec::new(), Vec::new());
        for (name, digest) in &self.tools {
            match find(name).and_then(|at| present.get(at)) {
                Some((_, now)) if now == digest => {}
                Some(_) => changed.push(name.as_str()),
                None if is_of(view, name) => {}
                None => removed.push(name.as_str()),
            }
        }
        let known = |name: &str| self.tools.binary_search_by(|(known, _)| known.as_str().cmp(name)).is_ok();
        let added: Vec<&str> = present.iter().map(|(name, _)| *name).filter(|name| !known(name)).collect();
        if added.is_empty() && removed.is_empty() && changed.is_empty() {
            return None;
        }
        let kinds = [("added", &added), ("removed", &removed), ("changed", &changed)];
        let named = |names: &[&str]| names.iter().take(MAX_NAMED).map(|name| (*name).to_owned()).collect();
        Some(ListingChanges {
            added: named(&added),
            removed: named(&removed),
            changed: named(&changed),
            more: kinds.iter().map(|(_, names)| names.len().saturating_sub(MAX_NAMED)).sum(),
            text: told(&kinds, &target.search_name(&view.bridge_prefix)),
        })
    }
}

/// The deferred tools that are to be seen now: wire name and head of the digest, by name.
fn deferred(view: &View, target: Target) -> Vec<(&str, u64)> {
    // What the target does not take is reached like deferred tools, also where it is core.
    let tools = view.visible().filter(|(_, tool)| !tool.core || tool.for_target(target).left_out);
    let mut tools: Vec<(&str, u64)> =
        tools.map(|(_, tool)| (tool.wire_name(), tool.tool.tool.digest().short())).collect();
    tools.sort_unstable();
    tools
}

/// Whether a tool of the view has this wire name.
fn is_of(view: &View, name: &str) -> bool {
    match view.resolve_tool(name) {
        Resolved::Tool(id) => view.get(id).is_some_and(|tool| tool.wire_name() == name),
        _ => false,
    }
}

/// The line for the conversation. Wire names cannot break it.
fn told(kinds: &[(&str, &Vec<&str>)], search: &str) -> String {
    let part = |(what, names): &(&str, &Vec<&str>)| {
        let shown = names.iter().take(MAX_TOLD).copied().collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(MAX_TOLD) {
            0 => format!("{what} {shown}"),
            more => format!("{what} {shown} and {more} more"),
        }
    };
    let parts: Vec<String> = kinds.iter().filter(|(_, names)| !names.is_empty()).map(part).collect();
    let mut text = format!("Since the tools were listed: {}.", parts.join("; "));
    if kinds.iter().any(|(_, names)| names.len() > MAX_TOLD) {
        text.push_str(&format!(" {search} finds all that there are now."));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::core::catalog::{Catalog, read_upload, replace};
    use crate::core::format::ingest::EntryLimits;
    use crate::core::grant::{Catalogs, Selection};
    use crate::core::plan::Plan;
    use crate::core::policy::{Layer, Policy, merge, parse};
    use crate::core::profile::Profile;

    fn policy(config: &Value) -> Policy {
        merge(&parse(config).unwrap().layer, &Layer::default())
    }

    fn tool(name: &str, description: &str) -> Value {
        json!({"name": name, "group": "g", "description": description})
    }

    fn numbered(from: usize, to: usize) -> Vec<Value> {
        (from..to).map(|at| tool(&format!("t{at:03}"), "Does it.")).collect()
    }

    fn view(tools: &[Value], config: &Value, selection: Value) -> View {
        let texts: Vec<String> = tools.iter().map(Value::to_string).collect();
        let limits = EntryLimits { bytes: 262_144, depth: 64 };
        let upload = read_upload(texts.iter().map(String::as_str), limits, "/tools");
        let user = Arc::new(replace(&Catalog::default(), upload.tools).catalog);
        let selection: Selection = serde_json::from_value(selection).unwrap();
        View::build(
            &Catalogs::Stored { user, project: Arc::default() },
            &policy(config),
            &[],
            &[selection],
            Profile::Generic,
        )
    }

    fn base(view: &View, config: &Value) -> ListingBase {
        let plan = Plan::build(view, &policy(config), Target::default(), 128_000);
        ListingBase::of(plan.tier, plan.listing.as_ref().unwrap(), view, Target::default())
    }

    #[test]
    fn a_base_reads_back_and_tells_what_changed_since() {
        let config = json!({"enabled": "on", "bridge_prefix": "my_"});
        let before = view(&numbered(0, 20), &config, json!({}));
        let base = base(&before, &config);
        assert_eq!(ListingBase::from_text(&base.to_text()).as_ref(), Some(&base));
        assert_eq!(ListingBase::from_text("{}"), None);
        assert_eq!(base.changes(&before, Target::default()), None);

        let mut tools = numbered(2, 20);
        tools[0]["description"] = json!("Does something else.");
        tools.extend([tool("odd name", "New."), tool("zeta", "New.")]);
        let after = view(&tools, &config, json!({}));
        let changes = base.changes(&after, Target::default()).unwrap();
        let wire = after.visible().find(|(_, tool)| tool.stored_name() == "odd name").unwrap().1.wire_name();
        assert_eq!((changes.added, changes.more), (vec![wire.to_owned(), "zeta".to_owned()], 0));
        assert_eq!(
            (changes.removed, changes.changed),
            (vec!["t000".into(), "t001".into()], vec!["t002".into()])
        );
        assert_eq!(
            changes.text,
            format!("Since the tools were listed: added {wire}, zeta; removed t000, t001; changed t002.")
        );
    }

    #[test]
    fn core_and_unavailable_tools_are_no_changes() {
        let config = json!({"enabled": "on", "core": ["core*"]});
        let before = view(&[numbered(0, 20), vec![tool("core_a", "A.")]].concat(), &config, json!({}));
        let base = base(&before, &config);
        // Loaded always from now on, or not able to run: both are of the grant, and not to be told as gone.
        let mut tools = [numbered(0, 20), vec![tool("core_b", "B.")]].concat();
        tools[12]["always_load"] = json!(true);
        let selection = json!({"unavailable": ["t00*", "late*"]});
        assert_eq!(
            base.changes(&view(&tools, &config, selection.clone()), Target::default())
                .map(|changes| changes.text),
            None
        );
        tools.push(tool("later", "Cannot run yet."));
        assert_eq!(base.changes(&view(&tools, &config, selection), Target::default()), None);
        // A tool that left the array is in no list any more.
        let left = view(
            &[numbered(0, 20), vec![tool("core_a", "A.")]].concat(),
            &json!({"enabled": "on"}),
            json!({}),
        );
        assert_eq!(base.changes(&left, Target::default()).unwrap().added, ["core_a"]);
    }

    #[test]
    fn many_changes_are_counted_and_few_are_named() {
        let config = json!({"enabled": "on"});
        let base = base(&view(&numbered(0, 70), &config, json!({})), &config);
        let changes = base.changes(&view(&numbered(70, 131), &config, json!({})), Target::default()).unwrap();
        assert_eq!((changes.added.len(), changes.removed.len(), changes.more), (50, 50, 11 + 20));
        assert!(changes.text.contains("t089 and 41 more; removed t000, "), "{}", changes.text);
        assert!(changes.text.ends_with("t019 and 50 more. tool_search finds all that there are now."));
    }
}
