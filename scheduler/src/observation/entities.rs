//! Rows about what is on the cluster beside the candidates: running jobs, and nodes with free GPUs. For networks that pool them;
//! heuristics and trees do not see them.
//!
//! Jobs are those that are believed to end first, for they decide what fits next. Nodes of one type with equally many free GPUs
//! are one row, so the number of rows does not grow with the cluster.

use crate::cluster::Cluster;
use crate::features::column::{self, NodeGroup as N, Running as R};
use crate::ids::{GpuTypeId, JobId, Time};

/// Most running jobs of an observation. *Assumed*: with more of them later ends say little about now.
pub const MAX_RUNNING: usize = 32;
/// Most groups of nodes of an observation. *Assumed*: two types of nodes with eight GPUs have as many.
pub const MAX_NODE_GROUPS: usize = 16;
/// Features of a running job.
pub const NUM_RUNNING_FEATURES: usize = column::RUNNING.len();
/// Features of a group of nodes.
pub const NUM_NODE_GROUP_FEATURES: usize = column::NODE_GROUP.len();
/// Numbers of all rows: running jobs `[MAX_RUNNING, NUM_RUNNING_FEATURES]`, then groups `[MAX_NODE_GROUPS, NUM_NODE_GROUP_FEATURES]`.
/// Rows without an entity are zero and stand last in their part.
pub const LEN: usize = RUNNING_LEN + MAX_NODE_GROUPS * NUM_NODE_GROUP_FEATURES;

const RUNNING_LEN: usize = MAX_RUNNING * NUM_RUNNING_FEATURES;

/// Working memory of the writer.
#[derive(Clone, Debug)]
pub struct EntityWriter {
    /// The first running jobs of each type, by believed end.
    ends: Vec<(Time, JobId, GpuTypeId)>,
}

impl Default for EntityWriter {
    fn default() -> EntityWriter {
        EntityWriter {
            ends: Vec::with_capacity(4 * MAX_RUNNING),
        }
    }
}

impl EntityWriter {
    /// Writes all rows; `out` is `[LEN]`.
    pub fn write(&mut self, cluster: &Cluster, out: &mut [f32]) {
        out.fill(0.0);
        let (running, groups) = out.split_at_mut(RUNNING_LEN);
        let kinds = || (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
        let fastest = kinds()
            .map(|kind| cluster.best_speed_on(kind))
            .fold(0.0, f64::max);
        let speed_ratio = |kind: GpuTypeId| (cluster.best_speed_on(kind) / fastest) as f32;

        self.ends.clear();
        for kind in kinds() {
            let first = cluster.running_of(kind).iter().take(MAX_RUNNING);
            self.ends.extend(first.map(|(end, id)| (*end, *id, kind)));
        }
        self.ends.sort_unstable_by_key(|(end, id, _)| (*end, *id));
        let rows = running.as_chunks_mut::<NUM_RUNNING_FEATURES>().0;
        for ((end, id, kind), row) in self.ends.iter().zip(rows) {
            let job = cluster.job(*id);
            let mut put = |feature: R, raw: f32| {
                row[feature as usize] = column::RUNNING[feature as usize].encode(raw);
            };
            let num_held = job.num_held.max(1) as f32;
            put(R::Gpus, num_held / cluster.num_gpus() as f32);
            put(R::NumGpus, num_held);
            put(
                R::RemainingS,
                end.since(cluster.now()).as_secs_f64().max(0.0) as f32,
            );
            put(R::Attained, job.attained_gpu_s_at(cluster.now()) as f32);
            put(R::TypeSpeed, speed_ratio(*kind));
            put(
                R::TenantUse,
                cluster.tenant(job.request.tenant).use_ratio() as f32,
            );
        }

        let mut rows = groups.as_chunks_mut::<NUM_NODE_GROUP_FEATURES>().0.iter_mut();
        let most = kinds()
            .map(|kind| cluster.largest_free_of(kind))
            .max()
            .unwrap_or(0);
        for free in (1..=most).rev() {
            for kind in kinds() {
                let num_nodes = cluster.num_nodes_with(kind, free);
                if num_nodes == 0 {
                    continue;
                }
                let Some(row) = rows.next() else { return };
                let mut put = |feature: N, raw: f32| {
                    row[feature as usize] = column::NODE_GROUP[feature as usize].encode(raw);
                };
                put(N::Nodes, num_nodes as f32 / cluster.nodes().len() as f32);
                put(N::NumFree, free as f32);
                put(
                    N::Free,
                    free as f32 / cluster.node_gpus_max_of(kind).max(1) as f32,
                );
                put(N::TypeSpeed, speed_ratio(kind));
            }
        }
    }
}

/// The rows of one decision point.
#[derive(Clone, Debug, Default)]
pub(super) struct Entities {
    rows: Vec<f32>,
    writer: EntityWriter,
}

impl Entities {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(super) fn fill(&mut self, cluster: &Cluster) {
        self.rows.resize(LEN, 0.0);
        self.writer.write(cluster, &mut self.rows);
    }

