//! Recorded decision points: what was offered, what the teacher thought of it, and what it chose.
//!
//! Flat arrays with a stated bound. Every offered point draws a priority from a seeded stream; when the rows exceed the
//! bound, points above a falling threshold are dropped. So what is kept is a uniform sample of all that was offered,
//! whatever its number, and the same in every run.
//!
//! # Source
//! Sampling by a threshold on random priorities (bottom-k sampling; Cohen and Kaplan, PODC'07). A stride would be
//! simpler, but passes alternate between starts and holds, and every second point may be of one kind.

use ndarray::ArrayView2;
use pleach_env::Seed;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};
use pleach_scheduler::policy::{DecisionPoint, TieKey, choose};
use pleach_scheduler::tree::FlatTree;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// Length of the joined row: a candidate's features, then the global ones.
pub(crate) const NUM_FEATURES: usize = NUM_CANDIDATE_FEATURES + NUM_GLOBAL_FEATURES;
/// Number of tie keys that are kept for each row.
const NUM_KEYS: usize = TieKey::ALL.len();

/// Decision points with the teacher's scores.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// `[R, F]`
    candidates: Vec<f32>,
    /// `[P, G]`
    global: Vec<f32>,
    /// First row of each point, and the number of rows at the end. `[P + 1]`
    first_row: Vec<usize>,
    /// `[R]`
    teacher: Vec<f32>,
    /// In the order of [`TieKey::ALL`]. `[R]`
    keys: Vec<[f64; NUM_KEYS]>,
    /// Row of the teacher's choice, within its point. `[P]`
    choice: Vec<u32>,
    /// `[P]`
    priority: Vec<u64>,
    /// Points with a priority above it are dropped.
    threshold: u64,
    max_rows: usize,
    num_offered: u64,
    rng: ChaCha8Rng,
}

/// One recorded decision point.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// `[n, F]`
    pub candidates: &'a [f32],
    /// `[G]`
    pub global: &'a [f32],
    /// The teacher's scores. `[n]`
    pub teacher: &'a [f32],
    /// What the teacher chose.
    pub choice: usize,
    keys: &'a [[f64; NUM_KEYS]],
}

impl Point<'_> {
    /// Number of candidates, n.
    #[must_use]
    pub fn len(&self) -> usize {
        self.teacher.len()
    }

    /// Never: a point has at least two candidates.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.teacher.is_empty()
    }

    /// Whether a candidate is to hold.
    #[must_use]
    pub fn is_hold(&self, index: usize) -> bool {
        // The first feature of a candidate.
        self.candidates_view()[[index, 0]] == 1.0
    }

    /// The candidates, without a copy. `[n, F]`
    #[must_use]
    pub fn candidates_view(&self) -> ArrayView2<'_, f32> {
        rows_of_width::<NUM_CANDIDATE_FEATURES>(self.candidates)
    }

    /// What a tree would choose here under a tie key.
    #[must_use]
    pub fn choice_of(&self, tree: &FlatTree, key: TieKey) -> usize {
        let mut row = [0.0_f32; NUM_FEATURES];
        row[NUM_CANDIDATE_FEATURES..].copy_from_slice(self.global);
        let mut scores = [0.0_f32; MAX_CANDIDATES];
        for (score, candidate) in scores
            .iter_mut()
            .zip(self.candidates.chunks_exact(NUM_CANDIDATE_FEATURES))
        {
            row[..NUM_CANDIDATE_FEATURES].copy_from_slice(candidate);
            *score = tree.score_of(tree.leaf_of(&row));
        }
        let column = TieKey::ALL.iter().position(|other| *other == key).unwrap_or(0);
        let mask = [true; MAX_CANDIDATES];
        choose(&scores[..self.len()], &mask[..self.len()], |index| {
            self.keys[index][column]
        })
        .unwrap_or(0)
    }
}

impl Dataset {
    /// An empty dataset for at most `max_rows` candidates, at least [`MAX_CANDIDATES`].
    #[must_use]
    pub fn new(seed: Seed, max_rows: usize) -> Dataset {
        Dataset {
            candidates: Vec::new(),
            global: Vec::new(),
            first_row: vec![0],
            teacher: Vec::new(),
            keys: Vec::new(),
            choice: Vec::new(),
            priority: Vec::new(),
            threshold: u64::MAX,
            max_rows: max_rows.max(MAX_CANDIDATES),
            num_offered: 0,
            rng: seed.stream("distill.dataset", 0),
        }
    }

