//! T steps of N environments under the present policy.
//!
//! Each environment has its own track: its observations without padding, its outcomes, its random numbers (stream
//! `action` of (update, environment)) and its scratch. Tracks are filled in parallel and never share a number, so a
//! rollout is the same at any number of threads.

use pleach_env::{Batch, Metrics, Seed, Spaces, VectorEnv};
use pleach_network::{
    DecisionBatch, DecisionRef, Inference, Normaliser, PriorPolicy, Scratch, action_of,
    softmax::{log_softmax, sample},
};
use pleach_scheduler::policy::Policy;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::advantage::{self, Clock, Steps};
use crate::error::Error;
use crate::histogram::Histogram;
use crate::random::uniform;

/// Decisions of each environment whose logits are shown as a histogram.
const NUM_SHOWN: usize = 64;

/// One finished episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Sum of its rewards, not discounted.
    pub episodic_return: f64,
    /// Its decisions.
    pub episodic_length: u64,
    /// What the environment says of it.
    pub metrics: Option<Metrics>,
}

/// What one environment did.
#[derive(Clone, Debug)]
struct Track {
    rows: DecisionBatch,
    choices: Vec<u32>,
    logprobs: Vec<f32>,
    values: Vec<f32>,
    rewards: Vec<f32>,
    dt_s: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    bootstrap: Vec<f32>,
    advantages: Vec<f32>,
    random: ChaCha8Rng,
    scratch: Scratch,
    logits: Vec<f32>,
    logprobs_all: Vec<f32>,
    last: DecisionBatch,
    episode: (f64, u64),
    /// When each decision was taken.
    clocks: Vec<Clock>,
    /// The present; it goes on from one rollout to the next.
    now: Clock,
}

impl Track {
    fn new(spaces: Spaces, inference: &Inference) -> Track {
        Track {
            rows: DecisionBatch::new(spaces),
            choices: Vec::new(),
            logprobs: Vec::new(),
            values: Vec::new(),
            rewards: Vec::new(),
            dt_s: Vec::new(),
            terminated: Vec::new(),
            truncated: Vec::new(),
            bootstrap: Vec::new(),
            advantages: Vec::new(),
            random: Seed(0).stream("action", 0),
            scratch: inference.scratch(spaces.num_candidates),
            logits: vec![0.0; spaces.num_candidates],
            logprobs_all: vec![0.0; spaces.num_candidates],
            last: DecisionBatch::new(spaces),
            episode: (0.0, 0),
            clocks: Vec::new(),
            now: (0, 0.0),
        }
    }

    fn begin(&mut self, random: ChaCha8Rng) {
        self.rows.clear();
        self.choices.clear();
        self.logprobs.clear();
        self.values.clear();
        self.rewards.clear();
        self.dt_s.clear();
        self.terminated.clear();
        self.truncated.clear();
        self.bootstrap.clear();
        self.clocks.clear();
        self.random = random;
    }

    /// Draws an action for one observation and notes it; None where nothing is admissible.
    fn decide(
        &mut self,
        inference: &Inference,
        normaliser: &Normaliser,
        observation: View<'_>,
        (prior, temperature): (&[f32], f32),
    ) -> Option<usize> {
        self.rows
            .push(observation.global, observation.candidates, observation.mask);
        if !prior.is_empty() {
            self.rows.set_prior(prior, observation.mask);
        }
        let row = self.rows.get(self.rows.len() - 1);
        let n = row.num_candidates;
        if n == 0 {
            return None;
        }
        let value = inference.forward(row, &mut self.scratch, &mut self.logits);
        log_softmax(&self.logits[..n], temperature, &mut self.logprobs_all[..n]);
        let choice = sample(&self.logprobs_all[..n], uniform(&mut self.random));
        self.choices.push(choice as u32);
        self.logprobs.push(self.logprobs_all[choice]);
        self.values.push(normaliser.denormalise(value));
        action_of(choice, observation.mask)
    }

