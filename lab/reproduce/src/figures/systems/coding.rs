//! Gradient coding with clusters that change: slow workers of the last iteration are spread over the clusters of the next.

use rand::{Rng, RngExt as _};

use super::system::{Benchmark, Effort, Error, Reproduction, drawn, exact, figures, largest};
use pleach_experiments::evaluate::stats::mean;

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "gradient-coding",
    title: "Gradient coding with dynamic clusters",
    source: "Buyukates et al., \"Gradient coding with dynamic clustering for straggler-tolerant distributed learning\": a significant \
             gain, without a number in its abstract",
    setup: "Our model. Example: four workers in clusters of two, every datum on both, two of them slow: 20 s in place of 2. Drawn: 24 \
            workers in clusters of 4, each with data of all clusters (a bound), every datum on 2 or 3; a tenth slow, for ten \
            iterations in the mean or anew in each, 400 iterations; all assumed",
    run,
};

/// Time of a worker for the data of its cluster: fast and slow, s.
const TIMES_S: [f64; 2] = [2.0, 20.0];

/// An iteration in which workers are dealt to clusters of a size in an order, s: it ends when each has all but `copies` - 1 results.
fn time_s(size: usize, copies: usize, order: &[usize], slow: &[bool]) -> f64 {
    let num = order.len() / size;
    let of = |cluster: usize| {
        let members = order.iter().skip(cluster).step_by(num);
        let num_slow = members.filter(|worker| slow[**worker]).count();
        TIMES_S[usize::from(num_slow >= copies)]
    };
    largest((0..num).map(of))
}

/// Slow ones first, so that dealing spreads them.
fn spread(slow: &[bool]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..slow.len()).collect();
    order.sort_by_key(|worker| !slow[*worker]);
    order
}

/// Mean time of an iteration with clusters that change over that with fixed ones; a slow worker stays slow with a chance.
fn gain(copies: usize, stays: f64, rng: &mut impl Rng) -> f64 {
    let begins = 0.1 * (1.0 - stays) / 0.9;
    let mut slow: Vec<bool> = (0..24).map(|_| rng.random_bool(0.1)).collect();
    let fixed: Vec<usize> = (0..24).collect();
    let mut times_s = [0.0; 2];
    for _ in 0..400 {
        let dynamic = spread(&slow);
        for slow in &mut slow {
            *slow = rng.random_bool(if *slow { stays } else { begins });
        }
        times_s[0] += time_s(4, copies, &dynamic, &slow);
        times_s[1] += time_s(4, copies, &fixed, &slow);
    }
    times_s[0] / times_s[1]
}

/// Of four workers all pairs that may be slow: the mean time in s uncoded with half the work each, with fixed clusters and with spread
/// ones.
fn example() -> [f64; 3] {
    let pairs = (0..4).flat_map(|one| (0..one).map(move |other| (one, other)));
    let times = pairs.map(|(one, other)| {
        let slow: [bool; 4] = std::array::from_fn(|worker| worker == one || worker == other);
        let of = |order: &[usize]| time_s(2, 2, order, &slow);
        [TIMES_S[1] / 2.0, of(&[0, 1, 2, 3]), of(&spread(&slow))]
    });
    let times: Vec<[f64; 3]> = times.collect();
    std::array::from_fn(|at| mean(&times.iter().map(|times| times[at]).collect::<Vec<f64>>()))
}

fn run(effort: &Effort) -> Result<Reproduction, Error> {
    let names = ["uncoded", "fixed clusters", "spread clusters"];
    let mut found: Vec<_> = names
        .into_iter()
        .zip(example())
        .map(|(name, time_s)| exact(format!("four workers, two slow: iteration {name}, s"), time_s))
        .collect();
    for (copies, stays, how) in [
        (2, 0.9, "for ten iterations"),
        (3, 0.9, "for ten iterations"),
        (2, 0.1, "anew"),
    ] {
        let what = format!("iteration time, dynamic / fixed, data on {copies}, slow {how}");
        found.push(drawn(what, effort, |seed| {
            gain(copies, stays, &mut seed.stream("slow", 0))
        }));
    }
    figures(
        found,
        "Spreading pays by what the last iteration says of the next: where slowness does not last it gains nothing. The paper's own \
         law of stragglers and placement of data are not at hand.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_means_over_six_pairs_are_those_worked_by_hand() {
        assert_eq!(example(), [10.0, 8.0, 2.0]);
    }

    /// Six workers, three clusters of two: workers 0, 3 and 1 are slow.
    #[test]
    fn slow_workers_are_dealt_apart() {
        let slow = [true, true, false, true, false, false];
        assert_eq!(spread(&slow), [0, 1, 3, 2, 4, 5]);
        assert_eq!(time_s(2, 2, &spread(&slow), &slow), 2.0);
        assert_eq!(
            time_s(2, 2, &[0, 1, 2, 3, 4, 5], &slow),
            20.0,
            "0 and 3 share a cluster"
        );
    }
}
