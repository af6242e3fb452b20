//! ALCF ThetaGPU, 2023: a GPU centre whose users must state a wall time.
//!
//! # Source
//! Argonne Leadership Computing Facility, as prepared by the Lumos project (`DIR-LAB/lumos`, MIT): 22,606 jobs, nearly
//! all of January to July 2023, with the end states that its authors derived.
//!
//! The list counts allocations: whole nodes, or single GPUs in one of the queues, and does not say which. Here one is a
//! node of 8 GPUs: no more than 29 were ever held at once, and the centre has 24 nodes. The requested wall time is the
//! user's estimate.

use std::path::Path;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::Outcome;
use crate::table::Table;

#[rustfmt::skip]
pub(super) const REQUIRED: [&str; 6] = ["job", "submit_time", "run_time", "wall_time", "node_num", "new_status"];

/// # Source
/// ALCF, ThetaGPU: 24 NVIDIA DGX A100 with 8 GPUs of 40 GB, two 64-core processors and 1 TB each. One network for all.
const NODES: Nodes = Nodes {
    count: 24,
    gpus_per_node: 8,
    gpu_type: "A100",
    cpu_cores: 128.0,
    memory_gib: 1024.0,
    nodes_per_rack: 24,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let state = table.column("new_status");
    let (project, user) = (table.column("project"), table.column("user"));
    let columns = Columns {
        estimate: table.column("wall_time"),
        ..Columns::named(&table, ["job", "submit_time", "node_num", "run_time"])
    };
    let mut plan = Plan::of(
        cluster_of(&[("A100", 40.0)], &[NODES]),
        "cluster: 24 DGX A100 = 192 GPUs, published",
    );
    plan.has_tenants = true;
    plan.notes = vec![
        "an allocation is taken as a node of 8 GPUs; those of the single-GPU queue, which the list does not tell apart, \
         are too large"
            .into(),
    ];
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        // 0 stands for a hidden project or user.
        let columns = Columns {
            tenant: project.filter(|column| table.text(Some(*column)) != "0"),
            user: user.filter(|column| table.text(Some(*column)) != "0"),
            ..columns
        };
        let mut row = columns.read(&table, &mut draft)?;
        row.num_gpus = row.num_gpus.saturating_mul(NODES.gpus_per_node);
        row.outcome = match table.text(state) {
            "Pass" => Outcome::Completed,
            "Failed" => Outcome::Failed,
            "Killed" => Outcome::Killed,
            _ => {
                return Err(table
                    .refuse(state, "Pass, Failed or Killed", "map other words to these")
                    .into());
            }
        };
        draft.rows.push(row);
    }
    Ok(draft)
}
