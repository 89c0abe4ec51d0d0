//! When a second attempt is worth it, and after which pause.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Pause before the retry, drawn at random so that callers who failed together do not come back together.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 50..=250;

/// Statuses that pass.
pub(super) fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

pub(super) fn pause() -> Duration {
    Duration::from_millis(rand::random_range(PAUSE_MS))
}

/// The pause that the server asks for: `retry-after-ms` (Cohere), or `Retry-After` in seconds or as a date.
pub(super) fn asked_pause(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse().ok()).map(Duration::from_millis);
    milliseconds.or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        match text.parse::<f64>() {
            // Some servers write fractions.
            Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            Err(_) => {
                let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
                Some(Duration::from_secs(http_date(text)?.saturating_sub(now)))
            }
        }
    })
}

/// Seconds since 1970 of a date like `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7; the two obsolete forms
/// are not read).
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else { return None };
    let day = day.parse::<u64>().ok().filter(|day| (1..=31).contains(day))?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year = year.parse::<u64>().ok().filter(|year| (1970..=9999).contains(year))?;
    let clock: Vec<u64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    // Years that begin in March, so that the leap day is the last one.
    let (shifted, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = shifted / 4 - shifted / 100 + shifted / 400;
    let days = shifted * 365 + leaps + (from_march * 153 + 2) / 5 + day - 1;
    // Days from 1 March of the year 0 to 1 January 1970.
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (date, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 12:00:00 GMT", Some(951_825_600)),
            ("Mon, 30 Nov 2026 00:00:00 GMT", Some(1_795_996_800)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
            ("", None),
        ] {
            assert_eq!(http_date(date), seconds, "{date}");
        }
    }

    #[test]
    fn the_servers_pause_is_read_in_all_its_forms() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, expected) in [
            ("retry-after", "2", Some(2_000)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e99", None),
            ("x-retry", "2", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(asked_pause(&headers, now), expected.map(Duration::from_millis), "{name}: {value}");
        }
        let mut both = HeaderMap::new();
        both.insert("retry-after", "9".parse().unwrap());
        both.insert("retry-after-ms", "100".parse().unwrap());
        assert_eq!(asked_pause(&both, now), Some(Duration::from_millis(100)));
    }
}
