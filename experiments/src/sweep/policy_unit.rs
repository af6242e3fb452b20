//! What a unit of a sweep does: one policy on one workload, as its configuration says.

use pleach_env::Seed;
use pleach_scheduler::ActionKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::door::DOOR;
use crate::error::Error;
use crate::evaluate::estimate_source::EstimateSource;
use crate::evaluate::run::Runner;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::stand_in::stand_ins;
use crate::evaluate::workload_source::WorkloadSource;
use crate::sweep::{UnitError, UnitSpec};

/// Key of a result that says whose decisions the policy's are, and why, where they are another's: `as sjf: no preemption`.
pub(super) const STAND_IN: &str = "stand_in";

/// Configuration of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitConfig {
    /// Policy by name or file.
    pub policy: String,
    /// Preset, environment id or file.
    pub workload: String,
    /// Jobs to take or to generate.
    pub num_jobs: Option<u32>,
    /// Offered load.
    pub load: Option<f64>,
    /// First day of a trace.
    pub from_day: Option<f64>,
    /// Days of a trace.
    pub days: Option<f64>,
    /// Whether running jobs may be stopped; also true where the environment says so.
    pub preemption: bool,
    /// What policies may do besides, by the names of actions; also what the environment allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionKind>,
    /// Time that a job loses when it starts again, s, 0 to 1e6; the environment's, else 30 s, where absent.
    pub restart_cost_s: Option<f64>,
    /// What the scheduler is told of run times; the environment's, else the true ones, where absent.
    pub estimates: Option<EstimateSource>,
}

impl Default for UnitConfig {
    fn default() -> UnitConfig {
        UnitConfig {
            policy: "fifo".into(),
            workload: "Pleach/Philly-v0".into(),
            num_jobs: None,
            load: None,
            from_day: None,
            days: None,
            preemption: false,
            actions: Vec::new(),
            restart_cost_s: None,
            estimates: None,
        }
    }
}

impl UnitConfig {
    fn scheduling(&self) -> SchedulingConfig {
        SchedulingConfig {
            preemption: self.preemption,
            actions: self.actions.clone(),
            restart_cost_s: self.restart_cost_s,
            estimates: self.estimates,
            ..SchedulingConfig::default()
        }
    }

    fn source(&self) -> WorkloadSource {
        WorkloadSource {
            workload: vec![self.workload.clone()],
            num_jobs: self.num_jobs,
            load: self.load,
            from_day: self.from_day,
            days: self.days,
            ..WorkloadSource::default()
        }
    }
}

/// Refuses a configuration before anything runs.
///
/// # Errors
/// A key that is unknown or out of range, or a policy that there is not.
pub fn check(spec: &UnitSpec) -> Result<(), UnitError> {
    let config: UnitConfig = spec.config_as()?;
    let sim = config.scheduling().sim(&config.source().workload);
    let policy = DOOR.open_one(&config.policy).map_err(Error::from)?;
    policy.check(sim.capabilities).map_err(Error::from)?;
    let out = |key: &str, value: f64, allowed: &str| {
        UnitError::from(Error::config(key, value, allowed, "Mend the grid."))
    };
    if let Some(load) = config.load.filter(|load| !(0.01..=10.0).contains(load)) {
        return Err(out("load", load, "0.01 to 10"));
    }
    if let Some(cost_s) = config
        .restart_cost_s
        .filter(|cost_s| !(0.0..=1e6).contains(cost_s))
    {
        return Err(out("restart_cost_s", cost_s, "0 to 1e6 s"));
    }
    Ok(())
}

/// Runs one policy on the workload of the unit's seed.
///
/// # Errors
/// As [`check`], and runs that fail.
pub fn work(spec: &UnitSpec) -> Result<Value, UnitError> {
    check(spec)?;
    let config: UnitConfig = spec.config_as()?;
    let sim = config.scheduling().sim(&config.source().workload);
    let instances = config.source().instances(&sim, &[Seed(spec.seed)], &mut |_| {})?;
    let policies = [DOOR.open_one(&config.policy).map_err(Error::from)?];
    let runs = Runner::new(&sim).run(&instances, &policies)?;
    let run = runs
        .first()
        .ok_or_else(|| UnitError::Failed("the workload has no jobs".into()))?;
    let mut value = json!({"policy": run.policy, "workload": run.workload, "metrics": run.metrics});
    if let Some(other) = stand_ins(&policies, &instances, &sim).remove(&run.policy) {
        value[STAND_IN] = other.into();
    }
    Ok(value)
}
