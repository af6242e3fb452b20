//! A reservation: nodes held for a job that does not fit yet, as in EASY backfill.
//!
//! # Source
//! EASY (Lifka, JSSPP'95): at the *shadow time* enough running jobs are believed to have ended for the reserved gang. As Slurm's
//! `sched/backfill` does, it is then given the nodes on which it would start. Another job may start if it is believed to end before
//! the shadow time, or if it leaves the gang what it needs of each of those nodes. So a gang is never late by the estimates, and of
//! nodes that it does not need all that is free may be taken. A job whose own place would delay the gang goes where it does not.

use crate::cluster::decision::HeldBack;
use crate::cluster::{Cluster, Demand, HeldNodes, PlacementFacts, Shape, Slice, TaskRoom, Template};
use crate::ids::{GpuTypeId, JobId, TenantId, Time};

/// Nodes held for one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// The job.
    pub job: JobId,
    /// The type on which it will run.
    pub gpu_type: GpuTypeId,
    /// When it is believed to fit.
    pub shadow: Time,
    /// GPUs of the type that are free then beside it, on whatever nodes.
    pub extra: u32,
    /// The nodes on which it would start then, and what others may take of them beyond that time.
    pub nodes: HeldNodes,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Quota that its tenant's other jobs may take without delaying it; without limit where borrowing is allowed.
    pub room: u32,
}

/// A start that is looked for behind a reservation: of a job, with so many GPUs, each with what the shape says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) job: JobId,
    pub(super) shape: Shape,
    pub(super) num_gpus: u32,
}

impl Reservation {
    /// The earliest believed fit of a job over its types; none if no type holds the gang.
    #[must_use]
    pub fn earliest(cluster: &Cluster, job: JobId) -> Option<Reservation> {
        Ends::default().reserve(cluster, job, None)
    }

    /// Whether a start of a job on this placement leaves the reserved job its nodes and its quota in time; `granted` is what each of
    /// its GPUs comes with.
    #[must_use]
    pub fn allows(
        &self,
        cluster: &Cluster,
        job: JobId,
        (placement, granted): (&[Slice], Shape),
        facts: &PlacementFacts,
    ) -> bool {
        believed_end(cluster, job, facts.rate) <= self.shadow
            || (self.leaves_quota(cluster.job(job).request.tenant, facts.num_gpus)
                && self.nodes.allows(granted, placement))
    }

    /// Books a start that [`Reservation::allows`] let through.
    pub fn book(
        &mut self,
        cluster: &Cluster,
        job: JobId,
        (placement, granted): (&[Slice], Shape),
        facts: &PlacementFacts,
    ) {
        if believed_end(cluster, job, facts.rate) <= self.shadow {
            return;
        }
        if facts.gpu_type == self.gpu_type {
            self.extra = self.extra.saturating_sub(facts.num_gpus);
        }
        self.nodes.book(granted, placement);
        if cluster.job(job).request.tenant == self.tenant {
            self.room = self.room.saturating_sub(facts.num_gpus);
        }
    }

    /// The placement of a job on the fastest type on which it may start now, and leaves the reserved job its nodes; none if there is
    /// none.
    #[must_use]
    pub fn place(&self, cluster: &Cluster, job: JobId, slices: &mut Vec<Slice>) -> Option<PlacementFacts> {
        let beside = Beside::of(cluster, self);
        let class = cluster.job(job).request.class;
        let types = beside.open_types(cluster, job, cluster.fitting_types(cluster.demand(job)));
        let kind = cluster.preferred_type(Template::Fastest, class, types)?;
        slices.clear();
        let demand = cluster.demand(job);
        let wanted = Wanted {
            job,
            shape: cluster.shape(demand.shape),
            num_gpus: demand.num_gpus,
        };
        let place = (Template::Fastest, kind);
        place_undelaying(cluster, Some(self), place, wanted, |_, _| false, slices)
    }

    fn leaves_quota(&self, tenant: TenantId, num_gpus: u32) -> bool {
        tenant != self.tenant || num_gpus <= self.room
    }
}

/// A reservation as it stands in one look at the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<'a> {
    pub(super) held: &'a Reservation,
    /// Free GPUs of its type that others may take whenever they end.
    num_free: u32,
}

