//! Objects that make pods and can be suspended: Jobs, JobSets, the jobs of Kubeflow's training operator, RayJobs.
//!
//! # Source
//! batch/v1 of Kubernetes; `jobset.x-k8s.io/v1alpha2` (`spec.suspend`, `spec.replicatedJobs`); `kubeflow.org/v1` of the training operator
//! (`spec.runPolicy.suspend`, maps of replica specs by role); `ray.io/v1` of KubeRay (`spec.suspend`, `spec.rayClusterSpec`).

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

use crate::gang;
use crate::names;

/// A kind of such objects.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its API group.
    pub group: &'static str,
    /// The version of it that is spoken.
    pub version: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// Its plural.
    pub plural: &'static str,
    /// The object that has its field `suspend`, from the top.
    pub within: &'static [&'static str],
}

/// Jobs.
pub static JOB: Kind = Kind {
    group: "batch",
    version: "v1",
    kind: "Job",
    plural: "jobs",
    within: &["spec"],
};

const fn training(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: "kubeflow.org",
        version: "v1",
        kind,
        plural,
        within: &["spec", "runPolicy"],
    }
}

/// All others.
pub static OTHERS: [Kind; 7] = [
    Kind {
        group: "jobset.x-k8s.io",
        version: "v1alpha2",
        kind: "JobSet",
        plural: "jobsets",
        within: &["spec"],
    },
    training("PyTorchJob", "pytorchjobs"),
    training("TFJob", "tfjobs"),
    training("MPIJob", "mpijobs"),
    training("XGBoostJob", "xgboostjobs"),
    training("JAXJob", "jaxjobs"),
    Kind {
        group: "ray.io",
        version: "v1",
        kind: names::RAY_JOB,
        plural: "rayjobs",
        within: &["spec"],
    },
];

impl Kind {
    /// The kind of a group and plural; none where it is not known.
    #[must_use]
    pub fn of(group: &str, plural: &str) -> Option<&'static Kind> {
        let mut all = std::iter::once(&JOB).chain(&OTHERS);
        all.find(|kind| kind.group == group && kind.plural == plural)
    }

    /// As the client asks for it.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.into(),
            version: self.version.into(),
            api_version: self.api_version(),
            kind: self.kind.into(),
            plural: self.plural.into(),
        }
    }

    /// Group and version.
    #[must_use]
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// An object of one of these kinds.
#[derive(Clone, Debug)]
pub struct Maker<'a> {
    /// Its kind.
    pub kind: &'static Kind,
    /// Name, owners, annotations.
    pub meta: &'a ObjectMeta,
    /// Whether it is suspended.
    pub is_suspended: bool,
    /// Whether it has ended.
    pub is_over: bool,
    /// The program that makes its pods, where it names one.
    pub managed_by: Option<&'a str>,
    /// Whether some of its pods have ended well.
    pub has_succeeded: bool,
    /// Whether the object that has the field `suspend` is there.
    has_place: bool,
    /// The RayCluster that it has, of a RayJob.
    ray_cluster: Option<&'a str>,
    spec: Spec<'a>,
}

