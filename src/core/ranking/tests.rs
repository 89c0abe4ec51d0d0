//! The search by words and meaning over several catalogs, with the table that is compiled in.

use super::super::lexical::{Document, NONE, Outcome};
use super::*;

#[derive(Clone)]
struct Tool {
    group: String,
    name: String,
    description: String,
}

fn tool(group: &str, name: &str, description: &str) -> Tool {
    Tool { group: group.to_owned(), name: name.to_owned(), description: description.to_owned() }
}

/// Tools of many fields that have nothing to do with each other.
fn crowd(count: usize) -> Vec<Tool> {
    let verbs = ["list", "get", "create", "delete", "update", "search"];
    let things =
        ["invoice", "pod", "playlist", "flight", "contact", "ticket", "image", "recipe", "branch", "sensor"];
    (0..count)
        .map(|n| {
            let (verb, thing) = (verbs[n % verbs.len()], things[n / verbs.len() % things.len()]);
            let name = format!("{verb}_{thing}_{n}");
            tool(&format!("server{}", n % 7), &name, &format!("{verb} the {thing} of number {n}"))
        })
        .collect()
}

fn index(tools: &[Tool]) -> CatalogIndex {
    CatalogIndex::build(tools.iter().map(|tool| Document {
        group: &tool.group,
        name: &tool.name,
        description: &tool.description,
        parameters: "{}",
        aliases: &[],
    }))
}

fn names(tools: &[Tool], candidates: &[u32], query: &str, limit: usize) -> (Vec<String>, Outcome) {
    let index = index(tools);
    let outcome = search(&[Part { index: &index, candidates }], tools.len(), query, limit, true);
    let name = |candidate: u32| {
        let document = candidates.iter().position(|&at| at == candidate).unwrap();
        tools[document].name.clone()
    };
    (outcome.hits.iter().map(|hit| name(hit.candidate)).collect(), outcome)
}

fn all(tools: &[Tool]) -> Vec<u32> {
    (0..u32::try_from(tools.len()).unwrap()).collect()
}

#[test]
fn meaning_finds_what_words_do_not() {
    let tools = [
        tool("", "snow_report", "Conditions on the slopes"),
        tool("", "pay_rent", "Sends money to the landlord"),
    ];
    let found = |semantic| {
        let index = index(&tools);
        search(&[Part { index: &index, candidates: &[0, 1] }], 2, "skiing holidays", 5, semantic).hits
    };
    assert_eq!(found(true).first().map(|hit| hit.candidate), cfg!(feature = "semantic").then_some(0));
    assert!(found(false).iter().all(|hit| hit.alike.is_none()));
}

#[test]
fn demands_hold_in_a_catalog_of_any_size() {
    let mut tools = crowd(900);
    tools.push(tool("printers", "reset_queue", "Empties what waits"));
    tools.push(tool("printers", "paper_level", "How much paper is left"));
    let candidates = all(&tools);
    let (found, outcome) = names(&tools, &candidates, "printers: queue", 5);
    assert_eq!((found.first().map(String::as_str), &outcome.unmet), (Some("reset_queue"), &None));
    let (found, _) = names(&tools, &candidates, "level of +paper", 5);
    assert_eq!(found, ["paper_level"]);
}

#[test]
fn hidden_tools_do_not_change_what_is_found() {
    let shown =
        [tool("", "archive_invoice", "Archives an invoice"), tool("", "send_email", "Sends an email")];
    let hidden = crowd(400);
    let mut both = shown.to_vec();
    both.extend(hidden.iter().cloned());
    let mut candidates = vec![NONE; both.len()];
    (candidates[0], candidates[1]) = (0, 1);
    let of_both = index(&both);
    let of_shown = index(&shown);
    for query in [
        "invoice",
        "email invoice archive",
        "contact",
        "delete pod",
        "list +ticket",
        "what tools do you have",
    ] {
        let hiding = search(&[Part { index: &of_both, candidates: &candidates }], 2, query, 5, true);
        let plain = search(&[Part { index: &of_shown, candidates: &[0, 1] }], 2, query, 5, true);
        let told = |outcome: &Outcome| {
            let found: Vec<(u32, f32)> =
                outcome.hits.iter().map(|hit| (hit.candidate, hit.coverage)).collect();
            (found, outcome.terms, outcome.rarest, outcome.tools, outcome.unmet.clone(), outcome.asks_for_all)
        };
        // Scores differ a little: how long a text is counts beside the others of its catalog.
        assert_eq!(told(&hiding), told(&plain), "{query}");
    }
}

#[test]
fn the_order_of_an_upload_does_not_matter() {
    let mut tools = crowd(600);
    let ranked = |tools: &[Tool]| {
        let mut order = all(tools);
        order.sort_by(|a, b| tools[*a as usize].name.cmp(&tools[*b as usize].name));
        let mut candidates = vec![0; tools.len()];
        (0..).zip(&order).for_each(|(place, &document)| candidates[document as usize] = place);
        let (found, outcome) = names(tools, &candidates, "remove pictures, then show all plane trips", 20);
        (found, outcome.hits.iter().map(|hit| hit.score.to_bits()).collect::<Vec<_>>())
    };
    let straight = ranked(&tools);
    tools.reverse();
    tools.rotate_left(71);
    assert_eq!(ranked(&tools), straight);
}

#[test]
fn an_explanation_adds_up() {
    let tools = crowd(700);
    let (index, candidates) = (index(&tools), all(&tools));
    let parts = [Part { index: &index, candidates: &candidates }];
    for query in ["delete image", "cheapest plane to Rome", "发票", "server3: contact"] {
        for hit in search(&parts, tools.len(), query, 5, true).hits {
            let told = explain(&parts, tools.len(), query, hit.candidate, &[], true);
            assert!((told.score - hit.score).abs() <= 1e-3 * hit.score.max(1.0), "{query}: {told:?} {hit:?}");
            assert_eq!(told.alike.map(|(alike, _)| alike), hit.alike, "{query}");
        }
    }
}

#[test]
fn clauses_are_cut_where_several_say_something() {
    let cut = |text| clauses(text).collect::<Vec<_>>();
    assert_eq!(
        cut("find the invoice of May. Then send it to Anna, and close the ticket"),
        ["find the invoice of May", "Then send it to Anna", "and close the ticket"]
    );
    assert!(cut("send an email to Anna").is_empty() && cut("").is_empty() && cut("a, b, c").is_empty());
}
