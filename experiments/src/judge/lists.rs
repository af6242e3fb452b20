//! Lists in parts on which policies are judged.
//!
//! Every list has a baseline: of the heuristics, or of the planners that deal, the one that is best over the lists of its part. So
//! luck in choosing is on the baseline's side.

use pleach_distill::search::{Outcome, Standing};
use pleach_env::bound::LowerBounds;
use pleach_env::{EnvConfig, SimConfig};
use pleach_scheduler::Planner;
use pleach_scheduler::portable_math::{exp, ln};
use rayon::prelude::*;

use super::acceptance::{Acceptance, PartRow, paired};
use super::baselines::baselines;
use super::kinds::{Kind, instances, kinds_of};
use super::plays::{Figures, Rivals, run, run_within};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::stats::{Ratio, mean};
use crate::progress::Watcher;

/// Makes a planner.
type Make<'a> = dyn Fn() -> Result<Box<dyn Planner>, Error> + Sync + 'a;

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
    pub parts: Vec<String>,
    /// The baseline of each part.
    pub best: Vec<String>,
    /// The lists, in turn one of each part, as long as there are.
    pub lists: Vec<List>,
    /// Of each part.
    sims: Vec<SimConfig>,
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
        let parts = kinds.iter().map(|kind| (kind.name.to_string(), env.sim.clone()));
        Lists::of(parts.collect(), instances, rivals, watcher)
    }

    /// Lists with the number of their part; parts by name, with how they are simulated. Runs the rivals.
    ///
    /// # Errors
    /// A run that fails.
    pub fn of(
        parts: Vec<(String, SimConfig)>,
        instances: Vec<(usize, Instance)>,
        rivals: Rivals<'_>,
        watcher: &Watcher,
    ) -> Result<Lists, Error> {
        let (parts, sims): (Vec<String>, Vec<SimConfig>) = parts.into_iter().unzip();
        let (best, base) = baselines(&sims, &instances, rivals, watcher)?;
        Ok(Lists::with(parts, sims, instances, (best, base)))
    }

    /// The same where one planner is the baseline of all.
    ///
    /// # Errors
    /// A run that fails.
    pub fn against(
        parts: Vec<(String, SimConfig)>,
        instances: Vec<(usize, Instance)>,
        (name, planner): (&str, &Make<'_>),
    ) -> Result<Lists, Error> {
        let (parts, sims): (Vec<String>, Vec<SimConfig>) = parts.into_iter().unzip();
        let base = instances
            .par_iter()
            .map(|(part, instance)| run(instance, &sims[*part], planner()?.as_mut()));
        let base = base.collect::<Result<Vec<Figures>, Error>>()?;
        let best = vec![name.to_string(); parts.len()];
        Ok(Lists::with(parts, sims, instances, (best, base)))
    }

    fn with(
        parts: Vec<String>,
        sims: Vec<SimConfig>,
        instances: Vec<(usize, Instance)>,
        (best, base): (Vec<String>, Vec<Figures>),
    ) -> Lists {
        let lists = instances.into_par_iter().zip(base);
        let lists = lists.map(|((part, instance), base)| List {
            part,
            ln_floor: ln_floor(&instance, &sims[part], base),
            instance,
            base,
        });
        Lists {
            lists: lists.collect(),
            parts,
            best,
            sims,
        }
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
            let figures = run(&list.instance, &self.sims[list.part], planner(*place)?.as_mut())?;
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
                    run_within(
                        &list.instance,
                        &self.sims[list.part],
                        planner.as_mut(),
                        avg_jct_s_max,
                    )?
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
        self.played(|| Ok(policy.make_planner()?))
    }

    /// Runs one planner, made anew for each, on all lists.
    pub(crate) fn played(
        &self,
        planner: impl Fn() -> Result<Box<dyn Planner>, Error> + Sync,
    ) -> Result<Vec<Outcome>, Error> {
        let runs: Vec<(usize, usize)> = (0..self.lists.len()).map(|list| (0, list)).collect();
        self.outcomes(|_| planner(), &runs)
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
                    part: self.parts[part].clone(),
                    best_heuristic: self.best[part].clone(),
                    jct: Ratio::of_pairs(&pairs)?,
                    p99: exp(mean(&logs)),
                })
            })
            .collect()
    }

    /// The result of a search beside the start that it must beat, by what both came to on all lists.
    pub(crate) fn acceptance(&self, result: &[Outcome], start: &[Outcome]) -> Acceptance {
        Acceptance::of(self.rows(result), self.rows(start), paired(result, start))
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

#[cfg(test)]
mod tests {
    use super::super::REPORTED;
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
            &Watcher::silent(),
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
            &Watcher::silent(),
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
            &Watcher::silent(),
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
