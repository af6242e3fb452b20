//! Microsoft ITP, 2021: lists of ten internal training clusters, published with ElasticFlow.
//!
//! # Source
//! Gu et al., "ElasticFlow", ASPLOS 2023; `microsoft/elasticflow-traces` (MIT). The lists with model names and deadlines
//! carry the same jobs; those columns are generated and are not read. No users, no outcomes, no cluster sizes.

use std::path::Path;

use super::cluster_of_list::{NODES_PER_RACK, Nodes, Plan, sized_for};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::table::Table;

pub(super) const REQUIRED: [&str; 4] = ["job_id", "submission_time", "duration", "num_gpu"];

/// Nodes of 8 GPUs, of which nothing else is published.
const NODES: Nodes = Nodes {
    count: 1,
    gpus_per_node: 8,
    gpu_type: "GPU",
    cpu_cores: 0.0,
    memory_gib: 0.0,
    nodes_per_rack: NODES_PER_RACK,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let columns = Columns::named(&table, ["job_id", "submission_time", "num_gpu", "duration"]);
    let plan = Plan::sized(Box::new(|rows| sized_for(rows, ("GPU", 32.0), NODES)));
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let row = columns.read(&table, &mut draft)?;
        draft.rows.push(row);
    }
    Ok(draft)
}
