//! Where gradients are taken: the CPU, or a device of a feature that this build has.
//!
//! Only gradients leave the CPU. Rollouts, Adam and checkpoints work on the flat parameters in main memory, so a run can go
//! on on another device; what differs then is rounding. Bit-equal results are promised on the CPU alone.
//!
//! A driver that is missing shows only at its first use, as a panic somewhere below. [`Device::probe`] takes a small gradient
//! before anything else begins, and turns whatever happens there into one line.

use crate::error::Error;
use crate::network::{self, Cotangents};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::padded;
use crate::parameters::Layout;
use crate::rows::Rows;

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

    /// Takes a small gradient on it and says what it is, in words. While that lasts, no panic of any thread is printed.
    ///
    /// # Errors
    /// [`Error::Device`] where this build does not have it, a driver is missing, or the gradient is not the CPU's.
    pub fn probe(self) -> Result<String, Error> {
        match self {
            Device::Cpu => Ok("the CPU".to_owned()),
            #[cfg(feature = "cuda")]
            Device::Cuda => probe::once(self, &probe::CUDA, || "the first CUDA device".to_owned()),
            #[cfg(feature = "wgpu")]
            Device::Wgpu => probe::once(self, &probe::WGPU, probe::wgpu_adapter),
            #[allow(unreachable_patterns)]
            _ => Err(self.missing()),
        }
    }

    /// The gradient of a loss by the parameters, as [`network::gradient`].
    pub(crate) fn gradient(
        self,
        layout: &Layout,
        flat: &[f32],
        rows: &Rows,
        loss: impl FnOnce(&Cotangents) -> Cotangents,
    ) -> Result<Vec<f32>, Error> {
        match self {
            Device::Cpu => network::gradient(layout, flat, rows, loss),
            #[cfg(feature = "cuda")]
            Device::Cuda => {
                use burn::backend::{Autodiff, Cuda};
                padded::gradient::<Autodiff<Cuda>>(layout, flat, rows, loss)
                    .map_err(|reason| self.failed(&reason))
            }
            #[cfg(feature = "wgpu")]
            Device::Wgpu => {
                use burn::backend::{Autodiff, Wgpu};
                padded::gradient::<Autodiff<Wgpu>>(layout, flat, rows, loss)
                    .map_err(|reason| self.failed(&reason))
            }
            #[allow(unreachable_patterns)]
            _ => Err(self.missing()),
        }
    }

    /// Decisions whose gradient a device that is not the CPU takes at once where none has more than `num_candidates`.
    pub(crate) fn decisions_at_once(layout: &Layout, num_candidates: usize) -> usize {
        let width = layout.config.hidden.max(layout.num_features);
        let num_rows = layout
            .sets()
            .map(|set| set.num_rows)
            .fold(num_candidates, usize::max);
        (NUMBERS_MAX / (num_rows.max(1) * width)).max(1)
    }

    fn missing(self) -> Error {
        let name = self.name();
        self.failed(&format!(
            "this build does not have it; build with: cargo build --release --features {name}"
        ))
    }

    /// An error of the device, on one line.
    fn failed(self, reason: &str) -> Error {
        let lines = reason.lines().map(str::trim).filter(|line| !line.is_empty());
        let reason = lines.take(4).collect::<Vec<_>>().join(" ");
        Error::Device {
            device: self.name(),
            reason: reason.chars().take(400).collect(),
        }
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod probe {
    //! The first use of a device.

    use std::panic::{self, AssertUnwindSafe};
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};

    use pleach_env::seed::Seed;
    use pleach_env::vector::Spaces;

    use super::Device;
    use crate::error::Error;
    use crate::network::Cotangents;
    use crate::parameters::{Layout, NetworkConfig};
    use crate::rows::Rows;

    /// What a device is, or why it cannot be used: found out once in the life of a program.
    type Found = OnceLock<Result<String, String>>;
    #[cfg(feature = "cuda")]
    pub(super) static CUDA: Found = OnceLock::new();
    #[cfg(feature = "wgpu")]
    pub(super) static WGPU: Found = OnceLock::new();

    /// Largest difference to the CPU's gradient, whose numbers are of order 1.
    const TOLERANCE: f32 = 1e-3;

    pub(super) fn once(device: Device, found: &Found, describe: fn() -> String) -> Result<String, Error> {
        let needs = match device {
            Device::Cuda => "NVIDIA's driver and NVRTC with its headers, of the CUDA toolkit",
            _ => {
                "a driver of Vulkan, Metal or DirectX 12 (in software on Debian: libvulkan1 and mesa-vulkan-drivers)"
            }
        };
        let found = found.get_or_init(|| {
            quietly(|| {
                let description = describe();
                compare(device).map_err(|error| error.to_string())?;
                Ok(description)
            })
        });
        found.clone().map_err(|reason| {
            device.failed(&format!(
                "it cannot be used: {} It needs {needs}; without --device gradients are taken on the CPU",
                sentence(&reason)
            ))
        })
    }

    /// The first line, without what was looked for or comes next, with a full stop.
    fn sentence(reason: &str) -> String {
        let line = reason
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or("no reason given");
        let line = [" - searched", ". Falling back"]
            .into_iter()
            .fold(line, |line, end| line.split(end).next().unwrap_or(line));
        let line: String = line.chars().take(200).collect();
        format!("{}.", line.trim_end_matches('.'))
    }

    /// Runs `work`. Where it fails, the first panic of any thread says why best: what follows from it says less.
    fn quietly<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let first = Arc::new(Mutex::new(None));
        let before = panic::take_hook();
        let heard = Arc::clone(&first);
        panic::set_hook(Box::new(move |panic| {
            let message = panic.payload_as_str().unwrap_or("a panic without words");
            let mut first = heard.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| message.to_owned());
        }));
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        panic::set_hook(before);
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(reason)) => Err(first.unwrap_or(reason)),
            Err(_) => Err(first.unwrap_or_default()),
        }
    }

    /// Compares a gradient of three decisions with the CPU's.
    fn compare(device: Device) -> Result<(), Error> {
        let spaces = Spaces::plain(1, 3, 2);
        let config = NetworkConfig {
            hidden: 8,
            context: 8,
            heads: 1,
        };
        let layout = Layout::new(config, spaces)?;
        let flat = layout.initial(Seed(1));
        let mut rows = Rows::new(spaces);
        for num_candidates in 1..=3 {
            let mask = [true, num_candidates > 1, num_candidates > 2];
            rows.push(&[0.5], &[0.1, 0.9, 0.4, -0.2, -0.7, 0.3], &mask);
        }
        let loss = |outputs: &Cotangents| Cotangents {
            logits: outputs.logits.iter().map(|logit| logit + 1.0).collect(),
            values: outputs.values.iter().map(|value| value - 1.0).collect(),
        };
        let cpu = Device::Cpu.gradient(&layout, &flat, &rows, loss)?;
        let here = device.gradient(&layout, &flat, &rows, loss)?;
        let differs = |(a, b): (&f32, &f32)| (a - b).abs() > TOLERANCE || !b.is_finite();
        if cpu.iter().zip(&here).any(differs) {
            return Err(device.failed("its gradient of a small network is not the CPU's"));
        }
        Ok(())
    }

    /// Opens the adapter and names it: `llvmpipe (LLVM 15.0.6, 256 bits) (Cpu, Vulkan)`.
    #[cfg(feature = "wgpu")]
    pub(super) fn wgpu_adapter() -> String {
        use burn::backend::wgpu::graphics::AutoGraphicsApi;
        use burn::backend::wgpu::{RuntimeOptions, WgpuDevice, init_setup};
        let setup = init_setup::<AutoGraphicsApi>(&WgpuDevice::default(), RuntimeOptions::default());
        let adapter = setup.adapter.get_info();
        format!(
            "{} ({:?}, {})",
            adapter.name, adapter.device_type, adapter.backend
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::{ENTITIES, PLAIN, network_of, rows};
    use pleach_env::vector::Spaces;

    #[test]
    fn a_probe_answers_on_one_line_and_always_the_same() {
        for device in Device::ALL {
            let words = |found: Result<String, Error>| found.map_err(|error| error.to_string());
            let (first, second) = (words(device.probe()), words(device.probe()));
            assert_eq!(first, second);
            assert_eq!(Device::named(device.name()), Some(device));
            if let Err(reason) = first {
                let expected = if device.is_built_in() {
                    "it cannot be used: "
                } else {
                    "this build does not have it; build with: cargo build --release --features "
                };
                assert!(
                    reason.starts_with(&format!("device {}: {expected}", device.name())),
                    "{reason}"
                );
                assert_eq!(reason.lines().count(), 1, "{reason}");
            }
        }
        assert_eq!(Device::named("gpu"), None);
    }

    #[test]
    fn gradients_on_a_device_that_this_build_lacks_are_an_error() {
        let ((layout, flat), rows) = (network_of((PLAIN, 0)), rows(PLAIN, 2));
        for device in Device::ALL.into_iter().filter(|device| !device.is_built_in()) {
            let error = device.gradient(&layout, &flat, &rows, Clone::clone).unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{error}");
        }
    }

    #[test]
    fn a_part_of_a_minibatch_stays_below_what_every_vulkan_device_can_bind() {
        let spaces = Spaces::plain(3, 64, 32);
        let layout = Layout::new(crate::parameters::NetworkConfig::default(), spaces).unwrap();
        // 2^24 numbers over 64 candidates with 32 numbers each: 8,192 decisions.
        assert_eq!(Device::decisions_at_once(&layout, 64), 8192);
        assert_eq!(Device::decisions_at_once(&layout, 1 << 30), 1);
        // Two candidates and four rows of entities, 16 numbers each: the rows count.
        let (layout, _) = network_of((ENTITIES, 0));
        assert_eq!(Device::decisions_at_once(&layout, 2), (1 << 24) / (4 * 16));
    }
}
