//! How a training is begun, in the words of `pleach train`, and the settings that it means.
//!
//! From the general to the particular: what is built in or the file of `--config`, `--env`, `--set`, then the other flags.

use std::path::PathBuf;

use clap::Args;
use clap::builder::Resettable;
use pleach_agents::Learner;
use pleach_agents::learner::{Plays, way};
use pleach_env::{Expression, RewardConfig, WorkloadConfig};
use pleach_scheduler::ActionKind;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::settings::TrainSettings;
use super::{fine_tuning, overrides, settings_file, unnamed};
use crate::command::flags::SettingsFlags;
use crate::command::grid_table::{self, Group};
use crate::error::Error;
use crate::evaluate::flag_values;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::workload_source::{WorkloadSource, env_of, resize};

/// How a training is begun. The fields are flags of `pleach train`, in these words; a run that goes on has none of them.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(mut_arg("workload", |flag| flag.default_value(Resettable::Reset).conflicts_with("env").help("Lists of your own, presets \
    or environment ids to train on, as evaluate plays them, repeated or with commas. Of a list the first six tenths of the jobs \
    train, the next two choose, the last two are left for evaluate [default: that of --env]")))]
#[command(mut_arg("format", |flag| flag.requires("workload")), mut_arg("cluster", |flag| flag.requires("workload")))]
#[command(mut_arg("from_day", |flag| flag.requires("workload")), mut_arg("days", |flag| flag.requires("workload")))]
#[command(mut_arg("virtual_clusters", |flag| flag.requires("workload")))]
pub struct TrainRequest {
    /// Environment id [default: from the configuration, or else Pleach/Philly-v0]
    #[arg(long, value_name = "ID")]
    pub env: Option<String>,
    /// Learning algorithm; selects its default settings [default: counterfactual; evolution where an objective or a constraint is set or
    /// run times are guessed; ppo where a reward, --env-steps or a key that only PPO heeds is]
    #[arg(long, value_name = "LEARNER", value_parser = flag_values::learner(), conflicts_with = "config")]
    pub learner: Option<Learner>,
    /// Settings of the learner.
    #[command(flatten)]
    pub settings: SettingsFlags,
    /// Imitate this heuristic or planner before learning begins: a name, best (on the validation workloads), or none
    #[arg(long, value_name = "NAME")]
    pub warm_start: Option<String>,
    /// Go on from this network, a checkpoint or a run's folder, with the jobs and the cluster given here
    #[arg(long, value_name = "PATH", conflicts_with = "warm_start")]
    pub fine_tune: Option<PathBuf>,
    /// What PPO is paid: an expression of sums over time, such as `-jobs_in_system_s / total_run_s - 0.1 * idle_gpu_s / total_gpu_s`,
    /// whose names and units docs/learning.md lists [default: from the configuration, or else -delay]
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub reward: Option<String>,
    /// Decisions to train for [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u64>(0..=1_000_000_000_000))]
    pub env_steps: Option<u64>,
    /// Environments that step together [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=65_536))]
    pub num_envs: Option<u32>,
    /// Which jobs on which cluster, instead of an environment.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
}

impl TrainRequest {
    /// Groups of flags that it has, as clap calls them.
    pub const GROUPS: [&'static str; 4] = [
        "TrainRequest",
        "SettingsFlags",
        "WorkloadSource",
        "SchedulingConfig",
    ];

    /// The same from a table of settings, as a grid has it: flags, and keys of settings.toml.
    ///
    /// # Errors
    /// A key that there is not, a value of another kind.
    pub fn of_table(table: Map<String, Value>) -> Result<TrainRequest, Error> {
        let flags = grid_table::flags::<TrainRequest>();
        let own = toml::Table::try_from(settings_file::built_in()?).unwrap_or_default();
        let is_flag = |key: &str| flags.iter().any(|flag| flag.get_id() == key);
        let (mut given, mut keys) = (Map::new(), Map::new());
        for (key, value) in table {
            match own.contains_key(&key) && (value.is_object() || !is_flag(&key)) {
                true => keys.insert(key, value),
                false if is_flag(&key) || value.is_object() && key == "scheduling" => {
                    given.insert(key, value)
                }
                false => {
                    let names = flags.iter().map(|flag| flag.get_id().as_str());
                    let names = names.chain(own.keys().map(String::as_str));
                    return Err(grid_table::unknown(names.collect(), &key, &value).into());
                }
            };
        }
        let groups = [
            Group::of::<SettingsFlags>("settings"),
            Group::of::<WorkloadSource>("workload"),
            Group::of::<SchedulingConfig>("scheduling"),
        ];
        let mut request: TrainRequest = grid_table::read("train", given, &groups)?;
        request.settings.keys = keys;
        for (key, other, are_both) in [
            (
                "env",
                "workload",
                request.env.is_some() && !request.workload.workload.is_empty(),
            ),
            (
                "learner",
                "config",
                request.learner.is_some() && request.settings.config.is_some(),
            ),
            (
                "warm_start",
                "fine_tune",
                request.warm_start.is_some() && request.fine_tune.is_some(),
            ),
        ] {
            Error::refuse_if(
                are_both,
                key,
                "given",
                format_args!("none beside {other}"),
                "Give one of them.",
            )?;
        }
        Ok(request)
    }

