//! Running elastic jobs that get other sizes: no work is lost or made, each resize costs one restart, and what all sequences of
//! choices can reach lies between what they reach without it and the best of all schedules.

use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::world::{Advance, World};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_scheduler::cluster::JobState;
use pleach_scheduler::cluster_spec::{ClusterSpec, ElasticJob, ModelClass, Resources};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::physics::goodput::{Elastic, IterationTime};
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::{ActionKind, ActionSet, PolicyError, Time};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Chooses at random, and counts the jobs that it resizes.
struct Random {
    rng: ChaCha8Rng,
    resized: Vec<u32>,
}

fn needs(actions: ActionSet) -> Needs {
    Needs {
        actions,
        ..Needs::full()
    }
}

const RESIZING: ActionSet = ActionSet::of(ActionKind::Resize).with(ActionKind::Sizes);

impl Policy for Random {
    fn name(&self) -> &str {
        "random"
    }

    fn needs(&self) -> Needs {
        needs(RESIZING)
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let mask = point.observation.mask;
        let choice = loop {
            let choice = self.rng.random_range(0..scores.len());
            if mask[choice] {
                break choice;
            }
        };
        scores[choice] = 1.0;
        let row = point.candidates.get(choice).unwrap();
        if let Some(job) = row
            .job
            .filter(|job| point.cluster.job(*job).state == JobState::Running)
        {
            self.resized[job.index()] += 1;
        }
        Ok(())
    }
}

/// What an observer of the cluster saw of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    executed_s: f64,
    held_gpu_s: f64,
    startup_left_s: f64,
    startup_s: f64,
    /// Restarts that a resize during a restart spared.
    cut_s: f64,
    num_resizes: u32,
}

/// The running jobs, each with its rate and its number of GPUs; both stand still until the next event.
fn running(world: &World) -> Vec<Option<(f64, u32)>> {
    let jobs = world.cluster().jobs().iter();
    jobs.map(|job| (job.state == JobState::Running).then_some((job.rate, job.num_held)))
        .collect()
}

/// Books what happened in this time.
fn book(seen: &mut [Seen], running: &[Option<(f64, u32)>], dt_s: f64) {
    for (seen, runs) in seen.iter_mut().zip(running) {
        if let Some((rate, num_held)) = runs {
            let startup_s = dt_s.min(seen.startup_left_s);
            seen.startup_left_s -= startup_s;
            seen.startup_s += startup_s;
            seen.executed_s += (dt_s - startup_s) * rate;
            seen.held_gpu_s += dt_s * f64::from(*num_held);
        }
    }
}

#[test]
fn work_done_is_work_asked_for_and_each_resize_costs_one_restart() {
    let preset = GeneratorConfig::preset("pollux").unwrap().with(80, 2.0);
    let workload = generate(&preset, Seed(7)).unwrap();
    let mut num_resized = 0;
    for restart_cost_s in [0.0, 30.0, 900.0] {
        let mut config = SimConfig::default();
        config.capabilities.grant(ActionKind::Resize, true);
        config.capabilities.restart_cost_s = restart_cost_s;
        let estimates = config.estimates.estimates(&workload, Seed(config.seed));
        let mut world = World::new(&workload, config.capabilities, &estimates).unwrap();
        let mut policy = Random {
            rng: Seed(3).stream("resize", 0),
            resized: vec![0; workload.jobs.len()],
        };
        let (mut seen, mut pass) = (vec![Seen::default(); workload.jobs.len()], Pass::new());
        while !world.is_over() {
            let (before, runs) = (world.cluster().now(), running(&world));
            assert_eq!(world.advance(), Advance::Event);
            let dt_s = (world.cluster().now() - before).as_secs_f64();
            book(&mut seen, &runs, dt_s);
            pass.run(world.cluster_mut(), &mut policy).unwrap();
            world.cluster().check();
            for (seen, job) in seen.iter_mut().zip(world.cluster().jobs()) {
                if job.num_preemptions > seen.num_resizes {
                    seen.num_resizes = job.num_preemptions;
                    seen.cut_s += seen.startup_left_s;
                    seen.startup_left_s = restart_cost_s;
                }
            }
            world.carry_out();
        }
        for (id, (seen, job)) in seen.iter().zip(world.cluster().jobs()).enumerate() {
            let (asked_s, num) = (workload.jobs[id].run_time_s, policy.resized[id]);
            assert!(
                (seen.executed_s - asked_s).abs() < 1e-2,
                "{id}: {seen:?} of {asked_s} s"
            );
            assert!(
                (seen.held_gpu_s - job.attained_gpu_s).abs() < 1e-2,
                "{id}: {seen:?}"
            );
            let paid_s = f64::from(num) * restart_cost_s - seen.cut_s;
            assert!(
                (seen.startup_s - paid_s).abs() < 1e-3,
                "{id}: {seen:?}, {num} resizes"
            );
            assert_eq!(
                job.num_preemptions, num,
                "{id}: nobody is stopped but to be resized"
            );
            num_resized += num;
        }
    }
    assert!(num_resized > 200, "{num_resized} resizes say little");
}

