//! The presets of other simulators, on lists that our own generators draw. Recorded runs of those simulators say whether the
//! presets are right; these rows say that they have not moved, also where the recorded runs are not at hand.

use std::collections::BTreeMap;
use std::process::Command;

use crate::presets::blox::{self, Blox};
use crate::presets::gavel::{self, Gavel, GavelRules, PairSpeeds};
use crate::presets::in_rounds::{RoundPreset, run};
use crate::presets::synergy::{self, Grant, Ideal, Order, Sensitivity, Synergy};
use crate::presets::{helios, lucid, tiresias};
use pleach_baselines::rounds::{JobCombination, Targets};
use pleach_env::workload::generate::{GavelConfig, GeneratorConfig, Paper, ProfileConfig, generate};
use pleach_env::workload::{JobSpec, Workload};
use pleach_env::world::RoundClock;
use pleach_env::{JobOutcome, Seed};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::physics::interference::PairEntry;
use pleach_scheduler::physics::sensitivity::{Sensitivity as Surface, Share};
use pleach_scheduler::{ClassId, GpuTypeId, JobId, Time};

use pleach_tests::golden::{Digest, Row, hold, is_minting};

/// The tests that compare the presets with recorded runs. In the whole workspace, so that its build is used again.
const RECORDED: [&str; 5] = ["--workspace", "--test", "reproduce", "--", "_simulators::"];

/// Nodes of eight GPUs.
const NUM_NODES: u32 = 4;
/// GPUs, CPU cores, memory (GiB) of Synergy's servers.
const SERVER: [f64; 3] = [8.0, 24.0, 500.0];
/// Tables of targets for Gavel; each is asked for once.
const NUM_TARGETS: usize = 300;
/// Speed of jobs that share GPUs, of that alone; made up.
const PAIR_SPEED: f64 = 0.6;

/// Gangs of up to 16 GPUs. These simulators count whole seconds.
fn gangs() -> Workload {
    let mut workload = generate(
        &GeneratorConfig::Profile(ProfileConfig {
            num_jobs: 120,
            num_nodes: NUM_NODES,
            nodes_per_rack: NUM_NODES,
            num_tenants: 1,
            gang_max: Some(16),
            load: 2.0,
            run_time_s_max: 86_400.0,
            ..ProfileConfig::default()
        }),
        Seed(21),
    )
    .unwrap();
    in_whole_seconds(&mut workload.jobs);
    workload
}

fn in_whole_seconds(jobs: &mut [JobSpec]) {
    for job in jobs {
        job.submit = Time::from_secs_f64(job.submit.as_secs_f64().round());
        job.run_time_s = job.run_time_s.round().max(1.0);
    }
}

fn row(name: String, jobs: &[JobOutcome]) -> Row {
    let mut digest = Digest::new();
    for job in jobs {
        digest.f64(job.first_start_s);
        digest.f64(job.finish_s);
        digest.word(u64::from(job.num_preemptions));
    }
    let jct_s = jobs.iter().map(JobOutcome::jct_s).sum::<f64>() / jobs.len() as f64;
    let num_preemptions: u32 = jobs.iter().map(|job| job.num_preemptions).sum();
    let figures = format!(
        "{} jobs, average JCT {jct_s:.1} s, {num_preemptions} preemptions",
        jobs.len()
    );
    Row::new(name, digest, figures)
}

fn in_rounds(name: String, workload: &Workload, clock: RoundClock, preset: &mut dyn RoundPreset) -> Row {
    let result = run(workload, clock, preset, &mut |_| {}).unwrap();
    let mut row = row(name, &result.jobs);
    row.result += &format!(", {} rounds, {} leases", result.num_rounds, result.num_leases);
    row
}

