//! Eight numbers at once, on whatever vector unit the processor has.
//!
//! Code is written once over a [`Simd`] and compiled for each. All units give the same bits: a product and a sum are rounded
//! together, once, everywhere.
//!
//! No closures around what a unit does: a closure is compiled for any processor, and a call is all that is left of it.
#![allow(
    clippy::needless_range_loop,
    reason = "indices that the compiler knows keep sums in registers"
)]

use crate::parameters::LANES;

/// Eight numbers at once.
pub(crate) trait Simd: Copy {
    /// Eight numbers.
    type Lanes: Copy;
    /// Eight times the same.
    fn splat(self, value: f32) -> Self::Lanes;
    /// Eight from memory.
    fn load(self, values: &[f32; LANES]) -> Self::Lanes;
    /// Eight to memory.
    fn store(self, lanes: Self::Lanes) -> [f32; LANES];
    /// `a b + c`, rounded once.
    fn mul_add(self, a: Self::Lanes, b: Self::Lanes, c: Self::Lanes) -> Self::Lanes;
    /// Runs `work` in a function that is compiled for this unit.
    fn perform<W: Work>(self, work: W) -> W::Output;
}

/// Any processor; `mul_add` is a call where there is no instruction for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Simd for Plain {
    type Lanes = [f32; LANES];

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Lanes {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Lanes {
        *values
    }

    #[inline(always)]
    fn store(self, lanes: Self::Lanes) -> [f32; LANES] {
        lanes
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Lanes, b: Self::Lanes, c: Self::Lanes) -> Self::Lanes {
        let mut sum = c;
        for lane in 0..LANES {
            sum[lane] = a[lane].mul_add(b[lane], c[lane]);
        }
        sum
    }

    fn perform<W: Work>(self, work: W) -> W::Output {
        work.run(self)
    }
}

#[cfg(target_arch = "x86_64")]
impl Simd for pulp::x86::V3 {
    type Lanes = pulp::f32x8;

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Lanes {
        self.splat_f32x8(value)
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Lanes {
        pulp::cast(*values)
    }

    #[inline(always)]
    fn store(self, lanes: Self::Lanes) -> [f32; LANES] {
        pulp::cast(lanes)
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Lanes, b: Self::Lanes, c: Self::Lanes) -> Self::Lanes {
        self.mul_add_f32x8(a, b, c)
    }

    #[inline(always)]
    fn perform<W: Work>(self, work: W) -> W::Output {
        pulp::Simd::vectorize(self, OnV3(work, self))
    }
}

/// Something to compute on whatever unit there is. `run` is to be inlined, so that all of it is compiled for that unit.
pub(crate) trait Work {
    /// What comes out.
    type Output;
    /// Computes it.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `work` on the best unit of this processor.
pub(crate) fn on_this_processor<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.perform(work);
    }
    Plain.perform(work)
}

#[cfg(target_arch = "x86_64")]
struct OnV3<W>(W, pulp::x86::V3);

#[cfg(target_arch = "x86_64")]
impl<W: Work> pulp::WithSimd for OnV3<W> {
    type Output = W::Output;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> W::Output {
        self.0.run(self.1)
    }
}
