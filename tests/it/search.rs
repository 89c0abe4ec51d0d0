//! Searching and describing: what an answer holds, what it never holds, and what a session keeps of it.

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::model;

mod warming;

fn tool(name: &str, group: &str, description: &str) -> Value {
    json!({"name": name, "group": group, "description": description, "parameters": {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "Which one."}},
        "required": ["id"],
    }})
}

/// A small office whose tools are all deferred but one.
fn office() -> Vec<Value> {
    vec![
        tool("send_email", "mail", "Send an email to one or several people."),
        tool("list_emails", "mail", "List the emails of a folder."),
        tool("delete_email", "mail", "Delete an email for ever."),
        tool("create_event", "calendar", "Create a calendar event. Invites the guests by mail."),
        tool("list_events", "calendar", "List calendar events of a day."),
        tool("cancel_event", "calendar", "Cancel a calendar event."),
        tool("get_weather", "weather", "Get the weather forecast of a city."),
        tool("createInvoice", "billing", "Create an invoice for a customer."),
        tool("refund.payment", "billing", "Refund a payment of a customer."),
        tool("list-customers", "billing", "List the customers with open invoices."),
        tool("translate_text", "language", "Translate a text into another language."),
        tool("resize_image", "images", "Resize an image to a width and a height."),
        tool("read_file", "files", "Read a file of the workspace."),
        tool("write_file", "files", "Write a file of the workspace."),
    ]
}

async fn office_of(app: &TestApp, config: Value) -> User {
    let user = app.user();
    user.put_catalog(&office()).await.ok();
    user.put_config(&config).await.ok();
    user
}

fn found(answer: &Value, query: usize) -> Vec<String> {
    let matches = answer["results"][query]["matches"].as_array().unwrap();
    matches.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

async fn warm(user: &User, session: &str) -> Vec<String> {
    let document = user.client().get(&user.path(&["sessions", session])).await.ok();
    document["warm"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_explanation_adds_up_to_the_score() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({})).await;
    let answer = user.search(json!({"query": "send an email", "explain": true})).await.ok();
    let first = &answer["results"][0]["matches"][0];
    let explain = &first["explain"];
    assert_eq!(explain["ranker"], "lexical+vectors");
    let terms = explain["terms"].as_array().unwrap();
    let sum: f64 = terms.iter().map(|term| term["contribution"].as_f64().unwrap()).sum();
    let similarity = explain["similarity_contribution"].as_f64().unwrap();
    let score = sum * explain["bonus"].as_f64().unwrap() + similarity;
    assert!((score - first["score"].as_f64().unwrap()).abs() < 0.01, "{first}");
    assert!(
        terms.iter().any(|term| term["typed"] == "email" && term["fields"][0]["field"] == "name"),
        "{explain}"
    );
    let plain = user.search(json!({"query": "send an email"})).await.ok();
    assert!(plain["results"][0]["matches"][0].get("explain").is_none());
    user.put_config(&json!({"semantic": false})).await.ok();
    let words = user.search(json!({"query": "send an email", "explain": true})).await.ok();
    let explain = &words["results"][0]["matches"][0]["explain"];
    assert_eq!((&explain["ranker"], explain.get("similarity")), (&json!("lexical"), None));
}

#[tokio::test]
async fn repeated_misses_of_a_session_are_told_to_stop() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"min_catalog_size": 0})).await;
    let hint = async |query: &str| {
        let answer = user.search(json!({"session": "s", "query": query})).await.ok();
        answer["results"][0]["hint"].as_str().unwrap_or_default().to_owned()
    };
    for query in ["quantum flux", "chronosynclastic infundibulum"] {
        assert!(!hint(query).await.contains("in a row"));
    }
    assert!(hint("zarquon drive").await.contains("search 3 in a row"));
    assert_eq!(hint("send an email").await, "");
    assert!(!hint("quantum flux").await.contains("in a row"), "a find starts the count anew");
}

