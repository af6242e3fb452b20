//! What holds for every world: each verb on each, in small.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pleach_agents::Learner;
use serde_json::json;

use super::*;
use crate::progress::{Stopped, Watcher};

/// Worlds in small, with a rule that plays each.
fn worlds() -> [(&'static str, Settings, &'static str); 3] {
    let settings = |value: serde_json::Value| value.as_object().cloned().unwrap();
    [
        (
            "requests",
            settings(
                json!({"num_requests": 300, "lists": 3, "replicas": 3, "rate_per_s": 36, "refuse": true}),
            ),
            "least-tokens",
        ),
        (
            "calls",
            settings(json!({"num_requests": 200, "lists": 3, "nodes": 4, "load": 0.3, "late": "shed"})),
            "edf",
        ),
        (
            "service",
            settings(
                json!({"hours": 0.1, "rate_per_s": 80, "lists": 3, "nodes": 2, "gang": 2, "hits_pct": 90}),
            ),
            "reactive:target=0.7",
        ),
    ]
}

fn opened(name: &str, settings: &Settings) -> Box<dyn AnyWorld> {
    open(&[name.to_string()], settings.clone()).unwrap().unwrap().0
}

fn searching() -> Searching {
    Searching {
        loads: vec![1.0],
        simulations: Some(30),
        judge_lists: Some(2),
        tune_lists: Some(1),
        ..Searching::default()
    }
}

fn comparing(policies: &[&str], seed: u64) -> Comparing {
    Comparing {
        policies: policies.iter().map(|name| (*name).to_string()).collect(),
        seed,
        pictured: true,
        ..Comparing::default()
    }
}

#[test]
fn a_comparison_is_paired_repeats_itself_and_is_a_whole_page() {
    let silent = Watcher::silent();
    for (name, settings, rule) in worlds() {
        let world = opened(name, &settings);
        let at = |seed: u64| world.compare(&comparing(&[], seed), &silent).unwrap();
        let (found, other) = (at(1), at(2));
        assert_eq!(json!(found), json!(at(1)), "{name}");
        assert_ne!(json!(found), json!(other), "{name}");
        let results = &found.at[0].results;
        assert_eq!(
            (results.num_pairs(), results.policies().count() > 3),
            (3, true),
            "{name}"
        );
        let reference = results.reference().unwrap();
        for (policy, summary) in results.policies() {
            let gain = summary.gain_vs_reference.as_ref();
            assert_eq!(gain.is_none(), policy == reference, "{name}: {policy}");
        }
        let html = found.report(name).made_by("pleach evaluate", "").html();
        pleach_tests::assert_well_formed(&html);
        assert!(html.contains("with 95 % intervals"), "{name}");
        for (metric, words) in [("moves_pct", "moves_pct"), ("", "")] {
            let asked = Comparing {
                metric: Some(metric.into()),
                ..comparing(&[rule], 1)
            };
            let said = world.compare(&asked, &silent).err().unwrap().to_string();
            assert!(
                said.contains(words) && said.contains("hits_pct"),
                "{name}: {said}"
            );
        }
        let missing = world
            .compare(&comparing(&["nowhere.json"], 1), &silent)
            .err()
            .unwrap()
            .to_string();
        assert!(missing.contains("nowhere.json"), "{missing}");
        let unknown = world
            .compare(&comparing(&["never-heard-of"], 1), &silent)
            .err()
            .unwrap()
            .to_string();
        assert!(
            unknown.contains("never-heard-of") && unknown.contains(rule.split(':').next().unwrap()),
            "{unknown}"
        );
    }
}

/// The file of a tree plays as the tree was judged, ties by the weights of its key among it, and its explanation has the same
/// order.
#[test]
fn a_searched_tree_repeats_itself_plays_from_its_file_and_is_explained() {
    let silent = Watcher::silent();
    for (name, settings, rule) in worlds() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        let search = |state: Option<&Path>| {
            let mut world = opened(name, &settings);
            world.search(&searching(), (5, state), &silent).unwrap()
        };
        // The second begins anew, the third goes on where the first had ended.
        let (found, again, resumed) = (search(Some(&state)), search(None), search(Some(&state)));
        assert_eq!(json!(found.judged), json!(resumed.judged), "{name}");
        assert_eq!(found.tree.to_json(), again.tree.to_json(), "{name}");
        assert_eq!(json!(found.judged), json!(again.judged), "{name}");
        assert!(found.verdict.contains(" over "), "{}", found.verdict);
        let path = folder.path().join(format!("{name}.json"));
        std::fs::write(&path, found.tree.to_json()).unwrap();
        assert!(world_tree(&path).unwrap().is_some());
        assert!(!certified(&path).unwrap().unwrap().verdicts.is_empty(), "{name}");
        // A search begins with it too, but not where it may not read what the tree reads.
        let patching = |without: Vec<String>| {
            let asked = Searching {
                teacher: Some(path.clone()),
                without,
                ..searching()
            };
            opened(name, &settings).search(&asked, (5, None), &silent)
        };
        assert!(patching(Vec::new()).is_ok(), "{name}");
        let read = vec![found.tree.features()[0].to_string()];
        let refused = patching(read).err().unwrap().to_string();
        assert!(refused.contains("without"), "{name}: {refused}");
        let file = path.to_str().unwrap();
        let played = opened(name, &settings)
            .compare(&comparing(&[rule, file], 1), &silent)
            .unwrap();
        assert_eq!(played.at[0].results.policies().count(), 2, "{name}");
        let mut told = opened(name, &settings).explain(&path, 3, 1).unwrap();
        assert!(
            told.rows.len() > 1 && !told.rows[0].why.is_empty(),
            "{name}: {told:?}"
        );
        assert!(
            told.rows.windows(2).all(|pair| pair[0].tier <= pair[1].tier),
            "{name}"
        );
        let last = told.rows.last().unwrap().row.clone();
        told.keep(&last).unwrap();
        assert_eq!(told.rows.len(), 2);
        assert!(told.keep("row of nothing").is_err());
        let said = opened(name, &settings)
            .explain(&path, 1_000_000_000, 1)
            .unwrap_err()
            .to_string();
        assert!(said.contains("1 to "), "{said}");
    }
}

