//! The table of actions: what may be done besides starting a waiting job and holding, one row a kind.
//!
//! A row says all that is known of a kind: its name, who may take it, what turns it on, and whether a daemon carries it out. Settings,
//! files, flags, refusals and explanations read it here. [`ActionSet`] is a set of kinds; [`CANDIDATES`] says what choosing a
//! candidate of each kind does. A new kind is a row here, its effect (a file of [`pass`](crate::pass)), and a flag among the columns.

mod candidates;
mod set;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use candidates::{About, CANDIDATES, CandidateKind, CandidateRow, Effect, Words};
pub use set::ActionSet;

/// A kind of action beyond *start* and *hold*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ActionKind {
    /// Hold GPUs back for a job that does not fit yet.
    Reserve,
    /// Stop running jobs and requeue them.
    Preempt,
    /// Put a job beside a running one, on its GPUs.
    Share,
    /// Start an elastic job on half or twice the GPUs that it asked for.
    Sizes,
    /// Give a job whose class has a surface over CPU and memory the least share with which it runs fastest.
    GrantCores,
    /// Hold GPUs back for a job that fits now only on types slower than its best. Goes with [`ActionKind::Reserve`].
    WaitForType,
    /// Run a gang on several GPU types, at the pace of the slowest. No candidate does; planners may.
    MixTypes,
}

/// Who may take an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBy {
    /// Policies, as a candidate or as what a candidate comes with; planners too.
    Policies,
    /// Planners only.
    Planners,
}

/// What turns a kind on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedOn {
    /// Nothing need: what it takes is in the jobs.
    Always,
    /// The setting `sharing`, which says how.
    BySharing,
    /// Its being in a cluster's set of actions.
    ByItself {
        /// Whether it is in the set by default.
        is_default: bool,
    },
}

/// What is known of a kind of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionRow {
    /// The kind.
    pub kind: ActionKind,
    /// Its name in lists of actions, in settings, flags and Python.
    pub name: &'static str,
    /// In a sentence: `needs preemption`.
    pub phrase: &'static str,
    /// Who may take it.
    pub by: TakenBy,
    /// What turns it on.
    pub on: TurnedOn,
    /// The flag of `pleach evaluate` that turns it on; none where nothing turns it on or off there.
    pub flag: Option<&'static str>,
    /// Whether running jobs lose their GPUs by it.
    pub stops: bool,
    /// Whether a daemon carries it out on a real cluster; one that does not refuses who cannot do without.
    pub in_daemons: bool,
}

/// Turned on by itself, and off by default.
const OFF: TurnedOn = TurnedOn::ByItself { is_default: false };

/// A kind that policies may take, that needs nothing and stops nobody.
const fn plain(kind: ActionKind, name: &'static str, phrase: &'static str) -> ActionRow {
    ActionRow {
        kind,
        name,
        phrase,
        by: TakenBy::Policies,
        on: TurnedOn::Always,
        flag: None,
        stops: false,
        in_daemons: true,
    }
}

/// All kinds, in the order in which readers are told of them; a kind's row is at its number.
pub const ACTIONS: [ActionRow; 7] = [
    ActionRow {
        on: TurnedOn::ByItself { is_default: true },
        ..plain(ActionKind::Reserve, "reserve", "reservations")
    },
    ActionRow {
        on: OFF,
        flag: Some("--preemption"),
        stops: true,
        ..plain(ActionKind::Preempt, "preempt", "preemption")
    },
    ActionRow {
        on: TurnedOn::BySharing,
        flag: Some("--sharing mps"),
        ..plain(ActionKind::Share, "share", "sharing")
    },
    plain(ActionKind::Sizes, "sizes", "sizes of elastic jobs"),
    plain(ActionKind::GrantCores, "cores", "shares of cores and memory"),
    plain(ActionKind::WaitForType, "wait_for_type", "waiting for a GPU type"),
    ActionRow {
        by: TakenBy::Planners,
        on: OFF,
        flag: Some("--mixed-types"),
        in_daemons: false,
        ..plain(ActionKind::MixTypes, "mixed_types", "gangs of mixed types")
    },
];

const _: () = {
    let mut at = 0;
    while at < ACTIONS.len() {
        assert!(
            ACTIONS[at].kind as usize == at,
            "the row of each kind is at its number"
        );
        at += 1;
    }
};

impl Serialize for ActionKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.row().name)
    }
}

impl<'de> Deserialize<'de> for ActionKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ActionKind, D::Error> {
        let name = String::deserialize(from)?;
        ActionKind::by_name(&name).ok_or_else(|| {
            let all: Vec<&str> = ACTIONS.iter().map(|row| row.name).collect();
            D::Error::custom(format!("no action has the name `{name}`; one of: {}", all.join(", ")))
        })
    }
}

impl ActionKind {
    /// All kinds, in the order in which readers are told of them.
    pub const ALL: [ActionKind; ACTIONS.len()] = {
        let (mut all, mut at) = ([ActionKind::Reserve; ACTIONS.len()], 0);
        while at < ACTIONS.len() {
            all[at] = ACTIONS[at].kind;
            at += 1;
        }
        all
    };

    /// What is known of it.
    #[must_use]
    pub const fn row(self) -> &'static ActionRow {
        &ACTIONS[self as usize]
    }

    /// In a sentence: `needs preemption`.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        self.row().phrase
    }

    /// The kind of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<ActionKind> {
        ACTIONS.iter().find(|row| row.name == name).map(|row| row.kind)
    }
}