#[tokio::test]
async fn an_answer_has_one_entry_per_query_and_says_all_about_a_match() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({})).await;
    let one = user.search(json!({"query": "send an email"})).await.ok();
    assert_eq!(one["results"].as_array().unwrap().len(), 1);
    let best = &one["results"][0]["matches"][0];
    assert_eq!(
        (&best["name"], &best["group"], &best["state"], &best["required"], &best["confidence"]),
        (&json!("send_email"), &json!("mail"), &json!("deferred"), &json!(["id"]), &json!("high"))
    );
    assert!(best["score"].is_number() && best["description"].is_string() && best.get("wire_name").is_none());
    assert_eq!((&one["mode"], &one["degraded"]), (&json!("keyword"), &json!(false)));
    for absent in ["reason", "truncated"] {
        assert_eq!(one.get(absent), None, "{absent}");
    }
    assert!(one["took_ms"].is_number());
    let catalog = user.client().get(&user.path(&["catalog"])).await.ok();
    assert_eq!(one["catalog_version"], catalog["catalog_version"]);

    for body in [
        json!({"queries": ["resize an image", "weather", "resize an image"]}),
        json!({"query": ["resize an image", "weather", "resize an image"]}),
    ] {
        let three = user.search(body).await.ok();
        let asked: Vec<&str> = three["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["query"].as_str().unwrap())
            .collect();
        assert_eq!(asked, ["resize an image", "weather", "resize an image"]);
        assert_eq!(
            (found(&three, 0)[0].as_str(), found(&three, 1)[0].as_str()),
            ("resize_image", "get_weather")
        );
        assert_eq!(found(&three, 0), found(&three, 2));
    }
    // The same state gives the same bytes, but for the time it took.
    let again = user.search(json!({"query": "send an email"})).await.ok();
    assert_eq!(again["results"], one["results"]);
}

#[tokio::test]
async fn wire_names_stand_beside_stored_names() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({})).await;
    let answer = user.search(json!({"query": "refund a payment"})).await.ok();
    let best = &answer["results"][0]["matches"][0];
    let wire = best["wire_name"].as_str().unwrap();
    assert_eq!(best["name"], "refund.payment");
    assert!(wire.starts_with("refund_payment_"), "{wire}");
    let described = user.describe(json!({"names": ["refund.payment", wire]})).await.ok();
    assert_eq!(described["tools"].as_array().unwrap().len(), 1, "one tool by two of its names: {described}");
    assert_eq!(described["tools"][0]["name"], wire);
}

#[tokio::test]
async fn details_tell_more_or_less() {
    let app = TestApp::start().await;
    let user = app.user();
    let long = format!("Paint a wall. {}", "It takes a while. ".repeat(60));
    user.put_catalog(&[tool("paint_wall", "house", &long)]).await.ok();
    let of = async |detail: &str| {
        user.search(json!({"query": "paint a wall", "detail": detail})).await.ok()["results"][0]["matches"][0]
            .clone()
    };
    let (names, brief, full) = (of("names").await, of("brief").await, of("full").await);
    assert_eq!((names.get("description"), names.get("parameters")), (None, None));
    let shown = brief["description"].as_str().unwrap();
    assert!(shown.starts_with("Paint a wall.") && shown.chars().count() <= 200, "{shown}");
    assert_eq!(brief.get("parameters"), None);
    assert_eq!(
        (full["description"].as_str(), &full["parameters"]["required"]),
        (Some(&*long), &json!(["id"]))
    );
    let default = user.search(json!({"query": "paint a wall"})).await.ok();
    assert_eq!(default["results"][0]["matches"][0]["description"], brief["description"]);
}

#[tokio::test]
async fn limits_are_the_configs_and_clamped_with_a_warning() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"search_default_limit": 2, "max_search_limit": 3})).await;
    let counts = async |limit: Value| {
        let mut body = json!({"query": "list create email event customer file invoice"});
        if !limit.is_null() {
            body["limit"] = limit;
        }
        let answer = user.search(body).await.ok();
        let warned = answer["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning["code"] == "clamped" && warning["pointer"] == "/limit");
        (found(&answer, 0).len(), warned)
    };
    assert_eq!(counts(Value::Null).await, (2, false));
    assert_eq!(counts(json!(1)).await, (1, false));
    assert_eq!(counts(json!(3)).await, (3, false));
    for (asked, given) in [(json!(4), 3), (json!(1e9), 3), (json!(0), 1), (json!(-5), 1)] {
        assert_eq!(counts(asked.clone()).await, (given, true), "{asked}");
    }
}

