//! Goodput of an elastic data-parallel job: how many *useful* samples a second it trains on K GPUs of N nodes.
//!
//! ```text
//! goodput    = throughput x efficiency
//! T_grad     = alpha_c + beta_c m                                 m samples on each GPU
//! T_sync     = 0 | alpha_r + beta_r (K-2) on one node | alpha_n + beta_n (K-2) on several
//! T_iter     = s T_grad + (T_grad^gamma + T_sync^gamma)^(1/gamma)  s accumulation steps, gamma in [1, 10]
//! throughput = M / T_iter,  M = K m (s + 1)
//! efficiency = (phi + M_0) / (phi + M)                            phi gradient noise scale, M_0 initial batch
//! ```
//!
//! A larger batch keeps the GPUs busier and learns less from each sample; [`Elastic::best`] finds the balance for a
//! placement, so the batch size is no action of its own. The noise scale grows during training; a profile gives it at
//! both ends, and it is interpolated on a logarithmic scale.
//!
//! # Refused
//! Batches below the initial one (not in the model's range), more GPUs than samples of the largest batch.
//!
//! # Source
//! Pollux (OSDI'21), sections 3 and 4.1; parameters fitted by us, see [`POLLUX_MODELS`].

use crate::settings;
use crate::settings::{Own, Settings as _};

use crate::portable_math::pow;
use crate::problem::Problem;

/// Total batch sizes that are tried, log-spaced. Pollux's number.
pub(crate) const NUM_BATCHES: u32 = 50;

/// Longest part of an iteration, s. *Ours*: what is longer makes speeds of which nothing is left after the comma.
const TIME_S_MAX: f64 = 1e6;
/// Largest gradient noise scale, samples. *Ours*: above the largest batch no sample is wasted in any case.
const NOISE_MAX: f64 = 1e15;

/// One batch of this many is looked at first, in the search for the best. Any number gives the same result.
const SPARSE: usize = 10;

settings! {
    /// The seven parameters of the time of an iteration, s.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct IterationTime: required {
        /// Gradient: constant part, s.
        pub alpha_c: f64, in 1e-12..=TIME_S_MAX;
        /// Gradient: per sample, s.
        pub beta_c: f64, in 1e-12..=TIME_S_MAX;
        /// Synchronising two GPUs on different nodes, s.
        pub alpha_n: f64, in 0.0..=TIME_S_MAX;
        /// Each further GPU on several nodes, s.
        pub beta_n: f64, in 0.0..=TIME_S_MAX;
        /// Synchronising two GPUs of one node, s.
        pub alpha_r: f64, in 0.0..=TIME_S_MAX;
        /// Each further GPU on one node, s.
        pub beta_r: f64, in 0.0..=TIME_S_MAX;
        /// Overlap of gradient and synchronisation: 1 = none, 10 = nearly the longer of the two.
        pub gamma: f64, in 1.0..=10.0;
    }
}

impl IterationTime {
    /// Time of the gradient of `local_batch` samples on one GPU, s.
    #[must_use]
    pub(crate) fn grad_s(&self, local_batch: f64) -> f64 {
        self.alpha_c + self.beta_c * local_batch
    }

    /// Time of a synchronisation, s.
    #[must_use]
    pub(crate) fn sync_s(&self, num_gpus: u32, num_nodes: u32) -> f64 {
        let further = f64::from(num_gpus.saturating_sub(2));
        match (num_gpus, num_nodes) {
            (0 | 1, _) => 0.0,
            (_, 0 | 1) => self.alpha_r + self.beta_r * further,
            _ => self.alpha_n + self.beta_n * further,
        }
    }

    /// Time of an iteration with `accumulation` gradient steps before the one that synchronises, s.
    #[must_use]
    pub fn iteration_s(&self, num_gpus: u32, num_nodes: u32, local_batch: f64, accumulation: u32) -> f64 {
        let grad_s = self.grad_s(local_batch);
        f64::from(accumulation) * grad_s + self.overlapped_s(grad_s, self.sync_s(num_gpus, num_nodes))
    }

