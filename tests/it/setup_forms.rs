//! Forms of the setup flow that are not taken as they were sent: what was typed comes back, the notice names the field, and what
//! was told of an import is told in full.

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, TestApp};
use crate::pages::{Browser, of};

const SECRET: &str = "sk-typed-and-never-given-back";

#[tokio::test]
async fn what_was_typed_comes_back_with_a_notice_that_names_the_field() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/import");
    let long = "g".repeat(200);
    let fields = [("do", "text"), ("text", "{\"a\": <1>}"), ("group", "team \"x\""), ("how", "replace")];
    let refused = browser.submit(&page, &fields).await;
    refused.expect_status(200);
    let text = refused.text();
    assert!(text.contains("Not read:") && text.contains("{&quot;a&quot;: &lt;1&gt;}"), "{text}");
    assert!(text.contains("value=\"team &quot;x&quot;\"") && text.contains("<b>Paste</b>"), "{text}");
    let group = browser.submit(&page, &[("do", "text"), ("text", "[]"), ("group", &long)]).await;
    assert!(group.text().contains("<b>Group of tools that name none</b>"), "{}", group.text());
    assert!(
        group.text().contains(&format!("value=\"{long}\"")) && group.text().contains("aria-invalid=\"true\"")
    );

    // A file that is no text, and one that is too large, with what stands beside them.
    let beside = [("do", "text"), ("text", "{\"tools\": []}"), ("group", "mine")];
    for (file, told) in
        [(vec![0xff; 64], "neither UTF-8 nor UTF-16"), (vec![b' '; 20 << 20], "at most 16 MiB")]
    {
        let refused = browser.upload(&page, &beside, &file).await;
        refused.expect_status(200);
        let text = refused.text();
        assert!(
            text.contains("Not read:") && text.contains(told),
            "{told}: {}",
            &text[..text.len().min(4_000)]
        );
        assert!(text.contains("value=\"mine\"") && text.contains("{&quot;tools&quot;: []}"), "{told}");
    }
    let empty = browser.upload(&page, &[("do", "text")], "").await;
    assert!(empty.text().contains("<b>tools.json</b>: the text is empty"), "{}", empty.text());
    // What Windows writes.
    let tools = json!([{"name": "wide", "description": "Has an ä."}]).to_string();
    let wide: Vec<u8> = [0xfeff].into_iter().chain(tools.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let other = app.user();
    let read = browser.upload(&of(&other, "setup/import"), &[("do", "text")], &wide).await;
    read.expect_status(303);
    assert!(browser.page(&of(&other, "setup/review")).await.contains("Has an ä."));
    // More tools than a catalog holds.
    let tools: Vec<Value> = (0..20_001).map(|at| json!({"name": format!("t{at}")})).collect();
    let refused = browser.upload(&page, &beside, json!(tools).to_string()).await;
    assert!(refused.text().contains("Not read:") && refused.text().contains("20000"), "{}", refused.status);

    let server = [("do", "mcp"), ("name", "odd name"), ("url", "https://h.example/mcp")];
    let headers = [("header", "X-One"), ("header_value", SECRET), ("header", "X-Two"), ("header_value", "")];
    let refused = browser.submit(&page, &[&server[..], &headers].concat()).await;
    let text = refused.text();
    assert!(text.contains("Not asked:") && text.contains("<b>Header X-Two</b>"), "{text}");
    assert!(text.contains("value=\"odd name\"") && text.contains("value=\"X-One\""), "{text}");
    assert!(!text.contains(SECRET), "a secret is typed again");
    app.admin().get(&user.path(&["config"])).await.ok();
    assert!(browser.page(&page).await.contains("Nothing changed yet."));
}

#[tokio::test]
async fn a_server_that_is_refused_stays_in_its_form() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/servers");
    let server = [("do", "save"), ("name", "files"), ("url", "https://h.example/mcp"), ("watch", "on")];
    let header = [("header", "X-Key"), ("header_value", SECRET)];
    for (more, named) in [
        (&[("resync_minutes", "abc")][..], "<b>Again every … minutes</b>"),
        (&[("resync_minutes", "99999")], "<b>Again every … minutes</b>"),
        (&[("header", "Host"), ("header_value", "x")], "<b>Header Host</b>"),
    ] {
        let refused = browser.submit(&page, &[&server[..], &header, more].concat()).await;
        refused.expect_status(422);
        let text = refused.text();
        assert!(text.contains("Not stored:") && text.contains(named), "{named}: {text}");
        for kept in [
            "value=\"files\"",
            "value=\"https://h.example/mcp\"",
            "value=\"X-Key\"",
            "name=\"watch\" checked",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        assert!(!text.contains(SECRET));
    }
    let command = [("do", "save"), ("name", "files"), ("url", "npx -y @scope/files")];
    let refused = browser.submit(&page, &command).await;
    refused.expect_status(422);
    let text = refused.text();
    assert!(text.contains("<b>Address</b>") && text.contains("value=\"npx -y @scope/files\""), "{text}");
    assert_eq!(app.admin().get(&user.path(&["mcp-servers"])).await.ok()["servers"], json!([]));
}

