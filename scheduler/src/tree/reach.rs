//! Which leaves each kind of action can end in, and what follows: which tiers start, where *hold* lies, what is reserved.
//!
//! A candidate of one kind has some features that never vary (a *hold* is about no job, so nearly all of its own are 0; a
//! *reserve* has no placement yet). Walking the tree with the range of every feature gives the leaves that the kind can reach.
//! What varies together (two features of one job) is taken as independent, so a leaf may be named that is never met; none is
//! left out.

use super::{Node, Tree, feature_of};
use crate::action_set::ActionKind;
use crate::candidate::CandidateKind;
use crate::features::column::{CANDIDATE, Candidate as C};
use crate::policy::Needs;

/// Kinds of actions, in the order in which readers are told of them.
const KINDS: [CandidateKind; 4] = [
    CandidateKind::Start,
    CandidateKind::Reserve,
    CandidateKind::Preempt,
    CandidateKind::Hold,
];

/// The kinds of candidates that a tree chooses among, in that order.
pub(super) fn kinds_of(needs: &Needs) -> impl Iterator<Item = CandidateKind> {
    let actions = needs.actions;
    KINDS.into_iter().filter(move |kind| match kind {
        CandidateKind::Reserve => actions.contains(ActionKind::Reserve),
        CandidateKind::Preempt => actions.contains(ActionKind::Preempt),
        CandidateKind::Start | CandidateKind::Hold => true,
    })
}

/// What ends in the leaves of a tree.
pub(super) struct Reach {
    /// The leaves of each kind, by their places in the list of nodes.
    leaves: Vec<(CandidateKind, Vec<usize>)>,
    /// Tiers that *hold* can be in, the best first.
    hold_tiers: Vec<usize>,
}

/// How a tier stands to *hold*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Taken before holding.
    Above,
    /// The best tier that *hold* can be in; it comes last in it.
    With,
    /// Above or below, by the tier that *hold* is in at the time.
    Between,
    /// Not taken while holding is offered.
    Below,
}

impl Reach {
    pub(super) fn of(tree: &Tree) -> Reach {
        let leaves: Vec<(CandidateKind, Vec<usize>)> = kinds_of(&tree.meta().needs)
            .map(|kind| (kind, leaves_of(tree, kind)))
            .collect();
        let tiers = tree.tiers();
        let of_hold = leaves.iter().filter(|(kind, _)| *kind == CandidateKind::Hold);
        let mut hold_tiers: Vec<usize> = of_hold
            .flat_map(|(_, leaves)| leaves)
            .map(|place| tier_at(tree, *place, &tiers))
            .collect();
        hold_tiers.sort_unstable();
        hold_tiers.dedup();
        Reach { leaves, hold_tiers }
    }

    /// How a tier stands to *hold*.
    pub(super) fn standing(&self, tier: usize) -> Standing {
        let (Some(first), Some(last)) = (self.hold_tiers.first(), self.hold_tiers.last()) else {
            return Standing::Above;
        };
        match tier {
            tier if tier < *first => Standing::Above,
            tier if tier > *last => Standing::Below,
            tier if tier == *first => Standing::With,
            _ => Standing::Between,
        }
    }

    /// What ends in a leaf, and whether it is done: `start, reserve; below hold: waits`.
    pub(super) fn leaf(&self, place: usize, tier: usize) -> String {
        let kinds = self.leaves.iter().filter(|(_, leaves)| leaves.contains(&place));
        let names: Vec<&str> = kinds.map(|(kind, _)| name(*kind)).collect();
        match (names.is_empty(), self.standing(tier)) {
            (true, _) => "nothing comes here".to_string(),
            (false, Standing::Below) => format!("{}; below hold: waits", names.join(", ")),
            (false, _) => names.join(", "),
        }
    }

    /// Whether *hold* can end in a leaf.
    pub(super) fn holds_at(&self, place: usize) -> bool {
        let mut of_hold = self
            .leaves
            .iter()
            .filter(|(kind, _)| *kind == CandidateKind::Hold);
        of_hold.any(|(_, leaves)| leaves.contains(&place))
    }

