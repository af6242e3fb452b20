//! The profiles of each GPU type that can be cut: sizes, memory, allowed starts.
//!
//! # Source
//! NVIDIA MIG user guide, profile and placement tables (`nvidia-smi mig -lgip`, `-lgipp`).

use serde::{Deserialize, Serialize};

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
    pub(super) const fn mask(&self, start: u8) -> u8 {
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
    pub(crate) fn compute_slices(self) -> u8 {
        if self == MigGpu::A30 { 4 } else { 7 }
    }

    /// Memory slices of the whole GPU.
    #[must_use]
    pub(crate) fn memory_slices(self) -> u8 {
        if self == MigGpu::A30 { 4 } else { 8 }
    }

    /// The smallest profile with at least this much compute and memory: fewest compute slices, then fewest memory
    /// slices. `None` where not even the whole GPU suffices.
    #[must_use]
    pub(crate) fn smallest_profile(self, compute_slices: u8, memory_gib: f64) -> Option<usize> {
        // Profiles are sorted by (compute slices, memory slices).
        let mut profiles = self.profiles().iter();
        profiles
            .position(|profile| profile.compute_slices >= compute_slices && profile.memory_gib >= memory_gib)
    }
}
