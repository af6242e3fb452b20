//! Observations without their padding: only admissible candidates are kept, decision after decision.
//!
//! An environment offers up to 64 candidates and usually far fewer are admissible. What is masked is never computed,
//! neither in rollouts nor in learning. An action is therefore kept twice: as the environment's index, and as the
//! *choice*, its position among the admissible candidates.

use pleach_scheduler::observation::Spaces;

use crate::Error;
use crate::error::unfit;

/// Decisions in flat arrays, ragged in their candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionBatch {
    num_global: usize,
    num_features: usize,
    global: Vec<f32>,
    candidates: Vec<f32>,
    /// Prior logits, which a loss sees added to the network's; zero without a prior.
    prior: Vec<f32>,
    /// Decision d has the candidates `ends[d] .. ends[d + 1]`.
    ends: Vec<usize>,
}

/// One decision.
#[derive(Clone, Copy, Debug)]
pub struct DecisionRef<'a> {
    /// `[G]`
    pub global: &'a [f32],
    /// `[n, F]`, the admissible candidates in the environment's order.
    pub candidates: &'a [f32],
    /// n
    pub num_candidates: usize,
    /// `[n]`, added to the network's logits.
    pub prior: &'a [f32],
}

impl DecisionBatch {
    /// No decisions yet.
    #[must_use]
    pub fn new(spaces: Spaces) -> DecisionBatch {
        DecisionBatch {
            num_global: spaces.num_global,
            num_features: spaces.num_features,
            global: Vec::new(),
            candidates: Vec::new(),
            prior: Vec::new(),
            ends: vec![0],
        }
    }

    /// No decisions yet, of the same sizes.
    #[must_use]
    pub fn empty_like(&self) -> DecisionBatch {
        DecisionBatch {
            global: Vec::new(),
            candidates: Vec::new(),
            prior: Vec::new(),
            ends: vec![0],
            ..*self
        }
    }

    /// Forgets all decisions and keeps the memory.
    pub fn clear(&mut self) {
        self.global.clear();
        self.candidates.clear();
        self.prior.clear();
        self.ends.truncate(1);
    }

    /// Number of decisions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// No decisions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of candidates of all decisions.
    #[must_use]
    pub fn num_candidates(&self) -> usize {
        self.ends[self.len()]
    }

    /// Adds a decision of `candidates` `[C, F]`, of which those in `mask` `[C]` are admissible.
    pub fn push(&mut self, global: &[f32], candidates: &[f32], mask: &[bool]) {
        debug_assert_eq!(
            (global.len(), candidates.len()),
            (self.num_global, mask.len() * self.num_features)
        );
        self.global.extend_from_slice(global);
        for (row, admissible) in candidates.chunks_exact(self.num_features).zip(mask) {
            if *admissible {
                self.candidates.extend_from_slice(row);
            }
        }
        self.ends.push(self.candidates.len() / self.num_features);
        self.prior.resize(self.num_candidates(), 0.0);
    }

    /// Sets the prior logits of the last decision from those of all its candidates, `[C]`.
    pub fn set_prior(&mut self, prior: &[f32], mask: &[bool]) {
        let start = self.ends[self.len().saturating_sub(1)];
        let admissible = prior.iter().zip(mask).filter(|(_, admissible)| **admissible);
        let own = self.prior[start..].iter_mut();
        own.zip(admissible).for_each(|(own, (prior, _))| *own = *prior);
    }

    /// Adds a decision that has no padding.
    pub fn push_ref(&mut self, row: DecisionRef<'_>) {
        self.global.extend_from_slice(row.global);
        self.candidates.extend_from_slice(row.candidates);
        self.prior.extend_from_slice(row.prior);
        self.ends.push(self.candidates.len() / self.num_features);
    }

    /// Adds all decisions of another list.
    pub fn extend(&mut self, other: &DecisionBatch) {
        let start = self.num_candidates();
        self.global.extend_from_slice(&other.global);
        self.candidates.extend_from_slice(&other.candidates);
        self.prior.extend_from_slice(&other.prior);
        self.ends.extend(other.ends[1..].iter().map(|end| start + end));
    }

    /// Decision `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> DecisionRef<'_> {
        let (start, end) = (self.ends[index], self.ends[index + 1]);
        DecisionRef {
            global: &self.global[index * self.num_global..(index + 1) * self.num_global],
            candidates: &self.candidates[start * self.num_features..end * self.num_features],
            num_candidates: end - start,
            prior: &self.prior[start..end],
        }
    }

    /// First and last-plus-one candidate of decision `index` in the flat list.
    #[must_use]
    pub fn span(&self, index: usize) -> std::ops::Range<usize> {
        self.ends[index]..self.ends[index + 1]
    }

    /// `[len, G]`
    #[must_use]
    pub fn global(&self) -> &[f32] {
        &self.global
    }

    /// `[num_candidates]`
    #[must_use]
    pub fn prior(&self) -> &[f32] {
        &self.prior
    }

    /// `[num_candidates, F]`
    #[must_use]
    pub fn candidates(&self) -> &[f32] {
        &self.candidates
    }

    /// Checks the sizes: numbers that are not about a candidate, and features of a candidate.
    ///
    /// # Errors
    /// An [`Error`] with both sides.
    pub fn check(&self, num_global: usize, num_features: usize) -> Result<(), Error> {
        let (expected, found) = ((num_global, num_features), (self.num_global, self.num_features));
        if expected != found {
            let text = |(g, f): (usize, usize)| format!("{g} global and {f} candidate features");
            return Err(unfit("observations", text(expected), text(found)));
        }
        Ok(())
    }
}

/// Position of `action` among the admissible candidates; None where it is masked.
#[must_use]
pub fn choice_of(action: usize, mask: &[bool]) -> Option<usize> {
    let admissible = mask.get(action).copied().unwrap_or(false);
    admissible.then(|| mask[..action].iter().filter(|admissible| **admissible).count())
}

/// The environment's index of the admissible candidate at position `choice`; None where there are fewer.
#[must_use]
pub fn action_of(choice: usize, mask: &[bool]) -> Option<usize> {
    mask.iter()
        .enumerate()
        .filter(|(_, admissible)| **admissible)
        .nth(choice)
        .map(|(action, _)| action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_candidates_are_not_kept_and_choices_lead_back_to_actions() {
        let mut rows = DecisionBatch::new(Spaces::new(1, 4, 2));
        let mask = [true, false, true, false];
        rows.push(&[9.0], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &mask);
        rows.push(
            &[8.0],
            &[1.5, 2.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            &[true, false, false, false],
        );
        assert_eq!((rows.len(), rows.num_candidates()), (2, 3));
        assert_eq!(rows.get(0).candidates, [0.0, 1.0, 4.0, 5.0]);
        assert_eq!(rows.get(1).candidates, [1.5, 2.5]);
        assert_eq!(rows.get(1).global, [8.0]);
        assert_eq!(
            (choice_of(2, &mask), choice_of(1, &mask), choice_of(7, &mask)),
            (Some(1), None, None)
        );
        assert_eq!((action_of(1, &mask), action_of(2, &mask)), (Some(2), None));
        let mut twice = rows.clone();
        twice.extend(&rows);
        assert_eq!(twice.get(3).candidates, [1.5, 2.5]);
        assert_eq!(twice.get(2).candidates, twice.get(0).candidates);
    }
}
