//! Which stage runs where: what a policy may know, and the rules by name.

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;

use super::Gpu;
use pleach_serving::settings::{Settings, rule};

/// What a context has in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Stages that run.
    pub running: u32,
    /// Stages in its queue.
    pub waiting: u32,
    /// Sum of the occupied times of both, µs.
    pub occupied_us: u64,
    /// When the stage that has run longest began.
    pub head_us: u64,
}

impl Held {
    /// Nothing runs or waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running + self.waiting == 0
    }
}

/// All that a policy may know when a stage becomes ready.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// Now, µs.
    pub now_us: u64,
    /// Number of the task.
    pub task: usize,
    /// Number of the stage; 0 where the network runs as one.
    pub stage: usize,
    /// No stage comes after it.
    pub is_last: bool,
    /// It goes before other stages.
    pub is_high: bool,
    /// It was held back already.
    pub was_held: bool,
    /// Release of the frame, µs.
    pub release_us: u64,
    /// Deadline of the frame, µs.
    pub due_us: u64,
    /// The stage's own deadline: its release and the budgets up to it, µs.
    pub virtual_due_us: u64,
    /// Its part of the period, µs.
    pub budget_us: u64,
    /// Least time of it and the stages after it while all streams are busy, µs.
    pub rest_us: u64,
    /// Its time in each context while all streams are busy, µs.
    pub occupied_us: &'a [u64],
    /// What each context has in hand.
    pub held: &'a [Held],
    /// The GPU.
    pub gpu: &'a Gpu,
}

impl Decision<'_> {
    /// When a context is believed to have ended what it holds and this stage, µs. SGPRS: the head's start and the occupied
    /// times of its queue, as if one stage ran at a time.
    #[must_use]
    pub fn finish_us(&self, context: usize) -> u64 {
        let held = self.held[context];
        let from = if held.running > 0 {
            held.head_us
        } else {
            self.now_us
        };
        from + held.occupied_us + self.occupied_us[context]
    }

    /// Its budget ahead of its own schedule: no later than then need it begin, µs.
    #[must_use]
    pub fn begin_us(&self) -> u64 {
        self.virtual_due_us.saturating_sub(2 * self.budget_us)
    }

    /// The context with the least of a figure; among equal ones the first.
    fn least<K: Ord>(&self, figure: impl Fn(usize) -> K) -> usize {
        (0..self.held.len())
            .min_by_key(|context| figure(*context))
            .unwrap_or(0)
    }
}

/// In which units and in which order contexts work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// A network runs as one, not stage by stage.
    pub is_whole: bool,
    /// Which stage goes first in a queue.
    pub order: Order,
    /// Stages have deadlines of their own, and high ones go first; else a frame's deadline is that of its stages.
    pub has_virtual_deadlines: bool,
    /// A frame whose rest would end late is given up when a stage of it becomes ready.
    pub gives_up: bool,
}

/// Which stage goes first in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Earliest deadline.
    Deadline,
    /// First to come.
    Arrival,
    /// Lowest number of the task.
    Task,
}

/// Chooses a context for each stage that becomes ready.
pub trait Policy: Send {
    /// Units and order.
    fn discipline(&self) -> Discipline;

    /// Earliest time at which the stage may join a queue, µs; now or before: at once.
    fn not_before_us(&mut self, _decision: &Decision<'_>) -> u64 {
        0
    }

    /// The context whose queue it joins.
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn choose(&mut self, decision: &Decision<'_>) -> Result<usize, Problem>;
}

/// Of all rules here.
const FAMILY: &str = "contexts";
/// The rules, and what each knows.
#[rustfmt::skip]
pub const POLICIES: &[Info] = &[
    rule(FAMILY, "sgprs", "stages, their occupied times, deadlines",
        "an empty context in time, else the first to finish; early stages wait", "SGPRS, DATE'24, released code"),
    rule(FAMILY, "limit", "stages in flight", "the context with the fewest stages; first come, first served", "plain"),
    rule(FAMILY, "edf", "deadlines of frames",
        "the context with the fewest stages; earliest deadline first", "Liu and Layland, 1973"),
    rule(FAMILY, "fixed", "numbers of tasks",
        "the context with the fewest stages; the lowest task first", "Liu and Layland, 1973"),
    rule(FAMILY, "static", "deadlines of frames", "each task has its context; earliest deadline first", "plain"),
    rule(FAMILY, "naive", "nothing",
        "each task has its context; whole networks, first come, first served", "baseline of SGPRS, DATE'24"),
];

/// How a context is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Sgprs,
    Fewest,
    Pinned,
}

/// A published or plain rule.
#[derive(Clone, Copy, Debug)]
struct Named {
    choice: Choice,
    discipline: Discipline,
    has_brake: bool,
}

/// The policy of a name with settings: `whole` runs networks as one, `fifo` orders by arrival, `deadlines` and `give-up` are those of
/// [`Discipline`], `brake` holds early stages back.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn by_name(text: &str) -> Result<Box<dyn Policy>, Problem> {
    let mut settings = Settings::of("policy", text, POLICIES)?;
    let (choice, order) = match settings.name {
        "sgprs" => (Choice::Sgprs, Order::Deadline),
        "limit" => (Choice::Fewest, Order::Arrival),
        "edf" => (Choice::Fewest, Order::Deadline),
        "fixed" => (Choice::Fewest, Order::Task),
        "static" => (Choice::Pinned, Order::Deadline),
        _ => (Choice::Pinned, Order::Arrival),
    };
    let (is_sgprs, is_naive) = (settings.name == "sgprs", settings.name == "naive");
    let is_fifo = settings.truth("fifo")?.unwrap_or(false);
    let discipline = Discipline {
        is_whole: settings.truth("whole")?.unwrap_or(is_naive),
        order: if is_fifo { Order::Arrival } else { order },
        has_virtual_deadlines: settings.truth("deadlines")?.unwrap_or(is_sgprs),
        gives_up: settings.truth("give-up")?.unwrap_or(false),
    };
    let has_brake = settings.truth("brake")?.unwrap_or(is_sgprs);
    settings.end()?;
    Ok(Box::new(Named {
        choice,
        discipline,
        has_brake,
    }))
}

impl Policy for Named {
    fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// SGPRS: a stage that is neither high nor last does not begin more than its budget ahead of its virtual schedule, unless
    /// a context is empty.
    fn not_before_us(&mut self, decision: &Decision<'_>) -> u64 {
        let may_wait = self.has_brake && !decision.is_high && !decision.is_last;
        if !may_wait || decision.held.iter().any(Held::is_empty) {
            return 0;
        }
        decision.begin_us()
    }

    fn choose(&mut self, decision: &Decision<'_>) -> Result<usize, Problem> {
        let held = decision.held;
        Ok(match self.choice {
            Choice::Pinned => decision.task % held.len(),
            Choice::Fewest => decision.least(|context| held[context].running + held[context].waiting),
            // The first empty one in time; else the empty one, and else any, that is first to finish.
            Choice::Sgprs => decision.least(|context| {
                let finish_us = decision.finish_us(context);
                if held[context].is_empty() {
                    let is_late = finish_us > decision.virtual_due_us;
                    (u8::from(is_late), if is_late { finish_us } else { 0 })
                } else {
                    (2, finish_us)
                }
            }),
        })
    }
}
