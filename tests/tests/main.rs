//! Contracts of the whole workspace.

#![allow(clippy::unwrap_used)]

mod arrows;
mod circles;
mod documents;
mod doors;
mod goldens;
mod licences;
mod programs;
mod shared_artefacts;
mod sizes;
