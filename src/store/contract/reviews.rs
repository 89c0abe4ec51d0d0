//! Versions that wait, and approved ones that were removed: they change with their catalog or not at all.

use super::*;

on_every_backend!(
    a_version_waits_until_it_is_overtaken_dropped_or_approved,
    a_removed_tool_comes_back_as_it_was,
    any_number_of_tools_waits_and_is_remembered,
);

fn keys(names: &[&str]) -> Vec<ToolKey> {
    names.iter().map(|name| ToolKey::new("g", name)).collect()
}

fn version(name: &str, body: &str) -> HeldVersion {
    let row = tool("g", name, body);
    HeldVersion { tool: ToolKey::new("g", name), body: row.body, digest: row.digest }
}

fn held(name: &str, body: &str, uploaded_by: &str, held_at_ms: i64) -> HeldRow {
    let HeldVersion { tool, body, digest } = version(name, body);
    HeldRow { tool, body, digest, uploaded_by: uploaded_by.to_owned(), held_at_ms }
}

/// A write under which the catalog keeps its version.
fn write(by: &str, now_ms: i64, reviews: ReviewWrite) -> CatalogWrite {
    CatalogWrite { by: by.to_owned(), now_ms, reviews, ..catalog("v1", "v1", &[], vec![]) }
}

async fn with_tools(on: Backend, names: &[&str]) -> (Fixture, Scope) {
    let fixture = Fixture::new(on).await;
    let u = user("u");
    let tools = names.iter().map(|name| tool("g", name, "old")).collect();
    let upload = CatalogWrite { by: "ann".to_owned(), now_ms: 10, ..catalog("", "v1", &[], tools) };
    fixture.store.write_catalog(&u, upload).await.unwrap();
    (fixture, u)
}

async fn origin(store: &dyn Store, scope: &Scope, name: &str) -> (i64, i64, String) {
    let found = store.provenance(scope, &ToolKey::new("g", name)).await.unwrap().unwrap();
    (found.first_seen_ms, found.changed_at_ms, found.uploaded_by)
}

async fn a_version_waits_until_it_is_overtaken_dropped_or_approved(on: Backend) {
    let (fixture, u) = with_tools(on, &["x", "y", "z"]).await;
    assert_eq!(fixture.store.reviews(&u).await.unwrap(), ReviewRows::default());
    let hold = vec![version("y", "new"), version("x", "new"), version("z", "{\r\n \"d\": \"é\" } ")];
    let first = ReviewWrite { hold, ..ReviewWrite::default() };
    fixture.store.write_catalog(&u, write("bob", 20, first.clone())).await.unwrap();
    let stale = fixture.store.write_catalog(&u, write("bob", 21, first)).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    let second =
        ReviewWrite { expected_revision: 1, hold: vec![version("x", "newer")], ..ReviewWrite::default() };
    fixture.store.write_catalog(&u, write("cy", 30, second)).await.unwrap();

    let fixture = fixture.reopen().await;
    let rows = fixture.store.reviews(&u).await.unwrap();
    let weird = held("z", "{\r\n \"d\": \"é\" } ", "bob", 20);
    assert_eq!(rows.held, [held("x", "newer", "cy", 30), held("y", "new", "bob", 20), weird]);
    assert_eq!((rows.revision, rows.removed), (2, vec![]));
    assert_eq!(fixture.store.reviews(&Scope::Project(id("u"))).await.unwrap(), ReviewRows::default());
    let served = fixture.store.catalog(&CatalogOwner::Scope(u.clone())).await.unwrap();
    assert!(served.tools.iter().all(|row| &*row.body == "old"), "what waits is not served");

    let settle = ReviewWrite {
        expected_revision: 2,
        approve: keys(&["x", "no"]),
        drop: keys(&["y"]),
        ..ReviewWrite::default()
    };
    let approved = ToolRow { tokens: "[9]".to_owned(), ..tool("g", "x", "newer") };
    let change = CatalogWrite {
        new_version: "v2".to_owned(),
        upsert: vec![approved.clone()],
        ..write("admin", 40, settle)
    };
    fixture.store.write_catalog(&u, change.clone()).await.unwrap();
    let rows = fixture.store.catalog(&CatalogOwner::Scope(u.clone())).await.unwrap();
    assert_eq!(rows.tools, [approved, tool("g", "y", "old"), tool("g", "z", "old")]);
    assert_eq!(origin(&*fixture.store, &u, "x").await, (10, 40, "cy".to_owned()));
    assert_eq!(origin(&*fixture.store, &u, "y").await, (10, 10, "ann".to_owned()));
    let rows = fixture.store.reviews(&u).await.unwrap();
    assert_eq!((rows.revision, rows.held.len()), (3, 1));
    assert!(matches!(fixture.store.write_catalog(&u, change).await, Err(StoreError::Conflict)));
    assert_eq!(fixture.store.reviews(&u).await.unwrap(), rows, "a conflict changes nothing");
}

