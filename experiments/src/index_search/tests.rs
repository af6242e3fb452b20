//! A small search.

use super::*;
use crate::index_search::lists::Drawn;

fn small() -> IndexSearch {
    IndexSearch {
        kinds: vec!["Pleach/Philly-v0".into()],
        loads: vec![2.0],
        conditions: vec![Condition::Realistic],
        num_jobs: 40,
        generations: 4,
        population: 4,
        lists: 2,
        validate_every: 2,
        validation_lists: 2,
        ..IndexSearch::default()
    }
}

#[test]
fn a_search_gives_the_same_formula_again_and_is_no_worse_than_its_beginning_where_it_looked() {
    let first = pleach_dealing::reference_formula().unwrap();
    let run = || small().run(&first, |_, _| ()).unwrap();
    let found = run();
    assert_eq!(found, run());
    assert_eq!(found.looks.len(), 2);
    assert!(found.validation_loss <= 0.0);
    let best = found.looks.iter().map(|look| look.1).fold(0.0, f64::min);
    assert_eq!(found.validation_loss, best);
    assert!(index_planner(&found.best).is_ok());
}

#[test]
fn each_formula_that_a_search_may_begin_with_can_be_played() {
    for first in [by_hand(), by_hand_of_rest()] {
        assert!(index_planner(&first).is_ok(), "{}", first.origin);
    }
}

#[test]
fn a_kind_that_is_lost_counts_again() {
    // Group 0 gains 0.2 over two lists, group 1 loses 0.1 over two, though one of them is won.
    let losses = [(0, -0.1), (1, -0.1), (0, -0.1), (1, 0.2)];
    let near = |again: f64, wanted: f64| assert!((mean_and_lost(&losses, again) - wanted).abs() < 1e-12);
    near(0.0, -0.025);
    near(1.0, 0.0);
    near(3.0, 0.05);
}

#[test]
fn a_group_is_a_kind_in_a_condition_over_all_loads() {
    let search = IndexSearch {
        kinds: vec!["helios-like".into(), "pollux".into()],
        loads: vec![0.6, 2.0],
        conditions: vec![Condition::Ideal, Condition::Realistic],
        ..small()
    };
    let parts = search.parts();
    let groups: Vec<usize> = parts.iter().map(|part| part.group).collect();
    assert_eq!(groups, [0, 1, 0, 1, 2, 3, 2, 3]);
    assert_eq!((parts[6].kind, parts[6].load), ("pollux", Some(2.0)));
}

#[test]
fn what_is_left_out_weighs_nothing() {
    let first = pleach_dealing::reference_formula().unwrap();
    let search = IndexSearch {
        without: vec!["rest".into(), "speed".into()],
        ..small()
    };
    let found = search.run(&first, |_, _| ()).unwrap();
    assert!(!found.best.weights.contains_key("rest") && !found.best.weights.contains_key("speed"));
}

#[test]
fn a_list_of_ones_own_is_searched_in_its_first_part_and_judged_on_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("week.csv");
    let source = WorkloadSource {
        num_jobs: Some(100),
        ..WorkloadSource::of("philly-like")
    };
    let (workload, _) = source.workload("philly-like", Seed(1)).unwrap();
    workload.write(&path).unwrap();
    let kind = path.display().to_string();
    let kinds = [kind.clone()];
    let files = Drawn::open(&kinds, &WorkloadSource::default(), 20).unwrap();
    let sim = Condition::Realistic.sim();
    let first_s = |what_for, number, load| {
        let drawn = files
            .draw((&kind, load), 20, (what_for, Seed(number)), &sim)
            .unwrap();
        assert_eq!(drawn.workload.jobs.len(), 20);
        drawn.workload.jobs[0].run_time_s
    };
    let places = |times: &[f64]| -> Vec<usize> {
        let at = |time: &f64| {
            workload
                .jobs
                .iter()
                .position(|job| job.run_time_s == *time)
                .unwrap()
        };
        times.iter().map(at).collect()
    };
    let searched: Vec<f64> = (0..40)
        .map(|number| first_s(Split::Train, number, None))
        .collect();
    let validated: Vec<f64> = (0..40)
        .map(|number| first_s(Split::Validation, number, None))
        .collect();
    assert!(places(&searched).into_iter().all(|at| at <= 40));
    assert!(places(&validated).into_iter().all(|at| at == 60));
    let drawn = files
        .draw((&kind, Some(0.7)), 20, (Split::Train, Seed(1)), &sim)
        .unwrap();
    assert!((drawn.workload.offered_load() - 0.7).abs() < 1e-3);
    let short = Drawn::open(&kinds, &WorkloadSource::default(), 21);
    let short = short.unwrap_err().to_string();
    assert!(
        short.contains("1 to 20, for the list has 60 to train on"),
        "{short}"
    );
    let [line] = files.in_words(20).try_into().unwrap();
    assert!(line.contains("in windows of 20: 60 to train on"), "{line}");
    let search = IndexSearch {
        kinds: kinds.to_vec(),
        num_jobs: 20,
        ..small()
    };
    let first = pleach_dealing::reference_formula().unwrap();
    assert!(search.run(&first, |_, _| ()).unwrap().validation_loss <= 0.0);
}

#[test]
fn a_formula_is_judged_on_lists_of_its_own_against_the_strongest_rule_of_each_kind() {
    let search = IndexSearch {
        conditions: vec![Condition::Ideal, Condition::Realistic],
        num_jobs: 20,
        ..small()
    };
    let (best, first) = (pleach_dealing::reference_formula().unwrap(), by_hand());
    let judge = |best: &Formula| search.judge(best, &first, &Watcher::silent()).unwrap();
    let judged = judge(&best);
    let names: Vec<&str> = judged.rows.iter().map(|row| row.part.as_str()).collect();
    assert_eq!(names, ["Pleach/Philly-v0, ideal", "Pleach/Philly-v0, realistic"]);
    assert!(
        judged
            .rows
            .iter()
            .all(|row| row.jct.low.is_some() && !row.best_heuristic.is_empty())
    );
    assert_eq!(judged.rows, judge(&best).rows);
    // What was found is the first: nothing is won.
    let same = judge(&first);
    assert_eq!(same.rows, same.of_start);
    assert!(!same.accepted, "{}", same.verdict);
}
