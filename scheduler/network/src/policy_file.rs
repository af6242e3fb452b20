//! The network policy file: everything that deploys a trained network, and nothing that trains it.
//!
//! A [`Container`] with the magic `PLEACHNW`, version 2:
//!
//! ```text
//! header    JSON: sizes of the network, contract (feature schema, candidates, prior), scale of the value head, provenance,
//!           number of parameters, and the operators of an architecture that is not built in
//! f32 ...   parameters
//! ```
//!
//! A program that runs the network reads sizes, contract and parameters, and refuses a key of those that it does not know. The
//! provenance says where the network comes from, for people: keys of training in it may be renamed, added or taken out, and
//! nothing here depends on them. There is no optimiser in the file: what resumes a training is the training checkpoint of the
//! crate above.
//!
//! Version 1 was one format for both, `PLEACHCK`, which training checkpoints still have. Its network part is read too.

use std::path::Path;
use std::sync::Arc;

use pleach_scheduler::observation::Spaces;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::container::Container;
use crate::contract::Contract;
use crate::error::unfit;
use crate::graph::Graph;
use crate::normaliser::Normaliser;
use crate::parameters::{Layout, NetworkConfig};

/// What a network policy file begins with.
const MAGIC: [u8; 8] = *b"PLEACHNW";
/// Version of the format that is written.
const FORMAT_VERSION: u32 = 2;
/// Training checkpoints, whose network part is read: magic and version.
const TRAINING: ([u8; 8], u32) = (*b"PLEACHCK", 1);
/// Most numbers behind the lists of a training checkpoint.
const MEMORY_MAX: usize = 1 << 30;
/// How a name ends while its file is written.
const TEMPORARY_EXTENSION: &str = "ckpt.tmp";

/// A trained network with all that its use needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedNetwork {
    /// Sizes.
    pub config: NetworkConfig,
    /// What it sees, chooses among and corrects.
    pub contract: Contract,
    /// Scale of the value head; only a training that goes on from the network reads it.
    pub normaliser: Normaliser,
    /// Where it comes from.
    pub provenance: Provenance,
    /// All parameters, in [`Layout`]'s order.
    pub parameters: Vec<f32>,
    /// The operators of an architecture that is not built in.
    pub graph: Option<Arc<Graph>>,
}

/// Where a network comes from. Nothing is decided by it, and what a file leaves out has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// How it was learnt, as in the configuration: `ppo`, `evolution`.
    pub learner: String,
    /// Seed of the training.
    pub seed: u64,
    /// Updates made before this network.
    pub update: u64,
    /// Updates of the whole training.
    pub num_updates: u64,
    /// Environment steps made before this network.
    pub num_frames: u64,
    /// Its score in the training's evaluation, larger being better.
    pub best_score: Option<f64>,
    /// Settings of the training as they were written then.
    pub settings: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    network: NetworkConfig,
    contract: Contract,
    normaliser: Normaliser,
    provenance: Provenance,
    num_parameters: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph: Option<Graph>,
    /// Numbers that a training checkpoint has behind its lists.
    #[serde(skip)]
    num_memory: usize,
}

/// The layout of a network that comes with its operators, or of the built-in one.
fn layout_of(config: NetworkConfig, spaces: Spaces, graph: Option<&Graph>) -> Result<Layout, Error> {
    let Some(graph) = graph else {
        return Layout::new(config, spaces);
    };
    let (own, seen) = (
        (graph.num_context, graph.num_features),
        (spaces.num_global, spaces.num_features),
    );
    if own != seen {
        let text = |(g, f): (usize, usize)| format!("{g} global and {f} candidate features");
        return Err(unfit("observations of the network", text(seen), text(own)));
    }
    Layout::of_graph(config, graph.clone())
}

/// The network part of a training checkpoint; whatever else is in it is passed over.
#[derive(Deserialize)]
struct TrainingHeader {
    config: TrainingConfig,
    contract: Contract,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    update: u64,
    #[serde(default)]
    num_frames: u64,
    #[serde(default)]
    best_score: Option<f64>,
    normaliser: Normaliser,
    num_parameters: usize,
    #[serde(default)]
    num_memory: usize,
}

/// Settings of a training: the sizes of the network, and the rest as it was written.
#[derive(Deserialize)]
struct TrainingConfig {
    #[serde(default)]
    network: NetworkConfig,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl TrainingHeader {
    fn into_header(self) -> Header {
        let TrainingConfig { network, rest } = self.config;
        let learner = rest.get("learner").and_then(Value::as_str);
        Header {
            network,
            contract: self.contract,
            normaliser: self.normaliser,
            provenance: Provenance {
                learner: learner.unwrap_or_default().to_owned(),
                seed: self.seed,
                update: self.update,
                num_updates: rest.get("num_updates").and_then(Value::as_u64).unwrap_or(0),
                num_frames: self.num_frames,
                best_score: self.best_score,
                settings: Value::Object(rest),
            },
            num_parameters: self.num_parameters,
            graph: None,
            num_memory: self.num_memory,
        }
    }
}

impl TrainedNetwork {
    /// The names and places of its parameters.
    ///
    /// # Errors
    /// As [`Layout::new`] and [`Layout::of_graph`].
    pub fn layout(&self) -> Result<Layout, Error> {
        layout_of(self.config, self.contract.spaces, self.graph.as_deref())
    }

