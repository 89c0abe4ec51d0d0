//! Keys of arguments that a provider refuses: they have others on the wire, and calls come back with the tool's own.

use super::*;

/// The report, who refused the key, the key, and how the one on the wire begins: the rest is a hash.
fn refused_keys() -> Vec<(u8, Asked<'static>, String, &'static str)> {
    let plain = [
        (33, ANTHROPIC, "due date", "due_date_"),
        (33, GENERIC, "ключ", "arg_"),
        (33, BEDROCK, "", "arg_"),
        (34, ANTHROPIC, "filter[id]", "filter_id_"),
        (34, OPENAPI, "filter[id]", "filter_id_"),
        (35, ANTHROPIC, "$top", "_top_"),
        (35, ANTHROPIC, "@microsoft.graph.x", "_microsoft.graph.x_"),
        (35, OPENAPI, "@microsoft.graph.x", "_microsoft_graph_x_"),
        (35, BEDROCK, "@odata.type", "_odata.type_"),
        (71, NOVA, "page/size~1", "page_size_1_"),
        (71, OPENAPI, "2nd", "_2nd_"),
    ];
    let mut keys: Vec<_> =
        plain.into_iter().map(|(report, asked, key, head)| (report, asked, key.to_owned(), head)).collect();
    keys.push((33, ANTHROPIC, "x".repeat(65), "xxxxxxxx"));
    keys
}

pub(super) fn reports() -> Vec<u8> {
    refused_keys().into_iter().map(|(report, ..)| report).chain([37, 68]).collect()
}

#[tokio::test]
async fn refused_keys_are_changed_and_lead_back() {
    let app = TestApp::start().await;
    for (report, asked, key, head) in refused_keys() {
        let parameters = with(
            object(json!({&key: {"type": "string"}, "ok": {"type": "integer"}})),
            json!({"required": [key]}),
        );
        let user = holder(&app, &[json!({"name": "t", "description": "T.", "parameters": parameters})]).await;
        let answer = assembled(&user, asked, &key).await;
        let sent = schema(asked, &answer).unwrap();
        let keys: Vec<&String> = sent["properties"].as_object().unwrap().keys().collect();
        assert!(keys[0].starts_with(head) && keys[0].len() > head.len(), "{report} {key:?}: {keys:?}");
        assert_eq!(keys[1], "ok");
        assert_eq!(sent["required"], json!([keys[0]]), "{report}: 37: `required` goes with it");
        assert_eq!(answer["arg_map"], json!({"t": {format!("/{}", keys[0]): key}}), "{report}");
        assert_eq!(answer["warnings"], json!([]), "{report}: nothing is lost");
        let (model, agent) = (json!({keys[0]: "x", "ok": 1}), json!({&key: "x", "ok": 1}));
        assert_eq!(
            bridged(&user, asked, "t", &model).await["calls"][0]["arguments"],
            agent,
            "{report} {key:?}"
        );
        assert_eq!(
            called(&user, asked, "t", &model).await["dispatch"]["arguments"],
            agent,
            "{report} {key:?}"
        );
        // Models remember the tool's documentation: its own key is taken too.
        assert_eq!(
            called(&user, asked, "t", &agent).await["dispatch"]["arguments"],
            agent,
            "{report} {key:?}"
        );
    }
}

/// 37: one tool in hundreds with a bad key; 68: the same in a tool that is found later.
#[tokio::test]
async fn one_bad_key_costs_no_run_and_no_session() {
    let app = TestApp::start().await;
    let mut tools: Vec<Value> = (0..674)
        .map(|at| json!({"name": format!("tool_{at:03}"), "group": format!("g{}", at % 30), "description": "Does a thing."}))
        .collect();
    tools.push(json!({"name": "list_events", "group": "calendar", "description": "List calendar events.",
        "parameters": with(object(json!({"odata.$filter": {"type": "string"}})), json!({"required": ["odata.$filter"]}))}));
    let user = holder(&app, &tools).await;
    let answer = assembled(&user, ANTHROPIC, "all").await;
    assert_eq!(array_names(&answer).len(), 675);
    assert_eq!(answer["arg_map"].as_object().unwrap().len(), 1);

    user.put_config(&json!({})).await.ok();
    let session = |mut body: Value| {
        body["session"] = json!("s");
        body
    };
    user.assemble(session(body(ANTHROPIC))).await.ok();
    let mut query = session(body(ANTHROPIC));
    query["query"] = json!("list calendar events");
    let found = user.search(query).await.ok();
    assert_eq!(found["warmed"][0], "list_events", "{found}");
    let answer = user.assemble(session(body(ANTHROPIC))).await.ok();
    assert_eq!(faults(ANTHROPIC, &answer["tools"]), Vec::<String>::new());
    let map = answer["arg_map"]["list_events"].as_object().unwrap();
    let (place, key) = map.iter().next().unwrap();
    assert_eq!(key, "odata.$filter");
    let mut call = session(body(ANTHROPIC));
    let arguments = json!({place.trim_start_matches('/'): "x"});
    // In the array by now, and still through the bridge: both come back with the tool's own key.
    for (name, arguments) in [
        ("list_events", arguments.clone()),
        ("tool_call", json!({"name": "list_events", "arguments": arguments})),
    ] {
        call["call"] = model_call("anthropic", "c1", name, &arguments);
        let result = user.bridge(call.clone()).await.ok()["results"][0].clone();
        assert_eq!(result["calls"][0]["arguments"], json!({"odata.$filter": "x"}), "{result}");
    }
    // It is told before anything runs.
    let lint = user.client().post(&user.path(&["catalog", "lint"]), &body(ANTHROPIC)).await.ok();
    assert_eq!(lint["tools"][0]["name"], "list_events", "{lint}");
    assert_eq!(lint["tools"][0]["findings"][0]["code"], "key_renamed", "{lint}");
}
