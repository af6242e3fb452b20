//! All baselines and all trainings of a task on the same held-out workloads.

use std::collections::BTreeMap;

use pleach_env::EnvConfig;
use pleach_scheduler::portable_math::{exp, ln};
use serde::Serialize;

use pleach_experiments::door::PolicySpec;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::Instance;
use pleach_experiments::evaluate::interval::Interval;
use pleach_experiments::evaluate::metric::MAIN_METRIC;
use pleach_experiments::evaluate::results::PolicyRun;
use pleach_experiments::evaluate::run::Runner;
use pleach_experiments::progress::Watcher;
use pleach_experiments::regret::{Room, Share};

/// What a task's trainings came to on one set of workloads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline with the least geometric mean of average JCT on these very workloads.
    pub baseline: String,
    /// Geometric means of average JCT over the baseline's, of all baselines, best first.
    pub baselines: Vec<(String, f64)>,
    /// The baseline's mean gap to the lower bound of average JCT; none where there is no bound.
    pub baseline_gap: Option<f64>,
    /// The trained policies' mean gap.
    pub learned_gap: Option<f64>,
    /// Average JCT against the baseline.
    pub avg_jct: Interval,
    /// 99th percentile of JCT against the baseline.
    pub p99_jct: Interval,
    /// Geometric mean of average JCT over the baseline's, of each training.
    pub trainings: Vec<f64>,
    /// The training that a user would keep: the best on its validation workloads.
    pub kept: Kept,
    /// What there is to win on these very workloads.
    pub room: Room,
    /// The part of it that the trained policies win in the mean; none where a search finds nothing to win.
    pub share: Option<Share>,
    /// Workloads.
    pub num_workloads: usize,
}

/// One training against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// Number of the training, from 0.
    pub training: usize,
    /// Average JCT against the baseline.
    pub avg_jct: Interval,
    /// 99th percentile of JCT against the baseline.
    pub p99_jct: Interval,
}

/// What the trainings of one stage gave.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The network of each training, with names of their own.
    pub trained: Vec<PolicySpec>,
    /// Which of them was best on its validation workloads.
    pub kept: usize,
}

/// Plays `field` and the trained policies of all stages on `instances`, and searches each for what can be won; a comparison for each
/// stage.
///
/// # Errors
/// A run that fails.
pub fn compare(
    env: &EnvConfig,
    instances: &[Instance],
    field: &[PolicySpec],
    stages: &[Learned],
    (label, num_simulations): (&str, u32),
    watcher: &Watcher,
) -> Result<Vec<Comparison>, Error> {
    let trained = stages.iter().flat_map(|stage| &stage.trained);
    let all: Vec<PolicySpec> = field.iter().chain(trained).cloned().collect();
    let runs = Runner::new(&env.sim)
        .watched(label, watcher)
        .run(instances, &all)?;
    let room = Room::of(
        &env.sim,
        instances,
        (&runs, &all),
        field,
        num_simulations,
        watcher,
    )?;
    let by_name = |key: &str| -> BTreeMap<&str, Vec<f64>> {
        let mut table: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for run in &runs {
            table.entry(&run.policy).or_default().push(figure(run, key));
        }
        table
    };
    let jct_s = by_name(MAIN_METRIC);
    let log_mean = |values: &[f64]| values.iter().map(|x| ln(*x)).sum::<f64>() / values.len() as f64;
    let mut ranking: Vec<(String, f64)> = field
        .iter()
        .map(|one| (one.name().to_string(), log_mean(&jct_s[one.name()])))
        .collect();
    ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (baseline, least) = ranking
        .first()
        .cloned()
        .ok_or_else(|| Error::Failed("no baseline to compare with".to_string()))?;
    let (tail_s, gaps) = (by_name("p99_jct_s"), by_name("avg_jct_gap"));
    let mean_gap = |names: &[&str]| {
        let values: Vec<f64> = names.iter().flat_map(|name| gaps[name].clone()).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        mean.is_finite().then_some(mean)
    };
    let interval_of = |ratios: &[Vec<f64>]| {
        Interval::of(ratios).ok_or_else(|| Error::Failed("no trainings to compare".to_string()))
    };
    let of_stage = |stage: &Learned| -> Result<Comparison, Error> {
        let ratios = |table: &BTreeMap<&str, Vec<f64>>| -> Vec<Vec<f64>> {
            let base = &table[baseline.as_str()];
            let over = |one: &PolicySpec| {
                let own = table[one.name()].iter();
                own.zip(base).map(|(own, base)| own / base).collect()
            };
            stage.trained.iter().map(over).collect()
        };
        let (jct, tail) = (ratios(&jct_s), ratios(&tail_s));
        let mean_ln = |list: usize| log_mean(&jct.iter().map(|ratios| ratios[list]).collect::<Vec<_>>());
        let won: Vec<f64> = (0..instances.len()).map(mean_ln).collect();
        let of_kept = |ratios: &[Vec<f64>]| ratios.get(stage.kept).cloned().into_iter().collect::<Vec<_>>();
        let names: Vec<&str> = stage.trained.iter().map(PolicySpec::name).collect();
        Ok(Comparison {
            baseline: baseline.clone(),
            baselines: ranking
                .iter()
                .map(|(name, log)| (name.clone(), exp(log - least)))
                .collect(),
            baseline_gap: mean_gap(&[&baseline]),
            learned_gap: mean_gap(&names),
            avg_jct: interval_of(&jct)?,
            p99_jct: interval_of(&tail)?,
            trainings: jct.iter().map(|ratios| exp(log_mean(ratios))).collect(),
            kept: Kept {
                training: stage.kept,
                avg_jct: interval_of(&of_kept(&jct))?,
                p99_jct: interval_of(&of_kept(&tail))?,
            },
            share: room.share_of(&won),
            room: room.clone(),
            num_workloads: instances.len(),
        })
    };
    stages.iter().map(of_stage).collect()
}

fn figure(run: &PolicyRun, key: &str) -> f64 {
    run.metrics.get(key).copied().unwrap_or(f64::NAN)
}
