//! A site's `KubeSchedulerConfiguration` as a policy: the settings of `kubernetes`, from the file and from `priorityclasses.json`
//! beside it, which `kubectl get priorityclasses -o json` prints.
//!
//! Of the first profile the scoring strategy of `NodeResourcesFit` is read; other plugins are as by default. No such file says
//! whether gangs are native, which is a gate of the program: a file named `kubernetes-gangs.yaml` is of a scheduler where they are.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_dealing::kubernetes::{KubernetesConfig, Scoring, Strategy};
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::Problem;
use serde::Deserialize;
use serde_json::Value;

use crate::site_policy::text;

const KIND: &str = "KubeSchedulerConfiguration";
/// What lies beside it.
pub(crate) const CLASSES: &str = "priorityclasses.json";
const NAMES: [&str; 2] = ["kubernetes", "kubernetes-gangs"];
/// Most classes, *ours*.
const CLASSES_MAX: usize = 10_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    kind: String,
    profiles: Vec<Profile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Profile {
    plugin_config: Vec<Plugin>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Plugin {
    name: String,
    args: Value,
}

#[derive(Debug, Deserialize)]
struct Given {
    r#type: Strategy,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    name: String,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
struct Classes {
    items: Vec<Class>,
}

#[derive(Debug, Deserialize)]
struct Class {
    metadata: Metadata,
    value: i32,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

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
    let found: Classes = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if found.items.len() > CLASSES_MAX {
        return Err(format!("it has more than {CLASSES_MAX} classes"));
    }
    let items = found.items.into_iter();
    Ok(items.map(|class| (class.metadata.name, class.value)).collect())
}

/// The scoring strategy of a file's first profile.
fn of(text: &str) -> Result<Scoring, String> {
    let document: Document = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    if document.kind != KIND {
        return Err(format!("its kind is `{}`, and not {KIND}", document.kind));
    }
    let plugins = document
        .profiles
        .into_iter()
        .next()
        .unwrap_or_default()
        .plugin_config;
    let fit = plugins
        .into_iter()
        .find(|plugin| plugin.name == "NodeResourcesFit");
    let Some(strategy) = fit.and_then(|mut fit| Some(fit.args.get_mut("scoringStrategy")?.take())) else {
        return Ok(Scoring::default());
    };
    let given: Given =
        serde_json::from_value(strategy).map_err(|error| format!("scoringStrategy: {error}"))?;
    let mut scoring = Scoring {
        strategy: given.r#type,
        ..Scoring::default()
    };
    if !given.resources.is_empty() {
        let weight = |is: &dyn Fn(&str) -> bool| {
            let of = given.resources.iter().find(|of| is(&of.name));
            of.map_or(0, |of| of.weight)
        };
        scoring.gpu = weight(&|name| name.ends_with("/gpu"));
        scoring.cpu = weight(&|name| name == "cpu");
        scoring.memory = weight(&|name| name == "memory");
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
            ("kind: Pod\n", "`Pod`"),
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
