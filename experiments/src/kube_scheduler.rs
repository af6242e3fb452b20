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
use serde_json::Value;

use crate::site_policy::text;

const KIND: &str = "KubeSchedulerConfiguration";
/// What lies beside it.
pub(crate) const CLASSES: &str = "priorityclasses.json";
const NAMES: [&str; 2] = ["kubernetes", "kubernetes-gangs"];
/// Most classes, *ours*.
const CLASSES_MAX: usize = 10_000;

/// Whether a path is such a file.
pub(crate) fn is_one(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("yaml" | "yml") => true,
        Some("json") => text(path).is_ok_and(|text| text.contains(KIND)),
        _ => false,
    }
}

/// The policy of such a file by its name.
pub(crate) fn name_of(path: &Path) -> &'static str {
    NAMES[usize::from(path.file_stem().is_some_and(|stem| stem == NAMES[1]))]
}

pub(crate) fn open(path: &Path) -> Result<PolicySpec, Problem> {
    let value = serde_json::to_value(read(path)?).unwrap_or(Value::Null);
    Door::SIMULATOR.planner(name_of(path), value)
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
    let found: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let items = found["items"]
        .as_array()
        .filter(|items| items.len() <= CLASSES_MAX);
    let items = items.ok_or_else(|| format!("it is no list `items` of at most {CLASSES_MAX} classes"))?;
    let class = |item: &Value| {
        let (name, value) = (item.pointer("/metadata/name")?, item["value"].as_i64()?);
        Some((name.as_str()?.to_owned(), i32::try_from(value).ok()?))
    };
    let classes: Option<BTreeMap<String, i32>> = items.iter().map(class).collect();
    classes.ok_or_else(|| "a class has no `metadata.name` or no `value` of 32 bits".to_owned())
}

/// The scoring strategy of a file's first profile.
fn of(text: &str) -> Result<Scoring, String> {
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

/// A file that sets a scoring.
pub(crate) fn text_of(scoring: &Scoring) -> String {
    let resources = [
        ("nvidia.com/gpu", scoring.gpu),
        ("cpu", scoring.cpu),
        ("memory", scoring.memory),
    ];
    let resources = resources.iter().filter(|(_, weight)| *weight > 0);
    let resources: Vec<String> = resources
        .map(|(name, weight)| format!("          - {{name: {name}, weight: {weight}}}\n"))
        .collect();
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: {KIND}\nprofiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      \
         scoringStrategy:\n        type: {:?}\n        resources:\n{}",
        scoring.strategy,
        resources.concat()
    )
}

#[cfg(test)]
mod tests {
    use pleach_dealing::kubernetes::Strategy;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_left_out_is_as_by_default() {
        let bare = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
        assert_eq!(of(bare), Ok(Scoring::default()));
        let packed = Scoring {
            strategy: Strategy::MostAllocated,
            gpu: 5,
            cpu: 1,
            memory: 0,
        };
        assert_eq!(of(&text_of(&packed)), Ok(packed));
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
                &text_of(&packed).replace("MostAllocated", "RequestedToCapacityRatio"),
                "LeastAllocated",
            ),
            ("{", "line"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