    pub(super) fn rows(&self) -> &[f32] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::error::PolicyError;
    use crate::pass::Pass;
    use crate::policy::{DecisionPoint, Needs, Policy};

    /// Starts whatever fits.
    fn start_all(cluster: &mut Cluster) {
        let needs = Needs {
            actions: crate::ActionSet::NONE,
            ..Needs::full()
        };
        let mut pass = Pass::new();
        let mut state = pass.open(cluster, &needs);
        while state == crate::pass::PassState::Open {
            state = pass.act(cluster, &needs, 1);
        }
    }

    fn written(cluster: &Cluster) -> Vec<f32> {
        let mut rows = vec![f32::NAN; LEN];
        EntityWriter::default().write(cluster, &mut rows);
        rows
    }

    fn running(rows: &[f32], at: usize, feature: R) -> f64 {
        let value = rows[at * NUM_RUNNING_FEATURES + feature as usize];
        column::RUNNING[feature as usize].scale.invert(value)
    }

    fn group(rows: &[f32], at: usize, feature: N) -> f64 {
        let value = rows[RUNNING_LEN + at * NUM_NODE_GROUP_FEATURES + feature as usize];
        column::NODE_GROUP[feature as usize].scale.invert(value)
    }

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-4 * expected.abs().max(1.0),
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_rows_of_a_small_cluster_are_those_worked_by_hand() {
        // Three nodes of 4 GPUs. 3 GPUs for 300 s and 4 GPUs for 100 s since 0 s, 1 GPU for 50 s since 40 s; it is 60 s.
        let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 3));
        submit(&mut cluster, 3, 300.0);
        submit(&mut cluster, 4, 100.0);
        start_all(&mut cluster);
        cluster.advance(Time::from_secs_f64(40.0));
        submit(&mut cluster, 1, 50.0);
        start_all(&mut cluster);
        cluster.advance(Time::from_secs_f64(60.0));
        let rows = written(&cluster);
        for (at, (gpus, remaining_s, attained_gpu_s)) in
            [(1.0, 30.0, 20.0), (4.0, 40.0, 240.0), (3.0, 240.0, 180.0)]
                .into_iter()
                .enumerate()
        {
            close(running(&rows, at, R::NumGpus), gpus);
            close(running(&rows, at, R::Gpus), gpus / 12.0);
            close(running(&rows, at, R::RemainingS), remaining_s);
            close(running(&rows, at, R::Attained), attained_gpu_s);
            close(running(&rows, at, R::TypeSpeed), 1.0);
            close(running(&rows, at, R::TenantUse), 8.0 / 12.0);
        }
        // The single GPU went beside the gang of three: one node is empty, two are full.
        close(group(&rows, 0, N::Nodes), 1.0 / 3.0);
        close(group(&rows, 0, N::NumFree), 4.0);
        close(group(&rows, 0, N::Free), 1.0);
        let empty = rows[3 * NUM_RUNNING_FEATURES..RUNNING_LEN]
            .iter()
            .chain(&rows[RUNNING_LEN + NUM_NODE_GROUP_FEATURES..]);
        assert!(empty.copied().all(|value| value == 0.0));
    }

    #[test]
    fn of_more_jobs_than_rows_those_that_end_first_are_shown() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(10, 8, 5));
        for index in 0..80 {
            submit(&mut cluster, 1, 1000.0 - 10.0 * f64::from(index));
        }
        start_all(&mut cluster);
        assert_eq!(cluster.num_running(), 80);
        let rows = written(&cluster);
        for at in 0..MAX_RUNNING {
            close(running(&rows, at, R::RemainingS), 210.0 + 10.0 * at as f64);
        }
        assert!(
            rows[RUNNING_LEN..].iter().all(|value| *value == 0.0),
            "no GPU is free"
        );
    }

    #[test]
    fn only_who_asks_is_shown_entities() {
        struct Looks(bool, usize);
        impl Policy for Looks {
            fn name(&self) -> &str {
                "looks"
            }
            fn needs(&self) -> Needs {
                Needs {
                    entities: self.0,
                    ..Needs::full()
                }
            }
            fn score(&mut self, point: DecisionPoint<'_>, _: &mut [f32]) -> Result<(), PolicyError> {
                self.1 = point.observation.entities.len();
                Ok(())
            }
        }
        let mut cluster = cluster_of(&ClusterSpec::uniform(2, 4, 2));
        submit(&mut cluster, 1, 10.0);
        let mut pass = Pass::new();
        let (mut asks, mut does_not) = (Looks(true, 0), Looks(false, 0));
        pass.open(&cluster, &asks.needs());
        for _ in 0..2 {
            pass.decide(&cluster, &mut asks).unwrap();
            pass.decide(&cluster, &mut does_not).unwrap();
            assert_eq!((asks.1, does_not.1), (LEN, 0));
        }
    }
}
