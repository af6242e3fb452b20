//! Starts jobs along an order of all that wait, as a batch system does that gets the order and nothing else.
//!
//! The order is a [`Ranker`]'s, made anew at each instant. Along it every job starts that fits, on its tightest placement; GPUs are
//! held back for the first that does not fit, and those behind it start where they do not delay it by the believed run times. So
//! nothing else of a policy is carried out: it does not wait on purpose, stop or resize jobs, choose places, sizes or partners.
//!
//! # Source
//! Slurm's main scheduler with its backfill, where only an order comes from outside (`sched/backfill`); holding back for the first
//! job alone is EASY's rule (Lifka, JSSPP'95), and Slurm's with `bf_max_job_test` large may hold back for more.

use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::pass::Reservation;
use pleach_scheduler::{JobId, Planner, PolicyError, Time};

use crate::ranker::Ranker;
use crate::starts::tightest;

/// A planner that carries out no more of a policy than its order.
#[derive(Debug)]
pub struct InOrder {
    name: String,
    ranker: Ranker,
}

impl InOrder {
    /// A planner of a name.
    #[must_use]
    pub fn new(name: &str, ranker: Ranker) -> InOrder {
        InOrder {
            name: name.to_owned(),
            ranker,
        }
    }
}

impl Planner for InOrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if cluster.num_pending() == 0 || is_full(cluster) {
            return Ok(());
        }
        let ranked = self.ranker.rank(cluster)?;
        start_in_order(cluster, &ranked.jobs);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let tick = self
            .ranker
            .policy()?
            .needs()
            .tick
            .filter(|tick| *tick > Time::ZERO)?;
        let waits = cluster.num_pending() > 0 && cluster.num_running() > 0;
        waits.then(|| cluster.now().next_multiple(tick))
    }
}

/// Whether no job can start: no GPU is free, nor a part of one.
fn is_full(cluster: &Cluster) -> bool {
    cluster.num_free() == 0 && cluster.shared_gpus().all(|(_, gpu)| gpu.milli_left() == 0)
}

/// Starts, along an order, every waiting job that has a place now and does not delay the first one that has none.
fn start_in_order(cluster: &mut Cluster, order: &[JobId]) {
    let mut held: Option<Reservation> = None;
    let mut slices = Vec::new();
    for &id in order {
        let Some(held) = &mut held else {
            match tightest(cluster, id, &mut slices) {
                Some(placement) => cluster.start(id, placement),
                None => held = Reservation::earliest(cluster, id),
            }
            continue;
        };
        if let Some(facts) = held.place(cluster, id, &mut slices) {
            let asked = cluster.shape(cluster.job(id).shape);
            held.book(cluster, id, (&slices, asked), &facts);
            cluster.start(id, Placement::from_slice(&slices));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{place, preemptive_cluster, running, submit};

    #[test]
    fn along_an_order_what_takes_nothing_from_the_first_ones_nodes_starts() {
        // Node 0 is full until 100 s, node 1 has 3 GPUs free beside a job that ends at 100 s too, node 2 beside one of 1,000 s. The gang
        // of 14 is next: at 100 s it gets nodes 0 and 1, and 2 GPUs of node 1 are spare. Of three jobs of 2 for 500 s the first takes
        // those and the second goes to node 2; the third would take one that the gang needs. A job of 90 s may: it is over by then.
        let mut cluster = preemptive_cluster(3, 8);
        for (num_gpus, run_s) in [(8, 100.0), (5, 100.0), (5, 1000.0)] {
            let id = submit(&mut cluster, num_gpus, run_s);
            place(&mut cluster, id);
        }
        for (num_gpus, run_s) in [(14, 50.0), (2, 500.0), (2, 500.0), (2, 500.0), (1, 90.0)] {
            submit(&mut cluster, num_gpus, run_s);
        }
        let mut planner = InOrder::new("order", Ranker::by_order("arrival", |_, _| 0.0));
        planner.plan(&mut cluster).unwrap();
        cluster.check();
        assert_eq!(running(&cluster), [0, 1, 2, 4, 5, 7]);
    }
}