    /// Reads a network policy file, or the network part of a training checkpoint.
    ///
    /// # Errors
    /// An [`Error`] where it cannot be read; An [`Error`] where it is cut short, altered, of another version or does not
    /// fit itself.
    pub(crate) fn load_own(path: &Path) -> Result<TrainedNetwork, Error> {
        let opened = Container::open(path, &[(MAGIC, FORMAT_VERSION), TRAINING])?;
        let is_training = opened.magic == TRAINING.0;
        let refuse = |error: serde_json::Error| {
            let reason = format!("header: {error}; the file is damaged or of another version");
            Error::data(path, reason)
        };
        let header = match is_training {
            true => serde_json::from_slice(&opened.header).map(TrainingHeader::into_header),
            false => serde_json::from_slice::<Header>(&opened.header),
        };
        let header = header.map_err(refuse)?;
        let layout = layout_of(header.network, header.contract.spaces, header.graph.as_ref());
        let layout = layout.map_err(|error| Error::data(path, error))?;
        let (count, fits) = (header.num_parameters, layout.num_parameters());
        if count != fits {
            let reason = format!("{count} parameters in its header; the network has {fits}");
            return Err(Error::data(path, reason));
        }
        // A training checkpoint also holds two lists of the optimiser, and one of the network that plays where that is another,
        // or what its learner remembers.
        let num_lists = if is_training { [3, 4] } else { [1, 1] };
        let memory = header.num_memory.min(MEMORY_MAX);
        let container = opened.read(fits, num_lists[1] + memory.div_ceil(fits.max(1)))?;
        let held = container.num_numbers().unwrap_or(0);
        if !num_lists
            .into_iter()
            .any(|num_lists| held == num_lists * count + memory)
        {
            let reason = format!("{held} numbers, and the network has {fits} parameters");
            return Err(Error::data(path, reason));
        }
        let parameters: Vec<f32> = container.numbers().take(count).collect();
        if !parameters.iter().all(|number| number.is_finite()) {
            return Err(Error::data(path, "a parameter is not finite"));
        }
        Ok(TrainedNetwork {
            config: header.network,
            contract: header.contract,
            normaliser: header.normaliser,
            provenance: header.provenance,
            parameters,
            graph: header.graph.map(Arc::new),
        })
    }

    /// Writes the file under a temporary name, syncs it and renames it.
    ///
    /// # Errors
    /// An [`Error`] where the folder cannot be written; the old file is then as it was. An [`Error`] where a number has no
    /// JSON.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        Container::save(&self.to_bytes(path)?, path, TEMPORARY_EXTENSION)
    }

    fn to_bytes(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let header = Header {
            network: self.config,
            contract: self.contract.clone(),
            normaliser: self.normaliser,
            provenance: self.provenance.clone(),
            num_parameters: self.parameters.len(),
            graph: self.graph.as_deref().cloned(),
            num_memory: 0,
        };
        let header = serde_json::to_vec(&header).map_err(|error| Error::data(path, error))?;
        Ok(Container::encode(
            MAGIC,
            FORMAT_VERSION,
            &header,
            &[&self.parameters],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{PLAIN, trained};
    use serde_json::json;

    fn network() -> TrainedNetwork {
        let mut network = trained(PLAIN, "schema-a");
        network.normaliser.mean = -1.0e300 / 3.0;
        network.provenance.best_score = Some(0.1 + 0.2);
        network.provenance.settings = json!({"horizon_s": 1.0 / 3.0, "ppo": {"clip": 0.2}});
        network
    }

    /// The header of a training checkpoint, as this version's crate above writes it.
    fn training_header(network: &TrainedNetwork) -> Value {
        json!({
            "config": {"learner": "evolution", "num_updates": 9, "network": network.config, "ppo": {"clip": 0.2}},
            "contract": network.contract, "seed": 7, "update": 3, "num_frames": 50, "best_score": null,
            "adam_num_steps": 4, "normaliser": network.normaliser, "num_parameters": network.parameters.len(),
        })
    }

    fn training_bytes(header: &Value, network: &TrainedNetwork, num_lists: usize) -> Vec<u8> {
        let lists = vec![network.parameters.as_slice(); num_lists];
        Container::encode(TRAINING.0, TRAINING.1, header.to_string().as_bytes(), &lists)
    }

    #[test]
    fn what_is_loaded_is_what_was_saved_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let (path, saved) = (folder.path().join("a.ckpt"), network());
        saved.save(&path).unwrap();
        assert_eq!(TrainedNetwork::load_own(&path).unwrap(), saved);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn damaged_short_foreign_and_newer_files_are_refused_and_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ckpt");
        let good = network().to_bytes(&path).unwrap();
        let reason = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            TrainedNetwork::load_own(&path).unwrap_err().to_string()
        };
        for length in [0, 5, 15, 40, good.len() / 2, good.len() - 1] {
            assert!(reason(&good[..length]).contains("cut short"), "{length}");
        }
        for byte in [25, good.len() / 2, good.len() - 1] {
            let mut damaged = good.clone();
            damaged[byte] ^= 1;
            assert!(reason(&damaged).contains("damaged"), "{byte}");
        }
        let mut newer = good.clone();
        newer[8] = 3;
        assert!(reason(&newer).contains("format version 3; this program reads version 2"));
        let said = reason(b"{\"weights\": []}");
        assert!(
            said.contains("not a checkpoint") && said.contains("PLEACHNW or PLEACHCK"),
            "{said}"
        );
        let none = TrainedNetwork::load_own(&folder.path().join("none"));
        assert!(none.is_err_and(|error| error.system().is_some()));
    }

    #[test]
    fn a_network_of_another_size_than_its_parameters_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ckpt");
        let mut wrong = network();
        wrong.parameters.pop();
        wrong.save(&path).unwrap();
        let said = TrainedNetwork::load_own(&path).unwrap_err().to_string();
        assert!(said.contains("the network has"), "{said}");
        let mut wrong = network();
        wrong.parameters[0] = f32::NAN;
        wrong.save(&path).unwrap();
        let said = TrainedNetwork::load_own(&path).unwrap_err().to_string();
        assert!(said.contains("not finite"), "{said}");
    }

