//! A training run in a folder: imitation of a heuristic, then PPO, with validation, checkpoints and logs, resumable.
//!
//! The streams of seeds are separate: `training` draws what the learner plays, `validation` what the best network is
//! chosen on, `test` what is reported. Resumed after a kill, a run ends in the same bytes: what belongs to a checkpoint is
//! on the disk before it, and what is beyond the newest one is made again.

pub mod constraint;
pub(crate) mod curriculum;
pub mod env_description;
pub mod fine_tuning;
pub(crate) mod folding;
pub mod network_card;
pub mod objective;
pub mod overrides;
pub mod settings;
pub mod settings_file;
pub mod validation;
pub mod verdict;

mod check;
mod curve;
mod extend;
mod imitation;
mod kept;
mod learn;
mod memory;
mod part;
mod population;
mod request;
mod run;
mod selection;
mod shorter;
mod task;
mod teachers;
#[cfg(test)]
mod tests;
mod trained;
mod training;
mod unit;
mod units;
#[cfg(test)]
mod units_tests;
mod unnamed;

pub use self::curve::CurvePoint;
pub use self::extend::differences_from_whole;
pub use self::learn::train;
pub use self::request::TrainRequest;
pub use self::shorter::begin_from;
pub use self::trained::{CHECKPOINTS, Trained};
pub use self::training::{Training, with_bar};
pub use self::unit::play_unit;
