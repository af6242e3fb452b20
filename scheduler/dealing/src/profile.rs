//! What a job can make of CPU and host memory, read off its class's surface: Synergy's optimistic profile.
//!
//! The demand vector of a job is the least (cores, memory) with which it runs fastest, within what one server can give it;
//! its due is the part of a server that is proportional to its GPUs. A class without a surface says nothing about either,
//! so its jobs get what they ask for. What a job with a surface asks for does not count: the surface says all.
//!
//! Where the nodes of a type differ, the poorest sets the proportional share, so that it can be had anywhere. Where any
//! of them does not model CPU or memory, nothing is reserved on the type.
//!
//! # Source
//! Synergy (OSDI'22), section 4.1 (optimistic profiling) and 4.2 (a gang wants no more than one server has).

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Node, Shape, ShapeId};
use pleach_scheduler::physics::sensitivity::{Sensitivity, Share};
use pleach_scheduler::{ClassId, GpuTypeId, JobId};

use crate::demand::{Choice, Counts, CpuMemory, ResourceDemand, worthwhile};

/// CPU (thousandths of a core) and host memory (MiB) per GPU for a gang on one GPU type, and what they make of its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// The least with which it runs fastest.
    pub best: CpuMemory,
    /// The proportional share.
    pub fair: CpuMemory,
    /// Speed with the best, on the scale of the class's surface.
    pub best_speed: f64,
    /// Speed with the proportional share, on the same scale.
    pub fair_speed: f64,
}

impl Profile {
    /// What a gang would like and is due.
    #[must_use]
    pub fn demand(&self, num_gpus: u32, stays: Counts) -> ResourceDemand {
        ResourceDemand {
            stays,
            ..ResourceDemand::new(num_gpus, self.best, self.fair)
        }
    }
}

/// The servers of a type: what one GPU is due, and the most that the GPUs of a gang can have on one server.
#[derive(Clone, Debug, Default)]
struct Machine {
    fair: CpuMemory,
    storage_mbps: f64,
    /// (GPUs, CPU, memory) of each kind of server.
    servers: Vec<(u32, CpuMemory)>,
    is_modelled: bool,
}

impl Machine {
    fn of(cluster: &Cluster, kind: GpuTypeId) -> Machine {
        let mut machine = Machine {
            fair: [f64::INFINITY; 2],
            storage_mbps: f64::INFINITY,
            servers: Vec::new(),
            is_modelled: true,
        };
        for node in cluster.nodes().iter().filter(|node| node.gpu_type == kind) {
            machine.is_modelled &= node.cpu_milli > 0 && node.memory_mib > 0;
            let gpus = f64::from(node.num_gpus);
            let all = inputs_of(node);
            machine.fair = [0, 1].map(|input| machine.fair[input].min((all[input] / gpus).floor()));
            if node.storage_mb_s > 0.0 {
                machine.storage_mbps = machine.storage_mbps.min(node.storage_mb_s / gpus);
            }
            if machine.servers.last() != Some(&(node.num_gpus, all)) {
                machine.servers.push((node.num_gpus, all));
            }
        }
        machine
    }

    /// The most CPU and memory that each GPU of a gang can have on the roomiest server, not less than its due.
    fn most(&self, num_gpus: u32) -> CpuMemory {
        let each = self.servers.iter().map(|(server_gpus, all)| {
            let gpus = f64::from(num_gpus.min(*server_gpus));
            all.map(|input| (input / gpus).floor())
        });
        each.fold(self.fair, |most, each| {
            [most[0].max(each[0]), most[1].max(each[1])]
        })
    }

    fn speed(&self, surface: &Sensitivity, [cpu_milli, memory_mib]: CpuMemory) -> f64 {
        surface.speed(Share {
            cores: cpu_milli / 1000.0,
            memory_gib: memory_mib / 1024.0,
            storage_mbps: self.storage_mbps,
        })
    }

    /// The levels of an axis of the surface that a GPU can be given, with its due and the most that it can have.
    fn levels(&self, axis: &[f64], unit: f64, input: usize, most: f64) -> Vec<f64> {
        let mut levels: Vec<f64> = axis.iter().map(|level| (level * unit - 1e-6).ceil()).collect();
        levels.push(self.fair[input]);
        levels.retain(|level| *level < most);
        levels.push(most);
        levels.sort_unstable_by(f64::total_cmp);
        levels
    }

