//! A search per list that sees all of it: what the best policy could make of the list if the right jobs had waited, said something
//! else of their run times, or kept off a GPU type.
//!
//! A policy plays the same jobs again and again with other *hints*: a job is let in later than it came, is believed to run for longer
//! or shorter than it does, or may not use a type. Whatever a policy does then is a schedule of the list itself, for jobs only begin
//! later than they might and all that is true stays true. So what the search finds is an average JCT that can be reached, and no less
//! than the best one: a bound from above on the optimum, where [`LowerBounds`](pleach_env::bound::LowerBounds) is one from below.

use pleach_env::workload::Workload;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::normal::standard_normal;
use pleach_env::{Seed, SimConfig, SimResult, simulate_planner_within};
use pleach_scheduler::Time;
use pleach_scheduler::portable_math::{exp, ln};
use rand::{Rng, RngExt as _};

use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::instances::{Instance, is_drawn};

/// Widest step of a believed run time, as a logarithm; steps are between a thirtieth of it and it. *Assumed*.
const STEP_MAX: f64 = 3.0;
/// Jobs whose hints change at once, at most: 1, 2, 4 or 8, as often as each other. *Assumed*.
const LN2_JOBS_MAX: u32 = 3;

/// What jobs say of themselves, by their numbers in the list.
#[derive(Clone)]
struct Hints {
    /// Logarithm of the believed over the true run time.
    belief: Vec<f64>,
    /// From the submission until the job is let in, s.
    held_s: Vec<f64>,
    /// Types that it keeps off, a bit each.
    off: Vec<u64>,
}

/// What a search goes on from.
struct Found {
    hints: Hints,
    avg_jct_s: f64,
    /// By the number of the job: submission, first start, finish and least run time, s.
    times_s: Vec<[f64; 4]>,
}

/// The least average JCT, s, that `num` simulations of hints around `policy` find on a list. `sim` has run times known, and
/// `avg_jct_s` is what the policy makes of the list there. Where the world draws anything beside run times, only beliefs move: jobs
/// that came in another order would draw otherwise.
///
/// # Errors
/// A run of the plain list that fails. Hints that the policy cannot do with are passed over.
pub(super) fn foresight(
    instance: &Instance,
    sim: &SimConfig,
    policy: &PolicySpec,
    num: u32,
) -> Result<Option<f64>, Error> {
    let list = &instance.workload;
    let sim = SimConfig {
        seed: instance.seed,
        estimates: EstimateModel::UserLimit { default_s: 1.0 },
        ..sim.clone()
    };
    let num_jobs = list.jobs.len();
    let hints = Hints {
        belief: vec![0.0; num_jobs],
        held_s: vec![0.0; num_jobs],
        off: vec![0; num_jobs],
    };
    let Some(mut best) = play(list, &sim, policy, hints, f64::INFINITY)? else {
        return Ok(None);
    };
    let is_free = !is_drawn(&sim);
    let mut random = Seed(instance.seed).stream("foresight", 0);
    for _ in 0..num {
        let hints = moved(&best, list, is_free, &mut random);
        if let Ok(Some(found)) = play(list, &sim, policy, hints, best.avg_jct_s) {
            best = found;
        }
    }
    Ok(Some(best.avg_jct_s))
}

