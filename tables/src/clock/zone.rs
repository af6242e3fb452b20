//! Time zones: a distance from UTC, or two of them with the rules between, as POSIX writes them.

use super::civil::{civil_of, days, days_in_month};

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The same distance from UTC all year, s east.
    Fixed(i64),
    /// Summer time between two changes.
    Summer(Summer),
}

/// A zone with summer time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summer {
    /// Distances from UTC in winter and in summer, s east.
    winter_s: i64,
    summer_s: i64,
    begins: Change,
    ends: Change,
}

/// The `week`-th (5 = last) `weekday` (0 = Sunday) of `month`, at `second` of the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    month: u32,
    week: u32,
    weekday: i64,
    second: i64,
}

/// Rules of whole continents.
///
/// # Source
/// Directive 2000/84/EC (last Sundays of March and October, 1:00 UTC); Energy Policy Act of 2005 (second Sunday of March, first
/// of November, 2:00); the IANA time zone database for who keeps to which.
const NAMED: [(&str, &str); 26] = [
    ("Europe/London", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Europe/Dublin", "GMT0IST,M3.5.0/1,M10.5.0"),
    ("Europe/Lisbon", "WET0WEST,M3.5.0/1,M10.5.0"),
    ("Europe/Athens", EASTERN),
    ("Europe/Bucharest", EASTERN),
    ("Europe/Helsinki", EASTERN),
    ("Europe/Kiev", EASTERN),
    ("Europe/Kyiv", EASTERN),
    ("Europe/Riga", EASTERN),
    ("Europe/Sofia", EASTERN),
    ("Europe/Tallinn", EASTERN),
    ("Europe/Vilnius", EASTERN),
    ("Europe/Istanbul", "TRT-3"),
    ("Europe/Moscow", "MSK-3"),
    ("America/New_York", "EST5EDT,M3.2.0,M11.1.0"),
    ("America/Toronto", "EST5EDT,M3.2.0,M11.1.0"),
    ("America/Chicago", "CST6CDT,M3.2.0,M11.1.0"),
    ("America/Denver", "MST7MDT,M3.2.0,M11.1.0"),
    ("America/Los_Angeles", "PST8PDT,M3.2.0,M11.1.0"),
    ("America/Phoenix", "MST7"),
    ("America/Sao_Paulo", "BRT3"),
    ("Asia/Kolkata", "IST-5:30"),
    ("Asia/Shanghai", "CST-8"),
    ("Asia/Singapore", "SGT-8"),
    ("Asia/Tokyo", "JST-9"),
    ("Australia/Sydney", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
];
const EASTERN: &str = "EET-2EEST,M3.5.0/3,M10.5.0/4";
/// The other names that begin with `Europe/`.
const CENTRAL: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

impl Zone {
    /// A zone by distance (`UTC`, `+01:00`, `-0530`), by name (`Europe/Berlin`) or by a rule of POSIX
    /// (`CET-1CEST,M3.5.0,M10.5.0/3`, the last line of a file of the IANA database); none for other texts.
    #[must_use]
    pub fn of(text: &str) -> Option<Zone> {
        if let Some(offset_s) = offset_s(text) {
            return Some(Zone::Fixed(offset_s));
        }
        if let Some((_, rule)) = NAMED.iter().find(|(name, _)| *name == text) {
            return rule_of(rule);
        }
        if text
            .strip_prefix("Europe/")
            .is_some_and(|city| !city.is_empty() && city.chars().all(|c| c.is_ascii_alphabetic() || c == '_'))
        {
            return rule_of(CENTRAL);
        }
        rule_of(text)
    }

    /// Seconds since 1970 in UTC of seconds since 1970 on this zone's clock. Of the two hours that an autumn has twice it is the
    /// first; an hour that a spring leaves out is counted as if it were not left out.
    #[must_use]
    pub fn to_utc(&self, local_s: f64) -> f64 {
        match self {
            Zone::Fixed(offset_s) => local_s - *offset_s as f64,
            Zone::Summer(zone) => {
                let in_summer = local_s - zone.summer_s as f64;
                if zone.is_summer(in_summer) {
                    in_summer
                } else {
                    local_s - zone.winter_s as f64
                }
            }
        }
    }
}

impl Summer {
    fn is_summer(&self, utc_s: f64) -> bool {
        let day = ((utc_s + self.winter_s as f64) / 86_400.0).floor() as i64;
        let (year, ..) = civil_of(day);
        let begins = (self.begins.local_s(year) - self.winter_s) as f64;
        let ends = (self.ends.local_s(year) - self.summer_s) as f64;
        if begins < ends {
            (begins..ends).contains(&utc_s)
        } else {
            !(ends..begins).contains(&utc_s)
        }
    }
}

impl Change {
    fn local_s(&self, year: i64) -> i64 {
        let first = days(year, self.month, 1);
        // 1 January 1970 was a Thursday.
        let weekday = (first + 4).rem_euclid(7);
        let mut day = 1 + (self.weekday - weekday).rem_euclid(7) + 7 * (i64::from(self.week) - 1);
        while day > i64::from(days_in_month(year, self.month)) {
            day -= 7;
        }
        (first + day - 1) * 86_400 + self.second
    }
}

/// `Z`, `UTC`, `GMT`, `+01:00`, `-0530`, `+2`, `UTC+2`: s east.
pub(super) fn offset_s(text: &str) -> Option<i64> {
    let rest = text
        .strip_prefix("UTC")
        .or_else(|| text.strip_prefix("GMT"))
        .or_else(|| text.strip_prefix('Z'));
    let signed = rest.unwrap_or(text);
    if signed.is_empty() {
        return rest.map(|_| 0);
    }
    let sign = match signed.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = &signed[1..];
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str| -> Option<i64> {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A rule of POSIX: `STD` and its distance west, and perhaps `DST` with its distance and its changes.
fn rule_of(text: &str) -> Option<Zone> {
    let mut parts = text.split(',');
    let names = parts.next()?;
    let (winter_s, rest) = name_and_west_s(names)?;
    if rest.is_empty() {
        return parts.next().is_none().then_some(Zone::Fixed(-winter_s?));
    }
    let winter_s = -winter_s?;
    let (summer_s, rest) = name_and_west_s(rest)?;
    let summer_s = summer_s.map_or(winter_s + 3600, |west| -west);
    let (begins, ends) = (change(parts.next()?)?, change(parts.next()?)?);
    (rest.is_empty() && parts.next().is_none()).then_some(Zone::Summer(Summer {
        winter_s,
        summer_s,
        begins,
        ends,
    }))
}

/// A name and the distance west behind it, s, where there is one; what follows.
fn name_and_west_s(text: &str) -> Option<(Option<i64>, &str)> {
    let rest = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => {
            let rest = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            if text.len() - rest.len() < 3 {
                return None;
            }
            rest
        }
    };
    let end = rest
        .find(|c: char| !(c.is_ascii_digit() || "+-:".contains(c)))
        .unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    if number.is_empty() {
        return Some((None, rest));
    }
    Some((Some(clock_s(number)?), rest))
}

/// `[+-]HH[:MM[:SS]]`, at most a week.
fn clock_s(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut total = 0;
    let mut unit = 3600;
    for part in digits.split(':') {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let value: i64 = is_number.then(|| part.parse().ok()).flatten()?;
        if unit == 0 || value > 167 {
            return None;
        }
        total += value * unit;
        unit /= 60;
    }
    Some(sign * total)
}

/// `M3.5.0/2`.
fn change(text: &str) -> Option<Change> {
    let (day, second) = match text.split_once('/') {
        Some((day, clock)) => (day, clock_s(clock)?),
        None => (text, 7200),
    };
    let mut numbers = day
        .strip_prefix('M')?
        .split('.')
        .map(|part| part.parse::<u32>().ok());
    let (month, week, weekday) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_one = (1..=12).contains(&month) && (1..=5).contains(&week) && weekday < 7;
    (is_one && numbers.next().is_none()).then_some(Change {
        month,
        week,
        weekday: i64::from(weekday),
        second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Civil;

    fn utc(zone: &str, day: (i64, u32, u32), time: (u32, u32, f64)) -> f64 {
        Zone::of(zone)
            .unwrap()
            .to_utc(Civil::new(day, time).unwrap().seconds())
    }

    #[test]
    fn distances_are_east_and_rules_of_posix_west() {
        for (text, hours) in [
            ("UTC", 0.0),
            ("Z", 0.0),
            ("+01:00", 1.0),
            ("-0530", -5.5),
            ("UTC+2", 2.0),
            ("CET-1", 1.0),
        ] {
            assert_eq!(
                Zone::of(text),
                Some(Zone::Fixed((hours * 3600.0) as i64)),
                "{text}"
            );
        }
        for text in [
            "",
            "here",
            "+99:00",
            "Europe/",
            "CET",
            "CET-1CEST",
            "CET-1CEST,M13.5.0,M10.5.0",
            "é",
            "+é1",
        ] {
            assert_eq!(Zone::of(text), None, "{text}");
        }
    }

    #[test]
    fn summer_time_begins_and_ends_when_the_law_says() {
        // Central Europe 2024: forward on 31 March 2:00 -> 3:00 (1:00 UTC), back on 27 October 3:00 -> 2:00.
        let berlin = |day, time| utc("Europe/Berlin", day, time);
        let plain = |day, time| utc("UTC", day, time);
        assert_eq!(
            berlin((2024, 3, 31), (1, 59, 59.0)),
            plain((2024, 3, 31), (0, 59, 59.0))
        );
        assert_eq!(
            berlin((2024, 3, 31), (3, 0, 0.0)),
            plain((2024, 3, 31), (1, 0, 0.0))
        );
        assert_eq!(
            berlin((2024, 10, 27), (1, 59, 0.0)),
            plain((2024, 10, 26), (23, 59, 0.0))
        );
        // The hour that there is twice is read as its first.
        assert_eq!(
            berlin((2024, 10, 27), (2, 30, 0.0)),
            plain((2024, 10, 27), (0, 30, 0.0))
        );
        assert_eq!(
            berlin((2024, 10, 27), (3, 0, 0.0)),
            plain((2024, 10, 27), (2, 0, 0.0))
        );
        // New York 2024: 10 March and 3 November.
        let york = |day, time| utc("America/New_York", day, time);
        assert_eq!(
            york((2024, 3, 10), (3, 0, 0.0)),
            plain((2024, 3, 10), (7, 0, 0.0))
        );
        assert_eq!(
            york((2024, 11, 3), (2, 0, 0.0)),
            plain((2024, 11, 3), (7, 0, 0.0))
        );
        // Sydney: summer over the turn of the year.
        let sydney = |day, time| utc("Australia/Sydney", day, time);
        assert_eq!(
            sydney((2024, 1, 1), (11, 0, 0.0)),
            plain((2024, 1, 1), (0, 0, 0.0))
        );
        assert_eq!(
            sydney((2024, 7, 1), (10, 0, 0.0)),
            plain((2024, 7, 1), (0, 0, 0.0))
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[A-Z<>a-z0-9/,.:+Mé-]{0,40}", local_s in -1e11f64..1e11) {
            if let Some(zone) = Zone::of(&text) {
                let _ = zone.to_utc(local_s);
            }
        }
    }
}
