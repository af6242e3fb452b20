//! `pleach blend`: one network out of several.

use std::path::Path;

use pleach_network::{TrainedNetwork, blend};

use crate::commands::Context;
use crate::flags::BlendArgs;
use pleach_experiments::error::Error;
use pleach_experiments::train::fine_tuning::network_at;

/// Writes the blend.
///
/// # Errors
/// Networks that are not there or do not fit together, weights out of their range, a file in the way.
pub fn run(args: &BlendArgs, context: &mut Context<'_>) -> Result<(), Error> {
    check_target(&args.to, args.force)?;
    let networks = args
        .network
        .iter()
        .map(|place| network_at(place))
        .collect::<Result<Vec<TrainedNetwork>, Error>>()?;
    let weights = match args.weights.is_empty() {
        true => vec![1.0; networks.len()],
        false => args.weights.clone(),
    };
    let blended = blend(&networks, &weights)?;
    blended.save(&args.to)?;
    let total: f64 = weights.iter().sum();
    let parts = args.network.iter().zip(&weights).map(|(place, weight)| {
        let percent = 100.0 * weight / total;
        format!("{percent:.0} % of {}", place.display())
    });
    let parts: Vec<String> = parts.collect();
    context.say(&format!("{}: {}", args.to.display(), parts.join(", ")))
}

/// Refuses a name that is not a checkpoint's, and a file that is there unless it may be replaced.
pub(super) fn check_target(to: &Path, force: bool) -> Result<(), Error> {
    let hint = "pleach evaluate --policy NAME.ckpt compares it.";
    if to.extension().is_none_or(|extension| extension != "ckpt") {
        return Err(Error::config(
            "to",
            to.display(),
            "a name that ends in .ckpt",
            hint,
        ));
    }
    if to.exists() && !force {
        let hint = "Give another name, or --force to replace it.";
        return Err(Error::config(
            "to",
            to.display(),
            "a file that is not there yet",
            hint,
        ));
    }
    Ok(())
}
