//! Disjunction: alternatives about one object as one object schema, with what they differ in told in words.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::merge::merge;
use super::notes::{Notes, tell};
use super::walk::{At, dedupe, weight};
use super::{Budget, Stop, refs, types};
use crate::core::profile::SchemaRules;
use crate::core::text::{clip, first_sentence, one_line};

/// Alternatives of one property that are told apart; with more, anything is allowed.
const MAX_VARIANTS: usize = 8;

/// Alternatives that a description tells.
const MAX_LABELS: usize = 8;

/// Longest text about one alternative, in characters.
const LABEL_CHARS: usize = 80;

/// Alternatives inside alternatives that are joined.
const MAX_NESTING: usize = 8;

/// Parts that are looked at to see whether a schema can be an object. Each may lie one level deeper, so this also
/// bounds the stack.
const MAX_LOOKS: usize = 200;

/// Rounds of writing `allOf` out: each may bring another one.
const MAX_ROUNDS: usize = 16;

/// What joining needs to know besides the schema.
pub(super) struct Joiner<'a> {
    pub(super) rules: &'a SchemaRules,
    /// The definitions that kept references lead to.
    pub(super) defs: &'a Map<String, Value>,
    pub(super) budget: &'a mut Budget,
    pub(super) notes: &'a mut Notes,
    /// Definitions that are written out around the present place: inside themselves they are not again.
    pub(super) open: Vec<String>,
}

