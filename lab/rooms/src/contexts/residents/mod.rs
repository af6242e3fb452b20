//! Two residents of one edge GPU, a critical and a best-effort network, kernel by kernel and block by block.
//!
//! A [`Network`] is a chain of [`Kernel`]s, a kernel a number of equal blocks. Blocks take places on SMs and share what SMs can
//! issue and the memory's bandwidth. [`simulate`] plays a [`Mix`] of both under a [`Rule`] and tells what critical requests waited
//! and what best effort got done.
//!
//! # What is deliberately not here
//! Fewer threads in a block, the second half of Miriam's elastic kernels, and its search for variants: places are of one size.
//! Caches, registers, split reductions: blocks know computing and memory alone. Measured kernels: none were released that
//! we know of, so sizes follow from the networks' shapes, and the constants of the law are *assumed*.

mod kernel;
mod networks;
mod rule;
mod simulate;

pub use kernel::{DEVICES, Device, Kernel, Network};
pub use networks::{NETWORKS, by_name as network};
pub use rule::{POLICIES, Rule, by_name};
pub use simulate::{Arrivals, Mix, Outcome, simulate};
