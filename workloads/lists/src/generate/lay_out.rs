//! From runs of jobs to a workload: how much work they are, over which span that makes the wanted load, which job comes when.

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use rand::Rng;

use super::arrivals::{Rate, Shape, fit_span};
use super::mix::{Mix, Run};
use super::{even, limits, span_for, unit};
use crate::Error;
use crate::seed::Seed;
use crate::select::capacity_gpus;
use crate::{JobSpec, Workload};

/// Everything that is settled before jobs are drawn.
pub(super) struct Plan<'a> {
    /// Name of the workload.
    pub name: &'a str,
    pub num_jobs: usize,
    /// Offered load.
    pub load: f64,
    /// Whether kinds and run times are drawn evenly.
    pub is_even: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    pub shape: Shape<'a>,
    /// Gaps inside a run, s: (share of gaps of at most this length, gap).
    pub gaps_s: &'a [(f64, f64)],
}

/// Draws the jobs and lays their arrivals so that the load is met.
pub(super) fn lay_out(
    plan: &Plan<'_>,
    mix: &Mix<'_>,
    cluster: ClusterSpec,
    classes: Vec<ModelClass>,
    seed: Seed,
) -> Result<Workload, Error> {
    let mut rng = seed.stream("jobs", 0);
    let runs = match plan.is_even {
        true => even::draw_all(mix, plan.num_jobs, &mut rng),
        false => mix.draw_all(plan.num_jobs, &mut rng),
    };
    let mut work = vec![0.0; classes.len()];
    let mut demand_gpu_s = 0.0;
    for run in &runs {
        let kind = &mix.kinds[run.kind];
        let share = f64::from(kind.resources.gpu_milli) / 1000.0;
        let gpu_s = f64::from(kind.num_gpus) * share * run.run_times_s.iter().sum::<f64>();
        demand_gpu_s += gpu_s;
        work[usize::from(kind.class)] += gpu_s;
    }
    let capacity = capacity_gpus(&cluster, &classes, &work);
    let span_s = span_for(demand_gpu_s, plan.load, capacity)?;
    let times = arrival_times(plan, &runs, span_s, seed);

    let mut order: Vec<(usize, usize)> = Vec::with_capacity(plan.num_jobs);
    for (index, run) in runs.iter().enumerate() {
        order.extend((0..run.run_times_s.len()).map(|member| (index, member)));
    }
    let mut sorted: Vec<(f64, (usize, usize))> = times.into_iter().zip(order).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut clock: Vec<f64> = sorted.iter().map(|(time, _)| *time).collect();
    fit_span(&mut clock, span_s);
    let jobs = clock.into_iter().zip(sorted).enumerate();
    let jobs = jobs.map(|(position, (submit_s, (_, (index, member))))| {
        let run = &runs[index];
        job(plan, mix, run, member, position, submit_s)
    });
    Ok(Workload {
        name: plan.name.into(),
        jobs: jobs.collect(),
        classes,
        cluster,
    })
}

fn job(plan: &Plan<'_>, mix: &Mix<'_>, run: &Run, member: usize, position: usize, submit_s: f64) -> JobSpec {
    let kind = &mix.kinds[run.kind];
    let run_time_s = run.run_times_s[member];
    JobSpec {
        id: position.to_string(),
        submit: Time::from_secs_f64(submit_s),
        num_gpus: kind.num_gpus,
        run_time_s,
        estimate_s: plan
            .user_limits
            .then(|| limits::limit_s(run_time_s, run.limit_factor)),
        tenant: run.tenant as u16,
        class: kind.class,
        user: run
            .user
            .map(|user| format!("user-{}-{}", run.tenant + 1, user + 1)),
        outcome: run.outcomes[member],
        resources: kind.resources,
        observed: None,
    }
}

/// One time per job, run by run, not yet sorted.
fn arrival_times(plan: &Plan<'_>, runs: &[Run], span_s: f64, seed: Seed) -> Vec<f64> {
    let mut rng = seed.stream("arrivals", 0);
    let rate = Rate::new(span_s, &plan.shape, &mut rng);
    let starts = rate.draw(runs.len(), &mut rng);
    // The k-th start need not belong to the k-th run drawn; runs are independent, so any pairing will do.
    let mut times = Vec::with_capacity(plan.num_jobs);
    for (run, start) in runs.iter().zip(starts) {
        let mut time = start;
        for _ in 0..run.run_times_s.len() {
            times.push(time);
            time += gap_s(plan.gaps_s, &mut rng);
        }
    }
    times
}

fn gap_s(gaps_s: &[(f64, f64)], rng: &mut impl Rng) -> f64 {
    let share = unit(rng);
    let found = gaps_s.iter().find(|(up_to, _)| share < *up_to);
    found.map_or(0.0, |(_, gap)| *gap)
}
