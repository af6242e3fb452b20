//! The site's checkpoint store: how long a model's state takes to be read and written, and how long its training stands still.
//!
//! ```text
//! load  = 3 + S / min(0.5 n, read / jobs that load)     save = 2 + S / min(0.25 n, write / jobs that save)
//! stall = save where the saver is naive, else 0.3 + S / n / 20
//! ```
//!
//! S is the state in GB, n the gang's GPUs; times in s, bandwidths in GB/s. A tuned saver copies the state to host memory and
//! writes it behind the training's back; a naive one lets the training wait, and gathers before it writes. Reading and writing do
//! not meet. Of jobs that write now and then the expected number counts: the sum of the parts of the time in which each does.
//!
//! Not here: metadata of many small files, and that a small gang leaves part of its share of the store to others.
//!
//! # Source
//! Published times of loads, saves and stalls from 7B to 1T parameters: ByteCheckpoint (arXiv 2407.20143), BLOOM's logbook, VAST
//! and Orbax as they report them. Tuned savers agree within a factor of 2, naive ones are 5 to 12 times slower; the forms and
//! constants are ours, fitted to these by hand.

use crate::settings;
use serde::{Deserialize, Serialize};

/// How checkpoints are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saver {
    /// To host memory, and from there while the training goes on.
    #[default]
    Tuned,
    /// Straight to the store; the training waits.
    Naive,
}

settings! {
    /// The store of a site.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Storage: default SHARED {
        /// What all jobs together can read, GB/s, 0.001 to 1e6.
        pub read_gb_s: f64, in 1e-3..=1e6;
        /// What all jobs together can write, GB/s, 0.001 to 1e6.
        pub write_gb_s: f64, in 1e-3..=1e6;
        /// How checkpoints are written.
        pub saver: Saver;
    }
}

/// Largest bandwidth that one GPU's process reads at, GB/s. *Ours*, as the file says.
const READ_PER_GPU_GB_S: f64 = 0.5;
/// Largest bandwidth that one GPU's process writes at, GB/s. *Ours*.
const WRITE_PER_GPU_GB_S: f64 = 0.25;
/// What a naive saver gets out of any store, GB/s. *Assumed*: published ones are at 2 to 10.
const NAIVE_GB_S: f64 = 5.0;
/// Bandwidth of a copy from a GPU to host memory beside a training, GB/s. *Ours*.
const TO_HOST_GB_S: f64 = 20.0;

impl Storage {
    /// A good shared store and a tuned saver.
    ///
    /// # Source
    /// VAST's survey of 40 production runs: median between 50 and 200 GB/s, so its lower end.
    pub const SHARED: Storage = Storage {
        read_gb_s: 50.0,
        write_gb_s: 50.0,
        saver: Saver::Tuned,
    };

    /// Seconds until a gang has read a state, while so many jobs load, this one included.
    #[must_use]
    pub fn load_s(&self, state_gb: f64, num_gpus: u32, num_loading: usize) -> f64 {
        let part = self.read_gb_s / num_loading.max(1) as f64;
        3.0 + state_gb / part.min(READ_PER_GPU_GB_S * f64::from(num_gpus))
    }

    /// Seconds until a gang's state is in the store, while so many jobs write, this one included; a part of a job is one that
    /// writes for that part of the time.
    #[must_use]
    pub fn save_s(&self, state_gb: f64, num_gpus: u32, num_writing: f64) -> f64 {
        let part = self.write_gb_s / num_writing.max(1.0);
        let write_gb_s = match self.saver {
            Saver::Tuned => part,
            Saver::Naive => part.min(NAIVE_GB_S),
        };
        2.0 + state_gb / write_gb_s.min(WRITE_PER_GPU_GB_S * f64::from(num_gpus))
    }

