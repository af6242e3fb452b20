//! What was picked from objects, for the next round: that picks the same where it is shown the very same ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::memo::are_same;
use crate::observe::Lists;
use crate::suspended::Other;

/// Namespaces and names of claims.
pub(super) type Names = BTreeSet<(String, String)>;

/// Pods and Jobs that were read, and the Jobs that a round looks at.
type Jobs = (Vec<Arc<Pod>>, Vec<Arc<Job>>, Vec<Arc<Job>>);

#[derive(Debug, Default)]
pub(super) struct Picked {
    jobs: Mutex<Jobs>,
    claims: Mutex<(Lists, Arc<Names>)>,
}

impl Picked {
    /// The Jobs that were picked of these for these pods; none where others were shown.
    pub(super) fn jobs(&self, pods: &[Arc<Pod>], all: &[Arc<Job>]) -> Option<Vec<Arc<Job>>> {
        let last = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        (are_same(&last.0, pods) && are_same(&last.1, all)).then(|| last.2.clone())
    }

    pub(super) fn note_jobs(&self, pods: &[Arc<Pod>], all: Vec<Arc<Job>>, picked: &[Arc<Job>]) {
        let mut last = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (pods.to_vec(), all, picked.to_vec());
    }

    /// The claims of what waits in these lists; `find` finds them where others were shown.
    pub(super) fn claims(&self, lists: &Lists, find: impl FnOnce() -> Names) -> Arc<Names> {
        let mut last = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, names) = &mut *last;
        let is_same = |(a, b): (&Other, &Other)| Arc::ptr_eq(&a.1, &b.1);
        let others =
            (of.others.len() == lists.others.len()) && of.others.iter().zip(&lists.others).all(is_same);
        if !(others && are_same(&of.pods, &lists.pods) && are_same(&of.jobs, &lists.jobs)) {
            *names = Arc::new(find());
            (of.pods, of.jobs, of.others) = (lists.pods.clone(), lists.jobs.clone(), lists.others.clone());
        }
        Arc::clone(names)
    }
}
