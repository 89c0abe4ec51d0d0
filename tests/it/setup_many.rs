//! The setup flow with many tools and in several windows: lists page by page, what is done to all of them, groups as a whole, and
//! forms that were made for an earlier draft.

use std::time::Duration;

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, TestApp, User};
use crate::pages::{Browser, of};

/// Tools of two servers: `big` with as many as given, `small` with two.
fn list(big: usize) -> String {
    let tool = |group: &str, name: String| json!({"name": name, "group": group, "description": "", "parameters": {"type": "object"}});
    let mut tools: Vec<Value> = (0..big).map(|at| tool("big", format!("big_{at:04}"))).collect();
    tools.extend(["small_a", "small_b"].map(|name| tool("small", name.to_owned())));
    json!({ "tools": tools }).to_string()
}

async fn with_draft(app: &TestApp, tools: usize) -> (User, Browser) {
    let (user, browser) = (app.user(), Browser::sign_in(app, ADMIN_KEY).await);
    let read = browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &list(tools))]).await;
    read.expect_status(303);
    (user, browser)
}

/// What the draft would write now.
async fn applied(user: &User, browser: &Browser) -> Value {
    browser.submit(&of(user, "setup/apply"), &[]).await.expect_status(303);
    user.client().get(&user.path(&["config"])).await.json()
}

/// The value of the hidden field that tells for which draft a page was made.
pub(crate) fn made_for(page: &str) -> String {
    let (_, after) = page.split_once("name=\"draft\" value=\"").expect("a form with its draft");
    after.split('"').next().expect("a value").to_owned()
}

/// Follows a form to the page that it leads to.
async fn after(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> String {
    let answer = browser.submit(path, fields).await;
    answer.expect_status(303);
    let to = answer.header("location").expect("a way on").to_owned();
    browser.page(to.split('#').next().unwrap_or_default()).await
}

/// Entries of a cache as the metrics tell them.
async fn entries(app: &TestApp, cache: &str) -> u64 {
    let metrics = app.admin().get("/metrics").await;
    let name = format!("toolrack_cache_entries{{cache=\"{cache}\"}} ");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned);
    line.and_then(|count| count.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn what_the_next_pages_show_is_made_before_somebody_asks() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 200).await;
    let other = app.user();
    // The pages of somebody else make one entry each, and have the caches count what came in meanwhile.
    let all_ready = async {
        loop {
            for page in ["setup/review", "setup/groups"] {
                browser.page(&of(&other, page)).await;
            }
            let mut ready = true;
            for cache in ["reviews", "proposals", "previews"] {
                ready &= entries(&app, cache).await == 2;
            }
            if ready {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_ready).await.expect("made without being asked for");
    assert!(browser.page(&of(&user, "setup/groups")).await.contains("200 tools"));
}

#[tokio::test]
async fn groups_tell_their_tools_when_they_are_opened_and_all_of_them() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 250).await;
    let groups = browser.page(&of(&user, "setup/groups")).await;
    assert!(groups.contains("250 tools") && groups.contains("2 tools"), "{groups}");
    assert!(!groups.contains("value=\"big_0000\""), "closed groups do not hold their tools");
    // A link opens it, with or without scripts.
    let to = |page: &str| of(&user, &format!("setup/groups?group=big&tools={page}"));
    let first = browser.page(&to("1")).await;
    assert!(first.contains("value=\"big_0000\"") && !first.contains("value=\"big_0100\""), "{first}");
    assert!(first.contains(">Next<") && !first.contains(">Previous<"));
    let last = browser.page(&to("3")).await;
    assert!(last.contains("value=\"big_0249\"") && last.contains("201–250 of 250"), "{last}");
    assert!(last.contains(">Previous<") && last.contains(">First<") && !last.contains(">Next<"));
    let part = browser.get_with(&to("2"), &[("hx-request", "true")]).await;
    assert!(part.text().starts_with("<div class=\"body\">"), "{}", part.text());
    assert!(part.text().contains("value=\"big_0150\"") && !part.text().contains("<html"));
    browser
        .get_with(&of(&user, "setup/groups?group=none"), &[("hx-request", "true")])
        .await
        .expect_status(404);
    // What is moved from a later page leads back to that page.
    let moved =
        [("do", "move"), ("group", "big"), ("name", "far"), ("tool", "big_0240"), ("tool", "big_0241")];
    let shown = after(&browser, &to("3"), &moved).await;
    assert!(shown.contains("201–248 of 248") && shown.contains("far"), "{shown}");
}

