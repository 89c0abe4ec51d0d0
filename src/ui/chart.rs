//! Charts of days as pictures made on the server: bars that stand on each other, and lines.
//!
//! Owns how numbers become lengths. A picture is as wide as its place, so lengths across are in per cent; its texts are texts,
//! and each day tells its numbers when it is pointed at. The same numbers follow as a table.

use maud::{Markup, html};

use super::language::{Language, day};
use super::parts::swatch;

/// Where the days begin, in per cent: before it stand the numbers of the rules.
const LEFT: f64 = 9.0;

/// Heights in pixels: of the uppermost rule, of the ground, and of the dates' ground line.
const TOP: f64 = 8.0;
const GROUND: f64 = 212.0;
const DATES: f64 = 231.0;

/// Rules above the ground.
const RULES: u64 = 4;

/// Dates that find room on a narrow screen.
const SHOWN_DATES: usize = 5;

/// Part of a day's room that its bar takes.
const BAR: f64 = 0.76;

/// What a chart tells of every day.
#[derive(Debug, Clone)]
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    /// The class that gives its colour, without `t-`.
    pub(super) class: &'static str,
    /// One a day; nothing where nothing was measured.
    pub(super) values: Vec<Option<u64>>,
}

/// A chart of days.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chart<'a> {
    pub(super) language: Language,
    /// What the picture shows.
    pub(super) label: &'a str,
    /// `YYYY-MM-DD`, the oldest first.
    pub(super) dates: &'a [&'a str],
    pub(super) series: &'a [Series<'a>],
    /// A value in few digits.
    pub(super) brief: fn(Language, u64) -> String,
    /// A value in full.
    pub(super) full: fn(Language, u64) -> String,
}

