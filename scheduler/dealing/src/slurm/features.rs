//! Features that jobs ask of nodes, `nvme&(a|b)`, as `--constraint` takes them, and licences, `matlab:1,ansys`, as `--licenses`.
//!
//! Of a set of which all nodes must have the same member (`[a|b]`) a node has to have one. Counts (`a*2`) and negation are no rule about
//! single nodes and not read: Slurm alone judges them.

/// Deepest nesting of parentheses.
const DEPTH_MAX: usize = 16;

/// Which of some nodes have what is asked, by their features; none of a text that is no rule about single nodes.
#[must_use]
pub fn matching<S: AsRef<str>>(asked: &str, nodes: &[Vec<S>]) -> Option<Vec<bool>> {
    let mut parser = Parser { rest: asked, nodes };
    let found = parser.any(0)?;
    parser.rest.is_empty().then_some(found)
}

/// Licences with their numbers, of a text such as `matlab:1,ansys` or `matlab@server:2`; none where any of several will do, which is no
/// sum.
#[must_use]
pub fn licences(text: &str) -> Option<Vec<(&str, u64)>> {
    if matches!(text, "" | "(null)" | "N/A") {
        return Some(Vec::new());
    }
    let entries = text.split([',', ';']).map(|entry| {
        let (name, num) = entry.rsplit_once(':').unwrap_or((entry, "1"));
        let is_name = !name.is_empty() && !name.contains(['|', ':', ' ']);
        is_name.then_some((name, num.parse().ok()?))
    });
    entries.collect()
}

struct Parser<'a, S> {
    rest: &'a str,
    nodes: &'a [Vec<S>],
}

impl<S: AsRef<str>> Parser<'_, S> {
    fn take(&mut self, word: char) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Parts that `|` separates.
    fn any(&mut self, depth: usize) -> Option<Vec<bool>> {
        let mut found = self.all(depth)?;
        while self.take('|') {
            let more = self.all(depth)?;
            found.iter_mut().zip(more).for_each(|(is, more)| *is |= more);
        }
        Some(found)
    }

    /// Parts that `&` or `,` joins.
    fn all(&mut self, depth: usize) -> Option<Vec<bool>> {
        let mut found = self.one(depth)?;
        while self.take('&') || self.take(',') {
            let more = self.one(depth)?;
            found.iter_mut().zip(more).for_each(|(is, more)| *is &= more);
        }
        Some(found)
    }

    fn one(&mut self, depth: usize) -> Option<Vec<bool>> {
        for (opens, closes) in [('(', ')'), ('[', ']')] {
            if depth < DEPTH_MAX && self.take(opens) {
                let found = self.any(depth + 1)?;
                return self.take(closes).then_some(found);
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.:=+".contains(c);
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let has = |features: &Vec<S>| features.iter().any(|of| of.as_ref() == name);
        (!name.is_empty()).then(|| self.nodes.iter().map(has).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_asked_as_slurm_asks_for_them() {
        let nodes = vec![vec!["a"], vec!["b", "nvme"], vec!["a", "b"], vec![]];
        let of = |asked: &str| {
            let found = matching(asked, &nodes)?;
            Some((0..4).filter(|row| found[*row]).collect::<Vec<usize>>())
        };
        assert_eq!(of("a").unwrap(), [0, 2]);
        assert_eq!(of("a&b").unwrap(), [2]);
        assert_eq!(of("a,b").unwrap(), [2]);
        assert_eq!(of("a|nvme").unwrap(), [0, 1, 2]);
        assert_eq!(of("(a|nvme)&b").unwrap(), [1, 2]);
        assert_eq!(of("a|nvme&b").unwrap(), [0, 1, 2]);
        assert_eq!(of("x").unwrap(), [0_usize; 0]);
        assert_eq!(of("[a|x]").unwrap(), [0, 2]);
        assert_eq!(of("[a|b]&nvme").unwrap(), [1]);
        for text in [
            "",
            "a&",
            "[a|b)",
            "[a*2|b*2]",
            "a*2",
            "(a",
            "a)",
            "!a",
            "a b",
            "&",
            &"(".repeat(1000),
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn licences_are_asked_as_slurm_asks_for_them() {
        assert_eq!(licences("matlab:2,ansys").unwrap(), [("matlab", 2), ("ansys", 1)]);
        assert_eq!(licences("(null)").unwrap(), []);
        for text in ["a|b", "a:x", ",", ":1"] {
            assert_eq!(licences(text), None, "{text}");
        }
    }
}
