//! A comparison without flags.

use super::*;
use crate::worlds::{Searching, compare, search};

#[test]
fn a_configuration_without_flags_is_run_and_refused_as_the_command_line_is() {
    let text = "policy = ['fifo', 'sjf']\nseeds = 2\n[workload]\nworkload = ['philly-like']\nnum_jobs = 30";
    let config: EvaluationConfig = toml::from_str(text).unwrap();
    let results = evaluate(&config).unwrap();
    let drawn: Vec<u64> = seeds(0, "test", 2).iter().map(|seed| seed.0).collect();
    let run: Vec<u64> = results.runs().iter().map(|run| run.seed).collect();
    assert_eq!(run, [drawn[0], drawn[0], drawn[1], drawn[1]]);
    assert_eq!(results.reference(), Some("fifo"));
    for (text, words) in [
        ("reference = 'sjf'\npolicy = ['fifo']", "reference = sjf"),
        ("seeds = 0", "1 to 10000"),
        (
            "[scheduling]\nnode_mtbf_days = 0.0",
            "node_mtbf_days = 0: allowed is above 0",
        ),
        (
            "[scheduling]\nrestart_cost_s = 1.0\noverheads = { model = 'tacc-empirical' }",
            "none beside overheads",
        ),
        ("metric = 'jct'", "avg_jct_s"),
        ("[workload]\nworkload = ['philly-like']\nload = 0", "0.01 to 10"),
        (
            "[workload]\nworkload = ['philly-like']\nnum_jobs = 0",
            "1 to 10000000",
        ),
        ("[workload]\nworkload = ['philly-like']\ndays = -1.0", "above 0"),
    ] {
        let config: EvaluationConfig = toml::from_str(text).unwrap();
        let said = evaluate(&config).unwrap_err();
        assert!(
            said.to_string().contains(words) && said.exit_code() == 2,
            "{text}: {said}"
        );
    }
}

#[test]
fn jobs_are_compared_in_pairs_and_searched_in_by_their_own_verb() {
    let text = "seeds = 2\npolicy = ['fifo', 'sjf']\n[workload]\nworkload = ['philly-like']\nnum_jobs = 30";
    let config: EvaluationConfig = toml::from_str(text).unwrap();
    let mut world = JobsWorld::open(&config).unwrap();
    let silent = Watcher::silent();
    let found = compare(&world, &Comparing::default(), &silent).unwrap();
    assert_eq!(
        serde_json::json!(found),
        serde_json::json!(evaluate(&config).unwrap())
    );
    let record = world
        .record(&world.instances(&mut |_| {}).unwrap(), &silent)
        .unwrap();
    assert_eq!(
        (
            record.runs.len(),
            record.runs.iter().all(|run| !run.segments.is_empty())
        ),
        (4, true)
    );
    let refused = search(&mut world, &Searching::default(), (0, None), &silent);
    assert!(
        refused
            .err()
            .unwrap()
            .to_string()
            .contains("pleach distill searches trees of jobs")
    );
}
