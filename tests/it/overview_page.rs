//! The overview as people see it: its numbers are those of the traffic and of nobody else's, texts stay texts, and what wants
//! somebody leads to where it is mended.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::app::{ADMIN_KEY, TestApp, User, unique};
use crate::pages::{Browser, HOSTILE, key, of};
use crate::samples::{painter, paints};

/// A query that no paint has a word of.
const MISS: &str = "xylophone quartet";

/// A figure with its name.
fn figure(name: &str, value: &str) -> String {
    format!("<dt>{name}</dt><dd>{value}</dd>")
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}

/// The lines of an exported file, by column.
fn read_csv(text: &str) -> Vec<Vec<(String, String)>> {
    let mut lines = text.split("\r\n");
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let lines: Vec<&str> = lines.collect();
    let (last, lines) = lines.split_last().expect("an end");
    assert_eq!(*last, "", "every line ends");
    let read = |line: &&str| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), names.len(), "{line}");
        names.iter().zip(fields).map(|(name, field)| ((*name).to_owned(), field.to_owned())).collect()
    };
    lines.iter().map(read).collect()
}

fn sum(lines: &[Vec<(String, String)>], column: &str) -> i64 {
    let fields = lines.iter().flatten().filter(|(name, _)| name == column);
    fields.map(|(_, field)| field.parse::<i64>().expect("a number")).sum()
}

async fn ask(user: &User, queries: &[&str]) {
    for query in queries {
        user.search(json!({"session": "s", "query": query})).await.ok();
    }
}

#[tokio::test]
async fn the_numbers_are_those_of_the_traffic() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"keep_missed_queries": true})).await;
    let (mut all, mut sent) = (0, 0);
    for _ in 0..3 {
        let answer = user.assemble(json!({"session": "s", "context_window": 2_000})).await.ok();
        let tokens = |key: &str| answer["tokens"][key].as_i64().unwrap();
        all += tokens("all");
        sent += tokens("all") - tokens("saved");
    }
    ask(&user, &["amber", "amber", "navy", MISS, MISS]).await;
    for _ in 0..2 {
        user.call(json!({"name": "navy", "arguments": {}})).await.ok();
    }
    let shown = app.admin().get(&format!("/v1/setup/overview?user={}", user.id)).await.ok();
    let totals = &shown["totals"];
    let browser = Browser::sign_in(&app, ADMIN_KEY).await;
    let page = browser.page(&of(&user, "overview")).await;
    for (name, value) in [("Turns", "3"), ("Searches", "5"), ("Found nothing", "40.0 %")] {
        assert!(page.contains(&figure(name, value)), "{name}");
    }
    assert!(page.contains("2 of 5 queries") && page.contains("1.67 per turn"));
    let per_turn = |key: &str| totals[key].as_u64().unwrap() / 3;
    assert_eq!((totals["tokens_all"].as_i64(), totals["tokens_sent"].as_i64()), (Some(all), Some(sent)));
    assert!(page.contains(&format!("of {}", grouped(per_turn("tokens_all")))), "what all tools would cost");
    assert!(page.contains(&format!("Answers <b>{}</b>", grouped(per_turn("tokens_answers")))));
    // The queries, the tools and their counts.
    assert!(page.contains(&format!(">{MISS}</a>")) && page.contains("/setup/review?alias=xylophone+quartet"));
    assert!(page.contains("1 query found nothing again and again"));
    let row = |name: &str, found: &str, called: &str| {
        let (_, after) = page.split_once("<h2>Found most</h2>").expect("the list");
        let (_, after) = after.split_once(&format!("catalog/tool?name={name}\"")).expect("the tool");
        let (row, _) = after.split_once("</tr>").expect("its end");
        assert!(row.contains(&format!("{found}</td><td class=\"number\">{called}</td>")), "{name}: {row}");
    };
    row("amber", "2", "0");
    row("navy", "1", "2");
    assert!(page.contains("18 of 20 tools were never found"));
    // What is drawn is told as text and as a table.
    assert!(page.contains("Keyword 5</title>") && page.contains("The numbers as a table"));

    for (days, lines) in [("7", 7), ("30", 30), ("90", 90), ("8", 30), ("x", 30), ("", 30)] {
        let page = browser.page(&of(&user, &format!("overview?days={days}"))).await;
        assert!(page.contains(&format!("Last {lines} days")), "{days}");
        let file = browser.get(&of(&user, &format!("overview.csv?days={days}"))).await;
        file.expect_status(200);
        assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8"));
        let name = format!("attachment; filename=\"toolrack-{}-{lines}-days.csv\"", user.id);
        assert_eq!(file.header("content-disposition"), Some(name.as_str()));
        let days = read_csv(file.text());
        assert_eq!(days.len(), lines);
        for (column, value) in [
            ("assemblies", 3),
            ("tokens_all", all),
            ("tokens_sent", sent),
            ("saved", totals["saved"].as_i64().unwrap()),
            ("searches", 5),
            ("searches_keyword", 5),
            ("degraded", 0),
            ("missed", 2),
            ("calls", 2),
        ] {
            assert_eq!(sum(&days, column), value, "{column}");
        }
    }
    let chinese = browser.get_with(&of(&user, "overview"), &[("accept-language", "zh")]).await;
    assert!(chinese.text().contains("最近 30 天") && chinese.text().contains("提示缓存保持"));
}

