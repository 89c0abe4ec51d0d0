//! The whole conversation of an agent with the service, turn by turn, beside a messy catalog of 7,000 tools; and the
//! rules of sessions on a small one.

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::messy;
use crate::model::{
    self, BRIDGE, FORMATS, array_names, check_array, model_call, names_after_bridge, read_message, strings,
    warning_codes,
};

/// A tool server whose words occur nowhere in the messy catalog.
fn observatory() -> Vec<Value> {
    let tool = |name: &str, description: &str, parameters: Value| json!({"group": "observatory", "name": name, "description": description, "parameters": parameters});
    let empty = || json!({"type": "object", "properties": {}});
    let mut tools = vec![
        tool("observatory_status", "Weather, dome and instruments at a glance.", empty()),
        tool("park_telescope", "Parks the telescope in its stow position.", empty()),
        tool("open_dome", "Opens the dome's shutter.", empty()),
        tool("close_dome", "Closes the dome's shutter.", empty()),
        tool("stop_everything", "Emergency stop of all motors.", empty()),
        tool(
            "aim_telescope",
            "Aims the telescope at a star, a galaxy or a planet.",
            json!({
                "type": "object",
                "required": ["target"],
                "properties": {
                    "target": {"type": "string", "description": "Name in the Messier catalogue"},
                    "exposure_s": {"type": "integer", "minimum": 1},
                    "band": {"enum": ["red", "green"]}
                }
            }),
        ),
        tool(
            "plot.light-curve",
            "Plots the light curve of a variable star.",
            json!({"type": "object", "required": ["star"], "properties": {"star": {"type": "string"}}}),
        ),
        tool("calibrate_spectrograph", "Calibrates the spectrograph with a neon lamp.", empty()),
    ];
    tools[4]["always_load"] = json!(true);
    tools
}

/// 20 tools named after colours, each with its own words.
fn paints() -> Vec<Value> {
    let colours = [
        "amber",
        "blue",
        "crimson",
        "denim",
        "emerald",
        "fuchsia",
        "gold",
        "heliotrope",
        "indigo",
        "jade",
        "khaki",
        "lilac",
        "magenta",
        "navy",
        "ochre",
        "purple",
        "quartz",
        "red",
        "sienna",
        "teal",
    ];
    colours
        .map(|colour| json!({"group": "paints", "name": colour, "description": format!("Paints {colour}.")}))
        .to_vec()
}

/// A user with [`paints`] and a config.
async fn painter(app: &TestApp, config: Value) -> User {
    let user = app.user();
    user.put_catalog(&paints()).await.ok();
    user.put_config(&config).await.ok();
    user
}

/// Warms tools one after the other, so that their ages are in this order.
async fn warm_each(user: &User, session: &str, names: &[&str]) {
    for name in names {
        user.describe(json!({"session": session, "name": name})).await.ok();
    }
}

async fn shown(user: &User, session: &str, more: Value) -> Value {
    let mut body = more;
    body["session"] = json!(session);
    user.assemble(body).await.ok()
}

#[tokio::test]
async fn an_agent_finds_mends_calls_and_keeps_a_tool_among_seven_thousand() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut tools = messy::catalog(7, 7_000);
    tools.extend(observatory());
    let written = user.put_catalog(&messy::shuffled(1, tools.clone())).await.ok();
    let stored = user.client().get(&user.path(&["catalog"])).await.ok();
    let count = stored["tools"].as_array().unwrap().len();
    assert_eq!(
        (&written["added"]["count"], &written["catalog_version"]),
        (&json!(count), &stored["catalog_version"])
    );
    let again = user.put_catalog(&messy::shuffled(2, tools)).await.ok();
    assert_eq!(
        (&again["unchanged"]["count"], &again["catalog_version"]),
        (&json!(count), &stored["catalog_version"])
    );
    user.put_config(&json!({"core": ["observatory_status"], "max_warm_tools": 3})).await.ok();

    first_turn(&user, count).await;
    let base = shown(&user, "walk", json!({})).await;
    finds(&user, &base).await;
    mends(&user).await;
    evicts(&user).await;
    for format in FORMATS {
        talks_through_the_bridge(&user, format).await;
    }
}