impl Beside<'_> {
    pub(super) fn of<'a>(cluster: &Cluster, held: &'a Reservation) -> Beside<'a> {
        Beside {
            held,
            num_free: cluster.num_free_beside(&held.nodes, held.gpu_type),
        }
    }

    /// Whether a job of a demand that fits on a type may start there whenever it ends.
    pub(super) fn is_open(&self, cluster: &Cluster, demand: &Demand, kind: GpuTypeId) -> bool {
        let held = self.held;
        held.leaves_quota(demand.tenant, demand.num_gpus)
            && (kind != held.gpu_type || cluster.fits_beside(&held.nodes, kind, demand, self.num_free))
    }

    /// The types among `types` on which the job would not delay the reserved one at full speed. A type that is refused then
    /// is refused at any placement, and must not hide one that would do.
    pub(super) fn open_types(&self, cluster: &Cluster, job: JobId, types: u64) -> u64 {
        let demand = cluster.demand(job);
        let speed = &cluster.class(cluster.job(job).request.class).speed;
        let open = cluster.types_in(types).filter(|kind| {
            believed_end(cluster, job, speed[kind.index()]) <= self.held.shadow
                || self.is_open(cluster, &demand, *kind)
        });
        open.fold(0, |mask, kind| mask | 1 << kind.0)
    }
}

impl From<&Reservation> for HeldBack {
    fn from(held: &Reservation) -> HeldBack {
        HeldBack {
            gpu_type: held.gpu_type,
            start: held.shadow,
            num_gpus_extra: held.extra,
        }
    }
}

/// When the job is believed to end if it starts now at this rate.
#[must_use]
pub fn believed_end(cluster: &Cluster, job: JobId, rate: f64) -> Time {
    let row = cluster.job(job);
    let cost_s = cluster.resume_cost_s(job);
    cluster.now() + Time::from_secs_f64(cost_s + row.remaining_s_at(cluster.now()) / rate)
}

/// Writes a placement that does not delay the reserved job and is not known yet: the one without a reservation if that will do, else
/// one beside what is held; its facts. None, and nothing written, if there is none.
pub(super) fn place_undelaying(
    cluster: &Cluster,
    reservation: Option<&Reservation>,
    (template, kind): (Template, GpuTypeId),
    Wanted { job, shape, num_gpus }: Wanted,
    is_known: impl Fn(&[Slice], &[Slice]) -> bool,
    out: &mut Vec<Slice>,
) -> Option<PlacementFacts> {
    let start = out.len();
    let facts_if_allowed = |out: &mut Vec<Slice>| {
        let (before, placement) = out.split_at(start);
        let new = !is_known(before, placement);
        let facts = new.then(|| cluster.facts_of(job, placement, shape));
        let facts = facts.filter(|facts| {
            reservation.is_none_or(|held| held.allows(cluster, job, (placement, shape), facts))
        });
        if facts.is_none() {
            out.truncate(start);
        }
        facts
    };
    if !cluster.place_gang(template, kind, shape, num_gpus, out) {
        return None;
    }
    facts_if_allowed(out).or_else(|| {
        let held = reservation.filter(|held| held.gpu_type == kind)?;
        let gang = (kind, shape, num_gpus);
        let is_placed = cluster.place_beside(&held.nodes, template, gang, out);
        is_placed.then(|| facts_if_allowed(out)).flatten()
    })
}

/// How many GPUs of each type are free after each believed end; worked out only as far as it is asked for, and once for
/// each state of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    types: Vec<EndsOfType>,
    room: TaskRoom,
    /// Memory of a reservation that is over.
    nodes: HeldNodes,
}

#[derive(Clone, Debug, Default)]
struct EndsOfType {
    /// (end, free GPUs from then on), ascending in both.
    rows: Vec<(Time, u32)>,
    /// The running job up to which the rows go.
    last: Option<(Time, JobId)>,
}

impl Ends {
    /// The cluster has changed.
    pub(crate) fn forget(&mut self) {
        for ends in &mut self.types {
            ends.rows.clear();
            ends.last = None;
        }
    }

