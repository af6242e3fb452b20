//! Sharing that can hurt: which jobs are refused a GPU that another has, and how far measured pairs scatter around the rule.
//!
//! Not here: gangs of several GPUs beside others, of which no measurement is published; they are refused.

use crate::settings;
use crate::settings::Above;

use crate::portable_math::{cos, exp, ln};

settings! {
    /// Rules for clusters that take sharing as it was measured. Without, jobs share wherever their memory is not known to be too large.
    ///
    /// # Source
    /// Lucid (ASPLOS'23), 1,388 pairs on RTX 3090: the memory of a pair over the sum of both alone has its 5 to 95 % quantiles at
    /// 0.85 and 1.17, hence 0.85; a `kappa` of 0.35, and of 0.5 where both utilisations add up to more than 1.5, halves the bias on
    /// heavy pairs (root mean square error 0.085); around it pairs scatter by 6 % where they are light and by 12 % where they are
    /// heavy. Half a GiB for each process is what a CUDA context takes (*assumed*).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SharingGuard: default MEASURED {
        /// Part of a GPU's memory that residents may fill together, (0, 1].
        pub memory_part: f64, in Above(0.0, 1.0);
        /// Memory of a process beside what its job needs, GiB, 0 to 1e6.
        pub process_gib: f64, in 0.0..=1e6;
        /// Utilisation from which on two jobs are not put together, (0, 1]; both must reach it.
        pub busy: f64, in Above(0.0, 1.0);
        /// `kappa` where both utilisations add up to more than `heavy`, [0, 10].
        pub kappa_heavy: f64, in 0.0..=10.0;
        /// Sum of two utilisations above which a pair is heavy, [0, 2].
        pub heavy: f64, in 0.0..=2.0;
        /// Standard deviation of the logarithm of speeds around the rule for light pairs, [0, 1].
        pub scatter: f64, in 0.0..=1.0;
        /// The same for heavy pairs, [0, 1].
        pub scatter_heavy: f64, in 0.0..=1.0;
    }
}

impl SharingGuard {
    /// As measured.
    pub const MEASURED: SharingGuard = SharingGuard {
        memory_part: 0.85,
        process_gib: 0.5,
        busy: 0.8,
        kappa_heavy: 0.5,
        heavy: 1.5,
        scatter: 0.06,
        scatter_heavy: 0.12,
    };

    /// Whether a pair is heavy.
    pub(super) fn is_heavy(&self, one: f64, other: f64) -> bool {
        one + other > self.heavy
    }

    /// Whether these jobs are kept apart for how busy they are.
    pub(super) fn are_too_busy(&self, utilisations: impl Iterator<Item = f64>) -> bool {
        utilisations
            .filter(|utilisation| *utilisation >= self.busy)
            .count()
            > 1
    }

    /// By how much a class is faster or slower beside another than the rule says: log-normal, so many standard deviations from it.
    pub(super) fn scatter_of(&self, deviation: f64, is_heavy: bool) -> f64 {
        let sigma = if is_heavy {
            self.scatter_heavy
        } else {
            self.scatter
        };
        exp(sigma * deviation)
    }
}

/// A number for an ordered pair of names, the same on every machine.
///
/// # Source
/// FNV-1a with 64 bits, and the finisher of SplitMix64 after it.
pub(super) fn pair_number(victim: &str, neighbour: &str) -> u64 {
    let bytes = victim.bytes().chain([0]).chain(neighbour.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed(hash)
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The standard normal number of 64 bits (Box and Muller).
pub(super) fn normal(bits: u64) -> f64 {
    let part = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let other = mixed(bits.wrapping_add(0x9e37_79b9_7f4a_7c15));
    (-2.0 * ln(part(bits))).sqrt() * cos(std::f64::consts::TAU * part(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings as _;

    #[test]
    fn pairs_scatter_as_much_as_said_and_always_alike() {
        let guard = SharingGuard::MEASURED;
        let names: Vec<String> = (0..100).map(|number| format!("class {number}")).collect();
        for (is_heavy, sigma) in [(false, 0.06), (true, 0.12)] {
            let pairs = names
                .iter()
                .flat_map(|one| names.iter().map(move |other| (one, other)));
            let logs =
                pairs.map(|(one, other)| ln(guard.scatter_of(normal(pair_number(one, other)), is_heavy)));
            let logs: Vec<f64> = logs.collect();
            let mean = logs.iter().sum::<f64>() / 1e4;
            let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 1e4;
            // 10,000 draws: a standard error of 1 % of sigma, and of 0.7 % for the deviation.
            assert!(mean.abs() < 0.04 * sigma, "{mean}");
            assert!((variance.sqrt() / sigma - 1.0).abs() < 0.03, "{variance}");
        }
        assert_ne!(pair_number("a", "b"), pair_number("b", "a"));
        assert_eq!(pair_number("a", "b"), pair_number("a", "b"));
    }

    #[test]
    fn a_constant_out_of_its_range_is_refused_by_its_key() {
        for (text, key) in [
            (r#"{"memory_part": 0.0}"#, "memory_part"),
            (r#"{"busy": 1.5}"#, "busy"),
            (r#"{"scatter_heavy": -0.1}"#, "scatter_heavy"),
        ] {
            let guard: SharingGuard = serde_json::from_str(text).unwrap();
            let error = guard.check_at("interference.guard", "").unwrap_err().to_string();
            assert!(error.contains(&format!("interference.guard.{key}")), "{error}");
        }
    }
}
