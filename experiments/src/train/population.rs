//! What the members of a population are worth: whole episodes, played as deployed policies play them.

use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate};
use pleach_network::{Contract, Inference, LearnedPolicy};
use pleach_scheduler::policy::Policy;
use rayon::prelude::*;

use super::constraint::{self, Constraint};
use super::objective::{Objective, loss, value_of};
use crate::door::PolicySpec;
use crate::error::Error;

/// What a population is held to besides the objective.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<'a> {
    /// The bounds.
    pub constraint: &'a Constraint,
    /// Whose metrics they are held against.
    pub baseline: &'a PolicySpec,
    /// Their present multipliers; none before the first generation.
    pub multipliers: &'a [f64],
    /// The policy around which the population was drawn.
    pub present: &'a LearnedPolicy,
}

/// What a generation is worth.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Fitness of each member, larger being better.
    pub fitness: Vec<f64>,
    /// Passes that were decided by members and the present policy.
    pub num_passes: u64,
    /// Mean excess of the present policy over each bound, see [`Constraint::excess`]; empty without any.
    pub excess: Vec<f64>,
}

/// What one player made of one workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Play {
    /// Its loss, see [`loss`].
    pub(crate) loss: f64,
    /// Passes that it decided.
    pub(crate) num_passes: u64,
    /// Its excess over each bound, see [`Constraint::excess`]; empty without any.
    pub(crate) excess: Vec<f64>,
}

/// Networks as policies.
///
/// # Errors
/// As [`LearnedPolicy::new`].
pub(crate) fn policies(contract: &Contract, networks: &[Inference]) -> Result<Vec<LearnedPolicy>, Error> {
    let policies = networks
        .iter()
        .map(|network| Ok(LearnedPolicy::new(contract, network.clone())?));
    policies.collect()
}

/// A population and the workloads on which it is judged, in an environment whose source of workloads is open. All members play
/// the same workloads, and so do the baseline and the present policy where bounds are to be kept.
pub(crate) struct Generation<'a> {
    pub(crate) source: &'a Source,
    pub(crate) env: &'a EnvConfig,
    pub(crate) objective: &'a Objective,
    pub(crate) num_workloads: usize,
    pub(crate) members: &'a [LearnedPolicy],
    pub(crate) bounded: Option<Bounded<'a>>,
    /// From which the workloads are drawn.
    pub(crate) seed: Seed,
}

impl Generation<'_> {
    /// The numbers of all plays.
    pub(crate) fn all(&self) -> Vec<usize> {
        (0..self.num_plays()).collect()
    }

    /// Plays in all: every player on every workload, the present policy last.
    pub(crate) fn num_plays(&self) -> usize {
        (self.members.len() + usize::from(self.bounded.is_some())) * self.num_workloads
    }

    /// Some of the plays, by number: `player * num_workloads + workload`. A play does not depend on which others are asked for.
    ///
    /// # Errors
    /// The first workload or run, in order, that fails.
    pub(crate) fn plays(&self, numbers: &[usize]) -> Result<Vec<Play>, Error> {
        let num_workloads = self.num_workloads;
        let seeds: Vec<Seed> = (0..num_workloads as u64)
            .map(|index| self.seed.child("workload", index))
            .collect();
        let workloads = seeds
            .par_iter()
            .map(|seed| self.source.workload(self.env, *seed).map_err(Error::from))
            .collect::<Result<Vec<_>, Error>>()?;
        let play = |workload: usize, policy: &mut dyn Policy| {
            let sim = SimConfig {
                seed: seeds[workload].0,
                ..self.env.sim.clone()
            };
            let run = simulate(&workloads[workload], &sim, policy)?;
            Ok::<_, Error>((run.metrics, run.num_passes))
        };
        let bounded = self.bounded.as_ref();
        let baseline = match bounded {
            Some(bounded) => (0..num_workloads)
                .into_par_iter()
                .map(|workload| Ok(play(workload, &mut *bounded.baseline.policy()?)?.0))
                .collect::<Result<Vec<_>, Error>>()?,
            None => Vec::new(),
        };
        let present = bounded.map(|bounded| bounded.present);
        let players: Vec<&LearnedPolicy> = self.members.iter().chain(present).collect();
        let plays = numbers.par_iter().map(|&number| {
            let workload = number % num_workloads;
            let (metrics, num_passes) = play(workload, &mut players[number / num_workloads].clone())?;
            let excess = bounded.map_or_else(Vec::new, |bounded| {
                let base = &baseline[workload];
                bounded
                    .constraint
                    .excess(|key| value_of(&metrics, key), |key| value_of(base, key))
            });
            Ok(Play {
                loss: loss(self.objective, |key| value_of(&metrics, key)),
                num_passes,
                excess,
            })
        });
        plays.collect()
    }

    /// What all the plays, in order, come to: a member's fitness is the mean over the workloads of its loss with the sign
    /// turned, less what the multipliers charge.
    pub(crate) fn judge(&self, plays: &[Play]) -> Judged {
        let multipliers = self
            .bounded
            .as_ref()
            .map_or(&[][..], |bounded| bounded.multipliers);
        let mut judged = Judged {
            fitness: Vec::new(),
            num_passes: plays.iter().map(|play| play.num_passes).sum(),
            excess: Vec::new(),
        };
        for (player, plays) in plays.chunks(self.num_workloads).enumerate() {
            let lists: Vec<Vec<f64>> = plays.iter().map(|play| play.excess.clone()).collect();
            let excess = constraint::means(&lists);
            let loss = plays.iter().map(|play| play.loss).sum::<f64>() / plays.len() as f64;
            if player < self.members.len() {
                judged
                    .fitness
                    .push(-loss - constraint::charge(multipliers, &excess));
            } else {
                judged.excess = excess;
            }
        }
        judged
    }
}
