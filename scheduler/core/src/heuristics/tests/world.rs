//! Random small clusters and their life, for property tests.

use proptest::prelude::*;

use crate::actions::ActionKind;
use crate::cluster::{Capabilities, Cluster, JobState, Submission};
use crate::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, Tasks, TenantSpec,
};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, JobId, TenantId, Time};
use crate::pass::{Pass, PassState};
use crate::policy::Policy;

/// Something that happens before a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A job comes: gang size, run time (s), tenant and class, all taken modulo what exists, and how it is cut.
    Submit(u32, u32, u16, u16, Tasks),
    /// Time passes (s); running jobs that are believed to end meanwhile do.
    Wait(u32),
}

/// Two groups of nodes of (count, GPUs each), one type or two; up to three tenants with even quotas; two classes, the
/// second at half speed on the first type, or kept off it.
pub(crate) fn cluster(types: usize, borrowing: BoxedStrategy<bool>) -> impl Strategy<Value = Cluster> {
    cluster_with(types, borrowing, Capabilities::DEFAULT)
}

/// The same with these capabilities, with preemption or without.
pub(crate) fn cluster_with(
    types: usize,
    borrowing: BoxedStrategy<bool>,
    capabilities: Capabilities,
) -> impl Strategy<Value = Cluster> {
    let group = (1_u32..4, 1_u32..6, 1_u32..3);
    let speed = prop_oneof![Just(0.5), Just(0.0), Just(1.0)];
    let flags = (borrowing, any::<bool>());
    (group.clone(), group, 1_u32..4, flags, speed).prop_map(move |(one, two, tenants, flags, slow)| {
        let (borrowing, preemption) = flags;
        let groups = [one, two].into_iter().enumerate();
        let groups = groups.map(|(number, (count, gpus_per_node, nodes_per_rack))| NodeGroup {
            count,
            gpus_per_node,
            gpu_type: format!("type{}", number % types),
            nodes_per_rack,
            ..NodeGroup::default()
        });
        let mut spec = ClusterSpec {
            gpu_types: (0..types)
                .map(|number| GpuTypeSpec {
                    name: format!("type{number}"),
                    memory_gib: 16.0,
                    mig: None,
                })
                .collect(),
            node_groups: groups.collect(),
            tenants: Vec::new(),
            borrowing,
            ..ClusterSpec::default()
        };
        let num_gpus = spec.num_gpus() as u32;
        spec.tenants = (0..tenants)
            .map(|number| TenantSpec {
                name: format!("tenant{number}"),
                quota_gpus: num_gpus / tenants,
            })
            .collect();
        let class = |name: &str, first: f64| {
            let mut speed = vec![1.0; types];
            speed[0] = if types == 1 { first.max(0.25) } else { first };
            ModelClass {
                name: name.into(),
                speed,
                locality: LocalityFactors::PHILLY,
                ..ModelClass::default()
            }
        };
        let mut capabilities = capabilities;
        capabilities.grant(ActionKind::Preempt, preemption);
        Cluster::new(&spec, &[class("fast", 1.0), class("slow", slow)], capabilities).unwrap()
    })
}

/// Mostly gangs that are cut as one likes.
fn tasks() -> impl Strategy<Value = Tasks> {
    let cut = (1_u8..5, 0_u8..3, 0_u16..4).prop_map(|(gpus_per_task, tasks_per_node_max, nodes_max)| Tasks {
        gpus_per_task,
        tasks_per_node_max,
        nodes_max,
    });
    prop_oneof![3 => Just(Tasks::ANY), 1 => cut]
}

/// What may happen: about two arrivals to each wait.
pub(crate) fn events(num_max: usize) -> impl Strategy<Value = Vec<Event>> {
    let submit = (1_u32..9, 1_u32..400, 0_u16..3, 0_u16..2, tasks());
    let submit = submit.prop_map(|(gang, run_s, tenant, class, tasks)| {
        let gang = gang.next_multiple_of(u32::from(tasks.gpus_per_task));
        Event::Submit(gang, run_s, tenant, class, tasks)
    });
    let wait = (0_u32..150).prop_map(Event::Wait);
    proptest::collection::vec(prop_oneof![2 => submit, 1 => wait], 1..num_max)
}

/// Makes one event happen. A request that can never be met leaves the cluster as it is.
pub(crate) fn happen(cluster: &mut Cluster, event: Event) {
    match event {
        Event::Submit(num_gpus, run_s, tenant, class, tasks) => {
            let estimate_s = Estimate {
                value: f64::from(run_s),
                provenance: Provenance::Oracle,
            };
            let tenant = TenantId(tenant % cluster.tenants().len() as u16);
            let class = ClassId(class);
            // An error is a refused request: nothing has changed.
            drop(cluster.submit(Submission {
                tenant,
                class,
                num_gpus,
                estimate_s,
                resources: Resources {
                    tasks,
                    ..Resources::WHOLE_GPU
                },
            }));
        }
        Event::Wait(wait_s) => {
            let until = cluster.now() + Time(i64::from(wait_s) * 1_000_000);
            while let Some((end, id)) = next_end(cluster).filter(|(end, _)| *end <= until) {
                cluster.advance(end);
                cluster.finish(id);
            }
            cluster.advance(until);
        }
    }
}

/// The running job that is believed to end first.
pub(crate) fn next_end(cluster: &Cluster) -> Option<(Time, JobId)> {
    let running = |id: &usize| cluster.jobs()[*id].state == JobState::Running;
    let ids = (0..cluster.jobs().len()).filter(running);
    ids.map(|id| (cluster.jobs()[id].expected_finish, JobId(id as u32)))
        .min()
}

/// The pending jobs by id.
pub(crate) fn pending(cluster: &Cluster) -> Vec<JobId> {
    let ids = (0..cluster.jobs().len()).map(|id| JobId(id as u32));
    ids.filter(|id| cluster.job(*id).state == JobState::Pending)
        .collect()
}

/// One pass, looking at every decision point before its action; returns the number of actions.
pub(crate) fn watched_pass(
    cluster: &mut Cluster,
    policy: &mut dyn Policy,
    mut look: impl FnMut(&Cluster, &Pass),
) -> usize {
    let needs = policy.needs();
    let mut pass = Pass::new();
    let mut state = pass.open(cluster, &needs);
    let mut num_actions = 0;
    while state == PassState::Open {
        look(cluster, &pass);
        let action = pass.decide(cluster, policy).unwrap();
        state = pass.act(cluster, &needs, action);
        num_actions += 1;
        assert!(
            num_actions <= 2 * cluster.jobs().len() + 2,
            "{} must end its pass",
            policy.name()
        );
    }
    num_actions
}
