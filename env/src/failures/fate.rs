//! What becomes of a job, drawn before its schedule.

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// It does all its work.
    Passed,
    /// Its user kills it when this part of its work is done. (0, 1]
    Killed(f64),
    /// It fails for good when this part of its work is done. (0, 1]
    Failed(f64),
    /// Its last trial fails and it is given up.
    Unsuccessful,
}

/// What becomes of a job, whatever the schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fate {
    /// How it ends.
    pub end: End,
    /// Index into [`super::reasons::REASONS`] of its failed trials.
    pub reason: Option<u8>,
    /// Failed trials before the end; 0 exactly where there is no reason.
    pub num_failed_trials: u32,
}
