//! Strict mode: closed objects, every property required, limits. A schema that cannot be so is sent without.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::args::{ArgChange, ArgEffect, ArgPath};
use super::notes::{Notes, say, tell};
use super::walk::At;
use super::{MAX_DEPTH, Stop, is_deeper_than_map, types};
use crate::core::profile::StrictRules;

/// What a strict schema counts towards the limits of a whole request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StrictUse {
    /// Properties that are not required.
    pub optional: usize,
    /// Schemas with alternatives or a list of types.
    pub unions: usize,
}

/// Makes the document strict, or says why it cannot be.
pub(super) fn enforce(
    root: &mut Map<String, Value>,
    rules: &StrictRules,
    changes: &mut Vec<ArgChange>,
    notes: &mut Notes,
) -> Result<StrictUse, Stop> {
    let mut strict = Strict {
        rules,
        notes,
        absent: Vec::new(),
        count: StrictUse::default(),
        properties: 0,
        chars: 0,
        values: 0,
    };
    strict.schema(root, &At::ROOT, &ArgPath::default(), 1)?;
    strict.check()?;
    let count = strict.count;
    let mut seen = HashSet::new();
    let absent = strict.absent.into_iter().filter(|path| seen.insert(path.clone()));
    changes.extend(absent.map(|path| ArgChange { path, effect: ArgEffect::NullIsAbsent }));
    Ok(count)
}

/// Keywords that strict mode takes in a schema that comes as strict, and that no schema is made strict with: the providers' newer
/// documents have them.
const ALSO_TAKEN: &[&str] = &["$ref", "$defs", "minLength", "maxLength"];

/// What a schema counts that fits strict mode with nothing done to it; none for any other. For schemas that need no mending.
pub fn strict_as_it_is(parameters: &str, rules: &StrictRules) -> Option<StrictUse> {
    let Ok(Value::Object(root)) = serde_json::from_str(parameters) else { return None };
    if is_deeper_than_map(&root, MAX_DEPTH) || !words_fit(&root, rules) {
        return None;
    }
    let mut strict = root.clone();
    let count = enforce(&mut strict, rules, &mut Vec::new(), &mut Notes::default()).ok()?;
    (strict == root).then_some(count)
}

/// Whether strict mode takes the keywords of a schema and of those in it, and their values.
fn words_fit(map: &Map<String, Value>, rules: &StrictRules) -> bool {
    let taken = |keyword: &str| {
        rules.keywords.contains(&keyword) || (ALSO_TAKEN.contains(&keyword) && may_also(keyword, rules))
    };
    let format = map.get("format").and_then(Value::as_str);
    let alone = !map.contains_key("$ref") || map.len() == 1;
    let items = || map.get("items").and_then(Value::as_object).is_some_and(|items| !items.is_empty());
    let fits = map.keys().all(|keyword| taken(keyword))
        && format.is_none_or(|format| rules.formats.contains(&format))
        && alone
        && (!types::declares(map, "array") || items());
    let by_name = ["properties", "$defs"].into_iter().filter_map(|keyword| map.get(keyword)?.as_object());
    let mut inside = by_name
        .flat_map(Map::values)
        .chain(map.get("items"))
        .chain(map.get("anyOf").and_then(Value::as_array).into_iter().flatten());
    fits && inside.all(|child| child.as_object().is_some_and(|child| words_fit(child, rules)))
}

/// Lengths of texts are OpenAI's; it is the one that wants all properties required.
fn may_also(keyword: &str, rules: &StrictRules) -> bool {
    keyword.starts_with('$') || rules.all_required
}

struct Strict<'a> {
    rules: &'a StrictRules,
    notes: &'a mut Notes,
    /// Arguments whose null means that they are absent.
    absent: Vec<ArgPath>,
    count: StrictUse,
    properties: usize,
    chars: usize,
    values: usize,
}

