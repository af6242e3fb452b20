//! Licences: what is free of each.

use std::collections::BTreeMap;

use pleach_site::slurm::values;

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
    }
}
