//! Jobs that wait for a human after a failure, before they are in the queue again.

use std::cmp::Reverse;

use pleach_scheduler::{JobId, Time};

use super::World;

impl World {
    /// A failure of the site has put a job back into the queue: some leave it until a human has looked after them. A kept place is
    /// given up by those.
    pub(super) fn needs_human(&mut self, id: JobId) {
        let Some(site) = self.site.filter(|site| site.human_part > 0.0) else {
            return;
        };
        // One that had left when it failed only waits to be taken out of the tables.
        if self.truth[id.index()].unseen.is_some() {
            return;
        }
        let number = u64::from(self.cluster.job(id).num_failures);
        let mut rng = self
            .incident_seed
            .child("human", u64::from(self.number_of(id)))
            .stream("failure", number);
        let Some(wait_s) = site.waits_for_human_s(&mut rng) else {
            return;
        };
        let now = self.cluster.now();
        self.cluster.hold(id);
        if let Some(account) = &mut self.attribution {
            account.left(now, id);
        }
        self.held.push(Reverse((now + Time::from_secs_f64(wait_s), id)));
    }

    /// Jobs that a human has looked after by now wait again.
    pub(super) fn let_go(&mut self) {
        while let Some(Reverse((_, id))) = self
            .held
            .peek()
            .filter(|due| due.0.0 <= self.cluster.now())
            .copied()
        {
            self.held.pop();
            self.cluster.let_go(id);
            if let Some(account) = &mut self.attribution {
                account.entered(&self.cluster, id);
            }
        }
    }
}
