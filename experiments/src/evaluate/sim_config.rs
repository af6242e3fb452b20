//! What a simulated cluster can do, and what its policies know.
//!
//! A value that is given wins. One that is not takes the environment's value where every workload is an environment (by id, or
//! by the settings of a training) and all of them agree; else its own default.

use clap::Args;
use pleach_env::SimConfig;
use pleach_env::availability::AvailabilityConfig;
use pleach_env::batch_system::BatchSystem;
use pleach_env::failures::OutcomeModel;
use pleach_env::site_failures::SiteFailures;
use pleach_scheduler::cluster::{Capabilities, Sharing};
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{ActionKind, ActionSet};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::estimate_source::EstimateSource;
use crate::evaluate::flag_values;
use crate::evaluate::named_env::{env_named, is_list};

/// What the scheduler may do, and what it knows. The fields are flags of `pleach` too, in these words.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Scheduling")]
#[serde(default, deny_unknown_fields)]
pub struct SchedulingConfig {
    /// Play in the world that is measured: starts, memory, checkpoints and links by the model, speeds and run times not known exactly,
    /// failures (docs/gpu-model.md). Other flags win
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub realistic: bool,
    /// Play in the world of the papers instead: of a realistic world nothing is left. Other flags win
    #[arg(long, conflicts_with = "realistic")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub as_published: bool,
    /// Let policies stop running jobs and start them again later [default: the environment's, else not]
    #[arg(long)]
    pub preemption: bool,
    /// Let a gang run on several GPU types, at the pace of the slowest; only planners make use of it
    #[arg(skip)]
    pub mixed_types: bool,
    /// Let policies take these actions too, by their names, with commas; a wrong name is answered with all [default: the environment's]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = flag_values::action)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionKind>,
    /// What policies believe about lengths: oracle, user (the time limit), history (learned from ended jobs), lognormal:SIGMA or
    /// lognormal:SIGMA:BIAS, or a table as grids have it, `{ model = "user-limit", default_s = 3600 }` [default: the environment's, else oracle]
    #[arg(long, value_name = "SOURCE")]
    pub estimates: Option<EstimateSource>,
    /// Seconds that a job loses whenever it starts again [default: the environment's, else 30]
    #[arg(long, value_name = "S", value_parser = flag_values::not_negative)]
    pub restart_cost_s: Option<f64>,
    /// What starts and restarts cost by a published model, instead of --restart-cost-s: zero, pollux30, shockwave20,
    /// by-state-size, tacc-empirical, sia-model or by-class (docs/gpu-model.md)
    #[arg(long, value_name = "NAME", value_parser = flag_values::overheads, conflicts_with = "restart_cost_s")]
    #[serde(deserialize_with = "flag_values::in_files::overheads")]
    pub overheads: Option<Overheads>,
    /// Let policies put two jobs on the same GPUs, in turn or at once [default: the environment's, else off]
    #[arg(long, value_name = "HOW", value_parser = flag_values::sharing())]
    pub sharing: Option<Sharing>,
    /// Let jobs fail, be retried, be killed and be given up, as published for a cluster: none, philly, helios, or by
    /// age: philly-by-age, venus-by-age
    #[arg(long, value_name = "NAME", value_parser = flag_values::outcomes)]
    #[serde(deserialize_with = "flag_values::in_files::outcomes")]
    pub outcomes: Option<OutcomeModel>,
    /// Let nodes fail, each once in so many days on average; repairs take an hour on average
    #[arg(long, value_name = "DAYS", value_parser = flag_values::positive)]
    pub node_mtbf_days: Option<f64>,
    /// Let nodes and whole-node jobs fail as large sites publish it: research (4 hardware failures and 22 incidents per 1,000
    /// node-days) or production (3 and 3.8); some nodes again and again (docs/gpu-model.md)
    #[arg(long, value_name = "NAME", value_parser = flag_values::site_failures, conflicts_with = "node_mtbf_days")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "flag_values::in_files::site_failures")]
    pub site_failures: Option<SiteFailures>,
    /// Seconds for which a gang that loses a node keeps its GPUs on other nodes and waits for as many as it has lost, instead of
    /// giving them up at once [default: the environment's, else 0]
    #[arg(long, value_name = "S", value_parser = flag_values::not_negative)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_places_s: Option<f64>,
    /// Let nodes be drained, taken and returned as this TOML file plans: a list `changes` of at_s, node (its number in the cluster,
    /// group by group) and state (up, draining or down); also node_mtbf_s and node_repair_s
    #[arg(long, value_name = "FILE", value_parser = flag_values::capacity)]
    #[serde(deserialize_with = "flag_values::in_files::capacity")]
    pub capacity: Option<AvailabilityConfig>,
    /// Seconds of work between two checkpoints: what a failure can cost a job [default: a failure loses nothing]
    #[arg(long, value_name = "S", value_parser = flag_values::positive)]
    pub checkpoint_interval_s: Option<f64>,
    /// Give each job what is published of the model it trains (state, memory, checkpoints, starts), and the cluster a store and
    /// sharing that can hurt, where the list says nothing (docs/gpu-model.md) [default: the environment's, else not]
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub class_facts: bool,
    /// Seconds that a job is given to save when it is stopped; one that needs longer loses what it did since its last checkpoint.
    /// None: the environment's, else as long as it needs.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_grace_s: Option<f64>,
    /// Let policies be wrong about speeds (12 %, and up to 10 % that drift from week to week) and about what starts cost (30 %).
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub belief_errors: bool,
    /// Let decisions be carried out by a batch system, with its rounds and delays: slurm, or a TOML file with tick_s,
    /// start_delay_s, end_delay_s, requeue_delay_s, failure_delay_s and whole_nodes (docs/gpu-model.md); not with shared or mixed
    /// GPUs [default: the environment's, else they happen at once]
    #[arg(long, value_name = "NAME|FILE", value_parser = flag_values::batch_system)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "flag_values::in_files::batch_system")]
    pub batch_system: Option<BatchSystem>,
}

