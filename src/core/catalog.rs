//! A catalog: the tools of one scope, their stored and wire names, its version, and what a write changes.
//!
//! Everything here is a function of the set of tools: the order of an upload never shows.

mod upload;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::digest::{Digest, Hasher, push_string};
use super::format::{TokenCounts, names};
use super::lookalike;
use super::target::{Made, Target, TargetTool};
use super::text::short_description;
use super::tokens;
use super::tool::{Tool, ToolKey};
use super::warning::Warning;

pub use upload::{Upload, read_upload, text_warnings};

/// Token counts that are stored with a tool: made once, at upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredCounts {
    /// Of the tool as it stands in an array.
    pub formats: TokenCounts,
    /// Of its line in a full listing, line break included.
    pub line: u32,
    /// Of its name in a line of names, comma included.
    pub name: u32,
}

/// Goes up with every change of what is written for a tool, so that older counts are made anew.
const COUNTS_VERSION: &str = "v2";

impl StoredCounts {
    fn of(tool: &Tool, wire_name: &str, short: &str) -> Self {
        let line = tokens::count(&listing_line(wire_name, short)) as u32;
        let name = tokens::count(&format!(", {wire_name}")) as u32;
        Self { formats: TokenCounts::of(wire_name, tool), line, name }
    }

    /// The text that stands beside the tool in the store.
    pub fn to_text(&self) -> String {
        format!("{COUNTS_VERSION};{};{};{}", self.formats.to_text(), self.line, self.name)
    }

    /// Reads the stored text; nothing when another version wrote it, and the tool is counted again.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        parts.next().filter(|version| *version == COUNTS_VERSION)?;
        let formats = TokenCounts::from_text(parts.next()?)?;
        let line = parts.next()?.parse().ok()?;
        let name = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { formats, line, name })
    }
}

/// A tool's line in a full listing.
pub fn listing_line(wire_name: &str, short: &str) -> String {
    if short.is_empty() { format!("- {wire_name}\n") } else { format!("- {wire_name}: {short}\n") }
}

/// A tool inside its catalog.
#[derive(Debug)]
pub struct CatalogTool {
    pub tool: Arc<Tool>,
    /// The tool's name everywhere but on the wire: the uploaded name, qualified where several groups have it.
    pub stored_name: Box<str>,
    /// The name that providers see, where it is not the stored name.
    mapped_name: Option<Box<str>>,
    /// The first sentence on one line, at most 60 characters.
    pub short: Box<str>,
    pub counts: StoredCounts,
    made: Made,
}

impl CatalogTool {
    pub fn wire_name(&self) -> &str {
        self.mapped_name.as_deref().unwrap_or(&self.stored_name)
    }

    /// The tool as a document to show and to upload again: its stored name, and what else it is called.
    pub fn write_document(&self, out: &mut String) {
        self.write_version(&self.tool, out);
    }

    /// Another version of this tool as such a document.
    pub fn write_version(&self, version: &Tool, out: &mut String) {
        out.push_str("{\"name\":");
        push_string(&self.stored_name, out);
        if version.name() != &*self.stored_name {
            out.push_str(",\"uploaded_name\":");
            push_string(version.name(), out);
        }
        if let Some(wire) = &self.mapped_name {
            out.push_str(",\"wire_name\":");
            push_string(wire, out);
        }
        out.push_str(",\"group\":");
        push_string(version.group(), out);
        out.push(',');
        out.push_str(version.from_description());
    }

    /// The tool as it stands in an array for this target.
    pub fn for_target(&self, target: Target) -> Arc<TargetTool> {
        let make =
            |target| TargetTool::make(target, self.wire_name(), &self.tool, Some(&self.counts.formats));
        self.made.get(target, make)
    }
}

/// The tools of one scope. Immutable: a write makes a new one that shares the tools that did not change.
#[derive(Debug, Default)]
pub struct Catalog {
    version: String,
    content_id: Arc<str>,
    /// By stored name.
    tools: Vec<Arc<CatalogTool>>,
}

/// A tool on its way into a catalog; `counts` when they are known for this content and wire name.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub tool: Arc<Tool>,
    pub counts: Option<StoredCounts>,
}

