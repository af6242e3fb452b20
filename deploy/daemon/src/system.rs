//! What a batch system is to the driver: something that shows itself, tells of ended jobs, and carries decisions out.
//!
//! The three are apart. A look is plain data that no later step changes, so it may be shared with threads that answer clients
//! meanwhile; nothing is decided while looking; and hands know nothing of policies. Methods may wait, as those of a client of an
//! API server do; where they never do, as with commands, [`crate::wait::block_on`] runs a driver without any runtime.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use pleach_scheduler::ExternalId;

use crate::error::Error;
use crate::forecasts::News;
use crate::history::{End, EndedJob};
use crate::order::Order;
use crate::pulse::Pulse;
use crate::record::Planned;
use crate::snapshot::{JobSeen, Snapshot};

/// How a batch system is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// The scheduler of the jobs that are left alone.
    pub scheduler: &'static str,
    /// The figure that counts those: its name and what it says.
    pub left_alone: (&'static str, &'static str),
    /// What stands before the name of what is driven, with a space; empty where that says it itself.
    pub place: &'static str,
    /// What is given back to that scheduler.
    pub held: &'static str,
    /// The program that drives it.
    pub program: &'static str,
}

/// One look at a batch system.
pub trait Look {
    /// What policies decide on.
    fn snapshot(&self) -> &Snapshot;

    /// The same, to write predictions into it before the look is shared.
    fn snapshot_mut(&mut self) -> &mut Snapshot;

    /// The same, of a look that nothing else needs.
    fn into_snapshot(self) -> Snapshot;

    /// How people call a job.
    fn name(&self, job: ExternalId) -> String;

    /// What the batch system itself says of a job that waits, in a sentence; none where it says nothing.
    fn says(&self, _job: ExternalId) -> Option<String> {
        None
    }

    /// What an operator should know, whatever is decided.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// What the status says of jobs beyond the policy, in a sentence; empty where there are none.
    fn standing(&self) -> &str {
        ""
    }

    /// Jobs that came to what is driven and were not held, where that is an error; none where it is not known.
    fn num_unheld(&self) -> Option<usize> {
        None
    }

    /// What another driver of the same jobs was seen to do; none: nothing.
    fn rival(&self) -> Option<&str> {
        None
    }
}

/// What was done before the decisions of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What an operator should know of it, what was refused included; that is tried again in the next round.
    pub notes: Vec<String>,
    /// Jobs that were let go and did not start.
    pub late: Vec<Late>,
}

/// A job that was let go and did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// The job.
    pub job: ExternalId,
    /// The node that did not take it; none where the reason is no node's.
    pub node: Option<String>,
    /// Why, in the words of the batch system, or that it gives no reason.
    pub reason: String,
    /// Time for which it is not let go again, s; 0 where it may go to another node at once.
    pub pause_s: i64,
}

/// Why a decision was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSent {
    /// In words, as the log has them: put off, refused, cut short.
    pub why: String,
    /// The nodes of it that would not take the job; empty where it is not the nodes' fault.
    pub nodes: Vec<String>,
}

impl NotSent {
    /// It is not tried in this round.
    #[must_use]
    pub fn put_off(why: impl Display) -> NotSent {
        NotSent {
            why: format!("put off: {why}"),
            nodes: Vec::new(),
        }
    }

    /// The batch system would not.
    #[must_use]
    pub fn refused(error: impl Display) -> NotSent {
        NotSent {
            why: format!("refused: {error}"),
            nodes: Vec::new(),
        }
    }

    /// The same, and these nodes are why.
    #[must_use]
    pub fn by(self, nodes: impl IntoIterator<Item = String>) -> NotSent {
        NotSent {
            nodes: nodes.into_iter().collect(),
            ..self
        }
    }
}

/// A batch system that can be driven.
pub trait BatchSystem {
    /// One look at it.
    type Look: Look;
    /// What carries decisions out that were made on a look.
    type Hands<'a>: Hands
    where
        Self: 'a;
    /// What can go wrong with it.
    type Error: std::error::Error + From<Error>;

