//! The arrows between the crates, read from `cargo metadata`: a new arrow is an architecture change and starts here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::budgets::files;
use crate::cargo::{cargo, crate_folders, metadata};
use crate::sizes::root;

/// Our crates and those of ours that each may depend on.
const ARROWS: [(&str, &[&str]); 22] = [
    ("pleach-problem", &[]),
    ("pleach-scheduler", &["pleach-problem"]),
    ("pleach-dealing", &["pleach-scheduler"]),
    ("pleach-tables", &["pleach-problem"]),
    ("pleach-verify", &["pleach-tables"]),
    ("pleach-site", &[]),
    (
        "pleach-workloads",
        &["pleach-scheduler", "pleach-tables", "pleach-site"],
    ),
    (
        "pleach-serving",
        &["pleach-scheduler", "pleach-tables", "pleach-workloads"],
    ),
    (
        "pleach-env",
        &[
            "pleach-scheduler",
            "pleach-tables",
            "pleach-workloads",
            "pleach-serving",
        ],
    ),
    ("pleach-network", &["pleach-scheduler"]),
    (
        "pleach-policies",
        &["pleach-scheduler", "pleach-dealing", "pleach-network"],
    ),
    (
        "pleach-agents",
        &["pleach-scheduler", "pleach-network", "pleach-env"],
    ),
    ("pleach-distill", &["pleach-scheduler", "pleach-env"]),
    (
        "pleach-forecast",
        &[
            "pleach-scheduler",
            "pleach-dealing",
            "pleach-site",
            "pleach-env",
            "pleach-policies",
        ],
    ),
    (
        "pleach-experiments",
        &[
            "pleach-scheduler",
            "pleach-dealing",
            "pleach-tables",
            "pleach-verify",
            "pleach-env",
            "pleach-network",
            "pleach-policies",
            "pleach-agents",
            "pleach-distill",
            "pleach-forecast",
            "pleach-serving",
            "pleach-site",
        ],
    ),
    (
        "pleach-cli",
        &[
            "pleach-scheduler",
            "pleach-serving",
            "pleach-dealing",
            "pleach-env",
            "pleach-network",
            "pleach-agents",
            "pleach-distill",
            "pleach-experiments",
            DOOR_OF_LAB,
        ],
    ),
    ("pleach-own", &["pleach-cli"]),
    (
        "pleach-daemon",
        &[
            "pleach-scheduler",
            "pleach-tables",
            "pleach-site",
            "pleach-dealing",
            "pleach-policies",
        ],
    ),
    (
        "pleach-kubernetes",
        &["pleach-scheduler", "pleach-site", "pleach-daemon"],
    ),
    (
        "pleach-python",
        &[
            "pleach-scheduler",
            "pleach-env",
            "pleach-distill",
            "pleach-experiments",
            "pleach-network",
            "pleach-serving",
            "pleach-cli",
        ],
    ),
    ("pleach-conventions", &[]),
    (
        "pleach-tests",
        &[
            "pleach-scheduler",
            "pleach-env",
            "pleach-network",
            "pleach-agents",
            "pleach-distill",
            "pleach-experiments",
        ],
    ),
];

/// The laboratory: what it may know of its own crates, on top of everything below `cli`.
const LAB: [(&str, &[&str]); 6] = [
    ("pleach-baselines", &[]),
    ("pleach-bench", &[]),
    ("pleach-graphs", &[]),
    ("pleach-rooms", &[]),
    ("pleach-reproduce", &["pleach-baselines", "pleach-rooms"]),
    (
        DOOR_OF_LAB,
        &[
            "pleach-baselines",
            "pleach-bench",
            "pleach-graphs",
            "pleach-rooms",
            "pleach-reproduce",
        ],
    ),
];
/// The one crate of the laboratory that a binary names, in one line.
const DOOR_OF_LAB: &str = "pleach-lab";
/// Crates above the laboratory, which knows none of them.
const ABOVE_LAB: [&str; 6] = [
    "pleach-cli",
    "pleach-own",
    "pleach-python",
    "pleach-daemon",
    "pleach-kubernetes",
    "pleach-tests",
];

