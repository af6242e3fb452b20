//! Who computes gradients: plain Rust on a CPU, or Burn on any device.

use serde::{Deserialize, Serialize};

pub use crate::backward::Workspace;
use crate::device::Device;
use crate::error::Error;
use crate::parameters::Layout;
use crate::rows::Rows;
use crate::{backward, network};

/// Who computes gradients. All agree to rounding, so a run is one or the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gradients {
    /// Plain Rust on the CPU, Burn on any other device.
    #[default]
    Auto,
    /// Burn.
    Burn,
    /// Plain Rust, differentiated by hand: every sum in one order and rounded alike whatever the vector unit, and faster on CPUs.
    Plain,
}

impl Gradients {
    /// The gradient of a loss that is a sum over decisions, and the sums of its figures, as [`network::sum_of_gradients`].
    ///
    /// # Errors
    /// As there.
    pub fn sum<'a, const N: usize>(
        self,
        (layout, device, workspace): (&Layout, Device, &'a mut Workspace),
        flat: &[f32],
        rows: &Rows,
        decisions: &[usize],
        loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
    ) -> Result<(&'a mut [f32], [f64; N]), Error> {
        if self == Gradients::Plain || self == Gradients::Auto && device == Device::Cpu {
            return backward::sum_of_gradients((layout, workspace), flat, rows, decisions, loss);
        }
        let (sum, figures) = network::sum_of_gradients((layout, device), flat, rows, decisions, loss)?;
        Ok((workspace.hold(sum), figures))
    }

    /// By reference because serde asks so.
    pub(crate) fn is_default(&self) -> bool {
        *self == Gradients::default()
    }
}
