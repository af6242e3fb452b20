//! Marks in the `AdminComment` of a job: the one by which an operator keeps it away (`pleach:off`), and those of daemons of before
//! that held jobs. What these have left behind is given back.

/// Begins the forecast of its start that a job's user reads.
pub const FORETOLD: &str = "pleach:median-wait-";

/// What the present daemon has done to nodes of jobs, by their names: it named them, or, with the list that the user shuns, closed
/// others.
pub(crate) type Names = std::collections::BTreeMap<String, Option<String>>;

/// The mark of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No daemon's.
    None,
    /// An operator keeps the job from the daemon: `pleach:off`.
    Off,
    /// A daemon has held it.
    Held,
}

impl Mark {
    /// Reads an `AdminComment`. What is damaged is read as held.
    #[must_use]
    pub fn read(text: &str) -> Mark {
        match words(text).next() {
            Some("pleach:off") => Mark::Off,
            Some("pleach:held" | "pleach:decided" | "pleach:apart") => Mark::Held,
            _ => Mark::None,
        }
    }
}

/// Words of a mark.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ';']).filter(|word| !word.is_empty())
}

fn value<'a>(mark: &'a str, key: &str) -> Option<&'a str> {
    words(mark).find_map(|word| word.strip_prefix(key))
}

/// The nodes that a job's user names, as a list: what the mark says, where nodes that a daemon named may stand in their place.
/// `named` is what Slurm has.
#[must_use]
pub fn wish<'a>(mark: &'a str, named: &'a str) -> &'a str {
    let own = value(mark, "req=");
    let is_of_daemon = match words(mark).next() {
        Some("pleach:decided") => true,
        Some("pleach:held") => {
            let was_let_go = value(mark, "tries=").is_some_and(|tries| tries != "0");
            words(mark).any(|word| word == "pinned") || own.is_none() && was_let_go
        }
        _ => false,
    };
    if is_of_daemon { own.unwrap_or("") } else { named }
}

/// The nodes that a job's user shuns, as a list, where a daemon made it shun more; none where it did not.
#[must_use]
pub fn shuns(mark: &str) -> Option<&str> {
    value(mark, "exc=")
}

/// Whether a job that is held with a mark is held by its user, by Slurm's reason. Slurm says so too of a job that a script held as
/// it came, whose mark is no whole one of a daemon's; daemons held as an operator does.
#[must_use]
pub fn is_held_by_user(mark: &str, reason: &str) -> bool {
    let is_written = value(mark, "at=").is_some()
        || value(mark, "tries=").is_some() && value(mark, "until=").is_some()
        || shuns(mark).is_some()
        || words(mark).any(|word| word == "last");
    reason.starts_with("JobHeldUser") && is_written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_that_a_user_names_are_never_taken_for_a_daemons() {
        for (mark, named, wished) in [
            ("(null)", "g1", "g1"),
            ("pleach:held", "g1", "g1"),
            ("pleach:held tries=0 until=0", "(null)", "(null)"),
            ("pleach:decided at=5 tries=0 req=g1", "g1", "g1"),
            ("pleach:decided at=5 tries=0", "g2", ""),
            ("pleach:held;tries=0;until=0;pinned;req=", "g2", ""),
            ("pleach:held tries=1 until=9 req=", "g7", "g7"),
            ("pleach:held tries=1 until=9", "g2", ""),
        ] {
            assert_eq!(wish(mark, named), wished, "{mark}");
        }
        assert_eq!(shuns("pleach:apart;exc=g[1-2]"), Some("g[1-2]"));
        assert_eq!(
            (shuns("pleach:apart;exc="), shuns("pleach:apart;last")),
            (Some(""), None)
        );
    }

    #[test]
    fn a_job_that_a_script_held_and_one_with_an_operators_words_are_not_held_by_their_users() {
        for mark in [
            "pleach:decided;at=5;tries=0",
            "pleach:held;tries=1;until=9;req=",
            "pleach:apart;last",
        ] {
            assert!(is_held_by_user(mark, "JobHeldUser"), "{mark}");
            assert!(!is_held_by_user(mark, "JobHeldAdmin"), "{mark}");
            assert_eq!(Mark::read(mark), Mark::Held);
        }
        for edited in [
            "pleach:held",
            "pleach:held by ops",
            "pleach:held tries=0",
            "pleach:held;see ticket 7",
            "pleach:apart please",
        ] {
            assert!(!is_held_by_user(edited, "JobHeldUser"), "{edited}");
            assert_eq!(Mark::read(edited), Mark::Held);
        }
        assert_eq!(
            (Mark::read("pleach:off"), Mark::read("pleach")),
            (Mark::Off, Mark::None)
        );
    }
}
