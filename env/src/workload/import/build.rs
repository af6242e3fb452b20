//! From the rows of any list to a checked workload: window, order, tenants, what fits.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, ModelClass, TenantSpec};

use super::report::count;
use super::{Format, ImportOptions, ImportReport, Repair};
use crate::error::Error;
use crate::workload::{GangLimits, JobSpec, Outcome, SUBMIT_S_MAX, Workload, config};

/// Tenant of jobs for which a list names none.
pub(crate) const UNASSIGNED: &str = "unassigned";

/// A row as read, on the list's own clock.
pub(crate) struct RawRow {
    pub line: u64,
    pub id: String,
    pub submit: Time,
    pub num_gpus: u32,
    pub run_time_s: f64,
    pub estimate_s: Option<f64>,
    /// Index into [`Draft::tenants`].
    pub tenant: Option<u32>,
    pub class: u16,
    pub user: Option<String>,
    pub outcome: Outcome,
}

/// Whom the GPUs belong to.
pub(crate) enum Tenancy {
    /// The cluster's tenants are those of the list, matched by name.
    ByName,
    /// The cluster is shared out among the tenants that the list names; the weights are GPUs where known.
    Shared(Vec<(&'static str, u32)>),
    /// The list names no tenants.
    Single,
}

/// The cluster that a list belongs to.
pub(crate) struct Site {
    pub cluster: ClusterSpec,
    pub classes: Vec<ModelClass>,
    pub tenancy: Tenancy,
    pub notes: Vec<String>,
}

/// What a format's reader hands over.
pub(crate) struct Draft {
    pub name: String,
    pub rows: Vec<RawRow>,
    /// Tenant names in order of appearance.
    pub tenants: Vec<String>,
    tenant_index: BTreeMap<String, u32>,
    pub repairs: Vec<Repair>,
    pub rows_read: u64,
    /// The cluster, from the rows that are left (sizes are estimated from them where none is published).
    pub site: Box<dyn Fn(&[RawRow]) -> Site>,
    /// This project's own file: what does not fit is an error, and time 0 is time 0.
    pub strict: bool,
}

impl Draft {
    pub(crate) fn new(path: &Path, site: Box<dyn Fn(&[RawRow]) -> Site>) -> Draft {
        Draft {
            name: name_of(path),
            rows: Vec::new(),
            tenants: Vec::new(),
            tenant_index: BTreeMap::new(),
            repairs: Vec::new(),
            rows_read: 0,
            site,
            strict: false,
        }
    }

    /// Index of a tenant's name; none for an empty one.
    pub(crate) fn tenant(&mut self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        if let Some(index) = self.tenant_index.get(name) {
            return Some(*index);
        }
        let index = self.tenants.len() as u32;
        self.tenants.push(name.to_owned());
        self.tenant_index.insert(name.to_owned(), index);
        Some(index)
    }

    pub(crate) fn mend(&mut self, rule: &str) {
        count(&mut self.repairs, rule, 1, false);
    }
}

/// The file's name without `.gz` and its extension.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name
        .strip_suffix(".csv")
        .or_else(|| name.strip_suffix(".trace"))
        .unwrap_or(name);
    name.to_owned()
}

pub(super) fn build(
    path: &Path,
    format: Format,
    mut draft: Draft,
    options: &ImportOptions,
) -> Result<(Workload, ImportReport), Error> {
    let file = path.display().to_string();
    let mut report = ImportReport::new(format);
    report.rows_read = draft.rows_read;
    report.repairs = std::mem::take(&mut draft.repairs);
    let mut rows = std::mem::take(&mut draft.rows);
    refuse_duplicates(&file, &rows)?;
    select(&mut rows, options, &mut report);

    let mut site = (draft.site)(&rows);
    site.cluster.validate()?;
    let tenant_of = assign_tenants(&mut site, &draft, &rows, options)?;
    report.notes = std::mem::take(&mut site.notes);
    let first = rows.first().map_or(Time::ZERO, |row| row.submit);
    let origin = match options.from_s {
        Some(from_s) => Time::from_secs_f64(from_s),
        None if draft.strict => Time::ZERO,
        None => first,
    };
    report.origin_s = origin.as_secs_f64();
    let gangs = GangLimits::new(&site.cluster, &site.classes);
    let mut jobs = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(tenant) = tenant_of[row.tenant.map_or(0, |index| index as usize + 1)] else {
            if draft.strict {
                return Err(unknown_tenant(&file, &row, &draft.tenants, &site.cluster));
            }
            report.exclude("its virtual cluster is not named or holds no GPUs here", 1);
            continue;
        };
        let most = gangs.most(tenant, row.class);
        if row.num_gpus > most {
            if draft.strict {
                return Err(Error::Data {
                    file,
                    line: row.line,
                    column: "num_gpus".into(),
                    message: format!(
                        "`{}` is not allowed here: allowed is 1 to {most}, the most GPUs that the job's tenant and \
                         class can get on one GPU type; enlarge the cluster or remove the job",
                        row.num_gpus
                    ),
                });
            }
            report.exclude(
                "needs more GPUs than its tenant or one GPU type of the cluster holds",
                1,
            );
            continue;
        }
        jobs.push(JobSpec {
            id: row.id,
            submit: row.submit - origin,
            num_gpus: row.num_gpus,
            run_time_s: row.run_time_s,
            estimate_s: row.estimate_s,
            tenant,
            class: row.class,
            user: row.user,
            outcome: row.outcome,
        });
    }
    if jobs.is_empty() && !draft.strict {
        let message = format!("no job is left to run: {report}; widen the window or enlarge the cluster");
        return Err(Error::Data {
            file,
            line: 0,
            column: "-".into(),
            message,
        });
    }
    if let Some(last) = jobs.last()
        && last.submit.as_secs_f64() > SUBMIT_S_MAX
    {
        let span = last.submit.as_secs_f64();
        return Err(config(
            "import window",
            format!("{span} s"),
            "at most 2e9 s",
            "take a shorter window",
        ));
    }
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
    debug_assert_eq!(report.rows_read, report.jobs + report.rows_excluded());
    Ok((workload, report))
}

