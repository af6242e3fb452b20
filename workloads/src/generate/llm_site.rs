//! A site of today: language-model development as on Acme's cluster Seren, on a fabric of its own, every job with the model that it
//! trains and what follows from its plan: the GPU types that hold it, speeds, memory, state, traffic.
//!
//! Jobs by kind and gang, and run times, are those of [`super::acme`]; new are the models, evaluation that comes forty to sixty
//! jobs at once after a checkpoint, and ends that lean on how long and how large a job was.
//!
//! Not here: chains of attempts under one job (a failed attempt is a job of the list; `--site-failures` makes attempts in the
//! simulator), quotas that are reserved for pre-training.

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::physics::links::Fabric;
use pleach_scheduler::physics::storage::Storage;
use pleach_scheduler::portable_math::pow;
use serde::{Deserialize, Serialize};

use super::acme_tables::{GANGS, HOURS, RUN_GAPS_S, RUN_TIME_CORRELATION, USERS, WEEKDAYS, WORKS};
use super::arrivals::Shape;
use super::lay_out::{Plan, lay_out};
use super::llm_site_tables::{BATCH_ADAPTERS, BURSTS, ENDS, Trains, batch_of, trains};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::site::{
    Machines, any_class, capacity, gang_max, require_locality, require_site, scaled_cluster,
    tenants_with_room,
};
use super::{pick, require, require_common};
use crate::Error;
use crate::classes::facts_of;
use crate::plans::{Gang, Model, Trained, Training, class_of, elastic_of};
use crate::seed::Seed;
use crate::{Outcome, Workload};

/// GPUs of the site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteGpus {
    /// A100 of 80 GB, as Seren has them.
    #[default]
    A100,
    /// H100 of 80 GB.
    H100,
    /// Half H100 of 80 GB, half A100 of 40 GB, which hold fewer plans; the links of the former.
    Mixed,
}

/// Parameters of `llm-site`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlmSiteConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// GPUs of the nodes.
    pub gpus: SiteGpus,
    /// Nodes of eight GPUs, 1 to 100,000. Seren had 286.
    pub num_nodes: u32,
    /// Nodes in each rack (a scalable unit of one leaf a rail), 1 or more.
    pub nodes_per_rack: u32,
    /// NICs of a pod of 3,072 GPUs over its links to the core, 1 to 1000; 8 is published beside 1.
    pub pod_oversubscription: f64,
    /// Work over capacity between the first and the last arrival, 0.001 to 100.
    pub load: f64,
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    pub gang_max: Option<u32>,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default keeps all of it.
    pub run_time_s_max: f64,
    /// Whether the arrival rate follows the hour and the weekday.
    pub daily_profile: bool,
    /// Whether evaluation comes in bursts and the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// Whether pre-training and fine-tuning may run on a quarter to four times the GPUs that they ask for, where a plan fits.
    pub elastic: bool,
    /// What a loose placement costs models of which no plan is known.
    pub locality: LocalityFactors,
}

