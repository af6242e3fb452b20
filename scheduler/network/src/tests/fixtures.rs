//! Networks and decisions for tests.

use pleach_scheduler::ActionKind;
use pleach_scheduler::observation::Spaces;
use pleach_scheduler::policy::CandidateConfig;

use crate::contract::Contract;
use crate::decision_batch::DecisionBatch;
use crate::normaliser::Normaliser;
use crate::parameters::{Layout, NetworkConfig};
use crate::policy_file::{Provenance, TrainedNetwork};

pub(crate) const PLAIN: Spaces = Spaces::new(3, 9, 5);
/// Without attention, and with some.
pub(crate) const HEADS: [usize; 2] = [0, 3];

/// Numbers from -1 to 1 that look drawn.
///
/// # Source
/// SplitMix64: Steele et al., OOPSLA'14.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as i64 as f32 / i64::MAX as f32
    }

    pub(crate) fn list(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.next()).collect()
    }
}

/// A network of hidden width 16 whose outputs and slopes are of size one everywhere.
pub(crate) fn network_of(spaces: Spaces, heads: usize) -> (Layout, Vec<f32>) {
    let config = NetworkConfig {
        hidden: 16,
        context: 24,
        heads,
        ..NetworkConfig::default()
    };
    let layout = Layout::new(config, spaces).unwrap();
    let parameters = parameters(&layout, 3);
    (layout, parameters)
}

/// Parameters of the variance 2 / inputs, and biases up to a half.
pub(crate) fn parameters(layout: &Layout, seed: u64) -> Vec<f32> {
    let mut numbers = Numbers(seed);
    let mut parameters = Vec::with_capacity(layout.num_parameters());
    for entry in &layout.entries {
        let bound = if entry.is_bias() {
            0.5
        } else {
            (6.0 / entry.shape[0] as f32).sqrt()
        };
        let drawn = numbers.list(entry.range.len());
        parameters.extend(drawn.iter().map(|number| bound * number));
    }
    parameters
}

/// Decisions of 1 to 9 candidates with priors.
pub(crate) fn decisions(spaces: Spaces, num_decisions: usize) -> DecisionBatch {
    let mut numbers = Numbers(5);
    let mut decisions = DecisionBatch::new(spaces);
    for decision in 0..num_decisions {
        let n = 1 + decision % spaces.num_candidates;
        let global = numbers.list(3);
        let (candidates, prior, mask) = (numbers.list(n * 5), numbers.list(n), vec![true; n]);
        decisions.push(&global, &candidates, &mask);
        decisions.set_prior(&prior, &mask);
    }
    decisions
}

/// A network with its contract, of another feature schema where `schema_hash` is one.
pub(crate) fn trained(spaces: Spaces, schema_hash: &str) -> TrainedNetwork {
    let mut candidates = CandidateConfig::default();
    candidates.actions = candidates.actions.without(ActionKind::Preempt);
    let contract = Contract {
        schema_hash: schema_hash.to_owned(),
        ..Contract::current(spaces, candidates, "a test")
    };
    let config = NetworkConfig {
        hidden: 8,
        context: 8,
        heads: 0,
        ..NetworkConfig::default()
    };
    let layout = Layout::new(config, spaces).unwrap();
    TrainedNetwork {
        config,
        contract,
        normaliser: Normaliser::default(),
        provenance: Provenance::default(),
        parameters: parameters(&layout, 7),
        graph: None,
    }
}
