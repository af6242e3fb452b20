//! Contracts of the whole workspace.

#![allow(clippy::unwrap_used)]

mod doors;
mod feature_page;
mod goldens;
mod hostile;
mod operator;
