//! Devices of a node, `gpu:a100:4(S:0-1),shard:16`, and what a job has, `cpu=4,gres/gpu=2,gres/gpu:a100=2,node=1`.

/// Most devices of one kind that a text may name, *ours*: no cluster has as many.
const NUM_MAX: u32 = 4_000_000;

/// Equal devices of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    /// `gpu`, `shard`, `mps`.
    pub kind: &'a str,
    /// `a100`; none where the site gives its devices no types.
    pub of_type: Option<&'a str>,
    /// How many.
    pub num: u32,
}

/// The devices in a text as `sinfo` and `scontrol` print it; what cannot be read is left out.
#[must_use]
pub fn devices(text: &str) -> Vec<Device<'_>> {
    let mut entries = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    let ends = text.char_indices().chain(std::iter::once((text.len(), ',')));
    for (at, c) in ends {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth <= 0 => {
                entries.push(&text[start..at]);
                start = (at + 1).min(text.len());
            }
            _ => {}
        }
    }
    entries.into_iter().filter_map(device).collect()
}

fn device(entry: &str) -> Option<Device<'_>> {
    let bare = entry
        .find("(IDX")
        .or_else(|| entry.find("(S:"))
        .map_or(entry, |end| &entry[..end]);
    let (front, num) = bare.rsplit_once(':')?;
    let (kind, of_type) = match front.split_once(':') {
        Some((kind, of_type)) => (kind, Some(of_type).filter(|name| *name != "(null)")),
        None => (front, None),
    };
    let num = num.parse().ok()?;
    Some(Device { kind, of_type, num })
}

/// Names and values of a text: `cpu` and `4` of `cpu=4,node=2`.
pub(super) fn tres(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').filter_map(|part| part.trim().split_once('='))
}

/// What a text says of one resource, `node` in `cpu=4,node=2`.
#[must_use]
pub fn tres_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    tres(text)
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// Number of GPUs, and of each type as far as a text says it.
pub type Gpus<'a> = (u32, Vec<(&'a str, u32)>);

/// A text that names GPUs or a limit is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread;

/// GPUs of a job, and how many of each type as far as the text says; none where it has none.
///
/// A job of several types has `gres/gpu=4,gres/gpu:a100=2,gres/gpu:v100=2`; a site whose database keeps no sum has the types alone.
///
/// # Errors
/// No number of GPUs is understood, and one is not.
pub fn gpus_of_tres(text: &str) -> Result<Option<Gpus<'_>>, Unread> {
    let (mut all, mut types, mut is_unread) = (None, Vec::new(), false);
    for (name, num) in tres(text) {
        let of_type = match name.strip_prefix("gres/gpu") {
            Some("") => None,
            Some(rest) if rest.starts_with(':') => Some(&rest[1..]),
            // `gres/gpuutil` and its like count no devices.
            _ => continue,
        };
        match (num.parse::<u32>(), of_type) {
            (Ok(0), _) => {}
            (Ok(num @ 1..=NUM_MAX), Some(of_type)) => types.push((of_type, num)),
            (Ok(num @ 1..=NUM_MAX), None) => all = Some(num),
            _ => is_unread = true,
        }
    }
    let sum = types.iter().fold(0_u32, |sum, (_, num)| sum.saturating_add(*num));
    match all.unwrap_or(sum) {
        0 if is_unread => Err(Unread),
        0 => Ok(None),
        num => Ok(Some((num, types))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_with_sockets_indices_and_without_types() {
        let device = |kind, of_type, num| Device { kind, of_type, num };
        assert_eq!(
            devices("gpu:a100:4(S:0-1),shard:16"),
            [device("gpu", Some("a100"), 4), device("shard", None, 16)]
        );
        assert_eq!(
            devices("gpu:(null):2(IDX:0,3),gpu:v100:1(IDX:4)"),
            [device("gpu", None, 2), device("gpu", Some("v100"), 1)]
        );
        assert_eq!(devices("gpu:1g.5gb:7(S:0)"), [device("gpu", Some("1g.5gb"), 7)]);
        for text in ["", "(null)", "gpu", "gpu:x", ":", ")))(("] {
            assert_eq!(devices(text), [], "{text}");
        }
    }

    #[test]
    fn gpus_of_a_job_are_the_sum_that_is_told_else_that_of_the_types() {
        let both = "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1";
        assert_eq!(gpus_of_tres(both), Ok(Some((2, vec![("a100", 2)]))));
        let types = gpus_of_tres("gres/gpu:a100=2,gres/gpu:v100=1");
        assert_eq!(types.unwrap().unwrap().0, 3);
        assert_eq!(gpus_of_tres("cpu=4,gres/gpuutil=90,gres/gpumem=1G"), Ok(None));
        assert_eq!(gpus_of_tres("gres/gpu=0"), Ok(None));
        assert_eq!(gpus_of_tres("gres/gpu=99999999999"), Err(Unread));
        assert_eq!(gpus_of_tres("gres/gpu:a100=x,gres/gpu=2").unwrap().unwrap().0, 2);
        assert_eq!(tres_of(both, "node"), Some("1"));
        assert_eq!(tres_of(both, "nod"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[gpu:a0-9(),=/SIDX é-]{0,60}") {
            let _ = devices(&text);
            let _ = gpus_of_tres(&text);
        }
    }
}
