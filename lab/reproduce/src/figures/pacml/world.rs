//! PAC-ML's world as a loss system: on its arrival a job is given GPUs for its look-ahead time, or is blocked for good.
//!
//! # Source
//! The released simulator (cwfparsonson/ddls 9e0b5ba) keeps the look-ahead time of a model cut into so many parts, and reads it
//! again for every further job. So its fates follow from a table, but for jobs that its blocks of servers cannot place.

use rand::{Rng, RngExt as _};

use pleach_scheduler::portable_math::ln;

/// GPUs of the cluster: racks of four by four by two.
pub(super) const NUM_GPUS: u32 = 32;
/// What a model may be cut into: one, and even numbers that have a block of servers.
pub const PARTS: [u32; 6] = [1, 2, 4, 6, 8, 16];

/// One way to run a model: parts that were asked for, look-ahead time in s, GPUs.
pub type Split = (u32, f64, u32);

/// # Source
/// Look-ahead times of five layer graphs of our own on an empty cluster of the released simulator; a missing row fits nowhere.
#[rustfmt::skip]
pub const MODELS: [(&str, &[Split]); 5] = [
    ("deep", &[(1, 69.1524, 1), (2, 34.717427, 2), (4, 19.828912, 4), (6, 16.529846, 8), (8, 16.114313, 10), (16, 16.114313, 10)]),
    ("heavy", &[(1, 353.38635, 1), (2, 177.538039, 2), (4, 89.572383, 4), (6, 60.160189, 6), (8, 45.579331, 8)]),
    ("skew", &[(1, 259.23555, 1), (2, 129.771697, 2), (4, 66.232354, 4), (6, 45.539313, 8), (8, 35.201355, 8)]),
    ("slim", &[(1, 15.0243, 1), (2, 7.533044, 2), (4, 4.771537, 4), (6, 4.771537, 4), (8, 4.771537, 4), (16, 4.771537, 4)]),
    ("wide", &[(1, 55.4196, 1), (2, 28.007147, 2), (4, 14.287925, 4), (6, 10.609353, 8), (8, 9.908621, 10), (16, 9.908621, 10)]),
];

/// A job that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Place in [`MODELS`].
    pub model: usize,
    /// s.
    pub at_s: f64,
    /// The longest look-ahead time that it bears, s.
    pub tolerated_s: f64,
}

impl Arrival {
    /// Its ways to run.
    fn splits(&self) -> &'static [Split] {
        MODELS[self.model].1
    }

    /// The way with so many parts, if it fits anywhere.
    #[must_use]
    pub fn split(&self, parts: u32) -> Option<Split> {
        self.splits().iter().copied().find(|split| split.0 == parts)
    }
}

/// What a rule sees: free GPUs, and the running jobs' ends in s with their GPUs.
#[derive(Clone, Debug)]
pub struct State {
    /// GPUs.
    pub free: u32,
    /// Ends, s, and GPUs.
    pub running: Vec<(f64, u32)>,
}

impl State {
    /// The empty cluster.
    #[must_use]
    pub fn empty() -> State {
        State {
            free: NUM_GPUS,
            running: Vec::new(),
        }
    }

    /// Frees what has ended by an instant, s.
    pub fn advance(&mut self, now_s: f64) {
        let free = &mut self.free;
        self.running.retain(|(end_s, gpus)| {
            *free += if *end_s <= now_s { *gpus } else { 0 };
            *end_s > now_s
        });
    }

    /// Whether a way to run is placed in time.
    #[must_use]
    pub fn bears(&self, job: &Arrival, split: Split) -> bool {
        split.2 <= self.free && split.1 <= job.tolerated_s
    }

    /// Starts a job.
    pub fn start(&mut self, job: &Arrival, split: Split) {
        self.free -= split.2;
        self.running.push((job.at_s + split.1, split.2));
    }
}

/// Weights of an index of the ways to run a job.
pub type Weights = [f64; 10];

