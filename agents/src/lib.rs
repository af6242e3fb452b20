//! Pleach agents.
