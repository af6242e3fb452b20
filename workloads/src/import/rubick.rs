//! Rubick's lists: training jobs with CPUs, execution plans and a service level.
//!
//! # Source
//! Zhang et al., "Rubick: Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling", MLSys 2025;
//! `AlibabaPAI/reconfigurable-dl-scheduler` (Apache-2.0): 406 jobs, with the plans of the base, the best plans (`bp`)
//! and two tenants (`mt`).
//!
//! The run time is that with the plan and the resources asked for; plans, which Rubick changes, are not read. Jobs of
//! the guaranteed service level are one tenant, the others another.

use std::path::Path;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::error::Error;
use crate::table::Table;

#[rustfmt::skip]
pub(super) const REQUIRED: [&str; 8] = [
    "name", "submission_time", "duration", "application", "num_gpus", "num_cpus", "exec_plan", "is_sla",
];

/// # Source
/// The artifact's description of its testbed: 8 nodes of 8 A800 with 80 GB, 96 vCPU and 1,600 GB. One network.
const NODES: Nodes = Nodes {
    count: 8,
    gpus_per_node: 8,
    gpu_type: "A800",
    cpu_cores: 96.0,
    memory_gib: 1600.0,
    nodes_per_rack: 8,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let (application, cpus) = (table.column("application"), table.column("num_cpus"));
    let level = table.column("is_sla");
    let columns = Columns::named(&table, ["name", "submission_time", "num_gpus", "duration"]);
    let mut plan = Plan::of(
        cluster_of(&[("A800", 80.0)], &[NODES]),
        "cluster: 8 nodes x 8 A800, the artifact's testbed",
    );
    plan.has_tenants = true;
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.rows_read += 1;
        let mut row = columns.read(&table, &mut draft)?;
        let cpu_cores = table.number(cpus, 0.0, 1e6, "give the CPUs of the whole job")?;
        row.resources.cpu_cores = cpu_cores / f64::from(row.num_gpus);
        row.class = draft.class(&table, application)?;
        row.tenant = match table.text(level) {
            "0" => draft.tenant("best-effort"),
            "1" => draft.tenant("guaranteed"),
            _ => {
                return Err(table
                    .refuse(level, "0 or 1", "1 is the guaranteed service level")
                    .into());
            }
        };
        draft.rows.push(row);
    }
    Ok(draft)
}
