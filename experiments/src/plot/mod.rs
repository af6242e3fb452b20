//! Plots as inline SVG: the same bytes on every machine, no script, no font, a bounded size. Every page draws with this kit.
//!
//! [`Frame`](frame::Frame) is a plot with two axes to draw lines, areas and levels into; `bars` and `distribution` draw
//! whole plots; `look` gives a policy its
//! colour; [`text`] escapes what comes from outside; `series` makes long series short.

pub mod axis;
pub(crate) mod bars;
pub(crate) mod distribution;
pub mod frame;
pub(crate) mod look;
pub(crate) mod series;
pub mod text;
