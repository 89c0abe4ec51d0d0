//! How much work, and how much stack, an evaluation can take at most; asked before it starts.
//!
//! A small schema can stand for exponential work: `$ref` in a fan (each schema naming the next one twice), or
//! recursion that forks on every level of the arguments. The plan is the graph of a schema's parts without their
//! meaning. For ordinary schemas one number, computed once, shows that small arguments are cheap; otherwise the
//! evaluation is walked through with a meter that stops at a budget.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::keywords::{self, Applies, Holds};
use super::prepare::decode_percent;

/// Most work of one check, in units of about 10 ns: a fraction of a second in the worst case.
const BUDGET: u64 = 5_000_000;

/// Work below which the meter is not worth its own time.
const SURELY_CHEAP: u64 = 50_000;

/// Most work for finding and wording an error, which evaluates alternatives several times.
const EXPLAIN_BUDGET: u64 = 2_000_000;

/// Most copying for errors below alternatives, in units of [`size_of`]: some tens of MiB.
const EXPLAIN_COPIES: u64 = 1_000_000;

/// Nested schemas (by position, reference and depth of the arguments together) that evaluation may have on the
/// stack at once. Measured: four times as many still fit into 1 MiB in a build without optimisation.
const MAX_LEVELS: u32 = 200;

/// Deepest arguments; JSON texts are refused beyond 128 levels by the parser anyway.
const MAX_ARGUMENTS_DEPTH: usize = 128;

/// Bytes of a compiled pattern's estimate at which the estimate stops growing.
const MAX_PATTERN_WEIGHT: u64 = 1 << 14;

/// The graph of a schema.
#[derive(Debug)]
pub(super) struct Plan {
    /// The first is the root.
    nodes: Vec<Node>,
    /// Upper bound of the work per unit of arguments; none when the schema is recursive.
    weight: Option<u64>,
}

#[derive(Debug, Default)]
struct Node {
    /// Work for any value.
    local: u64,
    /// Work for each byte of a text.
    per_byte: u64,
    /// Work for each byte of a property's name.
    per_key_byte: u64,
    /// The characters of a text are counted.
    counted: bool,
    /// The whole value is hashed (`uniqueItems`).
    whole: bool,
    /// `unevaluated*` evaluates the schemas in place once more.
    twice: bool,
    in_place: Vec<usize>,
    alternatives: Vec<usize>,
    properties: HashMap<String, usize>,
    each_property: Vec<usize>,
    each_item: Vec<usize>,
    names: Vec<usize>,
}

impl Node {
    fn same_value(&self) -> impl Iterator<Item = usize> + '_ {
        self.in_place.iter().chain(&self.alternatives).copied()
    }

    fn children(&self) -> impl Iterator<Item = usize> + '_ {
        let others = self.each_property.iter().chain(&self.each_item).chain(&self.names);
        self.properties.values().chain(others).copied()
    }
}

impl Plan {
    /// The plan of a prepared schema; the error says why it must not be used.
    pub(super) fn of(document: &Value) -> Result<Self, String> {
        let nodes = Graph::read(document)?;
        let mut plan = Self { nodes, weight: None };
        // A cycle in place would not even need arguments to go on for ever.
        let Some(order) = plan.order(false) else {
            return Err("the schema refers to itself in a circle".to_owned());
        };
        let mut totals = vec![Total::default(); plan.nodes.len()];
        for id in order {
            totals[id] = plan.total(id, &totals, false);
        }
        if totals.iter().any(|total| total.levels > MAX_LEVELS || total.work > BUDGET) {
            return Err("evaluating the schema would cost too much".to_owned());
        }
        match plan.order(true) {
            Some(order) => {
                for id in order {
                    totals[id] = plan.total(id, &totals, true);
                }
                let root = totals.first().copied().unwrap_or_default();
                // Building descends as evaluating does.
                if totals.iter().any(|total| total.levels > MAX_LEVELS) {
                    return Err("the schema is nested too deeply".to_owned());
                }
                plan.weight = Some(root.work);
            }
            None => check_recursive(document)?,
        }
        Ok(plan)
    }

