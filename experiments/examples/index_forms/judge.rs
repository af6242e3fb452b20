//! The lists on which forms are judged.

use std::error::Error;

use pleach_env::{Seed, simulate_planner};
use pleach_experiments::evaluate::workload_source::WorkloadSource;
use pleach_experiments::tournament::Condition;
use pleach_scheduler::portable_math::{exp, ln};
use pleach_scheduler::{ActionKind, ActionSet, ConfigError, Planner};
use rayon::prelude::*;

/// Held-out lists of each kind and condition.
pub const LISTS: u64 = 12;
const KINDS: [&str; 7] = [
    "Pleach/Philly-v0",
    "helios-like",
    "sia-philly",
    "gavel-multi",
    "synergy-multi",
    "pollux",
    "acme-like",
];

/// Makes a planner for one list.
pub type Make = dyn Fn() -> Result<Box<dyn Planner>, ConfigError> + Send + Sync;

/// A list with its condition.
pub struct Held {
    pub kind: &'static str,
    pub condition: Condition,
    pub seed: Seed,
}

impl Held {
    /// Of every kind in both conditions, from a stream of their own.
    pub fn draw(name: &str, num: u64) -> Vec<Held> {
        let of_kind = |kind: &'static str| {
            let of_condition = move |condition: Condition| {
                let seed = |number| Seed(0).child(name, number);
                (0..num)
                    .map(move |number| Held {
                        kind,
                        condition,
                        seed: seed(number),
                    })
                    .collect::<Vec<_>>()
            };
            [Condition::Ideal, Condition::Realistic]
                .into_iter()
                .flat_map(of_condition)
        };
        KINDS.into_iter().flat_map(of_kind).collect()
    }

    /// Average JCT, s.
    pub fn play(&self, mut planner: Box<dyn Planner>) -> Result<f64, String> {
        let source = WorkloadSource {
            workload: vec![self.kind.to_string()],
            num_jobs: Some(200),
            load: Some(2.0),
            ..WorkloadSource::default()
        };
        let mut sim = self.condition.sim();
        let asks = ActionSet::of(ActionKind::Preempt).with(ActionKind::Share);
        sim.capabilities = sim.capabilities.with_actions(asks);
        sim.seed = self.seed.0;
        let instance = source
            .instances(&sim, &[self.seed], &mut |_| {})
            .map_err(|error| error.to_string())?
            .remove(0);
        let result = simulate_planner(&instance.workload, &sim, planner.as_mut())
            .map_err(|error| error.to_string())?;
        Ok(result.metrics.avg_jct_s)
    }

    /// Average JCTs of a planner on lists, s.
    pub fn play_all(lists: &[Held], make: &Make) -> Result<Vec<f64>, String> {
        let played = lists
            .par_iter()
            .map(|list| list.play(make().map_err(|error| error.to_string())?));
        played.collect()
    }
}

/// The first two lines of the table.
pub fn head() -> String {
    let kinds = KINDS.join(" | ");
    format!(
        "| form | realistic | {kinds} | ideal | {kinds} | judged in |\n| --- {}|",
        "| ---: ".repeat(2 * KINDS.len() + 3)
    )
}

/// Geometric means of ratios of average JCT to the reference: realistic, then ideal, with intervals, and of each kind.
pub fn judge(reference: &[f64], lists: &[Held], make: &Make) -> Result<String, Box<dyn Error>> {
    let played = Held::play_all(lists, make)?;
    let logs: Vec<f64> = played
        .iter()
        .zip(reference)
        .map(|(own, other)| ln(own / other))
        .collect();
    let of = |kind: Option<&str>, condition: Condition| -> Vec<f64> {
        let is_in = |list: &Held| list.condition == condition && kind.is_none_or(|kind| kind == list.kind);
        let chosen = lists.iter().zip(&logs).filter(|(list, _)| is_in(list));
        chosen.map(|(_, log)| *log).collect()
    };
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let mut cells = Vec::new();
    for condition in [Condition::Realistic, Condition::Ideal] {
        let all = of(None, condition);
        let centre = mean(&all);
        let squares: f64 = all.iter().map(|log| (log - centre).powi(2)).sum();
        let half = 1.96 * (squares / all.len() as f64 / (all.len() - 1) as f64).sqrt();
        cells.push(format!(
            "{:.3} [{:.3}, {:.3}]",
            exp(centre),
            exp(centre - half),
            exp(centre + half)
        ));
        cells.extend(KINDS.map(|kind| format!("{:.3}", exp(mean(&of(Some(kind), condition))))));
    }
    Ok(cells.join(" | "))
}
