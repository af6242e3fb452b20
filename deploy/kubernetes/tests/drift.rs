//! The controller's watch for drift: shown in status and metrics, kept through restarts, and the fallback where it is asked for.

use std::path::Path;

use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod};
use pleach_daemon::config::OnDrift;
use pleach_daemon::replay::Replay;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};
use pleach_scheduler::tree::{Tree, Visits};

/// The reference tree of four leaves, judged where all leaves are met alike.
fn sealed(path: &Path) {
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    let tree = Tree::load(reference.as_ref()).unwrap();
    let mut visits = Visits::none(tree.num_leaves());
    (0..1000).for_each(|_| visits.add(&[0, 1, 2, 3]));
    tree.with_visits(visits).unwrap().save(path).unwrap();
}

/// A cluster, a watched tree, and a controller in shadow mode, to which one pod more comes before each round.
struct Shop {
    folder: tempfile::TempDir,
    fake: Fake,
    settings: Settings,
    num_pods: u32,
}

impl Shop {
    async fn open(on_drift: OnDrift) -> Shop {
        let folder = tempfile::tempdir().unwrap();
        sealed(&folder.path().join("tree.json"));
        let mut world = World::default();
        for name in ["n1", "n2"] {
            world.add_node(node(name, 8));
        }
        let mut settings = Settings {
            state_dir: folder.path().join("state"),
            request_limit_s: 20.0,
            namespaces: vec!["*".into()],
            ..Settings::default()
        };
        settings.rounds.on_drift = on_drift;
        settings.rounds.drift_window = 100;
        // Pods of one size in an empty cluster are nothing that leaves are met alike by.
        settings.rounds.drift_limit = 0.001;
        Shop {
            folder,
            fake: Fake::start(world).await,
            settings,
            num_pods: 0,
        }
    }

    fn controller(&self) -> Controller {
        let policy = self.folder.path().join("tree.json");
        let cluster = self.fake.cluster(&self.settings);
        Kubernetes::driver(self.settings.clone(), cluster, policy.to_str().unwrap(), true).unwrap()
    }

    async fn round(&mut self, controller: &mut Controller) -> Vec<String> {
        self.num_pods += 1;
        let name = format!("p{}", self.num_pods);
        self.fake.world.lock().unwrap().add_pod(pod(&name, 1));
        controller.round(NOW_S).await
    }

    /// Rounds until the window was full for the first time; notes of all of them.
    async fn until_full(&mut self, controller: &mut Controller) -> Vec<String> {
        let mut notes = Vec::new();
        for _ in 0..200 {
            notes.extend(self.round(controller).await);
            if controller.status().drift_psi.is_some() {
                return notes;
            }
        }
        panic!(
            "200 rounds are too few for 100 decisions: {:?}",
            controller.status()
        );
    }
}

fn num_drifts(texts: &[String]) -> usize {
    texts.iter().filter(|text| text.starts_with("drift: ")).count()
}

#[tokio::test]
async fn drift_is_told_once_and_stands_in_status_and_metrics() {
    let mut shop = Shop::open(OnDrift::Warn).await;
    let mut controller = shop.controller();
    let text = controller.metrics_text();
    let gauge = || {
        let text = text.lock().unwrap();
        let line = text.lines().find(|line| line.starts_with("pleach_drift_psi "));
        line.unwrap().to_owned()
    };
    let notes = shop.round(&mut controller).await;
    assert_eq!(
        (num_drifts(&notes), gauge().as_str()),
        (0, "pleach_drift_psi NaN")
    );
    let notes = shop.until_full(&mut controller).await;
    assert_eq!(num_drifts(&notes), 1, "{notes:?}");
    let psi = controller.status().drift_psi.unwrap();
    assert_eq!(gauge(), format!("pleach_drift_psi {psi}"));
    assert_eq!(num_drifts(&controller.status().warnings), 1);
    // News are no error of the round, and it is still the tree that decides.
    assert_eq!(
        (controller.status().num_failed, controller.status().num_fallbacks),
        (0, 0)
    );
    let notes = shop.round(&mut controller).await;
    assert_eq!(num_drifts(&notes), 0, "{notes:?}");
    let status = pleach_daemon::state::read_status(&shop.settings.state_dir).unwrap();
    assert!(status.drift_psi.is_some() && num_drifts(&status.warnings) == 1);
}

#[tokio::test]
async fn where_it_is_asked_for_the_fallback_decides_through_restarts_until_the_policy_is_read_again() {
    let mut shop = Shop::open(OnDrift::Fallback).await;
    let mut controller = shop.controller();
    shop.until_full(&mut controller).await;
    assert_eq!(controller.status().num_fallbacks, 0, "that round was the tree's");
    drop(controller);
    let mut controller = shop.controller();
    assert_eq!(num_drifts(&controller.status().warnings), 1);
    let notes = shop.round(&mut controller).await;
    assert_eq!(controller.status().num_fallbacks, 1);
    assert!(
        notes.iter().any(|note| note.contains("answered: drift: ")),
        "{notes:?}"
    );
    let log = Replay::open(&shop.settings.state_dir.join("decisions.jsonl")).unwrap();
    let last = log.map(Result::unwrap).last().unwrap();
    assert!(
        last.fallback
            .unwrap()
            .contains("the fallback decides until the policy is read again")
    );
    controller.reload().unwrap();
    assert_eq!(controller.status().drift_psi, None);
    shop.round(&mut controller).await;
    assert_eq!(controller.status().num_fallbacks, 1, "the tree decides again");
    drop(controller);
    // What was forgotten stays so.
    assert_eq!(num_drifts(&shop.controller().status().warnings), 0);
}

#[tokio::test]
async fn a_tree_that_steps_aside_says_so_and_a_refused_reload_stands_in_the_status() {
    let mut shop = Shop::open(OnDrift::Warn).await;
    let path = shop.folder.path().join("tree.json");
    let tree = Tree::load(&path)
        .unwrap()
        .with_fallback(Some("sjf".into()))
        .unwrap();
    tree.with_gpu_types_max(Some(1)).unwrap().save(&path).unwrap();
    let mut other = node("n3", 8);
    other["metadata"]["labels"]["nvidia.com/gpu.product"] = "V100-SXM2-32GB".into();
    shop.fake.world.lock().unwrap().add_node(other);
    let mut controller = shop.controller();
    let notes = shop.round(&mut controller).await;
    let why = "sjf decides: the cluster has 2 GPU types, and ";
    assert!(notes.iter().any(|note| note.contains(why)), "{notes:?}");
    let status = controller.status();
    assert!(
        status.warnings.iter().any(|text| text.contains(why)),
        "{status:?}"
    );
    assert!(status.aside.as_ref().unwrap().starts_with(why));
    assert_eq!((status.num_failed, status.num_fallbacks), (0, 1));
    assert_eq!(status.num_starts_by_fallback, status.num_starts);
    std::fs::write(&path, "{").unwrap();
    controller.reload().unwrap_err();
    let warnings = &controller.status().warnings;
    assert!(
        warnings
            .iter()
            .any(|text| text.starts_with("the last reload was refused: ")),
        "{warnings:?}"
    );
}
