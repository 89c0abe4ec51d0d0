//! Reports of searches that found nothing, or the wrong thing.

use serde_json::{Value, json};

use super::{holder, matches, search, tool};
use crate::app::TestApp;

/// Tools of several servers that have little to do with each other.
fn crowd() -> Vec<Value> {
    vec![
        tool("create_incident", "pagerduty", "Create an incident and page the team."),
        tool("on_call_event", "pagerduty", "Record an event of the on-call rotation."),
        tool("team_members", "pagerduty", "List the members of a team."),
        tool("snow_sp_theme_manage", "servicenow", "Manage themes of the service portal."),
        tool("create_issue", "linear", "Create an issue."),
        tool("list_issues", "linear", "List issues."),
        tool("add_comment", "linear", "Add a comment to an issue."),
        tool("address-book-lookup", "contacts", "Look an address up in the book."),
        tool("add", "math", "Add two numbers."),
        tool("search_laws", "laws", "日本の法令を検索します。条文を返します。"),
        tool("get_portfolio", "bank", "Show portfolio"),
        tool("file.read", "files", "读取工作区中的文件。"),
        tool("workflow_rerun", "ci", "Run a failed workflow again."),
    ]
}

#[tokio::test]
async fn a_query_in_any_script_is_answered_or_told_what_there_is() {
    let app = TestApp::start().await;
    let user = holder(&app, &crowd(), json!({})).await;
    for (query, name) in [
        ("法令", "search_laws"),
        ("法令を調べて", "search_laws"),
        ("请用文件工具读取 README", "file.read"),
        ("読む 法令", "search_laws"),
    ] {
        let answer = search(&user, query).await;
        let all = [matches(&answer), nearest(&answer)].concat();
        assert_eq!(all.first().map(String::as_str), Some(name), "{query}: {answer}");
    }
    for query in ["покажи мой портфель", "أرسل بريدا", "שלח מייל", "看看你有什么天气", "🦀🦀"]
    {
        let answer = search(&user, query).await;
        let result = &answer["results"][0];
        if result["matches"].as_array().unwrap().is_empty() {
            assert!(
                !result["groups"].as_array().unwrap().is_empty(),
                "never a bare empty list: {query}: {answer}"
            );
            assert!(result["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{query}");
        }
    }
}

#[tokio::test]
async fn tools_that_share_one_common_word_are_no_answer() {
    let app = TestApp::start().await;
    let user = holder(&app, &crowd(), json!({"min_catalog_size": 0})).await;
    user.assemble(json!({"session": "s"})).await.ok();
    for query in [
        "send gmail email",
        "read google calendar events",
        "run shell command execute code python",
        "tell me the time of the next train to the airport",
        "the",
        "book a flight",
    ] {
        let answer = user.search(json!({"session": "s", "query": query})).await.ok();
        for tool in answer["results"][0]["matches"].as_array().unwrap() {
            assert_ne!(tool["confidence"], "high", "{query}: {answer}");
        }
        assert!(!matches(&answer).contains(&"snow_sp_theme_manage".to_owned()), "{query}: {answer}");
    }
    assert_eq!(matches(&search(&user, "add").await)[0], "add", "whole words, not `address`");
    assert!(!matches(&search(&user, "add").await).contains(&"address-book-lookup".to_owned()));
}

#[tokio::test]
async fn the_server_and_the_forms_of_a_word_lead_to_its_tools() {
    let app = TestApp::start().await;
    let user = holder(&app, &crowd(), json!({})).await;
    for (query, name) in [
        ("linear create", "create_issue"),
        ("create issues", "create_issue"),
        ("creating an issue", "create_issue"),
        ("listing issues in linear", "list_issues"),
        ("commenting on issues", "add_comment"),
    ] {
        assert_eq!(matches(&search(&user, query).await).first().map(String::as_str), Some(name), "{query}");
    }
    assert!(matches(&search(&user, "linear").await).iter().any(|name| name.contains("issue")));
    for query in ["issue", "issues"] {
        let found = matches(&search(&user, query).await);
        assert!(
            ["create_issue", "list_issues"].iter().all(|name| found.iter().any(|is| is == name)),
            "{query}: {found:?}"
        );
    }
    // Short names that say all of it come before longer ones that say more.
    let mut cloud: Vec<Value> = [
        "get_accounts",
        "get_accounts_members",
        "get_accounts_members_roles",
        "get_accounts_pages_projects",
        "get_zones",
        "get_zones_settings",
        "post_accounts_pages_projects_domains",
    ]
    .iter()
    .map(|name| tool(name, "cloudflare", "An operation of the API."))
    .collect();
    for noun in [
        "dns_records",
        "workers_scripts",
        "images",
        "streams",
        "tunnels",
        "queues",
        "tokens",
        "rulesets",
        "certificates",
        "logs",
    ] {
        for verb in ["get", "post", "delete"] {
            cloud.push(tool(&format!("{verb}_{noun}"), "cloudflare", "An operation of the API."));
            cloud.push(tool(&format!("{verb}_zones_{noun}"), "cloudflare", "An operation of the API."));
        }
    }
    let user = holder(&app, &cloud, json!({})).await;
    for (query, name) in [
        ("cloudflare list accounts", "get_accounts"),
        ("cloudflare account", "get_accounts"),
        ("get accounts list", "get_accounts"),
        ("list zones", "get_zones"),
        ("pages projects domains", "post_accounts_pages_projects_domains"),
    ] {
        let answer = search(&user, query).await;
        let all = [matches(&answer), nearest(&answer)].concat();
        assert_eq!(all.first().map(String::as_str), Some(name), "{query}: {answer}");
    }
}

#[tokio::test]
async fn words_of_parameters_lead_to_the_tool() {
    let app = TestApp::start().await;
    let tools = [
        json!({"name": "op_one", "description": "An operation.", "parameters": {"type": "object",
            "properties": {"invoiceNumber": {"type": "string"}}}}),
        json!({"name": "op_two", "description": "An operation.", "parameters": {"type": "object",
            "properties": {"x": {"type": "string", "description": "The licence plate of the car."}}}}),
        json!({"name": "op_three", "description": "An operation.", "parameters": {"type": "object",
            "properties": {"kind": {"enum": ["hatchback", "convertible"]}}}}),
        json!({"name": "op_four", "description": "An operation.", "parameters": {"type": "object",
            "properties": {"a": {"type": "object", "properties": {"b": {"type": "array",
            "items": {"type": "object", "properties": {"postcode": {"type": "string"}}}}}}}}}),
    ];
    let user = holder(&app, &tools, json!({})).await;
    for (query, name) in [
        ("invoice number", "op_one"),
        ("licence plate", "op_two"),
        ("convertible", "op_three"),
        ("postcode", "op_four"),
    ] {
        let answer = search(&user, query).await;
        let all = [matches(&answer), nearest(&answer)].concat();
        assert_eq!(all.first().map(String::as_str), Some(name), "{query}: {answer}");
    }
    let single = holder(&app, &[tool("only", "g", "Water the plants.")], json!({})).await;
    assert_eq!(matches(&search(&single, "water plants").await), ["only"], "a catalog of one answers too");
}

fn nearest(answer: &Value) -> Vec<String> {
    let nearest = answer["results"][0]["nearest"].as_array().cloned().unwrap_or_default();
    nearest.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
