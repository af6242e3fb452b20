//! The real state before each attempt: the pod that is tried, the queue that it comes from, whether it fits, its node, the victims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use pleach_dealing::kubernetes::{Bound, Queue, victims};
use pleach_dealing::slurm::{Nodes, Room};
use pleach_scheduler::{Capabilities, Time};

use super::{Case, NODE, NUM_NODES, cases, node, workload};
use crate::easy_given;

/// How many of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count(pub(crate) usize, pub(crate) usize);

impl Count {
    fn add(&mut self, is_same: bool) {
        self.0 += usize::from(is_same);
        self.1 += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.0 as f64 / self.1.max(1) as f64
    }
}

/// What agreed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreement {
    /// Attempts: the pod that was tried.
    pub(crate) order: Count,
    /// Moves of woken pods: whether they back off.
    moves: Count,
    /// Attempts: whether it fits, and on how many nodes.
    fits: Count,
    /// Binds with a choice: among the best. And what chance would give.
    nodes: Count,
    chance: f64,
    /// Preemptions: the node among the best, and its victims.
    preemptions: Count,
    /// Tries of native gangs that are listed.
    pub(crate) gangs: Count,
}

/// The real state on the way.
struct State<'a> {
    case: &'a Case,
    queue: Queue<&'a str>,
    free: Nodes,
    bound: BTreeMap<&'a str, usize>,
    /// Nodes that were named for pods which had others removed.
    named: BTreeMap<&'a str, usize>,
    flying: BTreeSet<&'a str>,
}

