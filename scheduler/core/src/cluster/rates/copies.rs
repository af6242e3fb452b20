//! Jobs that run as several copies of themselves, each on a node of its own, and split their work (HadarE).
//!
//! No candidate forks a job; planners may. The lower bounds of the simulator do not know forked jobs: a job that is copied
//! onto idle nodes can end sooner than any gang of the size that it asked for.
//!
//! # Source
//! HadarE (Hadar's journal version, arXiv 2503.10918): copies are trained independently for a round and averaged at its
//! end. That a copy on fewer GPUs than the job asks for is slower in proportion is assumed.

use crate::cluster::tables::Placement;
use crate::cluster::{Cluster, PlacementFacts, Slice};
use crate::ids::JobId;
use crate::physics::mixed::Copies;

impl Cluster {
    /// What a placement is worth to a job that runs as a copy on every slice: the sum of the copies' rates, less
    /// bringing them together. The types may differ; the facts name that of the first slice.
    ///
    /// # Panics
    /// If the placement is empty.
    #[must_use]
    pub(crate) fn copies_facts(&self, id: JobId, placement: &[Slice], copies: &Copies) -> PlacementFacts {
        let job = &self.jobs.rows[id.index()];
        let speed = &self.facts.classes[job.request.class.index()].speed;
        let rates: Vec<f64> = placement
            .iter()
            .map(|slice| {
                let node = &self.places.nodes[slice.node.index()];
                let part = f64::from(slice.num_gpus()) / f64::from(job.request.num_gpus);
                speed[node.gpu_type.index()] * part.min(1.0)
            })
            .collect();
        let left = |slice: &Slice| (self.places.nodes[slice.node.index()].free & !slice.gpus).count_ones();
        PlacementFacts {
            gpu_type: self.places.nodes[placement[0].node.index()].gpu_type,
            num_gpus: placement.iter().map(|slice| slice.num_gpus()).sum(),
            num_nodes: placement.len() as u32,
            num_nodes_min: 1,
            num_racks: self.num_racks(placement),
            locality: 1.0,
            rate: copies.rate(&rates),
            num_left: placement.iter().map(left).sum(),
        }
    }

    /// Starts a pending job as one copy on every slice of a placement. A copy holds at most as many GPUs as the job asks
    /// for; together they may hold more or less.
    ///
    /// # Panics
    /// As [`Cluster::start`]; or if a copy is larger than the gang, or all together would stand still.
    pub fn start_copies(&mut self, id: JobId, placement: Placement, copies: &Copies) {
        let facts = self.copies_facts(id, &placement, copies);
        let job = &self.jobs.rows[id.index()];
        let fits = |slice: &Slice| slice.num_gpus() <= job.request.num_gpus;
        assert!(
            placement.iter().all(fits),
            "a copy of {id:?} is larger than its gang"
        );
        let granted = job.shape;
        self.start_at(id, placement, granted, &facts, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::ids::{NodeId, Time};

    #[test]
    fn copies_split_the_work_and_pay_for_being_brought_together() {
        // Two nodes of 2 GPUs; rounds of 100 s; 5 GB at 1 GB/s there and back for the second copy: 10 s of each round.
        let copies = Copies {
            round_s: 100.0,
            weight_bytes: 5e9,
            gb_per_s: 1.0,
        };
        let mut cluster = cluster_of(&ClusterSpec::uniform(2, 2, 2));
        let id = submit(&mut cluster, 2, 180.0);
        let slice = |node, gpus| Slice {
            node: NodeId(node),
            gpus,
        };
        let placement: Placement = [slice(0, 0b11), slice(1, 0b11)].into_iter().collect();
        cluster.start_copies(id, placement, &copies);
        cluster.check();
        // (1 + 1) x 0.9 = 1.8: 100 s instead of 180 s, on 4 GPUs.
        assert_eq!(cluster.job(id).rate, 1.8);
        assert_eq!(cluster.job(id).expected_finish, Time::from_secs_f64(100.0));
        assert_eq!((cluster.job(id).num_held, cluster.num_free()), (4, 0));
        cluster.advance(Time::from_secs_f64(50.0));
        cluster.preempt(id);
        cluster.check();
        assert_eq!(
            (cluster.job(id).executed_s, cluster.job(id).attained_gpu_s),
            (90.0, 200.0)
        );
        // Half a copy and nothing else: half the rate, after the restart.
        cluster.start_copies(id, [slice(0, 0b1)].into_iter().collect(), &copies);
        cluster.check();
        assert_eq!(cluster.job(id).rate, 0.5);
        assert_eq!(
            cluster.job(id).expected_finish,
            Time::from_secs_f64(50.0 + 30.0 + 180.0)
        );
    }
}
