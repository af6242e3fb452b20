//! What choosing a candidate does: one row for each kind of candidate.

use super::ActionKind;

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
}

/// Whom a candidate is about.
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
    /// It stops the candidate's victims, if it has any, and starts the job on the candidate's GPUs.
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
    /// Whom it is about.
    pub about: About,
    /// What a pass does.
    pub effect: Effect,
    /// As an order, with the words of [`Words`] in braces.
    order: &'static str,
    /// As something that happens, with the words of [`Words`] in braces.
    event: &'static str,
}

/// All kinds of candidates; a kind's row is at its number.
pub const CANDIDATES: [CandidateRow; 4] = [
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

/// The words with which a candidate is told.
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
