//! Days and seconds of the Gregorian calendar.

/// A day and the seconds since its midnight, on some clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Civil {
    /// Year, 0 to 9999.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day, 1 to 31.
    pub day: u32,
    /// Seconds since midnight, 0 to below 86,401.
    pub second: f64,
}

impl Civil {
    /// A day and a time; none where the calendar or the clock has no such.
    #[must_use]
    pub fn new(
        (year, month, day): (i64, u32, u32),
        (hour, minute, second): (u32, u32, f64),
    ) -> Option<Civil> {
        let is_day = (0..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        // 60 is a leap second.
        let is_time = hour < 24 && minute < 60 && (0.0..61.0).contains(&second);
        let second = f64::from(hour * 3600 + minute * 60) + second;
        (is_day && is_time).then_some(Civil {
            year,
            month,
            day,
            second,
        })
    }

    /// Seconds since 1970 on the same clock.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (days(self.year, self.month, self.day) * 86_400) as f64 + self.second
    }
}

/// The day of an instant in UTC, s since 1970, as `2024-03-01`.
#[must_use]
pub fn day_text(unix_s: f64) -> String {
    let (year, month, day) = civil_of((unix_s / 86_400.0).floor() as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Days since 1 January 1970.
///
/// # Source
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (public domain): `days_from_civil`.
pub(super) fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5 + day - 1);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The day of the calendar that is so many days after 1 January 1970: year, month, day.
///
/// # Source
/// As [`days`]: `civil_from_days`.
pub(super) fn civil_of(day: i64) -> (i64, u32, u32) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    // Years begin in March there.
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month as u32, day as u32)
}

pub(super) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        assert_eq!(days(2024, 3, 1), 19_783);
        // One day after the other over four hundred years.
        let mut next = days(1900, 1, 1);
        for year in 1900..2300 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(
                        (days(year, month, day), civil_of(next)),
                        (next, (year, month, day))
                    );
                    next += 1;
                }
            }
        }
        assert_eq!(Civil::new((2023, 2, 29), (0, 0, 0.0)), None);
        assert_eq!(Civil::new((2024, 2, 29), (24, 0, 0.0)), None);
        let late = Civil::new((2024, 2, 29), (23, 59, 59.5)).unwrap();
        assert_eq!(late.seconds(), 1_709_251_199.5);
        assert_eq!(day_text(late.seconds()), "2024-02-29");
        assert_eq!(day_text(-0.5), "1969-12-31");
    }
}
