//! The matches of a tournament, and how long the planning took.

use std::time::Duration;

use pleach_env::bound::LowerBounds;
use pleach_env::simulate::{SimConfig, simulate_planner};
use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::error::PolicyError;
use pleach_scheduler::ids::Time;
use pleach_scheduler::planner::Planner;
use rayon::prelude::*;

use super::Clock;
use crate::contest::{Bout, record};
use crate::contestant::Contestant;
use crate::error::Error;
use crate::results::PolicyRun;
use crate::scenario::env_error;

/// One scheduler on one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// What came of it.
    pub run: PolicyRun,
    /// Plans with jobs to plan for.
    pub num_plans: u64,
    /// Time of all of them on the wall clock.
    pub planning: Duration,
    /// The longest.
    pub planning_max: Duration,
}

impl Match {
    /// Mean time of a plan, ms.
    #[must_use]
    pub fn plan_ms(&self) -> f64 {
        self.planning.as_secs_f64() * 1e3 / (self.num_plans.max(1)) as f64
    }
}

/// A planner with a stop watch.
struct Timed<'a> {
    inner: Box<dyn Planner>,
    clock: Clock<'a>,
    num_plans: u64,
    planning: Duration,
    planning_max: Duration,
}

impl Planner for Timed<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if cluster.num_pending() + cluster.num_running() == 0 {
            return self.inner.plan(cluster);
        }
        let before = (self.clock)();
        self.inner.plan(cluster)?;
        let took = (self.clock)().saturating_sub(before);
        self.num_plans += 1;
        self.planning += took;
        self.planning_max = self.planning_max.max(took);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.inner.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.inner.rests()
    }
}

/// Plays every contestant on every bout, each with what it asks for. Results are in the order bout by bout, contestant by
/// contestant, whatever the number of threads.
///
/// # Errors
/// The first match, in that order, that failed.
pub fn play(
    bouts: &[Bout],
    field: &[Contestant],
    sim: &SimConfig,
    clock: Clock<'_>,
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Match>, Error> {
    // One bound for all: with everything that any of them may use.
    let mut most = sim.capabilities;
    for one in field {
        most = one.asks()?.added_to(most);
    }
    let bounds: Vec<LowerBounds> = bouts
        .par_iter()
        .map(|bout| LowerBounds::of(&bout.workload, &most))
        .collect();
    let pairs: Vec<(&Bout, LowerBounds, &Contestant)> = bouts
        .iter()
        .zip(bounds)
        .flat_map(|(bout, bounds)| field.iter().map(move |one| (bout, bounds, one)))
        .collect();
    let matches: Vec<Result<Match, Error>> = pairs
        .par_iter()
        .map(|(bout, bounds, one)| {
            let played = one_match(bout, one, sim, clock).map(|played| Match {
                run: played.run.against(*bounds),
                ..played
            });
            progress();
            played
        })
        .collect();
    matches.into_iter().collect()
}

fn one_match(bout: &Bout, one: &Contestant, sim: &SimConfig, clock: Clock<'_>) -> Result<Match, Error> {
    let capabilities: Capabilities = one.asks()?.added_to(sim.capabilities);
    let config = SimConfig {
        seed: bout.seed,
        capabilities,
        ..sim.clone()
    };
    let mut planner = Timed {
        inner: one.make_planner()?,
        clock,
        num_plans: 0,
        planning: Duration::ZERO,
        planning_max: Duration::ZERO,
    };
    let result = simulate_planner(&bout.workload, &config, &mut planner).map_err(env_error)?;
    Ok(Match {
        run: record(one.name(), bout, result),
        num_plans: planner.num_plans,
        planning: planner.planning,
        planning_max: planner.planning_max,
    })
}

#[cfg(test)]
mod tests {
    use pleach_env::seed::Seed;
    use pleach_env::workload::generate::{GeneratorConfig, PhillyLikeConfig, generate};

    use super::*;
    use crate::tournament::{Condition, field, standings};

    #[test]
    fn everyone_meets_the_same_jobs_with_what_it_asks_for_and_the_best_stands_first() {
        let generator = GeneratorConfig::PhillyLike(PhillyLikeConfig {
            num_jobs: 80,
            num_nodes: 2,
            gpus_per_node: 8,
            load: 3.0,
            run_time_s_max: 86_400.0,
            ..PhillyLikeConfig::default()
        });
        let bouts: Vec<Bout> = (1..3)
            .map(|seed| Bout {
                workload: generate(&generator, Seed(seed)).unwrap(),
                seed,
            })
            .collect();
        let names = ["fifo", "srtf", "tiresias", "sjf-share"].map(str::to_string);
        let field = field(&names).unwrap();
        let sim = Condition::Ideal.sim();
        // A clock that goes on by a millisecond at every look: each plan takes one.
        let looks = std::sync::atomic::AtomicU64::new(0);
        let clock = || Duration::from_millis(looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let matches = play(&bouts, &field, &sim, &clock, &|| {}).unwrap();
        assert_eq!(matches.len(), 8);
        let stops = |name: &str| -> f64 {
            let own = matches.iter().filter(|played| played.run.policy == name);
            own.map(|played| played.run.metrics["preemptions"]).sum()
        };
        assert_eq!(stops("fifo"), 0.0);
        assert!(stops("srtf") > 0.0 && stops("tiresias") > 0.0, "they may preempt");
        let standings = standings(&matches).unwrap();
        let jcts: Vec<f64> = standings.iter().map(|row| row.metrics["avg_jct_s"]).collect();
        assert!(jcts.is_sorted(), "{jcts:?}");
        assert_eq!(standings[0].ratio_to_best.unwrap().mean, 1.0);
        assert!(standings.iter().all(|row| row.metrics["avg_jct_gap"] >= 0.0));
        assert!(standings.iter().all(|row| row.plan_ms >= 1.0));
    }
}
