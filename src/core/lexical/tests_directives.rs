//! `+term`, `server:` and services by name, and explanations.

use super::tests::{find, first, grouped, index, run, tool};
use super::{Document, Matched, Part, explain, search};

#[test]
fn a_required_word_is_in_every_match() {
    let tools =
        [tool("create_issue", "Creates"), tool("create_label", "Creates"), tool("list_labels", "Lists")];
    assert_eq!(find(&tools, "create +label"), ["create_label", "list_labels"]);
    assert_eq!(find(&tools, "+create +label"), ["create_label"]);
    // What no tool holds cannot be required.
    assert_eq!(first(&tools, "create issue +frobnicate"), Some("create_issue"));
}

#[test]
fn a_server_before_a_colon_limits_the_search_to_its_tools() {
    let tools = [
        grouped("github-mcp-server", "create_issue", "Creates an issue"),
        grouped("github-mcp-server", "list_branches", "Lists branches"),
        grouped("linear", "create_issue", "Creates an issue"),
        grouped("linear", "search_github", "Finds links to github: create issue"),
    ];
    for query in
        ["linear: create issue", "linear:create_issue", "server:linear create issue", "LINEAR: issue"]
    {
        let hits = run(&tools, query, 5).hits;
        assert!(hits[0].candidate == 2 && hits.iter().all(|hit| hit.candidate >= 2), "{query}");
    }
    assert_eq!(run(&tools, "github: create issue", 5).hits[0].candidate, 0);
    let mut of_group = find(&tools, "github:");
    of_group.sort_unstable();
    assert_eq!(of_group, ["create_issue", "list_branches"]);
    // No server of that name: words as any others.
    assert_eq!(first(&tools, "todo: list branches"), Some("list_branches"));
    assert!(run(&tools, "https://linear.app/x", 5).hits.iter().all(|hit| !hit.exact));
}

#[test]
fn a_server_name_does_not_drown_the_action() {
    let mut tools: Vec<_> =
        (0..12).map(|n| grouped("slack", &format!("slack_thing_{n}"), "Something in Slack")).collect();
    tools.push(grouped("mail", "send_email", "Sends an email"));
    assert!(find(&tools, "send email about slack").contains(&"send_email"));
}

#[test]
fn a_service_or_action_that_the_tool_lacks_is_told() {
    let tools = [tool("twilio_send_sms", "Sends a message"), tool("twilio_list_sms", "Lists messages")];
    let hits = run(&tools, "discord send message", 5).hits;
    assert!(hits.iter().all(|hit| hit.other_service));
    assert_eq!(hits.iter().map(|hit| hit.other_action).collect::<Vec<_>>(), [false, true]);
    assert!(run(&tools, "twilio send sms", 5).hits.iter().all(|hit| !hit.other_service));
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let tools = [
        grouped("calendar", "create_event", "Creates a calendar event for a team meeting"),
        tool("send_mail", "Sends mail"),
        tool("delete_file", "Deletes a file; 删除"),
    ];
    let index = index(&tools);
    let parts = [Part { index: &index, candidates: &[0, 1, 2] }];
    for query in [
        "create calender events",
        "make an appointment",
        "删除文件",
        "sendmail +mail",
        "delete_file",
        "wombat",
    ] {
        for hit in search(&parts, 3, query, 5).hits {
            let document = &tools[hit.candidate as usize];
            let documents = [Document {
                group: &document.group,
                name: &document.name,
                description: &document.description,
                parameters: &document.parameters,
                aliases: &document.aliases,
            }];
            let explanation = explain(&parts, 3, query, hit.candidate, &documents, None);
            assert!(
                (explanation.score - hit.score).abs() <= 1e-4 * hit.score,
                "{query}: {explanation:?} {hit:?}"
            );
            let sum: f32 = explanation.terms.iter().map(|term| term.contribution).sum();
            assert!((sum - explanation.sum).abs() <= 1e-4 * sum.max(1.0), "{query}");
            assert_eq!((explanation.coverage, explanation.exact), (hit.coverage, hit.exact), "{query}");
            assert!(explanation.terms.iter().all(|term| !term.fields.is_empty()), "{query}: {explanation:?}");
        }
    }
}

#[test]
fn an_explanation_says_how_each_word_matched() {
    let tools = [tool("create_event", "Creates a calendar event"), tool("other", "Else")];
    let index = index(&tools);
    let parts = [Part { index: &index, candidates: &[0, 1] }];
    let explanation = explain(&parts, 2, "creating calender appointment wombat", 0, &[], None);
    let told: Vec<_> = explanation
        .terms
        .iter()
        .map(|term| (term.typed.as_str(), term.matched.as_str(), term.kind))
        .collect();
    assert!(told.contains(&("creating", "creating", Matched::Stem)), "{told:?}");
    assert!(told.contains(&("calender", "calendar", Matched::Correction)), "{told:?}");
    assert!(told.contains(&("appointment", "event", Matched::Concept)), "{told:?}");
    assert_eq!(explanation.missing, ["wombat"]);
    assert_eq!(explain(&parts, 2, "event", 9, &[], None).score, 0.0);
}
