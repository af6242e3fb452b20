//! Helios Venus (SenseTime), April to September 2020: 125,303 GPU jobs on nodes of 8 V100.
//!
//! # Source
//! Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021; data
//! CC BY 4.0. Two forms: the list joined from the parts that research repositories re-publish, and the four columns of
//! one of them.
//!
//! Where the true run time is known it is used; else the service time, which the source cut at 48 h (1,250 jobs).

use std::path::Path;

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, NodeGroup};

use super::cluster_of_list::NODES_PER_RACK;
use super::row::Columns;
use super::tenants::{any_class, single_tenant, tenancy_for};
use super::{Draft, ImportOptions, RawRow, Site, SiteOf};
use crate::Error;
use crate::Outcome;
use crate::table::Table;

pub(super) const REQUIRED_JOINED: [&str; 4] = ["job_id", "submit_s", "gpu_num", "service_s"];
pub(super) const REQUIRED_FOUR: [&str; 4] = ["job_id", "arrival_s", "service_sec", "gpu_count"];

/// GPUs per virtual cluster on 1 September 2020; 1,064 in all, the published size of Venus (133 nodes).
/// # Source
/// Helios, daily GPU count per virtual cluster (`cluster_gpu_number`). Quotas change over the months; this day has the
/// same total as the paper's table.
const VC_GPUS: [(&str, u32); 16] = [
    ("vcEwI", 72),
    ("vcWoR", 64),
    ("vcHvQ", 64),
    ("vcvGl", 160),
    ("vc8Gr", 48),
    ("vcKeu", 96),
    ("vcKrE", 32),
    ("vcYVn", 88),
    ("vchbv", 32),
    ("vcLTP", 64),
    ("vcJLV", 16),
    ("vchA3", 24),
    ("vcJsw", 200),
    ("vcefl", 80),
    ("vcvlY", 16),
    ("vcgkz", 8),
];
const NUM_NODES: u32 = 133;
/// Where the source cut service times, s.
pub(super) const SERVICE_S_CUT: f64 = 172_800.0;
pub(super) const CUT: &str = "run time cut at 48 h by the source and not known otherwise: kept at 172,800 s";

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &[])?;
    let is_four = REQUIRED_FOUR.iter().all(|name| table.column(name).is_some());
    if !is_four {
        table = Table::open(path, &REQUIRED_JOINED)?;
    }
    let names = if is_four {
        ["job_id", "arrival_s", "gpu_count", "service_sec"]
    } else {
        ["job_id", "submit_s", "gpu_num", "service_s"]
    };
    let (duration, state) = (table.column("duration_s"), table.column("state"));
    let clamped = table.column("clamped");
    let columns = Columns {
        tenant: table.column("vc"),
        user: table.column("user"),
        ..Columns::named(&table, names)
    };
    let mut draft = Draft::new(path, site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let is_known = !table.text(duration).is_empty();
        let run_time = if is_known { duration } else { columns.run_time };
        let row = Columns { run_time, ..columns }.read(&table, &mut draft)?;
        let is_cut = table.text(clamped) == "1" || (is_four && row.run_time_s >= SERVICE_S_CUT);
        if !is_known && is_cut {
            draft.mend(CUT);
        }
        let outcome = match table.text(state) {
            "COMPLETED" => Outcome::Completed,
            "FAILED" | "NODE_FAIL" => Outcome::Failed,
            "CANCELLED" | "TIMEOUT" => Outcome::Killed,
            "" => Outcome::Unknown,
            _ => {
                let allowed = "COMPLETED, FAILED, NODE_FAIL, CANCELLED, TIMEOUT or nothing";
                return Err(table.refuse(state, allowed, "map other words to these").into());
            }
        };
        draft.rows.push(RawRow { outcome, ..row });
    }
    Ok(draft)
}

fn site(options: &ImportOptions) -> SiteOf {
    let given = options.cluster.clone();
    Box::new(move |_, _| {
        let cluster = given.clone().unwrap_or_else(|| ClusterSpec {
            gpu_types: vec![GpuTypeSpec {
                name: "V100".into(),
                memory_gib: 32.0,
                mig: None,
            }],
            node_groups: vec![NodeGroup {
                count: NUM_NODES,
                gpus_per_node: 8,
                gpu_type: "V100".into(),
                nodes_per_rack: NODES_PER_RACK,
                ..NodeGroup::default()
            }],
            tenants: vec![single_tenant(NUM_NODES * 8)],
            borrowing: true,
            ..ClusterSpec::default()
        });
        let note = if given.is_some() {
            "cluster: given by the caller"
        } else {
            "cluster: 133 nodes x 8 V100 (published); quotas of 1 September 2020"
        };
        Site {
            tenancy: tenancy_for(&cluster, given.is_some(), &VC_GPUS),
            classes: vec![any_class(&cluster)],
            cluster,
            notes: vec![note.into(), format!("racks of {NODES_PER_RACK} nodes: assumed")],
        }
    })
}