    /// The settings of the run.
    ///
    /// # Errors
    /// Files that cannot be read, keys that there are not, values that do not go together.
    pub fn settings(&self) -> Result<TrainSettings, Error> {
        if self.learner.is_some() || self.settings.config.is_some() {
            return self.settings_of(self.learner.unwrap_or_default());
        }
        let settings = self.settings_of(self.unnamed())?;
        match self.unnamed() == Learner::COUNTERFACTUAL && unnamed::misleads(&settings) {
            true => self.settings_of(Learner::EVOLUTION),
            false => Ok(settings),
        }
    }

    /// The learner where neither a flag nor a file names one.
    fn unnamed(&self) -> Learner {
        let steps = self.env_steps.map(|_| "train.ppo.");
        let reward = self.reward.as_ref().map(|_| "env.reward");
        let of_flags = self
            .settings
            .set
            .iter()
            .filter_map(|text| Some(text.split_once('=')?.0));
        let of_table = settings_file::dotted(&self.settings.keys);
        let given = of_table.iter().map(String::as_str).chain(of_flags);
        unnamed::learner(given.chain(steps).chain(reward))
    }

    /// The settings of the run, where this learner is the one that no file names.
    fn settings_of(&self, learner: Learner) -> Result<TrainSettings, Error> {
        let mut settings = match &self.settings.config {
            Some(path) => settings_file::read(path)?,
            None => settings_file::built_in_for(learner, self.fine_tune.is_some())?,
        };
        // What is paid is the learner's affair, whatever it plays in.
        let reward = settings.env.reward.clone();
        if let Some(id) = &self.env {
            settings.env = env_of(id, None, None)?;
        }
        self.scheduling.check()?;
        if !self.workload.workload.is_empty() {
            settings.env = self.workload.env_to_learn_in(&self.scheduling)?;
        }
        settings.env.reward = reward;
        let settings = overrides::apply(&settings, &self.settings.set)?;
        let mut settings = settings_file::completed(&settings, &self.settings.keys)?;
        resize(&mut settings.env, self.workload.num_jobs, self.workload.load);
        if self.scheduling != SchedulingConfig::default() {
            let env = &mut settings.env;
            let is_record = matches!(env.workload, WorkloadConfig::File { .. });
            env.sim = self.scheduling.over(std::slice::from_ref(&env.sim), is_record);
            let shares = env.sim.capabilities.actions().contains(ActionKind::Share);
            env.candidates.actions = env.candidates.actions.set(ActionKind::Share, shares);
        }
        if let Some(reward) = &self.reward {
            Error::refuse_if(
                way(settings.train.learner).plays() != Plays::Steps,
                "reward",
                reward,
                format_args!("none with {}", way(settings.train.learner).title()),
                "It learns from metrics: --set 'objective={avg_jct_s=1.0,p99_jct_s=0.2}'.",
            )?;
            settings.env.reward = RewardConfig::Expression(Expression::parse(reward)?);
        }
        if let Some(num_envs) = self.num_envs {
            settings.num_envs = num_envs as usize;
        }
        if let Some(name) = &self.warm_start {
            settings.warm_start.clone_from(name);
        }
        if let Some(place) = &self.fine_tune {
            settings.fine_tune = Some(place.clone());
        }
        let is_set = |text: &String| text.split_once('=').is_some_and(|(key, _)| key == "warm_start");
        let asks_to_imitate = self.warm_start.is_some() || self.settings.set.iter().any(is_set);
        Error::refuse_if(
            asks_to_imitate && settings.warm_start != "none" && settings.prior != "none",
            "warm_start",
            &settings.warm_start,
            format_args!("none with prior = {}: nothing is imitated then", settings.prior),
            "To imitate, add --set prior=none; to correct, leave out warm_start.",
        )?;
        fine_tuning::adopt(&mut settings)?;
        if let Some(env_steps) = self.env_steps {
            Error::refuse_if(
                way(settings.train.learner).plays() != Plays::Steps,
                "env-steps",
                env_steps,
                format_args!("nothing with {}", way(settings.train.learner).title()),
                "Give the number of updates: --set train.num_updates=100.",
            )?;
            settings.train.num_updates = updates_for(&settings, env_steps);
        }
        Ok(settings)
    }
}

/// Updates that make at least so many steps.
fn updates_for(settings: &TrainSettings, env_steps: u64) -> u64 {
    let per_update = settings.num_envs.saturating_mul(settings.train.num_steps).max(1) as u64;
    env_steps.div_ceil(per_update)
}