/// How many parts a job is cut into.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// One.
    NoSplit,
    /// Two.
    Min,
    /// Any, alike.
    Random,
    /// As many as may be: SiP-ML's.
    Max,
    /// The fewest that would be in time without communication.
    Acceptable,
    /// The fewest GPU seconds in time, blocked above so many for the whole cluster free, and fewer in proportion.
    Fewest(f64),
    /// The way with the largest index, blocked where that is not above 0.
    Learned(Weights),
}

impl Rule {
    /// The parts that it asks for; 0 blocks the job.
    pub fn parts(&self, job: &Arrival, state: &State, rng: &mut impl Rng) -> u32 {
        let valid = PARTS.partition_point(|parts| *parts <= state.free);
        let valid = &PARTS[..valid];
        let most = valid.last().copied().unwrap_or(0);
        let sequential_s = job.splits()[0].1;
        match self {
            Rule::NoSplit => most.min(1),
            Rule::Min => most.min(2),
            Rule::Random if most > 0 => valid[rng.random_range(0..valid.len())],
            Rule::Random | Rule::Max => most,
            Rule::Acceptable => {
                let enough = |parts: &&u32| f64::from(**parts) * job.tolerated_s >= sequential_s;
                valid.iter().find(enough).copied().unwrap_or(most)
            }
            Rule::Fewest(most_gpu_s) => {
                let bearable = most_gpu_s * f64::from(state.free) / f64::from(NUM_GPUS);
                least(job, state, |split| split.1 * f64::from(split.2) - bearable)
            }
            Rule::Learned(weights) => {
                let [bias, by_gpus, by_time] = prices(weights, job, state);
                least(job, state, |split| {
                    -(bias + by_gpus * ln(f64::from(split.2)) + by_time * ln(split.1))
                })
            }
        }
    }
}

/// The parts of the way in time with the least cost, if that is at most 0.
fn least(job: &Arrival, state: &State, cost: impl Fn(Split) -> f64) -> u32 {
    let ways = job.splits().iter().filter(|split| state.bears(job, **split));
    let costs = ways.map(|split| (cost(*split), split.0));
    let best = costs.reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.map_or(0, |(cost, parts)| if cost <= 0.0 { parts } else { 0 })
}

/// What the index adds for any job, for the logarithm of its GPUs and for that of its time: by the free share of the GPUs and by
/// that which comes free within 10 s.
fn prices(weights: &Weights, job: &Arrival, state: &State) -> [f64; 3] {
    let soon = state
        .running
        .iter()
        .filter(|(end_s, _)| *end_s <= job.at_s + 10.0);
    let soon: u32 = soon.map(|(_, gpus)| gpus).sum();
    let [free, soon] = [state.free, soon].map(|gpus| f64::from(gpus) / f64::from(NUM_GPUS));
    let by = |at: usize| weights[at] + weights[at + 1] * free + weights[at + 2] * soon;
    [by(0) + weights[9] * free * free, by(3), by(6)]
}

/// The part of a list that a rule blocks, 0 to 1.
pub fn blocked(list: &[Arrival], rule: &Rule, rng: &mut impl Rng) -> f64 {
    let mut state = State::empty();
    let mut num = 0;
    for job in list {
        state.advance(job.at_s);
        let split = job.split(rule.parts(job, &state, rng));
        match split.filter(|split| state.bears(job, *split)) {
            Some(split) => state.start(job, split),
            None => num += 1,
        }
    }
    f64::from(num) / list.len() as f64
}

/// Any of the models at every gap in s, with a tolerated share of its sequential time of 0.10, 0.11 to 1.
pub fn draw(num_jobs: usize, gap_s: f64, rng: &mut impl Rng) -> Vec<Arrival> {
    let job = |number: usize| {
        let model = rng.random_range(0..MODELS.len());
        let share = f64::from(rng.random_range(10..=100_u32)) / 100.0;
        Arrival {
            model,
            at_s: number as f64 * gap_s,
            tolerated_s: MODELS[model].1[0].1 * share,
        }
    };
    (0..num_jobs).map(job).collect()
}
