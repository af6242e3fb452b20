//! Gavel's workloads: 26 measured job types, run times from Gavel's law, Poisson arrivals, three GPU types.
//!
//! # Source
//! Narayanan et al., OSDI 2020, and its released simulator (MIT): run time on V100 60 x 10^U(1.5, 3) s with probability
//! 0.8, else 60 x 10^U(3, 4) s (mean 16.8 h); gangs of 1, 2, 4, 8 with probability 0.70, 0.10, 0.15, 0.05; job types
//! equally likely among those that can run so; 36 GPUs of each type. Nodes of four GPUs, one rack per type, and
//! time limits are *assumed*.

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::Resources;
use pleach_scheduler::portable_math::{log10, pow};
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use rand::Rng;

use super::poisson::set_arrivals;
use super::site::tenants;
use super::{limits, pick, unit};
use crate::Error;
use crate::gavel_speeds::{classes, classes_of_size};
use crate::import::gavel_cluster;
use crate::seed::Seed;
use crate::{JobSpec, NUM_JOBS_MAX, Outcome, RUN_TIME_S_MAX, Workload, config};

settings! {
    /// Parameters of `gavel-multi` and `gavel-single`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GavelConfig {
        /// Jobs to draw, 1 to 10,000,000.
        pub num_jobs: usize = 1000, in 1..=NUM_JOBS_MAX;
        /// Nodes of each of the three GPU types, 1 to 100,000.
        pub nodes_per_type: u32 = 9, in 1..=100_000;
        /// GPUs in each node, 1 to 64.
        pub gpus_per_node: u32 = 4, in 1..=64;
        /// Nodes in each rack, 1 or more.
        pub nodes_per_rack: u32 = 9, in 1..;
        /// Work over capacity between the first and the last arrival, 0.001 to 100; each GPU counts at the mean speed of
        /// the jobs on its type.
        pub load: f64 = 0.8, in 0.001..=100.0;
        /// Arrival rate, as in Gavel's own experiments; overrides the load.
        pub jobs_per_hour: Option<f64> = None, in 1e-3..=1e6;
        /// Tenants with equal quotas, 1 to 100.
        pub num_tenants: u32 = 1, in 1..=100;
        /// Longest run time, s, at least 2,000: the law is cut there, without a pile-up. The default keeps all of it.
        pub run_time_s_max: f64 = 600_000.0, in 2000.0..=RUN_TIME_S_MAX;
        /// Whether jobs carry a time limit.
        pub user_limits: bool = true;
    }
}

/// Gang sizes and their probabilities.
pub(super) const MULTI: &[(u32, f64)] = &[(1, 0.70), (2, 0.10), (4, 0.15), (8, 0.05)];
pub(super) const SINGLE: &[(u32, f64)] = &[(1, 1.0)];

/// Powers of ten of minutes between which run times are uniform in the exponent, and the probability of each part.
const LAW: [(f64, f64, f64); 2] = [(1.5, 3.0, 0.8), (3.0, 4.0, 0.2)];

impl GavelConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.check_at("generator", "see docs/workloads.md")
    }
}

pub(super) fn generate(
    parameters: &GavelConfig,
    gangs: &[(u32, f64)],
    seed: Seed,
) -> Result<Workload, Error> {
    let mut cluster = gavel_cluster(
        parameters.nodes_per_type,
        parameters.gpus_per_node,
        parameters.nodes_per_rack,
    );
    let num_gpus = parameters.nodes_per_type * parameters.gpus_per_node;
    let equal = vec![1.0; parameters.num_tenants as usize];
    cluster.tenants = tenants(&equal, num_gpus.saturating_mul(3));
    let all = classes(&cluster.gpu_types)
        .map_err(|name| config("gpu_types", name, "K80, P100, V100", "a defect"))?;
    // Gangs above one type's GPUs are drawn again.
    let gangs: Vec<(u32, f64)> = gangs
        .iter()
        .copied()
        .filter(|(gang, _)| *gang <= num_gpus)
        .collect();
    let gang_weights: Vec<f64> = gangs.iter().map(|(_, weight)| *weight).collect();
    let by_gang: Vec<Vec<u16>> = gangs.iter().map(|(gang, _)| classes_of_size(*gang)).collect();
    let mut rng = seed.stream("jobs", 0);
    let jobs = (0..parameters.num_jobs).map(|position| {
        let index = pick(&gang_weights, &mut rng);
        let run_time_s = draw_run_time_s(parameters.run_time_s_max, &mut rng);
        let choices = &by_gang[index];
        let class = choices[(unit(&mut rng) * choices.len() as f64) as usize];
        let factor = limits::draw_factor(&mut rng);
        let tenant = (unit(&mut rng) * f64::from(parameters.num_tenants)) as u16;
        JobSpec {
            id: position.to_string(),
            submit: Time::ZERO,
            num_gpus: gangs[index].0,
            run_time_s,
            estimate_s: parameters
                .user_limits
                .then(|| limits::limit_s(run_time_s, factor)),
            tenant,
            class,
            user: None,
            outcome: Outcome::Completed,
            resources: Resources::WHOLE_GPU,
            observed: None,
        }
    });
    let name = if gangs.len() > 1 {
        "gavel-multi"
    } else {
        "gavel-single"
    };
    let mut workload = Workload {
        name: name.into(),
        jobs: jobs.collect(),
        classes: all,
        cluster,
    };
    set_arrivals(&mut workload, parameters.jobs_per_hour, parameters.load, seed)?;
    Ok(workload)
}

