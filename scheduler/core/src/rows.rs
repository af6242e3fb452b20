//! What is scored, whatever the schema: rows with what they have around them.

use crate::error::PolicyError;
use crate::features::FeatureSchema;

/// Rows of one decision. All values are finite and scaled as the schema says.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Their columns.
    pub schema: &'static FeatureSchema,
    /// `[n, width]`, row-major.
    pub rows: &'a [f32],
    /// Numbers of a row: those of a view, or all.
    pub width: usize,
    /// What all rows have around them.
    pub context: &'a [f32],
    /// `[n]`, true where the row may be chosen.
    pub mask: &'a [bool],
}

impl<'a> Rows<'a> {
    /// One row.
    #[must_use]
    #[inline]
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.rows[index * self.width..(index + 1) * self.width]
    }
}

/// Scores rows and knows nothing else: no cluster, no candidates.
pub trait Scorer: Send {
    /// The columns that it reads are of this schema.
    fn schema(&self) -> &'static FeatureSchema;

    /// Writes one finite score for each row; larger is better.
    ///
    /// # Errors
    /// Where the rows lack what it reads.
    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError>;

    /// Hears which of the rows was taken.
    fn chose(&mut self, _row: usize) {}
}
