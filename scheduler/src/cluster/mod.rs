//! The cluster as a scheduler knows it: tables of nodes, GPUs, racks, tenants and jobs, and the only ways to change them.
//!
//! The same type is filled by the simulator and by a daemon on a real cluster. It holds beliefs (estimates with their
//! provenance), never hidden truth. Every change keeps the invariants that [`Cluster::check`] asserts: no GPU belongs to
//! two jobs, a gang holds all its GPUs or none, quotas bind where borrowing is off.

mod check;
mod free;
mod node_set;
mod ordered_set;
mod place;
mod queue;
mod reserve;
mod tables;

pub use ordered_set::OrderedSet;
pub use place::{PlacementFacts, Template};
pub use queue::Demand;
pub use tables::{Decision, Job, JobState, Node, Placement, Rack, Slice, Submission, Tenant};

pub(crate) use queue::{First, Group, Head, Order, Queue, service_class};

use free::FreeIndex;
use queue::QueueKeys;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::ids::{ClassId, GpuTypeId, JobId, NodeId, RackId, TenantId, Time};
use crate::spec::{ClusterSpec, ModelClass};

/// What the cluster below us is able to do, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// Running jobs may be stopped and requeued.
    pub preemption: bool,
    /// The scheduler may hold GPUs back for a job that does not fit yet.
    pub reservation: bool,
    /// Time that a job loses when it starts again after a preemption, s.
    pub restart_cost_s: f64,
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities {
            preemption: false,
            reservation: true,
            restart_cost_s: 30.0,
        }
    }
}

/// The tables and their indexes.
#[derive(Clone, Debug)]
pub struct Cluster {
    classes: Vec<ModelClass>,
    nodes: Vec<Node>,
    racks: Vec<Rack>,
    gpus: Vec<Option<JobId>>,
    tenants: Vec<Tenant>,
    jobs: Vec<Job>,
    free: FreeIndex,
    queue: Queue,
    /// Running jobs of each GPU type by believed end. `[type]`
    running: Vec<OrderedSet<(Time, JobId)>>,
    num_running: usize,
    /// Bit mask of the types on which each class can run.
    class_types: Vec<u64>,
    /// Mean speed of all classes on each type: what a GPU of the type is worth to the average job.
    type_value: Vec<f64>,
    borrowing: bool,
    capabilities: Capabilities,
    now: Time,
    decisions: Vec<Decision>,
    /// Empty placements with memory for many nodes.
    spare: Vec<Placement>,
}

