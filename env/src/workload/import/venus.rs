//! Helios Venus (SenseTime), April to September 2020: 125,303 GPU jobs on nodes of 8 V100.
//!
//! # Source
//! Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021; data
//! CC BY 4.0. Two forms: the list joined from the parts that research repositories re-publish, and the four columns of
//! one of them.
//!
//! Where the true run time is known it is used; else the service time, which the source cut at 48 h (1,250 jobs).

use std::path::Path;

use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, GpuTypeSpec, NodeGroup, Resources};

use super::tenants::{any_class, single_tenant, tenancy_for};
use super::{Draft, ImportOptions, RawRow, Site, SiteOf};
use crate::error::Error;
use crate::workload::table::{Lines, Table};
use crate::workload::{Outcome, RUN_TIME_S_MAX, SUBMIT_S_MAX};

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
/// Nodes that share the fast network. *Assumed*: not published.
const NODES_PER_RACK: u32 = 16;
/// Where the source cut service times, s.
const SERVICE_S_CUT: f64 = 172_800.0;

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let is_four = header_has(path, &REQUIRED_FOUR)?;
    let required = if is_four { REQUIRED_FOUR } else { REQUIRED_JOINED };
    let mut table = Table::new(Lines::open(path)?, &required)?;
    let column = |name: &str| table.column(name);
    let job = column("job_id");
    let (submit, service, gpus) = if is_four {
        (column("arrival_s"), column("service_sec"), column("gpu_count"))
    } else {
        (column("submit_s"), column("service_s"), column("gpu_num"))
    };
    let (duration, state, vc) = (column("duration_s"), column("state"), column("vc"));
    let (user, clamped) = (column("user"), column("clamped"));
    let mut draft = Draft::new(path, site(options));
    while table.next_row()? {
        draft.rows_read += 1;
        let submit_s = table.number(submit, -SUBMIT_S_MAX, SUBMIT_S_MAX, "give seconds")?;
        let num_gpus = table.count(gpus, "remove jobs without GPUs")?;
        if num_gpus == 0 {
            return Err(table.refuse(gpus, "1 or more", "remove jobs without GPUs"));
        }
        let known = table.optional(duration, 0.0, RUN_TIME_S_MAX, "give seconds or leave it empty")?;
        let mut run_time_s = match known {
            Some(duration_s) => duration_s,
            None => table.number(service, 0.0, RUN_TIME_S_MAX, "give seconds")?,
        };
        let is_cut = table.text(clamped) == "1" || (is_four && run_time_s >= SERVICE_S_CUT);
        if known.is_none() && is_cut {
            draft.mend("run time cut at 48 h by the source and not known otherwise: kept at 172,800 s");
        }
        if run_time_s < 1.0 {
            run_time_s = 1.0;
            draft.mend("run time below 1 s: raised to 1 s");
        }
        let outcome = match table.text(state) {
            "COMPLETED" => Outcome::Completed,
            "FAILED" | "NODE_FAIL" => Outcome::Failed,
            "CANCELLED" | "TIMEOUT" => Outcome::Killed,
            "" => Outcome::Unknown,
            _ => {
                let allowed = "COMPLETED, FAILED, NODE_FAIL, CANCELLED, TIMEOUT or nothing";
                return Err(table.refuse(state, allowed, "map other words to these"));
            }
        };
        let tenant = table.optional_name(vc)?.and_then(|name| draft.tenant(&name));
        draft.rows.push(RawRow {
            line: table.line(),
            id: table.name(job)?,
            submit: Time::from_secs_f64(submit_s),
            num_gpus,
            run_time_s,
            estimate_s: None,
            tenant,
            class: 0,
            user: table.optional_name(user)?,
            outcome,
            resources: Resources::WHOLE_GPU,
        });
    }
    Ok(draft)
}

/// Whether the first line of a file names all these columns.
fn header_has(path: &Path, names: &[&str]) -> Result<bool, Error> {
    let mut lines = Lines::open(path)?;
    let first = lines.next_line()?.unwrap_or_default();
    let has = |name: &&str| first.split(',').any(|found| found.trim() == *name);
    Ok(names.iter().all(has))
}

fn site(options: &ImportOptions) -> SiteOf {
    let given = options.cluster.clone();
    Box::new(move |_| {
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
