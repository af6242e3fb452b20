//! A lease that comes: the simulator and the daemon stop the same jobs for it, on the same tables.

use super::*;
use pleach_scheduler::decision::Action;

/// A lease that waits.
fn lease(number: u64, gpus_per_node: u32) -> JobSeen {
    JobSeen {
        terms: Terms {
            is_lease: true,
            ..Terms::default()
        },
        ..waiting(number, 1, gpus_per_node, 1)
    }
}

fn planned(snapshot: &Snapshot, memory: &Memory, settings: &RoundSettings) -> round::Plan {
    planned_until(snapshot, memory, settings, &mut || false)
}

fn planned_until(
    snapshot: &Snapshot,
    memory: &Memory,
    settings: &RoundSettings,
    is_late: &mut dyn FnMut() -> bool,
) -> round::Plan {
    let mut policy = Loaded::heuristic("fifo-skip").unwrap();
    let mut fallback = Loaded::heuristic("fifo").unwrap();
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    round::plan(snapshot, memory, &mut deciders, settings, false, is_late).unwrap()
}

/// What the simulator asks for where a service wants one more replica.
fn request(num_gpus: u32) -> Submission {
    let tasks = match num_gpus {
        1 => Tasks::ANY,
        _ => Tasks {
            nodes_max: 1,
            ..Tasks::ANY
        },
    };
    Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: 1.0,
            provenance: pleach_scheduler::Provenance::Oracle,
        },
        resources: Resources {
            tasks,
            ..Resources::WHOLE_GPU
        },
    }
}

#[test]
fn the_simulator_and_the_daemon_stop_the_same_jobs_for_a_lease() {
    let settings = RoundSettings {
        checkpoint_interval_s: Some(700.0),
        ..settings()
    };
    let mut memory = Memory::default();
    let Fleet {
        mut cluster, nodes, ..
    } = fleet::build(&empty(6), &memory, &settings, false)
        .unwrap()
        .unwrap();
    let mut numbers = Numbers(5);
    let (mut now_s, mut num_free, mut num_stopped, mut num_several) = (EPOCH_S, 0, 0, 0);
    let mut policy = heuristics::by_name("fifo-skip").unwrap();
    for number in 1..600 {
        now_s += 1 + numbers.next(300) as i64;
        cluster.advance(Time(now_s * 1_000_000));
        let (class, num_gpus, _, tasks) = drawn(&mut numbers, 0);
        let resources = Resources {
            tasks,
            ..Resources::WHOLE_GPU
        };
        let asked = Submission {
            class,
            num_gpus,
            estimate_s: Estimate {
                value: 1e5,
                provenance: pleach_scheduler::Provenance::UserLimit,
            },
            resources,
            ..request(1)
        };
        cluster.submit_as(ExternalId::number(number), asked).unwrap();
        let oldest = cluster.running().min_by_key(|id| cluster.job(*id).run_start);
        if let Some(oldest) = oldest.filter(|_| numbers.next(3) == 0) {
            cluster.finish(oldest);
        }
        let mut pass = Pass::new();
        pass.run(&mut cluster, &mut policy).unwrap();
        cluster.take_decisions(&mut Vec::new());
        now_s += 1 + numbers.next(200) as i64;
        cluster.advance(Time(now_s * 1_000_000));
        let mut snapshot = shown((&cluster, &BTreeMap::new()), &nodes, (0, false), now_s);
        memory.observe(&snapshot);
        let wanted = 1 + numbers.next(4) as u32;
        snapshot.jobs.push(lease(100_000 + number, wanted));
        let plan = planned(&snapshot, &memory, &settings);
        let ours = plan.decisions[..plan.num_for_leases].iter();
        let stops: Vec<_> = ours
            .filter(|planned| planned.decision.action == Action::Preempt)
            .map(|planned| planned.decision.clone())
            .collect();
        let ours: Vec<ExternalId> = stops.iter().map(|stop| stop.job).collect();
        let mut tables = cluster.clone();
        let demand = tables.demand_of(&request(wanted)).unwrap();
        let room = tables.make_room(demand, &|_| true).unwrap();
        let theirs: Vec<ExternalId> = room
            .stopped
            .iter()
            .map(|(id, _)| cluster.job(*id).external)
            .collect();
        assert_eq!(ours, theirs, "at {now_s}, for {wanted} GPUs");
        num_free += usize::from(theirs.is_empty());
        num_stopped += theirs.len();
        num_several += usize::from(theirs.len() > 1);
        // Now and then it is carried out: jobs with a past come back.
        if numbers.next(4) == 0 {
            let fleet = plan.fleet.unwrap();
            for stop in &stops {
                memory.preempted(&fleet.cluster, stop.job, stop.row);
                cluster.preempt(cluster.find(stop.job).unwrap());
            }
            cluster.take_decisions(&mut Vec::new());
        }
    }
    assert!(
        num_free > 5 && num_stopped > 100 && num_several > 10,
        "{num_free} {num_stopped} {num_several}"
    );
}

