//! The state of a training run, and what may be asked of it.

use pleach_env::{Batch, Seed, Spaces};
use pleach_network::{
    Contract, Inference, Layout, LearnedPolicy, NetworkConfig, Normaliser, PriorPolicy, Provenance,
    TrainedNetwork,
};

use crate::adam::Adam;
use crate::checkpoint::Checkpoint;
use crate::counterfactual::Memory;
use crate::device::Device;
use crate::error::Error;
use crate::gradients::Workspace;
use crate::histogram::Histogram;
use crate::imitation::{Demonstrations, ImitationStats, clone_teacher};
use crate::networks;
use crate::random::initial_parameters;
use crate::rollout::Rollout;
use crate::train_config::TrainConfig;

/// A training run.
#[derive(Clone, Debug)]
pub struct Trainer {
    pub(super) config: TrainConfig,
    pub(super) contract: Contract,
    pub(super) seed: Seed,
    pub(super) layout: Layout,
    pub(super) device: Device,
    pub(super) parameters: Vec<f32>,
    pub(super) adam: Adam,
    pub(super) normaliser: Normaliser,
    pub(super) multipliers: Vec<f64>,
    pub(super) own: Vec<f64>,
    pub(super) memory: Option<Memory>,
    pub(super) update: u64,
    pub(super) num_frames: u64,
    pub(super) best_score: Option<f64>,
    /// What the last update learnt from.
    pub(super) running: Option<(Rollout, Batch)>,
    pub(super) workspace: Workspace,
}

impl Trainer {
    /// A run that has not begun.
    ///
    /// # Errors
    /// [`Error::Problem`] for a setting that is out of its range.
    pub fn new(config: TrainConfig, contract: Contract, seed: Seed) -> Result<Self, Error> {
        config.check()?;
        if config.horizon_s == 0.0 {
            return Err(Error::config(
                "train.horizon_s",
                0,
                "above 0 where no jobs are known",
            ));
        }
        let layout = networks::layout(config.network, contract.spaces)?;
        networks::check(&layout, contract.spaces, seed)?;
        let mut parameters = initial_parameters(&layout, seed);
        if let Some(prior) = &contract.prior {
            PriorPolicy::new(prior)?;
            if let Some(last) = layout.entry("pointer.out.weight") {
                parameters[last.range.clone()].fill(0.0);
            }
        }
        Ok(Trainer {
            config,
            contract,
            seed,
            adam: Adam::new(parameters.len()),
            layout,
            device: Device::Cpu,
            parameters,
            normaliser: Normaliser::default(),
            multipliers: Vec::new(),
            own: Vec::new(),
            memory: None,
            update: 0,
            num_frames: 0,
            best_score: None,
            running: None,
            workspace: Workspace::default(),
        })
    }

    /// Takes over the network of another run: its parameters and the scale of its values. Adam starts afresh.
    ///
    /// # Errors
    /// [`Error::Problem`] where the other network has another size, sees other features or corrects another heuristic; the
    /// trainer is then as before.
    pub fn go_on_from(&mut self, other: &TrainedNetwork) -> Result<(), Error> {
        self.contract.check_schema(&other.contract.schema_hash)?;
        let sizes = |network: NetworkConfig, spaces: Spaces| format!("{network:?} on {spaces:?}");
        let own = sizes(self.config.network, self.contract.spaces);
        let found = sizes(other.config, other.contract.spaces);
        if own != found || self.parameters.len() != other.parameters.len() {
            return Err(Error::contract("network", own, found));
        }
        if self.contract.prior != other.contract.prior {
            let text = |prior| format!("{prior:?}");
            let (own, found) = (text(&self.contract.prior), text(&other.contract.prior));
            return Err(Error::contract("corrected heuristic", own, found));
        }
        self.parameters.clone_from(&other.parameters);
        (self.adam, self.normaliser) = (Adam::new(self.parameters.len()), other.normaliser);
        Ok(())
    }