#[tokio::test]
async fn an_exact_name_always_gets_a_place_and_the_first_when_it_is_the_query() {
    let app = TestApp::start().await;
    let user = app.user();
    // Rivals whose texts repeat the words more often than the named tools do.
    let mut tools = vec![
        tool("search_graph", "code", "Look at it."),
        tool("tracePath", "code", "Follow it."),
        tool("find-symbol", "code", "Where it is."),
    ];
    for at in 0..30 {
        let text = "Search graph trace path find symbol search graph trace path find symbol.";
        tools.push(tool(&format!("search_graph_trace_path_find_symbol_{at}"), "noise", text));
    }
    user.put_catalog(&tools).await.ok();
    for (query, name) in [
        ("search_graph", "search_graph"),
        ("search graph", "search_graph"),
        ("SEARCH-GRAPH", "search_graph"),
        ("tracePath", "tracePath"),
        ("trace_path", "tracePath"),
        ("find symbol", "find-symbol"),
        ("find_symbol", "find-symbol"),
    ] {
        let answer = user.search(json!({"query": query, "limit": 3})).await.ok();
        assert_eq!(found(&answer, 0)[0], name, "{query}: {answer}");
    }
    let answer = user
        .search(
            json!({"query": "use search_graph, then tracePath and find-symbol on the parser", "limit": 2}),
        )
        .await
        .ok();
    for name in ["search_graph", "tracePath", "find-symbol"] {
        assert!(found(&answer, 0).iter().any(|found| found == name), "{name}: {answer}");
    }
}

