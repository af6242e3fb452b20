//! Kueue's objects as far as an order needs them: workloads, the queues that they wait in, the classes that gave them priorities.
//!
//! # Source
//! `apis/kueue/v1beta2` of Kueue 0.17.0: `workload_types.go`, `clusterqueue_types.go`, `localqueue_types.go`,
//! `workloadpriorityclass_types.go`. Fields that are not read here are left out.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use serde::{Deserialize, Serialize};

/// The API group of Kueue.
pub const GROUP: &str = "kueue.x-k8s.io";
/// The version of it that is spoken: served since Kueue 0.15.
pub const API_VERSION: &str = "v1beta2";
/// The group of Kubernetes' own priority classes.
pub const POD_CLASSES: &str = "scheduling.k8s.io";

/// A job as Kueue queues it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Name, owner, age.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: WorkloadSpec,
    /// How far it has come.
    pub status: WorkloadStatus,
}

/// What a workload asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// Pods that are alike, 1 to 8 sets.
    pub pod_sets: Vec<PodSet>,
    /// Its LocalQueue, of its namespace.
    pub queue_name: Option<String>,
    /// The higher goes first; none counts as 0.
    pub priority: Option<i32>,
    /// What gave it that priority.
    pub priority_class_ref: Option<ClassRef>,
    /// Whether it may be admitted; none: it may.
    pub active: Option<bool>,
    /// The longest time that it may run, s.
    pub maximum_execution_time_seconds: Option<i32>,
}

/// Pods that are alike.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodSet {
    /// How many.
    pub count: i32,
    /// What each is.
    pub template: PodTemplateSpec,
}

/// A class of priorities, of Kueue's own or of Kubernetes'.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassRef {
    /// [`GROUP`] or [`POD_CLASSES`].
    pub group: String,
    /// Its name.
    pub name: String,
}

/// How far a workload has come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadStatus {
    /// `QuotaReserved`, `Admitted`, `Finished` and others.
    pub conditions: Vec<Condition>,
}

/// A queue with a quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterQueue {
    /// Its name.
    pub metadata: ObjectMeta,
    /// How it admits.
    pub spec: ClusterQueueSpec,
}

/// How a queue admits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterQueueSpec {
    /// Queues that lend each other quota.
    pub cohort_name: Option<String>,
    /// Which workloads it stops for those that wait.
    pub preemption: Option<Preemption>,
}

/// Which workloads a queue stops for those that wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preemption {
    /// In itself; none: `Never`.
    pub within_cluster_queue: Option<String>,
    /// In others of its cohort that have borrowed from it; none: `Never`.
    pub reclaim_within_cohort: Option<String>,
    /// The same to borrow itself.
    pub borrow_within_cohort: Option<Borrow>,
}

/// Which workloads a queue stops to borrow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Borrow {
    /// None: `Never`.
    pub policy: Option<String>,
}

/// A queue of a namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalQueue {
    /// Its name.
    pub metadata: ObjectMeta,
    /// Where it leads.
    pub spec: LocalQueueSpec,
}

/// Where a queue of a namespace leads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueueSpec {
    /// The name of a [`ClusterQueue`].
    pub cluster_queue: Option<String>,
}

/// A class of priorities of Kueue's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadPriorityClass {
    /// Its name.
    pub metadata: ObjectMeta,
    /// The priority that it gives.
    pub value: i32,
}

macro_rules! resource {
    ($type:ident, $scope:ty, $plural:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($type).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                GROUP.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                API_VERSION.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Workload, NamespaceResourceScope, "workloads");
resource!(ClusterQueue, ClusterResourceScope, "clusterqueues");
resource!(LocalQueue, NamespaceResourceScope, "localqueues");
resource!(
    WorkloadPriorityClass,
    ClusterResourceScope,
    "workloadpriorityclasses"
);

impl Workload {
    /// Whether a condition holds.
    #[must_use]
    pub fn has(&self, condition: &str) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|one| one.type_ == condition && one.status == "True")
    }

    /// Whether it waits for quota: its priority may be changed, and Kueue goes by it.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.has("QuotaReserved")
            && !self.has("Finished")
            && self.spec.active != Some(false)
            && self.metadata.deletion_timestamp.is_none()
    }
}

impl ClusterQueue {
    /// Whether it stops jobs of lower priority in itself.
    #[must_use]
    pub fn preempts_within(&self) -> bool {
        let preemption = self.spec.preemption.as_ref();
        stops(preemption.and_then(|how| how.within_cluster_queue.as_deref()))
    }

    /// Whether it stops jobs of lower priority in others of its cohort.
    #[must_use]
    pub fn preempts_in_cohort(&self) -> bool {
        let preemption = self.spec.preemption.as_ref();
        let borrow = preemption.and_then(|how| how.borrow_within_cohort.as_ref()?.policy.as_deref());
        self.spec.cohort_name.is_some()
            && (stops(preemption.and_then(|how| how.reclaim_within_cohort.as_deref())) || stops(borrow))
    }
}

/// Whether a policy of preemption goes by priorities: `Never` stops no workload, and `Any` may stop all.
fn stops(policy: Option<&str>) -> bool {
    !matches!(policy, None | Some("" | "Never" | "Any"))
}
