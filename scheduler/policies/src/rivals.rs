//! Named rivals: rules by hand and results of short searches, as files that any user could have written. A result counts as learned
//! where it is ahead of them.
//!
//! # Source
//! Ours. Thresholds and weights were typed in or are the best of some thirty draws, on lists other than those that a table judges on.

use pleach_scheduler::Problem;
use pleach_scheduler::formula::ScoreFormula;
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::tree::Tree;
use serde_json::Value;

use crate::spec::PolicySpec;

/// A policy file that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// Name and words for tables.
    pub info: Info,
    /// The file.
    text: &'static str,
}

macro_rules! rivals {
    ($($name:literal, $family:literal, $citation:literal, $knows:literal, $decides:literal;)*) => {
        /// All rivals, in the order in which tables list them.
        pub const RIVALS: &[Rival] = &[$(Rival {
            info: Info { name: $name, family: $family, citation: $citation, knows: $knows, decides: $decides },
            text: include_str!(concat!("rivals/", $name, ".json")),
        }),*];
    };
}

rivals! {
    "best-gavel-multi", "heterogeneity-aware, rule", "by hand; thresholds from 30 draws on other lists", "run time estimate, speed on each type", "the shortest job at 0.85 of its best speed; slower where it holds GPUs for less than 38 h and waiting gains less than 39 %, or under a queue for less than 18 h";
    "gain-or-wait", "heterogeneity-aware, rule", "by hand", "run time estimate, speed on each type", "the shortest job at 0.8 of its best speed; slower where it holds GPUs for less than 22.6 h and waiting gains less than 30 %";
    "five-thresholds", "heterogeneity-aware, rule", "by hand, after the tree of the quickstart", "run time estimate, speed on each type", "wide and short jobs at 0.8 of their best speed; slower where they hold GPUs for less than 22.6 h";
    "shortest-hold", "heterogeneity-aware, rule", "by hand", "run time estimate, speed on each type", "the job that holds its GPUs for the shortest time; slower than 0.8 of its best speed for less than 22.6 h only";
    "refuse-slow-day", "heterogeneity-aware, rule", "by hand", "arrival, gang size, speed on each type", "the widest job; slower than 0.65 of its best speed only after a day's wait";
    "best-elastic", "elastic, rule", "by hand; thresholds from 30 draws on other lists", "run time estimate, scaling", "the shortest job, under a queue at efficient sizes only";
    "gp-gavel", "heterogeneity-aware, formula", "genetic programming, 24 generations of 20", "run time estimate, speed on each type", "wide waits and short jobs at 0.8 of their best speed; slower where what is left is small";
    "linear-gavel", "heterogeneity-aware, formula", "least squares of a network's scores, without a search", "run time estimate, speed on each type", "the largest sum of 23 weighted columns";
    "gp-share", "sharing, formula", "genetic programming, 480 programs tried", "run time estimate, speed beside others", "the shortest job; beside another where both speeds add up to 1.35; long jobs wait for a tight place";
    "share-or-tight", "sharing, formula", "by hand", "run time estimate, speed beside others", "least GPU time; beside another where both speeds add up to 1.35; long jobs wait for a tight place, GPUs are held for the first third";
    "index-mix", "dealing, learned", "evolution on six kinds of lists with wide and tiny ones among them, 130 CPU s", "attained service, run time estimate", "as index, by other weights";
}

impl Rival {
    /// The rival of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Rival> {
        RIVALS.iter().find(|rival| rival.info.name == name)
    }

    /// Opens its file.
    ///
    /// # Errors
    /// Not in practice: a test opens them all.
    pub(crate) fn open(&self) -> Result<PolicySpec, Problem> {
        let name = self.info.name;
        let refused = |error: String| Problem::new("policy", name, "a policy file of this version", error);
        let value: Value = serde_json::from_str(self.text).map_err(|error| refused(error.to_string()))?;
        let index = pleach_dealing::ENTRIES
            .iter()
            .find(|entry| entry.info.name == "index");
        if let (true, Some(index)) = (value.get("weights").is_some(), index) {
            return Ok(PolicySpec::planner(index, value)?.named(Some(name)));
        }
        if ScoreFormula::is_in(self.text) {
            return Ok(PolicySpec::formula(name, ScoreFormula::from_json(self.text)?));
        }
        let tree = Tree::from_json(self.text).map_err(|error| refused(error.to_string()))?;
        Ok(PolicySpec::tree(name, tree))
    }
}

#[cfg(test)]
mod tests;
