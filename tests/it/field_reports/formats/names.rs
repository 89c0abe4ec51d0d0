//! Names that a provider refuses, names that get equal on their way, and names in histories.

use super::*;

/// A name as it was uploaded, who refused it, and how the name on the wire begins: the rest is a hash.
type Name = (u8, Asked<'static>, &'static str, &'static str);

fn refused_names() -> Vec<Name> {
    let long = "mcp__plugin_chrome-devtools-mcp_chrome-devtools__get_console_message_by_identifier";
    vec![
        (1, ANTHROPIC, "josef.prochazka--x", "josef_prochazka--x_"),
        (2, OPENAI, "service.doSomething", "service_doSomething_"),
        (2, ANTHROPIC, "service.doSomething", "service_doSomething_"),
        (3, ANTHROPIC, "Get the weather", "Get_the_weather_"),
        (4, OPENAI, "DELETE_/loadpoints/{id}", "DELETE__loadpoints__id__"),
        (5, AZURE, "get_/whoami", "get__whoami_"),
        (5, AZURE, "get.whoami", "get_whoami_"),
        (6, OPENAI, "server/tool", "server_tool_"),
        (7, ANTHROPIC, "MyModule::PingPing", "MyModule__PingPing_"),
        (9, BEDROCK, long, "mcp__plugin_chrome-devtools-mcp_chrome-devtools__get_co_"),
        (9, NOVA, long, "mcp__plugin_chrome_devtools_mcp_chrome_devtools__get_co_"),
        (19, OPENAI, long, "mcp__plugin_chrome-devtools-mcp_chrome-devtools__get_co_"),
        (49, GEMINI, "2fa_code", "_2fa_code_"),
        (49, GEMINI, "-dash", "_-dash_"),
        (49, OPENAPI, "日本語の道具", "_______"),
    ]
}

/// Names of tools beside each other that must not become one: the digests keep those apart that read alike after a cut or a change.
fn twins() -> Vec<(u8, Asked<'static>, [&'static str; 2])> {
    let created = "mcp_confluence_server_createConfluencePageFromATemplateForASpaceOfTheTeam";
    let deleted = "mcp_confluence_server_deleteConfluencePageFromATemplateForASpaceOfTheTeam";
    let of_sixty = "the_first_sixty_characters_of_these_two_names_are_the_same_x";
    let (one, other) = ("_and_then_comes_one", "_and_then_comes_another");
    let ends: &'static [String; 2] =
        Box::leak(Box::new([format!("{of_sixty}{one}"), format!("{of_sixty}{other}")]));
    vec![
        (14, GEMINI, [created, deleted]),
        (15, OPENAI, [&ends[0], &ends[1]]),
        (16, OPENAI, [&ends[0], &ends[1]]),
        (18, ANTHROPIC, ["a-b", "a b"]),
        (18, NOVA, ["a-b", "a_b"]),
        (18, OPENAI, ["a.b", "a/b"]),
    ]
}

/// The numbers of reports whose tests below are no rows of a table.
const TOLD: [u8; 6] = [8, 10, 11, 20, 21, 22];

pub(super) fn reports() -> Vec<u8> {
    let names = refused_names().into_iter().map(|(report, ..)| report);
    names.chain(twins().into_iter().map(|(report, ..)| report)).chain(TOLD).collect()
}

#[tokio::test]
async fn refused_names_are_changed_and_lead_back() {
    let app = TestApp::start().await;
    for (report, asked, uploaded, head) in refused_names() {
        let user = holder(&app, &[json!({"name": uploaded, "description": "Does it."})]).await;
        let answer = assembled(&user, asked, uploaded).await;
        let wire = array_names(&answer)[0];
        let hash = wire.strip_prefix(head).unwrap_or_else(|| panic!("{report}: {wire}"));
        assert!(hash.len() == 8 && hash.chars().all(|letter| letter.is_ascii_hexdigit()), "{report}: {wire}");
        assert_eq!(answer["name_map"], json!({wire: uploaded}), "{report}");
        // Adding tools renames none.
        user.put_catalog(&[json!({"name": uploaded, "description": "Does it."}), json!({"name": "zz"})])
            .await;
        assert!(array_names(&assembled(&user, asked, uploaded).await).contains(&wire), "{report}");
        assert_eq!(bridged(&user, asked, wire, &json!({})).await["calls"][0]["name"], uploaded, "{report}");
        assert_eq!(called(&user, asked, wire, &json!({})).await["dispatch"]["name"], uploaded, "{report}");
    }
}

