//! Tables that a crate embeds: lines of fields with commas between, and comments after `#`.

/// The rows of a table; the last field may hold commas, fields that are not there are empty.
pub fn rows<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut fields = line.splitn(N, ',').map(str::trim);
        std::array::from_fn(|_| fields.next().unwrap_or_default())
    })
}

/// A number of such a table.
///
/// # Panics
/// A field that is no number.
pub fn number(field: &str) -> f64 {
    field
        .parse()
        .unwrap_or_else(|_| panic!("{field:?} is no number of an embedded table"))
}
