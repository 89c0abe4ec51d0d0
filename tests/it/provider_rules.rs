//! Every array of every provider, held against that provider's rules by a checker that knows nothing of how it was made; and the way
//! back of names and arguments.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::app::{TestApp, User};
use crate::checker::{Asked, PROFILES, faults};
use crate::messy;
use crate::model::{array_names, definition, entries, schema_of};

/// Tools in one array for providers that take a few only.
const FEW: usize = 100;

/// One way to ask for arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) asked: Asked<'static>,
    pub(crate) strict: bool,
}

impl Way {
    fn body(self) -> Value {
        let Asked { profile, format, openapi } = self.asked;
        let mut body = json!({"profile": profile, "format": format, "strict": self.strict});
        if openapi {
            body["schema_dialect"] = json!("openapi");
        }
        body
    }
}

/// Every profile with the formats of its provider, its dialects, with and without strict mode.
pub(crate) fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for (profile, formats) in PROFILES {
        for &format in formats {
            for (openapi, strict) in [(false, false), (false, true), (true, false)] {
                if format == "gemini" || !openapi {
                    ways.push(Way { asked: Asked { profile, format, openapi }, strict });
                }
            }
        }
    }
    ways
}

/// What became of the tools of a catalog for one way of asking.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: usize,
    pub(crate) left_out: usize,
    /// Tools with other arguments than their own, and those of them that were called with some.
    pub(crate) mapped: usize,
    pub(crate) called: usize,
}

/// Users who have all tools in their arrays: one with all, and some with a part each.
pub(crate) struct Holders {
    whole: User,
    parts: Vec<User>,
}

impl Holders {
    pub(crate) async fn of(app: &TestApp, tools: &[Value]) -> Self {
        let mut parts = Vec::new();
        for part in tools.chunks(FEW) {
            parts.push(holder(app, part).await);
        }
        Self { whole: holder(app, tools).await, parts }
    }

    /// What becomes of all tools for one way of asking: kept, mended, left out.
    #[cfg(feature = "data-tests")]
    pub(crate) async fn lint(&self, way: Way) -> Value {
        let path = self.whole.path(&["catalog", "lint"]);
        self.whole.client().post(&path, &way.body()).await.ok()["counts"].clone()
    }

    /// Those whose arrays hold no more than the provider takes.
    fn for_profile(&self, profile: &str) -> &[User] {
        if takes_few(profile) { &self.parts } else { std::slice::from_ref(&self.whole) }
    }
}

/// Whether the provider takes fewer tools than a catalog has.
fn takes_few(profile: &str) -> bool {
    ["openai", "azure", "deepseek", "groq", "vertex"].contains(&profile)
}

/// A user whose arrays hold every tool that the provider takes.
async fn holder(app: &TestApp, tools: &[Value]) -> User {
    let user = app.user();
    user.put_catalog(tools).await.ok();
    user.put_config(&json!({"enabled": "on", "core": ["*"]})).await.ok();
    user
}

