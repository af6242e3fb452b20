//! The rows at which a search places thresholds: candidates as they come while hand rules schedule.

use pleach_dealing::policy_planner;
use pleach_distill::search::{Draft, Rows};
use pleach_distill::{Dataset, Recording};
use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate_planner};
use pleach_scheduler::tree::TreePolicy;
use pleach_scheduler::{FeatureSchema, PolicyPlanner};

use crate::error::Error;
use crate::judge::{Kind, env_of};

/// Candidates by which thresholds move. *Assumed*.
const ROWS_MAX: usize = 6_000;
/// Episodes of each part on which candidates are recorded.
const RECORDED: usize = 2;

/// Candidates as they come while hand rules schedule, the first and the last of them in turn.
pub(super) fn recorded(
    env: &EnvConfig,
    kinds: &[Kind],
    seed: u64,
    (rules, deals): (&[(String, Draft)], bool),
) -> Result<Rows, Error> {
    let rows_seed = Seed(seed).child("search/rows", 0);
    let mut dataset = Dataset::of(FeatureSchema::current(), *env.view()?, rows_seed, 4 * ROWS_MAX);
    let num_jobs = Source::open(env)?
        .workload(env, Seed(seed).child("search/rows", 0))?
        .jobs
        .len();
    let ends = [rules.first(), rules.last()];
    for (number, kind) in kinds.iter().enumerate() {
        let env = env_of(env, *kind, num_jobs);
        let source = Source::open(&env)?;
        for episode in 0..RECORDED {
            let Some((name, rule)) = ends[episode % 2] else {
                continue;
            };
            let tree = rule.tree(&rule.plain_meta(name), &Rows::default());
            let mut policy = TreePolicy::new(tree.map_err(|error| Error::Failed(error.to_string()))?);
            let index = (number * RECORDED + episode) as u64;
            let draw = Seed(seed).child("search/rows", 1 + index);
            let rng = draw.stream("search.rows", 0);
            let recording = Recording::of_teacher(&mut policy, &mut dataset, rng);
            let sim = SimConfig {
                seed: draw.0,
                ..env.sim.clone()
            };
            let workload = source.workload(&env, draw)?;
            if deals {
                simulate_planner(&workload, &sim, &mut policy_planner(name, recording)?)?;
            } else {
                simulate_planner(&workload, &sim, &mut PolicyPlanner::new(recording))?;
            }
        }
    }
    Ok(Rows::of(&dataset, ROWS_MAX))
}
