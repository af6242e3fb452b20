//! Carries decisions out by one long-lived `scontrol`: holds and starts ([`super::holding`]), or an order ([`super::ranking`]).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::order::Order;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::feed::Line;
use crate::slurm::holding::Holding;
use crate::slurm::ranking::{self, Telling, Writes};
use crate::slurm::seen::Seen;
use crate::snapshot::JobSeen;
use crate::system::{Hands, Kept, NotSent};

pub use crate::slurm::holding::hand_back;

/// What carries decisions out on what was seen of Slurm, by `scontrol`.
#[derive(Debug)]
pub struct Scontrol<'a> {
    commands: &'a Commands,
    seen: &'a Seen,
    release_limit_s: i64,
    look_took: Duration,
    /// Where no more than an order is told: how.
    telling: Option<Telling>,
    writes: &'a Mutex<Writes>,
}

impl<'a> Scontrol<'a> {
    /// For one round.
    pub(super) fn new(
        commands: &'a Commands,
        seen: &'a Seen,
        (release_limit_s, look_took): (i64, Duration),
        (telling, writes): (Option<Telling>, &'a Mutex<Writes>),
    ) -> Scontrol<'a> {
        Scontrol {
            commands,
            seen,
            release_limit_s,
            look_took,
            telling,
            writes,
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Holding<'_>) -> T) -> T {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let Writes { feed, rivals, .. } = &mut *writes;
        act(&mut Holding {
            feed,
            rivals,
            commands: self.commands,
            seen: self.seen,
            release_limit_s: self.release_limit_s,
            look_took: self.look_took,
        })
    }
}

impl Hands for Scontrol<'_> {
    async fn keep(&mut self, _now_s: i64) -> Kept {
        if self.telling.is_none() {
            return self.with(|holding| holding.keep());
        }
        Kept {
            notes: self.with(|holding| holding.give_back_left_over()),
            late: Vec::new(),
        }
    }

    async fn rank(&mut self, order: &mut Order, now: &mut [Planned]) -> Vec<String> {
        let Some(telling) = self.telling else {
            return Vec::new();
        };
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let Writes {
            feed,
            pins,
            rivals,
            outside,
        } = &mut *writes;
        let waiting = &self.seen.waiting;
        let mut notes = ranking::tell((feed, self.commands), (rivals, outside), waiting, order, telling);
        if telling.places {
            let seen = (waiting.queue.as_slice(), self.seen.snapshot.jobs.as_slice());
            notes.extend(pins.tell((feed, self.commands), seen, now));
        }
        notes
    }

    async fn stop(&mut self, job: &JobSeen, _planned: &Planned) -> Result<(), NotSent> {
        let name = job.id.to_string();
        // The mark comes first: one that Slurm started before it was seen has none, and held without one it waits for ever.
        let wish = self.seen.named.wish(job.id);
        let lines = [Line::to_be_stopped(&name, wish), Line::requeue_held(&name)];
        let lines: Vec<Line> = lines.into_iter().flatten().collect();
        let said = self.with(|holding| holding.feed.carry_out(holding.commands, &lines));
        match said.map_err(NotSent::refused)?.first() {
            Some(text) => Err(NotSent::refused(text)),
            None => Ok(()),
        }
    }

    async fn start_all(&mut self, starts: &[(&JobSeen, &Planned)], now_s: i64) -> Vec<Result<(), NotSent>> {
        self.with(|holding| holding.start_all(starts, now_s))
    }

    async fn start(&mut self, job: &JobSeen, planned: &Planned, now_s: i64) -> Result<(), NotSent> {
        let sent = self.with(|holding| holding.start_all(&[(job, planned)], now_s));
        sent.into_iter().next().unwrap_or(Ok(()))
    }
}
