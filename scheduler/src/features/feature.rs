//! One number that a policy may read: its unit and range, and how it becomes the input of a network or a tree.

use crate::portable_math::pow;

/// How a raw value becomes a network's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// raw / divisor
    Linear(f32),
    /// log10(1 + raw) / divisor; raw is not negative.
    Log(f32),
}

impl Scale {
    /// The scaled value.
    #[must_use]
    #[inline]
    pub fn apply(self, raw: f32) -> f32 {
        match self {
            Scale::Linear(divisor) => raw / divisor,
            Scale::Log(divisor) => log10_1p(raw) / divisor,
        }
    }

    /// The raw value of a scaled one, for showing thresholds in their unit.
    #[must_use]
    pub fn invert(self, scaled: f32) -> f64 {
        match self {
            Scale::Linear(divisor) => f64::from(scaled) * f64::from(divisor),
            Scale::Log(divisor) => pow(10.0, f64::from(scaled) * f64::from(divisor)) - 1.0,
        }
    }
}

/// log10(1 + x) for x >= 0 to about 2e-6, from the bits of the float and a polynomial.
///
/// Own arithmetic rather than the system's `log10f`, whose last bit differs between C libraries: the same seed must
/// give the same bytes on every machine.
///
/// # Source
/// log2 of the mantissa m through s = (m - 1) / (m + 1): ln m = 2 (s + s^3/3 + s^5/5 + s^7/7 + s^9/9), m in [0.7, 1.41].
#[must_use]
#[inline]
pub fn log10_1p(x: f32) -> f32 {
    let y = 1.0 + x;
    let bits = y.to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
    // Both ways are worked out, so that many numbers can be scaled side by side.
    let large = mantissa > std::f32::consts::SQRT_2;
    let mantissa = if large { mantissa * 0.5 } else { mantissa };
    let exponent = exponent + i32::from(large);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let q = s * s;
    let ln = 2.0 * s * (1.0 + q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q * (1.0 / 9.0)))));
    exponent as f32 * std::f32::consts::LOG10_2 + ln * std::f32::consts::LOG10_E
}

/// One number that a policy may read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feature {
    /// Name, the same in trees, files and docs.
    pub name: &'static str,
    /// Unit of the raw value; empty for pure numbers.
    pub unit: &'static str,
    /// Least raw value; smaller ones are clamped.
    pub min: f32,
    /// Largest raw value; larger ones are clamped.
    pub max: f32,
    /// How the raw value is scaled.
    pub scale: Scale,
    /// What it says.
    pub doc: &'static str,
}

impl Feature {
    /// Clamps and scales a raw value. NaN becomes the least value.
    #[must_use]
    #[inline]
    pub fn encode(&self, raw: f32) -> f32 {
        self.scale.apply(self.clamp(raw))
    }

    /// The raw value within the range. NaN becomes the least value.
    #[must_use]
    #[inline]
    pub(crate) fn clamp(&self, raw: f32) -> f32 {
        // Comparisons that say what becomes of NaN are one instruction each; `f32::max` is several.
        let raw = if raw > self.min { raw } else { self.min };
        if raw < self.max { raw } else { self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log10_1p_is_close_to_the_real_one_over_the_whole_range() {
        for power in -60..=120 {
            let x = 10_f64.powf(f64::from(power) / 10.0);
            let expected = (1.0 + f64::from(x as f32)).log10();
            assert!(
                (f64::from(log10_1p(x as f32)) - expected).abs() < 3e-6 * expected.max(1.0),
                "at {x}"
            );
        }
        assert_eq!(log10_1p(0.0), 0.0);
    }
}
