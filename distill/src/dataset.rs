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
use pleach_scheduler::Rows;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::{Among, DECISION_1, Feature, FeatureSchema, Group, View};
use pleach_scheduler::policy::{DecisionPoint, TieKey, choose};
use pleach_scheduler::tree::FlatTree;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// Number of tie keys that are kept for each row.
const NUM_KEYS: usize = TieKey::ALL.len();

/// Decision points with the teacher's scores.
#[derive(Clone, Debug)]
pub struct Dataset {
    schema: &'static FeatureSchema,
    /// The columns that are kept of each row.
    view: View,
    /// Whether each is of the row, and its place there or in the context.
    places: Vec<(Group, usize)>,
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
    schema: &'static FeatureSchema,
    view: View,
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

    /// Whether a candidate is about no job, as its flag says.
    #[must_use]
    pub fn is_hold(&self, index: usize) -> bool {
        let is_its_flag = |feature: &Feature| match feature.among {
            Among::Flag(kind) => !self.schema.kinds[kind].is_about_a_job,
            Among::Varies(_) => false,
        };
        let flag = self.schema.features[..self.view.len].iter().position(is_its_flag);
        flag.is_some_and(|flag| self.candidates_view()[[index, self.schema.place(flag)]] == 1.0)
    }

    /// The candidates, without a copy. `[n, F]`
    #[must_use]
    pub fn candidates_view(&self) -> ArrayView2<'_, f32> {
        rows_of_width(self.candidates, self.view.num_row)
    }

    /// What a tree would choose here under a tie key.
    #[must_use]
    pub fn choice_of(&self, tree: &FlatTree, key: TieKey) -> usize {
        let mut scores = [0.0_f32; MAX_CANDIDATES];
        let all = [true; MAX_CANDIDATES];
        let rows = Rows {
            schema: self.schema,
            rows: self.candidates,
            width: self.view.num_row,
            context: self.global,
            mask: &all[..self.len()],
        };
        tree.walk(&rows, |index, leaf| scores[index] = tree.score_of(leaf));
        let column = TieKey::ALL.iter().position(|other| *other == key).unwrap_or(0);
        choose(&scores[..self.len()], rows.mask, |index| self.keys[index][column]).unwrap_or(0)
    }
}

impl Dataset {
    /// An empty dataset for at most `max_rows` candidates, at least [`MAX_CANDIDATES`].
    #[must_use]
    pub fn new(seed: Seed, max_rows: usize) -> Dataset {
        Dataset::of(FeatureSchema::current(), DECISION_1, seed, max_rows)
    }

    /// The same of the columns of a view.
    #[must_use]
    pub fn of(schema: &'static FeatureSchema, view: View, seed: Seed, max_rows: usize) -> Dataset {
        let group = |number: usize| schema.features[number].group;
        Dataset {
            schema,
            view,
            places: (0..view.len)
                .map(|number| (group(number), schema.place(number)))
                .collect(),
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
        let keys = |index| TieKey::ALL.map(|key| key.of(point.cluster, point.candidates, index));
        self.offer_rows(&point.observation.as_rows(), (scores, choice), keys);
    }

    /// The same with rows of any schema, and with the tie keys of each, in the order of [`TieKey::ALL`].
    ///
    /// # Panics
    /// If a row lacks columns of the view, or `scores` has another length.
    pub fn offer_rows(
        &mut self,
        rows: &Rows<'_>,
        (scores, choice): (&[f32], usize),
        keys: impl Fn(usize) -> [f64; NUM_KEYS],
    ) {
        assert_eq!(scores.len(), rows.mask.len(), "one score per candidate");
        assert_eq!(
            rows.rows.len(),
            scores.len() * rows.width,
            "the observation is filled"
        );
        let num_admissible = rows.mask.iter().filter(|admissible| **admissible).count();
        if num_admissible < 2 {
            return;
        }
        let priority = self.rng.next_u64();
        self.num_offered += 1;
        if priority > self.threshold {
            return;
        }
        for index in (0..scores.len()).filter(|index| rows.mask[*index]) {
            if index == choice {
                let row = self.teacher.len() - self.num_rows();
                self.choice.push(row as u32);
            }
            let row = &rows.row(index)[..self.view.num_row];
            self.candidates.extend_from_slice(row);
            self.teacher.push(scores[index]);
            self.keys.push(keys(index));
        }
        assert_eq!(
            self.choice.len(),
            self.first_row.len(),
            "the choice is admissible"
        );
        self.global
            .extend_from_slice(&rows.context[..self.view.num_context]);
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
            let width = self.view.num_row;
            self.candidates
                .copy_within(start * width..end * width, rows * width);
            self.teacher.copy_within(start..end, rows);
            self.keys.copy_within(start..end, rows);
            let width = self.view.num_context;
            self.global
                .copy_within(point * width..(point + 1) * width, points * width);
            self.choice[points] = self.choice[point];
            self.priority[points] = self.priority[point];
            // Rows move down only, so the ends that are still to be read are not overwritten.
            self.first_row[points] = rows;
            rows += end - start;
            points += 1;
        }
        self.candidates.truncate(rows * self.view.num_row);
        self.teacher.truncate(rows);
        self.keys.truncate(rows);
        self.global.truncate(points * self.view.num_context);
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
        rows_of_width(&self.candidates, self.view.num_row)
    }

    /// Features of the cluster and its queue at all points, without a copy. `[P, G]`
    #[must_use]
    pub fn global_view(&self) -> ArrayView2<'_, f32> {
        rows_of_width(&self.global, self.view.num_context)
    }

    /// One decision point.
    #[must_use]
    pub fn point(&self, point: usize) -> Point<'_> {
        let (start, end) = (self.first_row[point], self.first_row[point + 1]);
        let View {
            num_row, num_context, ..
        } = self.view;
        Point {
            schema: self.schema,
            view: self.view,
            candidates: &self.candidates[start * num_row..end * num_row],
            global: &self.global[point * num_context..(point + 1) * num_context],
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

    /// Its schema.
    #[must_use]
    pub fn schema(&self) -> &'static FeatureSchema {
        self.schema
    }

    /// The columns that are kept of each row.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// One number of a joined row, by the number of its column.
    pub(crate) fn value(&self, point: usize, row: usize, feature: usize) -> f32 {
        match self.places[feature] {
            (Group::Row, place) => self.candidates[row * self.view.num_row + place],
            (Group::Context, place) => self.global[point * self.view.num_context + place],
        }
    }
}

fn rows_of_width(numbers: &[f32], width: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((numbers.len() / width.max(1), width), numbers).expect("rows are whole")
}
