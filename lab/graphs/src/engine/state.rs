//! What the simulator knows: stages, jobs, executors, pools and promises, and what policies may ask of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::ids::{JobId, StageId};
use super::outcome::{StageRecord, TaskRecord};
use crate::graph::{Graph, LEVELS};
use crate::list::List;

/// A pool of executors: of stages by their number, then of jobs, then the common one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pool(pub u32);

/// Progress of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageState {
    pub job: JobId,
    pub tasks: u32,
    /// Tasks that were not launched yet.
    pub left: u32,
    /// Tasks that ended.
    pub ended: u32,
    /// Executors on their way to it.
    pub moving: u32,
    /// Executors that are promised to it.
    pub promised: u32,
    /// Duration of the task that was launched last, ms.
    pub recent_ms: u64,
    pub parents_left: u32,
    pub is_ended: bool,
    /// All parents have ended.
    pub is_frontier: bool,
    /// It was chosen in this round of decisions.
    pub is_chosen: bool,
    /// Beginning of the draws of its tasks.
    pub draws: u64,
    pub record: StageRecord,
}

impl StageState {
    /// Executors that it can still use; not above 0: it is saturated.
    pub fn demand(&self) -> i64 {
        i64::from(self.left) - i64::from(self.moving) - i64::from(self.promised)
    }
}

/// Progress of a job.
#[derive(Clone, Debug)]
pub(super) struct JobState {
    pub arrival_ms: u64,
    pub end_ms: Option<u64>,
    /// Its first stage; the others follow.
    pub first: u32,
    pub num: u32,
    pub stages_left: u32,
    /// Stages with all tasks launched.
    pub launched: u32,
    /// Executors at the job.
    pub local: u32,
    /// Executors that were sent to it, or are promised from elsewhere.
    pub supply: i64,
    /// Its stages that may be chosen, where they are known.
    pub ready: Vec<StageId>,
    pub is_stale: bool,
}

/// An executor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Executor {
    /// None on the way.
    pub pool: Option<Pool>,
    pub job: Option<JobId>,
    /// The stage that it remembers.
    pub stage: Option<StageId>,
    pub is_running: bool,
    /// Where it is going.
    pub target: StageId,
}

/// A play of a list, from decision to decision.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) list: Arc<List>,
    pub(super) now_ms: u64,
    pub(super) stages: Vec<StageState>,
    pub(super) jobs: Vec<JobState>,
    pub(super) executors: Vec<Executor>,
    pub(super) active: Vec<JobId>,
    pub(super) source: Option<Pool>,
    /// Executors of each pool.
    pub(super) sizes: Vec<u32>,
    /// Those of them that are promised.
    pub(super) given: Vec<u32>,
    /// What each pool has promised, in order: to a stage's pool or the common one, how many.
    pub(super) promises: Vec<Vec<(Pool, u32)>>,
    pub(super) offered: Vec<StageId>,
    pub(super) chosen: Vec<StageId>,
    /// Time, number and executor of what happens next; at most one entry an executor.
    pub(super) events: BinaryHeap<Reverse<(u64, u64, u32)>>,
    pub(super) num_events: u64,
    pub(super) next_arrival: usize,
    pub(super) num_ended: usize,
    /// Integral of the jobs in the system over time, job ms.
    pub(super) job_ms: u64,
    pub(super) num_decisions: u64,
    pub(super) num_tasks: u64,
    pub(super) num_moves: u64,
    /// By executors at a job: places of the measured levels below and above.
    pub(super) levels: Vec<(u8, u8)>,
    pub(super) log: Option<Vec<TaskRecord>>,
}

/// A step of splitmix64.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Places of the measured levels around a number of executors.
fn levels_around(executors: u32) -> (u8, u8) {
    let below = LEVELS.iter().rposition(|level| *level <= executors).unwrap_or(0);
    let above = LEVELS.iter().position(|level| *level >= executors);
    (below as u8, above.unwrap_or(LEVELS.len() - 1) as u8)
}

impl Engine {
    /// The beginning of a play, up to its first decision.
    #[must_use]
    pub fn new(list: Arc<List>) -> Engine {
        Engine::with_log(list, None)
    }