    /// Time of the last gradient step and the synchronisation that partly hides behind it, s; at least the longer of both.
    fn overlapped_s(&self, grad_s: f64, sync_s: f64) -> f64 {
        // Scaled by the longer of the two, so that no power overflows; its own power is then 1.
        let (shorter, longer) = (grad_s.min(sync_s), grad_s.max(sync_s));
        if shorter == 0.0 {
            return longer;
        }
        longer * pow(pow(shorter / longer, self.gamma) + 1.0, 1.0 / self.gamma)
    }
}

settings! {
    /// An elastic job, as a scheduler knows it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Elastic: required {
        /// Time of an iteration.
        pub time: IterationTime, in Own;
        /// Initial total batch `M_0`, samples; no smaller one is used.
        pub initial_batch: u32;
        /// Largest total batch, samples.
        pub max_batch: u32;
        /// Smallest batch on one GPU, samples.
        pub min_local_batch: u32;
        /// Largest batch that fits in a GPU's memory, samples; larger ones are accumulated.
        pub max_local_batch: u32;
        /// Gradient noise scale `phi` at the start of training, samples.
        pub noise_at_start: f64, in 1e-12..=NOISE_MAX;
        /// Gradient noise scale at the end of training, samples.
        pub noise_at_end: f64, in 1e-12..=NOISE_MAX;
    }
}

/// What a job does best on a placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Useful samples a second.
    pub goodput: f64,
    /// Samples a second.
    pub throughput: f64,
    /// Useful part of a sample, (0, 1].
    pub efficiency: f64,
    /// Samples on each GPU.
    pub local_batch: u32,
    /// Gradient steps before the one that synchronises.
    pub accumulation: u32,
    /// Samples in a batch.
    pub total_batch: u32,
}

/// A total batch as it is split over GPUs and gradient steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Batch {
    local: u32,
    accumulation: u32,
    total: u32,
}

#[cfg(test)]
impl Elastic {
    /// Steps of 1 s whatever the batch up to 8 a GPU, free synchronisation, no sample wasted: k GPUs are k times as fast, up to
    /// `most`.
    pub(crate) fn proportional(most: u32) -> Elastic {
        Elastic {
            time: IterationTime {
                alpha_c: 1.0,
                beta_c: 1e-12,
                alpha_n: 0.0,
                beta_n: 0.0,
                alpha_r: 0.0,
                beta_r: 0.0,
                gamma: 1.0,
            },
            initial_batch: 1,
            max_batch: 8 * most,
            min_local_batch: 1,
            max_local_batch: 8,
            noise_at_start: 1e12,
            noise_at_end: 1e12,
        }
    }
}

impl Elastic {
    /// Gradient noise scale after this part of the training, `progress` in [0, 1]; log-linear between both ends.
    #[must_use]
    pub fn noise(&self, progress: f64) -> f64 {
        let ratio = self.noise_at_end / self.noise_at_start;
        self.noise_at_start * pow(ratio, progress.clamp(0.0, 1.0))
    }

    /// Statistical efficiency of a total batch, (0, 1] for batches from the initial one on.
    #[must_use]
    pub fn efficiency(&self, noise: f64, total_batch: u32) -> f64 {
        (noise + f64::from(self.initial_batch)) / (noise + f64::from(total_batch))
    }

    /// The batch with the best goodput on `num_gpus` GPUs of `num_nodes` nodes, out of 50 log-spaced totals from
    /// `max(M_0, min_local_batch K)` to `max_batch`; equal goodputs go to the smaller batch. `None` where that range is
    /// empty (too many GPUs for the largest batch) or there is no GPU.
    #[must_use]
    pub fn best(&self, num_gpus: u32, num_nodes: u32, noise: f64) -> Option<Choice> {
        let sync_s = self.time.sync_s(num_gpus, num_nodes);
        let mut batches = [Batch::default(); NUM_BATCHES as usize];
        let mut num_batches = 0;
        for batch in self.batches(num_gpus) {
            // Where few samples go to many GPUs, neighbours are the same whole number of them.
            if num_batches == 0 || batches[num_batches - 1] != batch {
                batches[num_batches] = batch;
                num_batches += 1;
            }
        }
        let batches = &batches[..num_batches];
        // A few, far apart, say what is worth a closer look. The powers in a step's time are what costs.
        let goodput = |batch: &Batch| self.choice(*batch, sync_s, noise).goodput;
        let few = batches.iter().skip(SPARSE / 2).step_by(SPARSE).map(goodput);
        let floor = few.fold(0.0, f64::max);
        let mut best: Option<Choice> = None;
        for batch in batches {
            let most = self.goodput_most(*batch, sync_s, noise);
            if most < floor || best.is_some_and(|best| most <= best.goodput) {
                continue;
            }
            let choice = self.choice(*batch, sync_s, noise);
            if best.is_none_or(|best| choice.goodput > best.goodput) {
                best = Some(choice);
            }
        }
        best
    }

