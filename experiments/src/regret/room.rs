//! The best rule of some lists, what is better, and the part of the way there that a policy goes.

use std::collections::BTreeMap;

use pleach_env::SimConfig;
use pleach_env::workload::estimates::EstimateModel;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::portable_math::ln;
use serde::Serialize;

use super::foresight::foresight;
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::metric::MAIN_METRIC;
use crate::evaluate::results::PolicyRun;
use crate::evaluate::run::{Runner, in_parallel};
use crate::evaluate::stats::{Ratio, mean, over_parts};
use crate::progress::Watcher;

/// Part of the best rule's average JCT that a search must be able to win, for lists to be evidence of anything. *Assumed*: below it
/// intervals over twenty lists are as wide as what there is.
const TO_WIN_MIN: f64 = 0.05;

/// Every heuristic, and every planner and named rival that asks for no more than the cluster can do.
///
/// # Errors
/// Not in practice: the names are known.
pub fn rules(capabilities: Capabilities) -> Result<Vec<PolicySpec>, Error> {
    let mut all = DOOR.open_all(&[])?;
    for name in DOOR.names() {
        let is_open = all.iter().any(|one| one.name() == name);
        let one = if is_open { continue } else { DOOR.open_one(name)? };
        if one.asks()?.difference(capabilities.actions()).is_empty() {
            all.push(one);
        }
    }
    Ok(all)
}

/// The policy among `names` with the least geometric mean of average JCT; the first of equals.
#[must_use]
pub fn strongest<'a>(runs: &[PolicyRun], names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let log = |name: &str| ln_jcts(runs, name).iter().sum::<f64>();
    let logs = names.into_iter().map(|name| (log(name), name));
    logs.min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

/// Logarithms of a policy's average JCTs, list by list.
fn ln_jcts(runs: &[PolicyRun], name: &str) -> Vec<f64> {
    let own = runs.iter().filter(|run| run.policy == name);
    own.map(|run| ln(run.metrics.get(MAIN_METRIC).copied().unwrap_or(f64::NAN)))
        .collect()
}

/// What there is to win on the same lists. Average JCTs over the best rule's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Room {
    /// The rule that is best on these very lists.
    pub rule: String,
    /// The policy that is best where run times are known, and what it comes to.
    pub known: (String, Ratio),
    /// The best that a search finds which sees each list: a schedule that there is.
    pub foresight: Ratio,
    /// What no schedule beats; none where jobs may end before their work is done.
    pub bound: Option<Ratio>,
    /// Simulations of the search, a list.
    pub num_simulations: u32,
    /// Logarithms of the ratios of the search, list by list.
    #[serde(skip)]
    ln_foresight: Vec<f64>,
    /// Those of the average JCTs of the best rule.
    #[serde(skip)]
    ln_rule: Vec<f64>,
}

