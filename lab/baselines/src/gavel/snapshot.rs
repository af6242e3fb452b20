//! What the programmes see of a cluster: GPUs of each type, jobs, and how fast each kind of job runs on each type,
//! alone and beside each other kind.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, NodeState, ShapeId, Sharing};
use pleach_scheduler::{GpuTypeId, JobId};

use crate::shared::what_if::is_whole_gpu_job;

/// Jobs that a programme cannot tell apart but by what they are due: one class, one gang size, the same types, and alike
/// beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// GPUs of the gang.
    pub num_gpus: u32,
    /// Work per second on each type; 0 where it cannot run. `[type]`
    pub speed: Vec<f64>,
}

impl Kind {
    /// Its speed on its fastest type.
    #[must_use]
    pub fn speed_max(&self) -> f64 {
        self.speed.iter().copied().fold(0.0, f64::max)
    }
}

/// Work per second of two kinds beside each other, the lower kind first; zeros where they cannot share. `[type]`
pub type PairSpeeds = BTreeMap<(usize, usize), Vec<[f64; 2]>>;

/// The jobs and the GPUs of one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// GPUs of each type that can be given away. `[type]`
    pub gpus: Vec<f64>,
    /// The kinds of its jobs.
    pub kinds: Vec<Kind>,
    /// Job and kind, by arrival.
    pub jobs: Vec<(JobId, usize)>,
    /// Pairs that share GPUs; empty for policies that do not pack.
    pub pairs: PairSpeeds,
}

impl Snapshot {
    /// The jobs of a cluster that wait or run and ask for whole GPUs, and the GPUs of nodes that are up. With `pack_above`,
    /// also the pairs whose speeds, as parts of their speeds alone, add up to more than that on some type.
    #[must_use]
    pub fn of(cluster: &Cluster, pack_above: Option<f64>) -> Snapshot {
        let mut gpus = vec![0.0; cluster.num_types()];
        for node in cluster.nodes().iter().filter(|node| node.state == NodeState::Up) {
            gpus[node.gpu_type.index()] += f64::from(node.num_gpus);
        }
        for (_, gpu) in cluster.shared_gpus() {
            if gpu.residents.iter().any(|resident| resident.gpu_milli < 1000) {
                gpus[gpu.gpu_type.index()] -= 1.0;
            }
        }
        let mut snapshot = Snapshot {
            gpus,
            ..Snapshot::default()
        };
        let mut numbers = BTreeMap::new();
        let mut examples = Vec::new();
        for id in cluster
            .active()
            .into_iter()
            .filter(|id| is_whole_gpu_job(cluster.job(*id)))
        {
            let job = cluster.job(id);
            let request = &job.request;
            let memory_bits = request.resources.gpu_memory_gib.to_bits();
            let key = (request.class, request.num_gpus, job.types, job.shape, memory_bits);
            let kind = *numbers.entry(key).or_insert_with(|| {
                let speed = &cluster.class(request.class).speed;
                let speed = speed
                    .iter()
                    .enumerate()
                    .map(|(kind, speed)| match job.types >> kind & 1 {
                        1 => *speed,
                        _ => 0.0,
                    });
                snapshot.kinds.push(Kind {
                    num_gpus: request.num_gpus,
                    speed: speed.collect(),
                });
                examples.push(id);
                examples.len() - 1
            });
            snapshot.jobs.push((id, kind));
        }
        snapshot.jobs.sort_unstable();
        if let Some(least) = pack_above {
            snapshot.add_pairs(cluster, &examples, least);
        }
        snapshot
    }

