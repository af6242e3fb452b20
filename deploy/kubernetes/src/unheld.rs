//! GPU pods of driven namespaces that arrived without our gate since the controller drives: the webhook was not asked, or did not
//! answer, and they went ahead of all jobs. A forgotten certificate of the server is the common cause, and nothing else tells of it.
//!
//! Which namespaces the webhook is to see is their label's to say. Without the right to read it nothing is reported.

use std::collections::BTreeSet;

use crate::job_pods::JobPods;
use crate::pod::PodSeen;

/// Time after the first look in which the API server may not have heard of the webhook yet, s. *Ours*: it reads configurations anew
/// every second or so.
const BEGIN_S: i64 = 5;

/// Pods that a message names.
const NAMED_MAX: usize = 5;

/// Pods that came by the webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unheld {
    /// Namespace and name of each.
    pub pods: BTreeSet<String>,
}

/// Pods without gate, mark and reason that were made after Unix time `since_s`, of whatever namespace.
#[must_use]
pub fn without_gate<'a>(jobs: impl IntoIterator<Item = &'a JobPods>, since_s: i64) -> Vec<&'a PodSeen> {
    let is_it = |pod: &&PodSeen| {
        let is_decided = pod.is_held() || pod.decided.is_some() || pod.is_left;
        !is_decided
            && !pod.is_of_others
            && pod.num_gpus > 0
            && pod.created_s > since_s.saturating_add(BEGIN_S)
    };
    let pods = jobs.into_iter().flat_map(|job| &job.pods);
    pods.filter(is_it).collect()
}

impl Unheld {
    /// Of these pods, those of the namespaces that the webhook is to see.
    #[must_use]
    pub fn of(pods: &[&PodSeen], labelled: &BTreeSet<String>) -> Unheld {
        let seen = pods.iter().filter(|pod| labelled.contains(&pod.namespace));
        Unheld {
            pods: seen
                .map(|pod| format!("{}/{}", pod.namespace, pod.name))
                .collect(),
        }
    }

    /// What an operator has to know; none where there are none.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let named: Vec<&str> = self.pods.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = if self.pods.len() > NAMED_MAX {
            " and others"
        } else {
            ""
        };
        (!named.is_empty()).then(|| {
            format!(
                "{} GPU pod(s) of driven namespaces arrived unheld and went ahead of the others: {}{more}. The webhook was not \
                 asked or not heard: look at `caBundle` of its MutatingWebhookConfiguration, and at the API server's log",
                self.pods.len(),
                named.join(", ")
            )
        })
    }
}
