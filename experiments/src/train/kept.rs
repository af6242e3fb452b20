//! The network that is kept, `network.ckpt`: looked at before a run goes on, and made again where it is missing, damaged or not
//! this run's, so that no run is trained to its end for nothing.
//!
//! The checkpoint of the same update gives the same bytes, and the first network is begun again. Where neither is there any
//! more, the best of those that are takes its place, and the history says whose network is lost.

use std::path::Path;

use pleach_agents::{Checkpoint, Trainer};
use pleach_env::Seed;
use pleach_network::{LearnedPolicy, TrainedNetwork};
use pleach_scheduler::portable_math::ln;

use super::curve::CurvePoint;
use super::fine_tuning::network_at;
use super::run::Run;
use super::trained::{CHECKPOINTS, VALIDATION_FILE, best_of};
use crate::door::{BEST_CHECKPOINT, PolicySpec};
use crate::error::Error;
use crate::progress::{Progress, Watcher};
use crate::run_folder::atomic_file;

impl Run<'_> {
    /// Makes sure that the network that is kept is there, and tells in one line if it was made again.
    ///
    /// # Errors
    /// A checkpoint or a history that cannot be written, a validation that fails.
    pub(super) fn check_kept(&mut self, seed: u64, watcher: &Watcher) -> Result<(), Error> {
        let path = self.folder.join(BEST_CHECKPOINT);
        let Some(best) = best_of(&self.curve).cloned() else {
            return Ok(());
        };
        if let Some(reason) = self.reason_against(&path, &best) {
            let mut at_hand = self.at_hand()?;
            if !at_hand.iter().any(|(update, _)| *update == best.update) {
                at_hand.extend(self.begun_again(seed).map(|first| (0, first)));
            }
            let told = match self.nearest(&at_hand, &best)? {
                Some((point, mut network)) => {
                    network.provenance.best_score = Some(-ln(point.ratio));
                    network.save(&path)?;
                    let (update, ratio, lost) = (point.update, point.ratio, best.ratio);
                    let of = format!("made again as it was after {update} updates, {ratio:.3}");
                    if point.update == best.update {
                        of
                    } else {
                        let at = best.update;
                        format!(
                            "{of}; the best one, {lost:.3} after {at} updates, is in no checkpoint any more"
                        )
                    }
                }
                None => "no checkpoint has one that may be kept; the next that may is kept".to_string(),
            };
            watcher.tell(Progress::Note(&format!("{}: {reason}; {told}", path.display())));
            atomic_file::write_json(&self.folder.join(VALIDATION_FILE), &self.curve)?;
        }
        if self.curve.iter().any(|point| point.lost) {
            let score = best_of(&self.curve).map(|point| -ln(point.ratio));
            self.trainer.set_best_score(score);
        }
        Ok(())
    }

    /// Why the file is not the network that is to be there; none where it is. One that is newer than the run's state was kept
    /// before a kill, and will be kept again.
    fn reason_against(&self, path: &Path, best: &CurvePoint) -> Option<String> {
        if !path.exists() {
            return Some("missing".to_string());
        }
        let (kept, spaces) = match TrainedNetwork::load(path) {
            Ok(network) => (network.provenance, network.contract.spaces),
            Err(error) => return Some(error.to_string()),
        };
        let state = self.trainer.checkpoint();
        let as_good = |point: &CurvePoint| point.update == kept.update && ln(point.ratio) <= ln(best.ratio);
        let is_own = kept.seed == state.seed.0 && spaces == state.contract.spaces;
        let is_best = kept.update > state.update || self.curve.iter().any(as_good);
        (!is_own || !is_best).then(|| {
            let (found, wanted) = (kept.update, best.update);
            format!("of another run, or not its best: after {found} updates, and the best is after {wanted}")
        })
    }

    /// The network of every checkpoint of the run that can be read, with its update.
    fn at_hand(&self) -> Result<Vec<(u64, TrainedNetwork)>, Error> {
        let files = Checkpoint::numbered_in(&self.folder.join(CHECKPOINTS))?;
        let readable = files.into_iter().filter_map(|(update, file)| {
            let checkpoint = Checkpoint::load(&file).ok()?;
            Some((update, Trainer::resume(checkpoint).ok()?.network()))
        });
        Ok(readable.collect())
    }

    /// The run's first network; none where what it began from is not there any more.
    fn begun_again(&mut self, seed: u64) -> Option<TrainedNetwork> {
        let state = self.trainer.checkpoint();
        let mut first = Trainer::new(state.config, state.contract, Seed(seed).child("training", 0)).ok()?;
        if let Some(place) = &self.settings.fine_tune {
            first.go_on_from(&network_at(place).ok()?).ok()?;
        }
        let present = std::mem::replace(&mut self.trainer, first.on(self.settings.device));
        let imitated = self.imitate(seed);
        let first = std::mem::replace(&mut self.trainer, present);
        imitated.ok().map(|()| first.network())
    }

    /// The best network that may be kept among those at hand. Better ones that are not are noted as lost, and what was never
    /// validated is, where one is lost.
    fn nearest(
        &mut self,
        at_hand: &[(u64, TrainedNetwork)],
        best: &CurvePoint,
    ) -> Result<Option<(CurvePoint, TrainedNetwork)>, Error> {
        let of = |update: u64| at_hand.iter().find(|(known, _)| *known == update);
        if of(best.update).is_none() {
            for (update, trained) in at_hand {
                if self.curve.iter().all(|point| point.update != *update) {
                    let policy = LearnedPolicy::from_network(trained)?;
                    let network = PolicySpec::network("network", policy);
                    let (point, _) = self.judged(&network, *update, trained.provenance.num_frames)?;
                    self.curve.push(point);
                }
            }
            self.curve.sort_by_key(|point| point.update);
        }
        while let Some(point) = best_of(&self.curve).cloned() {
            if let Some((_, network)) = of(point.update) {
                return Ok(Some((point, network.clone())));
            }
            let of_lost = self.curve.iter_mut().filter(|other| other.update == point.update);
            of_lost.for_each(|other| other.lost = true);
        }
        Ok(None)
    }
}
