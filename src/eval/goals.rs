//! Figures to reach, beside what was measured: `{"<set>": {"<all, a kind or a language>": {"<figure>": <goal>}}}`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metrics::Metric;
use super::report::{RunReport, SetReport};

/// A goal and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    pub set: String,
    /// Setting, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// `all`, or the kind or language of the queries that are meant.
    pub queries: String,
    /// The figure's name in JSON.
    pub figure: &'static str,
    pub goal: f64,
    pub measured: f64,
    pub reached: bool,
}

/// The goals of a file.
#[derive(Debug, Clone, Default)]
pub struct Goals(BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>);

impl Goals {
    /// # Errors
    /// Text that is no such JSON, or a figure of a name that there is not, named in the message.
    pub fn read(text: &str) -> Result<Self, String> {
        let goals: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut names = goals.values().flat_map(BTreeMap::values).flat_map(BTreeMap::keys);
        match names.find(|name| metric(name).is_none()) {
            Some(unknown) => Err(format!("there is no figure `{unknown}`")),
            None => Ok(Self(goals)),
        }
    }

    /// Each goal whose queries were measured, in the order of the sets.
    pub fn compare(&self, sets: &[SetReport]) -> Vec<Goal> {
        let runs = sets.iter().flat_map(|set| set.runs.iter().map(move |run| (set, run)));
        runs.flat_map(|(set, run)| self.of_run(set, run)).collect()
    }

    fn of_run(&self, set: &SetReport, run: &RunReport) -> Vec<Goal> {
        let groups = self.0.get(&set.set).into_iter().flatten();
        let goals =
            groups.flat_map(|(group, goals)| goals.iter().map(move |(name, goal)| (group, name, *goal)));
        let measured = goals.filter_map(|(group, name, goal)| {
            let of_group = || run.kinds.get(group).or_else(|| run.languages.get(group));
            let summary = if group == "all" { Some(&run.all) } else { of_group() };
            let metric = metric(name)?;
            let measured = summary?.figures.get(metric)?;
            let reached = if metric.is_loss() { measured <= goal } else { measured >= goal };
            let setting = (set.runs.len() > 1).then(|| run.setting.clone());
            let (set, queries) = (set.set.clone(), group.clone());
            Some(Goal { set, setting, queries, figure: metric.key(), goal, measured, reached })
        });
        measured.collect()
    }
}

fn metric(name: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.key() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_goals_is_checked() {
        assert!(Goals::read(r#"{"set": {"all": {"recall_at_5": 0.8}}}"#).is_ok());
        let unknown = Goals::read(r#"{"set": {"all": {"recall_at_6": 0.8}}}"#).unwrap_err();
        assert!(unknown.contains("recall_at_6"), "{unknown}");
        assert!(Goals::read("[]").is_err());
    }
}
