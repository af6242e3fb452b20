//! Policies by name, with settings after colons: `least-ttft:own=false:tpot=0.5`.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;

/// Whether a number lies in its range.
///
/// # Errors
/// It does not.
pub fn within<T: PartialOrd + Display + Copy>(key: &str, value: T, min: T, max: T) -> Result<(), Problem> {
    Problem::refuse_if(
        !(min..=max).contains(&value),
        key,
        value,
        format_args!("{min} to {max}"),
        "Give a value of that range.",
    )
}

/// A line of a room's table of policies.
pub const fn rule(
    family: &'static str,
    name: &'static str,
    knows: &'static str,
    decides: &'static str,
    citation: &'static str,
) -> Info {
    Info {
        name,
        family,
        citation,
        knows,
        decides,
    }
}

/// What was asked for, setting by setting. The code that opens a policy takes the settings that it has and ends with
/// [`Settings::end`], which refuses the others.
pub struct Settings<'a> {
    what: &'static str,
    text: &'a str,
    /// Name of the policy.
    pub name: &'static str,
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Settings<'a> {
    /// Takes a text apart; `what` stands in errors, such as `router`.
    ///
    /// # Errors
    /// A name that is not among the policies.
    pub fn of(what: &'static str, text: &'a str, policies: &[Info]) -> Result<Settings<'a>, Problem> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let Some(info) = policies.iter().find(|info| info.name == name) else {
            let names: Vec<&str> = policies.iter().map(|info| info.name).collect();
            let hint = "Take one of them, or a policy's file.";
            return Err(Problem::new(what, name, names.join(", "), hint));
        };
        Ok(Settings {
            what,
            text,
            name: info.name,
            given: parts
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .collect(),
            known: Vec::new(),
        })
    }

    /// A setting's text, the last one given.
    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let found = self.given.iter().rev().find(|(given, _)| *given == key);
        found.map(|(_, value)| *value)
    }

    fn refused(&self, key: &str, value: &str, allowed: String, example: &str) -> Problem {
        let key = format!("{} `{}`: {key}", self.what, self.text);
        Problem::new(key, value, allowed, format!("Try `{example}`."))
    }

    /// A number in a range, where it is given.
    ///
    /// # Errors
    /// No number, or one out of range.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Result<Option<f64>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match value.parse::<f64>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let allowed = format!("{} to {}", range.start(), range.end());
                let example = format!("{key}={}", 1.0_f64.clamp(*range.start(), *range.end()));
                Err(self.refused(key, value, allowed, &example))
            }
        }
    }

    /// Whether something is to be so, where that is given.
    ///
    /// # Errors
    /// Neither `true` nor `false`.
    pub fn truth(&mut self, key: &'static str) -> Result<Option<bool>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let refused = |_| self.refused(key, value, "true, false".into(), &format!("{key}=false"));
        value.parse().map(Some).map_err(refused)
    }

    /// All settings are taken.
    ///
    /// # Errors
    /// One that the policy does not have.
    pub fn end(self) -> Result<(), Problem> {
        let unknown = self.given.iter().find(|(key, _)| !self.known.contains(key));
        unknown.map_or(Ok(()), |(key, _)| {
            let what = format!("{} `{}`", self.what, self.text);
            let allowed = self.known.join(", ");
            Err(Problem::new(what, *key, allowed, "Leave it out."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: &[Info] = &[Info {
        name: "edf",
        family: "",
        citation: "",
        knows: "",
        decides: "",
    }];

    fn refusal(text: &str) -> String {
        let open = || {
            let mut settings = Settings::of("dispatcher", text, POLICIES)?;
            settings.number("margin", 0.0..=0.5)?;
            settings.truth("wait")?;
            settings.end()
        };
        open().map_or_else(|error: Problem| error.to_string(), |()| "taken".into())
    }

    #[test]
    fn settings_are_taken_by_key_and_what_is_not_there_is_refused_by_name() {
        let mut settings =
            Settings::of("dispatcher", "edf:margin=0.1:wait=true:margin=0.2", POLICIES).unwrap();
        assert_eq!(settings.number("margin", 0.0..=0.5).unwrap(), Some(0.2));
        assert_eq!(settings.truth("wait").unwrap(), Some(true));
        assert_eq!(settings.number("share", 0.0..=1.0).unwrap(), None);
        settings.end().unwrap();
        for (text, parts) in [
            ("fifo", ["fifo", "edf"]),
            ("edf:margin=2", ["2", "0 to 0.5"]),
            ("edf:margin", ["margin", "0 to 0.5"]),
            ("edf:wait=maybe", ["maybe", "true, false"]),
            ("edf:speed=1", ["speed", "margin, wait"]),
        ] {
            let said = refusal(text);
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
    }
}
