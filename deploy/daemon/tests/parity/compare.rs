//! Both sides instant by instant.

use super::*;

pub fn plain(decisions: &[Decision]) -> Vec<String> {
    let line = |decision: &Decision| {
        let place = &decision.placement;
        format!(
            "{} {:?} {place:?} {:?}",
            decision.job, decision.action, decision.reservation
        )
    };
    decisions.iter().map(line).collect()
}

/// The class of shares, and that of whole GPUs, where both are given.
pub const SHARES: ClassId = ClassId(2);
pub const WHOLE: ClassId = ClassId(1);

/// Nodes or pods as tasks, of so many GPUs each.
fn cut(gpus_per_task: u8, tasks_per_node_max: u8) -> Tasks {
    Tasks {
        gpus_per_task,
        tasks_per_node_max,
        ..Tasks::ANY
    }
}

/// What a new job asks for: a class, GPUs, thousandths of each, and how they are cut.
pub fn drawn(numbers: &mut Numbers, num_shared: usize) -> (ClassId, u32, u16, Tasks) {
    let one = |num_gpus| (num_gpus, Tasks::ANY);
    let sizes = [
        one(1),
        one(1),
        one(2),
        one(3),
        one(4),
        one(4),
        (8, cut(4, 1)),
        (6, cut(3, 1)),
        (6, cut(2, 0)),
    ];
    let (num_gpus, tasks) = sizes[numbers.next(9) as usize];
    match num_shared {
        0 => (ClassId(0), num_gpus, 1000, tasks),
        _ if numbers.next(2) == 0 => (WHOLE, num_gpus, 1000, tasks),
        _ => (
            SHARES,
            1,
            gpu_milli(1 + numbers.next(4) as u32, SHARDS),
            Tasks::ANY,
        ),
    }
}

/// Follows a simulated cluster for `num_instants`; how many decisions were compared, how many of them stop jobs, and how many
/// start shares beside others.
pub fn compare(make: &dyn Fn() -> Player, num_instants: usize, num_shared: usize) -> (usize, usize, usize) {
    compare_with(make, num_instants, (num_shared, false))
}

/// The nodes that some rules leave, as a set of a cluster.
fn open_to(cluster: &mut Cluster, rules: &[u32]) -> AllowedNodes {
    let is_closed = |node: u32| {
        rules.iter().any(|rule| match rule {
            0 => node < 2,
            1 => node == 5,
            _ => (2..5).contains(&node),
        })
    };
    cluster
        .allow((0..6).filter(|node| !is_closed(*node)).map(NodeId))
        .unwrap()
}

/// The same, with CPUs, host memory and rules of a site where `has_hosts`.
pub fn compare_with(
    make: &dyn Fn() -> Player,
    num_instants: usize,
    (num_shared, has_hosts): (usize, bool),
) -> (usize, usize, usize) {
    let settings = settings();
    let mut memory = Memory::default();
    let Fleet {
        mut cluster, nodes, ..
    } = fleet::build(&cluster_of(6, num_shared, has_hosts), &memory, &settings, false)
        .unwrap()
        .unwrap();
    let (mut ours, mut theirs) = (make(), make());
    let mut numbers = Numbers(11);
    let mut ends: BTreeMap<ExternalId, i64> = BTreeMap::new();
    let mut rules_of: BTreeMap<ExternalId, Vec<u32>> = BTreeMap::new();
    let (mut next, mut now_s, mut num, mut num_stopped, mut num_beside) = (1, EPOCH_S, 0, 0, 0);
    for _ in 0..num_instants {
        now_s += 1 + numbers.next(400) as i64;
        cluster.advance(Time(now_s * 1_000_000));
        for id in cluster.active() {
            let job = cluster.job(id);
            let over = ends.get(&job.external).is_some_and(|end_s| *end_s <= now_s);
            if job.state == JobState::Running && over {
                cluster.finish(id);
            }
        }
        if numbers.next(3) > 0 {
            let (class, num_gpus, gpu_milli, tasks) = drawn(&mut numbers, num_shared);
            let mut resources = Resources {
                gpu_milli,
                tasks,
                ..Resources::WHOLE_GPU
            };
            if has_hosts {
                // One CPU to all of them for each GPU of a node, or little; the same of memory.
                resources.cpu_cores = [1.0, 2.0, 3.0][numbers.next(3) as usize];
                resources.memory_gib = [1.0, 6.0, 14.0][numbers.next(3) as usize];
                if tasks.is_any() && class != SHARES {
                    resources.tasks.nodes_max = 1;
                }
                let rules: Vec<u32> =
                    [vec![], vec![], vec![0], vec![1], vec![2], vec![0, 1]][numbers.next(6) as usize].clone();
                resources.nodes = open_to(&mut cluster, &rules);
                rules_of.insert(ExternalId::number(next), rules);
            }
            let limit_s = 60 + numbers.next(20_000);
            let request = Submission {
                tenant: TenantId(0),
                class,
                num_gpus,
                estimate_s: Estimate {
                    value: limit_s as f64,
                    provenance: pleach_scheduler::Provenance::UserLimit,
                },
                resources,
            };
            // What no node may ever hold is refused on both sides.
            let came = cluster.submit_as(ExternalId::number(next), request);
            assert!(came.is_ok() || has_hosts, "{came:?}");
            next += 1;
        }
        let snapshot = shown((&cluster, &rules_of), &nodes, (num_shared, has_hosts), now_s);
        memory.observe(&snapshot);
        let mut fleet = fleet::build(&snapshot, &memory, &settings, false)
            .unwrap()
            .unwrap();
        assert!(fleet.left_out.is_empty(), "{:?}", fleet.left_out);
        let simulated = ours(&mut cluster);
        let daemon = theirs(&mut fleet.cluster);
        for (point, other) in simulated.0.iter().zip(&daemon.0) {
            let differs = point.iter().zip(other).find(|(ours, theirs)| ours != theirs);
            assert!(
                differs.is_none() && point.len() == other.len(),
                "at {now_s}: {differs:#?}"
            );
        }
        assert_eq!(simulated.0.len(), daemon.0.len(), "at {now_s}");
        assert_eq!(plain(&simulated.1), plain(&daemon.1), "at {now_s}");
        num += simulated.0.len();
        for decision in &daemon.1 {
            match decision.action {
                pleach_scheduler::decision::Action::Preempt => {
                    num_stopped += 1;
                    memory.preempted(&fleet.cluster, decision.job, decision.row);
                    ends.remove(&decision.job);
                }
                pleach_scheduler::decision::Action::Start => {
                    let id = cluster.find(decision.job).unwrap();
                    // A part of the limit, in whole seconds.
                    let rest_s = cluster.job(id).remaining_s_at(cluster.now());
                    ends.insert(decision.job, now_s + 1 + (rest_s * 0.6) as i64);
                    let of = decision.placement.iter();
                    let names: Vec<_> = of.map(|slice| nodes[slice.node.index()].clone()).collect();
                    memory.started(decision.job, &names, &decision.placement);
                    num_beside += usize::from(cluster.job(id).is_sharing);
                }
                pleach_scheduler::decision::Action::Reserve => {}
            }
        }
    }
    (num, num_stopped, num_beside)
}
