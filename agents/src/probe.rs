//! The first use of a device: a small gradient before anything else begins, and whatever happens there in one line.

use crate::device::Device;
use crate::error::Error;

impl Device {
    /// Takes a small gradient on it and says what it is, in words. While that lasts, no panic of any thread is printed.
    ///
    /// # Errors
    /// [`Error::Device`] where this build does not have it, a driver is missing, or the gradient is not the CPU's.
    pub fn probe(self) -> Result<String, Error> {
        match self {
            Device::Cpu => Ok("the CPU".to_owned()),
            #[cfg(feature = "cuda")]
            Device::Cuda => first_use::once(self, &first_use::CUDA, || "the first CUDA device".to_owned()),
            #[cfg(feature = "wgpu")]
            Device::Wgpu => first_use::once(self, &first_use::WGPU, first_use::wgpu_adapter),
            #[allow(unreachable_patterns)]
            _ => Err(self.missing()),
        }
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod first_use {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};

    use pleach_env::{Seed, Spaces};
    use pleach_network::{DecisionBatch, Layout, NetworkConfig};

    use crate::device::Device;
    use crate::error::Error;
    use crate::gradients::{Workspace, sum_of_gradients};
    use crate::random::initial_parameters;

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
        let spaces = Spaces::new(1, 3, 2);
        let config = NetworkConfig {
            hidden: 8,
            context: 8,
            heads: 1,
            ..NetworkConfig::default()
        };
        let layout = Layout::new(config, spaces)?;
        let parameters = initial_parameters(&layout, Seed(1));
        let mut rows = DecisionBatch::new(spaces);
        for num_candidates in 1..=3 {
            let mask = [true, num_candidates > 1, num_candidates > 2];
            rows.push(&[0.5], &[0.1, 0.9, 0.4, -0.2, -0.7, 0.3], &mask);
        }
        let loss = |_: usize, logits: &[f32], value: f32, by_logits: &mut [f32]| {
            by_logits
                .iter_mut()
                .zip(logits)
                .for_each(|(by, logit)| *by = logit + 1.0);
            (value - 1.0, [])
        };
        let on = |device: Device| {
            let mut workspace = Workspace::default();
            let on = (&layout, device, &mut workspace);
            let sum: (_, [f64; 0]) = sum_of_gradients(on, &parameters, &rows, &[0, 1, 2], loss)?;
            Ok::<_, Error>(sum.0.to_vec())
        };
        let (cpu, here) = (on(Device::Cpu)?, on(device)?);
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
}
