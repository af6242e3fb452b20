//! Every form of policy through every door: evaluations, tournaments and sweeps, the daemons of Slurm and Kubernetes (one door, which
//! a test of `kubernetes` holds to this one), and the same words where a place is refused. Python's door is held by its own tests.

use std::path::{Path, PathBuf};

use pleach_bench::tournament;
use pleach_daemon::policy::{Decider, Loaded};
use pleach_dealing::{InOrder, Trust};
use pleach_experiments::sweep::policy_unit;
use pleach_experiments::{DOOR, EvaluationConfig, JobsWorld, PolicySpec};
use pleach_network::TrainedNetwork;
use pleach_policies::Artefact;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::formula::ScoreFormula;
use pleach_scheduler::tree::{BUNDLE_FORMAT, BUNDLE_VERSION, BundledFile, Manifest, Tree};
use pleach_scheduler::{
    ActionKind, ActionSet, ClassId, Cluster, ClusterSpec, Decision, Estimate, ModelClass, Planner,
    PolicyPlanner, Provenance, Resources, Submission, TenantId, heuristics,
};

/// Decisions that are compared of each form, at least.
const NUM_DECISIONS: usize = 200;
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../checkpoints/reference");
/// As `pleach.export_onnx` writes it; `pytorch.py` beside it says how.
const PYTORCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/networks/pytorch.onnx");

fn capabilities() -> Capabilities {
    Capabilities::DEFAULT.with_actions(ActionSet::of(ActionKind::Preempt))
}

/// A queue of twenty-four jobs on sixteen GPUs; another one for each number.
fn queue(number: u64) -> Cluster {
    let spec = ClusterSpec::uniform(4, 4, 2);
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], capabilities()).unwrap();
    let mut state = number;
    for _ in 0..24 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = (state >> 33) as u32;
        cluster
            .submit(Submission {
                tenant: TenantId(0),
                class: ClassId(0),
                num_gpus: 1 + drawn % 3,
                estimate_s: Estimate {
                    value: f64::from(60 + drawn % 7200),
                    provenance: Provenance::Predicted,
                },
                resources: Resources::WHOLE_GPU,
            })
            .unwrap();
    }
    cluster
}

/// What is decided about queue after queue.
fn decisions(mut decide: impl FnMut(&mut Cluster)) -> Vec<Decision> {
    let mut all = Vec::new();
    for number in 0.. {
        let mut cluster = queue(number);
        decide(&mut cluster);
        let before = all.len();
        cluster.take_decisions(&mut all);
        assert!(all.len() > before, "nothing is decided about queue {number}");
        if all.len() >= NUM_DECISIONS {
            break;
        }
    }
    all
}

fn of_spec(spec: &PolicySpec) -> Vec<Decision> {
    decisions(|cluster| spec.make_planner().unwrap().plan(cluster).unwrap())
}

fn of_daemon(text: &str) -> Vec<Decision> {
    let loaded = || Loaded::of(text, capabilities()).unwrap();
    decisions(|cluster| match loaded().decider {
        Decider::Policy(policy) => PolicyPlanner::new(policy).plan(cluster).unwrap(),
        Decider::Dealing(dealing) => {
            let dealer = dealing.dealer();
            dealer.deal(cluster, Trust::default(), true, &[]).unwrap();
        }
        Decider::Order(ranking) => InOrder::new(text, ranking.ranker).plan(cluster).unwrap(),
    })
}

fn unit(text: &str) -> EvaluationConfig {
    let mut config = EvaluationConfig {
        policy: vec![text.to_owned()],
        ..EvaluationConfig::default()
    };
    config.scheduling.preemption = true;
    config
}

