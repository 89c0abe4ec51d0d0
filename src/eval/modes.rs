//! One endpoint in all the modes that it can serve, beside the words: is the joined order as good as the better of its halves?

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::metrics::{Metric, Summary};
use super::report::{section, share, table};
use super::{Run, Setting};

/// By so much a joined order may stay behind the better of its halves.
const ALLOWED: f64 = 0.01;

/// What the modes are compared by.
const FIGURES: [Metric; 2] = [Metric::RecallAt5, Metric::NdcgAt10];

/// Who orders the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Keyword,
    /// The reranker alone.
    Rerank,
    RerankJoined,
    /// The vectors alone.
    Embedding,
    EmbeddingJoined,
}

impl Mode {
    pub const ALL: [Self; 5] =
        [Self::Keyword, Self::Rerank, Self::RerankJoined, Self::Embedding, Self::EmbeddingJoined];

    fn name(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Rerank => "rerank alone",
            Self::RerankJoined => "rerank",
            Self::Embedding => "embedding alone",
            Self::EmbeddingJoined => "embedding",
        }
    }

    /// A config with this mode's matcher; `matcher` tells the endpoint.
    pub fn setting(self, config: &Value, matcher: &Map<String, Value>) -> Setting {
        let mut config = config.clone();
        let (kind, fusion) = match self {
            Self::Keyword => return Setting { name: self.name().to_owned(), config },
            Self::Rerank => ("rerank", "off"),
            Self::RerankJoined => ("rerank", "auto"),
            Self::Embedding => ("embedding", "off"),
            Self::EmbeddingJoined => ("embedding", "auto"),
        };
        let mut matcher = matcher.clone();
        matcher.insert("kind".to_owned(), json!(kind));
        matcher.insert("fusion".to_owned(), json!(fusion));
        if let Value::Object(config) = &mut config {
            config.insert("matcher".to_owned(), Value::Object(matcher));
        }
        Setting { name: self.name().to_owned(), config }
    }
}

/// One set in all modes.
#[derive(Debug, Serialize)]
pub struct SetModes {
    pub set: String,
    /// In the order of [`Mode::ALL`].
    pub modes: Vec<ModeSummary>,
}

/// One set in one mode.
#[derive(Debug, Serialize)]
pub struct ModeSummary {
    pub mode: Mode,
    pub summary: Summary,
    /// Answers that are not this mode's, or not wholly.
    pub degraded: usize,
    /// What a reader of the figures has to know.
    pub notes: Vec<String>,
}

impl SetModes {
    /// `runs` in the order of [`Mode::ALL`].
    pub fn of(set: &str, runs: &[Run]) -> Self {
        let summed = |(mode, run): (Mode, &Run)| {
            let outcomes: Vec<_> = run.rows.iter().map(|row| &row.outcome).collect();
            let (degraded, notes) = (run.degraded, run.notes.clone());
            ModeSummary { mode, summary: Summary::of(&outcomes), degraded, notes }
        };
        Self { set: set.to_owned(), modes: Mode::ALL.into_iter().zip(runs).map(summed).collect() }
    }

    fn figure(&self, mode: Mode, metric: Metric) -> Option<f64> {
        self.modes.iter().find(|summed| summed.mode == mode)?.summary.figures.get(metric)
    }

    /// How far a joined order stays behind the better of its halves, below zero where it is better than both.
    fn behind(&self, joined: Mode, alone: Mode, metric: Metric) -> Option<f64> {
        let better = self.figure(Mode::Keyword, metric)?.max(self.figure(alone, metric)?);
        Some(better - self.figure(joined, metric)?)
    }
}

const PAIRS: [(Mode, Mode); 2] =
    [(Mode::RerankJoined, Mode::Rerank), (Mode::EmbeddingJoined, Mode::Embedding)];

