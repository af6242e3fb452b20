//! A small search.

use super::*;

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
    let first = pleach_baselines::dealing::reference_formula().unwrap();
    let run = || small().run(&first, |_, _| ()).unwrap();
    let found = run();
    assert_eq!(found, run());
    assert_eq!(found.looks.len(), 2);
    assert!(found.validation_loss <= 0.0);
    let best = found.looks.iter().map(|look| look.1).fold(0.0, f64::min);
    assert_eq!(found.validation_loss, best);
    assert!(index_planner(&found.formula).is_ok());
}

#[test]
fn what_is_left_out_weighs_nothing() {
    let first = pleach_baselines::dealing::reference_formula().unwrap();
    let search = IndexSearch {
        without: vec!["rest".into(), "speed".into()],
        ..small()
    };
    let found = search.run(&first, |_, _| ()).unwrap();
    assert!(!found.formula.weights.contains_key("rest") && !found.formula.weights.contains_key("speed"));
}
