//! What there is to win on lists of jobs, and what part of it a policy wins.
//!
//! A ratio to the best rule says little where nothing can be won, and hides much where a lot can. So a table of what was learned also
//! has what knowing run times would bring, what a search that sees each list finds, and what no schedule beats.

mod foresight;
mod room;
mod table;

pub use room::{Room, Share, rules, strongest};
pub use table::table;
