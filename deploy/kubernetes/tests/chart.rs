//! The Helm chart and kustomize are of one source: what `deploy/kubernetes/deploy/chart.sh` makes is what kustomize makes.
//!
//! The few expressions of the chart are read here as Helm reads them, so that no Helm is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What the chart's template includes, as text.
const INCLUDED: &str = r#"{{ tpl (.Files.Get (printf "modes/%s%s.yaml" .Values.mode (ternary "-forecasts" "" .Values.forecasts))) . }}"#;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

/// The objects of documents, by kind and name, without the namespace that Helm makes itself.
fn objects(text: &str) -> Vec<(String, Value)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mut objects: Vec<(String, Value)> = documents
        .into_iter()
        .filter(|document| document["kind"] != "Namespace")
        .map(|document| {
            (
                format!("{} {}", document["kind"], document["metadata"]["name"]),
                document,
            )
        })
        .collect();
    objects.sort_by(|a, b| a.0.cmp(&b.0));
    objects
}

/// Expressions of values, filled in.
fn filled(text: &str, values: &Value) -> String {
    let mut text = text.to_owned();
    for (name, value) in values.as_object().unwrap() {
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text = text.replace(&format!("{{{{ .Values.{name} }}}}"), &plain);
        text = text.replace(&format!("{{{{ .Values.{name} | toJson }}}}"), &value.to_string());
    }
    assert!(!text.contains("{{"), "{text}");
    text
}

#[test]
fn the_chart_makes_what_kustomize_makes_of_each_folder() {
    let Some(program) = pleach_tests::program(&["kubectl", "kustomize"]) else {
        return;
    };
    let is_kubectl = program.file_name().is_some_and(|name| name == "kubectl");
    let verb = if is_kubectl { "kustomize" } else { "build" };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(deploy().join("chart.sh"))
        .arg(folder.path())
        .env("KUSTOMIZE", format!("{} {verb}", program.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(read(&folder.path().join("templates/pleach.yaml")).contains(INCLUDED));
    let values: Value = serde_saphyr::from_str(&read(&folder.path().join("values.yaml"))).unwrap();
    assert_eq!(values["forecasts"], false);
    // A kustomization of a site's own, beside the folders.
    let site = tempfile::tempdir().unwrap();
    let copied = Command::new("cp")
        .arg("-R")
        .arg(deploy().join("."))
        .arg(site.path())
        .status();
    assert!(copied.unwrap().success());
    std::fs::create_dir(site.path().join("own")).unwrap();
    let with = |mode: &str| format!("resources: [../{mode}]\ncomponents: [../forecasts]\n");
    let modes = ["shadow", "live", "guarded", "order"];
    for (mode, has_forecasts) in modes.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        std::fs::write(site.path().join("own/kustomization.yaml"), with(mode)).unwrap();
        let built = Command::new(&program)
            .arg(verb)
            .arg(site.path().join(if has_forecasts { "own" } else { mode }))
            .output()
            .unwrap();
        let mut built = objects(std::str::from_utf8(&built.stdout).unwrap());
        let mode = format!("{mode}{}", if has_forecasts { "-forecasts" } else { "" });
        let deployment = built.iter().find(|(_, object)| object["kind"] == "Deployment");
        let pod = &deployment.unwrap().1["spec"]["template"]["spec"];
        let num = pod["containers"].as_array().unwrap().len();
        assert_eq!(num, if has_forecasts { 3 } else { 1 }, "{mode}");
        let text = read(&folder.path().join(format!("modes/{mode}.yaml")));
        assert_eq!(
            objects(&filled(&text, &values)),
            without_bundle(built.clone()),
            "{mode}"
        );
        // Each value arrives where kustomize's own has to be changed by hand.
        let mut other = values.clone();
        other["image"] = "registry/pleach:9".into();
        other["policy"] = "/etc/pleach/policy/policy.json".into();
        other["namespaces"] = serde_json::json!(["team-a", "team-b"]);
        other["caBundle"] = "Q0E=".into();
        other["controlPlane"] = "10.0.0.0/8".into();
        for (_, object) in &mut built {
            change(object);
        }
        assert_eq!(objects(&filled(&text, &other)), built, "{mode} with other values");
    }
}

/// An empty bundle is no bundle.
fn without_bundle(mut objects: Vec<(String, Value)>) -> Vec<(String, Value)> {
    for (_, object) in &mut objects {
        for webhook in object
            .get_mut("webhooks")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            webhook["clientConfig"]["caBundle"] = Value::Null;
        }
    }
    objects
}

/// The same by hand.
fn change(object: &mut Value) {
    let containers = object.pointer_mut("/spec/template/spec/containers");
    for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
        container["image"] = "registry/pleach:9".into();
        let args = container["args"].as_array_mut().unwrap();
        let policies = args.iter_mut().filter(|arg| **arg == "sjf");
        policies.for_each(|policy| *policy = "/etc/pleach/policy/policy.json".into());
    }
    if let Some(Value::String(text)) = object.pointer_mut("/data/pleach.toml") {
        *text = text.replace(r#"namespaces = ["*"]"#, r#"namespaces = ["team-a","team-b"]"#);
    }
    for webhook in object
        .get_mut("webhooks")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        webhook["clientConfig"]["caBundle"] = "Q0E=".into();
    }
    if let Some(block) = object.pointer_mut("/spec/ingress/0/from/0/ipBlock/cidr") {
        *block = "10.0.0.0/8".into();
    }
}

#[test]
fn the_values_are_those_of_the_folders() {
    let values: Value = serde_saphyr::from_str(&read(&deploy().join("chart/values.yaml"))).unwrap();
    let deployment = read(&deploy().join("shadow/deployment.yaml"));
    assert!(deployment.contains(&format!("image: {}", values["image"].as_str().unwrap())));
    assert!(deployment.contains(&format!("--policy, {}, ", values["policy"].as_str().unwrap())));
    let policy = read(&deploy().join("guarded/policy.yaml"));
    assert!(policy.contains(&format!("cidr: {}", values["controlPlane"].as_str().unwrap())));
    let chart: Value = serde_saphyr::from_str(&read(&deploy().join("chart/Chart.yaml"))).unwrap();
    assert_eq!(
        (chart["version"].as_str(), chart["appVersion"].as_str()),
        (Some(env!("CARGO_PKG_VERSION")), Some(env!("CARGO_PKG_VERSION")))
    );
}