impl SchedulingConfig {
    /// Refuses numbers out of their range, a plan of nodes that cannot be, and two costs of a restart.
    ///
    /// # Errors
    /// The first of these.
    pub fn check(&self) -> Result<(), Error> {
        let numbers = [
            ("restart_cost_s", self.restart_cost_s, true),
            ("node_mtbf_days", self.node_mtbf_days, false),
            ("keep_places_s", self.keep_places_s, true),
            ("checkpoint_interval_s", self.checkpoint_interval_s, false),
            ("stop_grace_s", self.stop_grace_s, true),
        ];
        for (key, value, may_be_0) in numbers {
            let fits = |value: &f64| value.is_finite() && (*value > 0.0 || (may_be_0 && *value == 0.0));
            if let Some(value) = value.filter(|value| !fits(value)) {
                let allowed = if may_be_0 { "at least 0" } else { "above 0" };
                return Err(Error::config(
                    key,
                    value,
                    allowed,
                    "Leave it out for the default.",
                ));
            }
        }
        let actions: ActionSet = self.actions.iter().copied().collect();
        if let Err(reason) = actions.within("actions", ActionSet::GRANTED) {
            let allowed = ActionSet::GRANTED.names();
            return Err(Error::config("actions", actions.names(), allowed, reason));
        }
        if let (Some(cost_s), Some(_)) = (self.restart_cost_s, self.overheads) {
            let hint = "Give one of them.";
            return Err(Error::config(
                "restart_cost_s",
                cost_s,
                "none beside overheads",
                hint,
            ));
        }
        if let Some(capacity) = &self.capacity {
            capacity.validate()?;
        }
        Error::refuse_if(
            self.realistic && self.as_published,
            "as_published",
            true,
            "false beside realistic",
            "Give one of them.",
        )?;
        if let (Some(days), Some(_)) = (self.node_mtbf_days, &self.site_failures) {
            let hint = "Give one of them.";
            return Err(Error::config(
                "node_mtbf_days",
                days,
                "none beside site_failures",
                hint,
            ));
        }
        if let Some(batch_system) = &self.batch_system {
            batch_system.validate()?;
        }
        Ok(())
    }

    /// What these settings turn on of what has to be granted.
    fn asked(&self) -> ActionSet {
        let flags = [
            (ActionKind::Preempt, self.preemption),
            (ActionKind::MixTypes, self.mixed_types),
        ];
        self.actions
            .iter()
            .copied()
            .collect::<ActionSet>()
            .union(ActionSet::where_true(flags))
    }