    /// Offers a decision point with the teacher's scores and choice. Points with fewer than two admissible candidates
    /// teach nothing and are passed over.
    ///
    /// # Panics
    /// If the observation was not filled or `scores` has another length.
    pub fn offer(&mut self, point: &DecisionPoint<'_>, scores: &[f32], choice: usize) {
        let observation = &point.observation;
        assert_eq!(scores.len(), observation.mask.len(), "one score per candidate");
        assert_eq!(
            observation.candidates.len(),
            scores.len() * NUM_CANDIDATE_FEATURES,
            "the observation is filled"
        );
        let num_admissible = observation.mask.iter().filter(|admissible| **admissible).count();
        if num_admissible < 2 {
            return;
        }
        let priority = self.rng.next_u64();
        self.num_offered += 1;
        if priority > self.threshold {
            return;
        }
        for index in (0..scores.len()).filter(|index| observation.mask[*index]) {
            if index == choice {
                let row = self.teacher.len() - self.num_rows();
                self.choice.push(row as u32);
            }
            self.candidates.extend_from_slice(observation.row(index));
            self.teacher.push(scores[index]);
            self.keys
                .push(TieKey::ALL.map(|key| key.of(point.cluster, point.candidates, index)));
        }
        assert_eq!(
            self.choice.len(),
            self.first_row.len(),
            "the choice is admissible"
        );
        self.global.extend_from_slice(observation.global);
        self.priority.push(priority);
        self.first_row.push(self.teacher.len());
        while self.num_rows() > self.max_rows {
            self.threshold /= 2;
            self.thin();
        }
    }

    /// Drops the points above the threshold, keeping the order of the others.
    fn thin(&mut self) {
        let (mut points, mut rows) = (0, 0);
        for point in 0..self.num_points() {
            if self.priority[point] > self.threshold {
                continue;
            }
            let (start, end) = (self.first_row[point], self.first_row[point + 1]);
            let width = NUM_CANDIDATE_FEATURES;
            self.candidates
                .copy_within(start * width..end * width, rows * width);
            self.teacher.copy_within(start..end, rows);
            self.keys.copy_within(start..end, rows);
            let width = NUM_GLOBAL_FEATURES;
            self.global
                .copy_within(point * width..(point + 1) * width, points * width);
            self.choice[points] = self.choice[point];
            self.priority[points] = self.priority[point];
            // Rows move down only, so the ends that are still to be read are not overwritten.
            self.first_row[points] = rows;
            rows += end - start;
            points += 1;
        }
        self.candidates.truncate(rows * NUM_CANDIDATE_FEATURES);
        self.teacher.truncate(rows);
        self.keys.truncate(rows);
        self.global.truncate(points * NUM_GLOBAL_FEATURES);
        self.choice.truncate(points);
        self.priority.truncate(points);
        self.first_row.truncate(points);
        self.first_row.push(rows);
    }

    /// Decision points that were offered, kept or not.
    #[must_use]
    pub fn num_offered(&self) -> u64 {
        self.num_offered
    }

    /// Decision points that are kept, P.
    #[must_use]
    pub fn num_points(&self) -> usize {
        self.first_row.len() - 1
    }

    /// Candidates that are kept, R.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.first_row.last().copied().unwrap_or(0)
    }

    /// Features of all candidates, point after point, without a copy. `[R, F]`
    ///
    /// ```
    /// use pleach_distill::Dataset;
    /// use pleach_env::Seed;
    ///
    /// let dataset = Dataset::new(Seed(1), 1000);
    /// assert_eq!(dataset.candidates_view().nrows(), dataset.num_rows());
    /// assert_eq!(dataset.global_view().nrows(), dataset.num_points());
    /// ```
    #[must_use]
    pub fn candidates_view(&self) -> ArrayView2<'_, f32> {
        rows_of_width::<NUM_CANDIDATE_FEATURES>(&self.candidates)
    }

    /// Features of the cluster and its queue at all points, without a copy. `[P, G]`
    #[must_use]
    pub fn global_view(&self) -> ArrayView2<'_, f32> {
        rows_of_width::<NUM_GLOBAL_FEATURES>(&self.global)
    }

    /// One decision point.
    #[must_use]
    pub fn point(&self, point: usize) -> Point<'_> {
        let (start, end) = (self.first_row[point], self.first_row[point + 1]);
        Point {
            candidates: &self.candidates[start * NUM_CANDIDATE_FEATURES..end * NUM_CANDIDATE_FEATURES],
            global: &self.global[point * NUM_GLOBAL_FEATURES..(point + 1) * NUM_GLOBAL_FEATURES],
            teacher: &self.teacher[start..end],
            choice: self.choice[point] as usize,
            keys: &self.keys[start..end],
        }
    }

    /// Splits the points at random, the same way for as long as they are kept: those to learn from, and a share that is
    /// held out.
    #[must_use]
    pub fn split(&self, held_out: f64) -> (Vec<usize>, Vec<usize>) {
        // The low bits of the priority are independent of the high ones, which the threshold looks at.
        let bound = (held_out.clamp(0.0, 1.0) * f64::from(1_u32 << 20)) as u64;
        (0..self.num_points()).partition(|point| self.priority[*point] & ((1 << 20) - 1) >= bound)
    }

    pub(crate) fn rows_of(&self, point: usize) -> std::ops::Range<usize> {
        self.first_row[point]..self.first_row[point + 1]
    }

    /// One number of a joined row.
    pub(crate) fn value(&self, point: usize, row: usize, feature: usize) -> f32 {
        match feature.checked_sub(NUM_CANDIDATE_FEATURES) {
            None => self.candidates[row * NUM_CANDIDATE_FEATURES + feature],
            Some(feature) => self.global[point * NUM_GLOBAL_FEATURES + feature],
        }
    }
}

fn rows_of_width<const WIDTH: usize>(numbers: &[f32]) -> ArrayView2<'_, f32> {
    ArrayView2::from(numbers.as_chunks::<WIDTH>().0)
}
