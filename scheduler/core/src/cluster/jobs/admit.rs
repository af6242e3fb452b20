//! Jobs that come with a past: those of a snapshot, and those that a daemon finds running when it begins.
//!
//! Whatever such a record says is checked against the cluster and the jobs that are there already; nothing here panics on what
//! it was given. A job is put on its GPUs although a rule of today would not put it there (its share of a quota apart): it runs.

use crate::ActionKind;
use crate::cluster::jobs::attained_service::RunningService;
use crate::cluster::jobs::record::{Instance, JobRecord, RunRecord};
use crate::cluster::jobs::shape::{Shape, ShapeId};
use crate::cluster::places::shared::PACKED_MAX;
use crate::cluster::tables::{JobState, NodeState, Slice};
use crate::cluster::{Cluster, Demand, Sharing, bits};
use crate::ids::{GpuTypeId, JobId};
use crate::problem::Problem;

impl Cluster {
    /// Admits a job with its past: it waits, or runs on the GPUs that its record names. It counts as the last that came.
    ///
    /// # Errors
    /// As [`Cluster::submit_as`]; a time later than now; a run on nodes or GPUs that are not there, are down, are another's or
    /// cannot be shared with it, of another number than its gang or cut otherwise, beyond the CPU and memory of a node or its tenant's
    /// quota.
    pub fn admit(&mut self, record: &JobRecord) -> Result<JobId, Problem> {
        self.check_name(record.job)?;
        let id = self.admit_row(record)?;
        let Some(run) = &record.run else {
            self.jobs.names.insert(record.job, id);
            self.enqueue(id);
            return Ok(id);
        };
        if let Err(error) = self.resume(id, record, run) {
            self.jobs.rows.pop();
            return Err(error);
        }
        self.jobs.names.insert(record.job, id);
        self.settle_rate(id);
        let placement = self.jobs.rows[id.index()].placement.clone();
        let mut touched = Vec::new();
        self.on_links_of(id, &mut touched);
        self.rerate_neighbours(&placement, id, touched);
        Ok(id)
    }

    /// The row of a job with its past; it neither waits nor runs yet.
    pub(in crate::cluster) fn admit_row(&mut self, record: &JobRecord) -> Result<JobId, Problem> {
        record.validate(self.now)?;
        let demand = self.demand_of(&record.request)?;
        let id = self.push_row(record.job, record.request, demand);
        let job = &mut self.jobs.rows[id.index()];
        job.submit = record.submit;
        (job.attained_gpu_s, job.held_s) = (record.attained_gpu_s, record.held_s);
        (job.executed_s, job.added_s, job.saved_s) = (record.executed_s, record.added_s, record.saved_s);
        (job.first_start, job.num_preemptions) = (record.first_start, record.num_preemptions);
        job.num_failures = record.num_failures;
        Ok(id)
    }

    /// Puts a new row's job on its GPUs. Its rate beside others is left to [`Cluster::settle_rate`]. On an error nothing has
    /// changed.
    pub(in crate::cluster) fn resume(
        &mut self,
        id: JobId,
        record: &JobRecord,
        run: &RunRecord,
    ) -> Result<(), Problem> {
        let (gpu_type, num_gpus) = self.check_slices(id, record, run)?;
        let demand = Demand {
            num_gpus,
            ..self.demand(id)
        };
        if !self.has_room(demand) {
            let left = self.quota_left(demand.tenant);
            return Err(record.refuse(
                "run.placement",
                num_gpus,
                format!("the {left} GPUs left of its tenant's quota"),
            ));
        }
        let shape = Shape {
            cpu_milli: run.cpu_milli_per_gpu,
            memory_mib: run.memory_mib_per_gpu,
            ..self.shape(demand.shape)
        };
        for slice in &run.placement {
            self.check_slice(id, record, run, *slice, shape)?;
        }
        let Some(granted) = self.number_shape(shape) else {
            return Err(record.refuse("run", format!("{shape:?}"), "one of 65,536 shapes"));
        };
        let rate_alone = match run.rate_alone {
            Some(rate) => rate,
            None if run.is_forked => {
                return Err(record.refuse(
                    "run.rate_alone",
                    "none",
                    "a number, for a job that runs as copies",
                ));
            }
            None => self.facts_with(id, &run.placement, granted).rate,
        };
        if !(rate_alone > 0.0 && rate_alone.is_finite()) {
            return Err(record.refuse("run.placement", rate_alone, "GPUs on which it makes progress"));
        }
        self.occupy(id, run, (gpu_type, num_gpus), granted);
        self.jobs.rows[id.index()].rate_alone = rate_alone;
        Ok(())
    }

