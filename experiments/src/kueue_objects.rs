//! A site's Kueue as a policy: the settings of `kueue` from what `kubectl get
//! clusterqueues,cohorts,localqueues,resourceflavors,workloadpriorityclasses,priorityclasses -A -o yaml` prints, or from manifests.
//!
//! Whether shares are fair is set in no such object but in the manager's `Configuration`: it may stand in the file as one more
//! document. `kube-scheduler.yaml` beside the file is the site's `KubeSchedulerConfiguration`.

use std::path::Path;

use pleach_dealing::kueue::KueueConfig;
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::Problem;
use pleach_site::quantity;
use serde_json::{Map, Value, json};

use crate::kube_scheduler;
use crate::slurm_conf::text;

/// The policy's name.
pub(crate) const NAME: &str = "kueue";
/// What lies beside the objects.
pub(crate) const SCHEDULER: &str = "kube-scheduler.yaml";
const GIB: f64 = 1_073_741_824.0;
/// The keys of a quota's quantities.
const QUANTITIES: [&str; 3] = ["nominalQuota", "borrowingLimit", "lendingLimit"];

/// The policy of a file of such objects; none where a path is no such file.
pub(crate) fn open(path: &Path) -> Option<Result<PolicySpec, Problem>> {
    let ending = path.extension()?.to_str()?;
    let is_one = ["yaml", "yml", "json"].contains(&ending)
        && text(path).is_ok_and(|text| text.contains("ClusterQueue") && text.contains("kueue.x-k8s.io"));
    is_one.then(|| {
        let value = serde_json::to_value(read(path)?).unwrap_or(Value::Null);
        Door::SIMULATOR.planner(NAME, value)
    })
}

/// The settings that a file of objects means.
///
/// # Errors
/// A file that cannot be read, is too long or is none; a value that is none.
pub fn read(path: &Path) -> Result<KueueConfig, Problem> {
    let refused = |reason: String| Problem::data(path, reason);
    let mut config = of(&objects(&text(path)?).map_err(refused)?).map_err(refused)?;
    let beside = path.with_file_name(SCHEDULER);
    if beside.is_file() {
        config.scheduler = kube_scheduler::read(&beside)?;
    }
    config.validate()?;
    Ok(config)
}

/// The objects of all documents, those in lists one by one.
pub(crate) fn objects(text: &str) -> Result<Vec<Value>, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for mut document in documents {
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => all.extend(items),
            _ => all.push(document),
        }
    }
    Ok(all)
}

fn word<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The settings that objects mean; those of other kinds are left out.
fn of(objects: &[Value]) -> Result<KueueConfig, String> {
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| word(object, "/kind") == kind);
    let specs = |kind: &'static str| {
        let spec = |object: &Value| {
            let name = word(object, "/metadata/name");
            let mut spec = match object.get("spec") {
                Some(Value::Object(spec)) => spec.clone(),
                None | Some(Value::Null) => Map::new(),
                _ => return Err(format!("{kind} {name}: its spec is no mapping")),
            };
            // Keys that are there without a value are not there.
            spec.retain(|_, value| !value.is_null());
            spec.insert("name".into(), name.into());
            let mut spec = Value::from(spec);
            in_numbers(&mut spec).map_err(|reason| format!("{kind} {name}: {reason}"))?;
            Ok::<_, String>(spec)
        };
        of_kind(kind).map(spec).collect::<Result<Value, String>>()
    };
    let is_there = |name: &str| of_kind("ClusterQueue").any(|object| word(object, "/metadata/name") == name);
    let local = of_kind("LocalQueue").filter(|object| is_there(word(object, "/spec/clusterQueue")));
    let local = local.map(|object| {
        let of = |path| word(object, path);
        json!({"namespace": of("/metadata/namespace"), "name": of("/metadata/name"), "clusterQueue": of("/spec/clusterQueue")})
    });
    let flavors = of_kind("ResourceFlavor").map(|object| {
        let gpu_type = word(object, "/spec/nodeLabels/nvidia.com~1gpu.product");
        json!({"name": word(object, "/metadata/name"), "gpuType": gpu_type})
    });
    let classes = of_kind("PriorityClass").chain(of_kind("WorkloadPriorityClass"));
    let priorities =
        classes.map(|object| (word(object, "/metadata/name").to_owned(), object["value"].clone()));
    let config = json!({
        "clusterQueues": specs("ClusterQueue")?,
        "cohorts": specs("Cohort")?,
        "localQueues": local.collect::<Value>(),
        "flavors": flavors.collect::<Value>(),
        "priorities": priorities.collect::<Map<_, _>>(),
        "fairSharing": of_kind("Configuration").any(|object| object["fairSharing"].is_object()),
    });
    serde_json::from_value(config).map_err(|error| format!("{error}; allowed is what Kueue 0.17 has"))
}

