//! Settings of a distillation.

use pleach_env::Seed;
use pleach_scheduler::Problem;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::{DECISION_1, Feature, FeatureSchema, Relation, View};
use pleach_scheduler::policy::TieKey;
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Own, Settings as _};
use pleach_scheduler::tree::Property;
use serde::{Deserialize, Serialize};

use crate::cart::{CartConfig, MAX_LEAVES, MAX_ROWS, Trend};
use crate::target::TargetConfig;

settings! {
    /// All settings; the defaults follow the recipe of `docs/distilling.md`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DistillConfig {
        /// Root of all randomness.
        pub seed: Seed = Seed(0);
        /// Sizes to fit, in leaves, 2 to 256 each. All come from one growth.
        pub leaves: Vec<usize> = vec![4, 8, 16, 32], in 2..=MAX_LEAVES;
        /// Orders inside a tier to try. The shortest estimate first is worth more than twice the leaves.
        pub tie_keys: Vec<TieKey> = vec![TieKey::ShortestEstimate];
        /// Rounds of DAgger after the teacher's own, 0 to 100. In round r the last tree decides.
        pub rounds: usize = 3, in 0..=100;
        /// Episodes of a round, at least 1.
        pub episodes: usize = 8, in 1..;
        /// In round r the teacher still decides with probability `beta`^r; 0 = the tree alone. 0 to 1.
        pub beta: f64 = 0.0, in 0.0..=1.0;
        /// Most candidates that are kept over all rounds, 64 to 4,194,304; each takes about 200 bytes.
        pub rows_max: usize = 300_000, in MAX_CANDIDATES..=MAX_ROWS;
        /// Share of the decision points on which fidelity is measured and that no tree is fitted to, 0 to 0.9.
        pub held_out: f64 = 0.2, in 0.0..=0.9;
        /// Targets and weights.
        pub target: TargetConfig, in Own;
        /// Growth.
        pub cart: CartConfig, in Own;
        /// What trees are to be monotone in; each is then a certificate that can be proved of them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub monotone: Vec<Monotone>;
        /// The trees of this many last rounds are judged by simulation, at least 1.
        pub judged_rounds: usize = 2, in 1..;
        /// The smallest tree is taken whose ratio is within this share of the best one's, 0 to 1.
        pub tolerance: f64 = 0.01, in 0.0..=1.0;
        /// Pruning of the tree that was taken.
        pub prune: PruneConfig, in Own;
        /// The view whose columns trees may read, by name; `decision-1` unless the environment shows another.
        #[serde(skip_serializing_if = "is_first_view")]
        pub columns: String = DECISION_1.name.into();
    }
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
    /// A job with a shorter estimate, all else equal, never comes later. Features are left out where it is not known how they
    /// move with the estimate.
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

settings! {
    /// Pruning by simulation.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PruneConfig {
        /// Merges to try for each leaf less; 0 = no pruning.
        pub tries: usize = 4;
        /// Fewest leaves, at least 1.
        pub leaves_min: usize = 3, in 1..;
        /// Stops where the best merge is worse than this times the best ratio so far, at least 1.
        pub bound: f64 = 1.05, in 1.0..=1e12;
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
        self.view()?;
        let empty = [
            ("leaves", self.leaves.is_empty()),
            ("tie_keys", self.tie_keys.is_empty()),
        ];
        if let Some((key, _)) = empty.into_iter().find(|(_, is_empty)| *is_empty) {
            let hint = "the defaults are a good start";
            return Err(Problem::new(format!("distill.{key}"), "[]", "at least one", hint));
        }
        self.check_at("distill", "")
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
            (|config| config.cart.bins = 1, "distill.cart.bins"),
            (|config| config.prune.bound = 0.5, "distill.prune.bound"),
        ];
        for (spoil, key) in cases {
            let mut config = DistillConfig::default();
            spoil(&mut config);
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }
}
