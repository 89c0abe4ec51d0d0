//! The effective view: every key with the value in force and the layer that it came from.

use serde_json::{Map, Value, json};

use super::join::Join;
use super::keys::{Layer, effective_keys};
use super::merge;
use super::rules::Rule;
use super::values::Origin;

/// Every key in table order: `{value, origin, parts?}`, with `origin` `default`, `user`, `project` or
/// `merged`. Keys to which both layers add something show each layer's part. Two `allow` lists are shown as
/// `{all_of: [[..], [..]]}`. A default limit above the maximum in force shows the maximum, and
/// `clamped_from`. No secret is in it.
pub fn effective(user: &Layer, project: &Layer) -> Map<String, Value> {
    let mut view = effective_keys(user, project);
    let limit = Value::from(merge(user, project).search_default_limit);
    if let Some(Value::Object(entry)) = view.get_mut("search_default_limit")
        && entry.get("value") != Some(&limit)
    {
        let asked = entry.insert("value".to_owned(), limit);
        entry.insert("clamped_from".to_owned(), asked.unwrap_or_default());
    }
    view
}

/// The entry of one key.
pub(super) fn shown<T, J: Join<T>, R: Rule<Out = T>>(
    join: &J,
    rule: &R,
    default: impl Fn() -> J::Default,
    user: Option<&T>,
    project: Option<&T>,
) -> Value {
    let write = |value: &T| rule.write(value);
    let mut entry = Map::new();
    entry.insert("value".to_owned(), join.view(default(), user, project, &write));
    let part_of = |value: &&T| join.takes_part(value);
    let mut parts = None;
    let origin = match (user.filter(part_of), project.filter(part_of)) {
        (Some(user), Some(project)) => {
            let part =
                |origin: Origin, value: &T| json!({ "origin": origin.as_str(), "value": write(value) });
            parts = Some(json!([part(Origin::User, user), part(Origin::Project, project)]));
            Origin::Merged
        }
        (Some(_), None) => Origin::User,
        (None, Some(_)) => Origin::Project,
        (None, None) if project.is_some() => Origin::Project,
        (None, None) if user.is_some() => Origin::User,
        (None, None) => Origin::Default,
    };
    entry.insert("origin".to_owned(), Value::from(origin.as_str()));
    entry.extend(parts.map(|parts| ("parts".to_owned(), parts)));
    Value::Object(entry)
}
