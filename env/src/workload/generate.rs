//! A simple generator of gangs with heavy-tailed run times, until the calibrated ones arrive.
use super::{JobSpec, ModelClass, Outcome, Time, Workload};
use crate::error::Error;
use crate::seed::Seed;
use pleach_scheduler::spec::{ClusterSpec, LocalityFactors};
use rand::RngExt as _;
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};

/// Settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorConfig {}

impl GeneratorConfig {
    /// Settings by name.
    #[must_use]
    pub fn preset(_: &str) -> Option<GeneratorConfig> {
        Some(GeneratorConfig::default())
    }
}

/// Draws a workload.
///
/// # Errors
/// None.
pub fn generate(_: &GeneratorConfig, seed: Seed) -> Result<Workload, Error> {
    let mut rng = seed.stream("jobs", 0);
    let mut draft = Vec::new();
    for _ in 0..200 {
        let gap: f64 = rand_distr::Exp1.sample(&mut rng);
        let u: f64 = rng.random();
        let num_gpus = [(0.6, 1), (0.7, 2), (0.83, 4), (0.95, 8), (0.99, 16)]
            .iter()
            .find(|(upto, _)| u < *upto)
            .map_or(32, |(_, gang)| *gang);
        let z: f64 = rand_distr::StandardNormal.sample(&mut rng);
        draft.push((gap, num_gpus, (900.0 * (1.8 * z).exp()).clamp(30.0, 40_000.0)));
    }
    let work: f64 = draft
        .iter()
        .map(|(_, gang, run_s)| f64::from(*gang) * run_s)
        .sum();
    let gaps: f64 = draft.iter().map(|(gap, ..)| gap).sum();
    let stretch = work / 64.0 / gaps;
    let mut now_s = 0.0;
    let jobs = draft
        .iter()
        .enumerate()
        .map(|(index, (gap, num_gpus, run_time_s))| {
            now_s += gap * stretch;
            JobSpec {
                id: index.to_string(),
                submit: Time::from_secs_f64(now_s),
                num_gpus: *num_gpus,
                run_time_s: *run_time_s,
                estimate_s: None,
                tenant: 0,
                class: 0,
                user: None,
                outcome: Outcome::Unknown,
            }
        });
    Ok(Workload {
        name: "gangs".into(),
        jobs: jobs.collect(),
        cluster: ClusterSpec::uniform(8, 8, 4),
        classes: vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality: LocalityFactors::PHILLY,
        }],
    })
}
