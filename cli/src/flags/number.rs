//! Numbers of the command line with their ranges, refused with the allowed set and a hint.

/// A number above 0.
///
/// # Errors
/// A sentence with the allowed set.
pub fn positive(text: &str) -> Result<f64, String> {
    within(text, f64::MIN_POSITIVE, 1e12, "a number above 0")
}

/// A number of at least 0.
///
/// # Errors
/// A sentence with the allowed set.
pub fn not_negative(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1e12, "a number of at least 0")
}

/// Offered load: GPU-time that arrives per GPU-time there is.
///
/// # Errors
/// A sentence with the allowed set.
pub fn load(text: &str) -> Result<f64, String> {
    within(
        text,
        0.01,
        10.0,
        "0.01 to 10; 1 offers exactly what the cluster can do, try 0.8",
    )
}

/// How far a search moves at first, over what is usual.
///
/// # Errors
/// A sentence with the allowed set.
pub fn step(text: &str) -> Result<f64, String> {
    within(text, 0.01, 10.0, "0.01 to 10, try 0.3")
}

fn within(text: &str, low: f64, high: f64, allowed: &str) -> Result<f64, String> {
    let value: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("not a number; allowed is {allowed}"))?;
    if value.is_finite() && (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(format!("allowed is {allowed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_the_allowed_set() {
        assert_eq!(load("0.8"), Ok(0.8));
        assert!(load("0").unwrap_err().contains("0.01 to 10"));
        assert!(positive("NaN").is_err() && positive("0").is_err() && positive("inf").is_err());
        assert_eq!(not_negative("0"), Ok(0.0));
        assert!(not_negative("-1").is_err() && not_negative("x").unwrap_err().contains("not a number"));
    }
}
