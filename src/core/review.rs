//! The review gate: which version of an uploaded tool is served, and which one waits until an administrator has looked at it.
//!
//! Owns the decisions, as functions of what stands, what was removed and what comes. Knows neither where versions are kept nor
//! who may approve one.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::catalog::{Catalog, Change};
use super::digest::Digest;
use super::text::counted;
use super::tool::{Tool, ToolKey};
use super::warning::Warning;

/// Tools of one write that are told by name; the same number as of tools with suspicious texts.
const MAX_TOLD: usize = super::suspicion::MAX_TOOLS;

/// What is known of a scope's reviews before a write of its catalog.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Whether changed tools wait.
    pub gate: bool,
    /// The versions that wait.
    pub held: BTreeMap<ToolKey, Digest>,
    /// The approved versions of tools that were removed while the gate was on and have not come back.
    pub removed: BTreeMap<ToolKey, Arc<Tool>>,
}

/// The tools of an upload as they are served, and the versions of it that wait.
#[derive(Debug, Default)]
pub struct Admitted {
    /// The keys of the upload, each in its approved version where it has one.
    pub served: BTreeMap<ToolKey, Arc<Tool>>,
    pub held: BTreeMap<ToolKey, Arc<Tool>>,
}

/// What a write does to the reviews of its scope.
#[derive(Debug, Default)]
pub struct Settled {
    /// Versions that begin to wait, in the place of another one of the same tool if there is one.
    pub hold: Vec<Arc<Tool>>,
    /// Tools whose waiting version goes.
    pub drop: Vec<ToolKey>,
    /// Tools that are removed and whose approved version is to be remembered.
    pub remember: Vec<ToolKey>,
    /// Removed tools that come back in their approved version.
    pub restore: Vec<ToolKey>,
    /// All other removed tools are forgotten.
    pub forget: bool,
}

impl Standing {
    /// Which version of each uploaded tool is served. A tool is its group and name: in another group it is a new one.
    pub fn admit(&self, current: &Catalog, upload: BTreeMap<ToolKey, Arc<Tool>>) -> Admitted {
        if !self.gate {
            return Admitted { served: upload, held: BTreeMap::new() };
        }
        let present: BTreeMap<ToolKey, &Arc<Tool>> =
            current.tools().iter().map(|tool| (tool.tool.key(), &tool.tool)).collect();
        let mut admitted = Admitted::default();
        for (key, tool) in upload {
            let approved = present.get(&key).copied().or_else(|| self.removed.get(&key));
            let served = Arc::clone(approved.unwrap_or(&tool));
            if served.digest() != tool.digest() {
                admitted.held.insert(key.clone(), tool);
            }
            admitted.served.insert(key, served);
        }
        admitted
    }

    /// Tools that would come in the place of an approved one: new here, called like a tool that goes with this write or went before,
    /// and in another group. `gone`: what a write of `admitted` removes.
    pub fn moved(&self, current: &Catalog, admitted: &Admitted, gone: &[ToolKey]) -> Vec<ToolKey> {
        if !self.gate {
            return Vec::new();
        }
        let went = gone.iter().chain(self.removed.keys().filter(|key| !admitted.served.contains_key(*key)));
        let names: HashSet<&str> = went.map(|key| &*key.name).collect();
        let present: HashSet<ToolKey> = current.tools().iter().map(|tool| tool.tool.key()).collect();
        let is_new = |key: &&ToolKey| !present.contains(*key) && !self.removed.contains_key(*key);
        admitted.served.keys().filter(is_new).filter(|key| names.contains(&*key.name)).cloned().collect()
    }

    /// What becomes of the reviews in a write that serves `admitted` and removes `gone`.
    pub fn settle(&self, admitted: &Admitted, gone: &[ToolKey]) -> Settled {
        let hold = admitted.held.iter().filter(|(key, tool)| self.held.get(*key) != Some(&tool.digest()));
        let overtaken = admitted.served.keys().filter(|key| !admitted.held.contains_key(*key));
        let restore = admitted.served.keys().filter(|key| self.gate && self.removed.contains_key(*key));
        Settled {
            hold: hold.map(|(_, tool)| Arc::clone(tool)).collect(),
            drop: overtaken.chain(gone).filter(|key| self.held.contains_key(*key)).cloned().collect(),
            remember: if self.gate { gone.to_vec() } else { Vec::new() },
            restore: restore.cloned().collect(),
            forget: !self.gate && !self.removed.is_empty(),
        }
    }

    /// How many removed tools are remembered after a write.
    pub fn remembered(&self, settled: &Settled) -> usize {
        let before = if settled.forget { 0 } else { self.removed.len() };
        (before + settled.remember.len()).saturating_sub(settled.restore.len())
    }
}

impl Settled {
    pub fn is_empty(&self) -> bool {
        let Self { hold, drop, remember, restore, forget } = self;
        hold.is_empty() && drop.is_empty() && remember.is_empty() && restore.is_empty() && !forget
    }
}

