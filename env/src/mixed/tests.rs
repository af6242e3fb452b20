//! Leases held to what they promise, to runs without them, and to schedules worked by hand.

use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::{ActionKind, Problem, Time, heuristics};
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    Autoscaler, Blocks, Demand, Fleet, Pace, Request, Requests, Targets, Yield, autoscaler, by_name,
    simulate as serve,
};
use pleach_workloads::{GeneratorConfig, JobSpec, Seed, Workload, generate};

use super::{MixedResult, ServiceSpec, simulate_mixed};
use crate::failures::OutcomeModel;
use crate::simulate::{SimConfig, simulate};
use crate::test_lists::{job, workload};

fn fleet(num_replicas: usize, num_gateways: usize, scrape_s: f64) -> Fleet {
    Fleet {
        pace: Pace::of("llama-3-8b", "H100").unwrap(),
        num_replicas,
        num_gateways,
        scrape_s,
        targets: Targets {
            ttft_s: 1.0,
            tpot_s: 0.05,
        },
        may_refuse: false,
    }
}

fn requests(num_requests: u32, rate_per_s: f64, burst: f64, seed: u64) -> Requests {
    let generator = RequestGenerator {
        num_requests,
        rate_per_s,
        burst,
        ..RequestGenerator::default()
    };
    generator.draw(Seed(seed)).unwrap()
}

fn one_request(arrival_s: f64, output_tokens: u32) -> Request {
    Request {
        arrival_s,
        prompt_tokens: 100,
        output_tokens,
        session: 0,
        prefix_tokens: 0,
        blocks: Blocks::default(),
    }
}

/// Plays jobs under a policy beside one service, whose router is `least-requests`.
struct Play<'a> {
    workload: &'a Workload,
    config: SimConfig,
    policy: &'a str,
    requests: &'a Requests,
    fleet: &'a Fleet,
    load_s: f64,
    grace_s: f64,
    until: Option<Time>,
}

impl Play<'_> {
    fn under(&self, autoscaler: &mut dyn Autoscaler) -> MixedResult {
        let mut router = by_name("least-requests", 1).unwrap();
        let service = ServiceSpec {
            requests: self.requests,
            fleet: self.fleet,
            replica_gpus: 1,
            router: router.as_mut(),
            autoscaler,
            load_s: self.load_s,
            grace_s: self.grace_s,
            usual_per_s: &[],
            record_routes: true,
        };
        let mut policy = heuristics::by_name(self.policy).unwrap();
        simulate_mixed(
            self.workload,
            &self.config,
            &mut policy,
            vec![service],
            self.until,
        )
        .unwrap()
    }

    fn by_name(&self, name: &str) -> MixedResult {
        self.under(autoscaler(name, 6.0).unwrap().as_mut())
    }
}

/// Wants so many replicas from so many seconds on.
struct Script {
    period_s: f64,
    wants: Vec<(f64, usize)>,
}

