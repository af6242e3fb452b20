//! Rewards in words: what they pay, and what is refused where.

use pleach_workloads::Seed;
use pleach_workloads::generate::{GeneratorConfig, generate};

use super::*;

fn list() -> Workload {
    generate(&GeneratorConfig::default().with(20, 0.8), Seed(1)).unwrap()
}

fn gained() -> Integrals {
    Integrals {
        jobs_s: 300.0,
        slowdown: 4.0,
        held_gpu_s: 1000.0,
        waiting_s: 120.0,
        excess_run_s: 30.0,
        idle_gpu_s: 50.0,
        finished_jobs: 2.0,
        stopped_jobs: 1.0,
        elapsed_s: 60.0,
    }
}

fn paid(reward: &RewardConfig) -> f32 {
    Meter::new(reward, &list()).pay(gained()).0
}

fn in_words(text: &str) -> f32 {
    paid(&RewardConfig::Expression(Expression::parse(text).unwrap()))
}

#[test]
fn the_three_weights_are_names_in_words_that_pay_the_same() {
    let weights = |jct, slowdown, utilisation| {
        RewardConfig::Weights(RewardWeights {
            jct,
            slowdown,
            utilisation,
        })
    };
    for (text, table) in [
        ("-jct", weights(1.0, 0.0, 0.0)),
        ("-slowdown", weights(0.0, 1.0, 0.0)),
        ("2 * utilisation - 0.5*jct", weights(0.5, 0.0, 2.0)),
        ("-(jobs_in_system_s)/total_run_s", weights(1.0, 0.0, 0.0)),
    ] {
        let (own, other) = (in_words(text), paid(&table));
        assert!((own - other).abs() <= 1e-6 * other.abs(), "{text}: {own} {other}");
    }
}

#[test]
fn every_sum_is_what_was_gained() {
    // By hand.
    for (text, value) in [
        ("jobs_in_system_s", 300.0),
        ("waiting_jobs_s", 120.0),
        ("running_jobs_s", 180.0),
        ("excess_run_s", 30.0),
        ("slowdowns", 4.0),
        ("held_gpu_s", 1000.0),
        ("idle_gpu_s", 50.0),
        ("finished_jobs", 2.0),
        ("stopped_jobs", 1.0),
        ("elapsed_s", 60.0),
        ("-jobs_in_system_s - 0.5 * waiting_jobs_s", -360.0),
        ("2 * (held_gpu_s - 3 * idle_gpu_s) / 4", 425.0),
        ("finished_jobs / num_jobs * 20", 2.0),
        ("1e-2*elapsed_s", 0.6),
    ] {
        assert_eq!(in_words(text), value, "{text}");
    }
    assert_eq!(reward_markdown().lines().count(), 2 + 10 + 4 + 4);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/learning.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&reward_markdown()),
        "docs/learning.md wants:\n{}",
        reward_markdown()
    );
}

#[test]
fn what_is_no_reward_is_refused_with_its_place_and_what_would_do() {
    for (text, words) in [
        ("", vec!["at character 1", "breaks off"]),
        (
            "-jobs_in_sistem_s",
            vec![
                "at character 2",
                "jobs_in_sistem_s",
                "did you mean jobs_in_system_s",
            ],
        ),
        (
            "-jobs_in_system_s - 0.1 * idle_gpu_s",
            vec!["at character 19", "job s", "GPU s", "total_gpu_s"],
        ),
        ("jct +", vec!["at character 6", "breaks off"]),
        ("jct jct", vec!["at character 5", "the end"]),
        ("(jct", vec!["at character 5", "close the parenthesis"]),
        ("jct * slowdown", vec!["at character 5", "one sum over time"]),
        ("1 / elapsed_s", vec!["below the line"]),
        ("jct / 0", vec!["other than 0"]),
        ("jct + 1", vec!["paid for every decision"]),
        ("1e999 * jct", vec!["finite"]),
        ("jct ^ 2", vec!["at character 5", "`^`"]),
        ("µ", vec!["at character 1"]),
    ] {
        let said = Expression::parse(text).unwrap_err().to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{text}: {said}");
    }
    let deep = "(".repeat(100) + "jct" + &")".repeat(100);
    assert!(
        Expression::parse(&deep)
            .unwrap_err()
            .to_string()
            .contains("at most 32")
    );
    let long = format!("jct{}", " + jct".repeat(500));
    assert!(Expression::parse(&long).is_err());
    let many = format!("({0}) * ({0})", ["num_jobs"; 60].join("+"));
    assert!(
        Expression::parse(&many)
            .unwrap_err()
            .to_string()
            .contains("64 terms")
    );
}

