//! What a grant comes to, by its rules.

use serde_json::{Value, json};

use std::collections::HashSet;

use super::*;
use crate::core::catalog::{read_upload, replace};
use crate::core::format::ingest::EntryLimits;
use crate::core::format::names::{wire_name, with_suffix};
use crate::core::management::ManagementTool;
use crate::core::policy::{Layer, merge, parse};

fn catalog(entries: &Value) -> Arc<Catalog> {
    let texts: Vec<String> = entries.as_array().unwrap().iter().map(Value::to_string).collect();
    let limits = EntryLimits { bytes: 262_144, depth: 64 };
    let upload = read_upload(texts.iter().map(String::as_str), limits, "/tools");
    Arc::new(replace(&Catalog::default(), upload.tools).catalog)
}

fn layer(document: Value) -> Layer {
    parse(&document).unwrap().layer
}

fn names(view: &View) -> Vec<&str> {
    view.tools.iter().map(ViewTool::stored_name).collect()
}

fn codes(view: &View) -> Vec<&str> {
    view.join_warnings.iter().chain(&view.warnings).map(|warning| warning.code).collect()
}

fn selection(value: Value) -> Selection {
    serde_json::from_value(value).unwrap()
}

fn view(user: &Value, config: Value, selections: &[Selection]) -> View {
    let policy = merge(&layer(config), &Layer::default());
    let catalogs = Catalogs::Stored { user: catalog(user), project: Arc::default() };
    View::build(&catalogs, &policy, &[], selections, Profile::Generic)
}

fn six() -> Value {
    json!([
        {"name": "git_push", "group": "git"}, {"name": "git_pull", "group": "git"},
        {"name": "mail_send", "group": "mail"}, {"name": "mail_read", "group": "mail"},
        {"name": "search", "group": "git"}, {"name": "search", "group": "mail"}
    ])
}

#[test]
fn allow_lists_intersect_and_deny_comes_last() {
    let config = json!({"allow": ["@git", "mail_send"], "deny": ["git_pull"]});
    assert_eq!(names(&view(&six(), config.clone(), &[])), ["git__search", "git_push", "mail_send"]);
    let narrowed = [selection(json!({"allow": ["git*"]})), selection(json!({"deny": ["git_push"]}))];
    assert_eq!(names(&view(&six(), config.clone(), &narrowed)), ["git__search"]);
    let nothing = view(&six(), config, &[selection(json!({"allow": ["mail_read"]}))]);
    assert!(nothing.tools.is_empty());
    assert_eq!(codes(&nothing), ["empty_grant"]);
}

#[test]
fn a_name_takes_all_tools_that_it_may_mean() {
    let denied = view(&six(), json!({"deny": ["search"]}), &[]);
    assert!(!names(&denied).iter().any(|name| name.ends_with("search")), "no new upload slips out of a deny");
    let core = view(&six(), json!({"core": ["search"]}), &[]);
    assert_eq!(core.tools.iter().filter(|tool| tool.core).count(), 2);
    assert_eq!(codes(&core), ["ambiguous_core"]);
}

#[test]
fn toolsets_compose_and_cycles_end() {
    let config = json!({"toolsets": [
        {"name": "a", "tools": ["git_push"], "includes": ["b"]},
        {"name": "b", "groups": ["mail"], "includes": ["a", "ghost"]},
        {"name": "all", "includes": ["*"]}
    ], "default_toolsets": ["a"]});
    let default = view(&six(), config.clone(), &[Selection::default()]);
    assert_eq!(names(&default), ["git_push", "mail__search", "mail_read", "mail_send"]);
    assert_eq!(codes(&default), ["unknown_toolset"]);
    for everything in [json!({"toolsets": []}), json!({"toolsets": ["all"]}), json!({"toolsets": ["*"]})] {
        assert_eq!(view(&six(), config.clone(), &[selection(everything)]).tools.len(), 6);
    }
    let ghost = view(&six(), config, &[selection(json!({"toolsets": ["ghost"]}))]);
    assert_eq!(codes(&ghost), ["unknown_toolset", "empty_grant"]);
}

#[test]
fn groups_go_by_exact_name_then_longest_prefix_then_name() {
    let config = json!({"groups": [
        {"name": "z", "prefixes": ["git_"], "description": "Versions"},
        {"name": "y", "prefixes": ["git_pu"]},
        {"name": "x", "prefixes": ["git_pu"]},
        {"name": "w", "tools": ["git_push"]}
    ]});
    let view = view(&six(), config, &[]);
    let group = |name: &str| match view.resolve_tool(name) {
        Resolved::Tool(id) => view.group(view.get(id).unwrap()).to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (group("git_push"), group("git_pull"), group("mail_send")),
        ("w".into(), "x".into(), "mail".into())
    );
}

#[test]
fn the_users_definition_stays_unless_the_project_overrides() {
    let user = catalog(
        &json!([{"name": "a", "description": "mine"}, {"name": "b", "description": "mine"}, {"name": "c"}]),
    );
    let project = catalog(&json!([
        {"name": "a", "description": "theirs"}, {"name": "b", "description": "theirs", "override": true},
        {"name": "c", "description": "theirs", "override": true}, {"name": "d"}
    ]));
    let user_layer = layer(json!({"core": ["c"]}));
    let policy = merge(&user_layer, &Layer::default());
    let view = View::build(
        &Catalogs::Stored { user, project },
        &policy,
        &user_layer.core.unwrap(),
        &[],
        Profile::Generic,
    );
    let parts: Vec<u8> = view.tools.iter().map(|tool| tool.part).collect();
    assert_eq!((names(&view), parts), (vec!["a", "b", "c", "d"], vec![0, 1, 0, 1]));
    assert_eq!(codes(&view), ["catalog_clash"; 3]);
}

