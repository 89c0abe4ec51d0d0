//! Usage as the service meets it: added up, kept apart by scope, bounded, and gone when it is old.

use proptest::prelude::*;

use super::*;
use crate::core::usage::ToolCounts;
use crate::store::{MissedQuery, ToolUsageAdd, ToolUsageRow, UsageAdd, UsageRow};

on_every_backend!(
    counts_add_up_by_scope_and_day_and_outlive_a_restart,
    rows_of_tools_are_bounded_by_scope,
    missed_queries_are_bounded_and_forgotten_with_a_write_of_the_config,
    what_is_old_goes_a_few_rows_at_a_time,
);

fn project(text: &str) -> Scope {
    Scope::Project(id(text))
}

fn add(scope: &Scope, day: i64, counter: &str, value: i64) -> UsageAdd {
    UsageAdd { scope: scope.clone(), day, counter: counter.to_owned(), value }
}

fn tool_add(scope: &Scope, day: i64, name: &str, finds: u64, calls: u64) -> ToolUsageAdd {
    let counts = ToolCounts { finds, calls };
    ToolUsageAdd { scope: scope.clone(), day, tool: ToolKey::new("g", name), counts }
}

fn missed(query: &str, count: i64, last_at_ms: i64) -> MissedQuery {
    MissedQuery { query: query.to_owned(), count, last_at_ms }
}

fn tools(rows: &[ToolUsageRow]) -> Vec<(&str, u64, u64)> {
    rows.iter().map(|row| (&*row.tool.name, row.counts.finds, row.counts.calls)).collect()
}

fn counters(rows: &[UsageRow]) -> Vec<(i64, &str, i64)> {
    rows.iter().map(|row| (row.day, row.counter.as_str(), row.value)).collect()
}

async fn counts_add_up_by_scope_and_day_and_outlive_a_restart(on: Backend) {
    let fixture = Fixture::new(on).await;
    // The same text for a user and a project: two scopes.
    let (u, p) = (user("same"), project("same"));
    for _ in 0..2 {
        let adds = vec![add(&u, 5, "a", 2), add(&u, 5, "b", 1), add(&u, 6, "a", 10), add(&p, 5, "a", 100)];
        fixture.store.add_usage(adds).await.unwrap();
        let adds = vec![tool_add(&u, 5, "x", 3, 0), tool_add(&u, 6, "x", 0, 2), tool_add(&p, 5, "x", 0, 9)];
        fixture.store.add_tool_usage(adds).await.unwrap();
    }
    fixture.store.add_usage(Vec::new()).await.unwrap();
    fixture.store.add_tool_usage(vec![tool_add(&u, 5, "y", 8, 4), tool_add(&u, 6, "z", 9, 4)]).await.unwrap();
    let fixture = fixture.reopen().await;
    let store = &*fixture.store;
    let rows = store.usage(&u, 5).await.unwrap();
    assert_eq!(counters(&rows), [(5, "a", 4), (5, "b", 2), (6, "a", 20)]);
    assert_eq!(counters(&store.usage(&u, 6).await.unwrap()), [(6, "a", 20)]);
    assert_eq!(counters(&store.usage(&p, 0).await.unwrap()), [(5, "a", 200)]);
    assert!(store.usage(&user("other"), 0).await.unwrap().is_empty());
    let all = store.tool_usage(&u, 5, 10).await.unwrap();
    assert_eq!(tools(&all), [("z", 9, 4), ("y", 8, 4), ("x", 6, 4)]);
    assert_eq!(tools(&store.tool_usage(&u, 6, 1).await.unwrap()), [("z", 9, 4)]);
    assert_eq!(tools(&store.tool_usage(&p, 5, 10).await.unwrap()), [("x", 0, 18)]);
}

async fn rows_of_tools_are_bounded_by_scope(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let (u, other) = (user("u"), user("other"));
    let adds = [(1, "old", 9), (2, "b", 1), (2, "a", 1), (2, "c", 5)];
    store
        .add_tool_usage(adds.map(|(day, name, calls)| tool_add(&u, day, name, 0, calls)).into())
        .await
        .unwrap();
    store.add_tool_usage(vec![tool_add(&other, 1, "old", 1, 1)]).await.unwrap();
    store.trim_tool_usage(&u, 2).await.unwrap();
    assert_eq!(tools(&store.tool_usage(&u, 0, 10).await.unwrap()), [("c", 0, 5), ("a", 0, 1)]);
    assert_eq!(tools(&store.tool_usage(&other, 0, 10).await.unwrap()), [("old", 1, 1)]);
}

