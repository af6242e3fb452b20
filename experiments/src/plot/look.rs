//! One look for one policy on every page: its colour and dash follow from its name, not from its place in a table.
//!
//! Policies that stand in many tables have looks of their own. Another one has the look that its name hashes to, or the next one
//! that nobody else on the page has.

use super::frame::SERIES_MAX;

/// Names with looks of their own, by series number; those side by side on most pages have different colours.
const KNOWN: [&str; 18] = [
    "network",
    "tree",
    "best-type-delay",
    "sjf",
    "fifo",
    "sjf-best-type",
    "index",
    "gpu-time-reserve",
    "easy",
    "las-deal",
    "belief-deal",
    "srtf",
    "las",
    "fifo-skip",
    "fair-share",
    "sjf-share",
    "sjf-moldable",
    "sjf-tuned",
];

/// Series numbers of these names, in their order; different ones as long as there are looks.
#[must_use]
pub fn series_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let names: Vec<&str> = names.into_iter().collect();
    let known = |name: &str| KNOWN.iter().position(|known| *known == name);
    let mut taken: Vec<usize> = names.iter().filter_map(|name| known(name)).collect();
    let of = |name: &&str| {
        if let Some(series) = known(name) {
            return series;
        }
        let first = hash(name) as usize % SERIES_MAX;
        let places = (0..SERIES_MAX).map(|step| (first + step) % SERIES_MAX);
        let free = places.clone().find(|place| !taken.contains(place));
        let series = free.unwrap_or(first);
        taken.push(series);
        series
    };
    names.iter().map(of).collect()
}

/// FNV-1a, 32 bits.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_policy_looks_the_same_beside_whoever_it_stands() {
        let of = |names: &[&str]| series_of(names.iter().copied());
        assert_eq!(of(&["fifo", "network"])[0], of(&["sjf", "tree", "fifo"])[2]);
        assert_eq!(of(&["mine"])[0], of(&["fifo", "mine"])[1]);
        let all: Vec<String> = (0..SERIES_MAX).map(|number| format!("policy-{number}")).collect();
        let looks: BTreeSet<usize> = series_of(all.iter().map(String::as_str)).into_iter().collect();
        assert_eq!(looks.len(), SERIES_MAX);
        // The first six, which stand together in the quickstart, differ in colour alone.
        assert_eq!(of(&KNOWN[..6]), [0, 1, 2, 3, 4, 5]);
    }
}