/// Writes the tables, and the exceptions.
pub(super) fn write(out: &mut String, sets: &[SetModes]) {
    section(out, "## Modes");
    section(
        out,
        "One endpoint, asked to rank and asked for vectors, beside the words; `alone` is `fusion: off`, the others are \
         `fusion: auto`. `+` is what a joined order gains over the better of its halves.",
    );
    for metric in FIGURES {
        section(out, &format!("{}:", metric.title()));
        let mut head = vec!["set"];
        for mode in Mode::ALL {
            head.push(mode.name());
            if PAIRS.iter().any(|(joined, _)| *joined == mode) {
                head.push("+");
            }
        }
        let row = |set: &SetModes| {
            let mut cells = vec![set.set.clone()];
            for mode in Mode::ALL {
                cells.push(share(set.figure(mode, metric)));
                if let Some((joined, alone)) = PAIRS.into_iter().find(|(joined, _)| *joined == mode) {
                    let behind = set.behind(joined, alone, metric);
                    cells.push(behind.map_or_else(|| "-".to_owned(), |behind| format!("{:+.3}", -behind)));
                }
            }
            cells
        };
        table(out, &head, sets.iter().map(row).collect());
    }
    let (mut compared, mut exceptions) = (0, Vec::new());
    for set in sets {
        for (joined, alone) in PAIRS {
            for metric in FIGURES {
                let (name, mode, key) = (&set.set, joined.name(), metric.title());
                match set.behind(joined, alone, metric) {
                    Some(behind) if behind > ALLOWED => {
                        exceptions
                            .push(format!("- {name}, {mode}, {key}: {behind:.3} behind the better half"));
                    }
                    Some(_) => {}
                    None => exceptions.push(format!("- {name}, {mode}, {key}: there is no figure")),
                }
                compared += usize::from(set.behind(joined, alone, metric).is_some());
            }
        }
        for summed in set.modes.iter().filter(|summed| summed.degraded > 0) {
            let (name, mode, degraded) = (&set.set, summed.mode.name(), summed.degraded);
            exceptions
                .push(format!("- {name}, {mode}: {degraded} answers are not this mode's, or not wholly"));
        }
    }
    if exceptions.is_empty() {
        let all = format!(
            "None of the {compared} figures of joined orders is more than {ALLOWED} behind the better half."
        );
        section(out, &all);
    } else {
        let head = format!(
            "Exceptions; {compared} figures of joined orders were compared, and {ALLOWED} is allowed:"
        );
        section(out, &format!("{head}\n\n{}", exceptions.join("\n")));
    }
    for set in sets {
        for summed in set.modes.iter().filter(|summed| summed.degraded > 0) {
            for note in &summed.notes {
                section(out, &format!("Note, {}, {}: {note}.", set.set, summed.mode.name()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Outcome, Resident, Row};

    fn run(place: usize) -> Run {
        let outcome = Outcome {
            right: 1,
            places: vec![place],
            answered_none: false,
            lost: None,
            tokens: 1,
            took_us: 1,
        };
        let row = Row { id: "q".to_owned(), kind: None, lang: None, outcome, first: Vec::new() };
        let resident = Resident { tools: 1, all: 1, array: 1, listing: 0, tier: 1 };
        Run {
            setting: String::new(),
            resident,
            notes: vec!["the endpoint failed: 1".to_owned()],
            degraded: 0,
            rows: vec![row],
        }
    }

    #[test]
    fn a_joined_order_behind_its_better_half_is_an_exception() {
        let runs = [run(1), run(9), Run { degraded: 3, ..run(9) }, run(2), run(1)];
        let mut out = String::new();
        write(&mut out, &[SetModes::of("s", &runs)]);
        assert!(out.contains("- s, rerank, R@5: 1.000 behind the better half"), "{out}");
        assert!(!out.contains("- s, embedding,"), "{out}");
        assert!(out.contains("- s, rerank: 3 answers are not"), "{out}");
        assert!(out.contains("Note, s, rerank: the endpoint failed: 1."), "{out}");
        assert!(!out.contains("Note, s, embedding"), "{out}");
    }

    #[test]
    fn nothing_compared_is_no_success() {
        let mut out = String::new();
        write(&mut out, &[SetModes::of("s", &[run(1), run(1), run(1)])]);
        assert!(out.contains("- s, embedding, R@5: there is no figure"), "{out}");
        let mut out = String::new();
        write(&mut out, &[SetModes::of("s", &[run(1), run(1), run(1), run(1), run(1)])]);
        assert!(out.contains("None of the 4 figures"), "{out}");
    }

    #[test]
    fn a_mode_is_a_matcher() {
        let endpoint = Map::from_iter([("endpoint".to_owned(), json!("http://h"))]);
        let of = |mode: Mode| mode.setting(&json!({"core": ["a"]}), &endpoint).config;
        assert_eq!(of(Mode::Keyword), json!({"core": ["a"]}));
        assert_eq!(
            of(Mode::EmbeddingJoined),
            json!({"core": ["a"], "matcher": {"endpoint": "http://h", "kind": "embedding", "fusion": "auto"}})
        );
    }
}