    /// The same in the world that is measured, unless these settings ask for that of the papers.
    #[must_use]
    pub fn realistic_by_default(&self) -> SchedulingConfig {
        SchedulingConfig {
            realistic: !self.as_published,
            ..self.clone()
        }
    }

    /// The same as settings of a simulation of these workloads, by their names.
    #[must_use]
    pub fn sim(&self, workloads: &[String]) -> SimConfig {
        let is_record = workloads.iter().any(|name| is_list(name));
        self.over(&of_environments(workloads), is_record)
    }

    /// The same over the settings of these simulations; of what is not given, what all of them agree on. `is_record`: the run times
    /// are those of jobs that ran.
    #[must_use]
    pub fn over(&self, own: &[SimConfig], is_record: bool) -> SimConfig {
        let mut sim = SimConfig {
            estimates: agreed(own, |sim| sim.estimates).unwrap_or_default(),
            ..agreed(own, SimConfig::clone).unwrap_or_default()
        };
        if self.as_published {
            sim = sim.as_published();
        }
        if self.realistic {
            let own = sim.clone();
            sim = sim.realistic(is_record);
            if is_record {
                // What links and checkpoints cost, and how speeds drift, is in the run times of a record.
                (sim.class_facts, sim.beliefs) = (own.class_facts, own.beliefs);
                sim.capabilities.class_checkpoints = own.capabilities.class_checkpoints;
            }
            // A batch system starts gangs again itself, and another plan of failures stands alone.
            if self.batch_system.is_some() {
                sim.capacity.keep_places_s = 0.0;
            }
            if self.node_mtbf_days.is_some() {
                sim.capacity.site = None;
            }
        }
        sim.estimates = self.estimates.map_or(sim.estimates, EstimateSource::model);
        let capabilities = &mut sim.capabilities;
        let asked = self.asked();
        let is_granted = |kind: &ActionKind| {
            asked.contains(*kind) || agreed(own, |sim| sim.capabilities.can(*kind)) == Some(true)
        };
        let granted = ActionSet::GRANTED.iter().filter(is_granted).collect();
        capabilities.granted = capabilities.granted.union(granted);
        capabilities.restart_cost_s = self
            .restart_cost_s
            .or_else(|| agreed(own, |sim| sim.capabilities.restart_cost_s))
            .unwrap_or(Capabilities::DEFAULT.restart_cost_s);
        if self.overheads.is_some() || self.restart_cost_s.is_some() {
            capabilities.overheads = self.overheads;
        }
        capabilities.sharing = self
            .sharing
            .or_else(|| agreed(own, |sim| sim.capabilities.sharing))
            .unwrap_or(Sharing::Off);
        capabilities.checkpoint_interval_s =
            self.checkpoint_interval_s.or(capabilities.checkpoint_interval_s);
        capabilities.stop_grace_s = self.stop_grace_s.or(capabilities.stop_grace_s);
        if self.class_facts {
            capabilities.class_checkpoints = true;
            sim.class_facts = true;
        }
        if self.belief_errors {
            sim.beliefs.get_or_insert_default();
        }
        if let Some(batch_system) = self.batch_system {
            *capabilities = batch_system.capabilities(*capabilities);
            sim.batch_system = Some(batch_system);
        }
        if self.outcomes.is_some() {
            sim.outcomes.clone_from(&self.outcomes);
        }
        if let Some(capacity) = &self.capacity {
            sim.capacity.clone_from(capacity);
        }
        sim.capacity.site = self.site_failures.or(sim.capacity.site);
        sim.capacity.keep_places_s = self.keep_places_s.unwrap_or(sim.capacity.keep_places_s);
        if let Some(days) = self.node_mtbf_days {
            sim.capacity.node_mtbf_s = Some(days * DAY_S);
        }
        sim
    }
}

/// The settings of the environments of these names. None where one of them is something else or cannot be read; the error comes
/// where its jobs are asked for.
fn of_environments(names: &[String]) -> Vec<SimConfig> {
    let own = names.iter().map(|name| Some(env_named(name).ok()??.sim));
    own.collect::<Option<Vec<SimConfig>>>().unwrap_or_default()
}

