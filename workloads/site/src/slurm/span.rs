//! Spans of time as Slurm prints them: `[DAYS-]HH:MM:SS`, `MM:SS`, with decimals; `UNLIMITED`.

use super::devices::Unread;

/// Seconds in a text; none where it is no span or has no end (`UNLIMITED`, `Partition_Limit`, `INVALID`).
#[must_use]
pub fn span_s(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (whole(days)?, clock),
        None => (0.0, text),
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let is_days = text.contains('-');
    let (hours, minutes, seconds) = match parts[..] {
        [hours] if is_days => (whole(hours)?, 0.0, 0.0),
        [hours, minutes] if is_days => (whole(hours)?, whole(minutes)?, 0.0),
        [minutes, seconds] => (0.0, whole(minutes)?, decimal(seconds)?),
        [hours, minutes, seconds] => (whole(hours)?, whole(minutes)?, decimal(seconds)?),
        _ => return None,
    };
    Some(((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds)
}

/// A time limit, s; none where there is none.
///
/// # Errors
/// A text that is neither.
pub fn limit_s(text: &str) -> Result<Option<f64>, Unread> {
    match text.to_ascii_uppercase().as_str() {
        "UNLIMITED" | "PARTITION_LIMIT" | "INVALID" | "NOT_SET" | "INFINITE" => Ok(None),
        _ => span_s(text).map(Some).ok_or(Unread),
    }
}

fn whole(text: &str) -> Option<f64> {
    text.parse::<u32>().ok().map(f64::from)
}

fn decimal(text: &str) -> Option<f64> {
    text.starts_with(|c: char| c.is_ascii_digit())
        .then(|| text.parse::<f64>().ok())
        .flatten()
        .filter(|seconds| seconds.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_days_hours_and_decimals() {
        assert_eq!(span_s("00:10"), Some(10.0));
        assert_eq!(span_s("01:00:10"), Some(3610.0));
        assert_eq!(span_s("2-03:04:05"), Some(2.0 * 86_400.0 + 11_045.0));
        assert_eq!(span_s("1-12"), Some(1.5 * 86_400.0));
        assert_eq!(span_s("00:00.250"), Some(0.25));
        for text in [
            "",
            "UNLIMITED",
            "Partition_Limit",
            "10",
            "-1:00",
            "1:2:3:4",
            "a:b",
            "1:nan",
        ] {
            assert_eq!(span_s(text), None, "{text}");
        }
    }

    #[test]
    fn a_limit_is_a_span_or_none() {
        assert_eq!(limit_s("1-00:00:00"), Ok(Some(86_400.0)));
        for text in ["UNLIMITED", "Partition_Limit", "NOT_SET", "INVALID", "infinite"] {
            assert_eq!(limit_s(text), Ok(None), "{text}");
        }
        assert_eq!((limit_s(""), limit_s("soon")), (Err(Unread), Err(Unread)));
    }
}
