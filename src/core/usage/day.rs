//! Days, counted from 1970-01-01 in UTC.

/// Milliseconds of a day.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The day of a time in milliseconds since the Unix epoch.
pub fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

/// The date of a day, `YYYY-MM-DD` in the proleptic Gregorian calendar.
///
/// By the algorithm `civil_from_days` of <https://howardhinnant.github.io/date_algorithms.html>: years begin in March, so
/// that the leap day is their last.
pub fn date_of(day: i64) -> String {
    let shifted = day.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (day, date) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_782, "2024-02-29"),
            (20_147, "2025-02-28"),
            (20_148, "2025-03-01"),
            (20_422, "2025-11-30"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_of(day), date);
        }
    }

    #[test]
    fn a_day_ends_at_midnight() {
        assert_eq!((day_of(0), day_of(DAY_MS - 1), day_of(DAY_MS), day_of(-1)), (0, 0, 1, -1));
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut seen = String::new();
        for day in -200_000..200_000 {
            let date = date_of(day);
            assert!(date > seen, "{date} after {seen}");
            seen = date;
        }
    }
}
