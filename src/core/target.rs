//! For whom an array is made, and one tool as it stands in such an array.
//!
//! Joins what the format writes (`format`), what the provider takes (`profile`) and what is done about the rest (`mend`). Knows no
//! catalog and no view: a tool, its name on the wire and the target are all that counts.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::Value;

use super::digest::Digest;
use super::format::native::Exposure;
use super::format::{self, Format, How, TokenCounts};
use super::mend::{ArgChange, ArgEffect, Dialect, Lint, Mended, Outcome, SchemaTarget, StrictUse, mend};
use super::profile::{Profile, StrictRules};
use super::tokens;
use super::tool::Tool;

/// Who reads an array: its envelope, and whose rules its tools keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Target {
    pub format: Format,
    pub profile: Profile,
    /// OpenAPI's subset for Gemini's `parameters`; other formats have JSON Schema alone.
    pub dialect: Dialect,
    /// Whether the provider's strict mode is wanted for tools that fit it.
    pub strict: bool,
    /// How tools outside of core reach the model.
    pub exposure: Exposure,
}

impl Target {
    /// A format with the rules that hold for everybody.
    pub fn of(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// What tells arrays of one session apart: the format alone where nothing else is asked for.
    pub fn name(self) -> String {
        let mut name = self.format.as_str().to_owned();
        if self.profile != Profile::default() {
            name = format!("{name} for {}", self.profile.as_str());
        }
        if self.dialect == Dialect::OpenApi {
            name.push_str(", openapi");
        }
        if self.strict {
            name.push_str(", strict");
        }
        if self.exposure != Exposure::default() {
            name.push_str(", ");
            name.push_str(self.exposure.as_str());
        }
        name
    }

    /// What one tool depends on: how it is reached is a matter of the array.
    fn of_tool(self) -> Self {
        Self { exposure: Exposure::default(), ..self }
    }

    fn schema(self) -> SchemaTarget {
        SchemaTarget { profile: self.profile, dialect: self.dialect, strict: self.strict }
    }

    /// Longest description of an array's tool, in characters.
    pub fn description_limit(self) -> Option<usize> {
        self.profile.description_limit(self.format.layout().description_limit)
    }
}

/// A tool as it stands in an array: made once and copied from then on.
#[derive(Debug, Clone)]
pub struct ArrayEntry {
    pub json: Box<str>,
    /// Head of the digest of `json`.
    pub digest: u64,
    /// Exact o200k count of `json`.
    pub tokens: usize,
    /// Whether the description had to be cut.
    pub clipped: bool,
}

impl ArrayEntry {
    pub fn new(json: String, tokens: usize, clipped: bool) -> Self {
        Self { digest: Digest::of(json.as_bytes()).short(), json: json.into(), tokens, clipped }
    }
}

/// A tool for a target.
#[derive(Debug)]
pub struct TargetTool {
    target: Target,
    /// Exact o200k count of its entry; 0 where it is left out.
    pub tokens: usize,
    /// Whether the tool cannot be sent to this target; `lints` say why.
    pub left_out: bool,
    /// Whether the description has to be cut.
    pub clipped: bool,
    /// How arguments for the schema that is sent differ from the tool's own.
    pub arg_map: Box<[ArgChange]>,
    /// What was found in its schema.
    pub lints: Box<[Lint]>,
    /// The schema as it is sent, where it is not the tool's own.
    schema: Option<Box<str>>,
    /// What it counts towards the strict tools of a request, where it is sent as strict.
    strict: Option<StrictUse>,
    no_arguments: bool,
    /// Whether the tool came with a strict mode that its schema does not fit: a 400 for the whole array.
    not_strict: bool,
    /// Made when it first stands in an array: most tools never do.
    entry: OnceLock<ArrayEntry>,
}

impl TargetTool {
    /// Makes a tool for a target under a wire name. `counts` are those of the same tool under the same name, where that is known.
    pub fn make(target: Target, wire_name: &str, tool: &Tool, counts: Option<&TokenCounts>) -> Self {
        let Mended { schema, arg_map, mut notes, outcome, strict, no_arguments } =
            mend(tool.parameters(), &target.schema());
        let not_strict = strict.is_none()
            && outcome == Outcome::Kept
            && format::brings_strict(target.format, tool)
            && !is_strict(tool.parameters(), target);
        if not_strict && !notes.iter().any(|note| note.code == "not_strict") {
            let detail = "the tool came as strict and its schema is not".to_owned();
            notes.push(Lint { code: "not_strict", pointer: String::new(), detail, lossy: false });
        }
        let mut made = Self {
            target,
            tokens: 0,
            left_out: matches!(outcome, Outcome::LeftOut(_)),
            clipped: false,
            arg_map: arg_map.into(),
            lints: notes.into(),
            schema: (outcome == Outcome::Mended).then(|| schema.into_owned().into()),
            strict,
            no_arguments,
            not_strict,
            entry: OnceLock::new(),
        };
        if made.left_out {
            return made;
        }
        made.clipped = target.description_limit().is_some_and(|limit| {
            tool.description_json().len() > limit && tool.description().chars().nth(limit).is_some()
        });
        let is_usual = !made.clipped && made.how() == How::usual(target.format);
        made.tokens = match counts.filter(|_| is_usual) {
            Some(counts) => counts.get(target.format),
            None => tokens::count(&format::render_how(target.format, wire_name, tool, &made.how()).json),
        };
        made
    }

