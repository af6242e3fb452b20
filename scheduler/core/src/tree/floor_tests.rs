//! Floors of tenants under trees: hand-worked, and against what they promise on random clusters.

use proptest::prelude::*;

use super::tests::{any_tree, leaf, meta, small_tree};
use super::{Tree, TreeError, TreePolicy};
use crate::candidate::CandidateKind;
use crate::cluster::tests::{cluster_of, submit_for};
use crate::cluster::{Capabilities, Cluster, JobState};
use crate::cluster_spec::{ClusterSpec, TenantSpec};
use crate::guards::Guards;
use crate::heuristics::tests::world::{cluster_with, events, happen, watched_pass};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, LensSet};
use crate::pass::Pass;
use crate::policy::DecisionPoint;

const HOUR: f64 = 3600.0;

fn floor(share: f64) -> Guards {
    Guards {
        tenant_floor: Some(share),
        ..Guards::NONE
    }
}

/// Four GPUs on one node, two tenants that may borrow.
fn two_tenants() -> Cluster {
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    let tenant = |id| TenantSpec {
        name: format!("t{id}"),
        quota_gpus: 2,
    };
    spec.tenants = (0..2).map(tenant).collect();
    spec.borrowing = true;
    cluster_of(&spec)
}

fn running(cluster: &Cluster) -> Vec<JobId> {
    let ids = (0..cluster.jobs().len() as u32).map(JobId);
    ids.filter(|job| cluster.job(*job).state == JobState::Running)
        .collect()
}

/// Starts what a tree that likes small jobs starts, in its order.
fn started(cluster: &mut Cluster, guards: Guards) -> Vec<JobId> {
    let mut policy = TreePolicy::new(small_tree().with_guards(guards).unwrap());
    let mut order = Vec::new();
    watched_pass(cluster, &mut policy, |cluster, _| {
        let news: Vec<JobId> = running(cluster)
            .into_iter()
            .filter(|job| !order.contains(job))
            .collect();
        order.extend(news);
    });
    let news: Vec<JobId> = running(cluster)
        .into_iter()
        .filter(|job| !order.contains(job))
        .collect();
    order.extend(news);
    order
}

#[test]
fn a_tenant_below_its_floor_starts_before_jobs_that_the_tree_likes_better() {
    let queue = || {
        let mut cluster = two_tenants();
        let small: Vec<JobId> = (0..4).map(|_| submit_for(&mut cluster, 0, 1, 60.0)).collect();
        let long = submit_for(&mut cluster, 1, 2, 2.0 * HOUR);
        (cluster, small, long)
    };
    let (mut cluster, small, _) = queue();
    assert_eq!(started(&mut cluster, Guards::NONE), small);
    // One small job is half of its tenant's quota; then the other tenant holds least.
    let (mut cluster, small, long) = queue();
    assert_eq!(started(&mut cluster, floor(0.5)), [small[0], long, small[1]]);
}

#[test]
fn where_nothing_of_the_tenant_fits_gpus_are_held_back_for_it() {
    // Three of four GPUs are busy for ten minutes; a gang of four waits, and a job of one that would fit.
    let starts_beside = |run_s: f64, guards: Guards| {
        let mut cluster = two_tenants();
        submit_for(&mut cluster, 0, 3, 600.0);
        started(&mut cluster, Guards::NONE);
        let gang = submit_for(&mut cluster, 1, 4, HOUR);
        let single = submit_for(&mut cluster, 0, 1, run_s);
        started(&mut cluster, guards);
        assert_eq!(cluster.job(gang).state, JobState::Pending);
        cluster.job(single).state == JobState::Running
    };
    assert!(starts_beside(700.0, Guards::NONE));
    assert!(!starts_beside(700.0, floor(0.5)), "the gang would start later");
    assert!(
        starts_beside(500.0, floor(0.5)),
        "it ends before the gang could start"
    );
}

