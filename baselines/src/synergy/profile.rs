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

use super::demand::{Counts, CpuMemory, ResourceDemand};
use super::optimum::{Choice, worthwhile};

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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pleach_scheduler::cluster::{Capabilities, Submission};
    use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
    use pleach_scheduler::physics::sensitivity::SYNERGY_MODELS;
    use pleach_scheduler::{Estimate, Provenance, TenantId};

    /// Synergy's servers of 8 GPUs and 500 GiB, and its ten models as classes in the order of the table.
    pub(crate) fn synergy_cluster(num_servers: u32, cpu_cores: f64) -> Cluster {
        let mut spec = ClusterSpec::uniform(num_servers, 8, num_servers);
        (
            spec.node_groups[0].cpu_cores,
            spec.node_groups[0].memory_gib,
            spec.node_groups[0].storage_mb_s,
        ) = (cpu_cores, 500.0, 500.0);
        let class = |name: &str| ModelClass {
            name: name.into(),
            sensitivity: Some(Sensitivity::from_name(name).unwrap()),
            ..ModelClass::default()
        };
        let classes: Vec<ModelClass> = SYNERGY_MODELS.iter().map(|model| class(model.name)).collect();
        let capabilities = Capabilities {
            preemption: true,
            restart_cost_s: 0.0,
            ..Capabilities::DEFAULT
        };
        Cluster::new(&spec, &classes, capabilities).unwrap()
    }

    /// Submits a job of one of the ten models.
    pub(crate) fn submit(cluster: &mut Cluster, model: &str, num_gpus: u32, estimate_s: f64) -> JobId {
        let class = SYNERGY_MODELS.iter().position(|row| row.name == model).unwrap();
        cluster
            .submit(Submission {
                tenant: TenantId(0),
                class: ClassId(class as u16),
                num_gpus,
                estimate_s: Estimate {
                    value: estimate_s,
                    provenance: Provenance::Oracle,
                },
                resources: Resources::WHOLE_GPU,
            })
            .unwrap()
    }

    fn profile(cluster: &mut Cluster, model: &str, num_gpus: u32) -> Profile {
        let job = submit(cluster, model, num_gpus, 1e3);
        Profiles::new(0.0).of(cluster, job, GpuTypeId(0))
    }

    #[test]
    fn single_gpus_want_what_the_paper_printed() {
        let mut cluster = synergy_cluster(1, 24.0);
        let published = [
            ("alexnet", 12.0, 125.0, 2.94),
            ("resnet18", 9.0, 62.5, 2.40),
            ("resnet50", 4.0, 62.5, 1.15),
            ("mobilenet", 6.0, 62.5, 1.55),
            ("m5", 6.0, 187.5, 2.50),
            ("deepspeech", 3.0, 62.5, 1.0),
        ];
        for (model, cores, memory_gib, speed) in published {
            let profile = profile(&mut cluster, model, 1);
            assert_eq!(profile.best, [cores * 1000.0, memory_gib * 1024.0], "{model}");
            assert_eq!((profile.best_speed, profile.fair_speed), (speed, 1.0), "{model}");
            assert_eq!(profile.fair, [3000.0, 64_000.0]);
        }
        // Language models want one core and the smallest memory of the grid, 20.83 GiB, in whole MiB.
        assert_eq!(profile(&mut cluster, "gnmt", 1).best, [1000.0, 21_330.0]);
    }

    #[test]
    fn a_gang_wants_no_more_than_one_server_has() {
        // Four GPUs of ResNet-18 would like 36 cores. A server has 24, that is 6 each, for speed 1.75; more memory than
        // 62.5 GiB does not help.
        let mut cluster = synergy_cluster(2, 24.0);
        let four = profile(&mut cluster, "resnet18", 4);
        assert_eq!((four.best, four.best_speed), ([6000.0, 64_000.0], 1.75));
        // Eight GPUs have a server to themselves and sixteen have two: the proportional share.
        for num_gpus in [8, 16] {
            let all = profile(&mut cluster, "resnet18", num_gpus);
            assert_eq!((all.best, all.best_speed), (all.fair, 1.0));
        }
        // AlexNet on four GPUs has 6 cores each, where memory does not help yet.
        assert_eq!(profile(&mut cluster, "alexnet", 4).best, [6000.0, 64_000.0]);
    }

    #[test]
    fn richer_servers_have_another_proportional_share() {
        let mut cluster = synergy_cluster(1, 48.0);
        let image = profile(&mut cluster, "resnet18", 1);
        assert_eq!((image.fair, image.fair_speed), ([6000.0, 64_000.0], 1.75));
        assert_eq!(image.best_speed, 2.40);
    }

    #[test]
    fn who_may_be_a_little_slower_wants_less() {
        // Of 2.40, ten parts in a hundred less is 2.16: 9 cores are still the first level that reaches it; a third less is
        // 1.6, reached with 6.
        let mut cluster = synergy_cluster(1, 24.0);
        let job = submit(&mut cluster, "resnet18", 1, 1e3);
        let cores = |tolerance| Profiles::new(tolerance).of(&cluster, job, GpuTypeId(0)).best[0];
        assert_eq!((cores(0.1), cores(1.0 / 3.0)), (9000.0, 6000.0));
    }

    #[test]
    fn without_a_surface_a_job_gets_what_it_asks_for() {
        let mut spec = ClusterSpec::uniform(1, 8, 1);
        (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (24.0, 500.0);
        let mut cluster = Cluster::new(&spec, &[ModelClass::default()], Capabilities::DEFAULT).unwrap();
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus: 2,
            estimate_s: Estimate {
                value: 1e3,
                provenance: Provenance::Oracle,
            },
            resources: Resources {
                cpu_cores: 7.0,
                memory_gib: 8.0,
                ..Resources::WHOLE_GPU
            },
        };
        let job = cluster.submit(request).unwrap();
        let profile = Profiles::new(0.0).of(&cluster, job, GpuTypeId(0));
        assert_eq!((profile.best, profile.fair), ([7000.0, 8192.0], [7000.0, 8192.0]));
    }
}