/// Other hints for some jobs that meet: the first by what it loses, beyond the least that it takes.
fn moved(from: &Found, list: &Workload, is_free: bool, random: &mut impl Rng) -> Hints {
    let mut hints = from.hints.clone();
    let losses: Vec<f64> = from
        .times_s
        .iter()
        .map(|[submit_s, _, finish_s, least_s]| (finish_s - submit_s - least_s).max(0.0))
        .collect();
    let first = if random.random::<f64>() < 0.3 {
        random.random_range(0..losses.len())
    } else {
        let mut left = random.random::<f64>() * losses.iter().sum::<f64>();
        let is_drawn = |loss: &f64| {
            left -= loss;
            left <= 0.0
        };
        losses.iter().position(is_drawn).unwrap_or(0)
    };
    let [from_s, _, to_s, _] = from.times_s[first];
    let meets = |job: &usize| from.times_s[*job][0] < to_s && from.times_s[*job][2] > from_s;
    let others: Vec<usize> = (0..losses.len()).filter(meets).collect();
    let most = 1_u32 << random.random_range(0..LN2_JOBS_MAX + 1);
    let step = STEP_MAX * exp(-ln(30.0) * random.random::<f64>());
    let num_types = list.cluster.gpu_types.len();
    for place in 0..=random.random_range(0..most) {
        let job = if place == 0 || others.is_empty() {
            first
        } else {
            others[random.random_range(0..others.len())]
        };
        match random.random::<f64>() {
            kind if kind < 0.65 || !is_free => hints.belief[job] += step * standard_normal(random),
            kind if kind < 0.85 || num_types < 2 => {
                let [submit_s, start_s, finish_s, _] = from.times_s[job];
                hints.held_s[job] = match random.random::<f64>() {
                    kind if kind < 0.4 => 0.0,
                    kind if kind < 0.6 => hints.held_s[job] * exp(0.5 * standard_normal(random)),
                    _ => {
                        let beyond_s =
                            0.5 * (finish_s - submit_s) * random.random::<f64>() * random.random::<f64>();
                        beyond_s + (start_s - submit_s) * random.random::<f64>()
                    }
                };
            }
            _ => hints.off[job] ^= 1 << random.random_range(0..num_types.min(64)),
        }
    }
    hints
}

/// The list as jobs with these hints show it, and the number of each job in the list itself.
fn hinted(list: &Workload, hints: &Hints) -> (Workload, Vec<usize>) {
    let mut shown = list.clone();
    for (number, job) in shown.jobs.iter_mut().enumerate() {
        job.submit = job.submit + Time::from_secs_f64(hints.held_s[number].max(0.0));
        job.estimate_s = Some((job.run_time_s * exp(hints.belief[number])).clamp(1e-6, 1e9));
        let off = hints.off[number];
        if off != 0 {
            let mut class = list.classes[usize::from(job.class)].clone();
            let speeds = class.speed.iter_mut().enumerate().take(64);
            speeds
                .filter(|(place, _)| off >> place & 1 == 1)
                .for_each(|(_, speed)| *speed = 0.0);
            let known = shown.classes.iter().position(|known| *known == class);
            let place = known.unwrap_or(shown.classes.len());
            if place == shown.classes.len() {
                shown.classes.push(class);
            }
            job.class = u16::try_from(place).unwrap_or(job.class);
        }
    }
    let mut numbers: Vec<usize> = (0..shown.jobs.len()).collect();
    numbers.sort_by_key(|number| (shown.jobs[*number].submit, *number));
    shown.jobs = numbers.iter().map(|number| shown.jobs[*number].clone()).collect();
    (shown, numbers)
}

/// What a policy makes of the list with these hints; none where that is sure to be above a bound, or is.
fn play(
    list: &Workload,
    sim: &SimConfig,
    policy: &PolicySpec,
    hints: Hints,
    avg_jct_s_max: f64,
) -> Result<Option<Found>, Error> {
    let (shown, numbers) = hinted(list, &hints);
    let held_s =
        hints.held_s.iter().map(|held_s| held_s.max(0.0)).sum::<f64>() / hints.held_s.len().max(1) as f64;
    let mut planner = policy.make_planner()?;
    let found = simulate_planner_within(&shown, sim, planner.as_mut(), avg_jct_s_max - held_s)?;
    Ok(found
        .and_then(|result| of_list(list, &numbers, &result, hints))
        .filter(|found| found.avg_jct_s <= avg_jct_s_max))
}

/// The run of a list with hints as one of the list itself.
fn of_list(list: &Workload, numbers: &[usize], result: &SimResult, hints: Hints) -> Option<Found> {
    let mut times_s = vec![[0.0; 4]; numbers.len()];
    for (number, job) in numbers.iter().zip(&result.jobs) {
        let submit_s = list.jobs[*number].submit.as_secs_f64();
        times_s[*number] = [submit_s, job.first_start_s, job.finish_s, job.isolated_s];
    }
    let sum_s: f64 = times_s
        .iter()
        .map(|[submit_s, _, finish_s, _]| finish_s - submit_s)
        .sum();
    (!times_s.is_empty()).then(|| Found {
        avg_jct_s: sum_s / times_s.len() as f64,
        hints,
        times_s,
    })
}