    /// Value of an observation that no action is drawn for; 0 where nothing is admissible.
    fn value(&mut self, inference: &Inference, normaliser: &Normaliser, observation: View<'_>) -> f32 {
        self.last.clear();
        self.last
            .push(observation.global, observation.candidates, observation.mask);
        let row: DecisionRef<'_> = self.last.get(0);
        normaliser.denormalise(inference.forward(row, &mut self.scratch, &mut self.logits))
    }

    fn steps(&self) -> Steps<'_> {
        Steps {
            value: &self.values,
            reward: &self.rewards,
            dt_s: &self.dt_s,
            terminated: &self.terminated,
            truncated: &self.truncated,
            bootstrap: &self.bootstrap,
        }
    }
}

/// One environment's part of a batch.
#[derive(Clone, Copy, Debug)]
struct View<'a> {
    global: &'a [f32],
    candidates: &'a [f32],
    mask: &'a [bool],
}

fn part<'a>(
    (global, candidates, mask): (&'a [f32], &'a [f32], &'a [bool]),
    spaces: Spaces,
    i: usize,
) -> View<'a> {
    let (g, c) = (spaces.num_global, spaces.num_candidates);
    let cells = c * spaces.num_features;
    View {
        global: &global[i * g..(i + 1) * g],
        candidates: &candidates[i * cells..(i + 1) * cells],
        mask: &mask[i * c..(i + 1) * c],
    }
}

fn view(batch: &Batch, spaces: Spaces, i: usize) -> View<'_> {
    part((&batch.global, &batch.candidates, &batch.mask), spaces, i)
}

fn final_view(batch: &Batch, spaces: Spaces, i: usize) -> View<'_> {
    part(
        (&batch.final_global, &batch.final_candidates, &batch.final_mask),
        spaces,
        i,
    )
}

/// Buffers of a rollout, kept from update to update.
#[derive(Clone, Debug)]
pub struct Rollout {
    spaces: Spaces,
    tracks: Vec<Track>,
    actions: Vec<usize>,
    /// One prior for each environment, and their logits, `[N, C]`; empty without a prior.
    priors: (Vec<PriorPolicy>, Vec<f32>),
    /// Actions are drawn from the softmax of the logits over this.
    temperature: f32,
    /// Episodes that ended, by step and then by environment.
    pub episodes: Vec<Episode>,
}

/// A rollout's decisions, environment after environment.
#[derive(Clone, Debug)]
pub struct Decisions {
    /// Observations.
    pub rows: DecisionBatch,
    /// Position of the action among the admissible candidates.
    pub choices: Vec<u32>,
    /// ln p(action)
    pub logprobs: Vec<f32>,
    /// V of the observation, in the reward's unit.
    pub values: Vec<f32>,
    /// Advantage over V, in the reward's unit.
    pub advantages: Vec<f32>,
    /// Advantage plus V, before any centring.
    pub returns: Vec<f32>,
}

impl Rollout {
    /// Buffers for `num_envs` environments.
    #[must_use]
    pub fn new(spaces: Spaces, num_envs: usize, inference: &Inference) -> Rollout {
        let tracks = vec![Track::new(spaces, inference); num_envs];
        Rollout {
            spaces,
            tracks,
            actions: vec![0; num_envs],
            priors: (Vec::new(), Vec::new()),
            temperature: 1.0,
            episodes: Vec::new(),
        }
    }

    /// Lets the network correct a heuristic.
    #[must_use]
    pub(crate) fn with_prior(mut self, prior: &PriorPolicy) -> Rollout {
        let num_envs = self.tracks.len();
        let logits = vec![0.0; num_envs * self.spaces.num_candidates];
        self.priors = (vec![prior.clone(); num_envs], logits);
        self
    }

    /// Draws actions from the softmax of the logits over a temperature, 1 without this.
    #[must_use]
    pub fn drawn_at(self, temperature: f64) -> Rollout {
        Rollout {
            temperature: temperature as f32,
            ..self
        }
    }

