//! A round as it differs from the one before: the nodes and jobs that changed, came or went, and what is remembered of them.
//!
//! What is made of a round and its difference is the next round to the bit. A difference names the round that it follows and how
//! much there is after it, so a line that is missing is found.

use serde::{Deserialize, Serialize};

use crate::dealing::Turn;
use crate::memory::edit::MemoryEdit;
use crate::order::Order;
use crate::record::{Planned, RoundRecord};
use crate::snapshot::{JobSeen, NodeSeen, Site};

/// Most nodes, and most jobs, of a round that is made of differences: ten times the largest cluster of any list. *Ours*.
const NUM_MAX: usize = 10_000_000;

/// Looks for what went and came, for each thing of the two lists. *Ours*: enough where few things went or came.
const LOOKS: usize = 64;

/// A line of the log that is no whole round.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeltaLine {
    pub(crate) delta: Delta,
}

/// A round without what it shares with the one before. Fields that are not explained here are those of [`RoundRecord`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delta {
    /// Number and time of the round that it follows.
    after: (u64, i64),
    round: u64,
    is_shadow: bool,
    policy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aside: Option<String>,
    version: u32,
    taken_s: i64,
    /// How many nodes there are, and how many jobs.
    num: (usize, usize),
    #[serde(default = "Edit::none", skip_serializing_if = "Edit::is_empty")]
    nodes: Edit<NodeSeen>,
    #[serde(default = "Edit::none", skip_serializing_if = "Edit::is_empty")]
    jobs: Edit<JobSeen>,
    /// None: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<Site>,
    #[serde(default, skip_serializing_if = "MemoryEdit::is_empty")]
    memory: MemoryEdit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<Turn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
    decisions: Vec<Planned>,
    observe_s: f64,
    decide_s: f64,
    apply_s: f64,
}

impl DeltaLine {
    /// As [`Delta::between`].
    pub(crate) fn between(before: &RoundRecord, after: &RoundRecord) -> DeltaLine {
        DeltaLine {
            delta: Delta::between(before, after),
        }
    }
}

impl Delta {
    /// From one round to a later one.
    fn between(before: &RoundRecord, after: &RoundRecord) -> Delta {
        let (was, is) = (&before.snapshot, &after.snapshot);
        Delta {
            after: place(before),
            round: after.round,
            is_shadow: after.is_shadow,
            policy: after.policy.clone(),
            fallback: after.fallback.clone(),
            aside: after.aside.clone(),
            version: is.version,
            taken_s: is.taken_s,
            num: (is.nodes.len(), is.jobs.len()),
            nodes: Edit::between(&was.nodes, &is.nodes, |node| node.name.as_str()),
            jobs: Edit::between(&was.jobs, &is.jobs, |job| job.id),
            site: (was.site != is.site).then(|| is.site.clone()),
            memory: MemoryEdit::between(&before.memory, &after.memory, (was.taken_s, is.taken_s)),
            turn: after.turn.clone(),
            order: after.order.clone(),
            decisions: after.decisions.clone(),
            observe_s: after.observe_s,
            decide_s: after.decide_s,
            apply_s: after.apply_s,
        }
    }

    /// Makes the round before the round after; why it cannot.
    pub(crate) fn apply(self, record: &mut RoundRecord) -> Result<(), String> {
        if self.after != place(record) {
            let ((round, at_s), (last, last_s)) = (self.after, place(record));
            return Err(format!(
                "tells what changed since round {round} at {at_s}, and the line before is round {last} at {last_s}: lines are missing"
            ));
        }
        let snapshot = &mut record.snapshot;
        let times_s = (snapshot.taken_s, self.taken_s);
        self.nodes.apply(&mut snapshot.nodes)?;
        self.jobs.apply(&mut snapshot.jobs)?;
        let num = (snapshot.nodes.len(), snapshot.jobs.len());
        if num != self.num {
            return Err(format!(
                "makes {} nodes and {} jobs and says that there are {} and {}: the log was changed",
                num.0, num.1, self.num.0, self.num.1
            ));
        }
        (snapshot.version, snapshot.taken_s) = (self.version, self.taken_s);
        if let Some(site) = self.site {
            snapshot.site = site;
        }
        self.memory.apply(&mut record.memory, times_s);
        // Each field by name: one that is new is not forgotten here.
        let RoundRecord {
            round,
            is_shadow,
            policy,
            fallback,
            aside,
            snapshot: _,
            memory: _,
            turn,
            order,
            decisions,
            observe_s,
            decide_s,
            apply_s,
        } = record;
        (*round, *is_shadow, *policy) = (self.round, self.is_shadow, self.policy);
        (*fallback, *aside, *turn) = (self.fallback, self.aside, self.turn);
        (*order, *decisions) = (self.order, self.decisions);
        (*observe_s, *decide_s, *apply_s) = (self.observe_s, self.decide_s, self.apply_s);
        Ok(())
    }
}

/// What a difference says of the round that it follows.
fn place(record: &RoundRecord) -> (u64, i64) {
    (record.round, record.snapshot.taken_s)
}

/// A list as it differs from one before. What stays where it was among the others is not written.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit<T> {
    /// Places in the list before of what is otherwise now, ascending.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    changed: Vec<(usize, T)>,
    /// Places in the list before of what is gone, ascending.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    gone: Vec<usize>,
    /// Places in the list after of what came, ascending.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    came: Vec<(usize, T)>,
}

