//! What a look need not read again: what it read before of objects that are still the same, and all of it while nothing changes.
//!
//! A memo holds nothing that a look does not find by itself. An object is the same while the cache of the watches keeps the very one:
//! each change of it is another object there.

use std::ops::Range;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;

use crate::clock::Clock;
use crate::config::Settings;
use crate::node;
use crate::observe::{self, Lists, Observed};
use crate::reads::{Reading, Reads};
use crate::seats::Traces;

/// The last look of a controller, whose settings stay the same.
#[derive(Debug, Default)]
pub struct Memo {
    /// What it was made from. While these are held, no other object lies where one of them does.
    lists: Lists,
    reads: Reads,
    /// What it saw, and when another look at the same lists sees the same, Unix time, s.
    last: Option<(Range<i64>, Observed)>,
    /// The newest versions of its Jobs of which it would see the same.
    alike: Vec<Arc<Job>>,
}

impl Memo {
    /// The same as [`observe::observe_after`].
    #[must_use]
    pub fn observe(&mut self, before: &Traces, lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
        if let Some((_, seen)) = &self.last
            && self.holds(before, now_s)
            && is_same(&self.lists, lists, Arc::ptr_eq)
        {
            self.lists.nodes.clone_from(&lists.nodes);
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
        self.last = Some((clock.holds(), seen.clone()));
        self.alike.clone_from(&lists.jobs);
        seen
    }
}

impl Memo {
    fn holds(&self, before: &Traces, now_s: i64) -> bool {
        let holds = |(holds, seen): &(Range<i64>, Observed)| holds.contains(&now_s) && seen.traces == *before;
        self.last.as_ref().is_some_and(holds)
    }

    /// Whether a look sees what the last one saw, but for versions of Jobs: their controller goes on counting pods long after these
    /// began.
    #[must_use]
    pub fn sees_the_same(&mut self, before: &Traces, lists: &Lists, now_s: i64) -> bool {
        let mut jobs = self.alike.iter().zip(&lists.jobs);
        let sees_the_same = self.holds(before, now_s)
            && is_same(&self.lists, lists, |_, _| true)
            && jobs.all(|(a, b)| Arc::ptr_eq(a, b) || are_alike(a, b));
        if sees_the_same {
            // No version is compared twice.
            self.alike.clone_from(&lists.jobs);
        }
        sees_the_same
    }
}

/// Whether a look at one shows what a look at the other does.
fn is_same(a: &Lists, b: &Lists, same_jobs: fn(&Arc<Job>, &Arc<Job>) -> bool) -> bool {
    let nodes = || a.nodes.iter().zip(&b.nodes);
    let jobs = || a.jobs.iter().zip(&b.jobs);
    let others = || a.others.iter().zip(&b.others);
    a.nodes.len() == b.nodes.len()
        && nodes().all(|(a, b)| Arc::ptr_eq(a, b) || node::is_same(a, b))
        && are_same(&a.pods, &b.pods)
        && a.jobs.len() == b.jobs.len()
        && jobs().all(|(a, b)| same_jobs(a, b))
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

/// Whether a look reads the same of two Jobs: of their status it reads what has succeeded, and whether they are over.
fn are_alike(a: &Job, b: &Job) -> bool {
    fn own(job: &Job) -> impl PartialEq + '_ {
        let meta = &job.metadata;
        let status = job.status.as_ref();
        let ends = status.and_then(|status| status.conditions.as_ref());
        let num_ended = status.and_then(|status| status.succeeded).unwrap_or(0);
        let ids = (&meta.namespace, &meta.name, &meta.uid, &meta.owner_references);
        (
            ids,
            &meta.labels,
            &meta.annotations,
            &meta.deletion_timestamp,
            ends,
            num_ended,
        )
    }
    a.spec == b.spec && own(a) == own(b)
}

/// Whether these are the very same objects.
pub(crate) fn are_same<K>(a: &[Arc<K>], b: &[Arc<K>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_whose_pods_are_counted_anew_are_alike_and_those_of_which_something_else_is_read_are_not() {
        let job = |change: &dyn Fn(&mut serde_json::Value)| -> Job {
            let mut job = serde_json::json!({
                "metadata": { "name": "fit", "namespace": "team", "uid": "u", "resourceVersion": "1" },
                "spec": { "parallelism": 1, "template": {} },
                "status": { "active": 1 },
            });
            change(&mut job);
            serde_json::from_value(job).unwrap()
        };
        let before = job(&|_| ());
        let counted = job(&|job| {
            job["metadata"]["resourceVersion"] = "2".into();
            job["status"]["ready"] = 1.into();
        });
        assert!(are_alike(&before, &counted));
        let others: [&dyn Fn(&mut serde_json::Value); 5] = [
            &|job| job["status"]["succeeded"] = 1.into(),
            &|job| job["status"]["conditions"] = serde_json::json!([{ "type": "Failed", "status": "True" }]),
            &|job| job["spec"]["suspend"] = true.into(),
            &|job| job["metadata"]["annotations"] = serde_json::json!({ "pleach/suspended": "0" }),
            &|job| job["metadata"]["uid"] = "v".into(),
        ];
        for change in others {
            assert!(!are_alike(&before, &job(change)));
        }
    }
}
