//! Gangs of tasks on small clusters, held to all the ways in which their tasks can be shared out.

use proptest::prelude::*;

use crate::cluster::tests::cluster_of;
use crate::cluster::*;
use crate::cluster_spec::{LocalityFactors, Resources, Tasks};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, GpuTypeId, NodeId, TenantId};
use crate::pass::{Pass, Reservation};
use crate::physics::links::{Fabric, StepCost};

const KIND: GpuTypeId = GpuTypeId(0);

fn tasks(gpus_per_task: u8, tasks_per_node_max: u8, nodes_max: u16) -> Tasks {
    Tasks {
        gpus_per_task,
        tasks_per_node_max,
        nodes_max,
    }
}

/// Whole GPUs that are cut so.
fn cut(tasks: Tasks) -> Shape {
    Shape {
        tasks,
        ..Shape::PLAIN
    }
}

fn request(num_gpus: u32, tasks: Tasks, run_s: f64) -> Submission {
    Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: run_s,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            tasks,
            ..Resources::WHOLE_GPU
        },
    }
}

fn submit(cluster: &mut Cluster, num_gpus: u32, tasks: Tasks, run_s: f64) -> JobId {
    cluster.submit(request(num_gpus, tasks, run_s)).unwrap()
}

/// Nodes of 8 GPUs, two a rack, with the GPUs of these masks taken by a job each, which ends after so many seconds.
fn cluster(taken: &[(u64, f64)]) -> (Cluster, Vec<JobId>) {
    let mut cluster = cluster_of(&ClusterSpec::uniform(taken.len() as u32, 8, 2));
    let mut jobs = Vec::new();
    for (node, (gpus, run_s)) in (0..).map(NodeId).zip(taken) {
        if *gpus != 0 {
            let id = submit(&mut cluster, gpus.count_ones(), Tasks::ANY, *run_s);
            let slice = Slice { node, gpus: *gpus };
            cluster.start(id, [slice].into_iter().collect());
            jobs.push(id);
        }
    }
    (cluster, jobs)
}

/// Numbers of tasks on each node, for every way in which a gang can lie on nodes with so many free GPUs.
fn ways(free: &[u32], num_gpus: u32, tasks: Tasks) -> Vec<Vec<u32>> {
    let each = u32::from(tasks.gpus_per_task);
    let mut ways = vec![Vec::new()];
    for free in free {
        let limit = match tasks.tasks_per_node_max {
            0 => u32::MAX,
            most => u32::from(most),
        };
        let most = (free / each).min(limit);
        ways = ways
            .into_iter()
            .flat_map(|way: Vec<u32>| {
                (0..=most).map(move |num| way.iter().copied().chain([num]).collect::<Vec<u32>>())
            })
            .filter(|way| way.iter().sum::<u32>() * each <= num_gpus)
            .collect();
    }
    let nodes_max = match tasks.nodes_max {
        0 => usize::MAX,
        most => usize::from(most),
    };
    ways.retain(|way| way.iter().sum::<u32>() * each == num_gpus && num_nodes(way) <= nodes_max);
    ways
}

fn num_nodes(way: &[u32]) -> usize {
    way.iter().filter(|num| **num > 0).count()
}

/// The fewest nodes of any way.
fn fewest(free: &[u32], num_gpus: u32, tasks: Tasks) -> Option<usize> {
    ways(free, num_gpus, tasks).iter().map(|way| num_nodes(way)).min()
}

fn free_of(cluster: &Cluster) -> Vec<u32> {
    cluster.nodes().iter().map(Node::num_free).collect()
}

/// A placement is one of the ways, on GPUs that are among these.
fn check_way(slices: &[Slice], open: &[u64], num_gpus: u32, tasks: Tasks) {
    let mut way = vec![0; open.len()];
    for slice in slices {
        assert_eq!(
            slice.gpus & !open[slice.node.index()],
            0,
            "{slices:?} on {open:?}"
        );
        assert_eq!(slice.num_gpus() % u32::from(tasks.gpus_per_task), 0, "{slices:?}");
        assert_eq!(way[slice.node.index()], 0, "{slices:?}");
        way[slice.node.index()] = slice.num_gpus() / u32::from(tasks.gpus_per_task);
    }
    let free: Vec<u32> = open.iter().map(|gpus| gpus.count_ones()).collect();
    assert!(
        ways(&free, num_gpus, tasks).contains(&way),
        "{slices:?} as {tasks:?}"
    );
}

fn any_tasks() -> impl Strategy<Value = (u32, Tasks)> {
    (1_u32..7, 1_u8..7, 0_u8..4, 0_u16..4)
        .prop_map(|(num, each, on_node, nodes)| (num * u32::from(each), tasks(each, on_node, nodes)))
}