#[derive(Clone, Debug)]
enum Spec<'a> {
    Job(&'a Job),
    Other(&'a Value),
}

/// Pods of an object that are alike.
#[derive(Clone, Debug)]
pub struct Set {
    /// How many it makes at once.
    pub num: u32,
    /// What each is made from.
    pub template: Pod,
    /// Labels that each gets beside those of the template.
    pub labels: Vec<(&'static str, String)>,
    /// Whether each gets an index.
    pub is_indexed: bool,
}

/// Conditions by which an object has ended.
const ENDS: [&str; 6] = [
    "Complete",
    "Completed",
    "Succeeded",
    "Failed",
    "SuccessCriteriaMet",
    "FailureTarget",
];

impl<'a> Maker<'a> {
    /// A Job.
    #[must_use]
    pub fn of_job(job: &'a Job) -> Maker<'a> {
        let (spec, status) = (job.spec.as_ref(), job.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ends = |one: &str, value: &str| value == "True" && ENDS.contains(&one);
        Maker {
            kind: &JOB,
            meta: &job.metadata,
            is_suspended: spec.and_then(|spec| spec.suspend) == Some(true),
            is_over: conditions
                .into_iter()
                .flatten()
                .any(|one| ends(&one.type_, &one.status)),
            managed_by: spec.and_then(|spec| spec.managed_by.as_deref()),
            has_succeeded: status.and_then(|status| status.succeeded).unwrap_or(0) > 0,
            has_place: true,
            ray_cluster: None,
            spec: Spec::Job(job),
        }
    }

    /// An object of another kind.
    #[must_use]
    pub fn of_other(kind: &'static Kind, object: &'a DynamicObject) -> Maker<'a> {
        let within = kind
            .within
            .iter()
            .try_fold(&object.data, |value, key| value.get(key));
        let conditions = object
            .data
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let text = |one: &'a Value, key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
        let ends = |one: &'a Value| text(one, "status") == "True" && ENDS.contains(&text(one, "type"));
        let status = object.data.get("status").unwrap_or(&Value::Null);
        let has_ended = ENDS.contains(&text(status, "jobDeploymentStatus"));
        Maker {
            kind,
            meta: &object.metadata,
            is_suspended: within.and_then(|within| within.get("suspend")?.as_bool()) == Some(true),
            is_over: has_ended || conditions.into_iter().flatten().any(ends),
            managed_by: None,
            has_succeeded: false,
            has_place: within.is_some_and(Value::is_object),
            ray_cluster: Some(text(status, "rayClusterName"))
                .filter(|name| kind.kind == names::RAY_JOB && !name.is_empty()),
            spec: Spec::Other(object.data.get("spec").unwrap_or(&Value::Null)),
        }
    }

    /// Whether the object that has the field `suspend` is there.
    #[must_use]
    pub fn has_place(&self) -> bool {
        self.has_place
    }

    /// The RayCluster that it has; none where it is no RayJob, or has none now.
    #[must_use]
    pub fn ray_cluster(&self) -> Option<&'a str> {
        self.ray_cluster
    }

    /// Pods that a Job makes at once; none of other kinds, of which some roles may ask for no GPUs.
    #[must_use]
    pub fn num_pods(&self) -> Option<u32> {
        match self.spec {
            Spec::Job(job) => Some(gang::view(("", ""), job).num_pods()),
            Spec::Other(_) => None,
        }
    }

    /// Whether some of its Jobs come only after others, as trainers after an initializer: it has no moment at which all its pods
    /// are made, and each part waits with gates.
    #[must_use]
    pub fn comes_in_parts(&self) -> bool {
        let Spec::Other(spec) = self.spec else {
            return false;
        };
        let mut parts = spec
            .get("replicatedJobs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        parts.any(|part| {
            part.get("dependsOn")
                .and_then(Value::as_array)
                .is_some_and(|all| !all.is_empty())
        })
    }

    /// Whether its pods may have claims to volumes.
    #[must_use]
    pub fn may_claim(&self) -> bool {
        let spec = match self.spec {
            Spec::Job(job) => job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()),
            Spec::Other(_) => return true,
        };
        spec.is_some_and(|spec| spec.volumes.as_ref().is_some_and(|all| !all.is_empty()))
    }

    /// The pods that it makes.
    #[must_use]
    pub fn sets(&self) -> Vec<Set> {
        let name = self.meta.name.clone().unwrap_or_default();
        match self.spec {
            Spec::Job(job) => of_job(job, &name).into_iter().collect(),
            Spec::Other(spec) if self.kind.plural == "jobsets" => {
                let parts = spec.get("replicatedJobs").and_then(Value::as_array);
                parts
                    .into_iter()
                    .flatten()
                    .filter_map(|part| of_part(part, &name))
                    .collect()
            }
            Spec::Other(spec) if self.kind.kind == names::RAY_JOB => of_ray_job(spec, &name),
            Spec::Other(spec) => {
                let all = spec.as_object().into_iter().flatten();
                let maps = all.filter(|(key, _)| key.ends_with("ReplicaSpecs"));
                let roles = maps.flat_map(|(_, roles)| roles.as_object().into_iter().flatten());
                roles.filter_map(|(_, role)| of_role(role, &name)).collect()
            }
        }
    }
}

