//! Names that are not there.

use pleach_scheduler::Problem;

pub(super) fn unknown(key: &str, name: &str, allowed: &[&str]) -> Problem {
    Problem::new(key, name, allowed.join(", "), "Take one of them.")
}