/// A job that runs on a node since so many seconds.
fn runs(number: u64, gpus: u32, node: &str, since_s: i64) -> JobSeen {
    JobSeen {
        phase: Phase::Running,
        start_s: Some(EPOCH_S - since_s),
        nodes: vec![node.into()],
        ..waiting(number, 1, gpus, 100_000)
    }
}

fn full(jobs: Vec<JobSeen>) -> Snapshot {
    full_of(2, jobs)
}

fn full_of(num_nodes: usize, jobs: Vec<JobSeen>) -> Snapshot {
    let mut snapshot = empty(num_nodes);
    for job in jobs.iter().filter(|job| job.phase == Phase::Running) {
        let row = snapshot.nodes.iter().position(|node| node.name == job.nodes[0]);
        snapshot.nodes[row.unwrap()].num_gpus_used += job.num_gpus();
    }
    snapshot.jobs = jobs;
    snapshot
}

fn told(plan: &round::Plan) -> Vec<String> {
    let line = |planned: &pleach_daemon::record::Planned| {
        let action = planned.decision.action;
        format!("{action:?} {} {}", planned.job(), planned.nodes.join(","))
    };
    plan.decisions.iter().map(line).collect()
}

#[test]
fn leases_go_before_jobs_that_came_earlier_and_no_pass_stops_one() {
    let snapshot = full(vec![
        runs(1, 4, "g0", 100),
        runs(2, 3, "g1", 100),
        waiting(3, 1, 1, 100),
        lease(4, 1),
    ]);
    let (memory, settings) = (Memory::default(), settings());
    let plan = planned(&snapshot, &memory, &settings);
    assert_eq!(told(&plan), ["Start 4 g1"]);
    assert!(plan.of_policy().is_empty() && plan.decisions[0].why.contains("lease"));
    // Once it runs: the shortest job of all stops other jobs at most, whatever policy.
    let mut held = lease(4, 4);
    (held.phase, held.start_s, held.nodes) = (Phase::Running, Some(EPOCH_S - 9_000), vec!["g0".into()]);
    let snapshot = full(vec![held, runs(2, 4, "g1", 5_000), waiting(3, 1, 4, 10)]);
    for policy in ["srtf", "las", "las-deal"] {
        let Ok(mut policy) = Loaded::driving(policy, &settings) else {
            panic!("{policy} is not there");
        };
        let mut fallback = Loaded::heuristic("fifo").unwrap();
        let mut deciders = Deciders {
            policy: &mut policy,
            fallback: &mut fallback,
        };
        let plan = round::plan(&snapshot, &memory, &mut deciders, &settings, false, &mut || false).unwrap();
        assert!(
            plan.decisions
                .iter()
                .all(|planned| planned.job() != ExternalId::number(4))
        );
        let fleet = plan.fleet.unwrap();
        let row = fleet.cluster.find(ExternalId::number(4)).unwrap();
        assert!(fleet.cluster.job(row).is_lease && fleet.cluster.job(row).state == JobState::Running);
    }
}

