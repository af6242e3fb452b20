//! Going on from a trained network with other jobs or another cluster.
//!
//! A fine-tuned run takes over the network, its sizes, the kinds of candidates that it chooses among, and the heuristic that
//! it corrects. All else is a new run's: Adam, learning rates, the count of updates, and what the best network so far is. Its
//! first validation is therefore the zero-shot result, and it can only be replaced by something better.

use std::path::{Path, PathBuf};

use pleach_network::TrainedNetwork;
use pleach_scheduler::{Family, Problem};

use crate::door::{BEST_CHECKPOINT, USE_THE_FILE};
use crate::error::Error;
use crate::run_folder;
use crate::train::settings::TrainSettings;

/// Reads the network of a run's folder, of a network policy file or of a checkpoint.
///
/// # Errors
/// A place without a network, a file that is no checkpoint of this version, a finished run with another network than it ended with.
pub fn network_at(place: &Path) -> Result<TrainedNetwork, Error> {
    let file: PathBuf = if place.is_dir() {
        run_folder::verify(place, &[BEST_CHECKPOINT], USE_THE_FILE)?;
        place.join(BEST_CHECKPOINT)
    } else {
        place.to_path_buf()
    };
    Error::refuse_if(
        !file.is_file(),
        "network",
        place.display(),
        format_args!("a checkpoint, or the folder of a run with {BEST_CHECKPOINT}"),
        "checkpoints/reference has some to begin with.",
    )?;
    TrainedNetwork::load(&file).map_err(|problem| match problem.family {
        Family::Data => {
            let hint = "Make it anew with this version: pleach train.";
            let what = format!("checkpoint {}", file.display());
            Problem::contract(what, "a whole checkpoint of this version", problem.hint, hint).into()
        }
        _ => problem.into(),
    })
}

/// Makes settings fit the network that they go on from, if any.
///
/// # Errors
/// As [`network_at`].
pub fn adopt(settings: &mut TrainSettings) -> Result<(), Error> {
    let Some(place) = &settings.fine_tune else {
        return Ok(());
    };
    let from = network_at(place)?;
    settings.train.network = from.config;
    settings.env.candidates = from.contract.candidates;
    let (prior, weight) = match from.contract.prior {
        Some(prior) => (prior.policy, prior.weight),
        None => ("none".to_string(), settings.prior_weight),
    };
    (settings.prior, settings.prior_weight) = (prior, weight);
    settings.warm_start = "none".to_string();
    Ok(())
}

#[cfg(test)]
mod tests {
    use pleach_agents::{Checkpoint, Learner};
    use pleach_network::LearnedPolicy;

    use super::*;
    use crate::door::PolicySpec;
    use crate::error::EXIT_CONFIG;
    use crate::evaluate::workload_source::env_of;
    use crate::progress::Watcher;
    use crate::train::validation::Validation;
    use crate::train::{CHECKPOINTS, Trained, train};

    fn settings(env: &str, num_updates: u64) -> TrainSettings {
        let mut settings = TrainSettings {
            env: env_of(env, Some(40), Some(2.0)).unwrap(),
            prior: "sjf-reserve".into(),
            num_validation: 3,
            ..TrainSettings::default()
        };
        settings.train.learner = Learner::EVOLUTION;
        settings.train.num_updates = num_updates;
        settings.train.network.hidden = 8;
        settings.train.evolution.num_pairs = 2;
        settings.train.evolution.num_workloads = 1;
        settings.train.evolution.sigma = 2.0;
        settings
    }

    fn trained(settings: &TrainSettings, folder: &Path) -> (Trained, Validation) {
        let validation = Validation::new(&settings.env, 1, settings.num_validation).unwrap();
        let trained = train(settings, &validation, 1, folder, &|| 0.0, &Watcher::silent()).unwrap();
        (trained, validation)
    }

    #[test]
    fn it_begins_as_the_network_it_goes_on_from_and_needs_its_file_no_more_once_begun() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let before = settings("Pleach/Philly-v0", 2);
        trained(&before, first.path());
        let from = network_at(first.path()).unwrap();
        // Another cluster, and settings that ask for a network of another size: the network's own counts.
        let mut other = settings("Pleach/GavelMulti-v0", 0);
        other.train.network.hidden = 16;
        other.fine_tune = Some(first.path().to_path_buf());
        adopt(&mut other).unwrap();
        assert_eq!(
            (other.train.network.hidden, other.prior.as_str()),
            (8, "sjf-reserve")
        );
        let (begun, validation) = trained(&other, second.path());
        // Alone it would leave a cluster with several GPU types to the heuristic.
        let mut bold = from.clone();
        assert!(std::mem::take(&mut bold.contract.one_type));
        let network = PolicySpec::network("network", LearnedPolicy::from_network(&bold).unwrap());
        let zero_shot = validation.ratio(&other.env, network).unwrap();
        assert_eq!(begun.curve[0].ratio, zero_shot);
        let here = Checkpoint::latest_good(&second.path().join(CHECKPOINTS)).unwrap();
        let here = here.good.unwrap().1;
        assert!(here.parameters == from.parameters && here.update == 0);
        assert!(!network_at(second.path()).unwrap().contract.one_type);
        drop(first);
        other.train.num_updates = 0;
        let (again, _) = trained(&other, second.path());
        assert_eq!(again.curve[0].ratio, zero_shot);
    }

    #[test]
    fn a_checkpoint_that_is_cut_short_is_an_input_that_cannot_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.ckpt");
        std::fs::write(&file, b"PLEACHCK").unwrap();
        let error = network_at(&file).unwrap_err();
        assert!(error.to_string().contains("cut short"), "{error}");
        assert_eq!(error.exit_code(), EXIT_CONFIG);
    }

    #[test]
    fn a_place_without_a_network_is_refused_with_what_would_do() {
        let mut settings = settings("Pleach/Philly-v0", 1);
        settings.fine_tune = Some(PathBuf::from("nowhere"));
        let text = adopt(&mut settings).unwrap_err().to_string();
        assert!(
            text.contains("nowhere") && text.contains("network.ckpt"),
            "{text}"
        );
    }
}
