//! One environment in Gymnasium's words: `reset`, `step`, masks, `terminated` and `truncated`.
//!
//! A step is one choice in the same [`Pass`] that runs in production; *hold* ends the pass and lets time go on to the
//! next instant at which there is something to choose. Instants without a choice are skipped, so every step is a
//! decision.

use pleach_scheduler::candidate::CandidateSet;
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::observation::WriterScratch;
use pleach_scheduler::pass::Pass;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{PolicyError, Time};

use crate::config::{EnvConfig, Source};
use crate::episode::{Episode, Reached};
use crate::error::{Error, StepError};
use crate::expert::ExpertPlanner;
use crate::metrics::Metrics;
use crate::reward::Meter;
use crate::vector::{ObservationMut, Spaces, Step};
use crate::world::TenantIntegrals;
use pleach_workloads::Seed;

/// One environment.
#[derive(Clone, Debug)]
pub struct Env {
    config: EnvConfig,
    source: Source,
    spaces: Spaces,
    writer: WriterScratch,
    records_tenants: bool,
    records_excess: bool,
    begun: Option<Begun>,
}

#[derive(Clone, Debug)]
struct Begun {
    episode: Episode,
    meter: Meter,
    num_steps: u64,
    ended: bool,
}

impl Env {
    /// An environment that has not begun; call [`Env::reset`] first.
    ///
    /// # Errors
    /// Settings out of their ranges, or a workload file that cannot be read.
    pub fn new(config: EnvConfig) -> Result<Env, Error> {
        config.validate()?;
        let source = Source::open(&config)?;
        Ok(Env {
            spaces: config.spaces(),
            source,
            config,
            writer: WriterScratch::default(),
            records_tenants: false,
            records_excess: false,
            begun: None,
        })
    }

    /// Sizes of an observation.
    #[must_use]
    pub fn spaces(&self) -> Spaces {
        self.spaces
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &EnvConfig {
        &self.config
    }

    /// Begins an episode. All that happens in it follows from the seed and the actions.
    ///
    /// # Errors
    /// Where the workload cannot be made, or nothing is ever to be decided in it.
    pub fn reset(&mut self, seed: u64, observation: ObservationMut<'_>) -> Result<(), Error> {
        let seed = Seed(seed);
        let workload = self.source.workload(&self.config, seed)?;
        let mut world = self
            .config
            .sim
            .world(&workload, seed, seed.child("estimates", 0))?;
        if self.records_tenants {
            world.record_tenants();
        }
        world.reserve();
        let meter = Meter::new(&self.config.reward, &workload).reading_excess(self.records_excess);
        // Buffers of the episode before are as long as they get.
        let pass = self
            .begun
            .take()
            .map_or_else(Pass::new, |begun| begun.episode.pass);
        let mut episode = Episode::of(world, pass, self.config.candidates.needs());
        episode.run_until(Time::MAX);
        self.begun = Some(Begun {
            episode,
            meter,
            num_steps: 0,
            ended: false,
        });
        self.observe(observation);
        Ok(())
    }

    /// Takes one action: the index of an admissible candidate.
    ///
    /// # Errors
    /// An action that is masked, or an episode that is over or was never begun. The environment stays as it was.
    pub fn step(&mut self, action: usize, observation: ObservationMut<'_>) -> Result<Step, StepError> {
        let begun = self.begun.as_mut().filter(|begun| !begun.ended);
        let begun = begun.ok_or(StepError::Ended)?;
        let before = begun.episode.cluster().now();
        begun.episode.act(action)?;
        let terminated = begun.episode.run_until(Time::MAX) == Reached::End;
        begun.num_steps += 1;
        let truncated = !terminated && self.config.max_steps.is_some_and(|most| begun.num_steps >= most);
        begun.ended = terminated || truncated;
        let (reward, gained) = begun.meter.read(&begun.episode.world);
        let dt_s = (begun.episode.cluster().now() - before).as_secs_f64();
        self.observe(observation);
        Ok(Step {
            reward,
            terminated,
            truncated,
            dt_s,
            gained,
        })
    }

    fn observe(&mut self, observation: ObservationMut<'_>) {
        let Some(Begun {
            episode: Episode { world, pass, .. },
            ..
        }) = &self.begun
        else {
            return;
        };
        let set = pass.candidates();
        let ObservationMut {
            global,
            candidates,
            mask,
        } = observation;
        let rows = (&mut *candidates, self.spaces.num_features);
        self.writer
            .write(world.cluster(), set, pass.reservation(), global, rows);
        // Rows that come in masked are zero: what was written there last time is all that there is to wipe out.
        let rows = set.len();
        let written = mask
            .iter()
            .rposition(|written| *written)
            .map_or(0, |last| last + 1);
        if let Some(left) = written.checked_sub(rows) {
            let num_features = self.spaces.num_features;
            candidates[rows * num_features..][..left * num_features].fill(0.0);
        }
        debug_assert!(
            candidates[rows * self.spaces.num_features..]
                .iter()
                .all(|value| *value == 0.0),
            "a row that came in masked was not zero"
        );
        mask[..rows].fill(true);
        mask[rows..].fill(false);
        if let Some(hold) = mask.first_mut() {
            *hold = set.is_admissible(0);
        }
    }

    /// Keeps time integrals of each tenant from the next reset on.
    pub fn record_tenants(&mut self) {
        self.records_tenants = true;
    }

    /// Keeps [`Integrals::excess_run_s`](crate::world::Integrals::excess_run_s) from the next reset on, whatever the reward names.
    pub fn record_excess(&mut self) {
        self.records_excess = true;
    }

    /// Keeps from the next reset on what another one keeps.
    pub(crate) fn record_as(&mut self, other: &Env) {
        (self.records_tenants, self.records_excess) = (other.records_tenants, other.records_excess);
    }

    /// Moves what each tenant has gained since the last call, or since the episode began, to `into`; nothing where that is not
    /// kept.
    pub fn take_by_tenant(&mut self, into: &mut TenantIntegrals) {
        if let Some(begun) = &mut self.begun {
            begun.episode.world.take_by_tenant(into);
        }
    }

    /// Figures over the jobs that have left in this episode.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.begun
            .as_ref()
            .map_or_else(Metrics::default, |begun| begun.episode.metrics())
    }