impl<'a> State<'a> {
    fn of(case: &'a Case) -> State<'a> {
        State {
            case,
            queue: Queue::new(case.t0_s.fract()),
            free: Nodes::new(vec![NODE; NUM_NODES], vec![0; NUM_NODES]),
            bound: BTreeMap::new(),
            named: BTreeMap::new(),
            flying: BTreeSet::new(),
        }
    }

    fn ask(&self, pod: &str) -> Room {
        self.case.jobs[self.case.pods[pod].job].ask
    }

    fn priority(&self, pod: &str) -> i32 {
        self.case.jobs[self.case.pods[pod].job].priority
    }

    fn take(&mut self, pod: &'a str, on: usize) {
        let ask = self.ask(pod);
        less(&mut self.free.free[on], ask);
        self.bound.insert(pod, on);
    }

    /// The nodes as a pod sees them: what is kept for others of no lower priority is not free.
    fn seen_by(&self, pod: &str) -> Nodes {
        let mut nodes = self.free.clone();
        let others = self.named.iter().filter(|(other, _)| **other != pod);
        for (other, on) in others.filter(|(other, _)| self.priority(other) >= self.priority(pod)) {
            less(&mut nodes.free[*on], self.ask(other));
        }
        nodes
    }

    fn victims(&self, pod: &str) -> Vec<(usize, Vec<&'a str>)> {
        let of = |(other, on): (&&'a str, &usize)| Bound {
            pod: *other,
            node: *on,
            ask: self.ask(other),
            priority: self.priority(other),
            since_s: self.case.pods[*other]
                .started_s
                .map_or(i64::MAX, |at_s| (self.case.t0_s + at_s).floor() as i64),
        };
        let bound: Vec<Bound<&str>> = self.bound.iter().map(of).collect();
        victims(
            &self.seen_by(pod),
            (self.ask(pod), self.priority(pod)),
            &bound,
            |_| true,
        )
    }
}

fn less(free: &mut Room, asked: Room) {
    // What is kept for others may be more than there is.
    free.gpus = free.gpus.saturating_sub(asked.gpus);
    free.cpu_milli = free.cpu_milli.saturating_sub(asked.cpu_milli);
    free.memory_mib = free.memory_mib.saturating_sub(asked.memory_mib);
}

fn more(free: &mut Room, asked: Room) {
    free.gpus += asked.gpus;
    free.cpu_milli += asked.cpu_milli;
    free.memory_mib += asked.memory_mib;
}

/// Nodes on which pods of a gang were bound, each among the best after the others in some order.
fn in_some_order(case: &Case, nodes: &Nodes, ask: Room, on: &[usize]) -> bool {
    on.is_empty()
        || (0..on.len()).any(|place| {
            let mut rest = on.to_vec();
            let first = rest.swap_remove(place);
            let mut after = nodes.clone();
            less(&mut after.free[first], ask);
            case.config.scoring.best(nodes, ask, |_| true).contains(&first)
                && in_some_order(case, &after, ask, &rest)
        })
}

/// Whether so many pods fit, each on a node of best score.
fn fit(case: &Case, mut nodes: Nodes, ask: Room, num: u32) -> bool {
    (0..num).all(|_| {
        let best = case.config.scoring.best(&nodes, ask, |_| true);
        best.first()
            .map(|first| less(&mut nodes.free[*first], ask))
            .is_some()
    })
}

fn agreement(case: &Case) -> Agreement {
    let mut state = State::of(case);
    let mut found = Agreement::default();
    // The attempt that led to a bind is the last before it.
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    let mut binds: BTreeMap<usize, (usize, Option<usize>)> = BTreeMap::new();
    let mut of_gang: BTreeMap<usize, Vec<(&str, usize)>> = BTreeMap::new();
    for (line, (_, what, pod, detail)) in case.log.iter().enumerate() {
        let job = |name: &str| {
            name.split('/')
                .nth(1)
                .unwrap()
                .split('-')
                .next()
                .unwrap()
                .to_owned()
        };
        match what.as_str() {
            "attempt" => drop(last.insert(pod, line)),
            "group_fits" => of_gang.entry(line).or_default().clear(),
            "bound" => {
                let (on, feasible) = detail.split_once(" of ").unwrap();
                match last.get(&**pod) {
                    Some(attempt) => drop(binds.insert(*attempt, (node(on), feasible.parse().ok()))),
                    None => {
                        let gang = of_gang
                            .iter_mut()
                            .rev()
                            .find(|(at, _)| job(&case.log[**at].2) == job(pod));
                        gang.unwrap().1.push((pod, node(on)));
                    }
                }
            }
            _ => {}
        }
    }
    let mut freed_s = f64::NEG_INFINITY;
    let mut expected: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut removed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (line, (at_s, what, pod, detail)) in case.log.iter().enumerate() {
        let (at, pod) = (Time::from_secs_f64(*at_s), pod.as_str());
        match what.as_str() {
            "queue" => {
                let (event, target) = detail.split_once(" -> ").unwrap();
                match (event, target.split(' ').next().unwrap()) {
                    ("UnschedulablePodAdd", _) => state.queue.add(pod, state.priority(pod), at),
                    // A pod whose victims are not gone yet is not woken by others.
                    ("AssignedPodDelete", "Unschedulable") | ("BackoffComplete", _) => {}
                    ("AssignedPodDelete", target) => found
                        .moves
                        .add(state.queue.wake_one(pod, at) == (target == "Backoff")),
                    // What was refused while something changed is woken at once; the log says so twice.
                    (_, target) if state.flying.remove(pod) => {
                        state.queue.refuse(pod, at);
                        if target != "Unschedulable" {
                            state.queue.wake_one(pod, at);
                        }
                    }
                    _ => {}
                }
            }
            "attempt" => {
                found.order.add(state.queue.clone().pop(at) == Some(pod));
                if std::env::var("SHOW").is_ok() && state.queue.clone().pop(at) != Some(pod) {
                    println!("{at_s} {pod} ours {:?}", state.queue.clone().pop(at));
                }
                state.queue.take(pod);
                state.flying.insert(pod);
                let nodes = state.seen_by(pod);
                let ask = state.ask(pod);
                let holds = |free: &Room| {
                    free.gpus >= ask.gpus
                        && free.cpu_milli >= ask.cpu_milli
                        && free.memory_mib >= ask.memory_mib
                };
                let feasible = nodes.free.iter().filter(|free| holds(free)).count();
                let best = case.config.scoring.best(&nodes, ask, |_| true);
                match binds.get(&line) {
                    None => found.fits.add(best.is_empty()),
                    Some((on, num)) => {
                        found.fits.add(num.is_none_or(|num| num == feasible));
                        if feasible > 1 {
                            found.nodes.add(best.contains(on));
                            found.chance += best.len() as f64 / feasible as f64;
                        }
                        state.named.remove(pod);
                        state.take(pod, *on);
                    }
                }
            }
            "freed" => {
                freed_s = *at_s;
                if let Some(on) = state.bound.remove(pod) {
                    let ask = state.ask(pod);
                    more(&mut state.free.free[on], ask);
                }
            }
            "preempts_on" => {
                let of_node = state.victims(pod).into_iter().find(|(on, _)| *on == node(detail));
                // A node that is none of the least harm has no victims of ours.
                expected.insert(
                    pod,
                    of_node
                        .map(|(_, pods)| pods.into_iter().collect())
                        .unwrap_or_default(),
                );
                state.named.insert(pod, node(detail));
            }
            "victim" => {
                let victim = detail.split(' ').next().unwrap();
                removed.entry(pod).or_default().insert(victim);
            }
            "group_fits" | "group_no_fit" => {
                let name = pod.split('/').nth(1).unwrap().split('-').next().unwrap();
                let job = case.jobs.iter().find(|job| job.id == name).unwrap();
                let fits = fit(case, state.free.clone(), job.ask, job.num_pods);
                if what == "group_no_fit" {
                    // Such a line tells when a try ended, and one takes some milliseconds.
                    if at_s - freed_s > 0.01 {
                        found.gangs.add(!fits);
                    }
                } else {
                    let on: Vec<usize> = of_gang[&line].iter().map(|(_, on)| *on).collect();
                    found
                        .gangs
                        .add(fits && in_some_order(case, &state.free, job.ask, &on));
                    for (pod, on) in &of_gang[&line] {
                        state.take(pod, *on);
                    }
                }
            }
            _ => {}
        }
    }
    for (pod, ours) in &expected {
        found.preemptions.add(removed.get(pod) == Some(ours));
    }
    found
}

/// How many of the real starts `easy` makes at the same instants, given the recorded state and run times. Nodes, which the real one
/// draws, are not compared.
pub(crate) fn easy(case: &Case) -> (usize, usize) {
    let list = workload(case);
    let limit_s = |row: usize| list.jobs[row].run_time_s;
    let mut found = (0, 0);
    for (row, at_s) in (0..)
        .zip(&case.jobs)
        .filter_map(|(row, job)| Some((row, job.start_s?)))
    {
        // Gangs in parts hold what they have.
        let mut held: BTreeMap<usize, (f64, BTreeMap<usize, u32>)> = BTreeMap::new();
        for pod in case.pods.values().filter(|pod| pod.job != row) {
            if let Some((bound_s, _, node)) = pod
                .on
                .filter(|(bound_s, over_s, _)| *bound_s < at_s && at_s < *over_s)
            {
                let (since_s, on) = held.entry(pod.job).or_default();
                *since_s = since_s.max(bound_s);
                *on.entry(node).or_default() += case.jobs[pod.job].ask.gpus;
            }
        }
        let waits = (0..).zip(&case.jobs).filter(|(other, job)| {
            job.submit_s < at_s
                && job.start_s.is_none_or(|start_s| start_s >= at_s)
                && !held.contains_key(other)
        });
        let waits: Vec<usize> = waits.map(|(other, _)| other).collect();
        let runs = held
            .into_iter()
            .map(|(job, (since_s, on))| (job, since_s, on.into_iter().collect()));
        let started = easy_given::starts(
            (&list, Capabilities::DEFAULT),
            limit_s,
            runs.collect(),
            &waits,
            at_s,
        );
        found.0 += usize::from(started.iter().any(|(other, _)| *other == row));
        found.1 += 1;
    }
    found
}

/// What agreed in each recorded run.
pub(crate) fn all() -> &'static [(String, Agreement)] {
    static ALL: LazyLock<Vec<(String, Agreement)>> = LazyLock::new(|| {
        cases()
            .into_iter()
            .map(|(name, case)| (name, agreement(&case)))
            .collect()
    });
    &ALL
}

#[test]
fn given_the_real_state_it_tries_the_pod_that_the_real_one_tries_and_binds_it_where_the_real_one_may() {
    let mut wrong = Vec::new();
    for (name, found) in all() {
        println!(
            "{name}: order {:?}, moves {:?}, fits {:?}, nodes {:?} (chance {:.0} %), preemptions {:?}, gangs {:?}",
            found.order,
            found.moves,
            found.fits,
            found.nodes,
            100.0 * found.chance / found.nodes.1.max(1) as f64,
            found.preemptions,
            found.gangs
        );
        let least = |count: Count, least: f64| count.1 == 0 || count.percent() >= least;
        let is_right = least(found.order, 99.9)
            && least(found.moves, 99.9)
            && least(found.fits, 99.9)
            && least(found.nodes, 100.0)
            && least(found.preemptions, 100.0)
            && least(found.gangs, 99.9);
        let has_work = found.order.1 + found.gangs.1 > 50;
        if !is_right || !has_work {
            wrong.push(name.as_str());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