/// A part of what there is to win, with its 95 % interval over lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Logarithm of the ratio to the best rule over that of the search: 0 for the best rule, 1 for the search.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Room {
    /// Of lists that `runs` has every policy on: rules, and what was learned. With `num` simulations of the search on each.
    ///
    /// # Errors
    /// A run that fails.
    pub fn of(
        sim: &SimConfig,
        instances: &[Instance],
        (runs, policies): (&[PolicyRun], &[PolicySpec]),
        rules: &[PolicySpec],
        num: u32,
        watcher: &Watcher,
    ) -> Result<Room, Error> {
        let names = rules.iter().map(PolicySpec::name);
        let rule = strongest(runs, names).ok_or_else(|| Error::Failed("no rule to compare with".into()))?;
        let ln_rule = ln_jcts(runs, rule);
        let known = SimConfig {
            estimates: EstimateModel::Oracle,
            record_utilisation: false,
            record_segments: false,
            ..sim.clone()
        };
        let known_runs = match sim.estimates {
            EstimateModel::Oracle => runs.to_vec(),
            _ => Runner::new(&known)
                .watched("run times known", watcher)
                .run(instances, policies)?,
        };
        let best = strongest(&known_runs, policies.iter().map(PolicySpec::name)).unwrap_or(rule);
        let lns: BTreeMap<&str, Vec<f64>> = policies
            .iter()
            .map(|policy| (policy.name(), ln_jcts(&known_runs, policy.name())))
            .collect();
        let places: Vec<usize> = (0..instances.len()).collect();
        let found = in_parallel("foresight", watcher, &places, |list| {
            let on_list = |policy: &&PolicySpec| lns[policy.name()][*list];
            let start = policies
                .iter()
                .min_by(|one, other| on_list(one).total_cmp(&on_list(other)));
            let start = start.ok_or_else(|| Error::Failed("no policy to search around".into()))?;
            let searched = foresight(&instances[*list], &known, start, num)?;
            // What any policy does without a search is a schedule as well.
            let played = policies.iter().map(|policy| ln_jcts(runs, policy.name())[*list]);
            let least = played.chain([on_list(&start)]).fold(f64::INFINITY, f64::min);
            Ok(searched.map_or(least, |jct_s| least.min(ln(jct_s))))
        })?;
        let over =
            |logs: &[f64]| -> Vec<f64> { logs.iter().zip(&ln_rule).map(|(own, rule)| own - rule).collect() };
        let ratio =
            |logs: &[f64]| Ratio::of_logs(&over(logs)).ok_or_else(|| Error::Failed("no lists".into()));
        let bounds = runs.iter().filter(|run| run.policy == rule);
        let bounds: Option<Vec<f64>> = bounds
            .map(|run| run.metrics.get("avg_jct_bound_s").map(|bound| ln(*bound)))
            .collect();
        Ok(Room {
            rule: rule.to_string(),
            known: (best.to_string(), ratio(&lns[best])?),
            foresight: ratio(&found)?,
            bound: bounds.map(|bounds| ratio(&bounds)).transpose()?,
            num_simulations: num,
            ln_foresight: over(&found),
            ln_rule,
        })
    }

    /// Whether there is enough to win that these lists are evidence.
    #[must_use]
    pub fn is_evidence(&self) -> bool {
        self.foresight.mean <= 1.0 - TO_WIN_MIN
    }

    /// The part that a policy wins; none where the search finds nothing to win.
    #[must_use]
    pub fn share(&self, runs: &[PolicyRun], policy: &str) -> Option<Share> {
        let own = ln_jcts(runs, policy);
        let won: Vec<f64> = own
            .iter()
            .zip(&self.ln_rule)
            .map(|(own, rule)| own - rule)
            .collect();
        self.share_of(&won)
    }

    /// The part that ratios to the best rule are, from their logarithms on each list.
    #[must_use]
    pub fn share_of(&self, ln_ratios: &[f64]) -> Option<Share> {
        if ln_ratios.len() != self.ln_foresight.len() || mean(&self.ln_foresight) >= 0.0 {
            return None;
        }
        let of = |counts: &[u32]| {
            let sum = |logs: &[f64]| {
                logs.iter()
                    .zip(counts)
                    .map(|(log, count)| log * f64::from(*count))
                    .sum::<f64>()
            };
            let all = sum(&self.ln_foresight);
            (all < 0.0).then(|| sum(ln_ratios) / all)
        };
        let (mean, low, high) = over_parts(ln_ratios.len(), of)?;
        Some(Share { mean, low, high })
    }

    /// The part of what can be won that a share is, in words; that there is no evidence where there is little to win.
    #[must_use]
    pub fn in_words(&self, share: Option<Share>) -> String {
        let percent = |part: f64| (100.0 * part).round();
        match share {
            _ if !self.is_evidence() => {
                format!("no evidence: {:.1} % to win", 100.0 * (1.0 - self.foresight.mean))
            }
            Some(share) => {
                let [mean, low, high] = [share.mean, share.low, share.high].map(percent);
                format!(
                    "{mean} % [{low}, {high}] of {} %",
                    percent(1.0 - self.foresight.mean)
                )
            }
            None => "nothing to win".to_string(),
        }
    }
}
