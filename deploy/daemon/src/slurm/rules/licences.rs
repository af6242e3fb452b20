//! Licences: what jobs ask for, and what is free of each.

use std::collections::BTreeMap;

use crate::slurm::table::is_null;
use pleach_site::slurm::values;

/// `matlab:1,ansys`, or `matlab@server:2`; none where any of several will do, which is no sum.
pub(crate) fn asked(text: &str) -> Option<Vec<(&str, u64)>> {
    if is_null(text) {
        return Some(Vec::new());
    }
    let one = |entry: &'_ str| -> Option<(usize, u64)> {
        let (name, num) = entry.rsplit_once(':').unwrap_or((entry, "1"));
        let is_name = !name.is_empty() && !name.contains(['|', ':', ' ']);
        is_name.then_some((name.len(), num.parse().ok()?))
    };
    let entries = text.split([',', ';']).map(|entry| {
        let (len, num) = one(entry)?;
        Some((&entry[..len], num))
    });
    entries.collect()
}

/// What jobs outside of reservations may have of each, from what `scontrol -o show licenses` printed.
pub(super) fn free(text: &str) -> BTreeMap<&str, u64> {
    let one = |line| {
        let values = values(line);
        let number = |key: &str| values.get(key).map_or(Some(0), |text| text.parse::<u64>().ok());
        let free = number("Free")?.saturating_sub(number("Reserved")?);
        Some((*values.get("LicenseName")?, free))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_counted_less_those_that_are_reserved() {
        let text = "LicenseName=matlab Total=3 Used=0 Free=3 Reserved=1 Remote=no\nNo licenses configured in Slurm.\n";
        assert_eq!(free(text), [("matlab", 2)].into());
        assert_eq!(asked("matlab:2,ansys").unwrap(), [("matlab", 2), ("ansys", 1)]);
        assert_eq!(asked("(null)").unwrap(), []);
        for text in ["a|b", "a:x", ",", ":1"] {
            assert_eq!(asked(text), None, "{text}");
        }
    }
}
