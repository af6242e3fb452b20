//! Where a rule decides in the place of what was learned: where gangs are wide, or run times are guessed. Networks and trees carry it
//! in their files.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::heuristics;
use crate::problem::Problem;

/// Heuristics that decide where gangs are wide: a policy that met few of them waits for places for them. Only on clusters whose jobs
/// can have nothing else than what they ask for, no other GPU type, size or cores; elsewhere such a heuristic knows too little.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideGangs {
    /// The heuristic's name.
    pub policy: String,
    /// It decides while the jobs that run and wait have more GPUs in the mean than so many nodes of mean size; above 0, at most
    /// 1,000.
    pub nodes_per_job: f64,
    /// And while they have more in the mean than this part of all GPUs; above 0, at most 1. Gangs that are narrow elsewhere are wide
    /// on a small cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_part: Option<f64>,
    /// The heuristic that decides instead where run times are guessed: one that keeps reservations counts on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed: Option<String>,
    /// Whether that one decides at any width: the policy learned with known run times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guessed_at_any_width: bool,
}

impl WideGangs {
    /// The heuristics measured for it, where run times are known and where they are guessed.
    ///
    /// # Source
    /// lab/notes/suite.md.
    pub const MEASURED: [&str; 2] = ["gpu-time-reserve", "gpu-time"];

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// An unknown name, a bound out of its range.
    pub fn check(&self) -> Result<(), Problem> {
        let part = ("wide_gangs.gpus_part", self.gpus_part.unwrap_or(1.0), 1.0);
        for (key, value, most) in [("wide_gangs.nodes_per_job", self.nodes_per_job, 1000.0), part] {
            if !(value > 0.0 && value <= most) {
                let allowed = format!("above 0 and at most {most}");
                return Err(Problem::new(key, value, allowed, "For example 8 nodes and 0.1."));
            }
        }
        self.names()
            .try_for_each(|name| heuristics::by_name(name).map(drop))
    }

    /// The heuristics that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [Some(&self.policy), self.guessed.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// The heuristic that decides on a cluster now; none: the policy itself.
    #[must_use]
    pub fn decider(&self, cluster: &Cluster) -> Option<&str> {
        if cluster.has_choice() {
            return None;
        }
        let guessed = self.guessed.as_deref().filter(|_| cluster.has_predicted());
        let is_asked = self.are_wide(cluster) || self.guessed_at_any_width && guessed.is_some();
        is_asked.then(|| guessed.unwrap_or(&self.policy))
    }

    /// Whether the jobs that run and wait have more GPUs in the mean than a bound.
    fn are_wide(&self, cluster: &Cluster) -> bool {
        let held_milli: u64 = cluster.tenants().iter().map(|tenant| tenant.used_milli).sum();
        let gpus = held_milli as f64 / 1000.0 + cluster.num_pending_gpus() as f64;
        let jobs = (cluster.num_running() + cluster.num_pending()) as f64;
        let node_gpus = f64::from(cluster.num_gpus()) / cluster.nodes().len().max(1) as f64;
        // No job has more than all GPUs.
        let of_all = self.gpus_part.unwrap_or(1.0) * f64::from(cluster.num_gpus());
        gpus > jobs * (self.nodes_per_job * node_gpus).min(of_all)
    }
}

impl fmt::Display for WideGangs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.policy)?;
        if let Some(guessed) = &self.guessed {
            let width = if self.guessed_at_any_width {
                ", at any width"
            } else {
                ""
            };
            write!(out, " ({guessed} where run times are guessed{width})")?;
        }
        write!(
            out,
            " decides where jobs have more than {} nodes",
            self.nodes_per_job
        )?;
        if let Some(part) = self.gpus_part {
            write!(out, ", or more than {:.0} % of all GPUs,", 100.0 * part)?;
        }
        write!(
            out,
            " each in the mean and no other type, size or cores to choose"
        )
    }
}