    /// The same run with its gradients taken on `device`, which is no part of its state: a checkpoint goes on on any.
    #[must_use]
    pub fn on(self, device: Device) -> Self {
        Trainer { device, ..self }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// What its networks see, choose among and correct.
    #[must_use]
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Updates made so far.
    #[must_use]
    pub fn num_updates(&self) -> u64 {
        self.update
    }

    /// Environment steps of the run so far, or what its learner counts as such.
    #[must_use]
    pub fn num_frames(&self) -> u64 {
        self.num_frames
    }

    /// The seed of all that the next update draws.
    #[must_use]
    pub fn update_seed(&self) -> Seed {
        self.seed.child("update", self.update)
    }

    /// State of a learner of one's own beside the parameters, nothing at first: a run that is resumed goes on with it.
    #[must_use]
    pub fn own(&self) -> &[f64] {
        &self.own
    }

    /// An update by a learner of one's own: its parameters, its state, and the frames that it took.
    ///
    /// # Errors
    /// [`Error::Problem`] for another number of parameters, [`Error::NotFinite`] for one that is no number, or a state that has one.
    /// The trainer is then as before.
    pub fn replace(&mut self, parameters: Vec<f32>, own: Vec<f64>, num_frames: u64) -> Result<(), Error> {
        if parameters.len() != self.parameters.len() {
            let (own, found) = (self.parameters.len(), parameters.len());
            return Err(Error::contract("number of parameters", own, found));
        }
        let is_finite = parameters.iter().all(|parameter| parameter.is_finite());
        if !is_finite || !own.iter().all(|number| number.is_finite()) {
            return Err(Error::NotFinite { update: self.update });
        }
        (self.parameters, self.own) = (parameters, own);
        self.num_frames += num_frames;
        self.update += 1;
        Ok(())
    }

    /// All updates of the configuration have been made.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.update >= self.config.num_updates
    }

    /// Names, shapes and places of the parameters.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All parameters, in the layout's order.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Multipliers of the caller's constraints, none at first. What they price is the caller's affair; here they are kept with
    /// the run, so that one that is resumed goes on with them.
    #[must_use]
    pub fn multipliers(&self) -> &[f64] {
        &self.multipliers
    }

    /// Sets them; finite.
    pub fn set_multipliers(&mut self, multipliers: Vec<f64>) {
        self.multipliers = multipliers;
    }

    /// The present policy, for evaluation.
    ///
    /// # Errors
    /// None in practice: the lengths agree.
    pub fn inference(&self) -> Result<Inference, Error> {
        Ok(Inference::new(&self.layout, &self.parameters)?)
    }

    /// The present policy as a scheduling policy.
    ///
    /// # Errors
    /// [`Error::Problem`] where the run's feature schema is not this program's.
    pub fn policy(&self) -> Result<LearnedPolicy, Error> {
        Ok(LearnedPolicy::new(&self.contract, self.inference()?)?)
    }

    /// The present network, for use and not for going on.
    #[must_use]
    pub fn network(&self) -> TrainedNetwork {
        TrainedNetwork {
            config: self.config.network,
            contract: self.contract.clone(),
            normaliser: self.normaliser,
            provenance: Provenance {
                learner: self.config.learner.name().to_owned(),
                seed: self.seed.0,
                update: self.update,
                num_updates: self.config.num_updates,
                num_frames: self.num_frames,
                best_score: self.best_score,
                settings: serde_json::to_value(self.config).unwrap_or_default(),
            },
            parameters: self.parameters.clone(),
            graph: self.layout.graph.clone(),
        }
    }

    /// Notes the score of an evaluation of the present policy, larger being better, and says whether it is the best so
    /// far. The best score is in the checkpoint, so that a resumed run goes on comparing.
    pub fn note_evaluation(&mut self, score: f64) -> bool {
        let best = score.is_finite() && self.best_score.is_none_or(|best| score > best);
        if best {
            self.best_score = Some(score);
        }
        best
    }

    /// Sets the score that later evaluations are compared with, where the network of the best one is not there any more.
    pub fn set_best_score(&mut self, score: Option<f64>) {
        self.best_score = score;
    }

