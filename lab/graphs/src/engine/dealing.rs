//! A round of decisions: which stages may be chosen, promises to them, and where executors go that keep one.

use super::ids::{JobId, StageId};
use super::state::{Engine, Pool, StageState};

impl Engine {
    /// Takes a decision: so many executors of those that are free for an offered stage, or none for all that are left. More than the
    /// stage can use are not taken. Goes on to the next decision, or to the end.
    ///
    /// Where a stage has to be chosen, *none* gives all to the first one.
    ///
    /// # Panics
    /// In debug builds, for a stage that is not offered.
    pub fn decide(&mut self, choice: Option<(StageId, u32)>) {
        self.num_decisions += 1;
        let forced = || self.offered.first().map(|stage| (*stage, self.free()));
        let choice = choice.or_else(|| if self.must_choose() { forced() } else { None });
        if let Some((stage, num)) = choice {
            debug_assert!(self.offered.contains(&stage) && num > 0);
            self.promise(self.demand(stage).min(num).min(self.free()), Pool(stage.0));
            self.stages[stage.0 as usize].is_chosen = true;
            self.chosen.push(stage);
            self.offer_again(self.job(stage));
            if self.free() > 0 && !self.offered.is_empty() {
                return;
            }
        }
        self.promise(self.free(), self.common());
        self.keep_promises();
        self.source = None;
        while let Some(stage) = self.chosen.pop() {
            self.stages[stage.0 as usize].is_chosen = false;
            let job = self.job(stage);
            self.jobs[job.0 as usize].is_stale = true;
        }
        self.resume();
    }

    /// A stage may be chosen that is not saturated while all its parents are.
    fn is_ready(&self, stage: StageId) -> bool {
        let own = &self.stages[stage.0 as usize];
        if own.is_ended || own.is_chosen || own.demand() <= 0 {
            return false;
        }
        let first = self.jobs[own.job.0 as usize].first;
        let mut parents = self.graph(own.job).parents(self.place(stage)).iter();
        parents.all(|parent| self.stages[(first + parent) as usize].demand() <= 0)
    }

    /// Finds the stages of a job that may be chosen, where they are not known.
    fn refresh(&mut self, job: JobId) {
        if !self.jobs[job.0 as usize].is_stale {
            return;
        }
        let mut ready = std::mem::take(&mut self.jobs[job.0 as usize].ready);
        ready.clear();
        ready.extend(self.stages_of(job).filter(|stage| self.is_ready(*stage)));
        let job = &mut self.jobs[job.0 as usize];
        (job.ready, job.is_stale) = (ready, false);
    }

    /// A job that has been sent all executors gets no more, unless they are its own.
    fn is_open(&self, job: JobId, source: Option<JobId>) -> bool {
        source == Some(job) || self.jobs[job.0 as usize].supply < self.executors.len() as i64
    }

    /// Offers the stages of all jobs.
    pub(super) fn find_offered(&mut self) {
        let mut offered = std::mem::take(&mut self.offered);
        offered.clear();
        let source = self.source_job();
        for place in 0..self.active.len() {
            let job = self.active[place];
            if self.is_open(job, source) {
                self.refresh(job);
                offered.extend_from_slice(&self.jobs[job.0 as usize].ready);
            }
        }
        self.offered = offered;
    }

    /// Offers the stages of one job anew, after one of them was chosen.
    fn offer_again(&mut self, job: JobId) {
        self.jobs[job.0 as usize].is_stale = true;
        self.refresh(job);
        let is_own = |stage: &StageId| self.stages[stage.0 as usize].job == job;
        let start = self.offered.iter().position(is_own).unwrap_or(0);
        let others = self.offered[start..].iter().position(|stage| !is_own(stage));
        let end = others.map_or(self.offered.len(), |num| start + num);
        let ready = match self.is_open(job, self.source_job()) {
            true => self.jobs[job.0 as usize].ready.as_slice(),
            false => &[],
        };
        self.offered.splice(start..end, ready.iter().copied());
    }

    /// Changes what a stage is given, and notes where that saturates it or ends its being so.
    pub(super) fn change(&mut self, stage: StageId, change: impl FnOnce(&mut StageState)) {
        let own = &mut self.stages[stage.0 as usize];
        let before = own.demand() > 0;
        change(own);
        if before != (own.demand() > 0) {
            self.jobs[own.job.0 as usize].is_stale = true;
        }
    }

    /// Promises executors of the source.
    fn promise(&mut self, num: u32, target: Pool) {
        let Some(source) = self.source.filter(|_| num > 0) else {
            return;
        };
        let promises = &mut self.promises[source.0 as usize];
        match promises.iter_mut().find(|promise| promise.0 == target) {
            Some(promise) => promise.1 += num,
            None => promises.push((target, num)),
        }
        self.given[source.0 as usize] += num;
        if let Some(stage) = self.stage_of(target) {
            self.change(stage, |stage| stage.promised += num);
        }
        self.book_supply(source, target, i64::from(num));
    }

