//! What a function takes: configurations (batch, cores, slices of a GPU) with their latency and cost.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::Problem;

/// Price of a core and of a slice (a seventh of an A100), $/h.
///
/// # Source
/// ESG (HPDC'24) as remembered, not checked again; only their ratio of 1 to 20 matters.
const CORE_USD_PER_H: f64 = 0.034;
const SLICE_USD_PER_H: f64 = 0.67;
const US_PER_H: f64 = 3.6e9;
/// Configurations of a function at most.
const CONFIGURATIONS_MAX: usize = 4096;
/// Largest batch.
pub(crate) const BATCH_MAX: u16 = 64;
/// Latencies, us: up to an hour.
const LATENCY_MAX_US: u64 = 3_600_000_000;
/// By how much a latency may fall with a larger batch before it is refused: measurements do so by up to 2 %. *Assumed.*
const NOISE: f64 = 0.05;

/// How a batch runs, and how long that takes by profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Requests at most, 1 to 64.
    pub batch: u16,
    /// Cores that it holds.
    pub cores: u16,
    /// Slices that it holds; 0: it runs on cores alone.
    pub slices: u16,
    /// Latency of a full batch, us.
    pub latency_us: u64,
}

impl Configuration {
    /// What cores and slices cost while it runs, $/us.
    #[must_use]
    pub fn usd_per_us(&self) -> f64 {
        (f64::from(self.cores) * CORE_USD_PER_H + f64::from(self.slices) * SLICE_USD_PER_H) / US_PER_H
    }

    /// Cost of a request of a full batch, $.
    #[must_use]
    pub fn usd(&self) -> f64 {
        self.latency_us as f64 * self.usd_per_us() / f64::from(self.batch)
    }

    /// Whether another needs no more of anything and is better somewhere.
    fn is_beaten_by(&self, other: &Configuration) -> bool {
        let no_worse = other.batch <= self.batch
            && other.cores <= self.cores
            && other.slices <= self.slices
            && other.latency_us <= self.latency_us
            && other.usd() <= self.usd();
        no_worse && other != self
    }
}

/// A function with its measured or assumed profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    name: String,
    cold_start_us: u64,
    configurations: Vec<Configuration>,
    pareto: Vec<Configuration>,
}

