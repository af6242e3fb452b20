//! DeepPool: each layer gets as many GPUs as it uses well, and a background job what is left within an iteration.

use super::system::{Benchmark, Effort, Error, Reproduction, exact, figures};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "deeppool",
    title: "DeepPool: layers over as many GPUs as they use",
    source: "Park et al., MLSys'22: 1.2 to 2.3 times the cluster throughput of data parallelism with a single task, by its abstract",
    setup: "Our model. Three layers of 8, 4 and 1 ms with their own overhead and synchronization, 0.1 ms where the number of GPUs \
            changes, on 4 GPUs; a layer's GPU time is at most so many times that on one. The background job takes what is idle \
            without a loss. All assumed",
    run,
};

/// A layer: ms of one GPU, ms at any number, and ms of synchronization at infinitely many, half.
type Layer = [f64; 3];

const LAYERS: [Layer; 3] = [[8.0, 0.1, 0.02], [4.0, 0.1, 0.02], [1.0, 0.2, 0.4]];
/// Of a change of the number of GPUs, ms.
const MOVE_MS: f64 = 0.1;

fn time_ms([compute, overhead, sync]: Layer, gpus: u32) -> f64 {
    let gpus = f64::from(gpus);
    compute / gpus + overhead + 2.0 * (gpus - 1.0) / gpus * sync
}

/// GPUs of each layer in powers of two, and the iteration in ms.
type Plan = (Vec<u32>, f64);

/// The shortest iteration in which no layer takes more than `limit` times its GPU time on one.
fn plan(layers: &[Layer], num_gpus: u32, limit: f64) -> Option<Plan> {
    let widths = || (0..=num_gpus.ilog2()).map(|power| 1_u32 << power);
    let shorter = |best: Plan, next: Plan| if next.1 < best.1 { next } else { best };
    let mut plans: Vec<Plan> = vec![(Vec::new(), 0.0)];
    for layer in layers {
        let wide =
            widths().filter(|gpus| time_ms(*layer, *gpus) * f64::from(*gpus) <= limit * time_ms(*layer, 1));
        let best = |gpus: u32| {
            let own = time_ms(*layer, gpus);
            let with = plans.iter().map(|(before, total)| {
                let moved = before.last().is_some_and(|last| *last != gpus);
                let all = before.iter().copied().chain([gpus]).collect();
                (all, total + own + if moved { MOVE_MS } else { 0.0 })
            });
            with.reduce(shorter)
        };
        plans = wide.filter_map(best).collect();
    }
    plans.into_iter().reduce(shorter)
}

/// The part of the GPU time of an iteration that layers hold.
fn busy(layers: &[Layer], (widths, total_ms): &Plan, num_gpus: u32) -> f64 {
    let held = layers.iter().zip(widths);
    let held: f64 = held
        .map(|(layer, gpus)| time_ms(*layer, *gpus) * f64::from(*gpus))
        .sum();
    held / (f64::from(num_gpus) * total_ms)
}

/// Work of one GPU in an iteration over its time, and what is idle for the background job: GPUs' worth of work.
fn throughput(plan: &Plan, num_gpus: u32) -> f64 {
    let alone: f64 = LAYERS.iter().map(|layer| time_ms(*layer, 1)).sum();
    alone / plan.1 + (1.0 - busy(&LAYERS, plan, num_gpus)) * f64::from(num_gpus)
}

fn run(_: &Effort) -> Result<Reproduction, Error> {
    let mut found = Vec::new();
    let num_gpus = 4;
    let data_parallel = plan(&LAYERS, num_gpus, f64::INFINITY).unwrap_or_default();
    for limit in [1.1, 1.5, 2.0] {
        let plan = plan(&LAYERS, num_gpus, limit).unwrap_or_default();
        let mut push = |what: &str, value| found.push(exact(format!("limit {limit}: {what}"), value));
        push("iteration, ms", plan.1);
        let gain = throughput(&plan, num_gpus) / throughput(&data_parallel, num_gpus);
        push("throughput over data parallelism alone", gain);
    }
    figures(
        found,
        "The gain is what data parallelism wastes, so it grows with the number of GPUs: at a scale and with a model of ours it says nothing \
         of the paper's. What the background job slows is left out, so these are upper bounds.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_those_worked_by_hand() {
        for (limit, widths, total_ms, percent) in [
            (1.1, [4, 2, 1], 5.65, 62.0),
            (1.5, [4, 4, 1], 4.56, 78.0),
            (2.0, [4, 4, 2], 4.46, 85.0),
            (f64::INFINITY, [4, 4, 4], 4.31, 100.0),
        ] {
            let own = plan(&LAYERS, 4, limit).unwrap();
            assert_eq!(own.0, widths, "limit {limit}");
            assert!((own.1 - total_ms).abs() < 1e-9, "{own:?}");
            assert!((100.0 * busy(&LAYERS, &own, 4) - percent).abs() < 0.5, "{own:?}");
        }
    }
}