/// The stored names of the tools of a change whose uploaded version waits, sorted; and the warnings about that.
pub fn told(change: &Change, admitted: &Admitted, settled: &Settled) -> (Vec<String>, Vec<Warning>) {
    let tools = change.catalog.tools().iter().filter(|tool| admitted.held.contains_key(&tool.tool.key()));
    let held: Vec<String> = tools.map(|tool| tool.stored_name.to_string()).collect();
    let detail = "the uploaded version waits for an administrator; the approved one stays in use";
    let mut warnings: Vec<Warning> =
        held.iter().take(MAX_TOLD).map(|name| Warning::new("tool_held", detail).for_tool(name)).collect();
    if held.len() > MAX_TOLD {
        let detail = format!("{} held", counted(held.len() - MAX_TOLD, "more tool is", "more tools are"));
        warnings.push(Warning::new("more_warnings", detail));
    }
    if let Some(first) = settled.drop.first() {
        let detail = format!(
            "versions that waited for an administrator were dropped, as this write overtakes them: {}, the first of \
             `{}` in group `{}`",
            settled.drop.len(),
            first.name,
            first.group
        );
        warnings.push(Warning::new("held_dropped", detail));
    }
    (held, warnings)
}

/// The warnings about tools that were not taken, because they come in the place of approved ones.
pub fn told_moved(moved: &[ToolKey]) -> Vec<Warning> {
    let told = |key: &ToolKey| {
        let detail = format!(
            "not taken in group `{}`: a tool of this name was approved in another group and was removed; with \
             `require_review_on_change` none comes in its place",
            key.group
        );
        Warning::new("tool_moved", detail).for_tool(&*key.name)
    };
    let mut warnings: Vec<Warning> = moved.iter().take(MAX_TOLD).map(told).collect();
    if moved.len() > MAX_TOLD {
        let detail =
            format!("{} not taken", counted(moved.len() - MAX_TOLD, "more tool was", "more tools were"));
        warnings.push(Warning::new("more_warnings", detail));
    }
    warnings
}

