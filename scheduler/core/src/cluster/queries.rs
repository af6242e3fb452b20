//! Questions that a scheduler may ask of its cluster.

use super::decision::Decision;
use super::jobs::attained_service::RunningService;
use super::tables::{Job, Node, Rack, Tenant};
use super::{
    Capabilities, Cluster, Demand, Kept, Order, OrderedSet, Queue, ShapeId, SharedGpu, Sharing, bits,
};
use crate::ActionKind;
use crate::cluster_spec::{ClusterSpec, ModelClass};
use crate::ids::{ClassId, GpuTypeId, JobId, TenantId, Time};

impl Cluster {
    /// A count that is equal at two times only where a gang of whole GPUs that is not elastic would be placed alike on these
    /// types, and run as fast there, with its links to itself. None where that depends on more: on which jobs share a GPU, or on
    /// other types.
    pub(crate) fn num_place_changes(&self, types: u64) -> Option<u64> {
        let is_more = self.facts.capabilities.sharing != Sharing::Off
            || self.facts.capabilities.can(ActionKind::MixTypes);
        (!is_more).then(|| self.places.changes.among(self.types_in(types)))
    }

    /// What a job asks for.
    #[must_use]
    #[inline]
    pub fn demand(&self, id: JobId) -> Demand {
        let request = &self.jobs.rows[id.index()].request;
        Demand {
            tenant: request.tenant,
            num_gpus: request.num_gpus,
            types: self.jobs.rows[id.index()].types,
            shape: self.jobs.rows[id.index()].shape,
        }
    }

    /// Whether tenants may use more than their quotas.
    #[must_use]
    #[inline]
    pub fn borrowing(&self) -> bool {
        self.facts.borrowing
    }

    /// Whether the tenant's quota leaves room for the demand; always where borrowing is allowed.
    #[must_use]
    #[inline]
    pub fn has_room(&self, demand: Demand) -> bool {
        let tenant = &self.jobs.tenants[demand.tenant.index()];
        self.facts.borrowing || {
            let milli = u64::from(demand.num_gpus) * u64::from(self.shape(demand.shape).gpu_milli);
            tenant.used_milli + milli <= u64::from(tenant.quota_gpus) * 1000
        }
    }

    /// GPUs that the tenant may still take by its quota; without limit where borrowing is allowed.
    #[must_use]
    pub fn quota_left(&self, tenant: TenantId) -> u32 {
        if self.facts.borrowing {
            return u32::MAX;
        }
        let tenant = &self.jobs.tenants[tenant.index()];
        let quota_milli = u64::from(tenant.quota_gpus) * 1000;
        (quota_milli.saturating_sub(tenant.used_milli) / 1000) as u32
    }

    /// The types in a mask, lowest first.
    #[inline]
    pub fn types_in(&self, types: u64) -> impl Iterator<Item = GpuTypeId> + use<> {
        bits(types).map(|kind| GpuTypeId(kind as u8))
    }

    /// The types of a demand on which a gang of this size is free now, as a mask.
    #[must_use]
    #[inline]
    pub fn fitting_types(&self, demand: Demand) -> u64 {
        // Most demands on a busy cluster fit nowhere, which one number tells.
        if demand.shape == ShapeId::PLAIN && demand.num_gpus > self.places.free.num_free_max {
            return 0;
        }
        self.fitting_types_one_by_one(demand)
    }

    fn fitting_types_one_by_one(&self, demand: Demand) -> u64 {
        if !self.has_room(demand) {
            return 0;
        }
        let (mut rest, mut fitting) = (demand.types, 0);
        while rest != 0 {
            let kind = rest.trailing_zeros();
            rest &= rest - 1;
            fitting |= u64::from(self.fits_on(GpuTypeId(kind as u8), demand)) << kind;
        }
        fitting
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.jobs.pending
    }

