//! Slurm's lists of nodes, `g[1-3,7],h01`, `rack[0-1]_blade[0-3]`, `n[1-2]-ib`, as names. A unit of a Kubernetes node,
//! `n1/nvidia.com/mig-1g.10gb`, is a name too.

use std::fmt;

/// Most nodes that one list may name.
const NODES_MAX: usize = 100_000;
/// Longest name, and digits of its longest number, *ours*: host names have 253 characters at most.
const NAME_MAX: usize = 256;
const DIGITS_MAX: usize = 18;
/// Characters of a text that an error shows.
const SHOWN_MAX: usize = 60;

/// Why a text is no list of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// Its beginning.
    text: String,
    reason: &'static str,
}

impl fmt::Display for ListError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} is no list of nodes: {}", self.text, self.reason)
    }
}

impl std::error::Error for ListError {}

/// The names in a list.
///
/// # Errors
/// A text that is no list, or that names more than 100,000 nodes.
pub fn expand(text: &str) -> Result<Vec<String>, ListError> {
    let entries = entries(text)?;
    let mut names = Vec::new();
    for parts in &entries {
        let mut of_entry = vec![String::new()];
        for part in parts {
            of_entry = part.behind(&of_entry);
        }
        names.append(&mut of_entry);
    }
    Ok(names)
}

/// How many nodes a list names.
///
/// # Errors
/// As [`expand`].
pub fn num_nodes(text: &str) -> Result<usize, ListError> {
    let entries = entries(text)?;
    let num = |parts: &Vec<Part<'_>>| parts.iter().map(Part::num).product::<usize>();
    Ok(entries.iter().map(num).sum())
}

/// A part of the names of an entry.
enum Part<'a> {
    Text(&'a str),
    /// First and last number of each range, and how many digits it is written with.
    Numbers(Vec<(usize, usize, usize)>),
}

impl Part<'_> {
    fn num(&self) -> usize {
        match self {
            Part::Text(_) => 1,
            Part::Numbers(ranges) => ranges.iter().map(|(first, last, _)| last - first + 1).sum(),
        }
    }

    /// Each beginning with each of its texts behind it.
    fn behind(&self, beginnings: &[String]) -> Vec<String> {
        match self {
            Part::Text(text) => beginnings.iter().map(|front| format!("{front}{text}")).collect(),
            Part::Numbers(ranges) => {
                let all = ranges.iter().flat_map(|(first, last, width)| {
                    (*first..=*last).map(move |number| format!("{number:0width$}"))
                });
                let all: Vec<String> = all.collect();
                let fronts = beginnings.iter();
                let with = |front| all.iter().map(move |number| format!("{front}{number}"));
                fronts.flat_map(with).collect()
            }
        }
    }
}

/// The parts of each entry of a list, of which no more names come than are allowed.
fn entries(text: &str) -> Result<Vec<Vec<Part<'_>>>, ListError> {
    let refused = |reason| ListError {
        text: text.chars().take(SHOWN_MAX).collect(),
        reason,
    };
    let (mut entries, mut num_all, mut rest) = (Vec::new(), 0_usize, text);
    while !rest.is_empty() {
        let (mut parts, mut num, mut length) = (Vec::new(), 1_usize, 0);
        while !rest.is_empty() && !rest.starts_with(',') {
            let part = match rest.strip_prefix('[') {
                Some(inside) => {
                    let (inside, behind) = inside.split_once(']').ok_or(refused("a bracket is open"))?;
                    rest = behind;
                    length += inside.split([',', '-']).map(str::len).max().unwrap_or(0);
                    Part::Numbers(ranges(inside).ok_or(refused("no numbers in a bracket"))?)
                }
                None => {
                    let (text, behind) = rest.split_at(rest.find(['[', ',']).unwrap_or(rest.len()));
                    rest = behind;
                    length += text.len();
                    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
                    if !text.chars().all(is_name) {
                        return Err(refused("a character that no name has"));
                    }
                    Part::Text(text)
                }
            };
            num = num.saturating_mul(part.num());
            parts.push(part);
        }
        if parts.is_empty() || length > NAME_MAX {
            return Err(refused("a name that is empty or too long"));
        }
        num_all = num_all.saturating_add(num);
        if num_all > NODES_MAX {
            return Err(refused("more than 100,000 nodes"));
        }
        entries.push(parts);
        rest = match rest.strip_prefix(',') {
            Some("") => return Err(refused("a name that is empty or too long")),
            Some(more) => more,
            None => rest,
        };
    }
    Ok(entries)
}

