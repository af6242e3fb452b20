//! A site's `slurm.conf` as text, and files that may lie beside it.

use std::path::Path;

use pleach_scheduler::Problem;
use pleach_scheduler::problem::files;
use pleach_site::slurm::{Conf, missing_weights};

/// Largest of these files, bytes.
const BYTES_MAX: u64 = 1 << 26;
/// Weights in force.
const WEIGHTS: &str = "sprio.txt";

/// A file as text.
pub(crate) fn text(path: &Path) -> Result<String, Problem> {
    let read = std::fs::File::open(path).and_then(|file| files::at_most(file, BYTES_MAX));
    let bytes = read.map_err(|error| Problem::data(path, error.to_string()))?;
    let bytes = bytes.ok_or_else(|| Problem::data(path, format!("it is longer than {BYTES_MAX} bytes")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text as a `slurm.conf`.
pub(crate) fn parsed(path: &Path, text: &str) -> Result<Conf, Problem> {
    Conf::of_text(text).map_err(|error| match error.line {
        0 => Problem::data(path, error.to_string()),
        line => Problem::data(path, format!("line {line}: {error}")),
    })
}

/// A file that may lie beside another.
pub(crate) fn beside(path: &Path, name: &str) -> Result<Option<String>, Problem> {
    let file = path.with_file_name(name);
    file.is_file().then(|| text(&file)).transpose()
}

/// The text of a `slurm.conf`, with the weights that it lacks and `sprio` printed.
pub(crate) fn conf_text(path: &Path) -> Result<String, Problem> {
    let mut conf = text(path)?;
    if let Some(printed) = beside(path, WEIGHTS)? {
        let lines = missing_weights(&parsed(path, &conf)?, &printed);
        let lines = lines.map_err(|told| Problem::data(path.with_file_name(WEIGHTS), told))?;
        conf += &lines.iter().map(|line| format!("\n{line}")).collect::<String>();
    }
    Ok(conf)
}
