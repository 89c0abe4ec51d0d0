//! The keyword ranking before the floor, so that what the floor takes away can be counted.
//!
//! Built from the same parts of `core` as the service's own ranking, beside it: no answer of the service shows what is below
//! its floor while anything is above.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::core::catalog::{Catalog, read_upload, replace};
use crate::core::format::ingest::EntryLimits;
use crate::core::grant::{Catalogs, View, ViewTool};
use crate::core::lexical::Document;
use crate::core::named::promote;
use crate::core::policy::{Layer, merge};
use crate::core::profile::Profile;
use crate::core::ranking::{CatalogIndex, Part, search};
use crate::core::spread;

/// A catalog under a config, to be ranked.
#[derive(Debug)]
pub(super) struct Unfloored {
    view: View,
    index: CatalogIndex,
    semantic: bool,
    /// The config's aliases, with the tool of each.
    aliases: (CatalogIndex, Vec<u32>),
}

impl Unfloored {
    pub(super) fn build(tools: &[Box<RawValue>], limits: EntryLimits, layer: &Layer) -> Self {
        let upload = read_upload(tools.iter().map(|tool| tool.get()), limits, "");
        let catalog = Arc::new(replace(&Catalog::default(), upload.tools).catalog);
        let texts: Vec<(Cow<'_, str>, Vec<String>)> =
            catalog.tools().iter().map(|tool| (tool.tool.description(), tool.tool.other_names())).collect();
        let documents = catalog.tools().iter().zip(&texts).map(|(tool, (description, aliases))| Document {
            group: tool.tool.group(),
            name: tool.tool.name(),
            description,
            parameters: tool.tool.parameters(),
            aliases,
        });
        let index = CatalogIndex::build(documents);
        let policy = merge(layer, &Layer::default());
        let user_core = layer.core.clone().unwrap_or_default();
        let catalogs = Catalogs::Stored { user: Arc::clone(&catalog), project: Arc::default() };
        let view = View::build(&catalogs, &policy, &user_core, &[], Profile::Generic);
        let mut phrases: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (name, aliases) in &policy.aliases {
            for id in view.select(name) {
                phrases.entry(id).or_default().extend(aliases.iter().cloned());
            }
        }
        let documents = phrases.values().map(|aliases| Document {
            group: "",
            name: "",
            description: "",
            parameters: "",
            aliases,
        });
        let aliases = (CatalogIndex::of_words(documents), phrases.keys().copied().collect());
        Self { view, index, semantic: policy.semantic, aliases }
    }

    /// The first `limit` tools for a query, best first.
    pub(super) fn rank(&self, query: &str, limit: usize) -> Vec<&ViewTool> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        if let Some(candidates) = self.view.candidates().first() {
            parts.push(Part { index: &self.index, candidates });
        }
        if !self.aliases.1.is_empty() {
            parts.push(Part { index: &self.aliases.0, candidates: &self.aliases.1 });
        }
        let mut outcome = search(&parts, self.view.tools.len(), query, spread::wanted(limit), self.semantic);
        promote(&self.view, query, &mut outcome);
        let group_of = |id: u32| self.view.get(id).map_or("", |tool| tool.tool.tool.group());
        let outcome = spread::first(outcome, limit, group_of);
        outcome.hits.iter().filter_map(|hit| self.view.get(hit.candidate)).collect()
    }

    /// The stored and the uploaded name of every tool that can be found.
    pub(super) fn names(&self) -> impl Iterator<Item = [&str; 2]> {
        self.view.visible().map(|(_, tool)| names_of(tool))
    }
}

/// The names by which a label may mean a tool.
pub(super) fn names_of(tool: &ViewTool) -> [&str; 2] {
    [tool.stored_name(), tool.tool.tool.name()]
}