/// Files of all forms in a folder: networks as ONNX, a tree without `.json`, a run's folder with its list, a bundle.
fn forms(folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let tree = format!("{REFERENCE}/../../tests/trees/PhillyGang-v1-tree.json");
    let network = format!("{REFERENCE}/PhillyGang-v1.ckpt");
    let onnx = TrainedNetwork::load(network.as_ref()).unwrap().to_onnx().unwrap();
    std::fs::write(folder.join("network.onnx"), onnx).unwrap();
    std::fs::copy(&tree, folder.join("plain")).unwrap();
    let formula = ScoreFormula::of("short", "40 - log1p(duration_s) - num_gpus / 8").unwrap();
    std::fs::write(folder.join("short.json"), formula.sealed().to_json()).unwrap();
    run(&folder.join("run"), &network);
    bundle(&folder.join("bundle"), &tree);
    let files = [
        tree,
        at("plain"),
        at("bundle"),
        at("short.json"),
        format!("{REFERENCE}/index.json"),
        network,
        PYTORCH.to_owned(),
        at("network.onnx"),
        at("run"),
    ];
    let names = ["sjf", "easy", "las-deal", "belief-deal", "index"].map(str::to_owned);
    let plain: Vec<String> = names.into_iter().chain(files).collect();
    // Dealers need no passes, and networks that learned to start jobs are refused.
    let is_network = |text: &str| ["ckpt", "onnx", "run"].iter().any(|end| text.ends_with(end));
    let chosen = |text: &&String| !text.ends_with("-deal") && !text.contains("index") && !is_network(text);
    let dealt = plain.iter().filter(chosen).map(|text| format!("deal:{text}"));
    let ordered = plain.iter().map(|text| format!("order:{text}"));
    let labelled = plain.iter().map(|text| format!("mine={text}"));
    plain
        .iter()
        .cloned()
        .chain(dealt)
        .chain(ordered)
        .chain(labelled)
        .collect()
}

/// The folder of a finished training.
fn run(folder: &Path, network: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::copy(network, folder.join("network.ckpt")).unwrap();
    let bytes = std::fs::read(network).unwrap();
    let (size_bytes, sha256) = pleach_policies::hash_reader(bytes.as_slice(), u64::MAX).unwrap();
    let list = [Artefact {
        file: "network.ckpt".into(),
        size_bytes,
        sha256,
    }];
    std::fs::write(folder.join("artefacts.json"), serde_json::to_vec(&list).unwrap()).unwrap();
}

