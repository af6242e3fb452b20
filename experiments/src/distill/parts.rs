//! The parts on which a tree is judged: lists as long as usual, longer ones, and low loads. A tree that is good where it was made
//! can lose a fifth where the cluster is half empty, and nothing that looks at one kind of list sees it.
//!
//! Every list has a baseline: of the heuristics, or of the planners that deal, the one that is best over the lists of its part. So
//! luck in choosing is on the baseline's side.

use pleach_distill::search::{Outcome, Standing};
use pleach_env::bound::LowerBounds;
use pleach_env::{EnvConfig, Seed, SimConfig, Source, WorkloadConfig};
use pleach_scheduler::Planner;
use pleach_scheduler::portable_math::{exp, ln};
use rayon::prelude::*;
use serde::Serialize;

use super::baselines::baselines;
use super::plays::{Figures, Rivals, run, run_within};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::instances::{Instance, seeds};
use crate::evaluate::stats::{Ratio, mean};
use crate::progress::Watcher;

/// A kind of lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Name in tables.
    pub name: &'static str,
    /// Jobs over those of an episode.
    pub times: usize,
    /// Offered load; none = that of the workload.
    pub load: Option<f64>,
    /// Lists over those of other parts, at least one: long ones cost more.
    pub share: f64,
}

const fn kind(name: &'static str, times: usize, load: Option<f64>, share: f64) -> Kind {
    Kind {
        name,
        times,
        load,
        share,
    }
}

/// What a tree or a standby is judged on beside its task.
pub const PARTS: [Kind; 4] = [
    kind("as long", 1, None, 1.0),
    kind("twice as long", 2, None, 1.0),
    kind("load 0.6", 1, Some(0.6), 1.0),
    kind("load 0.3", 1, Some(0.3), 1.0),
];

/// What a search looks at. Long lists are where there is most to win, so they are half of it.
pub const SEARCHED: [Kind; 4] = [
    PARTS[0],
    PARTS[1],
    kind("four times as long", 4, None, 1.0),
    PARTS[2],
];

/// What one of the trees that a search kept is chosen on: an almost idle cluster besides, where nothing is to be won and something to
/// be lost.
pub const CHOSEN: [Kind; 5] = [SEARCHED[0], SEARCHED[1], SEARCHED[2], SEARCHED[3], PARTS[3]];

/// What a result is reported on.
pub const REPORTED: [Kind; 5] = [
    PARTS[0],
    kind("twice as long", 2, None, 0.5),
    kind("four times as long", 4, None, 0.5),
    PARTS[2],
    PARTS[3],
];

/// One list of jobs, its part, and what the part's best heuristic does on it.
#[derive(Clone, Debug)]
pub struct List {
    /// Place of the part.
    pub part: usize,
    instance: Instance,
    base: Figures,
    /// Logarithm of the least average JCT that any schedule has, over the baseline's; a very small number where there is no bound.
    ln_floor: f64,
}

/// Lists of several parts.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Names of the parts.
    pub parts: Vec<&'static str>,
    /// The best heuristic of each part.
    pub best: Vec<String>,
    /// The lists, in turn one of each part, as long as there are.
    pub lists: Vec<List>,
    sim: SimConfig,
}

/// What a policy is worth on a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartRow {
    /// Name of the part.
    pub part: String,
    /// The heuristic that it is compared with.
    pub best_heuristic: String,
    /// Average JCT over the heuristic's, with its paired interval.
    pub jct: Ratio,
    /// Geometric mean of the 99th percentile of JCT over the heuristic's.
    pub p99: f64,
}

/// An environment with lists of a kind, where an episode has `num_jobs` jobs.
pub(super) fn env_of(env: &EnvConfig, kind: Kind, num_jobs: usize) -> EnvConfig {
    let num_jobs = (kind.times > 1).then_some(kind.times * num_jobs);
    EnvConfig {
        workload: env.workload.clone().resized(num_jobs, kind.load),
        ..env.clone()
    }
}

