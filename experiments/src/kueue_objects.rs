//! A site's Kueue as a policy: the settings of `kueue` from what `kubectl get
//! clusterqueues,cohorts,localqueues,resourceflavors,workloadpriorityclasses,priorityclasses -A -o yaml` prints, or from manifests.
//!
//! Whether shares are fair is set in no such object but in the manager's `Configuration`: it may stand in the file as one more
//! document, or as its ConfigMap. `kube-scheduler.yaml` beside the file is the site's `KubeSchedulerConfiguration`.

use std::path::Path;

use pleach_dealing::kueue::{KueueConfig, ResourceQuota};
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::Problem;
use pleach_site::quantity;
use serde_json::{Map, Value, json};

use crate::kube_scheduler;
use crate::site_policy::text;

/// The policy's name.
pub(crate) const NAME: &str = "kueue";
/// What lies beside the objects.
pub(crate) const SCHEDULER: &str = "kube-scheduler.yaml";
const GIB: f64 = 1_073_741_824.0;
/// The keys of a quota's quantities.
const QUANTITIES: [&str; 3] = ["nominalQuota", "borrowingLimit", "lendingLimit"];

/// Whether a path is a file of such objects.
pub(crate) fn is_one(path: &Path) -> bool {
    let is_yaml = path
        .extension()
        .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|of| ending == *of));
    is_yaml && text(path).is_ok_and(|text| text.contains("ClusterQueue") && text.contains("kueue.x-k8s.io"))
}

pub(crate) fn open(path: &Path) -> Result<PolicySpec, Problem> {
    let value = serde_json::to_value(read(path)?).unwrap_or(Value::Null);
    Door::SIMULATOR.planner(NAME, value)
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
    let mut lists: Map<String, Value> = Map::new();
    let mut priorities = Map::new();
    let mut fair_sharing = false;
    let of_kind = |kind: &str| {
        objects
            .iter()
            .filter(move |object| word(object, "/kind") == kind)
            .collect::<Vec<_>>()
    };
    for (kind, key) in [("ClusterQueue", "clusterQueues"), ("Cohort", "cohorts")] {
        let mut list = Vec::new();
        for object in of_kind(kind) {
            let mut spec = object.get("spec").cloned().unwrap_or_default();
            let name = word(object, "/metadata/name");
            in_numbers(&mut spec).map_err(|reason| format!("{kind} {name}: {reason}"))?;
            let Value::Object(spec) = &mut spec else { continue };
            // Keys that are there without a value are not there.
            spec.retain(|_, value| !value.is_null());
            spec.insert("name".into(), name.into());
            list.push(Value::from(spec.clone()));
        }
        lists.insert(key.into(), list.into());
    }
    let names: Vec<&str> = of_kind("ClusterQueue")
        .iter()
        .map(|object| word(object, "/metadata/name"))
        .collect();
    let local = of_kind("LocalQueue").into_iter().map(|object| {
        let [namespace, name, queue] =
            ["/metadata/namespace", "/metadata/name", "/spec/clusterQueue"].map(|path| word(object, path));
        json!({"namespace": namespace, "name": name, "clusterQueue": queue})
    });
    // Those of a queue that is not there admit nothing.
    let local = local.filter(|queue| names.contains(&word(queue, "/clusterQueue")));
    lists.insert("localQueues".into(), local.collect());
    let flavors = of_kind("ResourceFlavor").into_iter().map(|object| {
        let gpu_type = word(object, "/spec/nodeLabels/nvidia.com~1gpu.product");
        json!({"name": word(object, "/metadata/name"), "gpuType": gpu_type})
    });
    lists.insert("flavors".into(), flavors.collect());
    for object in ["WorkloadPriorityClass", "PriorityClass"]
        .into_iter()
        .flat_map(of_kind)
    {
        let value = object.get("value").filter(|value| value.is_i64()).cloned();
        priorities
            .entry(word(object, "/metadata/name"))
            .or_insert(value.unwrap_or(0.into()));
    }
    for object in objects {
        let text = word(object, "/data/controller_manager_config.yaml");
        let inner = (!text.is_empty())
            .then(|| serde_saphyr::from_str::<Value>(text))
            .transpose();
        let inner = inner.map_err(|error| format!("controller_manager_config.yaml: {error}"))?;
        let fair = inner.as_ref().unwrap_or(object).get("fairSharing");
        let is_configuration = inner.is_some() || word(object, "/kind") == "Configuration";
        fair_sharing |= is_configuration
            && fair.is_some_and(|fair| fair.get("enable") != Some(&false.into()) && !fair.is_null());
    }
    lists.insert("priorities".into(), priorities.into());
    lists.insert("fairSharing".into(), fair_sharing.into());
    serde_json::from_value(lists.into()).map_err(|error| format!("{error}; allowed is what Kueue 0.17 has"))
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

/// Quantities as numbers: GPUs, cores, GiB. Weights too.
fn in_numbers(spec: &mut Value) -> Result<(), String> {
    let number = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        quantity::value(&text).ok_or(format!("{text} is no quantity"))
    };
    if let Some(weight) = spec.pointer_mut("/fairSharing/weight") {
        *weight = number(weight)?.into();
    }
    each_quota(spec, &mut |quota| {
        let unit = if quota.get("name").is_some_and(|name| name == "memory") {
            GIB
        } else {
            1.0
        };
        for key in QUANTITIES {
            if let Some(value) = quota.get_mut(key).filter(|value| !value.is_null()) {
                *value = (number(value)? / unit).into();
            }
        }
        Ok(())
    })
}