async fn first_turn(user: &User, count: usize) {
    let answer = shown(user, "walk", json!({})).await;
    let base: Vec<&str> = ["observatory_status", "stop_everything"].into_iter().chain(BRIDGE).collect();
    assert_eq!(array_names(&answer), base);
    assert_eq!(answer["counts"], json!({"core": 2, "warm": 0, "deferred": count - 2, "bridge": 3}));
    assert_eq!(answer["cache"], json!({"stable_prefix_len": 5, "break": false, "reason": "first"}));
    assert_eq!((&answer["warm"], &answer["unavailable"]), (&json!([]), &json!([])));
    assert_eq!((&answer["changed"], &answer["name_map"]), (&json!(true), &json!({})));
    assert!(answer.get("tools_ref").is_none());
    let tokens = &answer["tokens"];
    let parts = tokens["tools"].as_i64().unwrap() + tokens["listing"].as_i64().unwrap();
    assert_eq!(tokens["saved"].as_i64().unwrap(), tokens["all"].as_i64().unwrap() - parts);
    assert!(tokens["all"].as_i64().unwrap() > 500_000 && parts < 5_000, "{tokens}");

    let listing = &answer["listing"];
    assert_eq!((&listing["placement"], &answer["tier"]), (&json!("separate"), &json!(3)));
    assert!((3_000..=4_000).contains(&listing["tokens"].as_u64().unwrap()), "the budget is there to be used");
    let read = model::Listing::read(listing["text"].as_str().unwrap());
    assert!(BRIDGE.iter().all(|name| read.header.contains(name)), "{}", read.header);
    assert!(read.header.contains("not in your tool list unless they also stand there"), "{}", read.header);

    for format in FORMATS {
        let answer = user.assemble(json!({"format": format})).await.ok();
        check_array(format, &answer);
        assert_eq!(array_names(&answer), base, "{format}");
        assert_eq!(answer["counts"]["warm"], 0, "nothing is shared without a session");
    }
}

