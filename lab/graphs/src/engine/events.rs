//! What happens by itself: jobs arrive, executors arrive, tasks begin and end.

use std::cmp::Reverse;

use super::ids::{JobId, StageId};
use super::outcome::{JobRecord, Outcome, TaskRecord};
use super::state::{Engine, JobState, Pool, mix};
use crate::graph::{LEVELS, Wave};

impl Engine {
    /// A job arrives.
    pub(super) fn arrive(&mut self) {
        self.active.push(JobId(self.next_arrival as u32));
        self.next_arrival += 1;
        if self.sizes[self.common().0 as usize] > 0 {
            self.source = Some(self.common());
        }
    }

    /// Notes what an executor does next, and when.
    pub(super) fn expect(&mut self, at_ms: u64, executor: usize) {
        self.events
            .push(Reverse((at_ms, self.num_events, executor as u32)));
        self.num_events += 1;
    }

    fn go_on_to(&mut self, at_ms: u64) {
        self.job_ms += (at_ms - self.now_ms) * self.active.len() as u64;
        self.now_ms = at_ms;
    }

    /// Lets things happen until something is to be decided or nothing is left.
    pub(super) fn resume(&mut self) {
        self.offered.clear();
        loop {
            let arrival = self.list.jobs().get(self.next_arrival).map(|job| job.at_ms);
            let event = self.events.peek().map(|event| event.0.0);
            match (arrival, event) {
                (None, None) => return self.ask_the_idle(),
                (Some(at_ms), event) if event.is_none_or(|event_ms| at_ms <= event_ms) => {
                    self.go_on_to(at_ms);
                    self.arrive();
                }
                (_, Some(at_ms)) => {
                    self.go_on_to(at_ms);
                    self.happen();
                }
                (Some(_), None) => {}
            }
            if self.free() == 0 {
                continue;
            }
            self.find_offered();
            if !self.offered.is_empty() {
                return;
            }
            self.rest_all();
        }
    }

    /// The source's idle executors rest, and there is no source.
    fn rest_all(&mut self) {
        let Some(source) = self.source.take() else {
            return;
        };
        for executor in 0..self.executors.len() {
            let own = &self.executors[executor];
            if own.pool == Some(source) && !own.is_running {
                self.rest(executor, source);
            }
        }
    }

    /// Where nothing else will happen, pools with idle executors are asked again, the common one first. The published simulator stops
    /// with an assertion here.
    fn ask_the_idle(&mut self) {
        self.source = None;
        if self.is_over() {
            return;
        }
        let idle = self.executors.iter().filter(|executor| !executor.is_running);
        let mut pools: Vec<Pool> = idle.filter_map(|executor| executor.pool).collect();
        let common = self.common();
        pools.sort_unstable_by_key(|pool| (*pool != common, *pool));
        pools.dedup();
        for pool in pools {
            self.source = Some(pool);
            if self.free() > 0 {
                self.find_offered();
                if !self.offered.is_empty() {
                    return;
                }
            }
        }
        self.source = None;
    }

    /// The next event: an executor reaches its job, or ends a task and takes the next one where there is one.
    fn happen(&mut self) {
        let Some(&Reverse((_, _, number))) = self.events.peek() else {
            return;
        };
        let executor = number as usize;
        let own = self.executors[executor];
        let Some(stage) = own.stage.filter(|_| own.is_running) else {
            self.events.pop();
            return self.reach(executor, own.target);
        };
        self.num_tasks += 1;
        let state = &mut self.stages[stage.0 as usize];
        state.ended += 1;
        if state.left == 0 {
            self.events.pop();
            return self.end_task(executor, stage);
        }
        let end_ms = self.launch(executor, stage);
        if let Some(mut next) = self.events.peek_mut() {
            *next = Reverse((end_ms, self.num_events, number));
        }
        self.num_events += 1;
    }

    fn reach(&mut self, executor: usize, stage: StageId) {
        let job = self.job(stage);
        self.executors[executor].job = Some(job);
        self.jobs[job.0 as usize].local += 1;
        self.change(stage, |stage| stage.moving -= 1);
        self.put(executor, Some(self.pool_of_job(job)));
        self.go_to(executor, stage);
    }

