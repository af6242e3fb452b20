//! What moving a job costs: seconds without progress when it starts, stops, comes back or is moved, and when a GPU is
//! cut anew.
//!
//! Published simulators charge very different costs, and half of a preemptive policy's gain can hang on them, so every
//! preset of the literature is here by name and results should be reported under zero and under one that is not.
//!
//! # What is charged when
//! | change | seconds |
//! |---|---|
//! | first start | `start` |
//! | preempted | `checkpoint` |
//! | started again | `restore` |
//! | moved in one step | `checkpoint` + `restore` (a migration is nothing else) |
//! | MIG instances changed | `repartition`, and the touched slices must be idle |
//!
//! # Source
//! Pollux (OSDI'21), Sia (SOSP'23), Shockwave (NSDI'23) and their released simulators; CheckFreq for the analytic form.

use crate::settings;
use crate::settings::Settings as _;
use serde::{Deserialize, Serialize};

use super::storage::Storage;
use crate::problem::Problem;

/// How long moving a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "model", deny_unknown_fields)]
pub enum Overheads {
    /// The same seconds for every job.
    Fixed(Fixed),
    /// From the size of the job's state and the bandwidth to storage.
    ByStateSize(ByStateSize),
    /// Checkpoint and restore together drawn from [`TACC_QUANTILES`].
    TaccEmpirical,
    /// Checkpoint and restore together by kind of model, [`SIA_SECONDS`].
    SiaModel,
    /// Stage by stage: container, start, connections of the gang, warm-up of the class, and its state from the site's store.
    ByClass,
}

settings! {
    /// The same seconds for every job.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Fixed: required {
        /// First start, s.
        pub start_s: f64, in 0.0..=86_400.0;
        /// Saving when preempted, s.
        pub checkpoint_s: f64, in 0.0..=86_400.0;
        /// Loading when started again, s.
        pub restore_s: f64, in 0.0..=86_400.0;
    }
}

settings! {
    /// Seconds from the size of the state.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ByStateSize: required {
        /// Bandwidth to and from the checkpoint store, GB/s.
        pub storage_gb_per_s: f64, in 1e-9..=1e9;
        /// Framework and device initialisation, s.
        pub init_s: f64, in 0.0..=86_400.0;
        /// Part of the saving during which training stands still, 0 (fully overlapped) to 1.
        pub stall: f64, in 0.0..=1.0;
    }
}

/// What a job looks like to the overhead model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    /// Bytes of weights and optimiser state: 12 to 16 per parameter under Adam in mixed precision.
    pub state_bytes: f64,
    /// Index into [`SIA_SECONDS`]; out of range = the entry `other`.
    pub kind: u8,
    /// GPUs of its gang, 1 or more.
    pub num_gpus: u32,
    /// Data pipeline, compilation and first steps, s.
    pub warm_up_s: f64,
    /// Whether a first start reads the state too: of a model that is only used.
    pub reads_first: bool,
    /// Where its state lies.
    pub storage: Storage,
}

/// Quantiles (part, s) of checkpoint plus restore measured on a 32-GPU testbed: half within 6.5 s, 90 % within 31 s, all
/// within 60 s; linear between them. The lower end (2 s) is assumed.
///
/// # Source
/// Shockwave's released simulator, comments: p50 6 to 7 s, p90 31 s, maximum 60 s.
pub const TACC_QUANTILES: [(f64, f64); 4] = [(0.0, 2.0), (0.5, 6.5), (0.9, 31.0), (1.0, 60.0)];

/// (kind, seconds of checkpoint plus restore). # Source: Sia (SOSP'23), constants of the released simulator, measured
/// per model (the paper: 25 to 250 s).
pub const SIA_SECONDS: [(&str, f64); 7] = [
    ("cifar10", 50.0),
    ("deepspeech2", 25.0),
    ("bert", 120.0),
    ("yolov3", 80.0),
    ("imagenet", 250.0),
    ("ncf", 15.0),
    ("other", 30.0),
];

/// Part of checkpoint plus restore that is the checkpoint where only the sum was measured. Assumed: loading also starts
/// the framework.
const CHECKPOINT_PART: f64 = 0.25;

