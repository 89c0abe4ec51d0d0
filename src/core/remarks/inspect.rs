//! What is remarked about the tools of one catalog whatever a config makes of them.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::kinds::Kind;
use super::{MAX_FINDINGS, Remark};
use crate::core::catalog::{Catalog, CatalogTool};
use crate::core::digest::Digest;
use crate::core::hidden::hidden_in_text;
use crate::core::lexical::Vocabulary;
use crate::core::lookalike;
use crate::core::profile::Profile;
use crate::core::schema::{Validator, takes_object};
use crate::core::suspicion;
use crate::core::target::{Target, TargetTool};
use crate::core::text::{clip, counted, one_line};

/// Characters of a description that are read for what it says, and those that are shown.
const READ_CHARS: usize = 400;
const SHOWN_CHARS: usize = 200;

/// The tools of a catalog as they were looked at for some profiles.
#[derive(Debug)]
pub struct Inspection {
    /// By stored name.
    tools: Vec<(Box<str>, Inspected)>,
}

/// What is known of one tool.
#[derive(Debug, Default)]
pub(super) struct Inspected {
    /// The beginning of the description, on one line.
    pub description: Box<str>,
    /// Of the whole description on one line; absent where that is empty.
    pub text: Option<Digest>,
    /// At the root of the schema.
    pub parameters: usize,
    pub remarks: Vec<Remark>,
}

impl Inspection {
    /// The tool of a stored name.
    pub(super) fn of(&self, stored_name: &str) -> Option<&Inspected> {
        let at = self.tools.binary_search_by(|(name, _)| (**name).cmp(stored_name)).ok()?;
        self.tools.get(at).map(|(_, inspected)| inspected)
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let of = |(name, inspected): &(Box<str>, Inspected)| {
            let remarks = inspected.remarks.iter().map(|remark| remark.detail.len() + size_of::<Remark>());
            size_of::<(Box<str>, Inspected)>()
                + name.len()
                + inspected.description.len()
                + remarks.sum::<usize>()
        };
        self.tools.iter().map(of).sum()
    }
}

/// Looks at every tool of a catalog, and at how it stands with the profiles.
pub fn inspect(catalog: &Catalog, profiles: &[Profile]) -> Inspection {
    let mut vocabulary = Vocabulary::default();
    let alike: BTreeMap<&str, String> = lookalike::of_each(catalog).into_iter().collect();
    let inspected = |tool: &CatalogTool| {
        let mut inspected = inspected(tool, profiles, &mut vocabulary);
        if let Some(detail) = alike.get(&*tool.stored_name) {
            inspected.remarks.push(Remark::new(Kind::LookalikeName, format!("{detail}.")));
        }
        (tool.stored_name.clone(), inspected)
    };
    Inspection { tools: catalog.tools().iter().map(|tool| &**tool).map(inspected).collect() }
}

fn inspected(tool: &CatalogTool, profiles: &[Profile], vocabulary: &mut Vocabulary) -> Inspected {
    let own = &tool.tool;
    let description = own.description();
    let whole = one_line(&description);
    let line = one_line(head(&description, READ_CHARS)).into_owned();
    let schema: Value = serde_json::from_str(own.parameters()).unwrap_or_default();
    let parameters = schema.get("properties").and_then(Value::as_object).map_or(0, serde_json::Map::len);

    let mut remarks = Vec::new();
    remarks
        .extend(suspicion::warning(own.body()).map(|found| Remark::new(Kind::SuspiciousText, found.detail)));
    let hidden = hidden_in_text(own.body());
    if hidden > 0 {
        remarks.push(Remark::new(
            Kind::HiddenCharacters,
            format!("{}.", counted(hidden, "character that is not shown", "characters that are not shown")),
        ));
    }
    schema_remarks(tool, &schema, parameters, &mut remarks);
    target_remarks(tool, profiles, &mut remarks);
    if line.is_empty() {
        remarks.push(Remark::new(Kind::NoDescription, "The description is empty."));
    } else if says_little(vocabulary, tool, &line) {
        let detail = format!("\"{}\" says no more than the name.", clip(&line, 80));
        remarks.push(Remark::new(Kind::SaysLittle, detail));
    }
    if own.name() != &*tool.stored_name {
        let detail =
            format!("`{}` stands in several groups; this one is `{}`.", own.name(), tool.stored_name);
        remarks.push(Remark::new(Kind::DuplicateName, detail));
    }
    Inspected {
        description: clip(&line, SHOWN_CHARS).into(),
        text: (!whole.is_empty()).then(|| Digest::of(whole.as_bytes())),
        parameters,
        remarks,
    }
}

fn schema_remarks(tool: &CatalogTool, schema: &Value, parameters: usize, remarks: &mut Vec<Remark>) {
    let own = &tool.tool;
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
fn target_remarks(tool: &CatalogTool, profiles: &[Profile], remarks: &mut Vec<Remark>) {
    // Kind and finding, with the profiles that it holds for.
    let mut found: BTreeMap<(Kind, String), Vec<&str>> = BTreeMap::new();
    for profile in profiles {
        let target = Target { profile: *profile, ..Target::default() };
        let mut find = |kind, what| found.entry((kind, what)).or_default().push(profile.as_str());
        // Made for the review alone: what agents use stays with the tool, and nobody counts this.
        let made = TargetTool::uncounted(target, &tool.tool);
        if made.left_out {
            let why = made.lints.first().map_or("", |lint| lint.detail.as_str());
            find(Kind::LeftOut, why.to_owned());
            continue;
        }
        let wire = profile.wire_name(&tool.stored_name);
        if wire != *tool.stored_name {
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

/// Whether a description has no word that the name, or every tool, does not have.
fn says_little(vocabulary: &mut Vocabulary, tool: &CatalogTool, line: &str) -> bool {
    let mut known: HashSet<String> = HashSet::new();
    for text in [tool.tool.name(), tool.tool.group()] {
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