/// What a site could set otherwise: a name, the objects that change, and all objects with them.
pub(crate) fn changes(objects: &[Value], preempts: bool) -> Vec<(String, Vec<Value>, Vec<Value>)> {
    let set = |path: [&'static str; 2], to: Value| {
        move |spec: &mut Value| {
            let mut at = &mut *spec;
            for key in path.into_iter().filter(|key| !key.is_empty()) {
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[key];
            }
            *at = to.clone();
        }
    };
    let limit = |key: &'static str, to: Option<&'static str>| {
        move |spec: &mut Value| {
            let _ = each_quota(spec, &mut |quota| {
                match to {
                    Some(to) => drop(quota.insert(key.into(), to.into())),
                    None => drop(quota.remove(key)),
                }
                Ok(())
            });
        }
    };
    let times = |factor: f64| {
        move |spec: &mut Value| {
            let _ = each_quota(spec, &mut |quota| {
                let is_gpu = serde_json::from_value::<ResourceQuota>(json!({"name": quota.get("name")}));
                let own = quota
                    .get("nominalQuota")
                    .map(|own| own.as_str().map_or(own.to_string(), str::to_owned));
                let own = own.and_then(|own| quantity::value(&own));
                if let (Some((0, _)), Some(own)) = (is_gpu.ok().and_then(|of| of.resource()), own) {
                    quota.insert(
                        "nominalQuota".into(),
                        ((own * factor).round() as u64).to_string().into(),
                    );
                }
                Ok(())
            });
        }
    };
    type Edit = Box<dyn Fn(&mut Value)>;
    let mut edits: Vec<(&str, Edit)> = vec![
        (
            "strict-fifo",
            Box::new(set(["queueingStrategy", ""], "StrictFIFO".into())),
        ),
        (
            "best-effort-fifo",
            Box::new(set(["queueingStrategy", ""], "BestEffortFIFO".into())),
        ),
        ("one-cohort", Box::new(set(["cohortName", ""], "site".into()))),
        ("borrowing", Box::new(limit("borrowingLimit", None))),
        ("no-borrowing", Box::new(limit("borrowingLimit", Some("0")))),
        ("quotas-25-percent-up", Box::new(times(1.25))),
        ("quotas-25-percent-down", Box::new(times(0.75))),
    ];
    if preempts {
        for (name, policy) in [("reclaim-any", "Any"), ("no-reclaim", "Never")] {
            edits.push((
                name,
                Box::new(set(["preemption", "reclaimWithinCohort"], policy.into())),
            ));
        }
    }
    let own = of(objects);
    let changed = edits.into_iter().filter_map(|(name, edit)| {
        let mut all = objects.to_vec();
        let queues = all
            .iter_mut()
            .filter(|object| word(object, "/kind") == "ClusterQueue");
        for object in queues {
            let is_alone = object
                .pointer("/spec/cohortName")
                .or(object.pointer("/spec/cohort"))
                .is_none();
            let is_possible = !(is_alone && ["no-borrowing", "reclaim-any"].contains(&name))
                && (is_alone || name != "one-cohort");
            if let Some(spec) = object.get_mut("spec").filter(|_| is_possible) {
                edit(spec);
            }
        }
        let is_other = of(&all).is_ok_and(|config| Ok(config) != own);
        let others = all
            .iter()
            .zip(objects)
            .filter(|(new, old)| new != old)
            .map(|(new, _)| bare(new))
            .collect();
        is_other.then(|| (name.to_owned(), others, all))
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
    let margin = " ".repeat(indent);
    let mut put = |head: &str, value: &Value| {
        let is_plain = |text: &str| {
            let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
            text.starts_with(|first: char| first.is_ascii_uppercase()) && text.chars().all(is_safe)
        };
        match value {
            Value::Array(all) if !all.is_empty() => {
                into.push_str(&format!("{margin}{head}\n"));
                write(value, indent + usize::from(head == "-") * 2, into);
            }
            Value::Object(all) if !all.is_empty() => {
                into.push_str(&format!("{margin}{head}\n"));
                write(value, indent + 2, into);
            }
            Value::String(text) if is_plain(text) => into.push_str(&format!("{margin}{head} {text}\n")),
            other => into.push_str(&format!("{margin}{head} {other}\n")),
        }
    };
    match value {
        Value::Array(all) => all.iter().for_each(|value| put("-", value)),
        Value::Object(all) => all
            .iter()
            .for_each(|(key, value)| put(&format!("{}:", key_of(key)), value)),
        other => into.push_str(&format!("{margin}{other}\n")),
    }
}

/// A key, in quotation marks unless it is a name.
fn key_of(key: &str) -> String {
    match key.chars().all(|letter| letter.is_ascii_alphanumeric())
        && key.starts_with(|first: char| first.is_ascii_alphabetic())
    {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
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
        kind: ConfigMap\ndata:\n  controller_manager_config.yaml: |\n    kind: Configuration\n    fairSharing:\n      preemptionStrategies: []\n";

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
        ] {
            let said = objects(&TEXT.replace(from, to))
                .and_then(|objects| of(&objects))
                .unwrap_err();
            assert!(said.contains(words), "{said}");
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
