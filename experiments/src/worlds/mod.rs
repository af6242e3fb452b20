//! Worlds and verbs: what is compared, searched in, learned in, explained and described. A world is a folder that implements [`World`]; a verb is
//! written once over it, and [`AnyWorld`] has them all.

mod any;
pub mod calls;
mod compare;
mod compared;
pub mod deals;
mod describe;
mod environments;
mod explain;
pub mod jobs;
mod learn;
mod own;
mod race;
pub mod requests;
mod search;
mod server;
pub mod service;
mod settings;
#[cfg(test)]
mod tests;
mod train;
mod vector;
mod world;

use std::path::Path;

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::tree::{MAX_BYTES, Tree, Verdict};
use pleach_serving::llm;

use self::own::own_rooms;
use crate::error::Error;
use crate::run_folder::atomic_file;

pub use any::{AnyWorld, Kind, kinds, open, opened, register};
pub use compare::{compare, compare_on};
pub use compared::{At, Beside, Compared, Comparing};
pub use environments::{
    config, describe_environment, environment_settings, serving_environment, serving_ids,
};
pub use explain::{DecisionTold, RowTold, explain};
pub use own::{Opened, OwnRoom, Registered, register as register_rooms};
pub use pleach_distill::search::{Branch, SearchConfig};
pub use race::{by_hand, column, nodes, split};
pub use search::{Searched, Searching, search};
pub use settings::{Settings, not_read, of_pairs, read};
pub use train::{Training, train};
pub use world::{Description, Draw, Habits, Loss, Player, Policy, Turn, Verb, Without, World, tree_over};

/// All rules with a name that decide in worlds, one after the other.
pub fn policies() -> impl Iterator<Item = &'static Info> {
    let own = own_rooms().iter().flat_map(|room| room.policies);
    let worlds = kinds().map(|kind| kind.policies);
    worlds.chain(own.copied()).flatten()
}

/// A tree of a world, and what is known for certain of it by the property's name.
pub struct Certified {
    /// The tree.
    pub tree: Tree,
    /// What is known, by name.
    pub verdicts: Vec<(String, Verdict)>,
}

/// A tree of a world that is not of jobs; none where the file is of something else.
///
/// # Errors
/// A file that says that it is one, and is not.
pub fn world_tree(path: &Path) -> Result<Option<Tree>, Error> {
    let own = own_rooms().iter().flat_map(|room| room.schemas.iter().copied());
    let text = atomic_file::read_text(path, MAX_BYTES).unwrap_or_default();
    let rows = Tree::rows_of(&text);
    let schema = kinds()
        .map(|kind| kind.schema)
        .chain(own)
        .find(|schema| schema.name == rows);
    schema.map(|schema| tree_over(schema, path)).transpose()
}

/// The same with what is known for certain of it.
///
/// # Errors
/// As [`world_tree`].
pub fn certified(path: &Path) -> Result<Option<Certified>, Error> {
    let Some(tree) = world_tree(path)? else {
        return Ok(None);
    };
    let verdicts = if tree.schema().name == llm::SCHEMA.name {
        llm::certificates(&tree)
    } else {
        let all = tree.certify().into_iter();
        all.map(|own| (own.property.to_string(), own.verdict)).collect()
    };
    Ok(Some(Certified { tree, verdicts }))
}