async fn finds(user: &User, base: &Value) {
    let found = user
        .search(json!({"session": "walk", "query": "aim the telescope at a galaxy", "limit": 1}))
        .await
        .ok();
    assert_eq!((&found["mode"], &found["degraded"]), (&json!("keyword"), &json!(false)));
    let best = &found["results"][0]["matches"][0];
    assert_eq!((&best["name"], &best["group"]), (&json!("aim_telescope"), &json!("observatory")));
    assert_eq!((&best["state"], &best["confidence"]), (&json!("warm"), &json!("high")));
    assert_eq!((&best["required"], best.get("wire_name")), (&json!(["target"]), None));
    assert_eq!((&found["warmed"], &found["evicted"]), (&json!(["aim_telescope"]), &json!([])));

    let described = user.describe(json!({"session": "walk", "name": "plot.light-curve"})).await;
    assert!(
        described
            .text()
            .contains(r#""parameters":{"type":"object","required":["star"],"properties":{"star":{"#),
        "a schema comes back byte by byte: {}",
        described.text()
    );
    let described = described.ok();
    let wire = described["tools"][0]["name"].as_str().unwrap();
    assert!(model::is_wire_name(wire) && wire.starts_with("plot_light-curve"), "{wire}");
    assert_eq!(described["warmed"], json!(["plot.light-curve"]));

    let next = shown(user, "walk", json!({"if_fingerprint": base["fingerprint"]})).await;
    assert_eq!(names_after_bridge(&next), ["aim_telescope", wire]);
    assert_eq!(next["warm"], json!(["aim_telescope", "plot.light-curve"]));
    assert_eq!(next["name_map"], json!({wire: "plot.light-curve"}));
    assert_eq!(next["cache"], json!({"stable_prefix_len": 5, "break": false, "reason": "warm"}));
    assert_eq!(
        (&next["listing"], &next["tier"]),
        (&base["listing"], &base["tier"]),
        "not a function of the warm set"
    );
    let same = shown(user, "walk", json!({"if_fingerprint": next["fingerprint"]})).await;
    assert_eq!((&same["changed"], &same["fingerprint"]), (&json!(false), &next["fingerprint"]));
    assert!(["tools", "listing", "name_map"].iter().all(|key| same.get(*key).is_none()), "{same}");
    assert_eq!(same["cache"], json!({"stable_prefix_len": 7, "break": false, "reason": "none"}));
}

async fn mends(user: &User) {
    let answer = user
        .call(json!({"session": "walk", "name": "aim_telescope", "arguments": {"exposure_s": 3}}))
        .await
        .ok();
    let result = &answer["results"][0];
    assert_eq!((&result["ok"], result.get("dispatch")), (&json!(false), None));
    let error = &result["error"];
    assert_eq!((&error["code"], &error["missing"]), (&json!("missing_arguments"), &json!(["target"])));
    assert_eq!(error["received_keys"], json!(["exposure_s"]));
    assert_eq!(error["schema"]["properties"]["target"]["type"], "string");

    let answer = user
        .call(json!({"session": "walk", "name": "aim_telescope", "arguments": {"target": "M31", "exposure_s": 0}}))
        .await
        .ok();
    let error = &answer["results"][0]["error"];
    assert_eq!(
        (&error["code"], &error["path"]),
        (&json!("invalid_arguments"), &json!("arguments.exposure_s"))
    );
    assert_eq!(error["constraint"], "minimum");

    let right = json!({"name": "aim_telescope", "arguments": {"target": "M31", "exposure_s": 3}});
    let answer = user.call(json!({"session": "walk", "calls": [right, right], "call_id": "c9"})).await.ok();
    for (at, id) in ["c9:tool:aim_telescope", "c9:tool:aim_telescope#2"].into_iter().enumerate() {
        let dispatch =
            json!({"id": id, "name": "aim_telescope", "arguments": {"target": "M31", "exposure_s": 3}});
        assert_eq!(answer["results"][at], json!({"ok": true, "dispatch": dispatch}));
    }
    let dome = user.call(json!({"name": "open_dome"})).await.ok();
    assert_eq!(dome["results"][0]["dispatch"]["id"], "call:tool:open_dome");
    assert_eq!(dome["warmed"], json!([]), "without a session nothing is kept");
    let core =
        user.call(json!({"session": "walk", "name": "observatory_status", "arguments": ""})).await.ok();
    assert_eq!((&core["results"][0]["ok"], &core["warmed"]), (&json!(true), &json!([])));
}

/// At most three warm tools: the fourth takes the place of the one that was not used for the longest time.
async fn evicts(user: &User) {
    let opened = user.call(json!({"session": "walk", "name": "open_dome"})).await.ok();
    assert_eq!((&opened["warmed"], &opened["evicted"]), (&json!(["open_dome"]), &json!([])));
    // The calls of `mends` are the last use of `aim_telescope`.
    let closed = user.call(json!({"session": "walk", "name": "close_dome"})).await.ok();
    assert_eq!(
        (&closed["warmed"], &closed["evicted"]),
        (&json!(["close_dome"]), &json!(["plot.light-curve"]))
    );
    let answer = shown(user, "walk", json!({})).await;
    assert_eq!(answer["warm"], json!(["aim_telescope", "open_dome", "close_dome"]));
    assert_eq!(answer["cache"], json!({"stable_prefix_len": 6, "break": true, "reason": "evicted"}));
    let back = user.describe(json!({"session": "walk", "name": "plot.light-curve"})).await.ok();
    assert_eq!(back["evicted"], json!(["aim_telescope"]));
    let answer = shown(user, "walk", json!({})).await;
    assert_eq!(
        answer["warm"],
        json!(["open_dome", "close_dome", "plot.light-curve"]),
        "what comes back goes to the end"
    );
}

/// Search, a wrong call, the right one and an own tool, as a model of this format writes them.
async fn talks_through_the_bridge(user: &User, format: &str) {
    let session = format!("bridge-{format}");
    let first = shown(user, &session, json!({"format": format})).await;
    check_array(format, &first);
    let ask = async |id: &str, name: &str, arguments: Value| {
        let call = model_call(format, id, name, &arguments);
        // The session knows its format.
        let answer = user.bridge(json!({"session": session, "call": call})).await.ok();
        assert_eq!(answer["results"][0]["reply_to"], json!({"id": id, "name": name}));
        answer["results"][0].clone()
    };
    let respond = |result: &Value, id: &str, is_error: bool| -> Value {
        assert_eq!(
            (&result["action"], &result["is_error"]),
            (&json!("respond"), &json!(is_error)),
            "{result}"
        );
        let (to, content) = read_message(format, &result["message"]);
        assert_eq!((to, content), (id, result["content"].as_str().unwrap()));
        serde_json::from_str(content).expect("the content is JSON")
    };

    let found = ask("c1", "tool_search", json!({"query": "plot the light curve of a variable star"})).await;
    let found = respond(&found, "c1", false);
    let wire = found["results"][0]["matches"][0]["name"].as_str().unwrap().to_owned();
    assert!(wire.starts_with("plot_light-curve"), "a model reads names that it can use: {wire}");

    let blind = ask("c2", "tool_call", json!({"name": wire, "arguments": {}})).await;
    let blind = respond(&blind, "c2", true);
    assert_eq!(blind["error"]["missing"], json!(["star"]));
    assert_eq!(blind["error"]["schema"]["required"], json!(["star"]));

    let right = ask("c3", "tool_call", json!({"name": wire, "arguments": {"star": "Mira"}})).await;
    let dispatch =
        json!({"id": "c3:tool:plot.light-curve", "name": "plot.light-curve", "arguments": {"star": "Mira"}});
    assert_eq!((&right["action"], &right["calls"]), (&json!("dispatch"), &json!([dispatch])));
    assert!(right.get("message").is_none());

    let direct = ask("c4", &wire, json!({"star": "Algol"})).await;
    let direct = (&direct["action"], &direct["calls"][0]["name"], &direct["calls"][0]["arguments"]);
    assert_eq!(direct, (&json!("dispatch"), &json!("plot.light-curve"), &json!({"star": "Algol"})));
    let own = ask("c5", "bash", json!({"command": "ls"})).await;
    assert_eq!(own["action"], "dispatch");
    assert_eq!(own["calls"], json!([{"id": "c5", "name": "bash", "arguments": {"command": "ls"}}]));

    let next = shown(user, &session, json!({"format": format})).await;
    check_array(format, &next);
    assert!(names_after_bridge(&next).contains(&&*wire));
    assert_eq!(next["name_map"][&wire], "plot.light-curve");
}

#[tokio::test]
async fn tools_that_the_agent_used_are_not_the_ones_that_leave() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let openai = json!([
        {"role": "user", "content": "paint"},
        {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "amber", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"}
    ]);
    let anthropic = json!([
        {"role": "user", "content": [{"type": "text", "text": "paint"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "amber", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"}]}
    ]);
    let ways = [json!({"used": ["amber"]}), json!({"messages": openai}), json!({"messages": anthropic})];
    for (at, way) in ways.into_iter().enumerate() {
        let session = format!("used-{at}");
        warm_each(&user, &session, &["amber", "blue", "crimson"]).await;
        let answer = shown(&user, &session, way.clone()).await;
        assert_eq!(answer["warm"], json!(["amber", "blue", "crimson"]), "its age is renewed, not its place");
        warm_each(&user, &session, &["denim"]).await;
        let answer = shown(&user, &session, json!({})).await;
        assert_eq!(answer["warm"], json!(["amber", "crimson", "denim"]), "{way}");
    }
    let answer = shown(&user, "used-0", json!({"used": ["nothing_like_it"]})).await;
    assert_eq!(warning_codes(&answer), ["unknown_tool"]);
    let answer = shown(&user, "used-0", json!({"messages": ["plain", "strings"]})).await;
    assert_eq!(warning_codes(&answer), [""; 0]);
}

#[tokio::test]
async fn a_search_warms_within_the_bound_and_never_evicts_what_it_found() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 2, "core": ["teal"]})).await;
    warm_each(&user, "s", &["red", "navy"]).await;
    let body = json!({"session": "s", "queries": ["amber blue", "teal", "crimson"], "limit": 2});
    let found = user.search(body).await.ok();
    let queries: Vec<&Value> =
        found["results"].as_array().unwrap().iter().map(|result| &result["query"]).collect();
    assert_eq!(queries, ["amber blue", "teal", "crimson"]);
    assert_eq!(found["results"][1]["matches"][0]["state"], "core");
    let first = found["results"][0]["matches"][0]["name"].as_str().unwrap();
    assert_eq!(found["warmed"], json!([first, "crimson"]), "round robin over the queries, core left out");
    assert_eq!(found["evicted"], json!(["red", "navy"]));
    assert_eq!(found["results"][2]["matches"][0]["state"], "warm");
    assert_eq!(found["results"][0]["matches"][1]["state"], "deferred", "the rest is returned unwarmed");
    let kept = user.search(json!({"session": "s", "query": "indigo", "warm": false})).await.ok();
    assert_eq!(
        (&kept["warmed"], &kept["results"][0]["matches"][0]["state"]),
        (&json!([]), &json!("deferred"))
    );
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!([first, "crimson"]));
}

