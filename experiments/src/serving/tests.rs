//! Comparisons and searches of routers, in small.

use super::*;
use crate::progress::Watcher;

fn small() -> ServingConfig {
    ServingConfig {
        num_requests: 600,
        lists: 3,
        replicas: 4,
        rate_per_s: 48.0,
        refuse: true,
        ..ServingConfig::default()
    }
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

/// A flag that is not given and a key that is not there are the same.
#[test]
fn the_defaults_of_flags_are_those_of_the_configuration() {
    #[derive(clap::Parser)]
    struct Flags<Config: clap::Args> {
        #[command(flatten)]
        config: Config,
    }
    fn same<Config: clap::Args + Default + PartialEq + std::fmt::Debug>() {
        let flags = <Flags<Config> as clap::Parser>::parse_from(["serve"]);
        assert_eq!(flags.config, Config::default());
    }
    same::<ServingConfig>();
    same::<DeploymentConfig>();
    same::<PoolsConfig>();
    same::<functions::FunctionsConfig>();
    same::<MixedConfig>();
}

/// Each but that of autoscaling, which has tests of its own, opens with its own settings, is described in a line, and refuses what it has not.
#[test]
fn registered_environments_open_and_refuse_by_name() {
    for id in serving_ids().filter(|id| *id != "Pleach/Mixed-v0") {
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
    let said = serving_environment("Pleach/Mixed-v1", "{}")
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("did you mean Pleach/Mixed-v0"), "{said}");
    let said = serving_environment("Pleach/EsgSaturated-v0", "{\"load_max\": 0.5}")
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("ascending"), "{said}");
}

#[test]
fn a_comparison_is_paired_with_its_first_router_and_repeats_itself() {
    let routers = names(&["round-robin", "least-ttft", "round-robin"]);
    let at = |seed: u64| {
        compare(&small(), &PoolsConfig::default(), &routers, &[1.0], seed)
            .unwrap()
            .0
            .remove(0)
            .1
    };
    let found = at(1);
    assert_eq!(found, at(1));
    assert_eq!((found.num_lists, found.routers[0].gain_points), (3, None));
    assert_eq!(found.routers[2].gain_points, Some(0.0));
    assert_ne!(found, at(2));
    let text = found.table().to_terminal();
    assert!(
        text.contains("points over round-robin") && text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
}

#[test]
fn pools_stand_beside_the_fleet_with_hits_by_either_target() {
    let routers = names(&["least-tokens", "round-robin"]);
    let split = |pools: &[&str]| PoolsConfig {
        pools: names(pools),
        ..PoolsConfig::default()
    };
    let at = |pools: &PoolsConfig| compare(&small(), pools, &routers, &[1.0], 1);
    let whole = at(&split(&[])).unwrap().0.remove(0).1;
    let found = at(&split(&["1:3", "2:2"])).unwrap().0.remove(0).1;
    let told: Vec<&str> = found.routers.iter().map(|row| row.router.as_str()).collect();
    assert_eq!(
        told,
        [
            "least-tokens",
            "round-robin",
            "least-tokens, 1:3",
            "round-robin, 1:3",
            "least-tokens, 2:2",
            "round-robin, 2:2"
        ]
    );
    for (row, alone) in found.routers.iter().zip(&whole.routers) {
        assert_eq!((row.hits_pct, alone.hits_by_target_pct), (alone.hits_pct, None));
    }
    for row in &found.routers {
        let [ttft, tpot] = row.hits_by_target_pct.unwrap();
        assert!(row.hits_pct <= ttft.min(tpot) + 1e-9, "{}", row.router);
    }
    let text = found.table().to_terminal();
    assert!(
        text.contains("by TTFT %") && text.contains("best pools: "),
        "{text}"
    );
    assert!(!whole.table().to_terminal().contains("pools"));
    for wrong in ["4", "0:4", "3:2", "x:1"] {
        let error = at(&split(&[wrong])).unwrap_err().to_string();
        assert!(
            error.contains("P + D = 4") && error.contains("Try 2:2"),
            "{error}"
        );
    }
}

#[test]
fn a_page_shows_hits_over_rates_and_a_distribution_for_each() {
    let routers = names(&["round-robin", "least-ttft"]);
    let rates = compare(&small(), &PoolsConfig::default(), &routers, &[1.0, 2.0], 1).unwrap();
    let table = rates.table().unwrap();
    let hits = |column: usize| -> f64 { table.rows[0][column].parse().unwrap() };
    assert!(hits(1) > hits(2), "more requests, fewer hits");
    let (_, first) = &rates.0[0];
    let ttft_s = &first.routers[0].ttft_s;
    assert!(
        ttft_s
            .windows(2)
            .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1)
    );
    let html = rates.html("pleach serve evaluate");
    pleach_tests::assert_well_formed(&html);
    assert_eq!(
        html.matches("Distribution of the time to the first token")
            .count()
            % 2,
        0,
        "at both widths"
    );
    assert!(
        compare(&small(), &PoolsConfig::default(), &routers, &[1.0], 1)
            .unwrap()
            .table()
            .is_none()
    );
}