    /// One line for each kind of action: in which tiers it is taken, in which it waits, and what it does.
    pub(super) fn lines(&self, tree: &Tree) -> Vec<String> {
        let tiers = tree.tiers();
        self.leaves
            .iter()
            .map(|(kind, leaves)| {
                let mut found: Vec<usize> =
                    leaves.iter().map(|place| tier_at(tree, *place, &tiers)).collect();
                found.sort_unstable();
                found.dedup();
                match kind {
                    CandidateKind::Hold => self.hold_line(),
                    _ => self.line(*kind, &found),
                }
            })
            .collect()
    }

    fn line(&self, kind: CandidateKind, tiers: &[usize]) -> String {
        let of = |standing: &[Standing]| -> Vec<usize> {
            let tiers = tiers.iter().copied();
            tiers
                .filter(|tier| standing.contains(&self.standing(*tier)))
                .collect()
        };
        let mut parts = Vec::new();
        let taken = of(&[Standing::Above, Standing::With]);
        if !taken.is_empty() {
            parts.push(format!("in {}", numbered(&taken)));
        }
        let between = of(&[Standing::Between]);
        if !between.is_empty() {
            parts.push(format!(
                "in {} unless hold is in a better tier",
                numbered(&between)
            ));
        }
        let below = of(&[Standing::Below]);
        if !below.is_empty() {
            parts.push(format!("never in {} while a job runs", numbered(&below)));
        }
        let does = match kind {
            CandidateKind::Reserve => {
                "hold GPUs back for a job that does not fit yet; starts that do not delay it go on"
            }
            CandidateKind::Preempt => "stop running jobs and start one in their place",
            CandidateKind::Start | CandidateKind::Hold => "start a job on free GPUs",
        };
        format!("{}: {}. {}", name(kind), parts.join(", "), sentence(does))
    }

    fn hold_line(&self) -> String {
        let order = match self.hold_tiers.len() {
            1 => ", the last of its tier",
            _ => ", by its features",
        };
        format!(
            "hold: in {}{order}. Start nothing more until the next event; not offered where no job runs and one could start.",
            numbered(&self.hold_tiers)
        )
    }
}

fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
}

pub(super) fn name(kind: CandidateKind) -> &'static str {
    match kind {
        CandidateKind::Hold => "hold",
        CandidateKind::Start => "start",
        CandidateKind::Reserve => "reserve",
        CandidateKind::Preempt => "preempt",
    }
}

fn numbered(tiers: &[usize]) -> String {
    let numbers: Vec<String> = tiers.iter().map(ToString::to_string).collect();
    match numbers.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("tiers {} and {last}", rest.join(", ")),
        _ => format!("tier {}", numbers.concat()),
    }
}

fn tier_at(tree: &Tree, place: usize, tiers: &[f32]) -> usize {
    match tree.nodes()[place] {
        Node::Leaf { score, .. } => tier_of(score, tiers),
        Node::Split { .. } => 0,
    }
}

/// Places of the leaves that candidates of a kind can end in.
fn leaves_of(tree: &Tree, kind: CandidateKind) -> Vec<usize> {
    leaf_ranges(tree, kind)
        .into_iter()
        .map(|(place, _)| place)
        .collect()
}

/// Places of the leaves that candidates of a kind can end in, each with the least and largest scaled value of every feature there.
pub(super) fn leaf_ranges(tree: &Tree, kind: CandidateKind) -> Vec<(usize, Vec<(f32, f32)>)> {
    let num_features = crate::observation::NUM_CANDIDATE_FEATURES + crate::observation::NUM_GLOBAL_FEATURES;
    let mut ranges: Vec<(f32, f32)> = (0..num_features).map(|index| range(kind, index)).collect();
    let mut found = Vec::new();
    walk(tree, 0, &mut ranges, &mut found);
    found
}