/// Asks in one way: nothing that the provider refuses, every tool sent or told, every name and argument leads back.
pub(crate) async fn check(holders: &Holders, way: Way) -> Counts {
    let mut counts = Counts::default();
    for user in holders.for_profile(way.asked.profile) {
        let answer = user.assemble(way.body()).await.ok();
        let found = faults(way.asked, &answer["tools"]);
        assert!(found.is_empty(), "{way:?}: {} faults: {:#?}", found.len(), &found[..found.len().min(12)]);
        let catalog = user.client().get(&user.path(&["catalog"])).await.ok();
        let stored: BTreeSet<&str> =
            catalog["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let bridge = answer["counts"]["bridge"].as_u64().unwrap() as usize;
        let names = array_names(&answer);
        let own = &names[..names.len() - bridge];
        let name_of =
            |wire: &str| answer["name_map"].get(wire).map_or(wire, |name| name.as_str().unwrap()).to_owned();
        let back: BTreeSet<String> = own.iter().map(|wire| name_of(wire)).collect();
        assert_eq!(back.len(), own.len(), "{way:?}: two names lead to one tool");
        assert!(back.iter().all(|name| stored.contains(&**name)), "{way:?}: a name that leads nowhere");
        let left_out = told_left_out(&answer);
        assert_eq!(own.len() + left_out, stored.len(), "{way:?}: a tool is neither sent nor told");
        let calls = calls(way, &answer);
        counts.sent += own.len();
        counts.left_out += left_out;
        counts.mapped += calls.len();
        counts.called += check_calls(user, way, &calls, &name_of).await;
    }
    counts
}

/// How many tools the warnings say that were left out.
fn told_left_out(answer: &Value) -> usize {
    let warnings = answer["warnings"].as_array().unwrap();
    let left_out = warnings.iter().filter(|warning| warning["code"] == "tool_left_out");
    left_out
        .map(|warning| match (warning["tool"].is_string(), warning["detail"].as_str()) {
            (true, _) => 1,
            (false, Some(detail)) => {
                detail.split(' ').find_map(|word| word.parse::<usize>().ok()).expect("a number")
            }
            _ => panic!("{warning}"),
        })
        .sum()
}

/// A call per tool with an argument map: the wire name, arguments as the model was told them, and what they are to the tool.
fn calls(way: Way, answer: &Value) -> Vec<(String, Value, Value)> {
    let maps = answer["arg_map"].as_object();
    let place = if way.asked.openapi { "openapi" } else { way.asked.format };
    let schema = |entry| {
        if place == "openapi" { definition(entry).get("parameters") } else { schema_of(place, entry) }
    };
    let mut calls = Vec::new();
    for entry in entries(&answer["tools"]) {
        let name = definition(entry)["name"].as_str().unwrap();
        let Some(map) = maps.and_then(|maps| maps.get(name)) else {
            continue;
        };
        let Some(root) = schema(entry) else { continue };
        let arguments = sample(root, root, 0);
        let original = restored(&arguments, map, "");
        calls.push((name.to_owned(), arguments, original));
    }
    calls
}

/// A value that fits a schema in a simple way; nulls where they are allowed.
fn sample(schema: &Value, root: &Value, depth: usize) -> Value {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|text| text.strip_prefix('#')) {
        let meant = if depth > 6 { None } else { root.pointer(pointer) };
        return meant.map_or(Value::Null, |meant| sample(meant, root, depth + 1));
    }
    if let Some(first) = schema["enum"].get(0).or_else(|| schema.get("const")) {
        return first.clone();
    }
    if let Some(branch) = schema["anyOf"].get(0) {
        return sample(branch, root, depth + 1);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if kinds.iter().any(|kind| kind == "null") => "null",
        Value::Array(kinds) => kinds[0].as_str().unwrap(),
        kind => kind.as_str().unwrap_or("string"),
    };
    match kind {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let member = |(key, child): (&String, &Value)| (key.clone(), sample(child, root, depth + 1));
            Value::Object(properties.map(member).collect())
        }
        "array" => json!([sample(&schema["items"], root, depth + 1)]),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => json!("text"),
    }
}

/// Arguments with the map's keys put back, read as its documentation says: pointers in which `*` is every item, each to the original
/// key, to null for a null that means nothing, to true for the one that is the whole, or to a list of these.
fn restored(value: &Value, map: &Value, at: &str) -> Value {
    match value {
        Value::Object(members) => {
            let mut restored_members = Map::new();
            for (key, member) in members {
                let step =
                    if key == "*" { "~2".to_owned() } else { key.replace('~', "~0").replace('/', "~1") };
                let at = format!("{at}/{step}");
                let inner = restored(member, map, &at);
                let effects = match map.get(&at) {
                    Some(Value::Array(effects)) => effects.clone(),
                    one => one.cloned().into_iter().collect(),
                };
                if effects.contains(&Value::Bool(true)) {
                    return inner;
                }
                if !(member.is_null() && effects.contains(&Value::Null)) {
                    let original = effects.iter().find_map(Value::as_str).unwrap_or(key);
                    restored_members.insert(original.to_owned(), inner);
                }
            }
            Value::Object(restored_members)
        }
        Value::Array(items) => items.iter().map(|item| restored(item, map, &format!("{at}/*"))).collect(),
        other => other.clone(),
    }
}

