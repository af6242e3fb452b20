//! What a policy that scores rows sees of a decision, and what each row does.

use pleach_scheduler::tree::Tree;
use pleach_scheduler::{Problem, Rows, Scorer};
use pleach_serving::scoring::Scoring;
use serde::{Deserialize, Serialize};

use crate::columns::{CONTEXT_WIDTH, ROW_WIDTH, SCHEMA, context_of, push_row};
use crate::engine::{Engine, JobId, Left, StageId};
use crate::rules::{Rule, ceil_share};

/// Most rows of a decision. *Assumed*: jobs come by their work left, the own one first, so it is the longest ones that are not shown.
pub const ROWS_MAX: usize = 160;
/// Caps on the executors of a job in even shares, and in shares by the root of its work left times the root of the number of jobs; one
/// more row has no cap. *Assumed*: the caps that paid by hand in batch and streams lie between.
const FAIR_CAPS: [f64; 2] = [1.0, 2.0];
const ROOT_CAPS: [f64; 4] = [0.35, 0.5, 0.75, 1.1];
const CAPS: usize = FAIR_CAPS.len() + ROOT_CAPS.len() + 1;

const GROUPS: usize = 12;

/// Which rows a decision has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offers {
    /// Up to two stages of each job, each with several numbers of executors.
    #[default]
    Caps,
    /// One stage of each of twelve groups, with what is left of its job's even share.
    ///
    /// # Source
    /// Groups, and the longest path within: Hu et al., with what its text leaves open *assumed*.
    Groups,
}

/// A job in the system.
#[derive(Clone, Copy, Debug)]
struct Facts {
    job: JobId,
    left: Left,
    is_own: bool,
    age_rank: f64,
    work_rank: f64,
    /// Where its offered stages begin, and how many there are.
    offered: (usize, usize),
}

/// Sums over the jobs in the system.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    executors: f64,
    num_jobs: f64,
    work_ms: f64,
    /// Of the roots of the work left, ms^0.5.
    root_ms: f64,
}

impl Sums {
    /// An even share, executors.
    fn fair(&self) -> f64 {
        self.executors / self.num_jobs
    }

    /// A share by the root of the work left times the root of the number of jobs, executors.
    fn root(&self, left: Left) -> f64 {
        let share = root_ms(left) / self.root_ms;
        self.executors * self.num_jobs.sqrt() * share
    }
}

fn root_ms(left: Left) -> f64 {
    (left.work_ms.max(1) as f64).sqrt()
}

/// Rows of a decision.
#[derive(Clone, Debug)]
pub struct Board {
    /// What each row does.
    choices: Vec<Option<(StageId, u32)>>,
    rows: Vec<f32>,
    context: [f32; CONTEXT_WIDTH],
    facts: Vec<Facts>,
    offers: Offers,
}

impl Default for Board {
    fn default() -> Board {
        Board {
            choices: Vec::new(),
            rows: Vec::with_capacity(ROWS_MAX * ROW_WIDTH),
            context: [0.0; CONTEXT_WIDTH],
            facts: Vec::new(),
            offers: Offers::Caps,
        }
    }
}

impl Board {
    /// Of such rows.
    #[must_use]
    pub fn of(offers: Offers) -> Board {
        Board {
            offers,
            ..Board::default()
        }
    }

    /// What each row does, in their order: a stage with executors, or none.
    #[must_use]
    pub fn choices(&self) -> &[Option<(StageId, u32)>] {
        &self.choices
    }

    /// The rows, `[choices, row width]`.
    #[must_use]
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// The numbers around them.
    #[must_use]
    pub fn context(&self) -> &[f32] {
        &self.context
    }

