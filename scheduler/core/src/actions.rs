//! The table of actions: what may be done besides starting a waiting job and holding, one row a kind.
//!
//! A row holds all that is known of a kind: its name, what may take it, what turns it on, and whether a daemon carries it out.
//! Settings, files, flags, refusals and explanations read it here. [`ActionSet`] is a set of kinds; [`CANDIDATES`] says what
//! choosing a candidate of each kind does. A new kind is a row here, its effect (a file of [`pass`](crate::pass)), and a flag
//! among the columns.

mod set;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
    /// Give a running elastic job half or twice the GPUs that it holds, at the cost of a restart.
    Resize,
}

/// What may take an action.
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
    /// What may take it.
    pub by: TakenBy,
    /// What turns it on.
    pub on: TurnedOn,
    /// The flag of `pleach evaluate` that turns it on; none where nothing turns it on or off there.
    pub flag: Option<&'static str>,
    /// Whether running jobs lose their GPUs by it.
    pub stops: bool,
    /// Whether a daemon carries it out on a real cluster. If not, daemons refuse policies that cannot do without it.
    pub in_daemons: bool,
}

/// Turned on by itself, and off by default.
const OFF: TurnedOn = TurnedOn::ByItself { is_default: false };

/// A kind that policies may take, that needs nothing and stops no job.
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

/// All kinds, in the order in which texts list them; a kind's row is at its number.
pub const ACTIONS: [ActionRow; 8] = [
    ActionRow {
        on: TurnedOn::ByItself { is_default: true },
        flag: Some("--actions reserve"),
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
        flag: Some("--actions mixed_types"),
        in_daemons: false,
        ..plain(ActionKind::MixTypes, "mixed_types", "gangs of mixed types")
    },
    ActionRow {
        on: OFF,
        flag: Some("--actions resize"),
        stops: true,
        in_daemons: false,
        ..plain(ActionKind::Resize, "resize", "resizing of running jobs")
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
            D::Error::custom(format!(
                "no action has the name `{name}`; one of: {}",
                all.join(", ")
            ))
        })
    }
}

impl ActionKind {
    /// All kinds, in the order in which texts list them.
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

/// What a candidate does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CandidateKind {
    /// End the pass; nothing more happens until the next event.
    Hold,
    /// Start a pending job.
    Start,
    /// Hold GPUs back for a job that does not fit yet; the pass goes on with starts that do not delay it.
    Reserve,
    /// Stop running jobs and start a pending one in their place.
    Preempt,
    /// Stop a running elastic job and start it at once on other GPUs in number.
    Resize,
}

/// What a candidate is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// No job.
    Nobody,
    /// A job that waits.
    Waiting,
    /// A job that runs.
    Running,
}

/// What a pass does when a candidate is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It ends.
    End,
    /// It holds GPUs back for the job.
    HoldBack,
    /// It stops the candidate's victims, if it has any, and the job itself if that runs, and starts the job on the candidate's
    /// GPUs.
    Run,
}

/// What is known of a kind of candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateRow {
    /// The kind.
    pub kind: CandidateKind,
    /// Its name, in texts.
    pub name: &'static str,
    /// What choosing it does, as a sentence without its capital and its full stop.
    pub does: &'static str,
    /// The kind of action that has to be wanted for it to be offered; none where it always is.
    pub action: Option<ActionKind>,
    /// What it is about.
    pub about: About,
    /// What a pass does.
    pub effect: Effect,
    /// As an order, with the words of [`Words`] in braces.
    order: &'static str,
    /// As something that happens, with the words of [`Words`] in braces.
    event: &'static str,
}

/// All kinds of candidates; a kind's row is at its number.
pub const CANDIDATES: [CandidateRow; 5] = [
    CandidateRow {
        kind: CandidateKind::Hold,
        name: "hold",
        does: "start nothing more until the next event; not offered where no job runs and one could start",
        action: None,
        about: About::Nobody,
        effect: Effect::End,
        order: "hold",
        event: "nothing more starts until the next event",
    },
    CandidateRow {
        kind: CandidateKind::Start,
        name: "start",
        does: "start a job on free GPUs",
        action: None,
        about: About::Waiting,
        effect: Effect::Run,
        order: "start job {job}{place}",
        event: "job {job} starts{place}",
    },
    CandidateRow {
        kind: CandidateKind::Reserve,
        name: "reserve",
        does: "hold GPUs back for a job that does not fit yet; starts that do not delay it go on",
        action: Some(ActionKind::Reserve),
        about: About::Waiting,
        effect: Effect::HoldBack,
        order: "hold GPUs back for job {job}",
        event: "GPUs are held back for job {job}",
    },
    CandidateRow {
        kind: CandidateKind::Preempt,
        name: "preempt",
        does: "stop running jobs and start one in their place",
        action: Some(ActionKind::Preempt),
        about: About::Waiting,
        effect: Effect::Run,
        order: "stop job {victims} and start job {job}{place}",
        event: "job {victims} is stopped and job {job} starts{place}",
    },
    CandidateRow {
        kind: CandidateKind::Resize,
        name: "resize",
        does: "stop a running elastic job and start it again at once on half or twice its GPUs",
        action: Some(ActionKind::Resize),
        about: About::Running,
        effect: Effect::Run,
        order: "resize job {job}{place}",
        event: "job {job} goes on{place}, resized",
    },
];

const _: () = {
    let mut at = 0;
    while at < CANDIDATES.len() {
        assert!(
            CANDIDATES[at].kind as usize == at,
            "the row of each kind is at its number"
        );
        at += 1;
    }
};

/// The words that describe a candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The job's name.
    pub job: String,
    /// Where it would run: ` on 2 GPUs of 1 node`; empty for nowhere.
    pub place: String,
    /// The names of the jobs that are stopped.
    pub victims: String,
}

impl Words {
    fn in_place(&self, words: &str) -> String {
        let in_place = |part| match part {
            "job" => &self.job,
            "place" => &self.place,
            "victims" => &self.victims,
            _ => part,
        };
        let parts = words.split(['{', '}']).enumerate();
        parts
            .map(|(number, part)| if number % 2 == 1 { in_place(part) } else { part })
            .collect()
    }
}

impl CandidateKind {
    /// What is known of it.
    #[must_use]
    #[inline]
    pub const fn row(self) -> &'static CandidateRow {
        &CANDIDATES[self as usize]
    }

    /// Whether a job that waits is running after it.
    #[must_use]
    pub fn starts(self) -> bool {
        let CandidateRow { about, effect, .. } = self.row();
        (*about, *effect) == (About::Waiting, Effect::Run)
    }

    /// As an order: `stop job 1 and start job 3 on 2 GPUs of 1 node`.
    #[must_use]
    pub fn order(self, told: &Words) -> String {
        told.in_place(self.row().order)
    }

    /// As something that happens: `job 1 is stopped and job 3 starts on 2 GPUs of 1 node`.
    #[must_use]
    pub fn event(self, told: &Words) -> String {
        told.in_place(self.row().event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_told_with_all_their_words() {
        let told = Words {
            job: "3".into(),
            place: " on 2 GPUs".into(),
            victims: "1, {job}".into(),
        };
        for row in CANDIDATES {
            for words in [row.kind.order(&told), row.kind.event(&told)] {
                assert_eq!(row.about != About::Nobody, words.contains("job 3"), "{words}");
                assert!(
                    !words.contains("{place}") && !words.contains("{victims}"),
                    "{words}"
                );
            }
        }
        let order = CandidateKind::Preempt.order(&told);
        assert_eq!(order, "stop job 1, {job} and start job 3 on 2 GPUs");
    }
}
