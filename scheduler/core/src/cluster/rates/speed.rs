//! How fast jobs run beside each other, what a start costs, and what a failure leaves.
//!
//! The rate of a running job is constant between events. When another job joins or leaves its GPUs the job is *rerated*: its
//! progress so far is booked at the old rate, and its believed end moves. Only the neighbours are touched.

use smallvec::SmallVec;

use crate::ActionKind;
use crate::cluster::jobs::shape::{Shape, ShapeId, units};
use crate::cluster::places::shared::{Left, PACKED_MAX, Resident, SharedGpu};
use crate::cluster::tables::{JobState, Placement, Slice};
use crate::cluster::{Cluster, PlacementFacts, Sharing, bits};
use crate::cluster_spec::Tasks;
use crate::ids::{ClassId, GpuTypeId, JobId, NodeId, Time};
use crate::physics::interference::{self as physics, Mechanism};
use crate::physics::mig::MigState;
use crate::physics::pace::Pace;
use crate::physics::sensitivity::Share;

impl Cluster {
    /// What the next start of a job costs on a type, s.
    #[must_use]
    pub fn start_cost_s(&self, id: JobId, kind: GpuTypeId) -> f64 {
        let job = &self.jobs.rows[id.index()];
        let instance_s = match self.facts.of_types[kind.index()].mig {
            Some(_) if job.request.resources.is_fractional() => self.facts.capabilities.mig_create_s,
            _ => 0.0,
        };
        self.resume_cost_s(id) + instance_s
    }

    /// What the next start of a job costs whatever the type, s: the first start or a restart.
    #[must_use]
    pub fn resume_cost_s(&self, id: JobId) -> f64 {
        let job = &self.jobs.rows[id.index()];
        let (start_s, restart_s) = job.costs_s;
        if job.first_start.is_none() {
            start_s
        } else if self.facts.capabilities.restart_cost_is_work {
            0.0
        } else {
            restart_s
        }
    }

    /// What a restart of a job costs, s.
    #[must_use]
    pub fn restart_cost_s(&self, id: JobId) -> f64 {
        self.jobs.rows[id.index()].costs_s.1
    }

    /// Work that stopping a job adds to it, in seconds of the reference run; 0 where a restart costs time instead.
    #[must_use]
    pub fn stop_cost_s(&self, id: JobId) -> f64 {
        if self.facts.capabilities.restart_cost_is_work {
            self.restart_cost_s(id)
        } else {
            0.0
        }
    }

    /// The cheapest restart of any class, s.
    #[must_use]
    pub(crate) fn restart_cost_s_min(&self) -> f64 {
        self.facts.restart_cost_s_min
    }

    /// The dearest restart of any class, s; where it depends on the gang, of any job that has come.
    #[must_use]
    pub fn restart_cost_s_max(&self) -> f64 {
        if self.facts.costs_by_gang {
            return self.jobs.restart_cost_s_most;
        }
        self.facts
            .class_costs_s
            .iter()
            .fold(0.0, |most, cost| cost.1.max(most))
    }

    /// Whether a restart costs the same for every class.
    #[must_use]
    pub(crate) fn restarts_cost_the_same(&self) -> bool {
        self.facts.restarts_cost_the_same
    }

    /// Whether all GPUs of a running job are free for others once it stops: it shares none, and their nodes are up.
    #[must_use]
    pub fn gives_back_whole_gpus(&self, id: JobId) -> bool {
        let job = &self.jobs.rows[id.index()];
        if self.places.num_not_up == 0 && !self.facts.capabilities.can(ActionKind::MixTypes) {
            return !job.is_sharing;
        }
        let up = |slice: &Slice| self.places.nodes[slice.node.index()].state == crate::cluster::NodeState::Up;
        let of_type = |slice: &Slice| self.places.nodes[slice.node.index()].gpu_type == job.gpu_type;
        !job.is_sharing && job.placement.iter().all(|slice| up(slice) && of_type(slice))
    }

    /// The believed end of a running job at its present rate.
    pub(in crate::cluster) fn believed_finish(&self, id: JobId) -> Time {
        let job = &self.jobs.rows[id.index()];
        let rest_s = (job.work_s() - job.executed_s).max(1.0);
        job.rate_since + Time::from_secs_f64(job.cost_left_s + rest_s / job.rate)
    }

    /// Running jobs whose rate has changed through others since this was last asked, in order.
    pub fn take_rerated(&mut self, into: &mut Vec<JobId>) {
        into.append(&mut self.jobs.rerated);
    }

