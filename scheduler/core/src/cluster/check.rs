//! The cluster's invariants, recomputed from scratch. Always on in tests; a broken one is our fault, so it panics.

use std::collections::BTreeSet;

use super::jobs::attained_service::RunningService;
use super::{Cluster, JobState, Kept, NodeState, bits};
use crate::ids::{JobId, NodeId, Time};

impl Cluster {
    /// Asserts every invariant: GPUs, masks, racks, indexes, tenants, queue orders and running jobs agree.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.check_gpus();
        self.check_free();
        self.check_jobs();
        self.check_tenants();
        self.check_links();
    }

    fn check_gpus(&self) {
        let mut holders: Vec<Vec<JobId>> = vec![Vec::new(); self.places.gpus.len()];
        let mut reserved = vec![(0_u32, 0_u32); self.places.nodes.len()];
        for (id, job) in self.jobs.rows.iter().enumerate() {
            let running = job.state == JobState::Running;
            assert_eq!(
                running,
                !job.placement.is_empty(),
                "job {id} holds GPUs exactly while it runs"
            );
            if running {
                let held: u32 = job.placement.iter().map(|slice| slice.num_gpus()).sum();
                assert_eq!(held, job.num_held, "job {id} holds what it was given");
                let elastic =
                    self.facts.classes[job.request.class.index()].elastic.is_some() || job.is_forked;
                assert!(
                    elastic || held == job.request.num_gpus,
                    "job {id} holds its whole gang"
                );
                let tasks = job.request.resources.tasks;
                let gpus = job.placement.iter().map(|slice| slice.num_gpus());
                assert!(tasks.allow(gpus), "job {id} is cut into its tasks");
            }
            let shape = self.shape(job.granted);
            for slice in &job.placement {
                let node = &self.places.nodes[slice.node.index()];
                assert_ne!(
                    node.state,
                    NodeState::Down,
                    "job {id} runs on a node that is down"
                );
                for gpu in bits(slice.gpus) {
                    assert!(
                        gpu < node.num_gpus,
                        "job {id} holds GPU {gpu} of {} in {:?}",
                        node.num_gpus,
                        slice.node
                    );
                    holders[(node.first_gpu + gpu) as usize].push(JobId(id as u32));
                }
                let (cpu, memory) = &mut reserved[slice.node.index()];
                *cpu += shape.cpu_milli * slice.num_gpus();
                *memory += shape.memory_mib * slice.num_gpus();
            }
        }
        for (row, gpu) in self.places.shared.iter() {
            let jobs: Vec<JobId> = gpu.residents.iter().map(|resident| resident.job).collect();
            let is_fused = self.fused(jobs[0], &jobs[1..], gpu.gpu_type).is_some();
            assert_eq!(gpu.is_fused, is_fused, "GPU row {row} runs one program");
        }
        for (row, holders) in holders.iter_mut().enumerate() {
            let mut residents: Vec<JobId> = match self.places.shared.get(row as u32) {
                Some(gpu) => gpu.residents.iter().map(|resident| resident.job).collect(),
                None => self.places.gpus[row].into_iter().collect(),
            };
            assert!(
                self.places.gpus[row].is_none() || self.places.shared.get(row as u32).is_none(),
                "GPU row {row} is owned and shared"
            );
            holders.sort_unstable();
            residents.sort_unstable();
            assert_eq!(*holders, residents, "GPU row {row} knows who holds it");
        }
        for (id, (node, (cpu, memory))) in self.places.nodes.iter().zip(reserved).enumerate() {
            assert_eq!(node.cpu_milli_free + cpu, node.cpu_milli, "CPU of node {id}");
            assert_eq!(
                node.memory_mib_free + memory,
                node.memory_mib,
                "memory of node {id}"
            );
        }
        self.places.shared.check(&self.facts.of_types);
    }

    fn check_free(&self) {
        let mut free_of = vec![0_u32; self.num_types()];
        for (id, node) in self.places.nodes.iter().enumerate() {
            for gpu in 0..node.num_gpus {
                let free = (node.free | node.withheld) >> gpu & 1 == 1;
                let row = node.first_gpu + gpu;
                let held = self.places.gpus[row as usize].is_some() || self.places.shared.get(row).is_some();
                assert_eq!(free, !held, "free mask of node {id}");
            }
            assert_eq!(node.free & node.withheld, 0, "node {id} offers what it withholds");
            let up = node.state == NodeState::Up;
            assert!(
                if up {
                    node.withheld == node.kept
                } else {
                    node.free == 0 && node.kept == 0
                },
                "node {id} offers GPUs exactly while it is up and they are not kept"
            );
            free_of[node.gpu_type.index()] += node.num_free();
            let mut indexed = self.places.free.with_free(node.gpu_type, node.num_free());
            assert!(
                indexed.any(|other| other == NodeId(id as u32)),
                "node {id} is indexed under its free GPUs"
            );
        }
        assert_eq!(free_of, self.places.free.num_free, "free GPUs of each type");
        assert_eq!(
            free_of.iter().max(),
            Some(&self.places.free.num_free_max),
            "most free GPUs of a type"
        );
        let not_up = self
            .places
            .nodes
            .iter()
            .filter(|node| node.state != NodeState::Up);
        assert_eq!(not_up.count(), self.places.num_not_up, "nodes that are not up");
        for kind in self.types_in(u64::MAX >> (64 - self.num_types())) {
            let nodes = self.places.nodes.iter().filter(|node| node.gpu_type == kind);
            let levels: BTreeSet<u32> = nodes
                .map(super::Node::num_free)
                .filter(|free| *free > 0)
                .collect();
            assert!(
                self.places.free.levels(kind).eq(levels),
                "levels of free GPUs of {kind:?}"
            );
        }
        for (id, rack) in self.places.racks.iter().enumerate() {
            let first = rack.first_node.index();
            let nodes = &self.places.nodes[first..first + rack.num_nodes as usize];
            let free: u32 = nodes.iter().map(super::Node::num_free).sum();
            assert_eq!(free, rack.num_free, "free GPUs of rack {id}");
        }
    }

    fn check_jobs(&self) {
        let mut num_pending = 0;
        let mut num_running = 0;
        for (id, job) in self.jobs.rows.iter().enumerate() {
            let id = JobId(id as u32);
            match job.state {
                JobState::Pending => {
                    num_pending += 1;
                    let demand = self.demand(id);
                    let group = self
                        .jobs
                        .pending
                        .groups()
                        .find(|(other, _)| **other == demand)
                        .map(|(_, group)| group);
                    let keys = self.queue_keys(id);
                    let queued = group.is_some_and(|group| {
                        let places = [Kept::Arrival, Kept::Remaining, Kept::Service].into_iter();
                        let mut places = places.zip(keys.rows(id));
                        places.all(|(kept, place)| group.rows(kept).contains(&place))
                    });
                    assert!(queued, "{id:?} waits in every order of its group");
                }
                JobState::Running => {
                    num_running += 1;
                    let kind = job.gpu_type;
                    assert!(
                        self.jobs.running[kind.index()].contains(&(job.expected_finish, id)),
                        "{id:?} is listed"
                    );
                    let service = RunningService::of(id, job);
                    assert!(
                        self.jobs.attained_service.of(kind).contains(&service),
                        "the service of {id:?} is kept"
                    );
                    assert!(job.run_start <= job.rate_since && job.rate_since <= self.now);
                    let rate = self.rate_among_others(id);
                    assert_eq!(job.rate, rate, "{id:?} runs at the rate of its neighbours");
                }
                JobState::Held | JobState::Finished => {
                    assert_eq!(job.expected_finish, Time::MAX, "{id:?} does not run");
                }
            }
        }
        for (name, id) in &self.jobs.names {
            let job = self.job(*id);
            assert!(
                job.external == *name && job.state != JobState::Finished,
                "{id:?} waits or runs as {name}"
            );
        }
        assert_eq!(num_pending, self.jobs.pending.len(), "pending jobs");
        let num_predicted: usize = self.pending().map(|id| self.num_predicted_of(id)).sum();
        assert_eq!(num_predicted, self.jobs.num_predicted, "predicted run times");
        let gpu_time = self.pending().map(|id| {
            let remaining = self.queue_keys(id).remaining.0;
            i128::from(remaining) * i128::from(self.job(id).request.num_gpus)
        });
        assert_eq!(
            gpu_time.sum::<i128>() as f64 / 1e6,
            self.pending_gpu_s(),
            "GPU time of pending jobs"
        );
        assert_eq!(num_running, self.jobs.num_running, "running jobs");
        assert_eq!(
            num_running,
            self.jobs
                .running
                .iter()
                .map(super::OrderedSet::len)
                .sum::<usize>()
        );
    }

    fn check_tenants(&self) {
        for (id, tenant) in self.jobs.tenants.iter().enumerate() {
            let of_tenant = |state| {
                let jobs = self.jobs.rows.iter().filter(move |job| job.state == state);
                jobs.filter(|job| job.request.tenant.index() == id)
                    .map(|job| (job.milli_held(), u64::from(job.request.num_gpus)))
                    .fold((0, 0), |sum, gpus| (sum.0 + gpus.0, sum.1 + gpus.1))
            };
            assert_eq!(
                of_tenant(JobState::Running).0,
                tenant.used_milli,
                "GPUs of tenant {id}"
            );
            assert_eq!(
                of_tenant(JobState::Pending).1,
                tenant.pending_gpus,
                "GPUs that tenant {id} waits for"
            );
            assert!(
                self.facts.borrowing || tenant.used_milli <= u64::from(tenant.quota_gpus) * 1000,
                "tenant {id} exceeds its quota"
            );
        }
    }
}
