//! Times of day as files write them, as seconds since 1970 in UTC: by `jiff`, whose time zones come with it and not from the
//! machine. No clock is read here.

use jiff::civil::Time;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::{DateTimeParser, Pieces};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, civil::DateTime};

/// Latest time that is read, s: the year 4000; the earliest is its negative.
const UNIX_S_MAX: f64 = 64e9;

/// Greenwich's, where no other is given.
pub const UTC: TimeZone = TimeZone::UTC;

/// A zone by distance (`UTC`, `+01:00`, `-0530`), by its name in the IANA database (`Europe/Berlin`) or by a rule of POSIX
/// (`CET-1CEST,M3.5.0,M10.5.0/3`); none for other texts.
#[must_use]
pub fn zone(text: &str) -> Option<TimeZone> {
    DateTimeParser::new()
        .parse_time_zone_with(&TimeZoneDatabase::bundled(), text)
        .ok()
}

/// The day of an instant in UTC, s since 1970, as `2024-03-01`.
#[must_use]
pub fn day_text(unix_s: f64) -> String {
    let at = Timestamp::from_second(unix_s.floor() as i64).unwrap_or(Timestamp::MIN);
    at.strftime("%F").to_string()
}

/// Seconds of a span in words: `2d`, `1.5 h`, `1h30m`, `2 days`. None where a number has no unit, or there is anything else.
#[must_use]
pub fn words_s(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut sum_s = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let unit = behind
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let unit_s = match unit.to_ascii_lowercase().as_str() {
            "d" | "day" | "days" => 86_400.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            _ => return None,
        };
        sum_s += number.parse::<f64>().ok()? * unit_s;
        rest = behind.trim_start_matches([',', ' ']);
    }
    Some(sum_s).filter(|sum_s| sum_s.is_finite() && !text.trim().is_empty())
}

/// How times are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Numbers since 1970, or since whatever the list calls 0; how many of them a second has.
    Number(u32),
    /// `2024-03-01T12:00:00`, with a blank for the `T` if one likes, without seconds or with decimals, and with or without a zone.
    Iso,
    /// A pattern of `%Y %y %m %d %b %H %I %p %M %S %z` and what stands between; `%S` may have decimals.
    Pattern(String),
}

/// Patterns that are tried where a column is neither numbers nor ISO 8601, the first that reads all of a sample is taken.
const PATTERNS: [&str; 16] = [
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %I:%M:%S %p",
    "%d-%b-%Y %H:%M:%S",
    "%d %b %Y %H:%M:%S",
    "%b %d %Y %H:%M:%S",
    "%Y%m%dT%H%M%S",
    "%Y-%m-%d",
];

impl TimeFormat {
    /// A format by name: `unix_s`, `unix_ms`, `unix_us`, `iso`, or a pattern with `%`; none for other texts.
    #[must_use]
    pub fn of(text: &str) -> Option<TimeFormat> {
        match text {
            "unix_s" => Some(TimeFormat::Number(1)),
            "unix_ms" => Some(TimeFormat::Number(1000)),
            "unix_us" => Some(TimeFormat::Number(1_000_000)),
            "iso" => Some(TimeFormat::Iso),
            pattern if is_pattern(pattern) => Some(TimeFormat::Pattern(pattern.into())),
            _ => None,
        }
    }