    /// Work and levels of a node from those of the nodes it leads to.
    fn total(&self, id: usize, totals: &[Total], with_children: bool) -> Total {
        let node = &self.nodes[id];
        let own = node.local.saturating_add(node.per_byte).saturating_add(node.per_key_byte);
        let mut total = Total { work: own.saturating_add(u64::from(node.whole || node.counted)), levels: 0 };
        let repeats = 1 + u64::from(node.twice);
        for next in node.same_value() {
            total.add(totals[next], repeats);
        }
        if with_children {
            for next in node.children() {
                total.add(totals[next], repeats);
            }
        }
        total.levels = total.levels.saturating_add(1);
        total
    }

    /// All nodes, each after those it leads to; none when there is a cycle.
    fn order(&self, with_children: bool) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
        for start in 0..self.nodes.len() {
            if states[start] != State::New {
                continue;
            }
            states[start] = State::Open;
            stack.push((start, self.successors(start, with_children)));
            while let Some((id, successors)) = stack.last_mut() {
                let id = *id;
                let Some(next) = successors.pop() else {
                    states[id] = State::Done;
                    order.push(id);
                    stack.pop();
                    continue;
                };
                match states[next] {
                    State::Open => return None,
                    State::Done => {}
                    State::New => {
                        states[next] = State::Open;
                        stack.push((next, self.successors(next, with_children)));
                    }
                }
            }
        }
        Some(order)
    }

    fn successors(&self, id: usize, with_children: bool) -> Vec<usize> {
        let node = &self.nodes[id];
        let mut successors: Vec<usize> = node.same_value().collect();
        if with_children {
            successors.extend(node.children());
        }
        successors
    }

    /// Whether a multiplication is enough to know that the check is cheap.
    pub(super) fn is_surely_cheap(&self, arguments: &Value) -> bool {
        let Some(weight) = self.weight else { return false };
        size_of(arguments, SURELY_CHEAP).is_some_and(|size| weight.saturating_mul(size) <= SURELY_CHEAP)
    }
}

