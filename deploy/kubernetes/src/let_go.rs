//! Places of Jobs of one pod that were let go, for the webhook: their pod then comes with its node and its mark instead of our gate,
//! and needs no second round. A gang waits with its gates until all its pods are there.
//!
//! Whatever is not exactly what was decided about gets the gate, as does all that comes to a controller that knows of no place: a
//! second pod, a pod that the Job controller did not make, one that asks for other GPUs or has a gate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;

use crate::config::Settings;
use crate::names;
use crate::pod;

/// Users of the Job controller: with credentials of its own (`--use-service-account-credentials`), and without.
const JOB_CONTROLLERS: [&str; 2] = [
    "system:serviceaccount:kube-system:job-controller",
    "system:kube-controller-manager",
];

/// Where the pod of a Job goes.
#[derive(Clone, Debug)]
pub struct Place {
    /// The node, by its label [`names::HOSTNAME`].
    pub hostname: String,
    /// The annotation [`names::DECIDED`], signed for pods of the Job.
    pub mark: String,
    /// GPUs that the pod was to ask for, by resource.
    pub gpus: BTreeMap<String, u32>,
    /// Until when a pod is let by.
    pub until: Instant,
}

/// Places by the UIDs of Jobs, and whether a pod has had each; for two threads.
#[derive(Clone, Debug, Default)]
pub struct LetGo(Arc<Mutex<BTreeMap<String, (Place, bool)>>>);

impl LetGo {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, (Place, bool)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the pod of this Job goes there. Places whose time is over are forgotten.
    pub fn expect(&self, uid: &str, place: Place) {
        let (now, mut all) = (Instant::now(), self.all());
        all.retain(|_, (place, _)| place.until > now);
        all.insert(uid.to_owned(), (place, false));
    }

    /// The Job was not let go after all.
    pub fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }

    /// Where a pod goes that this user makes; none where it is to be held. The API server may ask about one pod twice, the second time
    /// with what it was answered before.
    #[must_use]
    pub fn place(&self, pod: &Pod, user: Option<&str>, settings: &Settings) -> Option<Place> {
        user.filter(|user| JOB_CONTROLLERS.contains(user))?;
        let (meta, spec) = (&pod.metadata, pod.spec.as_ref()?);
        let mut all = self.all();
        let (place, is_taken) = all.get_mut(pod::owner(pod)?)?;
        let pinned = spec
            .node_selector
            .as_ref()
            .and_then(|own| own.get(names::HOSTNAME));
        let mark = meta.annotations.as_ref().and_then(|own| own.get(names::DECIDED));
        // It was sent there: what others have changed of it since is for kube-scheduler to bind, or for a round to find unbound.
        let is_asked_again = mark == Some(&place.mark) && pinned == Some(&place.hostname);
        let is_it = !*is_taken
            && pinned.is_none()
            && spec.scheduling_gates.iter().flatten().next().is_none()
            && place.until > Instant::now()
            && pod::gpus(spec, settings) == place.gpus;
        (is_it || is_asked_again).then(|| {
            *is_taken = true;
            place.clone()
        })
    }
}