    /// The rate of a running job beside those on its GPUs and links.
    pub(in crate::cluster) fn rate_among_others(&self, id: JobId) -> f64 {
        self.jobs.rows[id.index()].rate_alone * self.sharing_speed(id) * self.link_speed(id)
    }

    /// The slowest of a job's GPUs sets its pace beside others, (0, 1].
    pub(in crate::cluster) fn sharing_speed(&self, id: JobId) -> f64 {
        if self.places.shared.is_empty() {
            return 1.0;
        }
        let job = &self.jobs.rows[id.index()];
        let mut slowest = 1.0_f64;
        for slice in &job.placement {
            let node = &self.places.nodes[slice.node.index()];
            for gpu in self.places.shared.of_node(node.first_gpu, node.num_gpus) {
                if slice.gpus >> gpu.gpu & 1 == 1 {
                    slowest = slowest.min(self.speed_beside(id, gpu));
                }
            }
        }
        slowest
    }

    /// Speed of a resident among those of one GPU. Fractions are hard shares and do not touch each other.
    fn speed_beside(&self, id: JobId, gpu: &SharedGpu) -> f64 {
        let others = gpu
            .residents
            .iter()
            .filter(|other| other.job != id && other.gpu_milli == 1000);
        let others: SmallVec<[JobId; PACKED_MAX]> = others.map(|other| other.job).collect();
        self.packed_speed(id, &others, gpu.gpu_type)
    }

    /// Speed of a whole-GPU job beside others on GPUs of a type, as a part of its speed alone. (0, 1]
    #[must_use]
    pub fn packed_speed(&self, id: JobId, others: &[JobId], kind: GpuTypeId) -> f64 {
        if let Some(fusion) = self.fused(id, others, kind)
            && self.facts.capabilities.sharing != Sharing::Off
        {
            return fusion.each_rate(others.len() as u32 + 1);
        }
        let mechanism = match self.facts.capabilities.sharing {
            Sharing::Off => return 1.0,
            Sharing::TimeSlice => Mechanism::TimeSlice,
            Sharing::Mps => Mechanism::Mps,
        };
        let others: SmallVec<[physics::Resident; PACKED_MAX]> =
            others.iter().map(|other| self.resident_of(*other)).collect();
        self.facts
            .interference
            .speed_of(
                &self.resident_of(id),
                &others,
                kind.index(),
                mechanism,
                Some(&self.facts.pairs),
            )
            .max(FACTOR_MIN)
    }

    pub(in crate::cluster) fn resident_of(&self, id: JobId) -> physics::Resident {
        let request = &self.jobs.rows[id.index()].request;
        let class = &self.facts.classes[request.class.index()];
        let load = class.load;
        let memory_gib = match request.resources.gpu_memory_gib {
            0.0 => class.gpu_memory_gib,
            asked => asked,
        };
        physics::Resident {
            class: request.class.0,
            utilisation: load.utilisation,
            bandwidth: load.bandwidth,
            // In whole MiB, as the GPU's memory is given away.
            memory_gib: f64::from(units(memory_gib, 1024.0)) / 1024.0,
            share: 1.0,
        }
    }

    /// What the CPU, host memory and storage that come with a placement do to a job's speed, 1 = the GPU-proportional
    /// share of the machine that it was measured on. A gang is as fast as its worst-served node.
    pub(in crate::cluster) fn input_speed(&self, class: ClassId, shape: Shape, placement: &[Slice]) -> f64 {
        let Some(sensitivity) = &self.facts.classes[class.index()].sensitivity else {
            return 1.0;
        };
        let speeds = placement.iter().map(|slice| {
            let node = &self.places.nodes[slice.node.index()];
            if node.cpu_milli == 0 || node.memory_mib == 0 {
                return 1.0;
            }
            let gpus = f64::from(node.num_gpus);
            // A job that reserves nothing gets the GPU-proportional share.
            let part = |asked: u32, has: u32| {
                if asked == 0 {
                    f64::from(has) / gpus
                } else {
                    f64::from(asked)
                }
            };
            let storage_mbps = if node.storage_mb_s > 0.0 {
                node.storage_mb_s / gpus
            } else {
                f64::INFINITY
            };
            sensitivity.speed(Share {
                cores: part(shape.cpu_milli, node.cpu_milli) / 1000.0,
                memory_gib: part(shape.memory_mib, node.memory_mib) / 1024.0,
                storage_mbps,
            })
        });
        speeds.fold(f64::INFINITY, f64::min).max(FACTOR_MIN)
    }

    /// What a placement is worth to a job with what it asks for, beside the gangs that use the links there.
    #[must_use]
    pub fn job_facts(&self, id: JobId, placement: &[Slice]) -> PlacementFacts {
        let mut facts = self.facts_with(id, placement, self.jobs.rows[id.index()].shape);
        facts.rate *= self.link_speed_at(id, placement);
        facts
    }

