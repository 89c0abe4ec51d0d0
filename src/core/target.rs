//! For whom an array is made, and one tool as it stands in such an array.
//!
//! Joins what the format writes (`format`), what the provider takes (`profile`) and what is done about the rest (`mend`). Knows no
//! catalog and no view: a tool, its name on the wire and the target are all that counts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::Value;

use super::digest::Digest;
use super::format::native::Exposure;
use super::format::{self, Format, How, Source, StrictMark, TokenCounts};
use super::grant::BridgeTool;
use super::mend::{
    ArgChange, ArgEffect, Dialect, Lint, Mended, Outcome, SchemaTarget, StrictUse, mend, strict_as_it_is,
};
use super::profile::Profile;
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

    /// Most tools of an array; none where the provider names no figure.
    pub fn max_tools(self) -> Option<usize> {
        self.profile.spoken_in(self.format).limits().max_tools.value
    }

    /// What the model calls to find tools. The search of the Responses format has no name of its own.
    pub fn search_name(self, bridge_prefix: &str) -> String {
        let own = self.exposure == Exposure::Native && self.format == Format::OpenaiResponses;
        BridgeTool::Search.name(if own { "" } else { bridge_prefix })
    }

    /// What one tool depends on: how it is reached is a matter of the array.
    fn of_tool(self) -> Self {
        Self { exposure: Exposure::default(), ..self }
    }

    /// The part of it that schemas depend on.
    pub fn schema(self) -> SchemaTarget {
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
    mark: StrictMark,
    no_arguments: bool,
    /// Made when it first stands in an array: most tools never do.
    entry: OnceLock<ArrayEntry>,
    /// The same without strict mode, where that is needed.
    plain: OnceLock<Arc<TargetTool>>,
}

impl TargetTool {
    /// Makes a tool for a target under a wire name. `counts` are those of the same tool under the same name, where that is known.
    pub fn make(target: Target, wire_name: &str, tool: &Tool, counts: Option<&TokenCounts>) -> Self {
        let mut made = Self::uncounted(target, tool);
        if made.left_out {
            return made;
        }
        let is_usual = !made.clipped && made.how() == How::usual(target.format);
        made.tokens = match counts.filter(|_| is_usual) {
            Some(counts) => counts.get(target.format),
            None => made.count(wire_name, tool),
        };
        made
    }

    /// The same without its tokens, which are 0, for who looks at what becomes of a tool.
    pub fn uncounted(target: Target, tool: &Tool) -> Self {
        let Mended { schema, arg_map, notes, outcome, strict, no_arguments } =
            mend(tool.parameters(), &target.schema());
        let mut made = Self {
            target,
            tokens: 0,
            left_out: matches!(outcome, Outcome::LeftOut(_)),
            clipped: false,
            arg_map: arg_map.into(),
            lints: notes.into(),
            schema: (outcome == Outcome::Mended).then(|| schema.into_owned().into()),
            strict,
            mark: if strict.is_some() { StrictMark::Set } else { StrictMark::Own },
            no_arguments,
            entry: OnceLock::new(),
            plain: OnceLock::new(),
        };
        if made.left_out {
            return made;
        }
        made.look_at_own_strict(tool);
        made.clipped = target.description_limit().is_some_and(|limit| {
            tool.description_json().len() > limit && tool.description().chars().nth(limit).is_some()
        });
        made
    }

    fn count(&self, wire_name: &str, tool: &Tool) -> usize {
        tokens::count(&format::render_how(self.target.format, wire_name, tool, &self.how()).json)
    }

    /// A tool that says of itself that it is strict costs the whole array where its schema is not.
    fn look_at_own_strict(&mut self, tool: &Tool) {
        let is_open = self.mark == StrictMark::Own && !self.how().openapi;
        if !is_open || !format::says_strict(self.target.format, tool) {
            return;
        }
        // Whose strict mode the tool means, where the profile knows none of its own.
        let by_source = match tool.kept().extra_of.as_deref().and_then(Source::parse) {
            Some(Source::Openai) => Profile::Openai,
            _ => Profile::Anthropic,
        };
        let profile = self.target.profile.spoken_in(self.target.format);
        let rules = profile.limits().strict.or(by_source.limits().strict);
        let sent = self.schema.as_deref().unwrap_or(tool.parameters());
        self.strict = rules.and_then(|rules| strict_as_it_is(sent, &rules));
        if self.strict.is_some() && self.schema.is_some() {
            self.mark = StrictMark::Set;
        }
        if self.strict.is_none() {
            self.mark = StrictMark::Cleared;
            let detail = "it says that it is strict, which its schema is not; sent without strict mode";
            let lint =
                Lint { code: "not_strict", pointer: String::new(), detail: detail.to_owned(), lossy: false };
            self.lints = std::mem::take(&mut self.lints).into_iter().chain([lint]).collect();
        }
    }

