//! What is said of the offered jobs, column by column: numbers of many jobs are ranked and scaled side by side, in the
//! vector units of any machine, with the same bits as one by one.

use crate::candidate::MAX_CANDIDATES;
use crate::cluster::Cluster;
use crate::features::column::{self, Candidate as C};
use crate::features::{Feature, Scale, log10_1p};
use crate::ids::JobId;

use super::spaces::NUM_CANDIDATE_FEATURES;

/// One number of each offered job or candidate.
pub(super) type Column = [f32; MAX_CANDIDATES];

/// Numbers of a column that are scaled or ranked side by side.
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
    num: usize,
    /// Best rate that each job could have.
    best_speed: [f64; MAX_CANDIDATES],
    /// What the next start of each job costs, s.
    resume_cost_s: Column,
    raw: [Column; NUM_RAW],
    encoded: [Column; ENCODED.len()],
    ranks: [Column; RANKED.len()],
}

impl Default for JobTable {
    fn default() -> JobTable {
        JobTable {
            num: 0,
            best_speed: [0.0; MAX_CANDIDATES],
            resume_cost_s: [0.0; MAX_CANDIDATES],
            raw: [[0.0; MAX_CANDIDATES]; NUM_RAW],
            encoded: [[0.0; MAX_CANDIDATES]; ENCODED.len()],
            ranks: [[0.0; MAX_CANDIDATES]; RANKED.len()],
        }
    }
}

impl JobTable {
    /// Empties the table.
    pub(super) fn clear(&mut self) {
        self.num = 0;
    }

    /// Reads the facts of one more job and returns its row. At most [`MAX_CANDIDATES`] jobs.
    #[inline]
    pub(super) fn read(&mut self, cluster: &Cluster, id: JobId) -> usize {
        let (at, now, job) = (self.num, cluster.now(), cluster.job(id));
        self.num += 1;
        let remaining_s = job.remaining_s_at(now) as f32;
        let num_gpus = job.request.num_gpus as f32;
        let wait_s = now.since(job.submit).as_secs_f64() as f32;
        self.best_speed[at] = cluster.best_speed_of(job.request.class);
        self.resume_cost_s[at] = cluster.resume_cost_s(id) as f32;
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
        at
    }

    /// Scales and ranks what was read.
    pub(super) fn encode(&mut self) {
        let num = self.num;
        for ((raw, feature), encoded) in ENCODED.into_iter().zip(&mut self.encoded) {
            let feature = &column::CANDIDATE[feature as usize];
            encode(feature, &self.raw[raw as usize], encoded, num);
        }
        let others = num.saturating_sub(1).max(1) as f32;
        for ((raw, _), ranks) in RANKED.into_iter().zip(&mut self.ranks) {
            rank(&self.raw[raw as usize], num, others, ranks);
        }
    }

    /// Believed rest of a job, s.
    pub(super) fn remaining_s(&self, at: usize) -> f32 {
        self.raw[Raw::RemainingS as usize][at]
    }

    /// What the next start of a job costs, s.
    pub(super) fn resume_cost_s(&self, at: usize) -> f32 {
        self.resume_cost_s[at]
    }

    /// Best rate that a job could have.
    pub(super) fn best_speed(&self, at: usize) -> f64 {
        self.best_speed[at]
    }

    /// Writes what is said of a job into a row that is zero elsewhere. `[F]`
    #[inline]
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

/// Clamps and scales the first `num` values of a column into another, as [`Feature::encode`] does one. Values past them, up to
/// a multiple of [`LANES`], which the columns' length is, mean nothing.
pub(super) fn encode<const N: usize>(feature: &Feature, raw: &[f32; N], encoded: &mut [f32; N], num: usize) {
    let num = num.next_multiple_of(LANES);
    let rows = encoded[..num].iter_mut().zip(&raw[..num]);
    // Decided once for all: a loop without a choice in it is one for the vector units.
    match feature.scale {
        Scale::Linear(divisor) => {
            for (encoded, raw) in rows {
                *encoded = feature.clamp(*raw) / divisor;
            }
        }
        Scale::Log(divisor) => {
            for (encoded, raw) in rows {
                *encoded = log10_1p(feature.clamp(*raw)) / divisor;
            }
        }
    }
}

/// Share of the first `num` values that are smaller than each of them. Ranks past the first `num` mean nothing.
fn rank(values: &Column, num: usize, others: f32, ranks: &mut Column) {
    let chunks = values.as_chunks::<LANES>().0.iter();
    let ranks = ranks.as_chunks_mut::<LANES>().0.iter_mut();
    for (here, ranks) in chunks.zip(ranks).take(num.div_ceil(LANES)) {
        // Counted in floats, whose sums no compiler reorders: it then counts for all lanes at once, one other at a time.
        let mut smaller = [0.0_f32; LANES];
        for other in &values[..num] {
            for (count, value) in smaller.iter_mut().zip(here) {
                *count += if other < value { 1.0 } else { 0.0 };
            }
        }
        *ranks = smaller.map(|count| count / others);
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
            let (mut all, mut encoded) = ([0.0; MAX_CANDIDATES], [0.0; MAX_CANDIDATES]);
            all[..values.len()].copy_from_slice(&values);
            encode(feature, &all, &mut encoded, values.len());
            for (value, encoded) in values.iter().zip(encoded) {
                prop_assert_eq!(feature.encode(*value).to_bits(), encoded.to_bits());
            }
        }

        #[test]
        fn a_rank_is_the_share_of_smaller_values(
            values in proptest::collection::vec((0_u8..9).prop_map(f32::from), 1..64),
        ) {
            let (mut all, mut ranks) = ([1.5; MAX_CANDIDATES], [0.0; MAX_CANDIDATES]);
            all[..values.len()].copy_from_slice(&values);
            rank(&all, values.len(), 3.0, &mut ranks);
            for (value, found) in values.iter().zip(ranks) {
                let smaller = values.iter().filter(|other| *other < value).count();
                prop_assert_eq!(found, smaller as f32 / 3.0);
            }
        }
    }
}
