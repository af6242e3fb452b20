//! Trainings of large models in the sidecar: a model, a number of GPUs and a batch, from which the class follows.
//!
//! ```toml
//! [[trainings]]
//! name = "pre-training 70B"
//! model = "llama-70b"
//! num_gpus = 256
//! batch = 1024
//! ```

use pleach_scheduler::ConfigError;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use serde::Deserialize;

use crate::plans::{Gang, Model, Plan, Trained, Training, class_of};

/// A training as it is written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrainingEntry {
    /// Name of the class.
    name: String,
    /// A model of [`crate::plans::MODELS`].
    model: String,
    /// GPUs that its jobs ask for.
    num_gpus: u32,
    /// Sequences of a step.
    batch: u32,
    /// Tokens of a sequence; the model's own where absent.
    sequence: Option<u32>,
    /// What of the model is trained.
    #[serde(default)]
    trained: Word,
    /// How it is cut; on each type by the fastest plan that fits where absent.
    plan: Option<Plan>,
    /// What a loose placement costs where the cluster has no fabric.
    locality: Option<LocalityFactors>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    #[default]
    All,
    Adapters,
}

/// Longest sequence and largest batch that are believed.
const COUNT_MAX: u32 = 1 << 24;
/// Most GPUs of a training.
const NUM_GPUS_MAX: u32 = 1 << 17;

impl TrainingEntry {
    /// GPUs that jobs of the class may ask for.
    pub(super) fn num_gpus(&self) -> u32 {
        self.num_gpus
    }

    /// Name of the class.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The class on this cluster.
    ///
    /// # Errors
    /// A model that is not known, a number out of range, a plan that cuts unevenly, and what fits no GPU.
    pub(super) fn class(&self, cluster: &ClusterSpec) -> Result<ModelClass, ConfigError> {
        let model = Model::from_name(&self.model)?;
        let sequence = self.sequence.unwrap_or(model.sequence);
        for (key, value, most) in [
            ("num_gpus", self.num_gpus, NUM_GPUS_MAX),
            ("batch", self.batch, COUNT_MAX),
            ("sequence", sequence, COUNT_MAX),
        ] {
            if !(1..=most).contains(&value) {
                let hint = "batch in sequences, sequence in tokens";
                return Err(ConfigError::new(key, value, format!("1 to {most}"), hint));
            }
        }
        let training = Training {
            trained: match self.trained {
                Word::All => Trained::All,
                Word::Adapters => Trained::Adapters,
            },
            sequence,
            ..Training::all(model, self.batch)
        };
        let gang = Gang {
            training,
            num_gpus: self.num_gpus,
            plan: self.plan,
        };
        Ok(ModelClass {
            locality: self.locality.unwrap_or(LocalityFactors::NONE),
            ..class_of(&self.name, &gang, cluster)?
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::Workload;
    use crate::import::{ImportOptions, import};

    const CLUSTER: &str = "[cluster]\nfabric = \"hgx-h100-ndr\"\n\
        gpu_types = [{ name = \"H100\", memory_gib = 80.0 }]\n\
        node_groups = [{ count = 16, gpus_per_node = 8, gpu_type = \"H100\", nodes_per_rack = 8 }]\n\
        tenants = [{ name = \"all\", quota_gpus = 128 }]\n";
    const TRAINING: &str =
        "[[trainings]]\nname = \"tuning\"\nmodel = \"llama-8b\"\nnum_gpus = 16\nbatch = 64\n";

    fn read(jobs: &str, sidecar: &str) -> Result<Workload, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        fs::write(&path, jobs).unwrap();
        fs::write(folder.path().join("list.cluster.toml"), sidecar).unwrap();
        let read = import(&path, &ImportOptions::default());
        read.map(|(workload, _)| workload)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_training_becomes_a_class_and_is_written_as_one() {
        let jobs = "submit_s,num_gpus,run_time_s,class\n0,16,3600,tuning\n5,16,60,tuning\n";
        let workload = read(jobs, &format!("{CLUSTER}{TRAINING}")).unwrap();
        let class = &workload.classes[0];
        assert_eq!(
            (class.name.as_str(), class.speed.as_slice()),
            ("tuning", [1.0].as_slice())
        );
        assert!(class.step.is_some() && class.state_gib > 100.0 && class.gpu_memory_gib > 10.0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("again.csv");
        workload.write(&path).unwrap();
        let (again, _) = import(&path, &ImportOptions::default()).unwrap();
        assert_eq!(workload, again);
    }

    #[test]
    fn what_fits_no_gpu_is_named_with_file_line_key_what_fits_and_the_fix() {
        let jobs = "submit_s,num_gpus,run_time_s\n0,16,3600\n";
        let lines = CLUSTER.lines().count() + 1;
        let change = |from: &str, to: &str| format!("{CLUSTER}{}", TRAINING.replace(from, to));
        let plan = |text: &str| format!("{CLUSTER}{TRAINING}plan = {{ {text} }}\n");
        for (sidecar, parts) in [
            (
                change("num_gpus = 16", "num_gpus = 1"),
                [
                    "column num_gpus",
                    "1 for llama-8b",
                    "H100 with 80 GiB: 2, 4, 8, 16, 32",
                    "take more GPUs",
                ],
            ),
            (
                plan("tensor = 1, zero = 0"),
                ["column plan", "GB on each of 16 GPUs", "2, 4, 8", "recompute"],
            ),
            (
                plan("tensor = 3"),
                ["column plan.tensor", "= 3", "a divisor of the 32 heads", "usual"],
            ),
            (
                change("llama-8b", "llama-8"),
                [
                    "column plan.model",
                    "llama-8",
                    "llama-70b",
                    "did you mean llama-8b?",
                ],
            ),
            (
                change("batch = 64", "batch = 0"),
                ["column batch", "= 0", "1 to 16777216", "in sequences"],
            ),
        ] {
            let error = read(jobs, &sidecar).unwrap_err();
            assert!(
                error.contains("list.cluster.toml") && error.contains(&format!("line {lines}")),
                "{error}"
            );
            for part in parts {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
        let jobs = "submit_s,num_gpus,run_time_s,class\n0,8,3600,tuning\n";
        let error = read(jobs, &format!("{CLUSTER}{TRAINING}")).unwrap_err();
        for part in [
            "list.csv",
            "line 2",
            "column num_gpus",
            "16, the GPUs of tuning",
            "[[trainings]]",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
