//! Nodes that would not take a job, whatever the batch system: remembered for a while, so that the job goes elsewhere.
//!
//! What a batch system refuses the tables did not know: a rule of the site that is not read, something that happened since the look.
//! The policy would choose the node again in every round. So a refusal is kept with its reason, for a minute at first and for twice
//! as long each time that it is repeated; the node is none that the job may have then. It is part of [`crate::memory::Memory`]:
//! written down, logged with each round, and forgotten some time after it is over, whether or not the job is still listed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Time for which a first refusal keeps a job from a node, s. *Ours*: thirty rounds of two seconds.
pub const REFUSED_S: i64 = 60;

/// The longest such time, s. *Ours*: as long as the longest pause of a job that does not start.
pub const REFUSED_S_MAX: i64 = 600;

/// Nodes that are remembered for one job; a further one takes the place of the one whose time is over first. *Ours*: with
/// [`REFUSED_S_MAX`] and a round every two seconds a job finds the one node of 64 that takes it.
pub const NODES_MAX: usize = 64;

/// Characters of a reason that are kept.
const REASON_MAX: usize = 200;

/// The nodes that would not take one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Refusals {
    nodes: BTreeMap<String, Refusal>,
}

/// One node's refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Why, in the words of the batch system; at most 200 characters, one line.
    pub reason: String,
    /// The node is not chosen for the job before this, Unix time, s.
    pub until_s: i64,
    /// How often it refused the job, one time after the other.
    pub num: u32,
}

impl Refusal {
    /// Whether it holds at Unix time `now_s`. One that would hold for longer than any can comes from a clock that was ahead.
    fn holds(&self, now_s: i64) -> bool {
        now_s < self.until_s && self.until_s <= now_s.saturating_add(REFUSED_S_MAX)
    }
}

impl Refusals {
    /// A node refused the job at Unix time `now_s`; for how long it is not chosen, s: 60 at first, twice as long each further
    /// time, at most 600.
    pub fn add(&mut self, node: &str, reason: &str, now_s: i64) -> i64 {
        let num = self
            .nodes
            .get(node)
            .map_or(1, |before| before.num.saturating_add(1));
        let lasts_s = (REFUSED_S << (num - 1).min(10)).min(REFUSED_S_MAX);
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(node) {
            let first = self.nodes.iter().min_by_key(|(_, refusal)| refusal.until_s);
            if let Some(first) = first.map(|(name, _)| name.clone()) {
                self.nodes.remove(&first);
            }
        }
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let refusal = Refusal {
            reason: reason.chars().map(plain).take(REASON_MAX).collect(),
            until_s: now_s.saturating_add(lasts_s),
            num,
        };
        self.nodes.insert(node.to_owned(), refusal);
        lasts_s
    }

    /// The refusal that keeps the job from a node at Unix time `now_s`; none: it may go there.
    #[must_use]
    pub fn of(&self, node: &str, now_s: i64) -> Option<&Refusal> {
        self.nodes.get(node).filter(|refusal| refusal.holds(now_s))
    }

    /// Nodes that the job is kept from at Unix time `now_s`, by name.
    pub fn at(&self, now_s: i64) -> impl Iterator<Item = (&str, &Refusal)> {
        let all = self.nodes.iter().filter(move |(_, refusal)| refusal.holds(now_s));
        all.map(|(node, refusal)| (node.as_str(), refusal))
    }

    /// Forgets what was over at Unix time `now_s` for longer than any refusal lasts. What is over for less still counts where the
    /// node refuses again.
    pub fn forget(&mut self, now_s: i64) {
        let is_near = |refusal: &Refusal| (refusal.until_s - now_s).abs() <= REFUSED_S_MAX;
        self.nodes.retain(|_, refusal| is_near(refusal));
    }

    /// Whether no node is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Nodes that are remembered, those whose time is over among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What keeps the job from where at Unix time `now_s`, in words, one line for each node.
    #[must_use]
    pub fn told(&self, now_s: i64) -> String {
        let line = |(node, refusal): (&str, &Refusal)| {
            let times = match refusal.num {
                1 => String::new(),
                num => format!(", the {num} last times"),
            };
            let left_s = refusal.until_s - now_s;
            format!(
                "{node} refused it{times}: {}; it is tried there again in {left_s} s.\n",
                refusal.reason
            )
        };
        self.at(now_s).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lasts_a_minute_then_twice_as_long_each_time_and_at_most_ten() {
        let mut refusals = Refusals::default();
        let mut now_s = 1000;
        for lasts_s in [60, 120, 240, 480, 600, 600] {
            assert_eq!(refusals.add("g1", "no CPUs", now_s), lasts_s);
            assert!(refusals.of("g1", now_s + lasts_s - 1).is_some());
            assert!(refusals.of("g1", now_s + lasts_s).is_none() && refusals.of("g2", now_s).is_none());
            now_s += lasts_s + 5;
            refusals.forget(now_s);
        }
        assert!(refusals.at(now_s).next().is_none() && !refusals.is_empty());
        refusals.forget(now_s + 601);
        assert!(refusals.is_empty(), "what is long over counts no more");
        assert_eq!(refusals.add("g1", "no CPUs", now_s), 60);
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_no_job_from_a_node() {
        let mut refusals = Refusals::default();
        refusals.add("g1", "no CPUs", 100_000);
        assert!(refusals.of("g1", 1000).is_none());
        refusals.forget(1000);
        assert!(refusals.is_empty());
    }

    #[test]
    fn nodes_and_words_are_bounded_and_the_first_to_be_over_makes_room() {
        let mut refusals = Refusals::default();
        for number in 0..200 {
            refusals.add(&format!("g{number}"), &"x\ny".repeat(1000), 1000 + number);
        }
        assert_eq!(refusals.len(), NODES_MAX);
        assert!(refusals.of("g135", 1199).is_none() && refusals.of("g199", 1199).is_some());
        let told = refusals.told(1199);
        assert_eq!(told.lines().count(), 60, "one line each");
        assert!(told.len() < 60 * 300);
    }

    #[test]
    fn words_name_the_node_the_reason_and_the_time() {
        let mut refusals = Refusals::default();
        refusals.add("g1", "g1 has 0 of 1 CPUs", 1000);
        refusals.add("g1", "g1 has 0 of 1 CPUs", 1070);
        assert_eq!(
            refusals.told(1100),
            "g1 refused it, the 2 last times: g1 has 0 of 1 CPUs; it is tried there again in 90 s.\n"
        );
        let text = serde_json::to_string(&refusals).unwrap();
        assert_eq!(serde_json::from_str::<Refusals>(&text).unwrap(), refusals);
    }
}
