//! What the daemon writes into a job's `AdminComment`: all that it must know of a job after a restart, kept by Slurm.

use std::fmt;

/// Longest pause before a job that did not start is let go again, s.
pub const PAUSE_S_MAX: i64 = 600;

/// The mark of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Not the daemon's.
    None,
    /// An operator keeps the job from the daemon: `pleach:off`.
    Off,
    /// Held for the daemon.
    Held {
        /// How often it was let go and did not start.
        tries: u32,
        /// Not to be let go again before this, Unix time, s.
        until_s: i64,
    },
    /// Decided, and let go as soon as it is no longer held.
    Decided {
        /// When, Unix time, s.
        since_s: i64,
        /// How often it was let go before and did not start.
        tries: u32,
    },
    /// One that the tables cannot say, let go to where nobody else waits.
    Apart,
}

impl Mark {
    /// A new job's.
    pub const HELD: Mark = Mark::Held { tries: 0, until_s: 0 };

    /// Reads an `AdminComment`. What is damaged is read as held, which is always safe.
    #[must_use]
    pub fn read(text: &str) -> Mark {
        let mut words = words(text);
        let kind = match words.next() {
            Some("pleach:off") => return Mark::Off,
            Some("pleach:apart") => return Mark::Apart,
            Some(kind @ ("pleach:held" | "pleach:decided")) => kind,
            _ => return Mark::None,
        };
        let (mut tries, mut until_s, mut since_s) = (0, 0, None);
        for word in words {
            match word.split_once('=') {
                Some(("tries", value)) => tries = value.parse().unwrap_or(0),
                Some(("until", value)) => until_s = value.parse().unwrap_or(0),
                Some(("at", value)) => since_s = value.parse().ok(),
                _ => {}
            }
        }
        match (kind, since_s) {
            ("pleach:decided", Some(since_s)) => Mark::Decided { since_s, tries },
            _ => Mark::Held { tries, until_s },
        }
    }

    /// What it says of a job that nobody holds, where none are held: marks of a daemon that held jobs say nothing.
    #[must_use]
    pub fn of_unheld(self) -> Mark {
        match self {
            Mark::Off => Mark::Off,
            _ => Mark::None,
        }
    }

    /// Tries so far, and the time before which there is no other.
    #[must_use]
    pub fn tries(self) -> (u32, i64) {
        match self {
            Mark::None | Mark::Off | Mark::Apart => (0, 0),
            Mark::Held { tries, until_s } => (tries, until_s),
            Mark::Decided { tries, .. } => (tries, 0),
        }
    }
}

impl Mark {
    /// As [`Mark::tries`], at Unix time `now_s`: a pause that is longer than any comes from a clock that was ahead, and is over.
    #[must_use]
    pub fn tries_at(self, now_s: i64) -> (u32, i64) {
        let (tries, until_s) = self.tries();
        let is_possible = until_s <= now_s.saturating_add(PAUSE_S_MAX);
        (tries, if is_possible { until_s } else { 0 })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::None => Ok(()),
            Mark::Off => write!(out, "pleach:off"),
            Mark::Apart => write!(out, "pleach:apart"),
            Mark::Held { tries, until_s } => write!(out, "pleach:held;tries={tries};until={until_s}"),
            Mark::Decided { since_s, tries } => write!(out, "pleach:decided;at={since_s};tries={tries}"),
        }
    }
}

/// Words of a mark. A mark that goes through standard input has no blanks: those of before had.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ';']).filter(|word| !word.is_empty())
}

/// The nodes that a job's user names, as a list: what the mark says, where nodes that the daemon named may stand in their place.
///
/// `named` is what Slurm has. Who has never been let go, or was taken back since, has there what its user named.
#[must_use]
pub fn wish<'a>(mark: &'a str, named: &'a str) -> &'a str {
    let of_mark = words(mark).find_map(|word| word.strip_prefix("req="));
    match Mark::read(mark) {
        Mark::Held { .. } if is_pinned(mark) => of_mark.unwrap_or(""),
        Mark::None | Mark::Off | Mark::Apart | Mark::Held { tries: 0, .. } => named,
        // Marks of before say nothing of it; then what stands there is the daemon's.
        Mark::Held { .. } if of_mark.is_some() => named,
        _ => of_mark.unwrap_or(""),
    }
}

