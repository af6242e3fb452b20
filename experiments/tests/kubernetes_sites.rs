//! A site's own kube-scheduler: what of recorded runs it explains from what `kubectl get` prints, and its settings.

use pleach_env::{SimConfig, workload::estimates::EstimateModel};
use pleach_experiments::door::DOOR;
use pleach_experiments::kube_scheduler;
use pleach_experiments::twin::Trust;
use pleach_scheduler::cluster_spec::SiteScheduler;
use pleach_scheduler::{ActionKind, Capabilities};

use crate::recorded_sites::{list, part, twins};

#[test]
fn a_dump_names_its_scheduler_which_explains_its_starts_better_than_others() {
    let Some(data) = pleach_tests::data("kubernetes-schedules") else {
        return;
    };
    let mut worse = Vec::new();
    for (name, scheduler) in [
        ("default", SiteScheduler::Kubernetes),
        ("default_again", SiteScheduler::Kubernetes),
        ("most_allocated", SiteScheduler::Kubernetes),
        ("priorities", SiteScheduler::Kubernetes),
        ("gangs_barrier", SiteScheduler::Kubernetes),
        ("gangs_barrier_again", SiteScheduler::Kubernetes),
        ("native_gangs", SiteScheduler::KubernetesGangs),
    ] {
        let list = list(&data.join(name), "objects.json.gz", "nodes.json");
        assert_eq!(list.cluster.seen.scheduler, Some(scheduler), "{name}");
        let sim = SimConfig {
            capabilities: Capabilities::DEFAULT.with(ActionKind::Preempt),
            estimates: EstimateModel::UserLimit { default_s: 3600.0 },
            ..SimConfig::default()
        };
        let own = DOOR.open_one(scheduler.policy()).unwrap();
        let found = twins(name, &list, &sim, &own, &["fifo-skip", "easy"]);
        let most = part(&found[1]).max(part(&found[2]));
        if part(&found[0]) < most || found[1..].iter().any(|twin| twin.trust == Trust::Close) {
            worse.push(name);
        }
    }
    assert!(worse.is_empty(), "{worse:?}");
}

#[test]
fn the_settings_of_a_recorded_scheduler_are_those_that_it_ran_with_and_open_as_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kube-scheduler.yaml");
    let classes = r#"{"items": [{"metadata": {"name": "high"}, "value": 1000}]}"#;
    std::fs::write(folder.path().join("priorityclasses.json"), classes).unwrap();
    let Some(data) = pleach_tests::data("kubernetes-schedules") else {
        return;
    };
    for (name, weights) in [("default", [0, 1, 1]), ("most_allocated", [5, 1, 1])] {
        let settings = std::fs::read_to_string(data.join(name).join("settings.json")).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
        // JSON is YAML.
        std::fs::write(&file, settings["scheduler"].to_string()).unwrap();
        let config = kube_scheduler::read(&file).unwrap();
        let scoring = config.scoring;
        assert_eq!([scoring.gpu, scoring.cpu, scoring.memory], weights, "{name}");
        assert_eq!(
            (
                config.priority("high"),
                config.priority("7"),
                config.priority("none")
            ),
            (1000, 7, 0)
        );
    }
    let spec = DOOR.open_one(&file.display().to_string()).unwrap();
    assert_eq!(spec.make_planner().unwrap().name(), "kubernetes");
    let native = folder.path().join("kubernetes-gangs.yaml");
    std::fs::copy(&file, &native).unwrap();
    let spec = DOOR.open_one(&native.display().to_string()).unwrap();
    assert_eq!(spec.make_planner().unwrap().name(), "kubernetes-gangs");
}