/// Plays one sequence of choices, the first one beyond its end.
struct Sequence {
    actions: ActionSet,
    choices: Vec<usize>,
    /// How many choices there were at each decision.
    options: Vec<usize>,
}

impl Policy for Sequence {
    fn name(&self) -> &str {
        "sequence"
    }

    fn needs(&self) -> Needs {
        needs(self.actions)
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let may: Vec<usize> = (0..scores.len())
            .filter(|index| point.observation.mask[*index])
            .collect();
        let choice = self.choices.get(self.options.len()).copied().unwrap_or(0);
        self.options.push(may.len());
        scores[may[choice]] = 1.0;
        Ok(())
    }
}

/// Least sum of JCTs over all sequences of choices, s.
fn least_sum_jct_s(workload: &Workload, actions: ActionSet, restart_cost_s: f64) -> f64 {
    let mut config = SimConfig::default();
    config.capabilities = config.capabilities.with_actions(actions);
    config.capabilities.restart_cost_s = restart_cost_s;
    let (mut choices, mut least) = (Vec::new(), f64::INFINITY);
    loop {
        let mut policy = Sequence {
            actions,
            choices: std::mem::take(&mut choices),
            options: Vec::new(),
        };
        let result = simulate(workload, &config, &mut policy).unwrap();
        least = least.min(result.jobs.iter().map(|job| job.jct_s()).sum());
        let options = policy.options;
        choices = policy.choices;
        // The next sequence in the order of an odometer whose last wheel is that of the last decision.
        choices.resize(options.len(), 0);
        while let Some(last) = choices.pop() {
            if last + 1 < options[choices.len()] {
                choices.push(last + 1);
                break;
            }
        }
        if choices.is_empty() {
            return least;
        }
    }
}

/// Jobs (submit s, GPUs, work s) of a class that is so many times as fast on so many GPUs, on a node.
fn tiny(num_gpus: u32, rows: &[(u32, u32, u32)]) -> Workload {
    let profile = Elastic {
        time: IterationTime {
            alpha_c: 1.0,
            beta_c: 1e-12,
            alpha_n: 0.0,
            beta_n: 0.0,
            alpha_r: 0.0,
            beta_r: 0.0,
            gamma: 1.0,
        },
        initial_batch: 1,
        max_batch: 8 * num_gpus,
        min_local_batch: 1,
        max_local_batch: 8,
        noise_at_start: 1e12,
        noise_at_end: 1e12,
    };
    let elastic = ElasticJob {
        gpus_max: num_gpus,
        profile: profile.into(),
    };
    let jobs = rows.iter().enumerate();
    Workload {
        name: "tiny".into(),
        classes: vec![ModelClass {
            elastic: Some(elastic),
            ..ModelClass::default()
        }],
        jobs: jobs
            .map(|(id, (submit_s, num_gpus, work_s))| JobSpec {
                id: id.to_string(),
                submit: Time::from_secs_f64(f64::from(*submit_s)),
                num_gpus: *num_gpus,
                run_time_s: f64::from(*work_s),
                estimate_s: None,
                tenant: 0,
                class: 0,
                user: None,
                outcome: Outcome::Completed,
                resources: Resources::WHOLE_GPU,
                observed: None,
            })
            .collect(),
        cluster: ClusterSpec::uniform(1, num_gpus, 1),
    }
}