    /// Holds nodes for a job, on the type where it is believed to fit first or on one that is given.
    pub(crate) fn reserve(
        &mut self,
        cluster: &Cluster,
        job: JobId,
        kind: Option<GpuTypeId>,
    ) -> Option<Reservation> {
        let demand = cluster.demand(job);
        let (shadow, kind) = match kind {
            Some(kind) => (self.earliest(cluster, kind, demand)?, kind),
            None => self.earliest_of_all(cluster, job)?,
        };
        let (shape, num_gpus) = (cluster.shape(demand.shape), demand.num_gpus);
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.clear();
        // Where a gang is not believed to find its cores and memory, its GPUs are held.
        let of_gpus = Shape {
            tasks: shape.tasks,
            ..Shape::PLAIN
        };
        let fit = self.fit_of_nodes(cluster, kind, (shape, num_gpus));
        let fit = fit.or_else(|| self.fit_of_nodes(cluster, kind, (of_gpus, num_gpus)));
        let extra = fit.map_or(0, |_| self.room.hold(cluster, &mut nodes));
        Some(Reservation {
            job,
            gpu_type: kind,
            shadow: fit.unwrap_or(shadow),
            extra,
            nodes,
            tenant: demand.tenant,
            room: cluster.quota_left(demand.tenant).saturating_sub(num_gpus),
        })
    }

    /// A reservation is over.
    pub(crate) fn recycle(&mut self, held: Reservation) {
        self.nodes = held.nodes;
    }

    /// The earliest believed fit of a job over its types; none if no type holds the gang.
    pub(crate) fn earliest_of_all(&mut self, cluster: &Cluster, job: JobId) -> Option<(Time, GpuTypeId)> {
        let demand = cluster.demand(job);
        let mut best: Option<(Time, GpuTypeId)> = None;
        for kind in cluster.types_in(demand.types) {
            if let Some(shadow) = self.earliest(cluster, kind, demand)
                && best.is_none_or(|(other, _)| shadow < other)
            {
                best = Some((shadow, kind));
            }
        }
        best
    }

    /// When a gang is believed to fit on a type. Of what comes with GPUs only tasks count here.
    pub(crate) fn earliest(&mut self, cluster: &Cluster, kind: GpuTypeId, demand: Demand) -> Option<Time> {
        let shape = cluster.shape(demand.shape);
        if shape.tasks.is_any() && !cluster.capabilities().consolidated {
            return self.earliest_count(cluster, kind, demand.num_gpus);
        }
        self.fit_of_nodes(cluster, kind, (shape, demand.num_gpus))
    }

    /// When `num_gpus` of a type are believed to be free.
    fn earliest_count(&mut self, cluster: &Cluster, kind: GpuTypeId, num_gpus: u32) -> Option<Time> {
        if cluster.num_free_of(kind) >= num_gpus {
            return Some(cluster.now());
        }
        if self.types.len() < cluster.num_types() {
            self.types.resize_with(cluster.num_types(), EndsOfType::default);
        }
        let ends = &mut self.types[kind.index()];
        if ends.rows.last().is_none_or(|(_, free)| *free < num_gpus) {
            ends.extend(cluster, kind, num_gpus);
        }
        let at = ends.rows.partition_point(|(_, free)| *free < num_gpus);
        ends.rows.get(at).map(|(end, _)| *end)
    }

    /// When nodes of a type are believed to hold a gang; leaves what they have free then.
    fn fit_of_nodes(&mut self, cluster: &Cluster, kind: GpuTypeId, gang: (Shape, u32)) -> Option<Time> {
        let room = &mut self.room;
        room.begin(cluster, kind, gang);
        if room.fits() {
            return Some(cluster.now());
        }
        let (soon, mut running) = (soon(cluster), cluster.running_of(kind).iter().peekable());
        while let Some((end, job)) = running.next() {
            room.end(cluster, *job);
            // Jobs that end together free their GPUs together.
            let end = (*end).max(soon);
            let is_last = running.peek().is_none_or(|(next, _)| *next > end);
            if is_last && room.fits() {
                return Some(end);
            }
        }
        None
    }
}

/// A job that has outlived its estimate is believed to end in a second.
fn soon(cluster: &Cluster) -> Time {
    cluster.now() + Time::from_secs_f64(1.0)
}