#[test]
fn a_lease_waits_for_gpus_that_are_being_given_back_rather_than_stop_somebody_else() {
    let (memory, settings) = (Memory::default(), settings());
    let mut snapshot = full(vec![
        runs(1, 4, "g0", 10),
        runs(2, 2, "g1", 100),
        lease(4, 1),
        lease(5, 1),
        lease(6, 1),
    ]);
    // Two GPUs of g1 are held by a job that is being stopped.
    snapshot.nodes[1].num_gpus_used = 4;
    snapshot.site.leaving.insert("g1".into(), 2);
    let plan = planned(&snapshot, &memory, &settings);
    // The third has nothing to wait for: job 2 loses less than job 1, which has four GPUs.
    assert_eq!(told(&plan), ["Preempt 2 g1", "Reserve 6 "]);
    let left_out = &plan.fleet.as_ref().unwrap().left_out;
    assert!(left_out[&ExternalId::number(4)].contains("waits for GPUs of g1"));
    assert!(left_out[&ExternalId::number(5)].contains("waits for GPUs of g1"));
    // The whole of a node is being given back.
    snapshot.jobs.truncate(3);
    snapshot.jobs.remove(1);
    snapshot.site.leaving.insert("g1".into(), 4);
    assert_eq!(told(&planned(&snapshot, &memory, &settings)), [""; 0]);
}

#[test]
fn without_preemption_a_lease_stops_nobody_and_free_gpus_of_one_node_are_kept_for_it() {
    let memory = Memory::default();
    let settings = RoundSettings {
        preemption: false,
        ..settings()
    };
    // Two and one GPU are free, and a job of two waits since long.
    let jobs = vec![
        runs(1, 2, "g0", 10),
        runs(2, 3, "g1", 100),
        waiting(3, 1, 2, 100),
        waiting(5, 1, 1, 100),
        lease(4, 4),
    ];
    let plan = planned(&full(jobs), &memory, &settings);
    assert_eq!(told(&plan), ["Start 5 g1"]);
    let left_out = &plan.fleet.unwrap().left_out[&ExternalId::number(4)];
    assert!(left_out.contains("free GPUs of g0 are kept"), "{left_out}");
}

#[test]
fn who_could_not_be_stopped_is_left_alone_for_a_minute_and_others_yield() {
    let settings = settings();
    let mut memory = Memory::default();
    let mut snapshot = full(vec![
        runs(1, 4, "g0", 10),
        runs(2, 4, "g1", 5),
        lease(4, 1),
        waiting(9, 1, 1, 10),
    ]);
    assert_eq!(
        told(&planned(&snapshot, &memory, &settings)),
        ["Preempt 2 g1", "Reserve 4 "]
    );
    memory.not_stopped(ExternalId::number(2), EPOCH_S);
    snapshot.taken_s = EPOCH_S + 2;
    memory.observe(&snapshot);
    assert_eq!(
        told(&planned(&snapshot, &memory, &settings)),
        ["Preempt 1 g0", "Reserve 4 "]
    );
    memory.not_stopped(ExternalId::number(1), EPOCH_S + 2);
    assert_eq!(told(&planned(&snapshot, &memory, &settings)), [""; 0]);
    snapshot.taken_s = EPOCH_S + 60;
    memory.observe(&snapshot);
    assert_eq!(
        told(&planned(&snapshot, &memory, &settings)),
        ["Preempt 2 g1", "Reserve 4 "]
    );
}

#[test]
fn nobody_is_stopped_for_a_lease_that_is_refused_then() {
    let (memory, settings) = (Memory::default(), settings());
    // A job of the lease's own number runs.
    let snapshot = full(vec![
        runs(1, 4, "g0", 10),
        runs(2, 4, "g1", 100),
        waiting(3, 1, 1, 100),
        lease(1, 1),
    ]);
    let plan = planned(&snapshot, &memory, &settings);
    assert_eq!(told(&plan), [""; 0]);
    let fleet = plan.fleet.unwrap();
    assert_eq!((fleet.cluster.num_running(), fleet.cluster.num_free()), (2, 0));
    assert!(fleet.left_out[&ExternalId::number(1)].starts_with("it is a lease, and "));
}