fn by_event() -> Vec<Row> {
    let jobs = gangs().jobs;
    let mut presets = Vec::new();
    presets.extend(tiresias::POLICIES.map(|policy| ("Tiresias", policy, tiresias::preset(policy))));
    presets.extend(helios::POLICIES.map(|policy| ("Helios", policy, helios::preset(policy))));
    presets.extend(lucid::POLICIES.map(|policy| ("Lucid", policy, lucid::preset(policy))));
    let play = |(simulator, policy, preset): (&str, &str, Result<crate::presets::Preset, _>)| {
        let result = preset.unwrap().simulate(NUM_NODES, 8, &jobs).unwrap();
        row(format!("{simulator}, {policy}"), &result.jobs)
    };
    presets.into_iter().map(play).collect()
}

fn blox() -> Vec<Row> {
    let mut workload = gangs();
    workload.jobs.truncate(80);
    workload.jobs.iter_mut().for_each(|job| job.num_gpus = 1);
    workload.cluster = ClusterSpec::uniform(1, 8, 1);
    let play = |order| {
        let name = format!("Blox, {order:?}");
        in_rounds(name, &workload, blox::CLOCK, &mut Blox { order })
    };
    [blox::Order::Fifo, blox::Order::Las, blox::Order::Srtf]
        .map(play)
        .into()
}

/// Every job is due the same part of its time on every type but one, which it gets where no other job wants it. Two that share
/// GPUs are due as much as the first of them.
fn targets(workload: &Workload, packs: bool) -> Targets {
    let (num_jobs, num_types) = (workload.jobs.len() as u32, workload.cluster.gpu_types.len());
    let gang = |job: u32| workload.jobs[job as usize].num_gpus;
    let due = |job: u32| -> Vec<f64> {
        let of_type = |kind: usize| {
            if kind == job as usize % num_types {
                0.0
            } else {
                1.0
            }
        };
        (0..num_types)
            .map(|kind| of_type(kind) / f64::from(num_jobs))
            .collect()
    };
    let mut targets = Targets::new();
    for a in 0..num_jobs {
        targets.insert(JobCombination::alone(JobId(a)), due(a));
        for b in (a + 1..num_jobs).filter(|b| packs && gang(a) == gang(*b)) {
            targets.insert(JobCombination::pair(JobId(a), JobId(b)), due(a));
        }
    }
    targets
}

/// Speeds of all pairs of classes, for the preset and for the cluster.
fn pairs(workload: &Workload) -> (PairSpeeds, Vec<PairEntry>) {
    let (mut speeds, mut entries) = (PairSpeeds::new(), Vec::new());
    for (kind, gpu_type) in workload.cluster.gpu_types.iter().enumerate() {
        for (a, victim) in workload.classes.iter().enumerate() {
            for (b, neighbour) in workload.classes.iter().enumerate() {
                let both = [victim, neighbour].map(|class| class.speed[kind] * PAIR_SPEED);
                speeds.insert(
                    (GpuTypeId(kind as u8), ClassId(a as u16), ClassId(b as u16)),
                    both,
                );
                entries.push(PairEntry {
                    gpu_type: gpu_type.name.clone(),
                    victim: victim.name.clone(),
                    neighbour: neighbour.name.clone(),
                    speed: PAIR_SPEED,
                });
            }
        }
    }
    (speeds, entries)
}

fn gavel() -> Vec<Row> {
    let mut workload = generate(
        &GeneratorConfig::Paper(Paper::GavelMulti(GavelConfig {
            num_jobs: 20,
            nodes_per_type: 2,
            nodes_per_rack: 2,
            load: 1.5,
            ..GavelConfig::default()
        })),
        Seed(22),
    )
    .unwrap();
    in_whole_seconds(&mut workload.jobs);
    let play = |policy: &str| {
        let rules = GavelRules::of(policy);
        let mut workload = workload.clone();
        let (speeds, entries) = if rules.packs {
            pairs(&workload)
        } else {
            Default::default()
        };
        workload.cluster.pairs = entries;
        let types = (0..3).rev().map(GpuTypeId).collect();
        let targets = vec![targets(&workload, rules.packs); NUM_TARGETS];
        let mut preset = Gavel::new(rules, workload.jobs.len(), types, targets, speeds);
        let row = in_rounds(format!("Gavel, {policy}"), &workload, gavel::CLOCK, &mut preset);
        assert_eq!(preset.problem(), None, "{policy}");
        row
    };
    [
        "max_min_fairness",
        "max_min_fairness_perf",
        "max_min_fairness_packed",
        "fifo_perf",
    ]
    .map(play)
    .into()
}

