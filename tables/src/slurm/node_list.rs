//! Slurm's lists of nodes, `g[1-3,7],h01`, as names. A unit of a Kubernetes node, `n1/nvidia.com/mig-1g.10gb`, is a name too.

/// Most nodes that one list may name.
const NODES_MAX: usize = 100_000;

/// The names in a list; none where the text is no list or names more than 100,000 nodes.
#[must_use]
pub fn expand(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    walk(text, &mut |prefix, numbers| match numbers {
        None => names.push(prefix.to_owned()),
        Some((first, last, width)) => {
            names.extend((first..=last).map(|number| format!("{prefix}{number:0width$}")));
        }
    })?;
    Some(names)
}

/// How many nodes a list names; none where the text is no list or names more than 100,000 nodes.
#[must_use]
pub fn num_nodes(text: &str) -> Option<usize> {
    walk(text, &mut |_, _| {})
}

/// First and last number of a range, and how many digits it is written with.
type Range = (usize, usize, usize);

/// Shows each name or range of a list, and says how many names there are.
fn walk<'a>(text: &'a str, show: &mut impl FnMut(&'a str, Option<Range>)) -> Option<usize> {
    let mut num = 0_usize;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        let prefix = &rest[..end];
        if !prefix
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        {
            return None;
        }
        if rest[end..].starts_with('[') {
            let close = rest.find(']')?;
            for part in rest.get(end + 1..close)?.split(',') {
                let (low, high) = part.split_once('-').unwrap_or((part, part));
                let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                if !digits(low) || !digits(high) {
                    return None;
                }
                let (first, last): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
                if first > last || last - first >= NODES_MAX - num.min(NODES_MAX) {
                    return None;
                }
                num += last - first + 1;
                show(prefix, Some((first, last, low.len())));
            }
            rest = &rest[close + 1..];
        } else {
            if prefix.is_empty() || num >= NODES_MAX {
                return None;
            }
            num += 1;
            show(prefix, None);
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some("") => return None,
            Some(more) => rest = more,
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(num)
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
    fn lists_of_slurm_become_names_and_other_texts_nothing() {
        assert_eq!(expand("").unwrap(), Vec::<String>::new());
        assert_eq!(expand("g1").unwrap(), ["g1"]);
        assert_eq!(expand("g[1-3,7],h01").unwrap(), ["g1", "g2", "g3", "g7", "h01"]);
        assert_eq!((num_nodes("g[1-3,7],h01"), num_nodes("")), (Some(5), Some(0)));
        assert_eq!(expand("n[08-11]").unwrap(), ["n08", "n09", "n10", "n11"]);
        for text in [
            "g[",
            "g[1",
            "g[3-1]",
            "g[a]",
            "g[1]x",
            "g1,",
            ",g1",
            "g 1",
            "g[0-99999999999]",
            "g[1-100001]",
            "]a[",
        ] {
            assert_eq!((expand(text), num_nodes(text)), (None, None), "{text}");
        }
    }
}
