//! A site's `KubeSchedulerConfiguration` as a policy: the settings of `kubernetes`, from the file and from `priorityclasses.json`
//! beside it, which `kubectl get priorityclasses -o json` prints.
//!
//! Of the first profile the scoring strategy of `NodeResourcesFit` is read; other plugins are as by default. No such file says
//! whether gangs are native, which is a gate of the program: a file named `kubernetes-gangs.yaml` is of a scheduler where they are.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_dealing::kubernetes::{KubernetesConfig, Scoring};
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::Problem;
use serde::Deserialize;
use serde_json::Value;

use crate::slurm_conf::text;

const KIND: &str = "KubeSchedulerConfiguration";
/// What lies beside it.
pub(crate) const CLASSES: &str = "priorityclasses.json";
const NAMES: [&str; 2] = ["kubernetes", "kubernetes-gangs"];
/// What a site could set: pods packed by GPUs, and spread by CPU and memory, as by default.
pub(crate) const SETTINGS: [(&str, &str); 2] = [
    (
        "most-allocated",
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - {name: nvidia.com/gpu, weight: 5}
        - {name: cpu, weight: 1}
        - {name: memory, weight: 1}
",
    ),
    (
        "least-allocated",
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources:
        - {name: cpu, weight: 1}
        - {name: memory, weight: 1}
",
    ),
];

#[derive(Deserialize)]
struct Classes {
    items: Vec<Class>,
}

#[derive(Deserialize)]
struct Class {
    metadata: Metadata,
    value: i32,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// The policy of such a file by its name.
pub(crate) fn name_of(path: &Path) -> &'static str {
    NAMES[usize::from(path.file_stem().is_some_and(|stem| stem == NAMES[1]))]
}

/// The policy of such a file; none where a path is none.
pub(crate) fn open(path: &Path) -> Option<Result<PolicySpec, Problem>> {
    (path.extension()? == "yaml").then(|| {
        let value = serde_json::to_value(read(path)?).unwrap_or(Value::Null);
        Door::SIMULATOR.planner(name_of(path), value)
    })
}

/// The settings of a `KubeSchedulerConfiguration` and of the priority classes beside it.
///
/// # Errors
/// Files that cannot be read, are too long or are none; a strategy or a weight that is none.
pub fn read(path: &Path) -> Result<KubernetesConfig, Problem> {
    let beside = path.with_file_name(CLASSES);
    let priority_classes = match beside.is_file() {
        true => classes(&text(&beside)?).map_err(|reason| Problem::data(&beside, reason))?,
        false => BTreeMap::new(),
    };
    let config = KubernetesConfig {
        scoring: of(&text(path)?).map_err(|reason| Problem::data(path, reason))?,
        priority_classes,
        ..KubernetesConfig::default()
    };
    config.validate()?;
    Ok(config)
}

/// What `kubectl get priorityclasses -o json` says.
///
/// # Errors
/// What it is not.
pub fn classes(text: &str) -> Result<BTreeMap<String, i32>, String> {
    let found: Classes = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let items = found.items.into_iter();
    Ok(items.map(|class| (class.metadata.name, class.value)).collect())
}

/// The scoring strategy of a file's first profile.
pub(crate) fn of(text: &str) -> Result<Scoring, String> {
    let document: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    if document["kind"] != KIND {
        return Err(format!("its kind is {}, and not {KIND}", document["kind"]));
    }
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let plugins = list(document.pointer("/profiles/0/pluginConfig"));
    let fit = plugins.iter().find(|plugin| plugin["name"] == "NodeResourcesFit");
    let Some(given) = fit.and_then(|fit| fit.pointer("/args/scoringStrategy")) else {
        return Ok(Scoring::default());
    };
    let strategy = serde_json::from_value(given["type"].clone());
    let mut scoring = Scoring {
        strategy: strategy.map_err(|error| format!("scoringStrategy.type: {error}"))?,
        ..Scoring::default()
    };
    let resources = list(given.get("resources"));
    if !resources.is_empty() {
        let weight = |end: &str| {
            let of = resources
                .iter()
                .find(|of| of["name"].as_str().is_some_and(|name| name.ends_with(end)));
            of.map_or(0, |of| of["weight"].as_u64().unwrap_or(1).min(1000) as u32)
        };
        (scoring.gpu, scoring.cpu, scoring.memory) = (weight("/gpu"), weight("cpu"), weight("memory"));
    }
    Ok(scoring)
}

#[cfg(test)]
mod tests {
    use pleach_dealing::kubernetes::Strategy;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_left_out_is_as_by_default() {
        let bare = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
        assert_eq!(of(bare), Ok(Scoring::default()));
        let [packed, spread] = SETTINGS.map(|(_, text)| of(text).unwrap());
        assert_eq!(
            (packed.gpu, packed.cpu, packed.strategy),
            (5, 1, Strategy::MostAllocated)
        );
        assert_eq!(spread, Scoring::default());
        let without = format!(
            "{bare}profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {{scoringStrategy: {{type: MostAllocated}}}}\n"
        );
        let most = Scoring {
            strategy: Strategy::MostAllocated,
            ..Scoring::default()
        };
        assert_eq!(of(&without), Ok(most));
        for (text, words) in [
            ("kind: Pod\n", "\"Pod\""),
            (
                &SETTINGS[0].1.replace("MostAllocated", "RequestedToCapacityRatio"),
                "LeastAllocated",
            ),
            ("{", "line"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
