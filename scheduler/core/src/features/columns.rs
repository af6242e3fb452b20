//! Which columns a policy reads, so that the others need not be worked out.

/// Some columns, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSet(u128);

impl ColumnSet {
    /// Every column, also of later versions.
    pub const ALL: ColumnSet = ColumnSet(u128::MAX);
    /// No column.
    pub const NONE: ColumnSet = ColumnSet(0);

    /// This set and a column more.
    ///
    /// # Panics
    /// For a number above 127; there are fewer columns.
    #[must_use]
    pub const fn with(self, number: usize) -> ColumnSet {
        assert!(number < 128, "a set holds columns up to number 127");
        ColumnSet(self.0 | 1 << number)
    }

    /// Whether a column is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }

    /// Whether some column is in both sets.
    #[must_use]
    pub const fn meets(self, other: ColumnSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<usize> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> ColumnSet {
        numbers.into_iter().fold(ColumnSet::NONE, ColumnSet::with)
    }
}

/// The columns of one writer, of which the writer of each column is given.
pub(super) const fn set_of(writers: &[&str], writer: &str) -> ColumnSet {
    let (mut found, mut at) = (ColumnSet::NONE, 0);
    while at < writers.len() {
        if is_same(writers[at], writer) {
            found = found.with(at);
        }
        at += 1;
    }
    found
}

/// Whether two words are the same.
pub(super) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// What a writer asks of each column: is it wanted? Known where this is compiled for a writer of all columns.
pub(crate) trait Wanted: Copy {
    /// Whether a column is.
    fn wants(self, number: usize) -> bool;
    /// The same as a set.
    fn set(self) -> ColumnSet;
}

/// Every column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct All;

impl Wanted for All {
    #[inline(always)]
    fn wants(self, _: usize) -> bool {
        true
    }

    fn set(self) -> ColumnSet {
        ColumnSet::ALL
    }
}

impl Wanted for ColumnSet {
    #[inline(always)]
    fn wants(self, number: usize) -> bool {
        self.contains(number)
    }

    fn set(self) -> ColumnSet {
        self
    }
}