    /// The rows as scorers and learners read them.
    #[must_use]
    pub fn shown<'a>(rows: &'a [f32], context: &'a [f32], mask: &'a [bool]) -> Rows<'a> {
        Rows {
            schema: &SCHEMA,
            rows,
            width: ROW_WIDTH,
            context,
            mask,
        }
    }

    /// Looks at a decision of which something is offered.
    pub fn look(&mut self, engine: &Engine) {
        self.choices.clear();
        self.rows.clear();
        let sums = self.find_facts(engine);
        if self.offers == Offers::Groups {
            self.add_groups(engine, &sums);
        }
        // Groups have no room where all shares are used up, though a stage has to be chosen.
        let is_empty = self.choices.is_empty() && engine.must_choose();
        let num = if self.offers == Offers::Caps || is_empty {
            self.facts.len()
        } else {
            0
        };
        for place in 0..num {
            let facts = self.facts[place];
            let (start, num) = facts.offered;
            let own = &engine.offered()[start..start + num];
            for stage in longest(engine, own) {
                self.add(engine, facts, stage, &sums);
            }
        }
        if !engine.must_choose() {
            self.choices.push(None);
            let mut raw = [0.0; ROW_WIDTH];
            raw[1] = 1.0;
            push_row(raw, &mut self.rows);
        }
        let has_own = self
            .facts
            .first()
            .is_some_and(|facts| facts.is_own && facts.offered.1 > 0);
        self.context = context_of([
            sums.num_jobs,
            f64::from(engine.free()) / sums.executors,
            sums.work_ms,
            f64::from(u8::from(has_own)),
        ]);
    }

    /// Jobs in the system, the own one first, the others by their work left; sums over them.
    fn find_facts(&mut self, engine: &Engine) -> Sums {
        self.facts.clear();
        let (source, num) = (engine.source_job(), engine.active().len() as f64);
        let mut next = 0;
        let mut sums = Sums {
            executors: f64::from(engine.list().machine().executors),
            num_jobs: num,
            ..Sums::default()
        };
        for (age, job) in engine.active().iter().enumerate() {
            let start = next;
            while engine
                .offered()
                .get(next)
                .is_some_and(|stage| engine.job(*stage) == *job)
            {
                next += 1;
            }
            let left = engine.left(*job);
            sums.work_ms += left.work_ms as f64;
            sums.root_ms += root_ms(left);
            self.facts.push(Facts {
                job: *job,
                left,
                is_own: Some(*job) == source,
                age_rank: age as f64 / num,
                work_rank: 0.0,
                offered: (start, next - start),
            });
        }
        self.facts
            .sort_unstable_by_key(|facts| (facts.left.work_ms, facts.job));
        for (rank, facts) in self.facts.iter_mut().enumerate() {
            facts.work_rank = rank as f64 / num;
        }
        if let Some(own) = self.facts.iter().position(|facts| facts.is_own) {
            self.facts[..=own].rotate_right(1);
        }
        sums
    }

    /// Adds the rows of a stage: each number of executors that one of the caps gives, once, the largest first.
    fn add(&mut self, engine: &Engine, facts: Facts, stage: StageId, sums: &Sums) {
        let mut sizes = [(0, 0.0); CAPS];
        let mut num = 0;
        for cap in caps_of(sums.fair(), sums.root(facts.left), sums.executors) {
            let sent = sent(engine, facts, stage, cap);
            if sent > 0 && (num == 0 || sizes[num - 1].0 < sent) {
                sizes[num] = (sent, cap);
                num += 1;
            }
        }
        for &size in sizes[..num].iter().rev() {
            self.push(engine, (facts, stage), size, sums);
        }
    }

    /// Adds a row for each group that has a stage with room below an even share: of the own job or of others, runnable or waiting, of a
    /// third of the jobs by work left; its stage with the longest path.
    fn add_groups(&mut self, engine: &Engine, sums: &Sums) {
        let mut groups: [Option<(u64, Facts, StageId, u32)>; GROUPS] = [None; GROUPS];
        for &facts in &self.facts {
            let (start, num) = facts.offered;
            for &stage in &engine.offered()[start..start + num] {
                let cap = if facts.is_own { sums.executors } else { sums.fair() };
                let sent = sent(engine, facts, stage, cap);
                let third = (3.0 * facts.work_rank) as usize;
                let group = 6 * usize::from(!facts.is_own)
                    + 3 * usize::from(!engine.is_runnable(stage))
                    + third.min(2);
                let path_ms = engine.path_ms(stage);
                if sent > 0 && groups[group].is_none_or(|best| best.0 < path_ms) {
                    groups[group] = Some((path_ms, facts, stage, sent));
                }
            }
        }
        for (_, facts, stage, sent) in groups.into_iter().flatten() {
            self.push(engine, (facts, stage), (sent, sums.fair()), sums);
        }
    }

    /// Adds a row: so many executors by a cap.
    fn push(
        &mut self,
        engine: &Engine,
        (facts, stage): (Facts, StageId),
        (sent, cap): (u32, f64),
        sums: &Sums,
    ) {
        // The last place is left for choosing none.
        if self.choices.len() + 1 >= ROWS_MAX {
            return;
        }
        let supply = engine.supply(facts.job);
        let graph = engine.graph(facts.job);
        let longest_ms = (0..graph.stages().len()).map(|place| graph.path_ms(place)).max();
        let (recent_ms, path_ms) = (engine.recent_ms(stage) as f64, engine.path_ms(stage) as f64);
        let tasks_left = f64::from(engine.tasks_left(stage));
        let work_ms = facts.left.work_ms as f64;
        let (fair, root) = (sums.fair(), sums.root(facts.left));
        let is = |truth: bool| f64::from(u8::from(truth));
        let after = f64::from(if facts.is_own {
            supply.max(sent)
        } else {
            supply + sent
        });
        self.choices.push(Some((stage, sent)));
        push_row(
            [
                1.0,
                0.0,
                is(facts.is_own),
                is(engine.is_runnable(stage)),
                f64::from(sent) / f64::from(engine.free().max(1)),
                after / sums.executors,
                after / fair,
                cap / fair,
                cap / root,
                f64::from(supply) / sums.executors,
                tasks_left,
                recent_ms,
                recent_ms * tasks_left,
                path_ms,
                path_ms / longest_ms.unwrap_or(1).max(1) as f64,
                work_ms,
                work_ms / sums.work_ms.max(1.0),
                f64::from(facts.left.tasks),
                f64::from(facts.left.stages),
                work_ms / (f64::from(supply) + 1.0),
                (engine.now_ms() - engine.arrival_ms(facts.job)) as f64,
                facts.work_rank,
                facts.age_rank,
            ],
            &mut self.rows,
        );
    }
}

