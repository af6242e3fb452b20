//! `pleach calibrate`: the queue below which a heuristic decides in the place of a network.

use std::path::Path;

use pleach_experiments::calibrate::{Calibration, Tried, calibrate};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::workload_source::env_of;
use pleach_experiments::judge::{PartRow, markdown};
use pleach_experiments::train::fine_tuning::network_at;
use pleach_network::{LearnedPolicy, TrainedNetwork};

use crate::commands::Context;
use crate::flags::CalibrateArgs;
use crate::progress::bars;

/// Tries the standbys and writes the network with the best.
///
/// # Errors
/// A network that is not there, an unknown environment, a file in the way.
pub fn run(args: &CalibrateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    check_name(&args.to)?;
    args.target.check("to", &args.to)?;
    let network = with_rules(network_at(&args.network)?, args)?;
    let Some(env) = args.env.as_ref().filter(|_| !args.no_standby) else {
        network.save(&args.to)?;
        return match args.report.quiet() {
            true => Ok(()),
            false => context.say(&format!("written to {}", args.to.display())),
        };
    };
    let env = env_of(env, None, None)?;
    let watcher = bars(args.report.quiet());
    let (network, calibration) = calibrate(&network, &env, args.report.seed(), args.lists.into(), &watcher)?;
    network.save(&args.to)?;
    if let Some(path) = args.report.json() {
        context.write_json(path, &calibration)?;
    }
    if args.report.quiet() {
        return Ok(());
    }
    context.say(&words(&calibration))?;
    context.say(&format!("written to {}", args.to.display()))
}

/// The network with the rules that the flags ask for.
fn with_rules(mut network: TrainedNetwork, args: &CalibrateArgs) -> Result<TrainedNetwork, Error> {
    network.contract.unopposed_starts |= args.unopposed;
    if let Some(wide) = args.wide.wide_gangs.clone() {
        network.contract.wide_gangs = Some(wide);
    }
    // Refuses a bound that cannot be.
    LearnedPolicy::from_network(&network)?;
    Ok(network)
}

/// Refuses a name that is not a checkpoint's.
fn check_name(to: &Path) -> Result<(), Error> {
    let hint = "pleach evaluate --policy NAME.ckpt compares it.";
    if to.extension().is_none_or(|extension| extension != "ckpt") {
        return Err(Error::config(
            "to",
            to.display(),
            "a name that ends in .ckpt",
            hint,
        ));
    }
    Ok(())
}

/// Standbys that are shown: the best few, and the network alone.
const NUM_SHOWN: usize = 8;

fn words(calibration: &Calibration) -> String {
    let mut order: Vec<usize> = (0..calibration.tried.len()).collect();
    order.sort_by(|a, b| {
        calibration.tried[*a]
            .objective
            .total_cmp(&calibration.tried[*b].objective)
    });
    let shown = order.iter().enumerate();
    let shown = shown.filter(|(place, index)| *place < NUM_SHOWN || **index == 0);
    let rows: Vec<(String, Vec<PartRow>)> = shown
        .map(|(_, index)| {
            (
                name(&calibration.tried[*index]),
                calibration.tried[*index].parts.clone(),
            )
        })
        .collect();
    let chosen = &calibration.tried[calibration.chosen];
    let on_others = [
        ("the network alone".to_string(), calibration.before.clone()),
        (name(chosen), calibration.after.clone()),
    ];
    format!(
        "average JCT over the best heuristic's, by what decides while the queue is short; the best first:\n\n{}\n\
         on lists that nothing was chosen by:\n\n{}",
        markdown(&chosen.parts, &rows),
        markdown(
            &calibration.before,
            &on_others[..1 + usize::from(calibration.chosen > 0)]
        )
    )
}

fn name(tried: &Tried) -> String {
    tried.standby.as_ref().map_or_else(
        || "the network alone".to_string(),
        |standby| {
            format!(
                "`{}` below {} x all GPUs",
                standby.policy, standby.pending_gpus_ratio
            )
        },
    )
}
