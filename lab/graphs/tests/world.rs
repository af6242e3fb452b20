//! The world with its verbs, in small.

use pleach_experiments::Watcher;
use pleach_experiments::worlds::{At, Comparing, Searching, compare, search};
use pleach_graphs::{GraphSettings, GraphWorld};

fn small(arrivals: &str) -> GraphWorld {
    GraphWorld::new(GraphSettings {
        num_graphs: 20,
        arrivals: arrivals.into(),
        lists: 4,
        jobs: Some(10),
        executors: 20,
        ..GraphSettings::default()
    })
    .unwrap()
}

#[test]
fn rules_are_compared_on_the_same_lists_whatever_the_number_of_threads() {
    let asked = Comparing {
        seed: 3,
        ..Comparing::default()
    };
    for arrivals in ["batch", "stream", "mixed"] {
        let first = compare(&small(arrivals), &asked, &Watcher::silent()).unwrap();
        let again = compare(&small(arrivals), &asked, &Watcher::silent()).unwrap();
        let json = |at: &At| serde_json::to_string(&at.results).unwrap();
        assert_eq!(json(&first.at[0]), json(&again.at[0]));
        let (name, summary) = first.at[0].results.policies().next().unwrap();
        assert!(name.starts_with("stage-weighted-fair") && summary.metrics["mean_jct_s"] > 2.0);
        assert_eq!(first.at[0].results.policies().count(), 9);
        assert!(
            first.at[0]
                .table
                .notes
                .iter()
                .any(|note| note.contains("20 graphs"))
        );
    }
}

#[test]
fn a_search_finds_a_tree_that_is_no_worse_than_what_it_began_with() {
    let mut world = small("mixed");
    let asked = Searching {
        simulations: Some(60),
        judge_lists: Some(6),
        tune_lists: Some(2),
        ..Searching::default()
    };
    let found = search(&mut world, &asked, (1, None), &Watcher::silent()).unwrap();
    assert!(found.verdict.contains("mean JCT s"), "{}", found.verdict);
    assert_eq!(found.gains.len(), 2);
}

#[test]
fn settings_out_of_range_and_files_that_are_not_there_are_refused() {
    let settings = GraphSettings {
        graphs: Some("nowhere.json".into()),
        ..GraphSettings::default()
    };
    assert!(
        GraphWorld::new(settings)
            .err()
            .unwrap()
            .to_string()
            .contains("nowhere.json")
    );
    let open = pleach_graphs::KIND.open;
    let pairs = |text: &str| pleach_experiments::worlds::of_pairs(&[text.to_string()]).unwrap();
    for (pair, words) in [
        ("executors=0", "1 to 10000"),
        ("shape=spark", "tpch"),
        ("arrivals=batches", "mixed"),
        ("executor=3", "Did you mean executors?"),
    ] {
        let said = open(&pairs(pair)).err().unwrap().to_string();
        assert!(said.contains(words), "{said}");
    }
}