/// Every quota of a spec, at whatever level.
fn each_quota(
    spec: &mut Value,
    what: &mut impl FnMut(&mut Map<String, Value>) -> Result<(), String>,
) -> Result<(), String> {
    match spec {
        Value::Array(all) => all.iter_mut().try_for_each(|value| each_quota(value, what)),
        Value::Object(quota) if quota.contains_key("nominalQuota") => what(quota),
        Value::Object(all) => all.values_mut().try_for_each(|value| each_quota(value, what)),
        _ => Ok(()),
    }
}

fn number(value: &Value) -> Result<f64, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    quantity::value(&text).ok_or(format!("{text} is no quantity"))
}

/// Quantities as numbers: GPUs, cores, GiB. Weights too.
fn in_numbers(spec: &mut Value) -> Result<(), String> {
    if let Some(weight) = spec.pointer_mut("/fairSharing/weight") {
        *weight = number(weight)?.into();
    }
    each_quota(spec, &mut |quota| {
        let is_memory = quota.get("name").is_some_and(|name| name == "memory");
        let unit = if is_memory { GIB } else { 1.0 };
        for key in QUANTITIES {
            if let Some(value) = quota.get_mut(key).filter(|value| !value.is_null()) {
                *value = (number(value)? / unit).into();
            }
        }
        Ok(())
    })
}

/// Changes of ClusterQueues; the last two where jobs may be stopped.
const CHANGES: [&str; 8] = [
    "strict-fifo",
    "best-effort-fifo",
    "borrowing",
    "no-borrowing",
    "quotas-25-percent-up",
    "quotas-25-percent-down",
    "reclaim-any",
    "no-reclaim",
];

/// Makes a change in a ClusterQueue.
fn change(name: &str, spec: &mut Value) {
    let mut each = |factor: f64, limit: Option<&str>| {
        let _ = each_quota(spec, &mut |quota| {
            let is_gpu = quota
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| name.ends_with("/gpu"));
            match limit {
                Some("") => drop(quota.remove("borrowingLimit")),
                Some(limit) => drop(quota.insert("borrowingLimit".into(), limit.into())),
                None if is_gpu => {
                    let gpus = (number(&quota["nominalQuota"])? * factor).round();
                    quota.insert("nominalQuota".into(), (gpus as u64).into());
                }
                None => {}
            }
            Ok(())
        });
    };
    match name {
        "strict-fifo" => spec["queueingStrategy"] = "StrictFIFO".into(),
        "best-effort-fifo" => spec["queueingStrategy"] = "BestEffortFIFO".into(),
        "borrowing" => each(1.0, Some("")),
        "no-borrowing" => each(1.0, Some("0")),
        "quotas-25-percent-up" => each(1.25, None),
        "quotas-25-percent-down" => each(0.75, None),
        "reclaim-any" => spec["preemption"]["reclaimWithinCohort"] = "Any".into(),
        _ => spec["preemption"]["reclaimWithinCohort"] = "Never".into(),
    }
}

/// What a site could set otherwise: a name, the objects that change, and all objects with them.
pub(crate) fn changes(objects: &[Value], preempts: bool) -> Vec<(String, Vec<Value>, Vec<Value>)> {
    let Ok(own) = of(objects) else { return Vec::new() };
    let num = CHANGES.len() - if preempts { 0 } else { 2 };
    let names = CHANGES[..num].iter();
    let changed = names.filter_map(|name| {
        let mut all = objects.to_vec();
        let has_cohort = |object: &Value| {
            ["/spec/cohortName", "/spec/cohort"]
                .iter()
                .any(|path| object.pointer(path).is_some())
        };
        // Alone there is nothing to borrow or to get back.
        let is_open = |object: &Value| has_cohort(object) || !["no-borrowing", "reclaim-any"].contains(name);
        for object in all
            .iter_mut()
            .filter(|object| word(object, "/kind") == "ClusterQueue" && is_open(object))
        {
            change(name, &mut object["spec"]);
        }
        let is_other = of(&all).is_ok_and(|config| config != own);
        let others = all.iter().zip(objects).filter(|(new, old)| new != old);
        let others = others.map(|(new, _)| bare(new)).collect();
        is_other.then(|| ((*name).to_owned(), others, all))
    });
    changed.collect()
}

/// An object without what the API server keeps of it.
fn bare(object: &Value) -> Value {
    let [version, kind, name, spec] =
        ["/apiVersion", "/kind", "/metadata/name", "/spec"].map(|path| object.pointer(path));
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Objects as documents of YAML.
pub(crate) fn yaml(objects: &[Value]) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        write(object, 0, &mut text);
    }
    text
}

