//! Slurm's two schedulers on one state: the main one, which starts jobs in order until one cannot start, and the backfill cycle,
//! which plans every job in order on a map of whole nodes over time.
//!
//! # Source
//! The decisions of a real Slurm 22.05.8 that was recorded with all its plans, and `plugins/sched/backfill` and
//! `plugins/select/cons_tres` of its source: ends of running jobs are taken in windows, a plan holds nodes whole.

use super::limits::Usage;
use super::nodes::{Ask, NodeSet, Nodes};

/// First window of ends, and half a minute to which its beginning is rounded, s.
const WINDOW_S: i64 = 30;

/// A waiting job.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its number in the tables of the caller.
    pub job: u32,
    /// What it asks for.
    pub ask: Ask,
    /// Its partition.
    pub partition: usize,
    /// The nodes of it that it may have.
    pub among: NodeSet,
    /// Licences that it takes: (place in [`State::licences`], how many).
    pub licences: Vec<(usize, u64)>,
    /// Its group among those of [`State::groups`].
    pub group: usize,
    /// Its time limit, s.
    pub limit_s: i64,
    /// The limits that bound it, and those that count it once it runs: (limit, group), see [`Usage`].
    pub bounds: Vec<(usize, u32)>,
    /// The same that count it.
    pub counts: Vec<(usize, u32)>,
}

/// A running job.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) job: u32,
    pub(super) group: usize,
    pub(super) ask: Ask,
    pub(super) on: Vec<usize>,
    pub(super) counts: Vec<(usize, u32)>,
    pub(super) licences: Vec<(usize, u64)>,
    set: NodeSet,
    end_s: i64,
}

/// What a backfill cycle says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Which.
    pub job: u32,
    /// When it is to start, s; now, where it starts.
    pub start_s: i64,
    /// On which nodes.
    pub on: Vec<usize>,
    /// Running jobs that are requeued for it.
    pub preempted: Vec<u32>,
}

/// What bounds the two schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Jobs that backfill plans in a cycle (`bf_max_job_test`).
    pub backfill_jobs: usize,
    /// How far it plans, s (`bf_window`).
    pub window_s: i64,
    /// To what it rounds down, s (`bf_resolution`).
    pub resolution_s: i64,
    /// Jobs at which the main scheduler looks (`default_queue_depth`).
    pub main_jobs: usize,
}

/// Jobs of one partition, or of one quality of service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Jobs of the lowest go first: `PriorityTier`, or the priority.
    pub rank: u32,
    /// Groups whose jobs go for one of its own.
    pub preempts: Vec<usize>,
}

/// Nodes, running jobs and limits at an instant.
#[derive(Clone, Debug)]
pub struct State {
    /// The nodes.
    pub nodes: Nodes,
    /// What limits count.
    pub usage: Usage,
    /// The nodes of each partition.
    pub partitions: Vec<NodeSet>,
    /// Which jobs go for which; nothing: none for any.
    pub groups: Vec<Group>,
    /// How many of each licence are free.
    pub licences: Vec<u64>,
    pub(super) running: Vec<Running>,
}