#[tokio::test]
async fn without_a_match_the_answer_says_what_there_is() {
    let app = TestApp::start().await;
    let user = office_of(
        &app,
        json!({"min_catalog_size": 0, "groups": [{"name": "mail",
        "description": "Letters.", "tools": ["send_email"]}]}),
    )
    .await;
    user.assemble(json!({"session": "s"})).await.ok();
    for query in ["xylophone quartet", "what tools do you have", "the of and", "!!!", "   ", "", "\u{1f980}"]
    {
        let answer = user.search(json!({"session": "s", "query": query})).await.ok();
        let result = &answer["results"][0];
        assert_eq!(result["matches"], json!([]), "no padding with junk: {query:?}: {answer}");
        assert!(result["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{query:?}");
        assert!(result["nearest"].is_array(), "{query:?}");
        let groups = result["groups"].as_array().unwrap();
        assert!(
            groups.iter().any(|group| group["name"] == "billing" && group["tools"] == 3),
            "{query:?}: {answer}"
        );
        assert_eq!((&answer["warmed"], &answer["degraded"]), (&json!([]), &json!(false)), "{query:?}");
    }
    // One word of several that every second tool has is no match for the whole.
    let weak = user
        .search(
            json!({"session": "s", "query": "list the open incidents of the on call rotation in pagerduty"}),
        )
        .await
        .ok();
    for tool in weak["results"][0]["matches"].as_array().unwrap() {
        assert_ne!(tool["confidence"], "high", "{weak}");
    }
    let mixed = user.search(json!({"session": "s", "queries": ["xylophone", "resize an image"]})).await.ok();
    assert_eq!((found(&mixed, 0).len(), found(&mixed, 1)[0].as_str()), (0, "resize_image"));
    assert_eq!(mixed["results"][1].get("hint"), None);
    assert_eq!(warm(&user, "s").await, ["resize_image"], "what is only near is never warmed");
}

#[tokio::test]
async fn an_answer_over_budget_is_shortened_and_drops_no_match() {
    let app = TestApp::start().await;
    let user = app.user();
    let tools: Vec<Value> = (0..20)
        .map(|at| {
            let properties: serde_json::Map<String, Value> = (0..20)
                .map(|key| {
                    (
                        format!("key_{key}"),
                        json!({"type": "string",
                    "description": "Some words about it."}),
                    )
                })
                .collect();
            json!({"name": format!("measure_{at}"), "description": format!("Measure thing {at}. {}",
                "More words. ".repeat(40)),
                   "parameters": {"type": "object", "properties": properties}})
        })
        .collect();
    user.put_catalog(&tools).await.ok();
    for detail in ["brief", "full"] {
        user.put_config(&json!({"max_answer_tokens": 50_000})).await.ok();
        let body = json!({"query": "measure a thing", "limit": 20, "detail": detail});
        let whole = user.search(body.clone()).await.ok();
        assert_eq!(found(&whole, 0).len(), 20);
        user.put_config(&json!({"max_answer_tokens": 1_500})).await.ok();
        let cut = user.search(body.clone()).await.ok();
        assert_eq!(found(&cut, 0), found(&whole, 0), "never a match less");
        assert_eq!((whole.get("truncated"), &cut["truncated"]), (None, &json!(true)), "{detail}");
        let tokens = bpe_openai::o200k_base().count(&cut["results"].to_string());
        assert!(tokens <= 1_500, "{detail}: {tokens}");
        // From the last match upwards: the first ones keep the most.
        let length = |at: usize| cut["results"][0]["matches"][at].to_string().len();
        assert!(length(0) >= length(19), "{cut}");
        user.put_config(&json!({"max_answer_tokens": 200})).await.ok();
        let least = user.search(body).await.ok();
        assert_eq!(found(&least, 0), found(&whole, 0));
        assert_eq!(least["truncated"], true);
    }
}

#[tokio::test]
async fn groups_are_the_configs() {
    let app = TestApp::start().await;
    let config = json!({
        "min_catalog_size": 0,
        "groups": [
            {"name": "post", "tools": ["send_email"], "prefixes": ["list_"]},
            {"name": "emails", "prefixes": ["list_e", "list_emails"]},
        ],
    });
    let user = office_of(&app, config).await;
    let group = async |query: &str| {
        let answer = user.search(json!({"query": query})).await.ok();
        answer["results"][0]["matches"][0]["group"].as_str().unwrap().to_owned()
    };
    assert_eq!(group("send_email").await, "post");
    assert_eq!(group("list_emails").await, "emails", "the longer prefix first");
    assert_eq!(group("delete_email").await, "mail", "the rest keeps its upload's group");
    let listing = user.assemble(json!({"allow": ["@post"]})).await.ok();
    assert!(listing["listing"]["text"].as_str().unwrap().contains("send_email"));
    assert_eq!(listing["counts"]["deferred"], 1);
}

#[tokio::test]
async fn aliases_of_config_and_upload_are_found() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut tools = office();
    tools[11]["aliases"] = json!(["shrink my picture", "Bild verkleinern"]);
    user.put_catalog(&tools).await.ok();
    user.put_config(
        &json!({"aliases": {"send_email": ["邮件发送", "Brief schreiben"], "no_such_tool": ["x"]}}),
    )
    .await
    .ok();
    for (query, name) in [
        ("shrink my picture", "resize_image"),
        ("Bild verkleinern", "resize_image"),
        ("邮件发送", "send_email"),
        ("einen Brief schreiben", "send_email"),
    ] {
        let answer = user.search(json!({"query": query})).await.ok();
        assert_eq!(found(&answer, 0)[0], name, "{query}");
    }
    let denied = user.search(json!({"query": "邮件发送", "deny": ["send_email"]})).await.ok();
    assert!(!denied.to_string().contains("\"send_email\""), "{denied}");
}

#[tokio::test]
async fn describe_answers_whole_definitions_in_the_asked_format() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"min_catalog_size": 0})).await;
    user.assemble(json!({"session": "s", "format": "anthropic"})).await.ok();
    let of = async |format: Option<&str>, session: Option<&str>| {
        let mut body = json!({"name": "send_email"});
        if let Some(format) = format {
            body["format"] = json!(format);
        }
        if let Some(session) = session {
            body["session"] = json!(session);
        }
        user.describe(body).await.ok()["tools"][0].clone()
    };
    let parameters = office()[0]["parameters"].clone();
    assert_eq!(of(None, None).await["parameters"], parameters);
    for format in model::FORMATS {
        let entry = of(Some(format), None).await;
        assert_eq!(model::entry_name(&entry), "send_email");
        assert_eq!(model::schema_of(format, &entry), Some(&parameters), "{format}");
    }
    assert_eq!(of(None, Some("s")).await["input_schema"], parameters, "the session's format");
    assert_eq!(of(Some("canonical"), Some("s")).await["parameters"], parameters, "another for one request");
    assert_eq!(of(None, Some("s")).await["input_schema"], parameters);

    let several =
        user.describe(json!({"session": "t", "names": ["write_file", "read_file", "write_file"]})).await.ok();
    let names: Vec<&str> =
        several["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["write_file", "read_file"], "in the order of the names, each once");
    assert_eq!(several["warmed"], json!(["write_file", "read_file"]));
    assert_eq!(warm(&user, "t").await, ["write_file", "read_file"]);
}

