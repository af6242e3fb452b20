//! Which jobs yield, checked against all subsets of the jobs that run, and against amounts worked by hand.

use proptest::prelude::*;

use super::*;
use crate::ActionKind;
use crate::cluster::tests::submit;
use crate::cluster::{Capabilities, Submission};
use crate::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, Tasks};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, TenantId};

/// Nodes of 4 GPUs, a rack each; a restart costs 30 s, a checkpoint is written after 100 s of work each time, and none at a stop.
fn cluster(num_nodes: u32) -> Cluster {
    cluster_of(&ClusterSpec::uniform(num_nodes, 4, 1))
}

/// The same with 16 cores and 64 GiB on each of the nodes, of 6 GPUs.
fn cluster_with_hosts(num_nodes: u32) -> Cluster {
    let mut spec = ClusterSpec::uniform(num_nodes, 6, 1);
    (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (16.0, 64.0);
    cluster_of(&spec)
}

fn cluster_of(spec: &ClusterSpec) -> Cluster {
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality: LocalityFactors::NONE,
        checkpoint_interval_s: Some(100.0),
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        restart_cost_s: 30.0,
        checkpoint_interval_s: Some(100.0),
        stop_grace_s: Some(0.0),
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(spec, &[class], capabilities).unwrap()
}

fn demand(cluster: &mut Cluster, num_gpus: u32) -> Demand {
    cluster.demand_of(&request(num_gpus, (0, 0))).unwrap()
}

/// So many GPUs on one node, each with so many cores and GiB.
fn request(num_gpus: u32, (cores, gib): (u32, u32)) -> Submission {
    let nodes_max = u16::from(num_gpus > 1);
    Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: 1.0,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            tasks: Tasks {
                nodes_max,
                ..Tasks::ANY
            },
            cpu_cores: f64::from(cores),
            memory_gib: f64::from(gib),
            ..Resources::WHOLE_GPU
        },
    }
}

/// Jobs of so many GPUs, each started so many seconds after the one before, as far as they fit.
fn busy(jobs: &[(u32, u32)]) -> Cluster {
    let mut cluster = cluster(3);
    for (num_gpus, after_s) in jobs {
        cluster.advance(Time(cluster.now().0 + i64::from(*after_s) * 1_000_000));
        let id = submit(&mut cluster, *num_gpus, 1e6);
        let mut slices = Vec::new();
        match cluster.place_job(Template::Fragments, crate::GpuTypeId(0), id, &mut slices) {
            true => cluster.start(id, Placement::from_slice(&slices)),
            false => cluster.withdraw(id),
        }
    }
    cluster
}

/// The least loss of all sets of running jobs that leave so many GPUs free on one node.
fn least(cluster: &Cluster, num_gpus: u32) -> Option<f64> {
    let running: Vec<JobId> = cluster.running().collect();
    let mut best: Option<f64> = None;
    for set in 0..1_u32 << running.len() {
        let stopped = running.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        let stopped: Vec<JobId> = stopped.map(|(_, id)| *id).collect();
        let has_room = (0..3).map(NodeId).any(|node| {
            let gives = |id: &JobId| {
                let on = cluster.job(*id).placement.iter();
                on.filter(|slice| slice.node == node)
                    .map(|slice| slice.num_gpus())
                    .sum::<u32>()
            };
            cluster.nodes()[node.index()].num_free() + stopped.iter().map(gives).sum::<u32>() >= num_gpus
        });
        let loss: f64 = stopped.iter().map(|id| cluster.stop_loss_gpu_s(*id)).sum();
        if has_room && best.is_none_or(|best| loss < best) {
            best = Some(loss);
        }
    }
    best
}

/// The least loss of all sets of running jobs without which a demand is placed, each tried out.
fn least_tried(cluster: &Cluster, demand: Demand) -> Option<f64> {
    let running: Vec<JobId> = cluster.running().collect();
    let mut best: Option<f64> = None;
    for set in 0..1_u32 << running.len() {
        let stopped = running.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        let stopped: Vec<JobId> = stopped.map(|(_, id)| *id).collect();
        let loss: f64 = stopped.iter().map(|id| cluster.stop_loss_gpu_s(*id)).sum();
        if best.is_some_and(|best| loss >= best) {
            continue;
        }
        let mut tables = cluster.clone();
        stopped.iter().for_each(|id| tables.preempt(*id));
        best = tables.place_demand(demand).map(|_| loss).or(best);
    }
    best
}