    /// What a placement is worth to a job with other CPU and memory than it asks for, its links to itself.
    #[must_use]
    pub fn facts_with(&self, id: JobId, placement: &[Slice], granted: ShapeId) -> PlacementFacts {
        self.facts_of(id, placement, self.shape(granted))
    }

    /// As [`Cluster::facts_with`], of a shape that need have no number.
    #[must_use]
    pub fn facts_of(&self, id: JobId, placement: &[Slice], granted: Shape) -> PlacementFacts {
        self.facts_at(id, placement, granted, self.jobs.rows[id.index()].executed_s)
    }

    /// What a placement would be worth to a running job with what it asks for, were it stopped and started there now: an elastic
    /// one runs at the noise scale of its present progress then.
    #[must_use]
    pub fn facts_if_restarted(&self, id: JobId, placement: &[Slice]) -> PlacementFacts {
        let job = &self.jobs.rows[id.index()];
        self.facts_at(id, placement, self.shape(job.shape), job.executed_s_at(self.now))
    }

    fn facts_at(&self, id: JobId, placement: &[Slice], granted: Shape, executed_s: f64) -> PlacementFacts {
        let class = self.jobs.rows[id.index()].request.class;
        let mut facts = self.facts(class, granted.tasks, placement);
        if let Some(elastic) = &self.facts.classes[class.index()].elastic {
            (facts.locality, facts.rate) = self.elastic_rate(id, &elastic.profile, &facts, executed_s);
        }
        facts.rate *= self.input_speed(class, granted, placement);
        facts.rate = self.rate_with_checkpoints(class, facts.num_gpus, facts.rate);
        facts
    }

    /// Goodput of an elastic job on a placement over that of the gang that it asked for at its tightest, and with the
    /// speed of the GPU type. The noise scale is that of its progress when the run begins, and stays until the next one or
    /// until [`Cluster::retune`].
    fn elastic_rate(&self, id: JobId, profile: &Pace, facts: &PlacementFacts, executed_s: f64) -> (f64, f64) {
        let job = &self.jobs.rows[id.index()];
        let noise = profile.noise(executed_s / job.request.estimate_s.value);
        let tightest = self.tightest(job.types, job.request.num_gpus, Tasks::ANY).0;
        let goodput = |num_gpus: u32, num_nodes: u32| {
            // While it waits its progress stands still.
            let kept = match job.state {
                JobState::Pending => job.pace.of(job.request.num_gpus, num_gpus, num_nodes),
                _ => None,
            };
            kept.unwrap_or_else(|| profile.goodput(num_gpus, num_nodes, noise))
        };
        let asked = goodput(job.request.num_gpus, tightest);
        let here = goodput(facts.num_gpus, facts.num_nodes);
        // Too many GPUs for the largest batch: it cannot run so.
        let ratio = if here > 0.0 && asked > 0.0 {
            here / asked
        } else {
            0.0
        };
        let speed = self.facts.classes[job.request.class.index()].speed[facts.gpu_type.index()];
        if let Pace::Sizes(_) = profile {
            return (facts.locality, speed * ratio * facts.locality);
        }
        (ratio.min(1.0), speed * ratio)
    }

