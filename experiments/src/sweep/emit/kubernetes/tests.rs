//! The Job as the API server reads it: the fields of Job v1 and pod v1 that are used, and no others.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::super::call::tests::hostile;
use super::*;

macro_rules! strict {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct $name { $($field: $type),* }
    )*};
}

strict! {
    Job { api_version: String, kind: String, metadata: Meta, spec: JobSpec }
    Meta { name: Option<String>, labels: BTreeMap<String, String> }
    JobSpec {
        completion_mode: String, completions: i32, parallelism: i32, backoff_limit_per_index: i32,
        pod_failure_policy: Policy, template: Template,
    }
    Policy { rules: Vec<Rule> }
    Rule { action: String, on_exit_codes: Option<ExitCodes>, on_pod_conditions: Option<Vec<Condition>> }
    ExitCodes { container_name: String, operator: String, values: Vec<i32> }
    Condition { r#type: String, status: String }
    Template { metadata: Meta, spec: Pod }
    Pod {
        automount_service_account_token: bool, restart_policy: String, containers: Vec<Container>, volumes: Vec<PodVolume>,
    }
    Container {
        name: String, image: String, command: Vec<String>, args: Vec<String>, env: Vec<Variable>, resources: Resources,
        security_context: Security, volume_mounts: Vec<Mount>,
    }
    Variable { name: String, value: String }
    Resources { requests: BTreeMap<String, String>, limits: Option<BTreeMap<String, String>> }
    Security { allow_privilege_escalation: bool }
    Mount { name: String, mount_path: String }
    PodVolume { name: String, persistent_volume_claim: Option<Claim>, host_path: Option<HostPath> }
    Claim { claim_name: String }
    HostPath { path: String, r#type: String }
}

fn config() -> KubernetesConfig {
    KubernetesConfig {
        image: "registry.example/pleach:0.1.0".to_string(),
        volume: Volume::Claim("results".to_string()),
        memory: Some("2Gi".to_string()),
    }
}

/// Reads what [`lines`] writes: maps by `key:`, lists by `- `, scalars as in JSON, all by how far they stand in.
fn read(text: &str) -> Value {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| (line.len() - line.trim_start().len(), line.trim_start()))
        .collect();
    let (value, rest) = node(&lines, 0);
    assert!(rest.is_empty(), "{rest:?}");
    value
}

fn node<'b>(lines: &[(usize, &'b str)], indent: usize) -> (Value, Vec<(usize, &'b str)>) {
    let mut rest = lines.to_vec();
    if !rest[0].1.starts_with("- ")
        && rest[0]
            .1
            .split_once(':')
            .is_none_or(|(key, _)| key.starts_with('"'))
    {
        return (serde_json::from_str(rest[0].1).unwrap(), rest.split_off(1));
    }
    let is_list = rest[0].1.starts_with("- ");
    let (mut list, mut map) = (Vec::new(), serde_json::Map::new());
    while let Some(&(at, line)) = rest.first() {
        if at != indent {
            assert!(at < indent, "{line}");
            break;
        }
        if is_list {
            rest[0] = (indent + 2, line.strip_prefix("- ").unwrap());
            let (value, after) = node(&rest, indent + 2);
            list.push(value);
            rest = after;
        } else {
            let (key, value) = line.split_once(':').unwrap();
            let (value, after) = match value.trim() {
                "" => node(&rest[1..], indent + 2),
                scalar => (serde_json::from_str(scalar).unwrap(), rest.split_off(1)),
            };
            assert!(map.insert(key.to_string(), value).is_none(), "{key} twice");
            rest = after;
        }
    }
    (
        if is_list {
            Value::Array(list)
        } else {
            Value::Object(map)
        },
        rest,
    )
}

#[test]
fn the_job_has_the_fields_of_the_api_and_no_others() {
    let text = kubernetes(&hostile(), &config()).unwrap();
    let read = read(&text);
    assert_eq!(
        read,
        job(&hostile(), &config()),
        "the lines say what the value says"
    );
    let job: Job = serde_json::from_value(read).unwrap();
    assert_eq!((job.api_version.as_str(), job.kind.as_str()), ("batch/v1", "Job"));
    assert_eq!(job.metadata.name.as_deref(), Some("sweep-load-0123abcd"));
    let spec = job.spec;
    assert_eq!(spec.completion_mode, "Indexed");
    assert_eq!(
        (spec.completions, spec.parallelism, spec.backoff_limit_per_index),
        (6, 4, 3)
    );
    assert!(spec.template.metadata.name.is_none());
    assert_eq!(spec.template.metadata.labels, job.metadata.labels);

    let pod = spec.template.spec;
    assert!(pod.restart_policy == "Never", "a podFailurePolicy asks for it");
    assert!(!pod.automount_service_account_token);
    let [rules, ignored] = &spec.pod_failure_policy.rules[..] else {
        panic!()
    };
    let codes = rules.on_exit_codes.as_ref().unwrap();
    assert_eq!(
        (rules.action.as_str(), codes.operator.as_str()),
        ("FailIndex", "In")
    );
    assert_eq!(codes.values, [1, 2]);
    assert_eq!(codes.container_name, pod.containers[0].name);
    assert!(rules.on_pod_conditions.is_none() && ignored.on_exit_codes.is_none());
    let condition = &ignored.on_pod_conditions.as_ref().unwrap()[0];
    assert_eq!(
        (
            ignored.action.as_str(),
            condition.r#type.as_str(),
            condition.status.as_str()
        ),
        ("Ignore", "DisruptionTarget", "True")
    );
}

#[test]
fn the_container_calls_a_unit_in_the_volume_and_nothing_is_replaced_in_its_words() {
    let text = kubernetes(&hostile(), &config()).unwrap();
    let job: Job = serde_json::from_value(read(&text)).unwrap();
    let pod = job.spec.template.spec;
    let unit = &pod.containers[0];
    assert_eq!(unit.image, "registry.example/pleach:0.1.0");
    assert_eq!(unit.command, ["/opt/my tools/it's \"pleach\""]);
    assert_eq!(unit.args[..3], ["sweep", "unit", "--manifest"]);
    assert_eq!(unit.args[3], "runs/a $$(touch pwned) `b` \\ #c/sweep.json");
    assert!(
        unit.args.iter().all(|word| word != "--index"),
        "JOB_COMPLETION_INDEX has it"
    );
    assert_eq!(
        (unit.env[0].name.as_str(), unit.env[0].value.as_str()),
        ("RAYON_NUM_THREADS", "2")
    );
    assert!(!unit.security_context.allow_privilege_escalation);
    assert_eq!(
        (
            unit.resources.requests["cpu"].as_str(),
            unit.resources.requests["memory"].as_str()
        ),
        ("2", "2Gi")
    );
    assert_eq!(unit.resources.limits.as_ref().unwrap()["memory"], "2Gi");
    let mount = &unit.volume_mounts[0];
    assert_eq!(
        (mount.name.as_str(), mount.mount_path.as_str()),
        (pod.volumes[0].name.as_str(), "/sweep")
    );
    assert_eq!(
        pod.volumes[0]
            .persistent_volume_claim
            .as_ref()
            .unwrap()
            .claim_name,
        "results"
    );
    assert!(pod.volumes[0].host_path.is_none());

    let folder = KubernetesConfig {
        volume: Volume::HostPath("/data/sweep".into()),
        memory: None,
        ..config()
    };
    let job: Job = serde_json::from_value(read(&kubernetes(&hostile(), &folder).unwrap())).unwrap();
    let pod = job.spec.template.spec;
    let host = pod.volumes[0].host_path.as_ref().unwrap();
    assert_eq!(
        (host.path.as_str(), host.r#type.as_str()),
        ("/data/sweep", "Directory")
    );
    assert!(pod.containers[0].resources.limits.is_none());
}

#[test]
fn what_the_api_would_refuse_is_refused_here_with_the_flag() {
    let refused = |flag: &str, change: &dyn Fn(&mut KubernetesConfig)| {
        let mut config = config();
        change(&mut config);
        let said = kubernetes(&hostile(), &config).unwrap_err().to_string();
        assert!(said.starts_with(&format!("config: {flag} = ")), "{said}");
    };
    refused("image", &|c| c.image = "a b".into());
    refused("image", &|c| c.image = String::new());
    refused("claim", &|c| c.volume = Volume::Claim("My Claim".into()));
    refused("host-path", &|c| c.volume = Volume::HostPath("data".into()));
    refused("host-path", &|c| c.volume = Volume::HostPath("/a/../b".into()));
    for memory in ["2 Gi", "-1Gi", "0", "Gi", "2GiB"] {
        refused("memory", &|c| c.memory = Some(memory.into()));
    }
}
