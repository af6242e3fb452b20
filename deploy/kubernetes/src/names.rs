//! Names that this program writes into pods, and names of others that it reads.
//!
//! Ours begin with `pleach/`: a single label is a valid prefix of a qualified name, and it claims no domain.

pub use pleach_site::names::{
    GANG, GANG_SIZE, JOB_INDEX, JOB_NAME, JOB_NAME_OLD, JOBSET_NAME, KUEUE_GROUP, KUEUE_TOTAL, OF_GANGS,
    PARALLEL, RAY_CLUSTER, RAY_JOB, RAY_MAKER, REPLICAS, REPLICATED_JOB, SUSPENDED, WORD_MAX,
};

/// The scheduling gate that holds a pod for the controller.
pub const GATE: &str = "pleach/hold";
/// Annotation of a pod that was let go: when, where, and where the rest of its gang goes; see [`crate::mark::Decided`].
pub const DECIDED: &str = "pleach/decided";
/// Annotation of a pod whose gate was lifted without a decision: why.
pub const LEFT: &str = "pleach/left";
/// Label: `false` keeps a pod from being held; on a namespace, `true` lets the webhook see its pods.
pub const DRIVE: &str = "pleach/drive";
/// Annotation: the run time that the user believes in, s.
pub const ESTIMATE_S: &str = "pleach/estimate-s";

/// Whether an annotation of a pod is one of those that are read.
#[must_use]
pub fn is_read(annotation: &str) -> bool {
    [DECIDED, DRIVE, ESTIMATE_S]
        .iter()
        .chain(&OF_GANGS)
        .any(|name| *name == annotation)
}

/// What a node selector pins a pod with.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Node label of the NVIDIA device plugin: parts into which each GPU is shared by time slices or MPS.
pub const REPLICAS_PER_GPU: &str = "nvidia.com/gpu.replicas";
/// Suffix of such a GPU's product.
pub const SHARED: &str = "-SHARED";
