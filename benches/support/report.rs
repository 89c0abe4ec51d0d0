//! What is shown: Markdown tables on standard output, every figure beside its baseline and its goal.

use std::io::{self, Write};

use super::measure::{Result, Spread};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    PerSecond,
    /// Seconds; shown as s, ms or µs.
    Time,
    MiB,
    Count,
}

/// What a figure should reach. It is shown, never asserted: figures depend on the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// Share of the baseline.
    ShareAtLeast(f64),
    ShareAtMost(f64),
    None,
}

/// One line of a table.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) measured: Spread,
    /// What stands beside it, in words, and its results in the same unit.
    pub(crate) baseline: Option<(&'static str, Spread)>,
    pub(crate) goal: Goal,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{value:.0}/s"),
            Self::Time if value < 1e-3 => format!("{:.1} µs", value * 1e6),
            Self::Time if value < 1.0 => format!("{:.1} ms", value * 1e3),
            Self::Time => format!("{value:.2} s"),
            Self::MiB => format!("{value:.1} MiB"),
            Self::Count => format!("{value:.0}"),
        }
    }

    /// Median, and the least and the most where there were several rounds.
    fn show_spread(self, spread: &Spread) -> String {
        let median = self.show(spread.median());
        match spread.sorted().as_slice() {
            [least, .., most] => format!("{median} ({} to {})", self.show(*least), self.show(*most)),
            _ => median,
        }
    }
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

impl Figure {
    fn share(&self) -> Option<f64> {
        self.baseline.as_ref().map(|(_, baseline)| self.measured.share_of(baseline).median())
    }

    fn cells(&self) -> [String; 7] {
        let (unit, median, share) = (self.unit, self.measured.median(), self.share());
        let (goal, reached) = match self.goal {
            Goal::AtMost(most) => (format!("at most {}", unit.show(most)), Some(median <= most)),
            Goal::AtLeast(least) => (format!("at least {}", unit.show(least)), Some(median >= least)),
            Goal::ShareAtLeast(least) => {
                (format!("at least {}", percent(least)), share.map(|share| share >= least))
            }
            Goal::ShareAtMost(most) => {
                (format!("at most {}", percent(most)), share.map(|share| share <= most))
            }
            Goal::None => ("-".to_owned(), None),
        };
        let (name, baseline) = self
            .baseline
            .as_ref()
            .map_or(("-", "-".to_owned()), |(name, baseline)| (*name, unit.show_spread(baseline)));
        [
            self.what.clone(),
            unit.show_spread(&self.measured),
            name.to_owned(),
            baseline,
            share.map_or("-".to_owned(), percent),
            goal,
            reached.map_or("-", |reached| if reached { "yes" } else { "**no**" }).to_owned(),
        ]
    }
}

/// Prints a heading and the figures under it.
pub(crate) fn table(heading: &str, figures: &[Figure]) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n## {heading}\n")?;
    writeln!(
        out,
        "| figure | median (least to most) | baseline | its median (least to most) | share | goal | reached |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for figure in figures {
        writeln!(out, "| {} |", figure.cells().join(" | "))?;
    }
    Ok(out.flush()?)
}

/// Prints a line of text.
pub(crate) fn line(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
