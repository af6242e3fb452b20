//! Pleach distill.
