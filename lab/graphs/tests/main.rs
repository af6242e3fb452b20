//! Graph jobs: recorded runs of another simulator, cases worked by hand, and the world with its verbs.

#![allow(clippy::unwrap_used)]

mod by_hand;
mod drawn;
mod files;
mod messages;
mod recorded;
mod steps;
mod world;