impl Cluster {
    /// An empty cluster at time zero.
    ///
    /// # Errors
    /// Where the description or a model class is not valid.
    pub fn new(
        spec: &ClusterSpec,
        classes: &[ModelClass],
        capabilities: Capabilities,
    ) -> Result<Cluster, ConfigError> {
        spec.validate()?;
        if classes.is_empty() {
            return Err(ConfigError {
                key: "classes".into(),
                value: "none".into(),
                allowed: "at least one model class".into(),
                hint: "a cluster of equal jobs needs one class with speed 1 on every type".into(),
            });
        }
        for class in classes {
            spec.validate_class(class)?;
        }
        let (mut nodes, mut racks) = (Vec::new(), Vec::new());
        let mut num_gpus = 0;
        for group in &spec.node_groups {
            let kind = spec
                .gpu_types
                .iter()
                .position(|gpu| gpu.name == group.gpu_type)
                .unwrap_or(0);
            for number in 0..group.count {
                if number % group.nodes_per_rack == 0 {
                    let first_node = NodeId(nodes.len() as u32);
                    let gpu_type = GpuTypeId(kind as u8);
                    racks.push(Rack {
                        first_node,
                        num_nodes: 0,
                        gpu_type,
                        num_gpus: 0,
                        num_free: 0,
                    });
                }
                let rack_id = RackId(racks.len() as u32 - 1);
                if let Some(rack) = racks.last_mut() {
                    rack.num_nodes += 1;
                    rack.num_gpus += group.gpus_per_node;
                    rack.num_free += group.gpus_per_node;
                }
                nodes.push(Node {
                    rack: rack_id,
                    gpu_type: GpuTypeId(kind as u8),
                    num_gpus: group.gpus_per_node,
                    free: u64::MAX >> (64 - group.gpus_per_node),
                    first_gpu: num_gpus,
                });
                num_gpus += group.gpus_per_node;
            }
        }
        let num_types = spec.gpu_types.len();
        let class_types = classes
            .iter()
            .map(|class| {
                class
                    .speed
                    .iter()
                    .enumerate()
                    .fold(0, |mask, (kind, &speed)| mask | u64::from(speed > 0.0) << kind)
            })
            .collect();
        let type_value = (0..num_types)
            .map(|kind| classes.iter().map(|class| class.speed[kind]).sum::<f64>() / classes.len() as f64)
            .collect();
        let tenants = spec
            .tenants
            .iter()
            .map(|tenant| Tenant {
                quota_gpus: tenant.quota_gpus,
                used_gpus: 0,
                pending_gpus: 0,
            })
            .collect();
        Ok(Cluster {
            classes: classes.to_vec(),
            free: FreeIndex::new(num_types, &nodes, &racks),
            nodes,
            racks,
            gpus: vec![None; num_gpus as usize],
            tenants,
            jobs: Vec::new(),
            queue: Queue::default(),
            running: vec![OrderedSet::default(); num_types],
            num_running: 0,
            class_types,
            type_value,
            borrowing: spec.borrowing,
            capabilities,
            now: Time::ZERO,
            decisions: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// Moves the clock. Time never runs backwards.
    pub fn advance(&mut self, now: Time) {
        assert!(
            now >= self.now,
            "the clock runs backwards: {:?} after {:?}",
            now,
            self.now
        );
        self.now = now;
    }

    /// Adds a pending job at the present time.
    ///
    /// # Errors
    /// A request that can never be met: no GPUs, more than the cluster or the quota holds, an estimate that is no
    /// positive number, an unknown tenant or class.
    pub fn submit(&mut self, request: Submission) -> Result<JobId, ConfigError> {
        self.validate_request(&request)?;
        let id = JobId(self.jobs.len() as u32);
        self.jobs.push(Job {
            submit: self.now,
            request,
            state: JobState::Pending,
            attained_gpu_s: 0.0,
            executed_s: 0.0,
            run_start: Time::ZERO,
            first_start: None,
            rate: 0.0,
            run_cost_s: 0.0,
            expected_finish: Time::MAX,
            num_preemptions: 0,
            placement: Placement::new(),
        });
        self.enqueue(id);
        Ok(id)
    }

    fn validate_request(&self, request: &Submission) -> Result<(), ConfigError> {
        let bad = |key: &str, value: String, allowed: String, hint: &str| {
            Err(ConfigError {
                key: format!("job.{key}"),
                value,
                allowed,
                hint: hint.into(),
            })
        };
        let Some(tenant) = self.tenants.get(request.tenant.index()) else {
            let allowed = format!("0 to {}", self.tenants.len() - 1);
            return bad(
                "tenant",
                request.tenant.0.to_string(),
                allowed,
                "declare the tenant in the cluster",
            );
        };
        let Some(types) = self.class_types.get(request.class.index()) else {
            let allowed = format!("0 to {}", self.classes.len() - 1);
            return bad(
                "class",
                request.class.0.to_string(),
                allowed,
                "declare the model class",
            );
        };
        let most = self
            .types_in(*types)
            .map(|kind| self.free.num_gpus[kind.index()])
            .max()
            .unwrap_or(0);
        let most = if self.borrowing {
            most
        } else {
            most.min(tenant.quota_gpus)
        };
        if request.num_gpus == 0 || request.num_gpus > most {
            let hint = "a gang runs on one GPU type and, without borrowing, within its tenant's quota";
            return bad(
                "num_gpus",
                request.num_gpus.to_string(),
                format!("1 to {most}"),
                hint,
            );
        }
        let estimate_s = request.estimate_s.value;
        if !(estimate_s > 0.0 && estimate_s <= 1e10) {
            return bad(
                "estimate_s",
                estimate_s.to_string(),
                "above 0 and at most 1e10".into(),
                "in seconds",
            );
        }
        Ok(())
    }

    /// Gives a pending job its gang, all at once.
    ///
    /// # Panics
    /// If the job is not pending, a GPU is not free, or the placement is not exactly the gang on one type: a caller
    /// that does this is broken, and going on would oversubscribe GPUs.
    pub fn start(&mut self, id: JobId, placement: Placement) {
        let facts = self.facts(self.jobs[id.index()].request.class, &placement);
        let job = &self.jobs[id.index()];
        assert_eq!(job.state, JobState::Pending, "{id:?} must be pending to start");
        assert_eq!(
            facts.num_gpus, job.request.num_gpus,
            "{id:?} must get its whole gang"
        );
        assert!(facts.rate > 0.0, "{id:?} cannot run on {:?}", facts.gpu_type);
        assert!(
            self.has_room(self.demand(id)),
            "{id:?} would exceed its tenant's quota"
        );
        self.dequeue(id);
        for slice in &placement {
            self.take(id, *slice);
        }
        let own = self.placement_of(&placement);
        let (now, restart_cost_s) = (self.now, self.capabilities.restart_cost_s);
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Running;
        job.run_cost_s = if job.num_preemptions > 0 {
            restart_cost_s
        } else {
            0.0
        };
        job.run_start = now;
        job.first_start.get_or_insert(now);
        job.rate = facts.rate;
        let rest_s = (job.request.estimate_s.value - job.executed_s).max(1.0);
        job.expected_finish = now + Time::from_secs_f64(job.run_cost_s + rest_s / facts.rate);
        job.placement = own;
        let (tenant, num_gpus, finish) = (job.request.tenant, job.request.num_gpus, job.expected_finish);
        self.tenants[tenant.index()].used_gpus += num_gpus;
        self.running[facts.gpu_type.index()].insert((finish, id));
        self.num_running += 1;
        self.decisions.push(Decision::Start { job: id, placement });
    }

    /// Takes a running job's gang away and puts it back into the queue with its progress.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn preempt(&mut self, id: JobId) {
        self.stop(id);
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Pending;
        job.num_preemptions += 1;
        self.enqueue(id);
        self.decisions.push(Decision::Preempt { job: id });
    }

    /// A running job has left of its own accord (done, failed or killed).
    ///
    /// # Panics
    /// If the job does not run.
    pub fn finish(&mut self, id: JobId) {
        self.stop(id);
        self.jobs[id.index()].state = JobState::Finished;
    }

    fn stop(&mut self, id: JobId) {
        let now = self.now;
        let job = &mut self.jobs[id.index()];
        assert_eq!(job.state, JobState::Running, "{id:?} must run to stop");
        job.attained_gpu_s = job.attained_gpu_s_at(now);
        job.executed_s = job.executed_s_at(now);
        let placement = std::mem::take(&mut job.placement);
        let (tenant, num_gpus, finish) = (job.request.tenant, job.request.num_gpus, job.expected_finish);
        job.expected_finish = Time::MAX;
        let kind = self.nodes[placement[0].node.index()].gpu_type;
        assert!(
            self.running[kind.index()].remove(&(finish, id)),
            "{id:?} is not among the running"
        );
        self.num_running -= 1;
        self.tenants[tenant.index()].used_gpus -= num_gpus;
        for slice in &placement {
            self.give_back(id, *slice);
        }
        self.put_by(placement);
    }

    fn take(&mut self, id: JobId, slice: Slice) {
        let node = &mut self.nodes[slice.node.index()];
        assert!(
            slice.gpus != 0 && slice.gpus & !node.free == 0,
            "{slice:?} is not free for {id:?}"
        );
        let before = node.num_free();
        node.free &= !slice.gpus;
        self.racks[node.rack.index()].num_free -= slice.num_gpus();
        let first = node.first_gpu;
        self.free.moved(slice.node, node, before);
        for gpu in bits(slice.gpus) {
            self.gpus[(first + gpu) as usize] = Some(id);
        }
    }

    fn give_back(&mut self, id: JobId, slice: Slice) {
        let node = &mut self.nodes[slice.node.index()];
        let before = node.num_free();
        node.free |= slice.gpus;
        self.racks[node.rack.index()].num_free += slice.num_gpus();
        let first = node.first_gpu;
        self.free.moved(slice.node, node, before);
        for gpu in bits(slice.gpus) {
            let owner = self.gpus[(first + gpu) as usize].take();
            debug_assert_eq!(
                owner,
                Some(id),
                "GPU {gpu} of {:?} belongs to another job",
                slice.node
            );
        }
    }

    fn enqueue(&mut self, id: JobId) {
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.tenants[demand.tenant.index()].pending_gpus += u64::from(demand.num_gpus);
        self.queue.insert(demand, id, keys);
    }

    fn dequeue(&mut self, id: JobId) {
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.tenants[demand.tenant.index()].pending_gpus -= u64::from(demand.num_gpus);
        self.queue.remove(demand, id, keys);
    }

    fn queue_keys(&self, id: JobId) -> QueueKeys {
        let job = &self.jobs[id.index()];
        // Neither changes while the job waits, so the keys at removal equal those at insertion.
        let rest_s = (job.request.estimate_s.value - job.executed_s).max(1.0);
        QueueKeys {
            remaining: Time::from_secs_f64(rest_s),
            service_class: service_class(job.attained_gpu_s),
        }
    }

    /// What a job asks for.
    #[must_use]
    pub fn demand(&self, id: JobId) -> Demand {
        self.demand_of(&self.jobs[id.index()].request)
    }

    /// What a job will ask for that is submitted like this.
    ///
    /// # Panics
    /// If there is no such model class.
    #[must_use]
    pub fn demand_of(&self, request: &Submission) -> Demand {
        Demand {
            tenant: request.tenant,
            num_gpus: request.num_gpus,
            types: self.class_types[request.class.index()],
        }
    }

    /// Whether the tenant's quota leaves room for the demand; always where borrowing is allowed.
    #[must_use]
    pub fn has_room(&self, demand: Demand) -> bool {
        let tenant = &self.tenants[demand.tenant.index()];
        self.borrowing || tenant.used_gpus + demand.num_gpus <= tenant.quota_gpus
    }

    /// GPUs that the tenant may still take by its quota; without limit where borrowing is allowed.
    #[must_use]
    pub fn quota_left(&self, tenant: TenantId) -> u32 {
        if self.borrowing {
            return u32::MAX;
        }
        let tenant = &self.tenants[tenant.index()];
        tenant.quota_gpus.saturating_sub(tenant.used_gpus)
    }

    /// The types in a mask, lowest first.
    pub fn types_in(&self, types: u64) -> impl Iterator<Item = GpuTypeId> + use<> {
        bits(types).map(|kind| GpuTypeId(kind as u8))
    }

    /// The types of a demand on which a gang of this size is free now, as a mask.
    #[must_use]
    pub fn fitting_types(&self, demand: Demand) -> u64 {
        if !self.has_room(demand) {
            return 0;
        }
        bits(demand.types)
            .filter(|&kind| self.free.num_free[kind as usize] >= demand.num_gpus)
            .fold(0, |mask, kind| mask | 1 << kind)
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Present time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }
    /// The job table.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
    /// One job.
    #[must_use]
    pub fn job(&self, id: JobId) -> &Job {
        &self.jobs[id.index()]
    }
    /// The node table.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// The rack table.
    #[must_use]
    pub fn racks(&self) -> &[Rack] {
        &self.racks
    }
    /// Owner of every GPU, node by node.
    #[must_use]
    pub fn gpus(&self) -> &[Option<JobId>] {
        &self.gpus
    }
    /// The tenant table.
    #[must_use]
    pub fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }
    /// One model class.
    #[must_use]
    pub fn class(&self, id: ClassId) -> &ModelClass {
        &self.classes[id.index()]
    }
    /// One tenant.
    #[must_use]
    pub fn tenant(&self, id: TenantId) -> &Tenant {
        &self.tenants[id.index()]
    }
    /// What the cluster can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
    /// Number of GPU types.
    #[must_use]
    pub fn num_types(&self) -> usize {
        self.free.num_gpus.len()
    }
    /// GPUs of a type.
    #[must_use]
    pub fn num_gpus_of(&self, kind: GpuTypeId) -> u32 {
        self.free.num_gpus[kind.index()]
    }
    /// Free GPUs of a type.
    #[must_use]
    pub fn num_free_of(&self, kind: GpuTypeId) -> u32 {
        self.free.num_free[kind.index()]
    }
    /// GPUs in all.
    #[must_use]
    pub fn num_gpus(&self) -> u32 {
        self.gpus.len() as u32
    }
    /// Free GPUs in all.
    #[must_use]
    pub fn num_free(&self) -> u32 {
        self.free.num_free.iter().sum()
    }
    /// Most free GPUs in one node of a type.
    #[must_use]
    pub fn largest_free_of(&self, kind: GpuTypeId) -> u32 {
        self.free.largest_free(kind)
    }
    /// Most GPUs in one node of a type.
    #[must_use]
    pub fn node_gpus_max_of(&self, kind: GpuTypeId) -> u32 {
        self.free.node_gpus_max[kind.index()]
    }
    /// Nodes of a type's largest size without any job.
    #[must_use]
    pub fn num_empty_nodes_of(&self, kind: GpuTypeId) -> u32 {
        self.free.num_nodes_with(kind, self.node_gpus_max_of(kind))
    }
    /// Least believed GPU time of a pending job, GPU·s; zero without one.
    #[must_use]
    pub fn smallest_pending_gpu_s(&self) -> f64 {
        let firsts = self.queue.heads().iter().map(|head| {
            let (rest, _) = head.remaining;
            rest.as_secs_f64() * f64::from(head.demand.num_gpus)
        });
        firsts.min_by(f64::total_cmp).unwrap_or(0.0)
    }
    /// Number of pending jobs.
    #[must_use]
    pub fn num_pending(&self) -> usize {
        self.queue.len()
    }
    /// GPUs that the pending jobs ask for.
    #[must_use]
    pub fn num_pending_gpus(&self) -> u64 {
        self.queue.num_gpus()
    }
    /// Number of running jobs.
    #[must_use]
    pub fn num_running(&self) -> usize {
        self.num_running
    }
    /// Running jobs of a type by believed end, earliest first.
    #[must_use]
    pub fn running_of(&self, kind: GpuTypeId) -> &OrderedSet<(Time, JobId)> {
        &self.running[kind.index()]
    }
    /// What was decided since this was last asked, in order.
    pub fn take_decisions(&mut self, into: &mut Vec<Decision>) {
        into.append(&mut self.decisions);
    }
}

/// Positions of the set bits, lowest first.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros();
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::estimate::{Estimate, Provenance};
    use crate::spec::LocalityFactors;
    use proptest::prelude::*;

