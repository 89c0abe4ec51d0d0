//! The languages of the pages. Both texts stand where they are used, so that none is forgotten.

use axum::http::{HeaderMap, header};

use crate::http::pages::cookie_named;

/// The cookie that remembers a choice.
pub(super) const COOKIE: &str = "toolrack-language";

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    /// The chosen one, else the first that the browser names, else English.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let chosen = cookie_named(headers, COOKIE).and_then(Self::parse);
        chosen.unwrap_or_else(|| {
            let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
            let mut wanted = wanted.unwrap_or_default().split(',').filter_map(Self::parse);
            wanted.next().unwrap_or(Self::English)
        })
    }

    /// Of a language tag (RFC 5646), with or without more behind it.
    pub(super) fn parse(tag: &str) -> Option<Self> {
        let tag = tag.trim().split([';', '-']).next().unwrap_or_default();
        if tag.eq_ignore_ascii_case("zh") {
            Some(Self::Chinese)
        } else {
            tag.eq_ignore_ascii_case("en").then_some(Self::English)
        }
    }

    pub(super) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// The text of this language.
    pub(super) fn say<'a>(self, english: &'a str, chinese: &'a str) -> &'a str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

/// A whole number with its thousands apart.
pub(super) fn number(count: impl TryInto<u64>) -> String {
    let digits = count.try_into().map_or_else(|_| "0".to_owned(), |count: u64| count.to_string());
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 tool", "2 tools"; Chinese needs one form only, with its measure word.
pub(super) fn counted(
    language: Language,
    count: impl TryInto<u64>,
    one: &str,
    many: &str,
    chinese: &str,
) -> String {
    let count = count.try_into().unwrap_or_default();
    match language {
        Language::English => format!("{} {}", number(count), if count == 1 { one } else { many }),
        Language::Chinese => format!("{} {chinese}", number(count)),
    }
}

/// A count in few digits: `12.3 k`, `4.5 M`; in Chinese by ten thousands.
pub(super) fn short(language: Language, count: u64) -> String {
    let units: &[(u64, &str)] = match language {
        Language::English => &[(1_000_000_000, " B"), (1_000_000, " M"), (1_000, " k")],
        Language::Chinese => &[(100_000_000, " 亿"), (10_000, " 万")],
    };
    let unit = units.iter().find(|(size, _)| count >= 10_000.max(*size));
    let Some((size, name)) = unit else { return number(count) };
    let (whole, tenth) = (count / size, count % size * 10 / size);
    if whole < 100 && tenth > 0 {
        format!("{whole}.{tenth}{name}")
    } else {
        format!("{}{name}", number(whole))
    }
}

/// A date of the form `2026-11-30` without its year.
pub(super) fn day(language: Language, date: &str) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = date.split('-').skip(1).map(|part| part.parse::<usize>().unwrap_or_default());
    let (month, day) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match language {
        Language::English => {
            format!("{day} {}", MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or_default())
        }
        Language::Chinese => format!("{month}月{day}日"),
    }
}

/// A part of a whole in per cent, with one decimal.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let tenths = part.saturating_mul(1_000) / whole;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A time in UTC as `2026-11-30 12:05`.
pub(super) fn time(at_ms: i64) -> String {
    let minutes = at_ms.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(24 * 60), minutes.rem_euclid(24 * 60));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// The date of a day since 1970-01-01 (the civil calendar; Hinnant, "chrono-compatible low-level date algorithms").
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_choice_goes_before_the_browser() {
        let language = |accept: &'static str, cookie: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accept));
            headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
            Language::of(&headers)
        };
        assert_eq!(language("zh-CN,zh;q=0.9,en;q=0.8", ""), Language::Chinese);
        assert_eq!(language("de, en;q=0.5, zh;q=0.1", ""), Language::English);
        assert_eq!(language("fr", ""), Language::English);
        assert_eq!(language("zh-CN", "toolrack-language=en"), Language::English);
        assert_eq!(language("en", "toolrack-language=zh"), Language::Chinese);
    }

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(
            [number(0_u64), number(999_u64), number(1_000_u64), number(12_345_678_u64)],
            ["0", "999", "1,000", "12,345,678"]
        );
        assert_eq!([percent(1, 3), percent(0, 0), percent(5, 5)], ["33.3 %", "0 %", "100.0 %"]);
        let both = |count| [short(Language::English, count), short(Language::Chinese, count)];
        assert_eq!(both(9_999), ["9,999", "9,999"]);
        assert_eq!(both(12_345), ["12.3 k", "1.2 万"]);
        assert_eq!(both(530_000_000), ["530 M", "5.3 亿"]);
        assert_eq!(both(u64::MAX), ["18,446,744,073 B", "184,467,440,737 亿"]);
        let both = |date| [day(Language::English, date), day(Language::Chinese, date)];
        assert_eq!(both("2026-11-03"), ["3 Nov", "11月3日"]);
        assert_eq!(both("x"), ["0 ", "0月0日"]);
        assert_eq!(time(0), "1970-01-01 00:00");
        assert_eq!(time(1_709_208_000_000), "2024-02-29 12:00");
        assert_eq!(date(-1), (1969, 12, 31));
    }
}
