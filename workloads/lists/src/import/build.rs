//! From the rows of any list to a checked workload: window, order, tenants, what fits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::cluster_spec::Resources;
use pleach_scheduler::{ClassId, Time};

use super::draft::{Draft, Mended, RawRow};
use super::fits;
use super::options::DATES_FROM_S;
use super::tenants::{assign_tenants, unknown_tenant};
use super::{Format, ImportOptions, ImportReport};
use crate::Error;
use crate::{GangLimits, JobSpec, SUBMIT_S_MAX, Workload};

const OUTSIDE: &str = "outside the window";
/// Most tenants; the limit of a cluster description.
const NUM_TENANTS_MAX: usize = 10_000;

pub(super) fn build(
    path: &Path,
    format: Format,
    mut draft: Draft,
    options: &ImportOptions,
) -> Result<(Workload, ImportReport), Error> {
    let file = path.display().to_string();
    let mut report = ImportReport::new(format, std::mem::take(&mut draft.account));
    let mut rows = std::mem::take(&mut draft.rows);
    Error::refuse_if(
        draft.tenants.len() > NUM_TENANTS_MAX,
        "tenants",
        format_args!("{} names", draft.tenants.len()),
        "at most 10,000",
        "is the right column read as tenant?",
    )?;
    let own_clock = rows
        .first()
        .is_some_and(|row| row.submit.as_secs_f64() >= DATES_FROM_S);
    let clock_0_unix_s = draft.clock_0_unix_s;
    let options = &options.on_clock(clock_0_unix_s.or(own_clock.then_some(0.0)))?;
    refuse_duplicates(&file, &rows)?;
    let mut mended: Mended = std::mem::take(&mut draft.mended)
        .into_iter()
        .filter_map(|(position, rule)| Some((rows.get(position)?.line, rule)))
        .collect();
    select(&mut rows, options, &mut report, &mut mended);

    let mut site = (draft.site)(&rows, &draft.classes);
    if site.cluster.site_fabric.is_none() {
        site.cluster.site_fabric = format.site_fabric().map(str::to_owned);
    }
    site.cluster.validate()?;
    if !draft.strict {
        fits::drop_unmodelled(&site.cluster, &mut rows, &mut mended);
    }
    let tenant_of = assign_tenants(&mut site, &draft, &rows, options.virtual_clusters)?;
    report.notes = std::mem::take(&mut site.notes);
    let first = rows.first().map_or(Time::ZERO, |row| row.submit);
    let origin = match options.from_s {
        Some(from_s) => Time::from_secs_f64(from_s),
        None if draft.strict => Time::ZERO,
        None => first,
    };
    report.origin_s = origin.as_secs_f64();
    site.cluster.seen.time_0_unix_s = clock_0_unix_s.map(|clock_0| clock_0 + report.origin_s);
    let gangs = GangLimits::new(&site.cluster, &site.classes);
    let mut cluster = Cluster::new(&site.cluster, &site.classes, Capabilities::DEFAULT)?;
    let mut jobs = Vec::with_capacity(rows.len());
    let mut left_out = BTreeSet::new();
    for row in rows {
        let Some(tenant) = tenant_of[row.tenant.map_or(0, |index| index as usize + 1)] else {
            if draft.strict {
                return Err(unknown_tenant(&file, &row, &draft.tenants, &site.cluster));
            }
            report
                .account
                .leave_out("its virtual cluster is not named or holds no GPUs here", 1);
            left_out.insert(row.line);
            continue;
        };
        if let Some(reason) = too_large(&file, &row, tenant, draft.strict, &gangs, &mut cluster)? {
            report.account.leave_out(reason, 1);
            left_out.insert(row.line);
            continue;
        }
        jobs.push(row.into_job(tenant, origin));
    }
    for (line, rule) in mended {
        if !left_out.contains(&line) {
            report.account.mend(rule, 1);
        }
    }
    check_window(file, &jobs, &report)?;
    let workload = Workload {
        name: draft.name,
        cluster: site.cluster,
        classes: site.classes,
        jobs,
    };
    workload.validate()?;
    report.jobs = workload.jobs.len() as u64;
    report.gpu_hours = workload.demand_gpu_s() / 3600.0;
    report.offered_load = Some(workload.offered_load()).filter(|load| load.is_finite());
    debug_assert_eq!(report.account.rows_read, report.jobs + report.account.left_out());
    Ok((workload, report))
}

