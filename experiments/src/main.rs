//! The `pleach` command line.

fn main() {}
