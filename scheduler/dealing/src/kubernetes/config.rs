//! Settings of the policies `kubernetes` and `kubernetes-gangs`, in the words of `KubeSchedulerConfiguration`.

use std::collections::BTreeMap;

use pleach_scheduler::{Problem, settings};
use serde::{Deserialize, Serialize};

use crate::settings::check;

/// `scoringStrategy.type` of the plugin `NodeResourcesFit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Nodes with the most left: pods are spread.
    #[default]
    LeastAllocated,
    /// Nodes with the least left: pods are packed.
    MostAllocated,
}

settings! {
    /// `scoringStrategy` of the plugin `NodeResourcesFit`: by default CPU and memory alone, each 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Scoring {
        /// Which nodes are better.
        #[serde(rename = "type")]
        pub strategy: Strategy;
        /// Weight of GPUs. 0 to 100
        pub gpu: u32;
        /// Weight of CPU. 0 to 100
        pub cpu: u32 = 1;
        /// Weight of memory. 0 to 100
        pub memory: u32 = 1;
    }
}

impl Scoring {
    pub(super) fn weights(&self) -> [u32; 3] {
        [self.gpu, self.cpu, self.memory]
    }
}

/// What a site's kube-scheduler is set to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KubernetesConfig {
    /// How nodes are chosen.
    pub scoring: Scoring,
    /// Values of priority classes by name. Pods of another class have the number that their class is, else 0.
    pub priority_classes: BTreeMap<String, i32>,
    /// Draws among nodes of equal score.
    pub seed: u64,
}

impl KubernetesConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        let weights = self.scoring.weights();
        let is_ok = weights.iter().all(|weight| *weight <= 100) && weights != [0; 3];
        let allowed = "weights of 0 to 100, one of them above 0";
        check("kubernetes", "scoring", format!("{weights:?}"), is_ok, allowed)
    }

    /// The priority of a class.
    #[must_use]
    pub fn priority(&self, class: &str) -> i32 {
        let known = self.priority_classes.get(class).copied();
        known.or_else(|| class.parse().ok()).unwrap_or(0)
    }
}