/// The names of the members in which two versions of a tool differ, sorted.
pub fn differing_members(approved: &Tool, held: &Tool) -> Vec<String> {
    let members = |tool: &Tool| serde_json::from_str::<Map<String, Value>>(tool.body()).unwrap_or_default();
    let (before, after) = (members(approved), members(held));
    let names: HashSet<&String> = before.keys().chain(after.keys()).collect();
    let differs =
        |name: &&String| before.get(*name).map(Digest::of_json) != after.get(*name).map(Digest::of_json);
    let mut names: Vec<String> = names.into_iter().filter(differs).cloned().collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::catalog::{self, Catalog};

    const GROUPS: [&str; 2] = ["g", "h"];
    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn tool(group: &str, name: &str, version: u8) -> Arc<Tool> {
        // Versions 3 and 4 differ in the order of keys alone.
        let (x, y) = ("\"x\":{}", "\"y\":{}");
        let properties = if version == 4 { format!("{y},{x}") } else { format!("{x},{y}") };
        let body = format!(
            "{{\"group\":\"{group}\",\"name\":\"{name}\",\"description\":\"v{}\",\"parameters\":{{\"type\":\"object\",\
             \"properties\":{{{properties}}}}}}}",
            version.min(3)
        );
        Arc::new(Tool::from_body(body.into()).unwrap())
    }

    /// A scope as the store would keep it.
    #[derive(Default)]
    struct Model {
        catalog: Catalog,
        held: BTreeMap<ToolKey, Arc<Tool>>,
        removed: BTreeMap<ToolKey, Arc<Tool>>,
    }

    #[derive(Debug, Clone)]
    struct Write {
        gate: bool,
        replace: bool,
        upload: Vec<(usize, usize, u8)>,
        remove: Vec<(usize, usize)>,
    }

    impl Write {
        fn tools(&self) -> BTreeMap<ToolKey, Arc<Tool>> {
            let tools =
                self.upload.iter().map(|&(group, name, version)| tool(GROUPS[group], NAMES[name], version));
            tools.map(|tool| (tool.key(), tool)).collect()
        }
    }

    fn write(gate: impl Strategy<Value = bool>) -> impl Strategy<Value = Write> {
        let upload = proptest::collection::vec((0..GROUPS.len(), 0..NAMES.len(), 0..5_u8), 0..5);
        let remove = proptest::collection::vec((0..GROUPS.len(), 0..NAMES.len()), 0..3);
        (gate, any::<bool>(), upload, remove).prop_map(|(gate, replace, upload, remove)| Write {
            gate,
            replace,
            upload,
            remove,
        })
    }

    impl Model {
        fn standing(&self, gate: bool) -> Standing {
            let held = self.held.iter().map(|(key, tool)| (key.clone(), tool.digest())).collect();
            Standing { gate, held, removed: self.removed.clone() }
        }

        fn body(&self, key: &ToolKey) -> Option<&str> {
            let mut tools = self.catalog.tools().iter();
            tools.find(|tool| tool.tool.key() == *key).map(|tool| &**tool.tool.body())
        }

        fn apply(&mut self, write: &Write) -> (Admitted, Settled) {
            let standing = self.standing(write.gate);
            let mut admitted = standing.admit(&self.catalog, write.tools());
            let change = |served: BTreeMap<ToolKey, Arc<Tool>>| {
                if write.replace {
                    return catalog::replace(&self.catalog, served);
                }
                let key = |&(group, name): &(usize, usize)| ToolKey::new(GROUPS[group], NAMES[name]);
                let keys: Vec<ToolKey> = write.remove.iter().map(key).collect();
                let gone = self.catalog.tools().iter().filter(|tool| keys.contains(&tool.tool.key()));
                let gone: Vec<String> = gone.map(|tool| tool.stored_name.to_string()).collect();
                catalog::patch(&self.catalog, served, &gone).unwrap()
            };
            let whole = change(admitted.served.clone());
            for key in standing.moved(&self.catalog, &admitted, &whole.removed_keys) {
                admitted.served.remove(&key);
            }
            let change = change(admitted.served.clone());
            let settled = standing.settle(&admitted, &change.removed_keys);
            for key in &settled.remember {
                let tool = self.catalog.tools().iter().find(|tool| tool.tool.key() == *key).unwrap();
                self.removed.insert(key.clone(), Arc::clone(&tool.tool));
            }
            for key in &settled.restore {
                self.removed.remove(key);
            }
            if settled.forget {
                self.removed.clear();
            }
            for key in &settled.drop {
                assert!(self.held.remove(key).is_some(), "only what is there is dropped");
            }
            self.held.extend(settled.hold.iter().map(|tool| (tool.key(), Arc::clone(tool))));
            assert_eq!(standing.remembered(&settled), self.removed.len());
            self.catalog = change.catalog;
            (admitted, settled)
        }
    }

    proptest! {
        /// Nothing that is uploaded or removed under the gate changes a byte of what was served once.
        #[test]
        fn under_the_gate_a_tool_is_what_it_was_first(writes in proptest::collection::vec(write(Just(true)), 1..12)) {
            let mut model = Model::default();
            let mut first: BTreeMap<ToolKey, Arc<Tool>> = BTreeMap::new();
            let mut waits: BTreeMap<ToolKey, Digest> = BTreeMap::new();
            for write in &writes {
                let mut upload = write.tools();
                let (admitted, _) = model.apply(write);
                upload.retain(|key, _| admitted.served.contains_key(key));
                for (key, tool) in &upload {
                    let approved = first.entry(key.clone()).or_insert_with(|| Arc::clone(tool));
                    prop_assert_eq!(model.body(key), Some(&**approved.body()));
                    waits.remove(key);
                    if approved.digest() != tool.digest() {
                        waits.insert(key.clone(), tool.digest());
                    }
                }
                waits.retain(|key, _| model.body(key).is_some());
                prop_assert_eq!(&model.standing(true).held, &waits, "the last upload of each tool waits if it differs");
                for tool in model.catalog.tools() {
                    prop_assert_eq!(tool.tool.body(), first[&tool.tool.key()].body());
                    prop_assert!(!model.removed.contains_key(&tool.tool.key()));
                }
                for (key, tool) in &model.removed {
                    prop_assert_eq!(tool.body(), first[key].body());
                }
            }
        }

        /// Without the gate an upload is served, and leaves nothing of the same tools waiting; the same write again does nothing.
        #[test]
        fn what_passes_overtakes_what_waits(writes in proptest::collection::vec(write(any::<bool>()), 1..12)) {
            let mut model = Model::default();
            for write in &writes {
                let (admitted, _) = model.apply(write);
                for (key, tool) in write.tools() {
                    let served = model.catalog.tools().iter().find(|served| served.tool.key() == key);
                    let Some(served) = served else {
                        prop_assert!(write.gate && !admitted.served.contains_key(&key), "only what moved is not taken");
                        continue;
                    };
                    let same = served.tool.digest() == tool.digest();
                    prop_assert!(same || write.gate);
                    prop_assert_eq!(model.held.contains_key(&key), !same);
                    prop_assert_eq!(admitted.held.contains_key(&key), !same);
                }
                prop_assert!(write.gate || model.removed.is_empty());
                prop_assert!(model.held.keys().all(|key| model.body(key).is_some()), "what is gone waits no more");
                if write.remove.is_empty() || write.replace {
                    let (_, again) = model.apply(write);
                    prop_assert!(again.is_empty(), "{again:?}");
                }
            }
        }
    }

    #[test]
    fn the_members_that_differ_are_named() {
        assert_eq!(differing_members(&tool("g", "a", 3), &tool("g", "a", 4)), Vec::<String>::new());
        let body = r#"{"group":"g","name":"a","description":"v1","parameters":{"type":"string"},"always_load":true}"#;
        let other = Tool::from_body(body.into()).unwrap();
        assert_eq!(differing_members(&tool("g", "a", 1), &other), ["always_load", "parameters"]);
    }
}
