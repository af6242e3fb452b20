//! The feature schema: every number that a network or a tree may read, with unit, range and scale, and what is known of it.
//!
//! A schema is a list of columns that grows at its end only. The number of a column is its place in that list; it never changes, so
//! trees, exports and views may hold on to it. A [`View`] is a frozen beginning of the list: what an environment shows and what a
//! network reads. A joined row has the columns by their numbers. A policy file carries the lines of the columns that it reads and is
//! refused where one of them is another one here. Scales are fixed here and not learned from data, so the network in training and
//! the tree in production see the same numbers. `pleach policies --features` prints this table.

mod columns;
pub(crate) mod decision;
mod feature;
mod law;
mod reads;
mod schema;
#[cfg(debug_assertions)]
#[doc(hidden)]
#[path = "features/tests/toy.rs"]
pub mod toy;

pub use columns::ColumnSet;
pub(crate) use columns::{All, Wanted};
pub use decision::{CONTEXT_WIDTH, DECISION_1, ROW_WIDTH};
pub use feature::{Among, Control, Feature, Group, Kinds, Relation, RowKind, Scale, Stimulus, log10_1p};
pub use law::Law;
pub(crate) use reads::clip;
pub(crate) use schema::hash_of;
pub use schema::{FeatureSchema, View};

#[cfg(test)]
mod tests;