    /// The description that the cluster was made from.
    #[must_use]
    pub fn spec(&self) -> &ClusterSpec {
        &self.facts.spec
    }
    /// The model classes.
    #[must_use]
    pub fn classes(&self) -> &[ModelClass] {
        &self.facts.classes
    }
    /// Present time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }
    /// The job table.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs.rows
    }
    /// One job.
    #[must_use]
    #[inline]
    pub fn job(&self, id: JobId) -> &Job {
        &self.jobs.rows[id.index()]
    }
    /// The node table.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.places.nodes
    }
    /// The rack table.
    #[must_use]
    pub fn racks(&self) -> &[Rack] {
        &self.places.racks
    }
    /// The shared GPUs by their row in the GPU table, lowest first.
    pub fn shared_gpus(&self) -> impl Iterator<Item = (u32, &SharedGpu)> {
        self.places.shared.iter()
    }
    /// The job that has each GPU to itself, node by node; none for free and for shared ones.
    #[must_use]
    pub fn gpus(&self) -> &[Option<JobId>] {
        &self.places.gpus
    }
    /// The tenant table.
    #[must_use]
    pub fn tenants(&self) -> &[Tenant] {
        &self.jobs.tenants
    }
    /// One model class.
    #[must_use]
    pub fn class(&self, id: ClassId) -> &ModelClass {
        &self.facts.classes[id.index()]
    }
    /// The best speed of a class on any type.
    #[must_use]
    #[inline]
    pub fn best_speed_of(&self, id: ClassId) -> f64 {
        self.facts.class_speed_max[id.index()]
    }

    /// Speed of a class on a type over its best on any type.
    #[must_use]
    #[inline]
    pub fn speed_ratio(&self, id: ClassId, kind: GpuTypeId) -> f64 {
        self.class(id).speed[kind.index()] / self.best_speed_of(id)
    }

    /// The best speed of any class on a type.
    #[must_use]
    #[inline]
    pub(crate) fn best_speed_on(&self, kind: GpuTypeId) -> f64 {
        self.facts.type_speed_max[kind.index()]
    }
    /// One tenant.
    #[must_use]
    pub fn tenant(&self, id: TenantId) -> &Tenant {
        &self.jobs.tenants[id.index()]
    }
    /// What the cluster can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.facts.capabilities
    }
    /// Number of GPU types.
    #[must_use]
    pub fn num_types(&self) -> usize {
        self.places.free.num_gpus.len()
    }
    /// GPUs of a type.
    #[must_use]
    pub fn num_gpus_of(&self, kind: GpuTypeId) -> u32 {
        self.places.free.num_gpus[kind.index()]
    }
    /// Free GPUs of a type.
    #[must_use]
    pub fn num_free_of(&self, kind: GpuTypeId) -> u32 {
        self.places.free.num_free[kind.index()]
    }
    /// GPUs in all.
    #[must_use]
    pub fn num_gpus(&self) -> u32 {
        self.places.gpus.len() as u32
    }
    /// Free GPUs in all.
    #[must_use]
    pub fn num_free(&self) -> u32 {
        self.places.free.num_free.iter().sum()
    }
    /// Most free GPUs in one node of a type.
    #[must_use]
    pub(crate) fn largest_free_of(&self, kind: GpuTypeId) -> u32 {
        self.places.free.largest_free(kind)
    }
    /// Most GPUs in one node of a type.
    #[must_use]
    pub fn node_gpus_max_of(&self, kind: GpuTypeId) -> u32 {
        self.places.free.node_gpus_max[kind.index()]
    }
    /// Nodes of a type's largest size without any job.
    #[must_use]
    pub(crate) fn num_empty_nodes_of(&self, kind: GpuTypeId) -> u32 {
        self.places.free.num_nodes_with(kind, self.node_gpus_max_of(kind))
    }
    /// Least believed GPU time of a pending job, GPU·s; zero without one.
    #[must_use]
    pub(crate) fn smallest_pending_gpu_s(&self) -> f64 {
        let firsts = self.jobs.pending.firsts(Order::GpuTime);
        let least = firsts.first().map_or(0, |first| first.key);
        // Rounding may put a product before a slightly smaller one, but not before one that is smaller by three roundings.
        let bound = least.saturating_add(least >> 50).saturating_add(1);
        let near = firsts.iter().take_while(|first| first.key <= bound);
        let gpu_s = near.filter_map(|first| {
            let group = self.jobs.pending.group(first.row);
            let (rest, _) = group.rows(Kept::Remaining).first()?.row();
            Some(Time(rest).as_secs_f64() * f64::from(group.num_gpus))
        });
        gpu_s.min_by(f64::total_cmp).unwrap_or(0.0)
    }
    /// Number of pending jobs.
    #[must_use]
    pub fn num_pending(&self) -> usize {
        self.jobs.pending.len()
    }
    /// Whether the run time of some pending job is predicted.
    #[must_use]
    pub fn has_predicted(&self) -> bool {
        self.jobs.num_predicted > 0
    }
    /// GPUs that the pending jobs ask for.
    #[must_use]
    pub fn num_pending_gpus(&self) -> u64 {
        self.jobs.pending.num_gpus()
    }
    /// Believed GPU time of all pending jobs, GPU·s; each GPU of a gang counts as a whole one.
    #[must_use]
    pub(crate) fn pending_gpu_s(&self) -> f64 {
        self.jobs.pending.gpu_time_gpu_s()
    }
    /// Number of running jobs.
    #[must_use]
    pub fn num_running(&self) -> usize {
        self.jobs.num_running
    }
    /// Running jobs of a type by believed end, earliest first.
    #[must_use]
    pub fn running_of(&self, kind: GpuTypeId) -> &OrderedSet<(Time, JobId)> {
        &self.jobs.running[kind.index()]
    }
    /// All pending jobs, demand by demand.
    pub fn pending(&self) -> impl Iterator<Item = JobId> {
        self.jobs
            .pending
            .groups()
            .flat_map(|(_, group)| group.rows(Kept::Arrival).iter().map(|waiting| waiting.row().1))
    }
    /// All running jobs, type by type, by believed end.
    pub fn running(&self) -> impl Iterator<Item = JobId> {
        self.jobs
            .running
            .iter()
            .flat_map(|of_type| of_type.iter().map(|(_, id)| *id))
    }
    /// Decisions since the last [`Cluster::take_decisions`].
    #[must_use]
    pub fn num_decisions(&self) -> usize {
        self.jobs.decisions.len()
    }
    /// The same decisions themselves, in order, for a caller that reads them and does not take them.
    #[must_use]
    pub fn decisions(&self) -> &[Decision] {
        &self.jobs.decisions
    }
    /// All jobs that wait or run, by arrival.
    #[must_use]
    pub fn active(&self) -> Vec<JobId> {
        let mut active: Vec<JobId> = self.pending().chain(self.running()).collect();
        active.sort_unstable();
        active
    }
    /// What the running jobs of a type have received, in no particular order.
    pub(crate) fn attained_service_of(&self, kind: GpuTypeId) -> &[RunningService] {
        self.jobs.attained_service.of(kind)
    }
    /// Whether jobs may come to share GPUs with each other, so that a start can change others than those it names.
    pub(crate) fn may_share(&self) -> bool {
        self.facts.capabilities.sharing != Sharing::Off || !self.places.shared.is_empty()
    }
    /// What was decided since this was last asked, in order.
    pub fn take_decisions(&mut self, into: &mut Vec<Decision>) {
        into.append(&mut self.jobs.decisions);
    }
}
