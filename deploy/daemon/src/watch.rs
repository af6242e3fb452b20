//! The watch for drift and for broken promises in a driver's round, whatever the batch system: what is begun with, what decides, what
//! is counted, what is written down and what an operator reads.

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;
use pleach_site::promise::Limits;

use crate::config::RoundSettings;
use crate::drift::Drift;
use crate::error::Error;
use crate::history::End;
use crate::memory::Memory;
use crate::policy::Loaded;
use crate::promised::Guard;
use crate::round::{self, Deciders, Plan};
use crate::snapshot::Snapshot;
use crate::state::{DRIFT, State, Status, WAITS};

/// A watch. Drift is watched where the policy is a tree whose file has visits, and waits where something was promised.
#[derive(Clone, Debug)]
pub struct Watch {
    drift: Option<Drift>,
    guard: Option<Guard>,
}

impl Watch {
    /// Begins where another process ended, and says so in the status: the index, and what an operator should know.
    #[must_use]
    pub fn begin(
        loaded: &Loaded,
        promised: Option<Limits>,
        settings: &RoundSettings,
        state: &State,
        status: &mut Status,
    ) -> Watch {
        let guard = promised.map(|limits| {
            let (remembered, complaint) = state.read_watch(WAITS);
            status.warnings.extend(complaint);
            Guard::new(limits, settings).going_on(remembered)
        });
        status.warnings.extend(guard.as_ref().and_then(Guard::degraded));
        let (remembered, complaint) = state.read_watch(DRIFT);
        let drift = Drift::new(loaded, settings).map(|drift| drift.going_on(remembered, settings));
        status.warnings.extend(complaint);
        status.warnings.extend(drift.as_ref().and_then(Drift::warning));
        status.drift_psi = drift.as_ref().and_then(Drift::psi);
        Watch { drift, guard }
    }

    /// Begins anew with a policy that was just read.
    #[must_use]
    pub fn anew(
        loaded: &Loaded,
        promised: Option<Limits>,
        settings: &RoundSettings,
        state: &State,
        status: &mut Status,
    ) -> Watch {
        let drift = Drift::new(loaded, settings);
        status.drift_psi = None;
        status.promise = None;
        // A full disk costs these memories: a restart would then find what was remembered before.
        if let Some(drift) = &drift {
            let _ = state.write_watch(DRIFT, drift.remembered());
        }
        let mut guard = promised.map(|limits| Guard::new(limits, settings));
        if let Some(remembered) = guard.as_mut().and_then(|guard| guard.to_write(status.at_s)) {
            let _ = state.write_watch(WAITS, remembered);
        }
        Watch { drift, guard }
    }

    /// Whether a job that a promise is about is no longer there.
    #[must_use]
    pub fn misses(&self, snapshot: &Snapshot) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.misses(snapshot))
    }

    /// Holds the waits of a look against the promise, and writes them down and into the status; what is new to the operator, if
    /// anything.
    pub fn observe(
        &mut self,
        (snapshot, memory): (&Snapshot, &Memory),
        ends: &BTreeMap<ExternalId, End>,
        state: &State,
        status: &mut Status,
    ) -> Option<String> {
        let guard = self.guard.as_mut()?;
        let news = guard.observe(snapshot, memory, ends);
        status.warnings.extend(news.clone());
        status.promise = Some(guard.status(snapshot.taken_s));
        let remembered = guard.to_write(snapshot.taken_s)?;
        match state.write_watch(WAITS, remembered) {
            // A full disk costs what is remembered of waits, not the round.
            Err(error) => news.or_else(|| Some(error.to_string())),
            Ok(()) => news,
        }
    }

    /// A round's decisions: the policy's, and the fallback's where drift or a broken promise has led to it.
    ///
    /// # Errors
    /// As [`round::plan`].
    pub fn plan(
        &self,
        snapshot: &Snapshot,
        memory: &Memory,
        mut deciders: Deciders<'_>,
        settings: &RoundSettings,
        is_shadow: bool,
        is_late: &mut dyn FnMut() -> bool,
    ) -> Result<Plan, Error> {
        let broken = || self.guard.as_ref().and_then(Guard::degraded);
        match self.drift.as_ref().and_then(Drift::degraded).or_else(broken) {
            Some(reason) => {
                round::by_fallback(snapshot, memory, deciders.fallback, settings, is_shadow, &reason)
            }
            None => round::plan(snapshot, memory, &mut deciders, settings, is_shadow, is_late),
        }
    }

    /// Counts what the tree was offered, writes it down and into the status; what is new to the operator, if anything.
    pub fn count(
        &mut self,
        snapshot: &Snapshot,
        offered: &[Vec<u32>],
        state: &State,
        status: &mut Status,
    ) -> Option<String> {
        let drift = self.drift.as_mut()?;
        let before = (drift.remembered().clone(), drift.warning());
        let news = drift.count(snapshot, offered);
        status.drift_psi = drift.psi();
        let (remembered, warning) = before;
        if drift.warning() != warning {
            status.warnings.retain(|text| Some(text) != warning.as_ref());
            status.warnings.extend(drift.warning());
        }
        if *drift.remembered() != remembered
            && let Err(error) = state.write_watch(DRIFT, drift.remembered())
        {
            // A full disk costs what is remembered of drift, not the round.
            return news.or_else(|| Some(error.to_string()));
        }
        news
    }
}
