//! How the values of two layers become one: the later wins, lists are joined or must both hold, entries
//! merge by name. Knows no key and no JSON beyond what the effective view shows.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::matcher::{Matcher, MatcherSetting};
use super::values::{Group, Origin, Toolset};
use crate::core::selector::Selector;

/// Joins the user's and the project's value of one key.
pub(super) trait Join<T> {
    /// What there is when no layer says anything.
    type Default;
    /// What a request sees.
    type Merged;

    fn merge(&self, default: Self::Default, user: Option<&T>, project: Option<&T>) -> Self::Merged;

    /// The merged value as JSON; `write` gives one layer's.
    fn view(
        &self,
        default: Self::Default,
        user: Option<&T>,
        project: Option<&T>,
        write: &dyn Fn(&T) -> Value,
    ) -> Value;

    /// Whether both layers can have a part in the value, and so whether this one has (an empty list has
    /// none).
    fn takes_part(&self, _: &T) -> bool {
        false
    }
}

/// The project's value, else the user's, else the default.
pub(super) struct Override;

impl<T: Clone> Join<T> for Override {
    type Default = T;
    type Merged = T;

    fn merge(&self, default: T, user: Option<&T>, project: Option<&T>) -> T {
        project.or(user).cloned().unwrap_or(default)
    }

    fn view(&self, default: T, user: Option<&T>, project: Option<&T>, write: &dyn Fn(&T) -> Value) -> Value {
        write(project.or(user).unwrap_or(&default))
    }
}

/// A record with defaults of its own, taken whole from one layer.
pub(super) trait Filled {
    type Full;

    /// The record with every default in its place.
    fn fill(&self) -> Self::Full;

    /// The same as JSON.
    fn view(&self) -> Value;
}

/// Like [`Override`], with the record's own defaults filled in after the choice.
pub(super) struct Fill;

impl<T: Filled> Join<T> for Fill {
    type Default = T;
    type Merged = T::Full;

    fn merge(&self, default: T, user: Option<&T>, project: Option<&T>) -> T::Full {
        project.or(user).unwrap_or(&default).fill()
    }

    fn view(&self, default: T, user: Option<&T>, project: Option<&T>, _: &dyn Fn(&T) -> Value) -> Value {
        project.or(user).unwrap_or(&default).view()
    }
}

/// The matcher: whole from one layer, remembering which, because the secret of that layer alone belongs to
/// it.
pub(super) struct OneLayer;

impl Join<MatcherSetting> for OneLayer {
    type Default = ();
    type Merged = Option<Matcher>;

    fn merge(
        &self,
        (): (),
        user: Option<&MatcherSetting>,
        project: Option<&MatcherSetting>,
    ) -> Option<Matcher> {
        let project = project.map(|setting| (Origin::Project, setting));
        let (layer, setting) = project.or_else(|| user.map(|setting| (Origin::User, setting)))?;
        setting.matcher(layer)
    }

    fn view(
        &self,
        (): (),
        user: Option<&MatcherSetting>,
        project: Option<&MatcherSetting>,
        _: &dyn Fn(&MatcherSetting) -> Value,
    ) -> Value {
        project.or(user).map_or(Value::Null, MatcherSetting::view)
    }
}

/// Both lists in one, the user's first, each selector once.
pub(super) struct Union;

impl Join<Vec<Selector>> for Union {
    type Default = Vec<Selector>;
    type Merged = Vec<Selector>;

    fn merge(
        &self,
        default: Vec<Selector>,
        user: Option<&Vec<Selector>>,
        project: Option<&Vec<Selector>>,
    ) -> Vec<Selector> {
        if user.is_none() && project.is_none() {
            return default;
        }
        let mut seen = std::collections::HashSet::new();
        let both = user.into_iter().chain(project).flatten();
        both.filter(|selector| seen.insert(*selector)).cloned().collect()
    }

