//! A scope's catalog for people: pages of it, and all that is known about one tool.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::core::catalog::{Catalog, CatalogTool, listing_line};
use crate::core::grant::{View, ViewTool};
use crate::core::hidden::{self, hidden_in_text};
use crate::core::id::Scope;
use crate::core::text::{clip, one_line};
use crate::core::tool::ToolKey;
use crate::core::tool_text::brief_description;
use crate::core::usage::{ToolCounts, day_of};
use crate::core::warning::Warning;
use crate::core::{lookalike, suspicion};
use crate::service::catalogs::ambiguous;
use crate::service::context::{Caller, Context, GrantFields};
use crate::service::lint::{LintedTool, lint_tool};
use crate::service::{Error, Kind, ToolProvenance, Toolrack, blocking, now_ms};
use crate::telemetry::warn_of;

/// Tools of one page.
pub const CATALOG_PAGE: usize = 50;

/// Days that finds and calls are told of, today included.
pub const BROWSED_DAYS: u32 = 30;

/// Tools with counts that are looked at: a catalog of the largest size, and as many that are gone.
const MOST_COUNTED: u32 = 40_000;

/// Tools of warm sets that are counted, so that a page does not read all sessions of a large user.
const MOST_WARM: u32 = 50_000;

/// Longest text that is looked for, in characters.
const MAX_TEXT_CHARS: usize = 200;

/// In which order tools are shown; those that are alike by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrowseOrder {
    #[default]
    Name,
    /// The largest first.
    Tokens,
    /// The most found first.
    Found,
}

/// Which tools of a catalog to show.
#[derive(Debug, Clone, Default)]
pub struct BrowseQuery {
    /// What name, description or alias hold, whatever its case; empty: all tools.
    pub text: String,
    /// The only group; empty: all.
    pub group: String,
    pub order: BrowseOrder,
    /// Only tools that no search found in [`BROWSED_DAYS`]; core ones, which nobody has to find, are not among them.
    pub never_found: bool,
    /// From 1 on; one that is not there is the last.
    pub page: usize,
}

/// A page of a catalog.
#[derive(Debug)]
pub struct BrowsePage {
    pub version: String,
    /// Of the whole catalog.
    pub tools: usize,
    /// Of all definitions, in the scope's usual form.
    pub tokens: u64,
    /// By name.
    pub groups: Vec<BrowsedGroup>,
    /// Tools of the whole catalog that no search found in [`BROWSED_DAYS`], core ones aside.
    pub unfound: usize,
    /// Tools of which a changed version waits for an approval.
    pub held: usize,
    /// Tools that fit the query.
    pub found: usize,
    pub page: usize,
    pub pages: usize,
    pub rows: Vec<BrowsedTool>,
}

/// A group of a catalog.
#[derive(Debug)]
pub struct BrowsedGroup {
    pub name: String,
    pub tools: usize,
    pub tokens: u64,
}

/// A tool in a list.
#[derive(Debug)]
pub struct BrowsedTool {
    /// Stored name.
    pub name: String,
    /// On one line, at most 200 characters.
    pub description: String,
    pub group: String,
    pub tokens: u64,
    /// Whether it always stands in the array.
    pub core: bool,
    /// Whether the config keeps it from agents.
    pub hidden: bool,
    /// Whether a changed version of it waits for an approval.
    pub held: bool,
    /// Sessions of the user that it is warm in; 0 for a project's tool, whose sessions belong to many users.
    pub warm: u64,
    /// Queries that found it, and calls.
    pub used: ToolCounts,
    /// Milliseconds since 1970; absent for what was stored before this was written down.
    pub first_seen_ms: Option<i64>,
    pub changed_at_ms: Option<i64>,
}

/// All that is known about a tool.
#[derive(Debug)]
pub struct ToolSheet {
    /// Stored name.
    pub name: String,
    /// The name that providers see, where it is another one.
    pub wire_name: Option<String>,
    /// The uploaded name, where it is another one.
    pub uploaded_name: Option<String>,
    /// The group that the config gives.
    pub group: String,
    /// As uploaded.
    pub description: String,
    /// The JSON Schema of the arguments as uploaded.
    pub parameters: String,
    /// The format that `sent` is in.
    pub format: &'static str,
    /// JSON as it stands in the array; absent where the provider does not take the tool.
    pub sent: Option<String>,
    pub tokens: u64,
    pub core: bool,
    pub hidden: bool,
    /// Its line in the listing.
    pub line: String,
    /// What else it is called: by the upload, and by the config.
    pub aliases: Vec<String>,
    pub provenance: Option<ToolProvenance>,
    /// What the catalog's upload warned of, about this tool.
    pub warnings: Vec<Warning>,
    /// What of it the provider would not take as it is.
    pub lint: LintedTool,
}