    /// Seconds for which a training stands still at a checkpoint, while so many jobs write, this one included.
    #[must_use]
    pub fn stall_s(&self, state_gb: f64, num_gpus: u32, num_writing: f64) -> f64 {
        match self.saver {
            Saver::Tuned => 0.3 + state_gb / f64::from(num_gpus) / TO_HOST_GB_S,
            Saver::Naive => self.save_s(state_gb, num_gpus, num_writing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings as _;

    #[test]
    fn loads_and_saves_are_within_a_factor_of_two_of_what_tuned_sites_published() {
        // 405B parameters on 8,960 GPUs: stall 0.59, save 51 at 110 GB/s, load 129.5 s at 44 GB/s (ByteCheckpoint).
        let site = Storage {
            read_gb_s: 44.0,
            write_gb_s: 110.0,
            saver: Saver::Tuned,
        };
        for (law_s, published_s) in [
            (site.stall_s(5682.0, 8960, 1.0), 0.59),
            (site.save_s(5682.0, 8960, 1.0), 51.0),
            (site.load_s(5682.0, 8960, 1), 129.5),
            // 2.3 TB on 384 GPUs (BLOOM): 40 s.
            (Storage::SHARED.save_s(2300.0, 384, 1.0), 40.0),
            // 800B parameters of 14 bytes (VAST): 216 s.
            (Storage::SHARED.save_s(11_200.0, 4096, 1.0), 216.0),
        ] {
            assert!(
                (0.5..=2.0).contains(&(law_s / published_s)),
                "{law_s} {published_s}"
            );
        }
    }

    #[test]
    fn a_store_is_divided_among_those_who_load_and_a_small_gang_is_its_own_limit() {
        let store = Storage::SHARED;
        // 100 GB on 200 GPUs: 50 GB/s alone, 12.5 of four; on 4 GPUs 2 GB/s, whether others load or not.
        assert_eq!(store.load_s(100.0, 200, 1), 3.0 + 2.0);
        assert_eq!(store.load_s(100.0, 200, 4), 3.0 + 8.0);
        assert_eq!(store.load_s(100.0, 4, 4), 3.0 + 50.0);
        assert_eq!(store.save_s(100.0, 400, 1.0), 2.0 + 2.0);
        assert_eq!(store.save_s(100.0, 400, 2.5), 2.0 + 5.0);
        assert_eq!(store.save_s(100.0, 4, 4.0), 2.0 + 100.0);
    }

    proptest::proptest! {
        #[test]
        fn nobody_is_faster_in_company(
            state_gb in 0.01_f64..1e4,
            num_gpus in 1_u32..10_000,
            others in (0.0_f64..50.0, 0.0_f64..50.0),
            gb_s in 1.0_f64..200.0,
            is_naive in proptest::prelude::any::<bool>(),
        ) {
            let saver = if is_naive { Saver::Naive } else { Saver::Tuned };
            let store = Storage { read_gb_s: gb_s, write_gb_s: gb_s, saver };
            let (few, many) = (1.0 + others.0, 1.0 + others.0 + others.1);
            proptest::prop_assert!(store.save_s(state_gb, num_gpus, few) <= store.save_s(state_gb, num_gpus, many));
            proptest::prop_assert!(store.stall_s(state_gb, num_gpus, few) <= store.stall_s(state_gb, num_gpus, many));
            let loads = |number: f64| store.load_s(state_gb, num_gpus, number as usize);
            proptest::prop_assert!(loads(few) <= loads(many));
        }
    }

    #[test]
    fn a_naive_saver_lets_the_training_wait_for_a_slow_write() {
        let naive = Storage {
            saver: Saver::Naive,
            ..Storage::SHARED
        };
        // 100 GB on 64 GPUs: 2 + 100 / 5 s, and all of it stands still; tuned 2 + 100 / 16 s, of which 0.3 + 100 / 64 / 20.
        assert_eq!(naive.stall_s(100.0, 64, 1.0), 22.0);
        assert_eq!(Storage::SHARED.save_s(100.0, 64, 1.0), 8.25);
        assert_eq!(Storage::SHARED.stall_s(100.0, 64, 1.0), 0.3 + 100.0 / 64.0 / 20.0);
    }

    #[test]
    fn a_bandwidth_out_of_its_range_is_refused_by_its_key() {
        for (text, key) in [
            (r#"{"read_gb_s": 0.0}"#, "storage.read_gb_s"),
            (r#"{"write_gb_s": -1.0}"#, "storage.write_gb_s"),
        ] {
            let store: Storage = serde_json::from_str(text).unwrap();
            let error = store.check_at("storage", "").unwrap_err().to_string();
            assert!(
                error.contains(key) && error.contains("0.001 to 1000000"),
                "{error}"
            );
        }
        assert!(serde_json::from_str::<Storage>(r#"{"saver": "fast"}"#).is_err());
    }
}
