//! Tasks played on a GPU under a policy.
//!
//! Time is whole microseconds and work whole femtoseconds, and a speed is rounded once for each number of stages in flight, so
//! what is left of a stage is exact. A stage ends at the first whole microsecond at which nothing is left.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pleach_scheduler::{Problem, portable_math};
use pleach_workloads::Seed;
use rand::RngExt as _;

use super::plan::Plan;
use super::policy::{Decision, Discipline, Held, Order, Policy};
use super::{Gpu, Outcome, StageRun, Task};
use pleach_serving::settings::within;

/// Most tasks of a run.
const TASKS_MAX: usize = 10_000;
/// Longest run, s.
const RUN_S_MAX: f64 = 86_400.0;
/// Greatest coefficient of variation of a stage's time.
const SPREAD_MAX: f64 = 2.0;

/// How long tasks run, and how much the times of their stages vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Releases stop there, and frames in the air are finished, µs.
    pub length_us: u64,
    /// Frames that ended before it do not count as throughput, µs.
    pub warm_up_us: u64,
    /// Coefficient of variation of a stage's time around its mean (log-normal); 0: every frame is alike.
    pub spread: f64,
    /// Root of the draws.
    pub seed: Seed,
}

impl Run {
    /// A run of so many seconds without spread, which warms up for `warm_up_s`.
    ///
    /// # Errors
    /// A length or a warm-up out of range.
    pub fn new(length_s: f64, warm_up_s: f64, seed: Seed) -> Result<Run, Problem> {
        let run = Run {
            length_us: (length_s * 1e6).round() as u64,
            warm_up_us: (warm_up_s * 1e6).round() as u64,
            spread: 0.0,
            seed,
        };
        within("length_s", length_s, 1e-6, RUN_S_MAX)?;
        if warm_up_s < 0.0 || run.warm_up_us >= run.length_us {
            let allowed = format!("0 to below {length_s} s");
            return Err(Problem::new(
                "warm_up_s",
                warm_up_s,
                allowed,
                "Two periods are enough.",
            ));
        }
        Ok(run)
    }

    /// The same with stages whose times vary.
    ///
    /// # Errors
    /// A spread out of range.
    pub fn with_spread(self, spread: f64) -> Result<Run, Problem> {
        if (0.0..=SPREAD_MAX).contains(&spread) {
            return Ok(Run { spread, ..self });
        }
        let allowed = format!("0 to {SPREAD_MAX}");
        let hint = "0.1 is a tenth of the mean.";
        Err(Problem::new("spread", spread, allowed, hint))
    }
}

/// What a timer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A task's next frame.
    Release,
    /// A stage that was held back.
    Wake,
}

/// The frame of a task that is in the air.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    release_us: u64,
    stage: usize,
    /// Where its stage waits or runs.
    context: usize,
    /// Of its stage: what is left, fs.
    left: u64,
    /// Of its stage: time in that context while all streams are busy, µs.
    occupied_us: u64,
}

/// Place in a context's queue: class, deadline or arrival, number of the entry; then the task.
type Queued = Reverse<(u8, u64, u64, usize)>;

/// A run under way.
pub(super) struct State<'a> {
    gpu: Cow<'a, Gpu>,
    tasks: Cow<'a, [Task]>,
    run: Run,
    discipline: Discipline,
    plans: Vec<Plan>,
    now_us: u64,
    /// By task.
    frames: Vec<Frame>,
    /// Tasks whose stage runs, by the order of their start.
    running: Vec<(usize, u64)>,
    /// By context.
    queues: Vec<BinaryHeap<Queued>>,
    held: Vec<Held>,
    timers: BinaryHeap<Reverse<(u64, u64, Timer, usize)>>,
    /// Timers and entries of queues so far.
    sequence: u64,
    /// Stages that became ready at this instant, and whether they were held back already.
    ready: VecDeque<(usize, bool)>,
    outcome: Outcome,
    /// Stages that ended, where they are kept.
    stage_runs: Option<Vec<StageRun>>,
}

