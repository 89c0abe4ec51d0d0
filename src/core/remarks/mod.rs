//! The review: every tool with what makes it hard to find or to call, or not fit to be shown.
//!
//! A function of catalogs, config and profiles. It asks what the rest of the service asks (`suspicion`, `lookalike`, `schema`, `target`), so that
//! a remark says what really happens; what is remarked, and how bad that is, is the table in `kinds`. Nothing is changed here.

mod kinds;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

pub use kinds::{Kind, Severity};

use super::digest::Digest;
use super::grant::{Catalogs, Selection, View, ViewTool};
use super::grouping::SelectorSet;
use super::hidden::hidden_in_text;
use super::lexical::Vocabulary;
use super::lookalike;
use super::policy::Policy;
use super::profile::Profile;
use super::schema::{Validator, takes_object};
use super::selector::Selector;
use super::suspicion;
use super::target::{Target, TargetTool};
use super::text::{clip, one_line};
use super::warning::{Warning, told};

/// Tokens from which on a tool is oversized: a warm set of eight such tools costs twice what a listing may.
pub const OVERSIZED_TOKENS: usize = 1_000;

/// Providers that a review looks at where nobody names one.
pub const MAIN_PROFILES: [Profile; 3] = [Profile::Openai, Profile::Anthropic, Profile::Gemini];

/// Findings about one schema that are told, and other tools that are named.
const MAX_FINDINGS: usize = 3;

/// Characters of a description that are read for what it says.
const READ_CHARS: usize = 400;

/// One remark about a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Remark {
    pub kind: Kind,
    pub severity: Severity,
    /// What it is about here, in a sentence.
    pub detail: String,
}

impl Remark {
    fn new(kind: Kind, detail: impl AsRef<str>) -> Self {
        Self { kind, severity: kind.severity(), detail: told(detail.as_ref()) }
    }
}

/// A tool with its remarks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReviewedTool {
    /// As the config groups it.
    pub group: String,
    /// Stored name.
    pub name: String,
    /// The beginning of the description, on one line.
    pub description: String,
    /// With its schema, in an array of the format `canonical`.
    pub tokens: usize,
    /// Parameters at the root of the schema.
    pub parameters: usize,
    /// Whether it is core now.
    pub core: bool,
    /// Whether the config hides it, by `deny` or because `allow` does not name it.
    pub excluded: bool,
    /// Phrases that the config and the tool itself give it.
    pub aliases: Vec<String>,
    /// Worst first.
    pub remarks: Vec<Remark>,
}

impl ReviewedTool {
    /// How bad the worst remark is; nothing where there is none.
    pub fn worst(&self) -> Option<Severity> {
        self.remarks.iter().map(|remark| remark.severity).max()
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let remarks: usize =
            self.remarks.iter().map(|remark| remark.detail.len() + size_of::<Remark>()).sum();
        let aliases: usize = self.aliases.iter().map(|alias| alias.len() + 24).sum();
        size_of::<Self>() + self.group.len() + self.name.len() + self.description.len() + remarks + aliases
    }
}

/// Reviews the tools of catalogs, those that the config hides included, by how each stands with the profiles. Worst first, then by
/// group and name.
pub fn review(
    catalogs: &Catalogs,
    policy: &Policy,
    user_core: &[Selector],
    selections: &[Selection],
    profiles: &[Profile],
) -> Vec<ReviewedTool> {
    let open = Policy { allow: Vec::new(), deny: Vec::new(), default_toolsets: Vec::new(), ..policy.clone() };
    let view = View::build(catalogs, &open, user_core, selections, Profile::default());
    let mut shared = Shared::of(&view, catalogs);
    let mut tools: Vec<ReviewedTool> =
        (0..).zip(&view.tools).map(|(id, tool)| reviewed(&view, id, tool, profiles, &mut shared)).collect();
    let (deny, allow): (_, Vec<SelectorSet<'_>>) =
        (SelectorSet::new(&policy.deny), policy.allow.iter().map(SelectorSet::new).collect());
    for (reviewed, tool) in tools.iter_mut().zip(&view.tools) {
        let hits = |set: &SelectorSet<'_>| set.hits(&tool.tool, view.group(tool));
        reviewed.excluded = hits(&deny) || !allow.iter().all(hits);
    }
    for (name, phrases) in &policy.aliases {
        for id in view.select(name) {
            let Some(tool) = tools.get_mut(id as usize) else { continue };
            tool.aliases.extend(phrases.iter().cloned());
        }
    }
    tools.sort_by(|a, b| order(a).cmp(&order(b)));
    tools
}

/// The place of a tool in a review.
pub fn order(tool: &ReviewedTool) -> (std::cmp::Reverse<Option<Severity>>, &str, &str) {
    (std::cmp::Reverse(tool.worst()), &tool.group, &tool.name)
}

/// What concerns more than one tool.
struct Shared<'a> {
    /// By stored name.
    lookalikes: HashMap<&'a str, String>,
    clashes: HashMap<&'a str, &'a str>,
    /// First tools of each description.
    descriptions: HashMap<Digest, Vec<u32>>,
    vocabulary: Vocabulary,
}