#[tokio::test]
async fn describe_says_what_it_did_not_find() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"core": ["read_file"]})).await;
    let body = json!({
        "names": ["send_emial", "sendEmail", "zzz", "tool_call", "get_weather", "read_file"],
        "unavailable": ["get_weather"],
    });
    let answer = user.describe(body).await.ok();
    let missing = |name: &str| {
        answer["not_found"].as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned()
    };
    assert_eq!(missing("send_emial").unwrap()["suggestions"][0], "send_email");
    assert_eq!(missing("zzz").unwrap()["suggestions"], json!([]));
    assert_eq!(missing("get_weather").unwrap()["code"], "tool_unavailable");
    assert_eq!(missing("tool_call").unwrap()["code"], "bridge_tool");
    assert_eq!(missing("read_file"), None, "core tools are described too");
    // The spelling of another convention is either understood or answered with the name.
    let other = missing("sendEmail");
    assert!(other.is_none_or(|entry| entry["suggestions"][0] == "send_email"), "{answer}");
}

#[tokio::test]
async fn unavailable_tools_leave_array_listing_and_matches_and_keep_their_place() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({"min_catalog_size": 0, "core": ["read_file"]})).await;
    user.assemble(json!({"session": "s"})).await.ok();
    user.describe(json!({"session": "s", "names": ["send_email", "resize_image"]})).await.ok();
    for selector in [json!(["send_email", "read_file"]), json!(["send_*", "@files"])] {
        let answer = user.assemble(json!({"session": "s", "unavailable": selector})).await.ok();
        assert!(
            texts(&answer["unavailable"]).contains(&"send_email")
                && texts(&answer["unavailable"]).contains(&"read_file")
        );
        assert_eq!(answer["warm"], json!(["resize_image"]));
        assert!(!answer["tools"].to_string().contains("send_email"));
        assert!(!answer["listing"]["text"].as_str().unwrap().contains("send_email"));
        let found = user.search(json!({"session": "s", "query": "send_email"})).await.ok();
        assert!(!found["results"].to_string().contains("\"name\":\"send_email\""), "{found}");
        let called =
            user.call(json!({"session": "s", "name": "send_email", "arguments": {"id": "1"}})).await.ok();
        assert_eq!(called["results"][0]["error"]["code"], "tool_unavailable");
    }
    let back = user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!((&back["warm"], &back["unavailable"]), (&json!(["send_email", "resize_image"]), &json!([])));
}

#[tokio::test]
async fn a_window_out_of_range_is_clamped_and_told_on_every_route() {
    let app = TestApp::start().await;
    let user = office_of(&app, json!({})).await;
    for (route, body) in [
        ("/v1/assemble", json!({})),
        ("/v1/search", json!({"query": "weather"})),
        ("/v1/describe", json!({"name": "get_weather"})),
        ("/v1/call", json!({"name": "get_weather"})),
    ] {
        for window in [json!(999), json!(-1), json!(1e12)] {
            let mut body = body.clone();
            body["context_window"] = window.clone();
            let answer = user.post(route, body.clone()).await.ok();
            let warnings = answer["warnings"].as_array().unwrap();
            let told = warnings
                .iter()
                .any(|warning| warning["code"] == "clamped" && warning["pointer"] == "/context_window");
            assert!(told, "{route} {window}: {warnings:?}");
            body["context_window"] = json!(1_000);
            let answer = user.post(route, body).await.ok();
            assert!(!answer["warnings"].to_string().contains("clamped"), "{route}");
        }
    }
}
