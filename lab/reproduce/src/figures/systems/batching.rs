//! Dynamic batching: a controller moves samples from slow workers to fast ones until all take as long.

use super::system::{Benchmark, Effort, Error, Reproduction, exact, figures, largest, smallest};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "batching",
    title: "Dynamic batching: samples by the speed of each worker",
    source: "Tyagi and Sharma, \"Taming resource heterogeneity in distributed ML training with dynamic batching\": more than 4 times \
             as fast as uniform batches, by its abstract",
    setup: "Closed form. Batches b move by (t - mean t) b / t and keep their sum; within 5 % they rest, and none falls below one. \
            Four workers of speeds 1, 4, 4 and 7, sixteen samples each at first",
    run,
};

/// Part of the mean time within which batches rest.
const REST: f64 = 0.05;

/// Batches after one step of the controller, from what each worker took, s; their sum stays.
fn step(batches: &[f64], times_s: &[f64]) -> Vec<f64> {
    let mean_s = times_s.iter().sum::<f64>() / times_s.len() as f64;
    let off = times_s.iter().map(|time_s| (time_s - mean_s).abs());
    if largest(off) <= REST * mean_s {
        return batches.to_vec();
    }
    let moved = batches.iter().zip(times_s);
    let moved: Vec<f64> = moved
        .map(|(batch, time_s)| (batch - batch / time_s * (time_s - mean_s)).max(1.0))
        .collect();
    let scale = batches.iter().sum::<f64>() / moved.iter().sum::<f64>();
    moved.into_iter().map(|batch| batch * scale).collect()
}

fn times_s(batches: &[f64], speeds: &[f64]) -> Vec<f64> {
    batches
        .iter()
        .zip(speeds)
        .map(|(batch, speed)| batch / speed)
        .collect()
}

const SPEEDS: [f64; 4] = [1.0, 4.0, 4.0, 7.0];

fn run(_: &Effort) -> Result<Reproduction, Error> {
    let uniform = times_s(&[16.0; 4], &SPEEDS);
    let dynamic = times_s(&step(&[16.0; 4], &uniform), &SPEEDS);
    let mean = SPEEDS.iter().sum::<f64>() / SPEEDS.len() as f64;
    figures(
        vec![
            exact(
                "uniform over dynamic iteration, one step",
                largest(uniform) / largest(dynamic),
            ),
            exact(
                "mean speed over the lowest, which bounds it",
                mean / smallest(SPEEDS),
            ),
        ],
        "Against uniform batches the gain is at most the mean speed over the lowest: a property of the cluster, which the abstract \
         does not give. Whether unequal batches train as well is not modelled.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_gives_the_batches_worked_by_hand() {
        let after = step(&[16.0; 4], &times_s(&[16.0; 4], &SPEEDS));
        for (own, expected) in after.iter().zip([4.0, 16.0, 16.0, 28.0]) {
            assert!((own - expected).abs() < 1e-9, "{after:?}");
        }
        assert_eq!(step(&after, &[4.1, 4.0, 4.0, 3.9]), after, "within 5 % they rest");
        let [one, more] = [1.0, 1000.0];
        assert!(step(&[one, more], &[1000.0, 1.0])[0] > 0.0, "no batch vanishes");
    }
}
