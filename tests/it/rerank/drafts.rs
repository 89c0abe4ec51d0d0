//! The keys of endpoints beside the setup flow: whose they are and where they are sent.

use serde_json::json;

use super::allowed;
use super::endpoint::Endpoint;
use crate::app::{ADMIN_KEY, path};
use crate::pages::{Browser, key, of};

const SECRET: &str = "sk-of-an-administrator-1d7e";

/// The Authorization headers of all calls since the last time.
fn sent(endpoint: &Endpoint) -> Vec<String> {
    let calls = endpoint.take();
    calls.iter().filter_map(|call| call.header("authorization")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_key_of_a_draft_goes_to_the_origin_that_it_was_given_for_alone() {
    let app = allowed().await;
    let (right, other) = (Endpoint::good().await, Endpoint::good().await);
    let user = app.user();
    user.put_catalog(&[json!({"name": "a", "description": "Tells the weather."})]).await.ok();
    let admin = Browser::sign_in(&app, ADMIN_KEY).await;
    let matcher = |at: &Endpoint| at.url("/v2/rerank");
    let page = of(&user, "setup/matcher");
    let (first, second) = (matcher(&right), matcher(&other));
    admin
        .submit(&page, &[("do", "test"), ("endpoint", &first), ("api_key", SECRET), ("query", "weather")])
        .await
        .expect_status(200);
    assert!(sent(&right).contains(&format!("Bearer {SECRET}")));

    // Somebody who may set this user up as well takes the draft over.
    let setup = Browser::sign_in(&app, &key(&app, "setup", &[user.id.as_str()], &[]).await).await;
    let tried = setup
        .submit(&page, &[("do", "test"), ("endpoint", &second), ("api_key", ""), ("query", "weather")])
        .await;
    tried.expect_status(200);
    assert!(tried.text().contains("was cleared"), "{tried:?}");
    assert_eq!(sent(&other), [""; 0]);
    // Back at the old place it is not there any more.
    setup
        .submit(&page, &[("do", "test"), ("endpoint", &first), ("query", "weather")])
        .await
        .expect_status(200);
    assert_eq!(sent(&right), [""; 0]);

    // By another import, too.
    admin.submit(&page, &[("do", "on"), ("endpoint", &first), ("api_key", SECRET)]).await.expect_status(303);
    let import =
        json!({"version": 1, "matcher": {"endpoint": second, "model": "m"}, "core": ["a"]}).to_string();
    let import = setup.submit(&of(&user, "setup/import"), &[("do", "text"), ("text", &import)]).await;
    import.expect_status(200);
    setup.submit(&of(&user, "setup/apply"), &[]).await.expect_status(303);
    let config = user.client().get(&user.path(&["config"])).await.json();
    assert_eq!(
        (&config["matcher"]["endpoint"], &config["matcher"]["api_key"]),
        (&json!(second), &json!(null))
    );
}

#[tokio::test]
async fn the_pages_of_a_project_show_nothing_of_any_user() {
    let app = allowed().await;
    let endpoint = Endpoint::good().await;
    // An id that anybody could have.
    let dash = app.user_called("-");
    dash.put_catalog(&[json!({"name": "payroll_secret", "description": "Reads the payroll ledger."})])
        .await
        .ok();
    dash.put_config(&json!({"matcher": {"endpoint": endpoint.url("/v2/rerank"), "api_key": SECRET}}))
        .await
        .ok();
    let project = path(&["v1", "projects", "only", "catalog"]);
    let tools = json!({"tools": [{"name": "own", "description": "Reads the weather."}]});
    app.admin().put(&project, &tools).await.ok();
    endpoint.take();
    let setup = Browser::sign_in(&app, &key(&app, "setup", &[], &["only"]).await).await;
    for page in ["playground?q=payroll+ledger", "setup/review", "setup/groups", "catalog", "overview"] {
        let page = setup.page(&format!("/ui/projects/only/{page}")).await;
        assert!(!page.contains("payroll_secret") && !page.contains("payroll ledger</"), "{page}");
    }
    assert_eq!(sent(&endpoint), [""; 0]);
}
