//! Incidents: ends of attempts that no node breaks for. Hangs are seen later, and hold their GPUs until then.

use std::cmp::Reverse;

use pleach_scheduler::{JobId, Time};
use pleach_tables::schedule::Ended;
use rand::RngExt as _;

use super::World;

impl World {
    /// Draws when the run that begins now meets an incident, if it may.
    pub(super) fn next_incident(&mut self, id: JobId) {
        let Some(site) = self.site else { return };
        let job = self.cluster.job(id);
        let nodes = self.cluster.nodes();
        let whole = job.placement.iter();
        let whole = whole.filter(|slice| slice.num_gpus() == nodes[slice.node.index()].num_gpus);
        let (num_nodes, number) = (whole.count() as u32, u64::from(self.number_of(id)));
        let truth = &mut self.truth[id.index()];
        (truth.to_incident_s, truth.hangs) = (f64::INFINITY, None);
        if num_nodes > 0 && site.incidents > site.hardware {
            let mut rng = self
                .incident_seed
                .child("incident", number)
                .stream("run", u64::from(truth.run));
            truth.to_incident_s = site.next_incident_s(num_nodes, &mut rng);
            truth.hangs = (rng.random::<f64>() < site.hang_part).then_some(false);
        }
    }

    /// The event of a run is an incident and not its end: the job fails, or hangs until that is seen.
    pub(super) fn meets_incident(&mut self, id: JobId) -> bool {
        let now = self.cluster.now();
        let truth = &mut self.truth[id.index()];
        if truth.hangs != Some(true) && !truth.ends_in_incident() {
            return false;
        }
        if let (Some(false), Some(site)) = (truth.hangs, self.site) {
            self.book(id);
            let truth = &mut self.truth[id.index()];
            (truth.rate, truth.hangs) = (0.0, Some(true));
            let seen = now + Time::from_secs_f64(site.hang_s);
            self.finishes.push(Reverse((seen, id, truth.run)));
            return true;
        }
        self.cluster.fail(id);
        self.failed(id, Ended::AttemptFailed);
        self.needs_human(id);
        true
    }
}
