//! What a policy would win that reads when a job starts if it does not start now: more than any forecast knows, the true wait under the
//! rule itself, as a term of the rule's own key.

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{EnvConfig, Seed, SimConfig, WorkloadConfig, generate, simulate};
use pleach_scheduler::heuristics;

const RULES: [&str; 6] = [
    "sjf",
    "sjf-reserve",
    "gpu-time",
    "gpu-time-reserve",
    "sjf-best-type",
    "easy",
];
const PARTS: [f64; 8] = [-1.0, -0.5, -0.2, -0.05, 0.05, 0.2, 0.5, 1.0];

#[test]
fn the_true_wait_wins_the_best_rules_little() {
    for world in ["Pleach/GavelMulti-v1", "Pleach/Philly-v0", "Pleach/PhillyGang-v1"] {
        let config = EnvConfig::registered(world).unwrap();
        let WorkloadConfig::Generate(generator) = &config.workload else {
            panic!("{world} is generated");
        };
        let sim = SimConfig {
            estimates: EstimateModel::UserLimit { default_s: 1.0 },
            ..config.sim.clone()
        };
        let mut sums = vec![[0.0; PARTS.len() + 1]; RULES.len()];
        for seed in 0..12 {
            let mut list = generate(generator, Seed(seed)).unwrap();
            for job in &mut list.jobs {
                job.estimate_s = Some(job.run_time_s);
            }
            for (rule, sums) in RULES.iter().zip(&mut sums) {
                let mut play =
                    |list: &_| simulate(list, &sim, heuristics::by_name(rule).unwrap().as_mut()).unwrap();
                let plain = play(&list);
                sums[0] += plain.metrics.avg_jct_s;
                for (part, sum) in PARTS.iter().zip(&mut sums[1..]) {
                    let mut other = list.clone();
                    for (job, played) in other.jobs.iter_mut().zip(&plain.jobs) {
                        let most_s = plain.metrics.makespan_s;
                        job.estimate_s =
                            Some(job.run_time_s + part * played.first_start_s + (-part).max(0.0) * most_s);
                    }
                    *sum += play(&other).metrics.avg_jct_s;
                }
            }
        }
        let best = sums.iter().map(|sums| sums[0]).fold(f64::INFINITY, f64::min);
        for (rule, sums) in RULES.iter().zip(&sums) {
            let over: Vec<String> = sums.iter().map(|sum| format!("{:.3}", sum / best)).collect();
            println!("{world} {rule}: {}", over.join(" "));
        }
    }
}