    /// Its name, as [`TimeFormat::of`] takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            TimeFormat::Number(1) => "unix_s",
            TimeFormat::Number(1000) => "unix_ms",
            TimeFormat::Number(_) => "unix_us",
            TimeFormat::Iso => "iso",
            TimeFormat::Pattern(pattern) => pattern,
        }
    }

    /// Seconds since 1970; a text that names no zone is of `zone`: of the two hours that an autumn has twice the first, and an hour
    /// that a spring leaves out is counted as if it were not left out. None where the text is no such time.
    #[must_use]
    pub fn read(&self, text: &str, zone: &TimeZone) -> Option<f64> {
        let (local, offset) = match self {
            TimeFormat::Number(per_second) => {
                let number: f64 = text.parse().ok()?;
                return Some(number / f64::from(*per_second)).filter(|time| time.abs() <= UNIX_S_MAX);
            }
            TimeFormat::Iso => iso(text)?,
            TimeFormat::Pattern(pattern) => by_pattern(pattern, text)?,
        };
        let at = match offset {
            Some(offset) => offset.to_timestamp(local).ok()?,
            None => zone.to_timestamp(local).ok()?,
        };
        let unix_s = at.as_second() as f64 + f64::from(at.subsec_nanosecond()) / 1e9;
        Some(unix_s).filter(|time| time.abs() <= UNIX_S_MAX)
    }
}

/// The format of a column from some of its texts: the first that reads them all, else the one that reads the most of them, if that
/// are more than half. Of days and months that could be either the month is taken to stand first, and then the second value is true.
/// None where no format reads as many, or there are none.
#[must_use]
pub fn guess(sample: &[&str]) -> Option<(TimeFormat, bool)> {
    let num_read = |format: &TimeFormat| {
        let read = |text: &&&str| format.read(text, &TimeZone::UTC).is_some();
        sample.iter().filter(read).count()
    };
    let numbers = sample.iter().filter_map(|text| text.parse::<f64>().ok());
    let mut numbers: Vec<f64> = numbers
        .map(f64::abs)
        .filter(|number| number.is_finite())
        .collect();
    numbers.sort_unstable_by(f64::total_cmp);
    // 1e11 s is the year 5138; 1e11 ms is March 1973. One odd number among them says nothing.
    let per_second = match numbers.get(numbers.len() / 2) {
        Some(middle) if *middle >= 1e14 => 1_000_000,
        Some(middle) if *middle >= 1e11 => 1000,
        _ => 1,
    };
    let patterns = PATTERNS
        .iter()
        .map(|pattern| TimeFormat::Pattern((*pattern).to_owned()));
    let formats = [TimeFormat::Number(per_second), TimeFormat::Iso]
        .into_iter()
        .chain(patterns);
    let mut best: Option<(TimeFormat, usize)> = None;
    let mut is_open = false;
    for format in formats {
        let is_settled =
            |(format, num): &(TimeFormat, usize)| *num == sample.len() && !format.name().starts_with("%m/%d");
        if best.as_ref().is_some_and(is_settled) {
            break;
        }
        let num = num_read(&format);
        let most = best.as_ref().map_or(sample.len() / 2, |(_, most)| *most);
        if num > most {
            best = Some((format, num));
            is_open = false;
        } else if let Some((first, _)) = &best
            && num == most
        {
            is_open |= first.name().starts_with("%m/%d") && format.name().starts_with("%d/%m");
        }
    }
    best.map(|(format, _)| (format, is_open))
}

/// A time on the text's own clock, and its distance from UTC where it says one.
type Read = (DateTime, Option<Offset>);

fn iso(text: &str) -> Option<Read> {
    let bare = text.strip_suffix(" UTC").or_else(|| text.strip_suffix(" GMT"));
    let pieces = Pieces::parse(bare.unwrap_or(text)).ok()?;
    let offset = pieces.to_numeric_offset().or(bare.map(|_| Offset::UTC));
    Some((pieces.date().to_datetime(pieces.time()?), offset))
}

fn by_pattern(pattern: &str, text: &str) -> Option<Read> {
    let read = BrokenDownTime::parse(pattern.replace("%S", "%S%.f"), text).ok()?;
    let has_time = pattern.contains("%H") || pattern.contains("%I");
    let time = match has_time {
        true => read.to_time().ok()?,
        false => Time::midnight(),
    };
    Some((read.to_date().ok()?.to_datetime(time), read.offset()))
}