/// The value that all of them have; none where they differ or there are none.
fn agreed<T: PartialEq>(own: &[SimConfig], of: impl Fn(&SimConfig) -> T) -> Option<T> {
    let first = of(own.first()?);
    own.iter().all(|sim| of(sim) == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::EnvConfig;
    use pleach_env::workload::estimates::EstimateModel;

    fn sim(names: &[&str], args: &SchedulingConfig) -> SimConfig {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        args.sim(&names)
    }

    #[test]
    fn a_registered_environment_brings_what_its_policies_know_and_may_do() {
        for id in EnvConfig::ids() {
            let own = EnvConfig::registered(id).unwrap().sim;
            assert_eq!(sim(&[id], &SchedulingConfig::default()), own, "{id}");
        }
    }

    #[test]
    fn a_flag_that_is_given_wins_over_the_environment() {
        let args = SchedulingConfig {
            estimates: Some(EstimateSource::Oracle),
            restart_cost_s: Some(7.0),
            sharing: Some(Sharing::Off),
            ..SchedulingConfig::default()
        };
        for id in ["Pleach/PhillyGang-v1", "Pleach/PhillyShare-v1"] {
            let sim = sim(&[id], &args);
            assert_eq!(sim.estimates, EstimateModel::Oracle);
            assert_eq!(sim.capabilities.restart_cost_s, 7.0);
            assert_eq!(sim.capabilities.sharing, Sharing::Off);
        }
    }

    #[test]
    fn a_realistic_world_takes_other_flags_and_of_a_record_what_its_run_times_lack() {
        let args = SchedulingConfig {
            realistic: true,
            restart_cost_s: Some(7.0),
            ..SchedulingConfig::default()
        };
        let drawn = sim(&["philly-like"], &args);
        assert!(drawn.class_facts && drawn.capacity.site.is_some() && drawn.capacity.keep_places_s > 0.0);
        assert_eq!(
            (drawn.capabilities.overheads, drawn.capabilities.restart_cost_s),
            (None, 7.0)
        );
        assert_eq!(drawn.estimates, EstimateModel::HISTORY);
        let list = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
        let record = sim(&[list.path().to_str().unwrap()], &args);
        assert!(!record.class_facts && record.beliefs.is_none() && record.capacity.site.is_none());
        // A task keeps what it tells of run times, and one that is realistic is what it was.
        let gang = sim(&["Pleach/PhillyGang-v1"], &args);
        assert_eq!(gang.estimates, EstimateModel::UserLimit { default_s: 86_400.0 });
        let site = SchedulingConfig {
            restart_cost_s: None,
            ..args
        };
        let own = EnvConfig::registered("Pleach/LlmSite-v1").unwrap().sim;
        assert_eq!(sim(&["Pleach/LlmSite-v1"], &site), own);
        let papers = SchedulingConfig {
            realistic: false,
            as_published: true,
            ..site.clone()
        };
        for (id, own) in [
            ("Pleach/LlmSite-v1", SimConfig::default()),
            (
                "Pleach/GavelMultiRealistic-v2",
                EnvConfig::registered("Pleach/GavelMulti-v1").unwrap().sim,
            ),
        ] {
            assert_eq!(sim(&[id], &papers), own, "{id}");
        }
        // What cannot stand beside what is given goes.
        let given = SchedulingConfig {
            node_mtbf_days: Some(10.0),
            ..site
        };
        assert!(sim(&["philly-like"], &given).capacity.site.is_none());
    }

    #[test]
    fn workloads_that_disagree_or_are_no_environments_have_the_defaults() {
        let args = SchedulingConfig::default();
        for names in [
            ["Pleach/PhillyGang-v1", "Pleach/PhillyShare-v1"],
            ["Pleach/PhillyGang-v1", "philly-like"],
            ["trace.csv", "Pleach/PhillyPreempt-v0"],
        ] {
            assert_eq!(sim(&names, &args), SimConfig::default(), "{names:?}");
        }
        let same = sim(&["Pleach/GavelShare-v1", "Pleach/PhillyShare-v0"], &args);
        assert_eq!(same.capabilities.sharing, Sharing::Mps);
    }
}