#[test]
fn a_floor_is_explained_of_what_it_chooses_and_of_what_it_forbids() {
    let mut cluster = two_tenants();
    submit_for(&mut cluster, 0, 1, 60.0);
    started(&mut cluster, Guards::NONE);
    let small = submit_for(&mut cluster, 0, 1, 60.0);
    let long = submit_for(&mut cluster, 1, 2, 2.0 * HOUR);
    let mut policy = TreePolicy::new(small_tree().with_guards(floor(0.5)).unwrap());
    let mut pass = Pass::new();
    pass.open(&cluster, &crate::policy::Policy::needs(&policy));
    let choice = pass.decide(&cluster, &mut policy).unwrap();
    assert_eq!(pass.candidates().get(choice).unwrap().job, Some(long));
    let point = DecisionPoint {
        cluster: &cluster,
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    let text = policy.explain(&point, choice).unwrap().to_string();
    let below = "holds 0 % of its quota, less than 50 %";
    assert!(
        text.contains(&format!("first by the guard: its tenant {below}")),
        "{text}"
    );
    let other = pass
        .candidates()
        .iter()
        .position(|row| row.job == Some(small))
        .unwrap();
    let text = policy.explain(&point, other).unwrap().to_string();
    assert!(
        text.contains(&format!(
            "not allowed by the guard: another tenant {below}, and comes first"
        )),
        "{text}"
    );
    let text = policy.tree().to_text();
    assert!(
        text.contains("\nGuard: of tenants that hold less than 50 % of their quota"),
        "{text}"
    );
}

#[test]
fn floors_that_a_tree_cannot_obey_are_refused_and_others_are_kept() {
    let refused = |tree: Tree, guards: Guards| match tree.with_guards(guards).unwrap_err() {
        TreeError::Value { key, allowed, .. } => format!("{key}: {allowed}"),
        other => panic!("{other}"),
    };
    for share in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
        assert!(refused(small_tree(), floor(share)).contains("guards.tenant_floor: above 0, to 1"));
    }
    let mut meta = meta();
    meta.needs.lenses = LensSet::of(Lens::Arrival);
    let blind = Tree::new(meta, &[leaf(0, 0.0)]).unwrap();
    assert!(refused(blind, floor(0.5)).contains("\"tenant-deficit\" among the lenses"));
    let tree = small_tree().with_guards(floor(0.25)).unwrap();
    let text = tree.to_json();
    assert!(text.contains("\"guards\": {\"tenant_floor\":0.25},\n"), "{text}");
    assert_eq!(Tree::from_json(&text).unwrap().guards(), floor(0.25));
    assert_ne!(tree.hash(), small_tree().hash());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the leaves say, the tenant that holds the least share of its quota, below the floor, is decided about first; and what is
    /// overdue before it.
    #[test]
    fn the_tenant_furthest_below_its_floor_comes_first_under_every_tree(
        tree in any_tree(),
        mut cluster in cluster_with(2, any::<bool>().boxed(), Capabilities::DEFAULT),
        events in events(40),
        share in 0.05..1.0_f64,
        overdue_after_s in prop::option::of(60.0..400.0_f64),
    ) {
        let guards = Guards { overdue_after_s, ..floor(share) };
        let Ok(tree) = tree.with_guards(guards) else { return Ok(()) };
        let mut policy = TreePolicy::new(tree);
        let mut chooser = policy.clone();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, &mut policy, |cluster, pass| {
                let is_overdue = |job: JobId| {
                    let waited_s = cluster.now().since(cluster.job(job).submit).as_secs_f64();
                    overdue_after_s.is_some_and(|after_s| waited_s > after_s)
                };
                let offered: Vec<JobId> = pass.candidates().iter().filter_map(|row| row.job).collect();
                let use_of = |job: &JobId| {
                    let tenant = &cluster.tenants()[cluster.job(*job).request.tenant.index()];
                    tenant.used_gpus() / f64::from(tenant.quota_gpus)
                };
                let least = offered.iter().map(use_of).fold(f64::INFINITY, f64::min);
                if cluster.tenants().len() < 2 || offered.iter().any(|job| is_overdue(*job)) || least >= share {
                    return;
                }
                let mut pass = pass.clone();
                let choice = pass.decide(cluster, &mut chooser).unwrap();
                let row = pass.candidates().get(choice).unwrap();
                let job = row.job.expect("a tenant below its floor is not held back");
                assert!((use_of(&job) - least).abs() < 1e-12, "{} and not {least}", use_of(&job));
                let tenant = cluster.job(job).request.tenant;
                let starts = |row: &crate::candidate::Candidate| {
                    row.kind == CandidateKind::Start
                        && row.partner.is_none()
                        && row.job.is_some_and(|job| cluster.job(job).request.tenant == tenant)
                };
                if pass.candidates().iter().any(starts) {
                    assert!(starts(row), "{row:?}");
                }
            });
            cluster.advance(Time(cluster.now().0 + 1));
            cluster.check();
        }
    }
}
