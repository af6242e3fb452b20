//! Settings of a distillation.

use pleach_env::Seed;
use pleach_scheduler::Problem;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::{DECISION_1, Feature, FeatureSchema, Relation, View};
use pleach_scheduler::policy::TieKey;
use pleach_scheduler::tree::Property;
use serde::{Deserialize, Serialize};

use crate::cart::{CartConfig, MAX_LEAVES, MAX_ROWS, Trend};
use crate::target::TargetConfig;

/// All settings; the defaults follow the recipe of `docs/distilling.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DistillConfig {
    /// Root of all randomness.
    pub seed: Seed,
    /// Sizes to fit, in leaves, 2 to 256 each. All come from one growth.
    pub leaves: Vec<usize>,
    /// Orders inside a tier to try. The shortest estimate first is worth more than twice the leaves.
    pub tie_keys: Vec<TieKey>,
    /// Rounds of DAgger after the teacher's own, 0 to 100. In round r the last tree decides.
    pub rounds: usize,
    /// Episodes of a round, at least 1.
    pub episodes: usize,
    /// In round r the teacher still decides with probability `beta`^r; 0 = the tree alone. 0 to 1.
    pub beta: f64,
    /// Most candidates that are kept over all rounds, 64 to 4,194,304; each takes about 200 bytes.
    pub rows_max: usize,
    /// Share of the decision points on which fidelity is measured and that no tree is fitted to, 0 to 0.9.
    pub held_out: f64,
    /// Targets and weights.
    pub target: TargetConfig,
    /// Growth.
    pub cart: CartConfig,
    /// What trees are to be monotone in; each is then a certificate that can be proved of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monotone: Vec<Monotone>,
    /// The trees of this many last rounds are judged by simulation, at least 1.
    pub judged_rounds: usize,
    /// The smallest tree is taken whose ratio is within this share of the best one's, 0 to 1.
    pub tolerance: f64,
    /// Pruning of the tree that was taken.
    pub prune: PruneConfig,
    /// The view whose columns trees may read, by name; `decision-1` unless the environment shows another.
    #[serde(skip_serializing_if = "is_first_view")]
    pub columns: String,
}

fn is_first_view(columns: &String) -> bool {
    columns == DECISION_1.name
}

/// What a tree can be made monotone in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Monotone {
    /// A job that waits longer, all else equal, never comes later.
    Waiting,
    /// A job with a shorter estimate, all else equal, never comes later. Features of which nobody knows how they move with the
    /// estimate are not asked for.
    Estimate,
}

impl Monotone {
    fn property(self) -> Property {
        match self {
            Monotone::Waiting => Property::MonotoneInWaiting,
            Monotone::Estimate => Property::MonotoneInEstimate,
        }
    }
}

/// Pruning by simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruneConfig {
    /// Merges to try for each leaf less; 0 = no pruning.
    pub tries: usize,
    /// Fewest leaves, at least 1.
    pub leaves_min: usize,
    /// Stops where the best merge is worse than this times the best ratio so far, at least 1.
    pub bound: f64,
}

impl Default for PruneConfig {
    fn default() -> PruneConfig {
        PruneConfig {
            tries: 4,
            leaves_min: 3,
            bound: 1.05,
        }
    }
}

impl Default for DistillConfig {
    fn default() -> DistillConfig {
        DistillConfig {
            seed: Seed(0),
            leaves: vec![4, 8, 16, 32],
            tie_keys: vec![TieKey::ShortestEstimate],
            rounds: 3,
            episodes: 8,
            beta: 0.0,
            rows_max: 300_000,
            held_out: 0.2,
            target: TargetConfig::default(),
            cart: CartConfig::default(),
            monotone: Vec::new(),
            judged_rounds: 2,
            tolerance: 0.01,
            prune: PruneConfig::default(),
            columns: DECISION_1.name.into(),
        }
    }
}

impl DistillConfig {
    /// How the score may move with each feature of a joined row; empty where it may move as it likes with all.
    #[must_use]
    pub(crate) fn trends(&self, schema: &FeatureSchema, view: View) -> Vec<Trend> {
        if self.monotone.is_empty() {
            return Vec::new();
        }
        schema.features[..view.len]
            .iter()
            .map(|feature| self.trend(feature))
            .collect()
    }

