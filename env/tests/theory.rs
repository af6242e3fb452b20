//! The simulator against what is known exactly: waiting times of queues that have a formula, identities that hold for every
//! run, and orders that are proven optimal.
//!
//! Statistical tests run a fixed set of seeds, so they are deterministic. Each asserts two things: the formula lies in the
//! 99.9 % interval of the seeds' means, and that interval is narrow enough to exclude a wrong model (the width is part of
//! the claim).

#![allow(clippy::disallowed_methods)]

use std::collections::VecDeque;

use crate::brute_force::{self, least_sum_jct_s, least_sum_jct_without_preemption_s};
use pleach_dealing::starts::tightest;
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{JobOutcome, Seed, SimConfig, SimResult, simulate, simulate_planner};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::{ActionKind, JobId, Planner, PolicyError, Time, heuristics};
use proptest::prelude::*;
use rand::Rng;

/// Mean run time, s: long against the microsecond of the clock and the second below which a rest counts as a second.
const MEAN_S: f64 = 1000.0;

/// (submission s, gang, run time s), in any order.
fn workload(num_gpus: u32, rows: &[(f64, u32, f64)]) -> Workload {
    let mut rows = rows.to_vec();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let jobs = rows
        .iter()
        .enumerate()
        .map(|(id, (submit_s, gang, run_s))| JobSpec {
            id: id.to_string(),
            submit: Time::from_secs_f64(*submit_s),
            num_gpus: *gang,
            run_time_s: *run_s,
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            outcome: Outcome::Completed,
            resources: Resources::WHOLE_GPU,
            observed: None,
        });
    Workload {
        name: "rows".into(),
        cluster: ClusterSpec::uniform(1, num_gpus, 1),
        classes: vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        }],
        jobs: jobs.collect(),
    }
}

/// Preemption is free, so that only the order counts.
fn run(policy: &str, workload: &Workload, preemption: bool) -> SimResult {
    let mut config = SimConfig::default();
    config.capabilities.grant(ActionKind::Preempt, preemption);
    config.capabilities.restart_cost_s = 0.0;
    if policy == IN_TURN {
        return simulate_planner(workload, &config, &mut InTurn::default()).unwrap();
    }
    let mut policy = heuristics::by_name(policy).unwrap();
    simulate(workload, &config, &mut policy).unwrap()
}

// ---- Queues with a formula ----

#[derive(Clone, Copy, Debug)]
enum Service {
    Fixed,
    Exponential,
    /// Two exponentials with balanced means: short ones often, long ones seldom.
    HyperExponential,
}

impl Service {
    /// Squared coefficient of variation.
    fn scv(self) -> f64 {
        match self {
            Service::Fixed => 0.0,
            Service::Exponential => 1.0,
            Service::HyperExponential => 4.0,
        }
    }

    fn draw_s(self, rng: &mut impl Rng) -> f64 {
        let exponential = |rng: &mut _, mean_s: f64| -mean_s * (1.0 - uniform(rng)).ln();
        match self {
            Service::Fixed => MEAN_S,
            Service::Exponential => exponential(rng, MEAN_S),
            Service::HyperExponential => {
                let share = (1.0 + ((self.scv() - 1.0) / (self.scv() + 1.0)).sqrt()) / 2.0;
                let share = if uniform(rng) < share { share } else { 1.0 - share };
                exponential(rng, MEAN_S / (2.0 * share))
            }
        }
    }
}

/// 0 to 1, 1 excluded.
fn uniform(rng: &mut impl Rng) -> f64 {
    rng.random_range(0.0..1.0)
}

/// Poisson arrivals of gangs of `gang` that offer `load` to `num_gpus`.
fn queue(seed: u64, num_jobs: usize, num_gpus: u32, gang: u32, load: f64, service: Service) -> Workload {
    let seed = Seed(seed).child("theory", 0);
    let (mut arrivals, mut services) = (seed.stream("arrivals", 0), seed.stream("services", 0));
    let between_s = MEAN_S * f64::from(gang) / (f64::from(num_gpus) * load);
    let mut now_s = 0.0;
    let rows = (0..num_jobs).map(|_| {
        now_s -= between_s * (1.0 - uniform(&mut arrivals)).ln();
        (now_s, gang, service.draw_s(&mut services).max(1e-6))
    });
    workload(num_gpus, &rows.collect::<Vec<_>>())
}

