//! Edits of a draft's lists of names and groups, as documents.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Adds names to a list, each once.
pub(super) fn add_names(config: &mut Map<String, Value>, key: &str, names: &[&str]) {
    let list = config.entry(key).or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let mut known: HashSet<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    list.extend(names.iter().filter(|name| known.insert((**name).to_owned())).map(|name| json!(name)));
    drop_empty(config, key);
}

/// Takes names out of a list.
pub(super) fn remove_names(config: &mut Map<String, Value>, key: &str, names: &[&str]) {
    let names: HashSet<&str> = names.iter().copied().collect();
    if let Some(list) = config.get_mut(key).and_then(Value::as_array_mut) {
        list.retain(|entry| !entry.as_str().is_some_and(|entry| names.contains(entry)));
    }
    drop_empty(config, key);
}

/// The entries of a list that mean more than one name.
pub(super) fn selectors<'a>(config: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    let list = config.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).filter(|entry| entry.starts_with('@') || entry.ends_with('*'))
}

/// An empty list says nothing.
fn drop_empty(config: &mut Map<String, Value>, key: &str) {
    if config.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty) {
        config.shift_remove(key);
    }
}

/// The groups of a document; one that names its tools is made for those that are not in it.
pub(super) struct Groups<'a>(pub(super) &'a mut Map<String, Value>);

