//! Workspace contracts.