#[test]
fn a_file_is_cut_into_consecutive_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    let drawn = small().draw(Seed(1), 1, 1.0).unwrap();
    write(&path, &drawn[0]).unwrap();
    let config = ServingConfig {
        requests: Some(path),
        ..small()
    };
    let parts = config.draw(Seed(1), 3, 1.0).unwrap();
    let prompts = |lists: &[Requests]| -> Vec<u32> {
        lists
            .iter()
            .flat_map(|list| list.rows().iter().map(|row| row.prompt_tokens))
            .collect()
    };
    assert_eq!(prompts(&parts), prompts(&drawn));
    assert!(
        parts
            .iter()
            .all(|part| part.rows().len() == 200 && part.rows()[0].arrival_s == 0.0)
    );
    // Who learns on the first part and is judged on the last plays no request in common with it.
    let [first, last] = [(0.0, 0.8), (0.8, 1.0)].map(|part| config.draw_of(part, Seed(1), 2, 1.0).unwrap());
    assert_eq!(prompts(&[first, last].concat()), prompts(&drawn));
    let error = config.draw(Seed(1), 601, 1.0).unwrap_err().to_string();
    assert!(
        error.contains("lists = 601: allowed is at most the list's 600 requests"),
        "{error}"
    );
}

#[test]
fn a_searched_tree_is_judged_on_lists_of_its_own_and_plays_from_its_file() {
    let mut settings = RoutingSearch {
        rates: vec![1.0, 1.2],
        judge_lists: 3,
        ..RoutingSearch::default()
    };
    settings.search.simulations = 60;
    settings.search.rungs = vec![2, 4];
    settings.search.survivors = vec![3];
    let found = search_router(&small(), &settings, 5, &Watcher::nobody()).unwrap();
    let again = search_router(&small(), &settings, 5, &Watcher::nobody()).unwrap();
    assert_eq!(
        (found.tree.to_json(), &found.judged),
        (again.tree.to_json(), &again.judged)
    );
    assert_eq!(found.judged.len(), 2);
    let gains: Vec<f64> = found
        .judged
        .iter()
        .map(|(_, table)| table.routers[1].gain_points.unwrap())
        .collect();
    assert!((found.gain.mean - (gains[0] + gains[1]) / 2.0).abs() < 1e-9);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.json");
    std::fs::write(&path, found.tree.to_json()).unwrap();
    assert_eq!(tree(&path).unwrap(), found.tree);
    let by_file = compare(
        &small(),
        &PoolsConfig::default(),
        &names(&[path.to_str().unwrap()]),
        &[1.0],
        1,
    )
    .unwrap();
    assert!(by_file.0[0].1.routers[0].hits_pct > 0.0);
}

#[test]
fn routers_that_are_not_there_and_trees_of_jobs_are_refused() {
    for (text, expected) in [("fastest", "least-ttft"), ("nowhere.json", "nowhere.json")] {
        let error = compare(&small(), &PoolsConfig::default(), &names(&[text]), &[1.0], 1)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let of_jobs = concat!(env!("CARGO_MANIFEST_DIR"), "/../checkpoints/reference");
    let tree_of_jobs = std::fs::read_dir(of_jobs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let tree_of_jobs = tree_of_jobs.map(|path| {
        if path.is_dir() {
            path.join("tree.json")
        } else {
            path
        }
    });
    let tree_of_jobs = tree_of_jobs
        .filter(|path| path.is_file() && path.to_string_lossy().contains("tree"))
        .min();
    let tree_of_jobs = tree_of_jobs.expect("the repository has trees");
    let error = compare(
        &small(),
        &PoolsConfig::default(),
        &names(&[tree_of_jobs.to_str().unwrap()]),
        &[1.0],
        1,
    )
    .unwrap_err()
    .to_string();
    assert!(error.contains("tree"), "{error}");
}