    /// Books the progress of all other jobs on these GPUs at their old rate and gives them their new one. The same for jobs whose
    /// share of a link has changed (`touched`).
    pub(in crate::cluster) fn rerate_neighbours(
        &mut self,
        placement: &Placement,
        except: JobId,
        mut touched: Vec<JobId>,
    ) {
        let is_sharing = !self.places.shared.is_empty() || self.jobs.rows[except.index()].is_sharing;
        for slice in placement.iter().filter(|_| is_sharing) {
            let node = &self.places.nodes[slice.node.index()];
            for gpu in bits(slice.gpus) {
                let row = node.first_gpu + gpu;
                match self.places.shared.get(row) {
                    Some(gpu) => touched.extend(gpu.residents.iter().map(|other| other.job)),
                    None => touched.extend(self.places.gpus[row as usize]),
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for id in touched.into_iter().filter(|id| *id != except) {
            self.rerate(id);
        }
    }

    /// A running elastic job chooses its batch anew for the noise scale of its present progress, as its own tuner would
    /// between two decisions; nothing for other jobs. Like every change of rate it moves the job's believed end.
    pub fn retune(&mut self, id: JobId) {
        let job = &self.jobs.rows[id.index()];
        let is_elastic = self.facts.classes[job.request.class.index()].elastic.is_some();
        if !is_elastic || job.state != JobState::Running || job.is_forked {
            return;
        }
        let (placement, granted) = (job.placement.clone(), job.granted);
        let executed_s = job.executed_s_at(self.now);
        let booked_s = std::mem::replace(&mut self.jobs.rows[id.index()].executed_s, executed_s);
        let rate = self.facts_with(id, &placement, granted).rate;
        let job = &mut self.jobs.rows[id.index()];
        job.executed_s = booked_s;
        if rate > 0.0 {
            job.rate_alone = rate;
        }
        self.rerate(id);
    }

    fn rerate(&mut self, id: JobId) {
        let rate = self.rate_among_others(id);
        let now = self.now;
        let is_sharing = self.is_among_others(id);
        let job = &mut self.jobs.rows[id.index()];
        job.is_sharing = is_sharing;
        if rate == job.rate {
            return;
        }
        let kind = job.gpu_type;
        let before = job.expected_finish;
        let elapsed_s = (now - job.rate_since).as_secs_f64();
        job.executed_s = job.executed_s_at(now);
        job.cost_left_s = (job.cost_left_s - elapsed_s).max(0.0);
        (job.rate_since, job.rate) = (now, rate);
        let finish = self.believed_finish(id);
        self.jobs.rows[id.index()].expected_finish = finish;
        assert!(
            self.jobs.running[kind.index()].remove(&(before, id)),
            "{id:?} is not among the running"
        );
        self.jobs.running[kind.index()].insert((finish, id));
        self.jobs.rerated.push(id);
    }

    pub(in crate::cluster) fn is_among_others(&self, id: JobId) -> bool {
        let job = &self.jobs.rows[id.index()];
        job.placement.iter().any(|slice| {
            let first = self.places.nodes[slice.node.index()].first_gpu;
            bits(slice.gpus).any(|gpu| self.places.gpus[(first + gpu) as usize] != Some(id))
        })
    }

    /// A job becomes a resident of a GPU of which it takes a part, or which another whole-GPU job has.
    pub(in crate::cluster) fn join(
        &mut self,
        id: JobId,
        node_id: NodeId,
        gpu: u32,
        shape: Shape,
        mig_start: Option<u8>,
    ) {
        let node = &self.places.nodes[node_id.index()];
        let row = node.first_gpu + gpu;
        let facts = self.facts.of_types[node.gpu_type.index()];
        let mut empty = SharedGpu {
            node: node_id,
            gpu,
            gpu_type: node.gpu_type,
            residents: SmallVec::new(),
            mig: MigState::EMPTY,
            is_fused: false,
        };
        let resident = |cluster: &Cluster, job: JobId| Resident {
            job,
            gpu_milli: shape.gpu_milli,
            gpu_memory_mib: units(
                cluster.jobs.rows[job.index()].request.resources.gpu_memory_gib,
                1024.0,
            ),
            mig_start: None,
        };
        if shape.is_fractional() {
            let open = self
                .places
                .shared
                .get(row)
                .is_none_or(|shared| facts.joins(shared, shape));
            assert!(
                open && self.places.gpus[row as usize].is_none(),
                "GPU {gpu} of {node_id:?} has no part for {id:?}"
            );
        } else {
            let owner = self.places.gpus[row as usize].take();
            assert!(
                self.facts.capabilities.sharing != Sharing::Off
                    && (owner.is_some() || self.can_join(id, node_id, gpu)),
                "GPU {gpu} of {node_id:?} is not free for {id:?}"
            );
            if let Some(owner) = owner {
                empty.residents.push(resident(self, owner));
                self.jobs.rows[owner.index()].is_sharing = true;
            }
        }
        let resident = Resident {
            mig_start,
            ..resident(self, id)
        };
        self.places.shared.join(row, resident, facts, empty);
        self.settle(row);
        self.jobs.rows[id.index()].is_sharing = true;
    }

    /// A job leaves a shared GPU; whether the GPU is empty now.
    pub(in crate::cluster) fn leave(&mut self, id: JobId, node: NodeId, row: u32) -> bool {
        let facts = self.facts.of_types[self.places.nodes[node.index()].gpu_type.index()];
        match self.places.shared.leave(row, id, facts) {
            Left::Nobody => true,
            Left::Alone(owner) => {
                self.places.gpus[row as usize] = Some(owner);
                false
            }
            Left::Others => {
                self.settle(row);
                false
            }
        }
    }
}

/// A factor below this counts as this, so that no rate comes near zero: the lower limit of the locality factors.
pub(in crate::cluster) const FACTOR_MIN: f64 = 1e-3;
