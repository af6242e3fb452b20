//! What a training holds in memory, bounded before it begins: two numbers that are allowed can multiply to more than there is.

use pleach_agents::learner::{Plays, way};

use crate::error::Error;
use crate::train::settings::TrainSettings;

/// Decisions that are held at once, at most: about 30 GiB with ten candidates in each (200 bytes a candidate). *Assumed*: more than
/// any machine gains by, less than what a slip of the pen asks for.
const DECISIONS_MAX: usize = 1 << 24;

/// Whether what is cloned, and what PPO learns from at once, can be held in memory. Evolution strategies keep no decisions.
///
/// # Errors
/// [`Error::Problem`] with the numbers that are multiplied.
pub fn check(settings: &TrainSettings) -> Result<(), Error> {
    let (num_envs, num_steps) = (settings.num_envs, settings.train.num_steps);
    let imitates = settings.prior == "none" && settings.warm_start != "none";
    let num_rounds = (settings.dagger_rounds as usize).saturating_add(1);
    let num_shown = num_envs
        .saturating_mul(settings.warm_start_steps)
        .saturating_mul(num_rounds);
    if imitates && num_shown > DECISIONS_MAX {
        let steps = DECISIONS_MAX / num_envs / num_rounds;
        return Err(Error::config(
            "num_envs x warm_start_steps x (1 + dagger_rounds)",
            format!("{num_envs} x {} x {num_rounds}", settings.warm_start_steps),
            format!("at most {DECISIONS_MAX} decisions to clone, which are held in memory"),
            format!("Set warm_start_steps={steps} or less, or fewer num_envs."),
        ));
    }
    if way(settings.train.learner).plays() == Plays::Steps
        && num_envs.saturating_mul(num_steps) > DECISIONS_MAX
    {
        let steps = DECISIONS_MAX / num_envs;
        return Err(Error::config(
            "num_envs x train.num_steps",
            format!("{num_envs} x {num_steps}"),
            format!("at most {DECISIONS_MAX} decisions in a rollout, which is held in memory"),
            format!("Set train.num_steps={steps} or less, or fewer num_envs, and more train.num_updates."),
        ));
    }
    Ok(())
}
