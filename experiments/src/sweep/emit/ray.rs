//! A driver for Ray: a program in Python that hands out the units and tries again those that ask for it.

use serde_json::json;

use super::call::Call;
use super::words::shell;
use crate::error::Error;

/// The driver, with `@NAMES@` for what a sweep sets.
const DRIVER: &str = include_str!("ray_driver.py");

/// The driver.
///
/// # Errors
/// [`Error::Problem`] where a word cannot stand in it.
pub fn ray(call: &Call) -> Result<String, Error> {
    call.check()?;
    let settings = json!({
        "program": call.program,
        "manifest": call.manifest,
        "out": call.out,
        "num_units": call.num_units,
        "num_retries": call.num_retries,
        "num_parallel": call.num_parallel,
        "num_cpus": call.num_cpus,
    });
    // Texts and numbers of JSON are texts and numbers of Python.
    let settings = serde_json::to_string_pretty(&settings)
        .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))?;
    // In a text of Python that begins with three quotes.
    let file = shell(&call.file).replace('\\', "\\\\").replace('"', "\\\"");
    // What people chose last, so that it cannot hold a name that is replaced.
    Ok(DRIVER
        .replace("@LABEL@", &call.label)
        .replace("@NUM_UNITS@", &call.num_units.to_string())
        .replace("@RETRIES@", &call.num_retries.to_string())
        .replace("@SETTINGS@", &settings)
        .replace("@FILE@", &file))
}

#[cfg(test)]
mod tests {
    use super::super::call::tests::hostile;
    use super::*;

    #[test]
    fn the_driver_holds_the_sweep_and_no_name_is_left() {
        let driver = ray(&hostile()).unwrap();
        assert!(driver.contains("\"program\": \"/opt/my tools/it's \\\"pleach\\\"\""));
        assert!(driver.contains("python3 'runs/it'\\\\''s.sbatch'"), "{driver}");
        assert_eq!(driver.matches('@').count(), 0);
    }
}
