//! Memory made ready beforehand: with it, taking decisions allocates nothing.
//!
//! A simulator that steps a hundred thousand times a second knows its jobs before they come. Placements of more nodes
//! than lie in a job's row are lent from a stock and come back when the job stops, and with the decision that was
//! carried out.

use crate::cluster::decision::Decision;
use crate::cluster::{Cluster, Demand, Placement, Slice, Submission};

/// Most placements that are made ready at once; a cluster with more loose gangs than that makes the others as they come.
const PLACEMENTS_MAX: usize = 512;

impl Cluster {
    /// Makes room for jobs that are to come: what they need of queue, tables and journal is then there before they are
    /// submitted. A request that can never be met is left to [`Cluster::submit`] to refuse.
    pub fn reserve<'a>(&mut self, requests: impl IntoIterator<Item = &'a Submission>) {
        let (mut num_jobs, mut largest) = (0, 0);
        let mut demands: Vec<(Demand, usize)> = Vec::new();
        for request in requests {
            num_jobs += 1;
            largest = largest.max(request.num_gpus as usize);
            let Ok(demand) = self.demand_of(request) else {
                continue;
            };
            match demands.binary_search_by_key(&demand, |(known, _)| *known) {
                Ok(at) => demands[at].1 += 1,
                Err(at) => demands.insert(at, (demand, 1)),
            }
        }
        for (demand, num) in demands {
            self.jobs.pending.reserve(demand, num);
        }
        self.jobs.rows.reserve(num_jobs);
        for (running, num_gpus) in self.jobs.running.iter_mut().zip(&self.places.free.num_gpus) {
            running.reserve(num_jobs.min(*num_gpus as usize));
        }
        let running_of = self
            .places
            .free
            .num_gpus
            .iter()
            .map(|num_gpus| num_jobs.min(*num_gpus as usize));
        self.jobs.attained_service.reserve(num_jobs, running_of);
        let num_running = num_jobs.min(self.places.gpus.len());
        // A pass may hold GPUs back once besides.
        self.jobs.decisions.reserve(num_running + 2);
        // A placement leaves its row from the third node on.
        let num_placements = num_running.min(self.places.gpus.len() / 3).min(PLACEMENTS_MAX);
        let len = largest.min(self.places.nodes.len());
        if len > Placement::new().inline_size() {
            // As many again lie in the journal until they are carried out.
            let num_placements = 2 * num_placements + 1;
            self.places.spare.reserve(num_placements);
            self.places
                .spare
                .extend((0..num_placements).map(|_| Placement::with_capacity(len)));
        }
    }

    /// The placement of these slices, with memory from the stock.
    pub(crate) fn placement_of(&mut self, slices: &[Slice]) -> Placement {
        let mut placement = if slices.len() > Placement::new().inline_size() {
            self.places.spare.pop().unwrap_or_default()
        } else {
            Placement::new()
        };
        placement.extend_from_slice(slices);
        placement
    }

    /// Puts the memory of a placement back into the stock.
    pub(in crate::cluster) fn put_by(&mut self, mut placement: Placement) {
        // More are never out at once, however many callers bring along.
        if placement.spilled() && self.places.spare.len() < self.places.gpus.len() {
            placement.clear();
            self.places.spare.push(placement);
        }
    }

    /// Takes back the memory of a decision that was carried out. Optional: a caller that keeps its decisions need not.
    pub fn recycle(&mut self, decision: Decision) {
        self.put_by(decision.placement);
    }
}
