//! Trainings of large models in the sidecar: a model, a number of GPUs and a batch, from which the class follows.
//!
//! ```toml
//! [[trainings]]
//! name = "pre-training 70B"
//! model = "llama-70b"
//! num_gpus = 256
//! batch = 1024
//! ```

use pleach_scheduler::Problem;
use pleach_scheduler::cluster_spec::{ClusterSpec, ElasticJob, LocalityFactors, ModelClass};
use pleach_scheduler::physics::sizes::Sizes;
use serde::Deserialize;

use crate::plans::{Gang, Model, Plan, Precision, Trained, Training, class_of, elastic_of};

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
    /// What its matrices compute in.
    #[serde(default)]
    precision: Precision,
    /// How it is cut; on each type by the fastest plan that fits where absent.
    plan: Option<Plan>,
    /// Numbers of GPUs on which its jobs may run, `num_gpus` among them; those without a plan are left out. None: only that.
    #[serde(default)]
    sizes: Vec<u32>,
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
    /// Whether jobs of the class may ask for so many GPUs.
    pub(super) fn can_ask(&self, num_gpus: u32, class: &ModelClass) -> bool {
        num_gpus == self.num_gpus || class.elastic.is_some_and(|elastic| elastic.can_hold(num_gpus))
    }

    /// What jobs of the class may ask for.
    pub(super) fn allowed(&self) -> String {
        let mut sizes: Vec<u32> = self.sizes.clone();
        sizes.push(self.num_gpus);
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        format!("{}, the GPUs of {}", sizes.join(", "), self.name)
    }

    /// The class on this cluster.
    ///
    /// # Errors
    /// A model that is not known, a number out of range, a plan that cuts unevenly, and what fits no GPU.
    pub(super) fn class(&self, cluster: &ClusterSpec) -> Result<ModelClass, Problem> {
        let model = Model::from_name(&self.model)?;
        let sequence = self.sequence.unwrap_or(model.sequence);
        for (key, value, most) in [
            ("num_gpus", self.num_gpus, NUM_GPUS_MAX),
            ("batch", self.batch, COUNT_MAX),
            ("sequence", sequence, COUNT_MAX),
        ] {
            Problem::refuse_if(
                !(1..=most).contains(&value),
                key,
                value,
                format_args!("1 to {most}"),
                "batch in sequences, sequence in tokens",
            )?;
        }
        let training = Training {
            trained: match self.trained {
                Word::All => Trained::All,
                Word::Adapters => Trained::Adapters,
            },
            sequence,
            precision: self.precision,
            ..Training::all(model, self.batch)
        };
        let gang = Gang {
            training,
            num_gpus: self.num_gpus,
            plan: self.plan,
        };
        let class = class_of(&self.name, &gang, cluster)?;
        Ok(ModelClass {
            locality: self.locality.unwrap_or(LocalityFactors::NONE),
            elastic: self.elastic(&training, &class, cluster)?,
            ..class
        })
    }

    fn elastic(
        &self,
        training: &Training,
        class: &ModelClass,
        cluster: &ClusterSpec,
    ) -> Result<Option<ElasticJob>, Problem> {
        if self.sizes.is_empty() {
            return Ok(None);
        }
        let refuse =
            |value: String, allowed: &str, hint: &str| Err(Problem::new("sizes", value, allowed, hint));
        let value = format!("{:?}", self.sizes);
        if self.plan.is_some() {
            let hint = "leave out plan: each size has its best";
            return refuse(value, "none where a plan is given", hint);
        }
        let mut wanted = self.sizes.clone();
        wanted.push(self.num_gpus);
        wanted.sort_unstable();
        wanted.dedup();
        let (few, most) = (wanted.len() <= Sizes::NUM_MAX, wanted.iter().max());
        if !few || wanted.contains(&0) || most.is_some_and(|most| *most > NUM_GPUS_MAX) {
            let allowed = format!("at most {} numbers from 1 to {NUM_GPUS_MAX}", Sizes::NUM_MAX);
            return refuse(value, &allowed, "for example [128, 256, 512]");
        }
        elastic_of(training, self.num_gpus, &wanted, class, cluster)
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
    fn sizes_with_a_plan_make_it_elastic_at_the_rates_of_their_best_plans() {
        let jobs = "submit_s,num_gpus,run_time_s,class\n0,16,3600,tuning\n5,32,60,tuning\n";
        // One GPU of 80 GB does not hold it, 12 do not share out the heads and the batch; both are left out.
        let sidecar = format!("{CLUSTER}{TRAINING}sizes = [1, 8, 32, 64]\n");
        let workload = read(jobs, &sidecar).unwrap();
        let elastic = workload.classes[0].elastic.unwrap();
        let rate = |num_gpus: u32| elastic.profile.goodput(num_gpus, 1, 1.0);
        assert_eq!((elastic.gpus_max, rate(4), rate(16)), (64, 0.0, 1.0));
        assert!(rate(8) > 0.5 && rate(8) < 0.6, "{}", rate(8));
        assert!(
            rate(32) < 2.0 && rate(64) < 2.0 * rate(32),
            "{} {}",
            rate(32),
            rate(64)
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("again.csv");
        workload.write(&path).unwrap();
        let text = fs::read_to_string(folder.path().join("again.cluster.toml")).unwrap();
        assert!(text.contains("sizes = [["), "{text}");
        assert_eq!(import(&path, &ImportOptions::default()).unwrap().0, workload);
        let error = read(&jobs.replace("5,32", "5,24"), &sidecar).unwrap_err();
        assert!(error.contains("1, 8, 16, 32, 64, the GPUs of tuning"), "{error}");
        let planned = format!("{sidecar}plan = {{ tensor = 8 }}\n");
        let error = read(jobs, &planned).unwrap_err();
        assert!(
            error.contains("column sizes") && error.contains("leave out plan"),
            "{error}"
        );
        let error = read(jobs, &sidecar.replace("[1,", "[0,")).unwrap_err();
        assert!(
            error.contains("column sizes") && error.contains("at most 16"),
            "{error}"
        );
    }

    #[test]
    fn eight_bits_compute_faster_and_an_unknown_number_of_them_or_a_gpu_without_is_refused() {
        let jobs = "submit_s,num_gpus,run_time_s,class\n0,16,3600,tuning\n";
        let with = |line: &str| read(jobs, &format!("{CLUSTER}{TRAINING}{line}\n"));
        let seconds = |line: &str| with(line).unwrap().classes[0].step.unwrap().compute_s;
        assert_eq!(seconds(""), seconds("precision = \"bf16\""));
        assert!(seconds("precision = \"fp8\"") < 0.75 * seconds(""));
        let error = with("precision = \"int1\"").unwrap_err();
        assert!(error.contains("int1") && error.contains("mxfp8"), "{error}");
        let error = with("precision = \"nvfp4\"").unwrap_err();
        assert!(error.contains("H100: its peak in this precision"), "{error}");
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
        let error = read(jobs, &format!("{CLUSTER}{}", TRAINING.repeat(1001))).unwrap_err();
        assert!(
            error.contains("trainings = 1001") && error.contains("at most 1000"),
            "{error}"
        );
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
