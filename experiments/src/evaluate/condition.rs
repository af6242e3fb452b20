//! What schedulers know, and what moving a job costs.

use clap::{ArgAction, Args, ValueEnum};
use pleach_env::SimConfig;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::physics::overheads::Overheads;
use serde::{Deserialize, Serialize};

use crate::evaluate::estimate_source::EstimateSource;

/// What the schedulers know and what moving a job costs. *Realistic* is the world that is measured ([`SimConfig::realistic`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Run times known, starting and stopping free
    Ideal,
    /// Run times guessed from ended jobs; starts, memory, checkpoints and sharing as published for their models; failures
    Realistic,
    /// As realistic, but each start costs 10 s
    #[value(name = "realistic-10s")]
    Realistic10s,
    /// As realistic, but each start costs 60 s
    #[value(name = "realistic-60s")]
    Realistic60s,
    /// As realistic, but each start costs 250 s
    #[value(name = "realistic-250s")]
    Realistic250s,
    /// Run times known, everything else as realistic
    Overheads,
    /// Run times guessed, starting and stopping free
    Estimates,
}

/// In which conditions is played.
#[derive(Args, Clone, Debug)]
pub struct ConditionFlag {
    /// What is known and what moving a job costs, repeated or with commas
    #[arg(long, value_name = "WORD", value_delimiter = ',', action = ArgAction::Append, default_values = ["ideal", "realistic"])]
    pub condition: Vec<Condition>,
}

impl Condition {
    /// Name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Condition::Ideal => "ideal",
            Condition::Realistic => "realistic",
            Condition::Realistic10s => "realistic-10s",
            Condition::Realistic60s => "realistic-60s",
            Condition::Realistic250s => "realistic-250s",
            Condition::Overheads => "overheads",
            Condition::Estimates => "estimates",
        }
    }

    /// The settings of a simulation.
    #[must_use]
    pub fn sim(self) -> SimConfig {
        let knows = matches!(self, Condition::Ideal | Condition::Overheads);
        let mut sim = SimConfig {
            capabilities: Capabilities {
                overheads: Some(Overheads::ZERO),
                ..Capabilities::DEFAULT
            },
            estimates: if knows {
                EstimateSource::Oracle.model()
            } else {
                EstimateSource::History.model()
            },
            ..SimConfig::default()
        };
        if !matches!(self, Condition::Ideal | Condition::Estimates) {
            let estimates = sim.estimates;
            sim = SimConfig {
                estimates,
                ..sim.realistic(false)
            };
        }
        if let Some(start_s) = self.start_s() {
            sim.capabilities.overheads = Some(Overheads::each(start_s));
        }
        sim
    }

    /// What every start costs where it is the same for all, s.
    fn start_s(self) -> Option<f64> {
        match self {
            Condition::Realistic10s => Some(10.0),
            Condition::Realistic60s => Some(60.0),
            Condition::Realistic250s => Some(250.0),
            _ => None,
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
            ("Pleach/MixedRealistic-v3", Condition::Realistic),
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
