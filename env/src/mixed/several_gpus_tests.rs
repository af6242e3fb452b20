//! Replicas of several GPUs, which lie on one node each.

use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::{Problem, Time, heuristics};
use pleach_serving::llm::{Autoscaler, Blocks, Demand, Fleet, Pace, Request, Requests, Targets, by_name};
use pleach_workloads::JobSpec;

use super::{MixedResult, ServiceSpec, simulate_mixed};
use crate::error::Error;
use crate::simulate::SimConfig;
use crate::test_lists::{job, workload};

/// One replica from 100 to 300 s. Records the GPUs of training jobs and the idle GPUs of each demand.
struct OneFor200S(Vec<(usize, usize)>);

impl Autoscaler for OneFor200S {
    fn period_s(&self) -> Option<f64> {
        Some(50.0)
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem> {
        assert_eq!((demand.replica_gpus, demand.node_replicas), (4, 1));
        let beside = demand.beside;
        self.0.push((beside.training_gpus, beside.idle_gpus));
        Ok(usize::from((100.0..300.0).contains(&demand.now_s)))
    }
}

/// Jobs on two nodes of four GPUs beside one replica of a model of 70B on so many. A restart takes 30 s.
fn play(jobs: Vec<JobSpec>, replica_gpus: u8) -> Result<(MixedResult, Vec<(usize, usize)>), Error> {
    let mut few = workload(jobs);
    few.cluster = ClusterSpec::uniform(2, 4, 1);
    let request = Request {
        arrival_s: 1.0,
        prompt_tokens: 100,
        output_tokens: 10,
        session: 0,
        prefix_tokens: 0,
        blocks: Blocks::default(),
    };
    let fleet = Fleet {
        pace: Pace::split("llama-3-70b", "H100", 4)?,
        num_replicas: 2,
        num_gateways: 1,
        scrape_s: 0.0,
        targets: Targets {
            ttft_s: 1.0,
            tpot_s: 0.05,
        },
        may_refuse: false,
    };
    let (mut router, mut scaler) = (by_name("random", 1)?, OneFor200S(Vec::new()));
    let service = ServiceSpec {
        requests: &Requests::new(vec![request])?,
        fleet: &fleet,
        replica_gpus,
        router: router.as_mut(),
        autoscaler: &mut scaler,
        load_s: 0.0,
        grace_s: 0.0,
        usual_per_s: &[],
        record_routes: false,
    };
    let config = SimConfig {
        capabilities: Capabilities {
            restart_cost_s: 30.0,
            ..Capabilities::DEFAULT
        },
        ..SimConfig::default()
    };
    let mut policy = heuristics::by_name("fifo")?;
    let until = Some(Time::from_secs_f64(2_000.0));
    let result = simulate_mixed(&few, &config, &mut policy, vec![service], until)?;
    Ok((result, scaler.0))
}

/// By submission.
fn ends(mixed: &MixedResult) -> Vec<f64> {
    mixed.jobs.iter().map(|job| job.finish_s).collect()
}

/// Two gangs of four fill the nodes: the second yields at 100 s, has the GPUs again at 300 s, pays 30 s and does its other 900 s.
#[test]
fn a_replica_of_four_gpus_stops_one_gang_of_four() {
    let (mixed, told) = play(vec![job("a", 0.0, 4, 1_000.0), job("b", 0.0, 4, 1_000.0)], 4).unwrap();
    assert_eq!(ends(&mixed), [1_000.0, 1_230.0]);
    let service = &mixed.services[0];
    assert_eq!((service.num_preemptions, service.leased_gpu_s), (1, 800.0));
    assert_eq!(mixed.training.held_gpu_s, 4.0 * (1_000.0 + 100.0 + 930.0));
    let sum = mixed.training.held_gpu_s + service.leased_gpu_s + mixed.idle_gpu_s;
    assert_eq!(sum, 8.0 * mixed.span_s);
    // At 100 s all GPUs train, at 150 s half of them; the lease goes back at 300 s.
    assert_eq!(told[2..7], [(8, 0), (4, 0), (4, 0), (4, 0), (4, 0)]);
    assert_eq!(
        mixed.training_gpus[..3]
            .iter()
            .map(|(_, gpus)| *gpus)
            .collect::<Vec<u32>>(),
        [8, 4, 8]
    );
}

/// Two GPUs are free on each node, and no replica lies on two: the two jobs of the one node yield, though four GPUs are idle. They go
/// on at once on what is free of the other.
#[test]
fn idle_gpus_of_two_nodes_are_no_room_for_a_replica() {
    let jobs = ["a", "b", "c", "d"].map(|name| job(name, 0.0, 1, 1_000.0));
    // Two long ones fill each node's other half until they end at 50 s.
    let mut all = vec![job("x", 0.0, 2, 50.0), job("y", 0.0, 2, 50.0)];
    all.splice(1..1, jobs[..2].iter().cloned());
    all.extend(jobs[2..].iter().cloned());
    let (mixed, told) = play(all, 4).unwrap();
    assert_eq!(told[2], (4, 4));
    assert_eq!(mixed.services[0].num_preemptions, 2);
    let late = ends(&mixed).iter().filter(|end_s| **end_s == 1_030.0).count();
    assert_eq!(late, 2, "{:?}", ends(&mixed));
}

#[test]
fn a_replica_that_no_node_has_room_for_is_refused() {
    for num_gpus in [0, 5] {
        let refused = play(Vec::new(), num_gpus).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("replica_gpus = {num_gpus}")) && refused.contains("1 to 4"),
            "{refused}"
        );
    }
}
