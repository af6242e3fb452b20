//! Tiresias's lists: generated jobs of named models.
//!
//! # Source
//! Gu et al., "Tiresias", NSDI 2019; `SymbioticLab/Tiresias` (Apache-2.0): the 60-job list of its simulator. The 480-job
//! list of the paper was never published. A model name is a class; nothing is published on its speed elsewhere.

use std::path::Path;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::table::Table;

pub(super) const REQUIRED: [&str; 5] = ["job_id", "num_gpu", "submit_time", "model_name", "duration"];

/// # Source
/// `cluster_spec.csv` beside the list: one switch, 16 nodes of 4 GPUs, 128 cores, 254 GB. Type of the testbed's GPUs.
const NODES: Nodes = Nodes {
    count: 16,
    gpus_per_node: 4,
    gpu_type: "P100",
    cpu_cores: 128.0,
    memory_gib: 254.0,
    nodes_per_rack: 16,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let model = table.column("model_name");
    let columns = Columns::named(&table, ["job_id", "submit_time", "num_gpu", "duration"]);
    let plan = Plan::of(
        cluster_of(&[("P100", 16.0)], &[NODES]),
        "cluster: 16 nodes x 4 GPUs under one switch, as published with the list",
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