impl Joiner<'_> {
    /// Writes out the reference of this schema, not those below it. The definition counts as open from then on.
    pub(super) fn resolve(&mut self, map: &mut Map<String, Value>, at: &At<'_>) -> Result<(), Stop> {
        let defs = self.defs;
        while let Some(Value::String(reference)) = map.shift_remove("$ref") {
            let name = refs::name_of(&reference).filter(|name| !self.open.contains(name));
            let target = name.as_ref().and_then(|name| defs.get(name)).and_then(Value::as_object);
            let (Some(name), Some(target)) = (name, target) else {
                self.notes.lost("reference_cut", at, "a schema inside itself is cut");
                return Ok(());
            };
            self.budget.take(target.values().map(weight).sum())?;
            merge(map, target.clone(), at, self.notes);
            self.notes.mended("reference_inlined", at, "what a reference means stands in its place");
            self.open.push(name);
        }
        Ok(())
    }

    /// Writes the schemas of `allOf` into the schema around them.
    pub(super) fn flatten_all(&mut self, map: &mut Map<String, Value>, at: &At<'_>) -> Result<(), Stop> {
        let mut rounds = 0;
        while let Some(Value::Array(branches)) = map.shift_remove("allOf") {
            rounds += 1;
            if rounds > MAX_ROUNDS {
                self.notes.lost(
                    "schemas_merged",
                    at,
                    "`allOf` inside `allOf` goes too deep; the rest is left out",
                );
                return Ok(());
            }
            self.notes.mended("schemas_merged", at, "the schemas of `allOf` are written as one");
            for branch in branches {
                let Value::Object(mut branch) = branch else { continue };
                self.resolve(&mut branch, at)?;
                merge(map, branch, at, self.notes);
            }
        }
        Ok(())
    }

    /// Joins the alternatives under `keyword` into the object schema around them.
    pub(super) fn unite(
        &mut self,
        map: &mut Map<String, Value>,
        keyword: &str,
        at: &At<'_>,
        nesting: usize,
    ) -> Result<(), Stop> {
        let Some(Value::Array(branches)) = map.shift_remove(keyword) else { return Ok(()) };
        self.notes.lost("union_flattened", at, &format!("the alternatives of `{keyword}` are joined"));
        let mut forms = Vec::new();
        for branch in branches {
            let Value::Object(branch) = branch else { continue };
            forms.extend(self.form(branch, at, nesting)?);
        }
        if let Some(text) = labels(&forms, keyword, map) {
            tell(map, &text);
        }
        overlay(map, forms);
        Ok(())
    }

    /// Joins what depends on conditions: then every property may be given, and what both branches require must be.
    pub(super) fn absorb_conditions(
        &mut self,
        map: &mut Map<String, Value>,
        at: &At<'_>,
    ) -> Result<(), Stop> {
        let condition = map.shift_remove("if");
        let outcomes = [map.shift_remove("then"), map.shift_remove("else")];
        if let Some(condition) = &condition {
            let texts = ["then", "else"].into_iter().zip(&outcomes).filter_map(|(word, outcome)| {
                outcome.as_ref().map(|outcome| format!(" {word} {}", clip(&outcome.to_string(), LABEL_CHARS)))
            });
            let text: String = texts.collect();
            tell(map, &format!("if {}{text}", clip(&condition.to_string(), LABEL_CHARS)));
            self.notes.lost("union_flattened", at, "what holds under a condition is told in the description");
            self.overlay_any(map, outcomes.into_iter().map(Option::unwrap_or_default), at)?;
        } else if outcomes.iter().any(Option::is_some) {
            self.notes.mended("keyword_dropped", at, "`then` and `else` say nothing without `if`");
        }
        if let Some(Value::Object(entries)) = map.shift_remove("dependentSchemas") {
            self.notes.lost("union_flattened", at, "what holds under a condition is told in the description");
            let texts: Vec<String> = entries
                .iter()
                .take(MAX_LABELS)
                .map(|(key, entry)| format!("with {key}: {}", clip(&entry.to_string(), LABEL_CHARS)))
                .collect();
            tell(map, &texts.join("; "));
            for (_, entry) in entries {
                self.overlay_any(map, [entry, json!({})].into_iter(), at)?;
            }
        }
        Ok(())
    }

    fn overlay_any(
        &mut self,
        map: &mut Map<String, Value>,
        branches: impl Iterator<Item = Value>,
        at: &At<'_>,
    ) -> Result<(), Stop> {
        let mut forms = Vec::new();
        for branch in branches {
            let branch = if let Value::Object(branch) = branch { branch } else { Map::new() };
            forms.extend(self.form(branch, at, 1)?);
        }
        overlay(map, forms);
        Ok(())
    }

    /// An alternative as a plain object schema; none when it cannot be an object.
    fn form(
        &mut self,
        mut branch: Map<String, Value>,
        at: &At<'_>,
        nesting: usize,
    ) -> Result<Option<Map<String, Value>>, Stop> {
        let outer = self.open.len();
        let form = self.plain_form(&mut branch, at, nesting)?;
        self.open.truncate(outer);
        Ok(form.then_some(branch))
    }

    /// Makes a plain object schema of an alternative; false when it cannot be an object.
    fn plain_form(
        &mut self,
        branch: &mut Map<String, Value>,
        at: &At<'_>,
        nesting: usize,
    ) -> Result<bool, Stop> {
        self.resolve(branch, at)?;
        self.flatten_all(branch, at)?;
        self.resolve(branch, at)?;
        if !may_be_object(branch, self.defs) {
            return Ok(false);
        }
        for keyword in ["oneOf", "anyOf"] {
            if nesting < MAX_NESTING {
                self.unite(branch, keyword, at, nesting + 1)?;
            } else if branch.shift_remove(keyword).is_some() {
                self.notes.lost("union_flattened", at, "alternatives inside alternatives go too deep");
            }
        }
        if nesting < MAX_NESTING
            && ["if", "dependentSchemas"].iter().any(|keyword| branch.contains_key(*keyword))
        {
            self.absorb_conditions_of_form(branch, at, nesting)?;
        }
        Ok(true)
    }

    /// Conditions inside of an alternative: what may be given, without words.
    fn absorb_conditions_of_form(
        &mut self,
        branch: &mut Map<String, Value>,
        at: &At<'_>,
        nesting: usize,
    ) -> Result<(), Stop> {
        branch.shift_remove("if");
        let mut outcomes = vec![branch.shift_remove("then"), branch.shift_remove("else")];
        if let Some(Value::Object(entries)) = branch.shift_remove("dependentSchemas") {
            outcomes.extend(entries.into_iter().map(|(_, entry)| Some(entry)));
            outcomes.push(None);
        }
        let mut forms = Vec::new();
        for outcome in outcomes {
            let outcome = if let Some(Value::Object(outcome)) = outcome { outcome } else { Map::new() };
            forms.extend(self.form(outcome, at, nesting + 1)?);
        }
        overlay(branch, forms);
        Ok(())
    }
}

