//! Conventions of the whole workspace that files and manifests show: seconds to check, hence before all else.

#![allow(clippy::unwrap_used)]

mod arrows;
mod budgets;
mod cargo;
mod circles;
mod documents;
mod figures;
mod hardening;
mod includes;
mod licences;
mod plain_english;
mod programs;
mod shared_artefacts;
mod sizes;
