//! The recorded lists played by the policy itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_env::{SimConfig, simulate_planner};
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, Seen, Tasks, TenantSpec,
};
use pleach_scheduler::{ActionKind, Capabilities, Planner, PolicyPlanner, Time, heuristics};

use pleach_dealing::slurm::Preempt;

use super::{Case, Job, cases};

/// Slurm puts a gang on nodes of several types.
pub(super) const CAN_MIX: Capabilities = Capabilities::DEFAULT.with(ActionKind::MixTypes);

/// GPUs that a job holds of each of its nodes: all of them where it takes them whole.
pub(super) fn gpus_of(case: &Case, job: &Job) -> u32 {
    if job.ask.whole {
        case.nodes.all[0].gpus
    } else {
        job.ask.of_each.gpus
    }
}

/// A recorded list as one of ours: each gang a task on each node. Classes are GPU types, the last one any.
pub(super) fn workload(case: &Case) -> Workload {
    let num_types = case.types.len();
    let groups = case.types.iter().enumerate().map(|(kind, name)| {
        let of_type: Vec<usize> = (0..case.names.len())
            .filter(|node| usize::from(case.nodes.kinds[*node]) == kind)
            .collect();
        NodeGroup {
            count: of_type.len() as u32,
            gpus_per_node: case.nodes.all[of_type[0]].gpus,
            gpu_type: name.clone(),
            nodes_per_rack: of_type.len() as u32,
            cpu_cores: 64.0,
            memory_gib: 500.0,
            ..NodeGroup::default()
        }
    });
    let accounts: Vec<String> = ["a1", "a2", "a3"].map(str::to_owned).to_vec();
    let cluster = ClusterSpec {
        gpu_types: case
            .types
            .iter()
            .map(|name| GpuTypeSpec {
                name: name.clone(),
                memory_gib: 40.0,
                mig: None,
            })
            .collect(),
        node_groups: groups.collect(),
        tenants: accounts
            .iter()
            .map(|name| TenantSpec {
                name: name.clone(),
                quota_gpus: 0,
            })
            .collect(),
        seen: Seen {
            time_0_unix_s: Some(case.number("t0_s")),
            ..Seen::default()
        },
        ..ClusterSpec::default()
    };
    let class = |name: &str, speed: Vec<f64>| ModelClass {
        name: name.into(),
        speed,
        locality: LocalityFactors::NONE,
        // What is requeued begins anew.
        checkpoint_interval_s: Some(86_400.0),
        ..ModelClass::default()
    };
    let one = |kind: usize| {
        (0..num_types)
            .map(|other| f64::from(u8::from(other == kind)))
            .collect()
    };
    let mut classes: Vec<ModelClass> = (0..num_types)
        .map(|kind| class(&case.types[kind], one(kind)))
        .collect();
    classes.push(class("any", vec![1.0; num_types]));
    let jobs = case.jobs.iter().map(|job| {
        let gpus = gpus_of(case, job);
        JobSpec {
            estimate_s: Some(job.limit_s as f64),
            class: case
                .types
                .iter()
                .position(|of| *of == job.gpu_type)
                .unwrap_or(num_types) as u16,
            tenant: accounts.iter().position(|of| *of == job.account).unwrap_or(0) as u16,
            user: Some(job.user.clone()),
            observed: Some(Box::new(Observed {
                start: Time::from_secs_f64(job.start_s),
                end: Some(Time::from_secs_f64(job.end_s)),
                nodes: job.nodes.clone(),
                partition: job.partition.clone(),
                qos: job.qos.clone(),
                held_s: (job.turn_s - job.submit_s).max(0.0),
                ..Observed::default()
            })),
            resources: Resources {
                cpu_cores: job.ask.of_each.cpu_milli as f64 / 1000.0 / f64::from(gpus),
                memory_gib: job.ask.of_each.memory_mib as f64 / 1024.0 / f64::from(gpus),
                tasks: Tasks {
                    gpus_per_task: gpus as u8,
                    tasks_per_node_max: 1,
                    nodes_max: 0,
                },
                ..Resources::WHOLE_GPU
            },
            ..JobSpec::new(
                format!("{}_{}", job.id, job.num.1),
                Time::from_secs_f64(job.submit_s),
                job.ask.nodes * gpus,
                job.end_s - job.start_s,
            )
        }
    });
    Workload {
        name: "recorded".into(),
        cluster,
        classes,
        jobs: jobs.collect(),
    }
}

/// A played list beside the recorded one.
pub(crate) struct Played {
    /// Of the starts, %, at most 5 s from the recorded ones.
    pub(crate) within_5_s: f64,
    /// Mean waits from submission, s.
    pub(crate) wait_s: f64,
    pub(crate) real_wait_s: f64,
}