fn masks() -> impl Strategy<Value = Vec<(u64, f64)>> {
    proptest::collection::vec((0_u64..256, 1.0_f64..9.0), 2..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_gang_fits_exactly_where_some_way_to_cut_it_does(
        taken in masks(), (num_gpus, tasks) in any_tasks(), template in 0..2_u8,
    ) {
        let (mut cluster, _) = cluster(&taken);
        let free = free_of(&cluster);
        let empty = vec![8; free.len()];
        let Ok(id) = cluster.submit(request(num_gpus, tasks, 1.0)) else {
            prop_assert!(ways(&empty, num_gpus, tasks).is_empty(), "{num_gpus} as {tasks:?} on {empty:?}");
            return Ok(());
        };
        prop_assert!(!ways(&empty, num_gpus, tasks).is_empty());
        let template = [Template::Fastest, Template::Fragments][usize::from(template)];
        let (found, mut slices) = (fewest(&free, num_gpus, tasks), Vec::new());
        prop_assert_eq!(cluster.fits_on(KIND, cluster.demand(id)), found.is_some());
        prop_assert_eq!(cluster.place_job(template, KIND, id, &mut slices), found.is_some());
        let Some(found) = found else {
            prop_assert!(slices.is_empty());
            return Ok(());
        };
        let open: Vec<u64> = cluster.nodes().iter().map(|node| node.free).collect();
        check_way(&slices, &open, num_gpus, tasks);
        if template == Template::Fastest {
            // One node, else the rack that holds it on the fewest, else the fewest of all.
            let in_racks = free.chunks(2).filter_map(|rack| fewest(rack, num_gpus, tasks)).min();
            prop_assert_eq!(slices.len(), in_racks.unwrap_or(found));
        }
        let facts = cluster.job_facts(id, &slices);
        prop_assert_eq!(Some(facts.num_nodes_min as usize), fewest(&empty, num_gpus, tasks));
        cluster.start(id, slices.into_iter().collect());
        cluster.check();
        let copy = Cluster::restore(&cluster.snapshot()).unwrap();
        copy.check();
        prop_assert_eq!(copy.snapshot(), cluster.snapshot());
    }

    #[test]
    fn over_victims_a_gang_fits_exactly_where_it_does_once_they_have_gone(
        taken in masks(), (num_gpus, tasks) in any_tasks(), stopped in 0_u8..32,
    ) {
        let (mut cluster, jobs) = cluster(&taken);
        let jobs = jobs.into_iter().enumerate().filter(|(row, _)| stopped >> row & 1 == 1);
        let victims: Vec<JobId> = jobs.map(|(_, job)| job).collect();
        let mut slices = Vec::new();
        let placed = cluster.place_tasks_over(KIND, (cut(tasks), num_gpus), &victims, &mut slices);
        cluster.advance(Time(1));
        victims.iter().for_each(|id| cluster.preempt(*id));
        let open: Vec<u64> = cluster.nodes().iter().map(|node| node.free).collect();
        prop_assert_eq!(placed, fewest(&free_of(&cluster), num_gpus, tasks).is_some());
        if placed {
            check_way(&slices, &open, num_gpus, tasks);
        } else {
            prop_assert!(slices.is_empty());
        }
    }

    #[test]
    fn beside_held_nodes_what_is_let_through_leaves_the_gang_its_place(
        taken in masks(), (num_gpus, tasks) in any_tasks(), (other, cut_other) in any_tasks(), is_any in any::<bool>(),
    ) {
        // Once all have ended, nothing but what was let through stands in the gang's way; where nothing is let through, every place for
        // the other is in its way on the held nodes.
        let (cluster, _) = cluster(&taken);
        let mut room = TaskRoom::now(&cluster, KIND, (cut(tasks), num_gpus));
        cluster.running().for_each(|id| room.end(&cluster, id));
        prop_assume!(room.fits());
        let mut held = HeldNodes::default();
        let extra = room.hold(&cluster, &mut held);
        prop_assert_eq!(extra, 8 * taken.len() as u32 - num_gpus);
        let needed: Vec<u32> = held.iter().map(|(_, spare)| 8 - spare).collect();
        prop_assert!(tasks.allow(needed.iter().copied()) && needed.iter().sum::<u32>() == num_gpus);
        let cut_other = if is_any { Tasks::ANY } else { cut_other };
        let shape = cut(cut_other);
        let mut slices = Vec::new();
        let placed = cluster.place_beside(&held, Template::Fastest, (KIND, shape, other), &mut slices);
        let open: Vec<u32> = (0..).map(NodeId).zip(free_of(&cluster)).map(|(id, free)| {
            let spare = held.iter().find(|(node, _)| *node == id);
            spare.map_or(free, |(_, spare)| spare.min(free))
        }).collect();
        let fits = if is_any { open.iter().sum::<u32>() >= other } else { fewest(&open, other, cut_other).is_some() };
        prop_assert_eq!(placed, fits);
        if placed {
            prop_assert!(held.allows(shape, &slices));
            let on = |id: NodeId| slices.iter().filter(|slice| slice.node == id).map(|slice| slice.num_gpus()).sum::<u32>();
            prop_assert!(held.iter().all(|(id, spare)| on(id) <= spare));
            prop_assert_eq!(slices.iter().map(|slice| slice.num_gpus()).sum::<u32>(), other);
        }
    }

    #[test]
    fn a_gang_is_promised_the_first_end_after_which_it_fits(taken in masks(), (num_gpus, tasks) in any_tasks()) {
        let (mut cluster, _) = cluster(&taken);
        let Ok(id) = cluster.submit(request(num_gpus, tasks, 1.0)) else { return Ok(()) };
        let promised = Reservation::earliest(&cluster, id).map(|held| held.shadow);
        let mut later = cluster.clone();
        let mut found = later.fits_on(KIND, later.demand(id)).then(|| later.now());
        while found.is_none() {
            let Some(end) = later.running().map(|id| later.job(id).expected_finish).min() else { break };
            later.advance(end);
            let ended: Vec<JobId> = later.running().filter(|id| later.job(*id).expected_finish == end).collect();
            ended.into_iter().for_each(|id| later.finish(id));
            found = later.fits_on(KIND, later.demand(id)).then_some(end);
        }
        prop_assert_eq!(promised, found);
    }
}

fn on_nodes(cluster: &Cluster, id: JobId) -> Vec<(u32, u32)> {
    let slices = cluster.job(id).placement.iter();
    slices.map(|slice| (slice.node.0, slice.num_gpus())).collect()
}

fn run(cluster: &mut Cluster, policy: &str) {
    let mut policy = crate::heuristics::by_name(policy).unwrap();
    Pass::new().run(cluster, policy.as_mut()).unwrap();
    cluster.check();
}

#[test]
fn two_pods_of_five_lie_on_a_node_each() {
    let (mut cluster, _) = cluster(&[(0, 0.0), (0, 0.0), (0b1111, 9.0)]);
    let id = submit(&mut cluster, 10, Tasks::of(5), 100.0);
    run(&mut cluster, "fifo");
    assert_eq!(on_nodes(&cluster, id), [(0, 5), (1, 5)]);
    assert_eq!(cluster.job(id).rate, 1.0, "no gang of such pods is tighter");
    // 8 and 2, as GPUs are counted, would be a pod cut in two.
    let whole = submit(&mut cluster, 10, Tasks::of(5), 100.0);
    run(&mut cluster, "fifo");
    assert_eq!(
        cluster.job(whole).state,
        JobState::Pending,
        "3, 3 and 4 GPUs are free"
    );
}

#[test]
fn a_gang_of_four_by_four_starts_on_four_half_free_nodes_and_pays_for_it() {
    let half = (0b1111, 9.0);
    let (mut cluster, _) = cluster(&[half; 4]);
    let id = submit(&mut cluster, 16, Tasks::of(4), 100.0);
    run(&mut cluster, "fifo");
    assert_eq!(on_nodes(&cluster, id), [(0, 4), (1, 4), (2, 4), (3, 4)]);
    let facts = cluster.job_facts(id, &cluster.job(id).placement);
    assert_eq!((facts.num_nodes, facts.num_nodes_min), (4, 2));
    assert_eq!(
        cluster.job(id).rate,
        LocalityFactors::PHILLY.cross_rack,
        "one rack could hold it"
    );
}

#[test]
fn links_price_a_gang_against_the_tightest_place_of_its_tasks() {
    let mut spec = ClusterSpec::uniform(4, 8, 4);
    spec.fabric = Some(Fabric::from_name("hgx-h100-ndr").unwrap());
    let class = ModelClass {
        step: Some(StepCost {
            compute_s: 0.1,
            gradient_bytes: 4e9,
            gamma: 1.0,
        }),
        ..ModelClass::default()
    };
    let cluster = Cluster::new(&spec, &[class], Capabilities::DEFAULT).unwrap();
    let locality = |tasks: Tasks, gpus: u64, num_nodes: u32| {
        let mut cluster = cluster.clone();
        let id = submit(&mut cluster, gpus.count_ones() * num_nodes, tasks, 100.0);
        let slices: Vec<Slice> = (0..num_nodes)
            .map(|node| Slice {
                node: NodeId(node),
                gpus,
            })
            .collect();
        let locality = cluster.job_facts(id, &slices).locality;
        cluster.start(id, slices.into_iter().collect());
        cluster.check();
        locality
    };
    // Three pods of 5 need three nodes: that is as tight as can be. As 15 GPUs two nodes would do.
    assert_eq!(locality(Tasks::of(5), 0b1_1111, 3), 1.0);
    assert!(locality(Tasks::ANY, 0b1_1111, 3) < 1.0);
    // Four tasks of 4 could lie on two nodes; on four they pay what any gang pays there.
    let four = locality(Tasks::of(4), 0b1111, 4);
    assert!(four < 0.99, "{four}");
    assert_eq!(four, locality(Tasks::ANY, 0b1111, 4));
}

#[test]
fn a_gang_that_may_have_few_nodes_passes_fragments_over() {
    // Free: 2, 4, 6 and 8 GPUs. Tasks of 2, four of them, on two nodes at most.
    let (mut cluster, _) = cluster(&[(0b11_1111, 9.0), (0b1111, 9.0), (0b11, 9.0), (0, 0.0)]);
    let id = submit(&mut cluster, 8, tasks(2, 0, 2), 100.0);
    let mut slices = Vec::new();
    assert!(cluster.place_job(Template::Fragments, KIND, id, &mut slices));
    let nodes: Vec<u32> = slices.iter().map(|slice| slice.node.0).collect();
    assert_eq!(nodes, [1, 2], "2 and 4 are too little, 4 and 6 are not");
}

#[test]
fn what_no_cluster_could_start_is_refused_with_the_reason() {
    let (mut cluster, _) = cluster(&[(0, 0.0), (0, 0.0)]);
    let mut said = |num_gpus, tasks| {
        cluster
            .submit(request(num_gpus, tasks, 1.0))
            .unwrap_err()
            .to_string()
    };
    assert!(said(12, Tasks::of(5)).contains("job.num_gpus = 12: allowed is a multiple of gpus_per_task, 5"));
    assert!(said(15, Tasks::of(5)).contains("job.num_gpus = 15: allowed is 1 to 10"));
    assert!(
        said(8, tasks(2, 1, 0)).contains("1 to 4"),
        "a task on each of two nodes"
    );
    assert!(said(16, tasks(4, 0, 1)).contains("1 to 8"), "one node");
    assert!(said(8, Tasks::of(0)).contains("job.resources.tasks.gpus_per_task = 0"));
}

#[test]
#[should_panic(expected = "is cut into")]
fn a_task_on_two_nodes_is_no_start() {
    let (mut cluster, _) = cluster(&[(0, 0.0), (0, 0.0)]);
    let id = submit(&mut cluster, 10, Tasks::of(5), 100.0);
    let slices = [(0, 0xff), (1, 0b11)].map(|(node, gpus)| Slice {
        node: NodeId(node),
        gpus,
    });
    cluster.start(id, slices.into_iter().collect());
}

#[test]
fn the_jobs_are_stopped_whose_nodes_have_room_for_tasks_then() {
    // Two pods of 6 where 4, 5 and 4 GPUs are free: the jobs that end last free node 2, then node 0. By count 12 would be free
    // once the first of them has gone.
    let (mut cluster, jobs) = cluster(&[(0b1111, 500.0), (0b111, 50.0), (0b1111_0000, 900.0)]);
    cluster.advance(Time::from_secs_f64(10.0));
    let id = submit(&mut cluster, 12, Tasks::of(6), 20.0);
    run(&mut cluster, "srtf");
    assert_eq!(on_nodes(&cluster, id), [(0, 6), (2, 6)]);
    assert_eq!(cluster.job(jobs[1]).state, JobState::Running);
    assert_eq!(
        cluster.job(jobs[0]).num_preemptions + cluster.job(jobs[2]).num_preemptions,
        2
    );
}

#[test]
fn behind_a_promise_to_a_gang_of_tasks_others_take_what_it_can_spare() {
    // Two pods of 5 wait for node 1 until 100 s; then 16 GPUs are free, of which any 3 may go.
    let (mut cluster, _) = cluster(&[(0, 0.0), (0b1111_1111, 100.0)]);
    let wide = submit(&mut cluster, 10, Tasks::of(5), 50.0);
    let (three, one) = (
        submit(&mut cluster, 3, Tasks::ANY, 500.0),
        submit(&mut cluster, 1, Tasks::ANY, 500.0),
    );
    run(&mut cluster, "easy");
    let state = |id| cluster.job(id).state;
    assert_eq!(
        [wide, three, one].map(state),
        [JobState::Pending, JobState::Running, JobState::Pending]
    );
}