    /// The cluster as the scheduler sees it; none before the first reset.
    #[must_use]
    pub fn cluster(&self) -> Option<&Cluster> {
        self.begun.as_ref().map(|begun| begun.episode.cluster())
    }

    /// What may be done now, row by row of an observation; none before the first reset.
    #[must_use]
    pub fn candidates(&self) -> Option<&CandidateSet> {
        self.begun.as_ref().map(|begun| begun.episode.pass.candidates())
    }

    /// What a policy would do at the present decision point: a teacher's demonstration. 0 before the first reset.
    ///
    /// # Errors
    /// What the policy reports.
    pub fn choice_of(&mut self, policy: &mut dyn Policy) -> Result<usize, PolicyError> {
        match &mut self.begun {
            Some(begun) => begun.episode.choice_of(policy),
            None => Ok(0),
        }
    }

    /// What a planner would start next at the present decision point, as a candidate; none where no candidate does it, and
    /// before the first reset.
    ///
    /// # Errors
    /// What the planner reports.
    pub fn expert_action(&self, expert: &mut ExpertPlanner) -> Result<Option<usize>, PolicyError> {
        match &self.begun {
            Some(begun) => expert.choice(begun.episode.cluster(), &begun.episode.pass),
            None => Ok(None),
        }
    }

    /// What a policy's scores are at the present decision point: `scores` is `[C]`, rows beyond the candidates are left
    /// alone. Nothing is written before the first reset.
    ///
    /// # Errors
    /// What the policy reports.
    pub fn scores_of(&mut self, policy: &mut dyn Policy, scores: &mut [f32]) -> Result<(), PolicyError> {
        if let Some(begun) = &mut self.begun {
            begun.episode.choice_of(policy)?;
            let found = begun.episode.pass.scores();
            scores[..found.len()].copy_from_slice(found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps an episode with the choice that `choose` makes of the mask; the finished jobs.
    fn play(id: &str, seed: u64, choose: impl Fn(&[bool]) -> Option<usize>) -> f64 {
        let mut env = Env::new(EnvConfig::registered(id).unwrap()).unwrap();
        let spaces = env.spaces();
        let mut global = vec![0.0; spaces.num_global];
        let mut candidates = vec![0.0; spaces.num_candidates * spaces.num_features];
        let mut mask = vec![true; spaces.num_candidates];
        macro_rules! buffers {
            () => {
                ObservationMut {
                    global: &mut global,
                    candidates: &mut candidates,
                    mask: &mut mask,
                }
            };
        }
        env.reset(seed, buffers!()).unwrap();
        loop {
            let action = choose(&mask).unwrap();
            if env.step(action, buffers!()).unwrap().terminated {
                return env.metrics().num_jobs;
            }
        }
    }

    #[test]
    fn no_job_is_lost_to_one_who_holds_or_preempts_whenever_that_is_allowed() {
        for id in [
            "Pleach/Philly-v0",
            "Pleach/PhillyPreempt-v0",
            "Pleach/PhillyShare-v0",
        ] {
            let first = |mask: &[bool]| mask.iter().position(|admissible| *admissible);
            let last = |mask: &[bool]| mask.iter().rposition(|admissible| *admissible);
            assert_eq!(play(id, 3, first), 200.0);
            assert_eq!(play(id, 3, last), 200.0);
        }
    }
}
