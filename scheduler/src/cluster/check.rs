//! The cluster's invariants, recomputed from scratch. Always on in tests; a broken one is our fault, so it panics.

use std::collections::BTreeSet;

use super::{Cluster, JobState, bits};
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
    }

    fn check_gpus(&self) {
        let mut owner = vec![None; self.gpus.len()];
        for (id, job) in self.jobs.iter().enumerate() {
            let running = job.state == JobState::Running;
            assert_eq!(
                running,
                !job.placement.is_empty(),
                "job {id} holds GPUs exactly while it runs"
            );
            if running {
                let held: u32 = job.placement.iter().map(|slice| slice.num_gpus()).sum();
                assert_eq!(held, job.request.num_gpus, "job {id} holds its whole gang");
            }
            for slice in &job.placement {
                let node = &self.nodes[slice.node.index()];
                for gpu in bits(slice.gpus) {
                    assert!(
                        gpu < node.num_gpus,
                        "job {id} holds GPU {gpu} of {} in {:?}",
                        node.num_gpus,
                        slice.node
                    );
                    let row = (node.first_gpu + gpu) as usize;
                    assert_eq!(
                        owner[row], None,
                        "GPU {gpu} of {:?} belongs to two jobs",
                        slice.node
                    );
                    owner[row] = Some(JobId(id as u32));
                }
            }
        }
        assert_eq!(owner, self.gpus, "the GPU table agrees with the placements");
    }

    fn check_free(&self) {
        let mut free_of = vec![0_u32; self.num_types()];
        for (id, node) in self.nodes.iter().enumerate() {
            for gpu in 0..node.num_gpus {
                let free = node.free >> gpu & 1 == 1;
                assert_eq!(
                    free,
                    self.gpus[(node.first_gpu + gpu) as usize].is_none(),
                    "free mask of node {id}"
                );
            }
            free_of[node.gpu_type.index()] += node.num_free();
            let mut indexed = self.free.with_free(node.gpu_type, node.num_free());
            assert!(
                indexed.any(|other| other == NodeId(id as u32)),
                "node {id} is indexed under its free GPUs"
            );
        }
        assert_eq!(free_of, self.free.num_free, "free GPUs of each type");
        for kind in self.types_in(u64::MAX >> (64 - self.num_types())) {
            let nodes = self.nodes.iter().filter(|node| node.gpu_type == kind);
            let levels: BTreeSet<u32> = nodes
                .map(super::Node::num_free)
                .filter(|free| *free > 0)
                .collect();
            assert!(
                self.free.levels(kind).eq(levels),
                "levels of free GPUs of {kind:?}"
            );
        }
        for (id, rack) in self.racks.iter().enumerate() {
            let first = rack.first_node.index();
            let nodes = &self.nodes[first..first + rack.num_nodes as usize];
            let free: u32 = nodes.iter().map(super::Node::num_free).sum();
            assert_eq!(free, rack.num_free, "free GPUs of rack {id}");
        }
    }

    fn check_jobs(&self) {
        let mut num_pending = 0;
        let mut num_running = 0;
        for (id, job) in self.jobs.iter().enumerate() {
            let id = JobId(id as u32);
            match job.state {
                JobState::Pending => {
                    num_pending += 1;
                    let demand = self.demand(id);
                    let group = self
                        .queue
                        .groups()
                        .find(|(other, _)| **other == demand)
                        .map(|(_, group)| group);
                    let keys = self.queue_keys(id);
                    let queued = group.is_some_and(|group| {
                        group.arrival.contains(&id)
                            && group.remaining.contains(&(keys.remaining, id))
                            && group.service.contains(&(keys.service_class, id))
                    });
                    assert!(queued, "{id:?} waits in every order of its group");
                }
                JobState::Running => {
                    num_running += 1;
                    let kind = self.nodes[job.placement[0].node.index()].gpu_type;
                    assert!(
                        self.running[kind.index()].contains(&(job.expected_finish, id)),
                        "{id:?} is listed"
                    );
                    assert!(job.run_start <= self.now, "{id:?} runs since the future");
                }
                JobState::Finished => assert_eq!(job.expected_finish, Time::MAX),
            }
        }
        assert_eq!(num_pending, self.queue.len(), "pending jobs");
        assert_eq!(num_running, self.num_running, "running jobs");
        assert_eq!(
            num_running,
            self.running.iter().map(super::OrderedSet::len).sum::<usize>()
        );
    }

    fn check_tenants(&self) {
        for (id, tenant) in self.tenants.iter().enumerate() {
            let of_tenant = |state| {
                let jobs = self.jobs.iter().filter(move |job| job.state == state);
                jobs.filter(|job| job.request.tenant.index() == id)
                    .map(|job| u64::from(job.request.num_gpus))
                    .sum()
            };
            let (used, pending): (u64, u64) = (of_tenant(JobState::Running), of_tenant(JobState::Pending));
            assert_eq!(used, u64::from(tenant.used_gpus), "GPUs of tenant {id}");
            assert_eq!(pending, tenant.pending_gpus, "GPUs that tenant {id} waits for");
            assert!(
                self.borrowing || tenant.used_gpus <= tenant.quota_gpus,
                "tenant {id} exceeds its quota"
            );
        }
    }
}
