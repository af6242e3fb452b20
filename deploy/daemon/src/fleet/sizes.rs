//! Nodes of a GPU type by their sizes, and the jobs that they hold.

use pleach_scheduler::Tasks;

use crate::snapshot::JobSeen;

/// How the gang of a job is cut: its parts lie on a node each, and on nodes of their own unless they are pods.
pub(crate) fn tasks_of(job: &JobSeen) -> Tasks {
    match job.num_nodes {
        1 => Tasks::ANY,
        _ => Tasks {
            // What is more than a node has fits nowhere.
            gpus_per_task: u8::try_from(job.gpus_per_node).unwrap_or(u8::MAX).max(1),
            tasks_per_node_max: u8::from(!job.is_packed),
            ..Tasks::ANY
        },
    }
}

/// Whether a node of so many GPUs holds all of a job.
pub(super) fn is_whole_on(num_gpus: u32, job: &JobSeen) -> bool {
    match job.num_nodes {
        1 => job.gpus_per_node <= num_gpus.min(64),
        num => tasks_of(job).num_on(num_gpus.min(64)) / job.gpus_per_node.max(1) >= num,
    }
}

/// Nodes of a type by the number of their GPUs, 0 to 64.
pub(super) struct Sizes([u32; 65]);

impl Sizes {
    pub(super) const NONE: Sizes = Sizes([0; 65]);

    pub(super) fn add(&mut self, num_gpus: u32) {
        self.0[num_gpus.min(64) as usize] += 1;
    }

    pub(super) fn largest(&self) -> u32 {
        (1..=64)
            .rev()
            .find(|size| self.0[*size as usize] > 0)
            .unwrap_or(0)
    }

    /// Parts of a job that its nodes hold.
    pub(super) fn num_parts(&self, job: &JobSeen) -> u64 {
        let (tasks, each) = (tasks_of(job), job.gpus_per_node.max(1));
        let parts = (0..=64_u32).zip(self.0);
        parts
            .map(|(size, num)| u64::from(tasks.num_on(size) / each) * u64::from(num))
            .sum()
    }

    /// Whether they hold all of it.
    pub(super) fn hold(&self, job: &JobSeen) -> bool {
        match job.num_nodes {
            1 => job.gpus_per_node <= self.largest(),
            num => self.num_parts(job) >= u64::from(num),
        }
    }
}