async fn a_removed_tool_comes_back_as_it_was(on: Backend) {
    let (fixture, u) = with_tools(on, &["x", "y"]).await;
    let remember = ReviewWrite { remember: keys(&["x", "y"]), ..ReviewWrite::default() };
    let delete = CatalogWrite { new_version: String::new(), ..write("bob", 20, remember) };
    fixture.store.write_catalog(&u, delete).await.unwrap();
    let fixture = fixture.reopen().await;
    let removed = |name: &str| {
        let HeldVersion { tool, body, digest } = version(name, "old");
        RemovedRow { tool, body, digest }
    };
    let rows = fixture.store.reviews(&u).await.unwrap();
    assert_eq!((rows.held, rows.removed), (vec![], vec![removed("x"), removed("y")]));

    let back = ReviewWrite {
        expected_revision: 1,
        restore: keys(&["x"]),
        hold: vec![version("x", "new")],
        ..ReviewWrite::default()
    };
    let upsert = vec![tool("g", "x", "old"), tool("g", "n", "new")];
    let upload = CatalogWrite { reviews: back, ..catalog("", "v2", &[], upsert) };
    fixture
        .store
        .write_catalog(&u, CatalogWrite { by: "cy".to_owned(), now_ms: 30, ..upload })
        .await
        .unwrap();
    assert_eq!(origin(&*fixture.store, &u, "x").await, (10, 10, "ann".to_owned()));
    assert_eq!(origin(&*fixture.store, &u, "n").await, (30, 30, "cy".to_owned()));
    let rows = fixture.store.reviews(&u).await.unwrap();
    assert_eq!((rows.held, rows.removed), (vec![held("x", "new", "cy", 30)], vec![removed("y")]));

    let forget = ReviewWrite { expected_revision: 2, forget: true, ..ReviewWrite::default() };
    let write = CatalogWrite { reviews: forget, ..catalog("v2", "v2", &[], vec![]) };
    fixture.store.write_catalog(&u, write).await.unwrap();
    assert!(fixture.store.reviews(&u).await.unwrap().removed.is_empty());
}

async fn any_number_of_tools_waits_and_is_remembered(on: Backend) {
    let names: Vec<String> = (0..300).map(|at| format!("t{at:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (fixture, u) = with_tools(on, &names).await;
    let hold = names.iter().map(|name| version(name, "new")).collect();
    let reviews = ReviewWrite { hold, remember: keys(&names), ..ReviewWrite::default() };
    fixture.store.write_catalog(&u, write("bob", 20, reviews)).await.unwrap();
    let rows = fixture.store.reviews(&u).await.unwrap();
    assert_eq!((rows.held.len(), rows.removed.len()), (300, 300));
    let reviews = ReviewWrite { expected_revision: 1, approve: keys(&names), ..ReviewWrite::default() };
    fixture.store.write_catalog(&u, write("admin", 30, reviews)).await.unwrap();
    let served = fixture.store.catalog(&CatalogOwner::Scope(u.clone())).await.unwrap();
    assert!(served.tools.len() == 300 && served.tools.iter().all(|row| &*row.body == "new"));
    assert!(fixture.store.reviews(&u).await.unwrap().held.is_empty());
}
