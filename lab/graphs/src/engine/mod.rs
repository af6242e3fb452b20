//! The simulator: executors run the tasks of stages, move between jobs, and remember what they ran.
//!
//! Executors rest in pools: a common one, one of each job, one of each stage. At some events the free executors of one pool, the
//! *source*, are dealt: a decision promises some of them to a stage, until none is free. Executors that still run keep their promise
//! when they end.
//!
//! # Source
//! The rules of Decima's simulator (Mao et al., SIGCOMM'19; decima-sim c010dd7) as spark-sched-sim 2ba8d80 has them; tests hold this
//! engine to recorded runs of the latter, task by task.

mod dealing;
mod events;
mod ids;
mod outcome;
mod state;

pub use ids::{JobId, StageId};
pub use outcome::{JobRecord, Outcome, StageRecord, TaskRecord};
pub(crate) use state::mix;
pub use state::{Engine, Left};