#[tokio::test]
async fn pins_stay_and_count_within_the_bound() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let change = async |what: &str, names: &[&str]| {
        user.client().post(&user.path(&["sessions", "s", what]), &json!({"names": names})).await
    };
    warm_each(&user, "s", &["amber", "blue", "crimson"]).await;
    let pinned = change("pin", &["amber", "jade"]).await.ok();
    let flags = |document: &Value| -> Vec<(String, bool)> {
        let warm = document["warm"].as_array().unwrap().iter();
        warm.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["pinned"] == true)).collect()
    };
    let named =
        |list: &[(&str, bool)]| list.iter().map(|(name, pin)| ((*name).to_owned(), *pin)).collect::<Vec<_>>();
    assert_eq!(flags(&pinned), named(&[("amber", true), ("crimson", false), ("jade", true)]));
    warm_each(&user, "s", &["denim", "emerald"]).await;
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["amber", "jade", "emerald"]));

    let refused = change("pin", &["blue", "gold"]).await.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["pointer"], "/names");
    change("pin", &["no_such_tool"]).await.problem(422, "invalid_request");
    assert_eq!(
        shown(&user, "s", json!({})).await["warm"],
        json!(["amber", "jade", "emerald"]),
        "nothing by halves"
    );

    let unpinned = change("unpin", &["amber"]).await.ok();
    assert_eq!(flags(&unpinned), named(&[("amber", false), ("jade", true), ("emerald", false)]));
    let released = change("release", &["jade", "emerald"]).await.ok();
    assert_eq!(flags(&released), named(&[("amber", false)]));
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["amber"]));
}