fn walk(tree: &Tree, place: usize, ranges: &mut [(f32, f32)], found: &mut Vec<(usize, Vec<(f32, f32)>)>) {
    let Node::Split {
        feature,
        threshold,
        left,
        right,
    } = tree.nodes()[place]
    else {
        return found.push((place, ranges.to_vec()));
    };
    let index = usize::from(feature);
    let (low, high) = ranges[index];
    if low <= threshold {
        ranges[index].1 = high.min(threshold);
        walk(tree, left as usize, ranges, found);
    }
    if high > threshold {
        ranges[index] = (low.max(threshold.next_up()), high);
        walk(tree, right as usize, ranges, found);
    }
    ranges[index] = (low, high);
}

/// Least and largest scaled value of a feature among candidates of a kind.
pub(super) fn range(kind: CandidateKind, index: usize) -> (f32, f32) {
    let feature = feature_of(index as u16);
    let whole = (feature.encode(feature.min), feature.encode(feature.max));
    if index >= CANDIDATE.len() {
        return whole;
    }
    let is = |columns: &[C]| columns.iter().any(|column| *column as usize == index);
    let of_kind = match kind {
        CandidateKind::Hold => C::IsHold,
        CandidateKind::Start => C::IsStart,
        CandidateKind::Reserve => C::IsReserve,
        CandidateKind::Preempt => C::IsPreempt,
    };
    if is(&[of_kind]) {
        return (1.0, 1.0);
    }
    let is_zero = is(&[C::IsHold, C::IsStart, C::IsReserve, C::IsPreempt])
        || match kind {
            // About no job.
            CandidateKind::Hold => !is(&[C::Leftover, C::OldestSlack]),
            CandidateKind::Start => is(&[C::WaitToFitS, C::NumVictims, C::VictimsRemainingS]),
            // Without a placement.
            CandidateKind::Reserve => is(&[
                C::Speed,
                C::Locality,
                C::NodesRatio,
                C::NumLeft,
                C::NumVictims,
                C::VictimsRemainingS,
                C::IsBeside,
                C::PartnerRemainingS,
            ]),
            CandidateKind::Preempt => is(&[C::WaitToFitS, C::IsBeside, C::PartnerRemainingS]),
        };
    if is_zero { (0.0, 0.0) } else { whole }
}

pub(super) fn tier_of(score: f32, tiers: &[f32]) -> usize {
    tiers.iter().filter(|other| **other > score).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::ids::Time;
    use crate::pass::{Pass, PassState};
    use crate::policy::Needs;

    /// What is said of a kind is said of every candidate of that kind: a row outside its ranges could end in a leaf not named.
    #[test]
    fn the_numbers_of_real_candidates_are_in_the_ranges_of_their_kind() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 1));
        let (needs, mut pass) = (Needs::full(), Pass::new());
        let mut seen = Vec::new();
        for instant in 0_u32..40 {
            cluster.advance(Time::from_secs_f64(f64::from(instant) * 300.0));
            submit(
                &mut cluster,
                1 + instant * 5 % 11,
                f64::from(200 + instant * 7919 % 20_000),
            );
            let mut state = pass.open(&cluster, &needs);
            let mut step = 0;
            while state == PassState::Open {
                pass.observe(&cluster);
                let rows = pass.observation().as_ref();
                for (index, candidate) in pass.candidates().rows.iter().enumerate() {
                    let row = [rows.row(index), rows.global].concat();
                    for (feature, value) in row.iter().enumerate() {
                        let (low, high) = range(candidate.kind, feature);
                        let name = feature_of(feature as u16).name;
                        assert!(
                            (low..=high).contains(value),
                            "{:?}: {name} is {value}",
                            candidate.kind
                        );
                    }
                    seen.push(candidate.kind);
                }
                let num = pass.candidates().len() as u32;
                let action = if step == 6 {
                    0
                } else {
                    (instant * 31 + step * 17) % num
                };
                let admissible = pass.candidates().is_admissible(action as usize);
                state = pass.act(&mut cluster, &needs, if admissible { action as usize } else { 1 });
                step += 1;
            }
        }
        for kind in KINDS {
            assert!(seen.contains(&kind), "no {kind:?} was offered");
        }
    }
}
