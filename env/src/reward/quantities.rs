//! What a reward may be made of: sums over time that an episode keeps, one line each, and figures of the whole episode to divide by.

use std::fmt;

use crate::world::Integrals;
use pleach_workloads::Workload;

/// A unit as powers of jobs, GPUs and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unit(pub(super) [i8; 3]);

impl Unit {
    const NAMES: [&'static str; 3] = ["job", "GPU", "s"];

    /// The unit of a product; `sign` -1 of a quotient.
    pub(super) fn times(self, other: Unit, sign: i8) -> Unit {
        let add = |place: usize| self.0[place].saturating_add(other.0[place].saturating_mul(sign));
        Unit([add(0), add(1), add(2)])
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |sign: i8| -> Vec<String> {
            let powers = Unit::NAMES
                .iter()
                .zip(self.0)
                .filter(|(_, power)| power.signum() == sign);
            powers
                .map(|(name, power)| match power.abs() {
                    1 => (*name).to_string(),
                    more => format!("{name}^{more}"),
                })
                .collect()
        };
        let (above, below) = (part(1), part(-1));
        let above = if above.is_empty() {
            "1".to_string()
        } else {
            above.join(" ")
        };
        match below.is_empty() {
            true => f.write_str(&above),
            false => write!(f, "{above}/({})", below.join(" ")),
        }
    }
}

/// A sum over time that grows while the clock goes on.
pub(super) struct Sum {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) means: &'static str,
    pub(super) of: fn(&Integrals) -> f64,
}

/// A figure of a whole episode, known at its beginning.
pub(super) struct Total {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) means: &'static str,
    pub(super) of: fn(&Workload) -> f64,
}

/// A product of a sum and totals that has a name of its own.
pub(super) struct Term {
    pub(super) name: &'static str,
    pub(super) means: &'static str,
    pub(super) text: &'static str,
}

const fn unit(jobs: i8, gpus: i8, seconds: i8) -> Unit {
    Unit([jobs, gpus, seconds])
}

/// All sums. *One line each.*
pub(super) const SUMS: [Sum; 10] = [
    sum(
        "jobs_in_system_s",
        unit(1, 0, 1),
        "jobs that have come and not left; over an episode the sum of all JCTs",
        |of| of.jobs_s,
    ),
    sum("waiting_jobs_s", unit(1, 0, 1), "jobs without GPUs", |of| {
        of.waiting_s
    }),
    sum("running_jobs_s", unit(1, 0, 1), "jobs with GPUs", |of| {
        of.jobs_s - of.waiting_s
    }),
    sum(
        "excess_run_s",
        unit(1, 0, 1),
        "run times beyond those alone at the best speed, a whole run's when it starts",
        |of| of.excess_run_s,
    ),
    sum(
        "slowdowns",
        unit(1, 0, 0),
        "jobs in the system, each over its isolated run time (10 s at least); over an episode the sum of all slowdowns",
        |of| of.slowdown,
    ),
    sum("held_gpu_s", unit(0, 1, 1), "GPUs that are held", |of| {
        of.held_gpu_s
    }),
    sum("idle_gpu_s", unit(0, 1, 1), "GPUs that are free", |of| {
        of.idle_gpu_s
    }),
    sum("finished_jobs", unit(1, 0, 0), "jobs that have left", |of| {
        of.finished_jobs
    }),
    sum(
        "stopped_jobs",
        unit(1, 0, 0),
        "times that a running job was stopped",
        |of| of.stopped_jobs,
    ),
    sum("elapsed_s", unit(0, 0, 1), "time", |of| of.elapsed_s),
];

/// All totals. *One line each.*
pub(super) const TOTALS: [Total; 4] = [
    total(
        "total_run_s",
        unit(1, 0, 1),
        "isolated run times of all jobs",
        |list| list.jobs.iter().map(|job| job.run_time_s).sum(),
    ),
    total(
        "total_gpu_s",
        unit(0, 1, 1),
        "isolated run times of all jobs, times their GPUs",
        |list| {
            list.jobs
                .iter()
                .map(|job| job.run_time_s * f64::from(job.num_gpus))
                .sum()
        },
    ),
    total("num_jobs", unit(1, 0, 0), "jobs of the episode", |list| {
        list.jobs.len() as f64
    }),
    total("num_gpus", unit(0, 1, 0), "GPUs of the cluster", |list| {
        list.cluster.num_gpus() as f64
    }),
];

/// What the weights of the table form are of, in words (those of JCT and slowdown are of minus it), and `delay`. *One line each.*
pub(super) const TERMS: [Term; 4] = [
    Term {
        name: "jct",
        means: "the average JCT over the average isolated run time",
        text: "jobs_in_system_s / total_run_s",
    },
    Term {
        name: "delay",
        means: "`jct` less what no decision changes, a whole run's part when it starts",
        text: "(waiting_jobs_s + excess_run_s) / total_run_s",
    },
    Term {
        name: "slowdown",
        means: "the average slowdown",
        text: "slowdowns / num_jobs",
    },
    Term {
        name: "utilisation",
        means: "held GPU time over the isolated GPU time",
        text: "held_gpu_s / total_gpu_s",
    },
];

const fn sum(name: &'static str, unit: Unit, means: &'static str, of: fn(&Integrals) -> f64) -> Sum {
    Sum {
        name,
        unit,
        means,
        of,
    }
}

const fn total(name: &'static str, unit: Unit, means: &'static str, of: fn(&Workload) -> f64) -> Total {
    Total {
        name,
        unit,
        means,
        of,
    }
}

/// Every name, for refusals.
pub(super) fn names() -> Vec<&'static str> {
    let sums = SUMS.iter().map(|sum| sum.name);
    let totals = TOTALS.iter().map(|total| total.name);
    sums.chain(totals)
        .chain(TERMS.iter().map(|term| term.name))
        .collect()
}

/// A table in Markdown of all that a reward may be made of.
#[must_use]
pub fn markdown() -> String {
    let mut rows = vec![
        "| name | unit | what it is |".to_string(),
        "| --- | --- | --- |".to_string(),
    ];
    let row = |name: &str, unit: &str, means: &str| format!("| `{name}` | {unit} | {means} |");
    rows.extend(
        SUMS.iter()
            .map(|sum| row(sum.name, &sum.unit.to_string(), sum.means)),
    );
    rows.extend(
        TOTALS
            .iter()
            .map(|total| row(total.name, &total.unit.to_string(), total.means)),
    );
    let term = |term: &Term| row(term.name, "1", &format!("{}: `{}`", term.means, term.text));
    rows.extend(TERMS.iter().map(term));
    rows.join("\n") + "\n"
}