/// The kinds that an environment has: jobs from a file are as many as they are, and have the load that they have unless the list is
/// split.
#[must_use]
pub fn kinds_of(env: &EnvConfig, kinds: &[Kind]) -> Vec<Kind> {
    let has = |kind: &&Kind| match &env.workload {
        WorkloadConfig::File { num_jobs, split, .. } => {
            let has_load = kind.load.is_none() || split.is_some();
            has_load && Source::open(&env_of(env, **kind, *num_jobs)).is_ok()
        }
        WorkloadConfig::Generate(_) | WorkloadConfig::Mixture(_) => true,
    };
    kinds.iter().filter(has).copied().collect()
}

impl Lists {
    /// GPU types of the cluster that has most.
    #[must_use]
    pub fn num_gpu_types(&self) -> usize {
        let types = self
            .lists
            .iter()
            .map(|list| list.instance.workload.cluster.gpu_types.len());
        types.max().unwrap_or(1)
    }

    /// Draws `num` lists of each kind, less where it has a smaller share, from a stream of their own, and runs the
    /// rivals.
    ///
    /// # Errors
    /// Where a list cannot be drawn or a run fails.
    pub fn draw(
        env: &EnvConfig,
        kinds: &[Kind],
        (seed, stream): (u64, &str),
        num: usize,
        rivals: Rivals<'_>,
        watcher: &Watcher,
    ) -> Result<Lists, Error> {
        let kinds = kinds_of(env, kinds);
        let instances = instances(env, &kinds, (seed, stream), num)?;
        let (best, base) = baselines(env, kinds.len(), &instances, rivals, watcher)?;
        let lists = instances.into_par_iter().zip(base);
        let lists = lists.map(|((part, instance), base)| List {
            part,
            ln_floor: ln_floor(&instance, &env.sim, base),
            instance,
            base,
        });
        Ok(Lists {
            parts: kinds.iter().map(|kind| kind.name).collect(),
            lists: lists.collect(),
            best,
            sim: env.sim.clone(),
        })
    }

    /// Runs policies on lists, side by side: (place of the policy, number of the list). `planner` makes one. Answers are in the order
    /// of the runs, at any number of threads.
    ///
    /// # Errors
    /// The first run, in that order, that failed.
    pub fn outcomes(
        &self,
        planner: impl Fn(usize) -> Result<Box<dyn Planner>, Error> + Sync,
        runs: &[(usize, usize)],
    ) -> Result<Vec<Outcome>, Error> {
        let one = |(place, list): &(usize, usize)| {
            let list = &self.lists[*list];
            let figures = run(&list.instance, &self.sim, planner(*place)?.as_mut())?;
            Ok(figures.against(list.base))
        };
        let done: Vec<Result<Outcome, Error>> = runs.par_iter().map(one).collect();
        done.into_iter().collect()
    }

    /// As [`Lists::outcomes`], of trees in a race: what cannot save its tree is broken off. Each tree plays its short lists first.
    ///
    /// # Errors
    /// As [`Lists::outcomes`], of the runs in the order of their trees and lengths.
    pub fn raced(
        &self,
        planner: impl Fn(usize) -> Result<Box<dyn Planner>, Error> + Sync,
        runs: &[(usize, usize)],
        standing: &Standing<'_>,
    ) -> Result<Vec<Outcome>, Error> {
        let floor = |list: usize| self.lists[list].ln_floor;
        let one = |place: &usize| {
            let (run, list) = (runs[*place], &self.lists[runs[*place].1]);
            let found = match standing.ln_jct_max(run, floor) {
                None => None,
                Some(most) => {
                    let avg_jct_s_max = list.base.avg_jct_s * exp(most);
                    let mut planner = planner(run.0)?;
                    run_within(&list.instance, &self.sim, planner.as_mut(), avg_jct_s_max)?
                }
            };
            let outcome = found.map(|figures| figures.against(list.base));
            standing.note(run, outcome);
            Ok((*place, outcome.unwrap_or(Outcome::BROKEN_OFF)))
        };
        let mut order: Vec<usize> = (0..runs.len()).collect();
        let num_jobs = |list: usize| self.lists[list].instance.workload.jobs.len();
        order.sort_by_key(|place| (runs[*place].0, num_jobs(runs[*place].1), runs[*place].1));
        let done: Vec<Result<(usize, Outcome), Error>> = order.par_iter().map(one).collect();
        let mut outcomes = vec![Outcome::BROKEN_OFF; runs.len()];
        for done in done {
            let (place, outcome) = done?;
            outcomes[place] = outcome;
        }
        Ok(outcomes)
    }

