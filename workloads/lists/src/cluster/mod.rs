//! Clusters as people write them: a short form on a command line, a description with holes, a file with mistakes.
//!
//! What is not given is assumed and reported in one line ([`assume`]); all mistakes are reported at once ([`read`]).

mod assumed;
mod faults;
mod moved;
mod short;

pub use assumed::assume;
pub(crate) use faults::check_several;
pub use faults::{json_table, read, read_table};
pub use short::{is_short, of_short};
