//! GPUs with more than one resident, or with a resident that holds only a part.
//!
//! Where its class allows it, several jobs of one class and one GPU each are fused into one program (HFTA); of those there
//! may be as many as fit into the memory.
//!
//! A GPU that one whole-GPU job holds alone is not here but in the plain owner table. Two ways lead here: a job that
//! asks for a fraction takes a part of a GPU (a hard share, or an instance where the type is cut by MIG), and a
//! whole-GPU job may be put beside another one on exactly the same GPUs (packing), where the cluster can do that.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::cluster::jobs::shape::Shape;
use crate::ids::{GpuTypeId, JobId, NodeId};
use crate::physics::mig::{MigGpu, MigState};

/// Whole-GPU jobs on one GPU at most, unless they are fused into one program.
pub const PACKED_MAX: usize = 2;

/// A job on a shared GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The job.
    pub job: JobId,
    /// Its share in thousandths; 1000 for a packed whole-GPU job.
    pub gpu_milli: u16,
    /// GPU memory set aside for it, MiB; 0 = not known.
    pub gpu_memory_mib: u32,
    /// First memory slice of its MIG instance.
    pub mig_start: Option<u8>,
}

/// A GPU with residents.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedGpu {
    /// Its node.
    pub node: NodeId,
    /// Its index in the node.
    pub gpu: u32,
    /// Type.
    pub gpu_type: GpuTypeId,
    /// The jobs on it, in order of arrival.
    pub residents: SmallVec<[Resident; 2]>,
    /// Its MIG instances.
    pub mig: MigState,
    /// Whether all its residents run as one program.
    pub is_fused: bool,
}

impl SharedGpu {
    /// Share that is not given away, in thousandths; 0 with a whole-GPU resident.
    #[must_use]
    pub fn milli_left(&self) -> u16 {
        let used: u32 = self
            .residents
            .iter()
            .map(|resident| u32::from(resident.gpu_milli))
            .sum();
        1000_u32.saturating_sub(used) as u16
    }

    /// GPU memory set aside, MiB.
    #[must_use]
    pub(crate) fn memory_mib_used(&self) -> u32 {
        self.residents
            .iter()
            .map(|resident| resident.gpu_memory_mib)
            .sum()
    }

    fn is_fractional(&self) -> bool {
        self.residents.iter().all(|resident| resident.gpu_milli < 1000)
    }
}

/// What a GPU type offers to fractions.
#[derive(Clone, Copy, Debug)]
pub(in crate::cluster) struct TypeFacts {
    pub(in crate::cluster) memory_mib: u32,
    /// Host memory that comes with each GPU, GiB; that of the node of the type which has the least, and infinite where no node's is
    /// known.
    pub(in crate::cluster) host_memory_gib: f64,
    pub(in crate::cluster) mig: Option<MigGpu>,
}

impl TypeFacts {
    /// The instance that serves a fraction; none where the type is not cut or no profile is large enough.
    pub(in crate::cluster) fn profile(&self, shape: Shape) -> Option<usize> {
        let gpu = self.mig?;
        let slices = u32::from(gpu.compute_slices()) * u32::from(shape.gpu_milli);
        gpu.smallest_profile(
            slices.div_ceil(1000) as u8,
            f64::from(shape.gpu_memory_mib) / 1024.0,
        )
    }

    /// Whether an empty GPU of the type can serve the shape.
    pub(in crate::cluster) fn serves(&self, shape: Shape) -> bool {
        shape.gpu_memory_mib <= self.memory_mib
            && (!shape.is_fractional() || self.mig.is_none() || self.profile(shape).is_some())
    }

    /// Whether a GPU with these residents can take one more of the shape.
    pub(in crate::cluster) fn joins(&self, gpu: &SharedGpu, shape: Shape) -> bool {
        shape.is_fractional()
            && gpu.milli_left() >= shape.gpu_milli
            && gpu.memory_mib_used() + shape.gpu_memory_mib <= self.memory_mib
            && match (self.mig, self.profile(shape)) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(mig), Some(profile)) => gpu.mig.can_place(mig, profile).is_some(),
            }
    }
}

/// All shared GPUs, with an index of those that have a part to give.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct SharedGpus {
    /// By row in the GPU table.
    rows: BTreeMap<u32, SharedGpu>,
    /// (type, share left, row) of the GPUs whose residents all hold fractions.
    partial: BTreeSet<(GpuTypeId, u16, u32)>,
}

impl SharedGpus {
    pub(in crate::cluster) fn get(&self, row: u32) -> Option<&SharedGpu> {
        self.rows.get(&row)
    }

    pub(in crate::cluster) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(in crate::cluster) fn iter(&self) -> impl Iterator<Item = (u32, &SharedGpu)> {
        self.rows.iter().map(|(row, gpu)| (*row, gpu))
    }

    /// The shared GPUs of one node.
    pub(in crate::cluster) fn of_node(
        &self,
        first_gpu: u32,
        num_gpus: u32,
    ) -> impl Iterator<Item = &SharedGpu> {
        self.rows
            .range(first_gpu..first_gpu + num_gpus)
            .map(|(_, gpu)| gpu)
    }

