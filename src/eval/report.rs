//! What was measured, as JSON for programs and as Markdown for people (also on a terminal: columns are padded).

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{Difference, Pair, RESAMPLES, paired};
use super::goals::{Goal, Goals};
use super::metrics::{Metric, Outcome, Summary};
use super::modes::{self, SetModes};
use super::set::{Half, Set};
use super::{Resident, Row, Run};

/// All sets of one command.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of the program.
    pub toolrack: &'static str,
    /// Matches per query that rankings were measured on.
    pub limit: u32,
    pub sets: Vec<SetReport>,
    /// Figures to reach, where some were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Goal>,
    /// An endpoint in all its modes, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<SetModes>,
}

/// One set under one or two settings.
#[derive(Debug, Serialize)]
pub struct SetReport {
    pub set: String,
    pub runs: Vec<RunReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// One set under one setting.
#[derive(Debug, Serialize)]
pub struct RunReport {
    pub setting: String,
    pub resident: Resident,
    pub notes: Vec<String>,
    pub all: Summary,
    /// By `A` and `B`; empty where halves were not asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub halves: BTreeMap<String, Summary>,
    /// Empty where the queries carry no kinds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, Summary>,
    /// Empty where the queries are of one language.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub languages: BTreeMap<String, Summary>,
    pub queries: Vec<Row>,
}

/// Two settings on the same queries.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub first: String,
    pub second: String,
    pub resamples: usize,
    pub figures: Vec<MetricDifference>,
    /// Recall at 5 of each kind and language.
    pub groups: Vec<GroupDifference>,
}

/// A figure under two settings.
#[derive(Debug, Serialize)]
pub struct MetricDifference {
    #[serde(serialize_with = "key")]
    pub metric: Metric,
    pub first: Option<f64>,
    pub second: Option<f64>,
    #[serde(flatten)]
    pub difference: Option<Difference>,
}

/// A figure of some of the queries under two settings.
#[derive(Debug, Serialize)]
pub struct GroupDifference {
    pub group: String,
    #[serde(flatten)]
    pub figure: MetricDifference,
}

fn key<S: serde::Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.key())
}

type RowKey = fn(&Row) -> Option<&str>;

fn kind(row: &Row) -> Option<&str> {
    row.kind.as_deref()
}

fn language(row: &Row) -> Option<&str> {
    row.lang.as_deref()
}

/// Queries by kind or language, those without one under `-`; nothing where no more than one group comes of it.
fn groups(rows: &[Row], key: RowKey) -> BTreeMap<String, Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        groups.entry(key(row).unwrap_or("-").to_owned()).or_default().push(at);
    }
    if groups.len() > 1 { groups } else { BTreeMap::new() }
}

fn summary<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Summary {
    Summary::of(&rows.into_iter().map(|row| &row.outcome).collect::<Vec<_>>())
}

fn summaries(rows: &[Row], key: RowKey) -> BTreeMap<String, Summary> {
    let chosen = |at: Vec<usize>| summary(at.into_iter().filter_map(|at| rows.get(at)));
    groups(rows, key).into_iter().map(|(name, at)| (name, chosen(at))).collect()
}

impl SetReport {
    /// Sums up the runs of a set: one, or two to be compared.
    pub fn of(set: &Set, runs: Vec<Run>, halves: bool) -> Self {
        let comparison = match runs.as_slice() {
            [first, second] => Some(Comparison::of(first, second)),
            _ => None,
        };
        let runs = runs.into_iter().map(|run| RunReport::of(run, halves)).collect();
        Self { set: set.name.clone(), runs, comparison }
    }
}

impl RunReport {
    fn of(run: Run, halves: bool) -> Self {
        let half = |half: Half| {
            let rows = run.rows.iter().filter(|row| Half::of(&row.id) == half);
            (format!("{half:?}"), summary(rows))
        };
        Self {
            all: summary(&run.rows),
            halves: if halves { Half::ALL.map(half).into() } else { BTreeMap::new() },
            kinds: summaries(&run.rows, kind),
            languages: summaries(&run.rows, language),
            setting: run.setting,
            resident: run.resident,
            notes: run.notes,
            queries: run.rows,
        }
    }
}

