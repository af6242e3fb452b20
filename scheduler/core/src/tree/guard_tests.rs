//! Guards under trees: hand-worked, and against what they promise on random clusters.

use proptest::prelude::*;

use super::tests::{any_tree, leaf, meta, small_tree, split};
use super::{Tree, TreeError, TreePolicy};
use crate::actions::ActionKind;
use crate::candidate::CandidateKind;
use crate::cluster::tests::{cluster_of, submit};
use crate::cluster::{Capabilities, Cluster, JobState};
use crate::cluster_spec::ClusterSpec;
use crate::guards::Guards;
use crate::heuristics::tests::world::{cluster_with, events, happen, next_end, pending, watched_pass};
use crate::ids::{JobId, Time};
use crate::pass::Pass;
use crate::policy::{DecisionPoint, Policy};

const HOUR: f64 = 3600.0;

fn overdue_after(after_s: f64) -> Guards {
    Guards {
        overdue_after_s: Some(after_s),
        ..Guards::NONE
    }
}

/// Small jobs first, everything else after them, waiting never.
fn small_first(guards: Guards) -> TreePolicy {
    TreePolicy::new(small_tree().with_guards(guards).unwrap())
}

/// On 4 GPUs a job of 4 waits while two of 2 GPUs and ten minutes come every ten minutes: the time at which it starts.
fn start_of_a_wide_job(guards: Guards) -> Option<f64> {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let mut policy = small_first(guards);
    submit(&mut cluster, 2, 600.0);
    watched_pass(&mut cluster, &mut policy, |_, _| {});
    let wide = submit(&mut cluster, 4, HOUR);
    for step in 1..60 {
        // Five minutes apart, so that two GPUs are always busy.
        submit(&mut cluster, 2, 600.0);
        watched_pass(&mut cluster, &mut policy, |_, _| {});
        let until = Time::from_secs_f64(300.0 * f64::from(step));
        while let Some((end, job)) = next_end(&cluster).filter(|(end, _)| *end <= until) {
            cluster.advance(end);
            cluster.finish(job);
            watched_pass(&mut cluster, &mut policy, |_, _| {});
        }
        cluster.advance(until);
        if cluster.job(wide).state == JobState::Running {
            return cluster.job(wide).first_start.map(|start| start.as_secs_f64());
        }
    }
    None
}

#[test]
fn a_wide_job_behind_small_ones_starts_when_it_is_overdue_and_what_runs_has_ended() {
    assert_eq!(start_of_a_wide_job(Guards::NONE), None);
    // Overdue after an hour; at 3,900 s jobs run until 4,200 and 4,500 s at the latest, and nothing that delays it starts.
    let start_s = start_of_a_wide_job(overdue_after(HOUR)).unwrap();
    assert!((HOUR..=4500.0).contains(&start_s), "{start_s}");
}

#[test]
fn a_guard_is_explained_of_what_it_chooses_and_of_what_it_forbids() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let old = submit(&mut cluster, 4, HOUR);
    cluster.advance(Time::from_secs_f64(2.0 * HOUR));
    let new = submit(&mut cluster, 1, 60.0);
    let mut policy = small_first(overdue_after(HOUR));
    let mut pass = Pass::new();
    pass.open(&cluster, &policy.needs());
    let choice = pass.decide(&cluster, &mut policy).unwrap();
    assert_eq!(pass.candidates().get(choice).unwrap().job, Some(old));
    let point = DecisionPoint {
        cluster: &cluster,
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    let text = policy.explain(&point, choice).unwrap().to_string();
    let waited = "has waited 7,200 s (2.0 h), more than 3,600 s (60.0 min)";
    assert!(
        text.contains(&format!("  first by the guard: it {waited}\n")) && !text.contains("not chosen"),
        "{text}"
    );
    let other = pass
        .candidates()
        .iter()
        .position(|row| row.job == Some(new))
        .unwrap();
    let not = format!("not allowed by the guard: another job {waited}, and comes first");
    let text = policy.explain(&point, other).unwrap().to_string();
    assert!(text.contains(&format!("  {not}\n")), "{text}");
    assert_eq!(policy.contrast(&point, (choice, other)).unwrap().to_string(), not);
    // Without the guard the small job is first; with it no change of the small one helps.
    assert_eq!(
        policy.counterfactual(&point, (other, choice), &|_| true).unwrap(),
        None
    );
    let plain = small_first(Guards::NONE);
    assert_eq!(plain.contrast(&point, (other, choice)).unwrap().tier, 1);
    assert!(
        plain
            .counterfactual(&point, (choice, other), &|_| true)
            .unwrap()
            .is_some()
    );
    let text = policy.tree().to_text();
    assert!(
        text.contains("\nGuard: of jobs that have waited more than 3,600 s (60.0 min) the first to arrive"),
        "{text}"
    );
}