/// Why a row cannot run on the cluster; none where it can. A list of our own format must not hold such rows.
fn too_large(
    file: &str,
    row: &RawRow,
    tenant: u16,
    is_strict: bool,
    gangs: &GangLimits,
    cluster: &mut Cluster,
) -> Result<Option<&'static str>, Error> {
    let most = gangs.most(tenant, row.class);
    if row.num_gpus > most {
        if is_strict {
            return Err(Error::at(
                file,
                row.line,
                "num_gpus",
                format!(
                    "`{}` is not allowed here: allowed is 1 to {most}, the most GPUs that the job's tenant and \
                     class can get on one GPU type; enlarge the cluster or remove the job",
                    row.num_gpus
                ),
            ));
        }
        return Ok(Some(
            "needs more GPUs than its tenant or one GPU type of the cluster holds",
        ));
    }
    // What a job asks for beside whole GPUs, only the cluster itself can judge.
    let room = match row.resources {
        asked if !is_strict && asked != Resources::WHOLE_GPU => {
            cluster.largest_gang(ClassId(row.class), &asked)
        }
        _ => u32::MAX,
    };
    let reason = match row.resources.tasks.is_any() {
        true => "asks for more CPU or memory than the nodes and GPUs of the cluster have",
        false => "asks for more CPU, memory or GPUs on one node than the nodes of the cluster have",
    };
    Ok((row.num_gpus > room).then_some(reason))
}

/// Refuses a window without jobs and one that is too long.
fn check_window(file: String, jobs: &[JobSpec], report: &ImportReport) -> Result<(), Error> {
    let Some(last) = jobs.last() else {
        let message = if report.account.rows_read == 0 {
            "no job is left to run: there is a header and no row; is the file whole?".to_owned()
        } else {
            format!(
                "no job is left to run ({}); {}",
                report.to_string().trim_end(),
                way_out(report)
            )
        };
        return Err(Error::at(file, 0, "-", message));
    };
    let span_s = last.submit.as_secs_f64();
    Error::refuse_if(
        span_s > SUBMIT_S_MAX,
        "import window",
        format_args!("{span_s} s"),
        "at most 2e9 s",
        "take a shorter window",
    )?;
    Ok(())
}

/// What to do about a list of which nothing is left, by the rule that took the most rows.
fn way_out(report: &ImportReport) -> &'static str {
    let most = report.account.repairs.iter().filter(|repair| repair.excluded);
    let rule = most
        .max_by_key(|repair| repair.rows)
        .map_or("", |repair| repair.rule.as_str());
    if rule == OUTSIDE {
        "widen the window"
    } else if rule.starts_with("needs more") || rule.starts_with("asks for more") || rule.contains("cluster")
    {
        "enlarge the cluster"
    } else if rule.contains("understood") || rule.contains("read as a time") {
        "mend these cells, or say in a mapping how they are written (docs/import.md)"
    } else {
        "docs/import.md says what a row needs"
    }
}

fn refuse_duplicates(file: &str, rows: &[RawRow]) -> Result<(), Error> {
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        if let Some(before) = lines.insert(&row.id, row.line) {
            return Err(Error::at(
                file,
                row.line,
                "job_id",
                format!(
                    "`{}` is not allowed here: line {before} has the same id; allowed is an id not used before; rename \
                     one of the two",
                    crate::table::shorten(&row.id)
                ),
            ));
        }
    }
    Ok(())
}

/// Window, order, number of jobs. Of what was mended, that in the rows that stay is kept.
fn select(rows: &mut Vec<RawRow>, options: &ImportOptions, report: &mut ImportReport, mended: &mut Mended) {
    let from = options.from_s.map_or(Time(i64::MIN), Time::from_secs_f64);
    let to = options.to_s.map_or(Time::MAX, Time::from_secs_f64);
    let before = rows.len();
    rows.retain(|row| row.submit >= from && row.submit < to);
    report.account.leave_out(OUTSIDE, (before - rows.len()) as u64);
    let late = rows.windows(2).filter(|pair| pair[1].submit < pair[0].submit);
    let rule = "submitted before the row above it: sorted by submission";
    mended.extend(late.map(|pair| (pair[1].line, rule)));
    rows.sort_by_key(|row| row.submit);
    if let Some(max_jobs) = options.max_jobs
        && rows.len() > max_jobs
    {
        report
            .account
            .leave_out("after the first max_jobs jobs", (rows.len() - max_jobs) as u64);
        rows.truncate(max_jobs);
    }
    if rows.len() < before && !mended.is_empty() {
        let left: BTreeSet<u64> = rows.iter().map(|row| row.line).collect();
        mended.retain(|(line, _)| left.contains(line));
    }
}
