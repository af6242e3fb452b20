//! Chronus's lists: Philly's virtual clusters with resampled arrivals and run times, and deadlines.
//!
//! # Source
//! Gao et al., "Chronus", SoCC 2021; `S-Lab-System-Group/ChronusArtifact` (MIT): three mixes of strict, soft and
//! best-effort deadlines. The unit of time is the minute: *inferred*, as the arrivals span 14 days, the shortest run
//! time is the lease of 20 minutes of the paper, and the longest three days; in seconds the lists would fill six hours.
//!
//! Deadlines and their values are not read: a job here has none. The user column holds virtual clusters.

use std::path::Path;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::table::Table;

#[rustfmt::skip]
pub(super) const REQUIRED: [&str; 7] = [
    "job_id", "user", "num_gpu", "submit_time", "model_name", "duration", "expect_time_list",
];

/// # Source
/// The artifact's experiment script and defaults: one switch with 120 nodes of 8 GPUs, 128 cores and 256 GB for Philly's
/// lists.
const NODES: Nodes = Nodes {
    count: 120,
    gpus_per_node: 8,
    gpu_type: "GPU",
    cpu_cores: 128.0,
    memory_gib: 256.0,
    nodes_per_rack: 120,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let model = table.column("model_name");
    let columns = Columns {
        tenant: table.column("user"),
        unit_s: 60.0,
        ..Columns::named(&table, ["job_id", "submit_time", "num_gpu", "duration"])
    };
    let mut plan = Plan::of(
        cluster_of(&[("GPU", 32.0)], &[NODES]),
        "cluster: 120 nodes x 8 GPUs under one switch, as in the artifact's experiments",
    );
    plan.has_tenants = true;
    plan.notes = vec!["times are taken as minutes (inferred); deadlines are not read".into()];
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        if table.text(columns.num_gpus) == "0" {
            draft.exclude("asks for no GPU");
            continue;
        }
        let mut row = columns.read(&table, &mut draft)?;
        row.class = draft.class(&table, model)?;
        draft.rows.push(row);
    }
    Ok(draft)
}