#[tokio::test]
async fn a_whole_group_is_left_out_and_taken_back() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 3).await;
    let groups = of(&user, "setup/groups");
    let out = after(&browser, &groups, &[("do", "out"), ("group", "big")]).await;
    assert!(
        out.contains("The group is left out.") && out.contains("@big") && !out.contains("3 tools"),
        "{out}"
    );
    let review = browser.page(&of(&user, "setup/review?kind=out")).await;
    assert!(review.contains("big_0002") && !review.contains("small_a"), "{review}");
    // One of them alone does not come back by its name, which is said.
    let one = [("do", "include"), ("tool", "big_0001")];
    let told = after(&browser, &of(&user, "setup/review"), &one).await;
    assert!(told.contains("1 tool stay") && told.contains("<code>@big</code>"), "{told}");
    let back = after(&browser, &groups, &[("do", "back"), ("entry", "@big")]).await;
    assert!(back.contains("They are let in again.") && back.contains("3 tools"), "{back}");
    assert_eq!(applied(&user, &browser).await.get("deny"), None);
}

#[tokio::test]
async fn leaving_out_what_has_no_group_leaves_the_proposed_groups_alone() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let named = (0..8).map(|at| format!("tracker_{at}")).chain(["odd".to_owned(), "strange".to_owned()]);
    let tools: Vec<Value> =
        named.map(|name| json!({"name": name, "parameters": {"type": "object"}})).collect();
    let text = json!({ "tools": tools }).to_string();
    browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &text)]).await.expect_status(303);
    let groups = of(&user, "setup/groups");
    let out = after(&browser, &groups, &[("do", "out"), ("group", "other")]).await;
    assert!(out.contains("8 tools") && out.contains("2 tools by name"), "{out}");
    // A group that is only proposed is left out under its name.
    let both = after(&browser, &groups, &[("do", "out"), ("group", "tracker")]).await;
    assert!(both.contains("@tracker"), "{both}");
    let config = applied(&user, &browser).await;
    assert_eq!(config["deny"], json!(["odd", "strange", "@tracker"]));
    assert_eq!(config["groups"][0]["name"], "tracker", "{config}");
}

#[tokio::test]
async fn all_tools_that_match_are_decided_on_at_once() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 120).await;
    let big = of(&user, "setup/review?query=big_");
    let page = browser.page(&big).await;
    assert!(page.contains("All 120 that match") && page.contains("1–50 of 120"), "{page}");
    let last = browser.page(&format!("{big}&page=3")).await;
    assert!(last.contains("101–120 of 120") && last.contains(">Previous<"), "{last}");
    let out = after(&browser, &big, &[("do", "exclude"), ("all", "120")]).await;
    assert!(out.contains("120 tools are left out.") && out.contains("Left out 120"), "{out}");
    // Others match than the page said: nothing is done.
    let other = after(&browser, &big, &[("do", "include"), ("all", "119")]).await;
    assert!(other.contains("other tools match by now") && other.contains("Left out 120"), "{other}");
    let left = of(&user, "setup/review?kind=out");
    let back = after(&browser, &left, &[("do", "include"), ("all", "120")]).await;
    assert!(back.contains("120 tools are let in again."), "{back}");
    let core = after(&browser, &of(&user, "setup/review?query=small"), &[("do", "core"), ("all", "2")]).await;
    assert!(core.contains("2 tools are core."), "{core}");
    let config = applied(&user, &browser).await;
    assert_eq!(config, json!({"core": ["small_a", "small_b"]}));
}

#[tokio::test]
async fn who_chooses_nothing_is_told_so() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 3).await;
    let (review, groups) = (of(&user, "setup/review"), of(&user, "setup/groups"));
    let before = made_for(&browser.page(&review).await);
    for (path, fields, told) in [
        (&review, vec![("do", "exclude")], "no tool was chosen"),
        (&review, vec![("do", "alias"), ("tool", "small_a")], "type what people call the tool"),
        (
            &review,
            vec![("do", "alias"), ("all", "5"), ("alias", "x")],
            "an alias is for the tools that it means",
        ),
        (&groups, vec![("do", "move"), ("group", "big"), ("name", "far")], "no tool was chosen"),
        (&groups, vec![("do", "move"), ("group", "big"), ("tool", "big_0000")], "say into which group"),
        (&groups, vec![("do", "merge"), ("group", "big"), ("name", "big")], "in this group already"),
        (&groups, vec![("do", "forget"), ("group", "nothing")], "no such group any more"),
    ] {
        let shown = after(&browser, path, &fields).await;
        assert!(shown.contains("Nothing was changed:") && shown.contains(told), "{fields:?}: {shown}");
    }
    assert_eq!(made_for(&browser.page(&review).await), before, "the draft is as it was");
}

