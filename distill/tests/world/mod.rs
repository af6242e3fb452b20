//! Small episodes and teachers for the tests.
use pleach_distill::Episode;
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::{Error, Seed, SimConfig, simulate};
use pleach_scheduler::PolicyError;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::tree::TreePolicy;

/// A crowded cluster for `num_jobs` jobs.
pub fn workload(num_jobs: usize, name: &str, index: u64) -> Workload {
    let config = GeneratorConfig::default().with(num_jobs, 10.0);
    generate(&config, Seed(11).child(name, index)).unwrap()
}

pub fn index_of(name: &str) -> usize {
    FeatureSchema::current().joined_index(name).unwrap()
}

/// Smallest GPU-time first; holds only if nothing can start.
pub struct SmallestFirst;

impl Policy for SmallestFirst {
    fn name(&self) -> &str {
        "smallest-first"
    }

    fn needs(&self) -> Needs {
        Needs {
            actions: pleach_scheduler::ActionSet::NONE,
            ..Needs::full()
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let (hold, gpu_time) = (index_of("is_hold"), index_of("gpu_time_gpu_s"));
        for (index, score) in scores.iter_mut().enumerate() {
            let row = point.observation.row(index);
            *score = -row[gpu_time] - 5.0 * row[hold];
        }
        Ok(())
    }
}

/// Runs an episode of a distillation.
pub fn run(episode: Episode, policy: &mut dyn Policy) -> Result<(), Error> {
    let workload = workload(250, "learn", episode.number as u64);
    simulate(&workload, &SimConfig::default(), policy).map(|_| ())
}

pub fn avg_jct_s(policy: &mut dyn Policy, num: u64) -> Result<f64, Error> {
    let mut sum = 0.0;
    for index in 0..num {
        let workload = workload(250, "judge", index);
        sum += simulate(&workload, &SimConfig::default(), policy)?
            .metrics
            .avg_jct_s;
    }
    Ok(sum / num as f64)
}

/// A judge that compares with a baseline of average JCT, s.
pub fn judge_against(baseline_s: f64) -> impl FnMut(&TreePolicy) -> Result<f64, Error> {
    move |tree| Ok(avg_jct_s(&mut tree.clone(), 2)? / baseline_s)
}