impl Function {
    /// Checks a profile. A shape is a number of cores and of slices; each has latencies of consecutive batches among
    /// those of the function, and a partial batch takes the time of the next larger one.
    ///
    /// # Errors
    /// A number out of range, a configuration that stands there twice, a hole, a latency that falls with more work: by name.
    pub fn new(
        name: &str,
        cold_start_us: u64,
        mut configurations: Vec<Configuration>,
    ) -> Result<Function, Problem> {
        check(name, &configurations)?;
        configurations.sort_by_key(|k| (k.latency_us, k.slices, k.cores, k.batch));
        let beaten = |k: &Configuration| configurations.iter().any(|other| k.is_beaten_by(other));
        let pareto = configurations.iter().filter(|k| !beaten(k)).copied().collect();
        Ok(Function {
            name: name.into(),
            cold_start_us,
            configurations,
            pareto,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Time until a container answers that was not there, us.
    #[must_use]
    pub fn cold_start_us(&self) -> u64 {
        self.cold_start_us
    }

    /// All, fastest first.
    #[must_use]
    pub fn configurations(&self) -> &[Configuration] {
        &self.configurations
    }

    /// Those that no other beats in batch, cores, slices, latency and cost together, fastest first.
    #[must_use]
    pub fn pareto(&self) -> &[Configuration] {
        &self.pareto
    }

    /// The fastest for one request.
    #[must_use]
    pub fn fastest(&self) -> Configuration {
        let single = self.configurations.iter().find(|k| k.batch == 1);
        *single.expect("a checked function has one")
    }

    /// Latency of one request on the smallest shape with a slice, us. Targets are set by it.
    #[must_use]
    pub fn reference_us(&self) -> u64 {
        let single = self.configurations.iter().filter(|k| k.batch == 1);
        let smallest = single.min_by_key(|k| (k.slices == 0, k.slices, k.cores));
        smallest.expect("a checked function has one").latency_us
    }

    /// Latency of so many requests in a configuration of it: that of the next larger batch on the same shape, us.
    #[must_use]
    pub fn latency_us(&self, k: &Configuration, num: usize) -> u64 {
        if num >= usize::from(k.batch) {
            return k.latency_us;
        }
        let same = self.configurations.iter().filter(|other| {
            other.cores == k.cores && other.slices == k.slices && usize::from(other.batch) >= num
        });
        same.min_by_key(|other| other.batch)
            .map_or(k.latency_us, |other| other.latency_us)
    }
}

fn check(name: &str, configurations: &[Configuration]) -> Result<(), Problem> {
    let key = format!("functions.{name}");
    let refused = |what: String, allowed: &str| Err(Problem::new(&key, what, allowed, "Mend the profile."));
    if configurations.is_empty() || configurations.len() > CONFIGURATIONS_MAX {
        let what = format!("{} configurations", configurations.len());
        return refused(what, "1 to 4096");
    }
    let mut shapes: BTreeMap<(u16, u16), BTreeMap<u16, u64>> = BTreeMap::new();
    for k in configurations {
        let words = format!("batch {}, {} cores, {} slices", k.batch, k.cores, k.slices);
        if !(1..=BATCH_MAX).contains(&k.batch) || k.cores == 0 {
            return refused(words, "batches of 1 to 64, at least one core");
        }
        if !(1..=LATENCY_MAX_US).contains(&k.latency_us) {
            return refused(
                format!("{words}: {} us", k.latency_us),
                "latencies of 1 us to an hour",
            );
        }
        let batches = shapes.entry((k.cores, k.slices)).or_default();
        if batches.insert(k.batch, k.latency_us).is_some() {
            return refused(format!("{words}, twice"), "each configuration once");
        }
    }
    let sizes: BTreeSet<u16> = configurations.iter().map(|k| k.batch).collect();
    if !sizes.contains(&1) {
        return refused("no configuration of batch 1".into(), "one at least");
    }
    for ((cores, slices), batches) in &shapes {
        let (first, last) = (batches.keys().min(), batches.keys().max());
        let (Some(&first), Some(&last)) = (first, last) else {
            continue;
        };
        if let Some(hole) = sizes.range(first..=last).find(|size| !batches.contains_key(size)) {
            let what = format!("{cores} cores, {slices} slices: no latency of batch {hole}");
            return refused(what, "every batch between a shape's first and last");
        }
        for ((_, less_us), (batch, more_us)) in batches.iter().zip(batches.iter().skip(1)) {
            if (*more_us as f64) < *less_us as f64 * (1.0 - NOISE) {
                let what = format!(
                    "{cores} cores, {slices} slices: batch {batch} takes {more_us} us, a smaller one {less_us} us"
                );
                return refused(
                    what,
                    "latencies that do not fall with more work, but for 5 % of noise",
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn k(batch: u16, cores: u16, slices: u16, latency_us: u64) -> Configuration {
        Configuration {
            batch,
            cores,
            slices,
            latency_us,
        }
    }

    #[test]
    fn holes_falls_and_doubles_are_refused_by_name() {
        for (configurations, part) in [
            (vec![], "0 configurations"),
            (vec![k(2, 1, 1, 10)], "no configuration of batch 1"),
            (
                vec![k(1, 1, 1, 10), k(1, 1, 1, 11)],
                "batch 1, 1 cores, 1 slices, twice",
            ),
            (
                vec![k(1, 1, 1, 10), k(2, 2, 1, 10), k(4, 1, 1, 20)],
                "1 cores, 1 slices: no latency of batch 2",
            ),
            (
                vec![k(1, 1, 1, 100), k(2, 1, 1, 94)],
                "batch 2 takes 94 us, a smaller one 100 us",
            ),
            (vec![k(1, 1, 1, 0)], "batch 1, 1 cores, 1 slices: 0 us"),
        ] {
            let said = Function::new("blur", 1, configurations).unwrap_err().to_string();
            assert!(said.contains("functions.blur") && said.contains(part), "{said}");
        }
        assert!(Function::new("blur", 1, vec![k(1, 1, 1, 100), k(2, 1, 1, 96)]).is_ok());
    }

    #[test]
    fn the_front_keeps_what_nothing_beats_and_partial_batches_take_the_next_larger_one() {
        // Twice the cores for nothing; twice the slices for a quarter of the time.
        let all = vec![
            k(1, 1, 1, 100),
            k(1, 2, 1, 100),
            k(1, 1, 2, 25),
            k(2, 1, 1, 150),
            k(4, 1, 1, 260),
        ];
        let function = Function::new("blur", 1, all.clone()).unwrap();
        assert_eq!(function.pareto(), [all[2], all[0], all[3], all[4]]);
        assert_eq!(function.fastest(), all[2]);
        assert_eq!(function.reference_us(), 100);
        assert_eq!(
            [1, 2, 3, 4].map(|num| function.latency_us(&all[4], num)),
            [100, 150, 260, 260]
        );
        // 260 us of a core and a slice for four requests.
        let usd = 260.0 * (0.034 + 0.67) / 3.6e9 / 4.0;
        assert!((all[4].usd() - usd).abs() < 1e-18);
    }
}