fn play(case: &Case, planner: &mut dyn Planner) -> Played {
    let mut list = workload(case);
    // Jobs come when they were eligible: tasks when their turn came, and what waits for another job when that had ended.
    let came: Vec<Time> = case
        .jobs
        .iter()
        .map(|job| Time::from_secs_f64(job.turn_s))
        .collect();
    let mut order: Vec<usize> = (0..list.jobs.len()).collect();
    order.sort_by_key(|number| (came[*number], case.jobs[*number].num));
    list.jobs = order
        .iter()
        .map(|number| JobSpec {
            submit: came[*number],
            ..list.jobs[*number].clone()
        })
        .collect();
    let config = SimConfig {
        capabilities: match case.config.preempt {
            Preempt::None => CAN_MIX,
            _ => CAN_MIX.with(ActionKind::Preempt),
        },
        estimates: EstimateModel::UserLimit { default_s: 3600.0 },
        ..SimConfig::default()
    };
    let result = simulate_planner(&list, &config, planner).unwrap();
    let num = order.len() as f64;
    let pairs = || {
        order
            .iter()
            .zip(&result.jobs)
            .map(|(number, job)| (&case.jobs[*number], job.first_start_s))
    };
    Played {
        within_5_s: 100.0
            * pairs()
                .filter(|(job, start_s)| (job.start_s - start_s).abs() <= 5.0)
                .count() as f64
            / num,
        wait_s: pairs().map(|(job, start_s)| start_s - job.submit_s).sum::<f64>() / num,
        real_wait_s: pairs().map(|(job, _)| job.start_s - job.submit_s).sum::<f64>() / num,
    }
}

/// All recorded lists, played by the policy and by `easy`.
pub(crate) fn all() -> &'static [(String, [Played; 2])] {
    static ALL: LazyLock<Vec<(String, [Played; 2])>> = LazyLock::new(|| {
        let both = |(name, mut case): (String, Case)| {
            let folder = pleach_tests::data(&format!("slurm-schedules/{name}")).unwrap();
            let runs = Case::read(&folder).with_all_runs(&folder).jobs;
            for job in &mut case.jobs {
                let own = runs
                    .iter()
                    .filter(|run| run.num == job.num)
                    .map(|run| run.start_s);
                let first_s = own.fold(f64::INFINITY, f64::min);
                job.end_s += first_s - job.start_s;
                job.start_s = first_s;
            }
            let mut slurm = pleach_dealing::slurm::Slurm::new(case.config.clone()).unwrap();
            let mut easy = PolicyPlanner::new(heuristics::by_name("easy").unwrap());
            (name, [play(&case, &mut slurm), play(&case, &mut easy)])
        };
        cases().into_iter().map(both).collect()
    });
    &ALL
}

/// Of the waits of a list, %, at most 5 s from those of its second run, where there is one: it began at another second.
pub(crate) fn again(name: &str) -> Option<f64> {
    let waits = |name: &str| -> Option<BTreeMap<(String, u32), f64>> {
        let (_, case) = cases().into_iter().find(|(other, _)| other == name)?;
        let jobs = case.jobs.into_iter();
        Some(
            jobs.map(|job| ((job.id, job.num.1), job.start_s - job.submit_s))
                .collect(),
        )
    };
    let second = format!("{}_again", name.split('_').next()?);
    let (one, two) = (waits(name)?, waits(&second).filter(|_| second != name)?);
    let is_near = |(job, wait_s): &(&_, &f64)| {
        two.get(*job)
            .is_some_and(|other_s| (other_s - *wait_s).abs() <= 5.0)
    };
    Some(100.0 * one.iter().filter(is_near).count() as f64 / one.len() as f64)
}

#[test]
fn played_freely_it_is_as_near_to_a_real_slurm_as_that_is_to_itself() {
    // Starts within 5 s, %: of a second run of the same list by the real one (a1: the goal), less 5 points.
    let wanted = [
        ("a1_fifo", 100.0),
        ("b1_backfill", 46.0),
        ("b2_backfill_two_types", 69.0),
        ("c1_age_size", 45.0),
        ("d1_fair_tree", 25.0),
    ];
    let mut wrong = Vec::new();
    for (name, [own, easy]) in all() {
        println!(
            "{name}: mean wait {:.1} s, {:.1} s by slurm ({:.1} % within 5 s), {:.1} s by easy ({:.1} %)",
            own.real_wait_s, own.wait_s, own.within_5_s, easy.wait_s, easy.within_5_s
        );
        let Some((_, least)) = wanted.iter().find(|(wanted, _)| wanted == name) else {
            continue;
        };
        let ratio = own.wait_s / own.real_wait_s;
        if own.within_5_s < *least || !(0.9..=1.1).contains(&ratio) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
