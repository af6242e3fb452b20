//! An episode that can be copied in its middle: what comes of a copy follows from the actions alone.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::policy::{Needs, Policy};
use pleach_scheduler::{PolicyError, Rows, Time};

use crate::config::EnvConfig;
use crate::error::{Error, StepError};
use crate::metrics::Metrics;
use crate::world::World;
use pleach_workloads::{Seed, Workload};

/// What [`Episode::run_until`] stopped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// There is something to choose.
    Decision,
    /// The next event is later than asked for.
    Time,
    /// All jobs have left.
    End,
}

/// An episode without rewards and buffers. A clone is a fork: it goes on to the last bit as the original does with the same actions.
#[derive(Clone, Debug)]
pub struct Episode {
    pub(crate) world: World,
    pub(crate) pass: Pass,
    needs: Needs,
    is_open: bool,
}

impl Episode {
    /// An episode on a workload, before its first event. What is drawn in it follows from the seed.
    ///
    /// # Errors
    /// Where the cluster or a job cannot be.
    pub fn begin(config: &EnvConfig, workload: &Workload, seed: Seed) -> Result<Episode, Error> {
        let mut world = config.sim.world(workload, seed, seed.child("estimates", 0))?;
        world.reserve();
        Ok(Episode::of(
            world,
            Pass::of_one_cluster(),
            config.candidates.needs(),
        ))
    }

    pub(crate) fn of(world: World, pass: Pass, needs: Needs) -> Episode {
        Episode {
            world,
            pass,
            needs,
            is_open: false,
        }
    }

    /// Lets time go on to the next choice, but to no event later than `until`.
    ///
    /// # Panics
    /// If jobs are left but nothing will ever happen, which is a broken invariant.
    pub fn run_until(&mut self, until: Time) -> Reached {
        while !self.is_open {
            if self.world.is_over() {
                return Reached::End;
            }
            let next = self.world.next_event();
            if until < Time::MAX && next.is_none_or(|next| next > until) {
                return Reached::Time;
            }
            self.world
                .advance_to(next.expect("jobs are left but nothing will ever happen"));
            self.is_open = self.world.may_decide()
                && self.pass.open(self.world.cluster(), &self.needs) == PassState::Open;
        }
        Reached::Decision
    }

    /// Takes one action, the index of an admissible candidate; time does not go on.
    ///
    /// # Errors
    /// An action that is masked, or nothing to choose. The episode stays as it was.
    pub fn act(&mut self, action: usize) -> Result<(), StepError> {
        if !self.is_open {
            return Err(StepError::Ended);
        }
        let candidates = self.pass.candidates();
        if !candidates.is_admissible(action) {
            return Err(StepError::Inadmissible {
                action,
                num_candidates: candidates.len(),
            });
        }
        let state = self.pass.act(self.world.cluster_mut(), &self.needs, action);
        self.world.carry_out();
        self.is_open = state == PassState::Open;
        Ok(())
    }

    /// What a policy chooses at the present decision, where there is one.
    ///
    /// # Errors
    /// What the policy reports.
    pub fn choice_of(&mut self, policy: &mut dyn Policy) -> Result<usize, PolicyError> {
        self.pass.decide(self.world.cluster(), policy)
    }

    /// What the policy of the last [`Episode::choice_of`] saw, and the scores that it gave, one per row.
    #[must_use]
    pub fn seen(&self) -> (Rows<'_>, &[f32]) {
        (self.pass.observation().as_ref().as_rows(), self.pass.scores())
    }

    /// What has been paid and committed ([`World::committed_s`]) at a time from now to the next event, s.
    #[must_use]
    pub fn committed_s(&self, at: Time) -> f64 {
        let cluster = self.cluster();
        let waited_s = (at.max(cluster.now()) - cluster.now()).as_secs_f64() * cluster.num_pending() as f64;
        self.world.committed_s() + if self.world.is_over() { 0.0 } else { waited_s }
    }

