//! A planner that plans only at whole multiples of an interval, as simulators and daemons with a fixed tick do.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{Planner, PolicyError, Time};

/// Another planner, asked only at whole multiples of an interval; what happens in between is seen then.
#[derive(Clone, Debug)]
pub(super) struct Every<P> {
    interval: Time,
    planner: P,
}

impl<P: Planner> Every<P> {
    /// The interval is above zero.
    pub(super) fn new(interval: Time, planner: P) -> Every<P> {
        Every { interval, planner }
    }
}

impl<P: Planner> Planner for Every<P> {
    fn name(&self) -> &str {
        self.planner.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if cluster.now().0 % self.interval.0 != 0 {
            return Ok(());
        }
        self.planner.plan(cluster)
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let waits = cluster.num_pending() > 0;
        waits.then(|| cluster.now().next_multiple(self.interval))
    }
}
