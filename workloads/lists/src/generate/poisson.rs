//! Poisson arrivals at a given rate or a given load, as controlled experiments have them.

use pleach_scheduler::Time;
use pleach_scheduler::portable_math::ln;

use super::arrivals::fit_span;
use super::{span_for, unit};
use crate::Error;
use crate::seed::Seed;
use crate::{SUBMIT_S_MAX, Workload, num_gpus_by_type};

/// Gives the jobs, in their order, the points of a Poisson process: of `jobs_per_hour`, or else stretched so that the load
/// is met exactly.
pub(super) fn set_arrivals(
    workload: &mut Workload,
    jobs_per_hour: Option<f64>,
    load: f64,
    seed: Seed,
) -> Result<(), Error> {
    let mut rng = seed.stream("arrivals", 0);
    let mut time = 0.0;
    let gaps = (0..workload.jobs.len()).map(|position| {
        if position > 0 {
            time -= ln(1.0 - unit(&mut rng));
        }
        time
    });
    let mut times: Vec<f64> = gaps.collect();
    match jobs_per_hour {
        Some(rate) => {
            let hour = 3600.0 / rate;
            times.iter_mut().for_each(|time| *time *= hour);
        }
        None => {
            let span_s = span_for(workload.demand_gpu_s(), load, mean_gpus(workload))?;
            fit_span(&mut times, span_s);
        }
    }
    Error::refuse_if(
        times.last().is_some_and(|last| *last > SUBMIT_S_MAX),
        "generator.jobs_per_hour",
        jobs_per_hour.unwrap_or_default(),
        "arrivals within 2e9 s",
        "raise the rate or ask for fewer jobs",
    )?;
    for (job, time) in workload.jobs.iter_mut().zip(times) {
        job.submit = Time::from_secs_f64(time);
    }
    Ok(())
}

/// GPUs of the cluster, each counted at the mean speed of all jobs on its type, 0 for those that it cannot run. Other generators
/// leave these out ([`Workload::capacity_gpus`]); here three rare classes of Gavel's cannot run on one type, so the load is met
/// to 0.5 %, and lists stay what published comparisons played.
fn mean_gpus(workload: &Workload) -> f64 {
    let work = workload.work_by_class();
    let total: f64 = work.iter().sum();
    let of_type = |(kind, num_gpus): (usize, u32)| {
        let classes = workload.classes.iter().zip(&work);
        let weighted: f64 = classes.map(|(class, work)| class.speed[kind] * work).sum();
        f64::from(num_gpus) * (weighted / total)
    };
    num_gpus_by_type(&workload.cluster)
        .into_iter()
        .enumerate()
        .map(of_type)
        .sum()
}