#[test]
fn guards_that_a_tree_cannot_obey_are_refused() {
    let refused = |tree: Tree, guards: Guards| match tree.with_guards(guards).unwrap_err() {
        TreeError::Value { key, allowed, .. } => format!("{key}: {allowed}"),
        other => panic!("{other}"),
    };
    for after_s in [0.0, -1.0, 59.0, 2e8, f64::NAN, f64::INFINITY] {
        assert!(refused(small_tree(), overdue_after(after_s)).contains("60 to 100000000"));
    }
    let limited = |preemptions_max| Guards {
        preemptions_max: Some(preemptions_max),
        ..Guards::NONE
    };
    assert!(refused(small_tree(), limited(0)).contains("1 to 1000"));
    let with = |change: fn(&mut crate::policy::Needs)| {
        let mut meta = meta();
        change(&mut meta.needs);
        Tree::new(meta, &[leaf(0, 0.0)]).unwrap()
    };
    let plain = with(|needs| needs.actions = needs.actions.set(ActionKind::Preempt, false));
    assert!(refused(plain, limited(3)).contains("stops no job"));
    let hasty = with(|needs| needs.actions = needs.actions.set(ActionKind::Reserve, false));
    assert!(refused(hasty, overdue_after(HOUR)).contains("\"reservation\": true"));
    assert!(refused(with(|needs| needs.heads = 0), overdue_after(HOUR)).contains("one head or more"));
}

#[test]
fn a_file_keeps_its_guards_and_one_of_version_1_has_none() {
    let guards = Guards {
        overdue_after_s: Some(604_800.0),
        preemptions_max: Some(3),
        ..Guards::NONE
    };
    let tree = small_tree().with_guards(guards).unwrap();
    let text = tree.to_json();
    assert!(
        text.contains("\"guards\": {\"overdue_after_s\":604800.0,\"preemptions_max\":3},\n"),
        "{text}"
    );
    assert!(text.contains("\"version\": 2"));
    let read = Tree::from_json(&text).unwrap();
    assert_eq!((read.guards(), read.to_json()), (guards, text.clone()));
    assert_ne!(tree.hash(), small_tree().hash());
    let error = |text: &str| Tree::from_json(text).unwrap_err().to_string();
    let old = text.replace("\"version\": 2", "\"version\": 1");
    assert!(
        error(&old).contains("none in a file of version 1"),
        "{}",
        error(&old)
    );
    assert!(error(&text.replace("604800.0", "1.0")).contains("guards.overdue_after_s = 1: allowed is 60 to"));
    assert!(error(&text.replace("overdue_after_s", "overdue")).contains("unknown field `overdue`"));
}