    /// What the tool counts towards the strict ones of a request; nothing where it is not sent as strict.
    pub fn strict_use(&self) -> Option<StrictUse> {
        self.strict
    }

    /// The same without the strict mode that the tool came with; nothing where it has none. A tool that was made strict has
    /// another schema without, and is to be made anew.
    pub fn without_own_strict(&self, wire_name: &str, tool: &Tool) -> Option<Arc<Self>> {
        self.strict?;
        Some(Arc::clone(self.plain.get_or_init(|| Arc::new(self.cleared(wire_name, tool)))))
    }

    fn cleared(&self, wire_name: &str, tool: &Tool) -> Self {
        let mut made = Self {
            arg_map: self.arg_map.clone(),
            lints: self.lints.clone(),
            schema: self.schema.clone(),
            strict: None,
            mark: StrictMark::Cleared,
            entry: OnceLock::new(),
            plain: OnceLock::new(),
            ..*self
        };
        made.tokens = made.count(wire_name, tool);
        made
    }

    /// The tool's whole definition in a format, which may be another one than the target's.
    pub fn whole(&self, format: Format, wire_name: &str, tool: &Tool) -> String {
        let how = How { whole: true, description_limit: None, ..self.how_in(format) };
        format::render_how(format, wire_name, tool, &how).json
    }

    fn how(&self) -> How<'_> {
        self.how_in(self.target.format)
    }

    fn how_in(&self, format: Format) -> How<'_> {
        let Target { profile, dialect, .. } = self.target;
        let layout = format.layout();
        How {
            schema: self.schema.as_deref(),
            description_limit: self.target.description_limit(),
            omits_empty_description: layout.empty_description
                && profile.limits().omit_empty_description.value,
            openapi: dialect == Dialect::OpenApi && layout.openapi_schema.is_some(),
            strict: self.mark,
            no_arguments: self.no_arguments && dialect == Dialect::OpenApi,
            whole: false,
        }
    }

    /// The text of [`Self::entry`], which is not kept for it.
    pub fn entry_text(&self, wire_name: &str, tool: &Tool) -> Option<Cow<'_, str>> {
        let rendered = || format::render_how(self.target.format, wire_name, tool, &self.how()).json;
        let text = || self.entry.get().map_or_else(|| rendered().into(), |entry| Cow::Borrowed(&*entry.json));
        (!self.left_out).then(text)
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
    /// true where the value is the whole of the arguments; a list where several hold. None where there are none.
    pub fn arg_map_document(&self) -> Option<BTreeMap<String, Value>> {
        let mut document: BTreeMap<String, Value> = BTreeMap::new();
        for change in &self.arg_map {
            let (place, effect) = told(change);
            let effects = match document.remove(&place) {
                None => effect,
                Some(Value::Array(known)) => known.into_iter().chain([effect]).collect(),
                Some(known) => Value::Array(vec![known, effect]),
            };
            document.insert(place, effects);
        }
        (!document.is_empty()).then_some(document)
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
    use crate::core::mend::{ArgPath, ArgStep};

    /// A key that the provider refuses, of an argument that strict mode makes required: both are told.
    #[test]
    fn all_that_holds_for_an_argument_is_told() {
        let path = || ArgPath(vec![ArgStep::Key("top_1".to_owned())]);
        let change = |effect| ArgChange { path: path(), effect };
        let renamed = || change(ArgEffect::Renamed("$top".to_owned()));
        let told = |changes: Vec<ArgChange>| {
            let made = TargetTool {
                target: Target::default(),
                tokens: 0,
                left_out: false,
                clipped: false,
                arg_map: changes.into(),
                lints: Box::default(),
                schema: None,
                strict: None,
                mark: StrictMark::Own,
                no_arguments: false,
                entry: OnceLock::new(),
                plain: OnceLock::new(),
            };
            json!(made.arg_map_document())
        };
        assert_eq!(told(Vec::new()), Value::Null);
        assert_eq!(told(vec![renamed()]), json!({"/top_1": "$top"}));
        assert_eq!(told(vec![renamed(), change(ArgEffect::NullIsAbsent)]), json!({"/top_1": ["$top", null]}));
    }

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