/// Whether an object can satisfy a schema, as far as looking at some of its parts tells.
pub(super) fn may_be_object(map: &Map<String, Value>, defs: &Map<String, Value>) -> bool {
    let mut looks = MAX_LOOKS;
    may_be(map, defs, &mut looks)
}

/// Parts that refer to each other stand for any number of parts: when the looks are used up, the answer is yes.
fn may_be(map: &Map<String, Value>, defs: &Map<String, Value>, looks: &mut usize) -> bool {
    let declared = types::declared(map);
    if !declared.is_empty() {
        return declared.contains(&"object");
    }
    if let Some(value) = map.get("const") {
        return value.is_object();
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        return values.is_empty() || values.iter().any(Value::is_object);
    }
    let mut part = |value: &Value| {
        let Value::Object(map) = value else { return true };
        *looks = looks.saturating_sub(1);
        *looks == 0 || may_be(map, defs, looks)
    };
    if let Some(name) = map.get("$ref").and_then(Value::as_str).and_then(refs::name_of)
        && let Some(target) = defs.get(&name)
        && !part(target)
    {
        return false;
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = map.get(keyword)
            && !branches.iter().any(&mut part)
        {
            return false;
        }
    }
    if let Some(Value::Array(branches)) = map.get("allOf")
        && !branches.iter().all(&mut part)
    {
        return false;
    }
    let about = |kind: &str| map.keys().any(|keyword| types::belongs_to(keyword) == Some(kind));
    about("object") || !(about("array") || about("string") || about("number"))
}