    fn add_pairs(&mut self, cluster: &Cluster, examples: &[JobId], least: f64) {
        if cluster.capabilities().sharing == Sharing::Off {
            return;
        }
        let is_plain = |id: &JobId| cluster.job(*id).shape == ShapeId::PLAIN;
        for (a, first) in examples.iter().enumerate() {
            for (b, second) in examples.iter().enumerate().skip(a) {
                if self.kinds[a].num_gpus != self.kinds[b].num_gpus
                    || ![first, second].into_iter().all(is_plain)
                {
                    continue;
                }
                let mut is_worth_it = false;
                let speeds = (0..self.gpus.len()).map(|kind| {
                    let gpu_type = GpuTypeId(kind as u8);
                    let alone = [self.kinds[a].speed[kind], self.kinds[b].speed[kind]];
                    if alone[0] <= 0.0
                        || alone[1] <= 0.0
                        || !cluster.can_live_beside(*first, *second, gpu_type)
                    {
                        return [0.0; 2];
                    }
                    let parts = [
                        cluster.packed_speed(*first, &[*second], gpu_type),
                        cluster.packed_speed(*second, &[*first], gpu_type),
                    ];
                    if parts[0] + parts[1] <= least {
                        return [0.0; 2];
                    }
                    is_worth_it = true;
                    [parts[0] * alone[0], parts[1] * alone[1]]
                });
                let speeds = speeds.collect();
                if is_worth_it {
                    self.pairs.insert((a, b), speeds);
                }
            }
        }
    }

    /// Makes all types on which a kind can run equally fast.
    pub(crate) fn forget_types(&mut self) {
        for ((a, b), speeds) in &mut self.pairs {
            for (gpu_type, pair) in speeds.iter_mut().enumerate() {
                let alone = [*a, *b].map(|kind| self.kinds[kind].speed[gpu_type]);
                if pair[0] > 0.0 {
                    *pair = [pair[0] / alone[0], pair[1] / alone[1]];
                }
            }
        }
        let speeds = self.kinds.iter_mut().flat_map(|kind| &mut kind.speed);
        speeds
            .filter(|speed| **speed > 0.0)
            .for_each(|speed| *speed = 1.0);
    }

    /// The kind of a job, by its place among the jobs.
    #[must_use]
    pub fn kind(&self, job: usize) -> &Kind {
        &self.kinds[self.jobs[job].1]
    }

    /// Work per second of a job to which every type gives the same: `gpus / jobs` of its time, or less where that is more
    /// than all of it; with `per_gpu`, `gpus / jobs / gang`.
    #[must_use]
    pub fn equal_share(&self, job: usize, per_gpu: bool) -> f64 {
        let kind = self.kind(job);
        let gang = if per_gpu { f64::from(kind.num_gpus) } else { 1.0 };
        let parts = self.gpus.iter().map(|gpus| gpus / self.jobs.len() as f64 / gang);
        let sum: f64 = parts.clone().sum();
        let speed: f64 = parts.zip(&kind.speed).map(|(part, speed)| part * speed).sum();
        speed / sum.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{multi_type_cluster, submit};

    #[test]
    fn jobs_of_one_class_and_gang_are_one_kind_and_share_types_equally() {
        // Types of speeds 1 and 4 with 2 GPUs each; three jobs of 1 GPU and one of 2.
        let mut cluster = multi_type_cluster(&[1.0, 4.0], 2);
        for num_gpus in [1, 1, 2, 1] {
            submit(&mut cluster, num_gpus, 1e3);
        }
        let snapshot = Snapshot::of(&cluster, None);
        assert_eq!(snapshot.gpus, [2.0, 2.0]);
        let kinds: Vec<usize> = snapshot.jobs.iter().map(|job| job.1).collect();
        assert_eq!(kinds, [0, 0, 1, 0]);
        // Half of the time on each type: 0.5 + 2. A gang of 2 comes to a quarter by GPUs.
        assert_eq!(snapshot.equal_share(0, false), 2.5);
        assert_eq!(snapshot.equal_share(2, true), 1.25);
        assert!(snapshot.pairs.is_empty());
        let mut blind = snapshot.clone();
        blind.forget_types();
        assert_eq!(blind.kind(0).speed, [1.0, 1.0]);
        assert_eq!(blind.equal_share(0, false), 1.0);
        // With one job there is more than all of its time: a half on each type.
        let mut one = multi_type_cluster(&[1.0, 4.0], 2);
        submit(&mut one, 1, 1e3);
        assert_eq!(Snapshot::of(&one, None).equal_share(0, false), 2.5);
    }
}
