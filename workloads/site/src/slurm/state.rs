//! What words for the state of a job mean.

use serde::{Deserialize, Serialize};

/// What became of a job, or of one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It did what it was meant to do.
    Completed,
    /// It ended with an error of its own or of the hardware.
    Failed,
    /// Its user, a limit or a rule of the site ended it.
    Killed,
    /// It ended; how is not known.
    Unknown,
    /// It was stopped and waits to run again.
    Requeued,
    /// It runs, or is suspended.
    Running,
    /// It has not begun.
    Waiting,
}

impl Fate {
    /// The word of a batch system in any letters; what stands behind a blank (`CANCELLED by 1000`) or a `+` does not count.
    ///
    /// # Source
    /// Slurm: `sacct(1)`, JOB STATE CODES. LSF: `bjobs(1)`. PBS: `qstat(1B)`. Kubernetes: phases of pods, conditions of Jobs.
    #[must_use]
    pub fn of(text: &str) -> Option<Fate> {
        let word = text
            .split([' ', '+', ','])
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        let fate = match word.as_str() {
            "COMPLETED" | "CD" | "DONE" | "FINISHED" | "SUCCEEDED" | "SUCCESS" | "COMPLETE" | "PASS"
            | "OK" => Fate::Completed,
            "FAILED" | "F" | "NODE_FAIL" | "NF" | "OUT_OF_MEMORY" | "OOM" | "BOOT_FAIL" | "BF" | "EXIT"
            | "ERROR" | "LAUNCH_FAILED" => Fate::Failed,
            "CANCELLED" | "CA" | "TIMEOUT" | "TO" | "DEADLINE" | "DL" | "PREEMPTED" | "PR" | "REVOKED"
            | "KILLED" | "ABORTED" | "CANCELED" | "EVICTED" => Fate::Killed,
            "REQUEUED" | "RQ" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" => Fate::Requeued,
            "RUNNING" | "R" | "SUSPENDED" | "S" | "COMPLETING" | "CG" | "RESIZING" | "RS" | "STAGE_OUT"
            | "SIGNALING" | "STOPPED" | "RUN" | "ACTIVE" => Fate::Running,
            "PENDING" | "PD" | "CONFIGURING" | "CF" | "RESV_DEL_HOLD" | "PEND" | "QUEUED" | "WAITING"
            | "Q" | "H" => Fate::Waiting,
            "UNKNOWN" | "" => Fate::Unknown,
            _ => return None,
        };
        Some(fate)
    }
}

/// Whether the cluster is the reason for which a run ended, and not the job: it may run again, and says nothing of how long it takes.
#[must_use]
pub fn is_cut(text: &str) -> bool {
    let word = text.split([' ', '+']).next().unwrap_or_default();
    matches!(word, "BOOT_FAIL" | "NODE_FAIL" | "PREEMPTED" | "REVOKED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_batch_systems_have_a_meaning() {
        for (text, fate) in [
            ("CANCELLED by 1000", Fate::Killed),
            ("CANCELLED+", Fate::Killed),
            ("COMPLETED", Fate::Completed),
            ("Succeeded", Fate::Completed),
            ("NODE_FAIL", Fate::Failed),
            ("REQUEUED", Fate::Requeued),
            ("RUNNING", Fate::Running),
            ("PENDING", Fate::Waiting),
        ] {
            assert_eq!(Fate::of(text), Some(fate), "{text}");
        }
        assert_eq!(Fate::of("EXPLODED"), None);
        assert!(is_cut("NODE_FAIL") && is_cut("PREEMPTED by 7") && !is_cut("FAILED"));
    }
}
