//! What a driver learns of run times: read at its start, taken in with each look, written down where it is news.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::ExternalId;

use crate::config::{EstimateSettings, EstimatesFrom, RoundSettings};
use crate::error::Error;
use crate::history::{End, History};
use crate::memory::Memory;
use crate::snapshot::Snapshot;
use crate::state::{self, State};
use crate::system::{BatchSystem, Look};

/// How jobs ended that have left, where that is worth asking, and what went wrong about it.
pub(crate) async fn ends<S: BatchSystem>(
    system: &S,
    is_asked: bool,
) -> (BTreeMap<ExternalId, End>, Option<String>) {
    let ends = match is_asked {
        true => system.ended().await,
        false => Ok(BTreeMap::new()),
    };
    // Where a job's end is not reported, the times at which it was seen have to do.
    match ends {
        Ok(ends) => (ends, None),
        Err(error) => (BTreeMap::new(), Some(error.to_string())),
    }
}

/// What was learned; nothing where estimates are time limits.
#[derive(Debug)]
pub(crate) struct Learning {
    history: Option<History>,
    /// When that was last written, Unix time, s; none: what there is now has not been.
    written_s: Option<i64>,
    /// Whether accounting is still to be read.
    is_unread: bool,
}

impl Learning {
    /// Goes on from a folder; why that begins anew, if it does.
    pub(crate) fn begin(folder: &Path, settings: &EstimateSettings) -> (Learning, Option<String>) {
        let (history, complaint) = match settings.from {
            EstimatesFrom::Limit => (None, None),
            EstimatesFrom::History => {
                let (history, complaint) = state::read_history(folder, settings);
                (Some(history), complaint)
            }
        };
        let learning = Learning {
            is_unread: settings.seed_days > 0 && history.as_ref().is_some_and(History::is_empty),
            history,
            written_s: None,
        };
        (learning, complaint)
    }

    /// Learns from accounting, with the first look alone; why it did not.
    pub(crate) async fn seed<S: BatchSystem>(
        &mut self,
        system: &S,
        look: &S::Look,
        settings: &RoundSettings,
    ) -> Option<String> {
        let history = self.history.as_mut().filter(|_| self.is_unread)?;
        self.is_unread = false;
        match system.past(look, settings.estimates.seed_days).await {
            Ok(jobs) => {
                history.learn_past(jobs, look.snapshot(), settings);
                self.written_s = None;
                None
            }
            Err(error) => Some(format!("estimates begin with nothing learned: {error}")),
        }
    }

    /// Whether it is worth asking how jobs have ended.
    pub(crate) fn misses(&self, snapshot: &Snapshot) -> bool {
        self.history
            .as_ref()
            .is_some_and(|history| history.misses(snapshot))
    }

    /// Learns from jobs that have left, and tells the others what is expected of them.
    pub(crate) fn learn(
        &mut self,
        snapshot: &mut Snapshot,
        memory: &Memory,
        ends: &BTreeMap<ExternalId, End>,
        settings: &RoundSettings,
    ) {
        if let Some(history) = &mut self.history
            && history.observe(snapshot, memory, ends, settings)
        {
            self.written_s = None;
        }
    }

    /// A job is being stopped: its run says nothing of how long it takes.
    pub(crate) fn stopped(&mut self, job: ExternalId) {
        if let Some(history) = &mut self.history {
            history.stopped(job);
            self.written_s = None;
        }
    }

    /// Writes what was learned where it is other than what was written, and now and then when the jobs were last seen.
    pub(crate) fn write(&mut self, state: &State, now_s: i64) -> Result<(), Error> {
        let is_recent = |written_s: i64| state::is_recent(written_s, now_s);
        let (Some(history), false) = (&self.history, self.written_s.is_some_and(is_recent)) else {
            return Ok(());
        };
        state.write_history(history)?;
        self.written_s = Some(now_s);
        Ok(())
    }
}
