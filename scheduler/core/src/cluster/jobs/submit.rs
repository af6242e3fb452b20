//! How jobs come: what a request must fulfil, and the row that it gets.

use crate::cluster::jobs::record::JobRecord;
use crate::cluster::jobs::shape::{Shape, ShapeId, units};
use crate::cluster::rates::goodput_cache::WaitingPace;
use crate::cluster::tables::{Job, JobState, Placement, Submission};
use crate::cluster::{Cluster, Demand};
use crate::cluster_spec::Resources;
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, ExternalId, GpuTypeId, JobId, Time};
use crate::problem::Problem;

/// The longest that a job may be believed to run, s.
const ESTIMATE_S_MAX: f64 = 1e10;

/// The request of a lease.
fn without_end(request: Submission) -> Submission {
    let estimate_s = Estimate {
        value: ESTIMATE_S_MAX,
        provenance: Provenance::Oracle,
    };
    Submission {
        estimate_s,
        ..request
    }
}

impl Cluster {
    /// Adds a pending job at the present time, under a number that the cluster gives it.
    ///
    /// # Errors
    /// A request that can never be met: no GPUs, more than the cluster or the quota holds, an estimate that is no
    /// positive number, an unknown tenant or class.
    pub fn submit(&mut self, request: Submission) -> Result<JobId, Problem> {
        let demand = self.demand_of(&request)?;
        let external = ExternalId::own(self.jobs.num_numbered);
        self.jobs.num_numbered += 1;
        let id = self.push_row(external, request, demand);
        self.enqueue(id);
        Ok(id)
    }

    /// Adds a lease: a pending job that runs, once it is started, until its holder ends it ([`Cluster::finish`]). No pass takes
    /// its GPUs, and it is believed to go on for ever.
    ///
    /// # Errors
    /// As [`Cluster::submit`].
    pub fn submit_lease(&mut self, request: Submission) -> Result<JobId, Problem> {
        let id = self.submit(without_end(request))?;
        self.jobs.rows[id.index()].is_lease = true;
        Ok(id)
    }

    /// From now on no pass takes the GPUs of a job.
    pub fn spare(&mut self, id: JobId) {
        self.jobs.rows[id.index()].is_lease = true;
    }

    /// As [`Cluster::admit`], a lease ([`Cluster::submit_lease`]), whatever its record believes of its run time.
    ///
    /// # Errors
    /// As [`Cluster::admit`].
    pub fn admit_lease(&mut self, record: &JobRecord) -> Result<JobId, Problem> {
        let record = JobRecord {
            request: without_end(record.request),
            ..record.clone()
        };
        let id = self.admit(&record)?;
        self.jobs.rows[id.index()].is_lease = true;
        Ok(id)
    }

    /// Adds a pending job at the present time, under its name outside.
    ///
    /// # Errors
    /// As [`Cluster::submit`]; or a name that a job has which waits or runs, or that the cluster itself could give.
    pub fn submit_as(&mut self, external: ExternalId, request: Submission) -> Result<JobId, Problem> {
        self.check_name(external)?;
        let demand = self.demand_of(&request)?;
        let id = self.push_row(external, request, demand);
        self.jobs.names.insert(external, id);
        self.enqueue(id);
        Ok(id)
    }

    /// The job of this name that waits or runs.
    #[must_use]
    pub fn find(&self, external: ExternalId) -> Option<JobId> {
        match external.own_number() {
            None => self.jobs.names.get(&external).copied(),
            Some(_) => {
                let is_it = |job: &Job| job.external == external && job.state != JobState::Finished;
                Some(JobId(self.jobs.rows.iter().position(is_it)? as u32))
            }
        }
    }

    /// Whether a new job can have this name.
    pub(in crate::cluster) fn check_name(&self, external: ExternalId) -> Result<(), Problem> {
        let taken = self.jobs.names.contains_key(&external);
        Problem::refuse_if(
            taken || external.own_number().is_some(),
            "job",
            external,
            "a name that no job has which waits or runs, and not #NUMBER",
            "a job that came back is the same job: report its end first",
        )
    }