fn refuse_duplicates(file: &str, rows: &[RawRow]) -> Result<(), Error> {
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        if let Some(before) = lines.insert(&row.id, row.line) {
            return Err(Error::Data {
                file: file.into(),
                line: row.line,
                column: "job_id".into(),
                message: format!(
                    "`{}` is not allowed here: line {before} has the same id; allowed is an id not used before; rename \
                     one of the two",
                    crate::workload::table::shorten(&row.id)
                ),
            });
        }
    }
    Ok(())
}

/// Window, order, number of jobs.
fn select(rows: &mut Vec<RawRow>, options: &ImportOptions, report: &mut ImportReport) {
    let from = options.from_s.map_or(Time(i64::MIN), Time::from_secs_f64);
    let to = options.to_s.map_or(Time::MAX, Time::from_secs_f64);
    let before = rows.len();
    rows.retain(|row| row.submit >= from && row.submit < to);
    report.exclude("outside the window", (before - rows.len()) as u64);
    let late = rows
        .windows(2)
        .filter(|pair| pair[1].submit < pair[0].submit)
        .count();
    rows.sort_by_key(|row| row.submit);
    report.mend(
        "submitted before the row above it: sorted by submission",
        late as u64,
    );
    if let Some(max_jobs) = options.max_jobs
        && rows.len() > max_jobs
    {
        report.exclude("after the first max_jobs jobs", (rows.len() - max_jobs) as u64);
        rows.truncate(max_jobs);
    }
}