/// The nodes that a job's user shuns, as a list, where the daemon shuns more for it; none where it does not.
#[must_use]
pub fn shuns(mark: &str) -> Option<&str> {
    words(mark).find_map(|word| word.strip_prefix("exc="))
}

/// Whether a job with [`Mark::Apart`] was let go to no nodes set aside, but last.
#[must_use]
pub fn is_last(mark: &str) -> bool {
    words(mark).any(|word| word == "last")
}

/// Whether a job that is held with a mark is held by its user, by Slurm's reason. Slurm says so too of a job that the script held as it
/// came, whose mark is none that the daemon writes; whatever the daemon marks it holds as an operator.
#[must_use]
pub fn is_held_by_user(mark: &str, reason: &str) -> bool {
    let has = |key: &str| words(mark).any(|word| word.starts_with(key));
    let is_written = match Mark::read(mark) {
        Mark::None => words(mark).count() > 1,
        Mark::Off => false,
        Mark::Held { .. } => has("tries=") && has("until=") || has("at="),
        Mark::Decided { .. } => true,
        Mark::Apart => has("exc=") || is_last(mark),
    };
    reason.starts_with("JobHeldUser") && is_written
}

/// Whether nodes that the daemon named stand there although the job is not let go: it was stopped while it ran.
#[must_use]
pub fn is_pinned(mark: &str) -> bool {
    words(mark).any(|word| word == "pinned")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_that_a_user_names_are_never_taken_for_the_daemons_own() {
        assert_eq!(wish("(null)", "g1"), "g1");
        assert_eq!(wish("pleach:held", "g1"), "g1");
        assert_eq!(wish("pleach:held tries=0 until=0", "(null)"), "(null)");
        assert_eq!(wish("pleach:decided at=5 tries=0 req=g1", "g1"), "g1");
        assert_eq!(wish("pleach:decided at=5 tries=0", "g2"), "");
        assert_eq!(wish("pleach:held;tries=0;until=0;pinned;req=", "g2"), "");
        assert_eq!(
            wish("pleach:held tries=1 until=9 req=", "g7"),
            "g7",
            "he named it since"
        );
        assert_eq!(
            wish("pleach:held tries=1 until=9", "g2"),
            "",
            "written by a daemon of before"
        );
        assert_eq!(Mark::read("pleach:held tries=1 until=9 req=g1").tries(), (1, 9));
    }

    #[test]
    fn who_was_held_as_he_came_is_not_held_by_his_user() {
        assert!(!is_held_by_user("pleach:held", "JobHeldUser"));
        assert!(is_held_by_user("pleach:decided;at=5;tries=0", "JobHeldUser"));
        assert!(is_held_by_user("pleach:held;tries=1;until=9;req=", "JobHeldUser"));
        for edited in [
            "pleach:held by ops",
            "pleach:held tries=0",
            "pleach:held;see ticket 7",
            "pleach:apart please",
        ] {
            assert!(
                !is_held_by_user(edited, "JobHeldUser"),
                "{edited}: an operator's words are no daemon's"
            );
        }
        assert!(!is_held_by_user("pleach:held;tries=0;until=0", "JobHeldAdmin"));
    }

    #[test]
    fn marks_come_back_as_they_were_written_and_damage_means_held() {
        assert_eq!(shuns("pleach:apart;exc=g[1-2]"), Some("g[1-2]"));
        assert_eq!(
            (shuns("pleach:apart;exc="), shuns("pleach:apart;last")),
            (Some(""), None)
        );
        for mark in [
            Mark::Off,
            Mark::HELD,
            Mark::Apart,
            Mark::Held {
                tries: 3,
                until_s: 1_795_384_544,
            },
            Mark::Decided {
                since_s: 1_795_384_544,
                tries: 2,
            },
        ] {
            assert_eq!(Mark::read(&mark.to_string()), mark);
        }
        assert_eq!(Mark::read("(null)"), Mark::None);
        assert_eq!(Mark::read("pleach"), Mark::None);
        assert_eq!(Mark::read("pleach:decided at=x"), Mark::HELD);
        assert_eq!(Mark::read("pleach:held"), Mark::HELD);
    }
}
