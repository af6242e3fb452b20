//! The learner where none is named: exact credit by forks, unless something is asked for that only another one heeds.
//!
//! # Source
//! lab/notes/learning-results.md: forks beside evolution on the tasks of the suite, at equal CPU.

use pleach_agents::Learner;
use pleach_env::workload::estimates::EstimateModel;

use super::settings::TrainSettings;

/// Keys, or their beginnings, that only one learner heeds. `train.learner` itself is laid over the settings of PPO.
const HEEDED: [(&str, Learner); 11] = [
    ("train.learner", Learner::PPO),
    ("train.ppo.", Learner::PPO),
    ("train.num_steps", Learner::PPO),
    ("train.restart_every", Learner::PPO),
    ("train.group_size", Learner::PPO),
    ("train.gae_lambda", Learner::PPO),
    ("train.value_warmup_updates", Learner::PPO),
    ("env.reward", Learner::PPO),
    ("train.evolution.", Learner::EVOLUTION),
    ("objective", Learner::EVOLUTION),
    ("constraint", Learner::EVOLUTION),
];

/// The learner that settings with these keys ask for without a name.
pub(super) fn learner<'a>(keys: impl IntoIterator<Item = &'a str>) -> Learner {
    let heeding = |key: &str| HEEDED.iter().position(|(own, _)| key.starts_with(own));
    let first = keys.into_iter().filter_map(heeding).min();
    first.map_or(Learner::COUNTERFACTUAL, |place| HEEDED[place].1)
}

/// Whether forks would mislead: where run times are guessed while it learns.
pub(super) fn misleads(settings: &TrainSettings) -> bool {
    settings.train.learner == Learner::COUNTERFACTUAL
        && matches!(settings.env.sim.estimates, EstimateModel::History { .. })
}