    /// Forgets the episodes in progress: the environments have been reset.
    pub fn restart(&mut self) {
        for track in &mut self.tracks {
            (track.episode, track.now) = ((0.0, 0), (0, 0.0));
        }
    }

    /// Takes `num_steps` steps from the observations in `batch`. `seed` is that of this update.
    ///
    /// # Errors
    /// What the environments return; [`Error::Problem`] where an observation has no admissible candidate.
    pub fn collect(
        &mut self,
        env: &mut dyn VectorEnv,
        batch: &mut Batch,
        inference: &Inference,
        normaliser: &Normaliser,
        num_steps: usize,
        seed: Seed,
    ) -> Result<(), Error> {
        let (spaces, temperature) = (self.spaces, self.temperature);
        self.episodes.clear();
        for (i, track) in self.tracks.iter_mut().enumerate() {
            track.begin(seed.stream("action", i as u64));
        }
        for step in 0..num_steps {
            let (priors, prior_logits) = &mut self.priors;
            if !priors.is_empty() {
                let mut policies: Vec<&mut dyn Policy> =
                    priors.iter_mut().map(|prior| prior as &mut dyn Policy).collect();
                env.scores_of(&mut policies, prior_logits)?;
            }
            let stuck = self
                .tracks
                .par_iter_mut()
                .zip(&mut self.actions)
                .enumerate()
                .with_min_len(4)
                .map(|(i, (track, action))| {
                    let c = spaces.num_candidates;
                    let prior = prior_logits.get(i * c..(i + 1) * c).unwrap_or_default();
                    let beside = (prior, temperature);
                    let decided = track.decide(inference, normaliser, view(batch, spaces, i), beside);
                    *action = decided.unwrap_or(0);
                    usize::from(decided.is_none())
                })
                .sum::<usize>();
            if stuck > 0 {
                let found = format!("none in {stuck} environments");
                return Err(Error::contract("admissible candidates", "at least 1", found));
            }
            env.step(&self.actions, batch)?;
            let last = step + 1 == num_steps;
            for (i, track) in self.tracks.iter_mut().enumerate() {
                let (terminated, truncated) = (batch.terminated[i], batch.truncated[i]);
                track.rewards.push(batch.reward[i]);
                track.dt_s.push(batch.dt_s[i]);
                track.clocks.push(track.now);
                track.now = advantage::ticked(track.now, batch.dt_s[i], terminated || truncated);
                track.terminated.push(terminated);
                track.truncated.push(truncated);
                let bootstrap = match (terminated, truncated) {
                    (true, _) => 0.0,
                    (false, true) => track.value(inference, normaliser, final_view(batch, spaces, i)),
                    (false, false) if last => track.value(inference, normaliser, view(batch, spaces, i)),
                    (false, false) => 0.0,
                };
                track.bootstrap.push(bootstrap);
                track.episode.0 += f64::from(batch.reward[i]);
                track.episode.1 += 1;
                if terminated || truncated {
                    let (episodic_return, episodic_length) = std::mem::take(&mut track.episode);
                    let metrics = batch.episode[i];
                    self.episodes.push(Episode {
                        episodic_return,
                        episodic_length,
                        metrics,
                    });
                }
            }
        }
        Ok(())
    }

