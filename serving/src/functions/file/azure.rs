//! Azure's lists of functions: calls with their times (2021), and counts by minute beside percentiles of run times (2019).
//! A function is its application's name and its own, for the latter is its own within the application alone.
//!
//! # Source
//! M. Shahrad et al., *Serverless in the Wild*, ATC'20, and Y. Zhang et al., SOSP'21; AzurePublicDataset, CC BY 4.0.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pleach_tables::{Problem, Table};
use pleach_workloads::Seed;
use rand::RngExt as _;

use crate::functions::calls::{ARRIVAL_S_MAX, CALLS_MAX, Called, Calls, FIX, FUNCTIONS_MAX, Names, whole};

/// Minutes of a day.
const MINUTES: usize = 1_440;
/// Percentiles of run times that a list has.
const PERCENTILES: [f64; 7] = [0.0, 1.0, 25.0, 50.0, 75.0, 99.0, 100.0];
/// Names of the two files, part by part.
const BESIDE: [(&str, &str); 2] = [
    ("_inv", "_run"),
    ("invocations_per_function_md", "function_durations_percentiles"),
];
/// Longest run time that a list may have, ms: a day.
const RUN_MS_MAX: f64 = 86_400_000.0;

/// Columns of a function's application and of its own name (2019).
const KEYS: [&str; 2] = ["HashApp", "HashFunction"];
/// What is said of a row whose function another row had.
const ONCE: &str = "each function of an application once";

fn on_a_core(name: String) -> Result<Called, Problem> {
    Ok(Called {
        name,
        slices: 0,
        cold_s: None,
    })
}

/// The whole name of a row's function; a sample may have left applications out.
fn name(table: &Table, [app, function]: [Option<usize>; 2]) -> Result<String, Problem> {
    let name = table.name(function)?;
    Ok(match app {
        Some(_) => format!("{}/{name}", table.name(app)?),
        None => name,
    })
}

/// Calls with their ends and durations.
pub(super) fn timed(mut table: Table) -> Result<Calls, Problem> {
    let [app, function, end, duration] =
        ["app", "func", "end_timestamp", "duration"].map(|name| table.column(name));
    let (mut list, mut names, mut num_mended) = (Calls::new("Azure Functions 2021"), Names::default(), 0);
    while table.next_row()? {
        list.account.rows_read += 1;
        let name = name(&table, [app, function])?;
        let number = names.number(&mut list, (&table, function), name, on_a_core)?;
        let end_s = table.number(end, 0.0, ARRIVAL_S_MAX, FIX)?;
        let run_s = table.number(duration, 0.0, 1e-3 * RUN_MS_MAX, FIX)?;
        let is_before = end_s < run_s;
        let is_mended = list.push(&table, (end_s - run_s).max(0.0), number, run_s)?;
        num_mended += u64::from(is_mended || is_before);
    }
    list.account
        .mend("no run time, above an hour, or begun before the list", num_mended);
    Ok(list)
}

/// Counts by minute. A call comes at an even time within its minute and runs as long as the percentiles of its function say, both
/// drawn by the function's name, wherever its row stands.
pub(super) fn counted(path: &Path, mut table: Table, seed: Seed) -> Result<Calls, Problem> {
    let keys = KEYS.map(|name| table.column(name));
    let runs = percentiles(&beside(path)?, keys[0].is_some())?;
    let minute = |number: usize| {
        let named = table.column(&format!("minute_{number}"));
        named.or_else(|| table.column(&number.to_string()))
    };
    let minutes: Vec<Option<usize>> = (1..=MINUTES).map(minute).take_while(Option::is_some).collect();
    if minutes.is_empty() {
        return Err(table.error("-", "no column of a minute: minute_1, or 1".into()));
    }
    let (mut list, mut names) = (Calls::new("Azure Functions 2019"), Names::default());
    (list.is_counted, list.notes) = (true, vec!["times within minutes and run times are drawn".into()]);
    let mut num_mended = 0;
    while table.next_row()? {
        list.account.rows_read += 1;
        let name = name(&table, keys)?;
        let Some(row) = runs.get(&name) else {
            list.account.leave_out("a function without run times", 1);
            continue;
        };
        let mut rng = seed.stream(&format!("calls of {name}"), 0);
        let num = list.functions.len();
        let number = names.number(&mut list, (&table, keys[1]), name, on_a_core)?;
        if list.functions.len() == num {
            return Err(table.refuse(keys[1], ONCE, FIX));
        }
        for (place, column) in minutes.iter().enumerate() {
            let num = table.number(*column, 0.0, CALLS_MAX as f64, FIX)? as u64;
            for _ in 0..num {
                let (within, part): (f64, f64) = (rng.random(), rng.random());
                let at_s = 60.0 * (place as f64 + within);
                num_mended += u64::from(list.push(&table, at_s, number, 1e-3 * at(row, 100.0 * part))?);
            }
        }
    }
    if num_mended > 0 {
        list.notes.push(format!(
            "{num_mended} run times mended: below a microsecond or above an hour"
        ));
    }
    Ok(list)
}

/// The file of run times.
fn beside(path: &Path) -> Result<PathBuf, Problem> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let renamed = BESIDE.iter().filter(|(from, _)| name.contains(from));
    let mut found = renamed.map(|(from, to)| path.with_file_name(name.replace(from, to)));
    found.find(|file| file.is_file()).ok_or_else(|| {
        let text = "counts alone: put the file of run times beside it (1000_inv.csv and 1000_run.csv, or the published names)";
        whole(path, text)
    })
}

/// Of each function, ms; with applications where the counts have them.
fn percentiles(path: &Path, has_apps: bool) -> Result<HashMap<String, [f64; 7]>, Problem> {
    let mut table = Table::open(path, &KEYS[usize::from(!has_apps)..])?;
    let mut keys = KEYS.map(|name| table.column(name));
    keys[0] = keys[0].filter(|_| has_apps);
    let columns = PERCENTILES.map(|percent| table.column(&format!("percentile_Average_{percent}")));
    let mut found = HashMap::new();
    while table.next_row()? {
        let mut row = [0.0; 7];
        for (value, column) in row.iter_mut().zip(columns) {
            *value = table.number(column, 0.0, RUN_MS_MAX, FIX)?;
        }
        if !row.is_sorted() {
            return Err(table.refuse(columns[0], "percentiles that do not fall", FIX));
        }
        if found.len() == FUNCTIONS_MAX {
            return Err(table.refuse(keys[1], &format!("at most {FUNCTIONS_MAX} functions"), FIX));
        }
        if found.insert(name(&table, keys)?, row).is_some() {
            return Err(table.refuse(keys[1], ONCE, FIX));
        }
    }
    Ok(found)
}

/// Linear between two percentiles.
fn at(row: &[f64; 7], percent: f64) -> f64 {
    let place = PERCENTILES.partition_point(|known| *known <= percent).clamp(1, 6);
    let (low, high) = (PERCENTILES[place - 1], PERCENTILES[place]);
    row[place - 1] + (row[place] - row[place - 1]) * (percent - low) / (high - low)
}
