//! A network over the rows of any schema: it scores what may be chosen, and knows no cluster.

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::{PolicyError, Rows, Scorer};

use crate::Error;
use crate::contract::Contract;
use crate::decision_batch::DecisionRef;
use crate::forward::{Inference, Scratch};
use crate::parameters::Layout;
use crate::policy_file::TrainedNetwork;

/// A network that scores rows.
#[derive(Clone, Debug)]
pub struct NetworkScorer {
    schema: &'static FeatureSchema,
    inference: Inference,
    scratch: Scratch,
    /// Of the rows that may be chosen, as many columns as the view has.
    admissible: Vec<f32>,
    logits: Vec<f32>,
    /// Prior logits of the rows that may be chosen.
    priors: Vec<f32>,
}

impl NetworkScorer {
    /// A trained network over rows of a schema.
    ///
    /// # Errors
    /// An [`Error`] where it was trained on rows of another schema or on a view that this program does not have.
    pub fn over(schema: &'static FeatureSchema, network: &TrainedNetwork) -> Result<NetworkScorer, Error> {
        let inference = Inference::new(&network.layout()?, &network.parameters)?;
        NetworkScorer::new(schema, &network.contract, inference)
    }

    /// The same of a network that is ready.
    ///
    /// # Errors
    /// As [`NetworkScorer::over`].
    pub fn new(
        schema: &'static FeatureSchema,
        contract: &Contract,
        inference: Inference,
    ) -> Result<NetworkScorer, Error> {
        contract.check_view(schema)?;
        let num_rows = contract.spaces.num_candidates;
        Ok(NetworkScorer {
            schema,
            scratch: inference.scratch(num_rows),
            admissible: Vec::with_capacity(num_rows * contract.spaces.num_features),
            logits: Vec::with_capacity(num_rows),
            priors: Vec::with_capacity(num_rows),
            inference,
        })
    }

    /// Names, shapes and places of its parameters.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.inference.layout()
    }

    /// Scores of the rows that may be chosen, with prior logits that are added to the network's; none for zeros. The others get the
    /// smallest finite number. Of a row and of the context it reads as many columns as its view has.
    ///
    /// # Errors
    /// [`PolicyError::Shape`] for rows that are narrower, [`PolicyError::NotFinite`] for a score that is not.
    pub fn score_beside(
        &mut self,
        rows: &Rows<'_>,
        priors: Option<&[f32]>,
        scores: &mut [f32],
    ) -> Result<(), PolicyError> {
        let Rows {
            rows: candidates,
            width,
            context: global,
            mask,
            ..
        } = *rows;
        let layout = self.inference.layout();
        let (g, f) = (layout.num_global, layout.num_features);
        let (rows, found) = (mask.len(), global.len() + candidates.len());
        let is_wide = width >= f && global.len() >= g;
        if !is_wide || candidates.len() != width * rows || scores.len() != rows {
            let expected = g + f * rows;
            return Err(PolicyError::Shape { expected, found });
        }
        self.admissible.clear();
        self.priors.clear();
        let all = candidates.chunks_exact(width).enumerate();
        for (index, row) in all.filter(|(index, _)| mask[*index]) {
            self.admissible.extend_from_slice(&row[..f]);
            self.priors.push(priors.map_or(0.0, |priors| priors[index]));
        }
        let num_candidates = self.priors.len();
        self.logits.resize(num_candidates, 0.0);
        let row = DecisionRef {
            global: &global[..g],
            candidates: &self.admissible,
            num_candidates,
            prior: &self.priors,
        };
        self.inference.forward(row, &mut self.scratch, &mut self.logits);
        let mut logits = self.logits.iter();
        for (score, admissible) in scores.iter_mut().zip(mask) {
            *score = if *admissible {
                logits.next().copied().unwrap_or(f32::MIN)
            } else {
                f32::MIN
            };
        }
        PolicyError::check_finite(scores)
    }
}

impl Scorer for NetworkScorer {
    fn schema(&self) -> &'static FeatureSchema {
        self.schema
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.score_beside(&rows, None, scores)
    }
}

#[cfg(debug_assertions)]
#[cfg(test)]
mod tests {
    use pleach_scheduler::features::toy::{LEASE, LEASE_1, rows};
    use pleach_scheduler::observation::Spaces;
    use pleach_scheduler::policy::CandidateConfig;

    use super::*;
    use crate::LearnedPolicy;
    use crate::fixtures::{Numbers, trained};

    fn leases() -> TrainedNetwork {
        let spaces = Spaces::of(&LEASE_1, 6);
        let network = trained(spaces, LEASE.hash());
        let contract = Contract::over(&LEASE, spaces, CandidateConfig::default(), "leases");
        TrainedNetwork { contract, ..network }
    }

    fn scores(network: &TrainedNetwork, mask: &[bool; 6]) -> Vec<f32> {
        let mut numbers = Numbers(9);
        let rows = rows(|| numbers.next().abs());
        let rows = Rows {
            schema: &LEASE,
            rows: &rows,
            width: 5,
            context: &[0.75],
            mask,
        };
        let mut scores = vec![0.0; 6];
        let mut scorer = NetworkScorer::over(&LEASE, network).unwrap();
        assert_eq!(scorer.schema(), &LEASE);
        scorer.score_rows(rows, &mut scores).unwrap();
        scores
    }

    #[test]
    fn rows_of_another_schema_are_scored_before_and_after_its_files() {
        let network = leases();
        let folder = tempfile::tempdir().unwrap();
        let (own, onnx) = (
            folder.path().join("leases.ckpt"),
            folder.path().join("leases.onnx"),
        );
        network.save(&own).unwrap();
        std::fs::write(&onnx, network.to_onnx().unwrap()).unwrap();
        let mask = [true, true, false, true, true, true];
        let expected = scores(&network, &mask);
        assert_eq!(expected[2], f32::MIN);
        assert!(
            expected[0] != expected[1] && expected[1] != expected[3],
            "{expected:?}"
        );
        let back = TrainedNetwork::load(&own).unwrap();
        assert_eq!(
            (back.contract.rows.as_str(), scores(&back, &mask)),
            ("lease", expected.clone())
        );
        let through = TrainedNetwork::load(&onnx).unwrap();
        assert_eq!(through.contract, network.contract);
        for (ours, theirs) in expected.iter().zip(scores(&through, &mask)) {
            assert!(
                (ours - theirs).abs() <= 1e-5 * ours.abs().max(1.0),
                "{ours} {theirs}"
            );
        }
    }

    #[test]
    fn a_network_is_refused_where_rows_are_of_another_schema() {
        let refused = LearnedPolicy::from_network(&leases()).unwrap_err().to_string();
        assert!(
            refused.contains("lease") && refused.contains("decision"),
            "{refused}"
        );
        let decides = trained(Spaces::new(3, 9, 5), FeatureSchema::current().hash());
        let refused = NetworkScorer::over(&LEASE, &decides).unwrap_err().to_string();
        assert!(
            refused.contains("lease") && refused.contains("decision"),
            "{refused}"
        );
        let mut other = leases();
        other.contract.schema_hash = "abc".into();
        let refused = NetworkScorer::over(&LEASE, &other).unwrap_err().to_string();
        assert!(
            refused.contains("abc") && refused.contains("lease-1"),
            "{refused}"
        );
    }
}