impl Chart<'_> {
    /// A stack of bars a day, the first series at the ground.
    pub(super) fn bars(&self) -> Markup {
        let whole =
            |at: usize| self.series.iter().fold(0, |sum: u64, series| sum.saturating_add(value(series, at)));
        let top = self.top((0..self.dates.len()).map(whole).max());
        let content = html! {
            @for at in (0..self.dates.len()).filter(|at| whole(*at) > 0) {
                g { title { (self.told(at)) } (self.stack(at, top)) }
            }
        };
        self.picture(top, &content)
    }

    fn stack(&self, at: usize, top: u64) -> Markup {
        let width = self.room() * BAR;
        let x = percent(self.middle(at) - width / 2.0);
        let mut below = 0_u64;
        let mut bar = |series: &Series<'_>| {
            let low = height(below, top);
            below = below.saturating_add(value(series, at));
            let high = height(below, top);
            // Where there is room for it a gap parts the bars.
            let gap = if low - high > 2.5 { 0.8 } else { 0.0 };
            (pixels(high), pixels(low - high - gap))
        };
        html! {
            @for series in self.series.iter().filter(|series| value(series, at) > 0) {
                @let (y, height) = bar(series);
                rect class={"t-" (series.class)} x=(x) width=(percent(width)) y=(y) height=(height) {}
            }
        }
    }

    /// A line a series, which ends where a day has no value.
    pub(super) fn lines(&self) -> Markup {
        let all = self.series.iter().flat_map(|series| series.values.iter().flatten().copied());
        let top = self.top(all.max());
        let size = if self.dates.len() > 31 { "1.5" } else { "2.5" };
        self.picture(top, &html! {
            svg x=(percent(LEFT)) y=(pixels(TOP)) width=(percent(100.0 - LEFT)) height=(pixels(GROUND - TOP))
                viewBox="0 0 1000 1000" preserveAspectRatio="none" {
                @for series in self.series {
                    @for points in runs(&series.values) { polyline class={"curve c-" (series.class)} points=(self.points(&points, top)) {} }
                }
            }
            @for at in 0..self.dates.len() {
                @if self.series.iter().any(|series| series.values.get(at).copied().flatten().is_some()) {
                    g {
                        title { (self.told(at)) }
                        // The whole height can be pointed at, for a point is small.
                        rect.clear x=(percent(self.middle(at) - self.room() / 2.0)) width=(percent(self.room()))
                            y=(pixels(TOP)) height=(pixels(GROUND - TOP)) {}
                        @for series in self.series {
                            @if let Some(value) = series.values.get(at).copied().flatten() {
                                circle class={"t-" (series.class)} cx=(percent(self.middle(at))) cy=(pixels(height(value, top))) r=(size) {}
                            }
                        }
                    }
                }
            }
        })
    }

    /// What the colours mean, with the sum of each series or without.
    pub(super) fn legend(&self, sums: bool) -> Markup {
        html! {
            ul.legend {
                @for series in self.series {
                    li {
                        (swatch(series.class)) (series.name)
                        @if sums {
                            @let sum = series.values.iter().flatten().fold(0_u64, |sum, value| sum.saturating_add(*value));
                            " " b { ((self.brief)(self.language, sum)) }
                        }
                    }
                }
            }
        }
    }

    /// The numbers of the picture, without days that have none.
    pub(super) fn table(&self) -> Markup {
        let shown = |at: &usize| self.series.iter().any(|series| value(series, *at) > 0);
        html! {
            details.fold {
                summary { (self.language.say("The numbers as a table", "以表格显示数据")) }
                div.scroll {
                    table {
                        thead {
                            tr {
                                th scope="col" { (self.language.say("Day (UTC)", "日期（UTC）")) }
                                @for series in self.series { th.number scope="col" { (series.name) } }
                            }
                        }
                        tbody {
                            @for at in (0..self.dates.len()).filter(shown) {
                                tr {
                                    th scope="row" { (self.dates[at]) }
                                    @for series in self.series {
                                        td.number {
                                            @match series.values.get(at).copied().flatten() {
                                                Some(value) => ((self.full)(self.language, value)),
                                                None => "–",
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn picture(&self, top: u64, content: &Markup) -> Markup {
        let every = self.dates.len().div_ceil(SHOWN_DATES).max(1);
        html! {
            svg.chart role="img" aria-label=(self.label) {
                @for rule in 0..=RULES {
                    @let value = top / RULES * rule;
                    @let y = height(value, top);
                    line class=(if rule == 0 { "ground" } else { "rule" }) x1=(percent(LEFT)) x2="100%" y1=(pixels(y)) y2=(pixels(y)) {}
                    text.end x=(percent(LEFT - 1.0)) y=(pixels(y + 4.0)) { ((self.brief)(self.language, value)) }
                }
                (content)
                @for at in (every / 2..self.dates.len()).step_by(every) {
                    text.middle x=(percent(self.middle(at))) y=(pixels(DATES)) { (day(self.language, self.dates[at])) }
                }
            }
        }
    }

    /// All values of a day in a sentence.
    fn told(&self, at: usize) -> String {
        let mut text = day(self.language, self.dates[at]);
        let mut sign = self.language.say(": ", "：");
        for series in self.series {
            if let Some(value) = series.values.get(at).copied().flatten() {
                text.push_str(sign);
                text.push_str(series.name);
                text.push(' ');
                text.push_str(&(self.full)(self.language, value));
                sign = self.language.say(", ", "，");
            }
        }
        text
    }

    /// The value of the uppermost rule.
    fn top(&self, most: Option<u64>) -> u64 {
        step(most.unwrap_or_default().div_ceil(RULES)).saturating_mul(RULES)
    }

    /// The room of a day, in per cent.
    fn room(&self) -> f64 {
        (100.0 - LEFT) / self.dates.len().max(1) as f64
    }

    fn middle(&self, at: usize) -> f64 {
        LEFT + self.room() * (at as f64 + 0.5)
    }

    /// Points of a line in a square of 1,000.
    fn points(&self, points: &[(usize, u64)], top: u64) -> String {
        let days = self.dates.len().max(1) as f64;
        let point = |(at, value): &(usize, u64)| {
            format!(
                "{:.1},{:.1}",
                (*at as f64 + 0.5) / days * 1_000.0,
                1_000.0 - share(*value, top) * 1_000.0
            )
        };
        points.iter().map(point).collect::<Vec<_>>().join(" ")
    }
}

fn value(series: &Series<'_>, at: usize) -> u64 {
    series.values.get(at).copied().flatten().unwrap_or_default()
}

/// The smallest round number that is not below another one.
fn step(least: u64) -> u64 {
    let powers = (0..=18).map(|power| 10_u64.pow(power));
    let round = powers.flat_map(|power| [10, 15, 20, 25, 30, 40, 50, 60, 80].map(|tenths| (power, tenths)));
    let round = round.filter_map(|(power, tenths)| {
        let tenths = power.checked_mul(tenths)?;
        tenths.is_multiple_of(10).then_some(tenths / 10)
    });
    round.into_iter().find(|round| *round >= least.max(1)).unwrap_or(u64::MAX / RULES)
}

fn share(value: u64, top: u64) -> f64 {
    (value as f64 / top.max(1) as f64).min(1.0)
}

fn height(value: u64, top: u64) -> f64 {
    GROUND - share(value, top) * (GROUND - TOP)
}

/// Days in a row that have values.
fn runs(values: &[Option<u64>]) -> Vec<Vec<(usize, u64)>> {
    let days: Vec<(usize, Option<u64>)> = values.iter().copied().enumerate().collect();
    let runs = days.chunk_by(|a, b| a.1.is_some() == b.1.is_some());
    let runs =
        runs.map(|run| run.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect::<Vec<_>>());
    runs.filter(|run| run.len() > 1).collect()
}

fn percent(length: f64) -> String {
    format!("{length:.2}%")
}

fn pixels(length: f64) -> String {
    format!("{length:.1}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ui::language::number;

    fn draw(values: &[Vec<Option<u64>>], days: usize) -> [String; 3] {
        let dates: Vec<&str> = vec!["2026-11-30"; days];
        let classes = ["warm", "listing", "rest"];
        let series: Vec<Series<'_>> = values
            .iter()
            .zip(classes)
            .map(|(values, class)| Series { name: "<b>", class, values: values.clone() })
            .collect();
        let plain = |_: Language, value: u64| number(value);
        let chart = Chart {
            language: Language::English,
            label: "tokens",
            dates: &dates,
            series: &series,
            brief: plain,
            full: plain,
        };
        [chart.bars(), chart.lines(), chart.table()].map(Markup::into_string)
    }

    #[test]
    fn bars_stand_on_each_other_and_tell_their_numbers() {
        let [bars, lines, table] = draw(&[vec![Some(30), None], vec![Some(10), None]], 2);
        assert!(bars.contains("<title>30 Nov: &lt;b&gt; 30, &lt;b&gt; 10</title>"), "{bars}");
        // 40 is the uppermost rule, so the first bar takes three quarters of the height.
        assert!(
            bars.contains(r#"y="59.0" height="152.2""#) && bars.contains(r#"y="8.0" height="50.2""#),
            "{bars}"
        );
        assert_eq!(bars.matches("<g>").count(), 1, "a day without numbers has no bar");
        assert!(!lines.contains("polyline"), "one day is no line");
        assert_eq!(lines.matches("<circle").count(), 2);
        assert_eq!(table.matches("<tr>").count(), 2);
    }

    #[test]
    fn rules_are_round() {
        for (least, round) in
            [(0, 1), (1, 1), (7, 8), (9, 10), (11, 15), (16, 20), (61, 80), (90, 100), (1_600, 2_000)]
        {
            assert_eq!(step(least), round, "{least}");
        }
        assert_eq!(step(u64::MAX), u64::MAX / 4);
    }

    proptest! {
        #[test]
        fn nothing_is_drawn_outside(values in prop::collection::vec(prop::collection::vec(prop::option::of(any::<u64>()), 0..12), 0..4), days in 0..12_usize) {
            let [bars, lines, _] = draw(&values, days);
            for text in [bars, lines] {
                for attribute in [" y=\"", " cy=\"", " height=\"", " x=\"", " width=\""] {
                    for rest in text.split(attribute).skip(1) {
                        let length: f64 = rest.split(['"', '%']).next().unwrap().parse().unwrap();
                        prop_assert!((0.0..=240.0).contains(&length), "{attribute}{length}");
                    }
                }
            }
        }
    }
}
