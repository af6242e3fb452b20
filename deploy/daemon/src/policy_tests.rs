//! Policies that are read and refused, and what is said of them.

use super::*;
use pleach_scheduler::ActionKind;
use pleach_scheduler::tree::Tree;
use std::path::PathBuf;

fn reference() -> Tree {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    Tree::load(path.as_ref()).unwrap()
}

#[test]
fn what_no_daemon_carries_out_is_refused_by_name() {
    let settings = RoundSettings {
        preemption: true,
        ..RoundSettings::default()
    };
    let capabilities = crate::fleet::capabilities(&settings);
    assert!(
        capabilities
            .actions()
            .difference(ActionSet::IN_DAEMONS)
            .is_empty()
    );
    for text in ["sjf-resize", "deal:sjf-resize"] {
        let refused = Loaded::of(text, capabilities).unwrap_err().to_string();
        let expected = "It needs resizing of running jobs, which no daemon carries out";
        assert!(
            refused.contains("sjf-resize") && refused.contains(expected),
            "{refused}"
        );
    }
}

#[test]
fn the_fallback_of_the_file_holds_where_the_settings_name_none_and_is_held_to_the_cluster() {
    let capabilities = Capabilities::default();
    let unsealed = reference().with_gpu_types_max(None).unwrap();
    let unsealed = unsealed.with_fallback(None).unwrap();
    let plain = Loaded::opened(&PolicySpec::tree("t", unsealed), capabilities).unwrap();
    let of = |loaded: &Loaded, named: Option<&str>| {
        let settings = RoundSettings {
            fallback: named.map(str::to_owned),
            ..RoundSettings::default()
        };
        let found = loaded.fallback(&settings);
        found
            .map(|fallback| fallback.name)
            .map_err(|error| error.to_string())
    };
    assert_eq!(of(&plain, None).unwrap(), "easy");
    assert_eq!(of(&plain, Some("fifo")).unwrap(), "fifo");
    let sealed = |name: &str| {
        let tree = reference().with_fallback(Some(name.into())).unwrap();
        Loaded::opened(&PolicySpec::tree("t", tree), capabilities).unwrap()
    };
    assert_eq!(of(&sealed("sjf-reserve"), None).unwrap(), "sjf-reserve");
    assert_eq!(of(&sealed("sjf-reserve"), Some("fifo")).unwrap(), "fifo");
    // A fallback that would stop jobs does without where none may be stopped.
    assert!(!capabilities.actions().contains(ActionKind::Preempt));
    assert_eq!(of(&sealed("srtf"), None).unwrap(), "srtf");
    // A file that names none that there is, is refused when it is read.
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("tree.json");
    let text = reference().with_fallback(Some("sjf".into())).unwrap().to_json();
    std::fs::write(
        &path,
        text.replace("\"fallback\": \"sjf\"", "\"fallback\": \"sfj\""),
    )
    .unwrap();
    let refused = Loaded::of(&path.display().to_string(), capabilities)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("fallback = \"sfj\": allowed is "), "{refused}");
}

#[test]
fn a_tree_that_was_trained_with_other_estimates_is_told_with_the_fix() {
    let told = |trained_with: Provenance, from: EstimatesFrom| {
        let text = reference().to_json();
        let at = text.find("\"estimates\": [").unwrap();
        let end = at + text[at..].find(']').unwrap();
        let kind = serde_json::to_string(&trained_with).unwrap();
        let text = format!("{}\"estimates\": [{kind}{}", &text[..at], &text[end..]);
        let tree = Tree::from_json(&text).unwrap();
        let loaded = Loaded::opened(&PolicySpec::tree("t", tree), Capabilities::default()).unwrap();
        let estimates = EstimateSettings {
            from,
            ..EstimateSettings::default()
        };
        loaded.warnings_with(&estimates)
    };
    use {EstimatesFrom::*, Provenance::*};
    assert!(told(UserLimit, Limit).is_empty() && told(Predicted, History).is_empty());
    for (trained_with, from, words) in [
        (Predicted, Limit, "set `from = \"history\"` in `[estimates]`"),
        (UserLimit, History, "set `from = \"limit\"` in `[estimates]`"),
        (
            Oracle,
            Limit,
            "here only time limits are known (UserLimit): `from = \"history\"`",
        ),
        (Oracle, History, "training with `--estimates history`"),
    ] {
        let found = told(trained_with, from);
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }
}