/// Whether a text is a pattern that names a day.
fn is_pattern(text: &str) -> bool {
    let mut names = String::new();
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        if sign == '%' {
            match signs.next() {
                Some(name) if "YymdbHIpMSz".contains(name) => names.push(name),
                _ => return false,
            }
        }
    }
    names.contains(['Y', 'y']) && names.contains(['m', 'b']) && names.contains('d')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, text: &str) -> Option<f64> {
        TimeFormat::of(format)
            .unwrap()
            .read(text, &zone("+01:00").unwrap())
    }

    #[test]
    fn zones_have_distances_names_or_rules() {
        let noon = |text: &str| TimeFormat::Iso.read("2024-03-01T12:00:00", &zone(text).unwrap());
        for (text, hours) in [
            ("UTC", 0.0),
            ("+01:00", 1.0),
            ("-0530", -5.5),
            ("CET-1", 1.0),
            ("Europe/Minsk", 3.0),
            ("Asia/Kolkata", 5.5),
        ] {
            assert_eq!(noon(text), Some(1_709_294_400.0 - 3600.0 * hours), "{text}");
        }
        for text in [
            "",
            "here",
            "+99:00",
            "Europe/",
            "Europe/Nowhere",
            "CET-1CEST,M13.5.0,M10.5.0",
            "é",
            "+é1",
        ] {
            assert_eq!(zone(text), None, "{text}");
        }
    }

    #[test]
    fn summer_time_begins_and_ends_when_the_law_says() {
        let utc = |text: &str| TimeFormat::Iso.read(text, &TimeZone::UTC).unwrap();
        // Central Europe 2024: forward on 31 March 2:00 -> 3:00 (1:00 UTC), back on 27 October 3:00 -> 2:00; the hour that there is
        // twice is read as its first. New York: 10 March and 3 November. Sydney: summer over the turn of the year.
        for (name, local, same) in [
            ("Europe/Berlin", "2024-03-31 01:59:59", "2024-03-31 00:59:59"),
            ("Europe/Berlin", "2024-03-31 03:00", "2024-03-31 01:00"),
            ("Europe/Berlin", "2024-10-27 01:59", "2024-10-26 23:59"),
            ("Europe/Berlin", "2024-10-27 02:30", "2024-10-27 00:30"),
            ("Europe/Berlin", "2024-10-27 03:00", "2024-10-27 02:00"),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2024-07-01 12:00",
                "2024-07-01 10:00",
            ),
            ("America/New_York", "2024-03-10 03:00", "2024-03-10 07:00"),
            ("America/New_York", "2024-11-03 02:00", "2024-11-03 07:00"),
            ("Australia/Sydney", "2024-01-01 11:00", "2024-01-01 00:00"),
            ("Australia/Sydney", "2024-07-01 10:00", "2024-07-01 00:00"),
        ] {
            let at = TimeFormat::Iso.read(local, &zone(name).unwrap());
            assert_eq!(at, Some(utc(same)), "{name} {local}");
        }
        assert_eq!(day_text(utc("2024-02-29T23:59:59.5")), "2024-02-29");
        assert_eq!(day_text(-0.5), "1969-12-31");
    }

    #[test]
    fn the_same_instant_is_read_in_every_format() {
        // 1 March 2024, 12:00:00 UTC; the zone is an hour east.
        let noon = 1_709_294_400.0;
        for (format, text) in [
            ("unix_s", "1709294400"),
            ("unix_ms", "1709294400000"),
            ("unix_us", "1709294400000000"),
            ("iso", "2024-03-01T13:00:00"),
            ("iso", "2024-03-01 13:00"),
            ("iso", "2024-03-01T12:00:00Z"),
            ("iso", "2024-03-01T17:30:00.000+05:30"),
            ("iso", "2024-03-01 12:00:00 UTC"),
            ("%d.%m.%Y %H:%M", "1.3.2024 13:00"),
            ("%m/%d/%Y %I:%M:%S %p", "03/01/2024 01:00:00 PM"),
            ("%d %b %Y %H:%M:%S", "01 Mar 2024 13:00:00"),
            ("%Y-%m-%d %H:%M:%S %z", "2024-03-01 12:00:00 +0000"),
        ] {
            assert_eq!(read(format, text), Some(noon), "{format} {text}");
        }
        assert_eq!(read("iso", "2024-03-01T13:00:00.250"), Some(noon + 0.25));
        for (format, text) in [
            ("iso", "2024-02-30T00:00:00"),
            ("iso", "2024-03-01"),
            ("iso", "2024-03-01T25:00:00"),
            ("iso", "Unknown"),
            ("unix_s", "nan"),
            ("unix_s", "1e300"),
            ("%m/%d/%Y %I:%M %p", "03/01/2024 13:00 PM"),
        ] {
            assert_eq!(read(format, text), None, "{format} {text}");
        }
        for text in ["", "noon", "%Y", "%Y-%m", "%Q%Y%m%d", "%Y%m%d%"] {
            assert_eq!(TimeFormat::of(text), None, "{text}");
        }
    }

    #[test]
    fn spans_in_words_have_a_unit_for_each_number() {
        for (text, seconds) in [
            ("2d", 172_800.0),
            ("1.5 h", 5400.0),
            ("1h30m", 5400.0),
            ("2 days", 172_800.0),
            ("90 Min", 5400.0),
        ] {
            assert_eq!(words_s(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "2",
            "d",
            "2x",
            "2d3",
            "1.2.3h",
            "soon",
            "2d,x",
            "-2d",
            "2d 99",
            "1e3h",
            "1d 02:03:04",
            "1 day, 2:03:04",
        ] {
            assert_eq!(words_s(text), None, "{text}");
        }
    }

    #[test]
    fn a_column_tells_its_format() {
        let name =
            |sample: &[&str]| guess(sample).map(|(format, is_open)| (format.name().to_owned(), is_open));
        let of = |name: &str, is_open| Some((name.to_owned(), is_open));
        assert_eq!(name(&["1709294400", "1709294401.5"]), of("unix_s", false));
        assert_eq!(name(&["1709294400000"]), of("unix_ms", false));
        assert_eq!(name(&["0", "12.5"]), of("unix_s", false));
        assert_eq!(
            name(&["2024-03-01T13:00:00", "2024-03-01 13:00"]),
            of("iso", false)
        );
        assert_eq!(name(&["13.03.2024 01:02"]), of("%d.%m.%Y %H:%M", false));
        // Days and months that could be either: the month first, and it is said.
        assert_eq!(
            name(&["03/04/2024 01:02", "05/06/2024 01:02"]),
            of("%m/%d/%Y %H:%M", true)
        );
        assert_eq!(
            name(&["03/04/2024 01:02", "25/06/2024 01:02"]),
            of("%d/%m/%Y %H:%M", false)
        );
        assert_eq!(
            name(&["03/04/2024 01:02", "05/26/2024 01:02"]),
            of("%m/%d/%Y %H:%M", false)
        );
        // One cell that is no time spoils no column.
        assert_eq!(
            name(&["13.03.2024 01:02", "gpu", "14.03.2024 01:02"]),
            of("%d.%m.%Y %H:%M", false)
        );
        assert_eq!(name(&["1709294400", "lab", "1709294401"]), of("unix_s", false));
        assert_eq!(name(&["2024-03-01T13:00:00", "x"]), None);
        assert_eq!(name(&["soon"]), None);
        assert_eq!(name(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_and_no_pattern_panics(
            pattern in "[%YymdbHIpMSz/. :é-]{0,24}",
            text in "[0-9TZé:./ AMPmar+-]{0,40}",
            name in "[A-Z<>a-z0-9/,.:+Mé-]{0,40}",
        ) {
            let _ = zone(&name);
            let _ = words_s(&text);
            let _ = guess(&[&text]);
            if let Some(format) = TimeFormat::of(&pattern) {
                let _ = format.read(&text, &TimeZone::UTC);
            }
        }
    }
}
