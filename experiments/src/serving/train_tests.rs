//! Networks that route, in small.

use std::sync::atomic::{AtomicU64, Ordering};

use pleach_agents::Learner;
use pleach_env::{Batch, VectorEnv as _};
use pleach_serving::llm::{Lists, Routing};
use pleach_serving::{Environment as _, Reward};

use super::vector::Routings;
use super::*;
use crate::progress::{Stopped, Watcher};

fn small() -> ServingConfig {
    ServingConfig {
        num_requests: 300,
        replicas: 3,
        rate_per_s: 36.0,
        refuse: true,
        ..ServingConfig::default()
    }
}

fn settings(learner: Learner) -> RoutingTraining {
    let mut settings = RoutingTraining {
        rates: vec![1.0, 1.2],
        judge_lists: 2,
        leaves: 8,
        ..RoutingTraining::default()
    };
    settings.train.learner = learner;
    settings.train.num_updates = 4;
    settings.train.num_steps = 200;
    settings.train.network.hidden = 8;
    settings.train.network.context = 8;
    settings.train.evolution.num_pairs = 2;
    settings.train.imitation.num_epochs = 3;
    settings
}

fn bytes(folder: &Path) -> Vec<Vec<u8>> {
    ["training.ckpt", "network.ckpt", "tree.json"]
        .map(|name| std::fs::read(folder.join(name)).unwrap())
        .into()
}

/// Stopped after its second update and gone on with, a training ends in the same bytes.
#[test]
fn a_training_that_was_stopped_ends_as_one_that_was_not() {
    for learner in [Learner::EVOLUTION, Learner::PPO] {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let train =
            |folder: &Path, watcher: &Watcher| train_router(&small(), &settings(learner), 3, folder, watcher);
        let found = train(whole.path(), &Watcher::nobody()).unwrap();
        let asked = AtomicU64::new(0);
        let stopping = Watcher::nobody().stopped_by(move |_, _| {
            let is_second = asked.fetch_add(1, Ordering::Relaxed) == 1;
            is_second.then_some(Stopped { signal: 15 })
        });
        let error = train(parts.path(), &stopping).unwrap_err().to_string();
        assert!(error.contains("update 2 of 4"), "{error}");
        let again = train(parts.path(), &Watcher::nobody()).unwrap();
        assert_eq!(bytes(whole.path()), bytes(parts.path()), "{learner:?}");
        assert_eq!((found.judged, found.learned), (again.judged, again.learned));
        // Both files route, and what was trained is what plays.
        let file = |name: &str| whole.path().join(name).to_str().unwrap().to_string();
        let routers = [file("network.ckpt"), file("tree.json")];
        let table = &compare(&small(), &PoolsConfig::default(), &routers, &[1.0], 1)
            .unwrap()
            .0[0]
            .1;
        assert!(table.routers.iter().all(|row| row.hits_pct > 20.0), "{table:?}");
        // Another training is not mixed with this one.
        let other = train_router(&small(), &settings(learner), 4, whole.path(), &Watcher::nobody());
        let error = other.unwrap_err().to_string();
        assert!(error.contains("settings.json"), "{error}");
    }
}

/// A clone of the best rule by hand decides nearly as well: points of hits.
#[test]
fn a_network_learns_to_do_what_the_tree_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(Learner::EVOLUTION);
    settings.train.num_updates = 0;
    settings.train.network.hidden = 16;
    settings.train.network.context = 16;
    settings.train.imitation.num_epochs = 40;
    settings.train.imitation.minibatch_size = 64;
    settings.judge_lists = 6;
    let config = ServingConfig {
        num_requests: 1_500,
        ..small()
    };
    let found = train_router(&config, &settings, 3, folder.path(), &Watcher::nobody()).unwrap();
    assert!(found.learned.mean > -6.0, "{}", found.verdict());
}

/// Environments side by side are each the one that steps alone, and the next episode begins in the step that ends one.
#[test]
fn environments_side_by_side_are_those_that_step_alone() {
    let env = || {
        Routing::new(
            small().fleet().unwrap(),
            Lists::Drawn(small().generator()),
            Reward::default(),
        )
        .unwrap()
    };
    let mut all = Routings::new(vec![env(), env()]);
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
