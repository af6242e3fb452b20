//! The order of all waiting jobs that a policy or a dealer means, for batch systems that take an order and nothing else.
//!
//! A policy says which jobs start now, and is then asked again and again as if all running jobs had ended, until each has had a
//! turn: first come the jobs that it would start now, in its order, then the one for which it would hold GPUs back, then the others
//! as it would start them on emptied clusters. A job for which GPUs are held back there takes its turn with that. What waits on
//! purpose comes late in the order, which is all that is left of waiting. A dealer has scores, and its order is theirs.
//!
//! What is asked is limited by counts: no more than [`RANKED_MAX`] jobs are ranked. The others, and those that would not start on
//! an emptied cluster, come behind in the order of arrival.
//!
//! # Source
//! Ours; asking as if all leases had ended is [`PassOrder`](crate::PassOrder)'s.

use std::collections::HashSet;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::cluster::decision::{Action, Decision};
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{DecisionPoint, IdHash, JobId, PolicyError};

use crate::passes::Offered;
use crate::round::RoundDealer;
use crate::trust::Trust;

/// Most jobs that are ranked; the others come behind in the order of arrival. *Ours*: far more than start before the next look.
pub const RANKED_MAX: usize = 1000;

/// An order of all waiting jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// All of them, the first first.
    pub jobs: Vec<JobId>,
    /// How many of them are ranked; the others are in the order of arrival.
    pub num_ranked: usize,
    /// What a policy decides now, with the tables as they are, and what it says of each decision; nothing of a dealer.
    pub now: Vec<(Decision, String)>,
}

/// Gets each decision that is about to be made now, by the index of its candidate, and returns why it is made.
pub type Explains<'a> = &'a mut dyn FnMut(&DecisionPoint<'_>, usize) -> Result<String, PolicyError>;

/// Ranks jobs.
pub struct Ranker(By);

enum By {
    Policy(Box<Asked>),
    Scores(Box<RoundDealer>),
    Order(Order),
}

/// An order of a program's own: a number of a waiting job, the least first.
#[derive(Clone, Copy, Debug)]
struct Order {
    name: &'static str,
    of: fn(&Cluster, JobId) -> f64,
}

impl Order {
    /// All waiting jobs; equal numbers in the order of arrival.
    fn ranked(self, cluster: &Cluster) -> Vec<JobId> {
        let mut jobs: Vec<(f64, JobId)> = cluster.pending().map(|id| ((self.of)(cluster, id), id)).collect();
        jobs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        jobs.into_iter().map(|(_, id)| id).collect()
    }
}

struct Asked {
    policy: Offered<Box<dyn Policy>>,
    pass: Pass,
}

impl std::fmt::Debug for Ranker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Ranker").field(&self.name()).finish()
    }
}

impl Ranker {
    /// By the choices of a policy.
    #[must_use]
    pub fn by_policy(policy: Box<dyn Policy>) -> Ranker {
        Ranker(By::Policy(Box::new(Asked {
            policy: Offered(policy),
            pass: Pass::new(),
        })))
    }

    /// By the scores of a dealer, which believes estimates of run times as they are.
    #[must_use]
    pub fn by_scores(dealer: RoundDealer) -> Ranker {
        Ranker(By::Scores(Box::new(dealer)))
    }

    /// By a number of each waiting job, the least first; equal ones in the order of arrival.
    #[must_use]
    pub fn by_order(name: &'static str, of: fn(&Cluster, JobId) -> f64) -> Ranker {
        Ranker(By::Order(Order { name, of }))
    }

    /// Name of what ranks.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            By::Policy(asked) => asked.policy.name(),
            By::Scores(dealer) => dealer.name(),
            By::Order(order) => order.name,
        }
    }

    /// The policy that is asked; none of a dealer.
    #[must_use]
    pub fn policy(&self) -> Option<&dyn Policy> {
        match &self.0 {
            By::Policy(asked) => Some(asked.policy.0.as_ref()),
            By::Scores(_) | By::Order(_) => None,
        }
    }

    /// The order of all waiting jobs.
    ///
    /// # Errors
    /// A policy that cannot be asked.
    pub fn rank(&mut self, cluster: &Cluster) -> Result<Ranked, PolicyError> {
        let mut says_nothing = |_: &DecisionPoint<'_>, _: usize| Ok(String::new());
        let ranked = self.rank_until(cluster, &mut says_nothing, &mut || false)?;
        Ok(ranked.unwrap_or_default())
    }

    /// The same with the reasons of what is decided now, and only as long as it is not late, which is asked between decisions.
    /// Jobs that had no turn then come behind in the order of arrival; nothing, where not even the decisions of now were done.
    ///
    /// # Errors
    /// As [`Ranker::rank`].
    pub fn rank_until(
        &mut self,
        cluster: &Cluster,
        explains: Explains<'_>,
        is_late: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Ranked>, PolicyError> {
        let mut turns = Turns::default();
        let mut now = Vec::new();
        match &mut self.0 {
            By::Scores(dealer) => turns.extend(by_score(dealer, cluster)?),
            By::Order(order) => turns.extend(order.ranked(cluster)),
            By::Policy(asked) => {
                let Some(decided) = asked.decide_now(cluster, explains, is_late)? else {
                    return Ok(None);
                };
                now = decided;
                let takes = |action: Action| now.iter().filter(move |(made, _)| made.action == action);
                turns.extend(takes(Action::Start).map(|(made, _)| made.row));
                turns.extend(takes(Action::Reserve).map(|(made, _)| made.row));
                asked.ask_on(cluster, &mut turns, is_late)?;
            }
        }
        Ok(Some(turns.ranked(cluster, now)))
    }
}