    /// Whether [`Elastic::best`] finds a batch on so many GPUs.
    #[must_use]
    pub(crate) fn can_run_on(&self, num_gpus: u32) -> bool {
        self.batches(num_gpus).next().is_some()
    }

    /// The batches that are looked at, smallest first.
    fn batches(&self, num_gpus: u32) -> impl Iterator<Item = Batch> + use<'_> {
        let least = self.min_local_batch.checked_mul(num_gpus).unwrap_or(0);
        let (low, high) = (least.max(self.initial_batch), self.max_batch);
        let num_batches = if least == 0 || low > high { 0 } else { NUM_BATCHES };
        let (low, high) = (f64::from(low), f64::from(high));
        let step = pow(high / low, 1.0 / f64::from(NUM_BATCHES - 1));
        let totals = std::iter::successors(Some(low), move |total| Some(total * step));
        totals
            .take(num_batches as usize)
            .filter_map(move |total| self.batch(num_gpus, total.min(high)))
    }

    /// The batch nearest to `total` that splits into whole samples: rounded up, or down at the largest batch.
    fn batch(&self, num_gpus: u32, total: f64) -> Option<Batch> {
        let per_gpu = total / f64::from(num_gpus);
        let accumulation =
            ((per_gpu / f64::from(self.max_local_batch) - 1e-9).ceil() as u32).saturating_sub(1);
        let steps = accumulation + 1;
        let mut local = (per_gpu / f64::from(steps) - 1e-9).ceil() as u32;
        if u64::from(num_gpus) * u64::from(local) * u64::from(steps) > u64::from(self.max_batch) {
            local = local.saturating_sub(1);
        }
        let total = num_gpus * local * steps;
        (local >= self.min_local_batch && total >= self.initial_batch).then_some(Batch {
            local,
            accumulation,
            total,
        })
    }

    /// More goodput than a batch can have: as if gradient and synchronisation overlapped wholly. No powers.
    fn goodput_most(&self, batch: Batch, sync_s: f64, noise: f64) -> f64 {
        let grad_s = self.time.grad_s(f64::from(batch.local));
        let seconds = f64::from(batch.accumulation) * grad_s + grad_s.max(sync_s);
        f64::from(batch.total) / seconds * self.efficiency(noise, batch.total)
    }

    fn choice(&self, batch: Batch, sync_s: f64, noise: f64) -> Choice {
        let grad_s = self.time.grad_s(f64::from(batch.local));
        let seconds = f64::from(batch.accumulation) * grad_s + self.time.overlapped_s(grad_s, sync_s);
        let throughput = f64::from(batch.total) / seconds;
        let efficiency = self.efficiency(noise, batch.total);
        Choice {
            goodput: throughput * efficiency,
            throughput,
            efficiency,
            local_batch: batch.local,
            accumulation: batch.accumulation,
            total_batch: batch.total,
        }
    }

    /// Goodput on this placement over goodput on one GPU; 0 where it cannot run there.
    #[cfg(test)]
    fn speedup(&self, num_gpus: u32, num_nodes: u32, noise: f64) -> f64 {
        let one = self.best(1, 1, noise).map(|choice| choice.goodput);
        let here = self.best(num_gpus, num_nodes, noise).map(|choice| choice.goodput);
        match (here, one) {
            (Some(here), Some(one)) => here / one,
            _ => 0.0,
        }
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// The first one out of range.
    pub fn validate(&self) -> Result<(), Problem> {
        let fail = |key: &str, value: String, allowed: &str, hint: &str| {
            Err(Problem::new(format!("elastic.{key}"), value, allowed, hint))
        };
        if self.initial_batch == 0 || self.max_batch < self.initial_batch {
            let value = format!("{} to {}", self.initial_batch, self.max_batch);
            let hint = "set max_batch to initial_batch for a job whose batch may not grow";
            return fail(
                "initial_batch, max_batch",
                value,
                "1 or more, the largest not below the initial",
                hint,
            );
        }
        if self.min_local_batch == 0 || self.max_local_batch < self.min_local_batch {
            let value = format!("{} to {}", self.min_local_batch, self.max_local_batch);
            return fail(
                "min_local_batch, max_local_batch",
                value,
                "1 or more, the largest not below the smallest",
                "the largest is what fits in a GPU's memory",
            );
        }
        self.check_at("elastic", "")
    }

    /// One of [`POLLUX_MODELS`].
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Elastic, Problem> {
        let found = POLLUX_MODELS.iter().find(|(known, _)| *known == name);
        found.map(|(_, elastic)| *elastic).ok_or_else(|| {
            let names: Vec<&str> = POLLUX_MODELS.iter().map(|(known, _)| *known).collect();
            Problem::new("elastic", name, names.join(", "), "or write the parameters")
        })
    }
}