impl Comparison {
    /// Both runs must be of the same set.
    fn of(first: &Run, second: &Run) -> Self {
        let pairs: Vec<(&Outcome, &Outcome)> = first
            .rows
            .iter()
            .zip(&second.rows)
            .map(|(first, second)| (&first.outcome, &second.outcome))
            .collect();
        let figures = Metric::ALL.map(|metric| MetricDifference::of(metric, &pairs)).into();
        let of_group = |(group, at): (String, Vec<usize>)| {
            let pairs: Vec<_> = at.into_iter().filter_map(|at| pairs.get(at).copied()).collect();
            let metric = if pairs.iter().any(|(outcome, _)| outcome.right > 0) {
                Metric::RecallAt5
            } else {
                Metric::NoMatchRecall
            };
            GroupDifference { group, figure: MetricDifference::of(metric, &pairs) }
        };
        let keys: [RowKey; 2] = [kind, language];
        let groups = keys.into_iter().flat_map(|key| groups(&first.rows, key)).map(of_group).collect();
        Self {
            first: first.setting.clone(),
            second: second.setting.clone(),
            resamples: RESAMPLES,
            figures,
            groups,
        }
    }
}

impl MetricDifference {
    fn of<'a>(metric: Metric, outcomes: &[(&'a Outcome, &'a Outcome)]) -> Self {
        let pair = |(first, second): &(&Outcome, &Outcome)| Pair {
            first: metric.share(first),
            second: metric.share(second),
        };
        let pairs: Vec<Pair> = outcomes.iter().map(pair).collect();
        let of_all = |side: fn(&(&'a Outcome, &'a Outcome)) -> &'a Outcome| {
            metric.of(&outcomes.iter().map(side).collect::<Vec<_>>())
        };
        let (first, second) = (of_all(|(first, _)| first), of_all(|(_, second)| second));
        let difference = if first.is_some() && second.is_some() { paired(&pairs) } else { None };
        Self { metric, first, second, difference }
    }

    fn cells(&self) -> [String; 5] {
        let (difference, interval) = match self.difference {
            None => ("-".to_owned(), "-".to_owned()),
            Some(found) => {
                let mark = if found.is_clear() { " *" } else { "" };
                (
                    format!("{:+.3}", found.difference),
                    format!("{:+.3} to {:+.3}{mark}", found.low, found.high),
                )
            }
        };
        [self.metric.title().to_owned(), share(self.first), share(self.second), difference, interval]
    }
}

/// Figures of shares have three digits, as a set of a thousand queries allows.
pub(super) fn share(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.3}"))
}

fn milliseconds(micros: u64) -> String {
    format!("{:.2}", micros as f64 / 1_000.0)
}

const LEGEND: &str = "\
- `n`: queries. `right`: right tools of a query that a tool serves, on average. Where it is large, R@k cannot come near
  1, and MRR and Hit@5 tell more.
- `R@k`: share of a query's right tools among the first k matches. `all@10`: queries with all right tools among the
  first 10. These and the figures between them are over the queries that a tool serves.
- \"No match\" is an answer without a match of high or medium confidence. `none P`, `none R`: its precision and recall
  over the requests that no tool serves. `unsure`: served queries that were answered so.
- `lost`: served queries of which a right tool that ranks among the first 5 is below the floor, so it is not shown.
- `tok`: tokens of an answer, mean and 95th percentile. `ms`: time of an answer inside the service.";

impl Report {
    pub fn new(limit: u32, sets: Vec<SetReport>) -> Self {
        Self { toolrack: env!("CARGO_PKG_VERSION"), limit, sets, goals: Vec::new(), modes: Vec::new() }
    }

    /// Tells beside the figures which of them were to be reached.
    #[must_use]
    pub fn with_goals(mut self, goals: &Goals) -> Self {
        self.goals = goals.compare(&self.sets);
        self
    }

    /// Tells the modes of an endpoint as well.
    #[must_use]
    pub fn with_modes(self, modes: Vec<SetModes>) -> Self {
        Self { modes, ..self }
    }

    /// The whole report for people.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# Retrieval quality\n");
        let made = "Made by `toolrack eval`, version";
        let Self { toolrack, limit, .. } = self;
        section(
            &mut out,
            &format!("{made} {toolrack}. Rankings are measured on the first {limit} matches.\n\n{LEGEND}"),
        );
        if self.sets.len() > 1 {
            section(&mut out, "## All sets");
            summary_table(&mut out, "set", self.sets.iter().flat_map(SetReport::lines));
            section(&mut out, "## Tokens in every turn");
            resident_table(&mut out, &self.sets);
        }
        if !self.goals.is_empty() {
            section(&mut out, "## Goals");
            goal_table(&mut out, &self.goals);
        }
        if !self.modes.is_empty() {
            modes::write(&mut out, &self.modes);
        }
        for set in &self.sets {
            set.write(&mut out, self.sets.len() > 1);
        }
        out
    }
}

impl SetReport {
    /// The whole set and its halves, per setting.
    fn lines(&self) -> impl Iterator<Item = (String, &Summary)> {
        self.runs.iter().flat_map(move |run| {
            let name = self.title(run);
            let halves = run.halves.iter().map({
                let name = name.clone();
                move |(half, summary)| (format!("{name}, half {half}"), summary)
            });
            std::iter::once((name, &run.all)).chain(halves)
        })
    }

