//! A provider that looks at a whole array and says what it would refuse.
//!
//! Written from the providers' documents and error texts (`table.rs`), and from nothing that the service does: it reads JSON that came
//! over HTTP. `schema.rs` looks at schemas, `strict.rs` at those of strict mode; here are the array, its envelopes and names.

use std::collections::HashSet;

use serde_json::{Map, Value};

mod schema;
mod strict;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use table::PROFILES;

use crate::model::{definition, entries};
use schema::Checker;
use strict::Sums;
use table::{Rules, rules, strict};

/// For whom an array was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) profile: &'a str,
    pub(crate) format: &'a str,
    /// Whether Gemini's OpenAPI field was asked for.
    pub(crate) openapi: bool,
}

/// Everything that the provider would refuse about `tools`, the value of an answer's field of that name.
pub(crate) fn faults(asked: Asked<'_>, tools: &Value) -> Vec<String> {
    let rules = rules(asked.profile);
    let mut faults = Vec::new();
    if asked.format == "mcp" {
        if !tools.is_array() {
            faults.push("a list result without an array".to_owned());
        }
    } else if entries(tools).is_empty() && !tools.is_null() {
        faults.push("an array of no tools".to_owned());
    }
    if asked.format == "gemini" && !tools.is_null() {
        let inside = tools
            .as_array()
            .is_some_and(|outer| outer.len() == 1 && keys(&outer[0]).eq(["functionDeclarations"]));
        if !inside {
            faults.push("the declarations do not stand in one object".to_owned());
        }
    }
    let all = entries(tools);
    if rules.most_tools.is_some_and(|most| all.len() > most) {
        faults.push(format!("{} tools", all.len()));
    }
    let mut names = HashSet::new();
    let mut sums = Sums::default();
    for entry in all {
        let name = definition(entry)["name"].as_str().unwrap_or_default();
        if !names.insert(name) {
            faults.push(format!("{name}: stands twice"));
        }
        let found = tool(asked, &rules, entry, &mut sums);
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    if strict(asked.profile, asked.format).is_some_and(|strict| strict.request) {
        faults.extend(sums.over_a_request());
    }
    faults
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str)
}

/// Where a format has what: the members around the definition, the schema's member, other members.
fn members(asked: Asked<'_>) -> (&'static [&'static str], &'static str, &'static [&'static str]) {
    match asked.format {
        "openai_chat" => (&["type", "function"], "parameters", &["strict"]),
        "openai_responses" => (&[], "parameters", &["type", "strict", "output_schema", "allowed_callers"]),
        "anthropic" => {
            let more: &[_] =
                &["type", "strict", "input_examples", "eager_input_streaming", "allowed_callers"];
            (&[], "input_schema", more)
        }
        "gemini" if asked.openapi => (&[], "parameters", &["response", "behavior"]),
        "gemini" => {
            (&[], "parametersJsonSchema", &["parameters", "response", "responseJsonSchema", "behavior"])
        }
        "bedrock_converse" => (&["toolSpec"], "inputSchema", &["strict"]),
        "mcp" => {
            let more: &[_] = &["title", "annotations", "outputSchema", "icons", "_meta", "execution"];
            (&[], "inputSchema", more)
        }
        _ => (&[], "parameters", &[]),
    }
}

fn tool(asked: Asked<'_>, rules: &Rules, entry: &Value, sums: &mut Sums) -> Vec<String> {
    let mut faults = Vec::new();
    let (around, place, more) = members(asked);
    let inner = definition(entry);
    if !around.is_empty() && !keys(entry).eq(around.iter().copied()) {
        faults.push(format!("stands in {:?}", keys(entry).collect::<Vec<_>>()));
    }
    let known = |key: &&str| ["name", "description", place].contains(key) || more.contains(key);
    if let Some(key) = keys(inner).find(|key| !known(key)) {
        faults.push(format!("unknown member {key}"));
    }
    if asked.format.starts_with("openai") && entry["type"] != "function" {
        faults.push("no function".to_owned());
    }
    name(rules, inner["name"].as_str().unwrap_or_default(), &mut faults);
    let description = inner.get("description");
    let may_be_empty = asked.format == "canonical" && !asked.profile.starts_with("bedrock");
    match description {
        None => {}
        Some(Value::String(text)) if text.is_empty() && may_be_empty && asked.profile != "generic" => {}
        Some(Value::String(text)) => {
            let length = text.chars().count();
            // Chat Completions refused long ones whoever is behind it.
            let chat = (asked.format == "openai_chat").then_some(1_024);
            let most = rules.longest_description.or(chat.filter(|_| asked.profile == "generic"));
            if length == 0 || most.is_some_and(|most| length > most) {
                faults.push(format!("a description of {length} characters"));
            }
        }
        Some(other) => faults.push(format!("the description {other}")),
    }
    let says_strict = inner.get("strict");
    if says_strict.is_some_and(|strict| !strict.is_boolean())
        || (asked.format == "openai_responses" && says_strict.is_none())
    {
        faults.push("strict is not said".to_owned());
    }
    let document = if asked.format == "bedrock_converse" {
        inner.pointer("/inputSchema/json")
    } else {
        inner.get(place)
    };
    let Some(document) = document else {
        // Gemini alone takes a tool without a schema, and there one without arguments.
        if asked.format != "gemini" {
            faults.push("no schema".to_owned());
        }
        return faults;
    };
    let Value::Object(root) = document else {
        faults.push(format!("the schema is {document}"));
        return faults;
    };
    if asked.format == "gemini" && asked.openapi {
        faults.extend(schema::openapi(root));
        return faults;
    }
    faults.extend(Checker::of(*rules, root).faults());
    if says_strict == Some(&Value::Bool(true)) {
        match strict(asked.profile, asked.format) {
            Some(strict) => faults.extend(strict::faults(&strict, root, sums)),
            None => faults.push("strict where nobody knows it".to_owned()),
        }
    }
    faults
}

fn name(rules: &Rules, name: &str, faults: &mut Vec<String>) {
    let plain =
        |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || rules.name_marks.contains(letter);
    let head = name.chars().next().is_some_and(|first| {
        first.is_ascii_alphabetic() || first == '_' || (rules.digit_first && plain(first))
    });
    if !head || !name.chars().all(plain) || name.len() > rules.longest_name {
        faults.push("the name".to_owned());
    }
}