/// Crates that must not know gradients, and what counts as such.
const WITHOUT_BURN: [&str; 15] = [
    "pleach-serving",
    "pleach-site",
    "pleach-scheduler",
    "pleach-tables",
    "pleach-verify",
    "pleach-network",
    "pleach-policies",
    "pleach-dealing",
    "pleach-baselines",
    "pleach-workloads",
    "pleach-env",
    "pleach-distill",
    "pleach-forecast",
    "pleach-daemon",
    "pleach-kubernetes",
];
const GRADIENTS: [&str; 5] = ["burn", "cubecl", "wgpu", "cudarc", "tracel"];
/// What research planners and simulations need and a production scheduler does not: a solver, random numbers.
const RESEARCH: [&str; 2] = ["microlp", "rand"];

/// Names by package id, and for each package id the ids of its normal and build dependencies.
fn graph(metadata: &Value) -> (BTreeMap<&str, &str>, BTreeMap<&str, Vec<&str>>) {
    let text = |value: &'_ Value, key: &str| -> Option<String> { value[key].as_str().map(str::to_owned) };
    let packages = metadata["packages"].as_array().unwrap();
    let names = packages
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()));
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let edges = nodes.iter().map(|node| {
        let needed = node["deps"].as_array().unwrap().iter().filter(|dep| {
            dep["dep_kinds"]
                .as_array()
                .unwrap()
                .iter()
                .any(|kind| text(kind, "kind").as_deref() != Some("dev"))
        });
        (
            node["id"].as_str().unwrap(),
            needed.map(|dep| dep["pkg"].as_str().unwrap()).collect(),
        )
    });
    (names.collect(), edges.collect())
}

#[test]
fn crates_depend_only_downward_and_agents_and_distill_do_not_know_each_other() {
    let metadata = metadata();
    let (names, edges) = graph(&metadata);
    let ours: BTreeSet<&str> = names
        .values()
        .copied()
        .filter(|name| name.starts_with("pleach"))
        .collect();
    assert_eq!(
        ours,
        ARROWS.iter().chain(&LAB).map(|(name, _)| *name).collect(),
        "every crate has its place in these tables"
    );
    let of = |table: &'static [(&str, &[&str])], name: &str| table.iter().find(|(own, _)| *own == name);
    for (id, needed) in &edges {
        let name = names[id];
        let (product, lab) = (of(&ARROWS, name), of(&LAB, name));
        if product.or(lab).is_none() {
            continue;
        }
        let ours = needed.iter().map(|dep| names[dep]);
        for dep in ours.filter(|dep| dep.starts_with("pleach")) {
            let is_allowed = match lab {
                Some((_, allowed)) if of(&LAB, dep).is_some() => allowed.contains(&dep),
                Some(_) => !ABOVE_LAB.contains(&dep),
                None => product.is_some_and(|(_, allowed)| allowed.contains(&dep)),
            };
            assert!(is_allowed, "{name} must not depend on {dep}");
        }
    }
}

/// Folders of the first page, each below those after it; what `deploy` may know besides itself.
const GROUPS: [&str; 9] = [
    "scheduler",
    "workloads",
    "serving",
    "env",
    "agents distill forecast",
    "experiments",
    "lab",
    "cli",
    "python",
];
const BELOW_DEPLOY: [&str; 3] = ["scheduler", "workloads", "deploy"];

#[test]
fn groups_of_crates_depend_only_downward() {
    let metadata = metadata();
    let (names, edges) = graph(&metadata);
    let packages = metadata["packages"].as_array().unwrap();
    let group = |id: &str| {
        let package = packages.iter().find(|package| package["id"] == id).unwrap();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let name = manifest.strip_prefix(metadata["workspace_root"].as_str().unwrap());
        let first = name.unwrap().components().next().unwrap();
        first.as_os_str().to_str().unwrap().to_owned()
    };
    let place = |group: &str| {
        GROUPS
            .iter()
            .position(|names| names.split(' ').any(|name| name == group))
    };
    let mut num_arrows = 0;
    for (id, needed) in edges.iter().filter(|(id, _)| names[*id].starts_with("pleach")) {
        let of = group(id);
        if of == "tests" {
            continue;
        }
        for dep in needed.iter().filter(|dep| names[*dep].starts_with("pleach")) {
            let to = group(dep);
            let is_downward = match place(&of) {
                Some(own) => to == of || place(&to).is_some_and(|below| below < own),
                None => of == "deploy" && BELOW_DEPLOY.contains(&to.as_str()),
            };
            assert!(
                is_downward,
                "{} of {of} must not depend on {} of {to}",
                names[id], names[dep]
            );
            num_arrows += 1;
        }
    }
    assert!(num_arrows > 50, "{num_arrows} arrows were looked at");
}

