//! How GPUs are dealt out, whatever the order: when, which jobs may be stopped or moved, and which may share.

use pleach_scheduler::settings;

settings! {
    /// Rules of a deal. Values without a source were tuned on validation lists (lab/notes/tournament.md says which and how).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DealingRules {
        /// Least time between two deals, s, 0 to 1e6; until then free GPUs are filled and no job is stopped.
        pub deal_min_s: f64 = 60.0, in 0.0..=1e6;
        /// Time after which GPUs are dealt anew although nothing has happened, while a job waits or could run better, s,
        /// 1 to 1e7.
        pub deal_max_s: f64 = 1200.0, in 1.0..=1e7;
        /// A job that got no GPUs joins one that did only where their speeds, as parts of their speeds alone, add up to more.
        /// 1 to 2.
        pub pack_above: f64 = 1.1, in 1.0..=2.0;
        /// A gang leaves a loose seat for a tight one when what the loose one has cost it comes to so many restarts. 0 to 1000.
        /// 1 is the rule of the ski rental: it never loses more than twice what foresight would.
        pub reseat_loss: f64 = 1.0, in 0.0..=1e3;
        /// A job that was started runs for so many times the cost of its restart before a deal stops, moves or resizes it: without it
        /// two jobs with like claims may stop each other in turn. 0 to 1000; 0 = from the first deal on.
        pub stint: f64 = 0.0, in 0.0..=1e3;
        /// Whether running jobs may be stopped or moved. Without, deals only fill.
        pub preempt: bool = true;
        /// Whether gangs are seated anew where their seat is loose, and smaller ones make room for larger ones.
        pub reseat: bool = true;
        /// Whether two jobs may have the same GPUs.
        pub share: bool = true;
        /// Whether CPU and host memory are given out by what jobs can use. Without, they get what they asked for.
        pub cores: bool = true;
        /// Whether elastic jobs may get other numbers of GPUs than they asked for.
        pub resize: bool = true;
    }
}
