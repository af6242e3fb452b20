//! What a policy would win that reads when a job starts if it does not start now: more than any forecast knows, the true wait under the
//! rule itself, as a term of the rule's own key.

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{EnvConfig, Seed, SimConfig, WorkloadConfig, generate, simulate};
use pleach_scheduler::heuristics;
use pleach_scheduler::portable_math::{exp, ln};

/// Worlds with the best of six rules there, and the weight of the wait that was best of eight on seeds 0 to 11.
const BEST: [(&str, &str, f64); 3] = [
    ("Pleach/GavelMulti-v1", "sjf-best-type", -0.05),
    ("Pleach/Philly-v0", "gpu-time-reserve", 0.05),
    ("Pleach/PhillyGang-v1", "gpu-time-reserve", 0.1),
];

#[test]
fn the_true_wait_wins_the_best_rules_next_to_nothing() {
    for (world, rule, weight) in BEST {
        let config = EnvConfig::registered(world).unwrap();
        let WorkloadConfig::Generate(generator) = &config.workload else {
            panic!("{world} is generated");
        };
        let sim = SimConfig {
            estimates: EstimateModel::UserLimit { default_s: 1.0 },
            ..config.sim.clone()
        };
        let over = |seed: u64| {
            let mut list = generate(generator, Seed(seed)).unwrap();
            for job in &mut list.jobs {
                job.estimate_s = Some(job.run_time_s);
            }
            let play = |list: &_| simulate(list, &sim, heuristics::by_name(rule).unwrap().as_mut()).unwrap();
            let plain = play(&list);
            let most_s = plain.metrics.makespan_s * (-weight).max(0.0);
            for (job, played) in list.jobs.iter_mut().zip(&plain.jobs) {
                // Of jobs that wait at one instant the one whose start is later waits longer.
                job.estimate_s = Some(job.run_time_s + weight * played.first_start_s + most_s);
            }
            ln(play(&list).metrics.avg_jct_s / plain.metrics.avg_jct_s)
        };
        let logs: Vec<f64> = (100..140).map(over).collect();
        let mean = logs.iter().sum::<f64>() / 40.0;
        let spread = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 39.0 / 40.0).sqrt();
        let [low, middle, high] = [mean - 2.02 * spread, mean, mean + 2.02 * spread].map(exp);
        println!("{world} {rule} {weight}: {middle:.3} ({low:.3} to {high:.3})");
        assert!(middle > 0.97, "{world}: {middle}");
    }
}
