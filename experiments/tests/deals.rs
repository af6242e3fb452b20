//! Deals in small: plays, steps, searches and trainings.

use std::path::Path;

use pleach_agents::{Learner, TrainConfig};
use pleach_experiments::Watcher;
use pleach_experiments::worlds::deals::{Deals, DealsSettings, DealsWorld, deal_environment};
use pleach_experiments::worlds::{
    Comparing, Draw, Player, Searching, Training, Turn, Verb, World, compare, explain, search, train,
};
use pleach_network::NetworkConfig;

fn small(estimates: &str) -> DealsSettings {
    DealsSettings {
        num_jobs: 40,
        lists: 2,
        estimates: estimates.into(),
        ..DealsSettings::default()
    }
}

/// The average JCT of a rule on the list of an episode, s.
fn played(world: &DealsWorld, seed: u64, name: &str) -> f64 {
    let draw = Draw {
        verb: Verb::Train,
        seed,
        stream: "episode",
        number: 0,
        load: 1.0,
        num: 1,
    };
    let list = world.draw(draw).unwrap().swap_remove(0);
    let metrics = world.play(&list, Turn::default(), Player::Rule(name)).unwrap();
    metrics.avg_jct_s
}

/// Plays an episode by the expert's scores: the return, h, and the average JCT, s.
fn stepped(env: &mut Deals, seed: u64) -> (f64, f64) {
    env.reset(seed).unwrap();
    let mut total = 0.0;
    loop {
        let scores = env.expert_scores().unwrap();
        let step = env.step(&scores).unwrap();
        total += step.reward;
        if step.is_last {
            let figures = env.take_figures().unwrap();
            assert!(env.take_figures().is_none() && env.step(&scores).is_err());
            return (
                total,
                figures.iter().find(|(key, _)| *key == "avg_jct_s").unwrap().1,
            );
        }
    }
}

#[test]
fn a_dealers_scores_in_steps_play_as_the_dealer_does() {
    for estimates in ["known", "guessed"] {
        let world = DealsWorld::new(small(estimates)).unwrap();
        let mut env = Deals::new(small(estimates)).unwrap();
        let mut jcts_s = Vec::new();
        for seed in [1, 2] {
            let (total_h, jct_s) = stepped(&mut env, seed);
            assert_eq!((total_h, jct_s), stepped(&mut env, seed));
            assert!((total_h + 40.0 * jct_s / 3600.0).abs() < 1e-6 * total_h.abs());
            // Rules of a deal are those of the reference formula.
            assert_eq!(jct_s, played(&world, seed, "index"), "{estimates}");
            jcts_s.push(jct_s);
        }
        assert_ne!(jcts_s[0], jcts_s[1]);
        let las = DealsSettings {
            expert: "las-deal".into(),
            ..small(estimates)
        };
        let mut other = Deals::new(las).unwrap();
        assert_ne!(stepped(&mut other, 1).1, jcts_s[0]);
    }
}

#[test]
fn rows_beyond_the_most_are_those_of_waiting_jobs() {
    let settings = DealsSettings {
        max_rows: 24,
        load: 5.0,
        ..small("known")
    };
    let mut env = Deals::new(settings).unwrap();
    let (total_h, jct_s) = stepped(&mut env, 1);
    assert!(total_h < 0.0 && jct_s > 0.0);
    env.reset(1).unwrap();
    for (scores, words) in [(vec![0.0; 23], "24 numbers"), (vec![f64::NAN; 24], "NaN")] {
        let refused = env.step(&scores).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn trees_are_searched_play_from_their_files_and_are_explained_and_networks_are_trained() {
    let silent = Watcher::silent();
    let asked = Searching {
        simulations: Some(120),
        tune_lists: Some(1),
        judge_lists: Some(2),
        ..Searching::default()
    };
    let mut world = DealsWorld::new(small("known")).unwrap();
    let found = search(&mut world, &asked, (5, None), &silent).unwrap();
    assert!(found.verdict.contains("avg JCT"), "{}", found.verdict);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.json");
    std::fs::write(&path, found.tree.to_json()).unwrap();
    let training = Training {
        judge_lists: 2,
        train: TrainConfig {
            learner: Learner::EVOLUTION,
            num_updates: 2,
            network: NetworkConfig {
                hidden: 8,
                context: 8,
                ..NetworkConfig::default()
            },
            ..Training::default().train
        },
        ..Training::default()
    };
    let out = folder.path().join("run");
    let trained = train(&world, serde_json::Value::Null, (&training, 3), &out, &silent).unwrap();
    assert!(trained.verdict.contains("imitated"), "{}", trained.verdict);
    let formula = folder.path().join("formula.json");
    std::fs::write(&formula, include_str!("../../scheduler/dealing/src/index.json")).unwrap();
    let network = out.join("network.ckpt");
    let names = [
        path.as_path(),
        &network,
        &formula,
        Path::new("las-deal"),
        Path::new("srtf"),
    ];
    let comparing = Comparing {
        policies: names.map(|path| path.display().to_string()).to_vec(),
        seed: 1,
        ..Comparing::default()
    };
    let compared = compare(&world, &comparing, &silent).unwrap();
    assert_eq!(compared.at[0].results.policies().count(), 5);
    let told = explain(&world, &path, 9, 1).unwrap().in_words();
    assert!(
        told.starts_with("decision 9") && told.contains("first: "),
        "{told}"
    );
    let ppo = Training {
        train: TrainConfig {
            learner: Learner::PPO,
            ..training.train
        },
        ..training
    };
    let refused = train(
        &world,
        serde_json::Value::Null,
        (&ppo, 3),
        &folder.path().join("ppo"),
        &silent,
    );
    assert!(refused.err().unwrap().to_string().contains("evolution"));
}

#[test]
fn lists_of_files_and_names_that_are_none_are_refused() {
    let of = |jobs: &str| {
        let settings = DealsSettings {
            jobs: jobs.into(),
            ..small("known")
        };
        DealsWorld::new(settings).err().unwrap().to_string()
    };
    assert!(of("never-heard-of").contains("gavel-multi"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.csv");
    std::fs::write(&path, "x").unwrap();
    assert!(of(path.to_str().unwrap()).contains("pleach index"));
    let refused = deal_environment("Pleach/Deal-v0", "{}")
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("Pleach/Deals-v0"), "{refused}");
    let refused = deal_environment("Pleach/Deals-v0", r#"{"expert": "fifo"}"#);
    assert!(refused.err().unwrap().to_string().contains("las-deal"));
}
