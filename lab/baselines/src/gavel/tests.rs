//! The policies on clusters small enough to work by hand, against grids, and against what optima must satisfy.

use pleach_scheduler::cluster_spec::{ClusterSpec, TenantSpec};
use pleach_scheduler::{JobId, Time};
use proptest::prelude::*;

use super::config::{Inside, Weights};
use super::max_min::{Due, Filled, SLACK, fill};
use super::policies::las_norms;
use super::snapshot::{Kind, Snapshot};
use super::time_program::{Group, Shares, TimeProgram, group_by};
use super::*;
use crate::rounds::JobCombination;
use crate::shared::linear_program::Limits;
use crate::test_clusters::{cluster_of, submit_for};
use crate::test_clusters::{multi_type_cluster, preemptive_cluster, submit};

/// Jobs of one GPU with their speeds on each type.
fn snapshot(gpus: &[f64], jobs: &[(u32, &[f64])]) -> Snapshot {
    let mut snapshot = Snapshot {
        gpus: gpus.to_vec(),
        ..Snapshot::default()
    };
    for (number, (num_gpus, speed)) in jobs.iter().enumerate() {
        let kind = Kind {
            num_gpus: *num_gpus,
            speed: speed.to_vec(),
        };
        let known = snapshot.kinds.iter().position(|other| *other == kind);
        let kind = known.unwrap_or_else(|| {
            snapshot.kinds.push(kind);
            snapshot.kinds.len() - 1
        });
        snapshot.jobs.push((JobId(number as u32), kind));
    }
    snapshot
}

fn filled(snapshot: &Snapshot, groups: &[Group], norms: &[f64], levels_max: usize) -> Filled {
    let due = Due {
        norms,
        levels_max,
        pairs_max: 1000,
        limits: Limits::default(),
    };
    fill(snapshot, groups, &due, |is_full| {
        is_full
            .iter()
            .map(|is_full| f64::from(u8::from(!is_full)))
            .collect()
    })
    .unwrap()
}

/// Work per second of each job, from the targets.
fn throughput(snapshot: &Snapshot, groups: &[Group], shares: &Shares) -> Vec<f64> {
    let targets = shares.targets(snapshot, groups);
    let number = |id: JobId| snapshot.jobs.iter().position(|job| job.0 == id).unwrap();
    let mut sums = vec![0.0; snapshot.jobs.len()];
    for (combination, times) in &targets {
        let jobs: Vec<usize> = combination.jobs().map(number).collect();
        for (gpu_type, time) in times.iter().enumerate() {
            match jobs[..] {
                [a, b] => {
                    let kinds = (snapshot.jobs[a].1, snapshot.jobs[b].1);
                    let key = (kinds.0.min(kinds.1), kinds.0.max(kinds.1));
                    let speeds = snapshot.pairs[&key][gpu_type];
                    let is_turned = usize::from(kinds.0 > kinds.1);
                    sums[a] += time * speeds[is_turned];
                    sums[b] += time * speeds[1 - is_turned];
                }
                _ => sums[jobs[0]] += time * snapshot.kind(jobs[0]).speed[gpu_type],
            }
        }
    }
    sums
}

/// Asserts that no job is busy for more than all of its time, and no type for more than its GPUs.
fn assert_valid(snapshot: &Snapshot, groups: &[Group], shares: &Shares) {
    let targets = shares.targets(snapshot, groups);
    let mut held = vec![0.0; snapshot.gpus.len()];
    let mut busy = vec![0.0; snapshot.jobs.len()];
    for (combination, times) in &targets {
        for (gpu_type, time) in times.iter().enumerate() {
            assert!(*time >= 0.0);
            held[gpu_type] += time * f64::from(snapshot.kind(combination.job.index()).num_gpus);
            combination.jobs().for_each(|job| busy[job.index()] += time);
        }
    }
    assert!(busy.iter().all(|busy| *busy <= 1.0 + 1e-6), "{busy:?}");
    let fits = held
        .iter()
        .zip(&snapshot.gpus)
        .all(|(held, gpus)| *held <= gpus + 1e-6);
    assert!(fits, "{held:?}");
}

