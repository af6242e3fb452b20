//! Sizes of elastic jobs in a deal: each is dealt its first GPUs as all jobs are, and then more, step by step, by what they add.
//!
//! The steps of a job are the corners of the upper concave hull of its speed over its GPUs, so that each adds less for a GPU than
//! the one before and a count by score takes them in turn. A rigid job has one step, its gang.
//!
//! # Source
//! Greedy division by marginal speed is optimal for concave speeds (Fox, *Discrete optimization via marginal analysis*, 1966);
//! Optimus (EuroSys'18) deals so. Speeds are the goodputs of Pollux (OSDI'21).

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, Placement};
use pleach_scheduler::{GpuTypeId, JobId};

use super::rules::DealingRules;
use crate::scaling::{Paces, Scaling};

/// Sizes that are looked at, beside the one asked for, the present one and the largest. *Assumed*: fine where a GPU counts.
const SIZES: [u32; 20] = [
    1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512,
];

/// More GPUs for a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// GPUs that it has been given before; 0 for the first.
    pub after: u32,
    /// GPUs that it has then.
    pub num_gpus: u32,
    /// What each of them adds, over what a GPU of the gang that it asked for does; 1 for a rigid job.
    pub marginal: f64,
    /// Whether that is more than it holds now on this type.
    pub grows: bool,
}

/// How the elastic jobs of a deal scale.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    paces: Paces,
    scalings: BTreeMap<JobId, Scaling>,
}

impl Sizes {
    /// Looks at the jobs of a deal.
    pub(super) fn look(&mut self, cluster: &Cluster, rules: &DealingRules, jobs: &[JobId]) {
        self.scalings.clear();
        if !rules.resize {
            return;
        }
        for id in jobs {
            if cluster.class(cluster.job(*id).request.class).elastic.is_some() {
                let scaling = self.paces.scaling(cluster, *id);
                self.scalings.insert(*id, scaling);
            }
        }
    }

    /// The steps of an elastic job on a type, first ones first, empty where it cannot run; none for a rigid job, which has one
    /// step: its gang.
    pub(super) fn steps(
        &self,
        cluster: &Cluster,
        rules: &DealingRules,
        id: JobId,
        kind: GpuTypeId,
    ) -> Option<Vec<Step>> {
        let scaling = self.scalings.get(&id)?;
        let job = cluster.job(id);
        let holds = job.state == JobState::Running && job.gpu_type == kind;
        let asked = job.request.num_gpus;
        let pace = |num_gpus: u32| scaling.pace_at(kind, num_gpus, scaling.nodes_for(kind, num_gpus));
        let most = scaling.most.min(cluster.num_gpus_of(kind));
        let may_be = |size: &u32| (scaling.least..=most).contains(size);
        let others = [asked, most, job.num_held];
        let mut sizes: Vec<u32> = SIZES.into_iter().chain(others).filter(may_be).collect();
        if holds {
            // To grow is to restart: only when the present size has cost that much.
            let ran_s = (cluster.now() - job.run_start).as_secs_f64();
            let cost_s = rules.reseat_loss * cluster.restart_cost_s(id);
            let held = pace(job.num_held).max(f64::MIN_POSITIVE);
            sizes.retain(|size| *size <= job.num_held || ran_s * (pace(*size) / held - 1.0) >= cost_s);
        }
        sizes.sort_unstable();
        sizes.dedup();
        let points = sizes.into_iter().map(|size| (size, pace(size)));
        let steps = hull(points).into_iter().map(|(after, num_gpus, slope)| Step {
            after,
            num_gpus,
            marginal: slope * f64::from(asked),
            grows: holds && num_gpus > job.num_held,
        });
        Some(steps.collect())
    }

    /// What part of its speed on the fewest nodes an elastic job has on these; none for a rigid one.
    pub(super) fn locality(&self, kind: GpuTypeId, id: JobId, seat: &Placement) -> Option<f64> {
        let scaling = self.scalings.get(&id)?;
        let num_gpus = seat.iter().map(|slice| slice.num_gpus()).sum();
        let tight = scaling.rate_tight(kind, num_gpus);
        let here = scaling.rate(kind, num_gpus, seat.len() as u32);
        Some(if tight > 0.0 { (here / tight).min(1.0) } else { 1.0 })
    }
}

/// The corners of the upper concave hull from the origin over points by size, as (size before, size, slope), slopes above 0.
fn hull(points: impl Iterator<Item = (u32, f64)>) -> Vec<(u32, u32, f64)> {
    let mut corners: Vec<(u32, f64)> = vec![(0, 0.0)];
    for (size, pace) in points {
        let slope = |from: (u32, f64), to: (u32, f64)| (to.1 - from.1) / f64::from(to.0 - from.0);
        while corners.len() > 1 {
            let (last, before) = (corners[corners.len() - 1], corners[corners.len() - 2]);
            // Steps of one slope, but for rounding, stay apart: they are dealt one by one.
            if slope(before, last) >= slope(last, (size, pace)) * (1.0 - 1e-9) {
                break;
            }
            corners.pop();
        }
        corners.push((size, pace));
    }
    let pairs = corners.windows(2);
    let steps = pairs.map(|pair| {
        (
            pair[0].0,
            pair[1].0,
            (pair[1].1 - pair[0].1) / f64::from(pair[1].0 - pair[0].0),
        )
    });
    steps.take_while(|(.., slope)| *slope > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hull_leaves_out_what_lies_below_it() {
        // By hand: from (0, 0) the steepest is to (2, 2), then (8, 5); 4 with 3 lies on the way, 1 with 0.5 below; 16 adds
        // nothing.
        let points = [(1, 0.5), (2, 2.0), (4, 2.9), (8, 5.0), (16, 5.0)];
        let found = hull(points.into_iter());
        assert_eq!(found, [(0, 2, 1.0), (2, 8, 0.5)]);
        assert!(hull([(1, 0.0)].into_iter()).is_empty());
        let even = hull([(1, 1.0), (2, 2.0), (4, 4.0)].into_iter());
        assert_eq!(even, [(0, 1, 1.0), (1, 2, 1.0), (2, 4, 1.0)]);
    }
}
