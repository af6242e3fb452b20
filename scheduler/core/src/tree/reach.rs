//! Which leaves each kind of action can end in, and what follows: which tiers start, where *hold* lies, what is reserved.
//!
//! A candidate of one kind has some features that never vary (a *hold* is about no job, so nearly all of its own are 0; a
//! *reserve* has no placement yet). Walking the tree with the range of every feature gives the leaves that the kind can reach.
//! What varies together (two features of one job) is taken as independent, so a leaf may be named that is never met; none is
//! left out.

use super::{Node, Tree};
use crate::features::RowKind;

impl Tree {
    /// The kinds of rows that it chooses among, in the order in which texts list them: those about a job first.
    pub(super) fn kinds_of_rows(&self) -> impl Iterator<Item = usize> + use<> {
        let (schema, actions) = (self.schema(), self.meta().needs.actions);
        let all = move || 0..schema.kinds.len();
        let about = move |is_about_a_job: bool| {
            all().filter(move |kind| schema.kinds[*kind].is_about_a_job == is_about_a_job)
        };
        about(true).chain(about(false)).filter(move |kind| {
            schema.kinds[*kind]
                .action
                .is_none_or(|action| actions.contains(action))
        })
    }

    /// The same, of those that are about a job that waits.
    pub(super) fn kinds_about_waiting_jobs(&self) -> impl Iterator<Item = usize> + use<> {
        let kinds = self.schema().kinds;
        self.kinds_of_rows().filter(|kind| kinds[*kind].waits)
    }
}

/// What ends in the leaves of a tree.
pub(super) struct Reach {
    /// The leaves of each kind, by their places in the list of nodes.
    leaves: Vec<(usize, Vec<usize>)>,
    /// Tiers that *hold* can be in, the best first; none where every kind is about a job.
    hold_tiers: Vec<usize>,
    kinds: &'static [RowKind],
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
        let kinds = tree.schema().kinds;
        let leaves: Vec<(usize, Vec<usize>)> = tree
            .kinds_of_rows()
            .map(|kind| (kind, leaves_of(tree, kind)))
            .collect();
        let tiers = tree.tiers();
        let of_hold = leaves.iter().filter(|(kind, _)| !kinds[*kind].is_about_a_job);
        let mut hold_tiers: Vec<usize> = of_hold
            .flat_map(|(_, leaves)| leaves)
            .map(|place| tier_at(tree, *place, &tiers))
            .collect();
        hold_tiers.sort_unstable();
        hold_tiers.dedup();
        Reach {
            leaves,
            hold_tiers,
            kinds,
        }
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
        let names: Vec<&str> = kinds.map(|(kind, _)| self.kinds[*kind].name).collect();
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
            .filter(|(kind, _)| !self.kinds[*kind].is_about_a_job);
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
                let kind = &self.kinds[*kind];
                if kind.is_about_a_job {
                    self.line(kind, &found)
                } else {
                    self.hold_line(kind)
                }
            })
            .collect()
    }

    fn line(&self, kind: &RowKind, tiers: &[usize]) -> String {
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
        format!("{}: {}. {}", kind.name, parts.join(", "), sentence(kind.does))
    }

    fn hold_line(&self, kind: &RowKind) -> String {
        let order = match self.hold_tiers.len() {
            1 => ", the last of its tier",
            _ => ", by its features",
        };
        format!(
            "{}: in {}{order}. {}",
            kind.name,
            numbered(&self.hold_tiers),
            sentence(kind.does)
        )
    }
}

fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
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
fn leaves_of(tree: &Tree, kind: usize) -> Vec<usize> {
    leaf_ranges(tree, kind)
        .into_iter()
        .map(|(place, _)| place)
        .collect()
}

/// Places of the leaves that candidates of a kind can end in, each with the least and largest scaled value of every feature there.
pub(super) fn leaf_ranges(tree: &Tree, kind: usize) -> Vec<(usize, Vec<(f32, f32)>)> {
    let features = tree.schema().features.iter();
    let mut ranges: Vec<(f32, f32)> = features.map(|feature| feature.range_among(kind)).collect();
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

pub(super) fn tier_of(score: f32, tiers: &[f32]) -> usize {
    tiers.iter().filter(|other| **other > score).count() + 1
}

#[cfg(test)]
mod tests {
    use crate::actions::{CANDIDATES, CandidateRow};
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::features::FeatureSchema;
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
                    let schema = FeatureSchema::current();
                    let row = schema.joined_row(rows.row(index), rows.global);
                    for (feature, value) in schema.features.iter().zip(&row) {
                        let (low, high) = feature.range_among(candidate.kind as usize);
                        let name = feature.name;
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
        let wanted = |row: &&CandidateRow| row.action.is_none_or(|action| needs.actions.contains(action));
        for kind in CANDIDATES.iter().filter(wanted).map(|row| row.kind) {
            assert!(seen.contains(&kind), "no {kind:?} was offered");
        }
    }
}