/// A planner that gives each job the GPU for a round, one after the other.
const IN_TURN: &str = "in-turn";

#[derive(Default)]
struct InTurn {
    turn: VecDeque<JobId>,
    until: Time,
}

impl Planner for InTurn {
    fn name(&self) -> &str {
        IN_TURN
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let waiting: Vec<JobId> = cluster.pending().collect();
        self.turn.retain(|id| waiting.contains(id));
        self.turn.extend(
            waiting
                .iter()
                .filter(|id| !self.turn.contains(id))
                .collect::<Vec<_>>(),
        );
        let running = cluster.running().next();
        if let Some(id) = running {
            if cluster.now() < self.until || self.turn.is_empty() {
                return Ok(());
            }
            cluster.preempt(id);
            self.turn.push_back(id);
        }
        if let Some(next) = self.turn.pop_front() {
            let place = tightest(cluster, next, &mut Vec::new()).unwrap();
            cluster.start(next, place);
            self.until = cluster.now() + Time::from_secs_f64(MEAN_S / 50.0);
        }
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        (cluster.num_running() > 0 && cluster.num_pending() > 0).then_some(self.until)
    }
}

const NUM_SEEDS: u64 = 12;
/// Student's t with 11 degrees of freedom, two-sided 99.9 %.
const T_999: f64 = 4.437;

/// Asserts that the seeds' means of `figure` are around `wanted_s`, and known to within `width` of it.
fn assert_mean(
    name: &str,
    wanted_s: f64,
    width: f64,
    policy: (&str, bool),
    draw: impl Fn(u64) -> Workload,
    figure: fn(&SimResult) -> f64,
) {
    let means: Vec<f64> = (0..NUM_SEEDS)
        .map(|seed| figure(&run(policy.0, &draw(seed), policy.1)))
        .collect();
    let num = NUM_SEEDS as f64;
    let mean = means.iter().sum::<f64>() / num;
    let variance = means.iter().map(|each| (each - mean).powi(2)).sum::<f64>() / (num - 1.0);
    let half = T_999 * (variance / num).sqrt();
    assert!(
        half < width * wanted_s,
        "{name}: known to {half:.1} s only, of {wanted_s:.1} s"
    );
    assert!(
        (mean - wanted_s).abs() < half,
        "{name}: {mean:.1} s +- {half:.1} s, and theory says {wanted_s:.1} s"
    );
}

fn avg_wait_s(result: &SimResult) -> f64 {
    result.metrics.avg_wait_s
}

fn avg_jct_s(result: &SimResult) -> f64 {
    result.metrics.avg_jct_s
}

#[test]
fn one_gpu_with_fifo_waits_as_pollaczek_and_khinchine_say() {
    // Mean wait rho / (1 - rho) x (1 + scv) / 2 x E[S], whatever the distribution.
    let load: f64 = 0.5;
    for (service, width) in [
        (Service::Fixed, 0.03),
        (Service::Exponential, 0.04),
        (Service::HyperExponential, 0.07),
    ] {
        let wanted_s = load / (1.0 - load) * (1.0 + service.scv()) / 2.0 * MEAN_S;
        let draw = |seed| queue(seed, 40_000, 1, 1, load, service);
        assert_mean(
            &format!("{service:?}"),
            wanted_s,
            width,
            ("fifo", false),
            draw,
            avg_wait_s,
        );
    }
}

#[test]
fn one_gpu_in_turn_serves_as_processor_sharing_does() {
    // M/G/1-PS: mean time in the system E[S] / (1 - rho), whatever the distribution (Sakata, Noguchi and Oizumi 1971); a round is a
    // fiftieth of a run time. Under FIFO the three have 1500, 2000 and 3500 s.
    let load: f64 = 0.5;
    for (service, width) in [
        (Service::Fixed, 0.08),
        (Service::Exponential, 0.10),
        (Service::HyperExponential, 0.22),
    ] {
        let draw = |seed| queue(seed, 3000, 1, 1, load, service);
        let (name, wanted_s) = (format!("{service:?}, in turn"), MEAN_S / (1.0 - load));
        assert_mean(&name, wanted_s, width, (IN_TURN, true), draw, avg_jct_s);
    }
}

