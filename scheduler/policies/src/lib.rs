//! One door for policies: whatever can decide, by name, by file or by folder, opened alike by the simulator, Python and the daemons.
//!
//! ```
//! use pleach_policies::Door;
//!
//! let sjf = Door::CLUSTER.open_one("short=sjf")?;
//! assert_eq!((sjf.name(), sjf.is_planner()), ("short", false));
//! assert!(Door::CLUSTER.open_one("deal:sjf")?.is_planner());
//! assert!(Door::CLUSTER.open_one("order:sjf")?.is_planner());
//! let refused = Door::CLUSTER.open_one("sfj").unwrap_err().to_string();
//! assert!(refused.contains("Did you mean sjf?"));
//! # Ok::<(), pleach_policies::Problem>(())
//! ```
//!
//! A place is `[LABEL=][deal:|order:]PLACE` ([`place`]). Names come first, then folders, then files, which are recognised by their
//! content. Opening gives a [`PolicySpec`], which makes fresh policies and planners; a daemon asks it for a dealer that works in
//! rounds. Every refusal is a [`Problem`], in the same words at every door.
//!
//! # What is deliberately not here
//! Published planners: they need solvers and random numbers, so programs that simulate register them ([`register`]), as they do with
//! policies of their own, once. The door has their names and says where they run. Simulation and training.

mod artefacts;
mod door;
mod file;
mod names;
mod own;
pub mod place;
mod refusal;
mod rivals;
mod spec;

pub use artefacts::{ARTEFACTS_FILE, Artefact, hash_reader, is_inside, verify};
pub use door::{Door, LABORATORY, register};
pub use own::{OwnPolicy, own_planners, own_policies};
pub use place::label_and_place;
pub use pleach_scheduler::Problem;
pub use rivals::{RIVALS, Rival};
pub use spec::{PolicySpec, requirement_flags};

/// The network that a training run found best, in its folder.
pub const BEST_CHECKPOINT: &str = "network.ckpt";
/// The tree that a distillation gave, in its folder.
pub const TREE_FILE: &str = "tree.json";
/// The formula that a search gave, in its folder.
pub const FORMULA_FILE: &str = "formula.json";
/// What to do about a policy that is not the one that its run made.
pub const USE_THE_FILE: &str =
    "Put the run's own file back, or give this file itself instead of the folder if it is meant.";
/// Every policy that a run's folder may hold.
const IN_FOLDERS: [&str; 3] = [BEST_CHECKPOINT, TREE_FILE, FORMULA_FILE];
