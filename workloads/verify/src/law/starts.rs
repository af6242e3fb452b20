//! The least that a start and a restart cost, by docs/gpu-model.md, where nothing else gets in their way.

use super::goodput::power;
use crate::{Facts, Job};

/// Seconds of a restart by kind of model (Sia).
const SIA_S: [(&str, f64); 6] = [
    ("cifar10", 50.0),
    ("deepspeech2", 25.0),
    ("bert", 120.0),
    ("yolov3", 80.0),
    ("imagenet", 250.0),
    ("ncf", 15.0),
];
/// Of models that are none of these.
const SIA_OTHER_S: f64 = 30.0;
/// Bytes of a GiB, in GB.
const GIB_GB: f64 = 1.073_741_824;
/// Standard deviations that no draw lies below the median by: one in 10^12.
const DEVIATIONS: f64 = 7.0;

/// By what starts and restarts cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Starts {
    /// Seconds of a first start and of a restart, the same for all.
    Each {
        /// First start, s.
        start_s: f64,
        /// Restart, s.
        restart_s: f64,
    },
    /// State over a bandwidth, out and in.
    ByStateSize {
        /// GB/s.
        gb_per_s: f64,
        /// Framework, s.
        init_s: f64,
        /// Part of the saving for which the training stands still.
        stall: f64,
    },
    /// Drawn, 2 s at least.
    Drawn,
    /// By kind of model.
    BySiaModel,
    /// Stage by stage.
    ByClass,
}

impl Default for Starts {
    fn default() -> Starts {
        Starts::Each {
            start_s: 0.0,
            restart_s: 0.0,
        }
    }
}

impl Starts {
    /// The least that a first start and a restart of a job cost, s, where each is drawn with this standard deviation of its
    /// logarithm around the mean.
    pub(crate) fn least_s(&self, facts: &Facts, job: &Job, deviation: f64) -> (f64, f64) {
        let class = &facts.classes[job.class];
        let state_gb = class.state_gib * GIB_GB;
        let (start_s, restart_s) = match *self {
            Starts::Each { start_s, restart_s } => (start_s, restart_s),
            Starts::ByStateSize {
                gb_per_s,
                init_s,
                stall,
            } => (init_s, init_s + state_gb / gb_per_s * (1.0 + stall)),
            Starts::Drawn => (2.0, 2.0),
            Starts::BySiaModel => {
                let of = SIA_S
                    .iter()
                    .find(|(kind, _)| class.name.eq_ignore_ascii_case(kind));
                let restart_s = of.map_or(SIA_OTHER_S, |(_, seconds)| *seconds);
                (0.75 * restart_s, restart_s)
            }
            Starts::ByClass => {
                let start_s = 32.0 + 2.0 + 0.0027 * f64::from(job.num_gpus) + class.warm_up_s;
                let gb_per_s = (0.5 * f64::from(job.num_gpus)).min(facts.read_gb_s);
                (start_s, start_s + 3.0 + state_gb / gb_per_s)
            }
        };
        let restart_s = class.restart_cost_s.unwrap_or(restart_s);
        let least = power(
            std::f64::consts::E,
            -DEVIATIONS * deviation - deviation * deviation / 2.0,
        );
        // A measured restart may be cheaper than the stages of a start.
        (start_s.min(restart_s) * least, restart_s * least)
    }
}
