//! Conventions of the workspace that its files alone show: see `tests/`.