#[test]
fn bridge_names_mean_the_bridge_and_wire_names_are_unique() {
    let tools = json!([{"name": "tool_search"}, {"name": "x_tool_call"}, {"name": "a.b"}]);
    let plain = view(&tools, json!({}), &[]);
    assert_eq!(plain.resolve("tool_search"), Resolved::Bridge(BridgeTool::Search));
    let Resolved::Tool(id) = plain.resolve_tool("tool_search") else { panic!() };
    let wire = plain.get(id).unwrap().wire_name().to_owned();
    assert!(wire.starts_with("tool_search_") && plain.resolve(&wire) == Resolved::Tool(id));
    let tool = plain.get(id).unwrap();
    let made = tool.for_target(Target::default());
    assert!(made.entry(&wire, &tool.tool.tool).unwrap().json.contains(&wire));
    let prefixed = view(&tools, json!({"bridge_prefix": "x_"}), &[]);
    let own: Vec<&str> = prefixed.tools.iter().map(ViewTool::wire_name).collect();
    assert!(own.contains(&"tool_search") && !own.contains(&"x_tool_call"), "{own:?}");
    assert_eq!(prefixed.resolve("x_tool_call"), Resolved::Bridge(BridgeTool::Call));
}

#[test]
fn management_names_are_taken_always_and_mean_management_only_where_it_is_wanted() {
    let tools = json!([{"name": "toolrack_catalog"}, {"name": "x_toolrack_update_config"}]);
    let plain = view(&tools, json!({}), &[]);
    let Resolved::Tool(id) = plain.resolve("toolrack_catalog") else { panic!() };
    let wire = plain.get(id).unwrap().wire_name().to_owned();
    assert!(wire.starts_with("toolrack_catalog_") && plain.resolve(&wire) == Resolved::Tool(id));
    let managing = view(&tools, json!({"management_tools": true}), &[]);
    assert_eq!(managing.resolve("toolrack_catalog"), Resolved::Management(ManagementTool::Catalog));
    assert_eq!(managing.resolve(&wire), Resolved::Tool(id), "switching it on renames nothing");
    let prefixed = view(&tools, json!({"management_tools": true, "bridge_prefix": "x_"}), &[]);
    let update = Resolved::Management(ManagementTool::UpdateConfig);
    assert_eq!(prefixed.resolve("x_toolrack_update_config"), update);
    assert!(matches!(prefixed.resolve("toolrack_catalog"), Resolved::Tool(_)));
}

#[test]
fn a_name_that_the_model_saw_cannot_be_taken_over() {
    let bridged = with_suffix("tool_search");
    let dotted = wire_name("a.b").into_owned();
    let tools = json!([
        {"name": "tool_search", "description": "real"}, {"name": bridged, "description": "impostor"},
        {"name": "a.b", "description": "real"}, {"name": dotted, "description": "impostor"}
    ]);
    let view = view(&tools, json!({}), &[]);
    let wire: HashSet<&str> = view.tools.iter().map(ViewTool::wire_name).collect();
    assert_eq!(wire.len(), 4);
    for name in [&bridged, &dotted] {
        let Resolved::Tool(id) = view.resolve(name) else { panic!("{name}") };
        assert_eq!(view.get(id).unwrap().tool.tool.description(), "real", "{name}");
    }
    for (id, tool) in view.visible() {
        assert_eq!(view.resolve(tool.wire_name()), Resolved::Tool(id), "every tool answers to its wire name");
        assert_eq!(view.resolve(view.callable_name(tool)), Resolved::Tool(id));
    }
}

#[test]
fn unavailable_tools_are_of_the_grant_but_cannot_be_found() {
    let view = view(&six(), json!({}), &[selection(json!({"unavailable": ["@mail"]}))]);
    assert_eq!((view.tools.len(), view.visible().count()), (6, 3));
    assert_eq!(view.candidates()[0].iter().filter(|id| **id != HIDDEN).count(), 3);
    assert!(matches!(view.resolve("search"), Resolved::Ambiguous([_, _])));
}

#[test]
fn more_core_tools_are_those_of_the_grant_alone() {
    let denied = selection(json!({"deny": ["@git"]}));
    let all = view(&six(), json!({}), &[]);
    let keys: Vec<ToolKey> = all.tools.iter().map(|tool| tool.tool.tool.key()).collect();
    let granted = view(&six(), json!({}), &[denied]).with_core(&keys);
    assert!(!granted.tools.is_empty() && granted.tools.len() < all.tools.len());
    assert!(granted.tools.iter().all(|tool| tool.core));
    let one = view(&six(), json!({}), &[]).with_core(&keys[..1]);
    assert_eq!(one.tools.iter().filter(|tool| tool.core).count(), 1);
}

#[test]
fn identities_lead_back_to_tools() {
    let view = view(&six(), json!({}), &[]);
    for (id, tool) in view.visible() {
        assert_eq!(view.by_key(&tool.tool.tool.key()), [id]);
    }
    assert!(view.by_key(&ToolKey::new("git", "mail_send")).is_empty());
}
