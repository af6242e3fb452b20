//! One colour for one policy on every page: it follows from its name, not from its place in a table.
//!
//! What Pleach learned has colours of its own. Of the other policies, those that stand side by side on most pages have different
//! ones, and the rest have the one that their names hash to. Policies of one colour in one plot differ in dash and dot.

/// Colours before the dash changes: for a light and a dark page, searched for so that any two stay apart under protanopia,
/// deuteranopia and tritanopia (simulated after Machado et al. 2009) and stand out from the page by a contrast of at least 3.
const NUM_COLOURS: usize = 9;
/// What is learned: no other policy has these colours.
const LEARNED: [&str; 3] = ["network", "tree", "index"];
/// Those that stand side by side on most pages, one for each other colour.
const KNOWN: [&str; NUM_COLOURS - LEARNED.len()] = [
    "best-type-delay",
    "sjf",
    "fifo",
    "sjf-best-type",
    "easy",
    "gpu-time-reserve",
];
/// Dashes, one for each round through the colours.
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];
/// Dots as paths about their middles, one for each round: disc, square, diamond, triangle.
const DOTS: [&str; 4] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-3.5-3.5h7v7h-7z",
    "m0-5l5 5l-5 5l-5-5z",
    "m0-5l4.6 8h-9.2z",
];

/// Looks of policies by these names or labels, in their order: a number of which [`colour`] and [`dash`] are made.
#[must_use]
pub fn series_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let looks = names.into_iter().map(|name| {
        let colour = colour_of(name);
        let mut rounds = (0..DASHES.len()).map(|round| colour + NUM_COLOURS * round);
        let look = rounds.find(|look| !taken.contains(look)).unwrap_or(colour);
        taken.push(look);
        look
    });
    looks.collect()
}

/// By the policy that a label begins with: `srtf` of `policy = srtf (as sjf: no preemption)`.
fn colour_of(label: &str) -> usize {
    let label = label.strip_prefix("policy = ").unwrap_or(label);
    let name = label.split(" (").next().unwrap_or(label);
    let known = LEARNED.iter().chain(&KNOWN).position(|known| *known == name);
    known.unwrap_or_else(|| LEARNED.len() + hash(name) as usize % KNOWN.len())
}

/// FNV-1a, 32 bits.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// A value of `fill` or `stroke`.
#[must_use]
pub fn colour(look: usize) -> String {
    format!("var(--s{})", look % NUM_COLOURS)
}

/// A value of `stroke-dasharray`; none for a whole line.
pub(super) fn dash(look: usize) -> Option<&'static str> {
    Some(DASHES[(look / NUM_COLOURS) % DASHES.len()]).filter(|dash| !dash.is_empty())
}

/// A path about the point where the pen is.
pub(super) fn dot(look: usize) -> &'static str {
    DOTS[(look / NUM_COLOURS) % DOTS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_policy_has_one_colour_on_every_page_and_what_is_learned_shares_its_own_with_none() {
        let of = |names: &[&str]| -> Vec<String> {
            let looks = series_of(names.iter().copied());
            looks.into_iter().map(colour).collect()
        };
        assert_eq!(of(&["fifo", "network"])[0], of(&["sjf", "tree", "fifo"])[2]);
        assert_eq!(of(&["mine"])[0], of(&["fifo", "easy", "mine"])[2]);
        assert_eq!(of(&["policy = srtf (as sjf: no preemption)"]), of(&["srtf"]));
        let names: Vec<String> = (0..300).map(|number| format!("policy-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(KNOWN).collect();
        let others: BTreeSet<String> = of(&names).into_iter().collect();
        let learned: BTreeSet<String> = of(&LEARNED).into_iter().collect();
        assert!(others.is_disjoint(&learned) && learned.len() == LEARNED.len());
    }

    #[test]
    fn policies_of_one_colour_in_one_plot_differ_in_dash_and_dot() {
        let looks = series_of(["a", "a", "a", "a"]);
        let dashes: BTreeSet<_> = looks.iter().map(|look| (dash(*look), dot(*look))).collect();
        assert_eq!(dashes.len(), DASHES.len());
    }
}
