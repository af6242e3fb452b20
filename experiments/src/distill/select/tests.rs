//! The search for a selector, and the selector as a policy of simulations.

use pleach_env::{Seed, Source, simulate};
use pleach_scheduler::policy::Policy;
use pleach_scheduler::selector::SelectorPolicy;

use super::*;
use crate::evaluate::workload_source::env_of;

fn input(rules: &[&str]) -> SelectInput {
    SelectInput {
        rules: rules.iter().map(|rule| (*rule).to_string()).collect(),
        leaves: 3,
        simulations: 1500,
        lists: 6,
        made_on: serde_json::json!("test"),
    }
}

#[test]
fn rules_are_those_that_the_environment_can_use() {
    let rules = |id: &str| default_rules(&env_of(id, Some(20), None).unwrap());
    assert_eq!(rules("Pleach/PhillyGang-v1").len(), RULES.len());
    for (id, own) in [
        ("Pleach/PhillyShare-v1", "sjf-share"),
        ("Pleach/Synergy-v1", "sjf-tuned"),
        ("Pleach/Elastic-v1", "sjf-moldable"),
    ] {
        assert_eq!(rules(id)[RULES.len()..], [own.to_string()], "{id}");
    }
}

fn env() -> EnvConfig {
    env_of("Pleach/GavelMulti-v1", Some(30), Some(2.0)).unwrap()
}

#[test]
fn a_search_is_the_same_at_any_number_of_threads_and_reports_what_it_says() {
    let selected = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let input = input(&["fifo", "sjf", "sjf-best-type"]);
        pool.install(|| select(&env(), &input, 3, &Watcher::nobody()).unwrap())
    };
    let (one, two) = (selected(1), selected(2));
    assert_eq!(one.selector.to_json(), two.selector.to_json());
    let json = |report: &SelectReport| serde_json::to_string(report).unwrap();
    assert_eq!(json(&one.report), json(&two.report));
    let report = &one.report;
    assert_eq!(report.sizes[0].leaves, 1);
    assert!(report.sizes.is_sorted_by_key(|row| row.leaves) && report.sizes.len() == one.sizes.len());
    assert_eq!(one.sizes[report.chosen], one.selector);
    assert_eq!(report.is_accepted(), one.selector.num_leaves() > 1);
    // A larger one is chosen only where it is better by more than luck.
    let over = report.sizes[report.chosen].over_smaller;
    assert!(!report.is_accepted() || over.and_then(|ratio| ratio.high).unwrap() < 1.0);
    // No heuristic is ahead of the best in hindsight, and none of the best of its own part.
    assert!(report.singles.is_sorted_by(|a, b| a.jct <= b.jct));
    assert_eq!(report.singles.len(), heuristics::names().len());
    assert!(
        report
            .singles
            .iter()
            .all(|row| row.parts.iter().all(|part| part.jct.mean >= 1.0 - 1e-12))
    );
    let text = report.markdown();
    assert!(
        text.contains("(chosen)") && text.contains("the best single one in hindsight"),
        "{text}"
    );
    // The budget is a bound but for what the last race had begun.
    assert!(
        (100..2500).contains(&report.simulations),
        "{}",
        report.simulations
    );
    assert_eq!(
        one.selector.meta().trained_by["rules"],
        serde_json::json!(["fifo", "sjf", "sjf-best-type"])
    );
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_the_fix() {
    let refused = |input: &SelectInput| {
        select(&env(), input, 0, &Watcher::nobody())
            .unwrap_err()
            .to_string()
    };
    let text = refused(&input(&["fifo", "sfj"]));
    assert!(text.contains("did you mean sjf?"), "{text}");
    let text = refused(&input(&["fifo", "fifo"]));
    assert!(text.contains("each heuristic once"), "{text}");
    let text = refused(&input(&["fifo"]));
    assert!(text.contains("two heuristics or more"), "{text}");
    let wide = SelectInput {
        leaves: 65,
        ..input(&["fifo", "sjf"])
    };
    assert!(refused(&wide).contains("2 to 64"));
}

/// Whole simulations, job by job: with one leaf the union of needs is the heuristic's own.
#[test]
fn one_leaf_simulates_as_the_plain_heuristic_job_by_job() {
    for task in [
        "Pleach/GavelMulti-v1",
        "Pleach/HeliosTenants-v1",
        "Pleach/PhillyShare-v1",
    ] {
        let env = env_of(task, Some(80), Some(1.5)).unwrap();
        let workload = Source::open(&env).unwrap().workload(&env, Seed(5)).unwrap();
        let meta = meta_of(&env, &input(&["fifo", "sjf"]), 0);
        for name in heuristics::names() {
            let mut selector = SelectorPolicy::new(single(&meta, name).unwrap());
            let mut plain: Box<dyn Policy> = heuristics::by_name(name).unwrap();
            let own = simulate(&workload, &env.sim, &mut selector).unwrap();
            let other = simulate(&workload, &env.sim, &mut plain).unwrap();
            assert_eq!(
                format!("{:?}", own.jobs),
                format!("{:?}", other.jobs),
                "{name} on {task}"
            );
            assert!(!own.jobs.is_empty());
        }
    }
}
