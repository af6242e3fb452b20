//! Networks in ONNX files: those of other programs to decide here, and ours for other programs.
//!
//! A file of another program says what it reads by its inputs alone ([`graph`](crate::graph)), and decides among plain starts. With
//! a remark `contract` (`metadata_props`), which our own files have, it says the rest as a network policy file does.

use std::path::Path;
use std::sync::Arc;

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::observation::Spaces;
use pleach_scheduler::policy::CandidateConfig;
use pleach_scheduler::problem::files;

use crate::Error;
use crate::contract::Contract;
use crate::error::unfit;
use crate::graph::{self, set_operators};
use crate::normaliser::Normaliser;
use crate::parameters::{Layout, NetworkConfig};
use crate::policy_file::{Provenance, TrainedNetwork};

/// Largest file that is read, bytes: 16 million parameters. *Assumed.*
const BYTES_MAX: u64 = 1 << 26;
/// The first byte of an ONNX file: the tag of its version.
pub const FIRST_BYTE: u8 = 0x08;
/// Key of the remark that holds the contract.
const CONTRACT: &str = "contract";
/// Candidates of a decision where the file does not say: the simulator's most.
const NUM_CANDIDATES: usize = 64;

/// Reads a network.
///
/// # Errors
/// An [`Error`] where it cannot be read; An [`Error`] where it is too large, no ONNX model that can be run, or reads other
/// numbers than this program's observations have.
pub(crate) fn load(path: &Path) -> Result<TrainedNetwork, Error> {
    let file = std::fs::File::open(path).map_err(Error::unread(path))?;
    let bytes = files::at_most(file, BYTES_MAX)
        .map_err(Error::unread(path))?
        .ok_or_else(|| Error::data(path, format!("larger than {BYTES_MAX} bytes")))?;
    let folder = path.parent().map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    read(&bytes, folder).map_err(|error| Error::data(path, format!("{error:#}")))
}

fn read(bytes: &[u8], folder: Option<&Path>) -> Result<TrainedNetwork, Error> {
    let (graph, parameters, remarks) = graph::from_onnx_in(bytes, folder)?;
    let remark = remarks.iter().find(|(key, _)| key == CONTRACT);
    let contract = match remark {
        Some((_, text)) => serde_json::from_str(text).map_err(|error| {
            Error::data(
                "the network's operators",
                format!("the remark {CONTRACT}: {error}"),
            )
        })?,
        None => {
            let spaces = Spaces::new(graph.num_context, NUM_CANDIDATES, graph.num_features);
            let views = FeatureSchema::current().views.iter();
            let shown: Vec<Spaces> = views.map(|view| Spaces::of(view, NUM_CANDIDATES)).collect();
            if !shown.contains(&spaces) {
                let text = |spaces: &Spaces| {
                    format!(
                        "{} global and {} candidate features",
                        spaces.num_global, spaces.num_features
                    )
                };
                let known: Vec<String> = shown.iter().map(text).collect();
                return Err(unfit(
                    "observations of the network",
                    known.join(" or "),
                    text(&spaces),
                ));
            }
            Contract::current(spaces, CandidateConfig::default(), "another program, in ONNX")
        }
    };
    let network = TrainedNetwork {
        config: NetworkConfig::default(),
        contract,
        normaliser: Normaliser::default(),
        provenance: Provenance::default(),
        parameters,
        graph: Some(Arc::new(graph)),
    };
    // Tries it: shapes that do not go together are found here and not in a decision.
    crate::Inference::new(&network.layout()?, &network.parameters)?;
    Ok(network)
}

impl TrainedNetwork {
    /// The network as an ONNX model with its contract as a remark. What it corrects (a prior) or leaves to a heuristic on standby
    /// is in the remark alone: the scores are the network's own.
    ///
    /// # Errors
    /// An [`Error`] where it does not fit itself.
    pub fn to_onnx(&self) -> Result<Vec<u8>, Error> {
        let spaces = self.contract.spaces;
        let own;
        let operators = match &self.graph {
            Some(graph) => graph,
            None => {
                Layout::new(self.config, spaces)?;
                own = Arc::new(set_operators(self.config, spaces.num_global, spaces.num_features));
                &own
            }
        };
        let contract = serde_json::to_string(&self.contract).unwrap_or_default();
        graph::to_onnx(operators, &self.parameters, &[(CONTRACT, contract)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision_batch::DecisionRef;
    use crate::fixtures::{parameters, trained};
    use crate::forward::Inference;

    fn outputs(network: &TrainedNetwork, row: DecisionRef<'_>) -> Vec<f32> {
        let inference = Inference::new(&network.layout().unwrap(), &network.parameters).unwrap();
        let mut scores = vec![0.0; row.num_candidates];
        let value = inference.forward(row, &mut inference.scratch(row.num_candidates), &mut scores);
        scores.into_iter().chain([value]).collect()
    }

    #[test]
    fn the_built_in_network_is_the_same_by_its_operators() {
        let spaces = Spaces::new(3, 64, 5);
        for heads in [0, 2] {
            let mut network = trained(spaces, FeatureSchema::current().hash());
            network.config.heads = heads;
            network.parameters = parameters(&network.layout().unwrap(), 3);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("network.onnx");
            std::fs::write(&path, network.to_onnx().unwrap()).unwrap();
            let back = TrainedNetwork::load(&path).unwrap();
            assert_eq!(back.contract, network.contract);
            let candidates: Vec<f32> = (0..20).map(|index| (index * 7 % 11) as f32 / 5.0 - 1.0).collect();
            let row = DecisionRef {
                global: &[0.25, -0.5, 1.0],
                candidates: &candidates,
                num_candidates: 4,
                prior: &[0.0, 0.5, 0.0, -1.0],
            };
            for (ours, theirs) in outputs(&network, row).iter().zip(outputs(&back, row)) {
                assert!(
                    (ours - theirs).abs() <= 1e-5 * ours.abs().max(1.0),
                    "{ours} {theirs}"
                );
            }
        }
    }

    #[test]
    fn a_model_that_reads_other_numbers_is_refused_with_both_sides() {
        let network = trained(Spaces::new(3, 64, 5), FeatureSchema::current().hash());
        let mut operators = set_operators(network.config, 3, 5);
        let bytes = |operators: &graph::Graph| graph::to_onnx(operators, &network.parameters, &[]).unwrap();
        let said = read(&bytes(&operators), None).unwrap_err().to_string();
        assert!(said.contains("found 3 global and 5 candidate features"), "{said}");
        operators.value = None;
        assert!(read(&bytes(&operators), None).is_err());
    }

    #[test]
    fn a_file_without_an_end_is_read_no_further_than_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.onnx");
        let file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut &file, &[FIRST_BYTE]).unwrap();
        file.set_len(5 << 30).unwrap();
        let said = TrainedNetwork::load(&path).unwrap_err().to_string();
        assert!(said.contains("larger than 67108864 bytes"), "{said}");
    }
}
