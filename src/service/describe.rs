//! `describe`: whole definitions of named tools.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::context::{Caller, Context, GrantFields};
use super::sessions::Deed;
use super::{Error, Toolrack};
use crate::core::calls::{name_candidates, suggest};
use crate::core::grant::{Resolved, View, ViewTool};
use crate::core::plan::ArgMaps;
use crate::core::text::{clip, one_line};
use crate::core::warning::Warning;
use crate::telemetry;

/// Names that are offered for one that means nothing.
const MAX_SUGGESTIONS: usize = 3;

/// What a describe asks for.
#[derive(Debug, Clone)]
pub struct DescribeRequest {
    pub caller: Caller,
    pub fields: GrantFields,
    /// Stored, wire or unambiguous uploaded names.
    pub names: Vec<String>,
}

/// A name that means no tool of the grant.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NotFound {
    /// As asked for, on one line.
    pub name: String,
    /// `unknown_tool`, `ambiguous_name`, `tool_unavailable` or `bridge_tool`.
    #[schema(value_type = String)]
    pub code: &'static str,
    /// Names of tools that may be meant.
    pub suggestions: Vec<String>,
}

/// Whole definitions.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DescribeAnswer {
    /// Definitions in the asked format, in the order of the names; each tool once.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Box<RawValue>>,
    /// Name in `tools` -> stored name, only where they differ.
    pub name_map: BTreeMap<String, String>,
    /// Name in `tools` -> how arguments for its schema differ from the tool's own, by place, as in an assembly.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub arg_map: ArgMaps,
    pub not_found: Vec<NotFound>,
    /// Tools that this call put into the session's array.
    pub warmed: Vec<String>,
    /// Tools that had to leave it.
    pub evicted: Vec<String>,
    pub warnings: Vec<Warning>,
}

/// What a name from outside leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning<'a> {
    Tool(u32),
    Unavailable(u32),
    Bridge,
    Management,
    Ambiguous(&'a [u32]),
    Unknown,
}

/// What a name means, also one that a model wrote with quotes, a prefix or twice.
pub(super) fn meaning<'a>(view: &'a View, name: &str) -> Meaning<'a> {
    for candidate in name_candidates(name) {
        match view.resolve(&candidate) {
            Resolved::Unknown => {}
            Resolved::Bridge(_) => return Meaning::Bridge,
            Resolved::Management(_) => return Meaning::Management,
            Resolved::Ambiguous(ids) => return Meaning::Ambiguous(ids),
            Resolved::Tool(id) if view.get(id).is_some_and(|tool| tool.unavailable) => {
                return Meaning::Unavailable(id);
            }
            Resolved::Tool(id) => return Meaning::Tool(id),
        }
    }
    Meaning::Unknown
}

/// Ids of the tools that a name may have meant.
pub(super) fn suggestions(view: &View, name: &str) -> Vec<u32> {
    let names = view.visible().map(|(_, tool)| tool.stored_name());
    let ids =
        suggest(name, names, MAX_SUGGESTIONS).into_iter().filter_map(|name| match view.resolve_tool(name) {
            Resolved::Tool(id) => Some(id),
            _ => None,
        });
    ids.collect()
}

/// A name from outside as it may be repeated.
pub(super) fn shown(name: &str) -> String {
    clip(&one_line(name), 128).into_owned()
}

/// What describing names gave, before anything is warmed.
#[derive(Debug, Default)]
pub(super) struct Described {
    /// Each tool once.
    pub ids: Vec<u32>,
    pub missing: Vec<(String, &'static str, Vec<u32>)>,
}

/// Looks names up; a name that means nothing comes with the tools that it may have meant.
pub(super) fn look_up(context: &Context, names: &[String], route: &'static str) -> Described {
    let view = context.view();
    let mut described = Described::default();
    for name in names {
        let missing = match meaning(view, name) {
            Meaning::Tool(id) => {
                if !described.ids.contains(&id) {
                    described.ids.push(id);
                }
                continue;
            }
            Meaning::Unavailable(_) => ("tool_unavailable", Vec::new()),
            Meaning::Bridge | Meaning::Management => ("bridge_tool", Vec::new()),
            Meaning::Ambiguous(ids) => ("ambiguous_name", ids.to_vec()),
            Meaning::Unknown => ("unknown_tool", suggestions(view, name)),
        };
        if missing.0 == "unknown_tool" {
            telemetry::unknown_tool_call(route);
        }
        described.missing.push((shown(name), missing.0, missing.1));
    }
    described
}

impl Toolrack {
    /// Describes tools by name, and warms them.
    pub async fn describe(&self, request: DescribeRequest) -> Result<DescribeAnswer, Error> {
        self.check_names(&request.names)?;
        let context = self.context(&request.caller, &request.fields).await?;
        let described = look_up(&context, &request.names, "describe");
        let view = context.view();
        let tools = described.ids.iter().filter_map(|id| view.get(*id));
        let tools = tools.map(|tool| {
            let made = tool.for_target(context.target);
            RawValue::from_string(made.whole(context.target.format, tool.wire_name(), &tool.tool.tool))
        });
        let tools: Vec<Box<RawValue>> = tools.collect::<Result<_, _>>().map_err(Error::internal)?;
        let described_tools = described.ids.iter().filter_map(|id| view.get(*id));
        let mapped = |tool: &ViewTool| Some((tool.mapped_name()?.to_owned(), tool.stored_name().to_owned()));
        let name_map = described_tools.clone().filter_map(mapped).collect();
        let arguments = |tool: &ViewTool| {
            Some((tool.wire_name().to_owned(), tool.for_target(context.target).arg_map_document()?))
        };
        let arg_map = described_tools.filter_map(arguments).collect();
        let stored = |ids: &[u32]| {
            ids.iter().filter_map(|id| view.get(*id)).map(|tool| tool.stored_name().to_owned()).collect()
        };
        let not_found = described.missing.iter().map(|(name, code, ids)| NotFound {
            name: name.clone(),
            code,
            suggestions: stored(ids),
        });
        let warming = self.warm(&context, &described.ids, Deed::Describe).await?;
        let mut warnings = context.warnings();
        warnings.extend(warming.warnings);
        let text = serde_json::to_string(&tools).map_err(Error::internal)?;
        self.usage().described(&request.caller);
        self.answered_text(&request.caller, "describe", text).await;
        Ok(DescribeAnswer {
            tools,
            name_map,
            arg_map,
            not_found: not_found.collect(),
            warmed: warming.warmed,
            evicted: warming.evicted,
            warnings,
        })
    }

    fn check_names(&self, names: &[String]) -> Result<(), Error> {
        let most = self.0.limits.names;
        match names.len() {
            0 => Err(Error::invalid("/names", "missing_key", "name at least one tool")),
            count if count > most => Err(Error::invalid(
                "/names",
                "too_many",
                format!("{count} names are more than {most} at once"),
            )),
            _ => Ok(()),
        }
    }
}
