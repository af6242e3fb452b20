//! A set of kinds of actions; in files the list of their names.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ACTIONS, ActionKind, ActionRow, TakenBy, TurnedOn};

/// A set of kinds of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet(u32);

const _: () = assert!(ACTIONS.len() <= u32::BITS as usize);

/// The kinds whose rows say so.
macro_rules! those {
    (|$row:ident| $holds:expr) => {{
        let (mut set, mut at) = (ActionSet::NONE, 0);
        while at < ACTIONS.len() {
            let $row: &ActionRow = &ACTIONS[at];
            if $holds {
                set = set.with($row.kind);
            }
            at += 1;
        }
        set
    }};
}

impl ActionSet {
    /// Start and hold only.
    pub const NONE: ActionSet = ActionSet(0);
    /// What a cluster grants by default.
    pub const DEFAULT: ActionSet = those!(|row| matches!(row.on, TurnedOn::ByItself { is_default: true }));
    /// What has to be in a cluster's set to be turned on.
    pub const GRANTED: ActionSet = those!(|row| matches!(row.on, TurnedOn::ByItself { .. }));
    /// What is always turned on, for what it takes is in the jobs.
    pub const ALWAYS: ActionSet = those!(|row| matches!(row.on, TurnedOn::Always));
    /// What is off unless a setting turns it on.
    pub const OPTIONAL: ActionSet =
        those!(|row| !matches!(row.on, TurnedOn::Always | TurnedOn::ByItself { is_default: true }));
    /// What candidates do.
    pub const OFFERED: ActionSet = those!(|row| matches!(row.by, TakenBy::Policies));
    /// What takes GPUs from running jobs.
    pub const STOPPING: ActionSet = those!(|row| row.stops);
    /// What a daemon carries out.
    pub const IN_DAEMONS: ActionSet = those!(|row| row.in_daemons);

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

    /// The kinds of which this is true.
    #[must_use]
    pub fn where_true<const N: usize>(kinds: [(ActionKind, bool); N]) -> ActionSet {
        kinds
            .into_iter()
            .filter_map(|(kind, is_in)| is_in.then_some(kind))
            .collect()
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
    #[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Its kinds, in the order of [`ActionKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ActionKind> {
        ActionKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }

    /// The names of its kinds, for sentences: `reserve, preempt`.
    #[must_use]
    pub fn names(self) -> String {
        let names: Vec<&str> = self.iter().map(|kind| kind.row().name).collect();
        names.join(", ")
    }

    /// The same set, where a setting or a flag allows all that is in it.
    ///
    /// # Errors
    /// The first kind that is not allowed, with all that are.
    pub fn within(self, setting: &str, allowed: ActionSet) -> Result<ActionSet, String> {
        match self.difference(allowed).iter().next() {
            None => Ok(self),
            Some(kind) => {
                let (name, allowed) = (kind.row().name, allowed.names());
                Err(format!(
                    "{setting}: `{name}` cannot be given here; one of: {allowed}"
                ))
            }
        }
    }

    /// The set of some names.
    ///
    /// # Errors
    /// The first name that no kind has, with all names.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<ActionSet, String> {
        let kind = |name: &str| {
            ActionKind::by_name(name).ok_or_else(|| {
                let all = ActionSet::from_iter(ActionKind::ALL).names();
                format!("no action has the name `{name}`; one of: {all}")
            })
        };
        names.into_iter().map(kind).collect()
    }
}

impl FromIterator<ActionKind> for ActionSet {
    fn from_iter<I: IntoIterator<Item = ActionKind>>(kinds: I) -> ActionSet {
        kinds.into_iter().fold(ActionSet::NONE, ActionSet::with)
    }
}

impl Serialize for ActionSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(|kind| kind.row().name))
    }
}

impl<'de> Deserialize<'de> for ActionSet {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ActionSet, D::Error> {
        Ok(Vec::<ActionKind>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for number in 0..1_u32 << ActionKind::ALL.len() {
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
            let text = serde_json::to_string(&set).unwrap();
            assert_eq!(serde_json::from_str::<ActionSet>(&text).unwrap(), set);
        }
    }

    #[test]
    fn every_kind_is_known_by_a_name_of_its_own_and_no_other_name_is_taken() {
        for kind in ActionKind::ALL {
            assert_eq!(ActionKind::by_name(kind.row().name), Some(kind));
        }
        assert_eq!(ActionSet::DEFAULT.difference(ActionSet::GRANTED), ActionSet::NONE);
        let error = serde_json::from_str::<ActionSet>("[\"reserve\", \"preemt\"]").unwrap_err();
        assert!(
            error.to_string().contains("`preemt`") && error.to_string().contains("preempt, share"),
            "{error}"
        );
    }
}