    /// The same with a record of each task.
    #[must_use]
    pub fn logged(list: Arc<List>) -> Engine {
        Engine::with_log(list, Some(Vec::new()))
    }

    fn with_log(list: Arc<List>, log: Option<Vec<TaskRecord>>) -> Engine {
        let (mut stages, mut jobs) = (Vec::new(), Vec::new());
        for (number, arrival) in list.jobs().iter().enumerate() {
            let graph = list.graph(number);
            let draws = mix(mix(list.seed()) ^ number as u64);
            jobs.push(JobState {
                arrival_ms: arrival.at_ms,
                end_ms: None,
                first: stages.len() as u32,
                num: graph.stages().len() as u32,
                stages_left: graph.stages().len() as u32,
                launched: 0,
                local: 0,
                supply: 0,
                ready: Vec::new(),
                is_stale: true,
            });
            stages.extend(
                graph
                    .stages()
                    .iter()
                    .enumerate()
                    .map(|(place, stage)| StageState {
                        job: JobId(number as u32),
                        tasks: stage.tasks,
                        left: stage.tasks,
                        ended: 0,
                        moving: 0,
                        promised: 0,
                        recent_ms: u64::from(stage.mean_ms),
                        parents_left: graph.parents(place).len() as u32,
                        is_ended: false,
                        is_frontier: graph.parents(place).is_empty(),
                        is_chosen: false,
                        draws: mix(draws ^ place as u64),
                        record: StageRecord::default(),
                    }),
            );
        }
        let num_pools = stages.len() + jobs.len() + 1;
        let common = Pool(num_pools as u32 - 1);
        let num_executors = list.machine().executors;
        let mut sizes = vec![0; num_pools];
        sizes[common.0 as usize] = num_executors;
        let executor = Executor {
            pool: Some(common),
            job: None,
            stage: None,
            is_running: false,
            target: StageId(0),
        };
        let mut engine = Engine {
            now_ms: 0,
            stages,
            jobs,
            executors: vec![executor; num_executors as usize],
            active: Vec::new(),
            source: Some(common),
            sizes,
            given: vec![0; num_pools],
            promises: vec![Vec::new(); num_pools],
            offered: Vec::new(),
            chosen: Vec::new(),
            events: BinaryHeap::with_capacity(num_executors as usize),
            num_events: 0,
            next_arrival: 0,
            num_ended: 0,
            job_ms: 0,
            num_decisions: 0,
            num_tasks: 0,
            num_moves: 0,
            levels: (0..=num_executors).map(levels_around).collect(),
            log,
            list,
        };
        while engine
            .list
            .jobs()
            .get(engine.next_arrival)
            .is_some_and(|job| job.at_ms == 0)
        {
            engine.arrive();
        }
        engine.find_offered();
        if engine.offered.is_empty() {
            engine.resume();
        }
        engine
    }

    pub(super) fn common(&self) -> Pool {
        Pool(self.promises.len() as u32 - 1)
    }

    pub(super) fn pool_of_job(&self, job: JobId) -> Pool {
        Pool(self.stages.len() as u32 + job.0)
    }

    /// The stage of a stage's pool.
    pub(super) fn stage_of(&self, pool: Pool) -> Option<StageId> {
        ((pool.0 as usize) < self.stages.len()).then_some(StageId(pool.0))
    }

    /// The job of a pool, or of its stage; none of the common pool.
    pub(super) fn job_of(&self, pool: Pool) -> Option<JobId> {
        match self.stage_of(pool) {
            Some(stage) => Some(self.stages[stage.0 as usize].job),
            None if pool == self.common() => None,
            None => Some(JobId(pool.0 - self.stages.len() as u32)),
        }
    }

    /// Time, ms.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Integral of the jobs in the system over time, job ms.
    #[must_use]
    pub fn job_ms(&self) -> u64 {
        self.job_ms
    }

    /// The list that is played.
    #[must_use]
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Executors of the source that are not promised yet, the running ones included.
    #[must_use]
    pub fn free(&self) -> u32 {
        let of = |pool: Pool| self.sizes[pool.0 as usize] - self.given[pool.0 as usize];
        self.source.map_or(0, of)
    }

    /// The job whose executors are dealt; none where they are of no job.
    #[must_use]
    pub fn source_job(&self) -> Option<JobId> {
        self.source.and_then(|pool| self.job_of(pool))
    }