impl<'a> Shared<'a> {
    fn of(view: &'a View, catalogs: &'a Catalogs) -> Self {
        let mut descriptions: HashMap<Digest, Vec<u32>> = HashMap::new();
        for (id, tool) in (0..).zip(&view.tools) {
            let text = tool.tool.tool.description();
            let text = one_line(&text);
            if !text.is_empty() {
                let same = descriptions.entry(Digest::of(text.as_bytes())).or_default();
                // Whether there are others, and two of them to name.
                if same.len() <= MAX_FINDINGS {
                    same.push(id);
                }
            }
        }
        let clash = |warning: &'a Warning| Some((warning.tool.as_deref()?, warning.detail.as_str()));
        let clashes = view.join_warnings.iter().filter(|warning| warning.code == "catalog_clash");
        Self {
            lookalikes: catalogs.parts().flat_map(|catalog| lookalike::told(catalog, |_| true)).collect(),
            clashes: clashes.filter_map(clash).collect(),
            descriptions,
            vocabulary: Vocabulary::default(),
        }
    }
}

fn reviewed(
    view: &View,
    id: u32,
    tool: &ViewTool,
    profiles: &[Profile],
    shared: &mut Shared<'_>,
) -> ReviewedTool {
    let own = &tool.tool.tool;
    let description = own.description();
    let line = one_line(head(&description, READ_CHARS)).into_owned();
    let schema: Value = serde_json::from_str(own.parameters()).unwrap_or_default();
    let parameters = schema.get("properties").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let tokens = tool.for_target(Target::default()).tokens;

    let mut remarks = Vec::new();
    remarks
        .extend(suspicion::warning(own.body()).map(|found| Remark::new(Kind::SuspiciousText, found.detail)));
    let hidden = hidden_in_text(own.body());
    if hidden > 0 {
        remarks.push(Remark::new(Kind::HiddenCharacters, format!("{hidden} characters that are not shown.")));
    }
    schema_remarks(tool, &schema, parameters, &mut remarks);
    target_remarks(tool, profiles, &mut remarks);
    text_remarks(view, id, tool, &line, shared, &mut remarks);
    if tokens >= OVERSIZED_TOKENS {
        remarks.push(Remark::new(Kind::Oversized, format!("{tokens} tokens.")));
    }
    remarks.sort_by_key(|remark| remark.kind);
    ReviewedTool {
        group: view.group(tool).to_owned(),
        name: tool.stored_name().to_owned(),
        description: clip(&line, 200).into_owned(),
        tokens,
        parameters,
        core: tool.core,
        excluded: false,
        aliases: own.aliases().to_vec(),
        remarks,
    }
}

fn schema_remarks(tool: &ViewTool, schema: &Value, parameters: usize, remarks: &mut Vec<Remark>) {
    let own = &tool.tool.tool;
    if !takes_object(own.parameters()) {
        remarks.push(Remark::new(Kind::SchemaNotObject, "The root of the schema is no object."));
        return;
    }
    let validator = Validator::compile(own.parameters());
    let notes = validator.notes();
    if let Some(why) = validator.unusable() {
        remarks.push(Remark::new(Kind::InvalidSchema, format!("The schema cannot be used: {why}.")));
    } else if !notes.is_empty() {
        let told = notes.iter().take(MAX_FINDINGS).map(String::as_str).collect::<Vec<_>>().join("; ");
        let more = and_more(notes.len());
        remarks.push(Remark::new(Kind::InvalidSchema, format!("Not used: {told}{more}.")));
    }
    let has_more =
        ["anyOf", "oneOf", "allOf", "$ref", "patternProperties"].iter().any(|key| schema.get(key).is_some());
    if parameters == 0 && !has_more {
        remarks.push(Remark::new(Kind::NoParameters, "The schema lists no parameters."));
    }
}

