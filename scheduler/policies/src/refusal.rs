//! Refusals that several doors share.

use pleach_dealing::RoundDealer;
use pleach_scheduler::Problem;

/// A policy that chooses what no daemon carries out: `resize a running job`.
pub(crate) fn not_in_daemons(name: &str, phrase: &str) -> Problem {
    let allowed = "on a cluster a policy that chooses what its daemon carries out";
    let hint =
        format!("It needs {phrase}, which no daemon carries out: the simulator does (pleach evaluate).");
    Problem::new("policy", name, allowed, hint)
}

/// A planner that no daemon can drive a cluster with.
pub(crate) fn alone(name: &str) -> Problem {
    let allowed = format!(
        "on a cluster a heuristic, a dealer ({}), a formula, a tree or a network",
        RoundDealer::NAMES.join(", ")
    );
    let hint = "It plans in the simulator alone (pleach evaluate).";
    Problem::new("policy", name, allowed, hint)
}

/// A planner of the laboratory in a program without it.
pub(crate) fn without_laboratory(name: &str) -> Problem {
    let allowed = "a policy of this program, which was built without the laboratory";
    let hint = "Its planners come with the feature `lab`, which is on by default: cargo build --release -p pleach-cli.";
    Problem::new("policy", name, allowed, hint)
}