fn bundle(folder: &Path, tree: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let tree = Tree::load(tree.as_ref()).unwrap();
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
    std::fs::write(folder.join("tree.json"), &text).unwrap();
    std::fs::write(
        folder.join("manifest.json"),
        serde_json::to_vec(&manifest).unwrap(),
    )
    .unwrap();
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pleach-doors-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn every_form_of_policy_decides_alike_behind_every_door() {
    let folder = folder("forms");
    for text in forms(&folder) {
        let opened = DOOR.open(&text).unwrap();
        let [spec] = opened.as_slice() else {
            panic!("{text}: {} policies", opened.len());
        };
        let ours = of_spec(spec);
        assert!(ours.len() >= NUM_DECISIONS);
        let config = EvaluationConfig {
            policy: vec![text.clone()],
            ..EvaluationConfig::default()
        };
        let evaluated = JobsWorld::open(&config).unwrap().policies;
        let played = tournament::field(std::slice::from_ref(&text)).unwrap();
        for (door, specs) in [("evaluate", evaluated), ("tournament", played)] {
            assert_eq!((specs.len(), specs[0].name()), (1, spec.name()), "{door}: {text}");
            assert!(of_spec(&specs[0]) == ours, "{door}: {text}");
        }
        policy_unit::check(&unit(&text)).unwrap();
        assert!(of_daemon(&text) == ours, "daemon: {text}");
        let name = Loaded::of(&text, capabilities()).unwrap().name;
        assert_eq!(
            text.starts_with("mine="),
            name == "mine",
            "{text} is called {name}"
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_refused_is_refused_in_the_same_words_at_every_door() {
    let folder = folder("refused");
    let at = |name: &str| folder.join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("noise.ckpt", "not a checkpoint");
    write("empty", "");
    write("cut.json", "{\"format\": \"pleach-tree\",\n\"nodes\": [");
    write("other.json", "{\"format\": 1}");
    write("typo.json", r#"{"version": 1, "weights": {"gnag": -1.0}}"#);
    std::fs::create_dir(folder.join("nothing")).unwrap();
    std::fs::create_dir(folder.join("changed")).unwrap();
    run(
        &folder.join("changed"),
        &format!("{REFERENCE}/PhillyGang-v1.ckpt"),
    );
    std::fs::copy(
        format!("{REFERENCE}/PhillyShare-v1.ckpt"),
        folder.join("changed/network.ckpt"),
    )
    .unwrap();
    for (text, words) in [
        ("sfj".to_owned(), "Did you mean sjf?"),
        ("Tiresais".to_owned(), "Did you mean tiresias?"),
        ("las-dael".to_owned(), "Did you mean las-deal?"),
        ("mine=sfj".to_owned(), "Did you mean sjf?"),
        ("deal:sfj".to_owned(), "Did you mean sjf?"),
        ("deal:las-deal".to_owned(), "leave `deal:` out"),
        (at("missing/tree.json"), "there is no such file"),
        (at("noise.ckpt"), "does not begin with"),
        (at("empty"), "policy file"),
        (at("cut.json"), "line 2"),
        (at("other.json"), "policy file"),
        (at("typo.json"), "gang has the nearest name"),
        (at("nothing"), "a folder with network.ckpt or tree.json"),
        (at("changed"), "It was changed after the run had finished."),
    ] {
        let said = DOOR.open(&text).unwrap_err().to_string();
        assert!(said.contains(words), "{text}: {said}");
        let config = EvaluationConfig {
            policy: vec![text.clone()],
            ..EvaluationConfig::default()
        };
        let doors = [
            ("evaluate", JobsWorld::open(&config).err().unwrap().to_string()),
            (
                "tournament",
                tournament::field(std::slice::from_ref(&text))
                    .unwrap_err()
                    .to_string(),
            ),
            ("sweep", policy_unit::check(&unit(&text)).unwrap_err().to_string()),
            (
                "daemon",
                Loaded::of(&text, capabilities()).unwrap_err().to_string(),
            ),
        ];
        for (door, other) in doors {
            assert_eq!(other, said, "{door}: {text}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn names_open_everywhere_but_for_planners_that_need_the_simulator_and_these_are_told_so() {
    let is_carried_out = |name: &&&str| {
        let chosen = heuristics::by_name(name).unwrap().needs().actions;
        chosen.difference(ActionSet::IN_DAEMONS).is_empty()
    };
    let heuristics = heuristics::names().iter().filter(is_carried_out);
    // Rules that choose sizes too: where no job is elastic, there is one size.
    let is_on_clusters = |name: &&&str| {
        let rival = DOOR.open_one(name).unwrap();
        rival.is_planner() || rival.check(capabilities()).is_ok()
    };
    let rivals = pleach_policies::RIVALS.iter().map(|rival| &rival.info.name);
    let rivals = rivals.filter(is_on_clusters);
    let on_clusters: Vec<&str> = heuristics
        .chain(&pleach_dealing::RoundDealer::NAMES)
        .chain(rivals)
        .copied()
        .collect();
    crate::with_laboratory();
    for name in DOOR.names() {
        DOOR.open_one(name).unwrap();
        match Loaded::of(name, capabilities()) {
            Ok(loaded) => assert!(on_clusters.contains(&name), "{}", loaded.name),
            Err(refused) => {
                assert!(!on_clusters.contains(&name), "{name}: {refused}");
                let said = refused.to_string();
                let told = [
                    "in the simulator alone",
                    "which no daemon carries out",
                    "no more than the cluster can do",
                ];
                assert!(
                    said.contains(&format!("policy = {name}: "))
                        && told.iter().any(|words| said.contains(words)),
                    "{said}"
                );
            }
        }
    }
}
