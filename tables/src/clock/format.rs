//! How a column writes times: as numbers since 1970, as ISO 8601, or by a pattern; and which of them a column is likely to mean.

use super::zone::offset_s;
use super::{Civil, UNIX_S_MAX, Zone};

/// How times are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Numbers since 1970, or since whatever the list calls 0; how many of them a second has.
    Number(u32),
    /// `2024-03-01T12:00:00`, with a blank for the `T` if one likes, without seconds or with decimals, and with or without a zone.
    Iso,
    /// A pattern of `%Y %y %m %d %b %H %I %p %M %S %z` and what stands between.
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
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
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

    /// Seconds since 1970; a text that names no zone is of `zone`. None where the text is no such time.
    #[must_use]
    pub fn read(&self, text: &str, zone: &Zone) -> Option<f64> {
        let (local_s, east_s) = match self {
            TimeFormat::Number(per_second) => {
                let number: f64 = text.parse().ok()?;
                return Some(number / f64::from(*per_second)).filter(|time| time.abs() <= UNIX_S_MAX);
            }
            TimeFormat::Iso => iso(text)?,
            TimeFormat::Pattern(pattern) => by_pattern(pattern, text)?,
        };
        let unix_s = match east_s {
            Some(east_s) => local_s - east_s as f64,
            None => zone.to_utc(local_s),
        };
        Some(unix_s).filter(|time| time.abs() <= UNIX_S_MAX)
    }
}

/// The format of a column from some of its texts: the first that reads them all. Of days and months that could be either the month
/// is taken to stand first, and then the second value is true. None where no format reads them, or there are none.
#[must_use]
pub fn guess(sample: &[&str]) -> Option<(TimeFormat, bool)> {
    if sample.is_empty() {
        return None;
    }
    let zone = Zone::Fixed(0);
    let reads = |format: &TimeFormat| sample.iter().all(|text| format.read(text, &zone).is_some());
    let numbers: Option<Vec<f64>> = sample.iter().map(|text| text.parse().ok()).collect();
    if let Some(numbers) = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite())) {
        // 1e11 s is the year 5138; 1e11 ms is March 1973.
        let largest = numbers
            .iter()
            .fold(0.0, |most: f64, number| most.max(number.abs()));
        let per_second = match largest {
            _ if largest < 1e11 => 1,
            _ if largest < 1e14 => 1000,
            _ => 1_000_000,
        };
        let format = TimeFormat::Number(per_second);
        return reads(&format).then_some((format, false));
    }
    if reads(&TimeFormat::Iso) {
        return Some((TimeFormat::Iso, false));
    }
    let mut fitting = PATTERNS
        .iter()
        .map(|pattern| TimeFormat::Pattern((*pattern).to_owned()))
        .filter(reads);
    let first = fitting.next()?;
    let is_open = first.name().starts_with("%m/%d") && fitting.any(|other| other.name().starts_with("%d/%m"));
    Some((first, is_open))
}

/// Reads `text` digit by digit.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self
            .rest
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse().ok()
    }

    /// Seconds, with decimals if there are any.
    fn seconds(&mut self) -> Option<f64> {
        let whole = f64::from(self.number(1, 2)?);
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else {
            return Some(whole);
        };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (part, rest) = rest.split_at(digits);
        self.rest = rest;
        let part: f64 = format!("0.{part}").parse().ok()?;
        Some(whole + part)
    }

    fn skip(&mut self, word: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }
}

/// Seconds on the text's own clock, and its distance east of UTC where it says one.
type Read = (f64, Option<i64>);

fn iso(text: &str) -> Option<Read> {
    let mut cursor = Cursor { rest: text };
    let year = i64::from(cursor.number(4, 4)?);
    cursor.skip('-')?;
    let month = cursor.number(1, 2)?;
    cursor.skip('-')?;
    let day = cursor.number(1, 2)?;
    cursor.rest = cursor.rest.strip_prefix(['T', ' ', '_'])?;
    let hour = cursor.number(1, 2)?;
    cursor.skip(':')?;
    let minute = cursor.number(2, 2)?;
    let second = match cursor.skip(':') {
        Some(()) => cursor.seconds()?,
        None => 0.0,
    };
    let zone = cursor.rest.trim();
    let east_s = if zone.is_empty() {
        None
    } else {
        Some(offset_s(zone)?)
    };
    let civil = Civil::new((year, month, day), (hour, minute, second))?;
    Some((civil.seconds(), east_s))
}

fn by_pattern(pattern: &str, text: &str) -> Option<Read> {
    let mut cursor = Cursor { rest: text };
    let (mut year, mut month, mut day) = (1970, 1, 1);
    let (mut hour, mut minute, mut second, mut afternoon, mut east_s) = (0, 0, 0.0, None, None);
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        if sign != '%' {
            cursor.skip(sign)?;
            continue;
        }
        match signs.next()? {
            'Y' => year = i64::from(cursor.number(4, 4)?),
            'y' => year = 2000 + i64::from(cursor.number(2, 2)?),
            'm' => month = cursor.number(1, 2)?,
            'd' => day = cursor.number(1, 2)?,
            'H' | 'I' => hour = cursor.number(1, 2)?,
            'M' => minute = cursor.number(1, 2)?,
            'S' => second = cursor.seconds()?,
            'b' => {
                let name = cursor.rest.get(..3)?.to_ascii_lowercase();
                month = MONTHS.iter().position(|known| *known == name)? as u32 + 1;
                cursor.rest = &cursor.rest[3..];
            }
            'p' => {
                let word = cursor.rest.get(..2)?.to_ascii_uppercase();
                afternoon = Some(match word.as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                cursor.rest = &cursor.rest[2..];
            }
            'z' => {
                east_s = Some(offset_s(cursor.rest)?);
                cursor.rest = "";
            }
            _ => return None,
        }
    }
    if let Some(afternoon) = afternoon {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    let civil = Civil::new((year, month, day), (hour, minute, second))?;
    cursor.rest.is_empty().then_some((civil.seconds(), east_s))
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
        TimeFormat::of(format).unwrap().read(text, &Zone::Fixed(3600))
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
        assert_eq!(name(&["soon"]), None);
        assert_eq!(name(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_and_no_pattern_panics(
            pattern in "[%YymdbHIpMSz/. :é-]{0,24}",
            text in "[0-9TZé:./ AMPmar+-]{0,40}",
        ) {
            let _ = guess(&[&text]);
            if let Some(format) = TimeFormat::of(&pattern) {
                let _ = format.read(&text, &Zone::Fixed(0));
            }
        }
    }
}