    /// Runs a policy on all lists.
    ///
    /// # Errors
    /// A run that failed.
    pub fn all(&self, policy: &PolicySpec) -> Result<Vec<Outcome>, Error> {
        let runs: Vec<(usize, usize)> = (0..self.lists.len()).map(|list| (0, list)).collect();
        self.outcomes(|_| Ok(policy.make_planner()?), &runs)
    }

    /// What outcomes on all lists are worth, part by part, against the best heuristic.
    #[must_use]
    pub fn rows(&self, outcomes: &[Outcome]) -> Vec<PartRow> {
        (0..self.parts.len())
            .filter_map(|part| {
                let own: Vec<Outcome> = self.of_part(outcomes, part);
                let pairs: Vec<(f64, f64)> = own.iter().map(|own| (exp(own.ln_jct), 1.0)).collect();
                let logs: Vec<f64> = own.iter().map(|own| own.ln_p99).collect();
                Some(PartRow {
                    part: self.parts[part].to_string(),
                    best_heuristic: self.best[part].clone(),
                    jct: Ratio::of_pairs(&pairs)?,
                    p99: exp(mean(&logs)),
                })
            })
            .collect()
    }

    /// The outcomes of one part.
    #[must_use]
    pub fn of_part(&self, outcomes: &[Outcome], part: usize) -> Vec<Outcome> {
        let own = outcomes.iter().zip(&self.lists);
        own.filter(|(_, list)| list.part == part)
            .map(|(outcome, _)| *outcome)
            .collect()
    }
}

/// Logarithm of the least average JCT of a list over a baseline's; [`LN_FLOOR_MIN`] where jobs may end before their work is done.
fn ln_floor(instance: &Instance, sim: &SimConfig, base: Figures) -> f64 {
    if sim.outcomes.is_some() {
        return LN_FLOOR_MIN;
    }
    let least = LowerBounds::of(&instance.workload, &sim.capabilities);
    // Less a little, for rounding.
    ln(least.avg_jct_s / base.avg_jct_s).max(LN_FLOOR_MIN) - 1e-6
}

/// Less than the logarithm of any ratio of average JCTs.
const LN_FLOOR_MIN: f64 = -50.0;

/// Draws `num` lists of each kind, less where it has a smaller share, in turn one of each with the place of its kind.
pub(super) fn instances(
    env: &EnvConfig,
    kinds: &[Kind],
    (seed, stream): (u64, &str),
    num: usize,
) -> Result<Vec<(usize, Instance)>, Error> {
    let first = Source::open(env)?.workload(env, Seed(seed).child(stream, 0))?;
    let num_jobs = first.jobs.len();
    let mut of_kind: Vec<std::vec::IntoIter<Instance>> = Vec::new();
    for kind in kinds {
        let env = env_of(env, *kind, num_jobs);
        let source = Source::open(&env)?;
        let count = ((num as f64 * kind.share) as usize).max(1);
        let drawn = seeds(seed, &format!("{stream}/{}", kind.name), count);
        let instances: Vec<Instance> = drawn
            .par_iter()
            .map(|seed| {
                let workload = source.workload(&env, *seed)?;
                let seed = seed.0;
                Ok(Instance { workload, seed })
            })
            .collect::<Result<_, Error>>()?;
        of_kind.push(instances.into_iter());
    }
    let mut instances: Vec<(usize, Instance)> = Vec::new();
    let mut is_left = true;
    while is_left {
        is_left = false;
        for (part, left) in of_kind.iter_mut().enumerate() {
            if let Some(instance) = left.next() {
                instances.push((part, instance));
                is_left = true;
            }
        }
    }
    Ok(instances)
}

/// Ratio of average JCT of one policy to another over the same lists, with its paired interval.
#[must_use]
pub fn paired(own: &[Outcome], other: &[Outcome]) -> Option<Ratio> {
    let pairs: Vec<(f64, f64)> = own
        .iter()
        .zip(other)
        .map(|(own, other)| (exp(own.ln_jct - other.ln_jct), 1.0))
        .collect();
    Ratio::of_pairs(&pairs)
}

