//! What users and operators do meanwhile.

use rand::RngExt;

use super::job::{Hold, Job, State};
use super::slurm::{NodeState, USERS, World};

/// Most jobs that come.
const JOBS_MAX: u64 = 60;

/// Now and then a user or an operator does something.
pub fn meddle(world: &mut World) {
    let activity = world.activity;
    if !world.chance(activity) {
        return;
    }
    match world.draw(24) {
        0..10 => submit(world),
        10 => submit_array(world),
        11 => submit_parts(world),
        12 => cancel(world),
        13 | 14 => hold_or_release(world),
        15 => nice(world),
        16 | 17 => drain_or_resume(world),
        18 => fail_node(world),
        19 => requeue(world),
        20 => keep_away(world),
        21 => limit(world),
        22 => ask_feature(world),
        _ => clock(world),
    }
}

fn plain(world: &mut World) -> Job {
    let gangs = [(1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2)];
    let (gpus_per_node, num_nodes) = gangs[world.draw(gangs.len())];
    let run_s = world.rng.random_range(5..400);
    let limit_s = run_s + world.rng.random_range(-60..900_i64).max(1 - run_s);
    world.next += 1;
    world.next_place += 1;
    let is_typed = gpus_per_node < 8 && world.chance(0.2);
    Job {
        number: world.next,
        array: None,
        is_whole: false,
        part_of: None,
        user: USERS[world.draw(USERS.len())],
        partition: "main",
        gpu_type: is_typed.then_some("a100"),
        gpus_per_node,
        num_nodes,
        cpus_per_node: 1 + world.draw(4) as u32,
        feature: None,
        own_nodes: Vec::new(),
        nodes_asked: Vec::new(),
        shuns: String::new(),
        limit_s,
        run_s,
        state: State::Pending,
        hold: Hold::Nobody,
        is_held_by_script: false,
        factor: 0,
        nice: 0,
        mark: String::new(),
        begin_s: 0,
        submit_s: world.shown_s(),
        start_s: None,
        end_s: None,
        nodes: Vec::new(),
        num_restarts: 0,
        place: world.next_place,
        touched: world.fate.num_calls,
        reason: "None".into(),
    }
}

fn add(world: &mut World, mut job: Job) {
    if world.jobs.len() as u64 >= JOBS_MAX {
        return;
    }
    let is_in_scope = job.gpus_per_node > 0
        && job.feature.is_none()
        && job.own_nodes.is_empty()
        && job.part_of.is_none()
        && job.partition == "main"
        && job.hold == Hold::Nobody;
    // What a daemon that held jobs has left: of an array all or nothing.
    let before = job
        .array
        .filter(|(_, task)| *task > 0)
        .and(world.jobs.values().last());
    let is_left_over = match before.map(|task| task.is_held_by_script) {
        Some(is_held) => is_held,
        None => world.chance(0.1),
    };
    if is_in_scope && is_left_over {
        (job.hold, job.is_held_by_script, job.mark) = (Hold::Admin, true, "pleach:held".into());
    }
    world.tell(format!(
        "{} submits {} ({}x{}, {} s of {}), held by {:?}",
        job.user,
        job.name(),
        job.num_nodes,
        job.gpus_per_node,
        job.run_s,
        job.limit_s,
        job.hold
    ));
    world.jobs.insert(job.number, job);
}

fn submit(world: &mut World) {
    let mut job = plain(world);
    match world.draw(12) {
        0 => (job.gpus_per_node, job.num_nodes, job.gpu_type) = (0, 1, None),
        1 => {
            (job.gpus_per_node, job.num_nodes) = (2, 1);
            (job.gpu_type, job.feature) = (None, Some("nvme"));
        }
        2 => {
            (job.gpus_per_node, job.num_nodes, job.gpu_type) = (2, 1, None);
            let node = format!("g{}", 1 + world.draw(4));
            (job.own_nodes, job.nodes_asked) = (vec![node.clone()], vec![node]);
        }
        3 => job.partition = "other",
        4 => job.hold = Hold::User,
        _ => {}
    }
    add(world, job);
}

fn submit_array(world: &mut World) {
    let first = plain(world);
    let array = first.number;
    for task in 0..3 + world.draw(4) as u32 {
        // What is split off gets a number of its own.
        world.next += 1;
        let task = Job {
            number: world.next,
            array: Some((array, task)),
            is_whole: true,
            ..first.clone()
        };
        add(world, task);
    }
}

