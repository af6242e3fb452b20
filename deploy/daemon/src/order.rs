//! An order of waiting jobs, for batch systems that start jobs themselves: what was ranked, and what was written of it.

use std::collections::BTreeMap;

use pleach_dealing::Ranked;
use pleach_scheduler::ExternalId;
use serde::{Deserialize, Serialize};

use crate::fleet::Fleet;

/// Jobs of an order that are named to an operator.
const NUM_TOLD: usize = 10;

/// An order of waiting jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Order {
    /// The jobs in the policy's tables, the first first; in a log no more than those that were ranked.
    pub jobs: Vec<ExternalId>,
    /// How many there are in all.
    pub num_jobs: usize,
    /// How many of them it ranked; the others are in the order of arrival.
    pub num_ranked: usize,
    /// What was written into the batch system, by its names for jobs; in shadow mode, nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, i64>,
    /// What is left to be written in later rounds.
    pub num_left: usize,
}

impl Order {
    /// What was ranked on tables, by the names of jobs.
    #[must_use]
    pub fn of(ranked: &Ranked, fleet: &Fleet) -> Order {
        let names = ranked.jobs.iter().map(|id| fleet.cluster.job(*id).external);
        Order {
            jobs: names.collect(),
            num_jobs: ranked.jobs.len(),
            num_ranked: ranked.num_ranked,
            ..Order::default()
        }
    }

    /// What a log has of it: the others are in the order of arrival, and may be many.
    #[must_use]
    pub fn for_log(mut self) -> Order {
        self.jobs.truncate(self.num_ranked);
        self
    }

    /// Whether another one ranks the same jobs alike.
    #[must_use]
    pub fn is_ranked_as(&self, other: &Order) -> bool {
        let ranked = |order: &Order| order.jobs.get(..order.num_ranked).map(<[ExternalId]>::to_vec);
        ranked(self) == ranked(other)
    }

    /// Place of a job, from 1; none of a job that is not in it.
    #[must_use]
    pub fn place(&self, job: ExternalId) -> Option<usize> {
        Some(self.jobs.iter().position(|other| *other == job)? + 1)
    }

    /// Where a job stands, in words; none of a job that is not in it.
    #[must_use]
    pub fn told(&self, job: ExternalId) -> Option<String> {
        let place = self.place(job)?;
        let by = match place <= self.num_ranked {
            true => "",
            false => ", by arrival behind those that were ranked",
        };
        Some(format!("number {place} of {} in the order{by}", self.num_jobs))
    }

    /// The first jobs, in words.
    #[must_use]
    pub fn first(&self) -> String {
        let first: Vec<String> = self.jobs.iter().take(NUM_TOLD).map(ToString::to_string).collect();
        let more = self.jobs.len().saturating_sub(NUM_TOLD);
        match more {
            0 => first.join(", "),
            more => format!("{} and {more} more", first.join(", ")),
        }
    }
}