impl Strict<'_> {
    /// `depth` counts the objects around this schema and itself.
    fn schema(
        &mut self,
        map: &mut Map<String, Value>,
        at: &At<'_>,
        path: &ArgPath,
        depth: usize,
    ) -> Result<(), Stop> {
        // A reference is left only in a schema that comes as strict; what it means is looked at in its place.
        if !["type", "anyOf", "$ref"].iter().any(|keyword| map.contains_key(*keyword)) {
            return Err(Stop::NotStrict("a value has no type"));
        }
        if map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_array) {
            self.count.unions += 1;
        }
        self.listed(map)?;
        self.few_items(map, at);
        let mut depth = depth;
        if types::declares(map, "object") {
            if self.rules.max_depth.is_some_and(|most| depth > most) {
                return Err(Stop::NotStrict("objects are nested too deeply"));
            }
            self.object(map, at, path)?;
            depth += 1;
        }
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            let at = at.key("properties");
            for (key, property) in properties.iter_mut() {
                let Value::Object(property) = property else { continue };
                self.schema(property, &at.key(key), &path.key(key), depth)?;
            }
        }
        if let Some(Value::Object(meant)) = map.get_mut("$defs") {
            let at = at.key("$defs");
            for (key, schema) in meant.iter_mut() {
                let Value::Object(schema) = schema else { continue };
                self.schema(schema, &at.key(key), path, depth)?;
            }
        }
        if let Some(Value::Object(items)) = map.get_mut("items") {
            self.schema(items, &at.key("items"), &path.items(), depth)?;
        }
        if let Some(Value::Array(branches)) = map.get_mut("anyOf") {
            let at = at.key("anyOf");
            for (index, branch) in branches.iter_mut().enumerate() {
                let Value::Object(branch) = branch else { continue };
                self.schema(branch, &at.index(index), path, depth)?;
            }
        }
        Ok(())
    }

    fn object(&mut self, map: &mut Map<String, Value>, at: &At<'_>, path: &ArgPath) -> Result<(), Stop> {
        let empty = map.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        match map.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            None if at.is_root() || !empty => {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
                self.notes.lost("strict_closed", at, "the object takes no other properties");
            }
            _ => return Err(Stop::NotStrict("an object takes properties of any name")),
        }
        if !map.contains_key("properties") {
            map.insert("properties".to_owned(), json!({}));
            self.notes.mended("strict_closed", at, "the object says that it has no properties");
        }
        let Some(Value::Object(properties)) = map.get("properties") else { return Ok(()) };
        self.properties += properties.len();
        self.chars += properties.keys().map(|key| key.chars().count()).sum::<usize>();
        let required: HashSet<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let optional: Vec<String> =
            properties.keys().filter(|key| !required.contains(key.as_str())).cloned().collect();
        if !self.rules.all_required {
            self.count.optional += optional.len();
            return Ok(());
        }
        let all: Vec<Value> = properties.keys().map(|key| json!(key)).collect();
        if !optional.is_empty() || !map.contains_key("required") {
            map.insert("required".to_owned(), Value::Array(all));
            self.notes.mended("strict_nullable", at, "every property is required");
        }
        let Some(Value::Object(properties)) = map.get_mut("properties") else { return Ok(()) };
        for key in optional {
            let Some(Value::Object(property)) = properties.get_mut(&key) else { continue };
            if !types::allows_null(property) {
                types::allow_null(property);
                self.absent.push(path.key(&key));
            }
        }
        Ok(())
    }

    fn listed(&mut self, map: &Map<String, Value>) -> Result<(), Stop> {
        if let Some(value) = map.get("const") {
            self.chars += chars(value);
        }
        let Some(Value::Array(values)) = map.get("enum") else { return Ok(()) };
        let size: usize = values.iter().map(chars).sum();
        self.values += values.len();
        self.chars += size;
        if values.len() > StrictRules::LARGE_ENUM
            && self.rules.max_large_enum_chars.is_some_and(|most| size > most)
        {
            return Err(Stop::NotStrict("an enum is too long"));
        }
        Ok(())
    }

    fn few_items(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        let Some(most) = self.rules.max_min_items else { return };
        let Some(least) = map.get("minItems").filter(|least| least.as_f64() > Some(most as f64)) else {
            return;
        };
        let text = say("minItems", least);
        map.shift_remove("minItems");
        tell(map, &text);
        self.notes.lost("bound_dropped", at, "`minItems` is larger than strict mode takes");
    }

    fn check(&self) -> Result<(), Stop> {
        let over = |most: Option<usize>, count: usize| most.is_some_and(|most| count > most);
        let rules = self.rules;
        if over(rules.max_properties, self.properties) {
            return Err(Stop::NotStrict("there are too many properties"));
        }
        if over(rules.max_enum_values, self.values) {
            return Err(Stop::NotStrict("there are too many enum values"));
        }
        if over(rules.max_name_chars, self.chars) {
            return Err(Stop::NotStrict("names and enum values are too long together"));
        }
        if over(rules.max_optional, self.count.optional) || over(rules.max_unions, self.count.unions) {
            return Err(Stop::NotStrict("there are too many optional properties or alternatives"));
        }
        Ok(())
    }
}

fn chars(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().chars().count(), |text| text.chars().count())
}
