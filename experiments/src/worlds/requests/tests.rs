//! Routers, pools, lists and environments of requests, in small.

use super::*;
use crate::progress::Watcher;
use crate::worlds::vector::Together;
use crate::worlds::{Comparing, compare, serving_environment, serving_ids};
use crate::worlds::{describe_environment, environment_settings};
use pleach_env::{Batch, VectorEnv as _};

fn small() -> RequestsSettings {
    RequestsSettings {
        num_requests: Some(600),
        lists: Some(3),
        replicas: 4,
        rate_per_s: 48.0,
        refuse: true,
        ..RequestsSettings::default()
    }
}

fn played(settings: RequestsSettings, routers: &[&str]) -> Result<crate::worlds::Compared, Error> {
    let asked = Comparing {
        policies: routers.iter().map(|name| (*name).to_string()).collect(),
        seed: 1,
        pictured: true,
        ..Comparing::default()
    };
    compare(&RequestsWorld::new(settings)?, &asked, &Watcher::silent())
}

/// Each but those of autoscaling, which have tests of their own, opens with its own settings, is described in a line, and refuses what it has not.
#[test]
fn registered_environments_open_and_refuse_by_name() {
    for id in serving_ids().filter(|id| !["Pleach/Mixed-v2", "Pleach/LlmServe-v1"].contains(id)) {
        assert!(describe_environment(id).unwrap().len() < 130, "{id}");
        let mut env = serving_environment(id, "{}").unwrap();
        env.reset(1).unwrap();
        let rows = env.rows();
        assert!(rows.mask.contains(&true) && rows.rows.len() == rows.mask.len() * env.view().num_row);
        let said = |changes: &str| serving_environment(id, changes).err().unwrap().to_string();
        assert!(said("{\"loaf\": 3}").contains("loaf"), "{id}");
        assert!(
            said("{\"reward\": {\"hit\": 1e9}}").contains("reward.hit"),
            "{id}"
        );
        assert!(environment_settings(id).unwrap().contains(&"reward".to_string()));
    }
    let said = |id: &str, changes: &str| serving_environment(id, changes).err().unwrap().to_string();
    let other = said("Pleach/Mixed-v1", "{}");
    assert!(other.contains("did you mean Pleach/Mixed-v2"), "{other}");
    let most = said("Pleach/EsgSaturated-v0", "{\"load_max\": 0.5}");
    assert!(most.contains("ascending"), "{most}");
}

#[test]
fn pools_stand_beside_the_fleet_with_hits_by_either_target() {
    let split = |pools: &[&str]| RequestsSettings {
        pools: pools.iter().map(|split| (*split).to_string()).collect(),
        ..small()
    };
    let routers = ["least-tokens", "round-robin"];
    let (whole, found) = (
        played(split(&[]), &routers),
        played(split(&["1:3", "2:2"]), &routers),
    );
    let (whole, found) = (whole.unwrap().at.remove(0), found.unwrap().at.remove(0));
    let names: Vec<&str> = found.results.policies().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "least-tokens",
            "round-robin",
            "least-tokens, 1:3",
            "round-robin, 1:3",
            "least-tokens, 2:2",
            "round-robin, 2:2"
        ]
    );
    for router in routers {
        let hits = |results: &Results| results.values(router, "hits_pct");
        assert_eq!(hits(&found.results), hits(&whole.results));
    }
    for (name, summary) in found.results.policies() {
        let of = |key: &str| summary.metrics[key];
        assert!(
            of("hits_pct") <= of("ttft_hits_pct").min(of("tpot_hits_pct")) + 1e-9,
            "{name}"
        );
    }
    let text = found.table.to_terminal();
    assert!(
        text.contains("by TTFT %") && text.contains("best pools: "),
        "{text}"
    );
    assert!(!whole.table.to_terminal().contains("pools"));
    for wrong in ["4", "0:4", "3:2", "x:1"] {
        let error = played(split(&[wrong]), &routers).err().unwrap().to_string();
        assert!(
            error.contains("P + D = 4") && error.contains("Try 2:2"),
            "{error}"
        );
    }
}

/// `least-tokens` is a rule of what gateways know, `round-robin` of nothing.
#[test]
fn what_is_taken_away_from_the_gateways_changes_the_rules_that_read_it() {
    let settings = RequestsSettings {
        gateways: 4,
        scrape_s: 2.0,
        refuse: false,
        ..small()
    };
    let asked = Comparing {
        policies: ["round-robin", "least-tokens"].map(str::to_string).to_vec(),
        ablated: true,
        seed: 1,
        ..Comparing::default()
    };
    let found = compare(&RequestsWorld::new(settings).unwrap(), &asked, &Watcher::silent()).unwrap();
    let (_, _, table) = &found.at[0].beside.tables[0];
    let words: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        words,
        [
            "nothing: as it is",
            "one gateway",
            "gateways look at each request"
        ]
    );
    assert_ne!(table.rows[0][2], table.rows[2][2], "{:?}", table.rows);
    let none = RequestsSettings {
        gateways: 1,
        scrape_s: 0.0,
        refuse: false,
        ..small()
    };
    let refused = compare(&RequestsWorld::new(none).unwrap(), &asked, &Watcher::silent());
    assert!(refused.err().unwrap().to_string().contains("ablate = requests"));
}

