//! GPUs of units: those that pods hold, and those that are promised to pods which are not bound, or not made yet.

use std::collections::BTreeMap;

use pleach_daemon::snapshot::Phase;

use crate::config::Settings;
use crate::job_pods::JobPods;
use crate::node::unit_name;
use crate::pod::PodSeen;

/// What is taken of each unit, GPUs.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    by_pods: BTreeMap<String, u32>,
    promised: BTreeMap<String, u32>,
    /// What running jobs are promised beyond what their pods hold.
    kept: BTreeMap<String, u32>,
    /// What pods hold of jobs that count as let go, not as running.
    starting: BTreeMap<String, u32>,
}

fn add(to: &mut BTreeMap<String, u32>, unit: &str, num: u32) {
    if num > 0 {
        let entry = to.entry(unit.to_owned()).or_default();
        *entry = entry.saturating_add(num);
    }
}

impl Usage {
    /// A pod holds so many GPUs of a unit.
    pub fn add_pod(&mut self, unit: &str, num: u32) {
        add(&mut self.by_pods, unit, num);
    }

    /// A job stands so. Pods of it that are ending while others are there hold the places of those that are to come.
    pub fn add_job(&mut self, phase: &Phase, job: &JobPods, ending: &[PodSeen], settings: &Settings) {
        let Some(gpus) = job.pods.first().map(|pod| pod.num_gpus) else {
            return;
        };
        let (mut bound, mut pinned): (BTreeMap<String, u32>, BTreeMap<String, u32>) = Default::default();
        for pod in job.pods.iter().filter(|pod| !pod.is_held()) {
            match (&pod.node, &pod.decided) {
                (Some(node), _) => add(&mut bound, &unit_name(node, &pod.resource, settings), 1),
                (None, Some(mark)) => add(&mut pinned, &mark.seat, 1),
                (None, None) => {}
            }
        }
        let of = |map: &BTreeMap<String, u32>, unit: &str| map.get(unit).copied().unwrap_or(0);
        for (unit, num) in &pinned {
            add(&mut self.promised, unit, num.saturating_mul(gpus));
        }
        let is_running = *phase == Phase::Running;
        if !is_running && !matches!(phase, Phase::Released { .. }) {
            return;
        }
        for (unit, num) in &job.seats {
            let is_there = |pod: &&PodSeen| {
                let node = pod.node.as_deref();
                node.is_some_and(|node| unit_name(node, &pod.resource, settings) == *unit)
            };
            let num_ending = ending.iter().filter(is_there).count();
            let gone = of(&bound, unit).saturating_add(u32::try_from(num_ending).unwrap_or(u32::MAX));
            let open = num.saturating_sub(gone).saturating_mul(gpus);
            let num_pinned = of(&pinned, unit).saturating_mul(gpus);
            add(&mut self.promised, unit, open.saturating_sub(num_pinned));
            if is_running {
                add(&mut self.kept, unit, open);
            } else {
                add(&mut self.starting, unit, of(&bound, unit).saturating_mul(gpus));
            }
        }
    }

    /// GPUs of a unit that are in use in the tables: there a running job holds all its places, and one that was let go none yet.
    #[must_use]
    pub fn in_tables(&self, unit: &str) -> u32 {
        let of = |map: &BTreeMap<String, u32>| map.get(unit).copied().unwrap_or(0);
        let held = of(&self.by_pods).saturating_add(of(&self.kept));
        held.saturating_sub(of(&self.starting))
    }

    /// Of `num_gpus` GPUs of a unit, those that ending pods, which hold `num_ending`, give back and that no pod is promised.
    #[must_use]
    pub fn leaving(&self, unit: &str, num_gpus: u32, num_ending: u32) -> u32 {
        let of = |map: &BTreeMap<String, u32>| map.get(unit).copied().unwrap_or(0);
        let staying = of(&self.by_pods).saturating_sub(num_ending);
        let left = num_gpus.saturating_sub(staying.saturating_add(of(&self.promised)));
        num_ending.min(left)
    }

    /// GPUs of a unit with so many that are left for pods without a decision.
    #[must_use]
    pub fn left(&self, unit: &str, num_gpus: u32) -> u32 {
        let of = |map: &BTreeMap<String, u32>| map.get(unit).copied().unwrap_or(0);
        num_gpus.saturating_sub(of(&self.by_pods).saturating_add(of(&self.promised)))
    }
}
