//! Labels and annotations of Kubernetes and of those that make pods, and two of our own.
//!
//! # Source
//! The well-known labels of the Kubernetes reference; the APIs of JobSet, LeaderWorkerSet, Kueue, the scheduler plugins, Volcano,
//! Grove (`operator/api/common/labels.go`), Kubeflow's training operator and KubeRay.

/// Longest label or annotation that is read, bytes; a longer one counts as not there.
///
/// # Source
/// The longest name of an object (RFC 1123, as the API server checks it); labels have at most 63 letters.
pub const WORD_MAX: usize = 253;

/// Label or annotation: the gang that a pod belongs to, by a name in its namespace.
pub const GANG: &str = "pleach/gang";
/// Annotation: pods of the gang.
pub const GANG_SIZE: &str = "pleach/gang-size";
/// Label or annotation of the pods of a Job that is not Indexed: `gang` where they have to start together, `alone` where each is a
/// job of its own.
pub const PARALLEL: &str = "pleach/parallel";
/// Annotation of an object that is suspended until it is its turn: not before this Unix time, s.
pub const SUSPENDED: &str = "pleach/suspended";
/// The Job controller, as `spec.managedBy` names it.
pub const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// Label of what Kueue queues, and suspends.
pub const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// Label of the same: the class of its priority in the queue.
pub const KUEUE_PRIORITY: &str = "kueue.x-k8s.io/priority-class";
/// Label of the pods of a Job.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The same, before Kubernetes 1.27.
pub const JOB_NAME_OLD: &str = "job-name";
/// Annotation (and label) of a pod of an Indexed Job.
pub const JOB_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Label of the Jobs and pods of a JobSet.
pub const JOBSET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
/// Label of Jobs and pods: which replicated Job of the JobSet.
pub const REPLICATED_JOB: &str = "jobset.sigs.k8s.io/replicatedjob-name";
/// Label of Jobs and pods: how many Jobs that replicated Job has.
pub const REPLICAS: &str = "jobset.sigs.k8s.io/replicatedjob-replicas";
/// Label of the pods of a LeaderWorkerSet.
pub const LEADER_WORKER_SET: &str = "leaderworkerset.sigs.k8s.io/name";
/// Label: which of its groups.
pub const LEADER_WORKER_GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// Annotation: pods of each group.
pub const LEADER_WORKER_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";
/// Label of the pods of a job of the training operator (PyTorchJob, TFJob, MPIJob and the others).
pub const TRAINING_JOB: &str = "training.kubeflow.org/job-name";
/// Label of the pods of a RayCluster.
pub const RAY_CLUSTER: &str = "ray.io/cluster";
/// Label: the kind of the object that a RayCluster was made for, and that object's name.
pub const RAY_MAKER: (&str, &str) = ("ray.io/originated-from-crd", "ray.io/originated-from-cr-name");
/// That kind where the object is a RayJob.
pub const RAY_JOB: &str = "RayJob";
/// Label of a pod group of the scheduler plugins.
pub const POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// The same, before it was renamed.
pub const POD_GROUP_OLD: &str = "pod-group.scheduling.sigs.k8s.io";
/// Annotation of a pod group of Volcano.
pub const VOLCANO_GROUP: &str = "scheduling.k8s.io/group-name";
/// Label of the pods of a gang of Grove.
pub const GROVE_GANG: &str = "grove.io/podgang";
/// Label of a plain pod group of Kueue.
pub const KUEUE_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// Annotation: its pods in all.
pub const KUEUE_TOTAL: &str = "kueue.x-k8s.io/pod-group-total-count";
/// Field of a pod of a native PodGroup, since Kubernetes 1.35.
pub const NATIVE_GROUP: &str = "spec.schedulingGroup";
/// Environment variable of torchrun that training operators set: nodes, or the least and the most of them (`2:4`).
pub const TORCH_NODES: &str = "PET_NNODES";

/// Those that tell which pods start together.
pub const OF_GANGS: [&str; 22] = [
    GANG,
    GANG_SIZE,
    PARALLEL,
    JOB_NAME,
    JOB_NAME_OLD,
    JOB_INDEX,
    JOBSET_NAME,
    REPLICATED_JOB,
    REPLICAS,
    LEADER_WORKER_SET,
    LEADER_WORKER_GROUP,
    LEADER_WORKER_SIZE,
    TRAINING_JOB,
    RAY_CLUSTER,
    RAY_MAKER.0,
    RAY_MAKER.1,
    POD_GROUP,
    POD_GROUP_OLD,
    VOLCANO_GROUP,
    GROVE_GANG,
    KUEUE_GROUP,
    KUEUE_TOTAL,
];
