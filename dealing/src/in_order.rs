//! Starts jobs along an order of all that wait, as a batch system does that is told the order and nothing else.
//!
//! The order is a [`Ranker`]'s, made anew at each instant. Along it every job starts that fits, on its tightest placement; GPUs are
//! held back for the first that does not fit, and those behind it start where they do not delay it by the believed run times. So
//! nothing else of a policy is carried out: it does not wait on purpose, stop or resize anybody, choose places, sizes or partners.
//!
//! # Source
//! Slurm's main scheduler with its backfill, where only an order comes from outside (`sched/backfill`); holding back for the first
//! job alone is EASY's rule (Lifka, JSSPP'95), and Slurm's with `bf_max_job_test` large may hold back for more.

use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::pass::Reservation;
use pleach_scheduler::{JobId, Planner, PolicyError, Time};

use crate::allocate_by_priority::tightest;
use crate::ranker::Ranker;

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

/// Whether nobody can start: no GPU is free, nor a part of one.
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