    /// An executor begins the next task of a stage; when the task ends, ms.
    pub(super) fn launch(&mut self, executor: usize, stage: StageId) -> u64 {
        let own = self.executors[executor];
        let state = self.stages[stage.0 as usize];
        let number = state.tasks - state.left;
        let draw = mix(state.draws ^ u64::from(number));
        let local = self.jobs[state.job.0 as usize].local;
        let level = self.level(local, draw);
        let memory = match own.stage {
            None => 0,
            Some(last) if last == stage => 1,
            Some(_) => 2,
        };
        let profile = &self.graph(state.job).stages()[self.place(stage)];
        let cell = profile.cell(memory, level);
        let warmup_ms = match cell.wave {
            Wave::Warmed => self.list.machine().warmup_ms,
            _ => 0,
        };
        let duration_ms = profile.duration_ms(cell, draw) + warmup_ms;
        let (start_ms, end_ms) = (self.now_ms, self.now_ms + duration_ms);
        self.change(stage, |state| {
            state.left -= 1;
            state.recent_ms = duration_ms;
            state.record.start_ms.get_or_insert(start_ms);
            state.record.end_ms = state.record.end_ms.max(end_ms);
            state.record.busy_ms += duration_ms;
        });
        if state.left == 1 {
            self.jobs[state.job.0 as usize].launched += 1;
        }
        self.executors[executor].stage = Some(stage);
        self.executors[executor].is_running = true;
        if let Some(log) = &mut self.log {
            log.push(TaskRecord {
                stage,
                number,
                executor: executor as u32,
                start_ms,
                end_ms,
                wave: cell.wave,
                local,
                level: cell.level,
            });
        }
        end_ms
    }

    /// Place of the measured level for so many executors at a job: one of the two around it, the nearer the likelier.
    fn level(&self, local: u32, draw: u64) -> usize {
        let (below, above) = self.levels[local as usize];
        let (low, high) = (LEVELS[usize::from(below)], LEVELS[usize::from(above)]);
        let drawn = 1 + (((draw >> 32) * u64::from(high.saturating_sub(low))) >> 32);
        if below >= above || drawn > u64::from(local - low) {
            usize::from(above)
        } else {
            usize::from(below)
        }
    }

    fn end_task(&mut self, executor: usize, stage: StageId) {
        self.executors[executor].is_running = false;
        let state = self.stages[stage.0 as usize];
        let opened = state.ended == state.tasks && self.end_stage(stage);
        if self.is_ended(state.job) && self.jobs[state.job.0 as usize].end_ms.is_none() {
            self.end_job(state.job);
        }
        let promise = self.promises[stage.0 as usize].first().copied();
        if let Some((target, _)) = promise {
            self.keep_promise(executor, target);
        } else {
            self.executors[executor].stage = None;
            if opened {
                self.rest(executor, Pool(stage.0));
            }
        }
        if opened {
            self.source = Some(self.pool_of_job(state.job));
        } else if promise.is_none() {
            self.source = Some(Pool(stage.0));
        }
    }

    /// Ends a stage; whether another one can run now.
    fn end_stage(&mut self, stage: StageId) -> bool {
        let job = self.job(stage);
        let list = std::sync::Arc::clone(&self.list);
        let state = &mut self.stages[stage.0 as usize];
        (state.is_ended, state.is_frontier) = (true, false);
        let state = &mut self.jobs[job.0 as usize];
        state.stages_left -= 1;
        state.is_stale = true;
        let first = state.first;
        let mut opened = false;
        for child in list.graph(job.0 as usize).children((stage.0 - first) as usize) {
            let child = &mut self.stages[(first + child) as usize];
            child.parents_left -= 1;
            child.is_frontier = child.parents_left == 0;
            opened |= child.is_frontier;
        }
        opened
    }

    fn end_job(&mut self, job: JobId) {
        let pool = self.pool_of_job(job);
        for executor in 0..self.executors.len() {
            if self.executors[executor].pool == Some(pool) {
                self.rest(executor, pool);
            }
        }
        self.active.retain(|active| *active != job);
        self.jobs[job.0 as usize].end_ms = Some(self.now_ms);
        self.num_ended += 1;
    }

    /// What came of the play so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let job = |job: &JobState| JobRecord {
            arrival_ms: job.arrival_ms,
            end_ms: job.end_ms,
        };
        Outcome {
            jobs: self.jobs.iter().map(job).collect(),
            stages: self.stages.iter().map(|stage| stage.record).collect(),
            executors: self.executors.len() as u32,
            job_ms: self.job_ms,
            end_ms: self.now_ms,
            num_decisions: self.num_decisions,
            num_tasks: self.num_tasks,
            num_moves: self.num_moves,
            tasks: self.log.clone().unwrap_or_default(),
        }
    }
}
