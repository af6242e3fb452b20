//! Jobs that share one GPU: which of them fit together, and how fast each then runs.
//!
//! # The model
//! Under MPS, a resident `i` with neighbours `j` runs at
//!
//! ```text
//! speed_i = min( 1 / (1 + sum_j x_ij),  1 / max(1, M),  slice(share_i, u_i) )
//! x_ij    = 1 / measured_ij - 1        where the pair was measured on this GPU type
//!         = kappa u_i u_j              elsewhere: the chance that both are busy at once, times what a meeting costs
//! ```
//!
//! `u` is the GPU utilisation that the driver shows for the job alone, `M` the sum of all residents' memory-bandwidth utilisation
//! (bandwidth cannot be had twice; left out where every pair was measured, because then it is in the measurements), and `slice`
//! what a cap on the share of the compute units costs ([`crate::physics::mig::mig_speed`]). Excesses of several neighbours add
//! up. A measured table need not be symmetric; the rule is.
//!
//! Under time slices residents take turns, so nothing overlaps: each gets a max-min fair share of the GPU's time
//! (processor sharing), less the cost of switching. MIG instances do not disturb each other.
//!
//! # Why not `1 / max(1, sum u)`
//! Utilisation as the driver shows it is the part of the time in which *any* kernel runs, not the part of the GPU that
//! is used, so two jobs at 80 % do not slow each other to 1 / 1.6. On Lucid's 1,388 measured pairs that rule is hardly
//! better than predicting the mean (root mean square error 0.097 against 0.102); the rule above errs by 0.073.
//!
//! # Source
//! Lucid (ASPLOS'23), 1,388 pairs on RTX 3090; Gavel (OSDI'20), pairs on V100 under MPS. The rule itself is ours.

use crate::settings;
use crate::settings::OwnOrNone;
use serde::{Deserialize, Serialize};

use super::mig::mig_speed;

mod guard;
mod mean_ends;
mod pairs;
#[cfg(test)]
mod tests;

pub use guard::SharingGuard;
pub use mean_ends::MeanEnds;
pub use pairs::{PairEntry, PairTable, family, gavel_v100_pairs};

/// How residents of a GPU are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Residents take turns on the whole GPU.
    TimeSlice,
    /// Kernels of all residents run at once.
    Mps,
    /// Each resident has a hardware instance of its own.
    Mig,
}

/// What a job does to the GPU when it is alone on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resident {
    /// Index of the model class, as in the pair table.
    pub class: u16,
    /// GPU utilisation alone, (0, 1].
    pub utilisation: f64,
    /// Memory-bandwidth utilisation alone, [0, 1].
    pub bandwidth: f64,
    /// Device memory, GiB, framework included.
    pub memory_gib: f64,
    /// Cap on the share of compute units (`CUDA_MPS_ACTIVE_THREAD_PERCENTAGE` over 100), (0, 1]; 1 = no cap.
    pub share: f64,
}

settings! {
    /// Constants of sharing.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Interference: default PACKABLE {
        /// What a meeting of two busy jobs costs, [0, 10]; 1 = as if they took turns.
        pub kappa: f64, in 0.0..=10.0;
        /// Part of the time lost to switching between time slices, [0, 1).
        pub switch_cost: f64, in 0.0..1.0;
        /// Jobs that one GPU may hold, 1 to 48.
        pub max_residents: u8, in 1..=48;
        /// Which pairs are refused, and how far pairs scatter; none: those with too large a memory alone, and no scatter.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub guard: Option<SharingGuard>, in OwnOrNone;
    }
}

impl Interference {
    /// Jobs of every weight, mostly packable. `kappa` fitted to Lucid's 1,388 pairs; the switch cost is the middle of
    /// the quoted 1 to 5 % (assumed); four residents are assumed (MPS itself allows 48 clients on Volta and later).
    pub const PACKABLE: Interference = Interference {
        kappa: 0.4,
        switch_cost: 0.03,
        max_residents: 4,
        guard: None,
    };
    /// As it was measured, with what may go wrong.
    ///
    /// # Source
    /// Lucid's pairs, as for [`SharingGuard::MEASURED`].
    pub const MEASURED: Interference = Interference {
        kappa: 0.35,
        guard: Some(SharingGuard::MEASURED),
        ..Interference::PACKABLE
    };
    /// Jobs that fill the GPU: two of them gain nothing from each other's gaps. Quartiles of Gavel's V100 pairs.
    #[cfg(test)]
    pub(crate) const SATURATING: Interference = Interference {
        kappa: 1.0,
        ..Interference::PACKABLE
    };

