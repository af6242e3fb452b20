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

use crate::error::ConfigError;

/// Most memory slices of any GPU, and so most starts.
pub const MAX_SLICES: usize = 8;

/// Exponent of the speed curve. Assumed; see [`mig_speed`].
pub const SPEED_EXPONENT: f64 = 0.9;

/// What an instance of a GPU is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// NVIDIA's name, for example `3g.40gb`.
    pub name: &'static str,
    /// Memory that a job can use, GiB. H100-80 as printed by the driver; A100-80 taken to be the same; elsewhere 0.975
    /// of the nominal size (assumed, the H100's ratio).
    pub memory_gib: f64,
    /// Compute slices, 1 to 7.
    pub compute_slices: u8,
    /// Memory slices, 1 to 8.
    pub memory_slices: u8,
    /// Allowed first memory slices, one bit each.
    pub starts: u8,
    /// Instances of this profile that a GPU can hold.
    pub max_instances: u8,
}

impl Profile {
    /// Memory slices that an instance at `start` covers, one bit each.
    const fn mask(&self, start: u8) -> u8 {
        (((1_u16 << self.memory_slices) - 1) << start) as u8
    }
}

/// A GPU type that can be cut into instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MigGpu {
    /// A100 with 40 GB.
    #[serde(rename = "A100-40")]
    A100_40,
    /// A100 with 80 GB.
    #[serde(rename = "A100-80")]
    A100_80,
    /// H100 with 80 GB.
    #[serde(rename = "H100-80")]
    H100_80,
    /// H200 with 141 GB.
    #[serde(rename = "H200-141")]
    H200_141,
    /// B200 with 180 GB.
    #[serde(rename = "B200-180")]
    B200_180,
    /// A30 with 24 GB.
    #[serde(rename = "A30")]
    A30,
}

const fn profile(name: &'static str, memory_gib: f64, compute: u8, memory: u8, starts: u8) -> Profile {
    Profile {
        name,
        memory_gib,
        compute_slices: compute,
        memory_slices: memory,
        starts,
        max_instances: starts.count_ones() as u8,
    }
}

