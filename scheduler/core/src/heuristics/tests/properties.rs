//! What holds for every heuristic on every small cluster.

use proptest::prelude::*;

use super::world::{cluster, events, happen, next_end, pending, watched_pass};
use crate::ActionKind;
use crate::actions::Effect;
use crate::candidate::{CandidateKind, CandidateSet, MAX_CANDIDATES};
use crate::cluster::decision::Decision;
use crate::cluster::{Cluster, JobState};
use crate::error::PolicyError;
use crate::heuristics::{by_name, names};
use crate::ids::{JobId, Time};
use crate::pass::{Pass, Reservation};
use crate::policy::{DecisionPoint, Needs, Policy};

/// A heuristic that is given the candidates of a learned policy.
struct Widened(Box<dyn Policy>);

impl Policy for Widened {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn needs(&self) -> Needs {
        Needs {
            observation: false,
            ..Needs::full()
        }
    }
    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.0.score(point, scores)
    }
}

fn heuristic() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(names())
}

fn is_work_conserving(name: &str) -> bool {
    ["fifo-skip", "sjf", "gpu-time", "packing", "fair-share"].contains(&name)
}

fn hardware(cluster: &Cluster) -> String {
    format!("{:?} {:?} {:?}", cluster.nodes(), cluster.racks(), cluster.gpus())
}

fn tables(cluster: &Cluster) -> String {
    format!(
        "{} {:?} {:?}",
        hardware(cluster),
        cluster.tenants(),
        pending(cluster)
    )
}

/// Every candidate can be carried out on a copy, and does what it says.
fn check_candidates(cluster: &Cluster, pass: &Pass, needs: &Needs) {
    let set: &CandidateSet = pass.candidates();
    assert!(set.len() <= MAX_CANDIDATES);
    assert_eq!(set.get(0).unwrap().kind, CandidateKind::Hold);
    for (index, candidate) in set.iter().enumerate().skip(1) {
        let job = candidate.job.unwrap();
        assert_eq!(cluster.job(job).state, JobState::Pending);
        let (mut copy, mut after) = (cluster.clone(), pass.clone());
        after.act(&mut copy, needs, index);
        copy.check();
        let row = copy.job(job);
        let held: u32 = row.placement.iter().map(|slice| slice.num_gpus()).sum();
        match candidate.kind.row().effect {
            Effect::End => panic!("only the first candidate holds"),
            Effect::HoldBack => {
                assert_eq!(after.reservation().unwrap().job, job);
                assert_eq!(held, 0);
            }
            Effect::Run => {
                assert_eq!((row.state, held), (JobState::Running, row.request.num_gpus));
                let victims = set.victims(candidate);
                assert_eq!(candidate.kind == CandidateKind::Preempt, !victims.is_empty());
                for victim in victims {
                    assert_eq!(copy.job(*victim).state, JobState::Pending);
                }
                if victims.is_empty() {
                    // To place and to release at once is to do nothing, in every table and, by the check, every index.
                    let (mut stopped, mut ended) = (copy.clone(), copy);
                    stopped.preempt(job);
                    ended.finish(job);
                    for copy in [&stopped, &ended] {
                        copy.check();
                    }
                    assert_eq!(tables(&stopped), tables(cluster));
                    assert_eq!(hardware(&ended), hardware(cluster));
                }
            }
        }
    }
}

