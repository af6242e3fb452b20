//! How a unit is called, whatever calls it.

use super::words;
use crate::error::Error;
use crate::sweep::manifest::Manifest;

/// How a unit is called, whatever calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What the sweep is called, in letters, digits and `-`.
    pub label: String,
    /// First eight digits of the manifest's hash.
    pub hash: String,
    /// Units of the sweep.
    pub num_units: usize,
    /// The program, as a shell finds it.
    pub program: String,
    /// The manifest, as a unit finds it.
    pub manifest: String,
    /// Folder of the results, as a unit finds it.
    pub out: String,
    /// Name of the file that is written, for its own instructions.
    pub file: String,
    /// How often a unit that asks for another try is run again.
    pub num_retries: u16,
    /// Units at a time, at most.
    pub num_parallel: u32,
    /// Cores of a unit.
    pub num_cpus: u16,
}

impl Call {
    /// A call of the units of `manifest`, by the settings of a machine with one core for each unit.
    #[must_use]
    pub fn new(manifest: &Manifest, path: String, out: String) -> Call {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        };
        // Short enough for a name of Kubernetes (63) with "sweep-", the hash and the number of a unit around it.
        let label: String = manifest.name().chars().take(30).map(plain).collect();
        Call {
            label,
            hash: manifest.hash()[..8].to_string(),
            num_units: manifest.num_units(),
            program: "pleach".to_string(),
            manifest: path,
            out,
            file: String::new(),
            num_retries: 3,
            num_parallel: 64,
            num_cpus: 1,
        }
    }

    /// The name under which the units run; a DNS label.
    pub(super) fn name(&self) -> String {
        format!("sweep-{}-{}", self.label, self.hash)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        for (flag, word) in [
            ("program", &self.program),
            ("manifest", &self.manifest),
            ("out", &self.out),
            ("file", &self.file),
        ] {
            words::check(flag, word)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sweep::grid::Grid;

    /// The call of a sweep whose every name needs quotes.
    pub(in crate::sweep::emit) fn hostile() -> Call {
        Call {
            label: "load".to_string(),
            hash: "0123abcd".to_string(),
            num_units: 6,
            program: "/opt/my tools/it's \"pleach\"".to_string(),
            manifest: "runs/a $(touch pwned) `b` \\ #c/sweep.json".to_string(),
            out: "runs/a $(touch pwned) `b` #c %A".to_string(),
            file: "runs/it's.sbatch".to_string(),
            num_retries: 3,
            num_parallel: 4,
            num_cpus: 2,
        }
    }

    #[test]
    fn a_call_has_a_name_that_any_system_takes() {
        let text = format!("name = '../É \"x\"; {}'\n[grid]\nload = [1]", "y".repeat(100));
        let grid: Grid = toml::from_str(&text).unwrap();
        let name = Call::new(&grid.plan().unwrap(), "s.json".into(), ".".into()).name();
        assert!(
            name.starts_with("sweep-------x---y") && name.len() <= 63 - 7,
            "{name}"
        );
        assert!(
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{name}"
        );
    }

    #[test]
    fn a_word_with_a_line_break_is_refused() {
        let call = Call {
            manifest: "a\nrm -rf b".to_string(),
            ..hostile()
        };
        assert!(call.check().unwrap_err().to_string().contains("manifest"));
    }
}
