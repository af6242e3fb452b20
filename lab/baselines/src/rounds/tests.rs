//! The round mechanism on clusters small enough to work by hand, and what it promises on random ones.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Placement, Slice};
use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::{GpuTypeId, JobId, NodeId, Planner, Time};
use proptest::prelude::*;

use super::*;
use crate::test_clusters::{cluster_of, submit};

const KIND: GpuTypeId = GpuTypeId(0);

fn alone(job: u32) -> JobCombination {
    JobCombination::alone(JobId(job))
}

fn targets(fractions: &[(JobCombination, f64)]) -> Targets {
    fractions
        .iter()
        .map(|(combination, fraction)| (*combination, vec![*fraction]))
        .collect()
}

fn placement(node: u32, gpus: u64) -> Placement {
    Placement::from_slice(&[Slice {
        node: NodeId(node),
        gpus,
    }])
}

fn winners(leases: &[Lease]) -> Vec<JobCombination> {
    leases.iter().map(|lease| lease.combination).collect()
}

#[test]
fn turns_go_to_whoever_has_received_least_of_what_it_is_due() {
    // One GPU, rounds of 100 s, targets 3/4 and 1/4. With the credit of half a round each, the shares received are
    // after 0 rounds 1/2, 1/2: priorities 1.5, 0.5 -> job 0
    // after 1 round 150/200, 50/200: priorities 1, 1 -> a tie, deficits are equal, the larger target -> job 0
    // after 2 rounds 250/300, 50/300: priorities 0.9, 1.5 -> job 1
    // after 3 rounds 250/400, 150/400: priorities 1.2, 0.67 -> job 0
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 1, 1));
    submit(&mut cluster, 1, 1e4);
    submit(&mut cluster, 1, 1e4);
    let mut rounds = Rounds::new(100.0, 1);
    rounds.add(alone(0));
    rounds.add(alone(1));
    rounds.set_targets(0.0, &targets(&[(alone(0), 0.75), (alone(1), 0.25)]));
    let mut order = Vec::new();
    for _ in 0..4 {
        let winner = winners(&rounds.allocate(&cluster, &[KIND], |_, _| true, true))[0];
        rounds.receive(winner, KIND, 100.0);
        order.push(winner.job.0);
    }
    assert_eq!(order, [0, 0, 1, 0]);
}

#[test]
fn what_was_due_and_not_received_breaks_the_next_tie() {
    // Both were due 50 of 100 s; job 0 received 100, job 1 nothing: deficits -50 and +50. With equal new targets the
    // priorities are equal, and the deficit decides against the order of arrival.
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 1, 1));
    submit(&mut cluster, 1, 1e4);
    submit(&mut cluster, 1, 1e4);
    let mut rounds = Rounds::new(100.0, 1);
    rounds.add(alone(0));
    rounds.add(alone(1));
    let halves = targets(&[(alone(0), 0.5), (alone(1), 0.5)]);
    rounds.set_targets(0.0, &halves);
    assert_eq!(
        winners(&rounds.allocate(&cluster, &[KIND], |_, _| true, true)),
        [alone(0)]
    );
    rounds.receive(alone(0), KIND, 100.0);
    rounds.set_targets(100.0, &halves);
    assert_eq!(
        winners(&rounds.allocate(&cluster, &[KIND], |_, _| true, true)),
        [alone(1)]
    );
}

#[test]
fn a_gang_that_does_not_fit_is_passed_over_and_leftovers_are_optional() {
    // 4 GPUs: the gang of 3 wins, the gang of 2 does not fit, the job without a target takes the last GPU, if it may.
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    for num_gpus in [3, 2, 1] {
        submit(&mut cluster, num_gpus, 1e4);
    }
    let mut rounds = Rounds::new(100.0, 1);
    (0..3).for_each(|job| rounds.add(alone(job)));
    rounds.set_targets(0.0, &targets(&[(alone(0), 0.9), (alone(1), 0.8)]));
    let allocate = |leftovers| winners(&rounds.allocate(&cluster, &[KIND], |_, _| true, leftovers));
    assert_eq!(allocate(true), [alone(0), alone(2)]);
    assert_eq!(allocate(false), [alone(0)]);
}

#[test]
fn a_job_has_one_turn_be_it_alone_or_in_company() {
    // The pair is due most, so its jobs get no GPU of their own; the third job gets the other GPU.
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 2, 1));
    (0..3).for_each(|_| {
        submit(&mut cluster, 1, 1e4);
    });
    let pair = JobCombination::pair(JobId(1), JobId(0));
    let mut rounds = Rounds::new(100.0, 1);
    (0..3).for_each(|job| rounds.add(alone(job)));
    rounds.add(pair);
    rounds.set_targets(
        0.0,
        &targets(&[(pair, 0.9), (alone(0), 0.1), (alone(1), 0.1), (alone(2), 0.5)]),
    );
    assert_eq!(
        winners(&rounds.allocate(&cluster, &[KIND], |_, _| true, true)),
        [pair, alone(2)]
    );
    rounds.remove(JobId(1));
    assert_eq!(
        rounds.combinations().collect::<Vec<_>>(),
        [alone(0), alone(2)],
        "the pair leaves with its job"
    );
}

