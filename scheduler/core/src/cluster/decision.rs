//! What a scheduler decided, as complete records: a program that carries one out needs nothing else, and no table of the cluster.
//!
//! The cluster journals every start, preemption and reservation in its order and hands them out with
//! [`Cluster::take_decisions`](super::Cluster::take_decisions). A simulator follows them, a daemon sends them to its
//! batch system and writes them down; to hold is to decide nothing, so it leaves no record.

use serde::{Deserialize, Serialize};

use super::jobs::shape::Shape;
use super::tables::{Job, Placement};
use crate::ids::{ExternalId, GpuTypeId, JobId, Time};

/// What is done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It runs on these GPUs from now on, all of them at once.
    Start,
    /// It gives these GPUs back, all of them; it goes back to the queue and keeps its progress, less the cost of a restart.
    Preempt,
    /// GPUs are held back for it until the next pass; nothing is to be carried out.
    Reserve,
}

/// GPUs that are held back for a job, as they were when that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldBack {
    /// The GPU type on which the job is to run.
    pub gpu_type: GpuTypeId,
    /// When the gang is believed to fit.
    pub start: Time,
    /// GPUs of the type that others may take beyond that time.
    pub num_gpus_extra: u32,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The job, by the name that the world outside knows.
    pub job: ExternalId,
    /// Its row in the tables of the cluster that decided, for a caller that shares them. Rows are no names: they are not written
    /// down, and one that was read back is past the end of every table.
    #[serde(skip, default = "no_row")]
    pub row: JobId,
    /// What is done.
    pub action: Action,
    /// The exact GPUs that it takes or gives back, one slice for each node; none for a reservation.
    #[serde(default, skip_serializing_if = "Placement::is_empty")]
    pub placement: Placement,
    /// Number of GPUs, of which each may be a share: those of the placement, or those that are held back.
    pub num_gpus: u32,
    /// Share of each GPU in thousandths, 1 to 1000.
    pub gpu_milli: u16,
    /// GPU memory that comes with a share, MiB; 0 for a whole GPU, which comes with all of its own.
    pub gpu_memory_mib_per_gpu: u32,
    /// CPU that comes with each GPU, thousandths of a core; 0: none is set aside.
    pub cpu_milli_per_gpu: u32,
    /// Host memory that comes with each GPU, MiB; 0: none is set aside.
    pub memory_mib_per_gpu: u32,
    /// Copies of the job that split its work: 1 for one gang, else one on each slice of the placement.
    pub num_copies: u32,
    /// What is held back, for a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<HeldBack>,
    /// Id of the leaf of the tree that chose this; none where no tree did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<u32>,
}

fn no_row() -> JobId {
    JobId(u32::MAX)
}

impl Decision {
    /// The record of a job that takes or gives back GPUs; `granted` is what each of them comes with.
    #[inline]
    pub(crate) fn of(
        action: Action,
        row: JobId,
        job: &Job,
        placement: Placement,
        granted: Shape,
    ) -> Decision {
        Decision {
            job: job.external,
            row,
            action,
            num_gpus: job.num_held,
            gpu_milli: granted.gpu_milli,
            gpu_memory_mib_per_gpu: granted.gpu_memory_mib,
            cpu_milli_per_gpu: granted.cpu_milli,
            memory_mib_per_gpu: granted.memory_mib,
            num_copies: if job.is_forked { placement.len() as u32 } else { 1 },
            placement,
            reservation: None,
            leaf: None,
        }
    }

    /// The record of GPUs held back for a job that asks for `asked` with each of them.
    pub(crate) fn reserve(row: JobId, job: &Job, asked: Shape, held_back: HeldBack) -> Decision {
        Decision {
            num_gpus: job.request.num_gpus,
            num_copies: 1,
            reservation: Some(held_back),
            ..Decision::of(Action::Reserve, row, job, Placement::new(), asked)
        }
    }
}
