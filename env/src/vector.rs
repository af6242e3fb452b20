//! The words that environments and learners share: spaces, steps, and batches over N environments.
//!
//! Words and rules are Gymnasium's: `terminated` and `truncated` are kept apart, buffers belong to the caller, and the
//! autoreset mode is declared.

use ndarray::{ArrayView2, ArrayView3};
use pleach_scheduler::Problem;
pub use pleach_scheduler::observation::Spaces;
use pleach_scheduler::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::error::{Error, StepError};
use crate::metrics::Metrics;
use crate::world::Integrals;

/// Where one observation is written: the caller's buffers. Rows beyond the present candidates are zero and masked.
///
/// A row that comes in masked must be zero, as it is in a fresh [`Batch`] and in all that an environment has written; only rows
/// that come in unmasked are wiped out. Buffers with anything else in them come in with every row unmasked.
#[derive(Debug)]
pub struct ObservationMut<'a> {
    /// `[G]`
    pub global: &'a mut [f32],
    /// `[C, F]`, row-major.
    pub candidates: &'a mut [f32],
    /// `[C]`, true where the action is admissible. Read before it is written, see above.
    pub mask: &'a mut [bool],
}

/// What one step returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Reward of the step, in the unit that the configuration names.
    pub reward: f32,
    /// The episode has ended by itself: every job has left.
    pub terminated: bool,
    /// The episode was cut; the future is worth something still.
    pub truncated: bool,
    /// Simulated time that passed, s; zero between two decisions of one pass.
    pub dt_s: f64,
    /// What the step added to the integrals that rewards are made of.
    pub gained: Integrals,
}

/// What happens in the step after an episode's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutoresetMode {
    /// The same step begins the next episode: the buffers hold its first observation, `final_*` the last of the old one.
    #[default]
    SameStep,
    /// The next step begins it: that step takes no notice of its action and returns reward 0, no time, and no end.
    NextStep,
    /// Nothing: the caller resets; stepping an ended environment is an error.
    Disabled,
}

/// One step of N environments, in buffers that are allocated once.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// `[N, G]`
    pub global: Vec<f32>,
    /// `[N, C, F]`
    pub candidates: Vec<f32>,
    /// `[N, C]`
    pub mask: Vec<bool>,
    /// `[N]`
    pub reward: Vec<f32>,
    /// `[N]`
    pub terminated: Vec<bool>,
    /// `[N]`
    pub truncated: Vec<bool>,
    /// `[N]`, s.
    pub dt_s: Vec<f64>,
    /// `[N]`, what the step added to the integrals that rewards are made of.
    pub gained: Vec<Integrals>,
    /// `[N, G]`, valid where the episode ended in this step.
    pub final_global: Vec<f32>,
    /// `[N, C, F]`, valid where the episode ended in this step.
    pub final_candidates: Vec<f32>,
    /// `[N, C]`, valid where the episode ended in this step.
    pub final_mask: Vec<bool>,
    /// `[N]`, the figures of an episode in the step that ended it.
    pub episode: Vec<Option<Metrics>>,
}

/// The same in borrowed slices, for example arrays of another language. Lengths as in [`Batch`]; a row that is
/// masked must be zero, see [`ObservationMut`].
#[derive(Debug)]
pub struct BatchMut<'a> {
    /// `[N, G]`
    pub global: &'a mut [f32],
    /// `[N, C, F]`
    pub candidates: &'a mut [f32],
    /// `[N, C]`
    pub mask: &'a mut [bool],
    /// `[N]`
    pub reward: &'a mut [f32],
    /// `[N]`
    pub terminated: &'a mut [bool],
    /// `[N]`
    pub truncated: &'a mut [bool],
    /// `[N]`, s.
    pub dt_s: &'a mut [f64],
    /// `[N]`
    pub gained: &'a mut [Integrals],
    /// `[N, G]`
    pub final_global: &'a mut [f32],
    /// `[N, C, F]`
    pub final_candidates: &'a mut [f32],
    /// `[N, C]`
    pub final_mask: &'a mut [bool],
    /// `[N]`
    pub episode: &'a mut [Option<Metrics>],
}

impl BatchMut<'_> {
    /// Refuses slices that are not as long as the spaces of `num_envs` environments ask.
    ///
    /// # Errors
    /// The first length that differs.
    pub fn check(&self, spaces: Spaces, num_envs: usize) -> Result<(), StepError> {
        let rows = num_envs * spaces.num_candidates;
        let (global, cells) = (num_envs * spaces.num_global, rows * spaces.num_features);
        let lengths = [
            (self.global.len(), global),
            (self.candidates.len(), cells),
            (self.mask.len(), rows),
            (self.reward.len(), num_envs),
            (self.terminated.len(), num_envs),
            (self.truncated.len(), num_envs),
            (self.dt_s.len(), num_envs),
            (self.gained.len(), num_envs),
            (self.final_global.len(), global),
            (self.final_candidates.len(), cells),
            (self.final_mask.len(), rows),
            (self.episode.len(), num_envs),
        ];
        match lengths.into_iter().find(|(found, expected)| found != expected) {
            Some((found, expected)) => Err(StepError::Shape { expected, found }),
            None => Ok(()),
        }
    }
}

