//! Alibaba PAI, 2020: a sample of finished GPU tasks.
//!
//! # Source
//! Weng et al., "MLaaS in the Wild", NSDI 2022; data CC BY 4.0 (`cluster-trace-gpu-v2020`). The list is a random 8.2 % of
//! the finished GPU tasks, re-published in four columns; ids start with `ali-`, which tells it from Venus's.
//!
//! The arrival is the task's start, as the task table has no submissions; fractions of GPUs, which most tasks asked for,
//! were rounded up to one GPU per instance by the source, so the work is far too much.

use std::path::Path;

use super::cluster_of_list::{NODES_PER_RACK, Nodes, Plan, cluster_of};
use super::row::Columns;
use super::venus::{CUT, REQUIRED_FOUR, SERVICE_S_CUT};
use super::{Draft, ImportOptions};
use crate::Error;
use crate::Outcome;
use crate::table::Table;

/// How ids start.
pub(super) const ID_START: &str = "ali-";

/// Memory per GPU, GiB (vendor sheets); that of the mixed machines is *assumed*.
const GPU_TYPES: [(&str, f64); 5] = [
    ("P100", 16.0),
    ("T4", 16.0),
    ("MISC", 16.0),
    ("V100M32", 32.0),
    ("V100", 16.0),
];

const fn nodes(
    count: u32,
    gpus_per_node: u32,
    gpu_type: &'static str,
    cpu_cores: f64,
    memory_gib: f64,
) -> Nodes {
    Nodes {
        count,
        gpus_per_node,
        gpu_type,
        cpu_cores,
        memory_gib,
        nodes_per_rack: NODES_PER_RACK,
    }
}

/// The 1,814 machines with GPUs, 6,742 GPUs: cores and GB per machine.
/// # Source
/// `pai_machine_spec.csv` of the data set, counted.
pub(super) const NODES: [Nodes; 6] = [
    nodes(798, 2, "P100", 64.0, 512.0),
    nodes(497, 2, "T4", 96.0, 512.0),
    nodes(280, 8, "MISC", 96.0, 512.0),
    nodes(135, 8, "V100M32", 96.0, 384.0),
    nodes(59, 8, "V100", 96.0, 512.0),
    nodes(45, 8, "V100", 96.0, 384.0),
];

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED_FOUR)?;
    let columns = Columns::named(&table, ["job_id", "arrival_s", "gpu_count", "service_sec"]);
    let mut plan = Plan::of(
        cluster_of(&GPU_TYPES, &NODES),
        "cluster: the 1,814 published machines with GPUs; racks of 16 nodes and equal speed assumed",
    );
    plan.notes = vec![
        "a sample of 8.2 % of the tasks: the load says nothing about the cluster's".into(),
        "fractions of GPUs were rounded up to whole ones by the source".into(),
    ];
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let mut row = columns.read(&table, &mut draft)?;
        if !row.id.starts_with(ID_START) {
            let fix = "is this Venus's four-column list?";
            return Err(table
                .refuse(columns.id, "an id that starts with `ali-`", fix)
                .into());
        }
        if row.run_time_s >= SERVICE_S_CUT {
            draft.mend(CUT);
        }
        // The sample was drawn from finished tasks only.
        row.outcome = Outcome::Completed;
        draft.rows.push(row);
    }
    Ok(draft)
}
