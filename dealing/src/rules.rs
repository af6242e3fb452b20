//! How GPUs are dealt out, whatever the order: when, who may be stopped or moved, and who may share.

use pleach_scheduler::Problem;
use serde::{Deserialize, Serialize};

use crate::settings::check;

/// Rules of a deal. Values without a source were tuned on validation lists (lab/notes/tournament.md says which and how).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DealingRules {
    /// Least time between two deals, s, 0 to 1e6; until then free GPUs are filled and nobody is stopped.
    pub deal_min_s: f64,
    /// Time after which GPUs are dealt anew although nothing has happened, while somebody waits or could run better, s,
    /// 1 to 1e7.
    pub deal_max_s: f64,
    /// A job that got no GPUs joins one that did only where their speeds, as parts of their speeds alone, add up to more.
    /// 1 to 2.
    pub pack_above: f64,
    /// A gang leaves a loose seat for a tight one when what the loose one has cost it comes to so many restarts. 0 to 1000.
    /// 1 is the rule of the ski rental: it never loses more than twice what foresight would.
    pub reseat_loss: f64,
    /// A job that was started runs for so many times the cost of its restart before a deal stops, moves or resizes it: without it
    /// two jobs with like claims may stop each other in turn. 0 to 1000; 0 = from the first deal on.
    pub stint: f64,
    /// Whether running jobs may be stopped or moved. Without, deals only fill.
    pub preempt: bool,
    /// Whether gangs are seated anew where their seat is loose, and smaller ones make room for larger ones.
    pub reseat: bool,
    /// Whether two jobs may have the same GPUs.
    pub share: bool,
    /// Whether CPU and host memory are given out by what jobs can use. Without, they get what they asked for.
    pub cores: bool,
    /// Whether elastic jobs may get other numbers of GPUs than they asked for.
    pub resize: bool,
}

impl Default for DealingRules {
    fn default() -> DealingRules {
        DealingRules {
            deal_min_s: 60.0,
            deal_max_s: 1200.0,
            pack_above: 1.1,
            reseat_loss: 1.0,
            stint: 0.0,
            preempt: true,
            reseat: true,
            share: true,
            cores: true,
            resize: true,
        }
    }
}

impl DealingRules {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting out of its range.
    pub fn validate(&self, name: &str) -> Result<(), Problem> {
        let ranges = [
            ("deal_min_s", self.deal_min_s, 0.0, 1e6, "0 to 1e6"),
            ("deal_max_s", self.deal_max_s, 1.0, 1e7, "1 to 1e7"),
            ("pack_above", self.pack_above, 1.0, 2.0, "1 to 2"),
            ("reseat_loss", self.reseat_loss, 0.0, 1e3, "0 to 1000"),
            ("stint", self.stint, 0.0, 1e3, "0 to 1000"),
        ];
        for (key, value, least, most, allowed) in ranges {
            let ok = (least..=most).contains(&value);
            check(name, &format!("rules.{key}"), value, ok, allowed)?;
        }
        Ok(())
    }
}