#[tokio::test]
async fn names_of_the_difference_are_shown_page_by_page() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 120).await;
    let apply = browser.page(&of(&user, "setup/apply")).await;
    assert!(
        apply.contains("122 added") && apply.contains("big_0049") && !apply.contains("big_0050"),
        "{apply}"
    );
    let next = browser.page(&of(&user, "setup/apply?list=added&page=3")).await;
    assert!(
        next.contains("small_b") && next.contains("101–122 of 122") && next.contains(">Previous<"),
        "{next}"
    );
    let part = browser.get_with(&of(&user, "setup/apply?list=added&page=2"), &[("hx-request", "true")]).await;
    assert!(part.text().contains("big_0050") && !part.text().contains("<html"), "{}", part.text());
}

#[tokio::test]
async fn every_form_of_a_step_says_for_which_draft_it_was_made() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 3).await;
    let groups = [("do", "out"), ("group", "small")];
    browser.submit(&of(&user, "setup/groups"), &groups).await.expect_status(303);
    for page in ["import", "review", "groups?group=big", "matcher", "scope", "apply"] {
        let shown = browser.page(&of(&user, &format!("setup/{page}"))).await;
        let steps = format!("action=\"{}", of(&user, "setup/"));
        let forms = shown.split("<form").skip(1).filter(|form| form.contains("method=\"post\""));
        let mut count = 0;
        for form in forms.filter(|form| form.split('>').next().is_some_and(|tag| tag.contains(&steps))) {
            let form = form.split("</form>").next().unwrap_or_default();
            assert!(form.contains("name=\"draft\" value=\""), "{page}: {form}");
            count += 1;
        }
        assert!(count >= 2, "{page}: {count} forms");
    }
}

#[tokio::test]
async fn a_form_of_an_earlier_draft_gets_the_present_page_and_changes_nothing() {
    let app = TestApp::start().await;
    let (user, browser) = with_draft(&app, 3).await;
    let secret = "sk-typed-in-a-stale-window";
    let old = made_for(&browser.page(&of(&user, "setup/scope")).await);
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "6")]).await.expect_status(303);
    let now = made_for(&browser.page(&of(&user, "setup/scope")).await);
    assert_ne!(old, now);
    for (step, fields, title) in [
        ("import", vec![("do", "text"), ("text", "{\"tools\": []}")], "Import tools"),
        ("review", vec![("do", "exclude"), ("tool", "small_a")], "Review tools"),
        ("groups", vec![("do", "forget"), ("group", "big")], "Groups and core tools"),
        (
            "matcher",
            vec![("do", "on"), ("endpoint", "https://rank.example/r"), ("api_key", secret)],
            "Matcher",
        ),
        ("scope", vec![("max_warm_tools", "9")], "Scope"),
        ("apply", vec![], "Apply"),
        ("rebase", vec![("theirs", "core")], "Apply"),
        ("discard", vec![], "Apply"),
    ] {
        let fields = [fields, vec![("draft", old.as_str())]].concat();
        let stale = browser.submit(&of(&user, &format!("setup/{step}")), &fields).await;
        stale.expect_status(409);
        let text = stale.text();
        assert!(text.contains("changed in another window") && text.contains(title), "{step}: {text}");
        assert!(text.contains(&now) && !text.contains(&old) && !text.contains(secret), "{step}: {text}");
    }
    assert_eq!(made_for(&browser.page(&of(&user, "setup/scope")).await), now, "nothing was changed");
    // What was sent stands there, to be sent again where that is wanted.
    let mine = [("max_warm_tools", "9"), ("draft", old.as_str())];
    let stale = browser.submit(&of(&user, "setup/scope"), &mine).await;
    assert!(
        stale.text().contains("What you sent")
            && stale.text().contains("name=\"max_warm_tools\" value=\"9\"")
    );
    let again = [("max_warm_tools", "9"), ("draft", now.as_str())];
    browser.submit(&of(&user, "setup/scope"), &again).await.expect_status(303);
    // A draft that was begun anew is another one.
    let first = made_for(&browser.page(&of(&user, "setup/scope")).await);
    browser.submit(&of(&user, "setup/discard"), &[]).await.expect_status(303);
    browser.submit(&of(&user, "setup/scope"), &[("max_warm_tools", "7")]).await.expect_status(303);
    assert_eq!(browser.submit(&of(&user, "setup/scope"), &[("draft", first.as_str())]).await.status, 409);
    assert_eq!(applied(&user, &browser).await, json!({"max_warm_tools": 7}));
}