    /// Books executors that are promised from one pool to another.
    fn book_supply(&mut self, source: Pool, target: Pool, num: i64) {
        let job = self.job_of(target);
        if let Some(job) = job.filter(|_| job != self.job_of(source)) {
            self.jobs[job.0 as usize].supply += num;
        }
    }

    /// The source's idle executors keep its promises in order, the lowest number first.
    fn keep_promises(&mut self) {
        let Some(source) = self.source else {
            return;
        };
        for executor in 0..self.executors.len() {
            let Some(&(target, _)) = self.promises[source.0 as usize].first() else {
                return;
            };
            let own = &self.executors[executor];
            if own.pool == Some(source) && !own.is_running {
                self.keep_promise(executor, target);
            }
        }
    }

    /// An executor keeps a promise of its pool, which is that pool's first.
    pub(super) fn keep_promise(&mut self, executor: usize, target: Pool) {
        let Some(source) = self.executors[executor].pool else {
            return;
        };
        let promises = &mut self.promises[source.0 as usize];
        if let Some(first) = promises.first_mut() {
            first.1 -= 1;
            if first.1 == 0 {
                promises.remove(0);
            }
        }
        self.given[source.0 as usize] -= 1;
        self.book_supply(source, target, -1);
        match self.stage_of(target) {
            None => self.rest(executor, source),
            Some(stage) => {
                self.change(stage, |stage| stage.promised -= 1);
                self.go_to(executor, stage);
            }
        }
    }

    pub(super) fn put(&mut self, executor: usize, pool: Option<Pool>) {
        if let Some(old) = self.executors[executor].pool {
            self.sizes[old.0 as usize] -= 1;
        }
        if let Some(new) = pool {
            self.sizes[new.0 as usize] += 1;
        }
        self.executors[executor].pool = pool;
    }

    /// An executor without work stays at its job, or becomes common where all tasks of the job are launched.
    pub(super) fn rest(&mut self, executor: usize, pool: Pool) {
        let Some(job) = self.job_of(pool) else {
            return;
        };
        let state = &self.jobs[job.0 as usize];
        let own = self.pool_of_job(job);
        if state.launched == state.num {
            self.put(executor, Some(self.common()));
            self.leave(executor);
        } else if pool != own {
            self.put(executor, Some(own));
        }
    }

    /// An executor leaves its job and forgets its stage.
    fn leave(&mut self, executor: usize) {
        let own = &mut self.executors[executor];
        own.stage = None;
        if let Some(job) = own.job.take() {
            self.jobs[job.0 as usize].local -= 1;
        }
    }

    /// An executor goes to a stage: it travels to another job, waits where the stage cannot run yet, or begins a task.
    pub(super) fn go_to(&mut self, executor: usize, stage: StageId) {
        let own = self.stages[stage.0 as usize];
        if own.left == 0 {
            self.go_elsewhere(executor);
        } else if self.executors[executor].job != Some(own.job) {
            let old_job = self.executors[executor].pool.and_then(|pool| self.job_of(pool));
            self.put(executor, None);
            self.change(stage, |stage| stage.moving += 1);
            self.jobs[own.job.0 as usize].supply += 1;
            if let Some(old) = old_job {
                self.jobs[old.0 as usize].supply -= 1;
            }
            self.leave(executor);
            self.executors[executor].target = stage;
            self.num_moves += 1;
            self.expect(self.now_ms + self.list.machine().moving_ms, executor);
        } else if own.is_frontier {
            self.put(executor, Some(Pool(stage.0)));
            let end_ms = self.launch(executor, stage);
            self.expect(end_ms, executor);
        } else {
            self.executors[executor].stage = None;
            self.put(executor, Some(self.pool_of_job(own.job)));
        }
    }

    /// An executor whose stage was taken goes to the first ready stage of its own job, else of another by arrival, else it rests.
    fn go_elsewhere(&mut self, executor: usize) {
        let own = self.executors[executor].job;
        let is_lost = self.list.machine().mimics_released && own == Some(JobId(0));
        let exempt = if is_lost { self.source_job() } else { own };
        let mut found = own.and_then(|own| self.first_ready(own, exempt));
        for place in 0..self.active.len() {
            let job = self.active[place];
            if found.is_none() && Some(job) != own {
                found = self.first_ready(job, exempt);
            }
        }
        match (found, self.executors[executor].pool) {
            (Some(stage), _) => self.go_to(executor, stage),
            (None, Some(pool)) => self.rest(executor, pool),
            (None, None) => {}
        }
    }

    fn first_ready(&mut self, job: JobId, exempt: Option<JobId>) -> Option<StageId> {
        if !self.is_open(job, exempt) {
            return None;
        }
        self.refresh(job);
        self.jobs[job.0 as usize].ready.first().copied()
    }
}