    /// GPUs of a type with a part to give, least left first.
    pub(in crate::cluster) fn partial_of(
        &self,
        kind: GpuTypeId,
        milli: u16,
    ) -> impl Iterator<Item = &SharedGpu> {
        let rows = self.partial.range((kind, milli, 0)..=(kind, u16::MAX, u32::MAX));
        rows.filter_map(|(_, _, row)| self.rows.get(row))
    }

    /// Adds a resident, in the instance that it names or in the best one; an empty GPU becomes a shared one by `empty`.
    pub(in crate::cluster) fn join(
        &mut self,
        row: u32,
        resident: Resident,
        facts: TypeFacts,
        empty: SharedGpu,
    ) {
        let gpu = self.rows.entry(row).or_insert(empty);
        let key = (gpu.gpu_type, gpu.milli_left(), row);
        self.partial.remove(&key);
        let mut resident = resident;
        if let Some(mig) = facts.mig.filter(|_| resident.gpu_milli < 1000) {
            let shape = Shape {
                gpu_milli: resident.gpu_milli,
                gpu_memory_mib: resident.gpu_memory_mib,
                ..Shape::PLAIN
            };
            let profile = facts.profile(shape);
            let start = resident.mig_start.or_else(|| gpu.mig.can_place(mig, profile?));
            assert!(
                start.is_some(),
                "{:?} has no instance on GPU row {row}",
                resident.job
            );
            if let (Some(profile), Some(start)) = (profile, start) {
                gpu.mig.place(mig, profile, start);
                resident.mig_start = Some(start);
            }
        }
        gpu.residents.push(resident);
        if gpu.is_fractional() {
            self.partial.insert((gpu.gpu_type, gpu.milli_left(), row));
        }
    }

    /// Removes a resident. Says what stays: nothing (the GPU is empty), one whole-GPU job (it has the GPU to itself again), or
    /// others (the GPU stays shared).
    pub(in crate::cluster) fn leave(&mut self, row: u32, job: JobId, facts: TypeFacts) -> Left {
        let Some(gpu) = self.rows.get_mut(&row) else {
            return Left::Nobody;
        };
        let key = (gpu.gpu_type, gpu.milli_left(), row);
        self.partial.remove(&key);
        if let Some(at) = gpu.residents.iter().position(|resident| resident.job == job) {
            let resident = gpu.residents.remove(at);
            if let (Some(mig), Some(start)) = (facts.mig, resident.mig_start) {
                gpu.mig.remove(mig, start);
            }
        }
        match gpu.residents.first().copied() {
            None => {
                self.rows.remove(&row);
                Left::Nobody
            }
            Some(only) if gpu.residents.len() == 1 && only.gpu_milli == 1000 => {
                self.rows.remove(&row);
                Left::Alone(only.job)
            }
            Some(_) => {
                if gpu.is_fractional() {
                    self.partial.insert((gpu.gpu_type, gpu.milli_left(), row));
                }
                Left::Others
            }
        }
    }

    /// The residents of a GPU run as one program: the framework's memory, MiB, is paid once, by the first of them.
    pub(in crate::cluster) fn fuse(&mut self, row: u32, framework_mib: u32, job_mib: u32) {
        let Some(gpu) = self.rows.get_mut(&row) else {
            return;
        };
        gpu.is_fused = true;
        for (at, resident) in gpu.residents.iter_mut().enumerate() {
            resident.gpu_memory_mib = job_mib + if at == 0 { framework_mib } else { 0 };
        }
    }

    /// Asserts that the index agrees with the rows and that no GPU is oversubscribed.
    ///
    /// # Panics
    /// If one does not hold.
    pub(in crate::cluster) fn check(&self, facts: &[TypeFacts]) {
        let mut partial = BTreeSet::new();
        for (row, gpu) in &self.rows {
            let whole = gpu
                .residents
                .iter()
                .filter(|resident| resident.gpu_milli == 1000)
                .count();
            if whole == 0 {
                let used: u32 = gpu
                    .residents
                    .iter()
                    .map(|resident| u32::from(resident.gpu_milli))
                    .sum();
                assert!(
                    (1..=1000).contains(&used),
                    "GPU row {row} gives away {used} of 1000"
                );
                partial.insert((gpu.gpu_type, gpu.milli_left(), *row));
            } else {
                assert_eq!(
                    whole,
                    gpu.residents.len(),
                    "GPU row {row}: whole-GPU jobs and fractions do not mix"
                );
                assert!(
                    whole >= 2 && (gpu.is_fused || whole <= PACKED_MAX),
                    "GPU row {row} packs {whole} jobs"
                );
            }
            let facts = &facts[gpu.gpu_type.index()];
            assert!(
                gpu.memory_mib_used() <= facts.memory_mib,
                "GPU row {row} promises more memory than it has"
            );
            if let Some(mig) = facts.mig {
                assert!(
                    gpu.mig.validate(mig).is_ok(),
                    "GPU row {row} has an impossible MIG layout"
                );
                let held = gpu
                    .residents
                    .iter()
                    .filter(|resident| resident.mig_start.is_some())
                    .count();
                assert_eq!(
                    gpu.mig.instances().count(),
                    held,
                    "GPU row {row}: one instance for each resident"
                );
            }
        }
        assert_eq!(partial, self.partial, "the index of GPUs with a part to give");
    }
}

/// What stays on a GPU that a resident has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Left {
    Nobody,
    Alone(JobId),
    Others,
}
