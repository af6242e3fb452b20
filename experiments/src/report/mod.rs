//! One self-contained HTML page about an evaluation: table, plots, tree, and what made it.
//!
//! No network, no script, no font to load: the page opens from a mail attachment in ten years. It follows the reader's
//! light or dark setting, tells series apart by colour *and* dash and order, and its size is bounded: plots are thinned to
//! a fixed number of points. Every text that comes from outside is escaped.

mod cdf;
pub(crate) mod learning;
pub mod page;
pub(crate) mod ratio;
pub(crate) mod utilisation;

pub use learning::LearningCurve;
pub use page::Report;
