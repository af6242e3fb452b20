//! Pleach experiments.
