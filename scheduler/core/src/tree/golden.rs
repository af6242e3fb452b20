//! Golden vectors: rows that follow from the tree by a stated rule, and a hash of what the tree says of them.
//!
//! A program that runs a tree elsewhere (an export, another processor, another language) makes the same rows, walks them, and
//! compares one hash. The rows are where trees part: every threshold met exactly, missed by one bit on either side, on the way to
//! its own split. A file holds the rule, the number of rows and the hash, because the rows themselves would be larger than all
//! else. `docs/policy-file.md` states the rule in full; a change of the rule is another number.

use sha2::{Digest, Sha256};

use super::error::TreeError;
use super::{FlatTree, Node, Tree};
use crate::key_weight::weighted_sum;

/// The rule by which rows are made: one draw for each column of the first view.
pub const GOLDEN_RULE: u64 = 1;
/// The rule of trees that read a column that came later: one draw for each column that is read.
const GOLDEN_RULE_OF_READS: u64 = 2;
/// Fewest and most rows of a file. Fewest: ours, *assumed*. Most: three for each of 1,023 splits and as many again fit.
pub const GOLDEN_ROWS: (u64, u64) = (1_000, 10_000);
/// Rows that are aimed at one split: on its threshold, a bit above, a bit below.
const ROWS_OF_A_SPLIT: usize = 3;

/// What a file says of its golden vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Number of rows.
    pub num_rows: u64,
    /// Hex SHA-256 over the values, leaf, score and key of each row.
    pub sha256: String,
}

/// Numbers that only have to differ: the generator of *Numerical Recipes* (Press et al., 1992, `ranqd1`), its upper 24 bits.
struct Draws(u32);

impl Draws {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

/// A split with the way to it.
struct Aim {
    feature: usize,
    threshold: f32,
    /// Splits from the root down: feature, threshold, whether the way goes left.
    way: Vec<(usize, f32, bool)>,
}

/// All splits in the order of nodes.
fn aims(tree: &Tree) -> Vec<Aim> {
    let mut ways: Vec<Vec<(usize, f32, bool)>> = vec![Vec::new(); tree.nodes().len()];
    let mut aims = Vec::new();
    // Every child comes after its parent, so its way is known when it is reached.
    for (place, node) in tree.nodes().iter().enumerate() {
        if let Node::Split {
            feature,
            threshold,
            left,
            right,
        } = *node
        {
            let way = std::mem::take(&mut ways[place]);
            for (child, is_left) in [(left, true), (right, false)] {
                let mut own = way.clone();
                own.push((feature.into(), threshold, is_left));
                ways[child as usize] = own;
            }
            aims.push(Aim {
                feature: feature.into(),
                threshold,
                way,
            });
        }
    }
    aims
}

impl Tree {
    /// The rule by which its golden rows are made.
    pub(crate) fn golden_rule(&self) -> u64 {
        if self.is_of_first_view() {
            GOLDEN_RULE
        } else {
            GOLDEN_RULE_OF_READS
        }
    }

    /// Numbers of the columns that its golden rows have.
    fn golden_columns(&self) -> Vec<usize> {
        if self.is_of_first_view() {
            (0..self.width()).collect()
        } else {
            self.reads().into_iter().map(usize::from).collect()
        }
    }

    /// The first `num` golden rows, by its rule: joined features, scaled, 0 in columns that the rule leaves out. `[num, width]`
    #[must_use]
    pub fn golden_rows(&self, num: usize) -> Vec<Vec<f32>> {
        let (aims, columns) = (aims(self), self.golden_columns());
        let mut draws = Draws(1);
        (0..num)
            .map(|number| {
                // From -1 to 3 in steps of 2^-22, which holds most of every feature's scaled range; exact in 32 bits.
                let value = |draw: u32| (f64::from(draw) / 4_194_304.0 - 1.0) as f32;
                let mut row = vec![0.0; self.width()];
                for column in &columns {
                    row[*column] = value(draws.next());
                }
                match aims.get(number / ROWS_OF_A_SPLIT) {
                    Some(aim) => aim.apply(number % ROWS_OF_A_SPLIT, &mut row),
                    None => near_thresholds(&aims, &mut draws, &mut row),
                }
                row
            })
            .collect()
    }