    /// How it is called.
    const WORDS: Words;

    /// What of it is driven.
    fn place(&self) -> String;

    /// The life signs that its own steps give; those that take long alone need to.
    fn pulse(&self) -> Pulse {
        Pulse::default()
    }

    /// What an operator should know of it, whatever the policy.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Looks at it, at Unix time `now_s`.
    fn observe(&mut self, now_s: i64) -> impl Future<Output = Result<Self::Look, Self::Error>>;

    /// Whether another look at Unix time `now_s` would see what the last one saw, and nothing of that is under way; what answers others
    /// from the last look goes on doing so. False where that is not known without a look.
    fn rests(&mut self, _now_s: i64) -> impl Future<Output = Result<bool, Self::Error>> {
        async { Ok(false) }
    }

    /// Tells the cluster at Unix time `now_s` that the fallback decides from now on, where it has a place for that.
    fn announce(&self, _news: &str, _now_s: i64) {}

    /// Tells users when their jobs would start, as far as there is a place for it; whether it was taken.
    ///
    /// # Errors
    /// What the batch system refuses.
    fn foretell(&mut self, _look: &Self::Look, _news: &[News]) -> Result<bool, String> {
        Ok(true)
    }

    /// Shows a look to the threads that answer clients from it.
    fn show(&self, _look: &Arc<Self::Look>) {}

    /// How jobs ended that have left a short time ago, as far as it tells.
    fn ended(&self) -> impl Future<Output = Result<BTreeMap<ExternalId, End>, Self::Error>>;

    /// Accounting: jobs that ended on their own in the last `days` days before a look, as far as it is kept.
    fn past(&self, look: &Self::Look, days: u32) -> impl Future<Output = Result<Vec<EndedJob>, Self::Error>>;

    /// What carries out what the policy of that name decides on a look.
    fn hands<'a>(&'a self, look: &'a Self::Look, policy: &'a str) -> Self::Hands<'a>;
}

/// What carries decisions out, in one round: one by one, in their order.
pub trait Hands {
    /// Before the decisions: holds what is not held yet, finishes what was cut short, takes back what did not start, gives back
    /// what has no place in the policy's tables.
    fn keep(&mut self, now_s: i64) -> impl Future<Output = Kept>;

    /// Gives the batch system the order of the waiting jobs, as far as a round has time for, and notes in it what was written.
    /// `now` is what the policy would do now. What an operator should know of it comes back; what was refused is written again in
    /// the next round. Only batch systems that start jobs by themselves get one.
    fn rank(&mut self, _order: &mut Order, _now: &mut [Planned]) -> impl Future<Output = Vec<String>> {
        async { Vec::new() }
    }

    /// Stops a running job for another one.
    fn stop(&mut self, job: &JobSeen, planned: &Planned) -> impl Future<Output = Result<(), NotSent>>;

    /// Lets jobs go in their order; what became of each, as many as there are. The same as [`Hands::start`] one after the other,
    /// which it is where a batch system has no faster way.
    fn start_all(
        &mut self,
        starts: &[(&JobSeen, &Planned)],
        now_s: i64,
    ) -> impl Future<Output = Vec<Result<(), NotSent>>> {
        async move {
            let mut sent = Vec::with_capacity(starts.len());
            for (job, planned) in starts {
                sent.push(self.start(job, planned, now_s).await);
            }
            sent
        }
    }

    /// Lets a job go to the nodes of its placement.
    fn start(
        &mut self,
        job: &JobSeen,
        planned: &Planned,
        now_s: i64,
    ) -> impl Future<Output = Result<(), NotSent>>;

    /// After the decisions: waits for the answers to starts that were sent without waiting; those that were not sent after all.
    fn settle(&mut self) -> impl Future<Output = Vec<(ExternalId, NotSent)>> {
        async { Vec::new() }
    }
}
