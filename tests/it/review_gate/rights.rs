//! Who decides about a change, and what the log of changes tells of it.

use super::*;

#[tokio::test]
async fn who_uploads_a_change_does_not_approve_it() {
    let app = TestApp::start().await;
    let (user, project) = (unique("user"), unique("project"));
    let setup = make(&app, "setup", json!({"users": [user], "projects": [project]})).await;
    let agent = make(&app, "agent", json!({"users": [user], "projects": [project]})).await;
    let admin = make(&app, "admin", json!({})).await;
    for (kind, id) in [("users", &user), ("projects", &project)] {
        let by_setup = Scope::of(&app.with_key(&setup.key), kind, id);
        by_setup.gate(true).await.ok();
        by_setup.put(&[mail("address")]).await.ok();
        by_setup.put(&[mail("secret")]).await.ok();
        let looked_at = by_setup.looked_at().await;
        for verdict in ["approve", "reject"] {
            by_setup.decide(verdict, &looked_at).await.problem(403, "forbidden");
        }
        let by_agent = Scope::of(&app.with_key(&agent.key), kind, id);
        by_agent.decide("approve", &looked_at).await.problem(403, "forbidden");
        by_agent.client.get(&format!("{}/catalog/reviews", by_agent.base)).await.problem(403, "forbidden");

        // Nor does it turn the gate off, by whatever write of the config.
        let config = format!("{}/config", by_setup.base);
        for refused in [
            by_setup.gate(false).await,
            by_setup.client.patch(&config, &json!({"require_review_on_change": null})).await,
            by_setup.client.put(&config, &json!({"max_warm_tools": 3})).await,
            by_setup.client.put(&format!("{config}?dry_run=true"), &json!({})).await,
            by_setup.client.delete(&config).await,
        ] {
            let problem = refused.problem(403, "forbidden");
            assert_eq!(problem["errors"][0]["pointer"], "/require_review_on_change");
        }
        by_setup.client.patch(&config, &json!({"max_warm_tools": 3})).await.ok();

        let by_admin = Scope::of(&app.with_key(&admin.key), kind, id);
        by_admin.decide("approve", &looked_at).await.ok();
        let tool = by_admin.tool("send_mail").await;
        assert_eq!(tool["parameters"], mail("secret")["parameters"]);
        assert_eq!(tool["provenance"]["uploaded_by"], json!(setup.id()));
        let entries = by_admin.actions().await;
        let entry = &entries[0];
        assert_eq!((&entry["action"], &entry["actor"]), (&json!("tool.approve"), &json!(admin.id())));
        assert_eq!(entry["summary"]["tools"], json!({"count": 1, "names": ["send_mail"]}));
        assert_eq!(entry["summary"]["digests"], json!([looked_at[0]["digest"]]));
        assert_ne!(entry["before"], entry["after"]);
        let upload = entries.iter().find(|entry| entry["summary"]["held"]["count"] == 1).unwrap();
        assert_eq!((&upload["action"], &upload["actor"]), (&json!("catalog.put"), &json!(setup.id())));
        assert_eq!(upload["before"], upload["after"], "what is served stays");
        by_admin.gate(false).await.ok();
        by_setup.put(&[mail("token")]).await.ok();
    }
}

#[tokio::test]
async fn each_scope_decides_for_its_own_catalog() {
    let app = TestApp::start().await;
    let project = unique("project");
    let user = app.user();
    let of_project = Scope::of(app.admin(), "projects", &project);
    let of_user = Scope::of(app.admin(), "users", &user.id);
    of_project.gate(true).await.ok();
    of_project.put(&[mail("address"), other()]).await.ok();
    let before = seen(&user, Some(&project)).await;
    of_project.put(&[mail("secret"), other()]).await.ok();
    assert_eq!(seen(&user, Some(&project)).await, before);
    // The user's own catalog has no gate.
    of_user.put(&[mail("copy")]).await.ok();
    let changed = of_user.put(&[mail("own")]).await.ok();
    assert_eq!((&changed["changed"]["count"], &changed["held"]["count"]), (&json!(1), &json!(0)));
    assert!(of_user.looked_at().await.is_empty());
    of_user.client.delete(&format!("{}/catalog", of_user.base)).await.expect_status(204);

    let looked_at = of_project.looked_at().await;
    of_user.decide("approve", &looked_at).await.problem(409, "conflict");
    of_project.decide("reject", &looked_at).await.ok();
    assert_eq!(seen(&user, Some(&project)).await, before);
    let entry = of_project.actions().await[0].clone();
    assert_eq!((&entry["action"], &entry["before"]), (&json!("tool.reject"), &entry["after"]));
    assert_eq!(entry["summary"]["digests"], json!([looked_at[0]["digest"]]));
}

#[tokio::test]
async fn a_command_is_held_like_a_request() {
    let app = TestApp::start().await;
    let scope = Scope::of(app.admin(), "users", "ada");
    scope.gate(true).await.ok();
    scope.put(&[mail("address")]).await.ok();
    let file = app.folder().join("tools.json");
    std::fs::write(&file, json!([mail("secret")]).to_string()).unwrap();
    let output = app.command(&["import", file.to_str().unwrap(), "--user", "ada"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.contains("tool_held"), "{out} {err}");
    assert_eq!(scope.held().await["tools"][0]["uploaded_by"], "cli");
    assert_eq!(scope.tool("send_mail").await["parameters"], mail("address")["parameters"]);
}