proptest! {
    #[test]
    fn where_cpu_and_memory_are_scarcer_than_gpus_nobody_yields_in_vain_and_no_others_would_lose_less(
        jobs in proptest::collection::vec((1_u32..=3, 0_u32..250, 0_u32..=8, 0_u32..=30), 1..9),
        num_gpus in 1_u32..=3,
        inputs in (0_u32..=8, 0_u32..=30),
    ) {
        let mut cluster = cluster_with_hosts(2);
        for (num_gpus, after_s, cores, gib) in jobs {
            cluster.advance(Time(cluster.now().0 + i64::from(after_s) * 1_000_000));
            // Beyond a node's it is refused.
            let Ok(id) = cluster.submit(request(num_gpus, (cores, gib))) else { continue };
            let mut slices = Vec::new();
            match cluster.place_job(Template::Fragments, crate::GpuTypeId(0), id, &mut slices) {
                true => cluster.start(id, Placement::from_slice(&slices)),
                false => cluster.withdraw(id),
            }
        }
        cluster.advance(Time(cluster.now().0 + 70_000_000));
        let Ok(demand) = cluster.demand_of(&request(num_gpus, inputs)) else { return Ok(()) };
        let wanted = least_tried(&cluster, demand);
        let before = cluster.num_running();
        let room = cluster.make_room(demand, &|_| true);
        let loss = room.as_ref().map(|room| room.stopped.iter().map(|(_, loss)| loss).sum::<f64>());
        let is_same = match (loss, wanted) {
            (Some(loss), Some(wanted)) => (loss - wanted).abs() < 1e-6,
            (loss, wanted) => loss.is_none() && wanted.is_none(),
        };
        prop_assert!(is_same, "{room:?} instead of {wanted:?}");
        prop_assert_eq!(before - cluster.num_running(), room.as_ref().map_or(0, |room| room.stopped.len()));
        if let Some(room) = room {
            let id = cluster.submit(request(num_gpus, inputs)).unwrap();
            cluster.start(id, room.placement);
        }
        cluster.check();
    }

    #[test]
    fn no_other_jobs_would_lose_less_than_those_that_are_stopped(
        jobs in proptest::collection::vec((1_u32..=6, 0_u32..250), 1..10),
        num_gpus in 1_u32..=4,
        wait_s in 0_u32..400,
    ) {
        let mut cluster = busy(&jobs);
        cluster.advance(Time(cluster.now().0 + i64::from(wait_s) * 1_000_000));
        let wanted = least(&cluster, num_gpus);
        let demand = demand(&mut cluster, num_gpus);
        let room = cluster.make_room(demand, &|_| true).unwrap();
        let loss: f64 = room.stopped.iter().map(|(_, loss)| loss).sum();
        prop_assert!((loss - wanted.unwrap()).abs() < 1e-6, "{room:?} instead of {wanted:?}");
        prop_assert_eq!(room.placement.len(), 1);
        prop_assert_eq!(room.placement[0].num_gpus(), num_gpus);
        for (id, _) in &room.stopped {
            prop_assert_eq!(cluster.job(*id).state, JobState::Pending);
        }
        cluster.check();
    }
}

/// On one node: a job of 1 GPU with 130 s of work, 30 s of it since its checkpoint; one with 95 s and none written; a gang of 2 with
/// 5 s. A restart costs 30 s each.
#[test]
fn losses_are_those_worked_by_hand_and_of_equals_the_last_one_yields() {
    let mut cluster = cluster(1);
    let start = |cluster: &mut Cluster, num_gpus: u32, gpus: u64, at_s: i64| {
        cluster.advance(Time(at_s * 1_000_000));
        let id = submit(cluster, num_gpus, 1e6);
        let node = NodeId(0);
        cluster.start(id, Placement::from_slice(&[Slice { node, gpus }]));
        id
    };
    let first = start(&mut cluster, 1, 0b1, 0);
    let second = start(&mut cluster, 1, 0b10, 35);
    let gang = start(&mut cluster, 2, 0b1100, 125);
    cluster.advance(Time(130_000_000));
    let losses = [first, second, gang].map(|id| cluster.stop_loss_gpu_s(id));
    assert_eq!(losses, [30.0 + 30.0, 95.0 + 30.0, 2.0 * (5.0 + 30.0)]);
    let one = demand(&mut cluster, 1);
    let stopped = |may: &dyn Fn(JobId) -> bool| {
        let mut tables = cluster.clone();
        tables.make_room(one, may).map(|room| room.stopped)
    };
    assert_eq!(stopped(&|_| true), Some(vec![(first, 60.0)]));
    assert_eq!(stopped(&|id| id != first), Some(vec![(gang, 70.0)]));
    assert_eq!(stopped(&|_| false), None);
    // Three GPUs: the gang and the cheaper of the others.
    let mut tables = cluster.clone();
    let three = demand(&mut tables, 3);
    let room = tables.make_room(three, &|_| true).unwrap();
    assert_eq!(room.stopped, [(first, 60.0), (gang, 70.0)]);
    // It has 100 s in its checkpoint, and nothing to lose but what it has paid of its restart.
    tables.advance(Time(140_000_000));
    tables.start(
        first,
        Placement::from_slice(&[Slice {
            node: NodeId(0),
            gpus: 0b1,
        }]),
    );
    assert_eq!(tables.stop_loss_gpu_s(first), 0.0);
    tables.advance(Time(150_000_000));
    assert_eq!(tables.stop_loss_gpu_s(first), 10.0);
    let (early, late) = {
        let mut equal = super::tests::cluster(1);
        let early = start(&mut equal, 1, 0b1, 0);
        let late = start(&mut equal, 1, 0b10, 100);
        start(&mut equal, 2, 0b1100, 100);
        equal.advance(Time(200_000_000));
        let one = demand(&mut equal, 1);
        let room = equal.make_room(one, &|_| true).unwrap();
        (early, (late, room.stopped[0].0))
    };
    assert_eq!(late.0, late.1, "not {early:?}");
}

