//! `pleach quickstart`: the whole way in one command: train, search for a tree, compare, report.

use std::path::Path;

use pleach_distill::DistillConfig;
use pleach_distill::search::SearchConfig;
use pleach_env::SimConfig;
use pleach_scheduler::ActionKind;
use pleach_scheduler::tree::Tree;

use crate::commands::Context;
use crate::commands::distill::{next_steps, write_tree};
use crate::flags::QuickstartArgs;
use crate::progress::bars;
use pleach_experiments::distill::search::{SearchInput, SearchReport, Searched, search_tree, state_file};
use pleach_experiments::door::{DOOR, PolicySpec, TREE_FILE};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::evaluation::COLUMNS;
use pleach_experiments::evaluate::instances::{Instance, episodes, seeds};
use pleach_experiments::evaluate::results::Results;
use pleach_experiments::evaluate::run::Runner;
use pleach_experiments::evaluate::stand_in::stand_ins;
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
    if !quiet {
        context.say(&format!(
            "{}: {} generations, then a tree, then {} held-out workloads",
            args.env, settings.train.num_updates, args.seeds
        ))?;
    }
    let validation = Validation::by(&settings.objective, &settings.env, seed, settings.num_validation)?;
    if !quiet {
        context.say(&format!(
            "best heuristic on the validation workloads: {}",
            validation.best()
        ))?;
    }
    let trained = with_bar(&settings, &validation, seed, &folder, quiet, context)?;
    let trained_s = (context.clock)();
    let network = PolicySpec::network("network", trained.policy.clone());
    let found = searched(args, &settings, &network, &folder)?;
    let searched_s = (context.clock)();
    let policies = policies(network, &found.tree, &validation)?;
    let short = HeldOut::draw(args, &settings, &validation, 1)?;
    let long = HeldOut::draw(args, &settings, &validation, LONGER)?;
    let compared = |policies: &[PolicySpec], lists| compare(args, policies, validation.best(), lists);
    let results = compared(&policies, &short)?;
    let table = Table::compare(&results, &COLUMNS);
    let longer = compared(&policies, &long)?;
    let longer_table = Table::compare(&longer, &LONGER_COLUMNS);
    let stopping = short.stopping(num_lists(args, LONGER));
    let stopping = compared(&dealers(&policies, &validation)?, &stopping)?;
    let stopping_table = Table::compare(&stopping, &STOPPING_COLUMNS);
    let tree_text = found.tree.to_text();
    let curve = learning_curve(&trained, &validation);
    let page = report::compared("Pleach quickstart", &results)
        .section(
            "On longer lists, on which no network was trained",
            [longer_table.clone().into()],
        )
        .section("Where jobs may be stopped", [stopping_table.clone().into()])
        .section("Learning", curve.map(Block::from))
        .section("The tree", [(&found.tree).into()])
        .section(
            "What to do with the tree",
            [Block::Code(next_steps(Path::new(TREE_FILE)))],
        )
        .made_by(&context.command_line, &text);
    results.write_json(&folder.file("results.json")?)?;
    results.write_csv(&folder.file("results.csv")?)?;
    page.write(&folder.file("report.html")?)?;
    folder.write("table.md", table.to_markdown().as_bytes())?;
    longer.write_json(&folder.file("results-longer.json")?)?;
    folder.write("table-longer.md", longer_table.to_markdown().as_bytes())?;
    stopping.write_json(&folder.file("results-stopping.json")?)?;
    folder.write("table-stopping.md", stopping_table.to_markdown().as_bytes())?;
    if let Some(path) = args.run.json() {
        context.write_json(path, &results)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if quiet {
        return Ok(());
    }
    context.say(&table.to_terminal())?;
    context.say(&format!(
        "the same on {} lists {LONGER} times as long, on which no network was trained:\n{}",
        num_lists(args, LONGER),
        longer_table.to_terminal()
    ))?;
    context.say(&tree_text)?;
    context.say(&format!(
        "{} of the lists where jobs may be stopped; a learned formula (pleach policies --show index) deals all GPUs anew:\n{}",
        num_lists(args, LONGER),
        stopping_table.to_terminal()
    ))?;
    let end_s = (context.clock)();
    let times_s = [trained_s - start_s, searched_s - trained_s, end_s - searched_s];
    context.say(&closing(&found, times_s, &place))
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
        trees: Vec::new(),
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

/// Deviation of members and first step of a run that is to end within a minute. *Assumed*, by trial on `Pleach/GavelMulti-v1`.
const SHORT_RUN: (f64, f64) = (0.5, 0.3);

/// How many times as long the lists of the second table are: what is learned shows where there is a queue.
const LONGER: usize = 4;

/// Columns of the second table.
const LONGER_COLUMNS: [&str; 4] = ["avg_jct_s", "p99_jct_s", "avg_slowdown", "avg_wait_s"];

/// The strongest that we could write by hand where jobs may be stopped, and the learned formula.
const STOPPING_ROWS: [&str; 3] = ["las-deal", "belief-deal", "index"];

/// Columns of the third table.
const STOPPING_COLUMNS: [&str; 4] = ["avg_jct_s", "p99_jct_s", "avg_slowdown", "preemptions"];

/// Who stands in the table beside the best heuristic: at most eight rows with network and tree. The last is a named rival, a rule by hand
/// that is ahead of every heuristic on the default environment.
const ROWS: [&str; 5] = ["fifo", "sjf", "easy", "sjf-best-type", "best-gavel-multi"];

/// The settings of the training part.
fn settings(args: &QuickstartArgs) -> Result<TrainSettings, Error> {
    let mut settings = settings_file::evolution()?;
    settings.env = env_of(&args.env, args.episodes.num_jobs, args.episodes.load)?;
    if args.as_published {
        settings.env.sim = settings.env.sim.as_published();
    }
    settings.train.num_updates = args.updates;
    // The suite's wide steps find more in the end, but take the first thirty generations of a run to settle.
    let evolution = &mut settings.train.evolution;
    (evolution.sigma, evolution.learning_rate) = SHORT_RUN;
    settings.validate()?;
    Ok(settings)
}

/// Who stands in the tables.
fn policies(network: PolicySpec, tree: &Tree, validation: &Validation) -> Result<Vec<PolicySpec>, Error> {
    let tree = PolicySpec::tree("tree", tree.clone());
    let mut names: Vec<String> = ROWS.iter().map(ToString::to_string).collect();
    if !names.iter().any(|name| name == validation.best()) {
        names.push(validation.best().to_string());
    }
    let mut policies = DOOR.open_all(&names)?;
    policies.extend([network, tree]);
    Ok(policies)
}

/// Who stands in the table of a cluster whose jobs may be stopped: the best heuristic and the network, which stop nobody, and whoever
/// deals.
fn dealers(policies: &[PolicySpec], validation: &Validation) -> Result<Vec<PolicySpec>, Error> {
    let stays = |policy: &&PolicySpec| [validation.best(), "network"].contains(&policy.name());
    let mut dealers: Vec<PolicySpec> = policies.iter().filter(stays).cloned().collect();
    dealers.extend(DOOR.open_all(&STOPPING_ROWS.map(str::to_string))?);
    Ok(dealers)
}

/// Held-out lists that are so many times as long as the environment's: the longer, the fewer.
fn num_lists(args: &QuickstartArgs, times: usize) -> usize {
    (args.seeds as usize).div_ceil(times)
}

/// Held-out lists and how they are simulated.
struct HeldOut {
    instances: Vec<Instance>,
    sim: SimConfig,
}

impl HeldOut {
    fn draw(
        args: &QuickstartArgs,
        settings: &TrainSettings,
        validation: &Validation,
        times: usize,
    ) -> Result<HeldOut, Error> {
        let mut env = settings.env.clone();
        let role = if times == 1 { "test" } else { "longer test" };
        if times > 1 {
            let num_jobs = validation.num_jobs() * times;
            env.workload = env.workload.resized(Some(num_jobs), None);
        }
        let instances = episodes(&env, &seeds(args.run.seed(), role, num_lists(args, times)))?;
        let mut sim = env.sim;
        sim.record_utilisation = true;
        Ok(HeldOut { instances, sim })
    }

    /// The first of the lists, on a cluster whose jobs may be stopped.
    fn stopping(&self, num: usize) -> HeldOut {
        let mut sim = self.sim.clone();
        sim.capabilities.grant(ActionKind::Preempt, true);
        HeldOut {
            instances: self.instances.iter().take(num).cloned().collect(),
            sim,
        }
    }
}

fn compare(
    args: &QuickstartArgs,
    policies: &[PolicySpec],
    best: &str,
    HeldOut { instances, sim }: &HeldOut,
) -> Result<Results, Error> {
    let bars = bars(args.run.quiet());
    let mut runs = Runner::new(sim)
        .watched("compare", &bars)
        .run(instances, policies)?;
    for run in &mut runs {
        run.workload.clone_from(&args.env);
    }
    let results = Results::new("quickstart", runs, Some(best))?.in_world(sim.in_words());
    Ok(results.with_stand_ins(stand_ins(policies, instances, sim)))
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
