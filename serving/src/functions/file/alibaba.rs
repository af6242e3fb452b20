//! Alibaba's requests to Stable Diffusion: a function is a base model with or without adapters (LoRA), on a whole GPU.
//!
//! # Source
//! cluster-trace-v2026-GenAI of alibaba/clusterdata. Switching times lie beside the requests, without the model that they are of:
//! a model's cold start is their median, and that of a model with adapters has the median of theirs added.

use std::path::Path;

use pleach_tables::clock::{TimeFormat, UTC};
use pleach_tables::{Problem, Table};

use crate::functions::calls::{ARRIVAL_S_MAX, Called, Calls, FIX, Names, RUN_S_MAX};
use crate::functions::platform::GPU_SLICES;

/// 365 days, s.
const YEAR_S: f64 = 86_400.0 * 365.0;
/// Files of switching times: of a base model, of its adapters.
const SWITCHES: [&str; 2] = [
    "basemodel_update_latency_anon.csv",
    "lora_update_latency_anon.csv",
];
/// Times of such a file at most; the published ones have up to 27,415.
const SWITCHES_MAX: usize = 1_000_000;

pub(super) fn genai(path: &Path, mut table: Table) -> Result<Calls, Problem> {
    let [time, run, status, model, adapters] = [
        "gmt_create",
        "exec_time_seconds",
        "predict_status",
        "checkpoint_model_version_id",
        "num_lora",
    ]
    .map(|name| table.column(name));
    let [base_s, adapter_s] = [median_s(path, SWITCHES[0])?, median_s(path, SWITCHES[1])?];
    let (mut list, mut names) = (Calls::new("Alibaba GenAI 2026"), Names::default());
    let mut first_s = None;
    while table.next_row()? {
        list.account.rows_read += 1;
        if status.is_some() && table.text(status) != "SUCCEED" {
            list.account.leave_out("not ended, or failed", 1);
            continue;
        }
        let run_s = table.optional(run, 0.0, RUN_S_MAX, FIX)?.unwrap_or(0.0);
        if run_s == 0.0 || table.text(model).is_empty() {
            list.account.leave_out("no run time or no model", 1);
            continue;
        }
        let has_adapters = table.optional(adapters, 0.0, 1e3, FIX)?.unwrap_or(0.0) > 0.0;
        let mut name = table.name(model)?;
        if has_adapters {
            name.push_str("+lora");
        }
        let called = |name: String| {
            let more_s = adapter_s.filter(|_| has_adapters).unwrap_or(0.0);
            Ok(Called {
                name,
                slices: GPU_SLICES,
                cold_s: base_s.map(|base_s| base_s + more_s),
            })
        };
        let number = names.number(&mut list, (&table, model), name, called)?;
        let Some(at_s) = TimeFormat::Iso.read(table.text(time), &UTC) else {
            return Err(table.refuse(time, "a time such as 2024-11-15 16:57:50", FIX));
        };
        // Rows need not come in order; a year before the first is time enough.
        let begin_s = *first_s.get_or_insert(at_s - YEAR_S);
        if !(0.0..=ARRIVAL_S_MAX).contains(&(at_s - begin_s)) {
            let allowed = format!("a time in the {ARRIVAL_S_MAX} s from a year before the first row's on");
            return Err(table.refuse(time, &allowed, FIX));
        }
        list.push(&table, at_s - begin_s, number, run_s)?;
    }
    match (base_s, adapter_s) {
        (Some(base_s), adapter_s) => {
            let more = adapter_s.map_or(String::new(), |s| format!(", {s:.1} s more with adapters"));
            list.notes.push(format!(
                "measured: cold starts of {base_s:.1} s{more} (medians of the files beside)"
            ));
        }
        (None, _) => list.notes.push(format!("no {} beside", SWITCHES[0])),
    }
    Ok(list)
}

/// Median of a file of times beside, ms in it; none where it is not there.
fn median_s(path: &Path, name: &str) -> Result<Option<f64>, Problem> {
    let files = [name.to_string(), format!("{name}.gz")].map(|name| path.with_file_name(name));
    let Some(file) = files.iter().find(|file| file.is_file()) else {
        return Ok(None);
    };
    let mut table = Table::open(file, &["value"])?;
    let value = table.column("value");
    let mut all = Vec::new();
    while table.next_row()? {
        if all.len() == SWITCHES_MAX {
            let allowed = format!("one of {SWITCHES_MAX} times at most");
            return Err(table.refuse(value, &allowed, "give a part of the file"));
        }
        all.push(table.number(value, 0.0, 1e3 * RUN_S_MAX, FIX)?);
    }
    all.sort_by(f64::total_cmp);
    Ok(all.get(all.len() / 2).map(|ms| 1e-3 * ms))
}
