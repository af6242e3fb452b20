//! By how much a job can be faster than the speed of its class says, or get more out of a GPU, at best.
//!
//! Two things can do that: more CPU and memory than the GPU-proportional share, and other numbers of GPUs than it asks
//! for. Everything else in the model makes a job slower.

use std::collections::BTreeMap;

use pleach_scheduler::cluster_spec::ModelClass;
use pleach_scheduler::physics::pace::Pace;

use pleach_workloads::{JobSpec, Workload};

/// Factors over the gang that was asked for, on the GPU-proportional share; 1 for most jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gain {
    /// Largest rate.
    pub(super) rate: f64,
    /// Largest progress in a second of a GPU.
    pub(super) per_gpu: f64,
}

/// The gains of all jobs of a workload, worked out once for each class and gang.
pub(super) struct Gains(BTreeMap<(u16, u32), Gain>);

impl Gains {
    pub(super) fn of(workload: &Workload) -> Gains {
        let node_gpus = workload
            .cluster
            .node_groups
            .iter()
            .map(|group| group.gpus_per_node);
        let node_gpus_min = node_gpus.min().unwrap_or(0);
        // No job holds more than there is, whatever its class would allow.
        let num_gpus = u32::try_from(workload.cluster.num_gpus()).unwrap_or(u32::MAX);
        let mut gains = BTreeMap::new();
        for job in &workload.jobs {
            gains.entry((job.class, job.num_gpus)).or_insert_with(|| {
                let class = &workload.classes[usize::from(job.class)];
                gain(class, job.num_gpus, node_gpus_min, num_gpus)
            });
        }
        Gains(gains)
    }

    pub(super) fn get(&self, job: &JobSpec) -> Gain {
        self.0[&(job.class, job.num_gpus)]
    }
}

fn gain(class: &ModelClass, gang: u32, node_gpus_min: u32, num_gpus_max: u32) -> Gain {
    // The surface never falls along an axis, and storage only takes away.
    let surface = class.sensitivity.as_ref().map(|sensitivity| &sensitivity.speed);
    let input = surface.into_iter().flatten().copied().fold(1.0, f64::max);
    let mut gain = Gain {
        rate: input,
        per_gpu: input,
    };
    if let Some(elastic) = &class.elastic {
        for num_gpus in 1..=elastic.gpus_max.min(num_gpus_max) {
            let ratio = input * goodput_ratio(&elastic.profile, num_gpus, gang, node_gpus_min);
            gain.rate = gain.rate.max(ratio);
            gain.per_gpu = gain.per_gpu.max(ratio * f64::from(gang) / f64::from(num_gpus));
        }
    }
    gain
}

/// Steps of the noise scale between its ends; more of them make the bound tighter by less and less. *Assumed*.
const NUM_STEPS: u32 = 16;

/// Upper bound on the goodput on `num_gpus` over that of the gang as it was asked for, wherever in its training the job is.
///
/// The goodput of every batch grows with the noise scale, and so does that of the best one. Between two values of the noise
/// the ratio is then at most that of the larger value above over the smaller value below.
fn goodput_ratio(profile: &Pace, num_gpus: u32, gang: u32, node_gpus_min: u32) -> f64 {
    // A gang that fits into any node is measured on one; of others we take the slower count, which errs upwards.
    let asked_nodes: &[u32] = if gang <= node_gpus_min { &[1] } else { &[1, 2] };
    let goodput = |num_gpus: u32, num_nodes: u32, noise: f64| profile.goodput(num_gpus, num_nodes, noise);
    let noise_at = |step: u32| profile.noise(f64::from(step) / f64::from(NUM_STEPS));
    let mut most = 0.0_f64;
    for step in 0..NUM_STEPS {
        let ends = [noise_at(step), noise_at(step + 1)];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let asked = asked_nodes.iter().map(|num_nodes| goodput(gang, *num_nodes, low));
        let asked = asked.fold(f64::INFINITY, f64::min);
        // On two nodes as on more: the model of the step time tells only one from several.
        let here = goodput(num_gpus, 1, high).max(goodput(num_gpus, 2, high));
        if asked > 0.0 {
            most = most.max(here / asked);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::cluster_spec::ElasticJob;
    use pleach_scheduler::physics::goodput::Elastic;
    use pleach_scheduler::physics::sensitivity::Sensitivity;

    #[test]
    fn a_job_that_nothing_helps_has_no_gain() {
        let gain = gain(&ModelClass::default(), 4, 8, 64);
        assert_eq!((gain.rate, gain.per_gpu), (1.0, 1.0));
    }

    #[test]
    fn more_cores_than_the_fair_share_can_speed_a_job_up() {
        let class = ModelClass {
            sensitivity: Some(Sensitivity::from_name("image").unwrap()),
            ..ModelClass::default()
        };
        let most = class
            .sensitivity
            .as_ref()
            .unwrap()
            .speed
            .iter()
            .copied()
            .fold(0.0, f64::max);
        let gain = gain(&class, 1, 8, 64);
        assert!(
            most > 1.5 && gain.rate == most && gain.per_gpu == most,
            "{gain:?}"
        );
    }

    #[test]
    fn an_elastic_job_gains_from_no_more_gpus_than_there_are_whatever_its_class_allows() {
        let of = |gpus_max: u32| {
            let profile = Elastic {
                max_batch: u32::MAX,
                min_local_batch: 1,
                ..Elastic::from_name("cifar10").unwrap()
            };
            let class = ModelClass {
                elastic: Some(ElasticJob {
                    gpus_max,
                    profile: profile.into(),
                }),
                ..ModelClass::default()
            };
            let found = gain(&class, 4, 8, 16);
            (found.rate, found.per_gpu)
        };
        // Else four million sizes are looked at, and without a bound on gpus_max four thousand million.
        assert_eq!(of(16), of(4_000_000));
        assert!(of(16).0 > 1.0);
    }

    #[test]
    fn no_number_of_gpus_at_no_point_of_the_training_beats_the_gain_of_an_elastic_job() {
        let profile = Elastic::from_name("cifar10").unwrap();
        let class = ModelClass {
            elastic: Some(ElasticJob {
                gpus_max: 16,
                profile: profile.into(),
            }),
            ..ModelClass::default()
        };
        let bound = gain(&class, 4, 8, 64);
        let (mut rate, mut per_gpu) = (0.0_f64, 0.0_f64);
        for step in 0..=1000 {
            let noise = profile.noise(f64::from(step) / 1000.0);
            let asked = profile.best(4, 1, noise).unwrap().goodput;
            for (num_gpus, num_nodes) in (1..=16).flat_map(|num| [(num, 1), (num, 2), (num, 5)]) {
                if let Some(here) = profile.best(num_gpus, num_nodes, noise) {
                    rate = rate.max(here.goodput / asked);
                    per_gpu = per_gpu.max(here.goodput / asked * 4.0 / f64::from(num_gpus));
                }
            }
        }
        assert!(rate > 1.2 && per_gpu > 1.05, "{rate} {per_gpu}");
        // Right, and not by much too high.
        assert!((rate..1.2 * rate).contains(&bound.rate), "{rate} {bound:?}");
        assert!(
            (per_gpu..1.2 * per_gpu).contains(&bound.per_gpu),
            "{per_gpu} {bound:?}"
        );
    }
}
