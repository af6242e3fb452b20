//! The only ways to change a cluster: submit, start, preempt, finish.

use super::decision::{Action, Decision, HeldBack};
use super::goodput_cache::WaitingPace;
use super::queue::QueueKeys;
use super::rates::last_checkpoint_s;
use super::shape::{Shape, ShapeId, units};
use super::stints::Stint;
use super::tables::{Job, JobState, Placement, Slice, Submission};
use super::{Cluster, Demand, PlacementFacts, bits, service_class};
use crate::error::ConfigError;
use crate::ids::{ClassId, ExternalId, GpuTypeId, JobId, Time};
use crate::spec::Resources;

impl Cluster {
    /// Adds a pending job at the present time, under a number that the cluster gives it.
    ///
    /// # Errors
    /// A request that can never be met: no GPUs, more than the cluster or the quota holds, an estimate that is no
    /// positive number, an unknown tenant or class.
    pub fn submit(&mut self, request: Submission) -> Result<JobId, ConfigError> {
        let demand = self.demand_of(&request)?;
        let external = ExternalId::own(self.num_numbered);
        self.num_numbered += 1;
        let id = self.push_row(external, request, demand);
        self.enqueue(id);
        Ok(id)
    }

    /// Adds a pending job at the present time, under its name outside.
    ///
    /// # Errors
    /// As [`Cluster::submit`]; or a name that a job has which waits or runs, or that the cluster itself could give.
    pub fn submit_as(&mut self, external: ExternalId, request: Submission) -> Result<JobId, ConfigError> {
        self.check_name(external)?;
        let demand = self.demand_of(&request)?;
        let id = self.push_row(external, request, demand);
        self.names.insert(external, id);
        self.enqueue(id);
        Ok(id)
    }

    /// Whether a new job can have this name.
    pub(super) fn check_name(&self, external: ExternalId) -> Result<(), ConfigError> {
        let taken = self.names.contains_key(&external);
        if !taken && external.own_number().is_none() {
            return Ok(());
        }
        Err(ConfigError {
            key: "job".into(),
            value: external.to_string(),
            allowed: "a name that no job has which waits or runs, and not #NUMBER".into(),
            hint: "a job that came back is the same job: report its end first".into(),
        })
    }

    /// The row of a new job that neither waits nor runs yet.
    pub(super) fn push_row(&mut self, external: ExternalId, request: Submission, demand: Demand) -> JobId {
        let (types, shape) = (demand.types, demand.shape);
        let id = JobId(self.jobs.len() as u32);
        self.jobs.push(Job {
            external,
            submit: self.now,
            request,
            types,
            shape,
            granted: shape,
            num_held: 0,
            gpu_type: GpuTypeId(0),
            is_sharing: false,
            is_forked: false,
            state: JobState::Pending,
            attained_gpu_s: 0.0,
            held_s: 0.0,
            executed_s: 0.0,
            added_s: 0.0,
            run_start: Time::ZERO,
            rate_since: Time::ZERO,
            first_start: None,
            rate_alone: 0.0,
            rate: 0.0,
            cost_left_s: 0.0,
            expected_finish: Time::MAX,
            pace: WaitingPace::NONE,
            saved_s: 0.0,
            num_preemptions: 0,
            num_failures: 0,
            start_number: 0,
            placement: Placement::new(),
        });
        id
    }

