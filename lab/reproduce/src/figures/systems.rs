//! Small systems of the field, each in its smallest form: an example that can be worked by hand, and what drawn inputs make of it.
//!
//! A row is a *closed form* or *our model*: neither shows that a published figure holds, so all figures here are for the record.

mod autohete;
mod batching;
mod coding;
mod comet;
mod deeppool;
mod edge;
mod fusion;
mod salient;
mod split;
mod stream;
mod system;

use super::Benchmark;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    autohete::SYSTEM,
    batching::SYSTEM,
    coding::SYSTEM,
    comet::SYSTEM,
    deeppool::SYSTEM,
    edge::SYSTEM,
    fusion::SYSTEM,
    salient::SYSTEM,
    split::SYSTEM,
    stream::SYSTEM,
];

#[cfg(test)]
mod tests {
    use pleach_experiments::progress::Watcher;

    use super::*;
    use crate::figures::Effort;

    #[test]
    fn no_row_of_these_claims_that_a_published_figure_holds() {
        let effort = Effort {
            seed: 1,
            num_seeds: Some(2),
            smoke: false,
            data: None,
            watcher: Watcher::silent(),
        };
        for system in BENCHMARKS {
            let of = ["Closed form", "Our model"];
            assert!(of.iter().any(|of| system.setup.starts_with(of)), "{}", system.id);
            let done = (system.run)(&effort).unwrap();
            assert!(done.figures.iter().all(|figure| figure.holds.is_none()));
            let words: usize = [system.title, system.source, system.setup, &done.findings[0]]
                .iter()
                .map(|text| text.split_whitespace().count())
                .sum();
            assert!(words <= 150, "{}: {words} words", system.id);
        }
    }
}