fn training(learner: Learner) -> Training {
    let mut training = Training {
        loads: vec![1.0],
        judge_lists: 2,
        leaves: 8,
        ..Training::default()
    };
    training.train.learner = learner;
    training.train.num_updates = 4;
    training.train.num_steps = 40;
    training.train.network.hidden = 8;
    training.train.network.context = 8;
    training.train.evolution.num_pairs = 2;
    training.train.imitation.num_epochs = 3;
    training
}

/// Stopped after its second update and gone on with, a training ends in the same bytes, and its files play.
#[test]
fn a_training_that_was_stopped_ends_as_one_that_was_not() {
    let bytes = |folder: &Path| {
        ["training.ckpt", "network.ckpt", "tree.json"].map(|name| std::fs::read(folder.join(name)).unwrap())
    };
    for (name, settings, _) in worlds() {
        for learner in [Learner::EVOLUTION, Learner::PPO] {
            let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let world = opened(name, &settings);
            let train = |folder: &Path, watcher: &Watcher, seed: u64| {
                world.train(&settings, (&training(learner), seed), folder, watcher)
            };
            let found = train(whole.path(), &Watcher::silent(), 3).unwrap();
            let asked = AtomicU64::new(0);
            let stopping = Watcher::silent().stopped_by(move |_, _| {
                let is_second = asked.fetch_add(1, Ordering::Relaxed) == 1;
                is_second.then_some(Stopped { signal: 15 })
            });
            let error = train(parts.path(), &stopping, 3).err().unwrap().to_string();
            assert!(error.contains("update 2 of 4"), "{error}");
            let again = train(parts.path(), &Watcher::silent(), 3).unwrap();
            assert!(bytes(whole.path()) == bytes(parts.path()), "{name} {learner:?}");
            assert_eq!(json!(found.judged), json!(again.judged));
            let file = |name: &str| whole.path().join(name).to_str().unwrap().to_string();
            let asked = Comparing {
                policies: vec![file("network.ckpt"), file("tree.json")],
                ..Comparing::default()
            };
            assert!(world.compare(&asked, &Watcher::silent()).is_ok(), "{name}");
            // Another training is not mixed with this one.
            let error = train(whole.path(), &Watcher::silent(), 4)
                .err()
                .unwrap()
                .to_string();
            assert!(error.contains("settings.json"), "{error}");
        }
    }
}

#[test]
fn a_learner_that_copies_episodes_is_refused_with_those_that_do_not() {
    let folder = tempfile::tempdir().unwrap();
    for (name, settings, _) in worlds() {
        let asked = (&training(Learner::COUNTERFACTUAL), 3);
        let world = opened(name, &settings);
        let error = world.train(&settings, asked, folder.path(), &Watcher::silent());
        let error = error.err().unwrap().to_string();
        assert!(
            error.contains("counterfactual: allowed is ppo, evolution, imitation"),
            "{error}"
        );
    }
}

#[test]
fn worlds_are_opened_by_what_a_file_is_and_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let requests = file(
        "requests.csv",
        "arrival_s,prompt_tokens,output_tokens\n0,100,20\n1,200,30\n2,50,5\n",
    );
    let calls = file(
        "calls.csv",
        "arrival_s,function,run_s,cold_s,slices\n0,f,1,1,7\n10,f,1,1,7\n",
    );
    let jobs = file(
        "jobs.csv",
        "job_id,submit_s,num_gpus,runtime_s\na,0,1,600\nb,60,2,600\n",
    );
    let name_of = |names: &[&String]| {
        let names: Vec<String> = names.iter().map(|name| (*name).clone()).collect();
        let found = open(&names, Settings::new()).map_err(|error| error.to_string());
        found.map(|found| found.map(|(world, _)| world.name()))
    };
    assert_eq!(name_of(&[&requests]), Ok(Some("requests")));
    assert_eq!(
        name_of(&[&calls]).map_err(|said| said.contains("lists")),
        Ok(Some("calls"))
    );
    assert_eq!(name_of(&[&jobs]), Ok(None));
    assert_eq!(name_of(&[&"philly-like".to_string()]), Ok(None));
    assert_eq!(name_of(&[&jobs, &requests]), Ok(Some("service")));
    assert_eq!(name_of(&[&"service".to_string(), &jobs]), Ok(Some("service")));
    assert!(
        name_of(&[&requests, &calls])
            .unwrap_err()
            .contains("a list of jobs")
    );
    let replica = of_pairs(&["replica=2".to_string()]).unwrap();
    let said = open(&["requests".to_string()], replica)
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("Did you mean replicas?"), "{said}");
}