/// Waiting jobs by score on the type that suits each best, best first; a job without a score is not among them.
fn by_score(dealer: &RoundDealer, cluster: &Cluster) -> Result<Vec<JobId>, PolicyError> {
    let scores = dealer.scores(cluster, Trust::default(), true)?;
    let best = |id: JobId| {
        let kinds = cluster.types_in(cluster.job(id).types);
        let scored = kinds.map(|kind| scores.of(cluster, id, kind));
        scored.max_by(f64::total_cmp).map(|score| (score, id))
    };
    let mut scored: Vec<(f64, JobId)> = cluster.pending().filter_map(best).collect();
    let arrival = |id: JobId| (cluster.job(id).submit, id);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| arrival(a.1).cmp(&arrival(b.1))));
    Ok(scored.into_iter().map(|(_, id)| id).collect())
}

impl Asked {
    /// One pass on the tables as they are; none if it was too late.
    fn decide_now(
        &mut self,
        cluster: &Cluster,
        explains: Explains<'_>,
        is_late: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<(Decision, String)>>, PolicyError> {
        let mut tables = cluster.clone();
        let needs = self.policy.needs();
        let (mut made, mut decided) = (Vec::new(), Vec::new());
        tables.take_decisions(&mut made);
        made.clear();
        let mut state = self.pass.open(&tables, &needs);
        while state == PassState::Open {
            if is_late() {
                return Ok(None);
            }
            let action = self.pass.decide(&tables, &mut self.policy)?;
            let point = DecisionPoint {
                cluster: &tables,
                candidates: self.pass.candidates(),
                observation: self.pass.observation().as_ref(),
            };
            let why = explains(&point, action)?;
            state = self.pass.act(&mut tables, &needs, action);
            tables.take_decisions(&mut made);
            decided.extend(made.drain(..).map(|decision| (decision, why.clone())));
        }
        Ok(Some(decided))
    }

    /// Passes on emptied clusters, until no job is left that would start there, enough have had a turn or it is late.
    fn ask_on(
        &mut self,
        cluster: &Cluster,
        turns: &mut Turns,
        is_late: &mut dyn FnMut() -> bool,
    ) -> Result<(), PolicyError> {
        if turns.order.len() >= RANKED_MAX {
            return Ok(());
        }
        let mut tables = cluster.clone();
        let needs = self.policy.needs();
        let mut made = Vec::new();
        tables.take_decisions(&mut made);
        for id in &turns.order {
            tables.withdraw(*id);
        }
        loop {
            let running: Vec<JobId> = tables.running().collect();
            for id in running {
                tables.finish(id);
            }
            made.clear();
            let mut state = self.pass.open(&tables, &needs);
            while state == PassState::Open {
                if turns.order.len() >= RANKED_MAX || is_late() {
                    return Ok(());
                }
                let action = self.pass.decide(&tables, &mut self.policy)?;
                state = self.pass.act(&mut tables, &needs, action);
                let before = made.len();
                tables.take_decisions(&mut made);
                turns.extend(made[before..].iter().map(|decision| decision.row));
            }
            if !made.iter().any(|decision| decision.action == Action::Start) {
                return Ok(());
            }
        }
    }
}

/// Jobs that have had a turn, in the order of turns.
#[derive(Debug, Default)]
struct Turns {
    order: Vec<JobId>,
    had: HashSet<JobId, IdHash>,
}

impl Turns {
    fn extend(&mut self, jobs: impl IntoIterator<Item = JobId>) {
        for id in jobs {
            if self.order.len() < RANKED_MAX && self.had.insert(id) {
                self.order.push(id);
            }
        }
    }

    /// The others behind, by arrival.
    fn ranked(self, cluster: &Cluster, now: Vec<(Decision, String)>) -> Ranked {
        let num_ranked = self.order.len();
        let mut rest: Vec<JobId> = cluster.pending().filter(|id| !self.had.contains(id)).collect();
        rest.sort_by_key(|id| (cluster.job(*id).submit, *id));
        let mut jobs = self.order;
        jobs.extend(rest);
        Ranked {
            jobs,
            num_ranked,
            now,
        }
    }
}
