//! Alibaba Lingjun, August 2023: large training jobs, with the racks of the published topology.
//!
//! # Source
//! Cao et al., "Crux", SIGCOMM 2024; `alibaba/alibaba-lingjun-dataset-2023` (Apache-2.0). The six columns are those in
//! which RFold's workload generator (MIT) re-publishes them. No users, outcomes or models; times are whole minutes, so
//! one run time in ten is 0.
//!
//! Its Philly list has the same six columns and would be read with Lingjun's cluster: use the joined Philly list.

use std::path::Path;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::table::Table;

#[rustfmt::skip]
pub(super) const REQUIRED: [&str; 4] = ["#job id", "arrival time (sec)", "size", "duration (sec)"];

/// (hosts under one access switch, access switches with so many).
/// # Source
/// `topo.csv` of the data set, counted: 847 hosts under 48 access switches of one Clos network.
pub(super) const RACKS: [(u32, u32); 14] = [
    (24, 2),
    (23, 8),
    (22, 9),
    (21, 3),
    (20, 4),
    (19, 1),
    (18, 1),
    (16, 3),
    (15, 4),
    (14, 5),
    (10, 1),
    (8, 4),
    (7, 2),
    (3, 1),
];

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let columns = Columns::named(&table, REQUIRED);
    let racks = RACKS.map(|(num_hosts, num_racks)| Nodes {
        count: num_hosts * num_racks,
        gpus_per_node: 8,
        gpu_type: "GPU",
        cpu_cores: 0.0,
        memory_gib: 0.0,
        nodes_per_rack: num_hosts,
    });
    let mut plan = Plan::of(
        cluster_of(&[("GPU", 80.0)], &racks),
        "cluster: the 847 hosts under 48 access switches of the published topology; 8 GPUs a host assumed",
    );
    plan.notes = vec!["the list explains an eighth of the cluster's capacity: jobs are missing".into()];
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let row = columns.read(&table, &mut draft)?;
        draft.rows.push(row);
    }
    Ok(draft)
}
