//! When a planner in rounds plans: at the ends of rounds, or at once where the cluster stands idle.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::ids::Time;

/// A clock of rounds. The first round begins with the first job; where nothing runs, the next begins with the next job.
#[derive(Clone, Copy, Debug)]
pub struct RoundTimer {
    round: Time,
    next: Time,
}

impl RoundTimer {
    /// Rounds of a length, above zero.
    ///
    /// # Panics
    /// If the length is not above zero.
    #[must_use]
    pub fn new(round: Time) -> RoundTimer {
        assert!(round > Time::ZERO, "a round takes time");
        RoundTimer {
            round,
            next: Time::ZERO,
        }
    }

    /// Whether a round begins now; if so, the next begins a round later.
    pub fn begins(&mut self, cluster: &Cluster) -> bool {
        let now = cluster.now();
        if now < self.next && cluster.num_running() > 0 {
            return false;
        }
        self.next = now + self.round;
        true
    }

    /// When the next round begins, while there are jobs.
    #[must_use]
    pub fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let has_jobs = cluster.num_running() + cluster.num_pending() > 0;
        has_jobs.then_some(self.next)
    }

    /// Length of a round.
    #[must_use]
    pub fn round(&self) -> Time {
        self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::place;
    use crate::test_clusters::{cluster_of, submit};
    use pleach_scheduler::spec::ClusterSpec;

    #[test]
    fn rounds_follow_each_other_and_an_idle_cluster_begins_one_at_once() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 2, 1));
        let mut timer = RoundTimer::new(Time::from_secs_f64(60.0));
        assert_eq!(timer.wake_at(&cluster), None, "no jobs, no rounds");
        let job = submit(&mut cluster, 1, 1e4);
        cluster.advance(Time::from_secs_f64(10.0));
        assert!(timer.begins(&cluster));
        place(&mut cluster, job);
        let mut at = |cluster: &mut Cluster, now_s: f64| {
            cluster.advance(Time::from_secs_f64(now_s));
            timer.begins(cluster)
        };
        assert!(!at(&mut cluster, 69.0));
        assert!(at(&mut cluster, 70.0));
        assert!(!at(&mut cluster, 100.0));
        cluster.finish(job);
        assert!(at(&mut cluster, 101.0), "nothing runs");
    }
}