impl Autoscaler for Script {
    fn period_s(&self) -> Option<f64> {
        Some(self.period_s)
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem> {
        let past = self
            .wants
            .iter()
            .rev()
            .find(|(from_s, _)| *from_s <= demand.now_s);
        Ok(past.map_or(0, |(_, wanted)| *wanted))
    }
}

fn preempting(restart_cost_s: f64) -> SimConfig {
    SimConfig {
        capabilities: Capabilities {
            restart_cost_s,
            ..Capabilities::DEFAULT.with(ActionKind::Preempt)
        },
        ..SimConfig::default()
    }
}

#[test]
fn without_leases_training_is_what_it_was_to_the_last_digit() {
    let list = generate(&GeneratorConfig::default().with(300, 0.9), Seed(3)).unwrap();
    let (few, fleet) = (requests(50, 1.0, 0.0, 1), fleet(4, 1, 1.0));
    for policy in ["fifo", "srtf", "easy", "las"] {
        let config = SimConfig {
            outcomes: Some(OutcomeModel::philly()),
            ..preempting(30.0)
        };
        let mut alone = heuristics::by_name(policy).unwrap();
        let plain = simulate(&list, &config, &mut alone).unwrap();
        let none = simulate_mixed(&list, &config, &mut alone, Vec::new(), None).unwrap();
        assert_eq!(
            (&none.jobs, none.num_passes),
            (&plain.jobs, plain.num_passes),
            "{policy}"
        );
        let play = Play {
            workload: &list,
            config,
            policy,
            requests: &few,
            fleet: &fleet,
            load_s: 10.0,
            grace_s: 10.0,
            until: None,
        };
        let zero = play.by_name("static:replicas=0");
        assert_eq!(
            (&zero.jobs, zero.num_passes),
            (&plain.jobs, plain.num_passes),
            "{policy}"
        );
        assert_eq!(zero.services[0].outcome.served().count(), 0);
    }
}

#[test]
fn without_jobs_a_service_with_fixed_leases_is_the_fleet_that_stands_still() {
    let empty = workload(Vec::new());
    let list = requests(6_000, 40.0, 0.3, 2);
    for (num_gateways, scrape_s) in [(1, 0.0), (1, 1.0), (3, 0.7)] {
        let fleet = fleet(5, num_gateways, scrape_s);
        let play = Play {
            workload: &empty,
            config: SimConfig::default(),
            policy: "fifo",
            requests: &list,
            fleet: &fleet,
            load_s: 60.0,
            grace_s: 30.0,
            until: None,
        };
        let mixed = play.by_name("static:replicas=5");
        let alone = serve(&list, &fleet, by_name("least-requests", 1).unwrap().as_mut()).unwrap();
        assert_eq!(mixed.services[0].outcome, alone);
        // Questions in between change nothing where the answer is the same.
        let mut script = Script {
            period_s: 7.0,
            wants: vec![(0.0, 5)],
        };
        assert_eq!(play.under(&mut script).services[0].outcome, alone);
    }
}

/// One-GPU jobs that wait from the beginning, and a gang among them.
fn crowd() -> Workload {
    let mut jobs: Vec<JobSpec> = (0..40).map(|id| job(&format!("j{id}"), 0.0, 1, 900.0)).collect();
    jobs.insert(3, job("gang", 0.0, 4, 700.0));
    workload(jobs)
}

#[test]
fn a_lease_is_used_within_its_time_every_request_is_served_once_and_gpu_time_adds_up() {
    let (list, crowd, fleet) = (requests(20_000, 20.0, 1.5, 4), crowd(), fleet(8, 2, 0.5));
    for (grace_s, policy) in [(30.0, "fifo"), (0.0, "srtf"), (2.0, "las")] {
        let mut config = preempting(30.0);
        config.capabilities.checkpoint_interval_s = Some(100.0);
        let play = Play {
            workload: &crowd,
            config,
            policy,
            requests: &list,
            fleet: &fleet,
            load_s: 20.0,
            grace_s,
            until: Some(Time::from_secs_f64(1_000.0)),
        };
        let mixed = play.by_name("reactive:target=1:down=20:period=5");
        let service = &mixed.services[0];
        assert_eq!(service.outcome.served().count(), 20_000);
        assert!(
            service.grants.len() > 20 && service.num_preemptions > 10,
            "{}",
            service.grants.len()
        );
        assert!(service.num_returned > 0 || grace_s > 0.0, "nothing was cut off");
        let came = list.rows().partition_point(|request| request.arrival_s < 1_000.0);
        assert_eq!(service.routes.len(), came + service.num_returned as usize);
        for (request, seat, at_ps) in &service.routes {
            let at = Time((at_ps / 1_000_000) as i64);
            let within = |grant: &&super::Grant| {
                grant.seat == *seat && grant.ready <= at && grant.reclaimed.is_none_or(|taken| at <= taken)
            };
            let num = service.grants.iter().filter(within).count();
            assert!(num >= 1, "request {request} at seat {seat}, {at:?}");
        }
        let held: f64 = mixed.training.held_gpu_s;
        let sum = held + service.leased_gpu_s + mixed.idle_gpu_s;
        assert!(
            (sum - 8.0 * mixed.span_s).abs() < 1e-6 * sum,
            "{sum} GPU·s of {} s",
            mixed.span_s
        );
        assert!(held > 0.3 * sum && mixed.training.done_gpu_s < held);
        assert_eq!(mixed, play.by_name("reactive:target=1:down=20:period=5"));
        for (seat, rows) in by_seat(&mixed).iter().enumerate() {
            for pair in rows.windows(2) {
                let ended = pair[0].ended.expect("the next one has its seat");
                assert!(ended <= pair[1].granted, "seat {seat}: {pair:?}");
            }
        }
        for grant in &service.grants {
            let [from, ready] = [grant.granted, grant.ready].map(Time::as_secs_f64);
            assert!(ready == from + 20.0 || from == 0.0, "{grant:?}");
            // The grace, and the step that is under way when it ends.
            if let (Some(reclaimed), Some(ended)) = (grant.reclaimed, grant.ended) {
                let took_s = (ended - reclaimed).as_secs_f64();
                assert!((0.0..=grace_s + 0.2).contains(&took_s), "{grant:?}");
            }
        }
    }
}

fn by_seat(mixed: &MixedResult) -> Vec<Vec<super::Grant>> {
    let mut seats = vec![Vec::new(); 8];
    for grant in &mixed.services[0].grants {
        seats[grant.seat].push(*grant);
    }
    seats
}

/// Two GPUs, two jobs of 1,000 s that come at 0. A lease from 100 to 200 s stops the one that began last: of equal losses the
/// higher number. It comes back at 200 s, pays 30 s and does its other 900 s: it ends at 1,130 s.
#[test]
fn the_job_that_loses_least_yields_and_comes_back_when_the_lease_ends() {
    let mut pair = workload(vec![job("a", 0.0, 1, 1_000.0), job("b", 0.0, 1, 1_000.0)]);
    pair.cluster = pleach_scheduler::cluster_spec::ClusterSpec::uniform(1, 2, 1);
    let list = Requests::new(vec![one_request(1.0, 10)]).unwrap();
    let fleet = fleet(2, 1, 0.0);
    let play = Play {
        workload: &pair,
        config: preempting(30.0),
        policy: "fifo",
        requests: &list,
        fleet: &fleet,
        load_s: 60.0,
        grace_s: 30.0,
        until: None,
    };
    let mut script = Script {
        period_s: 50.0,
        wants: vec![(100.0, 1), (200.0, 0)],
    };
    let mixed = play.under(&mut script);
    let ends: Vec<f64> = mixed.jobs.iter().map(|job| job.finish_s).collect();
    assert_eq!(ends, [1_000.0, 1_130.0]);
    let service = &mixed.services[0];
    assert_eq!((service.num_preemptions, service.leased_gpu_s), (1, 100.0));
    // The request that came at 1 s waited at the gateway until the model was loaded at 160 s.
    let ttft_s = service.outcome.requests[0].unwrap().ttft_s;
    assert!((159.0..159.1).contains(&ttft_s), "{ttft_s}");
}

/// A gang of four began last, but its stop costs four times a restart: the single job yields. Where the gang is alone, one GPU
/// stops all of it, and it waits for four: 100 s until the lease ends, 30 s of restart.
#[test]
fn one_gpu_of_a_gang_costs_the_whole_gang() {
    let list = Requests::new(vec![one_request(1.0, 10)]).unwrap();
    let fleet = fleet(1, 1, 0.0);
    let ends = |jobs: Vec<JobSpec>, num_gpus: u32| {
        let mut few = workload(jobs);
        few.cluster = pleach_scheduler::cluster_spec::ClusterSpec::uniform(1, num_gpus, 1);
        let play = Play {
            workload: &few,
            config: preempting(30.0),
            policy: "fifo",
            requests: &list,
            fleet: &fleet,
            load_s: 0.0,
            grace_s: 0.0,
            until: None,
        };
        let mut script = Script {
            period_s: 50.0,
            wants: vec![(100.0, 1), (200.0, 0)],
        };
        let mixed = play.under(&mut script);
        mixed.jobs.iter().map(|job| job.finish_s).collect::<Vec<f64>>()
    };
    let single = job("single", 0.0, 1, 1_000.0);
    let gang = job("gang", 10.0, 4, 1_000.0);
    assert_eq!(ends(vec![single, gang.clone()], 5), [1_130.0, 1_010.0]);
    assert_eq!(ends(vec![gang], 4), [1_140.0]);
}

/// Records what each demand says of the training jobs beside the service.
struct Spy(Vec<(usize, usize, usize, Vec<Yield>)>);

impl Autoscaler for Spy {
    fn period_s(&self) -> Option<f64> {
        Some(50.0)
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem> {
        let beside = demand.beside;
        self.0.push((
            beside.training_gpus,
            beside.idle_gpus,
            beside.waiting_gpus,
            beside.yields.to_vec(),
        ));
        Ok(usize::from(demand.now_s >= 100.0))
    }
}

/// A single job and a gang of four on six GPUs, and a pair that waits. What each stop loses is a restart of 30 s on its GPUs; the
/// replica from 100 s on takes the GPU that is idle.
#[test]
fn an_autoscaler_is_told_who_would_yield_first_and_what_is_idle() {
    let jobs = vec![
        job("single", 0.0, 1, 1_000.0),
        job("gang", 0.0, 4, 1_000.0),
        job("pair", 0.0, 2, 100.0),
    ];
    let mut three = workload(jobs);
    three.cluster = pleach_scheduler::cluster_spec::ClusterSpec::uniform(1, 6, 1);
    let list = Requests::new(vec![one_request(1.0, 10)]).unwrap();
    let fleet = fleet(2, 1, 0.0);
    let play = Play {
        workload: &three,
        config: preempting(30.0),
        policy: "fifo",
        requests: &list,
        fleet: &fleet,
        load_s: 0.0,
        grace_s: 0.0,
        until: Some(Time::from_secs_f64(200.0)),
    };
    let mut spy = Spy(Vec::new());
    let mixed = play.under(&mut spy);
    let yields = vec![
        Yield {
            gpus: 1,
            loss_gpu_s: 30.0,
        },
        Yield {
            gpus: 4,
            loss_gpu_s: 120.0,
        },
    ];
    let at = |idle: usize| (5, idle, 2, yields.clone());
    assert_eq!(spy.0[1..], [at(1), at(1), at(0)]);
    assert_eq!(mixed.training_gpus, [(Time::ZERO, 5)]);
    assert_eq!(mixed.services[0].num_preemptions, 0);
}

/// A long answer at a replica that is taken back at once goes on at the other one: served once, with the first token it had.
#[test]
fn what_a_grace_cuts_off_goes_on_elsewhere_with_the_tokens_that_it_has() {
    let list = Requests::new(vec![one_request(10.0, 2_000)]).unwrap();
    let (empty, fleet) = (workload(Vec::new()), fleet(2, 1, 0.0));
    let play = |grace_s: f64| Play {
        workload: &empty,
        config: SimConfig::default(),
        policy: "fifo",
        requests: &list,
        fleet: &fleet,
        load_s: 0.0,
        grace_s,
        until: Some(Time::from_secs_f64(60.0)),
    };
    // One replica, then both, then the one that has fewer requests goes: the second. Then the first goes, and the second comes back.
    let wants = vec![(0.0, 1), (12.0, 0), (13.0, 1)];
    let play_by = |grace_s: f64| {
        let mut script = Script {
            period_s: 1.0,
            wants: wants.clone(),
        };
        play(grace_s).under(&mut script)
    };
    let (cut, kept) = (play_by(0.0), play_by(30.0));
    let served = |mixed: &MixedResult| mixed.services[0].outcome.requests[0].unwrap();
    assert_eq!(
        (cut.services[0].num_returned, kept.services[0].num_returned),
        (1, 0)
    );
    assert_eq!(served(&cut).ttft_s, served(&kept).ttft_s);
    // It stood still from 12 to 13 s.
    let later_s = served(&cut).latency_s - served(&kept).latency_s;
    assert!((0.9..1.2).contains(&later_s), "{later_s}");
    // With a grace the same replica went on: it was kept.
    assert_eq!(
        (cut.services[0].grants.len(), kept.services[0].grants.len()),
        (2, 1)
    );
    assert_eq!(
        kept.services[0].outcome,
        serve(
            &list,
            &self::fleet(1, 1, 0.0),
            by_name("random", 0).unwrap().as_mut()
        )
        .unwrap()
    );
}

#[test]
fn leases_change_when_jobs_run_and_nobodys_fate() {
    let jobs = generate(&GeneratorConfig::default().with(200, 0.5), Seed(5)).unwrap();
    let (list, fleet) = (requests(20_000, 4.0, 1.5, 6), fleet(6, 1, 1.0));
    let config = SimConfig {
        outcomes: Some(OutcomeModel::philly()),
        ..preempting(30.0)
    };
    let play = Play {
        workload: &jobs,
        config,
        policy: "fifo",
        requests: &list,
        fleet: &fleet,
        load_s: 20.0,
        grace_s: 10.0,
        until: None,
    };
    let fates = |name: &str| {
        let mixed = play.by_name(name);
        let fates: Vec<_> = mixed
            .jobs
            .iter()
            .map(|job| (job.outcome, job.num_failures))
            .collect();
        (fates, mixed.services[0].grants.len())
    };
    let (alone, none) = fates("static:replicas=0");
    let (beside, some) = fates("reactive:target=1:down=15:period=5");
    assert!(none == 0 && some > 20, "{some} leases");
    assert!(alone.iter().any(|(_, failures)| *failures > 0));
    assert_eq!(alone, beside);
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let (empty, list, fleet) = (workload(Vec::new()), requests(10, 1.0, 0.0, 1), fleet(1, 1, 0.0));
    let refusal = |config: SimConfig, grace_s: f64| {
        let (mut router, mut scaler) = (by_name("random", 1).unwrap(), autoscaler("static", 1.0).unwrap());
        let service = ServiceSpec {
            requests: &list,
            fleet: &fleet,
            replica_gpus: 1,
            router: router.as_mut(),
            autoscaler: scaler.as_mut(),
            load_s: 1.0,
            grace_s,
            usual_per_s: &[],
            record_routes: false,
        };
        let mut policy = heuristics::by_name("fifo").unwrap();
        let refused = simulate_mixed(&empty, &config, &mut policy, vec![service], None);
        refused.unwrap_err().to_string()
    };
    let mut fails = SimConfig::default();
    fails.capacity.node_mtbf_s = Some(1e6);
    assert!(refusal(fails, 1.0).contains("capacity"));
    assert!(refusal(SimConfig::default(), -1.0).contains("grace_s = -1"));
}
