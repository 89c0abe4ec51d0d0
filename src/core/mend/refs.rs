//! References: each leads to `#` or `#/$defs/name`, or what it means stands in its place.
//!
//! Later steps move parts of a schema around, so no reference may depend on where its target stands. Nothing is ever
//! fetched: a reference out of the document leads nowhere.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::notes::{Notes, tell};
use super::shape::{self, Seen};
use super::walk::{At, each_schema, weight};
use super::{Budget, Stop, inline};
use crate::core::profile::{Refs, SchemaRules};
use crate::core::schema::prepare::decode_percent;
use crate::core::warning::pointer_push;

/// Keywords that refer to another schema. With one place for each name, the dynamic ones mean what `$ref` means.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Where the schemas of a document stand.
pub(super) struct Places<'a> {
    source: &'a Value,
    /// `$id` without a trailing `#`, or `#anchor`, with the pointer of the schema that says so; read when first
    /// asked for.
    names: OnceCell<HashMap<String, String>>,
}

impl<'a> Places<'a> {
    pub(super) fn of(source: &'a Value) -> Self {
        Self { source, names: OnceCell::new() }
    }

    fn named(&self, name: &str) -> Option<&String> {
        self.names.get_or_init(|| read_names(self.source)).get(name)
    }

    /// The pointer that a reference means; none when there is no schema.
    pub(super) fn find(&self, reference: &str) -> Option<String> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if document.is_empty() { "" } else { self.named(document)? };
        let pointer = match fragment {
            "" => base.to_owned(),
            path if path.starts_with('/') => {
                let path = decode_percent(path).unwrap_or_else(|| path.to_owned());
                format!("{base}{path}")
            }
            anchor => self.named(&format!("#{anchor}"))?.clone(),
        };
        self.schema(&pointer).map(|_| pointer)
    }

    /// The schema at a pointer.
    pub(super) fn schema(&self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.source.pointer(pointer)?.as_object()
    }
}

/// The first place of each name.
fn read_names(source: &Value) -> HashMap<String, String> {
    let mut names = HashMap::new();
    let mut copy = source.clone();
    let Value::Object(root) = &mut copy else { return names };
    each_schema(root, &At::ROOT, &mut |map, at| {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        for id in ["$id", "id"].into_iter().filter_map(text) {
            names.entry(id.trim_end_matches('#').to_owned()).or_insert_with(|| at.pointer());
        }
        for anchor in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
            names.entry(format!("#{anchor}")).or_insert_with(|| at.pointer());
        }
    });
    names
}

/// Takes the reference out of a schema; of several, the plain one counts.
pub(super) fn take(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) -> Option<String> {
    let mut found = None;
    for keyword in REFERENCES {
        let Some(Value::String(reference)) = map.shift_remove(keyword) else { continue };
        if found.is_none() {
            found = Some(reference);
        } else {
            notes.lost("reference_unresolved", at, "one schema refers to two others; the first one counts");
        }
    }
    found
}

/// Says in the description what was meant by a reference that leads nowhere.
pub(super) fn unresolved(map: &mut Map<String, Value>, reference: &str, at: &At<'_>, notes: &mut Notes) {
    notes.lost("reference_unresolved", at, "a reference leads nowhere; nothing is fetched");
    let name = reference.rsplit(['/', '#']).next().unwrap_or_default();
    if !name.is_empty() {
        tell(map, &format!("type: {name}"));
    }
}

/// Settles all references of a document. Answers whether one was cut.
pub(super) fn settle(
    document: &mut Value,
    rules: &SchemaRules,
    budget: &mut Budget,
    notes: &mut Notes,
) -> Result<bool, Stop> {
    let source = document.clone();
    let places = Places::of(&source);
    let Value::Object(root) = document else { return Ok(false) };
    if rules.refs == Refs::Inline {
        return inline::expand(root, &places, budget, notes);
    }
    let mut mover = Mover {
        places: &places,
        rules,
        names: HashMap::new(),
        queue: Vec::new(),
        taken: root
            .get("$defs")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect(),
        numbers: HashMap::new(),
    };
    if root.shift_remove("definitions").is_some() {
        root.shift_remove("$schema");
        notes.mended("dialect_upgraded", &At::ROOT, "`definitions` is written as `$defs`");
    }
    each_schema(root, &At::ROOT, &mut |map, at| mover.rewrite(map, at, notes));
    let mut moved = Map::new();
    while let Some((pointer, name)) = mover.queue.pop() {
        let Some(target) = places.schema(&pointer) else { continue };
        let mut copy = Value::Object(target.clone());
        budget.take(weight(&copy))?;
        let defs = At::ROOT.key("$defs");
        let at = defs.key(&name);
        // The target may stand where no schema was expected, so it was not looked at yet.
        shape::fix(&mut copy, &at, notes, &mut Seen::default());
        if let Value::Object(map) = &mut copy {
            each_schema(map, &at, &mut |map, at| mover.rewrite(map, at, notes));
        }
        moved.insert(name, copy);
    }
    if !moved.is_empty() {
        match root.get_mut("$defs") {
            Some(Value::Object(defs)) => defs.extend(moved),
            _ => {
                root.insert("$defs".to_owned(), Value::Object(moved));
            }
        }
    }
    Ok(false)
}

