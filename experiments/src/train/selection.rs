//! What a run judges, keeps and leaves behind.

use std::path::Path;

use pleach_agents::learner::way;
use pleach_agents::{Checkpoint, Drawn};
use pleach_env::Seed;
use pleach_scheduler::portable_math::{exp, ln};

use super::curve::CurvePoint;
use super::run::Run;
use super::settings::TrainSettings;
use super::trained::{CHECKPOINTS, Trained, VALIDATION_FILE};
use crate::door::{BEST_CHECKPOINT, PolicySpec};
use crate::error::{Error, signal_name};
use crate::evaluate::results::PolicyRun;
use crate::progress::Stopped;
use crate::run_folder::atomic_file;
use crate::train::constraint;
use crate::train::folding;

impl Run<'_> {
    pub(super) fn validate(&mut self) -> Result<(), Error> {
        let network = PolicySpec::network("network", self.trainer.policy()?);
        let (point, figures) = self.judged(&network, self.trainer.num_updates(), self.num_frames)?;
        let ratio = point.ratio;
        let is_admitted = point.is_admitted(self.curve.first().unwrap_or(&point));
        self.curve.push(point);
        if is_admitted && self.trainer.note_evaluation(-ln(ratio)) {
            self.trainer.network().save(&self.folder.join(BEST_CHECKPOINT))?;
        }
        let histograms = self.trainer.histograms()?;
        let (logger, now_unix_s) = (&mut self.logger, (self.clock)());
        logger
            .evaluation(self.num_frames, now_unix_s, &figures)
            .and_then(|()| logger.histograms(self.num_frames, now_unix_s, &histograms))
            .map_err(Error::from)
    }

    /// What a network of this run is worth on the validation workloads, and all figures of it by name.
    pub(super) fn judged(
        &self,
        network: &PolicySpec,
        update: u64,
        num_frames: u64,
    ) -> Result<(CurvePoint, Vec<(String, f64)>), Error> {
        let runs = self.validation.runs(&self.settings.env, network)?;
        let ratios = self.validation.ratios(&runs);
        let (ratio, means) = self.validation.judged(&runs, &ratios);
        let excess = self.excess(&runs);
        let drawn = self.drawn(network)?;
        let point = CurvePoint {
            update,
            num_frames,
            ratio,
            excess: excess.iter().map(|(_, excess)| *excess).reduce(f64::max),
            ratios,
            drawn,
            lost: false,
        };
        let mut figures = vec![("ratio_to_best_heuristic".to_string(), ratio)];
        figures.extend(drawn.map(|drawn| ("drawn_ratio_to_best_heuristic".to_string(), drawn)));
        figures.extend(means);
        let named = |(key, excess)| (format!("excess_{key}"), excess);
        figures.extend(excess.into_iter().map(named));
        Ok((point, figures))
    }

    /// The ratio of draws of a network, where the learner learns from draws.
    fn drawn(&self, network: &PolicySpec) -> Result<Option<f64>, Error> {
        let draws = way(self.settings.train.learner).draws(&self.settings.train);
        let (Some((temperature, _)), Some(network)) = (draws, network.network_policy()) else {
            return Ok(None);
        };
        let drawn = Drawn::new(network.clone(), temperature, Seed(0).stream("drawn", 0));
        let drawn = PolicySpec::made("drawn", move || Box::new(drawn.clone()));
        self.validation.ratio(&self.settings.env, drawn).map(Some)
    }

    /// Whether the run ends here, because it learns from draws that are no longer what is deployed.
    pub(super) fn is_apart(&self) -> bool {
        let draws = way(self.settings.train.learner).draws(&self.settings.train);
        let last = self.curve.last();
        draws.is_some_and(|(_, most)| last.is_some_and(|last| last.is_apart(most)))
    }

    /// Mean excess of runs on the validation workloads over each bound.
    fn excess(&self, runs: &[PolicyRun]) -> Vec<(String, f64)> {
        let Some(bounds) = &self.bounds else {
            return Vec::new();
        };
        let constraint = &self.settings.constraint;
        let of_run = |(own, base): (&PolicyRun, &PolicyRun)| {
            constraint.excess(|key| own.metrics[key], |key| base.metrics[key])
        };
        let each: Vec<Vec<f64>> = runs.iter().zip(&bounds.runs).map(of_run).collect();
        let keys = constraint.metrics.keys().cloned();
        keys.zip(constraint::means(&each)).collect()
    }

    pub(super) fn save(&mut self) -> Result<(), Error> {
        self.logger.sync()?;
        atomic_file::write_json(&self.folder.join(VALIDATION_FILE), &self.curve)?;
        let folder = self.folder.join(CHECKPOINTS);
        // One more than is kept, so that one out of turn costs none of the others.
        let newest = self
            .trainer
            .checkpoint()
            .save_numbered(&folder, self.settings.keep_last + 1)?;
        remove_out_of_turn(&folder, self.settings, &newest)?;
        Checkpoint::remove_before(&newest, self.settings.keep_last)?;
        self.num_saved = self.trainer.num_updates();
        Ok(())
    }

    /// Ends between two updates: keeps the state, unless environments are amid episodes, which no checkpoint holds.
    pub(super) fn break_off(&mut self, Stopped { signal }: Stopped) -> Result<Error, Error> {
        let done = self.trainer.num_updates();
        let train = &self.settings.train;
        if self.num_saved != done && done.is_multiple_of(train.restart_every) {
            self.save()?;
        }
        let (total, saved, folder) = (train.num_updates, self.num_saved, self.folder.display());
        Ok(Error::Stopped {
            signal,
            message: format!(
                "stopped by {} after {done} of {total} updates; the state after {saved} is kept: \
                 the same command goes on, or pleach train --out {folder} --resume",
                signal_name(signal)
            ),
        })
    }

    pub(super) fn finish(mut self) -> Result<Trained, Error> {
        self.logger.end(self.num_frames, (self.clock)())?;
        let first = self.curve.first();
        let may_be_kept = |point: &CurvePoint| first.is_some_and(|first| point.is_admitted(first));
        if !self.curve.iter().any(may_be_kept) {
            let excess = self.curve.iter().filter_map(|point| point.excess);
            let nearest = exp(excess.fold(f64::INFINITY, f64::min));
            return Err(Error::NothingKept(format!(
                "no network kept to the constraint on the validation workloads: the nearest one is at {nearest:.3} of a \
                 bound. The last state is kept in {}; train for longer, or loosen constraint.metrics",
                self.folder.join(CHECKPOINTS).display()
            )));
        }
        let path = self.folder.join(BEST_CHECKPOINT);
        let policy = folding::fold_network(&path, &self.validation.instances, &self.settings.env.sim)?;
        Ok(Trained {
            policy: policy.named("network"),
            curve: self.curve,
            teacher: self.teacher,
        })
    }

    /// What to say of an error that stops the run: what is kept, and how to go on.
    pub(super) fn stopped(&self, error: Error) -> Error {
        let (folder, saved) = (self.folder.join(CHECKPOINTS), self.num_saved);
        let kept = format!("the state after {saved} updates is kept in {}", folder.display());
        match error {
            error if error.system().is_some() => {
                Error::Failed(format!("{error}; {kept}. Mend it and go on with --resume"))
            }
            Error::Failed(_) => Error::Failed(format!("{error}; {kept}")),
            other => other,
        }
    }
}

/// Removes checkpoints that an uninterrupted run would not have: those of a moment at which the run was stopped, or of what was
/// its end before it was extended. The newest one stays, whenever it is of.
fn remove_out_of_turn(folder: &Path, settings: &TrainSettings, newest: &Path) -> Result<(), Error> {
    let (every, last) = (settings.checkpoint_every, settings.train.num_updates);
    for (update, path) in Checkpoint::numbered_in(folder)? {
        let is_in_turn = update.is_multiple_of(every) || update == last;
        if !is_in_turn && path != newest {
            std::fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
        }
    }
    Ok(())
}