#[test]
fn gangs_of_the_whole_cluster_wait_as_on_one_gpu() {
    let load: f64 = 0.5;
    let draw = |seed| queue(seed, 40_000, 8, 8, load, Service::Exponential);
    let wanted_s = load / (1.0 - load) * MEAN_S;
    assert_mean(
        "gangs of 8 on 8",
        wanted_s,
        0.06,
        ("fifo", false),
        draw,
        avg_wait_s,
    );
}

/// Erlang's C: the chance that an arrival finds all `num_gpus` taken at an offered load of `erlangs`.
fn erlang_c(num_gpus: u32, erlangs: f64) -> f64 {
    let term = |num: u32| (1..=num).fold(1.0, |term, each| term * erlangs / f64::from(each));
    let all_taken = term(num_gpus) / (1.0 - erlangs / f64::from(num_gpus));
    all_taken / ((0..num_gpus).map(term).sum::<f64>() + all_taken)
}

#[test]
fn several_gpus_with_fifo_wait_as_erlang_says() {
    // On one GPU Erlang's C is the load; two GPUs at one erlang: (1/2 / (1/2)) / (1 + 1 + 1) = 1/3.
    assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-12 && (erlang_c(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    for (num_gpus, load) in [(2, 0.5), (4, 0.6)] {
        let servers = f64::from(num_gpus);
        let wanted_s = erlang_c(num_gpus, load * servers) * MEAN_S / (servers * (1.0 - load));
        let draw = |seed| queue(seed, 40_000, num_gpus, 1, load, Service::Exponential);
        assert_mean(
            &format!("M/M/{num_gpus}"),
            wanted_s,
            0.09,
            ("fifo", false),
            draw,
            avg_wait_s,
        );
    }
}

/// Mean over an exponential size of mean 1, by the trapezoid rule.
fn mean_over_sizes(of: impl Fn(f64) -> f64) -> f64 {
    let step = 1e-3;
    (0..40_000)
        .map(|at| f64::from(at) * step + step / 2.0)
        .map(|size| of(size) * (-size).exp() * step)
        .sum()
}

/// Load of the jobs up to a size, exponential of mean 1: load x integral of t exp(-t) to the size.
fn load_up_to(size: f64, load: f64) -> f64 {
    load * (1.0 - (-size).exp() * (1.0 + size))
}

#[test]
fn shortest_first_without_preemption_waits_as_phipps_says() {
    // E[W(x)] = load x E[S^2] / 2 / (1 - load up to x)^2, with E[S^2] = 2 (Phipps, Operations Research 1956).
    let load = 0.6;
    let wanted_s = MEAN_S * mean_over_sizes(|size| load / (1.0 - load_up_to(size, load)).powi(2));
    let draw = |seed| queue(seed, 40_000, 1, 1, load, Service::Exponential);
    assert_mean("sjf", wanted_s, 0.06, ("sjf", false), draw, avg_wait_s);
}

#[test]
fn shortest_remaining_first_responds_as_schrage_and_miller_say() {
    // E[T(x)] = load (integral of t^2 f to x + x^2 (1 - F(x))) / (2 (1 - load up to x)^2) + integral of dt / (1 - load up to
    // t) to x (Schrage and Miller, Operations Research 1966). The second integral is summed along.
    let load = 0.6;
    let (step, mut residence, mut wanted) = (1e-3, 0.0, 0.0);
    for at in 0..40_000 {
        let size = f64::from(at) * step + step / 2.0;
        residence += step / (1.0 - load_up_to(size, load));
        let left = (-size).exp();
        let second_moment = 2.0 - left * (size * size + 2.0 * size + 2.0) + size * size * left;
        let wait = load * second_moment / (2.0 * (1.0 - load_up_to(size, load)).powi(2));
        wanted += (wait + residence) * left * step;
    }
    let draw = |seed| queue(seed, 40_000, 1, 1, load, Service::Exponential);
    assert_mean("srtf", wanted * MEAN_S, 0.03, ("srtf", true), draw, avg_jct_s);
}

// ---- Identities of every run ----

#[test]
fn every_single_wait_obeys_the_recursion_of_lindley_and_of_kiefer_and_wolfowitz() {
    // First come, first served on k servers: each job goes to the server that is free first. To the microsecond.
    for (num_gpus, service) in [(1, Service::HyperExponential), (3, Service::Exponential)] {
        let workload = queue(7, 20_000, num_gpus, 1, 0.9, service);
        let found = run("fifo", &workload, false).jobs;
        let mut free_at = vec![Time::ZERO; num_gpus as usize];
        for (job, outcome) in workload.jobs.iter().zip(found) {
            let server = (0..free_at.len()).min_by_key(|server| free_at[*server]).unwrap();
            let start = job.submit.max(free_at[server]);
            free_at[server] = start + Time::from_secs_f64(job.run_time_s);
            assert_eq!(Time::from_secs_f64(outcome.first_start_s), start);
            assert_eq!(Time::from_secs_f64(outcome.finish_s), free_at[server]);
        }
    }
}

#[test]
fn whatever_the_order_one_gpu_is_busy_at_the_same_times() {
    // Kleinrock's conservation law: work that is never left waiting beside an idle server is done at the same times under
    // every order, so makespan and utilisation do not depend on it. Free preemption included.
    let workload = queue(3, 2_000, 1, 1, 0.8, Service::Exponential);
    let work_s = workload.columns().run_time_s.sum();
    let fifo = run("fifo", &workload, false).metrics;
    for name in heuristics::names() {
        let found = run(name, &workload, true).metrics;
        assert!(
            (found.makespan_s - fifo.makespan_s).abs() < 1e-2,
            "{name}: {found:?}"
        );
        // The utilisation law: busy time is the work that came.
        assert!(
            (found.utilisation * found.makespan_s - work_s).abs() < 1e-2,
            "{name}: {found:?}"
        );
        assert!(found.utilisation > 0.7, "{name}: {found:?}");
    }
}

// ---- Optimal orders ----

fn sum_jct_s(result: &SimResult) -> f64 {
    result.jobs.iter().map(JobOutcome::jct_s).sum()
}

fn of_one_gpu(rows: &[(u32, u32)]) -> Workload {
    let rows: Vec<(f64, u32, f64)> = rows
        .iter()
        .map(|(release, run)| (f64::from(*release), 1, f64::from(*run)))
        .collect();
    workload(1, &rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn on_one_gpu_srtf_is_the_best_of_all_preemptive_schedules(
        rows in proptest::collection::vec((0_u32..8, 1_u32..5), 1..=6),
    ) {
        let found_s = sum_jct_s(&run("srtf", &of_one_gpu(&rows), true));
        let all: Vec<brute_force::Row> = rows.iter().map(|(release, run)| (*release, 1, *run)).collect();
        prop_assert_eq!(found_s, least_sum_jct_s(&[(1, 1)], &all) as f64);
    }

    #[test]
    fn on_one_gpu_no_heuristic_beats_the_best_order_without_preemption(
        rows in proptest::collection::vec((0_u32..8, 1_u32..9), 1..=6),
    ) {
        let best_s = least_sum_jct_without_preemption_s(&rows) as f64;
        for name in heuristics::names() {
            prop_assert!(sum_jct_s(&run(name, &of_one_gpu(&rows), false)) >= best_s, "{name}");
        }
    }

    #[test]
    fn shortest_first_is_the_best_order_of_jobs_that_come_together(
        runs in proptest::collection::vec(1_u32..9, 1..=6),
    ) {
        let rows: Vec<(u32, u32)> = runs.iter().map(|run| (0, *run)).collect();
        let best_s = least_sum_jct_without_preemption_s(&rows) as f64;
        for name in ["sjf", "gpu-time", "sjf-reserve", "gpu-time-reserve"] {
            prop_assert_eq!(sum_jct_s(&run(name, &of_one_gpu(&rows), false)), best_s, "{}", name);
        }
    }

    #[test]
    fn shortest_first_is_optimal_on_several_gpus_even_against_preemption(
        runs in proptest::collection::vec(1_u32..5, 1..=6),
        num_gpus in 2_u32..4,
    ) {
        // P || sum C (Conway, Maxwell and Miller 1967), and preemption does not help (McNaughton, Management Science 1959).
        let rows: Vec<(f64, u32, f64)> = runs.iter().map(|run| (0.0, 1, f64::from(*run))).collect();
        let all: Vec<brute_force::Row> = runs.iter().map(|run| (0, 1, *run)).collect();
        let best_s = least_sum_jct_s(&[(num_gpus, 1)], &all) as f64;
        prop_assert_eq!(sum_jct_s(&run("sjf", &workload(num_gpus, &rows), false)), best_s);
    }
}