/// The six profiles of the eight-slice GPUs: 1g, 1g with twice the memory, 2g, 3g, 4g, 7g.
const fn eight(names: [&'static str; 6], memory_gib: [f64; 6]) -> [Profile; 6] {
    [
        profile(names[0], memory_gib[0], 1, 1, 0b0111_1111),
        profile(names[1], memory_gib[1], 1, 2, 0b0101_0101),
        profile(names[2], memory_gib[2], 2, 2, 0b0001_0101),
        profile(names[3], memory_gib[3], 3, 4, 0b0001_0001),
        profile(names[4], memory_gib[4], 4, 4, 0b0000_0001),
        profile(names[5], memory_gib[5], 7, 8, 0b0000_0001),
    ]
}

static A100_40: [Profile; 6] = eight(
    ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"],
    [4.875, 9.75, 9.75, 19.5, 19.5, 39.0],
);
static A100_80: [Profile; 6] = eight(
    ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
    [9.75, 19.62, 19.62, 39.5, 39.5, 78.0],
);
static H200_141: [Profile; 6] = eight(
    ["1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"],
    [17.55, 34.125, 34.125, 69.225, 69.225, 137.475],
);
static B200_180: [Profile; 6] = eight(
    ["1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"],
    [22.425, 43.875, 43.875, 87.75, 87.75, 175.5],
);
static A30: [Profile; 3] = [
    profile("1g.6gb", 5.85, 1, 1, 0b1111),
    profile("2g.12gb", 11.7, 2, 2, 0b0101),
    profile("4g.24gb", 23.4, 4, 4, 0b0001),
];

impl MigGpu {
    /// All types.
    pub const ALL: [MigGpu; 6] = [
        MigGpu::A100_40,
        MigGpu::A100_80,
        MigGpu::H100_80,
        MigGpu::H200_141,
        MigGpu::B200_180,
        MigGpu::A30,
    ];

    /// The name in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MigGpu::A100_40 => "A100-40",
            MigGpu::A100_80 => "A100-80",
            MigGpu::H100_80 => "H100-80",
            MigGpu::H200_141 => "H200-141",
            MigGpu::B200_180 => "B200-180",
            MigGpu::A30 => "A30",
        }
    }

    /// The type of this name.
    ///
    /// # Errors
    /// A name that is none of [`MigGpu::ALL`].
    pub fn from_name(name: &str) -> Result<MigGpu, ConfigError> {
        let found = MigGpu::ALL.into_iter().find(|gpu| gpu.name() == name);
        found.ok_or_else(|| ConfigError {
            key: "mig.gpu".into(),
            value: name.into(),
            allowed: MigGpu::ALL.map(MigGpu::name).join(", "),
            hint: "only these types are cut into instances; leave mig out for others".into(),
        })
    }

    /// Its profiles, smallest first. An index into this list names a profile everywhere in this file.
    #[must_use]
    pub fn profiles(self) -> &'static [Profile] {
        match self {
            MigGpu::A100_40 => &A100_40,
            MigGpu::A100_80 | MigGpu::H100_80 => &A100_80,
            MigGpu::H200_141 => &H200_141,
            MigGpu::B200_180 => &B200_180,
            MigGpu::A30 => &A30,
        }
    }

    /// Compute slices of the whole GPU.
    #[must_use]
    pub fn compute_slices(self) -> u8 {
        if self == MigGpu::A30 { 4 } else { 7 }
    }

    /// Memory slices of the whole GPU.
    #[must_use]
    pub fn memory_slices(self) -> u8 {
        if self == MigGpu::A30 { 4 } else { 8 }
    }

    /// The index of the profile of this name.
    ///
    /// # Errors
    /// A name that this type does not have.
    pub fn profile_index(self, name: &str) -> Result<usize, ConfigError> {
        let found = self.profiles().iter().position(|profile| profile.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.profiles().iter().map(|profile| profile.name).collect();
            ConfigError {
                key: "mig.profile".into(),
                value: name.into(),
                allowed: names.join(", "),
                hint: format!("these are the profiles of {}", self.name()),
            }
        })
    }

    /// The smallest profile with at least this much compute and memory: fewest compute slices, then fewest memory
    /// slices. `None` where not even the whole GPU suffices.
    #[must_use]
    pub fn smallest_profile(self, compute_slices: u8, memory_gib: f64) -> Option<usize> {
        // Profiles are sorted by (compute slices, memory slices).
        let mut profiles = self.profiles().iter();
        profiles
            .position(|profile| profile.compute_slices >= compute_slices && profile.memory_gib >= memory_gib)
    }

    /// Every legal set of instances, the empty one first, each as a state. A few hundred; for tests, tables and
    /// planners, not for the step path.
    #[must_use]
    pub fn layouts(self) -> Vec<MigState> {
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
    pub const EMPTY: MigState = MigState {
        memory_mask: 0,
        compute_used: 0,
        starting: [0; MAX_SLICES],
    };

    /// Memory slices in use, one bit each.
    #[must_use]
    pub fn memory_mask(&self) -> u8 {
        self.memory_mask
    }

    /// Compute slices in use.
    #[must_use]
    pub fn compute_used(&self) -> u8 {
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
    pub fn profile_at(&self, start: u8) -> Option<usize> {
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
    pub fn can_place_at(&self, gpu: MigGpu, index: usize, start: u8) -> bool {
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
    pub fn validate(&self, gpu: MigGpu) -> Result<(), ConfigError> {
        let fail = |value: String, allowed: &str| {
            Err(ConfigError {
                key: "mig.state".into(),
                value,
                allowed: allowed.into(),
                hint: format!(
                    "rebuild the state by placing instances on an empty {}",
                    gpu.name()
                ),
            })
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
    (fraction / utilisation).powf(SPEED_EXPONENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const H100: MigGpu = MigGpu::H100_80;
    const ONE: usize = 0;
    const TWO: usize = 2;
    const THREE: usize = 3;
    const FOUR: usize = 4;
    const SEVEN: usize = 5;

    fn built(instances: &[(usize, u8)]) -> MigState {
        let mut state = MigState::EMPTY;
        for (index, start) in instances {
            state.place(H100, *index, *start);
        }
        state
    }

    #[test]
    fn two_3g_fill_the_memory_and_leave_one_compute_slice_that_nothing_can_use() {
        let state = built(&[(THREE, 0), (THREE, 4)]);
        assert_eq!((state.memory_mask(), state.compute_used()), (0xFF, 6));
        assert_eq!(state.room(H100), 0);
    }

    #[test]
    fn a_4g_goes_with_a_3g_but_not_with_another_4g() {
        let state = built(&[(FOUR, 0)]);
        assert_eq!(state.can_place(H100, FOUR), None);
        assert_eq!(state.can_place(H100, THREE), Some(4));
    }

    #[test]
    fn seven_1g_leave_one_memory_slice_unused() {
        let mut state = MigState::EMPTY;
        for _ in 0..7 {
            let start = state.can_place(H100, ONE).unwrap();
            state.place(H100, ONE, start);
        }
        assert_eq!((state.memory_mask(), state.compute_used()), (0b0111_1111, 7));
        assert_eq!(state.room(H100), 0);
    }

    #[test]
    fn a_3g_at_0_blocks_the_1g_starts_0_to_3_only() {
        let state = built(&[(THREE, 0)]);
        let open: Vec<u8> = (0..8)
            .filter(|start| state.can_place_at(H100, ONE, *start))
            .collect();
        assert_eq!(open, [4, 5, 6]);
    }

    #[test]
    fn a_7g_needs_the_whole_gpu() {
        let mut state = built(&[(ONE, 6)]);
        assert_eq!(state.can_place(H100, SEVEN), None);
        assert_eq!(state.remove(H100, 6), ONE);
        assert_eq!(state.can_place(H100, SEVEN), Some(0));
        state.place(H100, SEVEN, 0);
        assert!((0..6).all(|index| state.can_place(H100, index).is_none()));
    }

    #[test]
    fn max_instances_are_what_the_guide_prints_and_what_can_be_packed() {
        let printed = |gpu: MigGpu| -> Vec<u8> {
            gpu.profiles()
                .iter()
                .map(|profile| profile.max_instances)
                .collect()
        };
        assert_eq!(printed(MigGpu::A100_40), [7, 4, 3, 2, 1, 1]);
        assert_eq!(printed(MigGpu::A30), [4, 2, 1]);
        for gpu in MigGpu::ALL {
            for (index, profile) in gpu.profiles().iter().enumerate() {
                let mut state = MigState::EMPTY;
                let mut placed = 0;
                while let Some(start) = state.can_place(gpu, index) {
                    state.place(gpu, index, start);
                    placed += 1;
                }
                assert_eq!(placed, profile.max_instances, "{} {}", gpu.name(), profile.name);
            }
        }
    }

    #[test]
    fn small_instances_go_where_they_keep_the_large_ones_possible() {
        // 1g on an empty GPU: slice 6 keeps 4g, 3g at 0 and all three 2g starts but 7g; slice 7 is lost to all anyway.
        assert_eq!(MigState::EMPTY.can_place(H100, ONE), Some(6));
        assert_eq!(MigState::EMPTY.can_place(H100, TWO), Some(4));
        assert_eq!(MigState::EMPTY.can_place(H100, THREE), Some(4));
        // The second 1g fills the half that is already broken.
        assert!(built(&[(ONE, 6)]).can_place(H100, ONE).unwrap() >= 4);
    }

    /// All sets of disjoint placements within the compute slices, by trying every subset.
    fn brute_force(gpu: MigGpu) -> BTreeSet<Vec<(usize, u8)>> {
        let mut places = Vec::new();
        for (index, profile) in gpu.profiles().iter().enumerate() {
            for start in (0..8).filter(|start| profile.starts >> start & 1 == 1) {
                places.push((index, start));
            }
        }
        let mut legal = BTreeSet::new();
        'subset: for subset in 0_u32..1 << places.len() {
            let mut count = [0_u8; 8];
            let mut compute = 0;
            let mut chosen: Vec<(usize, u8)> = Vec::new();
            for (bit, (index, start)) in places.iter().enumerate() {
                if subset >> bit & 1 == 0 {
                    continue;
                }
                let profile = &gpu.profiles()[*index];
                compute += profile.compute_slices;
                for slice in *start..start + profile.memory_slices {
                    count[usize::from(slice)] += 1;
                }
                chosen.push((*index, *start));
            }
            if compute > gpu.compute_slices() || count.iter().any(|used| *used > 1) {
                continue 'subset;
            }
            chosen.sort_by_key(|(_, start)| *start);
            legal.insert(chosen);
        }
        legal
    }

    #[test]
    fn the_incremental_search_finds_exactly_the_layouts_of_brute_force() {
        for gpu in [MigGpu::H100_80, MigGpu::A30] {
            let layouts = gpu.layouts();
            let found: BTreeSet<Vec<(usize, u8)>> =
                layouts.iter().map(|state| state.instances().collect()).collect();
            assert_eq!(found.len(), layouts.len(), "a layout was found twice");
            assert_eq!(found, brute_force(gpu));
            assert!(layouts.iter().all(|state| state.validate(gpu).is_ok()));
        }
    }

    #[test]
    fn without_the_double_memory_1g_there_are_the_19_full_layouts_of_the_guide() {
        // Left half: 4g | 3g | 2g+2g | 2g+1g+1g | 1g+1g+2g | 1g x4; right half: 3g | 2g+1g | 1g x3; or one 7g:
        // 6 x 3 + 1 = 19, counting a layout as full when no further instance fits.
        let plain: Vec<MigState> = H100
            .layouts()
            .into_iter()
            .filter(|state| state.instances().all(|(index, _)| index != 1))
            .collect();
        let full = |state: &&MigState| {
            (0..6).all(|index| index == 1 || state.can_place(H100, index).is_none()) && !state.is_empty()
        };
        assert_eq!(plain.iter().filter(full).count(), 19);
    }

    #[test]
    fn every_mix_that_fits_at_all_fits_when_placed_by_the_rule_from_large_to_small() {
        for gpu in MigGpu::ALL {
            for layout in gpu.layouts() {
                let mut mix: Vec<usize> = layout.instances().map(|(index, _)| index).collect();
                mix.sort_by_key(|index| {
                    let profile = &gpu.profiles()[*index];
                    std::cmp::Reverse((profile.memory_slices, profile.compute_slices))
                });
                let mut state = MigState::EMPTY;
                for index in &mix {
                    let start = state.can_place(gpu, *index);
                    assert!(start.is_some(), "{} {mix:?} stuck at {state:?}", gpu.name());
                    state.place(gpu, *index, start.unwrap());
                }
            }
        }
    }

    #[test]
    fn the_rule_gets_stuck_less_often_than_the_lowest_start() {
        // Over every order of every mix of three profiles that fits somehow: how many get all three placed?
        let fits = |mix: &[usize], lowest: bool| {
            let mut state = MigState::EMPTY;
            mix.iter().all(|index| {
                let first = (0..8).find(|start| state.can_place_at(H100, *index, *start));
                let start = if lowest {
                    first
                } else {
                    state.can_place(H100, *index)
                };
                start.map(|start| state.place(H100, *index, start)).is_some()
            })
        };
        let (mut by_rule, mut by_lowest) = (0, 0);
        for code in 0..6_usize.pow(3) {
            let mix = [code % 6, code / 6 % 6, code / 36];
            by_rule += u32::from(fits(&mix, false));
            by_lowest += u32::from(fits(&mix, true));
        }
        assert!(by_rule > by_lowest, "{by_rule} against {by_lowest}");
    }

    #[test]
    fn gromacs_on_slices_of_an_a100_is_met_within_two_percent() {
        // ns/day on 10gb (1g), 20gb (2g), 40gb (3g) and the full GPU, relative to the full one.
        for (slices, published) in [(1.0, 0.365), (2.0, 0.685), (3.0, 0.974), (7.0, 1.0)] {
            let model = mig_speed(slices / 7.0, 0.44);
            assert!((model / published - 1.0).abs() < 0.02, "{slices}: {model}");
        }
    }

    #[test]
    fn unknown_names_list_what_exists() {
        let text = MigGpu::from_name("V100").unwrap_err().to_string();
        assert!(text.contains("V100") && text.contains("A100-80"), "{text}");
        let text = MigGpu::A30.profile_index("3g.20gb").unwrap_err().to_string();
        assert!(text.contains("2g.12gb"), "{text}");
        assert_eq!(H100.profile_index("2g.20gb").unwrap(), TWO);
        assert_eq!(H100.smallest_profile(1, 15.0), Some(1));
        assert_eq!(H100.smallest_profile(2, 30.0), Some(THREE));
        assert_eq!(H100.smallest_profile(1, 90.0), None);
    }

    #[test]
    fn a_state_whose_sums_do_not_agree_is_refused() {
        let mut state = built(&[(TWO, 0)]);
        state.validate(H100).unwrap();
        state.compute_used = 3;
        assert!(state.validate(H100).is_err());
        state.starting[7] = 4;
        assert!(state.validate(H100).unwrap_err().to_string().contains("slice 7"));
    }

    proptest! {
        #[test]
        fn placing_and_removing_is_the_identity(
            gpu in 0_usize..6,
            choices in prop::collection::vec((0_usize..6, any::<bool>(), 0_usize..8), 1..40),
        ) {
            let gpu = MigGpu::ALL[gpu];
            let mut state = MigState::EMPTY;
            for (index, remove, which) in choices {
                if remove && !state.is_empty() {
                    let instances: Vec<_> = state.instances().collect();
                    let (_, start) = instances[which % instances.len()];
                    state.remove(gpu, start);
                } else if let Some(start) = state.can_place(gpu, index % gpu.profiles().len()) {
                    let before = state;
                    state.place(gpu, index % gpu.profiles().len(), start);
                    let mut after = state;
                    prop_assert_eq!(after.remove(gpu, start), index % gpu.profiles().len());
                    prop_assert_eq!(after, before);
                }
                prop_assert!(state.validate(gpu).is_ok());
            }
        }

        #[test]
        fn a_larger_slice_and_a_smaller_job_are_never_slower(
            slices in 1_u8..7, used in 0.01_f64..1.0,
        ) {
            let fraction = f64::from(slices) / 7.0;
            let speed = mig_speed(fraction, used);
            prop_assert!(speed > 0.0 && speed <= 1.0);
            prop_assert!(mig_speed(f64::from(slices + 1) / 7.0, used) >= speed);
            prop_assert!(mig_speed(fraction, used * 0.9) >= speed);
        }
    }
}
