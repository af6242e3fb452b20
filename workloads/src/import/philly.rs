//! Microsoft Philly, 2017: 111,549 started GPU jobs of 15 virtual clusters.
//!
//! # Source
//! Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019; data
//! CC BY 4.0. The list is one row per job, joined from the parts of the log that research repositories re-publish.
//!
//! The run time is the span from the first start to the end of the last attempt, gaps between attempts included. Killed
//! or failed jobs of which the parts do not say which are `unknown`. CPU and memory per job were never released.

use std::path::Path;

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, NodeGroup};

use super::cluster_of_list::NODES_PER_RACK;
use super::row::Columns;
use super::tenants::{any_class, single_tenant, tenancy_for};
use super::{Draft, ImportOptions, RawRow, Site, SiteOf};
use crate::Error;
use crate::Outcome;
use crate::table::Table;

pub(super) const REQUIRED: [&str; 5] = ["job", "submit_s", "num_gpus", "duration_s", "state"];

/// GPUs per virtual cluster.
/// # Source
/// Sizes in 8-GPU nodes with which the QSSF study (Hu et al., SC'21) simulated Philly; four tiny virtual clusters have
/// none. The true sizes were never published.
const VC_GPUS: [(&str, u32); 11] = [
    ("6214e9", 64 * 8),
    ("ee9e8c", 64 * 8),
    ("b436b2", 64 * 8),
    ("7f04ca", 32 * 8),
    ("0e4a51", 32 * 8),
    ("6c71a0", 32 * 8),
    ("11cb48", 16 * 8),
    ("e13805", 16 * 8),
    ("2869ce", 16 * 8),
    ("103959", 8 * 8),
    ("ed69ec", 8 * 8),
];

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let state = table.column("state");
    let columns = Columns {
        tenant: table.column("vc"),
        user: table.column("user"),
        ..Columns::named(&table, ["job", "submit_s", "num_gpus", "duration_s"])
    };
    let mut draft = Draft::new(path, site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let row = columns.read(&table, &mut draft)?;
        let outcome = match table.text(state) {
            "COMPLETED" => Outcome::Completed,
            "FAILED" => Outcome::Failed,
            "CANCELLED" => Outcome::Killed,
            "NOT_PASSED" | "" => Outcome::Unknown,
            _ => {
                let allowed = "COMPLETED, FAILED, CANCELLED, NOT_PASSED or nothing";
                return Err(table.refuse(state, allowed, "map other words to these").into());
            }
        };
        draft.rows.push(RawRow { outcome, ..row });
    }
    Ok(draft)
}

fn site(options: &ImportOptions) -> SiteOf {
    let (given, walled) = (options.cluster.clone(), options.virtual_clusters);
    Box::new(move |_, _| {
        let (cluster, note) = match &given {
            Some(cluster) => (cluster.clone(), "cluster: given by the caller"),
            None if walled => (
                nodes(&[(352, 8, "24GB")]),
                "cluster: 352 nodes x 8 GPUs in 11 virtual clusters, as the QSSF study (SC'21) simulated Philly",
            ),
            None => (
                nodes(&[(321, 2, "12GB"), (231, 8, "24GB")]),
                "cluster: the published list of 321 x 2 + 231 x 8 = 2,490 GPUs; equal speed assumed",
            ),
        };
        Site {
            tenancy: tenancy_for(&cluster, given.is_some(), &VC_GPUS),
            classes: vec![any_class(&cluster)],
            cluster,
            notes: vec![note.into(), format!("racks of {NODES_PER_RACK} nodes: assumed")],
        }
    })
}

/// Groups of (nodes, GPUs per node, memory as the type's name).
fn nodes(groups: &[(u32, u32, &str)]) -> ClusterSpec {
    let gpu_types = groups.iter().map(|(_, _, memory)| GpuTypeSpec {
        name: format!("GPU-{memory}"),
        memory_gib: if *memory == "12GB" { 12.0 } else { 24.0 },
        mig: None,
    });
    let node_groups = groups.iter().map(|(count, gpus_per_node, memory)| NodeGroup {
        count: *count,
        gpus_per_node: *gpus_per_node,
        gpu_type: format!("GPU-{memory}"),
        nodes_per_rack: NODES_PER_RACK,
        ..NodeGroup::default()
    });
    ClusterSpec {
        gpu_types: gpu_types.collect(),
        node_groups: node_groups.collect(),
        tenants: vec![single_tenant(groups.iter().map(|group| group.0 * group.1).sum())],
        borrowing: true,
        ..ClusterSpec::default()
    }
}
