//! Which column of a site's table means what, in which units and on which clock: a TOML file. It is guessed from the header and
//! shown, and a user may edit it and give it back.

use std::collections::BTreeMap;

use pleach_scheduler::settings;
use pleach_tables::Delimiter;
use pleach_tables::clock::{self, TimeFormat};

use super::Fate;
use super::role::Role;
use crate::Error;
use crate::import::Published;
use crate::table::shorten;

/// Most entries of each table of a mapping.
const ENTRIES_MAX: usize = 1000;

settings! {
    /// How a table is read.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Mapping {
        /// Where a list of this crate comes from.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub source: String;
        /// Headers by which a list is known: names that all are there.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub headers: Vec<Vec<String>>;
        /// What stands between the fields: `|`, `,`, `;` or `tab`.
        pub delimiter: String = ",".into();
        /// Zone of times that name none: `UTC`, `+01:00`, `Europe/Berlin`, or a rule of POSIX.
        pub time_zone: String = "UTC".into();
        /// How times are written: `iso`, `unix_s`, `unix_ms`, `unix_us`, or a pattern such as `%d.%m.%Y %H:%M`.
        pub time_format: String = "iso".into();
        /// Unit of run times that are plain numbers: `s`, `ms`, `min`, `h`; of a published list that of all its times.
        pub run_time_unit: String = "s".into();
        /// Unit of time limits that are plain numbers.
        pub time_limit_unit: String = "s".into();
        /// Whether ids are Slurm's: steps have rows of their own, arrays and heterogeneous jobs are known by their ids.
        pub slurm_ids: bool;
        /// Whether a job keeps the number of GPUs that it had on each node; else it is cut as one likes.
        pub as_allocated: bool = true;
        /// Columns by what they mean.
        pub columns: BTreeMap<Role, String>;
        /// What words for states mean, beside those that are known.
        pub states: BTreeMap<String, Fate>;
        /// Names of GPU types in the table, and in the cluster.
        pub gpu_types: BTreeMap<String, String>;
        /// How fast GPU types are, by their names in the cluster; 1 where nothing is said. A run time is taken to the type of speed 1.
        pub speeds: BTreeMap<String, f64>;
        /// What is published of a list whose cells are right, beside its columns; none: a site's own, of which much may be amiss.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub published: Option<Published>;
    }
}

impl Mapping {
    /// A mapping from the text of a file.
    ///
    /// # Errors
    /// `file` with everything that is wrong in it.
    pub fn of_text(file: &str, text: &str) -> Result<Mapping, Error> {
        let mapping: Mapping = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            Error::at_byte(
                file,
                text,
                start,
                format!("{}; see docs/import.md", error.message()),
            )
        })?;
        let faults = mapping.faults();
        if faults.is_empty() {
            return Ok(mapping);
        }
        Err(Error::data(file, faults.join("; ")))
    }

    /// The text of a file that reads back as this mapping.
    #[must_use]
    pub fn text(&self) -> String {
        let head = "# How a table of jobs is read (docs/import.md). Edit it and give it back: pleach workload import --mapping FILE\n\n";
        format!("{head}{}", toml::to_string(self).unwrap_or_default())
    }

    /// Everything that is wrong, a sentence each.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |is_right: bool, key: &str, value: &str, allowed: &str| {
            if !is_right {
                faults.push(format!("{key} = `{}`: allowed is {allowed}", shorten(value)));
            }
        };
        check(
            delimiter(&self.delimiter).is_some(),
            "delimiter",
            &self.delimiter,
            "`|`, `,`, `;` or `tab`",
        );
        let zones = "`UTC`, a distance such as `+01:00`, a name such as `Europe/Berlin`, or a rule of POSIX";
        check(
            clock::zone(&self.time_zone).is_some(),
            "time_zone",
            &self.time_zone,
            zones,
        );
        let formats = "`iso`, `unix_s`, `unix_ms`, `unix_us`, or a pattern with a year, a month and a day such as `%d.%m.%Y %H:%M`";
        check(
            TimeFormat::of(&self.time_format).is_some(),
            "time_format",
            &self.time_format,
            formats,
        );
        for (key, unit) in [
            ("run_time_unit", &self.run_time_unit),
            ("time_limit_unit", &self.time_limit_unit),
        ] {
            check(unit_s(unit).is_some(), key, unit, "`s`, `ms`, `min` or `h`");
        }
        for (key, num) in [
            ("states", self.states.len()),
            ("gpu_types", self.gpu_types.len()),
            ("speeds", self.speeds.len()),
        ] {
            check(
                num <= ENTRIES_MAX,
                key,
                &format!("{num} entries"),
                "at most 1,000",
            );
        }
        for (name, speed) in &self.speeds {
            let key = format!("speeds.{name}");
            check(
                (1e-6..=1e6).contains(speed),
                &key,
                &speed.to_string(),
                "1e-6 to 1e6",
            );
        }
        if let Some(published) = &self.published {
            faults.extend(published.faults());
        }
        let missing = self.missing();
        if !missing.is_empty() {
            faults.push(format!("columns: {missing}"));
        }
        faults
    }

    /// What no column is given for and nothing can be read without; empty where all is there.
    pub(super) fn missing(&self) -> String {
        let has = |role: Role| self.columns.contains_key(&role);
        let mut missing = Vec::new();
        if !has(Role::Submit) {
            missing.push("when a job was submitted (submit)");
        }
        if !has(Role::Gpus) && !has(Role::GpusAsked) {
            missing.push("how many GPUs it had (gpus)");
        }
        let published = self.published.as_ref();
        if published.is_some_and(|published| published.by_code) {
            return String::new();
        }
        let is_timed = has(Role::RunTime)
            || (has(Role::Start) && has(Role::End))
            || published.is_some_and(|published| !published.gpu_hours.is_empty());
        if !is_timed {
            missing.push("how long it ran (run_time, or start and end)");
        }
        match missing.is_empty() {
            true => String::new(),
            false => format!("no column says {}", missing.join(", ")),
        }
    }

    /// Length of the unit of run times, s.
    pub(in crate::import) fn unit_s(&self) -> f64 {
        unit_s(&self.run_time_unit).unwrap_or(1.0)
    }

    pub(super) fn between(&self) -> Delimiter {
        delimiter(&self.delimiter).unwrap_or(Delimiter::Comma)
    }

    /// One line: what is read from which column.
    #[must_use]
    pub fn line(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(role, name)| format!("{} = {name}", role.word()))
            .collect();
        format!(
            "columns: {}; times {} in {}",
            columns.join(", "),
            self.time_format,
            self.time_zone
        )
    }
}

fn delimiter(text: &str) -> Option<Delimiter> {
    match text {
        "|" => Some(Delimiter::Bar),
        "," => Some(Delimiter::Comma),
        ";" => Some(Delimiter::Semicolon),
        "tab" | "\t" => Some(Delimiter::Tab),
        _ => None,
    }
}

/// Length of a unit, s.
pub(super) fn unit_s(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1.0),
        "ms" => Some(1e-3),
        "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}
