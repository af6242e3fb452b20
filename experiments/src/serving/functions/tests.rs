//! Comparisons and searches of dispatchers, in small.

use super::*;
use crate::progress::Watcher;

fn small() -> FunctionsConfig {
    FunctionsConfig {
        num_requests: 300,
        lists: 3,
        nodes: 4,
        load: 0.3,
        late: "shed".into(),
        ..FunctionsConfig::default()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

#[test]
fn the_defaults_of_flags_are_those_of_the_configuration() {
    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        functions: FunctionsConfig,
    }
    let flags = <Flags as clap::Parser>::parse_from(["functions"]);
    assert_eq!(flags.functions, FunctionsConfig::default());
}

#[test]
fn a_comparison_is_paired_with_its_strongest_and_repeats_itself() {
    let policies = names(&["esg", "edf", "edf"]);
    let found = compare_dispatchers(&small(), &policies, 1).unwrap();
    assert_eq!(found, compare_dispatchers(&small(), &policies, 1).unwrap());
    assert_ne!(found, compare_dispatchers(&small(), &policies, 2).unwrap());
    assert_eq!(found.policies[found.strongest].gain_points, None);
    assert_eq!(found.policies[1].by_list, found.policies[2].by_list);
    assert!(
        found
            .policies
            .iter()
            .all(|row| row.gain_points.is_none_or(|gain| gain <= 0.0))
    );
    assert!(found.table().to_terminal().contains("points over"));
    for (change, expected) in [
        (
            FunctionsConfig {
                late: "never".into(),
                ..small()
            },
            "serve, expire, shed",
        ),
        (
            FunctionsConfig {
                sharing: "all".into(),
                ..small()
            },
            "mps, mig",
        ),
        (
            FunctionsConfig {
                surface: "flatter".into(),
                ..small()
            },
            "assumed, flat, infless",
        ),
    ] {
        let error = compare_dispatchers(&change, &policies, 1)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_searched_tree_plays_from_its_file_as_it_was_judged() {
    let mut settings = DispatchSearch {
        judge_lists: 3,
        ..DispatchSearch::default()
    };
    settings.search.simulations = 60;
    settings.search.rungs = vec![2, 4];
    settings.search.survivors = vec![3];
    let found = search_dispatcher(&small(), &settings, 5, &Watcher::nobody()).unwrap();
    let again = search_dispatcher(&small(), &settings, 5, &Watcher::nobody()).unwrap();
    assert_eq!(
        (found.tree.to_json(), &found.judged),
        (again.tree.to_json(), &again.judged)
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dispatcher.json");
    std::fs::write(&path, found.tree.to_json()).unwrap();
    let setup = small().setup(1.0).unwrap();
    let file = names(&[path.to_str().unwrap()]);
    let played = setup.play_all(&file, &lists(5, "judge", 3)).unwrap();
    let hits: Vec<f64> = played[0]
        .iter()
        .map(|outcome| 100.0 * outcome.hit_share())
        .collect();
    assert_eq!(
        hits, found.judged.policies[2].by_list,
        "ties are settled by the file's weights too"
    );
    assert!(found.verdict().contains("points of hits"));
}