/// Moves the targets of references to `$defs`.
struct Mover<'a> {
    places: &'a Places<'a>,
    rules: &'a SchemaRules,
    /// Pointers with the names of their copies.
    names: HashMap<String, String>,
    /// Copies to be made.
    queue: Vec<(String, String)>,
    /// Names in `$defs`.
    taken: HashSet<String>,
    /// The last number that was added to a name.
    numbers: HashMap<String, usize>,
}

impl Mover<'_> {
    fn rewrite(&mut self, map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
        if !at.is_root() && (map.shift_remove("$defs").is_some() | map.shift_remove("definitions").is_some())
        {
            notes.mended("reference_moved", at, "definitions stand at the root");
        }
        let plain = map.get("$ref").and_then(Value::as_str).map(str::to_owned);
        if plain.is_none() && !REFERENCES.iter().any(|keyword| map.contains_key(*keyword)) {
            return;
        }
        let single = REFERENCES.iter().filter(|keyword| map.contains_key(**keyword)).count() == 1;
        if let Some(reference) = &plain
            && single
            && self.target(reference).as_ref() == Some(reference)
        {
            self.stand_alone(map, at, notes);
            return;
        }
        let Some(reference) = take(map, at, notes) else { return };
        match self.target(&reference) {
            Some(target) => {
                notes.mended("reference_moved", at, "a reference leads to `$defs`");
                map.insert("$ref".to_owned(), Value::String(target));
                self.stand_alone(map, at, notes);
            }
            None => unresolved(map, &reference, at, notes),
        }
    }

    /// The reference that means the same and leads to the root or to `$defs`.
    fn target(&mut self, reference: &str) -> Option<String> {
        let pointer = self.places.find(reference)?;
        if pointer.is_empty() {
            return Some("#".to_owned());
        }
        let own = pointer.strip_prefix("/$defs/").filter(|name| !name.contains('/'));
        if own.is_some() {
            // Any spelling of the name may stay.
            let spelled =
                if reference.starts_with("#/$defs/") { reference.to_owned() } else { format!("#{pointer}") };
            return Some(spelled);
        }
        let name = match self.names.get(&pointer) {
            Some(name) => name.clone(),
            None => {
                let name = self.free_name(&pointer);
                self.names.insert(pointer.clone(), name.clone());
                self.queue.push((pointer, name.clone()));
                name
            }
        };
        let mut path = "#/$defs".to_owned();
        pointer_push(&mut path, &name);
        Some(path)
    }

    /// A name in `$defs` made of the last part of a pointer.
    fn free_name(&mut self, pointer: &str) -> String {
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain = |character: char| {
            if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '_' }
        };
        let mut base: String = last.chars().take(64).map(plain).collect();
        if base.is_empty() {
            base.push_str("schema");
        }
        let mut name = base.clone();
        while !self.taken.insert(name.clone()) {
            let number = self.numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// Where nothing may stand beside a reference, it becomes the one alternative of what stands there.
    fn stand_alone(&self, map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
        if self.rules.refs != Refs::KeepAlone || map.len() == 1 || at.is_root() {
            return;
        }
        let Some(reference) = map.shift_remove("$ref") else { return };
        let mut alone = Map::new();
        alone.insert("$ref".to_owned(), reference);
        let alternatives = Value::Array(vec![Value::Object(alone)]);
        if map.insert("anyOf".to_owned(), alternatives).is_some() {
            notes.lost("reference_moved", at, "alternatives stood beside a reference; the reference counts");
        } else {
            notes.mended("reference_moved", at, "nothing stands beside a reference");
        }
    }
}

/// The name in `$defs` that a settled reference leads to; none for the root.
pub(super) fn name_of(reference: &str) -> Option<String> {
    let token = reference.strip_prefix("#/$defs/")?;
    let token = decode_percent(token).unwrap_or_else(|| token.to_owned());
    Some(token.replace("~1", "/").replace("~0", "~"))
}

/// Whether a schema of the document refers to its root.
pub(super) fn refers_to_root(root: &mut Map<String, Value>) -> bool {
    let mut found = false;
    each_schema(root, &At::ROOT, &mut |map, _| {
        found |= map.get("$ref").is_some_and(|reference| reference == "#");
    });
    found
}

/// Puts a copy of the root under `$defs` and lets the references to the root lead there, so that the root can be
/// changed without changing what they mean.
pub(super) fn keep_root(
    root: &mut Map<String, Value>,
    budget: &mut Budget,
    notes: &mut Notes,
) -> Result<(), Stop> {
    if !refers_to_root(root) {
        return Ok(());
    }
    let mut name = "root".to_owned();
    while root.get("$defs").and_then(Value::as_object).is_some_and(|defs| defs.contains_key(&name)) {
        name.push('_');
    }
    let mut copy = root.clone();
    for keyword in ["$defs", "$schema", "$id"] {
        copy.shift_remove(keyword);
    }
    let copy = Value::Object(copy);
    budget.take(weight(&copy))?;
    match root.get_mut("$defs") {
        Some(Value::Object(defs)) => {
            defs.insert(name.clone(), copy);
        }
        _ => {
            let mut defs = Map::new();
            defs.insert(name.clone(), copy);
            root.insert("$defs".to_owned(), Value::Object(defs));
        }
    }
    let reference = format!("#/$defs/{name}");
    each_schema(root, &At::ROOT, &mut |map, _| {
        if let Some(there) = map.get_mut("$ref").filter(|there| **there == "#") {
            *there = Value::String(reference.clone());
        }
    });
    notes.mended("reference_moved", &At::ROOT, "references to the root lead to a copy of it");
    Ok(())
}
