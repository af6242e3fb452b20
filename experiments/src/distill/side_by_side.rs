//! Policies on the same lists of several kinds, each over the first.

use pleach_env::{EnvConfig, SimConfig, Split, simulate};
use serde::Serialize;

use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::run::in_parallel;
use crate::evaluate::stats::{Ratio, mean};
use crate::judge::{Kind, instances, kinds_of};
use crate::progress::Watcher;

/// A policy on the lists of one part, over the first policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartOver {
    /// Name of the part.
    pub part: String,
    /// Average JCT.
    pub jct: Option<Ratio>,
    /// 99th percentile of JCT.
    pub p99: Option<Ratio>,
    /// Mean bounded slowdown.
    pub slowdown: Option<Ratio>,
    /// The longest time that a job of a list was without GPUs, mean over the lists, s.
    pub longest_wait_s: f64,
    /// Jain's index over the tenants' mean slowdowns, mean over the lists; 1 with a single tenant.
    pub fairness: f64,
}

/// What one run gave: average JCT, its 99th percentile, mean slowdown, longest wait, fairness.
type Figures = [f64; 5];

fn run(instance: &Instance, sim: &SimConfig, policy: &PolicySpec) -> Result<Figures, Error> {
    let sim = SimConfig {
        seed: instance.seed,
        ..sim.clone()
    };
    let result = simulate(&instance.workload, &sim, &mut policy.policy()?)?;
    let waits = result.jobs.iter().map(|job| job.wait_s());
    let metrics = result.metrics;
    let longest_s = waits.fold(0.0, f64::max);
    Ok([
        metrics.avg_jct_s,
        metrics.p99_jct_s,
        metrics.avg_slowdown,
        longest_s,
        metrics.fairness,
    ])
}

/// Runs all policies on lists of the kinds that the environment has, `num` of each, less where a kind has a smaller share: for each
/// policy its parts, in their order.
///
/// # Errors
/// A list that cannot be drawn, a run that fails.
pub(super) fn side_by_side(
    env: &EnvConfig,
    kinds: &[Kind],
    (drawn, num): ((u64, &str), usize),
    policies: &[PolicySpec],
    watcher: &Watcher,
) -> Result<Vec<Vec<PartOver>>, Error> {
    let kinds = kinds_of(env, kinds);
    let lists = instances(&env.in_split(Split::Test), &kinds, drawn, num)?;
    let runs: Vec<(usize, usize)> = (0..policies.len())
        .flat_map(|policy| (0..lists.len()).map(move |list| (policy, list)))
        .collect();
    let done = in_parallel("side by side", watcher, &runs, |(policy, list)| {
        run(&lists[*list].1, &env.sim, &policies[*policy])
    })?;
    let of = |policy: usize, part: usize| -> Vec<Figures> {
        let own = (0..lists.len()).filter(|list| lists[*list].0 == part);
        own.map(|list| done[policy * lists.len() + list]).collect()
    };
    let rows = (0..policies.len()).map(|policy| {
        let parts = kinds.iter().enumerate();
        let parts = parts.map(|(part, kind)| part_of(kind.name, &of(policy, part), &of(0, part)));
        parts.collect()
    });
    Ok(rows.collect())
}

fn part_of(part: &str, own: &[Figures], base: &[Figures]) -> PartOver {
    let ratio = |place: usize| {
        let pairs = own.iter().zip(base).map(|(own, base)| (own[place], base[place]));
        Ratio::of_pairs(&pairs.collect::<Vec<_>>())
    };
    let mean_of = |place: usize| mean(&own.iter().map(|own| own[place]).collect::<Vec<_>>());
    PartOver {
        part: part.to_string(),
        jct: ratio(0),
        p99: ratio(1),
        slowdown: ratio(2),
        longest_wait_s: mean_of(3),
        fairness: mean_of(4),
    }
}