    /// Clones a teacher. Adam starts afresh.
    ///
    /// # Errors
    /// As `clone_teacher`; the trainer is then as before.
    pub fn warm_start(&mut self, demonstrations: &Demonstrations) -> Result<ImitationStats, Error> {
        let (mut parameters, mut normaliser) = (self.parameters.clone(), self.normaliser);
        let config = &self.config.imitation;
        let stats = clone_teacher(
            (&self.layout, self.device),
            &mut parameters,
            &mut normaliser,
            demonstrations,
            config,
            self.seed,
        )
        .map_err(|error| self.name_update(error))?;
        (self.parameters, self.normaliser) = (parameters, normaliser);
        self.adam = Adam::new(self.parameters.len());
        Ok(stats)
    }

    /// How numbers are spread: the parameters of each part of the network (`parameters/PART`), and what the last update
    /// saw (`rollout/...`; nothing before the first update after a start).
    ///
    /// # Errors
    /// As [`Trainer::inference`].
    pub fn histograms(&self) -> Result<Vec<(String, Histogram)>, Error> {
        fn part(name: &str) -> &str {
            name.split('.').next().unwrap_or(name)
        }
        let mut histograms = Vec::new();
        for entries in self
            .layout
            .entries
            .chunk_by(|a, b| part(&a.name) == part(&b.name))
        {
            let range = entries[0].range.start..entries[entries.len() - 1].range.end;
            if let Some(histogram) = Histogram::of(self.parameters[range].iter().copied()) {
                histograms.push((format!("parameters/{}", part(&entries[0].name)), histogram));
            }
        }
        if let Some((rollout, _)) = &self.running {
            let seen = rollout.histograms(&self.inference()?);
            histograms.extend(
                seen.into_iter()
                    .map(|(tag, histogram)| (tag.to_owned(), histogram)),
            );
        }
        Ok(histograms)
    }

    /// Everything that the run needs to go on.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            config: self.config,
            contract: self.contract.clone(),
            seed: self.seed,
            update: self.update,
            num_frames: self.num_frames,
            best_score: self.best_score,
            normaliser: self.normaliser,
            multipliers: self.multipliers.clone(),
            own: self.own.clone(),
            memory: self.memory.clone(),
            parameters: self.parameters.clone(),
            adam: self.adam.clone(),
        }
    }

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// [`Error::Problem`] for a setting that is out of its range, [`Error::Problem`] where the number of parameters is
    /// not that of the network.
    pub fn resume(checkpoint: Checkpoint) -> Result<Trainer, Error> {
        let mut trainer = Trainer::new(checkpoint.config, checkpoint.contract, checkpoint.seed)?;
        let expected = trainer.parameters.len();
        let lists = [
            &checkpoint.parameters,
            &checkpoint.adam.mean,
            &checkpoint.adam.square,
        ];
        for found in lists.map(Vec::len) {
            if found != expected {
                return Err(Error::contract("number of parameters", expected, found));
            }
        }
        (trainer.parameters, trainer.adam) = (checkpoint.parameters, checkpoint.adam);
        (trainer.update, trainer.num_frames) = (checkpoint.update, checkpoint.num_frames);
        (trainer.normaliser, trainer.best_score) = (checkpoint.normaliser, checkpoint.best_score);
        (trainer.multipliers, trainer.own) = (checkpoint.multipliers, checkpoint.own);
        trainer.memory = checkpoint.memory;
        Ok(trainer)
    }

    pub(super) fn name_update(&self, error: Error) -> Error {
        match error {
            Error::NotFinite { .. } => Error::NotFinite { update: self.update },
            other => other,
        }
    }

    /// What goes linearly from `first` to `last` over the run.
    pub(super) fn between(&self, first: f64, last: f64) -> f64 {
        let last_update = self.config.num_updates.saturating_sub(1).max(1) as f64;
        first + (last - first) * (self.update as f64 / last_update).min(1.0)
    }
}