/// From a placement to imports that are done, s: 20 for a warm container, 12 for the interpreter and the devices. *Ours*.
const CONTAINER_S: f64 = 32.0;

/// Seconds until the processes of a gang are connected.
///
/// # Source
/// 265 s at 96,000 GPUs (FT-HSDP, arXiv 2602.00277), from 2 s on; linear between is assumed. Stacks of 2023 took 0.5 s a GPU.
fn connect_s(num_gpus: u32) -> f64 {
    2.0 + 0.0027 * f64::from(num_gpus)
}

/// Names of the presets.
const NAMES: [&str; 7] = [
    "zero",
    "pollux30",
    "shockwave20",
    "by-state-size",
    "tacc-empirical",
    "sia-model",
    "by-class",
];

impl Overheads {
    /// No cost at all, as in the simulators of Gavel, Synergy and Tiresias.
    pub const ZERO: Overheads = Overheads::each(0.0);
    /// 30 s for any change of allocation, the first start included; Pollux's simulator.
    pub const POLLUX_30: Overheads = Overheads::each(30.0);
    /// 20 s whenever a job did not run in the previous round, the first start included; Shockwave's simulator.
    pub(crate) const SHOCKWAVE_20: Overheads = Overheads::each(20.0);
    /// 1 GB/s to a shared store, 10 s to initialise (quoted 5 to 20 s), saving not overlapped. Assumed.
    pub const BY_STATE_SIZE: Overheads = Overheads::ByStateSize(ByStateSize {
        storage_gb_per_s: 1.0,
        init_s: 10.0,
        stall: 1.0,
    });

