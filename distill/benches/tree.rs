//! Time of one tree decision.
fn main() {}