impl EndsOfType {
    fn extend(&mut self, cluster: &Cluster, kind: GpuTypeId, num_gpus: u32) {
        let soon = soon(cluster);
        let mut free = self
            .rows
            .last()
            .map_or(cluster.num_free_of(kind), |(_, free)| *free);
        for (end, job) in cluster.running_of(kind).iter_after(self.last) {
            let (known, end_at) = ((*end, *job), (*end).max(soon));
            // Jobs that end together free their GPUs together.
            let before = self.rows.pop_if(|last| last.0 == end_at);
            if before.is_none() && free >= num_gpus && !self.rows.is_empty() {
                return;
            }
            free += cluster.gpus_freed_by(*job);
            self.rows.push((end_at, free));
            self.last = Some(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::{Capabilities, Cluster, JobState, Submission};
    use crate::cluster_spec::{ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, Resources, TenantSpec};
    use crate::estimate::{Estimate, Provenance};
    use crate::heuristics::by_name;
    use crate::ids::{ClassId, JobId, TenantId};
    use crate::pass::Pass;

    /// One node of 4 GPUs of each of two types; two tenants with 4 GPUs each, no borrowing; the classes run on the first
    /// type only, on the second only, and on both, twice as fast on the second.
    fn two_types() -> Cluster {
        let mut spec = ClusterSpec::uniform(1, 4, 1);
        spec.gpu_types = ["old", "new"]
            .map(|name| GpuTypeSpec {
                name: name.into(),
                memory_gib: 16.0,
                mig: None,
            })
            .into();
        spec.node_groups[0].gpu_type = "old".into();
        let mut group = spec.node_groups[0].clone();
        group.gpu_type = "new".into();
        spec.node_groups.push(group);
        spec.tenants = ["a", "b"]
            .map(|name| TenantSpec {
                name: name.into(),
                quota_gpus: 4,
            })
            .into();
        spec.borrowing = false;
        let classes = [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]].map(|speed| ModelClass {
            name: format!("{speed:?}"),
            speed: speed.into(),
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        });
        Cluster::new(&spec, &classes, Capabilities::default()).unwrap()
    }

    fn submit(cluster: &mut Cluster, tenant: u16, class: u16, num_gpus: u32, run_s: f64) -> JobId {
        let request = Submission {
            tenant: TenantId(tenant),
            class: ClassId(class),
            num_gpus,
            estimate_s: Estimate {
                value: run_s,
                provenance: Provenance::Oracle,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).unwrap()
    }

    fn easy(cluster: &mut Cluster) {
        Pass::new()
            .run(cluster, by_name("easy").unwrap().as_mut())
            .unwrap();
        cluster.check();
    }

    #[test]
    fn a_backfilled_job_of_the_same_tenant_leaves_the_reserved_one_its_quota() {
        // Tenant b holds 3 old GPUs until 100 s; the 2 old GPUs of tenant a's head reserve 100 s and 2 of its 4 GPUs of
        // quota. Until 500 s, 3 new GPUs would take one of those; 2 do not.
        let mut cluster = two_types();
        submit(&mut cluster, 1, 0, 3, 100.0);
        submit(&mut cluster, 0, 0, 2, 50.0);
        let wide = submit(&mut cluster, 0, 1, 3, 500.0);
        let narrow = submit(&mut cluster, 0, 1, 2, 500.0);
        easy(&mut cluster);
        assert_eq!(cluster.job(wide).state, JobState::Pending);
        assert_eq!(cluster.job(narrow).state, JobState::Running);
    }

    #[test]
    fn a_type_that_the_reservation_closes_does_not_hide_one_that_is_open() {
        // The head reserves all 4 new GPUs. A long job that would be faster there starts on an old one.
        let mut cluster = two_types();
        submit(&mut cluster, 1, 1, 3, 100.0);
        submit(&mut cluster, 0, 1, 4, 50.0);
        let long = submit(&mut cluster, 1, 2, 1, 500.0);
        easy(&mut cluster);
        let placement = &cluster.job(long).placement;
        assert_eq!(placement[0].node.0, 0, "on the old node");
    }
}