    /// The same for every start, the first one included, s.
    #[must_use]
    pub const fn each(start_s: f64) -> Overheads {
        Overheads::Fixed(Fixed {
            start_s,
            checkpoint_s: 0.0,
            restore_s: start_s,
        })
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Overheads, Problem> {
        match name {
            "zero" => Ok(Overheads::ZERO),
            "pollux30" => Ok(Overheads::POLLUX_30),
            "shockwave20" => Ok(Overheads::SHOCKWAVE_20),
            "by-state-size" => Ok(Overheads::BY_STATE_SIZE),
            "tacc-empirical" => Ok(Overheads::TaccEmpirical),
            "sia-model" => Ok(Overheads::SiaModel),
            "by-class" => Ok(Overheads::ByClass),
            _ => Err(Problem::new(
                "overheads",
                name,
                NAMES.join(", "),
                "zero matches most published simulators; pollux30 is the usual other",
            )),
        }
    }

    /// Seconds from the first start to progress.
    #[must_use]
    pub fn start_s(&self, job: Moved) -> f64 {
        match self {
            Overheads::Fixed(fixed) => fixed.start_s,
            Overheads::ByStateSize(by) => by.init_s,
            // Nothing is loaded yet, but the framework starts; only the sum with the checkpoint was measured.
            Overheads::TaccEmpirical => TACC_QUANTILES[0].1,
            Overheads::SiaModel => sia_s(job) * (1.0 - CHECKPOINT_PART),
            Overheads::ByClass if job.reads_first => by_class_s(job),
            Overheads::ByClass => CONTAINER_S + connect_s(job.num_gpus) + job.warm_up_s,
        }
    }

    /// Seconds that a preempted job holds its GPUs without progress. `draw` is any 64 random bits, the same for the
    /// checkpoint and the restore of one preemption; only `tacc-empirical` looks at it.
    #[must_use]
    pub(crate) fn checkpoint_s(&self, job: Moved, draw: u64) -> f64 {
        match self {
            Overheads::Fixed(fixed) => fixed.checkpoint_s,
            Overheads::ByStateSize(by) => by.transfer_s(job) * by.stall,
            Overheads::TaccEmpirical => tacc_s(draw) * CHECKPOINT_PART,
            Overheads::SiaModel => sia_s(job) * CHECKPOINT_PART,
            Overheads::ByClass => 0.0,
        }
    }

    /// Seconds from a later start to progress; `draw` as in [`Overheads::checkpoint_s`].
    #[must_use]
    pub(crate) fn restore_s(&self, job: Moved, draw: u64) -> f64 {
        match self {
            Overheads::Fixed(fixed) => fixed.restore_s,
            Overheads::ByStateSize(by) => by.transfer_s(job) + by.init_s,
            Overheads::TaccEmpirical => tacc_s(draw) * (1.0 - CHECKPOINT_PART),
            Overheads::SiaModel => sia_s(job) * (1.0 - CHECKPOINT_PART),
            Overheads::ByClass => by_class_s(job),
        }
    }

    /// Seconds without progress when a running job is moved.
    #[must_use]
    pub fn migration_s(&self, job: Moved, draw: u64) -> f64 {
        self.checkpoint_s(job, draw) + self.restore_s(job, draw)
    }

    /// Checks the numbers of a model.
    ///
    /// # Errors
    /// The first one out of range.
    pub fn validate(&self) -> Result<(), Problem> {
        let hint = format!("or name a preset: {}", NAMES.join(", "));
        match self {
            Overheads::Fixed(fixed) => fixed.check_at("overheads", &hint),
            Overheads::ByStateSize(by) => by.check_at("overheads", &hint),
            Overheads::TaccEmpirical | Overheads::SiaModel | Overheads::ByClass => Ok(()),
        }
    }
}

impl ByStateSize {
    fn transfer_s(&self, job: Moved) -> f64 {
        job.state_bytes / (self.storage_gb_per_s * 1e9)
    }
}

/// A restart stage by stage, where no other job loads.
fn by_class_s(job: Moved) -> f64 {
    let load_s = job.storage.load_s(job.state_bytes / 1e9, job.num_gpus, 1);
    CONTAINER_S + connect_s(job.num_gpus) + job.warm_up_s + load_s
}

fn sia_s(job: Moved) -> f64 {
    let other = SIA_SECONDS.len() - 1;
    SIA_SECONDS[usize::from(job.kind).min(other)].1
}

/// The quantile of 64 random bits.
fn tacc_s(draw: u64) -> f64 {
    // 53 bits, so that every value below 1 is exact.
    let part = (draw >> 11) as f64 / (1_u64 << 53) as f64;
    for pair in TACC_QUANTILES.windows(2) {
        let ((low, from), (high, to)) = (pair[0], pair[1]);
        if part < high {
            return from + (to - from) * (part - low) / (high - low);
        }
    }
    TACC_QUANTILES[TACC_QUANTILES.len() - 1].1
}

/// The index of a kind in [`SIA_SECONDS`]; `other` where it is not known.
#[must_use]
pub(crate) fn sia_kind(name: &str) -> u8 {
    let found = SIA_SECONDS
        .iter()
        .position(|(kind, _)| name.eq_ignore_ascii_case(kind));
    found.unwrap_or(SIA_SECONDS.len() - 1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const BERT: Moved = Moved {
        // 110 M parameters x 16 bytes.
        state_bytes: 1.76e9,
        kind: 2,
        num_gpus: 4,
        warm_up_s: 30.0,
        reads_first: false,
        storage: Storage::SHARED,
    };

    #[test]
    fn every_preset_has_a_name_and_the_cost_that_its_name_says() {
        for (name, seconds) in [
            ("zero", 0.0),
            ("pollux30", 30.0),
            ("shockwave20", 20.0),
            // 1.76 s out, 1.76 s in, 10 s to initialise.
            ("by-state-size", 13.52),
            ("sia-model", 120.0),
            // 32 s, 2.0108 s for 4 GPUs, 30 s, and 3 + 1.76 / 2 s at 0.5 GB/s a GPU.
            ("by-class", 67.8908),
        ] {
            let overheads = Overheads::from_name(name).unwrap();
            overheads.validate().unwrap();
            let moved = overheads.migration_s(BERT, 17);
            assert!((moved - seconds).abs() < 1e-9, "{name}: {moved}");
        }
        assert_eq!(NAMES.len(), 7);
        assert!(NAMES.iter().all(|name| Overheads::from_name(name).is_ok()));
        let text = Overheads::from_name("pollux").unwrap_err().to_string();
        assert!(text.contains("pollux30") && text.contains("zero"), "{text}");
    }

    #[test]
    fn the_measured_distribution_has_the_published_quantiles() {
        // Draws evenly over the 64-bit range, as a uniform generator's are.
        let count = 10_000_u64;
        let mut seconds: Vec<f64> = (0..count)
            .map(|index| Overheads::TaccEmpirical.migration_s(BERT, index * (u64::MAX / count)))
            .collect();
        assert!(
            seconds.windows(2).all(|pair| pair[0] <= pair[1]),
            "more bits, more seconds"
        );
        seconds.sort_by(f64::total_cmp);
        assert!((6.0..=7.0).contains(&seconds[5_000]), "{}", seconds[5_000]);
        assert!((seconds[9_000] - 31.0).abs() < 0.1);
        assert!(seconds[9_999] <= 60.0 && seconds[9_999] > 59.9);
        // Published mean of the 101 samples: 10.8 s; straight lines between three quantiles say 14.2.
        let mean = seconds.iter().sum::<f64>() / count as f64;
        assert!((mean - 14.2).abs() < 0.1, "{mean}");
        assert_eq!(
            Overheads::TaccEmpirical.migration_s(BERT, u64::MAX),
            tacc_s(u64::MAX)
        );
    }

    #[test]
    fn sias_kinds_are_found_by_name_and_strangers_are_other() {
        assert_eq!(sia_kind("BERT"), 2);
        let stranger = Moved {
            kind: sia_kind("vgg"),
            ..BERT
        };
        assert_eq!(Overheads::SiaModel.migration_s(stranger, 0), 30.0);
        let beyond = Moved { kind: 200, ..BERT };
        assert_eq!(Overheads::SiaModel.migration_s(beyond, 0), 30.0);
    }

    #[test]
    fn an_overlapped_checkpoint_stalls_less() {
        let Overheads::ByStateSize(by) = Overheads::BY_STATE_SIZE else {
            unreachable!()
        };
        // CheckFreq keeps stalls within 5 %.
        let overlapped = Overheads::ByStateSize(ByStateSize { stall: 0.05, ..by });
        assert!((overlapped.checkpoint_s(BERT, 0) - 0.088).abs() < 1e-12);
        assert_eq!(
            overlapped.restore_s(BERT, 0),
            Overheads::BY_STATE_SIZE.restore_s(BERT, 0)
        );
    }

    #[test]
    fn a_start_by_class_has_the_published_order_of_seconds_from_a_vision_model_to_hundreds_of_billions() {
        let restart_s = |state_bytes: f64, num_gpus: u32, warm_up_s: f64, read_gb_s: f64| {
            let storage = Storage {
                read_gb_s,
                ..Storage::SHARED
            };
            let job = Moved {
                state_bytes,
                num_gpus,
                warm_up_s,
                storage,
                ..BERT
            };
            Overheads::ByClass.migration_s(job, 0)
        };
        // 11 M parameters of 8 bytes on one GPU, and 406 thousand million of 14 bytes on 8,192 at 50 and 5 GB/s.
        assert!((restart_s(9e7, 1, 2.0, 50.0) - 39.2).abs() < 0.1);
        assert!((restart_s(5.682e12, 8192, 150.0, 50.0) - 322.8).abs() < 0.1);
        assert!((restart_s(5.682e12, 8192, 150.0, 5.0) - 1345.5).abs() < 0.1);
        // A first start reads nothing, but that of a model which is only used.
        let first = |reads_first| Overheads::ByClass.start_s(Moved { reads_first, ..BERT });
        assert!((first(true) - first(false) - 3.88).abs() < 1e-9);
    }

    #[test]
    fn a_model_in_a_file_names_itself_and_bad_numbers_are_refused() {
        let text = r#"{"model":"fixed","start_s":5.0,"checkpoint_s":1.0,"restore_s":-1.0}"#;
        let overheads: Overheads = serde_json::from_str(text).unwrap();
        let error = overheads.validate().unwrap_err().to_string();
        assert!(
            error.contains("overheads.restore_s") && error.contains("pollux30"),
            "{error}"
        );
        let typo = r#"{"model":"fixed","start_s":5.0,"checkpoint_s":1.0,"restore_s":1.0,"stop_s":1.0}"#;
        assert!(serde_json::from_str::<Overheads>(typo).is_err());
        let named: Overheads = serde_json::from_str(r#"{"model":"sia-model"}"#).unwrap();
        assert_eq!(named, Overheads::SiaModel);
    }
}
