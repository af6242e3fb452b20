//! Distilling as a whole: teachers recovered, recordings read back, trees of scikit-learn.

#![allow(clippy::unwrap_used)]

mod recording;
mod recovers_teachers;
mod scikit_learn;
mod world;
