//! The order in which jobs of one second came. Kubernetes keeps whole seconds, so the names have to tell: numbers in them count as
//! numbers, for users who submit many jobs at once number them (`job-8` before `job-10`).

use std::cmp::Ordering;

/// Compares names part by part, digits as numbers of any length.
pub fn by_name(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        match (left.is_empty(), right.is_empty()) {
            (false, false) => {}
            // Equal as numbers and not as text: `job-1`, `job-01`.
            (ends, others) => return others.cmp(&ends).then_with(|| a.cmp(b)),
        }
        let ((one, rest), (other, others)) = (first_part(left), first_part(right));
        let order = match (number(one), number(other)) {
            (Some(one), Some(other)) => (one.len(), one).cmp(&(other.len(), other)),
            _ => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest, others);
    }
}

/// The digits, or all but digits, that a text begins with, and the rest.
fn first_part(text: &str) -> (&str, &str) {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let first = bytes.first().is_some_and(is_digit);
    let end = bytes.iter().position(|byte| is_digit(byte) != first);
    text.split_at(end.unwrap_or(bytes.len()))
}

/// Digits without leading zeros.
fn number(part: &str) -> Option<&str> {
    part.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| part.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers_and_the_rest_as_text() {
        let mut names = [
            "job-10", "job-8", "job", "b2-x", "b10-a", "job-010", "b2-10", "b2-9", "é9", "é10",
        ];
        names.sort_by(|a, b| by_name(a, b));
        assert_eq!(
            names,
            [
                "b2-9", "b2-10", "b2-x", "b10-a", "job", "job-8", "job-010", "job-10", "é9", "é10"
            ]
        );
    }

    /// On all names of up to three letters of four.
    #[test]
    fn it_is_an_order() {
        let mut names = vec![String::new()];
        for length in 1..=3 {
            let shorter: Vec<String> = names
                .iter()
                .filter(|name| name.len() == length - 1)
                .cloned()
                .collect();
            names.extend(
                shorter
                    .iter()
                    .flat_map(|name| ["a", "-", "0", "1"].map(|letter| format!("{name}{letter}"))),
            );
        }
        let order: Vec<Vec<Ordering>> = names
            .iter()
            .map(|a| names.iter().map(|b| by_name(a, b)).collect())
            .collect();
        for a in 0..names.len() {
            for b in 0..names.len() {
                assert_eq!(order[a][b], order[b][a].reverse());
                assert_eq!(
                    order[a][b] == Ordering::Equal,
                    a == b,
                    "{} {}",
                    names[a],
                    names[b]
                );
                for c in 0..names.len() {
                    let rises = order[a][b] != Ordering::Greater && order[b][c] != Ordering::Greater;
                    assert!(!rises || order[a][c] != Ordering::Greater);
                }
            }
        }
    }
}
