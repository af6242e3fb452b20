//! Published rates, repeats and effective times, each by enough draws.

use pleach_scheduler::cluster::{Capabilities, JobState, Slice};
use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::heuristics::by_name;
use pleach_scheduler::{Estimate, JobId, NodeId, Provenance};
use pleach_workloads::{JobSpec, Workload};

use super::*;
use crate::availability::AvailabilityConfig;
use crate::metrics::JobOutcome;
use crate::simulate::{SimConfig, simulate};
use crate::test_lists::class_of;
use crate::world::{Advance, World};

const SEED: Seed = Seed(26);
const DAY_S: f64 = 86_400.0;

/// Jobs of so many nodes of 8 GPUs that all begin at once, with a tenth of the nodes to spare.
fn play(
    num_jobs: u32,
    num_nodes: u32,
    work_s: f64,
    capabilities: Capabilities,
    site: SiteFailures,
) -> Vec<JobOutcome> {
    let all_nodes = num_jobs * num_nodes;
    let job = |number| JobSpec::new(format!("{number}"), Time::ZERO, 8 * num_nodes, work_s);
    let workload = Workload {
        name: "test".into(),
        cluster: ClusterSpec::uniform(all_nodes + all_nodes / 10 + 1, 8, 32),
        classes: vec![class_of(1)],
        jobs: (0..num_jobs).map(job).collect(),
    };
    let config = SimConfig {
        capabilities,
        capacity: AvailabilityConfig {
            site: Some(site),
            ..AvailabilityConfig::default()
        },
        seed: 5,
        ..SimConfig::default()
    };
    let mut fifo = by_name("fifo").unwrap();
    simulate(&workload, &config, fifo.as_mut()).unwrap().jobs
}

fn costs(restart_cost_s: f64, checkpoint_interval_s: Option<f64>) -> Capabilities {
    Capabilities {
        restart_cost_s,
        checkpoint_interval_s,
        ..Capabilities::DEFAULT
    }
}

#[test]
fn jobs_of_8_and_of_1024_gpus_meet_incidents_as_often_as_published() {
    // RSC-1 (arXiv 2410.21680): 47.7 days and 7.9 hours. With 22 per 1,000 node-days 45.5 days and 8.5 hours.
    for (num_jobs, num_nodes, work_s, published_s) in [
        (300, 1, 60.0 * DAY_S, 47.7 * DAY_S),
        (1, 128, 200.0 * DAY_S, 7.9 * 3600.0),
    ] {
        let jobs = play(
            num_jobs,
            num_nodes,
            work_s,
            costs(0.0, None),
            SiteFailures::RESEARCH,
        );
        let held_s: f64 = jobs.iter().map(|job| job.held_s).sum();
        let num_failures: u32 = jobs.iter().map(|job| job.num_failures).sum();
        let found_s = held_s / f64::from(num_failures);
        assert!(num_failures > 300, "{num_failures}");
        let ratio = found_s / published_s;
        assert!(
            (0.8..1.25).contains(&ratio),
            "{num_nodes} nodes: {found_s} {published_s}"
        );
    }
}

/// Part of the time in which a run of so many GPUs works, and its interruptions a day.
fn effective(num_gpus: u32, days: f64, restart_s: f64, interval_s: f64, site: SiteFailures) -> (f64, f64) {
    let capabilities = costs(restart_s, Some(interval_s));
    let job = play(1, num_gpus / 8, days * DAY_S, capabilities, site)[0];
    let a_day = f64::from(job.num_failures) / (job.held_s / DAY_S);
    (days * DAY_S / job.held_s, a_day)
}

#[test]
fn presets_keep_the_published_effective_times() {
    // Published: a value is met within 0.03, a bound is kept. RSC (arXiv 2410.21680): about .9 of jobs above 1,024 GPUs, a
    // checkpoint an hour, 5 to 20 minutes until a job goes on; at 2,048 GPUs the preset is 5 points below, for its rate is that
    // of all incidents. MegaScale (NSDI'24): over .90 on more than 10,000 GPUs. ByteRobust (arXiv 2509.16293): .97 of a dense
    // run on 9,600 GPUs that saves each step in memory (here each minute). Where no time until a run goes on is published it is
    // the restart of 405B by class.
    let (research, production) = (SiteFailures::RESEARCH, SiteFailures::PRODUCTION);
    for (name, num_gpus, days, restart_s, interval_s, site, range) in [
        ("RSC-1", 1024, 200.0, 750.0, 3600.0, research, 0.87..0.93),
        ("MegaScale", 12_288, 40.0, 570.0, 900.0, production, 0.90..1.0),
        ("ByteRobust", 9600, 90.0, 570.0, 60.0, production, 0.94..1.0),
    ] {
        let (found, a_day) = effective(num_gpus, days, restart_s, interval_s, site);
        eprintln!("{name}: effective {found:.3}, {a_day:.1} interruptions a day");
        assert!(range.contains(&found), "{name}: {found}");
    }
}

