//! A simulator that is slow and obviously right: second by second, plain lists, nothing remembered that can be counted.
//!
//! It shares no code with the fast one but the description of the workload: its own clock, its own placements
//! ([`placing`]), rates and policies ([`deciding`]). There is no event queue: at every second each running job is moved on
//! by a second. It is exact where everything happens on whole seconds; where a job would finish between two, it gives up
//! and the caller draws another workload.
//!
//! # How to extend it
//! What a new part of the model does to a running job belongs into [`Slow::pass_a_second`], what it does to a rate into
//! [`placing`], what it takes away from or gives to nodes into [`Slow::begin`] and [`Slow::end`].

mod deciding;
mod placing;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_env::workload::estimates::EstimateModel;
use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::cluster_spec::ModelClass;

/// One node.
#[derive(Clone, Debug)]
struct Node {
    rack: usize,
    kind: usize,
    /// The job on each of its GPUs.
    owners: Vec<Option<usize>>,
    /// Only a node that is up takes jobs.
    state: NodeState,
}

impl Node {
    fn num_free(&self) -> u32 {
        if self.state != NodeState::Up {
            return 0;
        }
        self.owners.iter().filter(|owner| owner.is_none()).count() as u32
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Coming,
    Waiting,
    Running,
    Done,
}

/// One job: its request, and what has become of it.
#[derive(Clone, Debug)]
pub struct Job {
    submit: u32,
    tenant: usize,
    gang: u32,
    class: ModelClass,
    state: State,
    /// Seconds of the reference run.
    work_s: f64,
    /// Seconds of the reference run that are left.
    rest_s: f64,
    /// How much longer the scheduler believes the whole reference run to be than it is, s.
    misbelief_s: f64,
    /// Seconds of the reference run done in a second; while it runs.
    rate: f64,
    /// Seconds of start-up that are left in this run.
    startup_s: f64,
    /// When this run began.
    run_start: u32,
    /// When this run is believed to end.
    believed_end: f64,
    /// When it first ran.
    pub first_start: u32,
    /// When it was done.
    pub finish: u32,
    /// Work done when it was last preempted, which writes a checkpoint.
    saved_s: f64,
    /// How often it was stopped.
    pub num_preemptions: u32,
    /// How often a node failed under it.
    pub num_failures: u32,
    /// Seconds that it held its gang.
    pub held_s: u32,
}

impl Job {
    /// The rest that a scheduler believes in: never less than a second.
    fn believed_rest_s(&self) -> f64 {
        (self.rest_s + self.misbelief_s).max(1.0)
    }

    fn attained_gpu_s(&self) -> f64 {
        f64::from(self.held_s * self.gang)
    }

    fn can_use(&self, kind: usize) -> bool {
        self.class.speed[kind] > 0.0
    }
}

/// The whole state.
pub struct Slow {
    now: u32,
    nodes: Vec<Node>,
    num_kinds: usize,
    jobs: Vec<Job>,
    quotas: Vec<u32>,
    borrowing: bool,
    preemption: bool,
    reservation: bool,
    restart_cost_s: f64,
    checkpoint_interval_s: Option<f64>,
    /// (when, node, its new state)
    changes: Vec<(u32, usize, NodeState)>,
}

/// A decision is due at whole multiples of this for policies that look at attained service or lose patience, s.
fn tick_s(policy: &str) -> Option<u32> {
    if policy.contains("-delay") {
        return Some(600);
    }
    (policy == "las").then_some(300)
}

/// Every job at its end, or none if one finishes between two seconds.
pub fn run(policy: &str, workload: &Workload, config: &SimConfig) -> Option<Vec<Job>> {
    let mut slow = Slow::new(workload, config);
    for _ in 0..10_000_000 {
        let mut anything = slow.finish_those_at_their_end()?;
        anything |= slow.change_nodes();
        anything |= slow.arrive();
        let is_tick = tick_s(policy).is_some_and(|tick_s| slow.now.is_multiple_of(tick_s));
        anything |= is_tick && slow.any(State::Running);
        if anything && slow.any(State::Waiting) {
            slow.decide(policy);
        }
        if slow.jobs.iter().all(|job| job.state == State::Done) {
            return Some(slow.jobs);
        }
        slow.pass_a_second();
    }
    panic!("{policy} does not come to an end");
}

impl Slow {
    fn new(workload: &Workload, config: &SimConfig) -> Slow {
        let cluster = &workload.cluster;
        let mut nodes: Vec<Node> = Vec::new();
        let mut num_racks = 0;
        for group in &cluster.node_groups {
            let mut types = cluster.gpu_types.iter();
            let kind = types.position(|gpu| gpu.name == group.gpu_type).unwrap();
            for number in 0..group.count {
                if number % group.nodes_per_rack == 0 {
                    num_racks += 1;
                }
                nodes.push(Node {
                    rack: num_racks,
                    kind,
                    owners: vec![None; group.gpus_per_node as usize],
                    state: NodeState::Up,
                });
            }
        }
        let jobs = workload.jobs.iter().map(|job| Job {
            submit: job.submit.as_secs_f64() as u32,
            tenant: job.tenant.into(),
            gang: job.num_gpus,
            class: workload.classes[usize::from(job.class)].clone(),
            state: State::Coming,
            work_s: job.run_time_s,
            rest_s: job.run_time_s,
            misbelief_s: match config.estimates {
                EstimateModel::Oracle => 0.0,
                EstimateModel::UserLimit { default_s } => {
                    job.estimate_s.unwrap_or(default_s) - job.run_time_s
                }
                _ => panic!("what this model believes is not on whole seconds"),
            },
            rate: 0.0,
            startup_s: 0.0,
            run_start: 0,
            believed_end: 0.0,
            first_start: u32::MAX,
            finish: 0,
            saved_s: 0.0,
            num_preemptions: 0,
            num_failures: 0,
            held_s: 0,
        });
        let changes = config.capacity.changes.iter();
        let changes = changes.map(|change| (change.at_s as u32, change.node as usize, change.state));
        Slow {
            now: 0,
            nodes,
            num_kinds: cluster.gpu_types.len(),
            jobs: jobs.collect(),
            quotas: cluster.tenants.iter().map(|tenant| tenant.quota_gpus).collect(),
            borrowing: cluster.borrowing,
            preemption: config.capabilities.can(ActionKind::Preempt),
            reservation: config.capabilities.can(ActionKind::Reserve),
            restart_cost_s: config.capabilities.restart_cost_s,
            checkpoint_interval_s: config.capabilities.checkpoint_interval_s,
            changes: changes.collect(),
        }
    }

