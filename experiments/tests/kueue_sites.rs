//! A site's own Kueue: its objects as they are read, what of recorded schedules they explain, and what `pleach run` could change.

use std::path::Path;

use pleach_env::SimConfig;
use pleach_experiments::door::DOOR;
use pleach_experiments::kueue_objects;
use pleach_experiments::twin::Trust;
use pleach_scheduler::{ActionKind, Capabilities};
use serde_json::{Value, json};

use crate::recorded_sites::{list, part, twins};

/// The objects of a recorded run, in a list and a document of the manager's.
fn write_objects(path: &Path, settings: &Value) {
    let mut items = settings["cluster_queues"].as_array().unwrap().clone();
    items.extend(settings.get("cohort").cloned());
    items.push(json!({"kind": "ResourceFlavor", "metadata": {"name": "gpus"}, "spec": {}}));
    for (namespace, queue) in settings["local_queues"].as_object().into_iter().flatten() {
        items.push(json!({"kind": "LocalQueue", "metadata": {"name": "q", "namespace": namespace}, "spec": {"clusterQueue": queue}}));
    }
    for (name, value) in settings["priority_classes"].as_object().into_iter().flatten() {
        items.push(json!({"kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}));
    }
    let manager = json!({"kind": "Configuration", "fairSharing": settings["kueue"]["fairSharing"]});
    std::fs::write(
        path,
        format!("{}\n---\n{manager}\n", json!({"kind": "List", "items": items})),
    )
    .unwrap();
}

#[test]
fn the_twin_of_a_recorded_kueue_explains_more_of_its_starts_than_easy() {
    let Some(data) = pleach_tests::data("kubernetes-schedules") else {
        return;
    };
    let mut worse = Vec::new();
    for name in ["kueue_best_effort", "kueue_cohort", "kueue_fair", "kueue_strict"] {
        let (place, folder) = (data.join(name), tempfile::tempdir().unwrap());
        let text = std::fs::read_to_string(place.join("settings.json")).unwrap();
        let own = folder.path().join("kueue.yaml");
        write_objects(&own, &serde_json::from_str(&text).unwrap());
        let config = kueue_objects::read(&own).unwrap();
        let quotas = config.cluster_queues.iter().map(|queue| {
            let all = &queue.resource_groups[0].flavors[0].resources;
            all.iter()
                .find(|of| of.name == "nvidia.com/gpu")
                .unwrap()
                .nominal_quota
        });
        let quotas: Vec<f64> = quotas.collect();
        let wanted = match name {
            "kueue_cohort" => vec![32.0; 2],
            "kueue_fair" => vec![8.0; 3],
            _ => vec![64.0],
        };
        assert_eq!(
            (quotas, config.fair_sharing),
            (wanted, name == "kueue_fair"),
            "{name}"
        );
        let list = list(&place, "objects.json.gz", "nodes.json");
        let sim = SimConfig {
            capabilities: Capabilities::DEFAULT.with(ActionKind::Preempt),
            ..SimConfig::default()
        };
        let spec = DOOR.open_one(&own.display().to_string()).unwrap();
        let found = twins(name, &list, &sim, &spec, &["easy"]);
        if part(&found[0]) < part(&found[1]) || found[1].trust == Trust::Close {
            worse.push(name);
        }
    }
    assert!(worse.is_empty(), "{worse:?}");
}
