//! Model classes: jobs that run at the same relative speeds, and what they ask of the hardware besides GPUs.

use serde::{Deserialize, Serialize};

use super::{AllowedNodes, ClusterSpec, NUM_GPUS_MAX, Tasks, is_name};
use crate::physics::goodput::Elastic;
use crate::physics::links::StepCost;
use crate::physics::mixed::Fusion;
use crate::physics::pace::Pace;
use crate::physics::sensitivity::Sensitivity;
use crate::physics::sizes::Sizes;
use crate::problem::Problem;
use crate::settings;
use crate::settings::{Above, Own, OwnOrNone, Settings as _};

settings! {
    /// Jobs that run at the same relative speeds on the hardware (a model family).
    #[derive(Clone, Debug, PartialEq)]
    pub struct ModelClass: required {
        /// Name, for example `ResNet-50`.
        pub name: String;
        /// Speed on each GPU type, 1 = the reference type; 0 = cannot run there, else 1e-6 to 1e6. `[num_gpu_types]`
        pub speed: Vec<f64>;
        /// What a loose placement costs; nothing where a file does not say.
        #[serde(default = "no_cost")]
        pub locality: LocalityFactors, in Own;
        /// What a step computes and sends; with it, and where the cluster has a fabric, the links decide the cost of a loose
        /// placement instead of [`ModelClass::locality`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub step: Option<StepCost>, in OwnOrNone;
        /// How its jobs run on other numbers of GPUs than they ask for; none: they do not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub elastic: Option<ElasticJob>;
        /// Weights and optimiser state, GiB; what a checkpoint writes and a restart reads.
        #[serde(default, skip_serializing_if = "super::is_zero")]
        pub state_gib: f64, in 0.0..=1e6;
        /// Memory that a job needs on each of its GPUs, GiB, framework included, where it does not say so itself; 0 = not known.
        #[serde(default, skip_serializing_if = "super::is_zero")]
        pub gpu_memory_gib: f64, in 0.0..=1e6;
        /// Host memory that a job needs for each of its GPUs, GiB; 0 = not known. It reserves none: two jobs share a GPU of a cluster that
        /// guards its sharing only where both fit into the GPU's part of the node's memory.
        #[serde(default, skip_serializing_if = "super::is_zero")]
        pub host_memory_gib: f64, in 0.0..=1e6;
        /// Work between two checkpoints of its jobs, in seconds of the reference run; none: the cluster's, or they write none. Counts
        /// where the cluster's `class_checkpoints` is on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub checkpoint_interval_s: Option<f64>, in Above(0.0, 1e10);
        /// From imports that are done to the first step at full speed, s: data pipeline, compilation; 0 to 86,400. Part of a start by
        /// class ([`crate::physics::overheads::Overheads::ByClass`]).
        #[serde(default, skip_serializing_if = "super::is_zero")]
        pub warm_up_s: f64, in 0.0..=86_400.0;
        /// Time that a restart costs, s, where it is not the cluster's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub restart_cost_s: Option<f64>, in 0.0..=1e6;
        /// How busy a job keeps a GPU that it has alone; decides how it fares beside others.
        #[serde(default, skip_serializing_if = "Load::is_default")]
        pub load: Load, in Own;
        /// What CPU, memory and storage do to its speed, where the nodes' are modelled; none: nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sensitivity: Option<Sensitivity>;
        /// How its jobs run when they are fused into one program: jobs of one GPU, of this class, on the same GPU of a cluster
        /// that shares. None: they cannot be fused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fusion: Option<Fusion>, in OwnOrNone;
    }
}

/// An elastic job: any number of GPUs from one on, at its goodput there.
///
/// In files `gpus_max` with either `profile`, throughput and statistical efficiency (Pollux, OSDI'21), or `sizes`, the rate by
/// number of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ElasticFile", into = "ElasticFile")]
pub struct ElasticJob {
    /// Most GPUs that it may hold, 1 to [`NUM_GPUS_MAX`].
    pub gpus_max: u32,
    /// What gives it its rate.
    pub profile: Pace,
}

/// An elastic job as files have it.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ElasticFile {
    gpus_max: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<Elastic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sizes: Option<Sizes>,
}

impl From<ElasticJob> for ElasticFile {
    fn from(job: ElasticJob) -> ElasticFile {
        let (profile, sizes) = match job.profile {
            Pace::Goodput(elastic) => (Some(elastic), None),
            Pace::Sizes(sizes) => (None, Some(sizes)),
        };
        ElasticFile {
            gpus_max: job.gpus_max,
            profile,
            sizes,
        }
    }
}

