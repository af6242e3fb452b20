//! Both residents played block by block.
//!
//! Time is whole nanoseconds, for kernels take tens of microseconds. Blocks that begin together are a group and end together. What is
//! left of a group is counted in 10^-12 of a block, and its speed is rounded up once whenever something begins or ends.

use std::collections::VecDeque;

use pleach_scheduler::{Problem, portable_math};
use pleach_workloads::Seed;
use rand::RngExt as _;

use super::kernel::ISSUE_PER_BLOCK;
use super::{Device, Kernel, Network, Rule};
use pleach_serving::settings::within;

/// From the end of a kernel to the first block of the next one, and of a shard after another, ns. *Assumed*, a usual launch.
const LAUNCH_NS: u64 = 5_000;
/// A block, in the parts in which what is left of it is counted.
const BLOCK: f64 = 1e12;
/// Longest run, s.
const LENGTH_S_MAX: f64 = 3_600.0;
/// Most requests a second.
const RATE_HZ_MAX: f64 = 1e5;

/// When critical requests come. Best effort is a closed loop: its next request comes when one ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// The next one comes when one ends.
    Closed,
    /// Every 1/rate seconds.
    Uniform(f64),
    /// Independent of each other, so many a second on average.
    Poisson(f64),
}

/// The networks that share the GPU, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The critical network.
    pub critical: Network,
    /// When its requests come.
    pub arrivals: Arrivals,
    /// The other network; none: the critical one is alone.
    pub best_effort: Option<Network>,
    /// Length of the run, s; up to 3,600.
    pub length_s: f64,
    /// Root of the arrivals.
    pub seed: Seed,
}

/// What both got done until the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Latencies of critical requests that ended, from their arrival, ns.
    pub critical_ns: Vec<u64>,
    /// Critical requests that came.
    pub num_arrived: u64,
    /// Best-effort requests that ended.
    pub num_best_effort: u64,
    /// Length of the run, s.
    pub length_s: f64,
}

impl Outcome {
    /// Requests of both that ended, per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        (self.critical_ns.len() as u64 + self.num_best_effort) as f64 / self.length_s
    }

    /// Mean latency of critical requests, ms; NaN without any.
    #[must_use]
    pub fn critical_ms(&self) -> f64 {
        self.critical_ns.iter().sum::<u64>() as f64 / self.critical_ns.len() as f64 / 1e6
    }
}

/// Places of the two residents in tables.
const CRITICAL: usize = 0;
const BEST_EFFORT: usize = 1;

/// Blocks of one resident's kernel that began together.
#[derive(Clone, Copy, Debug)]
struct Group {
    resident: usize,
    num: u32,
    kernel: Kernel,
    /// Of each block, in parts of it.
    left: u64,
}

/// A resident under way.
#[derive(Default)]
struct Resident {
    kernels: Vec<Kernel>,
    /// Arrivals that wait, ns.
    waiting: VecDeque<u64>,
    /// Arrival of the request that runs.
    active: Option<u64>,
    /// Its kernel, whether it was begun, and its blocks that have not begun and that run.
    kernel: usize,
    is_begun: bool,
    to_launch: u32,
    running: u32,
    /// When the next blocks may begin, ns.
    ready_ns: u64,
}

struct State<'a> {
    device: &'a Device,
    rule: Rule,
    mix: &'a Mix,
    length_ns: u64,
    now_ns: u64,
    residents: [Resident; 2],
    groups: Vec<Group>,
    /// The resident that ran last, where they take turns.
    last: usize,
    outcome: Outcome,
}

/// Plays a mix on a device under a rule. Deterministic in all three.
///
/// # Errors
/// A length or a rate out of range.
pub fn simulate(device: &Device, mix: &Mix, rule: Rule) -> Result<Outcome, Problem> {
    within("length_s", mix.length_s, 1e-6, LENGTH_S_MAX)?;
    if let Arrivals::Uniform(rate_hz) | Arrivals::Poisson(rate_hz) = mix.arrivals {
        within("rate_hz", rate_hz, 1e-3, RATE_HZ_MAX)?;
    }
    let mut state = State {
        device,
        rule,
        mix,
        length_ns: (mix.length_s * 1e9).round() as u64,
        now_ns: 0,
        residents: [Resident::default(), Resident::default()],
        groups: Vec::new(),
        last: BEST_EFFORT,
        outcome: Outcome {
            length_s: mix.length_s,
            ..Outcome::default()
        },
    };
    let mut arrivals = state.set_up();
    state.act();
    while state.step(&mut arrivals) {
        state.act();
    }
    Ok(state.outcome)
}

