//! References written out: what is meant stands in the place of the reference.
//!
//! A small schema can stand for an exponentially large one, so copies are paid from a budget before they are made.
//! When it does not suffice, less is written out: a schema inside itself once instead of twice, then fewer levels.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::merge::merge;
use super::notes::{Notes, tell};
use super::refs::{Places, take, unresolved};
use super::shape::{self, Seen};
use super::walk::{At, each_child, put_first, weight};
use super::{Budget, MAX_OUT_DEPTH, Stop, types};

/// How often a schema may stand inside itself, and how many schemas with a name, the root among them, may stand inside
/// each other; tried in this order.
const ATTEMPTS: [(usize, usize); 4] = [(2, usize::MAX), (1, usize::MAX), (1, 4), (1, 2)];

/// Writes out all references of the document. Answers whether one was cut.
pub(super) fn expand(
    root: &mut Map<String, Value>,
    places: &Places<'_>,
    budget: &mut Budget,
    notes: &mut Notes,
) -> Result<bool, Stop> {
    for keyword in ["$defs", "definitions"] {
        root.shift_remove(keyword);
    }
    for (repeats, levels) in ATTEMPTS {
        let mut inliner = Inliner {
            places,
            sizes: HashMap::new(),
            budget: *budget,
            repeats,
            levels,
            stack: Vec::new(),
            notes: Notes::default(),
            cut: false,
            failed: None,
        };
        let mut copy = root.clone();
        inliner.schema(&mut copy, &At::ROOT);
        if inliner.failed.is_none() {
            *root = copy;
            *budget = inliner.budget;
            notes.append(inliner.notes);
            notes.mended("reference_inlined", &At::ROOT, "what references mean stands in their place");
            return Ok(inliner.cut);
        }
    }
    Err(Stop::TooLarge)
}

struct Inliner<'a> {
    places: &'a Places<'a>,
    /// Bytes and depth of the targets.
    sizes: HashMap<String, (usize, usize)>,
    budget: Budget,
    repeats: usize,
    levels: usize,
    /// Pointers of the targets that are being written out around the present place.
    stack: Vec<String>,
    notes: Notes,
    cut: bool,
    failed: Option<Stop>,
}

impl Inliner<'_> {
    /// The recursion is bounded: no deeper than [`MAX_OUT_DEPTH`].
    fn schema(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        let before = self.stack.len();
        if at.is_root() {
            self.stack.push(String::new());
        }
        for keyword in ["$defs", "definitions"] {
            map.shift_remove(keyword);
        }
        while self.failed.is_none()
            && let Some(reference) = take(map, at, &mut self.notes)
        {
            self.reference(map, &reference, before, at);
        }
        if self.failed.is_none() {
            each_child(map, at, &mut |child, at| self.schema(child, at));
        }
        self.stack.truncate(before);
    }

    /// `own` is where on the stack the references of this very schema begin.
    fn reference(&mut self, map: &mut Map<String, Value>, reference: &str, own: usize, at: &At<'_>) {
        let Some(pointer) = self.places.find(reference) else {
            unresolved(map, reference, at, &mut self.notes);
            return;
        };
        let Some(target) = self.places.schema(&pointer) else { return };
        if self.stack[own..].contains(&pointer) {
            self.notes.mended("reference_cut", at, "a schema that is itself says nothing");
            return;
        }
        let (bytes, depth) = *self.sizes.entry(pointer.clone()).or_insert_with(|| size(target));
        let inside_itself = self.stack.iter().filter(|open| **open == pointer).count();
        if inside_itself >= self.repeats
            || self.stack.len() >= self.levels
            || at.depth() + depth > MAX_OUT_DEPTH
        {
            self.cut(map, target, &pointer, at);
            return;
        }
        if let Err(stop) = self.budget.take(bytes) {
            self.failed = Some(stop);
            return;
        }
        let mut copy: Map<String, Value> = target
            .iter()
            .filter(|(key, _)| !is_local(key))
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect();
        for keyword in ["$schema", "$id", "id", "$anchor", "$dynamicAnchor"] {
            if copy.get(keyword).is_some_and(Value::is_string) {
                copy.shift_remove(keyword);
            }
        }
        // The target may stand where no schema was expected, so it was not looked at yet.
        let mut copy = Value::Object(copy);
        shape::fix(&mut copy, at, &mut self.notes, &mut Seen::default());
        if let Value::Object(copy) = copy {
            merge(map, copy, at, &mut self.notes);
        }
        self.stack.push(pointer);
    }

    fn cut(&mut self, map: &mut Map<String, Value>, target: &Map<String, Value>, pointer: &str, at: &At<'_>) {
        self.cut = true;
        self.notes.lost("reference_cut", at, "a schema inside itself is cut");
        if let Some(kind) = target.get("type").filter(|kind| types::is_fine(kind))
            && !map.contains_key("type")
        {
            put_first(map, "type", kind.clone());
        }
        let name = pointer.rsplit('/').next().unwrap_or_default();
        tell(map, &format!("nested: {}", if name.is_empty() { "as the whole" } else { name }));
    }
}

fn is_local(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions")
}

/// Bytes and depth of a schema without its definitions.
fn size(map: &Map<String, Value>) -> (usize, usize) {
    let parts = map.iter().filter(|(key, _)| !is_local(key));
    parts.fold((2, 1), |(bytes, depth), (key, item)| {
        (bytes + key.len() + 4 + weight(item), depth.max(1 + depth_of(item)))
    })
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or_default(),
        _ => 0,
    }
}
