//! The best few of what is offered under one order: the bounded list that each lens fills.

use crate::ids::JobId;

/// A sort key and its job; smaller comes first.
pub(super) type Row = (i64, JobId);

/// No row is worse.
const WORST: Row = (i64::MAX, JobId(u32::MAX));
/// No row is better.
const BEST: Row = (i64::MIN, JobId(0));

/// The best few rows of what was offered, best first.
#[derive(Clone, Debug)]
pub(super) struct Best {
    pub(super) rows: Vec<Row>,
    pub(super) num: usize,
    /// The last row of a full list: what is not better is not wanted.
    bar: Row,
}

impl Default for Best {
    fn default() -> Best {
        Best {
            rows: Vec::new(),
            num: 0,
            bar: BEST,
        }
    }
}

impl Best {
    pub(super) fn reset(&mut self, num: usize) {
        self.rows.clear();
        self.num = num;
        self.bar = if num == 0 { BEST } else { WORST };
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

    pub(super) fn insert(&mut self, row: Row) {
        if self.rows.len() < self.num {
            self.rows.push(row);
        }
        let rows = &mut self.rows[..];
        let Some(mut at) = rows.len().checked_sub(1) else {
            return;
        };
        while at > 0 && row < rows[at - 1] {
            rows[at] = rows[at - 1];
            at -= 1;
        }
        rows[at] = row;
        if rows.len() == self.num {
            self.bar = rows[self.num - 1];
        }
    }
}