impl Catalog {
    /// Puts a catalog together. `known` are catalogs whose tools are shared where name and content are the same, those of the first one
    /// before others. Tools must be unique by (group, name).
    pub fn build(incoming: Vec<Incoming>, known: &[&Self]) -> (Self, Vec<Warning>) {
        let all = known.iter().rev().flat_map(|known| &known.tools);
        let known: HashMap<(&str, Digest), &Arc<CatalogTool>> =
            all.map(|tool| ((&*tool.stored_name, tool.tool.digest()), tool)).collect();
        let sorted: BTreeMap<ToolKey, Incoming> =
            incoming.into_iter().map(|entry| (entry.tool.key(), entry)).collect();
        let (mut content, mut bytes) = (Hasher::default(), Hasher::default());
        for entry in sorted.values() {
            content.add(&entry.tool.digest().0);
            bytes.add(entry.tool.body().as_bytes());
        }
        let version = if sorted.is_empty() { String::new() } else { content.finish().to_string() };
        let content_id =
            if sorted.is_empty() { Arc::default() } else { format!("{version}-{}", bytes.finish()).into() };

        let (stored_names, warnings) = assign_stored_names(sorted.keys());
        let wire_names = assign_wire_names(&stored_names);
        let mut tools: Vec<Arc<CatalogTool>> = sorted
            .into_values()
            .zip(stored_names)
            .zip(wire_names)
            .map(|((entry, stored_name), mapped_name)| {
                let same = known.get(&(stored_name.as_str(), entry.tool.digest()));
                match same.filter(|same| same.mapped_name.as_deref() == mapped_name.as_deref()) {
                    Some(same) => Arc::clone(same),
                    None => Arc::new(catalog_tool(entry, stored_name, mapped_name)),
                }
            })
            .collect();
        tools.sort_unstable_by(|a, b| a.stored_name.cmp(&b.stored_name));
        (Self { version, content_id, tools }, warnings)
    }

    /// Identity of the content; empty for the empty catalog.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Identity of the stored bytes: two catalogs of one version may have the keys of their schemas in another order.
    pub fn content_id(&self) -> Arc<str> {
        Arc::clone(&self.content_id)
    }

    /// The version inside a content id.
    pub fn version_of(content_id: &str) -> &str {
        content_id.split('-').next().unwrap_or_default()
    }

    /// By stored name.
    pub fn tools(&self) -> &[Arc<CatalogTool>] {
        &self.tools
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tool of a stored name.
    pub fn get(&self, stored_name: &str) -> Option<&Arc<CatalogTool>> {
        let at = self.tools.binary_search_by(|tool| (*tool.stored_name).cmp(stored_name)).ok()?;
        self.tools.get(at)
    }

    /// Whether the catalog has the tool of an identity.
    pub fn has(&self, key: &ToolKey) -> bool {
        let is_it =
            |tool: &Arc<CatalogTool>| tool.tool.group() == &*key.group && tool.tool.name() == &*key.name;
        self.get(&key.name).is_some_and(is_it)
            || self.get(&names::qualified(&key.group, &key.name)).is_some_and(is_it)
            || self.tools.iter().any(is_it)
    }

    /// Every tool that a name from outside can mean: by wire, stored or uploaded name, the first kind that hits. Wire
    /// names come first, because they are what a model saw.
    pub fn resolve(&self, name: &str) -> Vec<&Arc<CatalogTool>> {
        if let Some(tool) = self.get(name).filter(|tool| tool.wire_name() == name) {
            return vec![tool];
        }
        let by = |hit: &dyn Fn(&CatalogTool) -> bool| {
            self.tools.iter().filter(|tool| hit(tool)).collect::<Vec<_>>()
        };
        let wire = by(&|tool| tool.wire_name() == name);
        if !wire.is_empty() {
            return wire;
        }
        self.get(name).map_or_else(|| by(&|tool| tool.tool.name() == name), |tool| vec![tool])
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let of = |tool: &Arc<CatalogTool>| {
            size_of::<CatalogTool>() + tool.tool.bytes() + 2 * tool.stored_name.len() + tool.short.len()
        };
        self.tools.iter().map(of).sum()
    }
}

fn catalog_tool(entry: Incoming, stored_name: String, mapped_name: Option<String>) -> CatalogTool {
    let short = short_description(&entry.tool.description());
    let wire = mapped_name.as_deref().unwrap_or(&stored_name);
    let counts = entry.counts.unwrap_or_else(|| StoredCounts::of(&entry.tool, wire, &short));
    CatalogTool {
        tool: entry.tool,
        stored_name: stored_name.into(),
        mapped_name: mapped_name.map(Into::into),
        short: short.into(),
        counts,
        made: Made::default(),
    }
}

/// Stored names in the order of the keys (group, name): the name itself where one group has it, else qualified.
fn assign_stored_names<'a>(keys: impl Iterator<Item = &'a ToolKey> + Clone) -> (Vec<String>, Vec<Warning>) {
    let mut groups_of: HashMap<&str, usize> = HashMap::new();
    for key in keys.clone() {
        *groups_of.entry(&key.name).or_default() += 1;
    }
    let alone = |key: &ToolKey| groups_of.get(&*key.name) == Some(&1);
    let mut taken: HashSet<String> =
        keys.clone().filter(|key| alone(key)).map(|key| key.name.to_string()).collect();
    let mut warnings = Vec::new();
    let stored = keys
        .map(|key| {
            if alone(key) {
                return key.name.to_string();
            }
            let plain = names::qualified(&key.group, &key.name);
            let name = first_free(plain, &taken, |base, n| format!("{base}_{n}"));
            taken.insert(name.clone());
            let detail =
                format!("`{}` stands in several groups; the one of `{}` is `{name}`", key.name, key.group);
            warnings.push(Warning::new("name_qualified", detail).for_tool(name.clone()));
            name
        })
        .collect();
    (stored, warnings)
}