/// When and with how many GPUs to spare the gang of a job is free on one type, if nothing more starts.
fn slow_shadow(cluster: &Cluster, reservation: &Reservation) -> (Time, u32) {
    let kind = reservation.gpu_type;
    let mut ends: Vec<(Time, u32)> = cluster
        .jobs()
        .iter()
        .filter(|job| job.state == JobState::Running)
        .filter(|job| cluster.nodes()[job.placement[0].node.index()].gpu_type == kind)
        .map(|job| {
            (
                job.expected_finish.max(cluster.now() + Time(1_000_000)),
                job.request.num_gpus,
            )
        })
        .collect();
    ends.sort_unstable();
    let free_at = |time: Time| {
        let given: u32 = ends
            .iter()
            .filter(|(end, _)| *end <= time)
            .map(|(_, gpus)| gpus)
            .sum();
        cluster.num_free_of(kind) + given
    };
    let gang = cluster.job(reservation.job).request.num_gpus;
    let shadow = ends
        .iter()
        .map(|(end, _)| *end)
        .find(|end| free_at(*end) >= gang)
        .unwrap();
    (shadow, free_at(shadow) - gang)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_heuristic_keeps_the_invariants_and_offers_only_what_can_be_done(
        mut cluster in cluster(2, any::<bool>().boxed()),
        events in events(40),
        name in heuristic(),
        wide in any::<bool>(),
    ) {
        let heuristic = by_name(name).unwrap();
        let mut policy: Box<dyn Policy> = if wide { Box::new(Widened(heuristic)) } else { heuristic };
        let needs = policy.needs();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, policy.as_mut(), |cluster, pass| check_candidates(cluster, pass, &needs));
            cluster.check();
            if is_work_conserving(name) {
                for job in pending(&cluster) {
                    prop_assert_eq!(cluster.fitting_types(cluster.demand(job)), 0, "{:?} fits", job);
                }
            }
        }
    }

    #[test]
    fn easy_starts_the_reserved_head_no_later_than_its_first_shadow_time(
        mut cluster in cluster(2, Just(true).boxed()),
        events in events(40),
        name in proptest::sample::select(vec!["easy", "easy-sjf"]),
    ) {
        let mut policy = by_name(name).unwrap();
        let mut pass = Pass::new();
        let mut promised: Vec<(JobId, Time)> = Vec::new();
        let mut step = |cluster: &mut Cluster| {
            let needs = policy.needs();
            pass.open(cluster, &needs);
            loop {
                let before = pass.reservation().is_some();
                let action = pass.decide(cluster, policy.as_mut()).unwrap();
                let state = pass.act(cluster, &needs, action);
                if let Some(held) = pass.reservation().filter(|_| !before) {
                    // Of gangs of tasks it is held to brute force elsewhere.
                    if cluster.job(held.job).request.resources.tasks.is_any() {
                        assert_eq!((held.shadow, held.extra), slow_shadow(cluster, held));
                    }
                    if promised.iter().all(|(job, _)| *job != held.job) {
                        promised.push((held.job, held.shadow));
                    }
                }
                if state == crate::pass::PassState::Closed {
                    break;
                }
            }
            for (job, shadow) in &promised {
                match cluster.job(*job).first_start {
                    Some(start) => assert!(start <= *shadow, "{job:?} started at {start:?}, promised {shadow:?}"),
                    None => assert!(cluster.now() < *shadow, "{job:?} waits beyond {shadow:?}"),
                }
            }
        };
        for event in events {
            // A pass at every believed end, as in a simulator: the head is due at one of them.
            if let super::world::Event::Wait(wait_s) = event {
                let until = cluster.now() + Time(i64::from(wait_s) * 1_000_000);
                while let Some((end, id)) = next_end(&cluster).filter(|(end, _)| *end <= until) {
                    cluster.advance(end);
                    cluster.finish(id);
                    while let Some((_, id)) = next_end(&cluster).filter(|(next, _)| *next == end) {
                        cluster.finish(id);
                    }
                    step(&mut cluster);
                }
                cluster.advance(until);
            } else {
                happen(&mut cluster, event);
            }
            step(&mut cluster);
        }
    }

    #[test]
    fn a_heuristic_decides_the_same_among_the_candidates_of_a_learned_policy(
        mut cluster in cluster(1, any::<bool>().boxed()),
        events in events(40),
        name in heuristic(),
    ) {
        // The preemptive ones look at more heads than the full set has, so they are compared where they do not preempt.
        prop_assume!(!(["srtf", "las"].contains(&name) && cluster.capabilities().can(ActionKind::Preempt)));
        // Nor as many jobs that fit.
        prop_assume!(name != "sjf-best-type" && !name.ends_with("-delay"));
        // That set has no heads by tenant.
        prop_assume!(name != "fifo" || cluster.borrowing());
        for event in events {
            happen(&mut cluster, event);
            let mut other = cluster.clone();
            Pass::new().run(&mut cluster, by_name(name).unwrap().as_mut()).unwrap();
            Pass::new().run(&mut other, &mut Widened(by_name(name).unwrap())).unwrap();
            let (mut narrow, mut wide): (Vec<Decision>, Vec<Decision>) = Default::default();
            cluster.take_decisions(&mut narrow);
            other.take_decisions(&mut wide);
            prop_assert_eq!(narrow, wide, "{}", name);
        }
    }

    #[test]
    fn preemption_always_comes_to_rest(
        mut cluster in cluster(2, Just(true).boxed()),
        events in events(40),
        name in proptest::sample::select(vec!["srtf", "las"]),
    ) {
        let mut policy = by_name(name).unwrap();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, policy.as_mut(), |_, _| ());
        }
        // Without arrivals every pass comes after an end or after a tick of 10 s, and the queue drains.
        let mut num_passes = 0;
        while cluster.num_pending() + cluster.num_running() > 0 {
            happen(&mut cluster, super::world::Event::Wait(10));
            watched_pass(&mut cluster, policy.as_mut(), |_, _| ());
            num_passes += 1;
            prop_assert!(num_passes < 20_000, "{} does not drain its queue", name);
        }
    }
}