#[tokio::test]
async fn a_scope_without_numbers_says_how_to_begin() {
    let app = TestApp::start().await;
    let browser = Browser::sign_in(&app, ADMIN_KEY).await;
    let nobody = app.user();
    let first = browser.page(&of(&nobody, "overview")).await;
    for told in ["No tools yet", "setup/import", &format!("toolrack import tools.json --user {}", nobody.id)]
    {
        assert!(first.contains(told), "{told}");
    }
    assert!(!first.contains("<svg class=\"chart\""), "no empty pictures");
    let user = painter(&app, json!({})).await;
    let ready = browser.page(&of(&user, "overview")).await;
    for told in ["What the next turn sends", "Ready, and not asked yet"] {
        assert!(ready.contains(told), "{told}");
    }
    assert!(!ready.contains("Applied."));
    let applied = browser.page(&of(&user, "overview?applied=1")).await;
    for told in ["Applied.", &of(&user, "playground"), &of(&user, "setup/versions")] {
        assert!(applied.contains(told), "{told}");
    }
    // Who only searches assembles no turn.
    ask(&user, &["amber"]).await;
    let page = browser.page(&of(&user, "overview")).await;
    assert!(page.contains("No turn was assembled in these days") && page.contains(&figure("Searches", "1")));
    let empty = browser.get(&of(&nobody, "overview.csv")).await;
    assert_eq!(sum(&read_csv(empty.text()), "searches"), 0);
}

#[tokio::test]
async fn texts_of_others_stay_texts_and_numbers_of_others_stay_theirs() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"keep_missed_queries": true})).await;
    let other = painter(&app, json!({"keep_missed_queries": true})).await;
    let mut tools = paints();
    tools.push(json!({"name": "wipe", "group": HOSTILE, "description": HOSTILE}));
    user.put_catalog(&tools).await.ok();
    user.assemble(json!({})).await.ok();
    ask(&user, &[&format!("zzyx {HOSTILE} &\"'"), "amber", MISS]).await;
    let project = unique("project");
    user.search(json!({"project": project, "query": "navy"})).await.ok();
    let secret = "frobnicate the quux";
    for _ in 0..7 {
        ask(&other, &[secret, "teal"]).await;
    }
    let setup = Browser::sign_in(&app, &key(&app, "setup", &[&user.id], &[]).await).await;
    let page = setup.page(&of(&user, "overview")).await;
    assert!(!page.contains("<img") && !page.contains("alert(1)</script>"));
    assert!(page.contains("&lt;script&gt;alert(1)"), "the texts are shown");
    assert!(page.contains(&figure("Searches", "3")), "neither the other user's nor the project's");
    for foreign in [secret, &other.id, &project, ">teal<"] {
        let named = page.split_once("id=\"never\"").map_or(page.as_str(), |(before, _)| before);
        assert!(!named.contains(foreign), "{foreign}");
    }
    for foreign in
        [of(&other, "overview"), of(&other, "overview.csv"), format!("/ui/projects/{project}/overview")]
    {
        setup.get(&foreign).await.expect_status(404);
    }
    let admin = Browser::sign_in(&app, ADMIN_KEY).await;
    let of_project = admin.page(&format!("/ui/projects/{project}/overview")).await;
    assert!(of_project.contains(&figure("Searches", "1")) && !of_project.contains(MISS));
    // Where texts are not kept, the page says so and shows none.
    user.put_config(&json!({})).await.ok();
    let page = setup.page(&of(&user, "overview")).await;
    assert!(page.contains("Their texts are not kept") && !page.contains(MISS));
}

