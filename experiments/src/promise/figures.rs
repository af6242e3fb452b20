//! Waits, completion times, slowdowns and fairness of jobs, by size and account, each with the interval of drawing days.

use std::collections::BTreeMap;

use pleach_env::JobOutcome;
use pleach_env::workload::Workload;
use pleach_site::promise::{Row, Stated};

use crate::evaluate::stats::over_parts;
use crate::twin::{NAMES_MAX, Span, wait_s};
use crate::workload_report::sizes::{BUCKETS, bucket};

/// Keys of figures with their names in tables and what they count: time or a number.
pub(super) const FIGURES: [(&str, &str, bool); 6] = [
    ("wait_s", "mean wait", true),
    ("wait_s_p99", "99 % wait", true),
    ("jct_s", "mean completion time", true),
    ("jct_s_p99", "99 % completion time", true),
    ("slowdown", "mean slowdown", false),
    ("fairness", "fairness", false),
];

/// Jobs as a promise groups them: all first, then by size, then those of the accounts with the most jobs.
pub(super) fn rows(jobs: &[&JobOutcome], workload: &Workload, span: Span) -> Vec<Row> {
    let mut groups = vec![("all", "all".to_owned(), jobs.to_vec())];
    for (number, name) in BUCKETS.iter().enumerate() {
        let of = jobs.iter().copied().filter(|job| bucket(job.num_gpus) == number);
        groups.push(("GPUs", (*name).to_owned(), of.collect()));
    }
    let mut tenants: BTreeMap<u16, Vec<&JobOutcome>> = BTreeMap::new();
    for job in jobs {
        tenants.entry(job.tenant).or_default().push(job);
    }
    let mut tenants: Vec<_> = tenants.into_iter().collect();
    tenants.sort_by_key(|(_, jobs)| std::cmp::Reverse(jobs.len()));
    let name = |tenant: u16| workload.cluster.tenants[usize::from(tenant)].name.clone();
    let tenants = tenants.into_iter().take(NAMES_MAX);
    groups.extend(tenants.map(|(tenant, jobs)| ("tenant", name(tenant), jobs)));
    let found = groups.into_iter().filter(|(_, _, jobs)| !jobs.is_empty());
    found
        .map(|(by, name, jobs)| Row {
            by: by.to_owned(),
            name,
            num_jobs: jobs.len() as u64,
            figures: figures(&jobs, span, by == "all"),
        })
        .collect()
}

fn figures(jobs: &[&JobOutcome], span: Span, is_all: bool) -> BTreeMap<String, Stated> {
    let parts: Vec<usize> = jobs.iter().map(|job| span.part_of(job)).collect();
    let num_parts = parts.iter().max().map_or(0, |last| last + 1);
    let stated = |of: &dyn Fn(&[u32]) -> Option<f64>| {
        over_parts(num_parts, of).map(|(value, low, high)| Stated { value, low, high })
    };
    let values = |of: &dyn Fn(&JobOutcome) -> f64| {
        let values = jobs.iter().zip(&parts).map(|(job, part)| (of(job), *part));
        values.collect::<Vec<(f64, usize)>>()
    };
    let slowdowns = values(&JobOutcome::slowdown);
    let means = |values: &[(f64, usize)]| {
        let sums = sums(values, num_parts);
        stated(&|counts| mean(&sums, counts))
    };
    let p99 = |mut values: Vec<(f64, usize)>| {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        stated(&|counts| nearest_rank(&values, counts))
    };
    let (waits, jcts) = (values(&wait_s), values(&JobOutcome::jct_s));
    let mut found = vec![
        ("wait_s", means(&waits)),
        ("jct_s", means(&jcts)),
        ("slowdown", means(&slowdowns)),
        ("wait_s_p99", p99(waits)),
        ("jct_s_p99", p99(jcts)),
    ];
    if is_all {
        let mut of_tenants: BTreeMap<u16, Vec<(f64, usize)>> = BTreeMap::new();
        for (job, value) in jobs.iter().zip(slowdowns) {
            of_tenants.entry(job.tenant).or_default().push(value);
        }
        let of_tenants: Vec<_> = of_tenants
            .values()
            .map(|values| sums(values, num_parts))
            .collect();
        found.push(("fairness", stated(&|counts| jain(&of_tenants, counts))));
    }
    let found = found.into_iter();
    found
        .filter_map(|(key, of)| Some((key.to_owned(), of?)))
        .collect()
}