#[test]
fn a_research_site_interrupts_a_run_of_992_gpus_as_often_as_opt_175b_was() {
    // arXiv 2205.01068: at least 35 manual and some 70 automatic restarts in two months.
    let (_, a_day) = effective(992, 60.0, 600.0, 3600.0, SiteFailures::RESEARCH);
    assert!((105.0 / 60.0..2.0 * 105.0 / 60.0).contains(&a_day), "{a_day}");
}

#[test]
fn a_production_run_of_llama_3s_size_is_interrupted_as_often_and_keeps_the_published_bound() {
    // Published: 419 unplanned interruptions in 54 days on up to 16,384 GPUs, an effective time above 90 %. A restart of 405B by
    // class takes 568 s (34 and 44 s to connect, 370 to warm up, 120 to load); checkpoints every 10 min are assumed.
    let (found, a_day) = effective(16_384, 60.0, 568.0, 600.0, SiteFailures::PRODUCTION);
    eprintln!("Llama 3: effective {found:.3}, {a_day:.1} interruptions a day");
    assert!((a_day / (419.0 / 54.0) - 1.0).abs() < 0.15, "{a_day}");
    assert!((0.9..1.0).contains(&found), "{found}");
}

#[test]
fn three_of_63_nodes_have_the_published_part_of_40_failures() {
    // Shares by the coefficient of variation of a node's rate; three nodes had over half at 504 B200.
    for (node_cv, published) in [(1.0, 0.27), (2.0, 0.42), (2.5, 0.50), (3.0, 0.58)] {
        let site = SiteFailures {
            node_cv,
            ..SiteFailures::RESEARCH
        };
        let mut sum = 0.0;
        let num_sites = 400;
        for number in 0..num_sites {
            let seed = SEED.child("site", number);
            let rates: Vec<f64> = (0..63).map(|node| 1.0 / site.mtbf_s(seed, node)).collect();
            let all: f64 = rates.iter().sum();
            let mut counts = [0_u32; 63];
            let mut rng = seed.stream("failures", 0);
            for _ in 0..40 {
                let mut left = rng.random::<f64>() * all;
                let node = rates.iter().position(|rate| {
                    left -= rate;
                    left < 0.0
                });
                counts[node.unwrap_or(62)] += 1;
            }
            counts.sort_unstable();
            sum += f64::from(counts[60] + counts[61] + counts[62]) / 40.0;
        }
        let share = sum / num_sites as f64;
        assert!((share - published).abs() < 0.04, "{node_cv}: {share} {published}");
    }
}

#[test]
fn a_nodes_factor_has_mean_1_and_the_deviation_that_was_asked_for() {
    for cv in [0.0, 0.5, 1.0, 2.5] {
        let draw = |node| gamma_of_mean_1(cv, &mut SEED.stream("gamma", node));
        let draws: Vec<f64> = (0..40_000).map(draw).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let variance = draws.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 40_000.0;
        // The mean is known to cv / 200, the deviation of a heavy tail to some percent.
        assert!((mean - 1.0).abs() <= 4.0 * cv / 200.0, "{cv}: {mean}");
        assert!((variance.sqrt() - cv).abs() <= 0.08 * cv, "{cv}: {variance}");
    }
}

#[test]
fn nine_repairs_in_ten_take_hours_and_one_takes_days() {
    let mut rng = SEED.stream("repairs", 0);
    let repairs: Vec<f64> = (0..20_000)
        .map(|_| SiteFailures::RESEARCH.repair(&mut rng).as_secs_f64())
        .collect();
    let soft = repairs.iter().filter(|repair| **repair <= 10_800.0);
    let part = soft.count() as f64 / 20_000.0;
    assert!((part - 0.9).abs() < 0.01, "{part}");
    let mut hard: Vec<f64> = repairs
        .iter()
        .copied()
        .filter(|repair| *repair > 10_800.0)
        .collect();
    hard.sort_by(f64::total_cmp);
    assert!(hard[0] >= DAY_S && hard[hard.len() - 1] <= 3.0 * DAY_S);
    assert!((hard[hard.len() / 2] / (1.5 * DAY_S) - 1.0).abs() < 0.05);
    assert!(repairs.iter().all(|repair| *repair >= 600.0));
}

#[test]
fn a_hang_holds_its_gpus_until_it_is_seen_and_then_fails_as_any_incident() {
    // Only hangs, all of them seen after 600 s, and nothing lost: each costs 600 s of the gang's time.
    let site = SiteFailures {
        hardware: 0.0,
        incidents: 500.0,
        hang_part: 1.0,
        ..SiteFailures::RESEARCH
    };
    let work_s = 100.0 * DAY_S;
    let job = play(1, 2, work_s, costs(30.0, None), site)[0];
    // Once a day on two nodes.
    assert!((70..140).contains(&job.num_failures), "{}", job.num_failures);
    let expected_s = work_s + 630.0 * f64::from(job.num_failures);
    // A restart that is cut short by the next hang costs less than 30 s.
    assert!(
        (job.held_s - expected_s).abs() < 60.0,
        "{} {expected_s}",
        job.held_s
    );
    let crashes = SiteFailures {
        hang_part: 0.0,
        ..site
    };
    let job = play(1, 2, work_s, costs(30.0, None), crashes)[0];
    let expected_s = work_s + 30.0 * f64::from(job.num_failures);
    assert!(
        (job.held_s - expected_s).abs() < 60.0,
        "{} {expected_s}",
        job.held_s
    );
}

