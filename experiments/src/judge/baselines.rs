//! The best rival of each part of the lists on which policies are judged: a race, for most are far behind on the first lists.

use std::collections::BTreeMap;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_scheduler::portable_math::ln;

use super::plays::{Figures, Rivals, run};
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::run::in_parallel;
use crate::evaluate::stand_in::doubles;
use crate::evaluate::stats::mean;
use crate::progress::Watcher;

/// Lists of a part on which all rivals are run first, at least; a quarter of them where that is more. *Assumed*.
const FIRST_LISTS: usize = 6;
/// Mean logarithm of average JCT by which a rival may be behind the best there, and still be run on the others: 10 %. *Assumed*.
const BEHIND_MAX: f64 = 0.1;

/// The best heuristic of each part, and what it does on each list.
pub(super) fn baselines(
    sims: &[SimConfig],
    instances: &[(usize, Instance)],
    rivals: Rivals<'_>,
    watcher: &Watcher,
) -> Result<(Vec<String>, Vec<Figures>), Error> {
    let policies = rivals.open()?;
    let lists_of = |part: usize| (0..instances.len()).filter(move |list| instances[*list].0 == part);
    let own = |part: usize| -> Vec<usize> {
        let workloads: Vec<&Workload> = lists_of(part)
            .map(|list| instances[list].1.workload.as_ref())
            .collect();
        let doubles = doubles(&policies, &workloads, &sims[part]);
        (0..policies.len())
            .filter(|policy| doubles[*policy] == *policy)
            .collect()
    };
    let mut left: Vec<Vec<usize>> = (0..sims.len())
        .map(|part| match rivals {
            Rivals::Known(_) => vec![part],
            _ => own(part),
        })
        .collect();
    let mut done: BTreeMap<(usize, usize), Figures> = BTreeMap::new();
    for is_first in [true, false] {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (part, left) in left.iter().enumerate() {
            let lists: Vec<usize> = lists_of(part).collect();
            let (first, rest) = lists.split_at(FIRST_LISTS.max(lists.len() / 4).min(lists.len()));
            let lists = if is_first { first } else { rest };
            runs.extend(
                left.iter()
                    .flat_map(|policy| lists.iter().map(move |list| (*policy, *list))),
            );
        }
        let found = in_parallel("baselines", watcher, &runs, |(policy, list)| {
            let planner = &mut policies[*policy].make_planner()?;
            let (part, instance) = &instances[*list];
            run(instance, &sims[*part], planner.as_mut())
        })?;
        done.extend(runs.into_iter().zip(found));
        for (part, left) in left.iter_mut().enumerate() {
            keep_the_near(left, |policy| {
                let own = lists_of(part).filter_map(|list| done.get(&(policy, list)));
                own.map(|figures| ln(figures.avg_jct_s)).collect()
            });
        }
    }
    let best: Vec<usize> = left
        .iter()
        .map(|left| left.first().copied().unwrap_or(0))
        .collect();
    let base = instances.iter().enumerate().map(|(list, (part, _))| {
        let figures = done.get(&(best[*part], list)).copied();
        figures.ok_or_else(|| Error::Failed("a part without a baseline".into()))
    });
    let base = base.collect::<Result<Vec<Figures>, Error>>()?;
    let names = best.iter().map(|place| policies[*place].name().to_string());
    Ok((names.collect(), base))
}

/// Sorts rivals by their mean logarithm of average JCT, among equals by their place, and drops those that are far behind the first.
fn keep_the_near(rivals: &mut Vec<usize>, logs: impl Fn(usize) -> Vec<f64>) {
    let mut means: Vec<(f64, usize)> = rivals.iter().map(|rival| (mean(&logs(*rival)), *rival)).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let least = means.first().map_or(0.0, |(mean, _)| *mean);
    means.retain(|(mean, _)| *mean <= least + BEHIND_MAX);
    *rivals = means.into_iter().map(|(_, rival)| rival).collect();
}