/// A tool of the catalog with what the config makes of it.
struct Entry<'a> {
    tool: &'a Arc<CatalogTool>,
    seen: Option<&'a ViewTool>,
    group: &'a str,
}

impl<'a> Entry<'a> {
    fn of(view: &'a View, part: u8, tool: &'a Arc<CatalogTool>) -> Self {
        let ids = view.by_key(&tool.tool.key());
        let seen = ids.into_iter().filter_map(|id| view.get(id)).find(|seen| seen.part == part);
        let group = seen.map_or_else(|| tool.tool.group(), |seen| view.group(seen));
        Self { tool, seen, group }
    }

    fn tokens(&self, context: &Context) -> u64 {
        let made = match self.seen {
            Some(seen) => seen.for_target(context.target),
            None => self.tool.for_target(context.target),
        };
        made.tokens as u64
    }

    fn holds(&self, text: &str) -> bool {
        let holds = |field: &str| field.to_lowercase().contains(text);
        let tool = &self.tool.tool;
        holds(&self.tool.stored_name)
            || holds(self.tool.wire_name())
            || holds(&tool.description())
            || tool.other_names().iter().any(|name| holds(name))
    }
}

/// Counts by tool.
type Used = HashMap<ToolKey, ToolCounts>;

/// The catalog of a scope among those of a context, with its place.
fn own_catalog<'a>(context: &'a Context, scope: &Scope) -> Option<(u8, &'a Arc<Catalog>)> {
    let part = u8::from(matches!(scope, Scope::Project(_)));
    context.entry.catalogs.parts().nth(usize::from(part)).map(|catalog| (part, catalog))
}

impl Toolrack {
    /// A page of a scope's stored catalog, as its own config groups and offers the tools; `caller` is who asks for that scope
    /// alone.
    pub async fn browse_catalog(
        &self,
        caller: &Caller,
        scope: &Scope,
        query: BrowseQuery,
    ) -> Result<BrowsePage, Error> {
        let context = self.context(caller, &GrantFields::default()).await?;
        let of = scope.clone();
        if let Err(error) = self.flush_usage().await {
            warn_of!(error, "could not flush usage for a catalog");
        }
        let since = day_of(now_ms()) - i64::from(BROWSED_DAYS) + 1;
        let used = self.0.store.tool_usage(scope, since, MOST_COUNTED).await?;
        let used: Used = used.into_iter().map(|row| (row.tool, row.counts)).collect();
        let (mut page, keys) = blocking(move || browse(&context, &of, &query, &used)).await?;
        let warm: HashMap<ToolKey, u64> = match scope {
            Scope::User(user) => self.0.store.warm_counts(user, MOST_WARM).await?.into_iter().collect(),
            Scope::Project(_) => HashMap::new(),
        };
        let waiting = self.0.store.reviews(scope).await?.held;
        page.held = waiting.len();
        let waiting: HashSet<&ToolKey> = waiting.iter().map(|held| &held.tool).collect();
        for (row, key) in page.rows.iter_mut().zip(&keys) {
            row.held = waiting.contains(key);
            row.warm = warm.get(key).copied().unwrap_or_default();
            let stored = self.0.store.provenance(scope, key).await?.map(ToolProvenance::from);
            row.first_seen_ms = stored.as_ref().and_then(|stored| stored.first_seen_ms);
            row.changed_at_ms = stored.as_ref().and_then(|stored| stored.changed_at_ms);
        }
        Ok(page)
    }

    /// One tool of a scope's stored catalog, by stored, wire or unambiguous uploaded name, as it stands in the format of
    /// `fields`.
    pub async fn tool_sheet(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        fields: &GrantFields,
    ) -> Result<ToolSheet, Error> {
        let context = self.context(caller, fields).await?;
        let (of, wanted) = (scope.clone(), name.to_owned());
        let (mut sheet, key) = blocking(move || sheet(&context, &of, &wanted)).await??;
        sheet.provenance = self.0.store.provenance(scope, &key).await?.map(ToolProvenance::from);
        Ok(sheet)
    }
}

