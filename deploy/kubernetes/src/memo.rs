//! What a look need not read again: what it read before of objects that are still the same, and all of it while nothing changes.
//!
//! A memo holds nothing that a look does not find by itself. An object is the same while the cache of the watches keeps the very one:
//! each change of it is another object there.

use std::ops::Range;
use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Settings;
use crate::observe::{self, Lists, Observed};
use crate::reads::{Reading, Reads};
use crate::seats::Traces;

/// The last look of a controller, whose settings stay the same.
#[derive(Debug, Default)]
pub struct Memo {
    /// What it was made from. While these are held, no other object lies where one of them does.
    lists: Lists,
    reads: Reads,
    /// What it saw, after which look, and when another one at the same lists sees the same, Unix time, s.
    last: Option<(Range<i64>, Traces, Observed)>,
}

impl Memo {
    /// The same as [`observe::observe_after`].
    #[must_use]
    pub fn observe(&mut self, before: &Traces, lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
        if let Some((.., seen)) = &self.last
            && self.sees_the_same(before, lists, now_s)
        {
            let mut seen = seen.clone();
            seen.snapshot.taken_s = now_s;
            return seen;
        }
        let clock = Clock::at(now_s);
        let mut reading = Reading {
            // Nothing of it goes before this look is over: no new pod lies where one of these does.
            before: &self.reads,
            has_same_classes: are_same(&self.lists.classes, &lists.classes),
            now: Reads::default(),
            settings,
        };
        let seen = observe::look(before, lists, settings, &clock, &mut reading);
        self.reads = reading.now;
        self.lists = lists.clone();
        self.last = Some((clock.holds(), before.clone(), seen.clone()));
        seen
    }

    /// Whether a look sees what the last one saw.
    #[must_use]
    pub fn sees_the_same(&self, before: &Traces, lists: &Lists, now_s: i64) -> bool {
        let last = self.last.as_ref();
        let holds = last.is_some_and(|(holds, after, _)| holds.contains(&now_s) && after == before);
        holds && is_same(&self.lists, lists)
    }
}

/// Whether a look at one shows what a look at the other does.
fn is_same(a: &Lists, b: &Lists) -> bool {
    let others = || a.others.iter().zip(&b.others);
    are_same(&a.nodes, &b.nodes)
        && are_same(&a.pods, &b.pods)
        && are_same(&a.jobs, &b.jobs)
        && a.others.len() == b.others.len()
        && others().all(|(a, b)| Arc::ptr_eq(&a.1, &b.1))
        && are_same(&a.claims, &b.claims)
        && are_same(&a.volumes, &b.volumes)
        && are_same(&a.classes, &b.classes)
        && are_same(&a.quotas, &b.quotas)
        && a.unread == b.unread
        && a.kueue.is_none()
        && b.kueue.is_none()
}

/// Whether these are the very same objects.
pub(crate) fn are_same<K>(a: &[Arc<K>], b: &[Arc<K>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}
