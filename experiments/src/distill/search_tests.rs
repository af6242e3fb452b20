//! Searches from hand rules and given trees.

use super::*;
use crate::door::DOOR;
use crate::evaluate::stats::Ratio;
use crate::evaluate::workload_source::env_of;
use crate::judge::{PartRow, verdict};
use pleach_scheduler::ActionKind;

fn input(simulations: u64) -> SearchInput {
    SearchInput {
        config: SearchConfig {
            simulations,
            rungs: vec![4, 8, 12],
            ..SearchConfig::default()
        },
        accept_lists: 6,
        teacher: None,
        distill: DistillConfig::default(),
        trees: Vec::new(),
        against: vec![PolicySpec::heuristic("sjf").unwrap()],
        deals: false,
    }
}

fn searched(simulations: u64, state: &Path, threads: usize) -> Searched {
    let env = env_of("Pleach/GavelMulti-v1", Some(40), Some(2.0)).unwrap();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| search_tree(&env, &input(simulations), 3, state, &Watcher::silent()).unwrap())
}

#[test]
fn a_search_ends_the_same_at_any_number_of_threads_and_after_a_break() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let whole = searched(900, &file("a"), 1);
    // Broken off where fewer lists were asked for, and gone on with on two threads.
    let first = searched(500, &file("b"), 2);
    assert!(first.report.simulations < whole.report.simulations);
    let second = searched(900, &file("b"), 2);
    assert_eq!(
        (second.tree, second.frontier),
        (whole.tree.clone(), whole.frontier.clone())
    );
    let json = |report: &SearchReport| serde_json::to_string(report).unwrap();
    assert_eq!(json(&second.report), json(&whole.report));
    assert_eq!(
        std::fs::read_to_string(file("a")).unwrap(),
        std::fs::read_to_string(file("b")).unwrap()
    );
    // The report holds what it says.
    let report = &whole.report;
    assert!(report.frontier.is_sorted_by_key(|row| row.leaves) && !report.frontier.is_empty());
    assert_eq!(whole.frontier.len(), report.frontier.len());
    for (row, tree) in report.frontier.iter().zip(&whole.frontier) {
        assert_eq!((row.leaves, row.parts.len()), (tree.num_leaves(), 5));
        assert_eq!(row.key_features, tree.meta().key_weights.len());
    }
    assert_eq!(report.others.len(), 2);
    let accepted = report
        .tree_over_start
        .and_then(|ratio| ratio.high)
        .is_some_and(|high| high < 1.0);
    assert!(accepted || !report.accepted || report.verdict.contains("of the best start"));
    assert!(
        report.markdown().contains("(chosen)") && report.markdown().contains("The tree over sjf: as long ")
    );
}

#[test]
fn a_tree_by_whose_passes_gpus_are_dealt_is_judged_against_the_planners_that_deal() {
    let mut env = env_of("Pleach/PhillyGang-v1", Some(30), Some(2.0)).unwrap();
    env.sim.capabilities.grant(ActionKind::Preempt, true);
    let deals = SearchInput {
        deals: true,
        against: vec![DOOR.open("deal:sjf").unwrap().remove(0)],
        ..input(500)
    };
    let folder = tempfile::tempdir().unwrap();
    let found = search_tree(&env, &deals, 3, &state_file(folder.path()), &Watcher::silent()).unwrap();
    let row = &found.report.frontier[0].parts[0];
    assert!(row.best_heuristic.ends_with("-deal"), "{}", row.best_heuristic);
    assert_eq!(found.tree.fallback(), Some(DEALT_FALLBACK));
    assert_eq!(found.tree.meta().trained_by["deals"], serde_json::json!(true));
    // The same tree is worth the same when it is played by its name.
    let path = folder.path().join("tree.json");
    std::fs::write(&path, found.tree.to_json()).unwrap();
    let spec = DOOR.open(&format!("deal:{}", path.display())).unwrap().remove(0);
    let drawn = (3, "search/acceptance");
    let lists = Lists::draw(&env, &REPORTED, drawn, 6, Rivals::Dealers, &Watcher::silent()).unwrap();
    let rows = lists.rows(&lists.all(&spec).unwrap());
    if found.report.accepted {
        assert_eq!(rows, found.report.frontier[found.report.chosen].parts);
    }
    let plain = DOOR.open(&path.display().to_string()).unwrap().remove(0);
    assert_ne!(lists.rows(&lists.all(&plain).unwrap()), rows);
}

#[test]
fn what_may_be_luck_or_loses_somewhere_is_refused() {
    let ratio = |mean, low, high| Ratio {
        mean,
        low: Some(low),
        high: Some(high),
        num_pairs: 40,
        num_better: 20,
    };
    let row = |jct| PartRow {
        part: "load 0.3".into(),
        best_heuristic: "sjf".into(),
        jct,
        p99: 1.0,
    };
    let good = [row(ratio(0.99, 0.98, 1.0)), row(ratio(1.01, 1.0, 1.02))];
    assert!(verdict(Some(ratio(0.9, 0.8, 0.99)), &good, &good).0);
    assert!(!verdict(Some(ratio(0.95, 0.8, 1.01)), &good, &good).0);
    assert!(!verdict(None, &good, &good).0);
    let bad = [row(ratio(1.28, 1.2, 1.3))];
    // A start that loses somewhere is no refuge.
    let (accepted, words) = verdict(Some(ratio(1.0, 0.9, 1.1)), &good, &bad);
    assert!(
        accepted && words.contains("of the best start load 0.3 is at"),
        "{words}"
    );
    let (accepted, words) = verdict(Some(ratio(0.9, 0.8, 0.99)), &bad, &bad);
    assert!(
        !accepted && words.contains("load 0.3 is at 1.280 [1.200, 1.300] of sjf"),
        "{words}"
    );
}

#[test]
fn a_damaged_state_is_refused_before_anything_is_played_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_file(folder.path());
    std::fs::write(&state, "{\"half\": ").unwrap();
    let env = env_of("Pleach/GavelMulti-v1", Some(40), Some(2.0)).unwrap();
    let refused = search_tree(&env, &input(10), 3, &state, &Watcher::silent()).unwrap_err();
    assert_eq!(refused.exit_code(), crate::error::EXIT_CONFIG);
    let said = refused.to_string();
    assert!(
        said.contains("search-state.json") && said.contains("or remove "),
        "{said}"
    );
}
