//! The manifests of `deploy/kubernetes/deploy` are what the API takes: every document, with unknown fields refused, and what
//! `kubectl apply -k` makes of each folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pleach_daemon::Drive;
use pleach_kubernetes::{Settings, names};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn documents(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(deploy().join(name)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// Reads a document and writes it again: a field that the type does not know would be missing.
fn read<T: DeserializeOwned + Serialize>(document: &Value) -> T {
    let object: T = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(
        without_nulls(&serde_json::to_value(&object).unwrap()),
        without_nulls(document)
    );
    object
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn of_kind(name: &str, kind: &str) -> Value {
    let mut found: Vec<Value> = documents(name)
        .into_iter()
        .filter(|document| document["kind"] == kind)
        .collect();
    assert_eq!(found.len(), 1, "{kind} in {name}");
    found.remove(0)
}

#[test]
fn every_document_is_of_a_type_of_the_api_and_nothing_in_it_is_unknown() {
    let mut kinds = Vec::new();
    for name in [
        "shadow/namespace.yaml",
        "shadow/rbac.yaml",
        "shadow/config.yaml",
        "shadow/deployment.yaml",
        "shadow/service.yaml",
        "live/webhook.yaml",
        "order/config.yaml",
        "order/rbac.yaml",
        "guarded/config.yaml",
        "guarded/policy.yaml",
        "guarded/budget.yaml",
        "guarded/admission.yaml",
    ] {
        for document in documents(name) {
            let kind = document["kind"].as_str().unwrap().to_owned();
            match kind.as_str() {
                "Namespace" => drop(read::<Namespace>(&document)),
                "ValidatingAdmissionPolicy" => drop(read::<ValidatingAdmissionPolicy>(&document)),
                "ValidatingAdmissionPolicyBinding" => {
                    drop(read::<ValidatingAdmissionPolicyBinding>(&document))
                }
                "PodDisruptionBudget" => drop(read::<PodDisruptionBudget>(&document)),
                "ServiceAccount" => drop(read::<ServiceAccount>(&document)),
                "ClusterRole" => drop(read::<ClusterRole>(&document)),
                "Role" => drop(read::<Role>(&document)),
                "RoleBinding" => drop(read::<RoleBinding>(&document)),
                "ClusterRoleBinding" => drop(read::<ClusterRoleBinding>(&document)),
                "ConfigMap" => drop(read::<ConfigMap>(&document)),
                "Deployment" => drop(read::<Deployment>(&document)),
                "Service" => drop(read::<Service>(&document)),
                "NetworkPolicy" => drop(read::<NetworkPolicy>(&document)),
                "MutatingWebhookConfiguration" => drop(read::<MutatingWebhookConfiguration>(&document)),
                other => panic!("{other} has no check in this test"),
            }
            kinds.push(kind);
        }
    }
    assert_eq!(kinds.len(), 22, "{kinds:?}");
}

/// The resources of a folder's `kustomization.yaml` and of those that it names, as files. No folder may contain one that was
/// visited on the way to it.
///
/// # Source
/// `errIfArgEqualOrHigher` and `errIfGitContainmentViolation` of kustomize's `api/internal/loader`: "cycle detected: candidate
/// root contains visited root".
fn accumulate(folder: &Path, visited: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    if let Some(other) = visited.iter().find(|other| other.starts_with(&folder)) {
        return Err(format!(
            "cycle detected: {} contains {}",
            folder.display(),
            other.display()
        ));
    }
    let text =
        std::fs::read_to_string(folder.join("kustomization.yaml")).map_err(|error| error.to_string())?;
    let document: Value = serde_saphyr::from_str(&text).unwrap();
    let mut files = Vec::new();
    for resource in document["resources"].as_array().unwrap() {
        let path = folder.join(resource.as_str().unwrap());
        if path.is_dir() {
            files.extend(accumulate(
                &path,
                &[visited, std::slice::from_ref(&folder)].concat(),
            )?);
        } else {
            // Without --load-restrictor=LoadRestrictionsNone files come from the folder alone.
            let path = path.canonicalize().map_err(|error| error.to_string())?;
            assert!(path.starts_with(&folder), "{}", path.display());
            files.push(path);
        }
    }
    Ok(files)
}

/// Kinds of what `kubectl kustomize FOLDER` (or `kustomize build FOLDER`) prints, sorted, and the arguments of the container.
fn kustomized(program: &Path, folder: &Path) -> (Vec<String>, Vec<String>) {
    let is_kubectl = program.file_name().is_some_and(|name| name == "kubectl");
    let output = Command::new(program)
        .arg(if is_kubectl { "kustomize" } else { "build" })
        .arg(folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {errors}", program.display());
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout).unwrap()).unwrap();
    let mut kinds = Vec::new();
    let mut args = Vec::new();
    for document in documents {
        if document["kind"] == "Deployment" {
            let deployment: Deployment = read(&document);
            args = deployment.spec.template.spec.unwrap().containers[0]
                .args
                .clone()
                .unwrap();
        }
        kinds.push(document["kind"].as_str().unwrap().to_owned());
    }
    kinds.sort();
    (kinds, args)
}

#[test]
fn both_folders_are_what_kubectl_apply_takes_and_the_second_drives() {
    let number = |folder: &str| accumulate(&deploy().join(folder), &[]).map(|files| files.len());
    assert_eq!((number("shadow"), number("live")), (Ok(5), Ok(6)));
    // The rule is kustomize's: a folder that lies in the one that it asks for.
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("live");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("kustomization.yaml"), "resources: []").unwrap();
    std::fs::write(inner.join("kustomization.yaml"), "resources: [..]").unwrap();
    assert!(accumulate(&inner, &[]).unwrap_err().contains("cycle detected"));

    let Some(program) = pleach_tests::program(&["kubectl", "kustomize"]) else {
        return;
    };
    let (kinds, args) = kustomized(&program, &deploy().join("shadow"));
    assert_eq!((kinds.len(), args[7].as_str()), (10, "--shadow"), "{kinds:?}");
    let (kinds, args) = kustomized(&program, &deploy().join("live"));
    assert_eq!((kinds.len(), args[7].as_str()), (11, "--live"), "{kinds:?}");
    assert!(
        kinds.iter().any(|kind| kind == "MutatingWebhookConfiguration"),
        "{kinds:?}"
    );
}

#[test]
fn the_container_has_no_rights_and_the_program_takes_its_arguments() {
    let deployment: Deployment = read(&of_kind("shadow/deployment.yaml", "Deployment"));
    let pod = deployment.spec.template.spec.unwrap();
    assert_eq!(pod.security_context.unwrap().run_as_non_root, Some(true));
    let container = &pod.containers[0];
    let context = container.security_context.clone().unwrap();
    assert_eq!(context.allow_privilege_escalation, Some(false));
    assert_eq!(context.read_only_root_filesystem, Some(true));
    assert_eq!(context.capabilities.unwrap().drop.unwrap(), ["ALL"]);
    assert_eq!(context.privileged, None);
    let args = container.args.clone().unwrap();
    assert_eq!(args[7], "--shadow", "the live overlay replaces this one");
    // A policy is named that needs no file.
    assert!(
        pleach_daemon::policy::Loaded::heuristic(&args[6]).is_ok(),
        "{}",
        args[6]
    );
    let overlay = documents("live/kustomization.yaml")[0]["patches"][0]["patch"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(overlay.contains("/spec/template/spec/containers/0/args/7") && overlay.contains("--live"));
    // Ready is what the service needs: the port of the webhook, and not what the rounds do.
    let ready = container.readiness_probe.clone().unwrap().tcp_socket.unwrap();
    assert_eq!(ready.port, IntOrString::String("https".into()));
    // Two of them are on two nodes, if they can.
    assert!(pod.affinity.unwrap().pod_anti_affinity.is_some());
    // The program refuses other arguments before it looks at any file.
    let program = |args: &[String]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pleach-kubernetes"))
            .args(args)
            .env("KUBECONFIG", "/nonexistent")
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let text = program(&args);
    assert!(text.contains("/etc/pleach/config/pleach.toml"), "{text}");
    let probe = container
        .liveness_probe
        .clone()
        .unwrap()
        .exec
        .unwrap()
        .command
        .unwrap();
    assert_eq!(probe[0], "pleach-kubernetes");
    let text = program(&probe[1..]);
    assert!(text.contains("/etc/pleach/config/pleach.toml"), "{text}");
}

#[test]
fn the_rights_are_the_ones_that_the_program_uses() {
    let rights = |name: &str| {
        let role: ClusterRole = read(&of_kind(name, "ClusterRole"));
        let mut rights: Vec<String> = Vec::new();
        for rule in role.rules.unwrap() {
            for resource in rule.resources.unwrap() {
                rights.extend(rule.verbs.iter().map(|verb| format!("{verb} {resource}")));
            }
        }
        rights.sort();
        rights
    };
    let used = [
        "create events",
        "create pods/eviction",
        "get jobs",
        "get persistentvolumeclaims",
        "get persistentvolumes",
        "get pods",
        "list jaxjobs",
        "list jobs",
        "list jobsets",
        "list mpijobs",
        "list namespaces",
        "list nodes",
        "list persistentvolumeclaims",
        "list persistentvolumes",
        "list poddisruptionbudgets",
        "list pods",
        "list priorityclasses",
        "list pytorchjobs",
        "list rayjobs",
        "list resourcequotas",
        "list tfjobs",
        "list xgboostjobs",
        "patch jaxjobs",
        "patch jobs",
        "patch jobsets",
        "patch mpijobs",
        "patch pods",
        "patch pytorchjobs",
        "patch rayjobs",
        "patch tfjobs",
        "patch xgboostjobs",
        "watch jaxjobs",
        "watch jobs",
        "watch jobsets",
        "watch mpijobs",
        "watch nodes",
        "watch persistentvolumeclaims",
        "watch persistentvolumes",
        "watch pods",
        "watch priorityclasses",
        "watch pytorchjobs",
        "watch rayjobs",
        "watch resourcequotas",
        "watch tfjobs",
        "watch xgboostjobs",
    ];
    assert_eq!(rights("shadow/rbac.yaml"), used);
    // Beside Kueue no pod is touched.
    let used = [
        "get jobs",
        "get workloads",
        "list clusterqueues",
        "list jobs",
        "list localqueues",
        "list nodes",
        "list pods",
        "list priorityclasses",
        "list workloadpriorityclasses",
        "list workloads",
        "patch workloads",
        "watch jobs",
        "watch nodes",
        "watch pods",
    ];
    assert_eq!(rights("order/rbac.yaml"), used);
}

#[test]
fn the_folder_beside_kueue_tells_an_order_and_holds_nobody() {
    assert_eq!(
        accumulate(&deploy().join("order"), &[]).map(|files| files.len()),
        Ok(5)
    );
    let map: ConfigMap = read(&of_kind("order/config.yaml", "ConfigMap"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pleach.toml");
    std::fs::write(&path, &map.data.unwrap()["pleach.toml"]).unwrap();
    assert_eq!(Settings::load(&path).unwrap().drive, Drive::Order);
    let Some(program) = pleach_tests::program(&["kubectl", "kustomize"]) else {
        return;
    };
    let (kinds, args) = kustomized(&program, &deploy().join("order"));
    assert_eq!((kinds.len(), args[7].as_str()), (10, "--live"), "{kinds:?}");
}

#[test]
fn the_settings_in_the_config_map_are_settings() {
    let map: ConfigMap = read(&of_kind("shadow/config.yaml", "ConfigMap"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pleach.toml");
    std::fs::write(&path, &map.data.unwrap()["pleach.toml"]).unwrap();
    let settings = Settings::load(&path).unwrap();
    let server = settings.server.unwrap();
    assert!(server.client_authority.is_some() && server.token.is_none());
    assert!(!settings.rounds.preemption);
    // The key of marks comes from a secret: the state folder ends with the pod.
    let deployment: Deployment = read(&of_kind("shadow/deployment.yaml", "Deployment"));
    let pod = deployment.spec.template.spec.unwrap();
    let mounts = pod.containers[0].volume_mounts.clone().unwrap();
    let key = settings.mark_key.unwrap();
    let mount = mounts
        .iter()
        .find(|mount| key.starts_with(&mount.mount_path))
        .unwrap();
    let mut volumes = pod.volumes.unwrap().into_iter();
    let volume = volumes.find(|volume| volume.name == mount.name).unwrap();
    assert_eq!(
        volume.secret.unwrap().secret_name.as_deref(),
        Some("pleach-marks")
    );
}

#[test]
fn the_webhook_fails_open_and_sees_only_namespaces_that_ask_for_it() {
    let webhook: MutatingWebhookConfiguration =
        read(&of_kind("live/webhook.yaml", "MutatingWebhookConfiguration"));
    let webhooks = webhook.webhooks.unwrap();
    let seen = |at: usize| webhooks[at].rules.as_ref().unwrap()[0].resources.clone().unwrap();
    assert_eq!(
        (webhooks.len(), seen(0), seen(1)),
        (2, vec!["pods".into()], vec!["jobs".into()])
    );
    for webhook in webhooks {
        assert_eq!(webhook.failure_policy.as_deref(), Some("Ignore"));
        assert!(webhook.timeout_seconds.unwrap() <= 5);
        let labels = webhook.namespace_selector.unwrap().match_labels.unwrap();
        assert_eq!(labels[names::DRIVE], "true");
        let service = webhook.client_config.service.unwrap();
        assert_eq!(
            (service.path.as_deref(), service.name.as_str()),
            (Some("/webhook"), "pleach")
        );
        let own: Service = read(&of_kind("shadow/service.yaml", "Service"));
        assert_eq!(own.spec.unwrap().ports.unwrap()[0].port, service.port.unwrap());
    }
}

/// Where users are not trusted, pods wait where something fails, and only named addresses reach the server.
#[test]
fn the_guarded_folder_fails_closed_and_asks_about_updates() {
    assert_eq!(
        accumulate(&deploy().join("guarded"), &[]).map(|files| files.len()),
        Ok(8)
    );
    let map: ConfigMap = read(&of_kind("guarded/config.yaml", "ConfigMap"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pleach.toml");
    std::fs::write(&path, &map.data.unwrap()["pleach.toml"]).unwrap();
    let settings = Settings::load(&path).unwrap();
    settings.validate_live().unwrap();
    assert!(!settings.opt_out && settings.lease.is_some() && settings.mark_key.is_some());
    let network: NetworkPolicy = read(&of_kind("guarded/policy.yaml", "NetworkPolicy"));
    let ingress = network.spec.unwrap().ingress.unwrap().remove(0);
    let block = ingress.from.unwrap().remove(0).ip_block.unwrap();
    assert_eq!(block.cidr, "192.0.2.0/24");
    // The patches of the webhook, as kustomize applies them.
    let document = documents("guarded/kustomization.yaml").remove(0);
    let of_webhook = |patch: &&Value| patch["target"]["kind"] == "MutatingWebhookConfiguration";
    let patch = document["patches"]
        .as_array()
        .unwrap()
        .iter()
        .find(of_webhook)
        .unwrap();
    let operations: Vec<Value> = serde_saphyr::from_str(patch["patch"].as_str().unwrap()).unwrap();
    let mut webhook = of_kind("live/webhook.yaml", "MutatingWebhookConfiguration");
    for operation in operations {
        let path = operation["path"].as_str().unwrap();
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent = webhook.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match operation["op"].as_str().unwrap() {
            "add" => drop(parent.insert(name.into(), operation["value"].clone())),
            "replace" => *parent.get_mut(name).unwrap() = operation["value"].clone(),
            _ => drop(parent.remove(name).unwrap()),
        }
    }
    let webhook: MutatingWebhookConfiguration = read(&webhook);
    let mut webhooks = webhook.webhooks.unwrap();
    // A Job that no controller answers for is made: its pods are not.
    let of_jobs = webhooks.remove(1);
    assert_eq!(
        (of_jobs.failure_policy.as_deref(), of_jobs.object_selector),
        (Some("Ignore"), None)
    );
    let webhook = webhooks.remove(0);
    assert_eq!(webhook.failure_policy.as_deref(), Some("Fail"));
    assert_eq!(webhook.object_selector, None);
    assert_eq!(
        webhook.rules.unwrap()[0].operations.clone().unwrap(),
        ["CREATE", "UPDATE"]
    );
    // Of updates only those of a gate or a mark: what Jobs and kubelets write needs no controller. The step `guarded` of
    // deploy/kubernetes/tests/real has the API server judge by it.
    let conditions = webhook.match_conditions.unwrap();
    assert_eq!(conditions.len(), 2);
    let of_updates = &conditions[1].expression;
    assert!(
        of_updates.starts_with("request.operation != 'UPDATE' ||"),
        "{of_updates}"
    );
    for name in [names::GATE, names::DECIDED, names::LEFT] {
        assert!(of_updates.contains(&format!("'{name}'")), "{name}: {of_updates}");
    }
    // The controller's own namespace is not driven, so it can be made again.
    assert!(webhook.namespace_selector.unwrap().match_labels.is_some());
    let Some(program) = pleach_tests::program(&["kubectl", "kustomize"]) else {
        return;
    };
    let (kinds, args) = kustomized(&program, &deploy().join("guarded"));
    assert_eq!((kinds.len(), args[7].as_str()), (18, "--live"), "{kinds:?}");
}