/// Wire names where they differ from the stored ones. Changed names claim theirs first: a tool that is called like
/// another tool's wire name must not take it over, so it gets a suffix itself.
fn assign_wire_names(stored: &[String]) -> Vec<Option<String>> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut mapped: Vec<Option<String>> = stored
        .iter()
        .map(|name| {
            if names::fits(name) {
                return None;
            }
            let base = names::wire_name(name).into_owned();
            let free = first_free(base, &taken, |_, n| names::with_suffix(&format!("{name}#{n}")));
            taken.insert(free.clone());
            Some(free)
        })
        .collect();
    for (name, mapped) in stored.iter().zip(&mut mapped).filter(|(name, _)| names::fits(name)) {
        if taken.insert(name.clone()) {
            continue;
        }
        let free =
            first_free(names::with_suffix(name), &taken, |_, n| names::with_suffix(&format!("{name}#{n}")));
        taken.insert(free.clone());
        *mapped = Some(free);
    }
    mapped
}

/// The base, or the first of its numbered forms (from 2) that is free.
fn first_free(base: String, taken: &HashSet<String>, numbered: impl Fn(&str, usize) -> String) -> String {
    if !taken.contains(&base) {
        return base;
    }
    // One of these is free: there is one more of them than there are taken names.
    (2..taken.len() + 3).map(|n| numbered(&base, n)).find(|name| !taken.contains(name)).unwrap_or(base)
}

/// Wire and uploaded names of a catalog, for looking up many names at once.
struct NameIndex<'a> {
    catalog: &'a Catalog,
    wire: HashMap<&'a str, &'a Arc<CatalogTool>>,
    uploaded: HashMap<&'a str, Vec<&'a Arc<CatalogTool>>>,
}

impl<'a> NameIndex<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        let mut uploaded: HashMap<&str, Vec<&Arc<CatalogTool>>> = HashMap::new();
        for tool in &catalog.tools {
            uploaded.entry(tool.tool.name()).or_default().push(tool);
        }
        Self { catalog, wire: catalog.tools.iter().map(|tool| (tool.wire_name(), tool)).collect(), uploaded }
    }

    /// As [`Catalog::resolve`].
    fn resolve(&self, name: &str) -> Vec<&'a Arc<CatalogTool>> {
        let one = self.wire.get(name).copied().or_else(|| self.catalog.get(name));
        one.map_or_else(|| self.uploaded.get(name).cloned().unwrap_or_default(), |tool| vec![tool])
    }
}

/// What a write does to a catalog.
#[derive(Debug)]
pub struct Change {
    pub catalog: Catalog,
    /// Stored names, sorted.
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub unchanged: Vec<String>,
    pub removed_keys: Vec<ToolKey>,
    pub warnings: Vec<Warning>,
}

/// The change that leaves exactly `tools`.
pub fn replace(current: &Catalog, tools: BTreeMap<ToolKey, Arc<Tool>>) -> Change {
    replace_by(current, tools, None)
}