#[test]
fn the_best_of_all_choices_is_what_was_worked_out_by_hand() {
    // One GPU each. The first job runs alone until 4 s, beside the second until 8 s, and has 4 s of work left then: 2 s on both.
    let workload = tiny(2, &[(0, 1, 12), (4, 1, 4)]);
    let resize = ActionSet::of(ActionKind::Resize);
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-4, "{found}, not {expected}");
    near(least_sum_jct_s(&workload, ActionSet::NONE, 0.0), 12.0 + 4.0);
    near(least_sum_jct_s(&workload, resize, 0.0), 10.0 + 4.0);
    // A restart of 1 s still pays, one of 3 s does not.
    near(least_sum_jct_s(&workload, resize, 1.0), 11.0 + 4.0);
    near(least_sum_jct_s(&workload, resize, 3.0), 12.0 + 4.0);
}

/// Least sum of JCTs of all schedules where k GPUs are k times as fast: the shortest rest first on all of them, s.
fn shortest_rest_first_s(num_gpus: u32, rows: &[(u32, u32, u32)]) -> f64 {
    let mut rest: Vec<f64> = rows.iter().map(|row| f64::from(row.2)).collect();
    let (mut now_s, mut sum_s) = (0.0, 0.0);
    loop {
        let here = |id: &usize| rest[*id] > 0.0 && f64::from(rows[*id].0) <= now_s;
        let next = rows
            .iter()
            .map(|row| f64::from(row.0))
            .filter(|submit_s| *submit_s > now_s);
        let next_s = next.fold(f64::INFINITY, f64::min);
        let present = (0..rows.len()).filter(here);
        match present.min_by(|a, b| rest[*a].total_cmp(&rest[*b])) {
            Some(id) => {
                let end_s = now_s + rest[id] / f64::from(num_gpus);
                if end_s <= next_s {
                    (now_s, rest[id]) = (end_s, 0.0);
                    sum_s += now_s - f64::from(rows[id].0);
                } else {
                    rest[id] -= (next_s - now_s) * f64::from(num_gpus);
                    now_s = next_s;
                }
            }
            None if next_s.is_finite() => now_s = next_s,
            None => return sum_s,
        }
    }
}

#[test]
fn choices_with_resizes_are_no_worse_than_without_and_no_better_than_the_best_schedule() {
    let mut rng = Seed(5).stream("tiny", 0);
    let (mut num_better, mut num_short) = (0, 0);
    for _ in 0..40 {
        let num_jobs = rng.random_range(2..=3);
        let mut rows: Vec<(u32, u32, u32)> = (0..num_jobs)
            .map(|id| (id * rng.random_range(0..4), 1, rng.random_range(1..9)))
            .collect();
        rows.sort_unstable();
        let workload = tiny(2, &rows);
        let best = |actions: ActionSet| least_sum_jct_s(&workload, actions, 0.0);
        let (without, with) = (best(ActionSet::NONE), best(ActionSet::of(ActionKind::Resize)));
        let bound = shortest_rest_first_s(2, &rows);
        assert!(
            bound <= with + 1e-4 && with <= without + 1e-4,
            "{rows:?}: {bound}, {with}, {without}"
        );
        num_better += u32::from(with < without - 1e-4);
        num_short += u32::from(with > bound + 1e-4);
    }
    assert!(
        num_better > 10 && num_short > 0,
        "{num_better} and {num_short} of 40"
    );
}
