use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::tree::Tree;
use pleach_scheduler::{Capabilities, ExternalId};

use super::*;
use crate::config::LogSettings;
use crate::memory::Memory;
use pleach_policies::PolicySpec;

use crate::round::{self, Deciders};
use crate::snapshot::{JobSeen, NodeSeen, Site, Terms, VERSION};
use crate::state::{DRIFT, State};

/// The reference tree of four leaves, judged where all leaves are met alike.
fn sealed() -> Loaded {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    let tree = Tree::load(path.as_ref()).unwrap();
    let mut visits = Visits::none(tree.num_leaves());
    (0..1000).for_each(|_| visits.add(&[0, 1, 2, 3]));
    Loaded::opened(
        &PolicySpec::tree("t", tree.with_visits(visits).unwrap()),
        Capabilities::default(),
    )
    .unwrap()
}

fn settings(on_drift: OnDrift) -> RoundSettings {
    RoundSettings {
        on_drift,
        drift_window: 100,
        ..RoundSettings::default()
    }
}

/// Two nodes and jobs that wait; `number` tells one from the next.
fn snapshot(number: u64) -> Snapshot {
    let node = |name: &str| NodeSeen {
        name: name.into(),
        gpu_type: "a100".into(),
        num_gpus: 8,
        num_gpus_used: 0,
        num_cpus_free: 64,
        host: None,
        shared: None,
        state: NodeState::Up,
    };
    let job = |number: u64| JobSeen {
        id: number.to_string().parse::<ExternalId>().unwrap(),
        phase: Phase::Waiting,
        account: String::new(),
        user: String::new(),
        submit_s: 1_795_000_000,
        start_s: None,
        limit_s: Some(3600),
        num_nodes: 1,
        gpus_per_node: 4,
        is_packed: false,
        gpu_type: None,
        share: None,
        gpu_types: Vec::new(),
        num_cpus: 4,
        nodes: Vec::new(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    };
    Snapshot {
        version: VERSION,
        taken_s: 1_795_000_100,
        site: Site::default(),
        nodes: vec![node("n1"), node("n2")],
        jobs: vec![job(2 * number), job(2 * number + 1)],
    }
}

/// Rounds of ten decisions each, all of which end in one leaf; what was new.
fn far(drift: &mut Drift, first: u64, rounds: u64) -> Vec<String> {
    let offered = vec![vec![2; 5]; 10];
    let news = (first..first + rounds).map(|number| drift.count(&snapshot(number), &offered));
    news.flatten().collect()
}

#[test]
fn only_a_tree_with_visits_is_watched() {
    let mut plain = sealed();
    assert!(Drift::new(&plain, &settings(OnDrift::Warn)).is_some());
    plain.tree = None;
    assert!(Drift::new(&plain, &settings(OnDrift::Warn)).is_none());
    assert!(Drift::new(&Loaded::heuristic("easy").unwrap(), &settings(OnDrift::Warn)).is_none());
}

#[test]
fn drift_is_told_once_and_its_end_too_and_rounds_in_which_nothing_happened_count_once() {
    let mut drift = Drift::new(&sealed(), &settings(OnDrift::Warn)).unwrap();
    assert!(far(&mut drift, 0, 9).is_empty() && drift.psi().is_none());
    // The same jobs and nodes again, however often, and rounds without a decision.
    let offered = vec![vec![2; 5]; 10];
    for _ in 0..50 {
        assert_eq!(drift.count(&snapshot(8), &offered), None);
    }
    assert_eq!(drift.count(&snapshot(77), &[]), None);
    assert!(drift.psi().is_none());
    let news = far(&mut drift, 9, 1);
    assert!(
        news.len() == 1 && news[0].contains("(stability index ") && news[0].ends_with("limit 1)"),
        "{news:?}"
    );
    assert!(drift.is_drifted() && drift.warning().is_some() && drift.degraded().is_none());
    assert!(far(&mut drift, 10, 20).is_empty(), "it goes on and is told once");
    let near = vec![vec![0, 1, 2, 3]; 10];
    let news: Vec<String> = (30..40)
        .filter_map(|number| drift.count(&snapshot(number), &near))
        .collect();
    assert!(
        news.len() == 1 && news[0].starts_with("drift: it is over"),
        "{news:?}"
    );
    assert!(drift.warning().is_none());
}

#[test]
fn where_it_is_asked_for_the_fallback_decides_also_after_a_restart_until_the_policy_is_read_again() {
    let settings = settings(OnDrift::Fallback);
    let loaded = sealed();
    let mut drift = Drift::new(&loaded, &settings).unwrap();
    let news = far(&mut drift, 0, 10);
    assert!(
        news[0].ends_with("the fallback decides until the policy is read again"),
        "{news:?}"
    );
    assert_eq!(drift.degraded().as_ref(), news.first());
    let folder = tempfile::tempdir().unwrap();
    let state = State::take(folder.path(), LogSettings::default()).unwrap();
    assert_eq!(state.read_watch::<Remembered>(DRIFT), (None, None));
    state.write_watch(DRIFT, drift.remembered()).unwrap();
    let again = |settings: &RoundSettings| {
        let (remembered, complaint) = state.read_watch(DRIFT);
        assert_eq!(complaint, None);
        Drift::new(&loaded, settings)
            .unwrap()
            .going_on(remembered, settings)
    };
    let mut went_on = again(&settings);
    assert_eq!(went_on.remembered(), drift.remembered());
    assert!(went_on.degraded().is_some());
    // The window goes on too: the next step is five decisions away, and is one of the same decisions.
    assert_eq!(far(&mut went_on, 50, 1), Vec::<String>::new());
    assert!(
        Drift::new(&loaded, &settings).unwrap().degraded().is_none(),
        "read again"
    );
    let warn = RoundSettings {
        on_drift: OnDrift::Warn,
        ..settings.clone()
    };
    assert!(again(&warn).degraded().is_none() && again(&warn).is_drifted());
    let longer = RoundSettings {
        drift_window: 200,
        ..settings.clone()
    };
    assert!(again(&longer).psi().is_none(), "another window begins anew");
    for broken in [
        "",
        "{\"tree_hash\":",
        "null",
        "{\"tree_hash\":\"a\",\"window\":{},\"psi\":0,\"is_degraded\":false}",
    ] {
        std::fs::write(folder.path().join("drift.json"), broken).unwrap();
        let (remembered, complaint) = state.read_watch::<Remembered>(DRIFT);
        assert!(
            remembered.is_none() && complaint.unwrap().contains("drift.json"),
            "{broken}"
        );
    }
}

#[test]
fn a_round_tells_what_a_tree_was_offered_and_a_round_of_the_fallback_why() {
    let (mut policy, mut fallback) = (sealed(), Loaded::heuristic("easy").unwrap());
    let (memory, settings) = (Memory::default(), RoundSettings::default());
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    let seen = snapshot(1);
    let plan = round::plan(&seen, &memory, &mut deciders, &settings, true, &mut || false).unwrap();
    assert!(plan.fallback.is_none() && plan.offered.len() >= plan.decisions.len());
    assert!(
        plan.offered
            .iter()
            .all(|leaves| !leaves.is_empty() && leaves.iter().all(|leaf| *leaf < 4))
    );
    let plan = round::by_fallback(&seen, &memory, &mut fallback, &settings, true, "drift: far").unwrap();
    assert_eq!(plan.fallback.as_deref(), Some("easy answered: drift: far"));
    assert!(plan.offered.is_empty() && plan.decisions.len() == 2);
}
