//! What can go wrong with a network, in words that all its files share.

use pleach_scheduler::Problem;

/// Largest value of a rate, weight or time that has no bound of its own. *Ours*: with larger ones nothing stays finite.
pub const SETTING_MAX: f64 = 1e12;

/// Where the settings and contracts of networks are described.
pub const SEE: &str = "See docs/learning.md.";

/// A setting that cannot be used: its key, the value found, what is allowed.
pub fn refused(key: &str, value: impl ToString, allowed: &str) -> Problem {
    Problem::new(key, value, allowed, SEE)
}

/// Two sides that must agree and do not: feature schemas, sizes of observations, lengths of lists.
pub fn unfit(what: &str, expected: impl ToString, found: impl ToString) -> Problem {
    Problem::contract(what, expected, found, SEE)
}

/// A network of operators that cannot be run.
pub(crate) fn graph(reason: impl ToString) -> Problem {
    Problem::data("the network's operators", reason)
}