fn write(value: &Value, indent: usize, into: &mut String) {
    let mut put = |head: &str, value: &Value| match value {
        Value::Array(_) | Value::Object(_) if *value != json!([]) && *value != json!({}) => {
            into.push_str(&format!("{:indent$}{head}\n", ""));
            write(value, indent + 2, into);
        }
        other => into.push_str(&format!("{:indent$}{head} {other}\n", "")),
    };
    match value {
        Value::Array(all) => all.iter().for_each(|value| put("-", value)),
        Value::Object(all) => all.iter().for_each(|(key, value)| {
            let is_name = key.chars().all(|letter| letter.is_ascii_alphabetic());
            let head = if is_name {
                format!("{key}:")
            } else {
                format!("{}:", Value::from(key.as_str()))
            };
            put(&head, value);
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: kueue.x-k8s.io/v1beta2\n  kind: ClusterQueue\n  metadata: {name: a, uid: x}\n  \
        spec:\n    cohortName: all\n    queueingStrategy: StrictFIFO\n    namespaceSelector: {}\n    fairSharing: {weight: \"2\"}\n    resourceGroups:\n    \
        - coveredResources: [memory, nvidia.com/gpu]\n      flavors:\n      - name: a100\n        resources:\n        \
        - {name: nvidia.com/gpu, nominalQuota: 32, borrowingLimit: \"8\"}\n        - {name: memory, nominalQuota: 2Ti}\n    \
        preemption: {withinClusterQueue: LowerPriority}\n- kind: ResourceFlavor\n  metadata: {name: a100}\n  \
        spec: {nodeLabels: {nvidia.com/gpu.product: A100}}\n- kind: LocalQueue\n  metadata: {name: q, namespace: team}\n  spec: {clusterQueue: a}\n\
        - kind: LocalQueue\n  metadata: {name: q, namespace: old}\n  spec: {clusterQueue: gone}\n\
        - {kind: WorkloadPriorityClass, metadata: {name: high}, value: 100}\n---\n\
        kind: Configuration\nfairSharing:\n  preemptionStrategies: []\n";

    #[test]
    fn objects_mean_what_kueue_makes_of_them() {
        let config = of(&objects(TEXT).unwrap()).unwrap();
        let queue = &config.cluster_queues[0];
        let quotas = &queue.resource_groups[0].flavors[0].resources;
        assert_eq!(
            (quotas[0].nominal_quota, quotas[0].borrowing_limit),
            (32.0, Some(8.0))
        );
        assert_eq!(
            (quotas[1].nominal_quota, queue.fair_sharing.weight),
            (2048.0, 2.0)
        );
        assert!(config.fair_sharing && config.priorities["high"] == 100 && config.local_queues.len() == 1);
        assert_eq!(config.flavors[0].gpu_type, "A100");
        for (from, to, words) in [
            ("2Ti", "2Tx", "2Tx is no quantity"),
            ("StrictFIFO", "Lifo", "unknown variant `Lifo`"),
            ("kind: List", "kind: [", "line"),
            (
                "- {kind: WorkloadPriorityClass",
                "- {kind: ClusterQueue, metadata: b, spec: c}\n- {kind: WorkloadPriorityClass",
                "its spec is no mapping",
            ),
        ] {
            let said = objects(&TEXT.replace(from, to))
                .and_then(|objects| of(&objects))
                .unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn objects_whose_parts_are_no_mappings_are_read_or_refused() {
        for metadata in ["b", "[b]", "7", "null", "{name: [b]}"] {
            let more = format!(
                "- {{kind: LocalQueue, metadata: {metadata}, spec: {{clusterQueue: a}}}}\n- {{kind: WorkloadPriorityClass"
            );
            let text = TEXT.replace("- {kind: WorkloadPriorityClass", &more);
            assert_eq!(
                of(&objects(&text).unwrap()).unwrap().local_queues.len(),
                2,
                "{metadata}"
            );
        }
        for spec in [
            "c",
            "[c]",
            "7",
            "{preemption: c}",
            "{preemption: [c]}",
            "null",
            "{}",
        ] {
            let more = format!(
                "- {{kind: ClusterQueue, metadata: {{name: b}}, spec: {spec}}}\n- {{kind: WorkloadPriorityClass"
            );
            let own = objects(&TEXT.replace("- {kind: WorkloadPriorityClass", &more)).unwrap();
            assert_eq!(of(&own).is_ok(), !changes(&own, true).is_empty(), "{spec}");
        }
    }

    #[test]
    fn changes_are_objects_that_mean_something_else() {
        let own = objects(TEXT).unwrap();
        let found = changes(&own, true);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        let wanted = [
            "best-effort-fifo",
            "borrowing",
            "no-borrowing",
            "quotas-25-percent-up",
            "quotas-25-percent-down",
            "reclaim-any",
        ];
        assert_eq!(names, wanted);
        for (name, changed, all) in &found {
            let read = objects(&yaml(all)).unwrap();
            assert_eq!((&read, changed.len()), (all, 1), "{name}");
        }
        let config = of(&found[3].2).unwrap();
        assert_eq!(
            config.cluster_queues[0].resource_groups[0].flavors[0].resources[0].nominal_quota,
            40.0
        );
    }
}