/// Sum and number of the values of each part.
fn sums(values: &[(f64, usize)], num_parts: usize) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); num_parts];
    for (value, part) in values {
        sums[*part].0 += value;
        sums[*part].1 += 1.0;
    }
    sums
}

/// The mean of parts that count so often.
fn mean(sums: &[(f64, f64)], counts: &[u32]) -> Option<f64> {
    let add = |total: (f64, f64), (sum, count): (&(f64, f64), &u32)| {
        let count = f64::from(*count);
        (total.0 + count * sum.0, total.1 + count * sum.1)
    };
    let (sum, num) = sums.iter().zip(counts).fold((0.0, 0.0), add);
    (num > 0.0).then(|| sum / num)
}

/// The smallest value that 99 of 100 are not above, as in `pleach_env::Metrics`.
fn nearest_rank(sorted: &[(f64, usize)], counts: &[u32]) -> Option<f64> {
    let num: u64 = sorted.iter().map(|(_, part)| u64::from(counts[*part])).sum();
    let mut left = (num * 99).div_ceil(100);
    sorted.iter().find_map(|(value, part)| {
        left = left.saturating_sub(u64::from(counts[*part]));
        (num > 0 && left == 0).then_some(*value)
    })
}

/// Jain's index of the accounts' means.
fn jain(of_tenants: &[Vec<(f64, f64)>], counts: &[u32]) -> Option<f64> {
    let means: Vec<f64> = of_tenants.iter().filter_map(|sums| mean(sums, counts)).collect();
    let (sum, squares) = means.iter().fold((0.0, 0.0), |(sum, squares), mean| {
        (sum + mean, squares + mean * mean)
    });
    (squares > 0.0).then(|| sum * sum / (means.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use pleach_env::Metrics;

    use super::*;
    use crate::evaluate::sim_config::SchedulingConfig;
    use crate::evaluate::workload_source::WorkloadSource;

    #[test]
    fn the_figures_of_a_whole_list_are_those_of_the_metrics() {
        let source = WorkloadSource {
            num_jobs: Some(300),
            ..WorkloadSource::of("helios-like")
        };
        let (workload, _) = source.workload("helios-like", pleach_env::Seed(3)).unwrap();
        let sim = SchedulingConfig::default().sim(&source.workload);
        let policy = crate::door::DOOR.open_one("fifo").unwrap();
        let jobs = crate::twin::play(&workload, &sim, &policy).unwrap();
        let span = Span::since(&workload, 0.0);
        let found = rows(&jobs.iter().collect::<Vec<_>>(), &workload, span);
        let all = &found[0].figures;
        let metrics = Metrics::of(&jobs, 1);
        for (key, wanted) in [
            ("wait_s", metrics.avg_wait_s),
            ("wait_s_p99", metrics.p99_wait_s),
            ("jct_s", metrics.avg_jct_s),
            ("jct_s_p99", metrics.p99_jct_s),
            ("slowdown", metrics.avg_slowdown),
            ("fairness", metrics.fairness),
        ] {
            let Stated { value, low, high } = all[key];
            assert!(
                (value - wanted).abs() <= 1e-9 * wanted.abs(),
                "{key}: {value} {wanted}"
            );
            assert!(
                low < high && low <= value && value <= high,
                "{key}: {value} [{low}, {high}]"
            );
        }
        // Each job is in one class of size, and the accounts have no fairness of their own.
        let of = |by: &str| {
            found
                .iter()
                .filter(|row| row.by == by)
                .map(|row| row.num_jobs)
                .sum::<u64>()
        };
        assert_eq!((of("all"), of("GPUs")), (300, 300));
        assert!(found[1..].iter().all(|row| !row.figures.contains_key("fairness")));
    }
}