fn submit_parts(world: &mut World) {
    let (first, second) = (plain(world), plain(world));
    let leader = first.number;
    for (part, job) in [first, second].into_iter().enumerate() {
        add(
            world,
            Job {
                part_of: Some((leader, part as u32)),
                ..job
            },
        );
    }
}

/// A job of those that are asked for.
fn pick(world: &mut World, is: impl Fn(&Job) -> bool) -> Option<u64> {
    let numbers: Vec<u64> = world
        .jobs
        .values()
        .filter(|job| is(job))
        .map(|job| job.number)
        .collect();
    if numbers.is_empty() {
        return None;
    }
    Some(numbers[world.draw(numbers.len())])
}

fn touch<'a>(world: &'a mut World, number: u64, what: &str) -> Option<&'a mut Job> {
    let name = world.jobs.get(&number)?.name();
    world.tell(format!("{what} {name}"));
    let call = world.fate.num_calls;
    let job = world.jobs.get_mut(&number)?;
    (job.touched, job.is_whole) = (call, false);
    Some(job)
}

fn cancel(world: &mut World) {
    if let Some(number) = pick(world, |job| !job.has_ended()) {
        touch(world, number, "cancels");
        world.stop(number, Some("CANCELLED"), Hold::Nobody);
    }
}

fn hold_or_release(world: &mut World) {
    // A job that is held for the daemon stays held for it, whatever its user asks for.
    let Some(number) = pick(world, |job| job.is_pending() && job.hold != Hold::Admin) else {
        return;
    };
    if let Some(job) = touch(world, number, "holds or releases") {
        job.hold = match job.hold {
            Hold::Nobody => Hold::User,
            _ => Hold::Nobody,
        };
    }
}

fn nice(world: &mut World) {
    let nice = world.rng.random_range(0..3000);
    if let Some(number) = pick(world, Job::is_pending)
        && let Some(job) = touch(world, number, "nices")
    {
        job.nice = nice;
    }
}

fn drain_or_resume(world: &mut World) {
    let at = world.draw(world.nodes.len());
    let node = &mut world.nodes[at];
    node.state = match node.state {
        NodeState::Up => NodeState::Drained,
        _ => NodeState::Up,
    };
    let text = format!("{} is {:?}", node.name, node.state);
    world.tell(text);
}

fn fail_node(world: &mut World) {
    let at = world.draw(world.nodes.len());
    world.nodes[at].state = NodeState::Down;
    let name = world.nodes[at].name.clone();
    world.tell(format!("{name} fails"));
    let there = |job: &&Job| job.is_running() && job.nodes.contains(&name);
    let numbers: Vec<u64> = world.jobs.values().filter(there).map(|job| job.number).collect();
    for number in numbers {
        touch(world, number, "loses");
        world.stop(number, None, Hold::Nobody);
    }
}

fn requeue(world: &mut World) {
    if let Some(number) = pick(world, Job::is_running) {
        touch(world, number, "requeues");
        world.stop(number, None, Hold::Nobody);
    }
}

/// An operator keeps a job away from the daemon, as the documents say.
fn keep_away(world: &mut World) {
    if let Some(number) = pick(world, |job| job.is_pending() && job.hold != Hold::User)
        && let Some(job) = touch(world, number, "keeps away")
    {
        (job.mark, job.hold) = ("pleach:off".into(), Hold::Nobody);
        job.nodes_asked.clone_from(&job.own_nodes);
    }
}

fn limit(world: &mut World) {
    let seconds = world.rng.random_range(1..2000);
    if let Some(number) = pick(world, Job::is_pending)
        && let Some(job) = touch(world, number, "limits")
    {
        job.limit_s = seconds;
    }
}

fn ask_feature(world: &mut World) {
    if let Some(number) = pick(world, |job| {
        job.is_pending() && job.num_nodes == 1 && job.gpus_per_node <= 4 && job.own_nodes.is_empty()
    }) && let Some(job) = touch(world, number, "asks for nvme")
    {
        (job.feature, job.gpu_type) = (Some("nvme"), None);
    }
}

/// Clocks jump, by hours or by seconds, ahead or back.
fn clock(world: &mut World) {
    let jump_s = match world.draw(4) {
        0 => world.rng.random_range(-7200..7200),
        _ => world.rng.random_range(-30..30),
    };
    world.clock_s += jump_s;
    // Slurm's own times are those of its jobs, which it does not change; runs go on as they would have.
    for job in world.jobs.values_mut().filter(|job| job.is_running()) {
        job.start_s = job.start_s.map(|start_s| start_s + jump_s);
    }
    world.tell(format!("clocks jump by {jump_s} s"));
}
