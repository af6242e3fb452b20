//! One decision of a round, within its time.

use std::time::{Duration, Instant};

use crate::config::RoundSettings;
use crate::error::Error;
use crate::memory::Memory;
use crate::pulse::Pulse;
use crate::round::{Deciders, Plan};
use crate::snapshot::Snapshot;
use crate::state::{State, Status};
use crate::watch::Watch;

/// What decides a round beside the policies: guards, the watch for drift, the status.
pub(crate) struct Deciding<'a> {
    pub pulse: &'a Pulse,
    pub settings: &'a RoundSettings,
    pub is_shadow: bool,
    pub watch: &'a mut Watch,
    pub state: &'a State,
    pub status: &'a mut Status,
}

impl Deciding<'_> {
    /// The decisions of a round on a snapshot.
    pub fn decide(
        self,
        snapshot: &Snapshot,
        memory: &Memory,
        deciders: Deciders<'_>,
        notes: &mut Vec<String>,
        news: &mut Vec<String>,
    ) -> Result<Plan, Error> {
        let began = Instant::now();
        let limit = Duration::from_secs_f64(self.settings.deadline_s);
        let plan = self.watch.plan(
            snapshot,
            memory,
            deciders,
            self.settings,
            self.is_shadow,
            &mut || {
                self.pulse.beat();
                began.elapsed() > limit
            },
        )?;
        self.status.decide_s = began.elapsed().as_secs_f64();
        news.extend(self.watch.count(snapshot, &plan.offered, self.state, self.status));
        match self.status.decided(&plan) {
            // What goes on for as long as the cluster is what it is.
            Some(why) if plan.fallback.is_none() => news.push(why),
            why => notes.extend(why),
        }
        Ok(plan)
    }
}