    fn trend(&self, feature: &Feature) -> Trend {
        let relation = |monotone: &Monotone| Some(feature.relation(monotone.property().stimulus()?));
        let trend_of = |monotone: &Monotone| match relation(monotone) {
            None | Some(Relation::Equal) => Trend::Free,
            Some(Relation::Up) => Trend::Rising,
            Some(Relation::Down) => Trend::Falling,
            Some(Relation::Any) => Trend::Unused,
        };
        self.monotone.iter().map(trend_of).fold(Trend::Free, Trend::and)
    }

    /// The view whose columns trees may read.
    ///
    /// # Errors
    /// A name that no view has.
    pub fn view(&self) -> Result<&'static View, Problem> {
        let view = FeatureSchema::current().view_named(&self.columns);
        view.map_err(|known| {
            let hint = "`pleach policies --features` lists the columns of each";
            Problem::new("distill.columns", &self.columns, known, hint)
        })
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.cart.validate()?;
        self.view()?;
        let checks = [
            (
                !self.leaves.is_empty() && self.leaves.iter().all(|leaves| (2..=MAX_LEAVES).contains(leaves)),
                "leaves",
                format!("{:?}", self.leaves),
                format!("one or more sizes from 2 to {MAX_LEAVES}"),
            ),
            (
                !self.tie_keys.is_empty(),
                "tie_keys",
                "[]".into(),
                "at least one key".into(),
            ),
            (
                self.rounds <= 100,
                "rounds",
                self.rounds.to_string(),
                "0 to 100".into(),
            ),
            (self.episodes >= 1, "episodes", "0".into(), "1 or more".into()),
            (
                (0.0..=1.0).contains(&self.beta),
                "beta",
                self.beta.to_string(),
                "0 to 1".into(),
            ),
            (
                (MAX_CANDIDATES..=MAX_ROWS).contains(&self.rows_max),
                "rows_max",
                self.rows_max.to_string(),
                format!("{MAX_CANDIDATES} to {MAX_ROWS}"),
            ),
            (
                (0.0..=0.9).contains(&self.held_out),
                "held_out",
                self.held_out.to_string(),
                "0 to 0.9".into(),
            ),
            (
                self.target.span > 0.0 && self.target.span.is_finite(),
                "target.span",
                self.target.span.to_string(),
                "a number above 0".into(),
            ),
            (
                (0.0..=1e3).contains(&self.target.sharpness),
                "target.sharpness",
                self.target.sharpness.to_string(),
                "0 to 1000".into(),
            ),
            (
                self.judged_rounds >= 1,
                "judged_rounds",
                "0".into(),
                "1 or more".into(),
            ),
            (
                (0.0..=1.0).contains(&self.tolerance),
                "tolerance",
                self.tolerance.to_string(),
                "0 to 1".into(),
            ),
            (
                self.prune.leaves_min >= 1,
                "prune.leaves_min",
                "0".into(),
                "1 or more".into(),
            ),
            (
                self.prune.bound >= 1.0,
                "prune.bound",
                self.prune.bound.to_string(),
                "1 or more".into(),
            ),
        ];
        match checks.into_iter().find(|(good, ..)| !good) {
            None => Ok(()),
            Some((_, key, value, allowed)) => Err(Problem::new(
                format!("distill.{key}"),
                value,
                allowed,
                "the defaults are a good start",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_survive_json() {
        let config = DistillConfig::default();
        config.validate().unwrap();
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<DistillConfig>(&text).unwrap(), config);
        assert!(serde_json::from_str::<DistillConfig>("{\"leafs\": [4]}").is_err());
    }

    #[test]
    fn impossible_values_are_refused_with_their_key() {
        type Spoil = fn(&mut DistillConfig);
        let cases: [(Spoil, &str); 7] = [
            (|config| config.leaves.clear(), "distill.leaves"),
            (|config| config.leaves.push(1), "distill.leaves"),
            (|config| config.rows_max = 1, "distill.rows_max"),
            (|config| config.columns = "decision-9".into(), "distill.columns"),
            (|config| config.target.span = f32::NAN, "distill.target.span"),
            (|config| config.cart.bins = 1, "cart.bins"),
            (|config| config.prune.bound = 0.5, "distill.prune.bound"),
        ];
        for (spoil, key) in cases {
            let mut config = DistillConfig::default();
            spoil(&mut config);
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }
}
