//! From runs to jobs: runs of one job after a requeue, components of a heterogeneous job.

use std::collections::BTreeMap;

use super::Fate;
use super::row::{BACKWARDS, NEVER_BEGAN, NO_END, Row, TOO_LONG};
use super::taken::Taken;
use crate::RUN_TIME_S_MAX;

/// A further run begins at most so long after its predecessor ended, s, where that was not stopped by the cluster: an id that
/// comes later is another job's, for Slurm begins anew after `MaxJobId`. *Assumed*.
const REQUEUE_S_MAX: f64 = 120.0;
/// What a change of the clock makes of an end, s.
const CLOCK_CHANGE_S: f64 = 3600.0;

pub(super) const FURTHER_RUN: &str =
    "a further run of a job that was stopped and ran again: added to its first";
pub(super) const COMPONENT: &str =
    "a component of a heterogeneous job: its GPUs are added to those of its first";
pub(super) const STILL_RUNS: &str = "still runs at the end of the list: its run time so far";
pub(super) const STILL_WAITS: &str = "waits at the end of the list: as if it started long after";
pub(super) const CLOCK_CHANGED: &str =
    "its start and its end lie on two sides of a change of the clock: its run time is what was counted";
pub(super) const EARLY: &str = "began before it was submitted: submitted when it began";
pub(super) const ELIGIBLE: &str =
    "waited for another job or for a time first: submitted when it became eligible";
pub(super) const ID_AGAIN: &str = "has the id of an earlier job: a number is added to it";

/// A job as the site saw it.
#[derive(Clone, Debug)]
pub(super) struct SiteJob {
    /// Its first run, with the id, the submission and the sizes.
    pub row: Row,
    /// Time in which it held its GPUs, s.
    pub run_s: f64,
    /// End of its last run where it has ended.
    pub end_s: Option<f64>,
    /// How long it had been submitted before it was eligible, s.
    pub held_s: f64,
    /// What was mended.
    pub mended: Vec<&'static str>,
}

/// Puts runs together; the order is that of the first runs in the list.
pub(super) fn merge(taken: &mut Taken, latest_s: f64, later_s: Option<f64>) -> Vec<SiteJob> {
    let mut jobs = Vec::new();
    // Where none runs it is not known when the list was taken.
    let is_taken = taken.rows.iter().any(|row| row.fate == Fate::Running);
    let later_s = later_s.filter(|_| is_taken).map(|later_s| latest_s + later_s);
    // Slurm names no such instant of jobs that are held or wait for others.
    let tells_eligible = taken.rows.iter().any(|row| row.eligible_s.is_some());
    for row in std::mem::take(&mut taken.rows) {
        let may_start = row.eligible_s.is_some() || !tells_eligible;
        match job_of(row, latest_s, later_s.filter(|_| may_start)) {
            Ok(job) => jobs.push(job),
            Err(reason) => taken.leave_out(reason),
        }
    }
    let jobs = join_runs(jobs, taken);
    join_components(jobs, taken)
}

fn job_of(mut row: Row, latest_s: f64, later_s: Option<f64>) -> Result<SiteJob, &'static str> {
    let mut mended = row.mended.clone();
    if row.fate == Fate::Waiting {
        let start_s = later_s.ok_or(NEVER_BEGAN)?;
        mended.push(STILL_WAITS);
        (row.start_s, row.end_s, row.run_s) = (later_s, later_s, None);
        return Ok(SiteJob {
            row,
            run_s: 1.0,
            end_s: Some(start_s),
            held_s: 0.0,
            mended,
        });
    }
    let is_running = row.fate == Fate::Running;
    let between = |end: f64| row.start_s.map(|start| end - start);
    let run_s = if is_running {
        mended.push(STILL_RUNS);
        row.run_s.or_else(|| between(latest_s))
    } else {
        let told = row.end_s.and_then(between);
        match (row.run_s, told) {
            (Some(counted), Some(told)) => {
                if ((told - counted).abs() - CLOCK_CHANGE_S).abs() < 1.5 {
                    mended.push(CLOCK_CHANGED);
                }
                Some(counted)
            }
            (counted, told) => counted.or(told),
        }
    };
    let run_s = run_s.ok_or(NO_END)?;
    if run_s < 0.0 {
        return Err(BACKWARDS);
    }
    if run_s > RUN_TIME_S_MAX {
        return Err(TOO_LONG);
    }
    let end_s = row.start_s.map(|start| start + run_s).filter(|_| !is_running);
    Ok(SiteJob {
        row,
        run_s,
        end_s,
        held_s: 0.0,
        mended,
    })
}