#[test]
fn one_restart_in_ten_waits_for_a_human_for_an_hour_or_so() {
    let site = SiteFailures {
        human_part: 0.1,
        ..SiteFailures::RESEARCH
    };
    let mut rng = SEED.stream("humans", 0);
    let draws: Vec<Option<f64>> = (0..100_000).map(|_| site.waits_for_human_s(&mut rng)).collect();
    let mut waits_s: Vec<f64> = draws.into_iter().flatten().collect();
    assert!((9700..10_300).contains(&waits_s.len()), "{}", waits_s.len());
    waits_s.sort_by(f64::total_cmp);
    let at = |part: f64| waits_s[(part * waits_s.len() as f64) as usize];
    // Median and the quantile of one standard deviation: an hour, and e^1.2 hours.
    assert!((at(0.5) / 3600.0 - 1.0).abs() < 0.05, "{}", at(0.5));
    assert!((at(0.841_345) / (3600.0 * 3.320_117) - 1.0).abs() < 0.06);
}

#[test]
fn a_job_that_needs_a_human_is_out_of_the_queue_until_then() {
    // Two nodes, one job of both, an incident each day on average, each of which needs a human. Nothing is lost and a restart
    // is free, so the job holds its GPUs for its work alone and all the rest of its time it waits for humans.
    let site = SiteFailures {
        hardware: 0.0,
        incidents: 500.0,
        hang_part: 0.0,
        human_part: 1.0,
        ..SiteFailures::RESEARCH
    };
    let work_s = 50.0 * DAY_S;
    let workload = Workload {
        name: "test".into(),
        cluster: ClusterSpec::uniform(2, 8, 2),
        classes: vec![class_of(1)],
        jobs: vec![JobSpec::new("a", Time::ZERO, 16, work_s)],
    };
    let known = [Estimate {
        value: work_s,
        provenance: Provenance::Oracle,
    }];
    let mut world = World::new(&workload, costs(0.0, None), &known).unwrap();
    let config = AvailabilityConfig {
        site: Some(site),
        ..AvailabilityConfig::default()
    };
    world.set_capacity(&config, SEED).unwrap();
    let (mut stopped, mut waits_s) = (None, Vec::new());
    while world.advance() == Advance::Event {
        let now = world.cluster().now();
        match world.cluster().jobs()[0].state {
            JobState::Held => {
                assert_eq!(
                    (world.cluster().num_pending(), world.cluster().num_free()),
                    (0, 16)
                );
                stopped = Some(now);
            }
            JobState::Pending => {
                waits_s.extend(stopped.take().map(|then| (now - then).as_secs_f64()));
                let gpus = 0xff;
                let slices = [0, 1].map(|node| Slice {
                    node: NodeId(node),
                    gpus,
                });
                world.cluster_mut().start(JobId(0), slices.into_iter().collect());
            }
            _ => {}
        }
        world.cluster().check();
        world.carry_out();
    }
    let job = *world.outcomes().next().unwrap();
    assert!((30..80).contains(&job.num_failures), "{}", job.num_failures);
    assert_eq!(waits_s.len(), job.num_failures as usize);
    for (number, wait_s) in waits_s.iter().enumerate() {
        let seed = SEED.child("incidents", 0).child("human", 0);
        let drawn_s = site.waits_for_human_s(&mut seed.stream("failure", 1 + number as u64));
        assert!((wait_s - drawn_s.unwrap()).abs() < 1e-5, "{number}");
    }
    assert!((job.held_s - work_s).abs() < 1e-3, "{}", job.held_s);
    let jct_s = work_s + waits_s.iter().sum::<f64>();
    assert!((job.finish_s - jct_s).abs() < 1e-2, "{} {jct_s}", job.finish_s);
}

#[test]
fn numbers_out_of_their_range_and_two_rates_at_once_are_refused() {
    for (text, key) in [
        ("hardware = -1.0", "capacity.site.hardware"),
        ("hardware = 4.0\nincidents = 3.0", "capacity.site.incidents"),
        ("node_cv = 11.0", "capacity.site.node_cv"),
        ("hang_s = 1e9", "capacity.site.hang_s"),
        ("human_part = 1.1", "capacity.site.human_part"),
        ("human_s = -1.0", "capacity.site.human_s"),
    ] {
        let site: SiteFailures = toml::from_str(text).unwrap();
        let error = site.validate().unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
    let both = AvailabilityConfig {
        node_mtbf_s: Some(1e6),
        site: Some(SiteFailures::PRODUCTION),
        ..AvailabilityConfig::default()
    };
    let error = both.validate().unwrap_err().to_string();
    assert!(error.contains("none beside capacity.site"), "{error}");
    let error = SiteFailures::from_name("meta").unwrap_err().to_string();
    assert!(error.contains("research, production"), "{error}");
}
