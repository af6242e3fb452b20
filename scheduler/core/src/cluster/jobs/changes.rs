//! The only ways to change what jobs hold: start, preempt, fail, finish, withdraw.

use crate::cluster::decision::{Action, Decision, HeldBack};
use crate::cluster::jobs::attained_service::RunningService;
use crate::cluster::jobs::queue::QueueKeys;
use crate::cluster::jobs::shape::{Shape, ShapeId};
use crate::cluster::rates::checkpoints::ALONE;
use crate::cluster::tables::{JobState, Placement, Slice};
use crate::cluster::{Cluster, Demand, PlacementFacts, bits, service_class};
use crate::estimate::Provenance;
use crate::ids::{JobId, Time};

impl Cluster {
    /// Gives a pending job its gang, all at once, with what it asked for.
    ///
    /// # Panics
    /// If the job is not pending, a GPU cannot take it, or the placement is not exactly the gang on one type, cut into its tasks: a
    /// caller that does this is broken, and going on would oversubscribe GPUs.
    pub fn start(&mut self, id: JobId, placement: Placement) {
        let shape = self.jobs.rows[id.index()].shape;
        self.start_with(id, placement, shape);
    }

    /// As [`Cluster::start`], with other CPU and host memory than the job asked for (resource-sensitive planners).
    ///
    /// # Panics
    /// As [`Cluster::start`], or if the shape is another share of the GPUs than the job's, or cut otherwise.
    pub fn start_with(&mut self, id: JobId, placement: Placement, granted: ShapeId) {
        let facts = self.facts_with(id, &placement, granted);
        self.start_at(id, placement, granted, &facts, false);
    }

    /// Starts a job at what its placement is worth, as one gang or as copies.
    pub(in crate::cluster) fn start_at(
        &mut self,
        id: JobId,
        placement: Placement,
        granted: ShapeId,
        facts: &PlacementFacts,
        is_forked: bool,
    ) {
        let shape = self.shape(granted);
        let job = &self.jobs.rows[id.index()];
        assert_eq!(job.state, JobState::Pending, "{id:?} must be pending to start");
        let elastic = &self.facts.classes[job.request.class.index()].elastic;
        assert!(
            is_forked
                || facts.num_gpus == job.request.num_gpus
                || elastic.is_some_and(|elastic| (1..=elastic.gpus_max).contains(&facts.num_gpus)),
            "{id:?} must get its whole gang, not {} GPUs",
            facts.num_gpus
        );
        assert_eq!(
            shape.gpu_milli, job.request.resources.gpu_milli,
            "{id:?} keeps its share of a GPU"
        );
        let tasks = job.request.resources.tasks;
        if !tasks.is_any() {
            let gpus = placement.iter().map(|slice| slice.num_gpus());
            assert!(
                !is_forked && shape.tasks == tasks && tasks.allow(gpus),
                "{id:?} is cut into {tasks:?}, and not so on {placement:?}"
            );
        }
        assert!(facts.rate > 0.0, "{id:?} cannot run on {:?}", facts.gpu_type);
        let demand = Demand {
            num_gpus: facts.num_gpus,
            ..self.demand(id)
        };
        assert!(self.has_room(demand), "{id:?} would exceed its tenant's quota");
        self.dequeue(id);
        let cost_s = self.start_cost_s(id, facts.gpu_type);
        let own = self.placement_of(&placement);
        let now = self.now;
        let job = &mut self.jobs.rows[id.index()];
        job.state = JobState::Running;
        (job.granted, job.num_held, job.is_forked) = (granted, facts.num_gpus, is_forked);
        (job.gpu_type, job.is_sharing) = (facts.gpu_type, false);
        (job.run_start, job.rate_since) = (now, now);
        job.first_start.get_or_insert(now);
        (job.rate_alone, job.rate, job.cost_left_s) = (facts.rate, facts.rate, cost_s);
        job.placement = own;
        job.start_number = self.jobs.num_starts;
        self.jobs.num_starts += 1;
        let (tenant, milli) = (job.request.tenant, job.milli_held());
        for slice in &placement {
            self.take(id, *slice, shape);
        }
        self.jobs.tenants[tenant.index()].used_milli += milli;
        let mut touched = Vec::new();
        self.load_links(id, &placement, true, &mut touched);
        if self.jobs.rows[id.index()].is_sharing || self.places.links.is_some() {
            self.jobs.rows[id.index()].rate = self.rate_among_others(id);
        }
        let finish = self.believed_finish(id);
        self.jobs.rows[id.index()].expected_finish = finish;
        self.jobs.running[facts.gpu_type.index()].insert((finish, id));
        let service = RunningService::of(id, &self.jobs.rows[id.index()]);
        self.jobs.attained_service.begin(facts.gpu_type, service);
        self.jobs.num_running += 1;
        self.rerate_neighbours(&placement, id, touched);
        let job = &self.jobs.rows[id.index()];
        self.jobs
            .decisions
            .push(Decision::of(Action::Start, id, job, placement, shape));
    }

