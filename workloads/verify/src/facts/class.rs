//! What a class of jobs says of its speed and of its starts, and what the links of a cluster say of theirs: keys of the description
//! as docs/workload-file.md has them.

use serde::Deserialize;

/// A class of jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Speed on each GPU type; 0: it cannot run there. `[num_gpu_types]`
    pub speed: Vec<f64>,
    /// What a loose placement costs where links do not say.
    #[serde(default)]
    pub locality: Locality,
    /// What a step computes and sends.
    pub step: Option<Step>,
    /// How its jobs run on other numbers of GPUs.
    pub elastic: Option<Elastic>,
    /// Speed by cores and memory.
    pub sensitivity: Option<Sensitivity>,
    /// How its jobs are fused.
    pub fusion: Option<Fusion>,
    /// State, GiB.
    #[serde(default)]
    pub state_gib: f64,
    /// From imports to full speed, s.
    #[serde(default)]
    pub warm_up_s: f64,
    /// What a restart costs, s, where it is not the cluster's.
    pub restart_cost_s: Option<f64>,
}

/// Rate on a loose placement over the tightest.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Locality {
    /// More nodes than needed.
    pub more_nodes: f64,
    /// Several racks although one would do.
    pub cross_rack: f64,
}

impl Default for Locality {
    fn default() -> Locality {
        Locality {
            more_nodes: 1.0,
            cross_rack: 1.0,
        }
    }
}

/// What a step computes and sends.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Step {
    /// Compute, s.
    pub compute_s: f64,
    /// Gradients, bytes.
    pub gradient_bytes: f64,
    /// Overlap of the two, 1 = none.
    pub gamma: f64,
}

/// How jobs run on other numbers of GPUs than they ask for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Elastic {
    /// Most GPUs.
    pub gpus_max: u32,
    /// Goodput.
    pub profile: Option<Profile>,
    /// (GPUs, rate), growing in the former.
    pub sizes: Option<Vec<(u32, f64)>>,
}

/// Pollux's model of an elastic job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Profile {
    /// Parts of an iteration.
    pub time: Iteration,
    /// Initial batch, samples.
    pub initial_batch: f64,
    /// Largest batch, samples.
    pub max_batch: f64,
    /// Smallest batch on one GPU, samples.
    pub min_local_batch: f64,
    /// Largest batch on one GPU, samples.
    pub max_local_batch: f64,
    /// Gradient noise scale at the start, samples.
    pub noise_at_start: f64,
    /// Gradient noise scale at the end, samples.
    pub noise_at_end: f64,
}

/// Parts of the time of an iteration, s.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Iteration {
    /// Gradient, constant.
    pub alpha_c: f64,
    /// Gradient, per sample.
    pub beta_c: f64,
    /// Two GPUs on several nodes.
    pub alpha_n: f64,
    /// Each further one.
    pub beta_n: f64,
    /// Two GPUs of one node.
    pub alpha_r: f64,
    /// Each further one.
    pub beta_r: f64,
    /// Overlap.
    pub gamma: f64,
}

/// Speed by cores and memory of each GPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sensitivity {
    /// Cores, rising.
    pub cores: Vec<f64>,
    /// GiB, rising.
    pub memory_gib: Vec<f64>,
    /// `[cores, memory]`
    pub speed: Vec<f64>,
}

/// GPU memory of fused jobs, GiB.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Fusion {
    /// Once.
    pub framework_gib: f64,
    /// For each job.
    pub job_gib: f64,
}

/// The links of a cluster, with every key written.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Fabric {
    /// Inside a domain.
    pub inside: Inside,
    /// Between domains.
    pub between: Between,
}

/// Links inside a domain.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Inside {
    /// A ring, GB/s.
    pub ring_gb_per_s: f64,
    /// Switches that add up.
    pub switch: Option<Switch>,
    /// A ring over several islands, GB/s.
    pub islands_gb_per_s: Option<f64>,
    /// Nodes of a domain.
    pub nodes_per_domain: u32,
    /// us over two GPUs, and for each further one.
    pub latency_us: f64,
    #[serde(default)]
    pub latency_per_gpu_us: f64,
    /// us per root of a MB, and for each further GPU.
    pub root_us: f64,
    #[serde(default)]
    pub root_per_gpu_us: f64,
}

/// Switches that add up.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Switch {
    /// Over the whole domain, GB/s.
    pub gb_per_s: f64,
    /// Fewest GPUs.
    pub from_gpus: u32,
    /// GPUs with which it reaches its figure.
    pub full_gpus: u32,
}

/// Links between domains.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Between {
    /// NICs of a node.
    pub nics_per_node: u32,
    /// Of one, GB/s.
    pub nic_gb_per_s: f64,
    /// What three and more domains reach at most, GB/s.
    pub ceiling_gb_per_s: Option<f64>,
    /// us.
    pub latency_us: f64,
    /// us for each domain beyond the first.
    pub latency_per_domain_us: f64,
    /// us per root of a MB.
    pub root_us: f64,
    /// NICs of a rack over its uplinks.
    pub rack_oversubscription: f64,
    /// Racks of a pod; 0: all.
    pub racks_per_pod: u32,
    /// NICs of a pod over its links to the core.
    pub pod_oversubscription: f64,
    /// Part of the bandwidth that software gets.
    pub tuned: f64,
    /// Part lost beyond a rack.
    pub hash_loss: f64,
}