fn near(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn two_jobs_on_two_types_come_to_the_shares_that_were_worked_by_hand() {
    // Two slow GPUs (speed 1 for both jobs), one fast (4 and 2). Equal shares: 2/3 of the time slow, 1/3 fast: 2 and 4/3.
    // With p of the fast GPU for job 0 they make 1 + 3 p and 2 - p. (1 + 3 p) / 2 = (2 - p) 3 / 4 at p = 4/9: 7/6.
    let snapshot = snapshot(&[2.0, 1.0], &[(1, &[1.0, 4.0]), (1, &[1.0, 2.0])]);
    let norms = las_norms(&snapshot);
    near(norms[0], 2.0, 1e-12);
    near(norms[1], 4.0 / 3.0, 1e-12);
    let groups = group_by(&snapshot, |_| ());
    let las = filled(&snapshot, &groups, &norms, 1);
    near(las.least, 7.0 / 6.0, 1e-6);
    let speeds = throughput(&snapshot, &groups, &las.shares);
    near(speeds[0], 7.0 / 3.0, 1e-6);
    near(speeds[1], 14.0 / 9.0, 1e-6);
    // Makespan with 10 to do each: 1 + 3 p = 2 - p at p = 1/4, so both end after 10 / 1.75 s.
    let makespan = filled(&snapshot, &groups, &[10.0, 10.0], 1);
    near(1.0 / makespan.least, 40.0 / 7.0, 1e-6);
}

#[test]
fn a_pair_that_gains_from_sharing_shares() {
    // One GPU, two equal jobs: alone each comes to 0.5, beside each other to 0.8.
    let mut snapshot = snapshot(&[1.0], &[(1, &[1.0]), (1, &[1.0])]);
    let groups = group_by(&snapshot, |_| ());
    let alone = filled(&snapshot, &groups, &[1.0], 1);
    near(alone.least, 0.5, 1e-6);
    snapshot.pairs.insert((0, 0), vec![[0.8, 0.8]]);
    let packed = filled(&snapshot, &groups, &[1.0], 1);
    near(packed.least, 0.8, 1e-6);
    assert_valid(&snapshot, &groups, &packed.shares);
    let targets = packed.shares.targets(&snapshot, &groups);
    near(targets[&JobCombination::pair(JobId(0), JobId(1))][0], 1.0, 1e-6);
}

#[test]
fn the_first_in_the_queue_get_the_fast_type() {
    // One slow and one fast GPU, three equal jobs: factors 3, 2, 1 thirds.
    let mut cluster = multi_type_cluster(&[1.0, 4.0], 1);
    (0..3).for_each(|_| {
        submit(&mut cluster, 1, 1e3);
    });
    let mut policy = GavelPolicy::new(Objective::Fifo, Common::default());
    let targets = policy.targets(&cluster, false);
    let of = |job: u32| targets[&JobCombination::alone(JobId(job))].clone();
    assert_eq!(
        (of(0), of(1), of(2)),
        (vec![0.0, 1.0], vec![1.0, 0.0], vec![0.0, 0.0])
    );
}

#[test]
fn money_goes_where_it_makes_most_progress_and_deadlines_change_that() {
    // A type four times as fast at ten times the price: the slow one is worth it, until the job must hurry. Two GPUs of each
    // type, two jobs of 1,000 s at the reference speed 1, fastest 250 s. To end within 2 x 250 s a job needs a speed of 2.
    let mut cluster = multi_type_cluster(&[1.0, 4.0], 2);
    submit(&mut cluster, 1, 1e3);
    submit(&mut cluster, 1, 1e3);
    let mut config = CostConfig {
        prices: vec![1.0, 10.0],
        ..CostConfig::default()
    };
    let targets = |config: &CostConfig| {
        let mut policy = GavelPolicy::new(Objective::Cost(config.clone()), Common::default());
        policy.targets(&cluster, false)[&JobCombination::alone(JobId(0))].clone()
    };
    assert_eq!(targets(&config), [1.0, 0.0]);
    config.deadline_factor = Some(2.0);
    // 1 x slow + 4 x fast = 2 with slow + fast = 1: a third of the time on the fast type.
    let hurried = targets(&config);
    near(hurried[0], 2.0 / 3.0, 1e-6);
    near(hurried[1], 1.0 / 3.0, 1e-6);
}

#[test]
fn who_has_waited_longer_is_due_more_for_its_finish_time() {
    // One GPU, two jobs with 10 s to do, of which one came 10 s earlier; half the GPU would take 20 s. Ratios are equal where
    // 10 / x = 10 + 10 / (1 - x), that is x^2 - 3 x + 1 = 0: x = (3 - sqrt 5) / 2 = 0.382 for the younger.
    let mut cluster = preemptive_cluster(1, 1);
    submit(&mut cluster, 1, 10.0);
    cluster.advance(Time::from_secs_f64(10.0));
    submit(&mut cluster, 1, 10.0);
    let mut policy = GavelPolicy::new(Objective::FinishTime(IsolatedTime::default()), Common::default());
    let targets = policy.targets(&cluster, false);
    near(targets[&JobCombination::alone(JobId(1))][0], 0.382, 2e-3);
    near(targets[&JobCombination::alone(JobId(0))][0], 0.618, 2e-3);
    assert_eq!(policy.num_unsolved, 0);
}

#[test]
fn tenants_come_to_their_quotas_and_what_one_cannot_use_goes_to_the_others() {
    // Tenant 0 (quota 3) has three jobs, tenant 1 (quota 1) one, all of 2 GPUs; 4 GPUs, so two run at once. By quota 1.5
    // and 0.5 of them.
    let spec = ClusterSpec {
        tenants: [3, 1]
            .map(|quota_gpus| TenantSpec {
                name: format!("tenant{quota_gpus}"),
                quota_gpus,
            })
            .to_vec(),
        borrowing: true,
        ..ClusterSpec::uniform(1, 4, 1)
    };
    let mut cluster = cluster_of(&spec);
    for tenant in [0, 0, 0, 1] {
        submit_for(&mut cluster, tenant, 2, 1e3);
    }
    let due = |weights: Weights, inside: Inside| -> Vec<f64> {
        let config = HierarchicalConfig {
            weights,
            inside,
            ..HierarchicalConfig::default()
        };
        let mut policy = GavelPolicy::new(Objective::Hierarchical(config), Common::default());
        let targets = policy.targets(&cluster, false);
        assert_eq!(policy.num_unsolved, 0);
        (0..4)
            .map(|job| targets[&JobCombination::alone(JobId(job))][0])
            .collect()
    };
    let all_near = |due: Vec<f64>, expected: [f64; 4]| {
        due.iter().zip(expected).for_each(|(a, b)| near(*a, b, 1e-4));
    };
    all_near(due(Weights::Quota, Inside::Fairness), [0.5, 0.5, 0.5, 0.5]);
    // As equals: one each, which the only job of tenant 1 fills.
    let third = 1.0 / 3.0;
    all_near(due(Weights::Equal, Inside::Fairness), [third, third, third, 1.0]);
    // In order of arrival the first job of tenant 0 rises with tenant 1's until both are full.
    all_near(due(Weights::Equal, Inside::Fifo), [1.0, 0.0, 0.0, 1.0]);
    // Three to one: when the first is full the other has a third; of the 2/3 that are left the second takes 1/2.
    all_near(due(Weights::Quota, Inside::Fifo), [1.0, 0.5, 0.0, 0.5]);
}

#[test]
fn a_programme_that_is_too_large_leaves_equal_shares() {
    let mut cluster = preemptive_cluster(1, 2);
    (0..4).for_each(|_| {
        submit(&mut cluster, 1, 1e3);
    });
    let common = Common {
        terms_max: 1,
        ..Common::default()
    };
    let mut policy = GavelPolicy::new(Objective::Las, common);
    let targets = policy.targets(&cluster, false);
    assert!(targets.values().all(|times| times == &[0.5]));
    assert_eq!(policy.num_unsolved, 1);
}

#[derive(Clone, Debug)]
struct Random {
    gpus: Vec<f64>,
    jobs: Vec<(u32, Vec<f64>)>,
    beside: f64,
}

impl Random {
    fn snapshot(&self, packed: bool) -> Snapshot {
        let jobs: Vec<(u32, &[f64])> = self.jobs.iter().map(|(num, speed)| (*num, &speed[..])).collect();
        let mut snapshot = snapshot(&self.gpus, &jobs);
        for a in 0..snapshot.kinds.len() * usize::from(packed) {
            for b in a..snapshot.kinds.len() {
                let (first, second) = (&snapshot.kinds[a], &snapshot.kinds[b]);
                if first.num_gpus == second.num_gpus {
                    let types = first.speed.iter().zip(&second.speed);
                    let speeds = types.map(|(x, y)| {
                        if x * y > 0.0 {
                            [x * self.beside, y * self.beside * 0.9]
                        } else {
                            [0.0; 2]
                        }
                    });
                    let mut speeds: Vec<[f64; 2]> = speeds.collect();
                    if a == b {
                        speeds.iter_mut().for_each(|pair| pair[1] = pair[0]);
                    }
                    snapshot.pairs.insert((a, b), speeds);
                }
            }
        }
        snapshot
    }
}

fn random() -> impl Strategy<Value = Random> {
    // Few speeds and sizes, so that jobs are often alike; some cannot run on the first type.
    let job = (0_usize..2, 0_usize..3).prop_map(|(size, class)| {
        let speeds = [vec![1.0, 4.0], vec![2.0, 2.5], vec![0.0, 1.5]];
        ([1, 2][size], speeds[class].clone())
    });
    let jobs = proptest::collection::vec(job, 1..9);
    (proptest::collection::vec(2_u32..5, 2), jobs, 0.5_f64..0.9).prop_map(|(gpus, jobs, beside)| Random {
        gpus: gpus.into_iter().map(f64::from).collect(),
        jobs,
        beside,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn equal_jobs_counted_together_are_as_well_off_as_one_by_one(random in random(), packed: bool, levels in 1_usize..4) {
        let snapshot = random.snapshot(packed);
        let norms = las_norms(&snapshot);
        let together = group_by(&snapshot, |_| ());
        let apart = group_by(&snapshot, |job| job);
        let of = |groups: &[Group]| -> Vec<f64> { groups.iter().map(|group| norms[group.jobs[0]]).collect() };
        let a = filled(&snapshot, &together, &of(&together), levels);
        let b = filled(&snapshot, &apart, &of(&apart), levels);
        assert_valid(&snapshot, &together, &a.shares);
        assert_valid(&snapshot, &apart, &b.shares);
        near(a.least, b.least, 1e-5);
        // The same at every level, and in the sum of progress after the last.
        for (group, level) in together.iter().zip(&a.levels) {
            for job in &group.jobs {
                near(*level, b.levels[*job], 1e-4);
            }
        }
        let progress = |groups: &[Group], filled: &Filled| -> f64 {
            let speeds = throughput(&snapshot, groups, &filled.shares);
            speeds.iter().enumerate().map(|(job, speed)| speed / snapshot.kind(job).speed_max()).sum()
        };
        near(progress(&together, &a), progress(&apart, &b), 1e-4);
        // No job is below the level that its group is sure of.
        let speeds = throughput(&snapshot, &together, &a.shares);
        for (group, level) in together.iter().zip(&a.levels) {
            for job in &group.jobs {
                prop_assert!(speeds[*job] / norms[*job] >= level - 1e-5);
            }
        }
    }

    #[test]
    fn under_full_water_nobody_can_gain_but_from_somebody_who_has_no_more(random in random(), packed: bool) {
        let snapshot = random.snapshot(packed);
        let norms = las_norms(&snapshot);
        let groups = group_by(&snapshot, |_| ());
        let of_groups: Vec<f64> = groups.iter().map(|group| norms[group.jobs[0]]).collect();
        let full = filled(&snapshot, &groups, &of_groups, 100);
        for (number, level) in full.levels.iter().enumerate() {
            // The most that this group can have while every other group keeps its level, or at least this group's.
            let mut time = TimeProgram::new(&snapshot, &groups, 1000);
            time.add_objective(number, 1.0 / of_groups[number]);
            for (other, kept) in full.levels.iter().enumerate().filter(|(other, _)| *other != number) {
                let terms = time.throughput(other).to_vec();
                // The slack of the filling: where one group's time is worth a thousand times as much to another, ten times the
                // slack is half a percent.
                time.program.at_least(terms, kept.min(*level) * of_groups[other] * (1.0 - SLACK));
            }
            let (answer, _) = time.solve(Limits::default()).unwrap();
            prop_assert!(answer.objective <= level * 1.001 + 1e-6, "group {number} at {level} could have {}", answer.objective);
        }
    }

    #[test]
    fn no_point_of_a_grid_beats_the_optimum(
        gpus in proptest::collection::vec(1_u32..3, 2),
        speeds in proptest::collection::vec(1_u32..9, 4),
        norms in proptest::collection::vec(1_u32..9, 2),
    ) {
        // Two jobs of one GPU: all of 10 steps of each one's time on each type.
        let speed = |job: usize, kind: usize| f64::from(speeds[2 * job + kind]);
        let of = |job: usize| vec![speed(job, 0), speed(job, 1)];
        let (first, second) = (of(0), of(1));
        let gpus: Vec<f64> = gpus.into_iter().map(f64::from).collect();
        let snapshot = snapshot(&gpus, &[(1, &first), (1, &second)]);
        let norms: Vec<f64> = norms.into_iter().map(f64::from).collect();
        let groups = group_by(&snapshot, |job| job);
        let optimum = filled(&snapshot, &groups, &norms, 1);
        let mut best = 0.0_f64;
        for steps in 0..11_u32.pow(4) {
            let part = |digit: u32| f64::from(steps / 11_u32.pow(digit) % 11) / 10.0;
            let times = [[part(0), part(1)], [part(2), part(3)]];
            let in_time = times.iter().all(|time| time[0] + time[1] <= 1.0 + 1e-9);
            let fits = (0..2).all(|kind| times[0][kind] + times[1][kind] <= gpus[kind] + 1e-9);
            if in_time && fits {
                let share = |job: usize| (0..2).map(|kind| times[job][kind] * speed(job, kind)).sum::<f64>() / norms[job];
                best = best.max(share(0).min(share(1)));
            }
        }
        prop_assert!(optimum.least >= best - 1e-6);
        // The grid is within a step of it: 0.1 of the time on each type at the highest speed.
        prop_assert!(optimum.least <= best + 0.2 * 8.0 / norms.iter().copied().fold(f64::INFINITY, f64::min));
    }
}

#[test]
fn a_policy_refuses_settings_out_of_range_by_name() {
    for (name, key, value) in [
        ("gavel-las", "round_s", serde_json::json!({ "round_s": 0.0 })),
        ("gavel-cost", "prices", serde_json::json!({ "prices": [0.0] })),
        (
            "gavel-hierarchical",
            "levels_max",
            serde_json::json!({ "levels_max": 0 }),
        ),
    ] {
        let text = crate::registry::make(name, &value).err().unwrap().to_string();
        assert!(text.contains(name) && text.contains(key), "{text}");
    }
}