impl<T> Edit<T> {
    fn none() -> Edit<T> {
        Edit {
            changed: Vec::new(),
            gone: Vec::new(),
            came: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty() && self.came.is_empty()
    }

    /// Makes the list before the list after; why it cannot.
    fn apply(self, list: &mut Vec<T>) -> Result<(), String> {
        let bad =
            |what: &str, at: usize| Err(format!("names place {at} for what {what}, which is not there"));
        for (at, item) in self.changed {
            match list.get_mut(at) {
                Some(place) => *place = item,
                None => return bad("changed", at),
            }
        }
        if let Some(at) = self.gone.iter().find(|at| **at >= list.len()) {
            return bad("went", *at);
        }
        if !self.gone.is_empty() {
            let (mut at, mut gone) = (0, self.gone.iter().peekable());
            list.retain(|_| {
                let is_gone = gone.next_if(|next| **next == at).is_some();
                at += 1;
                !is_gone
            });
        }
        if list.len() + self.came.len() > NUM_MAX {
            return Err(format!("makes more than {NUM_MAX} nodes or jobs"));
        }
        let Some((first, _)) = self.came.first() else {
            return Ok(());
        };
        let mut rest = list.split_off((*first).min(list.len())).into_iter();
        for (at, item) in self.came {
            while list.len() < at {
                match rest.next() {
                    Some(kept) => list.push(kept),
                    None => return bad("came", at),
                }
            }
            if list.len() > at {
                return bad("came", at);
            }
            list.push(item);
        }
        list.extend(rest);
        Ok(())
    }
}

impl<T: Clone + PartialEq> Edit<T> {
    /// From one list to another, of things with a key each. What moved among the others is gone and came.
    fn between<'a, K: PartialEq>(before: &'a [T], after: &'a [T], key: impl Fn(&'a T) -> K) -> Edit<T> {
        let (mut edit, mut was, mut is) = (Edit::none(), 0, 0);
        let mut looks = LOOKS * (before.len() + after.len());
        while was < before.len() || is < after.len() {
            let (num_gone, num_came) = apart(&before[was..], &after[is..], &key, &mut looks);
            edit.gone.extend(was..was + num_gone);
            let came = (is..is + num_came).map(|at| (at, after[at].clone()));
            edit.came.extend(came);
            (was, is) = (was + num_gone, is + num_came);
            if let (Some(old), Some(new)) = (before.get(was), after.get(is))
                && key(old) == key(new)
            {
                if old != new {
                    edit.changed.push((was, new.clone()));
                }
                (was, is) = (was + 1, is + 1);
            }
        }
        edit
    }
}

/// How many things went and how many came before the two lists go on with the same thing. None, where they do at once; else those
/// before the thing that is first in the other list; else one of each. Each look costs one of `looks`; with none left there is no
/// search.
fn apart<'a, T, K: PartialEq>(
    before: &'a [T],
    after: &'a [T],
    key: &impl Fn(&'a T) -> K,
    looks: &mut usize,
) -> (usize, usize) {
    let (Some(old), Some(new)) = (before.first(), after.first()) else {
        return (before.len(), after.len());
    };
    let (old, new) = (key(old), key(new));
    if old == new {
        return (0, 0);
    }
    for far in 1..before.len().max(after.len()) {
        if *looks == 0 {
            break;
        }
        *looks -= 1;
        if before.get(far).is_some_and(|thing| key(thing) == new) {
            return (far, 0);
        }
        if after.get(far).is_some_and(|thing| key(thing) == old) {
            return (0, far);
        }
    }
    (1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Things are (key, value).
    fn lists() -> impl Strategy<Value = Vec<(u8, u8)>> {
        prop::collection::vec((0_u8..12, 0_u8..3), 0..12)
    }

    proptest! {
        #[test]
        fn a_list_and_its_difference_are_the_other_list(before in lists(), after in lists()) {
            let edit = Edit::between(&before, &after, |thing| thing.0);
            let mut list = before;
            edit.apply(&mut list).unwrap();
            prop_assert_eq!(list, after);
        }

        #[test]
        fn where_some_went_and_some_came_nobody_else_is_written_down(
            kept in prop::collection::vec(any::<bool>(), 0..60),
            came in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let before: Vec<(usize, u8)> = (0..kept.len()).map(|key| (key, 0)).collect();
            let stays = before.iter().zip(&kept).filter(|(_, kept)| **kept);
            let mut after: Vec<(usize, u8)> = stays.map(|(thing, _)| *thing).collect();
            for (number, at) in came.iter().enumerate() {
                after.insert(at % (after.len() + 1), (1000 + number, 0));
            }
            let edit = Edit::between(&before, &after, |thing| thing.0);
            let num_gone = kept.iter().filter(|kept| !**kept).count();
            prop_assert_eq!((edit.gone.len(), edit.came.len(), edit.changed.len()), (num_gone, came.len(), 0));
        }

        #[test]
        fn a_difference_of_anybody_is_refused_or_applied_and_never_panics(
            list in lists(),
            changed in prop::collection::vec((0_usize..14, (0_u8..12, 0_u8..3)), 0..4),
            gone in prop::collection::vec(0_usize..14, 0..4),
            came in prop::collection::vec((0_usize..14, (0_u8..12, 0_u8..3)), 0..4),
        ) {
            let mut made = list;
            let _ = Edit { changed, gone, came }.apply(&mut made);
        }
    }
}