#[tokio::test]
async fn under_the_epoch_policy_found_tools_wait() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 3, "warm_policy": "epoch"})).await;
    let first = shown(&user, "s", json!({})).await;
    let found = user.search(json!({"session": "s", "query": "indigo", "limit": 1})).await.ok();
    assert_eq!(found["results"][0]["matches"][0]["state"], "pending");
    assert_eq!(found["warmed"], json!([]), "what waits is not in the next array");
    warm_each(&user, "s", &["jade"]).await;
    let waiting = shown(&user, "s", json!({"if_fingerprint": first["fingerprint"]})).await;
    assert_eq!((&waiting["changed"], &waiting["warm"]), (&json!(false), &json!([])));
    let document = user.client().get(&user.path(&["sessions", "s"])).await.ok();
    assert!(document["warm"].as_array().unwrap().iter().all(|tool| tool["pending"] == true), "{document}");

    let epoch = shown(&user, "s", json!({"epoch": true})).await;
    assert_eq!(names_after_bridge(&epoch), ["indigo", "jade"]);
    assert_eq!(epoch["cache"]["reason"], "epoch");
    let state = user.search(json!({"session": "s", "query": "indigo", "limit": 1})).await.ok();
    assert_eq!(state["results"][0]["matches"][0]["state"], "warm");

    user.put_config(&json!({"warm_policy": "off"})).await.ok();
    let off = user.describe(json!({"session": "s", "name": "gold"})).await.ok();
    assert_eq!((off["tools"].as_array().unwrap().len(), &off["warmed"]), (1, &json!([])));
}

#[tokio::test]
async fn live_tools_replace_the_stored_ones_until_the_next_assembly() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"enabled": "on"})).await;
    let answer = shown(&user, "s", json!({"tools": observatory()})).await;
    let reference = answer["tools_ref"].as_str().expect("a reference").to_owned();
    assert_eq!(answer["counts"], json!({"core": 1, "warm": 0, "deferred": 7, "bridge": 3}));

    let search = |body: Value| user.search(body);
    let live = search(json!({"session": "s", "query": "park the telescope"})).await.ok();
    assert_eq!(live["results"][0]["matches"][0]["name"], "park_telescope");
    let stored = user.describe(json!({"session": "s", "name": "indigo"})).await.ok();
    assert_eq!(stored["not_found"][0]["name"], "indigo");
    let alone = search(json!({"query": "park the telescope", "tools_ref": reference})).await.ok();
    assert_eq!(alone["results"][0]["matches"][0]["name"], "park_telescope");
    let again = shown(&user, "s", json!({"tools_ref": reference})).await;
    assert_eq!(again["warm"][0], "park_telescope");
    assert_eq!(again["tools_ref"], json!(reference));
    let other = shown(&user, "s2", json!({"tools": observatory()})).await;
    assert_eq!(other["tools_ref"], json!(reference), "the reference is that of the content");

    let mismatch = search(json!({"session": "s", "query": "x", "tools_ref": "other"})).await;
    assert_eq!(mismatch.status, 422, "{}", mismatch.text());
    assert_eq!(mismatch.json()["errors"][0]["pointer"], "/tools_ref");
    search(json!({"query": "x", "tools_ref": "unknown"})).await.problem(412, "unknown_tools_ref");
    user.assemble(json!({"tools_ref": "unknown"})).await.problem(412, "unknown_tools_ref");
    let stranger = app.user();
    stranger.assemble(json!({"tools_ref": reference})).await.problem(412, "unknown_tools_ref");
    let both = user.assemble(json!({"tools": observatory(), "tools_ref": reference})).await;
    assert_eq!(both.status, 422);

    let back = shown(&user, "s", json!({})).await;
    assert!(back.get("tools_ref").is_none());
    assert_eq!(
        (&back["counts"]["deferred"], &back["warm"]),
        (&json!(20), &json!([])),
        "tools of the live set are gone"
    );
}