#[test]
fn files_have_a_table_of_weights_or_the_text() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct File {
        reward: RewardConfig,
    }
    let text = "reward = \"-slowdowns / num_jobs\"\n";
    let file: File = toml::from_str(text).unwrap();
    assert_eq!(toml::to_string(&file).unwrap(), text);
    let json = serde_json::to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<File>(&json).unwrap(), file);
    let table: File = toml::from_str("[reward]\nutilisation = 0.5\n").unwrap();
    let weights = RewardWeights {
        utilisation: 0.5,
        ..RewardWeights::default()
    };
    assert_eq!(table.reward, RewardConfig::Weights(weights));
    for (text, word) in [
        ("reward = \"foo\"", "at character 1"),
        ("[reward]\nfoo = 1.0", "utilisation"),
        ("reward = 1", "an expression"),
    ] {
        let said = toml::from_str::<File>(text).unwrap_err().to_string();
        assert!(said.contains(word), "{said}");
    }
}

/// All that an episode of an environment pays to one of two ways of play: the last admissible candidate, or the second.
fn played_in(id: &str, reward: &str, second: bool) -> (f64, crate::Metrics) {
    let mut config = crate::EnvConfig::registered(id).unwrap();
    config.workload = config.workload.resized(Some(15), None);
    config.reward = RewardConfig::Expression(Expression::parse(reward).unwrap());
    let mut env = crate::Env::new(config).unwrap();
    let spaces = env.spaces();
    let mut global = vec![0.0; spaces.num_global];
    let mut candidates = vec![0.0; spaces.num_candidates * spaces.num_features];
    let mut mask = vec![true; spaces.num_candidates];
    macro_rules! seen {
        () => {
            crate::ObservationMut {
                global: &mut global,
                candidates: &mut candidates,
                mask: &mut mask,
            }
        };
    }
    env.reset(3, seen!()).unwrap();
    let mut total = 0.0;
    for _ in 0..100_000 {
        let last = mask.iter().rposition(|admissible| *admissible).unwrap();
        let action = if second && mask[1] { 1 } else { last };
        let step = env.step(action, seen!()).unwrap();
        total += f64::from(step.reward);
        if step.terminated {
            return (total, env.metrics());
        }
    }
    panic!("the episode does not end");
}

fn played(reward: &str) -> (f64, crate::Metrics) {
    played_in("Pleach/PhillyPreempt-v0", reward, false)
}

#[test]
fn delay_differs_from_the_jct_by_what_no_decision_changes() {
    let mut num_apart = 0;
    for id in [
        "Pleach/GavelMulti-v1",
        "Pleach/PhillyPreempt-v0",
        "Pleach/PhillyShare-v0",
        "Pleach/PhillyGang-v1",
    ] {
        let [one, other] = [false, true].map(|second| {
            let [jct, delay] = ["-jct", "-delay"].map(|reward| played_in(id, reward, second).0);
            (jct, jct - delay)
        });
        // Rewards are 32-bit numbers, hundreds of them.
        assert!(
            (one.1 - other.1).abs() < 1e-4 * one.0.abs(),
            "{id}: {one:?} {other:?}"
        );
        num_apart += usize::from((one.0 - other.0).abs() > 1e-2 * one.0.abs());
    }
    assert!(num_apart > 0, "the ways of play are alike");
}

#[test]
fn over_an_episode_sums_are_what_its_figures_say() {
    let near = |one: f64, other: f64| assert!((one - other).abs() <= 1e-4 * other.abs(), "{one} {other}");
    let (jobs_s, metrics) = played("jobs_in_system_s");
    near(jobs_s, 15.0 * metrics.avg_jct_s);
    near(played("finished_jobs").0, 15.0);
    let (elapsed_s, _) = played("elapsed_s");
    near(played("(held_gpu_s + idle_gpu_s) / num_gpus").0, elapsed_s);
    near(played("waiting_jobs_s + running_jobs_s").0, jobs_s);
    near(played("stopped_jobs").0, metrics.preemptions);
}