/// Run time on the reference type by Gavel's law, cut at `longest_s`, s.
pub(super) fn draw_run_time_s(longest_s: f64, rng: &mut impl Rng) -> f64 {
    let most = log10(longest_s / 60.0);
    let length = |(from, to, _): &(f64, f64, f64)| (to.min(most) - from).max(0.0);
    let weights = LAW.map(|part| part.2 * length(&part) / (part.1 - part.0));
    let part = LAW[pick(&weights, rng)];
    60.0 * pow(10.0, part.0 + unit(rng) * length(&part))
}

#[cfg(test)]
mod tests {
    use super::super::{GeneratorConfig, Paper, generate};
    use super::*;

    fn draw(name: &str, change: impl FnOnce(&mut GavelConfig)) -> Workload {
        let mut config = GeneratorConfig::preset(name).unwrap();
        let GeneratorConfig::Paper(Paper::GavelMulti(inner) | Paper::GavelSingle(inner)) = &mut config else {
            panic!("{name}");
        };
        inner.num_jobs = 40_000;
        change(inner);
        generate(&config, Seed(11)).unwrap()
    }

    #[test]
    fn run_times_follow_gavels_law() {
        let workload = draw("gavel-single", |_| {});
        let mut hours: Vec<f64> = workload.jobs.iter().map(|job| job.run_time_s / 3600.0).collect();
        let mean = hours.iter().sum::<f64>() / hours.len() as f64;
        // Published mean 16.77 h; the median is 60 x 10^(1.5 + 1.5 x 0.5 / 0.8) s = 4.56 h.
        assert!((mean / 16.77 - 1.0).abs() < 0.03, "{mean}");
        hours.sort_by(f64::total_cmp);
        assert!((hours[20_000] / 4.56 - 1.0).abs() < 0.04, "{}", hours[20_000]);
        assert!(hours[0] >= 0.52 && hours[39_999] <= 166.7);
        assert!(workload.jobs.iter().all(|job| job.num_gpus == 1));
    }

    #[test]
    fn the_mix_of_gangs_and_job_types_is_the_published_one() {
        let workload = draw("gavel-multi", |_| {});
        for (gang, share) in MULTI {
            let jobs = workload.jobs.iter().filter(|job| job.num_gpus == *gang).count();
            assert!((jobs as f64 / 40_000.0 - share).abs() < 0.01, "{gang} {jobs}");
        }
        let singles = workload.jobs.iter().filter(|job| job.num_gpus == 1).count() as f64;
        for class in classes_of_size(1) {
            let jobs = workload.jobs.iter().filter(|job| job.class == class).count() as f64;
            assert!((jobs / singles * 26.0 - 1.0).abs() < 0.15, "{class} {jobs}");
        }
    }

    #[test]
    fn a_given_rate_gives_poisson_arrivals() {
        let workload = draw("gavel-multi", |config| config.jobs_per_hour = Some(3.0));
        let gaps: Vec<f64> = workload
            .jobs
            .windows(2)
            .map(|pair| (pair[1].submit - pair[0].submit).as_secs_f64())
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1200.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn the_law_can_be_cut_without_a_pile_up() {
        let workload = draw("gavel-multi", |config| config.run_time_s_max = 36_000.0);
        let longest = workload.jobs.iter().map(|job| job.run_time_s).fold(0.0, f64::max);
        assert!(longest <= 36_000.0 && longest > 35_000.0);
        let at_end = workload
            .jobs
            .iter()
            .filter(|job| job.run_time_s > 35_990.0)
            .count();
        assert!(at_end < 40, "{at_end}");
    }
}
