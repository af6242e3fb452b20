//! What growth counts of some rows.

/// Sums of some rows, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Of the weights, fixed-point.
    pub(super) weight: i64,
    /// Of weight times target, fixed-point.
    pub(super) moment: i64,
    pub(super) rows: u32,
}

impl Sums {
    pub(super) fn add(&mut self, other: Sums) {
        self.weight += other.weight;
        self.moment += other.moment;
        self.rows += other.rows;
    }

    pub(super) fn less(self, other: Sums) -> Sums {
        Sums {
            weight: self.weight - other.weight,
            moment: self.moment - other.moment,
            rows: self.rows - other.rows,
        }
    }

    /// moment^2 / weight: what the mean of these rows explains.
    pub(super) fn explained(self) -> f64 {
        let moment = self.moment as f64;
        moment * moment / self.weight as f64
    }

    /// What another answer than their mean explains of these rows.
    pub(super) fn explained_by(self, answer: f64) -> f64 {
        answer * (2.0 * self.moment as f64 - answer * self.weight as f64)
    }

    /// Their mean, in units of moments over weights.
    pub(super) fn mean(self) -> f64 {
        self.moment as f64 / self.weight as f64
    }
}