#[tokio::test]
async fn tools_that_cannot_run_now_keep_their_place() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"core": ["teal"]})).await;
    warm_each(&user, "s", &["amber", "blue"]).await;
    let before = shown(&user, "s", json!({})).await;
    let answer = shown(&user, "s", json!({"unavailable": ["amber", "tea*", "lilac"]})).await;
    assert_eq!(answer["unavailable"], json!(["amber", "lilac", "teal"]));
    assert_eq!((array_names(&answer)[0], names_after_bridge(&answer)), (BRIDGE[0], vec!["blue"]));
    let listed = model::Listing::read(answer["listing"]["text"].as_str().unwrap());
    assert!(!listed.names.contains(&"lilac") && listed.names.contains(&"jade"), "{listed:?}");

    let found = user.search(json!({"session": "s", "query": "paints lilac", "limit": 20})).await;
    let matches = found.ok()["results"][0]["matches"].clone();
    assert!(matches.as_array().unwrap().iter().all(|found| found["name"] != "lilac"), "{matches}");
    let called = user.call(json!({"session": "s", "name": "lilac"})).await.ok();
    assert_eq!(called["results"][0]["error"]["code"], "tool_unavailable");
    let described = user.describe(json!({"session": "s", "names": ["lilac", "jade"]})).await.ok();
    assert_eq!(described["tools"].as_array().unwrap().len(), 1);
    assert_eq!(described["not_found"][0]["code"], "tool_unavailable");

    user.client().post(&user.path(&["sessions", "s", "release"]), &json!({"names": ["jade"]})).await.ok();
    let after = shown(&user, "s", json!({})).await;
    assert_eq!(after["tools"], before["tools"], "back in their old places");
}

/// The names that a grant holds, read from an assembly that sends everything.
async fn granted(user: &User, mut body: Value) -> (Vec<String>, Vec<String>) {
    body["context_window"] = json!(1_000_000);
    let answer = user.assemble(body).await.ok();
    let codes = warning_codes(&answer).into_iter().map(str::to_owned).collect();
    (array_names(&answer).into_iter().map(str::to_owned).collect(), codes)
}

#[tokio::test]
async fn selections_of_config_and_request_only_ever_narrow() {
    let app = TestApp::start().await;
    let user = painter(
        &app,
        json!({
            "enabled": "off",
            "groups": [{"name": "warm colours", "tools": ["amber", "red"], "prefixes": ["cri"]}],
            "toolsets": [
                {"name": "sea", "tools": ["navy", "teal"], "includes": ["sky"]},
                {"name": "sky", "tools": ["blue"], "includes": ["sea"]},
                {"name": "fire", "groups": ["warm colours"]},
                {"name": "all", "includes": ["*"]}
            ],
            "deny": ["gold", "@nothing"]
        }),
    )
    .await;
    let none: [&str; 0] = [];
    for (body, names, codes) in [
        (json!({"toolsets": ["sea"]}), &["blue", "navy", "teal"][..], &none[..]),
        (json!({"toolsets": ["fire", "sky"]}), &["amber", "blue", "crimson", "navy", "red", "teal"], &none),
        (json!({"toolsets": ["fire", "nowhere"]}), &["amber", "crimson", "red"], &["unknown_toolset"]),
        (json!({"allow": ["gol*", "jade"]}), &["jade"], &none),
        (json!({"allow": ["@warm colours"], "deny": ["re*"]}), &["amber", "crimson"], &none),
        (json!({"toolsets": ["sea"], "allow": ["blue", "amber"]}), &["blue"], &none),
        (json!({"toolsets": ["sea"], "allow": ["amber"]}), &none, &["empty_grant"]),
    ] {
        assert_eq!(granted(&user, body.clone()).await, (to_owned(names), to_owned(codes)), "{body}");
    }
    let everything = granted(&user, json!({"toolsets": ["all"]})).await.0;
    assert_eq!((everything.len(), everything.contains(&"gold".to_owned())), (19, false));
    assert_eq!(granted(&user, json!({"toolsets": []})).await.0, everything);

    user.put_config(&json!({
        "enabled": "off", "allow": ["amber", "blue", "red"], "toolsets": [{"name": "two", "tools": ["blue", "red"]}],
        "default_toolsets": ["two"]
    }))
    .await
    .ok();
    assert_eq!(granted(&user, json!({})).await.0, ["blue", "red"]);
    assert_eq!(granted(&user, json!({"toolsets": ["*"]})).await.0, ["amber", "blue", "red"]);
    assert_eq!(granted(&user, json!({"allow": ["blue", "jade"]})).await.0, ["blue"]);
}

