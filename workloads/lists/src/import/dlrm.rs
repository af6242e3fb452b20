//! Alibaba's disaggregated serving of recommendation models, 2025: long-lived instances of 156 services.
//!
//! # Source
//! Yang et al., NSDI 2025; `alibaba/clusterdata`, `cluster-trace-gpu-v2025`. The instances that ask for a GPU are the
//! jobs; an instance is of one service (`app_name`), which stands as its user.
//!
//! The list is a window of 31 days: an instance without a creation time was there before, one without a deletion time
//! outlived it. They are kept for the part that the window shows, and counted. No machines are published.

use std::path::Path;

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::Resources;

use super::cluster_of_list::{NODES_PER_RACK, Nodes, Plan, sized_for};
use super::mappings;
use super::row::raised;
use super::{Draft, ImportOptions, RawRow};
use crate::Error;
use crate::Outcome;
use crate::table::Table;

/// Length of the window, s.
const WINDOW_S: f64 = 31.0 * 86_400.0;
/// GPUs per node. *Assumed*.
const GPUS_PER_NODE: u32 = 8;

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let (mut table, _) = mappings::open("dlrm", path)?;
    let mut plan = Plan::sized(Box::new(|rows| {
        let most = |of: fn(&Resources) -> f64| rows.iter().map(|row| of(&row.resources)).fold(0.0, f64::max);
        let nodes = Nodes {
            count: 1,
            gpus_per_node: GPUS_PER_NODE,
            gpu_type: "GPU",
            cpu_cores: f64::from(GPUS_PER_NODE) * most(|asked| asked.cpu_cores),
            memory_gib: f64::from(GPUS_PER_NODE) * most(|asked| asked.memory_gib),
            nodes_per_rack: NODES_PER_RACK,
        };
        sized_for(rows, ("GPU", 32.0), nodes)
    }));
    plan.notes =
        vec!["nodes have cores and memory for 8 of the largest instances (assumed): they never bind".into()];
    let mut draft = Draft::new(path, plan.site(&options.cluster));
    while table.next_row()? {
        draft.account.rows_read += 1;
        if let Some(row) = read_row(&table, &mut draft)? {
            draft.rows.push(row);
        }
    }
    Ok(draft)
}

fn read_row(table: &Table, draft: &mut Draft) -> Result<Option<RawRow>, Error> {
    let column = |name: &str| table.column(name);
    let num_gpus = table.count(column("gpu_request"), "give the number of GPUs")?;
    if num_gpus == 0 {
        draft.exclude("asks for no GPU");
        return Ok(None);
    }
    let amount = |name: &str| table.number(column(name), 0.0, 1e6, "give what the instance asks for");
    let resources = Resources {
        cpu_cores: amount("cpu_request")? / f64::from(num_gpus),
        memory_gib: amount("memory_request")? / f64::from(num_gpus),
        ..Resources::WHOLE_GPU
    };
    let fix = "give seconds of the window or leave it empty";
    let seconds = |name: &str| table.optional(column(name), 0.0, WINDOW_S, fix);
    let created = seconds("creation_time")?;
    if created.is_none() {
        draft.mend("created before the list begins: submitted at its first second");
    }
    let submit_s = created.unwrap_or(0.0);
    let start_s = seconds("scheduled_time")?.unwrap_or(submit_s);
    let deleted = seconds("deletion_time")?;
    if deleted.is_none() {
        draft.mend("outlives the list: its run time is the part that the list shows");
    }
    let end_s = deleted.unwrap_or(WINDOW_S);
    if start_s < submit_s || end_s < start_s {
        let allowed = "creation_time <= scheduled_time <= deletion_time";
        return Err(table.refuse(column("scheduled_time"), allowed, "correct the row"));
    }
    Ok(Some(RawRow {
        line: table.line(),
        id: table.name(column("instance_sn"))?,
        submit: Time::from_secs_f64(submit_s),
        num_gpus,
        run_time_s: raised(end_s - start_s, draft),
        estimate_s: None,
        tenant: None,
        class: 0,
        user: table.optional_name(column("app_name"))?,
        outcome: Outcome::Unknown,
        resources,
        observed: None,
    }))
}