impl Batch {
    /// Its buffers as slices.
    pub fn lend(&mut self) -> BatchMut<'_> {
        BatchMut {
            global: &mut self.global,
            candidates: &mut self.candidates,
            mask: &mut self.mask,
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            dt_s: &mut self.dt_s,
            gained: &mut self.gained,
            final_global: &mut self.final_global,
            final_candidates: &mut self.final_candidates,
            final_mask: &mut self.final_mask,
            episode: &mut self.episode,
        }
    }

    /// Buffers for `num_envs` environments.
    #[must_use]
    pub fn new(spaces: Spaces, num_envs: usize) -> Batch {
        let Spaces {
            num_global,
            num_candidates,
            num_features,
            ..
        } = spaces;
        let (rows, cells) = (
            num_envs * num_candidates,
            num_envs * num_candidates * num_features,
        );
        Batch {
            global: vec![0.0; num_envs * num_global],
            candidates: vec![0.0; cells],
            mask: vec![false; rows],
            reward: vec![0.0; num_envs],
            terminated: vec![false; num_envs],
            truncated: vec![false; num_envs],
            dt_s: vec![0.0; num_envs],
            gained: vec![Integrals::default(); num_envs],
            final_global: vec![0.0; num_envs * num_global],
            final_candidates: vec![0.0; cells],
            final_mask: vec![false; rows],
            episode: vec![None; num_envs],
        }
    }

    /// N.
    #[must_use]
    pub fn num_envs(&self) -> usize {
        self.reward.len()
    }

    /// The candidates of all environments, without a copy. `[num_envs, num_candidates, num_features]`
    ///
    /// ```
    /// # use pleach_env::{AutoresetMode, Batch, EnvConfig, VecEnv, VectorEnv};
    /// # let config = EnvConfig::registered("Pleach/Philly-v0")?;
    /// let mut envs = VecEnv::new(&config, 2, AutoresetMode::SameStep)?;
    /// let mut batch = Batch::new(envs.spaces(), 2);
    /// envs.reset(&[1, 2], &mut batch)?;
    /// let candidates = batch.candidates_view();
    /// assert_eq!(candidates.shape()[..2], [2, envs.spaces().num_candidates]);
    /// // The first candidate is to hold, and "is_hold" the first feature.
    /// assert_eq!(candidates[[1, 0, 0]], 1.0);
    /// # Ok::<(), pleach_env::Error>(())
    /// ```
    ///
    /// # Panics
    /// If a buffer was shortened.
    #[must_use]
    pub fn candidates_view(&self) -> ArrayView3<'_, f32> {
        let (num_envs, num_rows) = (self.num_envs(), self.mask.len());
        let shape = (
            num_envs,
            part(num_rows, num_envs),
            part(self.candidates.len(), num_rows),
        );
        shaped(ArrayView3::from_shape(shape, &self.candidates))
    }

    /// The global numbers of all environments, without a copy. `[num_envs, num_global]`
    ///
    /// # Panics
    /// If a buffer was shortened.
    #[must_use]
    pub fn global_view(&self) -> ArrayView2<'_, f32> {
        let num_envs = self.num_envs();
        let shape = (num_envs, part(self.global.len(), num_envs));
        shaped(ArrayView2::from_shape(shape, &self.global))
    }

    /// The masks of all environments, without a copy: true where the action is admissible. `[num_envs, num_candidates]`
    ///
    /// # Panics
    /// If a buffer was shortened.
    #[must_use]
    pub fn mask_view(&self) -> ArrayView2<'_, bool> {
        let num_envs = self.num_envs();
        let shape = (num_envs, part(self.mask.len(), num_envs));
        shaped(ArrayView2::from_shape(shape, &self.mask))
    }
}

/// Numbers of one of so many equal parts; 0 of none.
fn part(len: usize, num: usize) -> usize {
    len.checked_div(num).unwrap_or(0)
}

fn shaped<V>(view: Result<V, ndarray::ShapeError>) -> V {
    view.unwrap_or_else(|error| panic!("the buffers of a batch keep their lengths: {error}"))
}

/// N environments that step together. The learner knows only this. They may be stepped on another thread than the one that learns.
pub trait VectorEnv: Send {
    /// Sizes of one environment's observation.
    fn spaces(&self) -> Spaces;

    /// N.
    fn num_envs(&self) -> usize;

    /// Begins a new episode in every environment; `seeds[i]` decides all that happens in environment i (and, with
    /// autoreset, in the episodes that follow there). Writes the first observations.
    ///
    /// # Errors
    /// Where an environment cannot make its workload.
    fn reset(&mut self, seeds: &[u64], batch: &mut Batch) -> Result<(), Error>;

    /// Takes one action in every environment.
    ///
    /// # Errors
    /// An action that is out of range or masked, or an environment that has ended.
    fn step(&mut self, actions: &[usize], batch: &mut Batch) -> Result<(), Error>;

    /// Scores that policy i gives the candidates of environment i at its present decision point: `scores` is `[N, C]`,
    /// rows beyond the candidates are left alone. An environment that has no decision points for policies refuses.
    ///
    /// # Errors
    /// What a policy reports.
    fn scores_of(&mut self, policies: &mut [&mut dyn Policy], scores: &mut [f32]) -> Result<(), Error> {
        let _ = scores;
        Err(Error::Problem(Problem::new(
            "prior",
            policies.first().map_or("", |policy| policy.name()).to_string(),
            "none: this environment has no decision points that a heuristic could score",
            "leave the prior out",
        )))
    }
}