impl State {
    /// Empty nodes.
    #[must_use]
    pub fn new(nodes: Nodes, usage: Usage, partitions: Vec<NodeSet>) -> State {
        State {
            nodes,
            usage,
            partitions,
            groups: Vec::new(),
            licences: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Adds a job that runs until `end_s` at most.
    pub fn run(&mut self, job: &Waiting, on: Vec<usize>, end_s: i64) {
        self.nodes.take(&job.ask, &on);
        self.usage.add(&job.ask, &job.counts);
        for (place, num) in &job.licences {
            self.licences[*place] = self.licences[*place].saturating_sub(*num);
        }
        let set = NodeSet::of(on.iter().copied());
        self.running.push(Running {
            job: job.job,
            group: job.group,
            ask: job.ask,
            on,
            counts: job.counts.clone(),
            licences: job.licences.clone(),
            set,
            end_s,
        });
    }

    /// Whether limits and licences let a job start. One that they do not is passed over: it closes nothing and is not planned, as
    /// without `bf_licenses` (`license_job_test` of Slurm 22.05).
    fn allows(&self, job: &Waiting) -> bool {
        let has = |(place, num): &(usize, u64)| self.licences[*place] >= *num;
        self.usage.allows(&job.ask, &job.bounds) && job.licences.iter().all(has)
    }

    /// Starts a job now, once those have gone that go for it.
    fn start(&mut self, job: &Waiting, (on, gone): (Vec<usize>, Vec<usize>), now_s: i64) -> Planned {
        let preempted = self.preempt(gone);
        self.run(job, on.clone(), now_s + job.limit_s);
        Planned {
            job: job.job,
            start_s: now_s,
            on,
            preempted,
        }
    }

    /// The main scheduler: jobs in order, of each partition until the first that cannot start, which closes the partition and its
    /// nodes. What it starts is added to the state.
    #[must_use]
    pub fn main(&mut self, order: &[&Waiting], bounds: &Bounds, now_s: i64) -> Vec<Planned> {
        let mut open = NodeSet::of(0..self.nodes.all.len());
        let mut shut = vec![false; self.partitions.len()];
        let (mut started, mut num_tested) = (Vec::new(), 0);
        for job in order {
            if shut[job.partition] || !self.allows(job) {
                continue;
            }
            num_tested += 1;
            if num_tested > bounds.main_jobs {
                break;
            }
            match self.room(job, &open.and(&job.among)) {
                Some(room) => started.push(self.start(job, room, now_s)),
                None => {
                    shut[job.partition] = true;
                    open.remove(&self.partitions[job.partition]);
                }
            }
        }
        started
    }

    /// A backfill cycle: a plan for each job in order. What starts now is added to the state.
    #[must_use]
    pub fn backfill(&mut self, order: &[&Waiting], bounds: &Bounds, now_s: i64) -> Vec<Planned> {
        let mut map = Map::new(self.nodes.all.len(), bounds, now_s);
        // Within a cycle only starts change it.
        let mut ends = Ends::of(&self.running);
        let (mut plans, mut num_tested) = (Vec::new(), 0);
        for job in order {
            if !self.allows(job) {
                continue;
            }
            if num_tested >= bounds.backfill_jobs {
                break;
            }
            let mut is_counted = false;
            let mut next = Some(now_s);
            while let Some(at_s) = next {
                let (free, later) = map.free(job, at_s);
                next = later;
                if free.num() < job.ask.nodes as usize {
                    continue;
                }
                num_tested += usize::from(!is_counted);
                is_counted = true;
                let Some((begin_s, on)) = self.earliest(job, &free, &ends, now_s) else {
                    continue;
                };
                let begin_s = begin_s.max(at_s);
                if begin_s <= now_s
                    && let Some(room) = self.room(job, &free)
                {
                    if job.ask.whole {
                        map.hold((map.begin_s(), now_s + job.limit_s), &room.0);
                    }
                    plans.push(self.start(job, room, now_s));
                    ends = Ends::of(&self.running);
                    break;
                }
                if later.is_some_and(|later| begin_s > later) {
                    continue;
                }
                let is_kept = begin_s > now_s + bounds.window_s || map.reserve(job, begin_s, &on);
                if is_kept {
                    plans.push(Planned {
                        job: job.job,
                        start_s: begin_s,
                        on,
                        preempted: Vec::new(),
                    });
                    break;
                }
                // Rounding may find the same again.
                next = Some(begin_s.max(at_s + 1));
            }
        }
        plans
    }

    /// When and where a job could start on some nodes as running jobs come to their limits. Ends are taken in windows that
    /// double; the start is the last end of its window, so it is late by up to a window.
    fn earliest(&self, job: &Waiting, among: &NodeSet, ends: &Ends, now_s: i64) -> Option<(i64, Vec<usize>)> {
        if let Some(on) = self.nodes.choose(&job.ask, among) {
            return Some((now_s, on));
        }
        let (mut then, gone) = self
            .without(job)
            .unwrap_or_else(|| (self.nodes.clone(), Vec::new()));
        if !gone.is_empty()
            && let Some(on) = then.choose(&job.ask, among)
        {
            return Some((now_s, on));
        }
        let stays = |(_, number): &&(i64, usize)| !gone.contains(number);
        let ends: Vec<(i64, usize)> = ends.0.iter().filter(stays).copied().collect();
        let end_of = |place: usize| ends.get(place).map(|(end_s, _)| *end_s);
        let (mut place, mut barrier, mut window_s) = (0, None, WINDOW_S);
        while place < ends.len() {
            let mut last = None;
            while let Some((end_s, number)) = ends.get(place).copied() {
                place += 1;
                let running = &self.running[number];
                if !running.set.meets(among) {
                    continue;
                }
                let barrier = *barrier.get_or_insert(end_s + WINDOW_S - end_s.rem_euclid(WINDOW_S));
                then.give_back(&running.ask, &running.on);
                last = Some(end_s);
                if end_of(place).is_some_and(|next| next > barrier + window_s) {
                    break;
                }
            }
            let last = last?;
            window_s *= 2;
            if let (Some(next), Some(barrier)) = (end_of(place), barrier) {
                while next > barrier + window_s {
                    window_s *= 2;
                }
            }
            if let Some(on) = then.choose(&job.ask, among) {
                return Some((last.max(now_s + 1), on));
            }
        }
        None
    }
}

/// Ends of running jobs, earliest first, those of one instant as the jobs were added: (end, place in the list).
struct Ends(Vec<(i64, usize)>);

impl Ends {
    fn of(running: &[Running]) -> Ends {
        let mut ends: Vec<(i64, usize)> = running
            .iter()
            .enumerate()
            .map(|(at, job)| (job.end_s, at))
            .collect();
        ends.sort_unstable();
        Ends(ends)
    }
}

/// A span of the map, and the nodes that no plan holds then.
#[derive(Clone, Debug)]
struct Span {
    from_s: i64,
    to_s: i64,
    free: NodeSet,
}

/// Which whole nodes are held by plans, over time.
struct Map {
    spans: Vec<Span>,
    resolution_s: i64,
}

impl Map {
    fn new(num_nodes: usize, bounds: &Bounds, now_s: i64) -> Map {
        let round = |at_s: i64| at_s - at_s.rem_euclid(bounds.resolution_s);
        let span = Span {
            from_s: round(now_s),
            to_s: round(now_s + bounds.window_s),
            free: NodeSet::of(0..num_nodes),
        };
        Map {
            spans: vec![span],
            resolution_s: bounds.resolution_s,
        }
    }

    fn begin_s(&self) -> i64 {
        self.spans[0].from_s
    }

    /// The nodes that a job could have from an instant on for all of its limit, and the next instant at which there may be more.
    fn free(&self, job: &Waiting, at_s: i64) -> (NodeSet, Option<i64>) {
        let (mut free, mut later) = (job.among.clone(), None);
        for (place, span) in self.spans.iter().enumerate() {
            if span.to_s > at_s
                && later.is_none()
                && let Some(next) = self.spans.get(place + 1)
                && !job.among.and(&next.free).is_in(&free.and(&span.free))
            {
                later = Some(span.to_s);
            }
            if span.to_s <= at_s {
                continue;
            }
            if span.from_s > at_s + job.limit_s {
                break;
            }
            free.keep(&span.free);
        }
        (free, later)
    }

    /// Holds nodes for a plan; false where another plan holds one of them.
    fn reserve(&mut self, job: &Waiting, begin_s: i64, on: &[usize]) -> bool {
        let round = |at_s: i64| at_s - at_s.rem_euclid(self.resolution_s);
        let (from_s, to_s) = (round(begin_s), round(begin_s + job.limit_s));
        let set = NodeSet::of(on.iter().copied());
        let mut within = self
            .spans
            .iter()
            .filter(|span| span.to_s > from_s && span.from_s < to_s);
        if within.any(|span| !set.is_in(&span.free)) {
            return false;
        }
        self.hold((from_s, to_s), on);
        true
    }

    fn hold(&mut self, (from_s, to_s): (i64, i64), on: &[usize]) {
        let from_s = from_s.max(self.begin_s());
        let to_s = to_s.max(from_s + self.resolution_s);
        for cut_s in [from_s, to_s] {
            if let Some(place) = self
                .spans
                .iter()
                .position(|span| span.from_s < cut_s && cut_s < span.to_s)
            {
                let mut rest = self.spans[place].clone();
                self.spans[place].to_s = cut_s;
                rest.from_s = cut_s;
                self.spans.insert(place + 1, rest);
            }
        }
        let set = NodeSet::of(on.iter().copied());
        let held = self
            .spans
            .iter_mut()
            .filter(|span| span.from_s >= from_s && span.to_s <= to_s);
        held.for_each(|span| span.free.remove(&set));
        self.spans.dedup_by(|next, before| {
            let is_same = before.free == next.free;
            if is_same {
                before.to_s = next.to_s;
            }
            is_same
        });
    }
}
