//! What a scheduler may do besides starting a waiting job and holding: one word for what a policy wants to choose, what a planner
//! requires and what a cluster can do.

use serde::{Deserialize, Serialize};

/// A kind of action beyond *start* and *hold*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum ActionKind {
    /// Hold GPUs back for a job that does not fit yet.
    Reserve,
    /// Stop running jobs and requeue them.
    Preempt,
    /// Put a job beside a running one, on its GPUs.
    Share,
    /// Give an elastic job half or twice the GPUs that it asked for.
    Resize,
    /// Give a job whose class has a surface over CPU and memory the least share with which it runs fastest.
    GrantCores,
    /// Hold GPUs back for a job that fits now only on types slower than its best. Goes with [`ActionKind::Reserve`].
    WaitForType,
    /// Run a gang on several GPU types, at the pace of the slowest. No candidate does; planners may.
    MixTypes,
}

impl ActionKind {
    /// All kinds, in the order in which readers are told of them.
    pub const ALL: [ActionKind; 7] = [
        ActionKind::Reserve,
        ActionKind::Preempt,
        ActionKind::Share,
        ActionKind::Resize,
        ActionKind::GrantCores,
        ActionKind::WaitForType,
        ActionKind::MixTypes,
    ];

    /// In a sentence: `needs preemption`.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            ActionKind::Reserve => "reservations",
            ActionKind::Preempt => "preemption",
            ActionKind::Share => "sharing",
            ActionKind::Resize => "sizes of elastic jobs",
            ActionKind::GrantCores => "shares of cores and memory",
            ActionKind::WaitForType => "waiting for a GPU type",
            ActionKind::MixTypes => "gangs of mixed types",
        }
    }
}

/// A set of kinds of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet(u8);

impl ActionSet {
    /// Start and hold only.
    pub const NONE: ActionSet = ActionSet(0);

    /// One kind.
    #[must_use]
    pub const fn of(kind: ActionKind) -> ActionSet {
        ActionSet(1 << kind as u8)
    }

    /// With one kind more.
    #[must_use]
    pub const fn with(self, kind: ActionKind) -> ActionSet {
        self.union(ActionSet::of(kind))
    }

    /// With one kind less.
    #[must_use]
    pub const fn without(self, kind: ActionKind) -> ActionSet {
        self.difference(ActionSet::of(kind))
    }

    /// With a kind where `is_in`, without it elsewhere.
    #[must_use]
    pub const fn set(self, kind: ActionKind, is_in: bool) -> ActionSet {
        if is_in {
            self.with(kind)
        } else {
            self.without(kind)
        }
    }

    /// Whether a kind is in it.
    #[must_use]
    #[inline]
    pub const fn contains(self, kind: ActionKind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }

    /// What is in one of the two.
    #[must_use]
    pub const fn union(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn intersection(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 & other.0)
    }

    /// What is in this and not in the other.
    #[must_use]
    pub const fn difference(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 & !other.0)
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its kinds, in the order of [`ActionKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ActionKind> {
        ActionKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<ActionKind> for ActionSet {
    fn from_iter<I: IntoIterator<Item = ActionKind>>(kinds: I) -> ActionSet {
        kinds.into_iter().fold(ActionSet::NONE, ActionSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for number in 0..1_u8 << ActionKind::ALL.len() {
            let has = |kind: ActionKind| number >> kind as u8 & 1 == 1;
            let set: ActionSet = ActionKind::ALL.into_iter().filter(|kind| has(*kind)).collect();
            assert!(
                ActionKind::ALL
                    .into_iter()
                    .all(|kind| set.contains(kind) == has(kind))
            );
            assert_eq!(set.iter().collect::<ActionSet>(), set);
            assert_eq!(set.is_empty(), number == 0);
            for kind in ActionKind::ALL {
                assert!(set.with(kind).contains(kind) && !set.without(kind).contains(kind));
                assert_eq!(set.set(kind, true).set(kind, has(kind)), set);
            }
            for other in [ActionSet::NONE, ActionSet::of(ActionKind::Share), set] {
                let common = set.intersection(other);
                assert_eq!(set.difference(other).union(common), set);
                assert!(
                    common
                        .iter()
                        .all(|kind| set.contains(kind) && other.contains(kind))
                );
            }
        }
    }
}
