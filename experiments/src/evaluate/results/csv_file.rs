//! Runs as CSV, one row for each.

use std::collections::BTreeSet;

use super::run::PolicyRun;
use crate::error::Error;
use crate::evaluate::metric::Metric;

/// One row for each run, in the order given; every known metric first, then other keys sorted.
///
/// # Errors
/// [`Error::Failed`] where the text cannot be made.
pub(super) fn csv_of_runs(known: &[Metric], runs: &[PolicyRun]) -> Result<String, Error> {
    let known: Vec<&str> = known.iter().map(|metric| metric.key).collect();
    let all: BTreeSet<&str> = runs
        .iter()
        .flat_map(|run| run.metrics.keys().map(String::as_str))
        .collect();
    let keys: Vec<&str> = known
        .iter()
        .copied()
        .chain(all.into_iter().filter(|key| !known.contains(key)))
        .collect();
    let header = ["policy", "workload", "seed"]
        .into_iter()
        .chain(keys.iter().copied());
    let rows = runs.iter().map(|run| {
        let mut row = vec![run.policy.clone(), run.workload.clone(), run.seed.to_string()];
        row.extend(
            keys.iter()
                .map(|&key| run.metrics.get(key).map(f64::to_string).unwrap_or_default()),
        );
        row
    });
    csv_text(header, rows)
}

/// CSV text of a header and rows; fields are quoted where they need it.
pub(crate) fn csv_text<'a>(
    header: impl Iterator<Item = &'a str>,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<String, Error> {
    let failed = |error: String| Error::Failed(format!("the CSV cannot be made: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(header)
        .map_err(|error| failed(error.to_string()))?;
    for row in rows {
        writer
            .write_record(&row)
            .map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}