/// The same where a catalog of these tools was made before, as it is when they were read: what was counted for it is not counted again.
pub fn replace_by(current: &Catalog, tools: BTreeMap<ToolKey, Arc<Tool>>, read: Option<&Catalog>) -> Change {
    let mut change = change_to(current, tools, read);
    change.warnings.append(&mut lookalike::warnings(&change.catalog, |_| true));
    change
}

fn change_to(current: &Catalog, tools: BTreeMap<ToolKey, Arc<Tool>>, read: Option<&Catalog>) -> Change {
    let before: HashMap<ToolKey, &Arc<CatalogTool>> =
        current.tools.iter().map(|tool| (tool.tool.key(), tool)).collect();
    let incoming = tools
        .into_iter()
        .map(|(key, tool)| match before.get(&key) {
            // The stored bytes stay when only the order of keys differs.
            Some(same) if same.tool.digest() == tool.digest() => Arc::clone(&same.tool),
            _ => tool,
        })
        .map(|tool| Incoming { tool, counts: None })
        .collect();
    let known: Vec<&Catalog> = std::iter::once(current).chain(read).collect();
    let (catalog, warnings) = Catalog::build(incoming, &known);
    let mut change = Change {
        added: Vec::new(),
        changed: Vec::new(),
        removed: Vec::new(),
        unchanged: Vec::new(),
        removed_keys: Vec::new(),
        warnings,
        catalog,
    };
    let mut gone = before;
    for tool in &change.catalog.tools {
        let list = match gone.remove(&tool.tool.key()) {
            None => &mut change.added,
            Some(old) if old.tool.digest() == tool.tool.digest() => &mut change.unchanged,
            Some(_) => &mut change.changed,
        };
        list.push(tool.stored_name.to_string());
    }
    for (key, tool) in gone {
        change.removed.push(tool.stored_name.to_string());
        change.removed_keys.push(key);
    }
    change.removed.sort_unstable();
    change.removed_keys.sort_unstable();
    change
}

/// A name in `remove` that means several tools.
#[derive(Debug, PartialEq, Eq)]
pub struct Ambiguous {
    pub name: String,
    pub candidates: Vec<String>,
    /// Its place in `remove`.
    pub at: usize,
}

