//! A generator of one's own: bursts of short jobs between long ones, on four nodes of eight GPUs.

use pleach_cli::env::workload::generate::{OwnConfig, OwnGenerator};
use pleach_cli::env::workload::{Error, JobSpec, Seed, Workload};
use pleach_cli::scheduler::Time;
use pleach_cli::scheduler::cluster_spec::{ClusterSpec, ModelClass};

/// Its name, and how it is made.
pub const BURSTY: OwnGenerator = OwnGenerator {
    name: "bursty",
    describe: "bursts of short jobs between long ones, on 32 equal GPUs",
    defaults,
    make,
};

fn defaults() -> OwnConfig {
    let mut config = OwnConfig::new("bursty");
    config.settings.insert("jobs_of_a_burst".into(), 10.0);
    config
}

/// All that is drawn comes from the seed. Arrivals are stretched to the load afterwards.
fn make(config: &OwnConfig, seed: Seed) -> Result<Workload, Error> {
    let burst = config
        .settings
        .get("jobs_of_a_burst")
        .copied()
        .unwrap_or(10.0)
        .max(1.0) as usize;
    // A number from 0 to 1 for each job and purpose.
    let draw = |what: &str, job: usize| (seed.child(what, job as u64).0 >> 11) as f64 / (1_u64 << 53) as f64;
    let job = |number: usize| {
        let is_long = number.is_multiple_of(burst);
        let run_time_s = if is_long { 20_000.0 } else { 600.0 } * (0.5 + draw("run time", number));
        let num_gpus = 1 << (3.99 * draw("gang", number)) as u32;
        // All of a burst come within ten minutes; an hour lies between two.
        let submit_s = 3600.0 * (number / burst) as f64 + 600.0 * (number % burst) as f64 / burst as f64;
        JobSpec::new(
            format!("job{number}"),
            Time::from_secs_f64(submit_s),
            num_gpus,
            run_time_s,
        )
    };
    Ok(Workload {
        name: "bursty".into(),
        cluster: ClusterSpec::uniform(4, 8, 4),
        classes: vec![ModelClass::default()],
        jobs: (0..config.num_jobs).map(job).collect(),
    })
}