impl TryFrom<ElasticFile> for ElasticJob {
    type Error = Problem;

    fn try_from(file: ElasticFile) -> Result<ElasticJob, Problem> {
        let profile = match (file.profile, file.sizes) {
            (Some(elastic), None) => Pace::Goodput(elastic),
            (None, Some(sizes)) => Pace::Sizes(sizes),
            (found, _) => {
                let value = if found.is_some() {
                    "profile and sizes"
                } else {
                    "neither profile nor sizes"
                };
                let hint =
                    "profile for a data-parallel job that chooses its batch, sizes for a table of rates";
                return Err(Problem::new("elastic", value, "one of profile and sizes", hint));
            }
        };
        Ok(ElasticJob {
            gpus_max: file.gpus_max,
            profile,
        })
    }
}

impl ElasticJob {
    /// Whether its batch can be shared out over so many GPUs.
    #[must_use]
    pub fn can_hold(&self, num_gpus: u32) -> bool {
        num_gpus <= self.gpus_max && self.profile.can_run_on(num_gpus)
    }
}

settings! {
    /// How busy a job keeps a GPU that it has alone.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Load: required {
        /// Part of the time in which it uses the GPU, (0, 1].
        pub utilisation: f64, in Above(0.0, 1.0);
        /// Part of the memory bandwidth that it uses, [0, 1].
        pub bandwidth: f64, in 0.0..=1.0;
    }
}

impl Load {
    #[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
    fn is_default(&self) -> bool {
        *self == Load::default()
    }
}

impl Default for Load {
    /// A heavy job.
    ///
    /// # Source
    /// Mean of the jobs that Lucid (ASPLOS'23) labels heavy: utilisation 83 %, bandwidth 55 %.
    fn default() -> Load {
        Load {
            utilisation: 0.83,
            bandwidth: 0.55,
        }
    }
}

fn no_cost() -> LocalityFactors {
    LocalityFactors::NONE
}

impl Default for ModelClass {
    fn default() -> ModelClass {
        ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality: LocalityFactors::NONE,
            step: None,
            elastic: None,
            state_gib: 0.0,
            gpu_memory_gib: 0.0,
            host_memory_gib: 0.0,
            checkpoint_interval_s: None,
            warm_up_s: 0.0,
            restart_cost_s: None,
            load: Load::default(),
            sensitivity: None,
            fusion: None,
        }
    }
}

settings! {
    /// Rate multipliers of a gang that is placed less tightly than it could be; 1 = no loss.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LocalityFactors: required {
        /// On more nodes than the gang needs, within one rack. 0.001 to 1
        pub more_nodes: f64, in 1e-3..=1.0;
        /// Across racks although one rack could hold the gang. 0.001 to 1
        pub cross_rack: f64, in 1e-3..=1.0;
    }
}

impl LocalityFactors {
    /// No loss at all.
    pub const NONE: LocalityFactors = LocalityFactors {
        more_nodes: 1.0,
        cross_rack: 1.0,
    };
    /// # Source
    /// Philly (ATC'19) table 4: a 2-GPU ResNet-50 on two servers runs at 98.0 / 114.8 = 0.854 of one server; table 5:
    /// the mean utilisation of 16-GPU jobs falls from 43.66 % on 2 servers to 28.56 % on 8, that is to 0.65.
    pub const PHILLY: LocalityFactors = LocalityFactors {
        more_nodes: 0.854,
        cross_rack: 0.65,
    };
}

/// What a job asks for besides the number of its GPUs. Everything but its tasks is per GPU of the gang.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// Share of each GPU in thousandths, 1 to 1000; 1000 = the whole GPU.
    pub gpu_milli: u16,
    /// GPU memory, GiB; 0 = not known. Two jobs share a GPU only where their memory fits together.
    pub gpu_memory_gib: f64,
    /// CPU cores; 0 = none reserved.
    pub cpu_cores: f64,
    /// Host memory, GiB; 0 = none reserved.
    pub memory_gib: f64,
    /// How the gang is cut into tasks.
    #[serde(skip_serializing_if = "Tasks::is_any")]
    pub tasks: Tasks,
    /// The nodes that it may have.
    #[serde(skip_serializing_if = "AllowedNodes::is_all")]
    pub nodes: AllowedNodes,
}

