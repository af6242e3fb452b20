//! Lines of `scontrol -o show ...`: words of the form `Key=value` with blanks between.

use std::collections::BTreeMap;

use super::devices::tres;

/// The first value of each key of a line.
#[must_use]
pub fn values(line: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for (key, value) in line
        .split_ascii_whitespace()
        .filter_map(|word| word.split_once('='))
    {
        found.entry(key).or_insert(value);
    }
    found
}

/// A number of bytes with its unit, `62.50G` or `3000M`, in MiB, rounded up; none of what is none.
fn mib(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let per_mib = match &text[digits.len()..] {
        "" | "M" => 1.0,
        "K" => 1.0 / 1024.0,
        "G" => 1024.0,
        "T" => 1024.0 * 1024.0,
        "P" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let value: f64 = digits.parse().ok()?;
    let value = value * per_mib;
    (0.0..1e15).contains(&value).then(|| value.ceil() as u64)
}

/// Sums by name, `cpu=3,mem=5G,gres/gpu=1`: memory in MiB, all else in numbers as they are. What is no number is left out.
#[must_use]
pub fn sums(text: &str) -> BTreeMap<&str, u64> {
    let value = |(name, value): (&'_ str, &str)| match name {
        "mem" => mib(value),
        _ => value.parse().ok(),
    };
    tres(text)
        .filter_map(|part| Some((part.0, value(part)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_units() {
        assert_eq!(mib("62.50G"), Some(64_000));
        assert_eq!(mib("3000M"), Some(3000));
        assert_eq!(
            (mib("2T"), mib("512K"), mib("0")),
            (Some(2 << 20), Some(1), Some(0))
        );
        for text in ["", "G", "-1M", "nan", "1X", "1e99G"] {
            assert_eq!(mib(text), None, "{text}");
        }
        let sums = sums("cpu=4,mem=62.50G,node=1,billing=4,gres/gpu=1,gres/gpu:a100=1,x");
        assert_eq!((sums["cpu"], sums["mem"], sums["gres/gpu:a100"]), (4, 64_000, 1));
        assert_eq!(sums.len(), 6);
    }

    #[test]
    fn values_are_the_first_of_each_key() {
        let found = values("ReservationName=r Nodes=g[1-2] Flags=MAINT,SPEC_NODES Nodes=x");
        assert_eq!((found["Nodes"], found["Flags"]), ("g[1-2]", "MAINT,SPEC_NODES"));
    }
}
