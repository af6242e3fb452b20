//! Partitioned edge learning: parameters and bandwidth are dealt to devices so that all end at once.

use super::system::{
    Benchmark, Effort, Error, Reproduction, drawn, exact, figures, largest, log_uniform, smallest,
};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "edge-learning",
    title: "Partitioned edge learning: load and bandwidth",
    source: "Wen et al., \"Joint parameter-and-bandwidth allocation for improving the efficiency of partitioned edge learning\": e.g. \
             46 % lower latency with both, by its abstract",
    setup: "Closed form. Device i with a part l of the load and b of the bandwidth takes l / f + l / (b h). Example: two devices, f 1 \
            and 2, h 1. Drawn: ten devices, f uniform in the logarithm from 1 to 4, h from 0.5 to 4, assumed",
    run,
};

/// Speed and channel of a device.
type Device = (f64, f64);

/// Latency of loads that make all end at once, for parts of the bandwidth; without any a device carries nothing.
fn balanced(devices: &[Device], bands: &[f64]) -> f64 {
    let parts = devices.iter().zip(bands);
    let per_time: f64 = parts
        .map(|((speed, channel), band)| 1.0 / (1.0 / speed + 1.0 / (band * channel)))
        .sum();
    1.0 / per_time
}

/// Where a function that falls, or stays, comes to 1, between two ends.
fn bisect(low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let halve = |(low, high): (f64, f64), _| {
        let middle = 0.5 * (low + high);
        if of(middle) > 1.0 {
            (middle, high)
        } else {
            (low, middle)
        }
    };
    (0..200).fold((low, high), halve).1
}

/// Bandwidth of the least latency with the loads that belong to it. The load done in a unit of time, f b h / (b h + f), is concave
/// in b; at the optimum its slope is alike wherever b is above 0, which gives b = f (c sqrt(h) - 1) / h.
fn joint_bands(devices: &[Device]) -> Vec<f64> {
    let bands = |inverse: f64| {
        let band = |(speed, channel): &Device| (speed * (channel.sqrt() / inverse - 1.0) / channel).max(0.0);
        devices.iter().map(band).collect::<Vec<f64>>()
    };
    // In 1 / c the sum falls.
    bands(bisect(1e-9, 1e3, |inverse| bands(inverse).iter().sum()))
}

/// Latencies: all equal, loads alone, bandwidth alone, both.
fn schemes(devices: &[Device]) -> [f64; 4] {
    let part = 1.0 / devices.len() as f64;
    let equal = vec![part; devices.len()];
    let alike = devices
        .iter()
        .map(|(speed, channel)| part / speed + 1.0 / channel);
    // The least time in which equal loads are computed, and what bandwidth sends them in the rest of a time.
    let floor = largest(devices.iter().map(|(speed, _)| part / speed));
    let sent = |time: f64| {
        let bands = devices
            .iter()
            .map(|(speed, channel)| part / (time - part / speed) / channel);
        bands.sum()
    };
    [
        largest(alike),
        balanced(devices, &equal),
        bisect(floor, floor + 1e6, sent),
        balanced(devices, &joint_bands(devices)),
    ]
}

fn run(effort: &Effort) -> Result<Reproduction, Error> {
    let names = ["equal parts", "loads alone", "bandwidth alone", "both"];
    let example = schemes(&[(1.0, 1.0), (2.0, 1.0)]);
    let mut found: Vec<_> = names
        .into_iter()
        .zip(example)
        .map(|(name, time)| exact(format!("two devices: latency with {name}"), time))
        .collect();
    let of = |seed: pleach_env::Seed| {
        let mut rng = seed.stream("devices", 0);
        let devices: Vec<Device> = (0..10)
            .map(|_| (log_uniform(1.0, 4.0, &mut rng), log_uniform(0.5, 4.0, &mut rng)))
            .collect();
        schemes(&devices)
    };
    found.push(drawn("ten devices: both over equal parts", effort, |seed| {
        let times = of(seed);
        times[3] / times[0]
    }));
    found.push(drawn(
        "ten devices: both over the better of one alone",
        effort,
        |seed| {
            let times = of(seed);
            times[3] / smallest([times[1], times[2]])
        },
    ));
    figures(
        found,
        "The abstract does not say what its 46 % are measured against, nor on which channels: both comparisons are printed.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_devices_take_as_long_as_worked_by_hand() {
        let own = schemes(&[(1.0, 1.0), (2.0, 1.0)]);
        for (own, expected) in own.into_iter().zip([1.5, 1.3636, 1.3904, 4.0 / 3.0]) {
            assert!((own - expected).abs() < 1e-4, "{own}, {expected}");
        }
    }

    #[test]
    fn no_shift_of_bandwidth_between_two_devices_is_shorter() {
        let devices = [(1.0, 0.5), (3.0, 2.0), (2.0, 0.01), (0.7, 4.0)];
        let joint = joint_bands(&devices);
        assert!(
            (joint.iter().sum::<f64>() - 1.0).abs() < 1e-6 && joint[2] == 0.0,
            "{joint:?}"
        );
        for from in 0..4 {
            for to in 0..4 {
                let mut moved = joint.clone();
                let step = joint[from].min(0.01);
                moved[from] -= step;
                moved[to] += step;
                assert!(
                    balanced(&devices, &moved) >= balanced(&devices, &joint) - 1e-9,
                    "{from} to {to}"
                );
            }
        }
    }
}
