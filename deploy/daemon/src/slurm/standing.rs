//! Who holds a pending job, as far as that is the daemon's affair.

use super::mark::{Mark, is_last};

/// Reasons for which Slurm itself would start a job later: it may be held and decided by the daemon.
pub(super) const OPEN_REASONS: [&str; 6] = [
    "None",
    "Priority",
    "Resources",
    "ReqNodeNotAvail",
    "NodeDown",
    "Cleaning",
];

/// Where a pending job stands that is the daemon's to hold, should the tables not be able to say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stands {
    pub(crate) standing: Standing,
    /// Whether it may start now for all that its user has said: a begin time, a dependency.
    pub(crate) may_begin: bool,
    /// Whether a daemon has marked it.
    pub(crate) is_marked: bool,
}

/// Who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Nobody holds it.
    Free,
    /// Held for the daemon.
    Held,
    /// Let go by the daemon to nodes that are not enough, as Slurm has found.
    Refused,
    /// Let go by the daemon.
    LetGo,
}

/// Where a job that the tables cannot say stands; none where it is not the daemon's to hold: its user or an operator holds it, or
/// Slurm has a reason of its own.
pub(super) fn standing(is_held: bool, (mark, text): (Mark, &str), reason: &str) -> Option<Standing> {
    match (is_held, mark) {
        (true, Mark::Apart) if reason.starts_with("BadConstraints") => {
            (!is_last(text)).then_some(Standing::Refused)
        }
        (true, Mark::Held { .. } | Mark::Decided { .. } | Mark::Apart) => Some(Standing::Held),
        (true, _) => None,
        (false, Mark::Apart) => Some(Standing::LetGo),
        (false, Mark::Held { .. } | Mark::Decided { .. }) => Some(Standing::Free),
        (false, _) => {
            let is_open = reason == "BeginTime" || OPEN_REASONS.iter().any(|open| reason.starts_with(open));
            is_open.then_some(Standing::Free)
        }
    }
}
