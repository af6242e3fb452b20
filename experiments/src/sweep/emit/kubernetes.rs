//! An Indexed Job of Kubernetes, as YAML whose every scalar is written as in JSON.
//!
//! # Source
//! Job v1 of the API `batch` and pod v1; `backoffLimitPerIndex` and `podFailurePolicy` are stable from Kubernetes 1.33 and
//! 1.31 on, and there by default from 1.29 and 1.26.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::call::Call;
use super::words::{check, shell};
use crate::error::{EXIT_CONFIG, EXIT_FAILED, Error};

/// Name of the container and of its volume.
const CONTAINER: &str = "unit";
const VOLUME: &str = "sweep";
/// Where a container sees the volume.
pub const MOUNT: &str = "/sweep";
/// Length of a name in Kubernetes, at most.
const LABEL_MAX: usize = 63;

/// Where the manifest and the results are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A PersistentVolumeClaim that several nodes may write to.
    Claim(String),
    /// A folder of the node; for a cluster of one node.
    HostPath(String),
}

/// What only Kubernetes asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesConfig {
    /// Image with the program.
    pub image: String,
    /// Where the manifest and the results are.
    pub volume: Volume,
    /// Memory of a unit, as Kubernetes writes it.
    pub memory: Option<String>,
}

fn is_label(word: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=LABEL_MAX).contains(&word.len())
        && word.chars().all(is_inner)
        && !word.starts_with('-')
        && !word.ends_with('-')
}

impl KubernetesConfig {
    fn check(&self) -> Result<(), Error> {
        check("image", &self.image)?;
        Error::refuse_if(
            self.image.contains(' '),
            "image",
            &self.image,
            "the name of an image",
            "As registry.example/pleach:0.1.0.",
        )?;
        match &self.volume {
            Volume::HostPath(path) => {
                check("host-path", path)?;
                Error::refuse_if(
                    !path.starts_with('/') || path.split('/').any(|part| part == ".."),
                    "host-path",
                    path,
                    "a path from / on, without `..`",
                    "As /data/sweep.",
                )?;
            }
            // Names of claims may have dots between labels.
            Volume::Claim(name) if name.len() > 253 || !name.split('.').all(is_label) => {
                let hint = "`kubectl get pvc` lists them.";
                return Err(Error::config(
                    "claim",
                    name,
                    "the name of a PersistentVolumeClaim",
                    hint,
                ));
            }
            Volume::Claim(_) => {}
        }
        if let Some(memory) = &self.memory {
            let digits = memory.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let unit = &memory[digits.len()..];
            let is_unit = ["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"].contains(&unit);
            Error::refuse_if(
                !is_unit || !digits.parse::<u64>().is_ok_and(|number| number > 0),
                "memory",
                memory,
                "a number with Ki, Mi, Gi, Ti, k, M, G, T or nothing behind it",
                "As 2Gi.",
            )?;
        }
        Ok(())
    }
}

/// Kubernetes replaces `$(NAME)` in the words of a container; two signs stand for one.
fn word(text: &str) -> String {
    text.replace('$', "$$")
}

fn pod(call: &Call, config: &KubernetesConfig) -> Value {
    let words = ["sweep", "unit", "--manifest", &call.manifest, "--out", &call.out].map(word);
    let mut requests = json!({"cpu": call.num_cpus.to_string()});
    let mut resources = json!({});
    if let Some(memory) = &config.memory {
        requests["memory"] = json!(memory);
        resources["limits"] = json!({"memory": memory});
    }
    resources["requests"] = requests;
    let volume = match &config.volume {
        Volume::Claim(name) => json!({"name": VOLUME, "persistentVolumeClaim": {"claimName": name}}),
        Volume::HostPath(path) => json!({"name": VOLUME, "hostPath": {"path": path, "type": "Directory"}}),
    };
    json!({
        "automountServiceAccountToken": false,
        "restartPolicy": "Never",
        "containers": [{
            "name": CONTAINER,
            "image": config.image,
            "command": [word(&call.program)],
            "args": words,
            "env": [{"name": "RAYON_NUM_THREADS", "value": call.num_cpus.to_string()}],
            "resources": resources,
            "securityContext": {"allowPrivilegeEscalation": false},
            "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT}],
        }],
        "volumes": [volume],
    })
}

fn job(call: &Call, config: &KubernetesConfig) -> Value {
    let labels = json!({"app.kubernetes.io/name": "pleach-sweep", "app.kubernetes.io/instance": call.name()});
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": call.name(), "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": call.num_units,
            "parallelism": (call.num_parallel as usize).min(call.num_units),
            "backoffLimitPerIndex": call.num_retries,
            "podFailurePolicy": {"rules": [
                {"action": "FailIndex", "onExitCodes":
                    {"containerName": CONTAINER, "operator": "In", "values": [EXIT_FAILED, EXIT_CONFIG]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": {"metadata": {"labels": labels}, "spec": pod(call, config)},
        },
    })
}

/// The Job. `manifest` and `out` of the call are where the container sees them.
///
/// # Errors
/// [`Error::Problem`] where a setting cannot be used.
pub fn kubernetes(call: &Call, config: &KubernetesConfig) -> Result<String, Error> {
    call.check()?;
    config.check()?;
    let mut text = format!(
        "\
# Sweep {label}: {num} units as an Indexed Job (Kubernetes 1.29 or later). Written by `pleach sweep emit kubernetes`.
#
# To run it, with the manifest in the volume, where the container sees it as the argument behind --manifest:
#   kubectl apply -f {file}
#   kubectl get job {name} -o jsonpath='{{.status.completedIndexes}} {{.status.failedIndexes}}'
# Afterwards, where the volume is mounted:
#   pleach sweep gather --manifest MANIFEST --out RESULTS
# To run it again: `kubectl delete job {name}` and apply. Each pod takes its index from
# JOB_COMPLETION_INDEX, and a unit that is done ends at once.
#
# Exit codes of a unit, and what the Job does:
#   0          done; the result is in units/K/result.json
#   75         worth another try: a new pod, at most {retries} times (backoffLimitPerIndex)
#   above 128  killed by a signal: likewise; a pod whose node is drained or lost does not count
#   2          its configuration or an input cannot be used: the index has failed at once, the others go on
#   1          failed, see the pod's log and units/K/error.json: likewise
",
        label = call.label,
        num = call.num_units,
        file = shell(&call.file),
        name = call.name(),
        retries = call.num_retries,
    );
    lines(&job(call, config), 0, &mut text);
    Ok(text)
}

/// Whether a value stands on the line of its key.
fn is_short(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

/// `value` in lines, each `indent` in. YAML takes every scalar of JSON as it is.
fn lines(value: &Value, indent: usize, text: &mut String) {
    let space = " ".repeat(indent);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if is_short(value) {
                    let _ = writeln!(text, "{space}{key}: {value}");
                } else {
                    let _ = writeln!(text, "{space}{key}:");
                    lines(value, indent + 2, text);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                lines(item, indent + 2, &mut inner);
                let _ = write!(text, "{space}- {}", inner.trim_start_matches(' '));
            }
        }
        scalar => {
            let _ = writeln!(text, "{space}{scalar}");
        }
    }
}

#[cfg(test)]
mod tests;