#[test]
fn leases_and_nodes_that_take_no_jobs_make_room_for_nobody() {
    let mut cluster = cluster(2);
    let wide = demand(&mut cluster, 4);
    for node in [NodeId(0), NodeId(1)] {
        let id = submit(&mut cluster, 4, 1e6);
        cluster.start(id, Placement::from_slice(&[Slice { node, gpus: 0b1111 }]));
    }
    cluster.set_node_state(NodeId(0), NodeState::Draining, &mut Vec::new());
    cluster.advance(Time(50_000_000));
    let mut tables = cluster.clone();
    let room = tables.make_room(wide, &|_| true).unwrap();
    assert_eq!((room.placement[0].node, room.stopped.len()), (NodeId(1), 1));
    tables.start(room.stopped[0].0, room.placement.clone());
    let id = tables.running().last().unwrap();
    tables.jobs.rows[id.index()].is_lease = true;
    let before = tables.num_running();
    assert_eq!(tables.make_room(wide, &|_| true), None);
    assert_eq!(tables.num_running(), before);
}

/// A node of 6 GPUs and 16 cores runs a job of one GPU with 8 cores and one with 6. Enough GPUs are free, so a job is stopped for
/// cores alone.
#[test]
fn a_node_that_lacks_cpus_alone_is_made_room_for_on() {
    let mut cluster = cluster_with_hosts(1);
    let ids = [(8, 0b1), (6, 0b10)].map(|(cores, gpus)| {
        let id = cluster.submit(request(1, (cores, 1))).unwrap();
        let node = NodeId(0);
        cluster.start(id, Placement::from_slice(&[Slice { node, gpus }]));
        cluster.advance(Time(cluster.now().0 + 10_000_000));
        id
    });
    let demand = cluster.demand_of(&request(1, (8, 1))).unwrap();
    let room = cluster.find_room(demand, &|_| true).unwrap();
    // 2 cores are free: both would do, and the later one has less to lose.
    assert_eq!(room.stopped, [(ids[1], 40.0)]);
    assert_eq!(room.placement[0].gpus, 0b10);
    // Of 10 cores only the first gives enough alone.
    let demand = cluster.demand_of(&request(1, (10, 1))).unwrap();
    assert_eq!(
        cluster.find_room(demand, &|_| true).unwrap().stopped,
        [(ids[0], 50.0)]
    );
    let demand = cluster.demand_of(&request(1, (16, 1))).unwrap();
    let both = cluster.find_room(demand, &|_| true).unwrap();
    assert_eq!(both.stopped, [(ids[1], 40.0), (ids[0], 50.0)]);
    assert_eq!(cluster.find_room(demand, &|id| id == ids[0]), None);
    assert_eq!(cluster.num_running(), 2);
}

#[test]
fn of_more_jobs_than_all_choices_are_kept_of_some_make_room_all_the_same() {
    let spare = |num_gpus, cpu_milli, memory_mib| Spare {
        num_gpus,
        cpu_milli,
        memory_mib,
    };
    let gives: Vec<Give> = (0..64_u32)
        .map(|at| Give {
            loss_gpu_s: f64::from(1 + at * 37 % 64),
            spare: spare(1, 1 + at * 29 % 61, 1 + at * 43 % 59),
        })
        .collect();
    let need = spare(20, 900, 900);
    let (loss, chosen) = cheapest_of_all(&gives, need).unwrap();
    let mut given = Spare::default();
    let mut sum = 0.0;
    for (at, give) in gives.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1) {
        assert!(at < 64);
        given.add(give.spare);
        sum += give.loss_gpu_s;
    }
    assert!(given.covers(need) && (sum - loss).abs() < 1e-9);
    let all = spare(64, u32::MAX, 0);
    assert!(cheapest_of_all(&gives, all).is_none());
}