#[test]
fn gangs_keep_their_gpus_unless_a_larger_one_takes_them() {
    // Two nodes of 4. Last round: job 0 on GPU 0 of node 0, job 1 on GPU 0 of node 1. Now a gang of 4 comes: it takes the
    // first free GPUs, all of node 0, so job 0 moves to the first free GPU of node 1, and job 1 stays.
    let mut cluster = cluster_of(&ClusterSpec::uniform(2, 4, 1));
    for num_gpus in [1, 1, 4] {
        submit(&mut cluster, num_gpus, 1e4);
    }
    let last = [(alone(0), placement(0, 0b1)), (alone(1), placement(1, 0b1))]
        .into_iter()
        .collect();
    let leases = [0, 1, 2].map(|job| Lease {
        combination: alone(job),
        gpu_type: KIND,
        planned: true,
    });
    let placed = place(&cluster, &leases, &last);
    assert_eq!(placed[&alone(2)], placement(0, 0b1111));
    assert_eq!(placed[&alone(1)], placement(1, 0b1));
    assert_eq!(placed[&alone(0)], placement(1, 0b10));
}

#[test]
fn a_renewed_lease_is_no_preemption() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 2, 1));
    (0..3).for_each(|_| {
        submit(&mut cluster, 1, 1e4);
    });
    let places = |places: &[(u32, u64)]| -> BTreeMap<JobCombination, Placement> {
        places
            .iter()
            .map(|(job, gpus)| (alone(*job), placement(0, *gpus)))
            .collect()
    };
    apply_leases(&mut cluster, &places(&[(0, 0b1), (1, 0b10)]));
    cluster.advance(Time::from_secs_f64(100.0));
    apply_leases(&mut cluster, &places(&[(0, 0b1), (2, 0b10)]));
    cluster.check();
    let preemptions: Vec<u32> = cluster.jobs().iter().map(|job| job.num_preemptions).collect();
    assert_eq!(preemptions, [0, 1, 0]);
    assert_eq!(cluster.job(JobId(0)).run_start, Time::ZERO);
}

#[test]
fn a_planner_brings_everybody_to_its_fraction() {
    // One GPU, targets 0.6, 0.3, 0.1 over 200 rounds: no job is further off than a round or two.
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 1, 1));
    (0..3).for_each(|_| {
        submit(&mut cluster, 1, 1e6);
    });
    let fractions = [0.6, 0.3, 0.1];
    let due = move |_: &Cluster| {
        let combinations = (0..3).map(|job| (alone(job), fractions[job as usize]));
        Ok(targets(&combinations.collect::<Vec<_>>()))
    };
    let mut planner = RoundPlanner::new("fractions", RoundRules::GAVEL, due);
    for round in 0..200 {
        cluster.advance(Time(360_000_000 * round));
        planner.plan(&mut cluster).unwrap();
        assert_eq!(cluster.num_running(), 1);
    }
    cluster.advance(Time(360_000_000 * 200));
    for (job, fraction) in cluster.jobs().iter().zip(fractions) {
        let rounds = job.attained_gpu_s_at(cluster.now()) / 360.0;
        assert!(
            (rounds - 200.0 * fraction).abs() <= 2.0,
            "{rounds} of {}",
            200.0 * fraction
        );
    }
}

#[test]
fn between_rounds_a_planner_does_nothing_and_targets_change_seldom() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 1, 1));
    submit(&mut cluster, 1, 1e6);
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = asked.clone();
    let due = move |cluster: &Cluster| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let combinations = (0..cluster.jobs().len()).map(|job| (alone(job as u32), 1.0));
        Ok(targets(&combinations.collect::<Vec<_>>()))
    };
    let mut planner = RoundPlanner::new("all", RoundRules::GAVEL, due);
    let mut at = |cluster: &mut Cluster, now_s: f64| {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        asked.load(std::sync::atomic::Ordering::Relaxed)
    };
    assert_eq!(at(&mut cluster, 0.0), 1);
    submit(&mut cluster, 1, 1e6);
    assert_eq!(at(&mut cluster, 100.0), 1, "within the round");
    assert_eq!(at(&mut cluster, 360.0), 1, "the newcomer waits for 1,920 s");
    assert_eq!(
        cluster.job(JobId(0)).state,
        pleach_scheduler::cluster::JobState::Running
    );
    assert_eq!(at(&mut cluster, 1920.0), 2);
    assert_eq!(at(&mut cluster, 2280.0), 2, "nobody came or left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_gpu_is_dealt_twice_no_job_has_two_turns_and_nothing_that_fits_is_left_out(
        jobs in proptest::collection::vec((1_u32..6, 0.0_f64..1.0), 1..20),
        received in proptest::collection::vec((0_usize..20, 0.0_f64..500.0), 0..20),
    ) {
        let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 1));
        let mut rounds = Rounds::new(100.0, 1);
        let mut due = Targets::new();
        for (index, (num_gpus, fraction)) in jobs.iter().enumerate() {
            submit(&mut cluster, *num_gpus, 1e4);
            rounds.add(alone(index as u32));
            due.insert(alone(index as u32), vec![*fraction]);
        }
        rounds.set_targets(0.0, &due);
        let mut last = BTreeMap::new();
        for (job, seconds) in received {
            rounds.receive(alone(job as u32), KIND, seconds);
            let leases = rounds.allocate(&cluster, &[KIND], |_, _| true, true);
            let left = 12 - leases.iter().map(|lease| jobs[lease.combination.job.index()].0).sum::<u32>();
            let winners: std::collections::BTreeSet<JobId> = leases.iter().map(|lease| lease.combination.job).collect();
            prop_assert_eq!(winners.len(), leases.len());
            for (index, (num_gpus, _)) in jobs.iter().enumerate() {
                prop_assert!(*num_gpus > left || winners.contains(&JobId(index as u32)));
            }
            let placed = place(&cluster, &leases, &last);
            apply_leases(&mut cluster, &placed);
            cluster.check();
            prop_assert_eq!(cluster.num_running(), leases.len());
            last = placed;
        }
    }
}
