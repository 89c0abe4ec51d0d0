//! The quality of retrieval on the committed set (`tests/quality/`), beside the committed figures.
//!
//! `UPDATE_QUALITY=1 cargo test --test it quality` writes the figures anew; commit them with what changed them.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolrack::eval::{Metric, Report, Run, RunReport, Set, SetReport, Setting, Summary, evaluate};

use crate::inside::service;

/// How far a figure of all queries may fall below the committed one. A kind or language may lose one query more than that
/// share of its own.
const ALLOWED: [(Metric, f64); 3] =
    [(Metric::RecallAt5, 0.02), (Metric::NoMatchRecall, 0.05), (Metric::NoMatchPrecision, 0.05)];

/// Two names stand in two groups each. Nothing else: no label without its tool, no tool set aside, and the ranking before
/// the floor is the service's own.
const NOTES: [&str; 1] = ["warnings `name_qualified` about tools: 4"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quality")
}

fn read(file: &str) -> String {
    let path = folder().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn committed_set() -> Set {
    Set::read("committed", &read("tools.jsonl"), &read("queries.jsonl")).unwrap()
}

async fn run(set: &Set, config: Value) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting { name: "default".to_owned(), config };
    evaluate(&service(folder.path()).await.1, set, &setting, 20).await.unwrap()
}

fn figures(summary: &Summary) -> Value {
    let figures = ALLOWED.iter().filter_map(|(metric, _)| {
        let figure = summary.figures.get(*metric)?;
        Some((metric.key().to_owned(), json!((figure * 10_000.0).round() / 10_000.0)))
    });
    Value::Object(figures.collect())
}

/// What is committed: the figures of all queries, of kinds and of languages.
fn baseline(run: &RunReport) -> Value {
    let groups = [("kinds", &run.kinds), ("languages", &run.languages)].map(|(name, groups)| {
        let groups: Map<String, Value> =
            groups.iter().map(|(group, summary)| (group.clone(), figures(summary))).collect();
        (name, groups)
    });
    let mut baseline = json!({"all": figures(&run.all)});
    groups.into_iter().for_each(|(name, groups)| baseline[name] = Value::Object(groups));
    baseline
}

#[tokio::test]
async fn retrieval_is_as_good_as_committed() {
    let set = committed_set();
    let report = SetReport::of(&set, vec![run(&set, json!({})).await], false);
    let measured = &report.runs[0];
    assert_eq!(measured.notes, NOTES);
    let now = baseline(measured);
    let file = folder().join("baseline.json");
    if std::env::var_os("UPDATE_QUALITY").is_some_and(|value| value == "1") {
        std::fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&now).unwrap())).unwrap();
    }
    let committed: Value = serde_json::from_str(&read("baseline.json")).unwrap();
    let fallen = fallen(measured, &committed, &now);
    assert!(fallen.is_empty(), "{}\n{}", fallen.join("\n"), Report::new(20, vec![report]).markdown());
}

/// The figures that are lower than committed by more than is allowed.
fn fallen(measured: &RunReport, committed: &Value, now: &Value) -> Vec<String> {
    let all = std::iter::once(("/all".to_owned(), measured.all.queries, 0.0));
    let of = |name: &'static str, groups: &std::collections::BTreeMap<String, Summary>| {
        groups
            .iter()
            .map(move |(group, summary)| (format!("/{name}/{group}"), summary.queries, 1.0))
            .collect::<Vec<_>>()
    };
    let groups = all.chain(of("kinds", &measured.kinds)).chain(of("languages", &measured.languages));
    let mut fallen = Vec::new();
    for (place, queries, spare) in groups {
        for (metric, allowed) in ALLOWED {
            // The precision of "no match" among a few queries swings with each; all of them together tell.
            if spare > 0.0 && metric == Metric::NoMatchPrecision {
                continue;
            }
            let figure = |from: &Value| from.pointer(&place).and_then(|group| group[metric.key()].as_f64());
            let Some(was) = figure(committed) else { continue };
            let least = was - allowed - spare / queries as f64;
            match figure(now) {
                Some(is) if is >= least => {}
                is => fallen.push(format!("{place}: {} fell from {was} to {is:?}", metric.key())),
            }
        }
    }
    fallen
}

#[tokio::test]
async fn aliases_and_endpoints_count_as_they_are_configured() {
    let queries = "{\"query\":\"gorblax\",\"relevant\":[\"send_email\"]}\n{\"query\":\"delete file\",\"relevant\":[\"delete_file\"]}";
    let set = Set::read("two", &read("tools.jsonl"), queries).unwrap();
    let plain = run(&set, json!({})).await;
    assert_eq!(plain.rows[0].outcome.places, [0; 0]);
    assert!(plain.rows[0].outcome.answered_none);
    assert_eq!(plain.rows[1].outcome.places, [1]);
    let aliased = run(&set, json!({"aliases": {"send_email": ["gorblax"]}})).await;
    assert_eq!(aliased.rows[0].outcome.places, [1]);
    assert_eq!(aliased.notes, NOTES);
    // An endpoint that does not answer leaves the keyword ranking, and is not passed over in silence.
    let endpoint = json!({"matcher": {"endpoint": "http://127.0.0.1:9/rerank"}});
    let degraded = run(&set, endpoint).await;
    assert_eq!(degraded.rows[1].outcome.places, [1]);
    assert!(degraded.notes.iter().any(|note| note.contains("endpoint failed")), "{:?}", degraded.notes);
}

#[test]
fn the_committed_set_covers_what_it_should() {
    let set = committed_set();
    let count = |test: &dyn Fn(&toolrack::eval::Query) -> bool| {
        set.queries.iter().filter(|query| test(query)).count()
    };
    assert!(set.tools.len() >= 200 && set.queries.len() >= 150);
    for kind in ["keywords", "task", "symptom", "exact", "typo", "multi", "none", "multilingual"] {
        assert!(count(&|query| query.kind.as_deref() == Some(kind)) >= 10, "{kind}");
    }
    for lang in ["zh", "ja", "ko", "es", "de", "fr", "pt", "ru", "vi", "ar", "hi"] {
        assert!(count(&|query| query.lang.as_deref() == Some(lang)) >= 15, "{lang}");
    }
    let unserved = |query: &toolrack::eval::Query| query.relevant.is_empty();
    assert_eq!(count(&unserved), count(&|query| query.kind.as_deref() == Some("none")));
    assert!(count(&unserved) >= 15);
}