    /// Whether these jobs may live on one GPU: no more than may, of memory that is known and fits, not all busy where sharing is
    /// guarded, and no pair that was measured to run out of memory.
    #[must_use]
    pub fn can_share(
        &self,
        residents: &[Resident],
        gpu_type: usize,
        device_memory_gib: f64,
        table: Option<&PairTable>,
    ) -> bool {
        if residents.len() > usize::from(self.max_residents) {
            return false;
        }
        let mut wanted_gib: f64 = residents.iter().map(|resident| resident.memory_gib).sum();
        let mut device_gib = device_memory_gib;
        if let Some(guard) = self.guard.filter(|_| residents.len() > 1) {
            if residents.iter().any(|resident| resident.memory_gib == 0.0)
                || guard.are_too_busy(residents.iter().map(|resident| resident.utilisation))
            {
                return false;
            }
            wanted_gib += guard.process_gib * residents.len() as f64;
            device_gib *= guard.memory_part;
        }
        if wanted_gib > device_gib {
            return false;
        }
        let ran_out = |one: usize, other: usize| {
            let measured =
                table.and_then(|table| table.get(gpu_type, residents[one].class, residents[other].class));
            one != other && measured == Some(0.0)
        };
        let all = 0..residents.len();
        !all.clone()
            .any(|one| all.clone().any(|other| ran_out(one, other)))
    }

    /// Speed of `resident` beside `others`, relative to being alone on the GPU without a cap. (0, 1]
    ///
    /// Of validated residents that [`Interference::can_share`] admits; where a pair was measured to run out of memory
    /// the rule answers instead of the table. A neighbour more never makes anyone faster.
    #[must_use]
    pub fn speed_of(
        &self,
        resident: &Resident,
        others: &[Resident],
        gpu_type: usize,
        mechanism: Mechanism,
        table: Option<&PairTable>,
    ) -> f64 {
        match mechanism {
            Mechanism::Mig => 1.0,
            Mechanism::TimeSlice if others.is_empty() => 1.0,
            Mechanism::TimeSlice => {
                turn(resident.utilisation, others) / resident.utilisation * (1.0 - self.switch_cost)
            }
            Mechanism::Mps => self.overlapped(resident, others, gpu_type, table),
        }
    }

    fn overlapped(
        &self,
        resident: &Resident,
        others: &[Resident],
        gpu_type: usize,
        table: Option<&PairTable>,
    ) -> f64 {
        let mut excess = 0.0;
        let mut bandwidth = resident.bandwidth;
        let mut all_measured = true;
        for other in others {
            let measured = table.and_then(|table| table.get(gpu_type, resident.class, other.class));
            if let Some(speed) = measured.filter(|speed| *speed > 0.0) {
                excess += 1.0 / speed - 1.0;
            } else {
                all_measured = false;
                let (mine, theirs) = (busy(resident), busy(other));
                excess += match &self.guard {
                    None => self.kappa * mine * theirs,
                    Some(guard) => {
                        let is_heavy = guard.is_heavy(mine, theirs);
                        let kappa = if is_heavy { guard.kappa_heavy } else { self.kappa };
                        let deviation = table.and_then(|table| table.deviation(resident.class, other.class));
                        let scatter = guard.scatter_of(deviation.unwrap_or(0.0), is_heavy);
                        let speed = scatter / (1.0 + kappa * mine * theirs);
                        1.0 / speed.min(1.0) - 1.0
                    }
                };
            }
            bandwidth += other.bandwidth;
        }
        let contended = 1.0 / (1.0 + excess);
        let fed = if all_measured {
            1.0
        } else {
            1.0 / bandwidth.max(1.0)
        };
        contended
            .min(fed)
            .min(mig_speed(resident.share, resident.utilisation))
    }
}

/// Utilisation under the cap.
fn busy(resident: &Resident) -> f64 {
    resident.utilisation.min(resident.share)
}

/// Max-min fair share of one GPU's time for a job that wants `mine`: everyone below the level gets what it wants, the
/// rest share what is left.
fn turn(mine: f64, others: &[Resident]) -> f64 {
    let count = others.len() as f64 + 1.0;
    let mut level = 1.0 / count;
    // The level only rises and each round but the last satisfies one more job, so this ends within `count` rounds.
    loop {
        let (mut satisfied, mut left) = (0.0, 1.0);
        for want in std::iter::once(mine).chain(others.iter().map(|other| other.utilisation)) {
            if want <= level {
                satisfied += 1.0;
                left -= want;
            }
        }
        if satisfied >= count {
            return mine;
        }
        let next = left / (count - satisfied);
        if next <= level {
            return mine.min(level);
        }
        level = next;
    }
}
