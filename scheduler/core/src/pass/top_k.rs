//! The best few of what is offered under one order: the bounded list that each lens fills.

use crate::cluster::Row;
use crate::ids::JobId;

/// No row is worse.
const WORST: Row = (i64::MAX, JobId(u32::MAX));
/// No row is better.
const BEST: Row = (i64::MIN, JobId(0));

/// The best few rows of what was offered, best first.
#[derive(Clone, Debug)]
pub(super) struct TopK {
    /// As many as are wanted; those past the first `len` mean nothing.
    rows: Vec<Row>,
    len: usize,
    /// The last row of a full list: what is not better is not wanted.
    bar: Row,
}

impl Default for TopK {
    fn default() -> TopK {
        TopK {
            rows: Vec::new(),
            len: 0,
            bar: BEST,
        }
    }
}

impl TopK {
    pub(super) fn reset(&mut self, num: usize) {
        self.rows.resize(num, WORST);
        self.len = 0;
        self.bar = if num == 0 { BEST } else { WORST };
    }

    /// Takes the rows of another list, all under one key, in their order, which is that of the jobs.
    pub(super) fn copy_under(&mut self, key: i64, other: &TopK) {
        self.rows.clone_from(&other.rows);
        self.len = other.len;
        for row in &mut self.rows[..other.len] {
            row.0 = key;
        }
        // It is complete.
        self.bar = BEST;
    }

    /// The rows, at most as many as are wanted.
    #[inline]
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows[..self.len]
    }

    #[inline(always)]
    pub(super) fn wants(&self, row: Row) -> bool {
        row.0 < self.bar.0 || (row.0 == self.bar.0 && row.1 < self.bar.1)
    }

    /// False if the list is full and the row no better than its last one; what comes after it is then no better either.
    #[inline(always)]
    pub(super) fn offer(&mut self, row: Row) -> bool {
        let wanted = self.wants(row);
        if wanted {
            self.insert(row);
        }
        wanted
    }

    #[inline]
    fn insert(&mut self, row: Row) {
        let rows = &mut self.rows[..];
        let Some(last) = rows.len().checked_sub(1) else {
            return;
        };
        let mut at = self.len.min(last);
        self.len = at + 1;
        while at > 0 && row < rows[at - 1] {
            rows[at] = rows[at - 1];
            at -= 1;
        }
        rows[at] = row;
        if self.len > last {
            self.bar = rows[last];
        }
    }
}