/// What providers would not take as it is.
fn target_remarks(tool: &ViewTool, profiles: &[Profile], remarks: &mut Vec<Remark>) {
    // Kind and finding, with the profiles that it holds for.
    let mut found: BTreeMap<(Kind, String), Vec<&str>> = BTreeMap::new();
    for profile in profiles {
        let target = Target { profile: *profile, ..Target::default() };
        let mut find = |kind, what| found.entry((kind, what)).or_default().push(profile.as_str());
        // Made for the review alone: what agents use stays with the tool.
        let made =
            TargetTool::make(target, tool.wire_name(), &tool.tool.tool, Some(&tool.tool.counts.formats));
        if made.left_out {
            let why = made.lints.first().map_or("", |lint| lint.detail.as_str());
            find(Kind::LeftOut, why.to_owned());
            continue;
        }
        let wire = profile.wire_name(tool.stored_name());
        if wire != tool.stored_name() {
            find(Kind::OverLimit, format!("the name is sent as `{wire}`"));
        }
        if made.clipped {
            let most = target.description_limit().unwrap_or_default();
            find(Kind::OverLimit, format!("the description is cut at {most} characters"));
        }
        for lint in made.lints.iter().filter(|lint| lint.lossy) {
            let place = if lint.pointer.is_empty() { "the root" } else { &lint.pointer };
            find(Kind::SchemaLosesMeaning, format!("{} at {place}", lint.code));
        }
    }
    let found: Vec<((Kind, String), Vec<&str>)> = found.into_iter().collect();
    for same in found.chunk_by(|a, b| a.0.0 == b.0.0) {
        let tell = |((_, what), by): &((Kind, String), Vec<&str>)| format!("{}: {what}", by.join(", "));
        let told = same.iter().take(MAX_FINDINGS).map(tell).collect::<Vec<_>>().join("; ");
        let kinds = same.iter().map(|((kind, _), _)| *kind).take(1);
        remarks.extend(kinds.map(|kind| Remark::new(kind, format!("{told}{}.", and_more(same.len())))));
    }
}

fn and_more(found: usize) -> String {
    match found.saturating_sub(MAX_FINDINGS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    }
}

fn text_remarks(
    view: &View,
    id: u32,
    tool: &ViewTool,
    line: &str,
    shared: &mut Shared<'_>,
    remarks: &mut Vec<Remark>,
) {
    let name = tool.stored_name();
    if line.is_empty() {
        remarks.push(Remark::new(Kind::NoDescription, "The description is empty."));
    } else if says_little(&mut shared.vocabulary, tool, line) {
        let detail = format!("\"{}\" says no more than the name.", clip(line, 80));
        remarks.push(Remark::new(Kind::SaysLittle, detail));
    }
    let text = tool.tool.tool.description();
    let same = shared.descriptions.get(&Digest::of(one_line(&text).as_bytes()));
    let others: Vec<&str> = same
        .into_iter()
        .flatten()
        .filter(|other| **other != id)
        .filter_map(|other| view.get(*other))
        .map(ViewTool::stored_name)
        .take(MAX_FINDINGS - 1)
        .collect();
    if !others.is_empty() {
        let detail = format!("`{}` has the same description.", others.join("`, `"));
        remarks.push(Remark::new(Kind::SameDescription, detail));
    }
    if let Some(detail) = shared.lookalikes.get(name) {
        remarks.push(Remark::new(Kind::LookalikeName, format!("{detail}.")));
    }
    if let Some(detail) = shared.clashes.get(name) {
        remarks.push(Remark::new(Kind::CatalogClash, format!("{detail}.")));
    }
    if tool.tool.tool.name() != name {
        let detail = format!("`{}` stands in several groups; this one is `{name}`.", tool.tool.tool.name());
        remarks.push(Remark::new(Kind::DuplicateName, detail));
    }
}

/// Whether a description has no word that the name, or every tool, does not have.
fn says_little(vocabulary: &mut Vocabulary, tool: &ViewTool, line: &str) -> bool {
    let mut known: HashSet<String> = HashSet::new();
    for text in [tool.tool.tool.name(), tool.tool.tool.group()] {
        known.extend(vocabulary.words(text).into_iter().map(|word| word.stem));
    }
    let words = vocabulary.words(line);
    // A text of which no word is read is in a script that the analyzer does not part.
    let is_read = !words.is_empty() || line.is_ascii();
    is_read && words.iter().all(|word| known.contains(&word.stem) || word.is_weak())
}

/// The first characters of a text.
fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}