#[tokio::test]
async fn names_that_read_alike_stay_apart() {
    let app = TestApp::start().await;
    for (report, asked, names) in twins() {
        let tools = names.map(|name| json!({"name": name, "description": format!("Does {name}.")}));
        let user = holder(&app, &tools).await;
        let answer = assembled(&user, asked, names[0]).await;
        let wire = array_names(&answer);
        let mut back: Vec<String> = Vec::new();
        for wire in &wire {
            let run = called(&user, asked, wire, &json!({})).await["dispatch"]["name"].clone();
            assert_eq!(bridged(&user, asked, wire, &json!({})).await["calls"][0]["name"], run, "{report}");
            back.push(run.as_str().unwrap().to_owned());
        }
        back.sort_unstable();
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(back, expected, "{report}: {wire:?}");
    }
}

/// 20 and 22: two servers with a tool of one name; 21: one tool sent twice.
#[tokio::test]
async fn one_name_on_two_servers_gets_the_servers_in_front_and_a_tool_sent_twice_is_one() {
    let app = TestApp::start().await;
    let of = |group: &str| json!({"name": "search", "group": group, "description": format!("In {group}.")});
    for asked in [ANTHROPIC, OPENAI, GEMINI, NOVA] {
        let user = holder(&app, &[of("github"), of("jira")]).await;
        let answer = assembled(&user, asked, "search").await;
        assert_eq!(array_names(&answer), ["github__search", "jira__search"]);
        for group in ["github", "jira"] {
            let run =
                bridged(&user, asked, &format!("{group}__search"), &json!({})).await["calls"][0].clone();
            assert_eq!((&run["group"], &run["uploaded_name"]), (&json!(group), &json!("search")));
        }
        let user = holder(&app, &[of("github"), of("github"), of("github")]).await;
        assert_eq!(array_names(&assembled(&user, asked, "twice").await), ["search"]);
    }
}

/// 8: a name of another provider's rules in a history; 10 and 11: names that a model made up. Providers look at the names of a history
/// that is sent again, so what they refuse there has a name that they take.
#[tokio::test]
async fn names_of_a_history_have_one_that_the_provider_takes() {
    let app = TestApp::start().await;
    let tools = [
        json!({"name": "service.doSomething", "description": "Does something."}),
        json!({"name": "click_on_link", "description": "Clicks."}),
        json!({"name": "read-file", "description": "Reads."}),
    ];
    let user = holder(&app, &tools).await;
    for asked in [BEDROCK, NOVA, ANTHROPIC, OPENAI, GENERIC] {
        let answer = assembled(&user, asked, "history").await;
        // The tool's own name means the tool, and its name in this array stands in the history.
        let dotted = bridged(&user, asked, "service.doSomething", &json!({})).await;
        assert_eq!(dotted["calls"][0]["name"], "service.doSomething");
        let wire = dotted["reply_to"]["wire_name"].as_str().unwrap();
        assert!(array_names(&answer).contains(&wire), "{wire}");
        assert_eq!(answer["name_map"][wire], "service.doSomething");
        // A made-up name goes to the agent as it is: it may be one of its own tools.
        for made_up in
            ["click_on_link(url=\"https://example.com\")", "$READFILE", "read file", "<|tool|>", "é"]
        {
            let result = bridged(&user, asked, made_up, &json!({"x": 1})).await;
            assert_eq!(result["calls"][0]["name"], json!(made_up));
            let wire = result["reply_to"]["wire_name"].as_str().unwrap();
            let tool = json!({"name": wire, "input_schema": {"type": "object"}});
            let of_anthropic = Asked { format: "anthropic", ..asked };
            let refused: Vec<String> = faults(of_anthropic, &json!([tool]))
                .into_iter()
                .filter(|fault| fault.ends_with("name"))
                .collect();
            assert!(refused.is_empty(), "{asked:?}: {made_up} -> {wire}");
            assert!(!array_names(&answer).contains(&wire), "no other tool is meant: {wire}");
        }
        // What the provider takes stays.
        for fine in ["click_on_link", "no_such_tool"] {
            let result = bridged(&user, asked, fine, &json!({})).await;
            assert_eq!(result["reply_to"].get("wire_name"), None, "{result}");
        }
    }
    // The name of another provider's array still means its tool.
    let nova = assembled(&user, NOVA, "history").await;
    let of_nova = array_names(&nova).into_iter().find(|name| name.starts_with("read_file_")).unwrap();
    assert_eq!(bridged(&user, ANTHROPIC, of_nova, &json!({})).await["calls"][0]["name"], "read-file");
    let late = bridged(&user, NOVA, "read-file", &json!({})).await;
    assert_eq!(
        (&late["calls"][0]["name"], &late["reply_to"]["wire_name"]),
        (&json!("read-file"), &json!(of_nova))
    );
}