impl Groups<'_> {
    /// The entries; none where the document has something else in their place.
    fn with<T: Default>(&mut self, edit: impl FnOnce(&mut Vec<Value>) -> T) -> T {
        let list = self.0.entry("groups").or_insert_with(|| json!([]));
        list.as_array_mut().map(edit).unwrap_or_default()
    }

    fn position(&mut self, name: &str) -> Option<usize> {
        self.with(|list| {
            list.iter().position(|group| group.get("name").and_then(Value::as_str) == Some(name))
        })
    }

    /// The entry of a group, made of its tools where the document has none.
    fn entry(&mut self, name: &str, tools: &[String]) -> Option<&mut Map<String, Value>> {
        if self.position(name).is_none() {
            self.with(|list| list.push(json!({"name": name, "tools": tools})));
        }
        let at = self.position(name)?;
        self.0.get_mut("groups")?.get_mut(at)?.as_object_mut()
    }

    /// Renames and describes a group, which has these tools: under another name they are its own no more unless it names them.
    /// Answers whether it did: a name that another entry has is not given twice.
    pub(super) fn edit(&mut self, name: &str, tools: &[String], new_name: &str, description: &str) -> bool {
        if new_name != name && self.position(new_name).is_some() {
            return false;
        }
        let Some(entry) = self.entry(name, tools) else { return true };
        if !new_name.is_empty() && new_name != name {
            entry.insert("name".to_owned(), new_name.into());
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            add_names(entry, "tools", &tools);
        }
        match description {
            "" => drop(entry.shift_remove("description")),
            text => drop(entry.insert("description".to_owned(), text.into())),
        }
        true
    }

    /// Puts tools into a group, out of every other entry that names them.
    pub(super) fn place(&mut self, name: &str, description: Option<&str>, tools: &[String]) {
        let placed: HashSet<&str> = tools.iter().map(String::as_str).collect();
        self.with(|list| {
            for group in list.iter_mut().filter_map(Value::as_object_mut) {
                if let Some(named) = group.get_mut("tools").and_then(Value::as_array_mut) {
                    named.retain(|tool| !tool.as_str().is_some_and(|tool| placed.contains(tool)));
                }
            }
        });
        let Some(entry) = self.entry(name, &[]) else { return };
        if let Some(description) = description {
            entry.entry("description").or_insert_with(|| description.into());
        }
        let named = entry.entry("tools").or_insert_with(|| json!([]));
        if let Some(named) = named.as_array_mut() {
            named.extend(tools.iter().map(|tool| json!(tool)));
        }
        self.sweep();
    }

    /// Puts all of a group into another one.
    pub(super) fn merge(&mut self, from: &str, tools: &[String], into: &str) {
        let at = self.position(from);
        let prefixes = at.and_then(|at| self.with(|list| list.remove(at).get("prefixes").cloned()));
        self.place(into, None, tools);
        let prefixes = prefixes.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(entry) = self.entry(into, &[]).filter(|_| !prefixes.is_empty()) {
            let all = entry.entry("prefixes").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.extend(prefixes);
            }
        }
    }

    /// Has an entry for a group that is only proposed, so that its name means something.
    pub(super) fn ensure(&mut self, name: &str, tools: &[String]) {
        let _ = self.entry(name, tools);
    }

    /// Leaves a group out, whatever tools it will have.
    pub(super) fn leave_out(&mut self, name: &str, tools: &[String]) {
        let selector = format!("@{name}");
        let mut names: Vec<&str> = tools.iter().map(String::as_str).collect();
        names.push(&selector);
        remove_names(self.0, "core", &names);
        add_names(self.0, "deny", &[&selector]);
    }

    /// Leaves tools out by their names.
    pub(super) fn leave_out_tools(&mut self, tools: &[String]) {
        let names: Vec<&str> = tools.iter().map(String::as_str).collect();
        remove_names(self.0, "core", &names);
        add_names(self.0, "deny", &names);
    }

    /// Takes all entries away, but for those of groups that are left out: these would come back.
    pub(super) fn clear(&mut self) {
        let out: HashSet<String> = selectors(self.0, "deny")
            .filter_map(|entry| entry.strip_prefix('@'))
            .map(str::to_owned)
            .collect();
        let is_out =
            |group: &Value| group.get("name").and_then(Value::as_str).is_some_and(|name| out.contains(name));
        self.with(|list| list.retain(is_out));
        drop_empty(self.0, "groups");
    }

    /// Takes the entry of a group away: its tools are where names and uploads put them.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(at) = self.position(name) {
            self.with(|list| drop(list.remove(at)));
        }
        drop_empty(self.0, "groups");
    }

    /// Entries that say nothing any more go.
    fn sweep(&mut self) {
        let is_empty =
            |group: &Value, key: &str| group.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty);
        self.with(|list| {
            list.retain(|group| {
                !is_empty(group, "tools")
                    || !is_empty(group, "prefixes")
                    || group.get("description").is_some()
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn edited(before: Value, edit: impl FnOnce(&mut Groups<'_>)) -> Value {
        let mut config = before.as_object().cloned().unwrap();
        edit(&mut Groups(&mut config));
        Value::Object(config)
    }

    #[test]
    fn a_group_of_an_upload_gets_an_entry_when_it_is_edited() {
        let after = edited(json!({}), |groups| {
            assert!(groups.edit("jira", &tools(&["a", "b"]), "planning", "Boards"));
        });
        assert_eq!(
            after,
            json!({"groups": [{"name": "planning", "tools": ["a", "b"], "description": "Boards"}]})
        );
        let back = edited(after, |groups| groups.forget("planning"));
        assert_eq!(back, json!({}));
    }

    #[test]
    fn a_group_takes_its_tools_along_to_another_name() {
        let before = json!({"groups": [{"name": "jira", "description": "Boards"}]});
        let same = edited(before.clone(), |groups| {
            assert!(groups.edit("jira", &tools(&["a"]), "jira", "Boards"));
        });
        assert_eq!(same, before, "the upload says which tools these are");
        let after = edited(before, |groups| {
            assert!(groups.edit("jira", &tools(&["a", "b"]), "planning", "Boards"));
        });
        assert_eq!(
            after,
            json!({"groups": [{"name": "planning", "description": "Boards", "tools": ["a", "b"]}]})
        );
    }

    #[test]
    fn a_name_is_not_given_twice() {
        let before = json!({"groups": [{"name": "one", "tools": ["a"]}, {"name": "two", "tools": ["b"]}]});
        let after = edited(before.clone(), |groups| assert!(!groups.edit("one", &tools(&["a"]), "two", "")));
        assert_eq!(after, before);
    }

    #[test]
    fn a_tool_is_in_one_group() {
        let before =
            json!({"groups": [{"name": "one", "tools": ["a", "b"]}, {"name": "two", "prefixes": ["x_"]}]});
        let after = edited(before, |groups| groups.place("two", None, &tools(&["b"])));
        assert_eq!(
            after,
            json!({"groups": [{"name": "one", "tools": ["a"]}, {"name": "two", "prefixes": ["x_"], "tools": ["b"]}]})
        );
        let merged = edited(after, |groups| groups.merge("two", &tools(&["b", "x_1"]), "one"));
        assert_eq!(
            merged,
            json!({"groups": [{"name": "one", "tools": ["a", "b", "x_1"], "prefixes": ["x_"]}]})
        );
    }

    #[test]
    fn a_group_that_is_left_out_stays_out_when_groups_begin_anew() {
        let before = json!({"core": ["a", "@mail", "z"], "groups": [{"name": "other", "tools": ["o"]}]});
        let out = edited(before, |groups| {
            groups.ensure("mail", &tools(&["a", "b"]));
            groups.leave_out("mail", &tools(&["a", "b"]));
        });
        assert_eq!(
            out,
            json!({"core": ["z"], "groups": [{"name": "other", "tools": ["o"]}, {"name": "mail", "tools": ["a", "b"]}], "deny": ["@mail"]})
        );
        let again = edited(out, |groups| {
            groups.clear();
        });
        assert_eq!(again["groups"], json!([{"name": "mail", "tools": ["a", "b"]}]));
        // The group of an upload has its name from there.
        let out = edited(json!({}), |groups| groups.leave_out("jira", &tools(&["a"])));
        assert_eq!(out, json!({"deny": ["@jira"]}));
    }

    #[test]
    fn lists_of_names_hold_each_once_and_go_when_they_are_empty() {
        let mut config = Map::new();
        add_names(&mut config, "core", &["a", "a", "b"]);
        assert_eq!(config["core"], json!(["a", "b"]));
        remove_names(&mut config, "core", &["a", "b", "c"]);
        assert!(config.is_empty());
    }
}
