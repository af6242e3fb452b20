//! When a planner in rounds plans: at the ends of rounds, or at once where the cluster stands idle; and whether its rounds
//! may be jumped over, because they change nothing until something happens.
//!
//! A round proves that those after it change nothing where it changed nothing itself, no job waited, and its plan would
//! have been the same at any time. Only the planner knows the last of the three.

use pleach_scheduler::Time;
use pleach_scheduler::cluster::Cluster;

/// A clock of rounds. The first round begins with the first job; where nothing runs, the next begins with the next job.
#[derive(Clone, Copy, Debug)]
pub struct RoundTimer {
    round: Time,
    next: Time,
    /// Decisions before the plan of the round that begins now; none between rounds and where a job waits.
    began: Option<usize>,
    rests: bool,
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
            began: None,
            rests: false,
        }
    }

    /// Whether a round begins now; if so, the next begins a round later. Rounds that were rested through have begun on time.
    pub fn begins(&mut self, cluster: &Cluster) -> bool {
        let now = cluster.now();
        if self.rests && now > self.next {
            let late = (now - self.next).0 % self.round.0;
            self.next = if late == 0 {
                now
            } else {
                Time(now.0 - late) + self.round
            };
        }
        (self.rests, self.began) = (false, None);
        if now < self.next && cluster.num_running() > 0 {
            return false;
        }
        self.next = now + self.round;
        self.began = (cluster.num_pending() == 0).then(|| cluster.num_decisions());
        true
    }

    /// To be called after the plan of a round: it rests if the plan changed nothing, no job waits, and `is_timeless`: on the
    /// same cluster, where no job waits, the plan at any later time would be the same.
    pub fn settle(&mut self, cluster: &Cluster, is_timeless: bool) {
        let is_same = self.began == Some(cluster.num_decisions());
        self.rests = is_timeless && is_same && cluster.num_pending() == 0;
    }

    /// Whether the rounds until something happens change nothing.
    #[must_use]
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// When the rounds before `now` began that were rested through; to be asked before [`RoundTimer::begins`].
    pub fn rested(&self, now: Time) -> impl Iterator<Item = Time> + use<> {
        let (rests, round) = (self.rests, self.round);
        std::iter::successors(Some(self.next), move |last| Some(*last + round))
            .take_while(move |begin| rests && *begin < now)
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
    use pleach_scheduler::cluster_spec::ClusterSpec;

    #[test]
    fn rounds_that_are_rested_through_keep_the_beat() {
        let seconds = Time::from_secs_f64;
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 2, 1));
        let mut timer = RoundTimer::new(seconds(60.0));
        let job = submit(&mut cluster, 1, 1e4);
        cluster.advance(seconds(10.0));
        assert!(timer.begins(&cluster));
        place(&mut cluster, job);
        timer.settle(&cluster, true);
        assert!(!timer.rests(), "the plan started a job");
        cluster.advance(seconds(70.0));
        assert!(timer.begins(&cluster));
        timer.settle(&cluster, false);
        assert!(!timer.rests(), "later plans may differ");
        cluster.advance(seconds(130.0));
        assert!(timer.begins(&cluster));
        timer.settle(&cluster, true);
        assert!(timer.rests());
        // Rounds would have begun at 190, 250, 310; something happens at 320, and the next begins at 370 s.
        let begun: Vec<Time> = timer.rested(seconds(320.0)).collect();
        assert_eq!(begun, [190.0, 250.0, 310.0].map(seconds));
        assert_eq!(timer.rested(seconds(190.0)).count(), 0);
        cluster.advance(seconds(320.0));
        assert!(!timer.begins(&cluster) && !timer.rests());
        assert_eq!(timer.wake_at(&cluster), Some(seconds(370.0)));
        // A round that begins while a job waits proves nothing.
        submit(&mut cluster, 2, 1e4);
        cluster.advance(seconds(370.0));
        assert!(timer.begins(&cluster));
        timer.settle(&cluster, true);
        assert!(!timer.rests());
    }

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
