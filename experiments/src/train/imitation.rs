//! A planner's plans as demonstrations: what it would start next, decision by decision, see [`pleach_env::expert`].
//!
//! Refused: a planner whose plans are shown in less than half of the decisions. What a network learned from the rest would
//! not be what the planner does.

use pleach_agents::Demonstrations;
use pleach_env::expert::ExpertPlanner;
use pleach_env::{Batch, Seed, VecEnv, VectorEnv as _};

use crate::door::DOOR;
use crate::error::Error;
use crate::train::settings::TrainSettings;

/// Lets a planner play as many steps in every environment as a heuristic would be asked about; a fresh one in each episode.
///
/// # Errors
/// A planner that fails, or whose plans are shown in less than half of the decisions.
pub(crate) fn of_planner(
    name: &str,
    envs: &mut VecEnv,
    settings: &TrainSettings,
    seed: Seed,
) -> Result<Demonstrations, Error> {
    let planner = DOOR.planner(name, serde_json::Value::Null)?;
    let mut teachers = (0..settings.num_envs)
        .map(|_| Ok(ExpertPlanner::new(planner.make_planner()?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let num_steps = settings
        .warm_start_steps
        .saturating_mul(1 + settings.dagger_rounds as usize);
    let horizon_s = settings.train.horizon_s;
    let num_candidates = envs.spaces().num_candidates;
    let mut failed = None;
    let both = |envs: &mut VecEnv, index: usize, batch: &Batch| {
        if batch.terminated[index] || batch.truncated[index] {
            match planner.make_planner() {
                Ok(fresh) => teachers[index] = ExpertPlanner::new(fresh),
                Err(error) => failed = Some(error),
            }
        }
        let taught = envs.expert_action(index, &mut teachers[index])?;
        // What is not shown is played by holding, where that is allowed.
        let mask = &batch.mask[index * num_candidates..(index + 1) * num_candidates];
        let first = mask.iter().position(|admissible| *admissible);
        Ok((taught, taught.or(first).unwrap_or(0)))
    };
    let shown = Demonstrations::correct(envs, seed, num_steps, horizon_s, both)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let num = num_steps * settings.num_envs;
    Error::refuse_if(
        2 * shown.len() < num,
        "warm_start",
        name,
        "a heuristic, or a planner of whole gangs that fits this environment",
        format_args!(
            "A candidate does what it plans in {} of {num} decisions; at least half are needed.",
            shown.len()
        ),
    )?;
    Ok(shown)
}
