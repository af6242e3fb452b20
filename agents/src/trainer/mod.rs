//! The training loop as a state machine that can stop and go on between any two updates.
//!
//! Everything that an update reads is in the [`Checkpoint`](crate::checkpoint::Checkpoint): configuration, seed, number
//! of the update, parameters, Adam, normaliser. Each update restarts the environments from seeds derived from (seed,
//! update, group), so nothing of an environment needs to be saved, and N updates equal k updates, a save, a load and
//! N - k updates, bit for bit, on one machine at any number of threads.

mod evolve;
mod fork;
mod state;
mod update;

pub use self::state::Trainer;
pub use self::update::UpdateStats;
