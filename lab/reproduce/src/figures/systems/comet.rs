//! COMET: what a step of a large model costs by tensor and data parallelism, memory and links.

use super::system::{Benchmark, Effort, Error, Reproduction, exact, figures, largest, smallest};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "comet",
    title: "COMET: a step by plan, memory and links",
    source: "Kadiyala et al., arXiv 2211.16648: 7.7 times between configurations and 1.4 by memory, by its abstract",
    setup: "Closed form. A model of GPT-3's shape on 1,024 GPUs of 312 TFLOPS and 2 TB/s, tensor parallel over 1 to 128, 300 GB/s \
            within 8 GPUs and 50 beyond, 16 bytes of state a parameter, 2,048 sequences. None of computing and sending overlaps. \
            All assumed",
    run,
};

/// Layers, width, tokens of a sequence, sequences.
const MODEL: [f64; 4] = [96.0, 12_288.0, 2048.0, 2048.0];
const NUM_GPUS: f64 = 1024.0;
/// Operations and bytes a second.
const PEAK: f64 = 312e12;
const MEMORY: f64 = 2e12;
/// Links within a node and beyond, bytes a second, and GPUs of a node.
const LINKS: [f64; 2] = [300e9, 50e9];
const NODE: f64 = 8.0;

/// An all-reduce of so many bytes in a ring, s.
fn all_reduce_s(bytes: f64, num: f64, bytes_per_s: f64) -> f64 {
    2.0 * (num - 1.0) / num * bytes / bytes_per_s
}

/// A step with layers over so many GPUs, s.
fn step_s(tensor: f64, [inside, beyond]: [f64; 2]) -> f64 {
    let [layers, width, length, sequences] = MODEL;
    let copies = NUM_GPUS / tensor;
    let tokens = length * sequences / copies;
    let weights = 12.0 * width * width / tensor;
    // Forward and backward; weights and activations are read in each of the three products.
    let compute_s = 6.0 * tokens * weights / PEAK;
    let read_s = 3.0 * 2.0 * (weights + 2.0 * tokens * width) / MEMORY;
    let link = if tensor <= NODE { inside } else { beyond };
    let reduced_s = 4.0 * all_reduce_s(2.0 * tokens * width, tensor, link);
    layers * (compute_s.max(read_s) + reduced_s + all_reduce_s(2.0 * weights, copies, beyond))
}

/// Steps of the plans whose state fits in so many GB, s.
fn steps_s(memory_gb: f64) -> Vec<f64> {
    let [layers, width, ..] = MODEL;
    let state_gb = 16.0 * 12.0 * width * width * layers / 1e9;
    let tensors = (0..8).map(|power| f64::from(1_u32 << power));
    let fit = tensors.filter(|tensor| state_gb / tensor <= memory_gb);
    fit.map(|tensor| step_s(tensor, LINKS)).collect()
}

fn run(_: &Effort) -> Result<Reproduction, Error> {
    let best = |memory_gb| smallest(steps_s(memory_gb));
    let slowest_s = largest(steps_s(f64::INFINITY));
    let found = vec![
        exact(
            "slowest over fastest of eight plans",
            slowest_s / best(f64::INFINITY),
        ),
        exact(
            "best step with 80 GB over that with 160",
            best(80.0) / best(160.0),
        ),
    ];
    figures(
        found,
        "Both published numbers are spreads between configurations, not gains of a scheduler, and of clusters and models that are not at \
         hand.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_all_reduce_is_as_worked_by_hand_and_memory_forbids_narrow_plans() {
        assert!((all_reduce_s(10e9, 4.0, 50e9) - 0.3).abs() < 1e-12);
        // 174 billion parameters, 2,783 GB of state: 64 GPUs of 80 GB hold it.
        assert_eq!([80.0, 160.0, 1e9].map(|gb| steps_s(gb).len()), [2, 3, 8]);
        // Without links a step is 6 x parameters x tokens over all GPUs.
        let [layers, width, length, sequences] = MODEL;
        let plain_s = 72.0 * width * width * layers * length * sequences / (NUM_GPUS * PEAK);
        assert!((step_s(64.0, [f64::INFINITY; 2]) / plain_s - 1.0).abs() < 1e-12);
    }
}
