//! Where gradients are taken: the CPU, or a device of a feature that this build has.
//!
//! Only gradients leave the CPU. Rollouts, Adam and checkpoints work on the flat parameters in main memory, so a run can go
//! on on another device; what differs then is rounding. Bit-equal results are promised on the CPU alone.
//!
//! A driver that is missing shows only at its first use, as a panic somewhere below. [`Device::probe`] finds it out beforehand.

use pleach_network::Layout;

use crate::error::Error;

/// Numbers in the largest tensor of a part of a minibatch: 64 MiB, half of what every Vulkan device can bind.
///
/// # Source
/// `maxStorageBufferRange` of the Vulkan specification, "Required Limits": at least 2^27 bytes.
const NUMBERS_MAX: usize = 1 << 24;

/// A kind of device, whether this build has it or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// The first of NVIDIA's GPUs; needs its driver and the run-time compiler NVRTC, both loaded when it is first used.
    Cuda,
    /// The best adapter of Vulkan, Metal or DirectX 12, software ones included.
    Wgpu,
}

impl Device {
    /// All kinds.
    pub const ALL: [Device; 3] = [Device::Cpu, Device::Cuda, Device::Wgpu];

    /// Its name on the command line, and the feature that brings it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Cuda => "cuda",
            Device::Wgpu => "wgpu",
        }
    }

    /// The device of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Device> {
        Device::ALL.into_iter().find(|device| device.name() == name)
    }

    /// Whether this build has it.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        match self {
            Device::Cpu => true,
            Device::Cuda => cfg!(feature = "cuda"),
            Device::Wgpu => cfg!(feature = "wgpu"),
        }
    }

    /// Decisions whose gradient a device that is not the CPU takes at once where none has more than `num_candidates`.
    pub(crate) fn decisions_at_once(layout: &Layout, num_candidates: usize) -> usize {
        let width = layout.config.hidden.max(layout.num_features);
        (NUMBERS_MAX / (num_candidates.max(1) * width)).max(1)
    }

    pub(crate) fn missing(self) -> Error {
        let name = self.name();
        self.failed(&format!(
            "this build does not have it; build with: cargo build --release --features {name}"
        ))
    }

    /// An error of the device, on one line.
    pub(crate) fn failed(self, reason: &str) -> Error {
        let lines = reason.lines().map(str::trim).filter(|line| !line.is_empty());
        let reason = lines.take(4).collect::<Vec<_>>().join(" ");
        Error::Device {
            device: self.name(),
            reason: reason.chars().take(400).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::Spaces;
    use pleach_network::NetworkConfig;

    #[test]
    fn a_part_of_a_minibatch_stays_below_what_every_vulkan_device_can_bind() {
        let spaces = Spaces::new(3, 64, 32);
        let layout = Layout::new(NetworkConfig::default(), spaces).unwrap();
        // 2^24 numbers over 64 candidates with 32 numbers each: 8,192 decisions.
        assert_eq!(Device::decisions_at_once(&layout, 64), 8192);
        assert_eq!(Device::decisions_at_once(&layout, 1 << 30), 1);
    }
}