/// The change that adds or replaces `upsert` and takes away `remove` (stored, wire or uploaded names).
pub fn patch(
    current: &Catalog,
    upsert: BTreeMap<ToolKey, Arc<Tool>>,
    remove: &[String],
) -> Result<Change, Ambiguous> {
    let mut tools: BTreeMap<ToolKey, Arc<Tool>> =
        current.tools.iter().map(|tool| (tool.tool.key(), Arc::clone(&tool.tool))).collect();
    let names = NameIndex::new(current);
    let mut warnings = Vec::new();
    for (at, name) in remove.iter().enumerate() {
        match names.resolve(name).as_slice() {
            [] => {
                let detail = format!("`{name}` is not in the catalog; nothing was removed for it");
                warnings.push(Warning::new("unknown_tool", detail).at(format!("/remove/{at}")));
            }
            [tool] => {
                tools.remove(&tool.tool.key());
            }
            several => {
                let candidates = several.iter().map(|tool| tool.stored_name.to_string()).collect();
                return Err(Ambiguous { name: name.clone(), candidates, at });
            }
        }
    }
    let uploaded: HashSet<ToolKey> = upsert.keys().cloned().collect();
    tools.extend(upsert);
    let mut change = change_to(current, tools, None);
    warnings.append(&mut change.warnings);
    warnings.append(&mut lookalike::warnings(&change.catalog, |key| uploaded.contains(key)));
    Ok(Change { warnings, ..change })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::format::ingest::EntryLimits;

    const LIMITS: EntryLimits = EntryLimits { bytes: 256 * 1024, depth: 64 };

    fn upload(entries: &[&str]) -> Upload {
        read_upload(entries.iter().copied(), LIMITS, "/tools")
    }

    fn catalog(entries: &[&str]) -> Catalog {
        replace(&Catalog::default(), upload(entries).tools).catalog
    }

    fn stored_names(catalog: &Catalog) -> Vec<&str> {
        catalog.tools().iter().map(|tool| &*tool.stored_name).collect()
    }

    #[test]
    fn same_names_are_qualified_in_all_groups() {
        let catalog = catalog(&[
            r#"{"name":"search","group":"a"}"#,
            r#"{"name":"search","group":"b"}"#,
            r#"{"name":"b__search","group":"c"}"#,
            r#"{"name":"alone","group":"a"}"#,
        ]);
        assert_eq!(stored_names(&catalog), ["a__search", "alone", "b__search", "b__search_2"]);
        assert_eq!(catalog.get("b__search").map(|tool| tool.tool.group()), Some("c"));
        assert_eq!(catalog.resolve("search").len(), 2);
        assert_eq!(catalog.resolve("alone").len(), 1);
    }

    #[test]
    fn twins_are_one_or_the_smaller_digest() {
        let one = r#"{"name":"x","description":"one","parameters":{"type":"object","properties":{}}}"#;
        let same = r#"{"parameters":{"properties":{},"type":"object"},"description":"one","name":"x"}"#;
        let other = r#"{"name":"x","description":"two"}"#;
        assert_eq!(upload(&[one, same]).rejected, Vec::<&str>::new());
        let (ab, ba) = (upload(&[one, other]), upload(&[other, one]));
        assert_eq!(ab.rejected, ["duplicate_name"]);
        let kept = |upload: &Upload| upload.tools.values().map(|tool| tool.digest()).collect::<Vec<_>>();
        assert_eq!(kept(&ab), kept(&ba));
    }

    #[test]
    fn tools_that_were_read_before_are_not_counted_again() {
        let (a, b) = (r#"{"name": "a", "description": "One."}"#, r#"{"name": "b", "description": "Two."}"#);
        let read = replace(&Catalog::default(), upload(&[a, b]).tools).catalog;
        let current = replace(&Catalog::default(), upload(&[a]).tools).catalog;
        let change = replace_by(&current, upload(&[b, a]).tools, Some(&read));
        assert_eq!((change.added, change.unchanged), (vec!["b".to_owned()], vec!["a".to_owned()]));
        // What is stored already stays, and what is new is what was read.
        let same =
            |name: &str, of: &Catalog| Arc::ptr_eq(change.catalog.get(name).unwrap(), of.get(name).unwrap());
        assert!(same("a", &current) && same("b", &read));
    }

    #[test]
    fn order_and_key_order_change_nothing() {
        let a =
            r#"{"name":"a","description":"d","parameters":{"type":"object","properties":{"x":{},"y":{}}}}"#;
        let a_again =
            r#"{"parameters":{"properties":{"y":{},"x":{}},"type":"object"},"name":"a","description":"d"}"#;
        let b = r#"{"name":"b.c"}"#;
        let first = catalog(&[a, b]);
        let change = replace(&first, upload(&[b, a_again]).tools);
        assert_eq!(change.catalog.version(), first.version());
        assert_eq!((change.unchanged.len(), change.changed.len()), (2, 0));
        assert_eq!(
            change.catalog.get("a").map(|tool| tool.tool.body()),
            first.get("a").map(|tool| tool.tool.body())
        );
    }

    #[test]
    fn a_patch_names_what_it_did() {
        let before = catalog(&[
            r#"{"name":"a"}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"s","group":"x"}"#,
            r#"{"name":"s","group":"y"}"#,
        ]);
        let upsert = upload(&[r#"{"name":"a","description":"new"}"#, r#"{"name":"c"}"#]).tools;
        let change = patch(&before, upsert.clone(), &["b".into(), "zz".into()]).unwrap();
        assert_eq!(
            (change.added, change.changed, change.removed),
            (vec!["c".into()], vec!["a".into()], vec!["b".into()])
        );
        assert!(change.warnings.iter().any(|warning| warning.code == "unknown_tool"));
        assert_eq!(patch(&before, upsert, &["s".into()]).unwrap_err().candidates, ["x__s", "y__s"]);
    }

    #[test]
    fn adding_a_tool_renames_no_other() {
        let before = catalog(&[r#"{"name":"a.b"}"#, r#"{"name":"x"}"#]);
        let after =
            catalog(&[r#"{"name":"a.b"}"#, r#"{"name":"x"}"#, r#"{"name":"a b"}"#, r#"{"name":"a_b"}"#]);
        let wire = |catalog: &Catalog, name: &str| catalog.get(name).map(|tool| tool.wire_name().to_owned());
        assert_eq!(wire(&before, "a.b"), wire(&after, "a.b"));
        let all: HashSet<&str> = after.tools().iter().map(|tool| tool.wire_name()).collect();
        assert_eq!(all.len(), after.len());
    }
}