/// Tables as Markdown: a line for each policy with its size, a column for each part; average JCT over that of the part's best
/// heuristic, its interval, and the 99th percentile.
#[must_use]
pub fn markdown(parts: &[PartRow], policies: &[(String, Vec<PartRow>)]) -> String {
    let mut text = String::from("| policy |");
    for row in parts {
        text.push_str(&format!(" {} (`{}`) |", row.part, row.best_heuristic));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(parts.len()));
    text.push('\n');
    for (name, rows) in policies {
        text.push_str(&format!("| {name} |"));
        for row in rows {
            text.push_str(&format!(" {}, p99 {:.2} |", in_words(&row.jct), row.p99));
        }
        text.push('\n');
    }
    text
}

/// `0.823 [0.802, 0.843]`.
#[must_use]
pub fn in_words(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.3} [{low:.3}, {high:.3}]", ratio.mean),
        _ => format!("{:.3}", ratio.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::DOOR;
    use crate::evaluate::workload_source::env_of;

    #[test]
    fn lists_come_in_turn_and_the_best_heuristic_of_a_part_is_at_one_there() {
        let env = env_of("Pleach/PhillyGang-v1", Some(40), None).unwrap();
        let lists = Lists::draw(
            &env,
            &REPORTED,
            (3, "test"),
            4,
            Rivals::Heuristics,
            &Watcher::nobody(),
        )
        .unwrap();
        let parts: Vec<usize> = lists.lists.iter().map(|list| list.part).collect();
        assert_eq!(parts, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 3, 4, 0, 3, 4]);
        let jobs: Vec<usize> = lists.lists[..5]
            .iter()
            .map(|list| list.instance.workload.jobs.len())
            .collect();
        assert_eq!(jobs, [40, 80, 160, 40, 40]);
        for part in 0..5 {
            let best = PolicySpec::heuristic(&lists.best[part]).unwrap();
            let rows = lists.rows(&lists.all(&best).unwrap());
            assert_eq!((rows[part].jct.mean, rows[part].p99), (1.0, 1.0));
            for name in ["fifo", "sjf", "gpu-time-reserve"] {
                let other = PolicySpec::heuristic(name).unwrap();
                assert!(lists.rows(&lists.all(&other).unwrap())[part].jct.mean >= 1.0);
            }
        }
        // The same lists against heuristics that are known.
        let known = Lists::draw(
            &env,
            &REPORTED,
            (3, "test"),
            4,
            Rivals::Known(&lists.best),
            &Watcher::nobody(),
        )
        .unwrap();
        assert_eq!(known.best, lists.best);
        let bases = |lists: &Lists| -> Vec<Figures> { lists.lists.iter().map(|list| list.base).collect() };
        assert_eq!(bases(&known), bases(&lists));
        // Rivals that are far behind on the first lists of a part are run on no more of them, and the best is the best of all.
        let kinds = &REPORTED[3..];
        let many = Lists::draw(
            &env,
            kinds,
            (3, "more"),
            16,
            Rivals::Heuristics,
            &Watcher::nobody(),
        )
        .unwrap();
        for (part, best) in many.best.iter().enumerate() {
            let sum = |name: &str| -> f64 {
                let own = many.all(&PolicySpec::heuristic(name).unwrap()).unwrap();
                many.of_part(&own, part).iter().map(|own| own.ln_jct).sum()
            };
            assert_eq!(sum(best), 0.0);
            for policy in DOOR.open_all(&[]).unwrap() {
                assert!(sum(policy.name()) >= 0.0, "{} on part {part}", policy.name());
            }
        }
        // Low loads are low: as many jobs come over a longer time.
        let span_s = |part: usize| -> f64 {
            let own = lists.lists.iter().filter(|list| list.part == part);
            own.map(|list| list.instance.workload.arrival_span_s()).sum()
        };
        assert!(span_s(4) > 1.5 * span_s(0), "{} {}", span_s(4), span_s(0));
    }
}
