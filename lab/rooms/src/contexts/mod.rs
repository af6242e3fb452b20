//! One GPU shared in time and space: contexts with caps of SMs that may be over-subscribed, streams in them, and periodic
//! tasks with deadlines.
//!
//! A [`Task`] releases a frame each period. A frame is a chain of stages of a [`Network`] and is due one period after its release.
//! A stage joins a context's queue, starts when a stream is free, and is not preempted. All stages in flight share the GPU's
//! [`Capacity`]. [`simulate`] plays tasks on a [`Gpu`] under a [`Policy`]; [`released`] has what the authors of SGPRS measured, and
//! [`residents`] two networks block by block, as in Miriam.
//!
//! # What is deliberately not here
//! Contexts made or resized while tasks run: SGPRS makes its pool in advance. Memory, PCIe, several GPUs. The promotion of
//! late chains that the paper on SGPRS describes: the released code, which made the figures, has it switched off. DARIS, its
//! successor: its rule is not known to us beyond the abstract. A search for trees: contexts are alike, and rules that choose them
//! otherwise reach the same throughput (docs/serving-systems.md). [`Placing`] lets learners try.

mod capacity;
mod columns;
mod environment;
mod gpu;
mod outcome;
mod plan;
mod policy;
pub mod released;
pub mod residents;
mod simulate;
mod task;

pub use capacity::Capacity;
pub use columns::{PLACING_1, SCHEMA};
pub use environment::Placing;
pub use gpu::{Context, Gpu};
pub use outcome::{Outcome, StageRun};
pub use policy::{Decision, Discipline, Held, Order, POLICIES, Policy, by_name};
pub use simulate::{Run, simulate, timeline};
pub use task::{Network, Stage, Task};

/// Work of a microsecond alone on the whole GPU, in the femtoseconds in which work is counted.
const FS_PER_US: u64 = 1_000_000_000;