    /// Advantages and returns of what was collected, discounted with `horizon_s`. Groups of `group_size` neighbouring environments, which share
    /// their arrivals, are centred.
    #[must_use]
    pub fn decisions(&mut self, horizon_s: f64, lambda: f64, group_size: usize) -> Decisions {
        let mut all = Decisions {
            rows: DecisionBatch::new(self.spaces),
            choices: Vec::new(),
            logprobs: Vec::new(),
            values: Vec::new(),
            advantages: Vec::new(),
            returns: Vec::new(),
        };
        for track in &mut self.tracks {
            let mut advantages = std::mem::take(&mut track.advantages);
            advantages.resize(track.values.len(), 0.0);
            advantage::estimate(track.steps(), horizon_s, lambda, &mut advantages);
            track.advantages = advantages;
            all.rows.extend(&track.rows);
            all.choices.extend_from_slice(&track.choices);
            all.logprobs.extend_from_slice(&track.logprobs);
            all.values.extend_from_slice(&track.values);
            all.returns
                .extend(track.advantages.iter().zip(&track.values).map(|(a, v)| a + v));
        }
        if group_size > 1 {
            for group in self.tracks.chunks_mut(group_size) {
                let mut advantages: Vec<_> = group
                    .iter_mut()
                    .map(|track| std::mem::take(&mut track.advantages))
                    .collect();
                let clocks: Vec<&[Clock]> = group.iter().map(|track| &track.clocks[..]).collect();
                advantage::centre(&clocks, &mut advantages);
                group
                    .iter_mut()
                    .zip(advantages)
                    .for_each(|(track, a)| track.advantages = a);
            }
        }
        for track in &self.tracks {
            all.advantages.extend_from_slice(&track.advantages);
        }
        all
    }

    /// How the figures of what was collected are spread, under their tags; the logits are what `inference` says now of
    /// the first [`NUM_SHOWN`] decisions of each environment.
    pub(crate) fn histograms(&self, inference: &Inference) -> Vec<(&'static str, Histogram)> {
        let mut logits = Vec::new();
        let mut scratch = inference.scratch(self.spaces.num_candidates);
        let mut of_one = vec![0.0; self.spaces.num_candidates];
        for track in &self.tracks {
            for decision in 0..track.rows.len().min(NUM_SHOWN) {
                let row = track.rows.get(decision);
                inference.forward(row, &mut scratch, &mut of_one);
                logits.extend_from_slice(&of_one[..row.num_candidates]);
            }
        }
        let all = |of: fn(&Track) -> &[f32]| Histogram::of(self.tracks.iter().flat_map(of).copied());
        let histograms = [
            ("rollout/advantage", all(|track| &track.advantages)),
            ("rollout/value", all(|track| &track.values)),
            ("rollout/reward", all(|track| &track.rewards)),
            ("rollout/action_logprob", all(|track| &track.logprobs)),
            ("rollout/logit", Histogram::of(logits.iter().copied())),
        ];
        histograms
            .into_iter()
            .filter_map(|(tag, histogram)| Some((tag, histogram?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::initial_parameters;
    use crate::toy::{Many, Toy as _, TwoQueues};
    use pleach_network::{Layout, NetworkConfig};

    #[test]
    fn clocks_go_on_from_one_rollout_to_the_next_until_the_environments_restart() {
        let (mut env, seed) = (Many::<TwoQueues>::new(2), Seed(3));
        let layout = Layout::new(NetworkConfig::default(), TwoQueues::SPACES).unwrap();
        let inference = Inference::new(&layout, &initial_parameters(&layout, seed)).unwrap();
        let mut batch = Batch::new(TwoQueues::SPACES, 2);
        env.reset(&[1, 1], &mut batch).unwrap();
        let mut rollout = Rollout::new(TwoQueues::SPACES, 2, &inference);
        let mut last: Option<Clock> = None;
        // Episodes of 40 decisions in rollouts of 30.
        for number in 0..4_u64 {
            let values = Normaliser::default();
            rollout
                .collect(
                    &mut env,
                    &mut batch,
                    &inference,
                    &values,
                    30,
                    seed.child("update", number),
                )
                .unwrap();
            let track = &rollout.tracks[0];
            let begun = 30 * number as u32 / 40;
            assert_eq!(track.clocks[0].0, begun);
            if let Some(last) = last {
                assert_eq!(track.clocks[0], last);
            }
            last = Some(track.now);
        }
        rollout.restart();
        assert_eq!(rollout.tracks[1].now, (0, 0.0));
    }
}
