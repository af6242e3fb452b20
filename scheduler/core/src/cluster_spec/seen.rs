//! What a list says of its site beside its jobs.

use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// A site's own scheduler that policies play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteScheduler {
    /// kube-scheduler, pods alone.
    Kubernetes,
    /// kube-scheduler with native gangs.
    KubernetesGangs,
}

impl SiteScheduler {
    /// The policy that plays it.
    #[must_use]
    pub fn policy(self) -> &'static str {
        match self {
            SiteScheduler::Kubernetes => "kubernetes",
            SiteScheduler::KubernetesGangs => "kubernetes-gangs",
        }
    }
}

/// What the list that a cluster came with says of its site; by itself it does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Seen {
    /// Time 0 of the list, s since 1970 in UTC; none where its times are no dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_0_unix_s: Option<f64>,
    /// Core hours that jobs without GPUs held on these nodes while the list lasted, 0 to 1e12; 0 = none known. Nothing of it is
    /// simulated.
    #[serde(skip_serializing_if = "is_none")]
    pub core_hours_without_gpus: f64,
    /// The scheduler that its records name; none where they name none, or another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SiteScheduler>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
fn is_none(value: &f64) -> bool {
    *value == 0.0
}

impl Seen {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Seen::default()
    }

    pub(super) fn faults(&self) -> Vec<Problem> {
        let numbers = [
            (
                "seen.time_0_unix_s",
                self.time_0_unix_s.unwrap_or(0.0),
                (-64e9, 64e9),
            ),
            (
                "seen.core_hours_without_gpus",
                self.core_hours_without_gpus,
                (0.0, 1e12),
            ),
        ];
        let wrong = numbers
            .into_iter()
            .filter(|(_, value, (least, most))| !(*least..=*most).contains(value));
        let fault = |(key, value, (least, most)): (&str, f64, (f64, f64))| {
            let hint = "leave it out where it is not known";
            Problem::new(key, value, format!("{least} to {most}"), hint)
        };
        wrong.map(fault).collect()
    }
}
