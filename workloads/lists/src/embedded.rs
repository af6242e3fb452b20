//! Tables that the crate embeds: lines of fields with commas between, and comments after `#`.

/// The rows of a table; the last field may hold commas.
pub(crate) fn rows<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut fields = line.splitn(N, ',').map(str::trim);
        std::array::from_fn(|_| fields.next().unwrap_or_default())
    })
}

/// A number of such a table.
pub(crate) fn number(field: &str) -> f64 {
    field
        .parse()
        .unwrap_or_else(|_| panic!("{field:?} is no number of a table of this crate"))
}
