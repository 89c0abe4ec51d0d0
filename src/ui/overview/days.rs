//! What an overview tells day by day: tokens, searches and times, with the lists that stand beside them.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{attention, days_of};
use crate::service::{Attention, Latency, Overview, UsageNumbers};
use crate::ui::chart::{Chart, Series};
use crate::ui::language::{Language, counted, day, number, percent, short};
use crate::ui::parts::card;
use crate::ui::reasons::reason;
use crate::ui::visitor::Place;

/// Days with their numbers, the oldest first.
#[derive(Debug)]
pub(super) struct Days<'a> {
    pub(super) dates: Vec<&'a str>,
    pub(super) counts: Vec<&'a UsageNumbers>,
}

impl Days<'_> {
    fn series<'n>(
        &self,
        name: &'n str,
        class: &'static str,
        value: impl Fn(&UsageNumbers) -> Option<u64>,
    ) -> Series<'n> {
        Series { name, class, values: self.counts.iter().map(|counts| value(counts)).collect() }
    }

    /// The last day with this label.
    fn last(&self, counts: fn(&UsageNumbers) -> &BTreeMap<String, u64>, label: &str) -> Option<&str> {
        let days = self.dates.iter().zip(&self.counts);
        let mut with = days.filter(|(_, day)| counts(day).get(label).is_some_and(|count| *count > 0));
        with.next_back().map(|(date, _)| *date)
    }
}

/// The charts.
pub(super) fn charts(place: &Place, overview: &Overview, found: &Attention) -> Markup {
    let language = place.visitor.language;
    let days = days_of(overview);
    let attention = attention::card(place, overview, found);
    html! {
        @match attention {
            Some(attention) => div.columns.wide-left { (tokens(language, &days)) (attention) },
            None => (tokens(language, &days)),
        }
        div.columns.wide-left {
            (searches(language, &days))
            (degraded(language, overview, &days))
        }
        div.columns.wide-left {
            (latency(language, overview, &days))
            div { (breaks(language, overview, &days)) (warm(place, &overview.totals)) }
        }
    }
}

fn tokens(language: Language, days: &Days<'_>) -> Markup {
    let sent = |counts: &UsageNumbers| counts.tokens_sent.saturating_add(counts.tokens_answers);
    let series = [
        days.series(language.say("Sent", "已发送"), "warm", |counts| Some(counts.tokens_sent)),
        days.series(language.say("Answers", "应答"), "bridge", |counts| Some(counts.tokens_answers)),
        days.series(language.say("Not sent", "未发送"), "rest", |counts| {
            Some(counts.tokens_all.saturating_sub(sent(counts)))
        }),
    ];
    let chart = Chart {
        language,
        label: language.say("Tokens sent and not sent, by day", "每日已发送与未发送的词元"),
        dates: &days.dates,
        series: &series,
        brief: short,
        full: |_, count| number(count),
    };
    chart_card(language.say("Tokens over time", "词元随时间变化"), &chart, None)
}

/// A card with bars.
fn chart_card(title: &str, chart: &Chart<'_>, foot: Option<Markup>) -> Markup {
    card(
        title,
        "",
        &html! {
            div.body { (chart.legend(true)) (chart.bars()) }
            (chart.table())
            @if let Some(foot) = foot { footer { (foot) } }
        },
    )
}

fn searches(language: Language, days: &Days<'_>) -> Markup {
    let mode =
        |counts: &UsageNumbers, name: &str| counts.searches_by_mode.get(name).copied().unwrap_or_default();
    let degraded = |counts: &UsageNumbers| counts.degraded.values().sum::<u64>();
    let all = [
        days.series(language.say("Rerank", "重排"), "warm", |counts| Some(mode(counts, "rerank"))),
        days.series(language.say("Embedding", "向量"), "core", |counts| Some(mode(counts, "embedding"))),
        // Whom an endpoint fails, keywords serve.
        days.series(language.say("Keyword", "关键词"), "listing", |counts| {
            Some(mode(counts, "keyword").saturating_sub(degraded(counts)))
        }),
        days.series(language.say("Degraded to keyword", "降级为关键词"), "bad", |counts| {
            Some(degraded(counts))
        }),
    ];
    let is_there = |series: &&Series<'_>| series.values.iter().flatten().any(|value| *value > 0);
    let series: Vec<Series<'_>> = all.iter().filter(is_there).cloned().collect();
    let title = language.say("Searches by mode", "按方式划分的搜索");
    if series.is_empty() {
        return card(title, "", &none(language.say("No searches in these days.", "这段时间没有搜索。")));
    }
    let chart = Chart {
        language,
        label: language.say("Searches by what ranked them, by day", "每日按排序方式划分的搜索"),
        dates: &days.dates,
        series: &series,
        brief: short,
        full: |_, count| number(count),
    };
    chart_card(title, &chart, None)
}

fn none(text: &str) -> Markup {
    html! { p.body.note { (text) } }
}

fn degraded(language: Language, overview: &Overview, days: &Days<'_>) -> Markup {
    let title = language.say("Why searches degraded", "搜索降级的原因");
    let reasons = by_count(&overview.totals.degraded);
    if reasons.is_empty() {
        return card(title, "", &none(language.say("None did.", "没有降级。")));
    }
    let content = html! {
        table {
            thead {
                tr {
                    th scope="col" { (language.say("Reason", "原因")) }
                    th.number scope="col" { (language.say("Times", "次数")) }
                    th.number scope="col" { (language.say("Last", "最近")) }
                }
            }
            tbody {
                @for (code, count) in reasons {
                    tr {
                        th scope="row" { (reason(language, code)) " " code.note { (code) } }
                        td.number { (number(count)) }
                        td.number { (days.last(|counts| &counts.degraded, code).map(|date| day(language, date)).unwrap_or_default()) }
                    }
                }
            }
        }
        footer { (language.say("Every one was still answered, by keywords.", "每次搜索仍由关键词给出应答。")) }
    };
    card(title, "", &content)
}