#[test]
fn who_is_stopped_for_a_lease_is_not_started_elsewhere_in_the_same_round() {
    let (memory, settings) = (Memory::default(), settings());
    // A GPU of g0 stays free, and job 2 would fit there.
    let jobs = [
        runs(1, 3, "g0", 100),
        runs(2, 1, "g1", 100),
        runs(5, 2, "g1", 100),
    ];
    let snapshot = full(jobs.into_iter().chain([lease(4, 2)]).collect());
    for policy in ["fifo-skip", "las-deal"] {
        let mut policy = Loaded::driving(policy, &settings).unwrap();
        let mut fallback = Loaded::heuristic("fifo").unwrap();
        let mut deciders = Deciders {
            policy: &mut policy,
            fallback: &mut fallback,
        };
        let plan = round::plan(&snapshot, &memory, &mut deciders, &settings, false, &mut || false).unwrap();
        assert_eq!(told(&plan), ["Preempt 2 g1", "Reserve 4 "]);
        let fleet = plan.fleet.unwrap();
        assert_eq!(
            fleet.left_out[&ExternalId::number(2)],
            "it is being stopped for a lease"
        );
        // What it had received is remembered from its row.
        assert!(fleet.cluster.job(plan.decisions[0].decision.row).attained_gpu_s > 0.0);
        fleet.cluster.check();
    }
    // The job that waited before has the free GPU.
    let mut snapshot = snapshot;
    snapshot.jobs.push(waiting(6, 1, 1, 100));
    let plan = planned(&snapshot, &memory, &settings);
    assert_eq!(told(&plan), ["Preempt 2 g1", "Reserve 4 ", "Start 6 g0"]);
}

#[test]
fn leases_have_the_time_of_a_round_and_no_more() {
    let (memory, settings) = (Memory::default(), settings());
    let snapshot = full(vec![runs(1, 4, "g0", 10), lease(4, 1), lease(5, 1), lease(6, 1)]);
    let mut num_asked = 0;
    let plan = planned_until(&snapshot, &memory, &settings, &mut || {
        num_asked += 1;
        num_asked > 2
    });
    // The third lease is too late, so the fallback answers, of which lateness is not asked.
    assert_eq!(num_asked, 3);
    assert!(plan.fallback.unwrap().contains("was not done within"));
    assert_eq!(plan.num_for_leases, 3);
}

#[test]
fn a_round_stops_jobs_for_a_hundred_leases_and_the_others_are_looked_at_in_the_next_one() {
    let (memory, settings) = (Memory::default(), settings());
    let num_nodes = 120;
    let running = (0..num_nodes).map(|node| runs(1 + node as u64, 4, &format!("g{node}"), 100));
    let leases = (0..110).map(|number| lease(1000 + number, 4));
    let mut snapshot = full_of(num_nodes, running.chain(leases).collect());
    let num_stops = |plan: &round::Plan| {
        let decisions = plan.decisions.iter();
        decisions
            .filter(|planned| planned.decision.action == Action::Preempt)
            .count()
    };
    let plan = planned(&snapshot, &memory, &settings);
    assert_eq!(num_stops(&plan), 100);
    let left_out = &plan.fleet.as_ref().unwrap().left_out;
    assert!(left_out[&ExternalId::number(1100)].contains("looked for 100 times"));
    // They end, and the first hundred wait for them.
    for planned in &plan.decisions {
        if planned.decision.action == Action::Preempt {
            snapshot.jobs.retain(|job| job.id != planned.job());
            snapshot.site.leaving.insert(planned.nodes[0].clone(), 4);
        }
    }
    let plan = planned(&snapshot, &memory, &settings);
    assert_eq!(num_stops(&plan), 10);
    // Three hundred that cannot be had are one look, and do not keep others out.
    let mut snapshot = full(vec![runs(1, 4, "g0", 10), runs(2, 4, "g1", 10)]);
    snapshot
        .jobs
        .extend((0..300).map(|number| lease(1000 + number, 4)));
    snapshot.jobs.push(lease(2000, 1));
    let mut held = lease(3000, 4);
    (held.phase, held.start_s, held.nodes) = (Phase::Running, Some(EPOCH_S - 9), vec!["g0".into()]);
    snapshot.jobs[0] = held;
    let plan = planned(&snapshot, &memory, &settings);
    assert_eq!(told(&plan), ["Preempt 2 g1", "Reserve 1000 "]);
    let left_out = &plan.fleet.as_ref().unwrap().left_out;
    assert!(left_out[&ExternalId::number(2000)].contains("no node has the GPUs for it"));
}