    fn any(&self, state: State) -> bool {
        self.jobs.iter().any(|job| job.state == state)
    }

    /// The jobs in a state, by arrival.
    fn those(&self, state: State) -> Vec<usize> {
        (0..self.jobs.len())
            .filter(|job| self.jobs[*job].state == state)
            .collect()
    }

    fn pass_a_second(&mut self) {
        self.now += 1;
        for job in self.those(State::Running) {
            let job = &mut self.jobs[job];
            job.held_s += 1;
            if job.startup_s > 0.0 {
                job.startup_s -= 1.0;
            } else {
                job.rest_s -= job.rate;
            }
        }
    }

    /// None if a job was done before this second.
    fn finish_those_at_their_end(&mut self) -> Option<bool> {
        let mut anything = false;
        for job in self.those(State::Running) {
            if self.jobs[job].rest_s < 0.0 || self.jobs[job].startup_s < 0.0 {
                return None;
            }
            if self.jobs[job].rest_s == 0.0 {
                self.end(job, State::Done);
                self.jobs[job].finish = self.now;
                anything = true;
            }
        }
        Some(anything)
    }

    /// Nodes come and go; the jobs on one that goes down go back to their last checkpoint and into the queue.
    fn change_nodes(&mut self) -> bool {
        let due = self.changes.iter().filter(|change| change.0 == self.now);
        let due: Vec<_> = due.copied().collect();
        for (_, node, state) in &due {
            self.nodes[*node].state = *state;
            for job in self.those(State::Running) {
                if *state == NodeState::Down && self.nodes[*node].owners.contains(&Some(job)) {
                    self.end(job, State::Waiting);
                    let job = &mut self.jobs[job];
                    job.num_preemptions -= 1;
                    job.num_failures += 1;
                    let done_s = job.work_s - job.rest_s;
                    let kept_s = match self.checkpoint_interval_s {
                        Some(interval_s) => (done_s / interval_s).floor() * interval_s,
                        None => done_s,
                    };
                    let kept_s = if kept_s > job.saved_s { kept_s } else { job.saved_s };
                    job.rest_s = job.work_s - kept_s;
                }
            }
        }
        !due.is_empty()
    }

    fn arrive(&mut self) -> bool {
        let mut anything = false;
        for job in &mut self.jobs {
            if job.state == State::Coming && job.submit == self.now {
                job.state = State::Waiting;
                anything = true;
            }
        }
        anything
    }

    /// A waiting job takes so many GPUs of each of these nodes.
    fn begin(&mut self, job: usize, placement: &[(usize, u32)]) {
        let rate = self.rate(job, placement);
        for (node, num) in placement {
            let free = self.nodes[*node]
                .owners
                .iter_mut()
                .filter(|owner| owner.is_none());
            let taken = free.take(*num as usize).map(|owner| *owner = Some(job)).count();
            assert_eq!(taken, *num as usize, "a GPU is given away twice");
        }
        let startup_s = self.startup_s(job);
        let now = self.now;
        let job = &mut self.jobs[job];
        assert_eq!(job.state, State::Waiting);
        assert_eq!(placement.iter().map(|(_, num)| num).sum::<u32>(), job.gang);
        job.state = State::Running;
        (job.rate, job.startup_s, job.run_start) = (rate, startup_s, now);
        job.believed_end = f64::from(now) + startup_s + job.believed_rest_s() / rate;
        job.first_start = job.first_start.min(now);
    }

    /// A running job gives everything back.
    fn end(&mut self, job: usize, state: State) {
        for node in &mut self.nodes {
            for owner in &mut node.owners {
                if *owner == Some(job) {
                    *owner = None;
                }
            }
        }
        self.jobs[job].num_preemptions += u32::from(state == State::Waiting);
        self.jobs[job].state = state;
    }

    /// What a job would pay if it began now.
    fn startup_s(&self, job: usize) -> f64 {
        if self.jobs[job].num_preemptions + self.jobs[job].num_failures > 0 {
            self.restart_cost_s
        } else {
            0.0
        }
    }

    /// GPUs that the jobs of a tenant hold.
    fn used_by(&self, tenant: usize) -> u32 {
        let running = self.those(State::Running).into_iter().map(|job| &self.jobs[job]);
        running
            .filter(|job| job.tenant == tenant)
            .map(|job| job.gang)
            .sum()
    }

    /// GPUs that the tenant's quota still leaves; without limit where it may borrow.
    fn room_of(&self, tenant: usize) -> u32 {
        if self.borrowing {
            u32::MAX
        } else {
            self.quotas[tenant].saturating_sub(self.used_by(tenant))
        }
    }

    fn has_room(&self, job: usize) -> bool {
        self.jobs[job].gang <= self.room_of(self.jobs[job].tenant)
    }
}
