//! Settings of Gavel's policies, with the published values as defaults.

use pleach_scheduler::{ConfigError, Time};
use serde::{Deserialize, Serialize};

use crate::rounds::RoundRules;
use crate::shared::settings::check;

/// What all policies share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Common {
    /// Length of a round, s, 1 to 1e6.
    ///
    /// # Source
    /// Gavel (OSDI'20), section 7.1.
    pub round_s: f64,
    /// A round lasts at least so many times what the dearest restart costs on this cluster, 0 to 100. Where it lasts less than
    /// one restart, jobs that take turns never come to work. Ours; Gavel's rounds are long.
    pub round_restarts_min: f64,
    /// Least time between two programmes, s, 0 to 1e7. Default of the released simulator.
    pub retarget_min_s: f64,
    /// Two kinds share GPUs only where their speeds, as parts of their speeds alone, add up to more. 1 to 2.
    pub pack_above: f64,
    /// Levels of the water; 1 = only the least share is made as large as can be, as in the released code. 1 to 1000.
    pub levels_max: usize,
    /// Most pairs of groups in a programme. *Assumed.*
    pub pairs_max: usize,
    /// All GPU types count as equally fast and are given out in turn (the released code shuffles them): the baseline that Gavel
    /// is compared with.
    pub blind: bool,
    /// Jobs up to which what each is due is taken exactly. *Assumed.*
    pub exact_jobs_max: usize,
    /// Most terms of a programme; a larger one is not solved, and all share equally. *Assumed.*
    pub terms_max: usize,
}

impl Default for Common {
    fn default() -> Common {
        Common {
            round_s: 360.0,
            round_restarts_min: 0.0,
            retarget_min_s: 1920.0,
            pack_above: 1.1,
            levels_max: 1,
            pairs_max: 1000,
            blind: false,
            exact_jobs_max: 250,
            terms_max: 500_000,
        }
    }
}

impl Common {
    /// The clock of the rounds.
    #[must_use]
    pub fn rules(&self) -> RoundRules {
        RoundRules {
            round: Time::from_secs_f64(self.round_s),
            restarts_min: self.round_restarts_min,
            retarget_min: Time::from_secs_f64(self.retarget_min_s),
            types_in_turn: self.blind,
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting out of its range.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let round_ok = (1.0..=1e6).contains(&self.round_s);
        check(name, "round_s", self.round_s, round_ok, "1 to 1e6")?;
        let restarts_ok = (0.0..=100.0).contains(&self.round_restarts_min);
        check(
            name,
            "round_restarts_min",
            self.round_restarts_min,
            restarts_ok,
            "0 to 100",
        )?;
        let retarget_ok = (0.0..=1e7).contains(&self.retarget_min_s);
        check(
            name,
            "retarget_min_s",
            self.retarget_min_s,
            retarget_ok,
            "0 to 1e7",
        )?;
        let pack_ok = (1.0..=2.0).contains(&self.pack_above);
        check(name, "pack_above", self.pack_above, pack_ok, "1 to 2")?;
        let levels_ok = (1..=1000).contains(&self.levels_max);
        check(name, "levels_max", self.levels_max, levels_ok, "1 to 1000")
    }
}

/// Settings of the cost policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostConfig {
    /// What all policies share.
    pub common: Common,
    /// Price of a GPU of each type for some time, in the order of the cluster's types, each above 0; 1 where the list ends.
    pub prices: Vec<f64>,
    /// A job is to end within so many times its run time on its fastest type after it came, above 1; none = no deadlines.
    pub deadline_factor: Option<f64>,
}

impl CostConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting out of its range.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        self.common.validate(name)?;
        let ok = self.prices.iter().all(|price| (1e-6..=1e6).contains(price));
        let prices = format!("{:?}", self.prices);
        check(name, "prices", prices, ok, "numbers from 1e-6 to 1e6")?;
        let factor = self.deadline_factor.unwrap_or(1.5);
        let ok = factor > 1.0 && factor <= 1e6;
        check(
            name,
            "deadline_factor",
            factor,
            ok,
            "above 1, at most 1e6, or left out",
        )
    }
}

/// How a tenant's share is split among its jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inside {
    /// Equally.
    #[default]
    Fairness,
    /// The first job has all that it can use, then the second.
    Fifo,
}

/// What a tenant's share is proportional to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Its quota.
    #[default]
    Quota,
    /// Nothing: all tenants are equal.
    Equal,
}

/// Settings of the hierarchical policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HierarchicalConfig {
    /// What all policies share; its levels do not count here.
    pub common: Common,
    /// What tenants' shares are proportional to.
    pub weights: Weights,
    /// How a tenant's share is split among its jobs.
    pub inside: Inside,
    /// Levels of the water, 1 to 1000. *Assumed*; the released code goes on until every group is full.
    pub levels_max: usize,
}

impl Default for HierarchicalConfig {
    fn default() -> HierarchicalConfig {
        HierarchicalConfig {
            common: Common::default(),
            weights: Weights::Quota,
            inside: Inside::Fairness,
            levels_max: 20,
        }
    }
}

impl HierarchicalConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting out of its range.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        self.common.validate(name)?;
        let ok = (1..=1000).contains(&self.levels_max);
        check(name, "levels_max", self.levels_max, ok, "1 to 1000")
    }
}