    /// Takes a running job's gang away and puts it back into the queue with its progress. A start that was decided at this instant and
    /// not carried out yet is undone: nothing happened, and nothing is paid.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn preempt(&mut self, id: JobId) {
        if self.undo_start(id) {
            return;
        }
        let job = &self.jobs.rows[id.index()];
        let mut decision = Decision::of(
            Action::Preempt,
            id,
            job,
            Placement::new(),
            self.shape(job.granted),
        );
        decision.num_copies = if job.is_forked {
            job.placement.len() as u32
        } else {
            1
        };
        decision.placement = self.stop(id);
        let added_s = self.stop_cost_s(id);
        let job = &self.jobs.rows[id.index()];
        let kept_s = self.kept_at_stop_s(id, job.executed_s, job.saved_s, ALONE);
        let job = &mut self.jobs.rows[id.index()];
        job.state = JobState::Pending;
        job.added_s += added_s;
        (job.executed_s, job.saved_s) = (kept_s, kept_s);
        job.num_preemptions += 1;
        self.enqueue(id);
        self.jobs.decisions.push(decision);
    }

    /// Takes the start of a job out of the journal, if it is there and no time has passed since; the job waits as before.
    fn undo_start(&mut self, id: JobId) -> bool {
        let is_start = |decision: &Decision| decision.row == id && decision.action == Action::Start;
        let started = match self.jobs.rows[id.index()].run_start == self.now {
            true => self.jobs.decisions.iter().rposition(is_start),
            false => None,
        };
        let Some(at) = started else { return false };
        let decision = self.jobs.decisions.remove(at);
        let placement = self.stop(id);
        self.put_by(decision.placement);
        self.put_by(placement);
        let job = &mut self.jobs.rows[id.index()];
        job.state = JobState::Pending;
        if job.num_preemptions + job.num_failures == 0 {
            job.first_start = None;
        }
        self.enqueue(id);
        true
    }

    /// Journals that GPUs are held back for a pending job.
    pub(crate) fn hold_back(&mut self, id: JobId, held_back: HeldBack) {
        let job = &self.jobs.rows[id.index()];
        let asked = self.shape(job.shape);
        self.jobs
            .decisions
            .push(Decision::reserve(id, job, asked, held_back));
    }

    /// Notes the leaf that chose all decisions from one on.
    pub(crate) fn note_leaf(&mut self, from: usize, leaf: u32) {
        for decision in &mut self.jobs.decisions[from..] {
            decision.leaf = Some(leaf);
        }
    }

    /// A running job was stopped by a failure, its own or a node's, and goes back to the queue with what its last
    /// checkpoint holds, the one of a preemption included.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn fail(&mut self, id: JobId) {
        self.stop_and_put_by(id);
        let added_s = self.stop_cost_s(id);
        let job = &self.jobs.rows[id.index()];
        let kept_s = self.kept_at_failure_s(job.request.class, job.executed_s, job.saved_s);
        let job = &mut self.jobs.rows[id.index()];
        job.added_s += added_s;
        job.executed_s = kept_s;
        job.state = JobState::Pending;
        job.num_failures += 1;
        self.enqueue(id);
    }

    /// A pending job leaves the queue until it is [let go](Cluster::let_go): its user has to look after it first.
    ///
    /// # Panics
    /// If the job does not wait.
    pub fn hold(&mut self, id: JobId) {
        let state = self.jobs.rows[id.index()].state;
        assert_eq!(state, JobState::Pending, "{id:?} must wait to be held");
        self.dequeue(id);
        self.jobs.rows[id.index()].state = JobState::Held;
    }

    /// A held job waits for GPUs again.
    ///
    /// # Panics
    /// If the job is not held.
    pub fn let_go(&mut self, id: JobId) {
        let state = self.jobs.rows[id.index()].state;
        assert_eq!(state, JobState::Held, "{id:?} must be held to be let go");
        self.jobs.rows[id.index()].state = JobState::Pending;
        self.enqueue(id);
    }

    /// A running job has left of its own accord (done, failed or killed).
    ///
    /// # Panics
    /// If the job does not run.
    pub fn finish(&mut self, id: JobId) {
        self.stop_and_put_by(id);
        self.leave_for_good(id);
    }

    /// A pending job was taken back by its user and leaves.
    ///
    /// # Panics
    /// If the job does not wait.
    pub fn withdraw(&mut self, id: JobId) {
        let state = self.jobs.rows[id.index()].state;
        assert_eq!(state, JobState::Pending, "{id:?} must wait to be withdrawn");
        self.dequeue(id);
        self.leave_for_good(id);
    }

    fn leave_for_good(&mut self, id: JobId) {
        let job = &mut self.jobs.rows[id.index()];
        job.state = JobState::Finished;
        if !self.jobs.names.is_empty() {
            self.jobs.names.remove(&job.external);
        }
    }

    /// A running job says how far it has come: `executed_s` seconds of the reference run. Beliefs about its progress and
    /// its end follow from this report.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn report_progress(&mut self, id: JobId, executed_s: f64) {
        let now = self.now;
        let job = &mut self.jobs.rows[id.index()];
        assert_eq!(job.state, JobState::Running, "{id:?} must run to report");
        let (kind, before) = (job.gpu_type, job.expected_finish);
        let elapsed_s = (now - job.rate_since).as_secs_f64();
        job.cost_left_s = (job.cost_left_s - elapsed_s).max(0.0);
        (job.rate_since, job.executed_s) = (now, executed_s);
        let finish = self.believed_finish(id);
        self.jobs.rows[id.index()].expected_finish = finish;
        let running = &mut self.jobs.running[kind.index()];
        assert!(running.remove(&(before, id)), "{id:?} is not among the running");
        running.insert((finish, id));
    }

    fn stop_and_put_by(&mut self, id: JobId) {
        let placement = self.stop(id);
        self.put_by(placement);
    }

    /// Takes a running job's GPUs away; says which they were.
    fn stop(&mut self, id: JobId) -> Placement {
        let now = self.now;
        let job = &mut self.jobs.rows[id.index()];
        assert_eq!(job.state, JobState::Running, "{id:?} must run to stop");
        job.attained_gpu_s = job.attained_gpu_s_at(now);
        job.held_s += (now - job.run_start).as_secs_f64();
        job.executed_s = job.executed_s_at(now);
        let placement = std::mem::take(&mut job.placement);
        let (tenant, milli, finish) = (job.request.tenant, job.milli_held(), job.expected_finish);
        let shape = job.granted;
        job.expected_finish = Time::MAX;
        let kind = job.gpu_type;
        assert!(
            self.jobs.running[kind.index()].remove(&(finish, id)),
            "{id:?} is not among the running"
        );
        self.jobs.attained_service.end(kind, id);
        self.jobs.num_running -= 1;
        self.jobs.tenants[tenant.index()].used_milli -= milli;
        let shape = self.shape(shape);
        for slice in &placement {
            self.give_back(id, *slice, shape);
        }
        let mut touched = Vec::new();
        self.load_links(id, &placement, false, &mut touched);
        self.rerate_neighbours(&placement, id, touched);
        let job = &mut self.jobs.rows[id.index()];
        (job.is_sharing, job.granted, job.num_held) = (false, job.shape, 0);
        placement
    }

    fn take(&mut self, id: JobId, slice: Slice, shape: Shape) {
        self.take_with(id, slice, shape, |_| None);
    }

    /// Takes GPUs, shares of them in the MIG instances that `mig_start` names.
    #[inline]
    pub(in crate::cluster) fn take_with(
        &mut self,
        id: JobId,
        slice: Slice,
        shape: Shape,
        mig_start: impl Fn(u32) -> Option<u8>,
    ) {
        assert!(slice.gpus != 0, "{slice:?} of {id:?} is empty");
        self.places
            .changes
            .note_type(self.places.nodes[slice.node.index()].gpu_type);
        let free = self.places.nodes[slice.node.index()].free;
        let whole = if shape.is_fractional() {
            0
        } else {
            slice.gpus & free
        };
        self.move_free(slice.node, slice.gpus & free, false);
        let node = &mut self.places.nodes[slice.node.index()];
        let num = slice.num_gpus();
        if shape.cpu_milli != 0 || shape.memory_mib != 0 {
            let served = shape.served_by(node.cpu_milli_free, node.memory_mib_free);
            assert!(
                num <= served,
                "{:?} has no CPU or memory left for {id:?}",
                slice.node
            );
            node.cpu_milli_free -= shape.cpu_milli * num;
            node.memory_mib_free -= shape.memory_mib * num;
        }
        let first = node.first_gpu;
        for gpu in bits(whole) {
            self.places.gpus[(first + gpu) as usize] = Some(id);
        }
        for gpu in bits(slice.gpus & !whole) {
            self.join(id, slice.node, gpu, shape, mig_start(gpu));
        }
    }

    fn give_back(&mut self, id: JobId, slice: Slice, shape: Shape) {
        let node = &mut self.places.nodes[slice.node.index()];
        self.places.changes.note_type(node.gpu_type);
        let num = slice.num_gpus();
        node.cpu_milli_free += shape.cpu_milli * num;
        node.memory_mib_free += shape.memory_mib * num;
        let first = node.first_gpu;
        let mut freed = 0;
        for gpu in bits(slice.gpus) {
            let row = first + gpu;
            if self.places.gpus[row as usize] == Some(id) {
                self.places.gpus[row as usize] = None;
                freed |= 1 << gpu;
            } else if self.leave(id, slice.node, row) {
                freed |= 1 << gpu;
            }
        }
        self.move_free(slice.node, freed, true);
    }

    pub(in crate::cluster) fn enqueue(&mut self, id: JobId) {
        self.jobs.rows[id.index()].pace = self.waiting_pace(id);
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.jobs.tenants[demand.tenant.index()].pending_gpus += u64::from(demand.num_gpus);
        self.jobs.num_predicted += self.num_predicted_of(id);
        self.jobs.pending.insert(demand, id, keys);
    }

    fn dequeue(&mut self, id: JobId) {
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.jobs.tenants[demand.tenant.index()].pending_gpus -= u64::from(demand.num_gpus);
        self.jobs.num_predicted -= self.num_predicted_of(id);
        self.jobs.pending.remove(demand, id, keys);
    }

    pub(in crate::cluster) fn num_predicted_of(&self, id: JobId) -> usize {
        let estimate_s = self.jobs.rows[id.index()].request.estimate_s;
        usize::from(estimate_s.provenance == Provenance::Predicted)
    }

    pub(in crate::cluster) fn queue_keys(&self, id: JobId) -> QueueKeys {
        let job = &self.jobs.rows[id.index()];
        // Neither changes while the job waits, so the keys at removal equal those at insertion.
        let rest_s = (job.work_s() - job.executed_s).max(1.0);
        QueueKeys {
            remaining: Time::from_secs_f64(rest_s),
            service_class: service_class(job.attained_gpu_s),
        }
    }
}
