//! The account of a reader: rows read, kept, left out and mended, each by its reason. Every reader that leaves out rows fills one,
//! so that all lists of jobs, requests, calls and nodes are accounted for in the same words.

use serde::{Deserialize, Serialize};

use crate::shorten;

/// A rule that was applied to some rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// What was wrong and what was done.
    pub rule: String,
    /// Rows it was applied to; of mended rows, those that stayed.
    pub rows: u64,
    /// Whether the rows were left out rather than mended.
    pub excluded: bool,
    /// The first value that it was applied to, as it is written, where the rule is about one cell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// Rows read, and what became of them; rows read = rows kept + rows of the rules that leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Rows in the source, without a header.
    pub rows_read: u64,
    /// Rules that were applied, in the order in which they first were.
    pub repairs: Vec<Repair>,
}

impl Account {
    /// Counts rows that are left out.
    pub fn leave_out(&mut self, reason: &str, rows: u64) {
        self.count(reason, rows, true, "");
    }

    /// Counts a row that is left out for a cell that cannot be read; the first such cell is shown.
    pub fn leave_out_for(&mut self, reason: &str, cell: &str) {
        self.count(reason, 1, true, cell);
    }

    /// Counts rows that are mended and stay.
    pub fn mend(&mut self, rule: &str, rows: u64) {
        self.count(rule, rows, false, "");
    }

    fn count(&mut self, rule: &str, rows: u64, excluded: bool, example: &str) {
        if rows == 0 {
            return;
        }
        let same = |known: &&mut Repair| known.rule == rule && known.excluded == excluded;
        match self.repairs.iter_mut().find(same) {
            Some(known) => known.rows += rows,
            None => self.repairs.push(Repair {
                rule: rule.into(),
                rows,
                excluded,
                example: shorten(example),
            }),
        }
    }

    /// Rows left out by any rule.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let out = self.repairs.iter().filter(|repair| repair.excluded);
        out.map(|repair| repair.rows).sum()
    }

    /// Rows that the rule starting with `start` was applied to; 0 where it was not.
    #[must_use]
    pub fn rows_of(&self, start: &str) -> u64 {
        let of = self
            .repairs
            .iter()
            .filter(|repair| repair.rule.starts_with(start));
        of.map(|repair| repair.rows).sum()
    }

    /// `7 rows read, 5 kept, 2 left out`.
    #[must_use]
    pub fn sums(&self, rows: &str) -> String {
        let (read, out) = (self.rows_read, self.left_out());
        format!(
            "{read} {rows} read, {} kept, {out} left out",
            read.saturating_sub(out)
        )
    }

    /// A line for each rule: `left out: asks for no GPU: 2 rows`.
    pub fn lines(&self, rows: &str) -> impl Iterator<Item = String> {
        self.repairs.iter().map(move |repair| {
            let verb = if repair.excluded { "left out" } else { "mended" };
            let such = match repair.example.as_str() {
                "" => String::new(),
                cell => format!(", such as `{cell}`"),
            };
            format!("{verb}: {}{such}: {} {rows}", repair.rule, repair.rows)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_are_rows_kept_and_rows_left_out() {
        let mut account = Account {
            rows_read: 7,
            ..Account::default()
        };
        account.leave_out("asks for no GPU", 1);
        account.leave_out("never began", 0);
        account.leave_out_for("its GPUs are not understood", "1,5");
        account.leave_out_for("its GPUs are not understood", "2,5");
        account.mend("asks for no GPU", 1);
        assert_eq!(account.sums("rows"), "7 rows read, 4 kept, 3 left out");
        let lines: Vec<String> = account.lines("rows").collect();
        assert_eq!(
            lines,
            [
                "left out: asks for no GPU: 1 rows",
                "left out: its GPUs are not understood, such as `1,5`: 2 rows",
                "mended: asks for no GPU: 1 rows",
            ]
        );
        assert_eq!((account.left_out(), account.rows_of("its GPUs")), (3, 2));
    }
}