/// The ranges in a bracket; none where there is something else, or they are too long.
fn ranges(inside: &str) -> Option<Vec<(usize, usize, usize)>> {
    let digits = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && text.len() <= DIGITS_MAX).then(|| text.parse::<usize>().ok())?
    };
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (digits(low)?, digits(high)?);
        (first <= last && last - first < NODES_MAX).then_some((first, last, low.len()))
    };
    inside.split(',').map(range).collect()
}

/// Names as a list of Slurm's, in their order: neighbours that differ by one make a range.
#[must_use]
pub fn fold<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    // What stands before the number, the digits of the first, the number of the last; none where a name ends in no number.
    let mut ranges: Vec<(&str, &str, Option<u64>)> = Vec::new();
    for name in names {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        let number = digits.parse::<u64>().ok().filter(|_| digits.len() < 10);
        match (ranges.last_mut(), number) {
            (Some((of, first, Some(last))), Some(number))
                if *of == prefix && first.len() == digits.len() && *last + 1 == number =>
            {
                *last = number;
            }
            _ => ranges.push((prefix, digits, number)),
        }
    }
    let text = |(prefix, first, last): (&str, &str, Option<u64>)| match last {
        Some(last) if first.parse() != Ok(last) => {
            format!("{prefix}[{first}-{last:0width$}]", width = first.len())
        }
        _ => format!("{prefix}{first}"),
    };
    ranges.into_iter().map(text).collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_a_list_that_has_them_all() {
        let of = |list: &str| {
            let names = expand(list).unwrap();
            fold(names.iter().map(String::as_str))
        };
        for list in [
            "",
            "g1",
            "g[1-3],h7",
            "g[1-3],g5,x",
            "n[08-11]",
            "n[8-9],n[10-12]",
            "a,b,a1",
            "n[1-2],n1/nvidia.com/mig-1g.10gb,gke-a-1f3b.example.com",
        ] {
            assert_eq!(expand(&of(list)), expand(list), "{list}");
        }
        assert_eq!(of("g[1-3,7],h01"), "g[1-3],g7,h01");
    }

    #[test]
    fn lists_of_slurm_become_names_and_other_texts_errors() {
        assert_eq!(expand("").unwrap(), Vec::<String>::new());
        assert_eq!(expand("g1").unwrap(), ["g1"]);
        assert_eq!(expand("g[1-3,7],h01").unwrap(), ["g1", "g2", "g3", "g7", "h01"]);
        assert_eq!((num_nodes("g[1-3,7],h01"), num_nodes("")), (Ok(5), Ok(0)));
        assert_eq!(expand("n[08-11]").unwrap(), ["n08", "n09", "n10", "n11"]);
        for text in [
            "g[",
            "g[1",
            "g[]",
            "g[3-1]",
            "g[a]",
            "g[1-]",
            "g1]",
            "g1,",
            ",g1",
            "g1,,g2",
            "g 1",
            "(null)",
            "g[0-99999999999]",
            "g[1-100001]",
            "g[1-1000]_[1-101]",
            "g[1-60000],h[1-60000]",
            "g[000000000000000000000000001]",
            "]a[",
            "g[1-2]é",
        ] {
            let (names, num) = (expand(text).unwrap_err(), num_nodes(text).unwrap_err());
            assert!(
                names == num && names.to_string().contains("is no list of nodes: "),
                "{text}"
            );
        }
        assert!(
            expand(&format!("{}[1-100000]", "x".repeat(300))).is_err(),
            "names too long"
        );
    }

    #[test]
    fn several_brackets_and_what_stands_behind_them_are_read() {
        let of = |text| expand(text).unwrap();
        let four = ["rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1"];
        assert_eq!(of("rack[0-1]_blade[0-1]"), four);
        assert_eq!(of("n[1-2]-ib"), ["n1-ib", "n2-ib"]);
        assert_eq!(
            of("n[1-2]x[08,10]y,z"),
            ["n1x08y", "n1x10y", "n2x08y", "n2x10y", "z"]
        );
        assert_eq!(of("[1-2][3-4]"), ["13", "14", "23", "24"]);
        assert_eq!(of("g[1]x"), ["g1x"]);
        assert_eq!(num_nodes("r[1-100]b[1-1000]"), Ok(100_000));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_as_many_names_come_as_are_counted(text in "[gn0-9\\[\\],_é-]{0,24}") {
            let names = expand(&text);
            proptest::prop_assert_eq!(names.as_ref().map(Vec::len).ok(), num_nodes(&text).ok());
            if let Ok(names) = names {
                let folded = fold(names.iter().map(String::as_str));
                proptest::prop_assert_eq!(expand(&folded), Ok(names));
            }
        }
    }
}