#[tokio::test]
async fn entries_that_are_set_aside_are_named_and_told_beside_their_source() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/import");
    let broken: Vec<Value> =
        (0..230).map(|at| json!({"name": format!("broken_{at}"), "inputSchema": []})).collect();
    // Nothing else in it: why is told at once.
    let refused = browser.submit(&page, &[("do", "text"), ("text", &json!(broken).to_string())]).await;
    for told in ["nothing was found in it", "broken_0<", "bad_schema", "230 entries set aside", "and 30 more"]
    {
        assert!(refused.text().contains(told), "{told}");
    }
    assert!(!refused.text().contains("broken_229<"));

    let mixed =
        json!([{"name": "good", "description": "Does good."}, {"name": "odd <b>", "inputSchema": []}]);
    browser.upload(&page, &[("do", "text")], mixed.to_string()).await.expect_status(303);
    let settings = json!({"version": 1, "core": ["good"], "odd": 1}).to_string();
    browser.submit(&page, &[("do", "text"), ("how", "add"), ("text", &settings)]).await.expect_status(200);
    let shown = browser.page(&page).await;
    for told in [
        "tools.json",
        "1 entry set aside",
        "odd &lt;b&gt;",
        "bad_schema",
        "Pasted text",
        "unknown_import_key",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(
        shown.contains("<b>1 tool</b> in the draft") && shown.contains("<b>1 entry</b> set aside"),
        "{shown}"
    );
    // The file mended: what was told of it is past.
    let mended = json!([{"name": "good", "description": "Does good."}, {"name": "odd", "inputSchema": {"type": "object"}}]);
    browser.upload(&page, &[("do", "text"), ("how", "add")], mended.to_string()).await.expect_status(303);
    let shown = browser.page(&page).await;
    assert!(!shown.contains("set aside") && shown.contains("unknown_import_key"), "{shown}");
}

#[tokio::test]
async fn a_key_in_a_file_is_kept_and_said_to_be() {
    let app = TestApp::start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let page = of(&user, "setup/import");
    let file =
        json!({"version": 1, "matcher": {"endpoint": "https://rank.example/rerank", "apiKey": SECRET}});
    let read = browser.submit(&page, &[("do", "text"), ("text", &file.to_string())]).await;
    assert!(
        read.text().contains("the key is kept in this draft") && !read.text().contains(SECRET),
        "{read:?}"
    );
    assert!(!read.text().contains("is not given back"), "{}", read.text());
    assert!(browser.page(&of(&user, "setup/matcher")).await.contains("One is kept in this draft"));
    let other = app.user();
    let file = json!({"version": 1, "core": ["a"], "matcher": {"apiKey": SECRET}});
    let read =
        browser.submit(&of(&other, "setup/import"), &[("do", "text"), ("text", &file.to_string())]).await;
    assert!(
        !read.text().contains("is kept in this draft") && !read.text().contains(SECRET),
        "{}",
        read.text()
    );
}

#[tokio::test]
async fn a_server_has_as_many_headers_as_it_wants_and_keeps_them() {
    let app = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await;
    let (user, browser) = (app.user(), Browser::sign_in(&app, ADMIN_KEY).await);
    let (page, url) = (of(&user, "setup/servers"), "http://127.0.0.1:9/mcp");
    let server = [("do", "save"), ("name", "files"), ("url", url)];
    let headers = [
        ("header", ""),
        ("header_value", SECRET),
        ("header", "X-Team"),
        ("header_value", "a"),
        ("header", "X-Zone"),
        ("header_value", "b"),
        ("header", ""),
        ("header_value", ""),
    ];
    browser.submit(&page, &[&server[..], &headers].concat()).await.expect_status(303);
    let stored = async || {
        let server = app.admin().get(&user.path(&["mcp-servers", "files"])).await.ok();
        let names = server["headers"].as_object().unwrap().iter();
        names.filter(|(_, text)| text["set"] == true).map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(stored().await, ["Authorization", "X-Team", "X-Zone"]);
    let begun = browser.page(&format!("{page}?name=files&url={url}")).await;
    for name in ["Authorization", "X-Team", "X-Zone"] {
        assert!(begun.contains(&format!("name=\"forget\" value=\"{name}\"")), "{name}: {begun}");
    }
    assert!(!begun.contains(SECRET));
    let change = [("header", "X-More"), ("header_value", "c"), ("forget", "X-Team")];
    browser.submit(&page, &[&server[..], &change].concat()).await.expect_status(303);
    assert_eq!(stored().await, ["Authorization", "X-More", "X-Zone"]);

    // A server of an mcp.json brings the names of its headers along.
    let file = json!({"mcpServers": {"notes": {"url": "https://notes.example/mcp", "headers": {"X-One": "a", "X-Two": "b"}}}});
    let read =
        browser.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &file.to_string())]).await;
    assert!(read.text().contains("name=\"headers\" value=\"X-One,X-Two\""), "{}", read.text());
    let begun =
        browser.page(&format!("{page}?name=notes&url=https://notes.example/mcp&headers=X-One,X-Two")).await;
    assert!(begun.contains("value=\"X-One\"") && begun.contains("value=\"X-Two\""), "{begun}");

    let gone = browser.submit(&page, &[("do", "delete"), ("name", "files")]).await;
    let gone = browser.page(gone.header("location").unwrap()).await;
    assert!(gone.contains("Forgotten: files") && gone.contains("stay in the catalog"), "{gone}");
}