/// Settles the cluster's tenants; gives each of the list's its index, `None` where it has no place. Entry 0 is for rows
/// without a tenant, entry `i + 1` for tenant `i` of the list.
fn assign_tenants(
    site: &mut Site,
    draft: &Draft,
    rows: &[RawRow],
    options: &ImportOptions,
) -> Result<Vec<Option<u16>>, Error> {
    let mut tenant_of = vec![None; draft.tenants.len() + 1];
    let weights = match &site.tenancy {
        Tenancy::Single => {
            if options.virtual_clusters {
                let hint = "use false: this list names none";
                return Err(config("import.virtual_clusters", true, "false", hint));
            }
            tenant_of.fill(Some(0));
            return Ok(tenant_of);
        }
        Tenancy::ByName => {
            let tenants = &site.cluster.tenants;
            let find = |name: &str| tenants.iter().position(|tenant| tenant.name == name);
            for (index, name) in draft.tenants.iter().enumerate() {
                tenant_of[index + 1] = find(name).map(|index| index as u16);
            }
            let only = (tenants.len() == 1).then_some(0);
            tenant_of[0] = find(UNASSIGNED).or(only).map(|index| index as u16);
            site.cluster.borrowing &= !options.virtual_clusters;
            return Ok(tenant_of);
        }
        Tenancy::Shared(weights) => weights,
    };
    let mut work = vec![0.0; draft.tenants.len() + 1];
    for row in rows {
        work[row.tenant.map_or(0, |index| index as usize + 1)] += f64::from(row.num_gpus) * row.run_time_s;
    }
    let total: f64 = work.iter().sum();
    // Tenants of known size, then (only where nothing is walled) the rest, which gets its share of the work.
    let mut names: Vec<(String, f64)> = Vec::new();
    let known: f64 = weights.iter().map(|(_, gpus)| f64::from(*gpus)).sum();
    let mut order: Vec<usize> = (0..draft.tenants.len()).collect();
    order.sort_by(|a, b| draft.tenants[*a].cmp(&draft.tenants[*b]));
    let listed = |name: &str| weights.iter().find(|(listed, _)| *listed == name);
    let has_rows = |index: usize| work[index + 1] > 0.0;
    let rest: f64 = order
        .iter()
        .filter(|index| listed(&draft.tenants[**index]).is_none())
        .map(|index| work[*index + 1])
        .sum::<f64>()
        + work[0];
    let rest_share = if options.virtual_clusters || total == 0.0 {
        0.0
    } else if known == 0.0 {
        1.0
    } else {
        rest / total
    };
    for (name, gpus) in weights {
        names.push((
            (*name).to_owned(),
            (1.0 - rest_share) * f64::from(*gpus) / known.max(1.0),
        ));
    }
    if !options.virtual_clusters {
        for index in order {
            let name = &draft.tenants[index];
            if listed(name).is_none() && has_rows(index) {
                names.push((
                    name.clone(),
                    rest_share * work[index + 1] / rest.max(f64::MIN_POSITIVE),
                ));
            }
        }
        if work[0] > 0.0 {
            names.push((
                UNASSIGNED.into(),
                rest_share * work[0] / rest.max(f64::MIN_POSITIVE),
            ));
        }
    }
    if names.is_empty() {
        tenant_of.fill(Some(0));
        return Ok(tenant_of);
    }
    let capacity = u32::try_from(site.cluster.num_gpus()).unwrap_or(u32::MAX);
    let shares: Vec<f64> = names.iter().map(|(_, share)| *share).collect();
    let quotas = share_out(&shares, capacity);
    site.cluster.tenants = names
        .into_iter()
        .zip(quotas)
        .map(|((name, _), quota_gpus)| TenantSpec { name, quota_gpus })
        .collect();
    site.cluster.borrowing = !options.virtual_clusters;
    let find = |name: &str| {
        let found = site.cluster.tenants.iter().position(|tenant| tenant.name == name);
        found.map(|index| index as u16)
    };
    for (index, name) in draft.tenants.iter().enumerate() {
        tenant_of[index + 1] = find(name);
    }
    tenant_of[0] = find(UNASSIGNED);
    Ok(tenant_of)
}

/// Splits `total` by `shares` (each 0 or more) with largest remainders; ties go to the first.
pub(crate) fn share_out(shares: &[f64], total: u32) -> Vec<u32> {
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return vec![0; shares.len()];
    }
    let exact: Vec<f64> = shares
        .iter()
        .map(|share| share / sum * f64::from(total))
        .collect();
    let mut parts: Vec<u32> = exact.iter().map(|part| part.floor() as u32).collect();
    let given: u32 = parts.iter().sum();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()).then(a.cmp(b)));
    for index in order.into_iter().take(total.saturating_sub(given) as usize) {
        parts[index] += 1;
    }
    parts
}

fn unknown_tenant(file: &str, row: &RawRow, names: &[String], cluster: &ClusterSpec) -> Error {
    let name = row.tenant.map_or("", |index| names[index as usize].as_str());
    let allowed: Vec<_> = cluster
        .tenants
        .iter()
        .map(|tenant| tenant.name.as_str())
        .collect();
    Error::Data {
        file: file.into(),
        line: row.line,
        column: "tenant".into(),
        message: format!(
            "`{}` is not allowed here: allowed is one of {}; declare the tenant in the cluster",
            crate::workload::table::shorten(name),
            crate::workload::table::shorten(&allowed.join(", "))
        ),
    }
}
