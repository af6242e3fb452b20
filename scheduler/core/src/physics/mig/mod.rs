//! Multi-Instance GPU: which instances fit on one GPU together, where the next one goes, and how fast a job is there.
//!
//! A GPU is cut along two axes, memory slices (8, or 4 on an A30) and compute slices (7, or 4). A profile takes a run of
//! memory slices at one of a few allowed starts and some compute slices; two instances may not share a memory slice,
//! and the compute slices of all may not exceed the GPU's. Both axes bind: two `3g` leave a compute slice that no
//! profile can use, seven `1g` leave such a memory slice.
//!
//! # Which start
//! [`MigState::can_place`] takes the start that leaves the most room: the largest sum, over every (profile, start) that
//! is still placeable afterwards, of the profile's memory slices; equal sums go to the highest start. So small
//! instances gather at the end and the one `4g` and the one `7g` are kept possible for as long as they can be.
//!
//! # Refused
//! Profiles with media extensions (`+me`): same geometry, and training does not use them. Compute instances inside a
//! GPU instance, which share its memory.
//!
//! # Source
//! NVIDIA MIG user guide, profile and placement tables (`nvidia-smi mig -lgip`, `-lgipp`).

use serde::{Deserialize, Serialize};

use crate::portable_math::pow;
use crate::problem::Problem;

mod profiles;
#[cfg(test)]
mod tests;

pub use profiles::{MigGpu, Profile};

/// Most memory slices of any GPU, and so most starts.
pub(crate) const MAX_SLICES: usize = 8;

/// Exponent of the speed curve. Assumed; see [`mig_speed`].
pub(crate) const SPEED_EXPONENT: f64 = 0.9;

/// The instances of one GPU. Ten bytes; an instance is named by its first memory slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigState {
    /// Memory slices in use, one bit each.
    memory_mask: u8,
    /// Compute slices in use.
    compute_used: u8,
    /// 1 + index of the profile whose instance starts at this memory slice; 0 = none starts here.
    starting: [u8; MAX_SLICES],
}

impl MigState {
    /// A GPU without instances.
    pub(crate) const EMPTY: MigState = MigState {
        memory_mask: 0,
        compute_used: 0,
        starting: [0; MAX_SLICES],
    };