    fn view(
        &self,
        default: Vec<Selector>,
        user: Option<&Vec<Selector>>,
        project: Option<&Vec<Selector>>,
        write: &dyn Fn(&Vec<Selector>) -> Value,
    ) -> Value {
        write(&self.merge(default, user, project))
    }

    fn takes_part(&self, selectors: &Vec<Selector>) -> bool {
        !selectors.is_empty()
    }
}

/// Every list that is not empty must hold: the merged value is a list of lists, and empty when nothing
/// restricts.
pub(super) struct Intersect;

impl Join<Vec<Selector>> for Intersect {
    type Default = Vec<Selector>;
    type Merged = Vec<Vec<Selector>>;

    fn merge(
        &self,
        default: Vec<Selector>,
        user: Option<&Vec<Selector>>,
        project: Option<&Vec<Selector>>,
    ) -> Vec<Vec<Selector>> {
        let lists = if user.is_none() && project.is_none() {
            vec![default]
        } else {
            user.into_iter().chain(project).cloned().collect()
        };
        lists.into_iter().filter(|list| !list.is_empty()).collect()
    }

    fn view(
        &self,
        default: Vec<Selector>,
        user: Option<&Vec<Selector>>,
        project: Option<&Vec<Selector>>,
        write: &dyn Fn(&Vec<Selector>) -> Value,
    ) -> Value {
        match self.merge(default, user, project).as_slice() {
            [] => Value::Array(Vec::new()),
            [list] => write(list),
            lists => serde_json::json!({ "all_of": lists.iter().map(write).collect::<Vec<_>>() }),
        }
    }

    fn takes_part(&self, selectors: &Vec<Selector>) -> bool {
        !selectors.is_empty()
    }
}

/// A collection of entries with names.
pub(super) trait NamedEntries: Clone {
    fn is_empty(&self) -> bool;

    /// Both, sorted by name; an entry of `over` takes the place of one of that name here.
    fn overlaid(&self, over: Option<&Self>) -> Self;
}

/// An entry with a name.
trait NamedEntry: Clone {
    fn name(&self) -> &str;
}

impl NamedEntry for Group {
    fn name(&self) -> &str {
        &self.name
    }
}

impl NamedEntry for Toolset {
    fn name(&self) -> &str {
        &self.name
    }
}

impl<T: NamedEntry> NamedEntries for Vec<T> {
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }

    fn overlaid(&self, over: Option<&Self>) -> Self {
        let entries = self.iter().chain(over.into_iter().flatten());
        let by_name: HashMap<&str, &T> = entries.map(|entry| (entry.name(), entry)).collect();
        let mut merged: Vec<T> = by_name.into_values().cloned().collect();
        merged.sort_unstable_by(|left, right| left.name().cmp(right.name()));
        merged
    }
}

impl NamedEntries for BTreeMap<String, Vec<String>> {
    fn is_empty(&self) -> bool {
        BTreeMap::is_empty(self)
    }

    fn overlaid(&self, over: Option<&Self>) -> Self {
        let mut merged = self.clone();
        merged.extend(over.into_iter().flatten().map(|(name, entry)| (name.clone(), entry.clone())));
        merged
    }
}

/// Entries merge by name, the project's winning; sorted by name, so that the order of writing means nothing.
pub(super) struct ByName;

impl<T: NamedEntries> Join<T> for ByName {
    type Default = T;
    type Merged = T;

    fn merge(&self, default: T, user: Option<&T>, project: Option<&T>) -> T {
        match (user, project) {
            (Some(user), project) => user.overlaid(project),
            (None, Some(project)) => project.overlaid(None),
            (None, None) => default,
        }
    }

    fn view(&self, default: T, user: Option<&T>, project: Option<&T>, write: &dyn Fn(&T) -> Value) -> Value {
        write(&self.merge(default, user, project))
    }

    fn takes_part(&self, entries: &T) -> bool {
        !entries.is_empty()
    }
}