fn browse(context: &Context, scope: &Scope, query: &BrowseQuery, used: &Used) -> (BrowsePage, Vec<ToolKey>) {
    let view = context.view();
    let (part, catalog) = own_catalog(context, scope).unzip();
    let tools = catalog.map(|catalog| catalog.tools()).unwrap_or_default();
    let entries: Vec<(Entry<'_>, u64)> = tools
        .iter()
        .map(|tool| Entry::of(view, part.unwrap_or_default(), tool))
        .map(|entry| {
            let tokens = entry.tokens(context);
            (entry, tokens)
        })
        .collect();
    let mut groups: BTreeMap<&str, BrowsedGroup> = BTreeMap::new();
    for (entry, tokens) in &entries {
        let new = || BrowsedGroup { name: entry.group.to_owned(), tools: 0, tokens: 0 };
        let group = groups.entry(entry.group).or_insert_with(new);
        group.tools += 1;
        group.tokens += tokens;
    }
    let text = clip(query.text.trim(), MAX_TEXT_CHARS).to_lowercase();
    let counts = |entry: &Entry<'_>| used.get(&entry.tool.tool.key()).copied().unwrap_or_default();
    let is_unfound =
        |entry: &Entry<'_>| entry.seen.is_some_and(|seen| !seen.core) && counts(entry).finds == 0;
    let unfound = entries.iter().filter(|(entry, _)| is_unfound(entry)).count();
    let fits = |(entry, _): &&(Entry<'_>, u64)| {
        (query.group.is_empty() || entry.group == query.group)
            && (!query.never_found || is_unfound(entry))
            && (text.is_empty() || entry.holds(&text))
    };
    let mut found: Vec<&(Entry<'_>, u64)> = entries.iter().filter(fits).collect();
    match query.order {
        BrowseOrder::Name => {}
        BrowseOrder::Tokens => found.sort_by_key(|(_, tokens)| Reverse(*tokens)),
        BrowseOrder::Found => found.sort_by_cached_key(|(entry, _)| Reverse(counts(entry).finds)),
    }
    let pages = found.len().div_ceil(CATALOG_PAGE).max(1);
    let page = query.page.clamp(1, pages);
    let shown = || found.iter().skip((page - 1) * CATALOG_PAGE).take(CATALOG_PAGE);
    let rows = shown().map(|(entry, tokens)| BrowsedTool {
        name: entry.tool.stored_name.to_string(),
        description: brief_description(&entry.tool.tool),
        group: one_line(entry.group).into_owned(),
        tokens: *tokens,
        core: entry.seen.is_some_and(|seen| seen.core),
        hidden: entry.seen.is_none(),
        held: false,
        warm: 0,
        used: counts(entry),
        first_seen_ms: None,
        changed_at_ms: None,
    });
    let page = BrowsePage {
        version: catalog.map(|catalog| catalog.version().to_owned()).unwrap_or_default(),
        tools: entries.len(),
        tokens: entries.iter().map(|(_, tokens)| tokens).sum(),
        unfound,
        held: 0,
        found: found.len(),
        page,
        pages,
        rows: rows.collect(),
        groups: groups.into_values().collect(),
    };
    let keys = shown().map(|(entry, _)| entry.tool.tool.key()).collect();
    (page, keys)
}

fn sheet(context: &Context, scope: &Scope, name: &str) -> Result<(ToolSheet, ToolKey), Error> {
    let unknown = || {
        let detail = format!("`{name}` is not in the catalog of this {}", scope.kind());
        Error::new(Kind::UnknownTool, detail)
    };
    let (part, catalog) = own_catalog(context, scope).ok_or_else(unknown)?;
    let tool = match catalog.resolve(name).as_slice() {
        [] => return Err(unknown()),
        [tool] => *tool,
        several => return Err(ambiguous(name, several.iter().map(|tool| tool.stored_name.to_string()))),
    };
    let entry = Entry::of(context.view(), part, tool);
    let wire_name = entry.seen.map_or_else(|| tool.wire_name(), ViewTool::wire_name);
    let target = context.target;
    let made = entry.seen.map_or_else(|| tool.for_target(target), |seen| seen.for_target(target));
    let upload = &tool.tool;
    let mut aliases = upload.other_names();
    for id in context.view().by_key(&upload.key()) {
        aliases.extend_from_slice(context.entry.aliases.of(id));
    }
    let other = |name: &str| (name != &*tool.stored_name).then(|| name.to_owned());
    let sheet = ToolSheet {
        name: tool.stored_name.to_string(),
        wire_name: other(wire_name),
        uploaded_name: other(upload.name()),
        group: one_line(entry.group).into_owned(),
        description: upload.description().into_owned(),
        parameters: upload.parameters().to_owned(),
        format: target.format.as_str(),
        sent: made.entry_text(wire_name, upload).map(Cow::into_owned),
        tokens: made.tokens as u64,
        core: entry.seen.is_some_and(|seen| seen.core),
        hidden: entry.seen.is_none(),
        line: listing_line(wire_name, &tool.short),
        aliases,
        provenance: None,
        warnings: warnings(catalog, tool),
        lint: lint_tool(tool, target),
    };
    Ok((sheet, upload.key()))
}

/// What an upload warns of about one tool, found anew.
fn warnings(catalog: &Catalog, tool: &CatalogTool) -> Vec<Warning> {
    let key = tool.tool.key();
    let mut warnings: Vec<Warning> = suspicion::warning(tool.tool.body()).into_iter().collect();
    let hidden = hidden_in_text(tool.tool.body());
    if hidden > 0 {
        warnings.push(Warning::new("hidden_characters", hidden::told(hidden)));
    }
    warnings.extend(lookalike::warnings(catalog, |other| *other == key));
    warnings
}