    fn title(&self, run: &RunReport) -> String {
        if self.runs.len() > 1 { format!("{}, {}", self.set, run.setting) } else { self.set.clone() }
    }

    /// What stands about this set alone; among others, only what their common tables do not tell.
    fn write(&self, out: &mut String, among_others: bool) {
        let detailed = self.runs.iter().any(|run| !run.kinds.is_empty() || !run.notes.is_empty());
        if among_others && !detailed && self.comparison.is_none() {
            return;
        }
        section(out, &format!("## {}", self.set));
        if !among_others {
            summary_table(out, "queries", self.lines());
            resident_table(out, std::slice::from_ref(self));
        }
        for run in &self.runs {
            let setting = if self.runs.len() > 1 { format!(", {}", run.setting) } else { String::new() };
            for note in &run.notes {
                section(out, &format!("Note{setting}: {note}."));
            }
            // Languages without kinds are a guess from scripts in most public sets: their handful of queries says little.
            if !run.kinds.is_empty() || !among_others {
                for (what, groups) in [("kind", &run.kinds), ("language", &run.languages)] {
                    if !groups.is_empty() {
                        section(out, &format!("### By {what}{setting}"));
                        summary_table(
                            out,
                            what,
                            groups.iter().map(|(name, summary)| (name.clone(), summary)),
                        );
                    }
                }
            }
        }
        if let Some(comparison) = &self.comparison {
            comparison.write(out);
        }
    }
}

impl Comparison {
    fn write(&self, out: &mut String) {
        section(out, &format!("### {} against {}", self.second, self.first));
        section(
            out,
            &format!(
                "95 % intervals of a paired bootstrap over the queries, {} resamples; `*`: leaves out zero.",
                self.resamples
            ),
        );
        let head = ["figure", &self.first, &self.second, "difference", "95 % interval"];
        let rows = self.figures.iter().map(|figure| figure.cells().into());
        table(out, &head, rows.collect());
        if !self.groups.is_empty() {
            let head = ["queries", "figure", &self.first, &self.second, "difference", "95 % interval"];
            let row = |group: &GroupDifference| {
                std::iter::once(group.group.clone()).chain(group.figure.cells()).collect()
            };
            table(out, &head, self.groups.iter().map(row).collect());
        }
    }
}

fn summary_table<'a>(out: &mut String, first: &str, lines: impl Iterator<Item = (String, &'a Summary)>) {
    let mut head = vec![first, "n", "right"];
    head.extend(Metric::ALL.map(Metric::title));
    head.extend(["tok", "tok p95", "ms p50", "ms p95", "ms p99"]);
    let row = |(name, summary): (String, &Summary)| {
        let mut row = vec![name, summary.queries.to_string()];
        row.push(if summary.served > 0 { format!("{:.1}", summary.right_per_query) } else { "-".to_owned() });
        row.extend(Metric::ALL.map(|metric| share(summary.figures.get(metric))));
        row.push(format!("{:.0}", summary.tokens_mean));
        row.push(summary.tokens_p95.to_string());
        row.extend([summary.took_us_p50, summary.took_us_p95, summary.took_us_p99].map(milliseconds));
        row
    };
    table(out, &head, lines.map(row).collect());
}

fn goal_table(out: &mut String, goals: &[Goal]) {
    let rows = goals.iter().map(|goal| {
        let set =
            goal.setting.as_ref().map_or(goal.set.clone(), |setting| format!("{}, {setting}", goal.set));
        let title = Metric::ALL.into_iter().find(|metric| metric.key() == goal.figure);
        vec![
            set,
            goal.queries.clone(),
            title.map_or(goal.figure, Metric::title).to_owned(),
            format!("{:.2}", goal.goal),
            format!("{:.3}", goal.measured),
            if goal.reached { "yes" } else { "missed" }.to_owned(),
        ]
    });
    table(out, &["set", "queries", "figure", "goal", "measured", "reached"], rows.collect());
}

fn resident_table(out: &mut String, sets: &[SetReport]) {
    let head = ["set", "tools", "all schemas (tier 0)", "as assembled", "of it listing", "tier", "share"];
    let row = |set: &SetReport, run: &RunReport| {
        let resident = &run.resident;
        let sent = resident.array + resident.listing;
        let percent = 100.0 * sent as f64 / resident.all.max(1) as f64;
        vec![
            set.title(run),
            resident.tools.to_string(),
            resident.all.to_string(),
            sent.to_string(),
            resident.listing.to_string(),
            resident.tier.to_string(),
            format!("{percent:.1} %"),
        ]
    };
    let rows = sets.iter().flat_map(|set| set.runs.iter().map(move |run| row(set, run)));
    table(out, &head, rows.collect());
}