    /// What a file written today says of its golden vectors: three rows for each split and a thousand more.
    #[must_use]
    pub fn golden(&self) -> Golden {
        let num_splits = self.nodes().len() / 2;
        let num_rows = GOLDEN_ROWS.0 + (ROWS_OF_A_SPLIT * num_splits) as u64;
        Golden {
            num_rows,
            sha256: self.golden_hash(num_rows as usize),
        }
    }

    /// Hex SHA-256 over the first `num` golden rows and what the tree says of them, by the walk that runs.
    fn golden_hash(&self, num: usize) -> String {
        let flat = FlatTree::of(self);
        let (mut digest, columns) = (Sha256::new(), self.golden_columns());
        for row in self.golden_rows(num) {
            // Rows move with the thresholds, so a threshold that is read wrongly is seen in the rows alone.
            columns
                .iter()
                .for_each(|column| digest.update(row[*column].to_le_bytes()));
            let leaf = flat.leaf_of(&row);
            if let Node::Leaf { id, .. } = self.nodes()[flat.place_of(leaf)] {
                digest.update(id.to_le_bytes());
            }
            digest.update(flat.score_of(leaf).to_le_bytes());
            digest.update(weighted_sum(&self.meta().key_weights, &row).to_le_bytes());
        }
        let digest: [u8; 32] = digest.finalize().into();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// That this program answers as the one did that wrote the file.
    ///
    /// # Errors
    /// Another rule, a number of rows out of range, another hash.
    pub(super) fn check_golden(&self, rule: u64, golden: &Golden) -> Result<(), TreeError> {
        let fail = |key, value: String, allowed: String| Err(TreeError::Value { key, value, allowed });
        let own = self.golden_rule();
        if rule != own {
            let allowed = format!(
                "{own}, the rule of such a tree in this program: read the file with the one that wrote it"
            );
            return fail("golden.rule", rule.to_string(), allowed);
        }
        let (least, most) = GOLDEN_ROWS;
        if !(least..=most).contains(&golden.num_rows) {
            return fail(
                "golden.rows",
                golden.num_rows.to_string(),
                format!("{least} to {most}"),
            );
        }
        let found = self.golden_hash(golden.num_rows as usize);
        if found != golden.sha256 {
            let allowed = format!(
                "{found}, which is what this tree says here: it was edited since, or one of the two programs is wrong. \
                 After an edit, make it anew with pleach distill seal FILE"
            );
            return fail("golden.sha256", golden.sha256.chars().take(64).collect(), allowed);
        }
        Ok(())
    }
}

impl Aim {
    /// Leads a row to the split and puts it on the threshold (0), a bit above (1) or a bit below (2).
    fn apply(&self, side: usize, row: &mut [f32]) {
        for (feature, threshold, is_left) in &self.way {
            let value = &mut row[*feature];
            if *is_left && *value > *threshold {
                *value = *threshold;
            } else if !*is_left && *value <= *threshold {
                *value = threshold.next_up();
            }
        }
        row[self.feature] = match side {
            0 => self.threshold,
            1 => self.threshold.next_up(),
            _ => self.threshold.next_down(),
        };
    }
}

/// Puts a row on thresholds, or a bit beside, where the draws say so.
fn near_thresholds(aims: &[Aim], draws: &mut Draws, row: &mut [f32]) {
    for aim in aims {
        row[aim.feature] = match draws.next() % 6 {
            0 | 1 => aim.threshold,
            2 => aim.threshold.next_up(),
            3 => aim.threshold.next_down(),
            _ => continue,
        };
    }
}

#[cfg(test)]
mod tests;