/// Plays tasks on a GPU under a policy. Deterministic in all of them and the seed of the run.
///
/// # Errors
/// No task, or too many; a policy that fails.
pub fn simulate(gpu: &Gpu, tasks: &[Task], policy: &mut dyn Policy, run: &Run) -> Result<Outcome, Problem> {
    let discipline = policy.discipline();
    let mut state = State::new(Cow::Borrowed(gpu), Cow::Borrowed(tasks), discipline, *run)?;
    play(&mut state, policy)?;
    Ok(state.outcome)
}

/// [`simulate`] with all stages that ran, by their ends.
///
/// # Errors
/// As it.
pub fn timeline(
    gpu: &Gpu,
    tasks: &[Task],
    policy: &mut dyn Policy,
    run: &Run,
) -> Result<(Outcome, Vec<StageRun>), Problem> {
    let discipline = policy.discipline();
    let mut state = State::new(Cow::Borrowed(gpu), Cow::Borrowed(tasks), discipline, *run)?;
    state.stage_runs = Some(Vec::new());
    play(&mut state, policy)?;
    Ok((state.outcome, state.stage_runs.unwrap_or_default()))
}

/// Plays a run to its end.
fn play(state: &mut State<'_>, policy: &mut dyn Policy) -> Result<(), Problem> {
    while state.meet() {
        let decision = state.decision();
        let not_before_us = policy.not_before_us(&decision);
        if not_before_us > decision.now_us && !decision.was_held {
            state.hold(not_before_us);
        } else {
            let context = policy.choose(&decision)?;
            state.join(context)?;
        }
    }
    Ok(())
}