/// The names of everything that a crate of ours pulls in, itself included.
fn pulled_in<'a>(
    names: &BTreeMap<&'a str, &'a str>,
    edges: &BTreeMap<&'a str, Vec<&'a str>>,
    name: &str,
) -> BTreeSet<&'a str> {
    let root = names
        .iter()
        .find(|(_, other)| **other == name)
        .map(|(id, _)| *id)
        .unwrap();
    let (mut seen, mut todo) = (BTreeSet::new(), vec![root]);
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            todo.extend(&edges[id]);
        }
    }
    seen.into_iter().map(|id| names[id]).collect()
}

#[test]
fn what_runs_in_production_has_no_gradients_in_its_dependency_tree() {
    let metadata = metadata();
    let (names, edges) = graph(&metadata);
    for name in WITHOUT_BURN {
        for dep in pulled_in(&names, &edges, name) {
            assert!(
                !GRADIENTS.iter().any(|word| dep.starts_with(word)),
                "{name} pulls in {dep}"
            );
        }
    }
}

#[test]
fn the_validator_of_schedules_pulls_in_no_crate_of_ours_but_those_that_read_files_and_say_what_is_wrong() {
    let metadata = metadata();
    let (names, edges) = graph(&metadata);
    let ours: Vec<&str> = pulled_in(&names, &edges, "pleach-verify")
        .into_iter()
        .filter(|name| name.starts_with("pleach"))
        .collect();
    assert_eq!(ours, ["pleach-problem", "pleach-tables", "pleach-verify"]);
}

/// Names of what a crate of ours is built with by itself: with its own features, not those that others of the workspace ask for.
fn built_with(name: &str) -> BTreeSet<String> {
    let tree = [
        "tree",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let text = cargo(&[&tree[..], &["--package", name]].concat());
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn what_runs_on_a_cluster_has_no_solver_and_no_random_numbers_in_its_dependency_tree() {
    for name in [
        "pleach-scheduler",
        "pleach-dealing",
        "pleach-policies",
        "pleach-daemon",
        "pleach-kubernetes",
    ] {
        // `rand_core` has traits and no numbers; hashes name it wherever one crate of the workspace asks them to.
        let is_traits = |dep: &str| dep == "rand_core";
        let research = |dep: &&str| !is_traits(dep) && RESEARCH.iter().any(|word| dep.starts_with(word));
        let tree = built_with(name);
        assert!(tree.contains(name) && tree.contains("serde"), "{tree:?}");
        let found: Vec<&str> = tree.iter().map(String::as_str).filter(research).collect();
        assert!(found.is_empty(), "{name} pulls in {found:?}");
    }
    let baselines = built_with("pleach-baselines");
    assert!(
        RESEARCH.iter().all(|word| baselines.contains(*word)),
        "the words are right"
    );
}

/// Lines of product code and of tests outside the laboratory that name a crate of it, in Rust and in manifests.
fn lines_that_name_lab() -> Vec<String> {
    let mut found = Vec::new();
    for folder in crate_folders() {
        let mut sources = vec![folder.join("Cargo.toml")];
        for part in ["src", "tests", "examples", "benches"] {
            let part = folder.join(part);
            if part.is_dir() && !folder.components().any(|part| part.as_os_str() == "lab") {
                files(&part, "rs", &mut sources);
            }
        }
        let name = folder.strip_prefix(root()).unwrap();
        // This table names them; the tests of the whole workspace may know everything.
        if name.starts_with("lab") || name.starts_with("tests") {
            continue;
        }
        for source in sources {
            let text = std::fs::read_to_string(&source).unwrap();
            let names = |line: &&str| {
                LAB.iter()
                    .any(|(name, _)| line.contains(name) || line.contains(&name.replace('-', "_")))
            };
            let file = source.strip_prefix(root()).unwrap().display().to_string();
            found.extend(
                text.lines()
                    .filter(names)
                    .map(|line| format!("{file}: {}", line.trim())),
            );
        }
    }
    found
}

#[test]
fn one_line_of_the_program_names_the_laboratory_and_nothing_else_outside_it_does() {
    assert_eq!(
        lines_that_name_lab(),
        [
            "cli/Cargo.toml: lab = [\"dep:pleach-lab\"]",
            "cli/Cargo.toml: pleach-lab = { workspace = true, optional = true }",
            "cli/src/plugins.rs: let own = pleach_lab::added_to(own);",
        ]
    );
}
