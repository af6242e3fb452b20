//! What people and batch systems see of the program `pleach`, through the program itself.

#![allow(clippy::unwrap_used)]

mod command_line;
mod goldens;
mod trust;