    /// Memory slices in use, one bit each.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn memory_mask(&self) -> u8 {
        self.memory_mask
    }

    /// Compute slices in use.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn compute_used(&self) -> u8 {
        self.compute_used
    }

    /// Whether no instance exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memory_mask == 0
    }

    /// The instances as (index of profile, start), by start.
    pub fn instances(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        let starts = self.starting.iter().zip(0_u8..);
        starts.filter_map(|(code, start)| Some((usize::from(code.checked_sub(1)?), start)))
    }

    /// The profile of the instance at `start`.
    #[must_use]
    pub(crate) fn profile_at(&self, start: u8) -> Option<usize> {
        let code = *self.starting.get(usize::from(start))?;
        code.checked_sub(1).map(usize::from)
    }

    fn allows(&self, gpu: MigGpu, profile: &Profile, start: u8) -> bool {
        profile.starts & (1 << start) != 0
            && self.memory_mask & profile.mask(start) == 0
            && self.compute_used + profile.compute_slices <= gpu.compute_slices()
    }

    fn with(mut self, profile: &Profile, index: usize, start: u8) -> MigState {
        self.memory_mask |= profile.mask(start);
        self.compute_used += profile.compute_slices;
        self.starting[usize::from(start)] = index as u8 + 1;
        self
    }

    /// Whether an instance of profile `index` fits at exactly this start.
    #[must_use]
    pub(crate) fn can_place_at(&self, gpu: MigGpu, index: usize, start: u8) -> bool {
        start < gpu.memory_slices() && self.allows(gpu, &gpu.profiles()[index], start)
    }

    /// Room left: over every (profile, start) that could be placed next, the sum of its memory slices.
    #[must_use]
    pub fn room(&self, gpu: MigGpu) -> u32 {
        let mut room = 0;
        for profile in gpu.profiles() {
            for start in 0..gpu.memory_slices() {
                if self.allows(gpu, profile, start) {
                    room += u32::from(profile.memory_slices);
                }
            }
        }
        room
    }

    /// Where an instance of profile `index` goes (see the rule on top of this file); `None` where it does not fit.
    #[must_use]
    pub fn can_place(&self, gpu: MigGpu, index: usize) -> Option<u8> {
        let profile = &gpu.profiles()[index];
        (0..gpu.memory_slices())
            .filter(|start| self.allows(gpu, profile, *start))
            .max_by_key(|start| (self.with(profile, index, *start).room(gpu), *start))
    }

    /// Creates an instance of profile `index` at `start`.
    ///
    /// # Panics
    /// Where it does not fit: ask [`MigState::can_place`] first.
    pub fn place(&mut self, gpu: MigGpu, index: usize, start: u8) {
        assert!(
            self.can_place_at(gpu, index, start),
            "profile {index} does not fit at {start}"
        );
        *self = self.with(&gpu.profiles()[index], index, start);
    }

    /// Destroys the instance at `start` and returns its profile.
    ///
    /// # Panics
    /// Where no instance starts there.
    pub fn remove(&mut self, gpu: MigGpu, start: u8) -> usize {
        let index = self.profile_at(start);
        assert!(index.is_some(), "no instance starts at {start}");
        let index = index.unwrap_or_default();
        let profile = &gpu.profiles()[index];
        self.memory_mask &= !profile.mask(start);
        self.compute_used -= profile.compute_slices;
        self.starting[usize::from(start)] = 0;
        index
    }

    /// Checks a state that was read from a file against a type: its instances must fit together and add up.
    ///
    /// # Errors
    /// The first instance that does not fit, or sums that do not agree.
    pub fn validate(&self, gpu: MigGpu) -> Result<(), Problem> {
        let fail = |value: String, allowed: &str| {
            Err(Problem::new(
                "mig.state",
                value,
                allowed,
                format!(
                    "rebuild the state by placing instances on an empty {}",
                    gpu.name()
                ),
            ))
        };
        let mut rebuilt = MigState::EMPTY;
        for (index, start) in self.instances() {
            if index >= gpu.profiles().len() || !rebuilt.can_place_at(gpu, index, start) {
                return fail(
                    format!("profile {index} at slice {start}"),
                    "instances that fit together",
                );
            }
            rebuilt.place(gpu, index, start);
        }
        if rebuilt != *self {
            return fail(
                format!("mask {:#b}, compute {}", self.memory_mask, self.compute_used),
                "the sums over the instances",
            );
        }
        Ok(())
    }
}

impl MigGpu {
    /// Every legal set of instances, the empty one first, each as a state. A few hundred; for tests, tables and
    /// planners, not for the step path.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn layouts(self) -> Vec<MigState> {
        let mut found = vec![MigState::EMPTY];
        let mut next = 0;
        // Instances are added in the order of their starts, so that each set is built once.
        while next < found.len() {
            let state = found[next];
            let from = (u8::BITS - state.memory_mask.leading_zeros()) as u8;
            for (index, profile) in self.profiles().iter().enumerate() {
                for start in from..self.memory_slices() {
                    if state.allows(self, profile, start) {
                        found.push(state.with(profile, index, start));
                    }
                }
            }
            next += 1;
        }
        found
    }
}

/// Speed of a job on a share of a GPU's compute, relative to the whole GPU: `min(1, (fraction / utilisation)^0.9)`.
///
/// `fraction` is compute slices over those of the whole GPU, `utilisation` the part of the whole GPU that the job can
/// keep busy; both (0, 1]. A small job loses nothing until its slice is smaller than what it uses.
///
/// # Source
/// The form and the exponent are assumed (large-batch training scales a little less than linearly with slices).
/// Calibrated on GROMACS on an A100-80 (NJIT's cluster documentation): 43.3, 81.2, 115.5 and 118.6 ns/day on 1, 2, 3
/// and 7 slices; a utilisation of 0.44 gives all four within 2 %.
#[must_use]
pub fn mig_speed(fraction: f64, utilisation: f64) -> f64 {
    if fraction >= utilisation {
        return 1.0;
    }
    pow(fraction / utilisation, SPEED_EXPONENT)
}
