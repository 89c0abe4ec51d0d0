//! Whole arrays that a provider refuses: of no tools, of too many, in another order each time, with long descriptions.

use serde_json::Map;

use super::*;

pub(super) const REPORTS: [u8; 8] = [13, 24, 25, 48, 60, 64, 68, 70];

fn many(count: usize) -> Vec<Value> {
    let tool = |at: usize| {
        json!({"name": format!("tool_{at:03}"), "group": format!("g{}", at % 7),
        "description": format!("Sorts the box number {at}.")})
    };
    (0..count).map(tool).collect()
}

/// 13 for Bedrock, 48 for Gemini, 60 for DeepSeek: when no tool is left, the field is left out.
#[tokio::test]
async fn an_array_of_no_tools_is_left_out() {
    let app = TestApp::start().await;
    let user = super::super::holder(&app, &many(30), json!({})).await;
    for asked in [BEDROCK, NOVA, GEMINI, OPENAPI, DEEPSEEK, OPENAI, RESPONSES, ANTHROPIC, GENERIC, VLLM] {
        let mut denied = body(asked);
        denied["deny"] = json!(["*"]);
        let mut gone = body(asked);
        gone["unavailable"] = json!(["*"]);
        gone["allow"] = json!(["tool_001"]);
        let empty = app.user();
        for (who, request) in [(&user, denied), (&user, gone), (&empty, body(asked))] {
            let answer = who.assemble(request).await.ok();
            assert_eq!(answer["tools"], Value::Null, "{asked:?}: {answer}");
            assert_eq!(answer["counts"]["bridge"], 0, "{asked:?}: {answer}");
        }
    }
    // A list result has to hold an array.
    let answer = app.user().assemble(json!({"format": "mcp"})).await.ok();
    assert_eq!(answer["tools"], json!([]));
}

/// 24: an array that grew with each call; 25: more tools than the provider takes.
#[tokio::test]
async fn an_array_never_holds_more_than_the_provider_takes() {
    let app = TestApp::start().await;
    for count in [129, 133, 142, 383] {
        let user = super::super::holder(&app, &many(count), json!({"min_catalog_size": 1_000})).await;
        for asked in [OPENAI, RESPONSES, AZURE, DEEPSEEK, GROQ] {
            let answer = assembled(&user, asked, "many").await;
            let names = array_names(&answer);
            assert!(names.len() <= 128 && names.contains(&"tool_search"), "{asked:?}: {}", names.len());
            assert_eq!(answer["counts"]["deferred"].as_u64().unwrap() as usize + names.len() - 3, count);
        }
    }
    let user = super::super::holder(&app, &many(133), json!({})).await;
    let mut request = body(OPENAI);
    request["session"] = json!("s");
    for turn in 0..140 {
        let mut search = request.clone();
        search["query"] = json!(format!("sorts box number {turn}"));
        user.search(search).await.ok();
        let answer = user.assemble(request.clone()).await.ok();
        assert_eq!(faults(OPENAI, &answer["tools"]), Vec::<String>::new());
        let warm = answer["warm"].as_array().unwrap().len();
        assert!(warm <= 8 && array_names(&answer).len() == 3 + warm, "{turn}");
    }
}

/// 70: servers list their tools in another order each time.
#[tokio::test]
async fn an_array_is_the_same_whatever_the_order_of_the_servers() {
    let app = TestApp::start().await;
    let mut tools = many(60);
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for turn in 0..5 {
        tools.rotate_left(13);
        tools.swap(turn, 40 - turn);
        let user = holder(&app, &tools).await;
        for asked in [ANTHROPIC, OPENAI, GEMINI, BEDROCK] {
            let answer = assembled(&user, asked, "order").await;
            seen.insert((asked.format.to_owned(), answer["tools"].to_string()));
        }
    }
    assert_eq!(seen.len(), 4, "one array for each provider");
}

/// 64: descriptions of up to 4,394 characters were refused by those who take 1,024.
#[tokio::test]
async fn long_descriptions_are_cut_where_the_provider_has_a_limit() {
    let app = TestApp::start().await;
    for (length, letter) in [(1_024, "a"), (1_103, "b"), (4_394, "c"), (1_025, "語"), (2_000, "🦀")] {
        let whole = letter.repeat(length);
        let user = holder(&app, &[json!({"name": "t", "description": whole})]).await;
        for (asked, most) in [
            (OPENAI, 1_024),
            (AZURE, 1_024),
            (RESPONSES, 1_024),
            (ANTHROPIC, usize::MAX),
            (GEMINI, usize::MAX),
            (BEDROCK, usize::MAX),
        ] {
            let answer = assembled(&user, asked, "long").await;
            let sent = definition(&entries(&answer["tools"])[0])["description"].as_str().unwrap();
            let is_cut = length > most;
            assert_eq!(sent.chars().count(), length.min(most), "{asked:?}");
            assert_eq!(sent.ends_with('…'), is_cut, "{asked:?}");
            let told: &[&str] = if is_cut { &["description_clipped"] } else { &[] };
            assert_eq!(warning_codes(&answer), told, "{asked:?}");
            let mut names = body(asked);
            names["name"] = json!("t");
            let described = user.describe(names).await.ok();
            assert_eq!(
                definition(&described["tools"][0])["description"],
                json!(whole),
                "{asked:?}: all of it"
            );
        }
    }
}

/// 68 and 40 and 69: the one tool that nothing can be done about costs the others nothing.
#[tokio::test]
async fn one_tool_that_cannot_be_sent_is_left_out_alone() {
    let app = TestApp::start().await;
    // Providers without references get them written out, which makes twenty of what is long already.
    let long = json!({"type": "string", "description": "Long. ".repeat(4_000)});
    let places: Map<String, Value> =
        (0..20).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/long"}))).collect();
    let bomb = with(object(Value::Object(places)), json!({"$defs": {"long": long}}));
    let mut tools = many(59);
    tools.push(json!({"name": "bomb", "description": "Grows without end.", "parameters": bomb}));
    let user = holder(&app, &tools).await;
    for asked in [BEDROCK, NOVA, OPENAPI, OLLAMA] {
        let answer = assembled(&user, asked, "bomb").await;
        assert_eq!(warning_codes(&answer), ["tool_left_out"], "{asked:?}: {answer}");
        let names = array_names(&answer);
        assert_eq!(
            (names.len(), names.contains(&"bomb")),
            (59 + 3, false),
            "the bridge reaches it: {asked:?}"
        );
        let run = called(&user, asked, "bomb", &json!({})).await;
        assert_eq!(run["dispatch"]["name"], "bomb", "{run}");
    }
    for asked in [OPENAI, ANTHROPIC, GEMINI] {
        let answer = assembled(&user, asked, "bomb").await;
        assert!(array_names(&answer).contains(&"bomb"), "references stay as they are: {asked:?}");
    }
}
