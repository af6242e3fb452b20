//! Devices, and kernels as blocks whose time follows from their sums and bytes.

/// Blocks of 256 threads that an SM takes: 1,024 threads on Turing (CUDA C++ Programming Guide, compute capability 7.5). Xavier
/// has room for 2,048; the same is taken there (*assumed*: registers bound it).
pub const PLACES_PER_SM: u32 = 4;
/// Part of what an SM can issue that one block of 256 threads uses alone. *Assumed*: eight warps do not hide latencies.
pub(super) const ISSUE_PER_BLOCK: f64 = 0.3;
/// Outputs of a convolution that a block computes: 64 channels by 64 pixels. *Assumed*, a usual tile.
const TILE: u32 = 64;
/// Outputs of a matrix times a vector that a block computes. *Assumed.*
const ROWS: u32 = 16;
/// Bytes of a number.
const BYTES: f64 = 4.0;

/// A GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Name.
    pub name: &'static str,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Peak of 32-bit arithmetic, operations a second.
    pub flops: f64,
    /// Memory's bandwidth, bytes a second.
    pub bandwidth: f64,
}

/// Those on which Miriam was measured. NVIDIA's data sheets.
pub const DEVICES: [Device; 2] = [
    Device {
        name: "RTX 2060",
        sms: 30,
        flops: 6.45e12,
        bandwidth: 336e9,
    },
    Device {
        name: "Jetson Xavier",
        sms: 8,
        flops: 1.41e12,
        bandwidth: 137e9,
    },
];

impl Device {
    /// Blocks that run at once.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.sms * PLACES_PER_SM
    }
}

/// Blocks that do the same. A block takes the longer of its computing and its memory; computing is slower where blocks want to
/// issue more than SMs can, memory where they draw more than its bandwidth, each by one factor for all that it holds up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// How many.
    pub blocks: u32,
    /// How many may run at once: all, but for pieces of the same block.
    pub at_once: u32,
    /// Computing of a block alone, ns.
    pub compute_ns: f64,
    /// Memory of a block that draws one SM's part of the bandwidth, ns.
    pub memory_ns: f64,
}

impl Kernel {
    /// From sums and bytes of the whole kernel.
    fn of(device: &Device, blocks: u32, flops: f64, bytes: f64) -> Kernel {
        let per_sm = |whole: f64| whole / f64::from(device.sms) / 1e9;
        let num = f64::from(blocks);
        Kernel {
            blocks,
            at_once: blocks,
            compute_ns: flops / num / (per_sm(device.flops) * ISSUE_PER_BLOCK),
            memory_ns: bytes / num / per_sm(device.bandwidth),
        }
    }

    /// A convolution of square filters and images.
    #[must_use]
    pub fn convolution(device: &Device, channels: [u32; 2], filter: u32, side: u32) -> Kernel {
        let [from, to] = channels.map(f64::from);
        let (filter, pixels) = (f64::from(filter * filter), f64::from(side * side));
        let blocks = channels[1].div_ceil(TILE) * (side * side).div_ceil(TILE);
        let bytes = BYTES * (filter * from * to + (from + to) * pixels);
        Kernel::of(device, blocks, 2.0 * filter * from * to * pixels, bytes)
    }

    /// A matrix times a vector.
    #[must_use]
    pub fn product(device: &Device, from: u32, to: u32) -> Kernel {
        let numbers = f64::from(from) * f64::from(to);
        Kernel::of(device, to.div_ceil(ROWS), 2.0 * numbers, BYTES * numbers)
    }

    /// Time of a block alone, ns.
    #[must_use]
    pub fn alone_ns(&self) -> f64 {
        self.compute_ns.max(self.memory_ns)
    }

    /// Part of an SM's issue that a block uses.
    #[must_use]
    pub fn issue(&self) -> f64 {
        ISSUE_PER_BLOCK * self.compute_ns / self.alone_ns()
    }

    /// Part of one SM's bandwidth that a block draws.
    #[must_use]
    pub fn draw(&self) -> f64 {
        self.memory_ns / self.alone_ns()
    }

    /// The same work in pieces of blocks that take at most so long alone: what an elastic kernel's persistent blocks do from
    /// one look at the critical kernel to the next. Pieces of a block come one after another.
    #[must_use]
    pub fn cut(&self, block_ns_max: f64) -> Kernel {
        let pieces = (self.alone_ns() / block_ns_max).ceil().max(1.0);
        Kernel {
            blocks: self.blocks * pieces as u32,
            at_once: self.at_once,
            compute_ns: self.compute_ns / pieces,
            memory_ns: self.memory_ns / pieces,
        }
    }
}

/// A chain of kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// In order; each begins when the one before has ended.
    pub kernels: Vec<Kernel>,
}