    /// Stages that may be chosen, job by job in order of arrival.
    #[must_use]
    pub fn offered(&self) -> &[StageId] {
        &self.offered
    }

    /// Whether a stage has to be chosen: without one nothing would ever happen again.
    #[must_use]
    pub fn must_choose(&self) -> bool {
        self.events.is_empty() && self.next_arrival == self.jobs.len()
    }

    /// Whether all jobs have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.num_ended == self.jobs.len()
    }

    /// Jobs that have arrived and not ended, by arrival.
    #[must_use]
    pub fn active(&self) -> &[JobId] {
        &self.active
    }

    /// The job of a stage.
    #[must_use]
    pub fn job(&self, stage: StageId) -> JobId {
        self.stages[stage.0 as usize].job
    }

    /// The graph of a job.
    #[must_use]
    pub fn graph(&self, job: JobId) -> &Graph {
        self.list.graph(job.0 as usize)
    }

    /// Stages of a job, by number.
    pub fn stages_of(&self, job: JobId) -> impl Iterator<Item = StageId> + use<> {
        let job = &self.jobs[job.0 as usize];
        (job.first..job.first + job.num).map(StageId)
    }

    /// Number of a stage in its graph.
    #[must_use]
    pub fn place(&self, stage: StageId) -> usize {
        (stage.0 - self.jobs[self.job(stage).0 as usize].first) as usize
    }

    /// Executors that a stage can still use, at least 0.
    #[must_use]
    pub fn demand(&self, stage: StageId) -> u32 {
        self.stages[stage.0 as usize].demand().max(0) as u32
    }

    /// Whether all parents of a stage have ended.
    #[must_use]
    pub fn is_runnable(&self, stage: StageId) -> bool {
        self.stages[stage.0 as usize].is_frontier
    }

    /// Whether all tasks of a stage have ended.
    #[must_use]
    pub fn has_ended(&self, stage: StageId) -> bool {
        self.stages[stage.0 as usize].is_ended
    }

    /// Tasks of a stage that were not launched.
    #[must_use]
    pub fn tasks_left(&self, stage: StageId) -> u32 {
        self.stages[stage.0 as usize].left
    }

    /// Tasks of a stage that run.
    #[must_use]
    pub fn tasks_running(&self, stage: StageId) -> u32 {
        let own = &self.stages[stage.0 as usize];
        own.tasks - own.left - own.ended
    }

    /// Duration of the task of a stage that was launched last, at first its profile's mean, ms.
    #[must_use]
    pub fn recent_ms(&self, stage: StageId) -> u64 {
        self.stages[stage.0 as usize].recent_ms
    }

    /// Longest path from a stage to an end of its graph by mean durations, ms.
    #[must_use]
    pub fn path_ms(&self, stage: StageId) -> u64 {
        self.graph(self.job(stage)).path_ms(self.place(stage))
    }

    /// When a job arrived, ms.
    #[must_use]
    pub fn arrival_ms(&self, job: JobId) -> u64 {
        self.jobs[job.0 as usize].arrival_ms
    }

    /// Executors that were sent to a job or are promised to it from elsewhere.
    #[must_use]
    pub fn supply(&self, job: JobId) -> u32 {
        self.jobs[job.0 as usize].supply.max(0) as u32
    }

    /// Whether all stages of a job have ended.
    #[must_use]
    pub fn is_ended(&self, job: JobId) -> bool {
        self.jobs[job.0 as usize].stages_left == 0
    }

    /// Work, tasks and stages of a job that are left: tasks that were not launched, each as long as the stage's last one.
    #[must_use]
    pub fn left(&self, job: JobId) -> Left {
        let job = &self.jobs[job.0 as usize];
        let mut left = Left::default();
        for stage in &self.stages[job.first as usize..(job.first + job.num) as usize] {
            if !stage.is_ended {
                left.work_ms += stage.recent_ms * u64::from(stage.left);
                left.tasks += stage.left;
                left.stages += 1;
            }
        }
        left
    }
}

/// What is left of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Work, ms.
    pub work_ms: u64,
    /// Tasks that were not launched.
    pub tasks: u32,
    /// Stages that have not ended.
    pub stages: u32,
}
