//! Where a segment ran, as text: `3:0-7 4:0,2` for all eight GPUs of node 3 and two of node 4, `8-15:0-7` for equal nodes in a
//! row, `gpu-a:x4` for four GPUs of a node where it is not known which.

use std::fmt::Write as _;

/// Most GPUs of a node, as everywhere.
const GPUS_MAX: u32 = 64;
/// Most nodes, as of a cluster of one GPU each.
pub(super) const NODES_MAX: u32 = 4_000_000;

/// GPUs of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// Which, as a bit mask over their indexes; never empty.
    Which(u64),
    /// How many, where it is not known which; 1 to 64.
    Num(u32),
}

impl Gpus {
    /// How many.
    #[must_use]
    pub fn num(self) -> u32 {
        match self {
            Gpus::Which(mask) => mask.count_ones(),
            Gpus::Num(num) => num,
        }
    }
}

/// GPUs of equal nodes that follow each other in the record's list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Index of the first node into the run's names.
    pub node: u32,
    /// Nodes from there on, at least 1.
    pub num_nodes: u32,
    /// What is held of each.
    pub gpus: Gpus,
}

/// The text of slices. Nodes in a row are joined where their names are numbers in a row.
pub(super) fn to_text(slices: &[Slice], nodes: &[String]) -> String {
    let mut text = String::new();
    let mut each = slices.iter().flat_map(|slice| {
        let of = move |node| (nodes[(slice.node + node) as usize].as_str(), slice.gpus);
        (0..slice.num_nodes).map(of)
    });
    let mut next = each.next();
    while let Some((name, gpus)) = next {
        let first: Option<u32> = number(name);
        let mut last = first;
        loop {
            next = each.next();
            let follows = next.is_some_and(|(other, others)| {
                others == gpus && last.is_some_and(|last| number(other) == last.checked_add(1))
            });
            if !follows {
                break;
            }
            last = last.map(|last| last + 1);
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(name);
        if first != last {
            let _ = write!(text, "-{}", last.unwrap_or_default());
        }
        text.push(':');
        gpus_to_text(gpus, &mut text);
    }
    text
}

/// A name that is a number as we write it.
fn number(name: &str) -> Option<u32> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    name.parse().ok().filter(|number| is_plain && *number < NODES_MAX)
}

fn gpus_to_text(gpus: Gpus, text: &mut String) {
    let mask = match gpus {
        Gpus::Num(num) => {
            let _ = write!(text, "x{num}");
            return;
        }
        Gpus::Which(mask) => mask,
    };
    let (mut at, mut is_first) = (0, true);
    while at < GPUS_MAX {
        if mask >> at & 1 == 0 {
            at += 1;
            continue;
        }
        let run = (!(mask >> at)).trailing_zeros().min(GPUS_MAX - at);
        if !is_first {
            text.push(',');
        }
        let _ = match run {
            1 => write!(text, "{at}"),
            _ => write!(text, "{at}-{}", at + run - 1),
        };
        (at, is_first) = (at + run, false);
    }
}

/// What a text means: names of nodes with the number of nodes in a row from the first on, and their GPUs. Refused with what is wrong.
pub(super) fn of_text(text: &str) -> Result<Vec<(NodeNames<'_>, Gpus)>, String> {
    let mut found = Vec::new();
    for word in text.split_ascii_whitespace() {
        let (name, gpus) = word.rsplit_once(':').ok_or_else(|| {
            format!(
                "`{}` names no GPUs: a node is NODE:GPUS, as 3:0-7, 3:0,2 or 3:x4",
                crate::shorten(word)
            )
        })?;
        let gpus = gpus_of_text(gpus).ok_or_else(|| {
            format!(
                "`{}` are no GPUs: allowed are indexes 0 to 63 as 0-7 or 0,2, or x and a number 1 to 64",
                crate::shorten(gpus)
            )
        })?;
        if name.is_empty() || !crate::is_printable(name) {
            return Err(format!(
                "`{}` is no name of a node: allowed are 1 to 256 printable characters",
                crate::shorten(name)
            ));
        }
        let range = name
            .split_once('-')
            .and_then(|(first, last)| Some((number(first)?, number(last)?)));
        found.push(match range {
            Some((first, last)) if first < last => (NodeNames::Range(first, last), gpus),
            Some(_) => {
                return Err(format!(
                    "`{}`: the last node of a range comes after the first",
                    crate::shorten(name)
                ));
            }
            None => (NodeNames::One(name), gpus),
        });
    }
    match found.is_empty() {
        true => Err("no node is named: a node is NODE:GPUS, as 3:0-7".into()),
        false => Ok(found),
    }
}

/// One node, or those of a range of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NodeNames<'a> {
    One(&'a str),
    Range(u32, u32),
}

fn gpus_of_text(text: &str) -> Option<Gpus> {
    let index = |text: &str| number(text).filter(|index| *index < GPUS_MAX);
    if let Some(num) = text.strip_prefix('x') {
        return number(num)
            .filter(|num| (1..=GPUS_MAX).contains(num))
            .map(Gpus::Num);
    }
    let mut mask = 0_u64;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (index(first)?, index(last)?);
        for gpu in first..=last {
            if mask >> gpu & 1 == 1 {
                return None;
            }
            mask |= 1 << gpu;
        }
    }
    (mask != 0).then_some(Gpus::Which(mask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(num: u32) -> Vec<String> {
        (0..num).map(|node| node.to_string()).collect()
    }

    #[test]
    fn equal_nodes_in_a_row_are_one_word() {
        let slice = |node, num_nodes, mask| Slice {
            node,
            num_nodes,
            gpus: Gpus::Which(mask),
        };
        let slices = [
            slice(0, 1, 0xff),
            slice(1, 2, 0xff),
            slice(3, 1, 0b1011),
            slice(9, 1, 1 << 63),
        ];
        assert_eq!(to_text(&slices, &named(10)), "0-2:0-7 3:0-1,3 9:63");
        let all = Slice {
            node: 0,
            num_nodes: 2,
            gpus: Gpus::Num(64),
        };
        assert_eq!(
            to_text(&[all], &["gpu-a".into(), "gpu-b".into()]),
            "gpu-a:x64 gpu-b:x64"
        );
        assert_eq!(to_text(&[slice(0, 1, u64::MAX)], &named(1)), "0:0-63");
    }

    #[test]
    fn what_is_no_place_is_refused_with_what_is_allowed() {
        for (text, said) in [
            ("", "no node is named"),
            ("3", "names no GPUs"),
            ("3:", "are no GPUs"),
            ("3:64", "indexes 0 to 63"),
            ("3:x0", "a number 1 to 64"),
            ("3:x65", "a number 1 to 64"),
            ("3:0,0", "are no GPUs"),
            ("3:4-1", "are no GPUs"),
            (":0", "no name of a node"),
            ("9-3:0", "comes after the first"),
        ] {
            assert!(of_text(text).unwrap_err().contains(said), "{text}");
        }
    }

    proptest! {
        #[test]
        fn masks_read_back_as_they_were(mask in 1_u64.., num in 1_u32..=64) {
            for gpus in [Gpus::Which(mask), Gpus::Num(num)] {
                let mut text = String::new();
                gpus_to_text(gpus, &mut text);
                prop_assert_eq!(gpus_of_text(&text), Some(gpus));
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = of_text(&text);
        }
    }
}
