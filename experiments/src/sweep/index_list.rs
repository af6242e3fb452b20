//! Lists of unit indexes as job arrays write them: `0-3,7,9-12`.

use crate::error::Error;

/// `indexes` (sorted, without repeats) in array syntax; empty for none.
#[must_use]
pub fn compress(indexes: &[usize]) -> String {
    let mut parts = Vec::new();
    let mut rest = indexes;
    while let Some(&first) = rest.first() {
        let length = rest
            .iter()
            .zip(first..)
            .take_while(|&(&index, wanted)| index == wanted)
            .count();
        parts.push(match length {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + length - 1),
        });
        rest = &rest[length..];
    }
    parts.join(",")
}

/// The indexes of a list in array syntax, sorted and without repeats; all below `num_units`.
///
/// # Errors
/// [`Error::Problem`] where the list is not of that form or an index is too large.
pub fn expand(list: &str, num_units: usize) -> Result<Vec<usize>, Error> {
    let wrong = || {
        let allowed = format!("indexes below {num_units}, as 0-3,7,9-12");
        Error::config(
            "index",
            list,
            allowed,
            "Take the list that `pleach sweep gather --missing` prints.",
        )
    };
    let mut indexes = Vec::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wrong())?;
        let last: usize = last.trim().parse().map_err(|_| wrong())?;
        // Bounded before it is filled: a hostile `0-18446744073709551615` must not take all memory.
        if first > last || last >= num_units || indexes.len() > num_units.saturating_mul(4) {
            return Err(wrong());
        }
        indexes.extend(first..=last);
    }
    indexes.sort_unstable();
    indexes.dedup();
    Ok(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_compressed_and_expand_to_the_same_indexes() {
        for (indexes, list) in [
            (vec![], ""),
            (vec![5], "5"),
            (vec![0, 1, 2, 3, 7, 9, 10, 11, 12], "0-3,7,9-12"),
            (vec![3, 4], "3-4"),
            (vec![0, 2, 4], "0,2,4"),
        ] {
            assert_eq!(compress(&indexes), list);
            assert_eq!(expand(list, 13).unwrap(), indexes);
        }
    }

    #[test]
    fn lists_that_are_not_lists_of_units_are_refused() {
        for list in ["x", "3-1", "13", "0-18446744073709551615", "-1", "1--2", "1-2-3"] {
            assert!(expand(list, 13).is_err(), "{list}");
        }
        assert_eq!(expand("2, 1-2,", 13).unwrap(), [1, 2]);
    }
}