fn of_job(job: &Job, name: &str) -> Option<Set> {
    let spec = job.spec.as_ref()?;
    Some(Set {
        num: gang::view(("", name), job).num_pods(),
        template: pod(spec.template.clone())?,
        labels: vec![(names::JOB_NAME, name.to_owned())],
        is_indexed: spec.completion_mode.as_deref() == Some("Indexed"),
    })
}

/// The Jobs of a part of a JobSet.
fn of_part(part: &Value, set: &str) -> Option<Set> {
    let spec: JobSpec = serde_json::from_value(part.pointer("/template/spec")?.clone()).ok()?;
    let number = |num: Option<i32>| num.and_then(|num| u32::try_from(num).ok());
    let replicas = part.get("replicas").map_or(Some(1), Value::as_u64)?;
    let replicas = u32::try_from(replicas).ok()?;
    let (at_once, all) = (number(spec.parallelism).unwrap_or(1), number(spec.completions));
    Some(Set {
        num: replicas.saturating_mul(at_once.min(all.unwrap_or(u32::MAX))),
        template: pod(spec.template)?,
        labels: vec![
            (names::JOBSET_NAME, set.to_owned()),
            (names::REPLICATED_JOB, part.get("name")?.as_str()?.to_owned()),
            (names::REPLICAS, replicas.to_string()),
        ],
        is_indexed: false,
    })
}

/// The pods of a role of a training job.
fn of_role(role: &Value, job: &str) -> Option<Set> {
    let template: PodTemplateSpec = serde_json::from_value(role.get("template")?.clone()).ok()?;
    let replicas = role.get("replicas").map_or(Some(1), Value::as_u64)?;
    Some(Set {
        num: u32::try_from(replicas).ok()?,
        template: pod(template)?,
        labels: vec![(pleach_site::names::TRAINING_JOB, job.to_owned())],
        is_indexed: false,
    })
}

/// The head and the workers of the cluster that a RayJob makes. None where KubeRay refuses to suspend it (it keeps its cluster, or takes
/// one that is there), and where its workers come and go as they are needed: these pods wait with gates.
///
/// # Source
/// `ValidateRayJobSpec` and `GetWorkerGroupDesiredReplicas` of KubeRay's `ray-operator/controllers/ray/utils`.
fn of_ray_job(spec: &Value, name: &str) -> Vec<Set> {
    let is = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool) == Some(true);
    let has_selector = spec.get("clusterSelector").is_some_and(|all| !all.is_null());
    let cluster = spec.get("rayClusterSpec").filter(|_| !has_selector);
    let Some(cluster) =
        cluster.filter(|of| is(spec, "shutdownAfterJobFinishes") && !is(of, "enableInTreeAutoscaling"))
    else {
        return Vec::new();
    };
    let set = |group: &Value, num: u64| {
        let template: PodTemplateSpec = serde_json::from_value(group.get("template")?.clone()).ok()?;
        let (kind, maker) = names::RAY_MAKER;
        Some(Set {
            num: u32::try_from(num).ok()?,
            template: pod(template)?,
            labels: vec![(kind, names::RAY_JOB.to_owned()), (maker, name.to_owned())],
            is_indexed: false,
        })
    };
    let workers = cluster.get("workerGroupSpecs").and_then(Value::as_array);
    let of_group = |group: &Value| {
        let number = |key: &str, usual| group.get(key).and_then(Value::as_u64).unwrap_or(usual);
        let (least, most) = (number("minReplicas", 0), number("maxReplicas", i32::MAX as u64));
        let replicas = number("replicas", least).min(most).max(least);
        let num = if is(group, "suspend") { 0 } else { replicas };
        set(group, num.saturating_mul(number("numOfHosts", 1)))
    };
    let workers = workers.into_iter().flatten().filter_map(of_group);
    let head = cluster.get("headGroupSpec").and_then(|head| set(head, 1));
    head.into_iter().chain(workers).collect()
}

fn pod(template: PodTemplateSpec) -> Option<Pod> {
    Some(Pod {
        metadata: template.metadata.unwrap_or_default(),
        spec: Some(template.spec?),
        ..Pod::default()
    })
}
