//! Comparisons and searches of dispatchers, in small.

use super::*;
use crate::progress::Watcher;
use crate::serving::tests::names;

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

#[test]
fn a_comparison_is_paired_with_its_strongest_and_repeats_itself() {
    let policies = names(&["esg", "edf", "edf"]);
    let at = |seed: u64| {
        compare_dispatchers(&small(), &policies, &[1.0], seed)
            .unwrap()
            .at
            .remove(0)
            .1
    };
    let found = at(1);
    assert_eq!(found, at(1));
    assert_ne!(found, at(2));
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
        let error = compare_dispatchers(&change, &policies, &[1.0], 1)
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

/// At many times the load fewer are in time, and a hit costs more.
#[test]
fn a_page_shows_hits_and_cost_over_the_load_and_what_was_held_over_time() {
    let policies = names(&["esg", "fastest"]);
    let loads = compare_dispatchers(&small(), &policies, &[1.0, 8.0], 1).unwrap();
    let (low, high) = (&loads.at[0].1.policies[0], &loads.at[1].1.policies[0]);
    assert!(low.hits_pct > high.hits_pct && low.usd_per_1000_hits < high.usd_per_1000_hits);
    let table = loads.table().unwrap();
    assert_eq!((table.header.len(), table.rows.len()), (5, 2));
    assert!(
        compare_dispatchers(&small(), &policies, &[1.0], 1)
            .unwrap()
            .table()
            .is_none()
    );
    let (_, slices) = compare::cores_and_slices(&loads.platform);
    let busy = high.timeline.points(|one| one.slice_us as f64 / slices);
    assert!(busy.iter().all(|(_, share)| (0.0..=1.0 + 1e-9).contains(share)));
    assert!(
        busy.iter().any(|(_, share)| *share > 0.5),
        "at eight times the load"
    );
    let html = loads.html("pleach serve functions");
    pleach_tests::assert_well_formed(&html);
    for title in [
        "Cost of 1,000 hits over the load",
        "cold starts a second over time",
        "requests that wait over time",
    ] {
        assert!(html.contains(title), "{title}");
    }
    let folder = tempfile::tempdir().unwrap();
    if let Some(faults) = pleach_tests::browser_faults(folder.path(), &[("dispatchers", &html)]) {
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// Calls of 1 s at 0, 10 and 1,000 s: a container is kept 600 s, so two of three are cold, 1 s each beside the run.
#[test]
fn a_recorded_list_is_described_and_replayed_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.csv");
    std::fs::write(
        &path,
        "arrival_s,function,run_s,cold_s,slices\n0,f,1,1,7\n10,f,1,1,7\n1000,f,1,1,7\n",
    )
    .unwrap();
    let described = CallsDescription::read(&path).unwrap().unwrap();
    assert_eq!((described.num_calls, described.num_functions), (3, 1));
    assert_eq!(described.by_minute.len(), 17);
    assert!((described.busy - 0.003).abs() < 1e-12);
    // The first, and that after 990 s; after an hour the first alone.
    let after = described.after_pct.map(|(_, pct)| pct.round());
    assert_eq!(after, [67.0, 67.0, 33.0]);
    let text = described.table().to_terminal();
    assert!(text.contains("3 calls of 1 functions"), "{text}");
    pleach_tests::assert_well_formed(&described.html("pleach serve describe"));

    let mut config = FunctionsConfig {
        requests: Some(path),
        lists: 1,
        nodes: 1,
        ..FunctionsConfig::default()
    };
    let play = |config: &FunctionsConfig| {
        let mut found = compare_dispatchers(config, &names(&["edf"]), &[1.0], 1).unwrap();
        found.at.remove(0).1.policies.remove(0)
    };
    let row = play(&config);
    let warmth = row.warmth.unwrap();
    assert!((warmth.cold_calls_pct - 200.0 / 3.0).abs() < 1e-9);
    assert!((warmth.gpu_s - 5.0 / 3.0).abs() < 1e-9 && (warmth.core_s - 5.0 / 3.0).abs() < 1e-9);
    // From 2 to 10 s, and 600 s from 11 on; the last ends when the list does.
    assert!((warmth.idle_s - 608.0 / 3.0).abs() < 1e-9);
    // 2 s for a run of 1 s is in time by the default target, and not by 1.5.
    assert_eq!(row.hits_pct, 100.0);
    config.slo = Some(1.5);
    assert!((play(&config).hits_pct - 100.0 / 3.0).abs() < 1e-9);
    config.keep_s = 2000.0;
    assert!((play(&config).warmth.unwrap().cold_calls_pct - 100.0 / 3.0).abs() < 1e-9);
    // Twice as fast the gap is 495 s.
    (config.keep_s, config.load) = (600.0, 2.0);
    assert!((play(&config).warmth.unwrap().cold_calls_pct - 100.0 / 3.0).abs() < 1e-9);
    config.lists = 4;
    let error = config.setup(1.0).unwrap_err().to_string();
    assert!(error.contains("lists"), "{error}");
    let settings = DispatchSearch::default();
    let error = search_dispatcher(
        &FunctionsConfig { lists: 1, ..config },
        &settings,
        1,
        &Watcher::nobody(),
    );
    assert!(error.unwrap_err().to_string().contains("none with a search"));
}