/// Labels with the largest counts first.
fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut rows: Vec<(&str, u64)> = counts.iter().map(|(label, count)| (label.as_str(), *count)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    rows
}

fn latency(language: Language, overview: &Overview, days: &Days<'_>) -> Markup {
    let micros = |ms: Option<f64>| ms.map(|ms| (ms * 1_000.0).round() as u64);
    let series = [
        days.series("p50", "warm", |counts| micros(counts.search_latency.p50_ms)),
        days.series("p95", "listing", |counts| micros(counts.search_latency.p95_ms)),
    ];
    let title = language.say("Search latency", "搜索延迟");
    let Latency { p50_ms, p95_ms, count, .. } = overview.totals.assemble_latency;
    let foot = html! {
        @if let (Some(p50), Some(p95)) = (p50_ms, p95_ms) {
            footer {
                @match language {
                    Language::English => { "Assembling a turn took " (milliseconds(p50)) " (p95 " (milliseconds(p95)) ") over " (counted(language, count, "turn", "turns", "")) "." },
                    Language::Chinese => { "组装一个回合用时 " (milliseconds(p50)) "（p95 " (milliseconds(p95)) "），共 " (number(count)) " 个回合。" },
                }
            }
        }
    };
    if overview.totals.search_latency.count == 0 {
        return card(
            title,
            "",
            &html! { (none(language.say("No searches in these days.", "这段时间没有搜索。"))) (foot) },
        );
    }
    let shown = |_: Language, micros: u64| milliseconds(micros as f64 / 1_000.0);
    let chart = Chart {
        language,
        label: language.say("How long searches took, by day: p50 and p95", "每日搜索用时：p50 与 p95"),
        dates: &days.dates,
        series: &series,
        brief: shown,
        full: shown,
    };
    let note = language.say("inside the service, endpoint included", "服务内部用时，含端点");
    card(title, note, &html! { div.body { (chart.legend(false)) (chart.lines()) } (chart.table()) (foot) })
}

/// A time in as many digits as say something.
pub(super) fn milliseconds(ms: f64) -> String {
    if ms >= 10_000.0 {
        format!("{:.1} s", ms / 1_000.0)
    } else if ms >= 10.0 || ms == 0.0 {
        format!("{ms:.0} ms")
    } else if ms >= 1.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.2} ms")
    }
}

fn breaks(language: Language, overview: &Overview, days: &Days<'_>) -> Markup {
    let totals = &overview.totals;
    let reasons = by_count(&totals.cache_breaks);
    let all: u64 = reasons.iter().map(|(_, count)| count).sum();
    let title = language.say("Cache breaks", "缓存中断");
    if reasons.is_empty() {
        let text =
            language.say("None: every array began with the one before it.", "没有：每个数组都以前一个开头。");
        return card(title, "", &none(text));
    }
    let note = match language {
        Language::English => {
            format!("{} in {}", number(all), counted(language, totals.assemblies, "turn", "turns", ""))
        }
        Language::Chinese => format!("{} 个回合中 {} 次", number(totals.assemblies), number(all)),
    };
    let content = html! {
        table {
            thead {
                tr {
                    th scope="col" { (language.say("Reason", "原因")) }
                    th.number scope="col" { (language.say("Times", "次数")) }
                    th.number scope="col" { (language.say("Of turns", "占回合")) }
                    th.number scope="col" { (language.say("Last", "最近")) }
                }
            }
            tbody {
                @for (code, count) in reasons {
                    tr {
                        th scope="row" { (break_name(language, code)) }
                        td.number { (number(count)) }
                        td.number { (percent(count, totals.assemblies)) }
                        td.number { (days.last(|counts| &counts.cache_breaks, code).map(|date| day(language, date)).unwrap_or_default()) }
                    }
                }
            }
        }
    };
    card(title, note, &content)
}

fn break_name(language: Language, code: &str) -> &str {
    match code {
        "warm" => language.say("Found tools joined", "找到的工具加入"),
        "evicted" => language.say("Warm tools had to leave", "热工具被移出"),
        "catalog" => language.say("The catalog changed", "目录变更"),
        "config" => language.say("The config changed", "配置变更"),
        "grant" => language.say("Another selection of tools", "工具选择变更"),
        "format" => language.say("Another format or model", "格式或模型变更"),
        "epoch" => language.say("The agent asked for it", "代理要求"),
        other => other,
    }
}

/// Of what enters warm sets, this part may leave again before it is worth saying, in per cent.
const MUCH_TURNOVER: u64 = 33;

fn warm(place: &Place, totals: &UsageNumbers) -> Markup {
    let language = place.visitor.language;
    let left = percent(totals.evicted, totals.warmed);
    let is_much = totals.evicted.saturating_mul(100) > totals.warmed.saturating_mul(MUCH_TURNOVER);
    let content = html! {
        div.body {
            dl.facts {
                dt { (language.say("Entered after a search", "搜索后加入")) } dd { (number(totals.warmed)) }
                dt { (language.say("Had to leave for others", "为其他工具让位")) } dd { (number(totals.evicted)) " (" (left) ")" }
            }
            @if is_much {
                p.note {
                    (language.say("Many leave again. A larger warm set keeps them: ", "移出较多。可增大热集："))
                    a href=(place.path("setup/scope")) { code { "max_warm_tools" } }
                }
            }
        }
    };
    card(
        language.say("Warm sets", "热集"),
        language.say("tools that sessions keep", "会话保留的工具"),
        &content,
    )
}
