//! Muri's lists: Philly's arrivals, gangs and run times on named models, in milliseconds.
//!
//! # Source
//! Zhao et al., "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM 2022; `Rivendile/Muri` (Apache-2.0):
//! four lists after Philly's virtual clusters, four after numbers of models, each also with all jobs at once (`_pr`).
//!
//! The stage times that Muri interleaves (`resource_time_*`) and the priorities, which are generated, are not read.

use std::path::Path;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::table::Table;

#[rustfmt::skip]
pub(super) const REQUIRED: [&str; 7] = [
    "job_id", "num_gpu", "submit_time", "model_name", "duration", "iteration_time", "resource_time_0",
];

/// # Source
/// `n8g8.csv` of the repository: 8 nodes of 8 GPUs; V100 as in the paper's testbed. One rack *assumed*.
const NODES: Nodes = Nodes {
    count: 8,
    gpus_per_node: 8,
    gpu_type: "V100",
    cpu_cores: 0.0,
    memory_gib: 0.0,
    nodes_per_rack: 8,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let model = table.column("model_name");
    let columns = Columns {
        unit_s: 1e-3,
        ..Columns::named(&table, ["job_id", "submit_time", "num_gpu", "duration"])
    };
    let plan = Plan::of(
        cluster_of(&[("V100", 32.0)], &[NODES]),
        "cluster: 8 nodes x 8 V100, as in the paper's experiments",
    );
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let mut row = columns.read(&table, &mut draft)?;
        row.class = draft.class(&table, model)?;
        draft.rows.push(row);
    }
    Ok(draft)
}
