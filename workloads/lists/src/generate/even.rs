//! Long lists of which each stands for all: kinds, run times and ends have their parts in every one.
//!
//! Where a handful of jobs holds most of the GPU time, lists that are drawn job by job differ by a factor in what fails or is
//! stopped. Here kinds come in turn (multiples of the golden ratio, so that each has its part of any row of runs). Run times of a
//! kind lie one in each of as many equal parts of its distribution as it has jobs, in the order that was drawn; the longest is
//! the mean of its part, so that the GPU time of the kind is what is expected of it. Ends go from the largest job to the
//! smallest, each time to the end that has got least of the GPU time that is due to it.
//!
//! What a single job is stays drawn: its user, its time, and the jobs beside it.

use rand::Rng;

use super::mix::{Mix, Run};
use super::unit;

/// The golden ratio, less one.
const TURN: f64 = 0.618_033_988_749_894_9;

/// Runs until there are `num_jobs` jobs.
pub(super) fn draw_all(mix: &Mix<'_>, num_jobs: usize, rng: &mut impl Rng) -> Vec<Run> {
    let all: f64 = mix.weights.iter().sum();
    let mut turn = unit(rng);
    let (mut runs, mut left) = (Vec::new(), num_jobs);
    while left > 0 {
        let mut share = turn * all;
        let within = |weight: &f64| {
            share -= weight;
            share < 0.0
        };
        let kind = mix.weights.iter().position(within);
        // By rounding none may be left: the last that is ever drawn.
        let last = || mix.weights.iter().rposition(|weight| *weight > 0.0);
        let run = mix.draw(kind.or_else(last).unwrap_or_default(), left, rng);
        left -= run.run_times_s.len();
        runs.push(run);
        turn = (turn + TURN).fract();
    }
    spread(mix, &mut runs, rng);
    runs
}

/// Gives the jobs of each kind run times in equal parts of its distribution, in the order of those that they have.
fn spread(mix: &Mix<'_>, runs: &mut [Run], rng: &mut impl Rng) {
    let mut jobs: Vec<Vec<(f64, usize, usize)>> = vec![Vec::new(); mix.kinds.len()];
    for (number, run) in runs.iter().enumerate() {
        let times = run.run_times_s.iter().enumerate();
        jobs[run.kind].extend(times.map(|(member, time_s)| (*time_s, number, member)));
    }
    for (index, mut jobs) in jobs.into_iter().enumerate() {
        let (curve, kept) = (&mix.kinds[index].run_times, mix.kept[index]);
        jobs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let part = kept / jobs.len() as f64;
        let last = jobs.len().saturating_sub(1);
        for (rank, (_, run, member)) in jobs.into_iter().enumerate() {
            let level = (rank as f64 + unit(rng)) * part;
            runs[run].run_times_s[member] = match rank == last {
                true => curve.mean_s(kept - part, kept),
                false => curve.run_time_s(level),
            };
        }
    }
}

/// One of `N` ends for each job, by its GPU time and the chances of its ends.
pub(super) fn ends<const N: usize>(jobs: &[(f64, [f64; N])]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|a, b| jobs[*b].0.total_cmp(&jobs[*a].0).then(a.cmp(b)));
    let mut due = [0.0; N];
    let mut ends = vec![0; jobs.len()];
    for job in order {
        let (gpu_s, weights) = &jobs[job];
        let all: f64 = weights.iter().sum();
        let mut most = 0;
        for end in 0..N {
            due[end] += gpu_s * weights[end] / all;
            if due[end] > due[most] {
                most = end;
            }
        }
        due[most] -= gpu_s;
        ends[job] = most;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_part_of_the_gpu_time_up_to_the_least_jobs() {
        // One job of 100 and a hundred of 1, all with even chances of two ends: the large one gets the first, the small ones the
        // second until it has as much, that is all of them.
        let mut jobs = vec![(100.0, [1.0, 1.0])];
        jobs.extend([(1.0, [1.0, 1.0]); 100]);
        let found = ends(&jobs);
        assert_eq!((found[0], found[1..].iter().sum::<usize>()), (0, 100));
        // Without the large one they come in turn.
        assert_eq!(ends(&jobs[1..5]), [0, 1, 0, 1]);
        assert_eq!(ends::<2>(&[]), [0; 0]);
    }
}
