//! One cluster for both: training jobs, and services of language models on the same GPUs, by *leases*.
//!
//! A lease is a job without end: a row of the cluster with a placement, granted and taken back from outside. One replica of a
//! service is one lease, of GPUs of one node. The world knows nothing of requests and a service nothing of jobs; what they share
//! is the clock and the leases. At each instant jobs leave and come first, then replicas that have been taken back leave, then
//! services are asked how many replicas they want, then the scheduler decides about jobs with the GPUs that are left.
//!
//! # Rules (*ours*)
//! - Serving comes before training, an earlier service before a later one. Where no node has enough free GPUs, jobs yield, the
//!   least loss first ([`Cluster::make_room`](pleach_scheduler::Cluster::make_room)).
//! - A granted replica takes requests once its model is loaded. Replicas of the first instant are loaded already.
//! - A replica that is taken back takes no more requests and leaves when it has served what it had, or when its grace is over: then
//!   the rest goes back to the gateways. One that is wanted again before takes requests at once.
//!
//! # What is deliberately not here
//! Nodes that fail, jobs that share GPUs, a batch system's delays. They are refused.

mod leased;
mod service;
#[cfg(test)]
mod several_gpus_tests;
#[cfg(test)]
mod tests;

use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::cluster_spec::{LocalityFactors, ModelClass, TenantSpec};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{ClassId, Problem, TenantId, Time};
use pleach_workloads::{Seed, Workload};

use crate::availability::AvailabilityConfig;
use crate::error::Error;
use crate::metrics::JobOutcome;
use crate::simulate::SimConfig;
use crate::world::{Advance, Training, World};
use leased::Leased;

pub use service::{Grant, ServiceResult, ServiceSpec};

/// The tenant that leases are charged to.
const TENANT: &str = "serving";
/// What leases run.
const CLASS: &str = "serving";

/// What became of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct MixedResult {
    /// Jobs that have left, in order of submission.
    pub jobs: Vec<JobOutcome>,
    /// What training had and did.
    pub training: Training,
    /// GPUs that jobs held, from when on, at each change.
    pub training_gpus: Vec<(Time, u32)>,
    /// In the order given.
    pub services: Vec<ServiceResult>,
    /// GPU·s that were not held.
    pub idle_gpu_s: f64,
    /// Time played, s.
    pub span_s: f64,
    /// Passes in which there was something to decide about jobs.
    pub num_passes: u64,
}

/// Plays jobs and services on one cluster until a time, or until all jobs have left and all requests have come. Requests that are
/// under way then are served to their end by the replicas that there are.
///
/// # Errors
/// A workload, cluster or service out of range; what this file refuses; a policy that cannot decide; leases that leave no room for a
/// job for ever.
pub fn simulate_mixed(
    workload: &Workload,
    config: &SimConfig,
    policy: &mut dyn Policy,
    services: Vec<ServiceSpec<'_>>,
    until: Option<Time>,
) -> Result<MixedResult, Error> {
    workload.validate()?;
    check(workload, config, &services)?;
    let seed = Seed(config.seed);
    let tenant = TenantId(workload.cluster.tenants.len() as u16);
    let class = ClassId(workload.classes.len() as u16);
    let mut world = if services.is_empty() {
        config.world(workload, seed, seed)?
    } else {
        config.world(&with_leases(workload), seed, seed)?
    };
    world.set_tick(policy.needs().tick);
    let services = services.into_iter().map(|spec| Leased::new(spec, tenant, class));
    Mixed {
        services: services.collect::<Result<_, Problem>>()?,
        world,
        until,
        training_gpus: Vec::new(),
        num_passes: 0,
    }
    .run(policy)
}

/// The same with a class and a tenant for leases. The tenant has no quota: it borrows.
fn with_leases(workload: &Workload) -> Workload {
    let mut workload = workload.clone();
    workload.classes.push(ModelClass {
        name: CLASS.into(),
        speed: vec![1.0; workload.cluster.gpu_types.len()],
        locality: LocalityFactors::NONE,
        ..ModelClass::default()
    });
    workload.cluster.tenants.push(TenantSpec {
        name: TENANT.into(),
        quota_gpus: 0,
    });
    workload
}

