//! What is said of the offered jobs, column by column: numbers of many jobs are ranked and scaled side by side, in the
//! vector units of any machine, with the same bits as one by one.

use crate::candidate::{CandidateSet, MAX_CANDIDATES};
use crate::cluster::Cluster;
use crate::features::column::{self, Candidate as C};
use crate::features::{Feature, Scale, log10_1p};
use crate::ids::JobId;

use super::NUM_CANDIDATE_FEATURES;

/// One number of each offered job or candidate.
pub(super) type Column = [f32; MAX_CANDIDATES];

/// Columns that are ranked against each other come in eights, filled up with numbers that are smaller than none.
const LANES: usize = 8;

/// Raw numbers, from which encoded ones and ranks are made.
#[derive(Clone, Copy, Debug)]
enum Raw {
    NumGpus,
    RemainingS,
    GpuTime,
    WaitS,
    WaitRatio,
    Attained,
    TenantUse,
    NumPreemptions,
    Arrival,
}

const NUM_RAW: usize = Raw::Arrival as usize + 1;

/// Which raw number is encoded in which feature.
const ENCODED: [(Raw, C); 8] = [
    (Raw::NumGpus, C::NumGpus),
    (Raw::RemainingS, C::RemainingS),
    (Raw::GpuTime, C::GpuTime),
    (Raw::WaitS, C::WaitS),
    (Raw::WaitRatio, C::WaitRatio),
    (Raw::Attained, C::Attained),
    (Raw::TenantUse, C::TenantUse),
    (Raw::NumPreemptions, C::NumPreemptions),
];

/// Which raw number is ranked in which feature.
const RANKED: [(Raw, C); 6] = [
    (Raw::RemainingS, C::RankRemaining),
    (Raw::GpuTime, C::RankGpuTime),
    (Raw::Arrival, C::RankArrival),
    (Raw::Attained, C::RankAttained),
    (Raw::NumGpus, C::RankNumGpus),
    (Raw::TenantUse, C::Deficit),
];

/// Facts of the offered jobs, gathered once for all their candidates.
#[derive(Clone, Debug)]
pub(super) struct JobTable {
    ids: Vec<JobId>,
    /// Best rate that each job could have.
    best_speed: [f64; MAX_CANDIDATES],
    raw: [Column; NUM_RAW],
    encoded: [Column; ENCODED.len()],
    ranks: [Column; RANKED.len()],
}

impl Default for JobTable {
    fn default() -> JobTable {
        JobTable {
            ids: Vec::with_capacity(MAX_CANDIDATES),
            best_speed: [0.0; MAX_CANDIDATES],
            raw: [[0.0; MAX_CANDIDATES]; NUM_RAW],
            encoded: [[0.0; MAX_CANDIDATES]; ENCODED.len()],
            ranks: [[0.0; MAX_CANDIDATES]; RANKED.len()],
        }
    }
}

impl JobTable {
    /// Gathers the jobs of the candidates, each once, in their order.
    pub(super) fn gather(&mut self, cluster: &Cluster, set: &CandidateSet) {
        self.ids.clear();
        for candidate in set.iter().take(MAX_CANDIDATES) {
            let Some(job) = candidate.job else { continue };
            if self.ids.last() != Some(&job) {
                self.read(cluster, job);
                self.ids.push(job);
            }
        }
        let num = self.ids.len();
        for ((raw, feature), encoded) in ENCODED.into_iter().zip(&mut self.encoded) {
            encoded[..num].copy_from_slice(&self.raw[raw as usize][..num]);
            encode(&column::CANDIDATE[feature as usize], encoded, num);
        }
        let others = num.saturating_sub(1).max(1) as f32;
        for ((raw, _), ranks) in RANKED.into_iter().zip(&mut self.ranks) {
            rank(&mut self.raw[raw as usize], num, others, ranks);
        }
    }

