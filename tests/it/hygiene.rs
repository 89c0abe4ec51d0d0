//! What browsers are told: pages hold no script and no style, and no other site frames, reads or writes.

use reqwest::Method;
use serde_json::json;

use crate::app::{Answer, TestApp};

const FOREIGN: &str = "https://evil.example";
const ALLOWED: &str = "https://app.example:8443";

/// The pages of this server.
const PAGES: [&str; 4] = ["/docs/", "/docs/index.html", "/docs/errors", "/docs/oauth2-redirect.html"];

fn protected(answer: &Answer) {
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
    assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{answer:?}");
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{answer:?}");
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{answer:?}");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
}

async fn from(app: &TestApp, origin: &str, method: Method, path: &str) -> Answer {
    let headers = [("origin", origin), ("content-type", "application/json")];
    app.admin().send(method, path, &headers, "{}".into()).await
}

async fn preflight(app: &TestApp, origin: &str) -> Answer {
    let headers = [("origin", origin), ("access-control-request-method", "PUT")];
    app.anonymous().send(Method::OPTIONS, "/v1/users/u/config", &headers, "".into()).await
}

#[tokio::test]
async fn every_answer_is_protected_and_what_needs_a_key_is_never_kept() {
    let app = TestApp::start().await;
    for path in
        PAGES.into_iter().chain(["/docs/swagger-ui.css", "/docs/errors.css", "/openapi.json", "/healthz"])
    {
        let answer = app.anonymous().get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        protected(&answer);
        assert_eq!(answer.header("cache-control"), None, "{path}");
    }
    for answer in [
        app.admin().get("/v1/users/u/config").await,
        app.admin().get("/metrics").await,
        app.admin().get("/v1/nowhere").await,
        app.anonymous().get("/v1/users/u/config").await,
        app.admin().post("/v1/search", &json!({"query": 7})).await,
    ] {
        protected(&answer);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
    }
}

#[tokio::test]
async fn pages_hold_no_script_and_no_style() {
    let app = TestApp::start().await;
    for path in PAGES {
        let answer = app.anonymous().get(path).await;
        assert!(answer.header("content-type").unwrap().starts_with("text/html"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("script-src 'self'; style-src 'self';"), "{path}: {policy}");
        let page = answer.text().to_lowercase();
        for held in ["<style", " style=", "javascript:", "<base", " onload=", " onclick=", " onerror="] {
            assert!(!page.contains(held), "{path} holds {held}");
        }
        for script in page.split("<script").skip(1) {
            let (attributes, rest) = script.split_once('>').unwrap();
            let text = rest.split("</script").next().unwrap();
            assert!(attributes.contains("src=") && text.trim().is_empty(), "{path}: {script}");
        }
    }
}

#[tokio::test]
async fn no_other_site_reads_answers_unless_the_settings_name_it() {
    let closed = TestApp::start().await;
    let open = TestApp::builder().set("TOOLRACK_SERVER_CORS_ORIGINS", ALLOWED).start().await;
    for (app, origin) in [(&closed, FOREIGN), (&closed, ALLOWED), (&open, FOREIGN), (&open, "null")] {
        for answer in [
            from(app, origin, Method::PUT, "/v1/users/u/config").await,
            preflight(app, origin).await,
            app.anonymous().send(Method::GET, "/openapi.json", &[("origin", origin)], "".into()).await,
        ] {
            assert!(
                answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")),
                "{answer:?}"
            );
        }
        assert_eq!(preflight(app, origin).await.status, 401);
    }
    let permission = preflight(&open, ALLOWED).await;
    assert_eq!((permission.status, permission.header("access-control-allow-origin")), (204, Some(ALLOWED)));
    assert!(permission.header("access-control-allow-methods").unwrap().contains("PUT"));
    assert!(permission.header("access-control-allow-headers").unwrap().contains("authorization"));
    let answer = from(&open, ALLOWED, Method::PUT, "/v1/users/u/config").await;
    answer.ok();
    assert_eq!(answer.header("access-control-allow-origin"), Some(ALLOWED));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("etag"));
    assert_eq!(
        (answer.header("vary"), answer.header("access-control-allow-credentials")),
        (Some("origin"), None)
    );
    // A refusal can be read, too, so that the page can say what is wrong.
    let headers = [("origin", ALLOWED)];
    let refused = open.anonymous().send(Method::GET, "/v1/limits", &headers, "".into()).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some(ALLOWED)));
}

#[tokio::test]
async fn a_server_without_keys_takes_nothing_from_pages_of_other_sites() {
    let app = TestApp::builder().no_auth().start().await;
    let reset = |headers: Vec<(&'static str, &'static str)>| {
        let client = app.anonymous();
        async move { client.send(Method::DELETE, "/v1/users/u/config", &headers, "".into()).await }
    };
    reset(vec![("origin", FOREIGN)]).await.problem(403, "forbidden");
    reset(vec![("origin", "null")]).await.problem(403, "forbidden");
    reset(vec![("host", "evil.example")]).await.problem(403, "forbidden");
    assert!(reset(vec![]).await.status < 300);
    let own = app.url().to_owned();
    let answer =
        app.anonymous().send(Method::DELETE, "/v1/users/u/config", &[("origin", &own)], "".into()).await;
    assert!(answer.status < 300, "{answer:?}");
}

#[tokio::test]
async fn pages_with_forms_send_them_to_this_server_alone() {
    let app = TestApp::start().await;
    for (path, status) in
        [("/ui/sign-in", 200), ("/ui/assets/ui.css", 200), ("/ui", 303), ("/ui/nothing", 303)]
    {
        let answer = app.anonymous().get(path).await;
        answer.expect_status(status);
        // So that the browser tells this server, and no other, where a form comes from.
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(policy.contains("form-action 'self'"), path == "/ui/sign-in", "{policy}");
    }
    let form = [("origin", FOREIGN), ("content-type", "application/x-www-form-urlencoded")];
    let answer = app.anonymous().send(Method::POST, "/ui/sign-in", &form, "key=x".into()).await;
    answer.expect_status(403);
}