/// Synergy's measured models. The proportional share is the speed that a class has.
fn synergy() -> Vec<Row> {
    let models = ["alexnet", "resnet18", "mobilenet", "gnmt", "m5"];
    let surfaces = models.map(|model| Surface::from_name(model).unwrap());
    let mut workload = gangs();
    workload.jobs.truncate(80);
    workload.cluster = ClusterSpec::uniform(2, 8, 2);
    let group = &mut workload.cluster.node_groups[0];
    (group.cpu_cores, group.memory_gib) = (SERVER[1], SERVER[2]);
    let iteration_s = |class: usize| 0.25 * (class + 1) as f64;
    let fair = Share {
        cores: SERVER[1] / SERVER[0],
        memory_gib: SERVER[2] / SERVER[0],
        ..Share::SYNERGY
    };
    let sensitivity = |class: usize| {
        let wanted = surfaces[class].demand(1e-6);
        Sensitivity {
            iteration_s: iteration_s(class),
            cpu_cores: wanted.cores,
            memory_gib: wanted.memory_gib,
            speedup: surfaces[class].speed(wanted) / surfaces[class].speed(fair),
        }
    };
    workload.classes = (0..models.len())
        .map(|class| ModelClass {
            name: models[class].into(),
            speed: vec![1.0 / iteration_s(class)],
            sensitivity: Some(surfaces[class].clone()),
            ..ModelClass::default()
        })
        .collect();
    for (number, job) in workload.jobs.iter_mut().enumerate() {
        job.class = (number % models.len()) as u16;
    }
    let ideals = workload.jobs.iter();
    let ideals = ideals.map(|job| Ideal::of(sensitivity(usize::from(job.class)), job.num_gpus, SERVER));
    let ideals: Vec<Ideal> = ideals.collect();
    let mut rows = Vec::new();
    for order in [Order::Fifo, Order::Srtf, Order::Las, Order::Ftf] {
        for grant in [Grant::Proportional, Grant::Greedy, Grant::Tune] {
            let mut preset = Synergy::new(order, grant, SERVER, ideals.clone());
            let name = format!("Synergy, {order:?} {grant:?}");
            rows.push(in_rounds(name, &workload, synergy::CLOCK, &mut preset));
            assert_eq!(preset.problem(), None, "{order:?} {grant:?}");
        }
    }
    rows
}

/// Rows are minted only by presets that the recorded runs bear out.
fn agree_with_recorded_runs() {
    let tests = Command::new(env!("CARGO"))
        .args(["test", "--locked"])
        .args(RECORDED)
        .env("PLEACH_REQUIRE_DATA", "1")
        .status();
    assert!(
        tests.unwrap().success(),
        "the presets do not agree with the recorded runs, or those are not at hand: nothing is minted"
    );
}

#[test]
fn the_presets_of_other_simulators_decide_as_they_did() {
    let rows: Vec<Row> = [by_event(), blox(), gavel(), synergy()].concat();
    let by_simulator = rows.iter().fold(BTreeMap::new(), |mut counts, row| {
        let simulator = row.name.split(',').next().unwrap();
        *counts.entry(simulator).or_insert(0) += 1;
        counts
    });
    let counts: Vec<(&str, i32)> = by_simulator.into_iter().collect();
    assert_eq!(
        counts,
        [
            ("Blox", 3),
            ("Gavel", 4),
            ("Helios", 4),
            ("Lucid", 4),
            ("Synergy", 12),
            ("Tiresias", 7)
        ]
    );
    if is_minting("simulators", &rows) {
        agree_with_recorded_runs();
    }
    hold("simulators", rows);
}