const fn elastic(time: [f64; 7], batch: [u32; 2], local: [u32; 2], noise: [f64; 2]) -> Elastic {
    Elastic {
        time: IterationTime {
            alpha_c: time[0],
            beta_c: time[1],
            alpha_n: time[2],
            beta_n: time[3],
            alpha_r: time[4],
            beta_r: time[5],
            gamma: time[6],
        },
        initial_batch: batch[0],
        max_batch: batch[1],
        min_local_batch: local[0],
        max_local_batch: local[1],
        noise_at_start: noise[0],
        noise_at_end: noise[1],
    }
}

/// Pollux's six applications on nodes of four T4.
///
/// # Source
/// Fitted by us (least squares of the logarithm of the step time) to the measured step times of Pollux's artifact
/// (osdi21-artifact, Apache-2.0), 540 to 1,661 placements each of up to 16 GPUs on 4 nodes; root mean square error of
/// the logarithm 0.12 bert, 0.09 cifar10, 0.08 deepspeech2, 0.10 imagenet, 0.13 ncf, 0.12 yolov3. Batches are the range
/// that was measured. Noise scales are fitted (least squares of the logarithm of the efficiency, up to 1e9) to the gradient
/// statistics that its training runs recorded at every batch above the initial one, over the whole training: the noise scale
/// grows with the batch at which it is measured, so that of the initial batch makes large batches look far worse than they were
/// (bert at 384: 0.65 for 0.97). Root mean square error of the logarithm 0.01 bert, 0.12 cifar10, 0.12 deepspeech2, 0.11
/// imagenet, 0.02 ncf, 0.28 yolov3.
#[rustfmt::skip]
pub const POLLUX_MODELS: [(&str, Elastic); 6] = [
    ("bert", elastic([0.2306, 0.0576, 1.363, 0.01474, 0.1355, 0.07064, 2.098], [12, 384], [1, 12], [5569.0, 19_830.0])),
    ("cifar10", elastic([0.01021, 0.0007836, 0.1313, 0.002342, 0.04059, 0.004735, 2.831], [128, 4096], [32, 1024], [479.4, 1.171e8])),
    ("deepspeech2", elastic([0.02087, 0.03319, 0.7752, 0.02777, 0.4724, 0.08603, 3.207], [20, 640], [10, 80], [74.49, 1e9])),
    ("imagenet", elastic([0.06587, 0.004523, 0.3097, 0.005613, 0.03833, 0.02974, 2.84], [200, 12_800], [20, 200], [3693.0, 756_300.0])),
    ("ncf", elastic([0.007058, 8.017e-7, 0.01498, 0.000_442_9, 0.002774, 0.001189, 1.0], [256, 32_768], [32, 32_768], [1.09e5, 1e9])),
    ("yolov3", elastic([0.226, 0.0227, 0.5855, 0.02258, 0.02597, 0.0726, 1.0], [8, 512], [4, 16], [101.5, 6277.0])),
];

#[cfg(test)]
mod tests;