    /// What a request asks for, on the types on which it can run; its shape is numbered if it is new.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub(super) fn demand_of(&mut self, request: &Submission) -> Result<Demand, ConfigError> {
        request.resources.validate("job.resources")?;
        let Some(shape) = self.number_shape(Shape::of(&request.resources)) else {
            return Err(ConfigError {
                key: "job.resources".into(),
                value: format!("{:?}", request.resources),
                allowed: "at most 65,536 different requests for CPU, memory and fractions".into(),
                hint: "round the requests".into(),
            });
        };
        Ok(Demand {
            tenant: request.tenant,
            num_gpus: request.num_gpus,
            types: self.validate_request(request, shape)?,
            shape,
        })
    }

    /// The types on which the request can run.
    fn validate_request(&self, request: &Submission, shape: ShapeId) -> Result<u64, ConfigError> {
        let bad = |key: &str, value: String, allowed: String, hint: &str| {
            Err(ConfigError {
                key: format!("job.{key}"),
                value,
                allowed,
                hint: hint.into(),
            })
        };
        let Some(tenant) = self.tenants.get(request.tenant.index()) else {
            let allowed = format!("0 to {}", self.tenants.len() - 1);
            return bad(
                "tenant",
                request.tenant.0.to_string(),
                allowed,
                "declare the tenant in the cluster",
            );
        };
        let Some(types) = self.class_types.get(request.class.index()) else {
            let allowed = format!("0 to {}", self.classes.len() - 1);
            return bad(
                "class",
                request.class.0.to_string(),
                allowed,
                "declare the model class",
            );
        };
        let most = self
            .types_in(*types)
            .map(|kind| self.shape_gpus_max[usize::from(shape.0)][kind.index()])
            .max()
            .unwrap_or(0);
        let most = if self.borrowing {
            most
        } else {
            let quota_milli = u64::from(tenant.quota_gpus) * 1000;
            most.min((quota_milli / u64::from(request.resources.gpu_milli.max(1))) as u32)
        };
        if request.num_gpus == 0 || request.num_gpus > most {
            let hint = "a gang runs on one GPU type, within the CPU and memory of its nodes and, without borrowing, \
                        within its tenant's quota";
            return bad(
                "num_gpus",
                request.num_gpus.to_string(),
                format!("1 to {most}"),
                hint,
            );
        }
        let elastic = self.classes[request.class.index()].elastic;
        if elastic.is_some_and(|elastic| !elastic.can_hold(request.num_gpus)) {
            return bad(
                "num_gpus",
                request.num_gpus.to_string(),
                "a number of GPUs over which the class can share out its batch, at most its gpus_max".into(),
                "see elastic.profile of the class",
            );
        }
        let estimate_s = request.estimate_s.value;
        if !(estimate_s > 0.0 && estimate_s <= 1e10) {
            return bad(
                "estimate_s",
                estimate_s.to_string(),
                "above 0 and at most 1e10".into(),
                "in seconds",
            );
        }
        let memory_mib = units(request.resources.gpu_memory_gib, 1024.0);
        let fits = |kind: &GpuTypeId| {
            self.shape_gpus_max[usize::from(shape.0)][kind.index()] >= request.num_gpus
                && memory_mib <= self.type_facts[kind.index()].memory_mib
        };
        let open = self
            .types_in(*types)
            .filter(fits)
            .fold(0, |mask, kind| mask | 1 << kind.0);
        if open == 0 {
            return bad(
                "resources.gpu_memory_gib",
                request.resources.gpu_memory_gib.to_string(),
                "at most the memory of a GPU type on which the gang fits".into(),
                "lower the request or name a GPU type with more memory",
            );
        }
        Ok(open)
    }

    /// The largest gang of a class with these resources that could ever run, quotas apart; 0 if none.
    #[must_use]
    pub fn largest_gang(&mut self, class: ClassId, resources: &Resources) -> u32 {
        let memory_mib = units(resources.gpu_memory_gib, 1024.0);
        let Some(shape) = self.number_shape(Shape::of(resources)) else {
            return 0;
        };
        let Some(types) = self.class_types.get(class.index()) else {
            return 0;
        };
        self.types_in(*types)
            .filter(|kind| memory_mib <= self.type_facts[kind.index()].memory_mib)
            .map(|kind| self.shape_gpus_max[usize::from(shape.0)][kind.index()])
            .max()
            .unwrap_or(0)
    }

    /// Number of a shape, for [`Cluster::start_with`]; its largest gangs are counted when it is first seen. None if there are
    /// more than 65,536 shapes.
    pub fn number_shape(&mut self, shape: Shape) -> Option<ShapeId> {
        let id = self.shapes.number(shape)?;
        while self.shape_gpus_max.len() <= usize::from(id.0) {
            let shape = self.shapes.get(ShapeId(self.shape_gpus_max.len() as u16));
            let mut most = vec![0_u32; self.num_types()];
            for (kind, most) in most.iter_mut().enumerate() {
                *most = self.gang_max(GpuTypeId(kind as u8), shape, |_| true);
            }
            self.shape_gpus_max.push(most);
        }
        Some(id)
    }

    /// Gives a pending job its gang, all at once, with what it asked for.
    ///
    /// # Panics
    /// If the job is not pending, a GPU cannot take it, or the placement is not exactly the gang on one type: a caller
    /// that does this is broken, and going on would oversubscribe GPUs.
    pub fn start(&mut self, id: JobId, placement: Placement) {
        let shape = self.jobs[id.index()].shape;
        self.start_with(id, placement, shape);
    }

    /// As [`Cluster::start`], with other CPU and host memory than the job asked for (resource-sensitive planners).
    ///
    /// # Panics
    /// As [`Cluster::start`], or if the shape is another share of the GPUs than the job's.
    pub fn start_with(&mut self, id: JobId, placement: Placement, granted: ShapeId) {
        let facts = self.facts_with(id, &placement, granted);
        self.start_at(id, placement, granted, &facts, false);
    }

    /// Starts a job at what its placement is worth, as one gang or as copies.
    pub(super) fn start_at(
        &mut self,
        id: JobId,
        placement: Placement,
        granted: ShapeId,
        facts: &PlacementFacts,
        is_forked: bool,
    ) {
        let shape = self.shape(granted);
        let job = &self.jobs[id.index()];
        assert_eq!(job.state, JobState::Pending, "{id:?} must be pending to start");
        let elastic = &self.classes[job.request.class.index()].elastic;
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
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Running;
        (job.granted, job.num_held, job.is_forked) = (granted, facts.num_gpus, is_forked);
        (job.gpu_type, job.is_sharing) = (facts.gpu_type, false);
        (job.run_start, job.rate_since) = (now, now);
        job.first_start.get_or_insert(now);
        (job.rate_alone, job.rate, job.cost_left_s) = (facts.rate, facts.rate, cost_s);
        job.placement = own;
        job.start_number = self.num_starts;
        self.num_starts += 1;
        let (tenant, milli) = (job.request.tenant, job.milli_held());
        for slice in &placement {
            self.take(id, *slice, shape);
        }
        self.tenants[tenant.index()].used_milli += milli;
        if self.jobs[id.index()].is_sharing {
            let factor = self.sharing_speed(id);
            let job = &mut self.jobs[id.index()];
            job.rate = job.rate_alone * factor;
        }
        let finish = self.believed_finish(id);
        self.jobs[id.index()].expected_finish = finish;
        self.running[facts.gpu_type.index()].insert((finish, id));
        let stint = Stint::of(id, &self.jobs[id.index()]);
        self.stints.begin(facts.gpu_type, stint);
        self.num_running += 1;
        self.rerate_neighbours(&placement, id);
        let job = &self.jobs[id.index()];
        self.decisions
            .push(Decision::of(Action::Start, id, job, placement, shape));
    }

    /// Takes a running job's gang away and puts it back into the queue with its progress.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn preempt(&mut self, id: JobId) {
        let job = &self.jobs[id.index()];
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
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Pending;
        job.added_s += added_s;
        job.saved_s = job.executed_s;
        job.num_preemptions += 1;
        self.enqueue(id);
        self.decisions.push(decision);
    }

    /// Journals that GPUs are held back for a pending job.
    pub(crate) fn hold_back(&mut self, id: JobId, held_back: HeldBack) {
        let job = &self.jobs[id.index()];
        let asked = self.shape(job.shape);
        self.decisions.push(Decision::reserve(id, job, asked, held_back));
    }

    /// Notes the leaf that chose all decisions from one on.
    pub(crate) fn note_leaf(&mut self, from: usize, leaf: u32) {
        for decision in &mut self.decisions[from..] {
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
        let (interval_s, added_s) = (self.capabilities.checkpoint_interval_s, self.stop_cost_s(id));
        let job = &mut self.jobs[id.index()];
        job.added_s += added_s;
        job.executed_s = last_checkpoint_s(job.executed_s, interval_s).max(job.saved_s.min(job.executed_s));
        job.state = JobState::Pending;
        job.num_failures += 1;
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
        let state = self.jobs[id.index()].state;
        assert_eq!(state, JobState::Pending, "{id:?} must wait to be withdrawn");
        self.dequeue(id);
        self.leave_for_good(id);
    }

    fn leave_for_good(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Finished;
        if !self.names.is_empty() {
            self.names.remove(&job.external);
        }
        self.num_ended += 1;
    }

    /// A running job says how far it has come: `executed_s` seconds of the reference run. Beliefs about its progress and
    /// its end follow from this report.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn report_progress(&mut self, id: JobId, executed_s: f64) {
        let now = self.now;
        let job = &mut self.jobs[id.index()];
        assert_eq!(job.state, JobState::Running, "{id:?} must run to report");
        let (kind, before) = (job.gpu_type, job.expected_finish);
        let elapsed_s = (now - job.rate_since).as_secs_f64();
        job.cost_left_s = (job.cost_left_s - elapsed_s).max(0.0);
        (job.rate_since, job.executed_s) = (now, executed_s);
        let finish = self.believed_finish(id);
        self.jobs[id.index()].expected_finish = finish;
        let running = &mut self.running[kind.index()];
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
        let job = &mut self.jobs[id.index()];
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
            self.running[kind.index()].remove(&(finish, id)),
            "{id:?} is not among the running"
        );
        self.stints.end(kind, id);
        self.num_running -= 1;
        self.tenants[tenant.index()].used_milli -= milli;
        let shape = self.shape(shape);
        for slice in &placement {
            self.give_back(id, *slice, shape);
        }
        self.rerate_neighbours(&placement, id);
        let job = &mut self.jobs[id.index()];
        (job.is_sharing, job.granted, job.num_held) = (false, job.shape, 0);
        placement
    }

    fn take(&mut self, id: JobId, slice: Slice, shape: Shape) {
        self.take_with(id, slice, shape, |_| None);
    }

    /// Takes GPUs, shares of them in the MIG instances that `mig_start` names.
    #[inline]
    pub(super) fn take_with(
        &mut self,
        id: JobId,
        slice: Slice,
        shape: Shape,
        mig_start: impl Fn(u32) -> Option<u8>,
    ) {
        assert!(slice.gpus != 0, "{slice:?} of {id:?} is empty");
        let free = self.nodes[slice.node.index()].free;
        let whole = if shape.is_fractional() {
            0
        } else {
            slice.gpus & free
        };
        self.move_free(slice.node, slice.gpus & free, false);
        let node = &mut self.nodes[slice.node.index()];
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
            self.gpus[(first + gpu) as usize] = Some(id);
        }
        for gpu in bits(slice.gpus & !whole) {
            self.join(id, slice.node, gpu, shape, mig_start(gpu));
        }
    }

    fn give_back(&mut self, id: JobId, slice: Slice, shape: Shape) {
        let node = &mut self.nodes[slice.node.index()];
        let num = slice.num_gpus();
        node.cpu_milli_free += shape.cpu_milli * num;
        node.memory_mib_free += shape.memory_mib * num;
        let first = node.first_gpu;
        let mut freed = 0;
        for gpu in bits(slice.gpus) {
            let row = first + gpu;
            if self.gpus[row as usize] == Some(id) {
                self.gpus[row as usize] = None;
                freed |= 1 << gpu;
            } else if self.leave(id, slice.node, row) {
                freed |= 1 << gpu;
            }
        }
        self.move_free(slice.node, freed, true);
    }

    pub(super) fn enqueue(&mut self, id: JobId) {
        self.jobs[id.index()].pace = self.waiting_pace(id);
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.tenants[demand.tenant.index()].pending_gpus += u64::from(demand.num_gpus);
        self.queue.insert(demand, id, keys);
    }

    fn dequeue(&mut self, id: JobId) {
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.tenants[demand.tenant.index()].pending_gpus -= u64::from(demand.num_gpus);
        self.queue.remove(demand, id, keys);
    }

    pub(super) fn queue_keys(&self, id: JobId) -> QueueKeys {
        let job = &self.jobs[id.index()];
        // Neither changes while the job waits, so the keys at removal equal those at insertion.
        let rest_s = (job.work_s() - job.executed_s).max(1.0);
        QueueKeys {
            remaining: Time::from_secs_f64(rest_s),
            service_class: service_class(job.attained_gpu_s),
        }
    }
}
