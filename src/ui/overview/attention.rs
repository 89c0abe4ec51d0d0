//! What wants somebody to look: each with why it matters and where to go on.

use maud::{Markup, html};

use crate::service::{Attention, Overview};
use crate::ui::language::{Language, counted, number};
use crate::ui::parts::{self, State as Standing, tag};
use crate::ui::visitor::Place;

/// Keys that are told by name.
const SHOWN_KEYS: usize = 3;

/// A query that found nothing this often is told.
const OFTEN: i64 = 2;

/// A line of the list.
struct Line {
    href: String,
    title: String,
    note: String,
    tag: Option<Markup>,
}

/// The list; none where nothing wants anybody.
pub(super) fn card(place: &Place, overview: &Overview, found: &Attention) -> Option<Markup> {
    let language = place.visitor.language;
    let lines: Vec<Line> =
        [held(place, found), missed(language, overview), unfound(language, overview), hot(place, overview)]
            .into_iter()
            .flatten()
            .chain(keys(language, found))
            .collect();
    let content = html! {
        ul.rows {
            @for line in &lines {
                li {
                    div {
                        a href=(line.href) { (line.title) }
                        @if !line.note.is_empty() { p.note { (line.note) } }
                    }
                    @if let Some(tag) = &line.tag { (tag) }
                }
            }
        }
    };
    (!lines.is_empty()).then(|| parts::card(language.say("Worth a look", "值得关注"), "", &content))
}

fn held(place: &Place, found: &Attention) -> Option<Line> {
    let language = place.visitor.language;
    (found.held > 0).then(|| Line {
        href: place.path("reviews"),
        title: counted(
            language,
            found.held as u64,
            "changed tool waits for approval",
            "changed tools wait for approval",
            "个已变更的工具等待批准",
        ),
        note: language.say("Agents keep the approved version.", "代理继续使用已批准的版本。").to_owned(),
        tag: Some(tag(Standing::Warn, language.say("Review", "审查"))),
    })
}

fn missed(language: Language, overview: &Overview) -> Option<Line> {
    let often = overview.missed_queries.queries.iter().filter(|query| query.count >= OFTEN).count() as u64;
    let totals = &overview.totals;
    let href = "#missed".to_owned();
    if often > 0 {
        return Some(Line {
            href,
            title: counted(
                language,
                often,
                "query found nothing again and again",
                "queries found nothing again and again",
                "个查询多次未找到工具",
            ),
            note: language.say("An alias may mend it.", "别名或可解决。").to_owned(),
            tag: None,
        });
    }
    // One in twenty is more than people mistype.
    let is_much = totals.missed.saturating_mul(20) > totals.queries;
    (is_much && totals.missed > 0).then(|| Line {
        href,
        title: counted(
            language,
            totals.missed,
            "query found nothing",
            "queries found nothing",
            "个查询未找到工具",
        ),
        note: if overview.missed_queries.kept {
            language.say("An alias may mend it.", "别名或可解决。").to_owned()
        } else {
            language.say("Their texts are not kept here.", "此处不保存查询文本。").to_owned()
        },
        tag: None,
    })
}

/// Only where there was something to be found by.
fn unfound(language: Language, overview: &Overview) -> Option<Line> {
    let never = &overview.tools.never_found;
    (never.count > 0 && overview.totals.queries > 0).then(|| Line {
        href: "#never".to_owned(),
        title: match language {
            Language::English => {
                format!(
                    "{} of {} never found",
                    number(never.count),
                    counted(language, never.of, "tool was", "tools were", "")
                )
            }
            Language::Chinese => {
                format!("{} 个工具中有 {} 个从未被找到", number(never.of), number(never.count))
            }
        },
        note: language
            .say("They may lack a description, or nobody needs them.", "可能缺少描述，或无人需要。")
            .to_owned(),
        tag: None,
    })
}

fn hot(place: &Place, overview: &Overview) -> Option<Line> {
    let language = place.visitor.language;
    let hot = &overview.hot_tools;
    let names: Vec<&str> = hot.tools.iter().take(3).map(|tool| tool.name.as_str()).collect();
    (hot.enabled && !hot.auto && !hot.tools.is_empty()).then(|| Line {
        href: place.path("setup/groups"),
        title: counted(
            language,
            hot.tools.len() as u64,
            "tool is called so often that it may as well be core",
            "tools are called so often that they may as well be core",
            "个工具调用频繁，可设为核心",
        ),
        note: names.join(language.say(", ", "、")),
        tag: None,
    })
}

fn keys(language: Language, found: &Attention) -> Vec<Line> {
    let mut lines: Vec<Line> = found
        .keys
        .iter()
        .take(SHOWN_KEYS)
        .map(|key| Line {
            href: format!("/ui/keys/{}", key.id),
            title: match (language, key.days) {
                (Language::English, 0) => format!("Key “{}” expires within a day", key.name),
                (Language::English, 1) => format!("Key “{}” expires in 1 day", key.name),
                (Language::English, days) => format!("Key “{}” expires in {days} days", key.name),
                (Language::Chinese, 0) => format!("密钥“{}”将在一天内到期", key.name),
                (Language::Chinese, days) => format!("密钥“{}”将在 {days} 天后到期", key.name),
            },
            note: language
                .say("Rotate it; both work until the old one ends.", "可轮换；旧密钥结束前两者均有效。")
                .to_owned(),
            tag: None,
        })
        .collect();
    if let Some(more) = found.keys.len().checked_sub(SHOWN_KEYS).filter(|more| *more > 0) {
        lines.push(Line {
            href: "/ui/keys".to_owned(),
            title: counted(
                language,
                more as u64,
                "more key expires soon",
                "more keys expire soon",
                "个密钥即将到期",
            ),
            note: String::new(),
            tag: None,
        });
    }
    lines
}
