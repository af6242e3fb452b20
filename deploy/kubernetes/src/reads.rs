//! What was read of single objects, from one look to the next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::asks::{self, Amounts, HostPort};
use crate::config::Settings;
use crate::pod::{self, PodSeen};
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

/// An object that is suspended or was let go, and the pods that it would make.
pub(crate) type Unmade = (Owner, Vec<Known>);

/// What was read of objects, by where they lie in memory: they lie there while they are kept.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pods: HashMap<usize, Arc<PodRead>>,
    made: HashMap<usize, Vec<Arc<Pod>>>,
}

/// What one look takes over from the one before, and leaves to the next.
pub(crate) struct Reading<'a> {
    pub before: &'a Reads,
    /// Whether the classes of priority are those of before: a pod that is not made yet has the priority of its class.
    pub has_same_classes: bool,
    pub now: Reads,
    pub settings: &'a Settings,
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
