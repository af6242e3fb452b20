//! A reservation: GPUs held back for a job that does not fit yet, as in EASY backfill.
//!
//! # Source
//! EASY: at the *shadow time* enough running jobs are believed to have ended for the reserved gang; what is free then
//! beyond the gang is *extra*. Another job may start if it is believed to end before the shadow time, or if it takes
//! only extra GPUs. The count is of GPUs of one type, not of nodes, so a fragmented cluster may still make the gang
//! loose, never late by the estimates. For a gang that is cut into tasks nodes are counted: what is extra are so many GPUs as may
//! be taken anywhere while all of its tasks find room.

use crate::cluster::decision::HeldBack;
use crate::cluster::{Cluster, Demand, PlacementFacts, Shape, Slice, TaskRoom};
use crate::ids::{GpuTypeId, JobId, TenantId, Time};

/// GPUs held back for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reservation {
    /// The job.
    pub job: JobId,
    /// The type on which it will run.
    pub gpu_type: GpuTypeId,
    /// When it is believed to fit.
    pub shadow: Time,
    /// GPUs of the type that others may take without delaying it.
    pub extra: u32,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Quota that its tenant's other jobs may take without delaying it; without limit where borrowing is allowed.
    pub room: u32,
}

impl Reservation {
    /// The earliest believed fit of a job over its types; none if no type holds the gang.
    #[must_use]
    pub fn earliest(cluster: &Cluster, job: JobId) -> Option<Reservation> {
        let mut ends = Ends::default();
        Reservation::earliest_by(cluster, job, |kind, demand| ends.earliest(cluster, kind, demand))
    }

    /// As [`Reservation::earliest`], with what is known of each type's earliest fit.
    pub(super) fn earliest_by(
        cluster: &Cluster,
        job: JobId,
        mut earliest_fit: impl FnMut(GpuTypeId, Demand) -> Option<(Time, u32)>,
    ) -> Option<Reservation> {
        let demand = cluster.demand(job);
        let mut best: Option<Reservation> = None;
        for kind in cluster.types_in(demand.types) {
            if let Some(fit) = earliest_fit(kind, demand)
                && best.is_none_or(|other| fit.0 < other.shadow)
            {
                best = Some(Reservation::on(cluster, job, kind, fit));
            }
        }
        best
    }

    /// A reservation on a type, where the gang is believed to fit at a time and so many GPUs to be free then.
    pub(super) fn on(
        cluster: &Cluster,
        job: JobId,
        kind: GpuTypeId,
        (shadow, free): (Time, u32),
    ) -> Reservation {
        let demand = cluster.demand(job);
        Reservation {
            job,
            gpu_type: kind,
            shadow,
            extra: free - demand.num_gpus,
            tenant: demand.tenant,
            room: cluster.quota_left(demand.tenant).saturating_sub(demand.num_gpus),
        }
    }

    /// Whether a start on `kind` that is believed to end at `end` leaves the reserved job its GPUs and its quota in time.
    #[must_use]
    pub fn allows(&self, demand: &Demand, kind: GpuTypeId, end: Time) -> bool {
        let gpus = kind != self.gpu_type || demand.num_gpus <= self.extra;
        let quota = demand.tenant != self.tenant || demand.num_gpus <= self.room;
        end <= self.shadow || (gpus && quota)
    }

    /// Books a start that [`Reservation::allows`] let through.
    pub fn book(&mut self, demand: &Demand, kind: GpuTypeId, end: Time) {
        if end <= self.shadow {
            return;
        }
        if kind == self.gpu_type {
            self.extra = self.extra.saturating_sub(demand.num_gpus);
        }
        if demand.tenant == self.tenant {
            self.room = self.room.saturating_sub(demand.num_gpus);
        }
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

/// Facts of the placement of a start; none if it would delay the reserved job.
pub(super) fn facts_unless_delaying(
    cluster: &Cluster,
    reservation: Option<&Reservation>,
    job: JobId,
    slices: &[Slice],
    granted: Shape,
) -> Option<PlacementFacts> {
    let facts = cluster.facts_of(job, slices, granted);
    let allowed = reservation.is_none_or(|held| {
        let end = believed_end(cluster, job, facts.rate);
        let demand = Demand {
            num_gpus: facts.num_gpus,
            ..cluster.demand(job)
        };
        held.allows(&demand, facts.gpu_type, end)
    });
    allowed.then_some(facts)
}

/// How many GPUs of each type are free after each believed end; worked out only as far as it is asked for, and once for
/// each state of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    types: Vec<EndsOfType>,
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

    /// When a gang is believed to fit on a type, and how many GPUs are free then; of a gang of tasks its own and those that others
    /// may take.
    pub(crate) fn earliest(
        &mut self,
        cluster: &Cluster,
        kind: GpuTypeId,
        demand: Demand,
    ) -> Option<(Time, u32)> {
        let shape = cluster.shape(demand.shape);
        if shape.tasks.is_any() {
            return self.earliest_fit(cluster, kind, demand.num_gpus);
        }
        earliest_fit_of_tasks(cluster, kind, (shape, demand.num_gpus))
    }

    /// When `num_gpus` of a type are believed to be free, and how many are free then.
    fn earliest_fit(&mut self, cluster: &Cluster, kind: GpuTypeId, num_gpus: u32) -> Option<(Time, u32)> {
        let free = cluster.num_free_of(kind);
        if free >= num_gpus {
            return Some((cluster.now(), free));
        }
        if self.types.len() < cluster.num_types() {
            self.types.resize_with(cluster.num_types(), EndsOfType::default);
        }
        let ends = &mut self.types[kind.index()];
        if ends.rows.last().is_none_or(|(_, free)| *free < num_gpus) {
            ends.extend(cluster, kind, num_gpus);
        }
        let at = ends.rows.partition_point(|(_, free)| *free < num_gpus);
        ends.rows.get(at).copied()
    }
}

/// A job that has outlived its estimate is believed to end in a second.
fn soon(cluster: &Cluster) -> Time {
    cluster.now() + Time::from_secs_f64(1.0)
}

/// When a gang of tasks is believed to fit on a type; its GPUs, and those that others may take beside it.
fn earliest_fit_of_tasks(cluster: &Cluster, kind: GpuTypeId, gang: (Shape, u32)) -> Option<(Time, u32)> {
    let mut room = TaskRoom::now(cluster, kind, gang);
    if room.fits() {
        return Some((cluster.now(), gang.1 + room.num_spare(cluster)));
    }
    let (soon, mut running) = (soon(cluster), cluster.running_of(kind).iter().peekable());
    while let Some((end, job)) = running.next() {
        cluster
            .slices_freed_by(*job)
            .for_each(|slice| room.give(cluster, *job, slice));
        // Jobs that end together free their GPUs together.
        let end = (*end).max(soon);
        let is_last = running.peek().is_none_or(|(next, _)| *next > end);
        if is_last && room.fits() {
            return Some((end, gang.1 + room.num_spare(cluster)));
        }
    }
    None
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
            match self.rows.last_mut() {
                Some(last) if last.0 == end_at => {
                    free += cluster.gpus_freed_by(*job);
                    last.1 = free;
                }
                Some(_) if free >= num_gpus => return,
                _ => {
                    free += cluster.gpus_freed_by(*job);
                    self.rows.push((end_at, free));
                }
            }
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