    #[test]
    fn a_header_that_asks_for_more_than_a_network_has_costs_no_more_than_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (path, network) = (folder.path().join("network.ckpt"), network());
        let refused = |header: &Value| {
            let bytes = Container::encode(TRAINING.0, TRAINING.1, header.to_string().as_bytes(), &[]);
            std::fs::write(&path, bytes).unwrap();
            // A body of 5 GB that takes no room on the disk.
            std::fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(5 << 30)
                .unwrap();
            TrainedNetwork::load_own(&path).unwrap_err().to_string()
        };
        let mut header = training_header(&network);
        header["num_parameters"] = json!(1 << 28);
        let said = refused(&header);
        assert!(
            said.contains("268435456 parameters in its header; the network has"),
            "{said}"
        );
        // Nor does one whose network would have as many.
        header["config"]["network"] = json!({"hidden": 256, "context": 8, "heads": 0});
        header["contract"]["spaces"]["num_features"] = json!(1 << 20);
        let said = refused(&header);
        assert!(said.contains("1 to 8192 features"), "{said}");
    }

    #[test]
    fn the_network_of_a_training_checkpoint_is_read_whatever_its_training_keys_are_called() {
        let folder = tempfile::tempdir().unwrap();
        let (path, network) = (folder.path().join("a.ckpt"), network());
        let mut header = training_header(&network);
        header["config"]["a_key_of_tomorrow"] = json!({"x": 1});
        header["config"]["ppo"] = json!({"clip_range": [0.1, 0.3], "gradients": "burn"});
        header["another_key"] = json!(true);
        for num_lists in [3, 4] {
            std::fs::write(&path, training_bytes(&header, &network, num_lists)).unwrap();
            let read = TrainedNetwork::load_own(&path).unwrap();
            assert_eq!(
                (&read.parameters, &read.contract, read.config, read.normaliser),
                (
                    &network.parameters,
                    &network.contract,
                    network.config,
                    network.normaliser
                )
            );
            let provenance = &read.provenance;
            assert_eq!(
                (provenance.learner.as_str(), provenance.num_updates),
                ("evolution", 9)
            );
            assert_eq!(
                (provenance.seed, provenance.update, provenance.num_frames),
                (7, 3, 50)
            );
            assert_eq!(provenance.settings["ppo"]["gradients"], "burn");
            // Written again it is a network policy file, with the same content.
            read.save(&path).unwrap();
            assert_eq!(TrainedNetwork::load_own(&path).unwrap(), read);
        }
        std::fs::write(&path, training_bytes(&header, &network, 2)).unwrap();
        let said = TrainedNetwork::load_own(&path).unwrap_err().to_string();
        assert!(said.contains("the network has"), "{said}");
    }

    #[test]
    fn provenance_may_change_its_keys_and_what_decides_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let (path, network) = (folder.path().join("a.ckpt"), network());
        let header = json!({
            "network": network.config, "contract": network.contract, "normaliser": network.normaliser,
            "provenance": {"settings": {"renamed": 1}, "commit": "abc"}, "num_parameters": network.parameters.len(),
        });
        let write = |header: &Value| {
            let lists = [network.parameters.as_slice()];
            let bytes = Container::encode(MAGIC, FORMAT_VERSION, header.to_string().as_bytes(), &lists);
            std::fs::write(&path, bytes).unwrap();
            TrainedNetwork::load_own(&path)
        };
        let read = write(&header).unwrap();
        assert_eq!(read.provenance.settings, json!({"renamed": 1}));
        assert_eq!(read.parameters, network.parameters);
        for (part, key) in [("contract", "sees_the_future"), ("network", "layers")] {
            let mut header = header.clone();
            header[part][key] = json!(true);
            let said = write(&header).unwrap_err().to_string();
            assert!(said.contains(key), "{said}");
        }
    }
}
