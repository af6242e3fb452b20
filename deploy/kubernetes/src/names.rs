//! Names that this program writes into pods, and names of others that it reads.
//!
//! Ours begin with `pleach/`: a single label is a valid prefix of a qualified name, and it claims nobody's domain.

/// The scheduling gate that holds a pod for the controller.
pub const GATE: &str = "pleach/hold";
/// Annotation of a pod that was let go: when, where, and where the rest of its gang goes; see [`crate::mark::Decided`].
pub const DECIDED: &str = "pleach/decided";
/// Annotation of a pod whose gate was lifted without a decision: why.
pub const LEFT: &str = "pleach/left";
/// Label: `false` keeps a pod from being held; on a namespace, `true` lets the webhook see its pods.
pub const DRIVE: &str = "pleach/drive";
/// Label or annotation: the gang that a pod belongs to, by a name in its namespace.
pub const GANG: &str = "pleach/gang";
/// Annotation: pods of the gang.
pub const GANG_SIZE: &str = "pleach/gang-size";
/// Label or annotation of the pods of a Job that is not Indexed: `gang` where they have to start together, `alone` where each is a
/// job of its own.
pub const PARALLEL: &str = "pleach/parallel";
/// Annotation: the run time that the user believes in, s.
pub const ESTIMATE_S: &str = "pleach/estimate-s";

/// Longest label or annotation that is read, bytes; a longer one counts as not there. [`DECIDED`] has a bound of its own.
///
/// # Source
/// The longest name of an object (RFC 1123, as the API server checks it); labels have at most 63 letters.
pub const WORD_MAX: usize = 253;

/// Whether an annotation of a pod is one of those that are read.
#[must_use]
pub fn is_read(annotation: &str) -> bool {
    [
        DECIDED,
        DRIVE,
        GANG,
        GANG_SIZE,
        ESTIMATE_S,
        PARALLEL,
        JOB_NAME,
        JOB_NAME_OLD,
        JOB_INDEX,
        JOBSET_NAME,
        POD_GROUP,
        POD_GROUP_OLD,
        VOLCANO_GROUP,
        KUEUE_GROUP,
        KUEUE_TOTAL,
    ]
    .contains(&annotation)
}

/// What a node selector pins a pod with.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label of the pods of a Job.
///
/// # Source
/// `LabelJobName` and the others below: the well-known labels and annotations of the Kubernetes reference.
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
/// Label of a pod group of the scheduler plugins.
pub const POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// The same, before it was renamed.
pub const POD_GROUP_OLD: &str = "pod-group.scheduling.sigs.k8s.io";
/// Annotation of a pod group of Volcano.
pub const VOLCANO_GROUP: &str = "scheduling.k8s.io/group-name";
/// Label of a plain pod group of Kueue.
pub const KUEUE_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// Annotation: its pods in all.
pub const KUEUE_TOTAL: &str = "kueue.x-k8s.io/pod-group-total-count";
/// Node label of the NVIDIA device plugin: parts into which each GPU is shared by time slices or MPS.
pub const REPLICAS_PER_GPU: &str = "nvidia.com/gpu.replicas";
/// Suffix of such a GPU's product.
pub const SHARED: &str = "-SHARED";