    fn how(&self) -> How<'_> {
        let Target { format, profile, dialect, .. } = self.target;
        let layout = format.layout();
        How {
            schema: self.schema.as_deref(),
            description_limit: self.target.description_limit(),
            omits_empty_description: layout.empty_description
                && profile.limits().omit_empty_description.value,
            openapi: dialect == Dialect::OpenApi && layout.openapi_schema.is_some(),
            strict: self.strict.is_some(),
            no_arguments: self.no_arguments && dialect == Dialect::OpenApi,
            not_strict: self.not_strict,
        }
    }

    /// The tool in an array, under the name that this was made for; none where it is left out.
    pub fn entry(&self, wire_name: &str, tool: &Tool) -> Option<&ArrayEntry> {
        let render = || {
            let rendered = format::render_how(self.target.format, wire_name, tool, &self.how());
            ArrayEntry::new(rendered.json, self.tokens, rendered.clipped)
        };
        (!self.left_out).then(|| self.entry.get_or_init(render))
    }

    /// The schema that a model fills in for this target, where it is not the tool's own.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The changes of arguments as they are told, by place: the original key, null where a null means that the argument is absent, or
    /// true where the value is the whole of the arguments. None where there are none.
    pub fn arg_map_document(&self) -> Option<BTreeMap<String, Value>> {
        (!self.arg_map.is_empty()).then(|| self.arg_map.iter().map(told).collect())
    }
}

/// Whether a schema as it is fits the provider's strict mode: what all providers want of it, where this one says nothing.
fn is_strict(parameters: &str, target: Target) -> bool {
    let profile = if target.profile.limits().strict.is_some() { target.profile } else { Profile::Generic };
    let mended = mend(parameters, &SchemaTarget { profile, dialect: Dialect::JsonSchema, strict: true });
    mended.outcome == Outcome::Kept && mended.strict.is_some()
}

/// How much of what a request may hold of strict tools is left; each none where the provider names no figure.
#[derive(Debug, Clone, Copy)]
pub struct StrictRoom {
    tools: Option<usize>,
    optional: Option<usize>,
    unions: Option<usize>,
}

impl StrictRoom {
    /// All of it.
    pub fn of(target: Target) -> Self {
        let rules = target.profile.limits().strict;
        let most = |figure: fn(&StrictRules) -> Option<usize>| rules.as_ref().and_then(figure);
        Self {
            tools: most(|rules| rules.max_tools),
            optional: most(|rules| rules.max_optional),
            unions: most(|rules| rules.max_unions),
        }
    }

    /// Takes a tool's share. False, and nothing is taken, for a tool that has to be sent without strict mode.
    pub fn take(&mut self, tool: &TargetTool) -> bool {
        let Some(used) = tool.strict else { return true };
        let less = |room: Option<usize>, share: usize| match room {
            None => Some(None),
            Some(room) => room.checked_sub(share).map(Some),
        };
        let left = (less(self.tools, 1), less(self.optional, used.optional), less(self.unions, used.unions));
        let (Some(tools), Some(optional), Some(unions)) = left else { return false };
        *self = Self { tools, optional, unions };
        true
    }
}

/// Targets of one tool that are kept at a time: a scope's agents speak few formats, and the caches weigh a catalog as if two
/// were.
const MAX_KEPT: usize = 4;

/// A tool for the targets that were asked for, each made once.
#[derive(Debug, Default)]
pub struct Made(RwLock<Vec<(Target, Arc<TargetTool>)>>);

impl Made {
    /// The tool for a target; of two that make it at once the first one stays.
    pub fn get(&self, target: Target, make: impl FnOnce(Target) -> TargetTool) -> Arc<TargetTool> {
        let target = target.of_tool();
        let find = |kept: &[(Target, Arc<TargetTool>)]| {
            kept.iter().find(|(known, _)| *known == target).map(|(_, tool)| Arc::clone(tool))
        };
        if let Some(tool) = find(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return tool;
        }
        let made = Arc::new(make(target));
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = find(&kept) {
            return tool;
        }
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push((target, Arc::clone(&made)));
        made
    }
}

fn told(change: &ArgChange) -> (String, Value) {
    let effect = match &change.effect {
        ArgEffect::Renamed(original) => Value::from(original.as_str()),
        ArgEffect::Whole => Value::Bool(true),
        ArgEffect::NullIsAbsent => Value::Null,
    };
    (change.path.to_string(), effect)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_stays_strict_only_where_its_schema_is() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false});
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        for (schema, profile, strict) in [
            (&closed, Profile::Openai, json!(true)),
            (&closed, Profile::Generic, json!(true)),
            (&closed, Profile::Deepseek, json!(true)),
            (&open, Profile::Openai, json!(false)),
            (&open, Profile::Generic, json!(false)),
            (&open, Profile::Deepseek, json!(false)),
        ] {
            let body = json!({"group": "g", "name": "t", "description": "", "parameters": schema, "extra_of": "openai", "extra": {"strict": true}});
            let tool = Tool::from_body(body.to_string().into()).unwrap();
            let target = Target { profile, ..Target::of(Format::OpenaiResponses) };
            let made = TargetTool::make(target, "t", &tool, Some(&TokenCounts::of("t", &tool)));
            let entry = made.entry("t", &tool).unwrap();
            let sent: Value = serde_json::from_str(&entry.json).unwrap();
            assert_eq!((&sent["strict"], &sent["parameters"]), (&strict, schema), "{profile:?}");
            assert_eq!(
                made.lints.iter().any(|lint| lint.code == "not_strict"),
                strict == false,
                "{profile:?}"
            );
            assert_eq!(entry.tokens, tokens::count(&entry.json));
        }
    }
}
