//! How an answer may move with a feature, kept while a tree grows.
//!
//! A split on a feature whose trend is fixed is taken only if the answers of its sides follow the trend. The middle between the two
//! answers then bounds everything that grows on either side, so that later splits cannot break it. Two rows that differ only in
//! features with a trend, all moved along it, part at such splits alone; so the one that is further along never gets less.
//!
//! # Source
//! The *basic* method of LightGBM's monotone constraints, from its description; bounds by the middle are stricter than needed.

use super::sums::Sums;

/// How the answer of a tree may move when one feature grows and all others stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trend {
    /// As it likes.
    #[default]
    Free,
    /// It may not fall.
    Rising,
    /// It may not rise.
    Falling,
    /// The feature is not asked for.
    Unused,
}

impl Trend {
    /// Both at once; what would have to rise and fall is not asked for.
    #[must_use]
    pub fn and(self, other: Trend) -> Trend {
        match (self, other) {
            (Trend::Free, one) | (one, Trend::Free) => one,
            (one, same) if one == same => one,
            _ => Trend::Unused,
        }
    }
}

/// What a node may answer, in units of moments over weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    min: f64,
    max: f64,
}

impl Bounds {
    /// Any answer.
    pub(super) const NONE: Bounds = Bounds {
        min: f64::NEG_INFINITY,
        max: f64::INFINITY,
    };

    /// What a node answers whose mean lies outside; none where its mean is right.
    pub(super) fn cut(self, sums: Sums) -> Option<f64> {
        let mean = sums.mean();
        (mean < self.min || mean > self.max).then(|| mean.clamp(self.min, self.max))
    }

    fn answer(self, sums: Sums) -> f64 {
        self.cut(sums).unwrap_or_else(|| sums.mean())
    }

    fn explained(self, sums: Sums) -> f64 {
        match self.cut(sums) {
            None => sums.explained(),
            Some(answer) => sums.explained_by(answer),
        }
    }

    /// By how much the error of a node falls if it is split into two sides; none if the trend forbids it.
    pub(super) fn gain(self, trend: Trend, whole: Sums, sides: [Sums; 2]) -> Option<f64> {
        let [left, right] = sides;
        let allowed = match trend {
            Trend::Free => true,
            Trend::Rising => self.answer(left) <= self.answer(right),
            Trend::Falling => self.answer(left) >= self.answer(right),
            Trend::Unused => false,
        };
        allowed.then(|| self.explained(left) + self.explained(right) - self.explained(whole))
    }

    /// What each side of a split may answer.
    pub(super) fn halves(self, trend: Trend, sides: [Sums; 2]) -> [Bounds; 2] {
        let middle = f64::midpoint(self.answer(sides[0]), self.answer(sides[1]));
        let (below, above) = (Bounds { max: middle, ..self }, Bounds { min: middle, ..self });
        match trend {
            Trend::Free | Trend::Unused => [self, self],
            Trend::Rising => [below, above],
            Trend::Falling => [above, below],
        }
    }
}
