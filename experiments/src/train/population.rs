//! What the members of a population are worth: whole episodes, played as deployed policies play them.

use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate};
use pleach_network::LearnedPolicy;
use pleach_scheduler::policy::Policy;
use rayon::prelude::*;

use super::constraint::{self, Constraint};
use super::objective::{Objective, loss, value_of};
use crate::error::Error;
use crate::evaluate::policy_spec::PolicySpec;

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

/// Fitness of every member of a population in an environment whose source of workloads is open: the mean over `num_workloads`
/// workloads drawn from `seed` of its loss with the sign turned, less what the multipliers charge. All members play the same
/// workloads, and so do the baseline and the present policy where bounds are to be kept.
///
/// # Errors
/// The first workload or run, in order, that fails.
pub(crate) fn of_population(
    (source, env): (&Source, &EnvConfig),
    objective: &Objective,
    num_workloads: usize,
    members: &[LearnedPolicy],
    bounded: Option<Bounded<'_>>,
    seed: Seed,
) -> Result<Judged, Error> {
    let seeds: Vec<Seed> = (0..num_workloads as u64)
        .map(|index| seed.child("workload", index))
        .collect();
    let workloads = seeds
        .par_iter()
        .map(|seed| source.workload(env, *seed).map_err(Error::from))
        .collect::<Result<Vec<_>, Error>>()?;
    let play = |workload: usize, policy: &mut dyn Policy| {
        let sim = SimConfig {
            seed: seeds[workload].0,
            ..env.sim.clone()
        };
        let run = simulate(&workloads[workload], &sim, policy)?;
        Ok((run.metrics, run.num_passes))
    };
    let baseline = match &bounded {
        Some(bounded) => (0..num_workloads)
            .into_par_iter()
            .map(|workload| play(workload, &mut *bounded.baseline.policy()?))
            .collect::<Result<Vec<_>, Error>>()?,
        None => Vec::new(),
    };
    let present = bounded.map(|bounded| bounded.present);
    let players: Vec<&LearnedPolicy> = members.iter().chain(present).collect();
    let runs = (0..players.len() * num_workloads)
        .into_par_iter()
        .map(|index| {
            let workload = index % num_workloads;
            let (metrics, num_passes) = play(workload, &mut players[index / num_workloads].clone())?;
            let excess = bounded.map_or_else(Vec::new, |bounded| {
                let base = &baseline[workload].0;
                bounded
                    .constraint
                    .excess(|key| value_of(&metrics, key), |key| value_of(base, key))
            });
            Ok((loss(objective, |key| value_of(&metrics, key)), num_passes, excess))
        })
        .collect::<Result<Vec<(f64, u64, Vec<f64>)>, Error>>()?;
    let multipliers = bounded.map_or(&[][..], |bounded| bounded.multipliers);
    let mut judged = Judged {
        fitness: Vec::new(),
        num_passes: runs.iter().map(|(_, passes, _)| passes).sum(),
        excess: Vec::new(),
    };
    for (player, runs) in runs.chunks(num_workloads).enumerate() {
        let lists: Vec<Vec<f64>> = runs.iter().map(|(_, _, excess)| excess.clone()).collect();
        let excess = constraint::means(&lists);
        let loss = runs.iter().map(|(loss, _, _)| loss).sum::<f64>() / runs.len() as f64;
        if player < members.len() {
            judged
                .fitness
                .push(-loss - constraint::charge(multipliers, &excess));
        } else {
            judged.excess = excess;
        }
    }
    Ok(judged)
}