async fn missed_queries_are_bounded_and_forgotten_with_a_write_of_the_config(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let (u, p) = (user("u"), project("u"));
    store.add_missed_queries(&u, 0, vec![missed("a", 1, 10), missed("b", 5, 20)], 3).await.unwrap();
    store.add_missed_queries(&u, 0, vec![missed("a", 2, 5), missed("ü 'q'", 1, 30)], 3).await.unwrap();
    let rows = store.missed_queries(&u, 10).await.unwrap();
    assert_eq!(rows, [missed("b", 5, 20), missed("a", 3, 10), missed("ü 'q'", 1, 30)]);
    assert_eq!(store.missed_queries(&u, 1).await.unwrap(), [missed("b", 5, 20)]);
    store.add_missed_queries(&u, 0, vec![missed("d", 1, 40)], 3).await.unwrap();
    let queries = |rows: Vec<MissedQuery>| rows.into_iter().map(|row| row.query).collect::<Vec<_>>();
    assert_eq!(queries(store.missed_queries(&u, 10).await.unwrap()), ["b", "d", "ü 'q'"]);

    store.add_missed_queries(&p, 0, vec![missed("theirs", 1, 1)], 3).await.unwrap();
    store.write_config(&u, config("{}", None)).await.unwrap();
    assert_eq!(store.missed_queries(&u, 10).await.unwrap().len(), 3);
    let forgets = ConfigWrite { forget_missed_queries: true, ..config("{\"x\":1}", None) };
    let stale = ConfigWrite { expected_raw_revision: Some(99), ..forgets.clone() };
    assert!(matches!(store.write_config(&u, stale).await, Err(StoreError::Conflict)));
    assert_eq!(store.missed_queries(&u, 10).await.unwrap().len(), 3, "a conflict forgets nothing");
    store.write_config(&u, forgets).await.unwrap();
    assert!(store.missed_queries(&u, 10).await.unwrap().is_empty());
    assert_eq!(store.missed_queries(&p, 10).await.unwrap().len(), 1);
    // Who read the config before that write must look again: it may keep no queries any more.
    for earlier in [0, 1, 3] {
        let late = store.add_missed_queries(&u, earlier, vec![missed("late", 1, 1)], 3).await;
        assert!(matches!(late, Err(StoreError::Conflict)));
    }
    assert!(store.missed_queries(&u, 10).await.unwrap().is_empty());
    store.add_missed_queries(&u, 2, vec![missed("again", 1, 1)], 3).await.unwrap();
    store.write_config(&u, ConfigWrite { forget_missed_queries: true, ..deletion() }).await.unwrap();
    assert!(store.missed_queries(&u, 10).await.unwrap().is_empty());
}

async fn what_is_old_goes_a_few_rows_at_a_time(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let u = user("u");
    store.add_usage((1..=5).map(|day| add(&u, day, "a", 1)).collect()).await.unwrap();
    store.add_tool_usage((1..=5).map(|day| tool_add(&u, day, "x", 0, 1)).collect()).await.unwrap();
    let old = (1..=5).map(|at| missed(&at.to_string(), 1, at)).collect();
    store.add_missed_queries(&u, 0, old, 10).await.unwrap();
    assert_eq!(store.expire_usage(4, 3, 2).await.unwrap(), 6);
    assert_eq!(store.expire_usage(4, 3, 2).await.unwrap(), 2);
    assert_eq!(store.expire_usage(4, 3, 2).await.unwrap(), 0);
    assert_eq!(counters(&store.usage(&u, 0).await.unwrap()), [(4, "a", 1), (5, "a", 1)]);
    assert_eq!(tools(&store.tool_usage(&u, 0, 10).await.unwrap()), [("x", 0, 2)]);
    assert_eq!(store.missed_queries(&u, 10).await.unwrap().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two processes that add at the same time are two callers here: the writer puts them in some order.
    #[test]
    fn concurrent_adds_lose_nothing(adds in prop::collection::vec((0..2_i64, 0..3_usize, 1..50_i64), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut model = std::collections::BTreeMap::new();
        for &(day, counter, value) in &adds {
            *model.entry((day, format!("c{counter}"))).or_insert(0) += value;
        }
        for on in Backend::all() {
        let read = runtime.block_on(async {
            let Fixture { store, directory: _directory } = Fixture::new(on).await;
            let u = user("u");
            let writes = adds.iter().map(|&(day, counter, value)| {
                store.add_usage(vec![add(&u, day, &format!("c{counter}"), value)])
            });
            for written in futures_util::future::join_all(writes).await {
                written.unwrap();
            }
            store.usage(&u, 0).await.unwrap()
        });
        let read: Vec<_> = read.into_iter().map(|row| ((row.day, row.counter), row.value)).collect();
        prop_assert_eq!(read, model.clone().into_iter().collect::<Vec<_>>());
        }
    }
}