/// Where the first overdue job of the queue could start at the latest, as far as is believed.
fn shadow_of(cluster: &Cluster, job: JobId) -> Option<Time> {
    crate::pass::Reservation::earliest(cluster, job).map(|held| held.shadow)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The first overdue job by arrival that there are candidates for is what a guarded tree decides about, whatever its leaves say.
    #[test]
    fn the_first_overdue_job_comes_first_under_every_tree(
        tree in any_tree(),
        mut cluster in cluster_with(2, any::<bool>().boxed(), Capabilities::DEFAULT),
        events in events(40),
        after_s in 60.0..400.0_f64,
        preemptions_max in 1_u32..3,
    ) {
        let mut guards = overdue_after(after_s);
        if tree.meta().needs.actions.contains(ActionKind::Preempt) {
            guards.preemptions_max = Some(preemptions_max);
        }
        let Ok(tree) = tree.with_guards(guards) else { return Ok(()) };
        let mut policy = TreePolicy::new(tree);
        let mut chooser = policy.clone();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, &mut policy, |cluster, pass| {
                let waits = |job: JobId| cluster.now().since(cluster.job(job).submit).as_secs_f64();
                let offered = pass.candidates().iter().filter_map(|row| row.job);
                // Jobs are numbered as they arrive.
                let first = offered.filter(|job| waits(*job) > after_s).min_by_key(|job| job.0);
                let Some(first) = first else { return };
                let mut pass = pass.clone();
                let choice = pass.decide(cluster, &mut chooser).unwrap();
                let row = pass.candidates().get(choice).unwrap();
                let own = pass.candidates().iter().filter(|row| row.job == Some(first));
                let stops_too_often = |row: &crate::candidate::Candidate| {
                    let victims = pass.candidates().victims(row).iter();
                    victims.map(|victim| cluster.job(*victim).num_preemptions).max() >= Some(preemptions_max)
                };
                if own.clone().all(stops_too_often) {
                    return;
                }
                assert_eq!(row.job, Some(first));
                if own.clone().any(|row| row.kind == CandidateKind::Start) {
                    assert_eq!(row.kind, CandidateKind::Start);
                }
            });
            for job in cluster.jobs() {
                prop_assert!(guards.preemptions_max.is_none() || job.num_preemptions <= preemptions_max);
            }
            cluster.check();
        }
    }

    /// With estimates that hold, no preemption and no quotas, the first overdue job's possible start never moves back.
    #[test]
    fn an_overdue_job_is_never_delayed_by_what_comes_after_it(
        cut in 1.0..2e4_f32,
        above in any::<bool>(),
        shape in (1_u32..4, 1_u32..6),
        events in events(60),
        after_s in 60.0..300.0_f64,
    ) {
        let mut meta = meta();
        meta.needs.actions = meta.needs.actions.set(ActionKind::Preempt, false);
        let (low, high) = if above { (-1.0, 1.0) } else { (1.0, -1.0) };
        let nodes = [split("gpu_time_gpu_s", cut, 1, 2), leaf(0, low), leaf(1, high)];
        let tree = Tree::new(meta, &nodes).unwrap().with_guards(overdue_after(after_s)).unwrap();
        let mut policy = TreePolicy::new(tree);
        let mut cluster = cluster_of(&ClusterSpec::uniform(shape.0, shape.1, 1));
        let mut latest: Option<(JobId, Time)> = None;
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, &mut policy, |_, _| {});
            let is_overdue = |job: &JobId| policy.tree().guards().is_overdue(&cluster, *job);
            let first = pending(&cluster).into_iter().find(is_overdue);
            let Some(first) = first else { latest = None; continue };
            let shadow = shadow_of(&cluster, first).unwrap();
            if let Some((job, before)) = latest.filter(|(job, _)| *job == first) {
                prop_assert!(cluster.now() < before, "{job:?} could start at {before:?} and did not");
            }
            if let Some((job, before)) = latest.filter(|(job, _)| *job == first) {
                // What runs is believed to go on for a second more.
                let before = before.max(cluster.now() + Time(1_000_000));
                prop_assert!(shadow <= before, "{job:?} could start at {before:?} and now at {shadow:?}");
            }
            latest = Some((first, shadow));
        }
    }
}
