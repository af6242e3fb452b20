//! A planner decides a whole instant at once; every policy becomes one through [`Pass`].
//!
//! What a planner decides is journalled by the cluster and read with [`Cluster::take_decisions`], so a daemon and a
//! simulator drive planners and policies alike.

use crate::cluster::Cluster;
use crate::error::PolicyError;
use crate::ids::Time;
use crate::pass::Pass;
use crate::policy::Policy;

/// What a list says of a job and no table of the cluster holds, for planners that follow a site's own rules; empty where it does
/// not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobLabels<'a> {
    /// Its user.
    pub user: &'a str,
    /// Its account: its tenant's name.
    pub account: &'a str,
    /// Its partition or queue.
    pub partition: &'a str,
    /// Its quality of service.
    pub qos: &'a str,
    /// Features that its nodes must have, as Slurm's `--constraint` writes them.
    pub constraint: &'a str,
    /// Licences that it holds, as Slurm's `--licenses` writes them.
    pub licences: &'a str,
    /// How long it had been submitted before it came, s: it waited for another job, for a time or for its turn.
    pub held_s: f64,
}

/// Something that plans all starts and preemptions of one instant.
pub trait Planner: Send {
    /// Name for tables and files.
    fn name(&self) -> &str;

    /// Takes what is known of all jobs to come, in the order of their rows, before the first plan. A planner that does not ask
    /// leaves it.
    fn read_labels(&mut self, _labels: &mut dyn Iterator<Item = JobLabels<'_>>) {}

    /// Carries out its plan for the cluster's present time.
    ///
    /// # Errors
    /// What the planner reports; what was decided before the error stands.
    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError>;

    /// Sees what has happened where others decide, as in a record; a planner without a memory leaves it.
    fn observe(&mut self, _cluster: &Cluster) {}

    /// Decides on a state that others made, at once, whatever its own clock says.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    fn plan_at_once(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.plan(cluster)
    }

    /// How long it may take from a change to all that it decides of it, by its own clock.
    fn reaction(&self) -> Time {
        Time::ZERO
    }

    /// When it wants to plan again even if nothing happens until then; asked after each plan. A time that is not in the
    /// future is no wish.
    fn wake_at(&self, _cluster: &Cluster) -> Option<Time> {
        None
    }

    /// Whether all plans until something happens (a job comes, ends or fails, a node changes) would change nothing, so that it
    /// need not be woken for them; asked after each plan. A caller that wakes it all the same gets the same decisions. A planner
    /// that cannot tell says no.
    fn rests(&self) -> bool {
        false
    }

    /// Whether it places gangs of tasks ([`crate::Tasks`]), as planners that ask the cluster for a place do. A simulator refuses
    /// lists with such gangs for planners that share out single GPUs by themselves.
    fn places_tasks(&self) -> bool {
        true
    }
}

/// A policy as a planner: one pass, candidate by candidate, until it holds.
#[derive(Clone, Debug, Default)]
pub struct PolicyPlanner<P> {
    policy: P,
    pass: Pass,
}

impl<P: Policy> PolicyPlanner<P> {
    /// A planner around a policy.
    #[must_use]
    pub fn new(policy: P) -> PolicyPlanner<P> {
        PolicyPlanner {
            policy,
            pass: Pass::new(),
        }
    }

    /// A planner that is only ever shown one cluster: [`Pass::of_one_cluster`].
    #[must_use]
    pub fn of_one_cluster(policy: P) -> PolicyPlanner<P> {
        PolicyPlanner {
            policy,
            pass: Pass::of_one_cluster(),
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: Policy> Planner for PolicyPlanner<P> {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.pass.run(cluster, &mut self.policy)
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let tick = self.policy.needs().tick.filter(|tick| *tick > Time::ZERO)?;
        // Between events nothing changes for a policy unless some job waits and some job runs.
        let waits = cluster.num_pending() > 0 && cluster.num_running() > 0;
        waits.then(|| cluster.now().next_multiple(tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::heuristics;

    #[test]
    fn a_policy_plans_a_whole_pass_and_the_cluster_journals_it() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let first = submit(&mut cluster, 3, 100.0);
        submit(&mut cluster, 2, 50.0);
        let third = submit(&mut cluster, 1, 10.0);
        let mut planner = PolicyPlanner::new(heuristics::by_name("fifo-skip").unwrap());
        assert_eq!(planner.name(), "fifo-skip");
        planner.plan(&mut cluster).unwrap();
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        let started: Vec<_> = decisions.iter().map(|decision| decision.row).collect();
        assert_eq!(started, [first, third]);
    }
}
