//! `pleach quickstart`: the whole way in one command: train, search for a tree, compare, report.

mod held_out;

use std::path::Path;

use pleach_distill::DistillConfig;
use pleach_distill::search::SearchConfig;
use pleach_env::EnvConfig;
use pleach_env::workload::estimates::EstimateModel;
use pleach_scheduler::tree::Tree;

use self::held_out::{Field, HeldOut, LONGER, guessed, num_lists, rivals};

use crate::commands::Context;
use crate::commands::distill::{next_steps, write_tree};
use crate::flags::QuickstartArgs;
use crate::progress::bars;
use pleach_experiments::distill::search::{SearchInput, SearchReport, Searched, search_tree, state_file};
use pleach_experiments::door::{PolicySpec, TREE_FILE};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::evaluation::COLUMNS;
use pleach_experiments::evaluate::results::Results;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::evaluate::workload_source::env_of;
use pleach_experiments::plot::{Axis, Mark, Plot};
use pleach_experiments::report::{self, Block};
use pleach_experiments::run_folder::{Existing, RunFolder, SETTINGS_FILE};
use pleach_experiments::train::Trained;
use pleach_experiments::train::settings::TrainSettings;
use pleach_experiments::train::settings_file;
use pleach_experiments::train::validation::Validation;
use pleach_experiments::train::with_bar;

/// Runs the quickstart.
///
/// # Errors
/// Flags that cannot be used, a folder in the way, a part that fails.
pub fn run(args: &QuickstartArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (settings, quiet, seed) = (settings(args)?, args.run.quiet(), args.run.seed());
    // The default folder is named after the configuration and the seed, so what is replaced there is the same again; a
    // broken-off run goes on.
    let existing = if args.run.out.is_none() && !args.run.resume {
        Existing::Renew
    } else {
        args.run.existing()
    };
    let folder = RunFolder::open("quickstart", args, seed, args.run.out.as_deref(), existing)?;
    let text = toml::to_string_pretty(&settings).map_err(|error| Error::Failed(error.to_string()))?;
    folder.write(SETTINGS_FILE, text.as_bytes())?;
    let start_s = (context.clock)();
    let validation = Validation::by(&settings.objective, &settings.env, seed, settings.num_validation)?;
    if !quiet {
        context.say(&format!(
            "{}: {} updates, then a tree, then {} held-out workloads\nbest heuristic on the validation workloads: {}",
            args.env,
            settings.train.num_updates,
            args.seeds,
            validation.best()
        ))?;
    }
    let trained = with_bar(&settings, &validation, seed, &folder, quiet, context)?;
    let trained_s = (context.clock)();
    let network = PolicySpec::network("network", trained.policy.clone());
    let found = searched(args, &settings, &network, &folder)?;
    let searched_s = (context.clock)();
    let field = Field::new(args, &settings.env, &validation, network, &found.tree)?;
    let draw = |env: &EnvConfig, times| HeldOut::draw(args, env, &validation, times);
    let guessed = guessed(&settings.env);
    let own = draw(&settings.env, 1)?;
    let mut won = Vec::new();
    let mut compared = |env: &EnvConfig, times, of: &str| {
        let (results, words) = field.compared(args, &draw(env, times)?)?;
        won.push(format!("{of}{words}"));
        Ok::<Results, Error>(results)
    };
    let of_longer = format!("lists {LONGER} times as long");
    let parts = [
        ("", compared(&settings.env, 1, "")?),
        (
            "longer",
            compared(&settings.env, LONGER, &format!("{of_longer}: "))?,
        ),
        ("guessed", compared(&guessed, 1, "guessed run times: ")?),
        (
            "guessed-longer",
            compared(&guessed, LONGER, &format!("guessed, {of_longer}: "))?,
        ),
        (
            "stopping",
            field.stopping(args, &own.stopping(num_lists(args, LONGER)))?,
        ),
    ];
    let tables = parts
        .each_ref()
        .map(|(name, results)| (*name, Table::compare(results, columns(name))));
    let [(_, known), (_, longer), (_, guesses), (_, guesses_longer), _] = &parts;
    let mut summary = Table::beside(&[
        ("", known),
        (&of_longer, longer),
        ("guessed run times", guesses),
        (&format!("guessed, {of_longer}"), guesses_longer),
    ]);
    summary.notes.extend(won);
    folder.write("summary.md", summary.to_markdown().as_bytes())?;
    for ((name, results), (_, table)) in parts.iter().zip(&tables) {
        let named = |file: &str, ending: &str| match *name {
            "" => format!("{file}.{ending}"),
            name => format!("{file}-{name}.{ending}"),
        };
        results.write_json(&folder.file(&named("results", "json"))?)?;
        folder.write(&named("table", "md"), table.to_markdown().as_bytes())?;
    }
    known.write_csv(&folder.file("results.csv")?)?;
    page(&summary, known, &tables, (&trained, &validation, &found.tree))
        .made_by(&context.command_line, &text)
        .write(&folder.file("report.html")?)?;
    if let Some(path) = args.run.json() {
        context.write_json(path, known)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if quiet {
        return Ok(());
    }
    context.say(&summary.to_terminal())?;
    context.say(&found.tree.to_text())?;
    context.say(&format!(
        "{} of the lists where jobs may be stopped; a learned formula (pleach policies --show index) deals all GPUs anew:\n{}",
        num_lists(args, LONGER),
        tables[4].1.to_terminal()
    ))?;
    let end_s = (context.clock)();
    let times_s = [trained_s - start_s, searched_s - trained_s, end_s - searched_s];
    context.say(&closing(&found, times_s, &place))
}

/// Columns of a table, by its name.
fn columns(name: &str) -> &'static [&'static str] {
    match name {
        "" => &COLUMNS,
        "stopping" => &["avg_jct_s", "p99_jct_s", "avg_slowdown", "preemptions"],
        _ => &["avg_jct_s", "p99_jct_s", "avg_slowdown", "avg_wait_s"],
    }
}