fn to_owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_session_keeps_the_limits_of_its_assembly() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"enabled": "on"})).await;
    shown(&user, "s", json!({"allow": ["amber", "blue"], "deny": ["blue"]})).await;
    let names = async |body: Value| -> Vec<String> {
        let answer = user.search(body).await.ok();
        strings_of(&answer["results"][0]["matches"])
    };
    assert_eq!(names(json!({"session": "s", "query": "amber blue jade"})).await, ["amber"]);
    let wider = json!({"session": "s", "query": "amber blue jade", "allow": ["jade", "blue", "amber"], "toolsets": ["*"]});
    assert_eq!(names(wider).await, ["amber"], "a request of the session may only narrow");
    let narrower = user.describe(json!({"session": "s", "name": "amber", "deny": ["amb*"]})).await.ok();
    assert_eq!(narrower["not_found"][0]["code"], "unknown_tool");
    let stranger = names(json!({"session": "never assembled", "query": "blue"}));
    assert!(user.search(json!({"session": "never assembled", "query": "blue"})).await.status == 422);
    drop(stranger);
    assert_eq!(names(json!({"session": "never-assembled", "query": "blue", "limit": 1})).await, ["blue"]);
    shown(&user, "s", json!({})).await;
    assert_eq!(
        names(json!({"session": "s", "query": "jade", "limit": 1})).await,
        ["jade"],
        "each assembly states them anew"
    );
}

fn strings_of(matches: &Value) -> Vec<String> {
    let matches = matches.as_array().unwrap().iter();
    matches.map(|found| found["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn sessions_are_read_listed_reset_and_deleted() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    let client = user.client();
    for session in ["a", "b", "c"] {
        warm_each(&user, session, &["amber"]).await;
    }
    let in_project = json!({"session": "a", "project": "p", "name": "blue"});
    user.describe(in_project).await.ok();

    let read = async |suffix: &str| {
        let document = client.get(&format!("{}{suffix}", user.path(&["sessions", "a"]))).await.ok();
        strings_of(&document["warm"])
    };
    assert_eq!((read("").await, read("?project=p").await), (vec!["amber".into()], vec!["blue".into()]));

    let mut listed = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("{}?limit=3{cursor}", user.path(&["sessions"]))).await.ok();
        for session in page["sessions"].as_array().unwrap() {
            listed.push((session["project"].clone(), session["session"].clone(), session["warm"].clone()));
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    listed.sort_by_key(|entry| format!("{entry:?}"));
    let mut expected = vec![(json!("p"), json!("a"), json!(1)), (Value::Null, json!("a"), json!(1))];
    expected.extend(["b", "c"].map(|session| (Value::Null, json!(session), json!(1))));
    expected.sort_by_key(|entry| format!("{entry:?}"));
    assert_eq!(listed, expected);
    let page = client.get(&format!("{}?project=p", user.path(&["sessions"]))).await.ok();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 1);
    let nobody = app.user();
    let page = client.get(&nobody.path(&["sessions"])).await.ok();
    assert_eq!(page["sessions"], json!([]));

    let reset = client.post(&user.path(&["sessions", "b", "reset"]), &json!({})).await.ok();
    assert_eq!(reset["warm"], json!([]));
    assert_eq!(shown(&user, "b", json!({})).await["cache"]["reason"], "first");
    for _ in 0..2 {
        client.delete(&user.path(&["sessions", "a"])).await.expect_status(204);
    }
    assert_eq!((read("").await, read("?project=p").await), (vec![], vec!["blue".into()]));
    assert_eq!(shown(&user, "a", json!({})).await["warm"], json!([]));
    assert_eq!(shown(&user, "c", json!({})).await["warm"], json!(["amber"]));
}

#[tokio::test]
async fn a_change_of_catalog_or_config_is_in_the_next_answer() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    warm_each(&user, "s", &["amber", "blue"]).await;
    let before = shown(&user, "s", json!({})).await;
    let patch = json!({"remove": ["amber"], "upsert": [{"group": "paints", "name": "umber", "description": "Paints umber."}]});
    user.client().patch(&user.path(&["catalog"]), &patch).await.ok();
    let after = shown(&user, "s", json!({})).await;
    assert_eq!((&after["warm"], &after["cache"]["reason"]), (&json!(["blue"]), &json!("catalog")));
    assert_ne!(after["fingerprint"], before["fingerprint"]);
    let found = user.search(json!({"session": "s", "query": "umber"})).await.ok();
    assert_eq!(found["results"][0]["matches"][0]["name"], "umber");
    // The tool comes back, but nobody found it since.
    user.put_catalog(&paints()).await.ok();
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["blue"]));

    user.put_config(&json!({"deny": ["blue"]})).await.ok();
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!([]), "denied: hidden");
    user.put_config(&json!({})).await.ok();
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["blue"]), "but kept");
    user.put_config(&json!({"core": ["blue"]})).await.ok();
    let core = shown(&user, "s", json!({})).await;
    assert_eq!((array_names(&core)[0], &core["warm"]), ("blue", &json!([])));
    assert_eq!(core["cache"]["reason"], "config");
}

