//! What a round shows that no operator should have to find out: which job has waited longest, what begins to run, which GPUs
//! stand idle beside jobs that would fit there, what decided.

use std::collections::BTreeSet;

use pleach_scheduler::decision::Action;
use pleach_scheduler::{Cluster, ExternalId};
use serde::{Deserialize, Serialize};

use crate::record::Planned;
use crate::round::Plan;
use crate::snapshot::Phase;
use crate::system::Look;

/// What decided a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The policy.
    #[default]
    Policy,
    /// Another rule, to which the policy leaves this cluster.
    Another,
    /// The fallback: the policy failed, was late, or has drifted.
    Fallback,
}

/// The job that has waited longest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oldest {
    /// How it is called.
    pub name: String,
    /// For how long it has waited, s.
    pub wait_s: i64,
}

/// What the last round showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoundFacts {
    /// The job that waits for the driver longest; none: no job waits.
    pub oldest: Option<Oldest>,
    /// Jobs that were seen to begin to run since the daemon began.
    pub num_started: u64,
    /// GPUs that were free after the round; those of starts that were not sent are among them.
    pub num_gpus_idle: u32,
    /// Jobs that waited after the round and would have fitted there, one by one.
    pub num_jobs_fitting: usize,
    /// What decided.
    pub decided_by: DecidedBy,
    /// Why it was not the policy; empty where it was.
    pub why: String,
    /// Jobs that ran; none before the first look.
    #[serde(skip)]
    running: Option<BTreeSet<ExternalId>>,
}

impl RoundFacts {
    /// Takes in a round that was carried out.
    pub fn read(&mut self, look: &impl Look, plan: &Plan) {
        let snapshot = look.snapshot();
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting | Phase::Loose);
        let jobs = || snapshot.jobs.iter().filter(|job| !job.terms.is_lease);
        let waiting = jobs().filter(|job| waits(&job.phase));
        let oldest = waiting.min_by(|a, b| {
            let same = || a.arrival().cmp(&b.arrival());
            a.submit_s.cmp(&b.submit_s).then_with(same)
        });
        self.oldest = oldest.map(|job| Oldest {
            name: look.name(job.id),
            wait_s: (snapshot.taken_s - job.submit_s).max(0),
        });
        let runs = jobs().filter(|job| job.phase == Phase::Running);
        let running: BTreeSet<ExternalId> = runs.map(|job| job.id).collect();
        if let Some(before) = &self.running {
            self.num_started += running.difference(before).count() as u64;
        }
        self.running = Some(running);
        (self.decided_by, self.why) = match (&plan.fallback, &plan.aside) {
            (Some(why), _) => (DecidedBy::Fallback, why.clone()),
            (None, Some(why)) => (DecidedBy::Another, why.clone()),
            (None, None) => (DecidedBy::Policy, String::new()),
        };
        let is_unsent = |planned: &&Planned| !planned.outcome.is_empty() && planned.outcome != "sent";
        // Under `Drive::Order` the tables are as they were seen and have no start.
        let in_tables = plan.decisions.iter().filter(|_| plan.order.is_none());
        let starts = in_tables.filter(|planned| planned.decision.action == Action::Start);
        let unsent: Vec<&Planned> = starts.filter(is_unsent).collect();
        let (num_free, num_fitting) = plan
            .fleet
            .as_ref()
            .map_or((0, 0), |fleet| fitting(&fleet.cluster));
        self.num_gpus_idle = num_free
            + unsent
                .iter()
                .map(|planned| planned.decision.num_gpus)
                .sum::<u32>();
        self.num_jobs_fitting = num_fitting + unsent.len();
    }

    /// What an operator reads of it; no line where there is nothing to say.
    #[must_use]
    pub fn told(&self) -> String {
        let mut text = String::new();
        if let Some(Oldest { name, wait_s }) = &self.oldest {
            text += &format!("\n{name} has waited longest: {wait_s} s");
        }
        text += &format!(
            "\n{} jobs were seen to start; {} GPU(s) idle, {} waiting job(s) would fit there",
            self.num_started, self.num_gpus_idle, self.num_jobs_fitting
        );
        match self.decided_by {
            DecidedBy::Policy => {}
            DecidedBy::Another => text += &format!("\nanother rule decided the last round: {}", self.why),
            DecidedBy::Fallback => text += &format!("\nthe fallback decided the last round: {}", self.why),
        }
        text
    }
}

/// Free GPUs, and pending jobs that fit there now. The pending ones come demand by demand, so each demand is looked at once.
fn fitting(cluster: &Cluster) -> (u32, usize) {
    let num_free = cluster.num_free();
    if num_free == 0 {
        return (0, 0);
    }
    let (mut last, mut num) = (None, 0);
    for row in cluster.pending() {
        let demand = cluster.demand(row);
        let fits = match last {
            Some((of, fits)) if of == demand => fits,
            _ => cluster.fitting_types(demand) != 0,
        };
        last = Some((demand, fits));
        num += usize::from(fits);
    }
    (num_free, num)
}