    /// The row of a new job that neither waits nor runs yet.
    pub(in crate::cluster) fn push_row(
        &mut self,
        external: ExternalId,
        request: Submission,
        demand: Demand,
    ) -> JobId {
        let (types, shape) = (demand.types, demand.shape);
        let id = JobId(self.jobs.rows.len() as u32);
        let costs_s = self.costs_s(request.class, request.num_gpus);
        if self.facts.costs_by_gang {
            self.jobs.restart_cost_s_most = self.jobs.restart_cost_s_most.max(costs_s.1);
        }
        self.jobs.rows.push(Job {
            external,
            submit: self.now,
            request,
            types,
            shape,
            costs_s,
            granted: shape,
            num_held: 0,
            gpu_type: GpuTypeId(0),
            is_sharing: false,
            is_forked: false,
            is_lease: false,
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
    pub fn demand_of(&mut self, request: &Submission) -> Result<Demand, Problem> {
        request.resources.validate("job.resources")?;
        request.resources.tasks.validate_gang("job", request.num_gpus)?;
        Problem::refuse_if(
            !self.jobs.allowed.knows(request.resources.nodes),
            "job.resources.nodes",
            request.resources.nodes.0,
            "0 or the number of a set of nodes of this cluster",
            "sets have no number before they are told (Cluster::allow)",
        )?;
        let Some(shape) = self.number_shape(Shape::of(&request.resources)) else {
            return Err(Problem::new(
                "job.resources",
                format!("{:?}", request.resources),
                "at most 65,536 different requests for CPU, memory and fractions",
                "round the requests",
            ));
        };
        Ok(Demand {
            tenant: request.tenant,
            num_gpus: request.num_gpus,
            types: self.validate_request(request, shape)?,
            shape,
        })
    }

    /// The types on which the request can run.
    fn validate_request(&self, request: &Submission, shape: ShapeId) -> Result<u64, Problem> {
        let bad = |key: &str, value: String, allowed: String, hint: &str| {
            Err(Problem::new(format!("job.{key}"), value, allowed, hint))
        };
        let Some(tenant) = self.jobs.tenants.get(request.tenant.index()) else {
            let allowed = format!("0 to {}", self.jobs.tenants.len() - 1);
            return bad(
                "tenant",
                request.tenant.0.to_string(),
                allowed,
                "declare the tenant in the cluster",
            );
        };
        let Some(types) = self.facts.class_types.get(request.class.index()) else {
            let allowed = format!("0 to {}", self.facts.classes.len() - 1);
            return bad(
                "class",
                request.class.0.to_string(),
                allowed,
                "declare the model class",
            );
        };
        let most = self
            .types_in(*types)
            .map(|kind| self.jobs.shape_gpus_max[usize::from(shape.0)][kind.index()])
            .max()
            .unwrap_or(0);
        let most = if self.facts.borrowing {
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
        let tasks = request.resources.tasks;
        let elastic = self.facts.classes[request.class.index()].elastic;
        if elastic.is_some() && !tasks.is_any() {
            return bad(
                "resources.tasks",
                format!("{tasks:?}"),
                "none: the class is elastic".into(),
                "a job that may have other numbers of GPUs is cut as one likes",
            );
        }
        if elastic.is_some_and(|elastic| !elastic.can_hold(request.num_gpus)) {
            return bad(
                "num_gpus",
                request.num_gpus.to_string(),
                "a number of GPUs over which the class can share out its batch, at most its gpus_max".into(),
                "see elastic.profile of the class",
            );
        }
        let estimate_s = request.estimate_s.value;
        if !(estimate_s > 0.0 && estimate_s <= ESTIMATE_S_MAX) {
            return bad(
                "estimate_s",
                estimate_s.to_string(),
                "above 0 and at most 1e10".into(),
                "in seconds",
            );
        }
        let memory_mib = units(request.resources.gpu_memory_gib, 1024.0);
        let fits = |kind: &GpuTypeId| {
            self.jobs.shape_gpus_max[usize::from(shape.0)][kind.index()] >= request.num_gpus
                && memory_mib <= self.facts.of_types[kind.index()].memory_mib
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
        let Some(types) = self.facts.class_types.get(class.index()) else {
            return 0;
        };
        self.types_in(*types)
            .filter(|kind| memory_mib <= self.facts.of_types[kind.index()].memory_mib)
            .map(|kind| self.jobs.shape_gpus_max[usize::from(shape.0)][kind.index()])
            .max()
            .unwrap_or(0)
    }

    /// Number of a shape, for [`Cluster::start_with`]; its largest gangs are counted when it is first seen. None if there are
    /// more than 65,536 shapes.
    pub fn number_shape(&mut self, shape: Shape) -> Option<ShapeId> {
        let id = self.jobs.shapes.number(shape)?;
        while self.jobs.shape_gpus_max.len() <= usize::from(id.0) {
            let shape = self
                .jobs
                .shapes
                .get(ShapeId(self.jobs.shape_gpus_max.len() as u16));
            let mut most = vec![0_u32; self.num_types()];
            for (kind, most) in most.iter_mut().enumerate() {
                *most = self.gang_max(GpuTypeId(kind as u8), shape, |_| true);
            }
            self.jobs.shape_gpus_max.push(most);
            self.know_tasks(shape.tasks);
        }
        Some(id)
    }
}