/// The page that is read first.
fn page(
    summary: &Table,
    known: &Results,
    tables: &[(&str, Table)],
    (trained, validation, tree): (&Trained, &Validation, &Tree),
) -> report::Report {
    let mut page = report::compared("Pleach quickstart", known);
    page = page.section("Known and guessed run times", [summary.clone().into()]);
    for (name, table) in tables {
        let heading = match *name {
            "longer" => "On longer lists, on which no network was trained",
            "guessed" => "Where run times are guessed from ended jobs",
            "guessed-longer" => "Where run times are guessed, on longer lists",
            "stopping" => "Where jobs may be stopped",
            _ => continue,
        };
        page = page.section(heading, [table.clone().into()]);
    }
    page.section("Learning", learning_curve(trained, validation).map(Block::from))
        .section("The tree", [tree.into()])
        .section(
            "What to do with the tree",
            [Block::Code(next_steps(Path::new(TREE_FILE)))],
        )
}

/// The tree that a search finds from hand rules and the network's students, written to the folder.
fn searched(
    args: &QuickstartArgs,
    settings: &TrainSettings,
    network: &PolicySpec,
    folder: &RunFolder,
) -> Result<Searched, Error> {
    let input = SearchInput {
        config: SearchConfig {
            simulations: args.simulations,
            leaves_max: usize::from(args.leaves),
            ..SearchConfig::default()
        },
        accept_lists: ACCEPT_LISTS,
        teacher: Some(network.clone()),
        distill: DistillConfig::default(),
        trees: rivals(&settings.env.sim)?
            .iter()
            .filter_map(|rival| Some((rival.name().to_string(), rival.tree_policy()?.tree().clone())))
            .collect(),
        against: vec![network.clone()],
        deals: false,
    };
    let state = state_file(folder.path());
    let found = search_tree(
        &settings.env,
        &input,
        args.run.seed(),
        &state,
        &bars(args.run.quiet()),
    )?;
    write_tree(folder, &found.tree)?;
    folder.write_json("search.json", &found.report)?;
    folder.write("search.md", found.report.markdown().as_bytes())?;
    Ok(found)
}

/// The last lines: where the tree comes from, how long each part took, and where to look.
fn closing(found: &Searched, [trained_s, searched_s, compared_s]: [f64; 3], place: &Path) -> String {
    let SearchReport {
        simulations,
        best_start: (start, _),
        accepted,
        verdict,
        ..
    } = &found.report;
    let which = if *accepted {
        format!("found in {simulations} simulations; the best start was \"{start}\"")
    } else {
        format!("the best start, \"{start}\"; {simulations} simulations found none that is surely better")
    };
    let num_leaves = found.tree.num_leaves();
    let next = next_steps(&place.join(TREE_FILE));
    let place = place.display();
    format!(
        "tree: {num_leaves} leaves, {which} ({verdict})\n\
         trained in {trained_s:.0} s, searched in {searched_s:.0} s, compared in {compared_s:.0} s\n\
         written to {place}: open {place}/report.html\n\
         {next}"
    )
}

/// Lists of each part on which the tree must beat the best start; half as many of the longer ones.
const ACCEPT_LISTS: usize = 48;

/// The settings of the training part. Run times are known in it: forks mislead where they are guessed (docs/learning.md).
fn settings(args: &QuickstartArgs) -> Result<TrainSettings, Error> {
    let mut settings = settings_file::counterfactual()?;
    settings.env = env_of(&args.env, args.episodes.num_jobs, args.episodes.load)?;
    let sim = &mut settings.env.sim;
    if args.as_published {
        *sim = sim.clone().as_published();
    }
    if matches!(sim.estimates, EstimateModel::History { .. }) {
        sim.estimates = EstimateModel::Oracle;
    }
    settings.train.num_updates = args.updates;
    settings.validate()?;
    Ok(settings)
}

fn learning_curve(trained: &Trained, validation: &Validation) -> Option<Plot> {
    let points = trained
        .curve
        .iter()
        .map(|point| (point.num_frames as f64, point.ratio));
    let metric = format!(
        "average JCT over that of {}, validation workloads",
        validation.best()
    );
    let baselines = validation.ranking.iter().take(4);
    Plot::new(
        "The network while it learns, and heuristics",
        Axis::of("environment steps"),
        Axis::of(metric),
    )
    .of_policies()
    .with(baselines.map(|(name, value)| Mark::level(name, *value)))
    .with([Mark::line("network", points)])
    .if_any()
}
