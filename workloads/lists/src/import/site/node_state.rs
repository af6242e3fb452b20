//! Whether a node can run jobs, by the words of a batch system.

/// Why a node runs no jobs at the time of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Out {
    /// It does not exist yet.
    Future,
    /// It does not answer, or failed.
    Down,
    /// It takes no new jobs.
    Drained,
    /// Its kubelet does not answer.
    NotReady,
    /// It takes no new pods.
    Cordoned,
}

impl Out {
    pub(super) fn word(self) -> &'static str {
        match self {
            Out::Future => "FUTURE",
            Out::Down => "down",
            Out::Drained => "drained",
            Out::NotReady => "NotReady",
            Out::Cordoned => "cordoned",
        }
    }

    /// Of a state as Slurm prints it, `DOWN*+NOT_RESPONDING`, `IDLE+DRAIN`, `drng`, with flags as signs or as words; none for a node
    /// that takes jobs. A cloud node that is powered down is started when a job comes.
    ///
    /// # Source
    /// `sinfo(1)`, NODE STATE CODES, and `scontrol(1)`, Slurm 21.08 to 26.05.
    pub(super) fn of_slurm(state: &str) -> Option<Out> {
        let words = || {
            state.split(['+', ',', ' ']).map(|word| {
                let is_silent = word.contains('*');
                let word = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                (word.to_ascii_lowercase(), is_silent)
            })
        };
        let any = |known: &[&str]| words().any(|(word, _)| known.contains(&word.as_str()));
        if any(&["future", "futr"]) {
            Some(Out::Future)
        } else if any(&[
            "down",
            "fail",
            "failg",
            "failing",
            "error",
            "unknown",
            "unk",
            "inval",
            "invalid_reg",
        ]) || any(&["not_responding", "no_respond"])
            || words().any(|(_, is_silent)| is_silent)
        {
            Some(Out::Down)
        } else if any(&["drain", "drained", "draining", "drng"]) {
            Some(Out::Drained)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_slurm_say_whether_a_node_takes_jobs() {
        for (text, out) in [
            ("DOWN*+NOT_RESPONDING", Some(Out::Down)),
            ("IDLE+DRAIN", Some(Out::Drained)),
            ("MIXED+DRAIN", Some(Out::Drained)),
            ("DOWN+DRAIN", Some(Out::Down)),
            ("FUTURE", Some(Out::Future)),
            ("drng", Some(Out::Drained)),
            ("down*", Some(Out::Down)),
            ("idle*", Some(Out::Down)),
            ("idle~", None),
            ("mix-", None),
            ("IDLE+CLOUD+POWERED_DOWN", None),
            ("ALLOCATED+PLANNED", None),
            ("maint", None),
            ("", None),
        ] {
            assert_eq!(Out::of_slurm(text), out, "{text}");
        }
    }
}