/// Adds what the forms have in common, and what any of them has, to an object schema.
fn overlay(map: &mut Map<String, Value>, forms: Vec<Map<String, Value>>) {
    let Some((first, others)) = forms.split_first() else { return };
    let closed = |form: &Map<String, Value>| form.get("additionalProperties") == Some(&Value::Bool(false));
    let all_closed = forms.iter().all(closed);
    let mut required: Vec<Value> = names(first).to_vec();
    for form in others {
        let asked = asked_by(form);
        required.retain(|name| name.as_str().is_some_and(|name| asked.contains(name)));
    }
    if !required.is_empty() {
        if let Some(Value::Array(there)) = map.get("required") {
            required = there.iter().cloned().chain(required).collect();
            dedupe(&mut required);
        }
        map.insert("required".to_owned(), Value::Array(required));
    }
    let mut variants: Map<String, Value> = Map::new();
    let mut seen: HashSet<(String, String)> = HashSet::new();
    for mut form in forms {
        let Some(Value::Object(properties)) = form.shift_remove("properties") else { continue };
        for (name, schema) in properties {
            if seen.insert((name.clone(), schema.to_string()))
                && let Value::Array(list) = variants.entry(name).or_insert_with(|| json!([]))
            {
                list.push(schema);
            }
        }
    }
    if variants.is_empty() {
        return;
    }
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else { return };
    for (name, list) in variants {
        let Value::Array(list) = list else { continue };
        let joined = either(list);
        match properties.get_mut(&name) {
            Some(Value::Object(there)) if !says_what(there) => {
                if let Value::Object(joined) = joined {
                    merge(there, joined, &At::ROOT, &mut Notes::default());
                }
            }
            Some(_) => {}
            None => {
                properties.insert(name, joined);
            }
        }
    }
    if all_closed && !map.contains_key("additionalProperties") {
        map.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// Whether a schema says what its values are, not only something about them.
fn says_what(map: &Map<String, Value>) -> bool {
    ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"]
        .iter()
        .any(|keyword| map.contains_key(*keyword))
}

fn names(form: &Map<String, Value>) -> &[Value] {
    form.get("required").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn asked_by(form: &Map<String, Value>) -> HashSet<&str> {
    names(form).iter().filter_map(Value::as_str).collect()
}

/// One schema for values that satisfy one of several.
pub(super) fn either(mut variants: Vec<Value>) -> Value {
    if variants.len() == 1 {
        return variants.remove(0);
    }
    if let Some(listed) = one_enum(&variants) {
        return listed;
    }
    if variants.len() > MAX_VARIANTS {
        return json!({});
    }
    json!({ "anyOf": variants })
}

/// Constants and enums of the same type as one enum.
fn one_enum(variants: &[Value]) -> Option<Value> {
    let mut joined: Option<Map<String, Value>> = None;
    let mut values: Vec<Value> = Vec::new();
    for variant in variants {
        let map = variant.as_object()?;
        let mut rest = map.clone();
        match (rest.shift_remove("const"), rest.shift_remove("enum")) {
            (Some(value), None) => values.push(value),
            (None, Some(Value::Array(listed))) => values.extend(listed),
            _ => return None,
        }
        match &joined {
            None => joined = Some(rest),
            // A description of one value is not one of all.
            Some(first) if first.get("type") == rest.get("type") => {}
            Some(_) => return None,
        }
    }
    let mut joined = joined?;
    if variants.iter().any(|variant| variant.get("description") != joined.get("description")) {
        joined.shift_remove("description");
    }
    for annotation in ["title", "default", "examples"] {
        joined.shift_remove(annotation);
    }
    dedupe(&mut values);
    joined.insert("enum".to_owned(), Value::Array(values));
    Some(Value::Object(joined))
}

/// What the forms ask for, in words; none when there is nothing to tell them apart.
fn labels(forms: &[Map<String, Value>], keyword: &str, base: &Map<String, Value>) -> Option<String> {
    let asked = asked_by(base);
    let labels: Vec<String> = forms.iter().take(MAX_LABELS + 1).map(|form| label(form, &asked)).collect();
    if labels.len() < 2 || labels.iter().all(String::is_empty) {
        return None;
    }
    let mut shown: Vec<String> = labels
        .iter()
        .take(MAX_LABELS)
        .map(|label| if label.is_empty() { "(none)".to_owned() } else { format!("({label})") })
        .collect();
    if labels.len() > MAX_LABELS {
        shown.push("…".to_owned());
    }
    let word = if keyword == "oneOf" { "give exactly one of" } else { "give at least one of" };
    Some(format!("{word}: {}", shown.join(" or ")))
}

/// The constants of a form and the names that it requires beyond those of the schema around it, else its title.
fn label(form: &Map<String, Value>, asked: &HashSet<&str>) -> String {
    let mut parts = Vec::new();
    let properties = form.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(value) = only_value(schema) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            parts.push(format!("{name}={value}"));
        }
    }
    for name in names(form).iter().filter_map(Value::as_str).filter(|name| !asked.contains(name)) {
        if properties.and_then(|properties| properties.get(name)).and_then(only_value).is_none() {
            parts.push(name.to_owned());
        }
    }
    if parts.is_empty()
        && let Some(title) = ["title", "description"].iter().find_map(|keyword| form.get(*keyword)?.as_str())
    {
        parts.push(first_sentence(&one_line(title)).to_owned());
    }
    clip(&parts.join(", "), LABEL_CHARS).into_owned()
}

fn only_value(schema: &Value) -> Option<&Value> {
    let listed = schema.get("enum").and_then(Value::as_array).filter(|values| values.len() == 1);
    schema.get("const").or_else(|| listed.and_then(|values| values.first()))
}