#[test]
fn at_twice_the_load_fewer_are_in_time_and_a_page_shows_both() {
    let settings = RequestsSettings {
        loads: vec![1.0, 2.0],
        ..small()
    };
    let found = played(settings, &["round-robin", "least-ttft"]).unwrap();
    let (table, plot) = found.over_loads().unwrap();
    let hits = |column: usize| -> f64 { table.rows[0][column].parse().unwrap() };
    assert!(hits(1) > hits(2) && plot.is_some(), "more requests, fewer hits");
    let html = found.report("Routers").html();
    pleach_tests::assert_well_formed(&html);
    assert_eq!(
        html.matches("<figcaption>Distribution of the time to the first token")
            .count(),
        2
    );
    assert!(played(small(), &["round-robin"]).unwrap().over_loads().is_none());
}

#[test]
fn a_file_is_cut_into_consecutive_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    let drawn = RequestsWorld::new(small()).unwrap().first(1).unwrap();
    write(&path, &drawn).unwrap();
    let settings = RequestsSettings {
        requests: Some(path),
        ..small()
    };
    let world = RequestsWorld::new(settings).unwrap();
    let draw = |verb: Verb, stream: &'static str, num: usize| {
        let (seed, number, load) = (1, 0, 1.0);
        world.draw(Draw {
            verb,
            seed,
            stream,
            number,
            load,
            num,
        })
    };
    let prompts = |lists: &[Requests]| -> Vec<u32> {
        let rows = lists.iter().flat_map(|list| list.rows());
        rows.map(|row| row.prompt_tokens).collect()
    };
    let parts = draw(Verb::Compare, "compare", 3).unwrap();
    assert_eq!(prompts(&parts), prompts(std::slice::from_ref(&drawn)));
    assert!(
        parts
            .iter()
            .all(|part| part.rows().len() == 200 && part.rows()[0].arrival_s == 0.0)
    );
    // What tunes, races, chooses and judges plays no request in common.
    let streams = ["tune", "race", "choice", "judge"].map(|stream| draw(Verb::Search, stream, 2).unwrap());
    assert_eq!(prompts(&streams.concat()), prompts(&[drawn]));
    let error = draw(Verb::Compare, "compare", 601).unwrap_err().to_string();
    assert!(
        error.contains("lists = 601: allowed is at most the list's 600 requests"),
        "{error}"
    );
}

#[test]
fn trees_of_jobs_are_refused() {
    let of_jobs = concat!(env!("CARGO_MANIFEST_DIR"), "/../checkpoints/reference");
    let entries = std::fs::read_dir(of_jobs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let trees = entries.map(|path| {
        if path.is_dir() {
            path.join("tree.json")
        } else {
            path
        }
    });
    let trees = trees.filter(|path| path.is_file() && path.to_string_lossy().contains("tree"));
    let tree = trees.min().expect("the repository has trees");
    let error = played(small(), &[tree.to_str().unwrap()])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("tree"), "{error}");
}

/// Environments side by side are each the one that steps alone, and the next episode begins in the step that ends one.
#[test]
fn environments_side_by_side_are_those_that_step_alone() {
    let small = RequestsSettings {
        num_requests: Some(300),
        replicas: 3,
        ..small()
    };
    let env = || {
        let (fleet, lists) = (small.fleet().unwrap(), Lists::Drawn(small.generator()));
        Routing::new(fleet, lists, Reward::default()).unwrap()
    };
    let mut all = Together::new(vec![Box::new(env()), Box::new(env())]);
    let mut batch = Batch::new(all.spaces(), 2);
    all.reset(&[7, 8], &mut batch).unwrap();
    let mut alone = env();
    alone.reset(Seed(8).child("episode", 0).0).unwrap();
    let (c, width) = (all.spaces().num_candidates, all.spaces().num_features);
    for request in 0..300 {
        let action = request % c;
        assert_eq!(batch.candidates[c * width..], *alone.rows().rows);
        let step = alone.step(action).unwrap();
        all.step(&[0, action], &mut batch).unwrap();
        let stepped = (f64::from(batch.reward[1]), batch.dt_s[1], batch.terminated[1]);
        assert_eq!(stepped, (step.reward, step.dt_s, step.is_last));
    }
    assert!(batch.terminated[1], "300 requests");
    alone.reset(Seed(8).child("episode", 1).0).unwrap();
    assert_eq!(batch.candidates[c * width..], *alone.rows().rows);
    assert!(all.step(&[0, c], &mut batch).is_err());
}