#[tokio::test]
async fn small_grants_and_switches_decide_the_tier() {
    let app = TestApp::start().await;
    let user = app.user();
    let nothing = user.assemble(json!({})).await.ok();
    assert_eq!(
        (&nothing["tools"], &nothing["tier"], &nothing["listing"]),
        (&Value::Null, &json!(0), &Value::Null)
    );
    assert_eq!(warning_codes(&nothing), ["empty_catalog"]);
    let search = user.search(json!({"query": "anything"})).await.ok();
    assert_eq!(search["results"][0]["matches"], json!([]));
    assert!(search["results"][0]["hint"].is_string());

    user.put_catalog(&paints()[..12]).await.ok();
    let small = shown(&user, "s", json!({})).await;
    assert_eq!((&small["tier"], array_names(&small).len()), (&json!(0), 12), "at most min_catalog_size");
    let found = user.search(json!({"session": "s", "query": "amber"})).await.ok();
    assert_eq!((&found["warmed"], &found["results"][0]["matches"][0]["state"]), (&json!([]), &json!("core")));

    user.put_catalog(&paints()).await.ok();
    let tier = async |config: Value| {
        user.put_config(&config).await.ok();
        let answer = user.assemble(json!({})).await.ok();
        (answer["tier"].as_u64().unwrap(), array_names(&answer).len(), answer["listing"]["form"].clone())
    };
    assert_eq!(tier(json!({})).await, (1, 3, json!("full")));
    assert_eq!(tier(json!({"enabled": false})).await, (0, 20, Value::Null));
    assert_eq!(tier(json!({"activation_pct": 10})).await, (0, 20, Value::Null));
    assert_eq!(tier(json!({"activation_pct": 10, "enabled": "on"})).await, (1, 3, json!("full")));
    assert_eq!(
        tier(json!({"core": ["*"], "enabled": "on"})).await,
        (0, 20, Value::Null),
        "every tool is core"
    );
    assert_eq!(tier(json!({"listing_max_tokens": 200})).await, (2, 3, json!("names")));
    assert_eq!(tier(json!({"threshold_pct": 0})).await.0, 3);
    assert_eq!(tier(json!({"threshold_pct": 0, "listing": "on"})).await, (1, 3, json!("full")));
    user.put_config(&json!({"listing": "off"})).await.ok();
    let off = user.assemble(json!({})).await.ok();
    assert_eq!(
        (&off["tier"], &off["listing"], warning_codes(&off)),
        (&json!(3), &Value::Null, vec!["listing_off"])
    );

    user.put_config(&json!({"listing_placement": "bridge", "bridge_prefix": "my_"})).await.ok();
    let inside = user.assemble(json!({"format": "anthropic"})).await.ok();
    assert_eq!(inside["listing"]["placement"], "bridge");
    assert_eq!(array_names(&inside), BRIDGE.map(|name| format!("my_{name}")));
    let text = inside["listing"]["text"].as_str().unwrap();
    assert!(inside["tools"][0]["description"].as_str().unwrap().contains(text.trim_end()));
    let outside = user.assemble(json!({"format": "openai_chat"})).await.ok();
    assert_eq!(
        (&outside["listing"]["placement"], outside["warnings"].as_array().unwrap().len()),
        (&json!("separate"), 1)
    );
    assert_eq!(strings(&outside["warm"]), [""; 0]);
}
