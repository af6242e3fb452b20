//! A trained network as a scheduling policy: the score of a candidate is its logit, with the prior's where it corrects a
//! heuristic, and nothing is drawn. One that has only met clusters of one GPU type leaves those with several to the heuristic.

use std::path::Path;

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use pleach_scheduler::{PolicyError, Rows, Scorer};

use crate::Error;
use crate::contract::Contract;
use crate::deputies::Deputies;
use crate::forward::Inference;
use crate::parameters::Layout;
use crate::policy_file::TrainedNetwork;
use crate::prior::PriorPolicy;
use crate::scorer::NetworkScorer;

/// A trained network, for evaluation, as a teacher, or in production.
#[derive(Clone, Debug)]
pub struct LearnedPolicy {
    name: String,
    needs: Needs,
    scorer: NetworkScorer,
    /// What a deputy scores.
    logits: Vec<f32>,
    prior: Option<(PriorPolicy, Vec<f32>)>,
    one_type: bool,
    deputies: Deputies,
    unopposed_starts: bool,
}

impl LearnedPolicy {
    /// Reads a network policy file.
    ///
    /// # Errors
    /// As [`TrainedNetwork::load`] and [`LearnedPolicy::new`].
    pub fn load(path: &Path) -> Result<LearnedPolicy, Error> {
        LearnedPolicy::from_network(&TrainedNetwork::load(path)?)
    }

    /// The policy of a network that was trained.
    ///
    /// # Errors
    /// As [`LearnedPolicy::new`].
    pub fn from_network(network: &TrainedNetwork) -> Result<LearnedPolicy, Error> {
        let inference = Inference::new(&network.layout()?, &network.parameters)?;
        LearnedPolicy::new(&network.contract, inference)
    }

    /// The policy of a network.
    ///
    /// # Errors
    /// An [`Error`] where the network was trained on a view that this program does not have, An [`Error`] for a
    /// heuristic in its place that cannot be.
    pub fn new(contract: &Contract, inference: Inference) -> Result<LearnedPolicy, Error> {
        let scorer = NetworkScorer::new(FeatureSchema::current(), contract, inference)?;
        let num_candidates = contract.spaces.num_candidates;
        let prior = contract.prior.as_ref().map(PriorPolicy::new).transpose()?;
        let prior = prior.map(|prior| (prior, vec![0.0; num_candidates]));
        Ok(LearnedPolicy {
            name: "learned".to_owned(),
            needs: contract.candidates.needs(),
            scorer,
            logits: Vec::with_capacity(num_candidates),
            prior,
            one_type: contract.one_type,
            deputies: Deputies::new(contract)?,
            unopposed_starts: contract.unopposed_starts,
        })
    }

    /// The same policy under another name, for tables.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> LearnedPolicy {
        self.name = name.into();
        self
    }

    /// Whether it reads the cluster beside the numbers: where it corrects a heuristic, leaves decisions to one, or makes unopposed
    /// starts.
    #[must_use]
    pub fn reads_cluster(&self) -> bool {
        self.prior.is_some() || self.unopposed_starts || !self.deputies.is_none()
    }

    /// The heuristic that decides in its place on clusters of several GPU types, by name; none: it decides there too.
    #[must_use]
    pub fn one_type_only(&self) -> Option<&str> {
        let (prior, _) = self.prior.as_ref().filter(|_| self.one_type)?;
        Some(prior.name())
    }

    /// Names, shapes and places of its parameters.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.scorer.layout()
    }
}

impl Scorer for LearnedPolicy {
    fn schema(&self) -> &'static FeatureSchema {
        self.scorer.schema()
    }

    /// The network's own scores, without those of a heuristic that it corrects.
    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.scorer.score_rows(rows, scores)
    }
}

/// The logits of admissible candidates; the masked ones get the smallest finite number.
fn only_admissible(logits: &[f32], mask: &[bool], scores: &mut [f32]) {
    for (score, (logit, admissible)) in scores.iter_mut().zip(logits.iter().zip(mask)) {
        *score = if *admissible { *logit } else { f32::MIN };
    }
}

impl Policy for LearnedPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            unopposed_starts: self.unopposed_starts,
            ..ChoiceRule::PLAIN
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let observation = point.observation;
        if let Some(deputy) = self.deputies.of(point.cluster) {
            let mut logits = std::mem::take(&mut self.logits);
            logits.resize(scores.len(), 0.0);
            let scored = deputy.score(point, &mut logits);
            only_admissible(&logits, observation.mask, scores);
            self.logits = logits;
            scored?;
            return PolicyError::check_finite(scores);
        }
        if let Some((prior, logits)) = &mut self.prior {
            logits.resize(scores.len(), 0.0);
            prior.score(point, logits)?;
            if self.one_type && point.cluster.num_types() > 1 {
                only_admissible(logits, observation.mask, scores);
                return PolicyError::check_finite(scores);
            }
        }
        let priors = self.prior.as_ref().map(|(_, logits)| logits.as_slice());
        self.scorer.score_beside(&observation.as_rows(), priors, scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::trained;
    use pleach_scheduler::ActionKind;
    use pleach_scheduler::observation::Spaces;

    const SPACES: Spaces = Spaces::new(2, 4, 3);

    fn policy() -> LearnedPolicy {
        let network = trained(SPACES, FeatureSchema::current().hash());
        LearnedPolicy::from_network(&network).unwrap()
    }

    fn rows<'a>(context: &'a [f32], rows: &'a [f32], mask: &'a [bool]) -> Rows<'a> {
        Rows {
            schema: FeatureSchema::current(),
            rows,
            width: 3,
            context,
            mask,
        }
    }

    #[test]
    fn masked_candidates_do_not_change_the_scores_of_the_others() {
        let mut policy = policy();
        assert!(!policy.needs().actions.contains(ActionKind::Preempt) && policy.needs().observation);
        let (global, candidates) = ([0.5, -0.5], [0.1, 0.2, 0.3, 9.0, 9.0, 9.0, 0.4, 0.5, 0.6]);
        let (mut with, mut without) = ([0.0; 3], [0.0; 2]);
        policy
            .score_rows(rows(&global, &candidates, &[true, false, true]), &mut with)
            .unwrap();
        let kept = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
        policy
            .score_rows(rows(&global, &kept, &[true, true]), &mut without)
            .unwrap();
        assert_eq!(with, [without[0], f32::MIN, without[1]]);
        assert_ne!(without[0], without[1]);
        // Columns beyond its view do not matter.
        let wide = [0.1, 0.2, 0.3, 7.0, 0.4, 0.5, 0.6, 7.0];
        let (mut beyond, context) = ([0.0; 2], [0.5, -0.5, 7.0]);
        let wide = Rows {
            width: 4,
            ..rows(&context, &wide, &[true, true])
        };
        policy.score_rows(wide, &mut beyond).unwrap();
        assert_eq!(beyond, without);
    }

    #[test]
    fn an_observation_without_features_is_refused() {
        let mut policy = policy();
        let error = policy
            .score_rows(rows(&[0.0; 2], &[], &[true, true]), &mut [0.0; 2])
            .unwrap_err();
        assert_eq!(
            error,
            PolicyError::Shape {
                expected: 8,
                found: 2
            }
        );
    }

    #[test]
    fn a_network_of_another_feature_schema_is_refused_with_both_hashes() {
        let error = LearnedPolicy::from_network(&trained(SPACES, "abc"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found abc") && error.contains(FeatureSchema::current().hash()),
            "{error}"
        );
    }
}
