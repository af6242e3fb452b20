//! One self-contained HTML page about an evaluation: table, plots, tree, and what made it.
//!
//! No network, no script, no font to load: the page opens from a mail attachment in ten years. It follows the reader's
//! light or dark setting, tells series apart by colour *and* dash and order, and its size is bounded: plots are thinned to
//! a fixed number of points. Every text that comes from outside is escaped.

mod cdf;
pub(crate) mod learning;
pub mod page;
pub(crate) mod ratio;
mod tree_picture;
pub(crate) mod utilisation;

use crate::evaluate::results::Results;
use crate::plot::frame::SERIES_MAX;
use crate::plot::look::series_of;

pub use learning::LearningCurve;
pub use page::Report;

/// The policies that plots show, with their looks.
pub(crate) fn looks(results: &Results) -> Vec<(usize, &str)> {
    let names: Vec<&str> = results.shown().take(SERIES_MAX).map(|(name, _)| name).collect();
    series_of(names.iter().copied()).into_iter().zip(names).collect()
}