#[test]
fn a_bundle_is_a_policy_and_is_refused_where_a_file_of_it_was_changed() {
    use pleach_scheduler::tree::{BUNDLE_FORMAT, BUNDLE_VERSION, BundledFile, Manifest};
    let folder = tempfile::tempdir().unwrap();
    let tree = reference();
    let text = tree.to_json();
    let manifest = Manifest {
        format: BUNDLE_FORMAT.into(),
        version: BUNDLE_VERSION,
        name: tree.meta().name.clone(),
        tree_hash: tree.hash(),
        made_by: "a test".into(),
        commit: None,
        trained_by: tree.meta().trained_by.clone(),
        recorded_on: tree.visits().unwrap().recorded_on.clone(),
        files: vec![BundledFile::of("tree.json", text.as_bytes())],
    };
    std::fs::write(folder.path().join("tree.json"), &text).unwrap();
    std::fs::write(
        folder.path().join("manifest.json"),
        serde_json::to_vec(&manifest).unwrap(),
    )
    .unwrap();
    let place = folder.path().display().to_string();
    let loaded = Loaded::of(&place, Capabilities::default()).unwrap();
    assert_eq!(loaded.tree.unwrap().tree(), &tree);
    std::fs::write(folder.path().join("tree.json"), text + "\n").unwrap();
    let refused = Loaded::of(&place, Capabilities::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("bundle: tree.json: it has "), "{refused}");
}

#[test]
fn where_a_policy_leaves_a_cluster_to_another_rule_is_known_when_it_is_read() {
    use pleach_scheduler::cluster::NodeState;
    let node = |name: &str, kind: &str| crate::snapshot::NodeSeen {
        name: name.into(),
        gpu_type: kind.into(),
        num_gpus: 4,
        // Which GPUs are in use, and whether the node is up, are things of the moment.
        num_gpus_used: 4,
        num_cpus_free: 0,
        host: None,
        state: NodeState::Down,
        shared: None,
    };
    let of = |kinds: &[&str]| Snapshot {
        version: crate::snapshot::VERSION,
        taken_s: 0,
        site: crate::snapshot::Site::default(),
        nodes: kinds.iter().map(|kind| node(kind, kind)).collect(),
        jobs: Vec::new(),
    };
    let (one, two) = (of(&["a100"]), of(&["a100", "v100"]));
    let settings = RoundSettings {
        preemption: true,
        ..RoundSettings::default()
    };
    let capabilities = crate::fleet::capabilities(&settings);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.json").display().to_string();
    let tree = reference().with_fallback(Some("fifo".into())).unwrap();
    tree.with_gpu_types_max(Some(1))
        .unwrap()
        .save(path.as_ref())
        .unwrap();
    for policy in [path.clone(), format!("deal:{path}")] {
        let loaded = Loaded::of(&policy, capabilities).unwrap();
        assert_eq!(loaded.aside_on(&one, &settings).unwrap(), None);
        let why = loaded.aside_on(&two, &settings).unwrap().unwrap();
        assert!(
            why.starts_with("fifo decides: the cluster has 2 GPU types, and "),
            "{why}"
        );
    }
    let sjf = Loaded::of("sjf", capabilities).unwrap();
    assert_eq!(sjf.aside_on(&two, &settings).unwrap(), None);
    // A network that corrects a heuristic, and learned on one GPU type.
    let network = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../checkpoints/reference/PhillyGang-v1.ckpt"
    );
    let narrow = pleach_network::TrainedNetwork::load(network.as_ref()).unwrap();
    let loaded = Loaded::of(network, capabilities).unwrap();
    let is_aside = loaded.aside_on(&two, &settings).unwrap().is_some();
    assert_eq!(
        is_aside,
        narrow.contract.one_type && narrow.contract.prior.is_some()
    );
}