impl Resources {
    /// A whole GPU and nothing else.
    pub const WHOLE_GPU: Resources = Resources {
        gpu_milli: 1000,
        gpu_memory_gib: 0.0,
        cpu_cores: 0.0,
        memory_gib: 0.0,
        tasks: Tasks::ANY,
        nodes: AllowedNodes::ALL,
    };

    /// Whether the job asks for less than whole GPUs.
    #[must_use]
    pub fn is_fractional(&self) -> bool {
        self.gpu_milli < 1000
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key out of its range, named `PREFIX.key`.
    pub fn validate(&self, prefix: impl std::fmt::Display) -> Result<(), Problem> {
        let bad = |key: &str, value: String, allowed: &str, hint: &str| {
            Err(Problem::new(format!("{prefix}.{key}"), value, allowed, hint))
        };
        if !(1..=1000).contains(&self.gpu_milli) {
            let hint = "1000 is a whole GPU; give gangs whole GPUs by num_gpus";
            return bad("gpu_milli", self.gpu_milli.to_string(), "1 to 1000", hint);
        }
        for (key, value) in [
            ("gpu_memory_gib", self.gpu_memory_gib),
            ("cpu_cores", self.cpu_cores),
            ("memory_gib", self.memory_gib),
        ] {
            if !(0.0..=1e6).contains(&value) {
                let hint = "per GPU of the gang; 0 reserves none";
                return bad(key, value.to_string(), "0 to 1e6", hint);
            }
        }
        self.tasks.validate(format_args!("{prefix}.tasks"))
    }
}

impl Default for Resources {
    fn default() -> Resources {
        Resources::WHOLE_GPU
    }
}

impl ClusterSpec {
    /// Checks a model class against this cluster.
    ///
    /// # Errors
    /// As [`ClusterSpec::validate`].
    pub fn validate_class(&self, class: &ModelClass) -> Result<(), Problem> {
        let bad = |key: &str, value: String, allowed: &str| {
            Err(Problem::new(
                format!("classes.{}.{key}", class.name),
                value,
                allowed,
                "one speed per GPU type, 1 = the reference type, 0 = cannot run there",
            ))
        };
        if class.speed.len() != self.gpu_types.len() {
            let allowed = format!("{} entries, one per GPU type", self.gpu_types.len());
            return bad("speed", format!("{} entries", class.speed.len()), &allowed);
        }
        if class
            .speed
            .iter()
            .any(|speed| *speed != 0.0 && !(1e-6..=1e6).contains(speed))
        {
            return bad(
                "speed",
                format!("{:?}", class.speed),
                "0 for never, else numbers from 1e-6 to 1e6",
            );
        }
        if class.speed.iter().all(|speed| *speed == 0.0) {
            return bad(
                "speed",
                format!("{:?}", class.speed),
                "at least one speed above 0",
            );
        }
        class.check_at(&format!("classes.{}", class.name), "")?;
        if let Some(elastic) = &class.elastic {
            elastic.profile.validate()?;
            if !(1..=NUM_GPUS_MAX).contains(&u64::from(elastic.gpus_max)) {
                return bad("elastic.gpus_max", elastic.gpus_max.to_string(), "1 to 4,000,000");
            }
        }
        if let Some(sensitivity) = &class.sensitivity {
            sensitivity.validate()?;
        }
        if !is_name(&class.name) {
            return bad(
                "name",
                format!("{:?}", class.name),
                "1 to 256 printable characters",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elastic_jobs_are_written_by_profile_or_sizes_and_refused_with_both_or_neither() {
        let sizes = Sizes::new(&[(8, 1.0), (16, 1.9)]).unwrap();
        for profile in [Pace::Goodput(Elastic::proportional(2)), Pace::Sizes(sizes)] {
            let job = ElasticJob {
                gpus_max: 16,
                profile,
            };
            let text = toml::to_string(&job).unwrap();
            assert_eq!(text.contains("sizes"), profile == Pace::Sizes(sizes), "{text}");
            assert_eq!(toml::from_str::<ElasticJob>(&text).unwrap(), job);
        }
        for (text, part) in [
            ("gpus_max = 8", "neither profile nor sizes"),
            ("gpus_max = 8\nsizes = [[8, 1.0], [4, 2.0]]", "4 behind 8"),
            ("gpus_max = 8\nsize = [[8, 1.0]]", "unknown field `size`"),
        ] {
            let error = toml::from_str::<ElasticJob>(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
