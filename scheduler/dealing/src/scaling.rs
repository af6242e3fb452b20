//! How fast each job would go on other numbers of GPUs, as its scheduler believes.
//!
//! Rates are those of the cluster, progress in seconds of the reference run per second. An elastic job's are its goodputs
//! for the noise scale of its progress, which is taken in steps of a twentieth so that jobs of a class share their tables;
//! a rigid job runs on exactly its gang. Synchronisation knows one node and several, so two rows say everything.
//!
//! # What is deliberately not here
//! What CPU and host memory do to a rate: it is the same for every number of GPUs. Racks and links.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_scheduler::cluster::{Cluster, JobState, Shape};
use pleach_scheduler::physics::pace;
use pleach_scheduler::{GpuTypeId, JobId};

/// Steps in which progress is taken.
const NUM_STEPS: u8 = 20;

/// Goodput on 1, 2, ... GPUs, useful samples/s; 0 where it cannot run.
#[derive(Clone, Debug, PartialEq)]
struct Pace {
    /// `[num_gpus - 1]`
    one_node: Vec<f64>,
    /// `[num_gpus - 1]`
    several_nodes: Vec<f64>,
}

impl Pace {
    fn of(profile: &pace::Pace, noise: f64, most: u32) -> Pace {
        let row = |num_nodes: u32| {
            let row = (1..=most).map(|num_gpus| profile.goodput(num_gpus, num_nodes, noise));
            row.collect()
        };
        Pace {
            one_node: row(1),
            several_nodes: row(2),
        }
    }

    fn at(&self, num_gpus: u32, num_nodes: u32) -> f64 {
        let row = if num_nodes > 1 {
            &self.several_nodes
        } else {
            &self.one_node
        };
        let column = (num_gpus as usize).checked_sub(1);
        column.and_then(|column| row.get(column)).copied().unwrap_or(0.0)
    }
}

/// The tables of the classes, kept from plan to plan.
#[derive(Clone, Debug, Default)]
pub struct Paces {
    known: BTreeMap<(u16, u8), Arc<Pace>>,
}

/// One job: where and on how many GPUs it can run, and how fast.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// The job.
    pub id: JobId,
    /// Its tenant.
    pub tenant: usize,
    /// What each of its GPUs comes with.
    pub shape: Shape,
    /// Fewest GPUs on which it runs.
    pub least: u32,
    /// Most GPUs on which it may run.
    pub most: u32,
    /// GPUs that it asked for.
    pub asked: u32,
    /// The type and number of the GPUs that it holds now.
    pub held: Option<(GpuTypeId, u32)>,
    /// Speed on each type; 0 where it cannot run. `[type]`
    type_speed: Vec<f64>,
    /// GPUs of the largest node of each type. `[type]`
    node_gpus: Vec<u32>,
    pace: PaceOf,
}

#[derive(Clone, Debug)]
enum PaceOf {
    /// Goodputs, and that of the gang that was asked for at its tightest.
    Elastic(Arc<Pace>, f64),
    /// Part of the speed that is left on more nodes than necessary.
    Rigid(f64),
}