    /// A cluster with one class at speed 1 and Philly's locality factors; preemption on.
    pub(crate) fn cluster_of(spec: &ClusterSpec) -> Cluster {
        let class = ModelClass {
            name: "any".into(),
            speed: vec![1.0; spec.gpu_types.len()],
            locality: LocalityFactors::PHILLY,
        };
        let capabilities = Capabilities {
            preemption: true,
            ..Capabilities::default()
        };
        Cluster::new(spec, &[class], capabilities).unwrap()
    }

    /// Submits a job of tenant 0 and class 0.
    pub(crate) fn submit(cluster: &mut Cluster, num_gpus: u32, estimate_s: f64) -> JobId {
        submit_for(cluster, 0, num_gpus, estimate_s)
    }

    /// Submits a job of class 0.
    pub(crate) fn submit_for(cluster: &mut Cluster, tenant: u16, num_gpus: u32, estimate_s: f64) -> JobId {
        let estimate_s = Estimate {
            value: estimate_s,
            provenance: Provenance::Oracle,
        };
        let request = Submission {
            tenant: TenantId(tenant),
            class: ClassId(0),
            num_gpus,
            estimate_s,
        };
        cluster.submit(request).unwrap()
    }

    #[test]
    fn attained_service_and_progress_follow_the_clock() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let job = submit(&mut cluster, 2, 100.0);
        cluster.advance(Time::from_secs_f64(10.0));
        cluster.start(
            job,
            [Slice {
                node: NodeId(0),
                gpus: 0b11,
            }]
            .into_iter()
            .collect(),
        );
        assert_eq!(cluster.job(job).expected_finish, Time::from_secs_f64(110.0));
        cluster.advance(Time::from_secs_f64(40.0));
        assert_eq!(
            cluster.job(job).attained_gpu_s_at(cluster.now()),
            60.0,
            "2 GPUs for 30 s"
        );
        assert_eq!(cluster.job(job).remaining_s_at(cluster.now()), 70.0);
        cluster.preempt(job);
        cluster.check();
        cluster.advance(Time::from_secs_f64(50.0));
        cluster.start(
            job,
            [Slice {
                node: NodeId(0),
                gpus: 0b1100,
            }]
            .into_iter()
            .collect(),
        );
        // 30 s of restart cost, then the 70 s that are left.
        assert_eq!(cluster.job(job).expected_finish, Time::from_secs_f64(150.0));
        cluster.advance(Time::from_secs_f64(60.0));
        assert_eq!(
            cluster.job(job).remaining_s_at(cluster.now()),
            70.0,
            "still restoring"
        );
        cluster.advance(Time::from_secs_f64(150.0));
        cluster.finish(job);
        cluster.check();
        assert_eq!(cluster.num_free(), 4);
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        assert_eq!(decisions.len(), 3, "start, preempt, start");
    }

    #[test]
    fn requests_that_can_never_be_met_are_refused_with_the_reason() {
        let mut spec = ClusterSpec::uniform(2, 4, 2);
        spec.tenants[0].quota_gpus = 5;
        spec.borrowing = false;
        let mut cluster = cluster_of(&spec);
        let estimate_s = Estimate {
            value: 1.0,
            provenance: Provenance::Oracle,
        };
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus: 1,
            estimate_s,
        };
        let text = |request| cluster.clone().submit(request).unwrap_err().to_string();
        assert!(
            text(Submission {
                num_gpus: 6,
                ..request
            })
            .contains("1 to 5")
        );
        assert!(
            text(Submission {
                num_gpus: 0,
                ..request
            })
            .contains("job.num_gpus = 0")
        );
        assert!(
            text(Submission {
                tenant: TenantId(3),
                ..request
            })
            .contains("job.tenant = 3")
        );
        let nan = Estimate {
            value: f64::NAN,
            provenance: Provenance::Oracle,
        };
        assert!(
            text(Submission {
                estimate_s: nan,
                ..request
            })
            .contains("NaN")
        );
        assert!(cluster.submit(request).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn random_starts_preemptions_and_finishes_keep_every_invariant(
            seed_jobs in proptest::collection::vec((1_u32..12, 0_u16..3, 1.0_f64..500.0), 1..40),
            moves in proptest::collection::vec((0_u8..4, 0_usize..40, 0_i64..50), 1..120),
            borrowing in proptest::bool::ANY,
        ) {
            let mut spec = ClusterSpec::uniform(5, 4, 2);
            spec.tenants = (0..3)
                .map(|id| crate::spec::TenantSpec { name: format!("t{id}"), quota_gpus: 6 })
                .collect();
            spec.borrowing = borrowing;
            let mut cluster = cluster_of(&spec);
            for (num_gpus, tenant, estimate_s) in seed_jobs {
                let most = if borrowing { 12 } else { 6 };
                submit_for(&mut cluster, tenant, num_gpus.min(most), estimate_s);
            }
            for (kind, pick, dt) in moves {
                cluster.advance(cluster.now() + Time(dt * 1_000_000));
                let id = JobId((pick % cluster.jobs().len()) as u32);
                let job = cluster.job(id).clone();
                match (kind, job.state) {
                    (0 | 1, JobState::Pending) => {
                        let template = if kind == 0 { Template::Fastest } else { Template::Fragments };
                        let mut out = Vec::new();
                        if cluster.has_room(cluster.demand(id))
                            && cluster.place(template, GpuTypeId(0), job.request.num_gpus, &mut out)
                        {
                            cluster.start(id, out.into_iter().collect());
                        }
                    }
                    (2, JobState::Running) => cluster.preempt(id),
                    (3, JobState::Running) => cluster.finish(id),
                    _ => {}
                }
                cluster.check();
            }
            // Giving everything back restores the empty cluster.
            for id in (0..cluster.jobs().len()).map(|id| JobId(id as u32)) {
                if cluster.job(id).state == JobState::Running { cluster.finish(id); }
            }
            cluster.check();
            prop_assert_eq!(cluster.num_free(), 20);
        }
    }
}
