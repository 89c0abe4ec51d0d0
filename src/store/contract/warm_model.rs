//! A warm set against a model of it: any sequence of writes, touches and deletions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// One step against the warm set of a session.
#[derive(Debug, Clone)]
enum Step {
    Write { clear: bool, remove: Vec<u8>, upsert: BTreeMap<u8, (i64, i64, bool)> },
    Touch(BTreeMap<u8, i64>),
    Delete,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (0..9_i64, 0..9_i64, any::<bool>());
    let write = (
        proptest::bool::weighted(0.1),
        proptest::collection::vec(0..12_u8, 0..4),
        proptest::collection::btree_map(0..12_u8, row, 0..12),
    )
        .prop_map(|(clear, remove, upsert)| Step::Write { clear, remove, upsert });
    let touch = proptest::collection::btree_map(0..12_u8, 0..9_i64, 0..6).prop_map(Step::Touch);
    proptest::collection::vec(prop_oneof![6 => write, 3 => touch, 1 => Just(Step::Delete)], 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_warm_set_is_what_its_writes_say(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for on in Backend::all() {
        let steps = steps.clone();
        runtime.block_on(async {
            let Fixture { store, directory: _directory } = Fixture::new(on).await;
            let key = session("u", None, "s");
            let name = |number: u8| format!("t{number:02}");
            let mut model: Option<BTreeMap<u8, (i64, i64, bool)>> = None;
            for step in steps {
                match step {
                    Step::Write { clear, remove, upsert } => {
                        let rows = model.get_or_insert_default();
                        if clear {
                            rows.clear();
                        }
                        rows.retain(|number, _| !remove.contains(number));
                        for (&number, &(seq, used, pinned)) in &upsert {
                            let row = rows.entry(number).or_insert((seq, used, pinned));
                            *row = (row.0, row.1.max(used), pinned);
                        }
                        let upsert = upsert.into_iter().map(|(number, (seq, used, pinned))| {
                            WarmRow { pinned, ..warm(&name(number), seq, used) }
                        });
                        let remove = remove.into_iter().map(|number| ToolKey::new("g", &name(number)));
                        store
                            .write_session(SessionWrite {
                                clear,
                                remove: remove.collect(),
                                upsert: upsert.collect(),
                                ..SessionWrite::new(key.clone(), 1)
                            })
                            .await
                            .unwrap();
                    }
                    Step::Touch(touches) => {
                        for (number, &used) in &touches {
                            if let Some(row) = model.as_mut().and_then(|rows| rows.get_mut(number)) {
                                row.1 = row.1.max(used);
                            }
                        }
                        let names: Vec<_> = touches.iter().map(|(&number, &used)| (name(number), used)).collect();
                        let touches: Vec<_> = names.iter().map(|(name, used)| (name.as_str(), *used)).collect();
                        store.touch_sessions(vec![touch((&key, 1), 1, &touches)]).await.unwrap();
                    }
                    Step::Delete => {
                        assert_eq!(store.delete_session(&key, None).await.unwrap(), model.take().is_some());
                    }
                }
                let expected = model.as_ref().map(|rows| {
                    let rows = rows.iter().map(|(&number, &(seq, used, pinned))| {
                        WarmRow { pinned, ..warm(&name(number), seq, used) }
                    });
                    let mut rows: Vec<_> = rows.collect();
                    rows.sort_by_key(|row| (row.first_seq, row.tool.clone()));
                    rows
                });
                assert_eq!(store.session(&key).await.unwrap().map(|row| row.warm), expected);
            }
        });
        }
    }
}
