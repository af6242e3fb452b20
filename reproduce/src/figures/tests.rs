//! Every benchmark runs, is described, and shows what it found.

use pleach_experiments::progress::Watcher;

use super::*;
use pleach_tests::assert_well_formed;

#[test]
fn ids_are_unique_and_found_in_any_case() {
    let mut ids: Vec<&str> = benchmarks().map(|benchmark| benchmark.id).collect();
    let num = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), num);
    for id in ids {
        assert_eq!(find(&id.to_uppercase()).unwrap().id, id);
    }
    assert!(find("nothing").unwrap_err().to_string().contains("lists them"));
}

#[test]
fn every_benchmark_runs_small_and_shows_its_figures() {
    let effort = Effort {
        seed: 0,
        num_seeds: None,
        smoke: true,
        data: None,
        watcher: Watcher::nobody(),
    };
    let mut done = Vec::new();
    for benchmark in benchmarks() {
        let reproduction = (benchmark.run)(&effort).unwrap();
        assert!(!reproduction.figures.is_empty(), "{} shows nothing", benchmark.id);
        for figure in &reproduction.figures {
            assert!(figure.ours.is_finite(), "{}: {figure:?}", benchmark.id);
        }
        assert!(reproduction.text(benchmark).contains(benchmark.id));
        done.push((benchmark, reproduction));
    }
    assert_well_formed(&Reproduction::html(&done, "pleach reproduce all"));
}
