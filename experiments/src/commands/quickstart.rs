//! `pleach quickstart`: the whole way in one command: train, prune, compare, report.

use pleach_distill::DistillConfig;

use crate::cli::QuickstartArgs;
use crate::commands::Context;
use crate::commands::evaluate::COLUMNS;
use crate::commands::train::{env_of, with_bar};
use crate::contest::contest;
use crate::contestant::{Contestant, TREE_FILE};
use crate::error::Error;
use crate::progress::Bar;
use crate::pruning::prune;
use crate::report::{LearningCurve, Report};
use crate::results::Results;
use crate::run_folder::{Existing, RunFolder};
use crate::scenario::{episodes, seeds};
use crate::settings::TrainSettings;
use crate::table::Table;
use crate::training::Trained;
use crate::validation::Validation;

/// Runs the quickstart.
///
/// # Errors
/// Flags that cannot be used, a folder in the way, a part that fails.
pub fn run(args: &QuickstartArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (settings, quiet) = (settings(args)?, args.run.quiet);
    // The default folder is named after the configuration and the seed, so what is replaced there is the same again; a
    // broken-off run goes on.
    let existing = if args.run.out.is_none() && !args.run.resume {
        Existing::Renew
    } else {
        args.run.existing()
    };
    let folder = RunFolder::open(
        "quickstart",
        args,
        args.run.seed,
        args.run.out.as_deref(),
        existing,
    )?;
    let text = toml::to_string_pretty(&settings).map_err(|error| Error::Failed(error.to_string()))?;
    folder.write("settings.toml", text.as_bytes())?;
    let start_s = (context.clock)();
    if !quiet {
        context.say(&format!(
            "{}: {} generations, then a tree, then {} held-out workloads",
            args.env, settings.train.num_updates, args.seeds
        ))?;
    }
    let validation = Validation::by(
        &settings.objective,
        &settings.env,
        args.run.seed,
        settings.num_validation,
    )?;
    if !quiet {
        context.say(&format!(
            "best heuristic on the validation workloads: {}",
            validation.best()
        ))?;
    }
    let trained = with_bar(&settings, &validation, args.run.seed, &folder, quiet, context)?;
    let trained_s = (context.clock)();
    let network = Contestant::network("network", trained.policy.clone());

    let sizes: Vec<usize> = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
        .into_iter()
        .filter(|size| *size < usize::from(args.leaves))
        .collect();
    let config = DistillConfig {
        leaves: sizes.into_iter().chain([usize::from(args.leaves)]).collect(),
        rounds: 5,
        episodes: 32,
        rows_max: 1_000_000,
        // A tree that can be read is worth a hundredth of the average JCT.
        tolerance: 0.01,
        ..DistillConfig::default()
    };
    let bar = Bar::new(quiet, "distill", 0);
    let distilled = prune(
        &settings.env,
        &network,
        &config,
        &validation,
        args.run.seed,
        &|step| {
            bar.out_of(step.of);
            bar.at(step.done, step.words);
        },
    )?;
    bar.end();
    let pruned_s = (context.clock)();
    folder.write(TREE_FILE, distilled.tree.to_json().as_bytes())?;
    folder.write("tree.txt", distilled.tree.to_text().as_bytes())?;
    folder.write("tree.dot", distilled.tree.to_dot().as_bytes())?;
    folder.write_json("distill.json", &distilled.report)?;

    let results = compare(args, &settings, network, &distilled, &validation, quiet)?;
    let table = Table::compare(&results, &COLUMNS);
    let tree_text = distilled.tree.to_text();
    let curve = learning_curve(&trained, &validation);
    let report = Report {
        title: "Pleach quickstart",
        command_line: &context.command_line,
        config: &text,
        results: &results,
        learning: Some(&curve),
        tree: Some(&tree_text),
    };
    results.write_json(&folder.file("results.json")?)?;
    results.write_csv(&folder.file("results.csv")?)?;
    report.write(&folder.file("report.html")?)?;
    folder.write("table.md", table.to_markdown().as_bytes())?;
    if let Some(path) = &args.run.json {
        context.write_json(path, &results)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if quiet {
        return Ok(());
    }
    context.say(&table.to_terminal())?;
    context.say(&tree_text)?;
    let fidelity = &distilled.report.result.fidelity;
    context.say(&format!(
        "tree: {} leaves, {:.1} % of the network's choices on held-out decisions",
        distilled.tree.num_leaves(),
        100.0 * fidelity.agreement
    ))?;
    let end_s = (context.clock)();
    context.say(&format!(
        "trained in {:.0} s, distilled in {:.0} s, compared in {:.0} s",
        trained_s - start_s,
        pruned_s - trained_s,
        end_s - pruned_s
    ))?;
    context.say(&format!("written to {0}: open {0}/report.html", place.display()))?;
    context.say(&format!(
        "on jobs of your own: pleach evaluate --workload FILE --policy fifo,sjf,{}",
        place.display()
    ))
}

/// Deviation of members and first step of a run that is to end within a minute. *Assumed*, by trial on `Pleach/GavelMulti-v1`.
const SHORT_RUN: (f64, f64) = (0.3, 0.15);

/// The settings of the training part.
fn settings(args: &QuickstartArgs) -> Result<TrainSettings, Error> {
    let mut settings = crate::suite::Stage::AsLong.settings()?;
    settings.env = env_of(&args.env, args.num_jobs, args.load)?;
    settings.train.num_updates = args.updates;
    // The suite's wide steps find more in the end, but take the first thirty generations of a run to settle.
    let evolution = &mut settings.train.evolution;
    (evolution.sigma, evolution.learning_rate) = SHORT_RUN;
    settings.validate()?;
    Ok(settings)
}

fn compare(
    args: &QuickstartArgs,
    settings: &TrainSettings,
    network: Contestant,
    distilled: &pleach_distill::Distilled,
    validation: &Validation,
    quiet: bool,
) -> Result<Results, Error> {
    let tree = Contestant::tree("tree", distilled.tree.clone())?;
    let mut contestants = Contestant::open_all(&[])?;
    contestants.extend([network, tree]);
    let bouts = episodes(&settings.env, &seeds(args.run.seed, "test", args.seeds as usize))?;
    let mut sim = settings.env.sim.clone();
    sim.record_utilisation = true;
    let bar = Bar::new(quiet, "compare", (bouts.len() * contestants.len()) as u64);
    let mut runs = contest(&bouts, &contestants, &sim, &|| bar.step())?;
    bar.end();
    for run in &mut runs {
        run.workload.clone_from(&args.env);
    }
    Results::new("quickstart", runs, Some(validation.best()))
}

fn learning_curve(trained: &Trained, validation: &Validation) -> LearningCurve {
    let points = trained
        .curve
        .iter()
        .map(|point| (point.num_frames as f64, point.ratio))
        .collect();
    LearningCurve {
        metric: format!(
            "average JCT over that of {}, validation workloads",
            validation.best()
        ),
        series: vec![("network".into(), points)],
        baselines: validation.ranking.iter().take(4).cloned().collect(),
    }
}
