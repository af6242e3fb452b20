//! Contracts of the whole workspace: see `tests/`.