/// Building a recursive schema descends through up to nine parts between references (the library puts off deeper
/// ones), each as deep as the document has it, with two levels of JSON to one of the schema.
fn check_recursive(document: &Value) -> Result<(), String> {
    if 9 * super::prepare::depth_of(document) > 2 * MAX_LEVELS as usize {
        return Err("the schema is recursive and nested too deeply".to_owned());
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    work: u64,
    levels: u32,
}

impl Total {
    fn add(&mut self, next: Self, repeats: u64) {
        self.work = self.work.saturating_add(next.work.saturating_mul(repeats));
        self.levels = self.levels.max(next.levels);
    }
}

/// Values and bytes of text in a value; none when that is more than `limit`, or the value is nested too deeply.
fn size_of(value: &Value, limit: u64) -> Option<u64> {
    let mut size = 0_u64;
    let mut open = vec![(value, 0_usize)];
    while let Some((value, depth)) = open.pop() {
        size += 1;
        match value {
            Value::String(text) => size += text.len() as u64,
            Value::Array(items) => {
                size += items.len() as u64;
                if size <= limit {
                    open.extend(items.iter().map(|item| (item, depth + 1)));
                }
            }
            Value::Object(map) => {
                size += map.len() as u64;
                if size <= limit {
                    size += map.keys().map(|key| key.len() as u64).sum::<u64>();
                    open.extend(map.values().map(|item| (item, depth + 1)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if size > limit || depth > MAX_ARGUMENTS_DEPTH {
            return None;
        }
    }
    Some(size)
}

/// Walks through an evaluation without evaluating, as if every part had to be looked at.
pub(super) struct Meter<'a> {
    plan: &'a Plan,
    spent: u64,
    copied: u64,
    explaining: bool,
}

/// Where the walk is.
#[derive(Clone, Copy)]
struct At {
    levels: u32,
    alternatives: u64,
}

impl<'a> Meter<'a> {
    /// The work of a check; none when it is over the budget or would need too much stack.
    pub(super) fn check(plan: &'a Plan, arguments: &Value) -> Option<u64> {
        let mut meter = Self { plan, spent: 0, copied: 0, explaining: false };
        meter.visit(0, arguments, At { levels: 0, alternatives: 0 })?;
        Some(meter.spent)
    }

    /// Whether gathering the errors is within bounds.
    pub(super) fn may_explain(plan: &'a Plan, arguments: &Value) -> bool {
        let mut meter = Self { plan, spent: 0, copied: 0, explaining: true };
        let walked = meter.visit(0, arguments, At { levels: 0, alternatives: 0 });
        walked.is_some() && meter.spent <= EXPLAIN_BUDGET
    }

    fn spend(&mut self, work: u64, at: At) -> Option<()> {
        let times = if self.explaining { 1 + at.alternatives } else { 1 };
        self.spent = self.spent.saturating_add(work.saturating_mul(times));
        (self.spent <= BUDGET).then_some(())
    }

    /// The recursion is bounded by [`MAX_LEVELS`].
    fn visit(&mut self, id: usize, value: &Value, at: At) -> Option<()> {
        let plan = self.plan;
        let node = plan.nodes.get(id)?;
        if at.levels > MAX_LEVELS {
            return None;
        }
        self.spend(node.local, at)?;
        if node.whole {
            let size = size_of(value, BUDGET)?;
            self.spend(size, at)?;
        }
        if self.explaining && at.alternatives > 0 {
            self.copied += size_of(value, EXPLAIN_COPIES)?;
            if self.copied > EXPLAIN_COPIES {
                return None;
            }
        }
        for _ in 0..=u8::from(node.twice) {
            let same = At { levels: at.levels + 1, ..at };
            for next in &node.in_place {
                self.visit(*next, value, same)?;
            }
            let same = At { alternatives: at.alternatives + 1, ..same };
            for next in &node.alternatives {
                self.visit(*next, value, same)?;
            }
        }
        let below = At { levels: at.levels + 1, ..at };
        match value {
            Value::String(text) => {
                let bytes = text.len() as u64;
                let counting = if node.counted { bytes / 16 } else { 0 };
                self.spend(bytes.saturating_mul(node.per_byte).saturating_add(counting), at)
            }
            Value::Array(items) => items.iter().try_for_each(|item| {
                self.spend(1, at)?;
                node.each_item.iter().try_for_each(|next| self.visit(*next, item, below))
            }),
            Value::Object(map) => map.iter().try_for_each(|(key, item)| {
                self.spend(1 + node.per_key_byte.saturating_mul(1 + key.len() as u64), at)?;
                if let Some(next) = node.properties.get(key) {
                    self.visit(*next, item, below)?;
                }
                node.each_property.iter().try_for_each(|next| self.visit(*next, item, below))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(()),
        }
    }
}

/// Reads the graph of a document.
struct Graph<'a> {
    document: &'a Value,
    /// By address: the document does not move while it is read.
    ids: HashMap<*const Value, usize>,
    found: Vec<&'a Value>,
}

impl<'a> Graph<'a> {
    fn read(document: &'a Value) -> Result<Vec<Node>, String> {
        let mut graph = Self { document, ids: HashMap::new(), found: Vec::new() };
        graph.id(document);
        let mut nodes = Vec::new();
        while let Some(schema) = graph.found.get(nodes.len()).copied() {
            let node = match schema {
                Value::Object(map) => graph.node(map)?,
                _ => Node { local: 1, ..Node::default() },
            };
            nodes.push(node);
        }
        // Names are texts: only what applies in place counts, and that is known once all nodes are.
        let texts: Vec<u64> = text_weights(&nodes);
        for node in &mut nodes {
            let names = node.names.iter().filter_map(|id| texts.get(*id));
            node.per_key_byte = names.fold(node.per_key_byte, |sum, weight| sum.saturating_add(*weight));
        }
        Ok(nodes)
    }

    fn id(&mut self, schema: &'a Value) -> usize {
        let next = self.found.len();
        let id = *self.ids.entry(std::ptr::from_ref(schema)).or_insert(next);
        if id == next {
            self.found.push(schema);
        }
        id
    }

    fn node(&mut self, map: &'a Map<String, Value>) -> Result<Node, String> {
        let mut node = Node { local: 1 + map.len() as u64, ..Node::default() };
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    let pointer = decode_percent(reference.trim_start_matches('#')).unwrap_or_default();
                    let target = self.document.pointer(&pointer);
                    let target =
                        target.ok_or_else(|| format!("the reference {reference:?} leads nowhere"))?;
                    node.in_place.push(self.id(target));
                }
                ("enum" | "const" | "required" | "dependentRequired", value) => {
                    node.local += size_of(value, BUDGET).unwrap_or(BUDGET) / 4;
                }
                ("pattern", Value::String(pattern)) => node.per_byte = pattern_weight(pattern),
                ("minLength" | "maxLength", _) => node.counted = true,
                ("uniqueItems", Value::Bool(true)) => node.whole = true,
                _ => self.edges(&mut node, keyword, value),
            }
        }
        Ok(node)
    }

    fn edges(&mut self, node: &mut Node, keyword: &str, value: &'a Value) {
        let (holds, applies) = keywords::of(keyword);
        node.twice |= keyword.starts_with("unevaluated");
        let mut schemas: Vec<(Option<&str>, &'a Value)> = Vec::new();
        match (holds, value) {
            (Holds::Nothing, _) => return,
            (Holds::Schema | Holds::SchemaOrList, Value::Object(_) | Value::Bool(_)) => {
                schemas.push((None, value));
            }
            (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                schemas.extend(items.iter().map(|item| (None, item)));
            }
            (Holds::Map | Holds::MapOfSchemas, Value::Object(entries)) => {
                schemas.extend(entries.iter().map(|(name, entry)| (Some(name.as_str()), entry)));
            }
            _ => return,
        }
        node.local += schemas.len() as u64;
        for (name, schema) in schemas {
            if applies == Applies::Never {
                continue;
            }
            let id = self.id(schema);
            match (applies, name) {
                (Applies::Property, Some(name)) => {
                    node.properties.insert(name.to_owned(), id);
                }
                (Applies::EachProperty, name) => {
                    node.each_property.push(id);
                    let weight = name.map_or(0, pattern_weight);
                    node.per_key_byte = node.per_key_byte.saturating_add(weight);
                }
                (Applies::EachItem, _) => node.each_item.push(id),
                (Applies::Alternative, _) => node.alternatives.push(id),
                (Applies::Names, _) => node.names.push(id),
                (Applies::InPlace | Applies::Property | Applies::Never, _) => node.in_place.push(id),
            }
        }
    }
}

/// Work for each byte of a text that the schema is applied to, what applies in place included.
fn text_weights(nodes: &[Node]) -> Vec<u64> {
    if nodes.iter().all(|node| node.names.is_empty()) {
        return Vec::new();
    }
    // As many rounds as levels are allowed; deeper schemas are refused. Sums only grow, up to saturation.
    let own = |node: &Node| node.local.saturating_add(node.per_byte);
    let mut weights: Vec<u64> = nodes.iter().map(own).collect();
    for _ in 0..MAX_LEVELS {
        let next: Vec<u64> = nodes
            .iter()
            .map(|node| {
                let repeats = 1 + u64::from(node.twice);
                node.same_value().fold(own(node), |sum, id| {
                    sum.saturating_add(weights.get(id).copied().unwrap_or_default().saturating_mul(repeats))
                })
            })
            .collect();
        if next == weights {
            break;
        }
        weights = next;
    }
    weights
}

/// Estimate of a regular expression's size when counted repetitions are written out: the work for one byte when no
/// automaton can be built.
fn pattern_weight(pattern: &str) -> u64 {
    let classes = pattern.matches("\\p").count() as u64 + pattern.matches("\\P").count() as u64;
    let mut weight = (pattern.len() as u64 + 64 * classes).min(MAX_PATTERN_WEIGHT);
    for counted in pattern.split('{').skip(1) {
        let Some((count, _)) = counted.split_once('}') else { continue };
        let largest = count.split(',').filter_map(|number| number.trim().parse::<u64>().ok()).max();
        weight = weight.saturating_mul(largest.unwrap_or(1).max(1)).min(MAX_PATTERN_WEIGHT);
    }
    // An automaton does a byte in about a nanosecond; only hostile patterns keep it from being built.
    weight.div_ceil(8)
}