/// Adds further runs to the first one of the same job.
fn join_runs(jobs: Vec<SiteJob>, taken: &mut Taken) -> Vec<SiteJob> {
    let mut joined: Vec<SiteJob> = Vec::with_capacity(jobs.len());
    let mut place: BTreeMap<(String, Option<u32>), (usize, u32)> = BTreeMap::new();
    for mut job in in_order_of_runs(jobs) {
        let key = (job.row.id.clone(), job.row.component);
        let Some((index, num)) = place.get_mut(&key) else {
            place.insert(key, (joined.len(), 1));
            joined.push(job);
            continue;
        };
        let first = &mut joined[*index];
        // One that waits again has ended for now.
        let may_follow = job.row.fate != Fate::Waiting;
        let is_next = first.row.may_run_again
            || first
                .end_s
                .is_some_and(|end| job.row.submit_s <= end + REQUEUE_S_MAX);
        if is_next && may_follow && taken.mapping_is_slurm {
            first.run_s = (first.run_s + job.run_s).min(RUN_TIME_S_MAX);
            first.end_s = job.end_s;
            first.row.fate = job.row.fate;
            first.row.may_run_again = job.row.may_run_again;
            first.mended.extend(job.mended);
            taken.leave_out(FURTHER_RUN);
            continue;
        }
        *num += 1;
        job.row.id = format!("{}#{num}", job.row.id);
        job.mended.push(ID_AGAIN);
        *index = joined.len();
        joined.push(job);
    }
    joined.sort_by_key(|job| job.row.line);
    joined
}

/// Runs of equal ids in the order in which they began; the rest stays.
fn in_order_of_runs(mut jobs: Vec<SiteJob>) -> Vec<SiteJob> {
    jobs.sort_by(|a, b| {
        let begin = |job: &SiteJob| job.row.start_s.unwrap_or(job.row.submit_s);
        begin(a).total_cmp(&begin(b)).then(a.row.line.cmp(&b.row.line))
    });
    jobs
}

/// Adds components to the first one of their heterogeneous job.
fn join_components(jobs: Vec<SiteJob>, taken: &mut Taken) -> Vec<SiteJob> {
    let mut joined: Vec<SiteJob> = Vec::with_capacity(jobs.len());
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    for mut job in jobs {
        settle_submission(&mut job);
        if job.row.component.is_none() {
            joined.push(job);
            continue;
        }
        let Some(index) = place.get(&job.row.id) else {
            place.insert(job.row.id.clone(), joined.len());
            joined.push(job);
            continue;
        };
        let first = &mut joined[*index];
        let each = |row: &Row| row.num_gpus.checked_div(row.num_nodes);
        // As many on each node, or its GPUs are cut as they may be.
        let is_even = each(&first.row).is_some() && each(&first.row) == each(&job.row);
        first.row.num_gpus = first.row.num_gpus.saturating_add(job.row.num_gpus);
        first.row.num_nodes = match is_even {
            true => first.row.num_nodes.saturating_add(job.row.num_nodes),
            false => 0,
        };
        first.row.ran_on.extend(job.row.ran_on);
        first.row.ran_on.sort_unstable();
        first.row.ran_on.dedup();
        if first.row.asked != job.row.asked {
            first.row.asked = None;
        }
        if !first.row.nodes.is_empty() && !job.row.nodes.is_empty() {
            first.row.nodes.push(',');
        }
        first.row.nodes.push_str(&job.row.nodes);
        first.run_s = first.run_s.max(job.run_s);
        taken.leave_out(COMPONENT);
    }
    joined
}

/// From when on a job waits for GPUs and for nothing else.
fn settle_submission(job: &mut SiteJob) {
    let row = &mut job.row;
    if let Some(eligible) = row.eligible_s
        && eligible > row.submit_s + 1.0
        && row.start_s.is_none_or(|start| eligible <= start)
    {
        job.held_s = eligible - row.submit_s;
        row.submit_s = eligible;
        job.mended.push(ELIGIBLE);
    }
    if let Some(start) = row.start_s
        && start < row.submit_s
    {
        row.submit_s = start;
        job.mended.push(EARLY);
    }
}
