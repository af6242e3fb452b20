//! Microsoft ITP, 2021: lists of ten internal training clusters, published with ElasticFlow.
//!
//! # Source
//! Gu et al., "ElasticFlow", ASPLOS 2023; `microsoft/elasticflow-traces` (MIT). The lists with model names and deadlines
//! carry the same jobs; those columns are generated and are not read. No users, no outcomes, no cluster sizes.

use std::path::Path;

use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, Resources};

use super::tenants::any_class;
use super::{Draft, ImportOptions, RawRow, Site, SiteOf, Tenancy};
use crate::error::Error;
use crate::workload::table::{Lines, Table};
use crate::workload::{Outcome, RUN_TIME_S_MAX, SUBMIT_S_MAX};

pub(super) const REQUIRED: [&str; 4] = ["job_id", "submission_time", "duration", "num_gpu"];

/// Mean use of the cluster that the list's jobs shall offer. *Assumed*: between Philly's 0.64 and Venus's 0.78.
const LOAD: f64 = 0.7;

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::new(Lines::open(path)?, &REQUIRED)?;
    let column = |name: &str| table.column(name);
    let (job, submit) = (column("job_id"), column("submission_time"));
    let (duration, gpus) = (column("duration"), column("num_gpu"));
    let mut draft = Draft::new(path, site(options));
    while table.next_row()? {
        draft.rows_read += 1;
        let submit_s = table.number(submit, -SUBMIT_S_MAX, SUBMIT_S_MAX, "give seconds")?;
        let num_gpus = table.count(gpus, "remove jobs without GPUs")?;
        if num_gpus == 0 {
            return Err(table.refuse(gpus, "1 or more", "remove jobs without GPUs"));
        }
        let mut run_time_s = table.number(duration, 0.0, RUN_TIME_S_MAX, "give seconds")?;
        if run_time_s < 1.0 {
            run_time_s = 1.0;
            draft.mend("run time below 1 s: raised to 1 s");
        }
        draft.rows.push(RawRow {
            line: table.line(),
            id: table.name(job)?,
            submit: Time::from_secs_f64(submit_s),
            num_gpus,
            run_time_s,
            estimate_s: None,
            tenant: None,
            class: 0,
            user: None,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
        });
    }
    Ok(draft)
}

fn site(options: &ImportOptions) -> SiteOf {
    let given = options.cluster.clone();
    Box::new(move |rows| {
        let (cluster, note) = match &given {
            Some(cluster) => (cluster.clone(), "cluster: given by the caller".to_owned()),
            None => sized_for(rows),
        };
        Site {
            tenancy: Tenancy::Single,
            classes: vec![any_class(&cluster)],
            cluster,
            notes: vec![note],
        }
    })
}

/// The smallest cluster of 8-GPU nodes that holds the largest gang and keeps the mean demand at or below [`LOAD`].
fn sized_for(rows: &[RawRow]) -> (ClusterSpec, String) {
    let demand: f64 = rows
        .iter()
        .map(|row| f64::from(row.num_gpus) * row.run_time_s)
        .sum();
    let span_s = match (rows.first(), rows.last()) {
        (Some(first), Some(last)) => (last.submit - first.submit).as_secs_f64().max(1.0),
        _ => 1.0,
    };
    let largest = rows.iter().map(|row| row.num_gpus).max().unwrap_or(1);
    // Bounded so that a list of absurd gangs is excluded by the fit instead of building an absurd cluster.
    let wanted = (demand / span_s / LOAD).max(f64::from(largest)).min(100_000.0);
    let num_nodes = (wanted / 8.0).ceil().max(1.0) as u32;
    let note = format!(
        "cluster: sizes were not published; {num_nodes} nodes x 8 GPUs make the mean demand at most {LOAD} of the \
         capacity (assumed)"
    );
    (ClusterSpec::uniform(num_nodes, 8, 16), note)
}
