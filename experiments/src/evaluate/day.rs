//! Days and lengths of time on the command line: `3`, `2026-09-01`, `2d`, `36h`.

use std::fmt;

use pleach_tables::clock::{TimeFormat, UTC, day_text, words_s};
use serde::{Deserialize, Serialize};

/// Seconds of a day.
pub const DAY_S: f64 = 86_400.0;

/// A day of a list: its number from 0 on, or a date.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum Day {
    /// From the list's day 0 on, at least 0; a half is noon.
    Number(f64),
    /// Midnight in UTC, s since 1970.
    Date(f64),
}

/// How files write it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Number(f64),
    Date(String),
}

impl From<Day> for Form {
    fn from(day: Day) -> Form {
        match day {
            Day::Number(number) => Form::Number(number),
            date @ Day::Date(_) => Form::Date(date.to_string()),
        }
    }
}

impl TryFrom<Form> for Day {
    type Error = String;

    fn try_from(form: Form) -> Result<Day, String> {
        match form {
            Form::Number(number) => Day::read(&number.to_string()),
            Form::Date(text) => Day::read(&text),
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Day::Number(number) => write!(out, "{number}"),
            Day::Date(unix_s) => out.write_str(&day_text(*unix_s)),
        }
    }
}

impl Day {
    /// From a flag.
    ///
    /// # Errors
    /// A sentence with the allowed set.
    pub fn read(text: &str) -> Result<Day, String> {
        let allowed = "allowed is a number of days from 0 on, or a date such as 2026-09-01 (UTC)";
        if let Ok(number) = text.trim().parse::<f64>() {
            let is_day = number.is_finite() && (0.0..=1e6).contains(&number);
            return is_day
                .then_some(Day::Number(number))
                .ok_or_else(|| allowed.into());
        }
        let date = TimeFormat::of("%Y-%m-%d").and_then(|format| format.read(text.trim(), &UTC));
        date.map(Day::Date).ok_or_else(|| allowed.into())
    }

    /// Where it begins, s: on the list's clock where it is a number, and else since 1970, which the second value says.
    #[must_use]
    pub fn begins_s(self) -> (f64, bool) {
        match self {
            Day::Number(number) => (number * DAY_S, false),
            Day::Date(unix_s) => (unix_s, true),
        }
    }

    /// Where it begins on the clock of a list whose time 0 is at `time_0_unix_s`, s; none where a date is asked of a list without.
    #[must_use]
    pub fn on_clock(self, time_0_unix_s: Option<f64>) -> Option<f64> {
        match self.begins_s() {
            (at_s, false) => Some(at_s),
            (at_s, true) => Some(at_s - time_0_unix_s?),
        }
    }
}

/// A length in days: a number, or words such as `2d` and `36h`.
///
/// # Errors
/// A sentence with the allowed set.
pub fn days(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok();
    let days = number.or_else(|| words_s(text).map(|seconds| seconds / DAY_S));
    let is_length = |days: &f64| days.is_finite() && *days > 0.0 && *days <= 1e6;
    days.filter(is_length)
        .ok_or_else(|| "allowed is a number of days above 0, or a length such as 2d or 36h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_numbers_or_dates_in_flags_and_files() {
        assert_eq!(Day::read("3.5"), Ok(Day::Number(3.5)));
        let date = Day::read("2026-09-01").unwrap();
        assert_eq!(
            (date, date.to_string().as_str()),
            (Day::Date(1_788_220_800.0), "2026-09-01")
        );
        // Noon of the day before is time 0.
        assert_eq!(date.on_clock(Some(1_788_177_600.0)), Some(43_200.0));
        assert_eq!(
            (date.on_clock(None), Day::Number(2.0).on_clock(None)),
            (None, Some(172_800.0))
        );
        for day in [date, Day::Number(2.0)] {
            let text = serde_json::to_string(&day).unwrap();
            assert_eq!(serde_json::from_str::<Day>(&text).unwrap(), day, "{text}");
        }
        for text in ["-1", "nan", "2026-13-01", "09/01/2026", "soon", ""] {
            assert!(Day::read(text).unwrap_err().contains("2026-09-01"), "{text}");
        }
    }

    #[test]
    fn lengths_are_numbers_of_days_or_words() {
        assert_eq!((days("2"), days("2d"), days("36h")), (Ok(2.0), Ok(2.0), Ok(1.5)));
        for text in ["0", "-1", "inf", "2x", ""] {
            assert!(days(text).unwrap_err().contains("36h"), "{text}");
        }
    }
}
