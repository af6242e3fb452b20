//! Random choices among everything that candidates can be: sizes of elastic jobs, shares of CPU and memory, GPUs held back on
//! faster types, places beside others, jobs stopped. The cluster is whole at every decision, every job ends, and a second run
//! is the same.

use crate::scenario;
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_scheduler::candidate::CandidateKind;
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::{ActionKind, ActionSet, PolicyError};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;

/// How often each of the newer choices was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Taken {
    half: u32,
    double: u32,
    cores: u32,
    waits: u32,
}

/// Chooses at random and looks at the cluster every time.
struct Random {
    rng: ChaCha8Rng,
    taken: Taken,
}

impl Random {
    fn new(seed: u64) -> Random {
        Random {
            rng: Seed(seed).stream("actions", 0),
            taken: Taken::default(),
        }
    }
}

impl Policy for Random {
    fn name(&self) -> &str {
        "random"
    }

    fn needs(&self) -> Needs {
        Needs {
            actions: ActionKind::ALL.into_iter().collect(),
            ..Needs::full()
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        point.cluster.check();
        assert!(point.observation.candidates.iter().all(|value| value.is_finite()));
        let choice = loop {
            let choice = self.rng.random_range(0..scores.len());
            if point.observation.mask[choice] {
                break choice;
            }
        };
        scores[choice] = 1.0;
        let (row, worth) = (
            point.candidates.get(choice).unwrap(),
            point.candidates.opportunity_cost(choice),
        );
        self.taken.half += u32::from(worth.size_ratio < 1.0);
        self.taken.double += u32::from(worth.size_ratio > 1.0);
        self.taken.cores += u32::from(row.granted.is_some());
        let fits = |job| point.cluster.fitting_types(point.cluster.demand(job)) != 0;
        self.taken.waits += u32::from(row.kind == CandidateKind::Reserve && row.job.is_some_and(fits));
        Ok(())
    }
}

/// Runs twice; what was taken.
fn check(workload: &Workload, config: &SimConfig, seed: u64) -> Taken {
    let mut policy = Random::new(seed);
    let result = simulate(workload, config, &mut policy).unwrap();
    assert_eq!(result.jobs.len(), workload.jobs.len(), "a job was lost");
    for (outcome, job) in result.jobs.iter().zip(&workload.jobs) {
        let submit_s = job.submit.as_secs_f64();
        assert!(outcome.first_start_s >= submit_s - 1e-6 && outcome.finish_s >= outcome.first_start_s);
    }
    let mut again = Random::new(seed);
    assert_eq!(simulate(workload, config, &mut again).unwrap(), result);
    assert_eq!(again.taken, policy.taken);
    policy.taken
}

#[test]
fn every_choice_keeps_the_cluster_whole_on_every_kind_of_workload_and_is_met_on_some() {
    let mut config = SimConfig::default();
    let mut all = Taken::default();
    for (number, name) in [
        "gavel-multi",
        "synergy-multi",
        "pollux",
        "sia-philly",
        "openb-like",
        "pai-share",
        "helios-like",
    ]
    .into_iter()
    .enumerate()
    {
        let preset = GeneratorConfig::preset(name).unwrap().with(100, 2.0);
        let workload = generate(&preset, Seed(11)).unwrap();
        for granted in [ActionSet::DEFAULT, ActionSet::GRANTED] {
            config.capabilities.granted = granted;
            config.capabilities.sharing = if number % 2 == 0 {
                Sharing::Mps
            } else {
                Sharing::Off
            };
            let taken = check(&workload, &config, number as u64);
            all.half += taken.half;
            all.double += taken.double;
            all.cores += taken.cores;
            all.waits += taken.waits;
        }
    }
    let least = all.half.min(all.double).min(all.cores).min(all.waits);
    assert!(least > 10, "{all:?} says little");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_choice_keeps_every_invariant_on_random_clusters_and_jobs(
        workload in scenario::workload(24),
        config in scenario::config(),
        seed in any::<u64>(),
    ) {
        check(&workload, &config, seed);
    }
}
