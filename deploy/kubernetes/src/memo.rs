//! What a look need not read again: what it read before of objects that are still the same, and all of it while nothing changes.
//!
//! A memo holds nothing that a look does not find by itself. An object is the same while the cache of the watches keeps the very one:
//! each change of it is another object there.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::asks::{self, Amounts, HostPort};
use crate::clock::Clock;
use crate::config::Settings;
use crate::node;
use crate::observe::{self, Lists, Observed};
use crate::pod::{self, PodSeen};
use crate::seats::Traces;
use crate::suspended::maker::Maker;
use crate::suspended::{self, Classes, Owner};

/// What a look reads of a pod alone.
#[derive(Debug)]
pub(crate) struct PodRead {
    /// None where it asks for no GPUs and our gate does not hold it.
    pub seen: Option<PodSeen>,
    /// GPUs by resource.
    pub gpus: BTreeMap<String, u32>,
    /// What else it takes of its node.
    pub asks: Amounts,
    /// Ports of the host that it takes.
    pub ports: Vec<HostPort>,
}

/// A pod, and what was read of it.
pub(crate) type Known = (Arc<Pod>, Arc<PodRead>);

/// What was read of objects, by where they lie in memory: they lie there while they are kept.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pods: HashMap<usize, Arc<PodRead>>,
    made: HashMap<usize, Vec<Arc<Pod>>>,
}

/// What one look takes over from the one before, and leaves to the next.
pub(crate) struct Reading<'a> {
    before: &'a Reads,
    /// Whether the classes of priority are those of before: a pod that is not made yet has the priority of its class.
    has_same_classes: bool,
    now: Reads,
    settings: &'a Settings,
}

impl Reading<'_> {
    /// A pod with what is read of it.
    pub fn of(&mut self, pod: &Arc<Pod>) -> Known {
        let place = Arc::as_ptr(pod).addr();
        let known = self.before.pods.get(&place).cloned();
        let read = known.unwrap_or_else(|| Arc::new(self.read(pod)));
        self.now.pods.insert(place, Arc::clone(&read));
        (Arc::clone(pod), read)
    }

    fn read(&self, pod: &Pod) -> PodRead {
        let spec = pod.spec.as_ref();
        PodRead {
            seen: pod::read(pod, self.settings),
            gpus: spec
                .map(|spec| pod::gpus(spec, self.settings))
                .unwrap_or_default(),
            asks: spec
                .map(|spec| asks::amounts(spec, self.settings))
                .unwrap_or_default(),
            ports: spec.map(asks::ports).unwrap_or_default(),
        }
    }

    /// The pods that an object would make.
    pub fn made(&mut self, maker: &Maker<'_>, owner: &Owner, classes: &Classes<'_>) -> Vec<Known> {
        let place = std::ptr::from_ref(maker.meta).addr();
        let known = self.before.made.get(&place).filter(|_| self.has_same_classes);
        let pods = known.cloned().unwrap_or_else(|| {
            let pods = suspended::pods(maker, owner, classes, self.settings);
            pods.into_iter().map(Arc::new).collect()
        });
        let known = pods.iter().map(|pod| self.of(pod)).collect();
        self.now.made.insert(place, pods);
        known
    }
}

/// The last look of a controller, whose settings stay the same.
#[derive(Debug, Default)]
pub struct Memo {
    /// What it was made from. While these are held, no other object lies where one of them does.
    lists: Lists,
    reads: Reads,
    /// What it saw, and when another look at the same lists sees the same, Unix time, s.
    last: Option<(Range<i64>, Observed)>,
}

impl Memo {
    /// The same as [`observe::observe_after`].
    #[must_use]
    pub fn observe(&mut self, before: &Traces, lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
        let is_same = is_same(&self.lists, lists);
        if let Some((holds, seen)) = &self.last
            && is_same
            && holds.contains(&now_s)
            && seen.traces == *before
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
        seen
    }
}

/// Whether a look at one shows what a look at the other does.
fn is_same(a: &Lists, b: &Lists) -> bool {
    let nodes = || a.nodes.iter().zip(&b.nodes);
    let others = || a.others.iter().zip(&b.others);
    a.nodes.len() == b.nodes.len()
        && nodes().all(|(a, b)| Arc::ptr_eq(a, b) || node::is_same(a, b))
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