#[tokio::test]
async fn what_wants_somebody_is_told_with_where_to_go() {
    let app = TestApp::start().await;
    let config = json!({"require_review_on_change": true, "hot_tools": {"enabled": true}});
    let user = painter(&app, config).await;
    for _ in 0..3 {
        user.call(json!({"name": "teal", "arguments": {}})).await.ok();
    }
    let mut tools = paints();
    tools[0]["description"] = json!(format!("Paints amber, {HOSTILE}"));
    tools[1]["description"] = json!("Paints blue and more.");
    user.put_catalog(&tools).await.ok();
    let ending = |id: &str, name: &str| json!({"name": name, "role": "agent", "users": [id], "expires_in_seconds": 3 * 86_400 + 600});
    app.admin().post("/v1/keys", &ending(&user.id, "<b>nightly</b>")).await.expect_status(201);
    app.admin().post("/v1/keys", &ending(&unique("user"), "of-another")).await.expect_status(201);

    let admin = Browser::sign_in(&app, ADMIN_KEY).await;
    let page = admin.page(&of(&user, "overview")).await;
    let reviews = of(&user, "reviews");
    for told in [
        "2 changed tools wait for approval",
        &format!("href=\"{reviews}\""),
        "Key “&lt;b&gt;nightly&lt;/b&gt;” expires in 3 days",
        "1 tool is called so often that it may as well be core",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert!(!page.contains("of-another"));
    let setup = Browser::sign_in(&app, &key(&app, "setup", &[&user.id], &[]).await).await;
    let seen = setup.page(&of(&user, "overview")).await;
    assert!(
        seen.contains("2 changed tools wait") && !seen.contains("nightly"),
        "keys are the administrators'"
    );

    // The page of changed tools: who may decide, and about which version.
    let looked = setup.page(&reviews).await;
    assert!(looked.contains("Only an administrator approves") && !looked.contains("value=\"approve\""));
    let page = admin.page(&reviews).await;
    assert!(page.contains("value=\"approve\"") && !page.contains("<img"));
    let held = app.admin().get(&user.path(&["catalog", "reviews"])).await.ok();
    let digest = |at: usize| held["tools"][at]["held_digest"].as_str().unwrap().to_owned();
    let fields = |verdict, name, digest| [("do", verdict), ("name", name), ("digest", digest)];
    let (amber, blue) = (digest(0), digest(1));
    setup.submit(&reviews, &fields("approve", "blue", &blue)).await.expect_status(403);
    admin.submit(&reviews, &fields("approve", "blue", &amber)).await.expect_status(409);
    admin.submit(&reviews, &fields("explode", "blue", &blue)).await.expect_status(422);
    let done = admin.submit(&reviews, &fields("approve", "blue", &blue)).await;
    done.expect_status(303);
    assert!(admin.page(done.header("location").unwrap()).await.contains("is approved"));
    admin.submit(&reviews, &fields("reject", "amber", &amber)).await.expect_status(303);
    assert!(admin.page(&reviews).await.contains("Nothing waits"));
    let tool =
        async |name: &str| -> Value { app.admin().get(&user.path(&["catalog", "tools", name])).await.ok() };
    assert_eq!(tool("blue").await["description"], "Paints blue and more.");
    assert_eq!(tool("amber").await["description"], "Paints amber.");
}

#[tokio::test]
async fn a_matcher_that_fails_is_told_with_what_still_works() {
    let app = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", true).start().await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let matcher = json!({"endpoint": format!("http://{gone}/rerank"), "dialect": "cohere", "model": "m"});
    let user = painter(&app, json!({ "matcher": matcher })).await;
    let browser = Browser::sign_in(&app, ADMIN_KEY).await;
    assert!(!browser.page(&of(&user, "overview")).await.contains("The matcher does not answer"));
    ask(&user, &["amber"; 8]).await;
    let page = browser.page(&of(&user, "overview")).await;
    for told in [
        "The matcher does not answer.",
        "Searches go on by keywords",
        &of(&user, "setup/matcher"),
        "Why searches degraded",
        "<code class=\"note\">unreachable</code>",
        "Degraded to keyword <b>8</b>",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert_eq!(sum(&read_csv(browser.get(&of(&user, "overview.csv")).await.text()), "degraded"), 8);
}