fn check(workload: &Workload, config: &SimConfig, services: &[ServiceSpec<'_>]) -> Result<(), Problem> {
    if services.is_empty() {
        return Ok(());
    }
    let refuse = |key: &str, hint: &str| {
        let allowed = "none beside services of language models";
        Err(Problem::new(key, "given", allowed, hint))
    };
    if config.capacity != AvailabilityConfig::default() {
        return refuse("capacity", "Leases on nodes that fail are not modelled.");
    }
    if config.batch_system.is_some() {
        return refuse("batch_system", "Leave it out.");
    }
    if config.capabilities.sharing != Sharing::Off {
        return refuse("capabilities.sharing", "A replica has its GPU to itself.");
    }
    if !workload.cluster.borrowing {
        return refuse("cluster.borrowing = false", "Leases borrow what tenants leave.");
    }
    let groups = workload.cluster.node_groups.iter();
    let most = groups.map(|group| group.gpus_per_node).max().unwrap_or(0);
    for service in services {
        for (key, value) in [("load_s", service.load_s), ("grace_s", service.grace_s)] {
            Problem::refuse_if(
                !(0.0..=86_400.0).contains(&value),
                key,
                value,
                "0 to 86400",
                "Try 30.",
            )?;
        }
        Problem::refuse_if(
            !(1..=most).contains(&u32::from(service.replica_gpus)),
            "replica_gpus",
            service.replica_gpus,
            format_args!("1 to {most}, the GPUs of a node"),
            "A replica is on one node.",
        )?;
    }
    Ok(())
}

/// A run under way.
struct Mixed<'a> {
    world: World,
    services: Vec<Leased<'a>>,
    until: Option<Time>,
    training_gpus: Vec<(Time, u32)>,
    num_passes: u64,
}

impl Mixed<'_> {
    fn run(mut self, policy: &mut dyn Policy) -> Result<MixedResult, Error> {
        let mut pass = Pass::new();
        self.serve(true)?;
        while !self.is_over() {
            let wakes = self.services.iter().filter_map(Leased::next);
            self.world.wake_at(wakes.chain(self.until).min());
            if self.world.advance() == Advance::End {
                break;
            }
            if self
                .until
                .is_some_and(|until| self.world.cluster().now() >= until)
            {
                break;
            }
            self.serve(false)?;
            self.num_passes += u64::from(self.world.cluster().num_pending() > 0);
            pass.run(self.world.cluster_mut(), policy)?;
            self.world.carry_out();
            self.note();
        }
        self.end()
    }

    /// Writes down how many GPUs jobs hold, where that has changed.
    fn note(&mut self) {
        let gpus = self.world.training_gpus();
        if self
            .training_gpus
            .last()
            .is_none_or(|(_, before)| *before != gpus)
        {
            self.training_gpus.push((self.world.cluster().now(), gpus));
        }
    }

    fn is_over(&self) -> bool {
        let is_through = |service: &Leased<'_>| service.is_through();
        self.until.is_none() && self.world.is_over() && self.services.iter().all(is_through)
    }

    /// Replicas leave and are granted that are due now.
    fn serve(&mut self, is_begin: bool) -> Result<(), Problem> {
        let mut has_changed = false;
        for service in &mut self.services {
            has_changed |= service.serve(&mut self.world, is_begin)?;
        }
        if has_changed {
            self.world.carry_out();
        }
        Ok(())
    }

    fn end(mut self) -> Result<MixedResult, Error> {
        if self.until.is_none() && !self.world.is_over() {
            let hint = "Lease less, or say when the run ends.";
            return Err(Error::Problem(Problem::new(
                "services",
                format!("{} jobs that can never start", self.world.cluster().num_pending()),
                "leases that leave room for each job",
                hint,
            )));
        }
        let (now, integrals) = (self.world.cluster().now(), self.world.integrals());
        let training = self.world.training();
        let services = self.services.into_iter().map(|service| service.finish(now));
        Ok(MixedResult {
            services: services.collect::<Result<_, Problem>>()?,
            jobs: self.world.outcomes().copied().collect(),
            training,
            training_gpus: self.training_gpus,
            idle_gpu_s: integrals.idle_gpu_s,
            span_s: integrals.elapsed_s,
            num_passes: self.num_passes,
        })
    }
}