/// Executors that a cap on those of the job sends to a stage; the own job's are there already.
fn sent(engine: &Engine, facts: Facts, stage: StageId, cap: f64) -> u32 {
    let own = if facts.is_own { 0 } else { engine.supply(facts.job) };
    let most = engine.free().min(engine.demand(stage));
    ceil_share(cap).saturating_sub(own).min(most)
}

/// Caps in executors, ascending; the last one caps nothing.
fn caps_of(fair: f64, root: f64, executors: f64) -> [f64; CAPS] {
    let mut caps = [10.0 * executors; CAPS];
    let all = FAIR_CAPS
        .map(|cap| cap * fair)
        .into_iter()
        .chain(ROOT_CAPS.map(|cap| cap * root));
    for (own, cap) in caps.iter_mut().zip(all) {
        *own = cap;
    }
    caps.sort_unstable_by(f64::total_cmp);
    caps
}

/// Of the offered stages of a job the runnable one with the longest path, and the same of those that have to wait.
fn longest(engine: &Engine, own: &[StageId]) -> impl Iterator<Item = StageId> {
    let longest = |is_runnable: bool| {
        let of = own
            .iter()
            .copied()
            .filter(|stage| engine.is_runnable(*stage) == is_runnable);
        // Of equal ones the first.
        of.rev().max_by_key(|stage| engine.path_ms(*stage))
    };
    [longest(true), longest(false)].into_iter().flatten()
}

/// A policy that scores rows, as a rule.
pub struct Scored {
    scoring: Scoring,
    board: Board,
    failure: Option<Problem>,
}

impl Scored {
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>, tree: Option<&Tree>, offers: Offers) -> Result<Scored, Problem> {
        let scoring = match tree {
            Some(tree) => Scoring::keyed("policy", scorer, tree, &SCHEMA),
            None => Scoring::new("policy", scorer, &SCHEMA),
        };
        Ok(Scored {
            scoring: scoring?,
            board: Board::of(offers),
            failure: None,
        })
    }

    /// What the scorer was refused for, if it was; the play goes on as by *none*.
    pub fn take_failure(&mut self) -> Option<Problem> {
        self.failure.take()
    }
}

impl Rule for Scored {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        self.board.look(engine);
        let rows = (self.board.rows.as_slice(), ROW_WIDTH);
        match self.scoring.first(rows, &self.board.context, |row| row as u64) {
            Ok(row) => self.board.choices[row],
            Err(problem) => {
                self.failure.get_or_insert(problem);
                None
            }
        }
    }
}
