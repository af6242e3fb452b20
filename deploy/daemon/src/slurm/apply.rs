//! Carries an order out by one long-lived `scontrol`: factors ([`super::ranking`]), nodes (`pins`), and stops where they are allowed
//! (`stops`).

use std::sync::{Mutex, PoisonError};

use crate::order::Order;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::left_over::give_back;
use crate::slurm::ranking::{self, Telling, Writes};
use crate::slurm::seen::Seen;
use crate::snapshot::JobSeen;
use crate::system::{Hands, Kept, NotSent};

/// What carries an order out on what was seen of Slurm, by `scontrol`.
#[derive(Debug)]
pub struct Scontrol<'a> {
    pub(super) commands: &'a Commands,
    pub(super) seen: &'a Seen,
    pub(super) telling: Telling,
    pub(super) writes: &'a Mutex<Writes>,
}

impl Hands for Scontrol<'_> {
    async fn keep(&mut self, _now_s: i64) -> Kept {
        let mut kept = Kept::default();
        if !self.seen.left_over.is_empty() {
            let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
            kept.notes = give_back((&mut writes.feed, self.commands), &self.seen.left_over, true);
        }
        kept
    }

    async fn rank(&mut self, order: &mut Order, now: &mut [Planned]) -> Vec<String> {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let Writes {
            feed,
            pins,
            rivals,
            outside,
            stops,
        } = &mut *writes;
        let seen = (&self.seen.waiting, &self.seen.snapshot);
        let mut notes = ranking::tell(
            (feed, self.commands),
            (rivals, outside),
            seen,
            order,
            self.telling,
        );
        notes.extend(pins.tell((feed, self.commands), self.seen, now));
        // The order comes first: what is stopped leaves its GPUs to the head of it.
        notes.extend(stops.tell((feed, self.commands), self.seen, now));
        notes
    }

    async fn stop(&mut self, _job: &JobSeen, _planned: &Planned) -> Result<(), NotSent> {
        Err(NotSent::put_off("Slurm is told an order"))
    }

    async fn start(&mut self, _job: &JobSeen, _planned: &Planned, _now_s: i64) -> Result<(), NotSent> {
        Err(NotSent::put_off("Slurm starts jobs itself"))
    }
}