impl<'a> State<'a> {
    /// # Errors
    /// No task, or too many.
    pub(super) fn new(
        gpu: Cow<'a, Gpu>,
        tasks: Cow<'a, [Task]>,
        discipline: Discipline,
        run: Run,
    ) -> Result<State<'a>, Problem> {
        if !(1..=TASKS_MAX).contains(&tasks.len()) {
            let allowed = format!("1 to {TASKS_MAX}");
            let hint = "A GPU of SGPRS's kind bears 24 cameras.";
            return Err(Problem::new("tasks", tasks.len(), allowed, hint));
        }
        let plan = |task| Plan::new(task, &gpu, discipline.is_whole, tasks.len());
        let num_contexts = gpu.contexts().len();
        let mut state = State {
            run,
            discipline,
            plans: tasks.iter().map(plan).collect(),
            now_us: 0,
            frames: vec![Frame::default(); tasks.len()],
            running: Vec::new(),
            queues: (0..num_contexts).map(|_| BinaryHeap::new()).collect(),
            held: vec![Held::default(); num_contexts],
            timers: BinaryHeap::new(),
            sequence: 0,
            ready: VecDeque::new(),
            outcome: Outcome {
                window_us: run.length_us - run.warm_up_us,
                ..Outcome::default()
            },
            stage_runs: None,
            gpu,
            tasks,
        };
        for id in 0..state.tasks.len() {
            let offset_us = state.tasks[id].offset_us;
            state.set(offset_us, Timer::Release, id);
            state.frames[id].release_us = offset_us;
        }
        Ok(state)
    }

    /// Goes on to the next stage that needs a context. False where nothing more happens.
    pub(super) fn meet(&mut self) -> bool {
        loop {
            while let Some((task, _)) = self.ready.front().copied() {
                let (frame, rest_us) = (self.frames[task], &self.plans[task].rest_us);
                let due_us = frame.release_us + self.tasks[task].period_us;
                if !self.discipline.gives_up || self.now_us + rest_us[frame.stage] <= due_us {
                    return true;
                }
                self.give_up();
            }
            self.start();
            if !self.step() {
                return false;
            }
        }
    }

    /// The stage that needs a context.
    ///
    /// # Panics
    /// If none does.
    pub(super) fn decision(&self) -> Decision<'_> {
        let (task, was_held) = self.ready[0];
        let (frame, plan) = (self.frames[task], &self.plans[task]);
        Decision {
            now_us: self.now_us,
            task,
            stage: frame.stage,
            is_last: frame.stage + 1 == plan.work.len(),
            is_high: plan.is_high[frame.stage],
            was_held,
            release_us: frame.release_us,
            due_us: frame.release_us + self.tasks[task].period_us,
            virtual_due_us: frame.release_us + plan.stacked_us[frame.stage],
            budget_us: plan.budget_us[frame.stage],
            rest_us: plan.rest_us[frame.stage],
            occupied_us: &plan.occupied_us[frame.stage],
            held: &self.held,
            gpu: &self.gpu,
        }
    }

    /// Holds it back until then.
    pub(super) fn hold(&mut self, until_us: u64) {
        if let Some((task, _)) = self.ready.pop_front() {
            self.set(until_us, Timer::Wake, task);
        }
    }

    /// Ends its frame without the rest.
    pub(super) fn give_up(&mut self) {
        if let Some((task, _)) = self.ready.pop_front() {
            self.outcome.skipped += 1;
            self.next_frame(task, self.frames[task].release_us);
        }
    }

    /// Puts it into a context's queue.
    ///
    /// # Errors
    /// A context that is not there.
    pub(super) fn join(&mut self, context: usize) -> Result<(), Problem> {
        if context >= self.held.len() {
            let allowed = format!("below {}", self.held.len());
            let hint = "Choose one that is there.";
            return Err(Problem::new("context", context, allowed, hint));
        }
        let decision = self.decision();
        let deadlines = self.discipline.has_virtual_deadlines;
        let due_us = if deadlines {
            decision.virtual_due_us
        } else {
            decision.due_us
        };
        let (task, class) = (decision.task, u8::from(deadlines && !decision.is_high));
        let occupied_us = decision.occupied_us[context];
        self.ready.pop_front();
        let number = self.next();
        let key = match self.discipline.order {
            Order::Deadline => (class, due_us),
            Order::Arrival => (0, 0),
            Order::Task => (0, task as u64),
        };
        self.queues[context].push(Reverse((key.0, key.1, number, task)));
        self.held[context].waiting += 1;
        self.held[context].occupied_us += occupied_us;
        self.frames[task].context = context;
        self.frames[task].occupied_us = occupied_us;
        Ok(())
    }

    pub(super) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// What became of frames so far.
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }

    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Sets a timer.
    fn set(&mut self, at_us: u64, timer: Timer, task: usize) {
        let number = self.next();
        self.timers.push(Reverse((at_us, number, timer, task)));
    }

    fn speed(&self, task: usize, shared: u64) -> u64 {
        shared
            .min(self.plans[task].speed_max[self.frames[task].context])
            .max(1)
    }

    /// Goes on to the next instant and takes all that happens there: stages that end, then timers.
    fn step(&mut self) -> bool {
        let shared = self.gpu.capacity().speed(self.running.len().max(1) as u32);
        let ends = self.running.iter().map(|(task, _)| {
            let left = self.frames[*task].left;
            self.now_us + left.div_ceil(self.speed(*task, shared))
        });
        let timer = self.timers.peek().map(|Reverse((at_us, ..))| *at_us);
        let Some(to_us) = ends.chain(timer).min() else {
            return false;
        };
        for place in 0..self.running.len() {
            let task = self.running[place].0;
            let done = self.speed(task, shared).saturating_mul(to_us - self.now_us);
            self.frames[task].left = self.frames[task].left.saturating_sub(done);
        }
        self.now_us = to_us;
        let frames = &self.frames;
        let (ended, running): (Vec<_>, Vec<_>) = self
            .running
            .iter()
            .copied()
            .partition(|(task, _)| frames[*task].left == 0);
        self.running = running;
        for (task, start_us) in ended {
            self.end_stage(task, start_us);
        }
        while let Some(Reverse((at_us, _, timer, task))) = self.timers.peek().copied() {
            if at_us > to_us {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::Release => self.release(task),
                Timer::Wake => self.ready.push_back((task, true)),
            }
        }
        true
    }

    /// Begins a frame, unless the run has ended.
    fn release(&mut self, task: usize) {
        let release_us = self.frames[task].release_us;
        if release_us < self.run.length_us {
            self.outcome.released += 1;
            self.frames[task].stage = 0;
            self.frames[task].left = self.work(task);
            self.ready.push_back((task, false));
        }
    }

    /// Work of the stage that a task has come to, fs.
    fn work(&self, task: usize) -> u64 {
        let frame = &self.frames[task];
        let mean = self.plans[task].work[frame.stage];
        if self.run.spread == 0.0 {
            return mean;
        }
        // By frame and stage, so that all policies meet the same times.
        let number = (frame.release_us - self.tasks[task].offset_us) / self.tasks[task].period_us;
        let seed = self.run.seed.child("frame", task as u64);
        let mut rng = seed.stream("stage", number * 1_000 + frame.stage as u64);
        let (radius, turn): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        let normal =
            (-2.0 * portable_math::ln(radius)).sqrt() * portable_math::cos(std::f64::consts::TAU * turn);
        let variance = portable_math::ln(1.0 + self.run.spread * self.run.spread);
        let factor = portable_math::exp(variance.sqrt() * normal - variance / 2.0);
        ((mean as f64 * factor).round() as u64).max(1)
    }

    fn end_stage(&mut self, task: usize, start_us: u64) {
        let frame = self.frames[task];
        if let Some(runs) = &mut self.stage_runs {
            runs.push(StageRun {
                task,
                stage: frame.stage,
                context: frame.context,
                start_us,
                end_us: self.now_us,
                due_us: frame.release_us + self.tasks[task].period_us,
            });
        }
        let held = &mut self.held[frame.context];
        held.running -= 1;
        held.occupied_us -= frame.occupied_us;
        let frames = &self.frames;
        let of_context = self
            .running
            .iter()
            .filter(|(task, _)| frames[*task].context == frame.context);
        held.head_us = of_context.map(|(_, start_us)| *start_us).min().unwrap_or(0);
        self.outcome.num_stages += 1;
        self.frames[task].stage += 1;
        if self.frames[task].stage < self.plans[task].work.len() {
            self.frames[task].left = self.work(task);
            self.ready.push_back((task, false));
        } else {
            self.end_frame(task, frame.release_us);
        }
    }

    /// Books a frame that ended.
    fn end_frame(&mut self, task: usize, release_us: u64) {
        let (now_us, period_us) = (self.now_us, self.tasks[task].period_us);
        self.outcome.response_us += now_us - release_us;
        if now_us <= release_us + period_us {
            self.outcome.met += 1;
        } else {
            self.outcome.late += 1;
        }
        if (self.run.warm_up_us..self.run.length_us).contains(&now_us) {
            self.outcome.num_in_window += 1;
        }
        self.next_frame(task, release_us);
    }

    /// Sets the release of the first frame after this one that is not due yet.
    fn next_frame(&mut self, task: usize, release_us: u64) {
        let period_us = self.tasks[task].period_us;
        let mut next_us = release_us + period_us;
        while next_us + period_us <= self.now_us {
            if next_us < self.run.length_us {
                self.outcome.released += 1;
                self.outcome.skipped += 1;
            }
            next_us += period_us;
        }
        self.frames[task].release_us = next_us;
        self.set(next_us.max(self.now_us), Timer::Release, task);
    }

    /// Starts what waits while streams are free.
    fn start(&mut self) {
        for (context, queue) in self.queues.iter_mut().enumerate() {
            let held = &mut self.held[context];
            while held.running < self.gpu.contexts()[context].streams {
                let Some(Reverse((.., task))) = queue.pop() else {
                    break;
                };
                if held.running == 0 {
                    held.head_us = self.now_us;
                }
                held.running += 1;
                held.waiting -= 1;
                self.running.push((task, self.now_us));
            }
        }
        self.outcome.in_flight_max = self.outcome.in_flight_max.max(self.running.len() as u32);
    }
}
