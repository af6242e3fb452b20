//! The watch for drift in a driver's round, whatever the batch system: what is begun with, what decides, what is counted, what is
//! written down and what an operator is told.

use crate::config::RoundSettings;
use crate::drift::Drift;
use crate::error::Error;
use crate::memory::Memory;
use crate::policy::Loaded;
use crate::round::{self, Deciders, Plan};
use crate::snapshot::Snapshot;
use crate::state::{State, Status};

/// A watch; it has nothing to do where the policy is no tree, or one whose file has no visits.
#[derive(Clone, Debug)]
pub struct Watch {
    drift: Option<Drift>,
}

impl Watch {
    /// Begins where another process ended, and says so in the status: the index, and what an operator should know.
    #[must_use]
    pub fn begin(loaded: &Loaded, settings: &RoundSettings, state: &State, status: &mut Status) -> Watch {
        let (remembered, complaint) = state.read_drift();
        let drift = Drift::new(loaded, settings).map(|drift| drift.going_on(remembered, settings));
        status.warnings.extend(complaint);
        status.warnings.extend(drift.as_ref().and_then(Drift::warning));
        status.drift_psi = drift.as_ref().and_then(Drift::psi);
        Watch { drift }
    }

    /// Begins anew with a policy that was just read.
    #[must_use]
    pub fn anew(loaded: &Loaded, settings: &RoundSettings, state: &State, status: &mut Status) -> Watch {
        let drift = Drift::new(loaded, settings);
        status.drift_psi = None;
        if let Some(drift) = &drift {
            // A full disk costs the memory of drift: a restart would then find what was remembered before.
            let _ = state.write_drift(drift.remembered());
        }
        Watch { drift }
    }

    /// A round's decisions: the policy's, and the fallback's where drift has led to it.
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
        match self.drift.as_ref().and_then(Drift::degraded) {
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
            && let Err(error) = state.write_drift(drift.remembered())
        {
            // A full disk costs what is remembered of drift, not the round.
            return news.or_else(|| Some(error.to_string()));
        }
        news
    }
}
