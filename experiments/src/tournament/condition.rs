//! What the schedulers of a tournament know, and what moving a job costs.

use pleach_env::SimConfig;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::physics::overheads::Overheads;
use serde::{Deserialize, Serialize};

use crate::evaluate::estimate_source::EstimateSource;

/// What the schedulers know and what moving a job costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Run times are known and stopping costs nothing.
    Ideal,
    /// Run times are guessed from the jobs that have ended, and starts cost what [`Overheads::BY_STATE_SIZE`] says: 10 s, and the
    /// time to move the model's state where a class gives its size, which no generated one does.
    Realistic,
    /// Run times are known, starts cost.
    Overheads,
    /// Run times are guessed, starts cost nothing.
    Estimates,
}

impl Condition {
    /// All of them.
    pub const ALL: [Condition; 4] = [
        Condition::Ideal,
        Condition::Realistic,
        Condition::Overheads,
        Condition::Estimates,
    ];

    /// Name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Condition::Ideal => "ideal",
            Condition::Realistic => "realistic",
            Condition::Overheads => "overheads",
            Condition::Estimates => "estimates",
        }
    }

    /// In words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Condition::Ideal => "run times known, starting and stopping free",
            Condition::Realistic => {
                "run times guessed from the jobs that have ended, each start costs 10 s (more where a class gives its state's size)"
            }
            Condition::Overheads => {
                "run times known, each start costs 10 s (more where a class gives its state's size)"
            }
            Condition::Estimates => {
                "run times guessed from the jobs that have ended, starting and stopping free"
            }
        }
    }

    /// The settings of a simulation.
    #[must_use]
    pub fn sim(self) -> SimConfig {
        let costs = matches!(self, Condition::Realistic | Condition::Overheads);
        let guesses = matches!(self, Condition::Realistic | Condition::Estimates);
        SimConfig {
            capabilities: Capabilities {
                overheads: Some(if costs {
                    Overheads::BY_STATE_SIZE
                } else {
                    Overheads::ZERO
                }),
                ..Capabilities::DEFAULT
            },
            estimates: if guesses {
                EstimateSource::History.model()
            } else {
                EstimateSource::Oracle.model()
            },
            ..SimConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use pleach_env::EnvConfig;
    use pleach_scheduler::{ActionKind, ActionSet};

    use super::*;
    use crate::evaluate::sim_config::SchedulingConfig;
    use crate::evaluate::workload_source::WorkloadSource;

    #[test]
    fn the_mixed_environments_are_what_the_tournament_plays() {
        let all = ActionSet::of(ActionKind::Preempt).with(ActionKind::Share);
        for (id, condition) in [
            ("Pleach/MixedIdeal-v0", Condition::Ideal),
            ("Pleach/MixedRealistic-v0", Condition::Realistic),
        ] {
            let env = EnvConfig::registered(id).unwrap();
            let mut sim = condition.sim();
            sim.capabilities = sim.capabilities.with_actions(all);
            assert_eq!(env.sim, sim, "{id}");
            let kinds = [
                "Pleach/Philly-v0",
                "helios-like",
                "sia-philly",
                "gavel-multi",
                "synergy-multi",
                "pollux",
            ];
            let played = WorkloadSource {
                workload: kinds.map(str::to_string).to_vec(),
                num_jobs: Some(200),
                load: Some(2.0),
                ..WorkloadSource::default()
            };
            let played = played.env(&SchedulingConfig::default()).unwrap();
            assert_eq!(env.workload, played.workload, "{id}");
        }
    }
}