impl Paces {
    /// How a job scales.
    pub fn scaling(&mut self, cluster: &Cluster, id: JobId) -> Scaling {
        let job = cluster.job(id);
        let class = cluster.class(job.request.class);
        let mut type_speed = vec![0.0; cluster.num_types()];
        for kind in cluster.types_in(job.types) {
            type_speed[kind.index()] = class.speed[kind.index()];
        }
        let kinds = (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
        let node_gpus: Vec<u32> = kinds.map(|kind| cluster.node_gpus_max_of(kind)).collect();
        let asked = job.request.num_gpus;
        let (pace, least, most) = match &class.elastic {
            Some(elastic) => {
                let profile = &elastic.profile;
                let progress = job.executed_s_at(cluster.now()) / job.request.estimate_s.value;
                let step = (progress.clamp(0.0, 1.0) * f64::from(NUM_STEPS)) as u8;
                let noise = profile.noise(f64::from(step) / f64::from(NUM_STEPS));
                let size = elastic.gpus_max.min(cluster.num_gpus()).min(profile.gpus_max());
                let pace = self
                    .known
                    .entry((job.request.class.0, step))
                    .or_insert_with(|| Arc::new(Pace::of(profile, noise, size)));
                let nodes = cluster.types_in(job.types).map(|kind| {
                    let gpus = node_gpus[kind.index()].max(1);
                    asked.div_ceil(gpus)
                });
                let reference = pace.at(asked, nodes.min().unwrap_or(1));
                let runs = |num_gpus: &u32| pace.at(*num_gpus, 1) > 0.0;
                let largest = cluster.types_in(job.types).map(|kind| cluster.num_gpus_of(kind));
                let most = size.min(largest.max().unwrap_or(0));
                let least = (1..=most).find(runs).unwrap_or(asked);
                (
                    PaceOf::Elastic(Arc::clone(pace), reference),
                    least,
                    most.max(least),
                )
            }
            None => (PaceOf::Rigid(class.locality.more_nodes), asked, asked),
        };
        Scaling {
            id,
            tenant: job.request.tenant.index(),
            shape: cluster.shape(job.shape),
            least,
            most,
            asked,
            held: (job.state == JobState::Running).then_some((job.gpu_type, job.num_held)),
            type_speed,
            node_gpus,
            pace,
        }
    }

    /// How all these jobs scale.
    pub fn scalings(&mut self, cluster: &Cluster, jobs: &[JobId]) -> Vec<Scaling> {
        jobs.iter().map(|id| self.scaling(cluster, *id)).collect()
    }
}

/// Whether no job that runs or waits is elastic.
pub fn all_rigid(cluster: &Cluster) -> bool {
    let is_rigid = |id: JobId| cluster.class(cluster.job(id).request.class).elastic.is_none();
    cluster.running().chain(cluster.pending()).all(is_rigid)
}

impl Scaling {
    /// Whether it runs on exactly the gang that it asked for.
    pub fn is_rigid(&self) -> bool {
        matches!(self.pace, PaceOf::Rigid(_))
    }

    /// The types on which it can run, the fastest first, of equally fast ones the first.
    pub fn types(&self) -> Vec<GpuTypeId> {
        let mut kinds: Vec<GpuTypeId> = (0..self.type_speed.len())
            .map(|kind| GpuTypeId(kind as u8))
            .filter(|kind| self.type_speed[kind.index()] > 0.0)
            .collect();
        kinds.sort_by(|a, b| self.type_speed[b.index()].total_cmp(&self.type_speed[a.index()]));
        kinds
    }

    /// Fewest nodes of a type that hold so many GPUs.
    pub fn nodes_for(&self, kind: GpuTypeId, num_gpus: u32) -> u32 {
        num_gpus.div_ceil(self.node_gpus[kind.index()].max(1))
    }

    /// Progress per second on so many GPUs and nodes of a type; 0 where it cannot run so.
    pub fn rate(&self, kind: GpuTypeId, num_gpus: u32, num_nodes: u32) -> f64 {
        self.type_speed[kind.index()] * self.pace_at(kind, num_gpus, num_nodes)
    }

    /// As [`Scaling::rate`], on the fewest nodes.
    pub fn rate_tight(&self, kind: GpuTypeId, num_gpus: u32) -> f64 {
        self.rate(kind, num_gpus, self.nodes_for(kind, num_gpus))
    }

    /// As [`Scaling::rate`], as if all types on which it can run were equally fast.
    pub fn pace_at(&self, kind: GpuTypeId, num_gpus: u32, num_nodes: u32) -> f64 {
        if self.type_speed[kind.index()] == 0.0 || num_gpus < self.least || num_gpus > self.most {
            return 0.0;
        }
        match &self.pace {
            PaceOf::Elastic(pace, reference) if *reference > 0.0 => pace.at(num_gpus, num_nodes) / reference,
            PaceOf::Elastic(..) => 0.0,
            PaceOf::Rigid(_) if num_gpus != self.asked => 0.0,
            PaceOf::Rigid(loose) if num_nodes > self.nodes_for(kind, num_gpus) => *loose,
            PaceOf::Rigid(_) => 1.0,
        }
    }
}
