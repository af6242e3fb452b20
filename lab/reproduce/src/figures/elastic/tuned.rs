//! The jobs of a list as a scheduler has them that leaves them as they are: gang and batch stay those that its user had tuned.

use pleach_env::workload::Workload;
use pleach_env::workload::generate::pollux::APPLICATIONS;
use pleach_scheduler::cluster_spec::{LocalityFactors, ModelClass};
use pleach_scheduler::physics::goodput::Elastic;

use pleach_experiments::error::Error;

/// Batch of each application in samples, from so many GPUs on.
///
/// # Source
/// The published lists of the artefacts of Pollux and Sia, in which it follows from application and gang.
const BATCHES: [(&str, &[(u32, u32)]); 6] = [
    ("bert", &[(1, 384)]),
    ("cifar10", &[(1, 2048), (12, 4096)]),
    ("deepspeech2", &[(1, 320), (12, 640)]),
    ("imagenet", &[(1, 1600), (12, 3200), (32, 6400)]),
    ("ncf", &[(1, 32_768)]),
    ("yolov3", &[(1, 64)]),
];

/// Points of a training at which the noise scale is taken.
const NUM_POINTS: u32 = 100;

/// How long a training takes at a batch, s. A gang is on so many GPUs of so many nodes.
///
/// # Source
/// Samples on a GPU and gradient steps as the released simulator splits a fixed batch (`simulator.py`, `update_local_bsz`): one GPU
/// accumulates at least once.
fn run_time_s(profile: &Elastic, iterations: f64, (num_gpus, num_nodes): (u32, u32), batch: u32) -> f64 {
    let on_each = batch.div_ceil(num_gpus);
    let mut accumulation = on_each.div_ceil(profile.max_local_batch) - 1;
    if num_gpus == 1 && batch > profile.initial_batch {
        accumulation = accumulation.max(1);
    }
    let local = batch.div_ceil(num_gpus * (accumulation + 1));
    let total = local * num_gpus * (accumulation + 1);
    let seconds = profile
        .time
        .iteration_s(num_gpus, num_nodes, f64::from(local), accumulation);
    let samples = iterations * f64::from(profile.initial_batch) / f64::from(NUM_POINTS);
    let of_point = |point: u32| {
        let noise = profile.noise((f64::from(point) + 0.5) / f64::from(NUM_POINTS));
        samples * seconds / f64::from(total) / profile.efficiency(noise, total)
    };
    (0..NUM_POINTS).map(of_point).sum()
}

/// The same list with gangs and batches that stay. A gang runs as one on nodes with so many of its GPUs each: 1 as Pollux's baseline
/// spreads it.
pub(in super::super) fn tuned(list: &Workload, gpus_per_node: u32) -> Result<Workload, Error> {
    let mut rigid = list.clone();
    rigid.classes.clear();
    for job in &mut rigid.jobs {
        let class = &list.classes[usize::from(job.class)];
        let found = APPLICATIONS
            .iter()
            .find(|application| application.name == class.name);
        let batch = BATCHES.iter().find(|(name, ..)| *name == class.name);
        let batch = batch.and_then(|(_, sizes)| sizes.iter().rfind(|(from, _)| *from <= job.num_gpus));
        let (Some(application), Some((_, batch))) = (found, batch) else {
            return Err(Error::Failed(format!("{} has no tuned batch", class.name)));
        };
        job.run_time_s = run_time_s(
            &application.profile()?,
            application.iterations,
            (job.num_gpus, job.num_gpus.div_ceil(gpus_per_node)),
            *batch,
        );
        let own = ModelClass {
            elastic: None,
            locality: LocalityFactors::NONE,
            ..class.clone()
        };
        let place = rigid.classes.iter().position(|known| known.name == own.name);
        job.class = place.unwrap_or(rigid.classes.len()) as u16;
        if place.is_none() {
            rigid.classes.push(own);
        }
    }
    Ok(rigid)
}

#[cfg(test)]
mod tests {
    use pleach_env::{SimConfig, simulate_planner};
    use pleach_scheduler::ActionKind;
    use pleach_scheduler::physics::overheads::Overheads;

    use super::super::{System, tiresias};
    use super::*;

    #[test]
    fn a_training_at_its_initial_batch_takes_its_iterations() {
        // No sample is wasted at the initial batch: iterations x time of one of them.
        for application in APPLICATIONS {
            let profile = application.profile().unwrap();
            let gangs = [
                1,
                profile.initial_batch / profile.max_local_batch.min(profile.initial_batch),
            ];
            for num_gpus in gangs {
                let batch = profile.initial_batch;
                let local = batch / num_gpus;
                let seconds = profile.time.iteration_s(num_gpus, num_gpus, f64::from(local), 0);
                let whole_s = run_time_s(&profile, application.iterations, (num_gpus, num_gpus), batch);
                assert!(
                    (whole_s / (seconds * application.iterations) - 1.0).abs() < 1e-9,
                    "{}",
                    application.name
                );
            }
        }
    }

    #[test]
    fn a_batch_that_does_not_fit_is_accumulated() {
        // 384 samples of bert on 6 GPUs, 12 at most on one: 64 each, six steps of 11, 396 in all.
        let bert = Elastic::from_name("bert").unwrap();
        let noise_ends = Elastic {
            noise_at_start: 1e12,
            noise_at_end: 1e12,
            ..bert
        };
        let seconds = bert.time.iteration_s(6, 6, 11.0, 5);
        let expected_s = 1000.0 * 12.0 / 396.0 * seconds;
        assert!((run_time_s(&noise_ends, 1000.0, (6, 6), 384) / expected_s - 1.0).abs() < 1e-6);
    }

    /// Mean JCT of Tiresias on the eight published lists, s.
    ///
    /// # Source
    /// Summaries that were released with the artefact (`published_results`, `tiresias-1.0`).
    const PUBLISHED_S: [f64; 8] = [2474.0, 5145.0, 3876.0, 3280.0, 3501.0, 3470.0, 5480.0, 5080.0];

    #[test]
    fn tiresias_takes_as_long_as_published_on_the_eight_lists() {
        let mut sim = SimConfig::default();
        sim.capabilities.grant(ActionKind::Preempt, true);
        sim.capabilities.overheads = Some(Overheads::POLLUX_30);
        let mut ratios = Vec::new();
        for (number, published_s) in (1..).zip(PUBLISHED_S) {
            let file = format!("pollux/workloads/workload-{number}.csv.gz");
            let Some(path) = pleach_tests::data(&file) else {
                return;
            };
            let list = tuned(&super::super::read(&path, false).unwrap(), 1).unwrap();
            let System { policy, settings, .. } = tiresias();
            let mut planner = pleach_baselines::make(policy, &settings).unwrap();
            let result = simulate_planner(&list, &sim, planner.as_mut()).unwrap();
            let ours_s = result.metrics.avg_jct_s;
            eprintln!("workload-{number}: {ours_s:.0} s, published {published_s:.0} s");
            ratios.push(ours_s / published_s);
        }
        eprintln!("ours over published: {ratios:.3?}");
        assert!(
            ratios.iter().all(|ratio| (0.85..=1.15).contains(ratio)),
            "{ratios:?}"
        );
    }
}
