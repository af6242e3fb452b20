//! FusionLLM: a pipeline over slow links, of which the slowest send less.

use super::system::{Benchmark, Effort, Error, Reproduction, exact, figures, largest, smallest};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "fusionllm",
    title: "FusionLLM: a pipeline with compression by link",
    source: "Tang et al., arXiv 2410.12707: 1.45 to 9.39 times as fast as its baselines",
    setup: "Closed form. A step is the longest stage or transfer; the largest entries alone cost twice their share, for their indices; \
            a link's share grows as it is faster than the slowest. 0.1 s a stage, 1 MB, links of 8 and 1,000 Mb/s, a tenth kept",
    run,
};

/// Of a stage, s, and what each sends, bits.
const STAGE_S: f64 = 0.1;
const BITS: f64 = 8e6;

/// Time of a transfer of the largest entries, s.
fn transfer_s(share: f64, bits_per_s: f64) -> f64 {
    BITS * (2.0 * share).min(1.0) / bits_per_s
}

/// Shares by link: the given one on the slowest, more as links are faster, all where that costs no more.
fn adaptive(share: f64, links: &[f64]) -> Vec<f64> {
    let slowest = smallest(links.iter().copied());
    links
        .iter()
        .map(|rate| (share * rate / slowest).min(1.0))
        .collect()
}

fn step_s(shares: &[f64], links: &[f64]) -> f64 {
    let transfers = shares.iter().zip(links);
    STAGE_S.max(largest(transfers.map(|(share, rate)| transfer_s(*share, *rate))))
}

const LINKS: [f64; 2] = [8e6, 1e9];

fn run(_: &Effort) -> Result<Reproduction, Error> {
    let [exact_s, adaptive_s] = [vec![1.0; 2], adaptive(0.1, &LINKS)].map(|shares| step_s(&shares, &LINKS));
    figures(
        vec![exact("exact over adaptive step", exact_s / adaptive_s)],
        "What a step gains is at most half the inverse of the share that is kept, so it is a choice; what that costs in convergence is \
         not modelled.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_over_a_slow_and_a_fast_link_is_as_worked_by_hand() {
        let links = LINKS;
        let shares = adaptive(0.1, &links);
        assert_eq!(shares, [0.1, 1.0], "the fast link stays exact");
        assert!((step_s(&[1.0, 1.0], &links) - 1.0).abs() < 1e-12);
        assert!((step_s(&shares, &links) - 0.2).abs() < 1e-12);
    }
}