/// Holds calls against their originals; how many the tools' own schemas took.
async fn check_calls(
    user: &User,
    way: Way,
    calls: &[(String, Value, Value)],
    name_of: &impl Fn(&str) -> String,
) -> usize {
    let mut taken = 0;
    for part in calls.chunks(20) {
        let mut body = way.body();
        body["calls"] =
            part.iter().map(|(name, arguments, _)| json!({"name": name, "arguments": arguments})).collect();
        let answer = user.call(body).await.ok();
        for ((name, arguments, original), result) in part.iter().zip(answer["results"].as_array().unwrap()) {
            let dispatch = &result["dispatch"];
            if dispatch.is_null() {
                let code = result["error"]["code"].as_str().unwrap();
                assert!(
                    ["invalid_arguments", "missing_arguments"].contains(&code),
                    "{way:?} {name}: {result}"
                );
                continue;
            }
            taken += 1;
            assert_eq!(dispatch["name"], json!(name_of(name)), "{way:?}");
            assert_eq!(&dispatch["arguments"], original, "{way:?} {name}: {arguments}");
        }
    }
    taken
}

/// The same tools by themselves: an entry says nothing of what else stands in the array.
pub(crate) async fn check_entries_alone(app: &TestApp, tools: &[Value]) {
    let user = holder(app, tools).await;
    let alone = app.user();
    alone.put_config(&json!({"enabled": "on", "core": ["*"]})).await.ok();
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for tool in tools {
        by_name.entry(messy::identity(tool).1).or_default().push(tool);
    }
    let plain = |way: &Way| !way.strict && !takes_few(way.asked.profile);
    for way in ways().into_iter().filter(plain).step_by(3) {
        let whole = user.assemble(way.body()).await.ok();
        let all: BTreeMap<&str, &Value> = entries(&whole["tools"])
            .iter()
            .map(|entry| (definition(entry)["name"].as_str().unwrap(), entry))
            .collect();
        for (name, same) in by_name.iter().filter(|(_, same)| same.len() == 1).take(40) {
            let mut body = way.body();
            body["tools"] = json!(same);
            let answer = alone.assemble(body).await.ok();
            for entry in entries(&answer["tools"]) {
                let wire = definition(entry)["name"].as_str().unwrap();
                if !crate::model::BRIDGE.contains(&wire) {
                    assert_eq!(
                        all.get(wire).map(ToString::to_string),
                        Some(entry.to_string()),
                        "{way:?} {name}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn every_array_is_what_its_provider_takes_and_leads_back() {
    let app = TestApp::start().await;
    let (mut mapped, mut called) = (0, 0);
    for seed in 21..24 {
        let tools = messy::catalog(seed, 250);
        let holders = Holders::of(&app, &tools).await;
        for way in ways() {
            let counts = check(&holders, way).await;
            assert!(counts.left_out * 50 <= counts.sent, "{way:?}: {counts:?}");
            mapped += counts.mapped;
            called += counts.called;
        }
    }
    assert!(mapped > 500 && called * 3 > mapped, "{called} of {mapped} calls were taken");
}

/// What stands in every array of a catalog that is searched: the bridge, alone and behind a core, with what was found after it.
#[tokio::test]
async fn the_bridge_is_what_every_provider_takes() {
    let app = TestApp::start().await;
    let user = app.user();
    user.put_catalog(&messy::catalog(41, 80)).await.ok();
    let prefixed =
        json!({"enabled": "on", "core": ["search*"], "bridge_prefix": "my-", "listing_placement": "bridge"});
    for (label, config) in [("plain", json!({"enabled": "on"})), ("prefixed", prefixed)] {
        user.put_config(&config).await.ok();
        for (at, way) in ways().into_iter().enumerate() {
            let mut body = way.body();
            body["session"] = json!(format!("{label}-{at}"));
            let first = user.assemble(body.clone()).await.ok();
            let mut search = body.clone();
            search["queries"] = json!(["search", "create", "list", "update"]);
            user.search(search).await.ok();
            let answer = user.assemble(body).await.ok();
            assert!(array_names(&answer).len() > array_names(&first).len(), "{way:?}: {answer}");
            for answer in [first, answer] {
                assert_eq!(faults(way.asked, &answer["tools"]), Vec::<String>::new(), "{way:?}");
                assert_eq!(answer["counts"]["bridge"], 3);
            }
        }
    }
}

#[tokio::test]
async fn an_entry_depends_on_its_tool_and_the_target_alone() {
    let app = TestApp::start().await;
    check_entries_alone(&app, &messy::catalog(31, 300)).await;
}
