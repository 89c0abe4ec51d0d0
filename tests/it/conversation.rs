//! The whole conversation of an agent with the service, turn by turn, beside a messy catalog of 7,000 tools.

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::messy;
use crate::model::{
    self, BRIDGE, FORMATS, array_names, check_array, model_call, names_after_bridge, read_message,
};
use crate::samples::{observatory, painter, shown};

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
    assert_eq!(
        answer["cache"],
        json!({"stable_prefix_len": 5, "break": false, "reason": "first", "breakpoint": 4})
    );
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
    assert_eq!(
        next["cache"],
        json!({"stable_prefix_len": 5, "break": false, "reason": "warm", "breakpoint": 4})
    );
    assert_eq!(
        (&next["listing"], &next["tier"]),
        (&base["listing"], &base["tier"]),
        "not a function of the warm set"
    );
    let same = shown(user, "walk", json!({"if_fingerprint": next["fingerprint"]})).await;
    assert_eq!((&same["changed"], &same["fingerprint"]), (&json!(false), &next["fingerprint"]));
    assert!(["tools", "listing", "name_map"].iter().all(|key| same.get(*key).is_none()), "{same}");
    assert_eq!(
        same["cache"],
        json!({"stable_prefix_len": 7, "break": false, "reason": "none", "breakpoint": 4})
    );
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
    assert_eq!(
        answer["cache"],
        json!({"stable_prefix_len": 6, "break": true, "reason": "evicted", "breakpoint": 4})
    );
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
        let (to, content, marked) = read_message(format, &result["message"]);
        assert_eq!((&*to, marked.unwrap_or(is_error)), (id, is_error), "{format}");
        let content: Value = serde_json::from_str(&content).expect("the content is JSON");
        assert_eq!(json!(content.to_string()), result["content"], "{format}");
        content
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