impl State<'_> {
    /// Gives the residents their kernels and first requests; the arrivals of an open loop, ns.
    fn set_up(&mut self) -> VecDeque<u64> {
        self.residents[CRITICAL]
            .kernels
            .clone_from(&self.mix.critical.kernels);
        if let Some(network) = &self.mix.best_effort {
            let cut = |kernel: &Kernel| match self.rule {
                Rule::Miriam { block_ns_max } => kernel.cut(block_ns_max),
                _ => *kernel,
            };
            self.residents[BEST_EFFORT].kernels = network.kernels.iter().map(cut).collect();
            self.residents[BEST_EFFORT].waiting.push_back(0);
        }
        let mut arrivals = VecDeque::new();
        let rate_hz = match self.mix.arrivals {
            Arrivals::Closed => {
                self.residents[CRITICAL].waiting.push_back(0);
                self.outcome.num_arrived = 1;
                return arrivals;
            }
            Arrivals::Uniform(rate_hz) | Arrivals::Poisson(rate_hz) => rate_hz,
        };
        let mut rng = self.mix.seed.stream("arrivals", 0);
        // The first within one gap, so that loops do not begin together.
        let mut at_s = rng.random::<f64>() / rate_hz;
        while at_s < self.mix.length_s {
            arrivals.push_back((at_s * 1e9).round() as u64);
            at_s += match self.mix.arrivals {
                Arrivals::Poisson(_) => -portable_math::ln(1.0 - rng.random::<f64>()) / rate_hz,
                _ => 1.0 / rate_hz,
            };
        }
        arrivals
    }

    /// Speed of each group, parts of a block per ns: blocks give way until they issue and draw no more than there is.
    fn speeds(&self) -> Vec<u64> {
        let sms = f64::from(self.device.sms);
        let of = |group: &Group| {
            (
                f64::from(group.num),
                group.kernel.compute_ns,
                group.kernel.memory_ns,
            )
        };
        let groups: Vec<(f64, f64, f64)> = self.groups.iter().map(of).collect();
        let issued = groups
            .iter()
            .map(|(num, compute, memory)| (num * ISSUE_PER_BLOCK, *compute, *memory));
        let issue = level(&issued.collect::<Vec<_>>(), sms);
        let drawn = groups
            .iter()
            .map(|(num, compute, memory)| (*num, *memory, compute * issue));
        let draw = level(&drawn.collect::<Vec<_>>(), sms);
        let speed = |(_, compute, memory): &(f64, f64, f64)| {
            let time_ns = (compute * issue).max(memory * draw);
            (BLOCK / time_ns).ceil() as u64
        };
        groups.iter().map(speed).collect()
    }

    /// Goes on to the next instant and takes the blocks that end and the requests that arrive there.
    fn step(&mut self, arrivals: &mut VecDeque<u64>) -> bool {
        let speeds = self.speeds();
        let now_ns = self.now_ns;
        let ends = self
            .groups
            .iter()
            .zip(&speeds)
            .map(|(group, speed)| now_ns + group.left.div_ceil(*speed));
        let launches = self
            .residents
            .iter()
            .filter(|resident| resident.to_launch > 0 && resident.ready_ns > now_ns);
        let next = ends
            .chain(launches.map(|resident| resident.ready_ns))
            .chain(arrivals.front().copied())
            .min();
        let Some(to_ns) = next.filter(|to_ns| *to_ns < self.length_ns) else {
            return false;
        };
        for (group, speed) in self.groups.iter_mut().zip(&speeds) {
            group.left = group.left.saturating_sub(speed.saturating_mul(to_ns - now_ns));
        }
        self.now_ns = to_ns;
        for group in self.groups.extract_if(.., |group| group.left == 0) {
            self.residents[group.resident].running -= group.num;
        }
        for resident in [CRITICAL, BEST_EFFORT] {
            self.end_kernel(resident);
        }
        while arrivals.front().is_some_and(|at_ns| *at_ns <= to_ns) {
            self.residents[CRITICAL].waiting.extend(arrivals.pop_front());
            self.outcome.num_arrived += 1;
        }
        true
    }

    /// Goes on to the next kernel, or ends the request, where all blocks have ended.
    fn end_kernel(&mut self, resident: usize) {
        let (now_ns, is_closed) = (
            self.now_ns,
            resident == BEST_EFFORT || self.mix.arrivals == Arrivals::Closed,
        );
        let of = &mut self.residents[resident];
        if !of.is_begun || of.to_launch + of.running > 0 {
            return;
        }
        of.is_begun = false;
        of.kernel += 1;
        if of.kernel < of.kernels.len() {
            return;
        }
        let Some(arrival_ns) = of.active.take() else {
            return;
        };
        if is_closed {
            of.waiting.push_back(now_ns);
        }
        if resident == BEST_EFFORT {
            self.outcome.num_best_effort += 1;
        } else {
            self.outcome.critical_ns.push(now_ns - arrival_ns);
            self.outcome.num_arrived += u64::from(is_closed);
        }
    }

    /// Begins what may begin at this instant.
    fn act(&mut self) {
        self.activate();
        self.begin_kernels();
        for resident in [CRITICAL, BEST_EFFORT] {
            self.launch(resident);
        }
    }

    /// Takes up requests: one of each resident, or one of both in turn.
    fn activate(&mut self) {
        for resident in [1 - self.last, self.last] {
            let other = self.residents[1 - resident].active.is_some();
            let of = &mut self.residents[resident];
            if of.active.is_none() && !(self.rule == Rule::Sequential && other) {
                of.active = of.waiting.pop_front();
                of.kernel = 0;
                if of.active.is_some() {
                    self.last = resident;
                }
            }
        }
    }

    /// Makes the next kernels' blocks ready, in pairs where there are barriers.
    fn begin_kernels(&mut self) {
        let is_busy = self.residents.iter().any(|resident| resident.is_begun);
        if self.rule == Rule::Barriers && is_busy {
            return;
        }
        for of in &mut self.residents {
            if of.active.is_some() && !of.is_begun {
                of.is_begun = true;
                of.to_launch = of.kernels[of.kernel].blocks;
                of.ready_ns = self.now_ns + LAUNCH_NS;
            }
        }
    }

    /// Begins as many blocks as may.
    fn launch(&mut self, resident: usize) {
        let of = &self.residents[resident];
        if of.to_launch == 0 || of.ready_ns > self.now_ns {
            return;
        }
        let free = self.device.places() - self.groups.iter().map(|group| group.num).sum::<u32>();
        let room = match self.rule {
            Rule::Miriam { .. } if resident == BEST_EFFORT => {
                let at_once = of.kernels[of.kernel].at_once;
                self.room().min(free).min(at_once - of.running)
            }
            _ => free,
        };
        let of = &mut self.residents[resident];
        let num = of.to_launch.min(room);
        if num == 0 {
            return;
        }
        of.to_launch -= num;
        of.running += num;
        if resident == BEST_EFFORT && matches!(self.rule, Rule::Miriam { .. }) {
            of.ready_ns = self.now_ns + LAUNCH_NS;
        }
        self.groups.push(Group {
            resident,
            num,
            kernel: of.kernels[of.kernel],
            left: BLOCK as u64,
        });
    }

    /// Best-effort blocks that may begin without taking places, issue or bandwidth that the critical kernel wants.
    fn room(&self) -> u32 {
        let [critical, best_effort] = &self.residents;
        if critical.active.is_none() {
            return u32::MAX;
        }
        let (theirs, own) = (
            critical.kernels[critical.kernel],
            best_effort.kernels[best_effort.kernel],
        );
        let places = self.device.places();
        let wanted = (critical.to_launch + critical.running).min(places);
        let of_places = places.saturating_sub(wanted + best_effort.running);
        let within = |figure: fn(&Kernel) -> f64| {
            let taken = f64::from(wanted) * figure(&theirs) + f64::from(best_effort.running) * figure(&own);
            // A cast of what is below zero gives zero.
            ((f64::from(self.device.sms) - taken) / figure(&own)) as u32
        };
        of_places.min(within(Kernel::issue)).min(within(Kernel::draw))
    }
}

/// The least factor, at least 1, by which all users of a resource take longer that do not take as long for another reason, so
/// that they use no more than there is. A user: how many, its time on the resource alone, its time on the other one.
fn level(users: &[(f64, f64, f64)], there_is: f64) -> f64 {
    let mut level: f64 = 1.0;
    loop {
        let (mut bound, mut used, mut next) = (0.0, 0.0, f64::INFINITY);
        for (num, own, other) in users {
            if own * level >= *other {
                bound += num;
            } else {
                used += num * own / other;
                next = next.min(other / own);
            }
        }
        if bound / level + used <= there_is * (1.0 + 1e-12) {
            return level;
        }
        let enough = if used < there_is {
            bound / (there_is - used)
        } else {
            f64::INFINITY
        };
        level = enough.min(next).max(level * (1.0 + 1e-15));
    }
}