    /// What a GPU of a gang can be given with which it is no slower than with its due.
    fn choices(&self, surface: &Sensitivity, num_gpus: u32) -> Vec<Choice> {
        let most = self.most(num_gpus);
        let memory = self.levels(&surface.memory_gib, 1024.0, 1, most[1]);
        let mut choices = Vec::new();
        for cpu in self.levels(&surface.cores, 1000.0, 0, most[0]) {
            choices.extend(memory.iter().map(|memory| {
                let each = [cpu, *memory];
                (each, self.speed(surface, each))
            }));
        }
        let due = self.speed(surface, self.fair);
        choices.retain(|(_, speed)| *speed >= due - 1e-12);
        worthwhile(choices)
    }

    fn profile(&self, surface: &Sensitivity, num_gpus: u32, tolerance: f64) -> Profile {
        let speed = |each: CpuMemory| self.speed(surface, each);
        let most = self.most(num_gpus);
        let best_speed = speed(most);
        let enough = |each: CpuMemory| speed(each) >= best_speed * (1.0 - tolerance) - 1e-12;
        let first = |levels: Vec<f64>, ok: &dyn Fn(f64) -> bool, most: f64| {
            levels.into_iter().find(|level| ok(*level)).unwrap_or(most)
        };
        let cpu = first(
            self.levels(&surface.cores, 1000.0, 0, most[0]),
            &|cpu| enough([cpu, most[1]]),
            most[0],
        );
        let memory = first(
            self.levels(&surface.memory_gib, 1024.0, 1, most[1]),
            &|memory| enough([cpu, memory]),
            most[1],
        );
        Profile {
            best: [cpu, memory],
            fair: self.fair,
            best_speed: speed([cpu, memory]),
            fair_speed: speed(self.fair),
        }
    }
}

/// The profiles of all jobs, made as they are asked for.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    tolerance: f64,
    /// `[type]`
    machines: Vec<Machine>,
    known: BTreeMap<(ClassId, ShapeId, u32, GpuTypeId), Profile>,
}

impl Profiles {
    /// Profiles whose best is within a part `tolerance` of the fastest, 0 to 1.
    #[must_use]
    pub fn new(tolerance: f64) -> Profiles {
        Profiles {
            tolerance,
            ..Profiles::default()
        }
    }

    /// The profile of a job on a GPU type.
    pub fn of(&mut self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Profile {
        while self.machines.len() < cluster.num_types() {
            let kind = GpuTypeId(self.machines.len() as u8);
            self.machines.push(Machine::of(cluster, kind));
        }
        let job = cluster.job(id);
        let key = (job.request.class, job.shape, job.request.num_gpus, kind);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let machine = &self.machines[kind.index()];
        let profile = match &cluster.class(job.request.class).sensitivity {
            Some(surface) if machine.is_modelled => {
                machine.profile(surface, job.request.num_gpus, self.tolerance)
            }
            _ => {
                let asked = if machine.is_modelled {
                    cluster.shape(job.shape)
                } else {
                    Shape::PLAIN
                };
                let asked = [f64::from(asked.cpu_milli), f64::from(asked.memory_mib)];
                Profile {
                    best: asked,
                    fair: asked,
                    best_speed: 1.0,
                    fair_speed: 1.0,
                }
            }
        };
        self.known.insert(key, profile);
        profile
    }

    /// What a job may be given on a GPU type without being slower than with its proportional share.
    pub fn choices(&mut self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Vec<Choice> {
        let profile = self.of(cluster, id, kind);
        let (machine, request) = (&self.machines[kind.index()], &cluster.job(id).request);
        match &cluster.class(request.class).sensitivity {
            Some(surface) if machine.is_modelled => machine.choices(surface, request.num_gpus),
            _ => vec![(profile.fair, profile.fair_speed)],
        }
    }
}

/// CPU and memory of a whole server.
fn inputs_of(node: &Node) -> CpuMemory {
    [f64::from(node.cpu_milli), f64::from(node.memory_mib)]
}