    /// Checks the GPUs of a run, whichever other jobs hold them: their number, and the type that sets its pace.
    fn check_slices(
        &self,
        id: JobId,
        record: &JobRecord,
        run: &RunRecord,
    ) -> Result<(GpuTypeId, u32), Problem> {
        let job = &self.jobs.rows[id.index()];
        let class = &self.facts.classes[job.request.class.index()];
        let mut nodes = Vec::with_capacity(run.placement.len());
        let mut found: Option<GpuTypeId> = None;
        let mut num_gpus = 0;
        for slice in &run.placement {
            let Some(node) = self.places.nodes.get(slice.node.index()) else {
                let allowed = format!("0 to {}", self.places.nodes.len() - 1);
                return Err(record.refuse("run.placement.node", slice.node.0, allowed));
            };
            let present = u64::MAX >> (64 - node.num_gpus);
            if slice.gpus == 0 || slice.gpus & !present != 0 {
                let allowed = format!("some of the {} GPUs of node {}", node.num_gpus, slice.node.0);
                return Err(record.refuse("run.placement.gpus", format!("{:#b}", slice.gpus), allowed));
            }
            if node.state == NodeState::Down {
                return Err(record.refuse("run.placement.node", slice.node.0, "a node that is not down"));
            }
            let speed = |gpu_type: GpuTypeId| class.speed[gpu_type.index()];
            if speed(node.gpu_type) <= 0.0 && !run.is_forked {
                let allowed = format!("a node of a type on which {} runs", class.name);
                return Err(record.refuse("run.placement.node", slice.node.0, allowed));
            }
            // Of several types the slowest sets the pace; copies name that of the first.
            found = match found {
                Some(other) if other != node.gpu_type && !run.is_forked => {
                    if !self.facts.capabilities.can(ActionKind::MixTypes) {
                        return Err(record.refuse(
                            "run.placement.node",
                            slice.node.0,
                            "nodes of one GPU type",
                        ));
                    }
                    Some(if speed(node.gpu_type) < speed(other) {
                        node.gpu_type
                    } else {
                        other
                    })
                }
                other => other.or(Some(node.gpu_type)),
            };
            if run.is_forked && slice.num_gpus() > job.request.num_gpus {
                let allowed = format!("1 to {} for each copy", job.request.num_gpus);
                return Err(record.refuse("run.placement.gpus", slice.num_gpus(), allowed));
            }
            num_gpus += slice.num_gpus();
            nodes.push(slice.node);
        }
        nodes.sort_unstable();
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(record.refuse("run.placement.node", pair[0].0, "one slice for each node"));
        }
        let tasks = job.request.resources.tasks;
        if !tasks.allow(run.placement.iter().map(|slice| slice.num_gpus()))
            || (run.is_forked && !tasks.is_any())
        {
            let value = format!("{:?}", run.placement);
            let allowed = format!("GPUs of whole tasks on each node, as in {tasks:?}");
            return Err(record.refuse("run.placement", value, allowed));
        }
        let (asked, elastic) = (job.request.num_gpus, &class.elastic);
        let fits = run.is_forked
            || num_gpus == asked
            || elastic.is_some_and(|elastic| (1..=elastic.gpus_max).contains(&num_gpus));
        match found {
            Some(gpu_type) if fits => Ok((gpu_type, num_gpus)),
            _ => {
                let allowed = match elastic {
                    Some(elastic) => format!("1 to {} GPUs", elastic.gpus_max),
                    None => format!("its gang of {asked} GPUs"),
                };
                Err(record.refuse("run.placement", format!("{num_gpus} GPUs"), allowed))
            }
        }
    }

    /// Checks that a slice of a run is there for it, with the CPU and memory that come with its GPUs.
    fn check_slice(
        &self,
        id: JobId,
        record: &JobRecord,
        run: &RunRecord,
        slice: Slice,
        shape: Shape,
    ) -> Result<(), Problem> {
        let node = &self.places.nodes[slice.node.index()];
        if slice.num_gpus() > shape.served_by(node.cpu_milli_free, node.memory_mib_free) {
            let value = format!(
                "{} thousandths of a core and {} MiB",
                shape.cpu_milli, shape.memory_mib
            );
            let allowed = format!(
                "for each of {} GPUs a part of the {} and {} that are free on node {}",
                slice.num_gpus(),
                node.cpu_milli_free,
                node.memory_mib_free,
                slice.node.0
            );
            return Err(record.refuse("run: CPU and memory per GPU", value, allowed));
        }
        for gpu in bits(slice.gpus) {
            if !self.takes_admitted(id, slice, gpu, shape, start_of(run, slice, gpu)) {
                let value = format!("GPU {gpu} of node {}", slice.node.0);
                let others = self.residents(slice.node, gpu);
                let others = others
                    .iter()
                    .map(|other| self.jobs.rows[other.index()].external.to_string());
                let others = others.collect::<Vec<_>>().join(", ");
                let allowed = if others.is_empty() {
                    "a GPU that serves its share and memory".into()
                } else {
                    format!("a GPU that has room for it beside job {others}")
                };
                return Err(record.refuse("run.placement.gpus", value, allowed));
            }
        }
        let strange = |instance: &&Instance| {
            let named = |slice: &Slice| {
                slice.node == instance.node && slice.gpus.checked_shr(instance.gpu).unwrap_or(0) & 1 == 1
            };
            !run.placement.iter().any(named)
        };
        match run.instances.iter().find(strange) {
            Some(instance) => {
                let value = format!("GPU {} of node {}", instance.gpu, instance.node.0);
                Err(record.refuse("run.instances", value, "GPUs of the placement"))
            }
            None => Ok(()),
        }
    }

    /// Whether a GPU can have one more resident that is there already, whatever the state of its node.
    fn takes_admitted(&self, id: JobId, slice: Slice, gpu: u32, shape: Shape, start: Option<u8>) -> bool {
        let node = &self.places.nodes[slice.node.index()];
        let row = node.first_gpu + gpu;
        let facts = self.facts.of_types[node.gpu_type.index()];
        let is_idle = (node.free | node.withheld) >> gpu & 1 == 1;
        if shape.is_fractional() {
            let shared = self.places.shared.get(row);
            let open = match shared {
                Some(shared) => facts.joins(shared, shape),
                None => is_idle && facts.serves(shape),
            };
            let mig = facts.mig.zip(facts.profile(shape)).zip(start);
            let placed = mig.is_none_or(|((mig, profile), start)| {
                let state = shared.map_or(crate::physics::mig::MigState::EMPTY, |shared| shared.mig);
                state.can_place_at(mig, profile, start)
            });
            return open && placed && (start.is_none() || facts.mig.is_some());
        }
        if is_idle {
            return start.is_none();
        }
        let others = self.residents(slice.node, gpu);
        let whole = |other: &JobId| self.jobs.rows[other.index()].request.resources.gpu_milli == 1000;
        let mib = |id: JobId| {
            u64::from(crate::cluster::jobs::shape::units(
                self.jobs.rows[id.index()].request.resources.gpu_memory_gib,
                1024.0,
            ))
        };
        let memory_mib: u64 = others.iter().map(|other| mib(*other)).sum::<u64>() + mib(id);
        let packs = others.len() < PACKED_MAX && memory_mib <= u64::from(facts.memory_mib);
        start.is_none()
            && self.facts.capabilities.sharing != Sharing::Off
            && others.iter().all(whole)
            && (packs || self.can_join(id, slice.node, gpu))
    }

    /// Gives a job the GPUs of its run, which were checked.
    fn occupy(
        &mut self,
        id: JobId,
        run: &RunRecord,
        (gpu_type, num_gpus): (GpuTypeId, u32),
        granted: ShapeId,
    ) {
        let own = self.placement_of(&run.placement);
        let job = &mut self.jobs.rows[id.index()];
        job.state = JobState::Running;
        (job.granted, job.num_held, job.is_forked) = (granted, num_gpus, run.is_forked);
        (job.gpu_type, job.run_start, job.rate_since) = (gpu_type, run.start, run.rate_since);
        job.first_start.get_or_insert(run.start);
        (job.cost_left_s, job.start_number) = (run.cost_left_s, run.start_number);
        job.placement = own;
        let (tenant, milli) = (job.request.tenant, job.milli_held());
        self.jobs.num_starts = self.jobs.num_starts.max(run.start_number.saturating_add(1));
        let shape = self.shape(granted);
        for slice in &run.placement {
            // A node that drains offers nothing, and keeps the jobs that it has.
            let state = self.places.nodes[slice.node.index()].state;
            if state != NodeState::Up {
                self.set_node_state(slice.node, NodeState::Up, &mut Vec::new());
            }
            self.take_with(id, *slice, shape, |gpu| start_of(run, *slice, gpu));
            if state != NodeState::Up {
                self.set_node_state(slice.node, state, &mut Vec::new());
            }
        }
        self.load_links(id, &run.placement, true, &mut Vec::new());
        self.jobs.tenants[tenant.index()].used_milli += milli;
        self.jobs.num_running += 1;
    }

    /// Gives a job that was put on its GPUs its rate beside others, and lists it among the running.
    pub(in crate::cluster) fn settle_rate(&mut self, id: JobId) {
        let (rate, is_sharing) = (self.rate_among_others(id), self.is_among_others(id));
        let job = &mut self.jobs.rows[id.index()];
        (job.rate, job.is_sharing) = (rate, is_sharing);
        let finish = self.believed_finish(id);
        let job = &mut self.jobs.rows[id.index()];
        job.expected_finish = finish;
        let (gpu_type, service) = (job.gpu_type, RunningService::of(id, job));
        self.jobs.running[gpu_type.index()].insert((finish, id));
        self.jobs.attained_service.begin(gpu_type, service);
    }
}

/// The instance that a run names on a GPU.
fn start_of(run: &RunRecord, slice: Slice, gpu: u32) -> Option<u8> {
    let mut instances = run.instances.iter();
    let named = instances.find(|instance| instance.node == slice.node && instance.gpu == gpu);
    named.map(|instance| instance.start)
}