impl Default for LlmSiteConfig {
    fn default() -> LlmSiteConfig {
        LlmSiteConfig {
            num_jobs: 1000,
            gpus: SiteGpus::A100,
            num_nodes: 286,
            nodes_per_rack: 32,
            pod_oversubscription: 1.0,
            load: 0.8,
            gang_max: None,
            run_time_s_max: 1_209_604.0,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            elastic: false,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// # Source
/// Seren: Hu et al., NSDI 2024. H100 nodes: NVIDIA's DGX sheet.
const A100: Machines = Machines {
    count: 1,
    gpus_per_node: 8,
    gpu_type: "A100-80GB",
    gpu_memory_gib: 80.0,
    cpu_cores: 128.0,
    memory_gib: 1024.0,
};
const H100: Machines = Machines {
    gpu_type: "H100",
    cpu_cores: 112.0,
    memory_gib: 2048.0,
    ..A100
};
const A100_40: Machines = Machines {
    gpu_type: "A100-40GB",
    gpu_memory_gib: 40.0,
    ..A100
};
/// Nodes of a pod: 3,072 GPUs (Meta's 24k cluster).
const POD_NODES: u32 = 384;
/// The shared store, GB/s for each 2,000 GPUs.
/// # Source
/// NVIDIA's storage guidance: 125 read and 62 write for 256 to 576 GPUs is the best; the median of forty production runs lies
/// between 50 and 200 for a whole cluster.
const STORE_GB_S: f64 = 50.0;
/// Kinds of work that may be elastic.
const ELASTIC: [&str; 2] = ["pre-training", "fine-tuning"];
/// Spread and hourly correlation of the wandering rate, set so that hourly arrivals have the published variance over mean (40 to
/// 150) and lag-1 correlation (0.4 to 0.5).
const RATE_SIGMA: f64 = 0.45;
const RATE_CORRELATION: f64 = 0.35;

impl LlmSiteConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        let over = self.pod_oversubscription;
        require(
            "pod_oversubscription",
            over,
            (1.0..=1000.0).contains(&over),
            "1 to 1000",
        )?;
        require_locality(self.locality)
    }

    fn cluster(&self) -> Result<ClusterSpec, Error> {
        let (list, fabric): (&[Machines], &str) = match self.gpus {
            SiteGpus::A100 => (&[A100], "dgx-a100-hdr"),
            SiteGpus::H100 => (&[H100], "hgx-h100-ndr"),
            SiteGpus::Mixed => (&[H100, A100_40], "hgx-h100-ndr"),
        };
        let mut cluster = scaled_cluster(list, self.num_nodes, self.nodes_per_rack);
        let mut fabric = Fabric::from_name(fabric)?;
        fabric.between.racks_per_pod = POD_NODES.div_ceil(self.nodes_per_rack);
        fabric.between.pod_oversubscription = self.pod_oversubscription;
        cluster.fabric = Some(fabric);
        let store = STORE_GB_S * (f64::from(capacity(&cluster)) / 2000.0).max(1.0);
        cluster.storage = Some(Storage {
            read_gb_s: store,
            write_gb_s: store,
            ..Storage::default()
        });
        Ok(cluster)
    }
}

/// Classes of the site, and the kinds that have them.
fn kinds(config: &LlmSiteConfig, cluster: &ClusterSpec) -> Result<(Vec<ModelClass>, Vec<Kind>), Error> {
    let largest = gang_max(cluster, config.gang_max);
    let (mut classes, mut kinds) = (Vec::new(), Vec::new());
    for (work_index, work) in WORKS.iter().enumerate() {
        for (gang, jobs) in GANGS.into_iter().zip(work.jobs) {
            if jobs == 0 || gang > largest {
                continue;
            }
            let models = trains(work_index, gang);
            for trained in models {
                let name = format!("{} x{gang}: {}", work.name, trained.name);
                classes.push(class(name, trained, gang, config, cluster)?);
                let is_evaluation = work_index == 0;
                kinds.push(Kind {
                    jobs: f64::from(jobs) / models.len() as f64,
                    num_gpus: gang,
                    resources: Resources::WHOLE_GPU,
                    class: (classes.len() - 1) as u16,
                    run_times: work.run_times,
                    outcomes: Outcomes::Unknown,
                    lengths: if config.bursty && is_evaluation {
                        Lengths::Table(&BURSTS)
                    } else {
                        Lengths::One
                    },
                    tenants: tenants_with_room(cluster, gang, |_| 1.0),
                });
            }
        }
    }
    Ok((classes, kinds))
}

/// The class of a model on a gang: by its plan where one is known.
fn class(
    name: String,
    trained: &Trains,
    gang: u32,
    config: &LlmSiteConfig,
    cluster: &ClusterSpec,
) -> Result<ModelClass, Error> {
    let Some((model, what)) = trained.plan else {
        return Ok(whole(name, trained, config, cluster));
    };
    let model = Model::from_name(model)?;
    let batch = match what {
        Trained::Adapters => BATCH_ADAPTERS,
        Trained::All => batch_of(gang),
    };
    let training = Training {
        trained: what,
        ..Training::all(model, batch)
    };
    let made = class_of(&name, &Gang::new(training, gang), cluster)?;
    let sizes = [gang / 4, gang / 2, gang, 2 * gang, 4 * gang];
    let is_elastic = config.elastic && ELASTIC.iter().any(|kind| name.starts_with(kind));
    let elastic = if is_elastic {
        elastic_of(&training, gang, &sizes, &made, cluster)?
    } else {
        None
    };
    Ok(ModelClass {
        locality: config.locality,
        elastic,
        ..made
    })
}

/// The class of a model of which no plan is known: as fast on every type that has the memory that is published for it.
fn whole(name: String, trained: &Trains, config: &LlmSiteConfig, cluster: &ClusterSpec) -> ModelClass {
    let needs_gb = facts_of(trained.name).map_or(0.0, |facts| facts.gpu_memory_gb);
    let holds = |gpu: &GpuTypeSpec| f64::from(u8::from(needs_gb <= gpu.memory_gib));
    ModelClass {
        name,
        speed: cluster.gpu_types.iter().map(holds).collect(),
        ..any_class(cluster, config.locality)
    }
}

pub(super) fn generate(config: &LlmSiteConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = config.cluster()?;
    let (classes, kinds) = kinds(config, &cluster)?;
    let habits = Habits {
        users: USERS,
        run_time_correlation: RUN_TIME_CORRELATION,
        length_max: (config.num_jobs / 10).max(1),
        run_time_s_max: config.run_time_s_max,
    };
    let plan = Plan {
        name: "llm-site",
        num_jobs: config.num_jobs,
        load: config.load,
        user_limits: config.user_limits,
        shape: Shape {
            profile: config.daily_profile.then_some((&HOURS, &WEEKDAYS)),
            sigma: if config.bursty { RATE_SIGMA } else { 0.0 },
            correlation: RATE_CORRELATION,
        },
        gaps_s: &RUN_GAPS_S,
    };
    let mut workload = lay_out(&plan, &Mix::new(kinds, habits), cluster, classes, seed)?;
    draw_ends(&mut workload, seed);
    workload.fill_class_facts(false);
    Ok(workload)
}

/// How each job ends, by how long it ran and on how many GPUs: what fails fails early, what is stopped is large.
fn draw_ends(workload: &mut Workload, seed: Seed) {
    let mut rng = seed.stream("ends", 0);
    for job in &mut workload.jobs {
        let minutes = job.run_time_s.max(1.0) / 60.0;
        let gpu_hours = job.gpus() * minutes / 60.0;
        let weights = [
            1.0,
            ENDS.failed.0 * pow(minutes, -ENDS.failed.1),
            ENDS.cancelled.0 * pow(gpu_hours, ENDS.cancelled.1),
        ];
        job.outcome = [Outcome::Completed, Outcome::Failed, Outcome::Killed][pick(&weights, &mut rng)];
    }
}

#[cfg(test)]
#[path = "llm_site_tests.rs"]
mod tests;
