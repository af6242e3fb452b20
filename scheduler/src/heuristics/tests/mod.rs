//! What the heuristics do, worked by hand and checked against slow oracles.
