//! What is said of the offered jobs, column by column: numbers of many jobs are ranked and scaled side by side, in the
//! vector units of any machine, with the same bits as one by one.

use super::facts::JobFacts;
use crate::candidate::MAX_CANDIDATES;
use crate::cluster::Cluster;
use crate::features::decision::{self, FEATURES, Id, JOB_COLUMNS, RANK_COLUMNS};
use crate::features::{ColumnSet, Feature, Scale, log10_1p};
use crate::ids::JobId;

/// One number of each offered job or candidate.
pub(super) type Column = [f32; MAX_CANDIDATES];

/// Numbers of a column that are ranked side by side; half of them are scaled.
const LANES: usize = 8;

/// Facts of the offered jobs, gathered once for all their candidates.
#[derive(Clone, Debug)]
pub(super) struct JobTable {
    num: usize,
    /// Best rate that each job could have.
    best_speed: [f64; MAX_CANDIDATES],
    /// What the next start of each job costs, s.
    resume_cost_s: Column,
    /// Believed rest of each job, s.
    remaining_s: Column,
    raw: [Column; JOB_COLUMNS.len()],
    encoded: [Column; JOB_COLUMNS.len()],
    ranked: [Column; RANK_COLUMNS.len()],
    ranks: [Column; RANK_COLUMNS.len()],
}

impl Default for JobTable {
    fn default() -> JobTable {
        JobTable {
            num: 0,
            best_speed: [0.0; MAX_CANDIDATES],
            resume_cost_s: [0.0; MAX_CANDIDATES],
            remaining_s: [0.0; MAX_CANDIDATES],
            raw: [[0.0; MAX_CANDIDATES]; JOB_COLUMNS.len()],
            encoded: [[0.0; MAX_CANDIDATES]; JOB_COLUMNS.len()],
            ranked: [[0.0; MAX_CANDIDATES]; RANK_COLUMNS.len()],
            ranks: [[0.0; MAX_CANDIDATES]; RANK_COLUMNS.len()],
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
        let (at, facts) = (self.num, JobFacts::of(cluster, id));
        self.num += 1;
        self.best_speed[at] = cluster.best_speed_of(cluster.job(id).request.class);
        self.resume_cost_s[at] = cluster.resume_cost_s(id) as f32;
        self.remaining_s[at] = facts.remaining_s;
        let (raw, ranked) = (&mut self.raw, &mut self.ranked);
        decision::read_job(
            &facts,
            |slot, value| raw[slot][at] = value,
            |slot, value| ranked[slot][at] = value,
        );
        at
    }

    /// Scales and ranks what was read, of these columns; what the others hold means nothing.
    pub(super) fn encode(&mut self, columns: ColumnSet) {
        let num = self.num;
        let is_wanted = |column: &Id| columns.contains(*column as usize);
        let scaled = JOB_COLUMNS.iter().zip(&self.raw).zip(&mut self.encoded);
        for ((column, raw), encoded) in scaled.filter(|((column, _), _)| is_wanted(column)) {
            encode(&FEATURES[*column as usize], raw, encoded, num);
        }
        let others = num.saturating_sub(1).max(1) as f32;
        let ranked = RANK_COLUMNS.iter().zip(&self.ranked).zip(&mut self.ranks);
        for ((_, ranked), ranks) in ranked.filter(|((column, _), _)| is_wanted(column)) {
            rank(ranked, num, others, ranks);
        }
    }

    /// Believed rest of a job, s.
    pub(super) fn remaining_s(&self, at: usize) -> f32 {
        self.remaining_s[at]
    }

    /// What the next start of a job costs, s.
    pub(super) fn resume_cost_s(&self, at: usize) -> f32 {
        self.resume_cost_s[at]
    }

    /// Best rate that a job could have.
    pub(super) fn best_speed(&self, at: usize) -> f64 {
        self.best_speed[at]
    }

    /// Writes what is said of a job, over what was said of another. `[F]`
    #[inline]
    pub(super) fn write<const W: usize>(&self, at: usize, row: &mut [f32; W]) {
        for (column, encoded) in JOB_COLUMNS.into_iter().zip(&self.encoded) {
            decision::write(row, column, encoded[at]);
        }
        for (column, ranks) in RANK_COLUMNS.into_iter().zip(&self.ranks) {
            decision::write(row, column, ranks[at]);
        }
    }
}

/// Clamps and scales the first `num` values of a column into another, as [`Feature::encode`] does one. Values past them, up to
/// a multiple of half of [`LANES`], which the columns' length is, mean nothing.
pub(super) fn encode<const N: usize>(feature: &Feature, raw: &[f32; N], encoded: &mut [f32; N], num: usize) {
    let num = num.next_multiple_of(LANES / 2);
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
            feature in 0..FEATURES.len(),
        ) {
            let feature = &FEATURES[feature];
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