pub(super) fn section(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(text);
    out.push('\n');
}

/// A table whose columns are as wide as their widest cell.
pub(super) fn table(out: &mut String, head: &[&str], rows: Vec<Vec<String>>) {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let cleaned =
        |row: Vec<String>| -> Vec<String> { row.iter().map(|cell| cell.replace('|', "\\|")).collect() };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).map(cleaned).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    out.push('\n');
    for (at, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Numbers stand right, names left.
            let left = column == 0;
            out.push_str(&if left { format!("| {cell:width$} ") } else { format!("| {cell:>width$} ") });
        }
        out.push_str("|\n");
        if at == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if column == 0 { "-" } else { ":" };
                out.push_str(&format!("|{}{end}", "-".repeat(width + 1)));
            }
            out.push_str("|\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, kind: &str, lang: &str, places: &[usize], right: usize) -> Row {
        Row {
            id: id.to_owned(),
            kind: Some(kind.to_owned()),
            lang: Some(lang.to_owned()),
            outcome: Outcome {
                right,
                places: places.to_vec(),
                answered_none: right == 0,
                lost: Some(false),
                tokens: 120,
                took_us: 250,
            },
            first: vec!["a".to_owned()],
        }
    }

    fn run(setting: &str, first_place: usize) -> Run {
        Run {
            setting: setting.to_owned(),
            resident: Resident { tools: 3, all: 1_000, array: 80, listing: 20, tier: 1 },
            notes: vec!["1 queries were cut to 9 characters".to_owned()],
            degraded: 0,
            rows: vec![
                row("q1", "task", "en", &[first_place], 1),
                row("q2", "task", "de", &[first_place], 1),
                row("q3", "none", "en", &[], 0),
            ],
        }
    }

    fn set() -> Set {
        Set { name: "small".to_owned(), tools: Vec::new(), queries: Vec::new() }
    }

    #[test]
    fn a_report_tells_kinds_languages_halves_and_costs() {
        let report = Report::new(20, vec![SetReport::of(&set(), vec![run("default", 1)], true)]);
        let text = report.markdown();
        for part in [
            "## small",
            "### By kind",
            "### By language",
            "half A",
            "half B",
            "10.0 %",
            "0.25",
            "Note: 1 queries",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        let run = &json["sets"][0]["runs"][0];
        assert_eq!(run["kinds"]["task"]["figures"]["recall_at_5"], 1.0);
        assert_eq!(run["languages"]["en"]["queries"], 2);
        assert_eq!(run["all"]["figures"]["no_match_recall"], 1.0);
        assert_eq!(run["queries"][0]["places"], serde_json::json!([1]));
        assert!(json["sets"][0].get("comparison").is_none());
    }

    #[test]
    fn two_settings_stand_side_by_side() {
        let report = SetReport::of(&set(), vec![run("default", 1), run("other", 6)], false);
        let comparison = report.comparison.as_ref().unwrap();
        let recall = comparison.figures.iter().find(|figure| figure.metric == Metric::RecallAt5).unwrap();
        assert_eq!((recall.first, recall.second), (Some(1.0), Some(0.0)));
        assert_eq!(recall.difference.map(|found| found.difference), Some(-1.0));
        let groups: Vec<&str> = comparison.groups.iter().map(|group| group.group.as_str()).collect();
        assert_eq!(groups, ["none", "task", "de", "en"]);
        assert_eq!(comparison.groups[0].figure.metric, Metric::NoMatchRecall);
        let text = Report::new(20, vec![report]).markdown();
        assert!(text.contains("### other against default") && text.contains("-1.000 to -1.000 *"), "{text}");
        assert!(text.contains("small, other"), "{text}");
    }

    #[test]
    fn several_sets_share_a_table() {
        let sets = vec![
            SetReport::of(&set(), vec![run("default", 1)], true),
            SetReport::of(&Set { name: "second".to_owned(), ..set() }, vec![run("default", 2)], true),
        ];
        let text = Report::new(20, sets).markdown();
        let all = text.split("## Tokens").next().unwrap();
        assert!(all.contains("| small ") && all.contains("| second, half B"), "{text}");
    }

    #[test]
    fn tables_are_padded_and_names_cannot_break_them() {
        let mut out = String::new();
        table(&mut out, &["a", "b"], vec![vec!["x|y".to_owned(), "1".to_owned()]]);
        assert_eq!(out, "\n| a    | b |\n|------|--:|\n| x\\|y | 1 |\n");
    }
}