    fn read(&mut self, cluster: &Cluster, id: JobId) {
        let (at, now, job) = (self.ids.len(), cluster.now(), cluster.job(id));
        let remaining_s = job.remaining_s_at(now) as f32;
        let num_gpus = job.request.num_gpus as f32;
        let wait_s = (now - job.submit).as_secs_f64() as f32;
        let speed = &cluster.class(job.request.class).speed;
        self.best_speed[at] = speed.iter().copied().fold(0.0, f64::max);
        let mut put = |raw: Raw, value: f32| self.raw[raw as usize][at] = value;
        put(Raw::NumGpus, num_gpus);
        put(Raw::RemainingS, remaining_s);
        put(Raw::GpuTime, remaining_s * num_gpus);
        put(Raw::WaitS, wait_s);
        put(Raw::WaitRatio, (wait_s + remaining_s) / remaining_s);
        put(Raw::Attained, job.attained_gpu_s_at(now) as f32);
        put(
            Raw::TenantUse,
            cluster.tenant(job.request.tenant).use_ratio() as f32,
        );
        put(Raw::NumPreemptions, job.num_preemptions as f32);
        put(Raw::Arrival, id.0 as f32);
    }

    /// The job of a row of the table; none past the last.
    pub(super) fn id(&self, at: usize) -> Option<JobId> {
        self.ids.get(at).copied()
    }

    /// Believed rest of a job, s.
    pub(super) fn remaining_s(&self, at: usize) -> f32 {
        self.raw[Raw::RemainingS as usize][at]
    }

    /// Best rate that a job could have.
    pub(super) fn best_speed(&self, at: usize) -> f64 {
        self.best_speed[at]
    }

    /// Writes what is said of a job into a row that is zero elsewhere. `[F]`
    pub(super) fn write(&self, at: usize, num_gpus: f32, row: &mut [f32; NUM_CANDIDATE_FEATURES]) {
        for ((_, feature), encoded) in ENCODED.into_iter().zip(&self.encoded) {
            row[feature as usize] = encoded[at];
        }
        for ((_, feature), ranks) in RANKED.into_iter().zip(&self.ranks) {
            row[feature as usize] = ranks[at];
        }
        let fraction = C::GpuFraction as usize;
        let part = self.raw[Raw::NumGpus as usize][at] / num_gpus;
        row[fraction] = column::CANDIDATE[fraction].encode(part);
    }
}

/// Clamps and scales the first `num` values of a column, as [`Feature::encode`] does one.
pub(super) fn encode(feature: &Feature, values: &mut Column, num: usize) {
    let values = &mut values[..num.next_multiple_of(LANES)];
    let clamp = |value: f32| value.max(feature.min).min(feature.max);
    // Decided once for all: a loop without a choice in it is one for the vector units.
    match feature.scale {
        Scale::Linear(divisor) => {
            for value in values {
                *value = clamp(*value) / divisor;
            }
        }
        Scale::Log(divisor) => {
            for value in values {
                *value = log10_1p(clamp(*value)) / divisor;
            }
        }
    }
}

/// Share of the first `num` values that are smaller than each of them.
fn rank(values: &mut Column, num: usize, others: f32, ranks: &mut Column) {
    let num_chunks = num.div_ceil(LANES);
    values[num..num_chunks * LANES].fill(f32::INFINITY);
    for (rank, value) in ranks.iter_mut().zip(&*values).take(num) {
        let mut smaller = [0_u32; LANES];
        for lanes in values.chunks_exact(LANES).take(num_chunks) {
            for (count, other) in smaller.iter_mut().zip(lanes) {
                *count += u32::from(other < value);
            }
        }
        *rank = smaller.iter().sum::<u32>() as f32 / others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_column_at_once_has_the_bits_of_one_value_after_the_other(
            values in proptest::collection::vec(prop_oneof![0.0_f32..1e9, 0.0_f32..10.0, Just(0.0), Just(f32::NAN)], 1..64),
            feature in 0..column::CANDIDATE.len(),
        ) {
            let feature = &column::CANDIDATE[feature];
            let mut all = [0.0; MAX_CANDIDATES];
            all[..values.len()].copy_from_slice(&values);
            encode(feature, &mut all, values.len());
            for (value, encoded) in values.iter().zip(all) {
                prop_assert_eq!(feature.encode(*value).to_bits(), encoded.to_bits());
            }
        }

        #[test]
        fn a_rank_is_the_share_of_smaller_values(
            values in proptest::collection::vec((0_u8..9).prop_map(f32::from), 1..64),
        ) {
            let (mut all, mut ranks) = ([7.5; MAX_CANDIDATES], [0.0; MAX_CANDIDATES]);
            all[..values.len()].copy_from_slice(&values);
            rank(&mut all, values.len(), 3.0, &mut ranks);
            for (value, found) in values.iter().zip(ranks) {
                let smaller = values.iter().filter(|other| *other < value).count();
                prop_assert_eq!(found, smaller as f32 / 3.0);
            }
        }
    }
}
