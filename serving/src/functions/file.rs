//! Lists of calls in files: ours, Azure's and Alibaba's.
//!
//! | format | recognised by | run times | cold starts |
//! |---|---|---|---|
//! | ours | columns `arrival_s`, `function`, `run_s`; also `cold_s`, `slices` | each call's | the list's |
//! | Azure Functions 2021 | `app`, `func`, `end_timestamp`, `duration` (s) | each call's | *assumed* |
//! | Azure Functions 2019 | `HashApp`, `HashFunction`, a column a minute; run times beside | drawn by percentiles | *assumed* |
//! | Alibaba GenAI 2026 | `gmt_create`, `exec_time_seconds`, `checkpoint_model_version_id`, `num_lora` | each call's | measured, files beside |
//!
//! Text may be gzipped. Rows that are left out or mended are counted.

mod alibaba;
mod azure;
#[cfg(test)]
mod tests;

use std::path::Path;

use pleach_tables::{Problem, Table};
use pleach_workloads::Seed;

use super::calls::{ARRIVAL_S_MAX, COLD_S, Called, Calls, FIX, Names, RUN_S_MAX, whole};
use super::platform::GPU_SLICES;

/// Reads a list in any of the formats. Where it has counts alone, times are drawn by the seed.
///
/// # Errors
/// A file that is not there, a format that is not known, a value out of range with its line and column.
pub fn read(path: &Path, seed: Seed) -> Result<Calls, Problem> {
    let table = Table::open(path, &[])?;
    let has = |name: &str| table.column(name).is_some();
    let mut list = if has("HashFunction") {
        azure::counted(path, table, seed)?
    } else if has("func") && has("end_timestamp") {
        azure::timed(table)?
    } else if has("gmt_create") && has("checkpoint_model_version_id") {
        alibaba::genai(path, table)?
    } else if has("instance_sn") && has("deletion_time") {
        let text =
            "instances with the days that they live, no calls: import them as jobs (pleach workload import)";
        return Err(table.error("-", text.into()));
    } else {
        ours(Table::open(path, &["arrival_s", "function", "run_s"])?)?
    };
    if list.calls.is_empty() {
        return Err(whole(path, "no call is left"));
    }
    list.calls.sort_unstable();
    let first_us = list.calls[0].at_us;
    list.calls.iter_mut().for_each(|call| call.at_us -= first_us);
    if list.functions.iter().any(|function| function.cold_s.is_none()) {
        list.notes.push(format!("assumed: cold starts of {COLD_S} s"));
    }
    Ok(list)
}

/// Whether a file has calls of functions: the header of one of the formats.
#[must_use]
pub fn is_calls(path: &Path) -> bool {
    let known = [
        "HashFunction",
        "func",
        "checkpoint_model_version_id",
        "function",
        "instance_sn",
    ];
    Table::open(path, &[]).is_ok_and(|table| known.iter().any(|name| table.column(name).is_some()))
}

fn ours(mut table: Table) -> Result<Calls, Problem> {
    let [arrival, function, run, cold, slices] =
        ["arrival_s", "function", "run_s", "cold_s", "slices"].map(|name| table.column(name));
    let (mut list, mut names, mut num_mended) = (Calls::new("ours"), Names::default(), 0);
    while table.next_row()? {
        list.account.rows_read += 1;
        let called = |name: String| -> Result<Called, Problem> {
            let slices = table.optional(slices, 0.0, f64::from(GPU_SLICES), FIX)?;
            Ok(Called {
                name,
                slices: slices.unwrap_or(0.0) as u16,
                cold_s: table.optional(cold, 0.0, RUN_S_MAX, FIX)?,
            })
        };
        let name = table.name(function)?;
        let number = names.number(&mut list, (&table, function), name, called)?;
        let at_s = table.number(arrival, 0.0, ARRIVAL_S_MAX, FIX)?;
        let run_s = table.number(run, 0.0, RUN_S_MAX, FIX)?;
        num_mended += u64::from(list.push(&table, at_s, number, run_s)?);
    }
    list.account
        .mend("its run time is below a microsecond: taken for one", num_mended);
    Ok(list)
}