    /// The cluster as the scheduler sees it.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        self.world.cluster()
    }

    /// Figures over the jobs that have left.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.world.metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;
    use crate::metrics::JobOutcome;

    fn begun(id: &str) -> Episode {
        let mut config = EnvConfig::registered(id).unwrap();
        config.workload = config.workload.resized(Some(60), None);
        let source = Source::open(&config).unwrap();
        Episode::begin(&config, &source.workload(&config, Seed(5)).unwrap(), Seed(5)).unwrap()
    }

    /// An admissible candidate that depends on the number of the decision alone.
    fn any(episode: &Episode, number: usize) -> usize {
        let set = episode.pass.candidates();
        let allowed: Vec<usize> = (0..set.len()).filter(|row| set.is_admissible(*row)).collect();
        allowed[number * 7919 % allowed.len()]
    }

    /// Plays from a decision on; what is committed at each.
    fn play(episode: &mut Episode, first: usize, until: Time) -> Vec<f64> {
        let mut committed = Vec::new();
        while episode.run_until(until) == Reached::Decision {
            committed.push(episode.committed_s(Time::ZERO));
            episode.act(any(episode, first + committed.len())).unwrap();
        }
        committed
    }

    fn outcomes(episode: &Episode) -> Vec<JobOutcome> {
        episode.world.outcomes().copied().collect()
    }

    #[test]
    fn a_fork_goes_on_as_the_original_and_changes_nothing_in_it() {
        for id in [
            "Pleach/GavelMulti-v1",
            "Pleach/PhillyPreempt-v0",
            "Pleach/PhillyShare-v0",
        ] {
            let mut episode = begun(id);
            let num = 25;
            for number in 0..num {
                assert_eq!(episode.run_until(Time::MAX), Reached::Decision, "{id}");
                episode.act(any(&episode, number)).unwrap();
            }
            let mut other = episode.clone();
            play(&mut other, 3, Time::MAX);
            let mut fork = episode.clone();
            let committed = play(&mut fork, num, Time::MAX);
            // The original stops at every hour besides.
            let (mut own, mut hour) = (Vec::new(), episode.cluster().now());
            while episode.run_until(hour) != Reached::End {
                own.extend(play(&mut episode, num + own.len(), hour));
                hour = Time(hour.0 + Time::from_secs_f64(3600.0).0);
            }
            assert!((own, outcomes(&episode)) == (committed, outcomes(&fork)), "{id}");
            assert!(
                outcomes(&fork) != outcomes(&other),
                "{id}: another way of play, the same outcomes"
            );
        }
    }

    #[test]
    fn what_is_committed_is_what_the_rest_of_the_episode_says_of_all_that_has_started() {
        let mut episode = begun("Pleach/GavelMulti-v1");
        let mut seen = Vec::new();
        for hour in 1.. {
            let at = Time::from_secs_f64(3600.0 * f64::from(hour));
            play(&mut episode, seen.len(), at);
            seen.push((at.as_secs_f64(), episode.committed_s(at)));
            if episode.run_until(at) == Reached::End {
                break;
            }
        }
        let jobs = outcomes(&episode);
        assert!(seen.len() > 20 && seen.iter().any(|(_, committed)| *committed > 1e4));
        for (at, committed) in seen {
            let of = |job: &JobOutcome| {
                let waited = (job.first_start_s.min(at) - job.submit_s).max(0.0);
                let ran = job.finish_s - job.first_start_s - job.isolated_s;
                waited + if job.first_start_s <= at { ran } else { 0.0 }
            };
            let expected: f64 = jobs.iter().map(of).sum();
            assert!(
                (committed - expected).abs() < 1e-3,
                "at {at}: {committed} {expected}"
            );
        }
    }

    #[test]
    fn actions_that_are_not_offered_are_refused_and_change_nothing() {
        let mut episode = begun("Pleach/GavelMulti-v1");
        assert_eq!(episode.act(0), Err(StepError::Ended));
        episode.run_until(Time::MAX);
        let refused = episode.act(999).unwrap_err();
        assert!(matches!(refused, StepError::Inadmissible { action: 999, .. }));
        play(&mut episode, 0, Time::MAX);
        assert_eq!(episode.run_until(Time::ZERO), Reached::End);
        let last = episode.committed_s(Time::ZERO);
        assert_eq!(episode.committed_s(Time::MAX), last);
    }
}
