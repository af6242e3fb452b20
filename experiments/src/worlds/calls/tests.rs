//! Lists of calls, in small.

use super::*;
use crate::progress::Watcher;
use crate::worlds::{Compared, Comparing, Searching, compare, search};

fn small() -> CallsSettings {
    CallsSettings {
        num_requests: 300,
        lists: 3,
        nodes: 4,
        load: 0.3,
        late: "shed".into(),
        ..CallsSettings::default()
    }
}

fn played(settings: CallsSettings, policies: &[&str]) -> Result<Compared, Error> {
    let asked = Comparing {
        policies: policies.iter().map(|name| (*name).to_string()).collect(),
        seed: 1,
        pictured: true,
        ..Comparing::default()
    };
    compare(&CallsWorld::new(settings)?, &asked, &Watcher::silent())
}

/// At many times the load fewer are in time, and a hit costs more. Policies are held against the strongest.
#[test]
fn a_page_shows_hits_and_cost_over_the_load_and_what_was_held_over_time() {
    let settings = CallsSettings {
        loads: vec![1.0, 8.0],
        ..small()
    };
    let found = played(settings, &["fastest", "esg"]).unwrap();
    let of = |at: usize, key: &str| found.at[at].results.policies().nth(1).unwrap().1.metrics[key];
    assert!(of(0, "hits_pct") > of(1, "hits_pct") && of(0, "usd_per_1000_hits") < of(1, "usd_per_1000_hits"));
    for at in &found.at {
        let gains = at
            .results
            .policies()
            .filter_map(|(_, summary)| summary.gain_vs_reference.as_ref());
        assert!(gains.map(|versus| versus.gain.mean).all(|mean| mean <= 0.0));
    }
    let (table, _) = found.over_loads().unwrap();
    assert_eq!((table.header.len(), table.rows.len()), (3, 2));
    let busy = &found.at[1].plots[0].marks[1].points;
    assert!(busy.iter().all(|(_, share)| (0.0..=100.0 + 1e-9).contains(share)));
    assert!(
        busy.iter().any(|(_, share)| *share > 50.0),
        "at eight times the load"
    );
    let html = found.report("Dispatchers").html();
    pleach_tests::assert_well_formed(&html);
    for title in ["cold starts a second over time", "requests that wait over time"] {
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
    let text = "arrival_s,function,run_s,cold_s,slices\n0,f,1,1,7\n10,f,1,1,7\n1000,f,1,1,7\n";
    std::fs::write(&path, text).unwrap();
    let described = CallsDescription::of(&read(&path, Seed(0)).unwrap());
    assert_eq!((described.num_calls, described.num_functions), (3, 1));
    assert_eq!(described.by_minute.len(), 17);
    assert!((described.busy - 0.003).abs() < 1e-12);
    // The first, and that after 990 s; after an hour the first alone.
    let after = described.after_pct.map(|(_, pct)| pct.round());
    assert_eq!(after, [67.0, 67.0, 33.0]);
    let text = described.table().to_terminal();
    assert!(text.contains("3 calls of 1 functions"), "{text}");

    let mut settings = CallsSettings {
        requests: Some(path),
        lists: 1,
        nodes: 1,
        ..CallsSettings::default()
    };
    let row = |settings: &CallsSettings| {
        let found = played(settings.clone(), &["edf"]).unwrap();
        let (_, summary) = found.at[0].results.policies().next().unwrap();
        summary.metrics.clone()
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    let first = row(&settings);
    near(first["cold_calls_pct"], 200.0 / 3.0);
    near(first["gpu_s"], 5.0 / 3.0);
    near(first["core_s"], 5.0 / 3.0);
    // From 2 to 10 s, and 600 s from 11 on; the last ends when the list does.
    near(first["idle_s"], 608.0 / 3.0);
    // 2 s for a run of 1 s is in time by the default target, and not by 1.5.
    assert_eq!(first["hits_pct"], 100.0);
    settings.slo = Some(1.5);
    near(row(&settings)["hits_pct"], 100.0 / 3.0);
    settings.keep_s = 2000.0;
    near(row(&settings)["cold_calls_pct"], 100.0 / 3.0);
    // Twice as fast the gap is 495 s.
    (settings.keep_s, settings.load) = (600.0, 2.0);
    near(row(&settings)["cold_calls_pct"], 100.0 / 3.0);
    settings.lists = 4;
    let error = played(settings.clone(), &["edf"]).err().unwrap().to_string();
    assert!(error.contains("lists"), "{error}");
    settings.lists = 1;
    let mut world = CallsWorld::new(settings).unwrap();
    let error = search(&mut world, &Searching::default(), (1, None), &Watcher::silent())
        .err()
        .unwrap();
    assert!(error.to_string().contains("none with a search"));
}
