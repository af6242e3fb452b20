//! Of known words the one that was meant.

/// The known name that resembles a word most, whatever its case, for "did you mean"; none if no name is known.
#[must_use]
pub fn nearest_of<'a>(known: &[&'a str], name: &str) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let best = known
        .iter()
        .min_by_key(|known| edit_distance(&known.to_lowercase(), &lower));
    best.copied()
}

/// Levenshtein's distance: insertions, removals and replacements from one word to the other.
fn edit_distance(from: &str, to: &str) -> usize {
    // A name from a user may be of any length; beyond this it resembles nothing.
    let to: Vec<char> = to.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, ours) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, theirs) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(ours != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
