//! Quantities of the Kubernetes API as numbers: `4`, `500m`, `2Gi`, `1e3`.
//!
//! # Source
//! The grammar of `resource.Quantity` in the API reference: a decimal, then a decimal exponent, a binary or a decimal suffix.

/// Its value; none where the text is no quantity, is negative, or is not finite.
#[must_use]
pub fn value(text: &str) -> Option<f64> {
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b'+';
    let end = text
        .bytes()
        .position(|byte| !is_number(byte))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        "Ei" => 1_152_921_504_606_846_976.0,
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            10_f64.powi(exponent.clamp(-400, 400))
        }
    };
    let value = number * factor;
    value.is_finite().then_some(value)
}

/// A whole number of devices; none where it is none, or has parts.
#[must_use]
pub fn count(text: &str) -> Option<u32> {
    let value = value(text)?;
    (value.fract() == 0.0 && value <= f64::from(u32::MAX)).then_some(value as u32)
}

/// Thousandths, rounded up; 0 where it is no quantity.
#[must_use]
pub fn milli(text: &str) -> u64 {
    value(text).map_or(0, |value| (value * 1e3).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_the_api_reference_writes_them() {
        for (text, expected) in [
            ("4", 4.0),
            ("0.5", 0.5),
            ("500m", 0.5),
            ("2Gi", 2_147_483_648.0),
            ("1k", 1000.0),
            ("1e3", 1000.0),
            ("12E2", 1200.0),
            ("3E", 3e18),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for text in ["", "x", "-1", "1x", "1ee", "1.2.3", "e3", "1e99999", "NaN", "inf"] {
            assert_eq!(value(text), None, "{text}");
        }
        assert_eq!(count("8"), Some(8));
        assert_eq!(count("500m"), None);
        assert_eq!(milli("1.5"), 1500);
    }
}
