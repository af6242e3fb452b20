//! `pleach serve`: routers compared, searched for, and lists of requests drawn.

use std::path::Path;
use std::sync::Arc;

use pleach_agents::Learner;
use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::progress::Stopped;
use pleach_experiments::run_folder::atomic_file;
use pleach_experiments::serving::functions::{
    CallsDescription, DispatchSearch, compare_dispatchers, search_dispatcher,
};
use pleach_experiments::serving::{
    AutoscalerSearch, Comparison, Description, RequestTold, RoutingSearch, RoutingTraining, ServingConfig,
    compare, compare_mixed, explain, is_routing_tree, search_autoscaler, search_router, train_router, write,
};

use serde::Serialize;

use crate::commands::Context;
use crate::flags::serve::{
    ServeArgs, ServeCommand, ServeDescribeArgs, ServeEvaluateArgs, ServeFunctionsArgs, ServeGenerateArgs,
    ServeMixedArgs, ServeSearchArgs,
};
use crate::progress::bars;

/// Runs a step.
///
/// # Errors
/// Flags that cannot be used, files that cannot be read or written.
pub fn run(args: &ServeArgs, context: &mut Context<'_>) -> Result<(), Error> {
    match &args.command {
        ServeCommand::Evaluate(args) => evaluate(args, context),
        ServeCommand::Search(args) => search(args, context),
        ServeCommand::Describe(args) => describe(args, context),
        ServeCommand::Mixed(args) => mixed(args, context),
        ServeCommand::Generate(args) => generate(args, context),
        ServeCommand::Functions(args) => functions(args, context),
    }
}

/// Says what was read of a list of requests, and what was left out.
fn say_account(config: &ServingConfig, quiet: bool, context: &mut Context<'_>) -> Result<(), Error> {
    match config.requests {
        Some(_) if !quiet => context.say(&config.account()?.join("\n")),
        _ => Ok(()),
    }
}

fn evaluate(args: &ServeEvaluateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    say_account(&args.serving, args.report.quiet(), context)?;
    let told = told(args)?;
    let rates = compare(
        &args.serving,
        &args.pools,
        &args.router,
        &args.rates,
        args.report.seed(),
    )?;
    if !args.report.quiet() {
        let tables = rates.0.iter().map(|(_, at)| at.table());
        say_tables(rates.table().into_iter().chain(tables), context)?;
    }
    if !args.report.quiet() {
        for (tree, told) in &told {
            context.say(&format!("\n{tree}, {}", told.in_words().trim_end()))?;
        }
    }
    if let Some(path) = &args.page.html {
        atomic_file::write(path, rates.html(&context.command_line).as_bytes())?;
    }
    match (args.report.json(), rates.0.as_slice()) {
        (Some(path), [(_, only)]) => context.write_json(path, only),
        (Some(path), several) => context.write_json(path, &several),
        (None, _) => Ok(()),
    }
}

/// Of each tree among the routers why it sent the request that is asked about where it did.
fn told(args: &ServeEvaluateArgs) -> Result<Vec<(&str, RequestTold)>, Error> {
    let (Some(request), Some(&rate)) = (args.explain, args.rates.first()) else {
        return Ok(Vec::new());
    };
    let trees = args.router.iter().filter(|name| is_routing_tree(Path::new(name)));
    let told = trees.map(|tree| {
        let told = explain(
            &args.serving,
            Path::new(tree),
            (request, rate),
            args.report.seed(),
        )?;
        Ok((tree.as_str(), told))
    });
    let told: Vec<_> = told.collect::<Result<_, Error>>()?;
    if told.is_empty() {
        let allowed = "given with a tree among the routers";
        return Err(Error::config(
            "explain",
            request,
            allowed,
            "Add --router tree.json.",
        ));
    }
    Ok(told)
}

fn describe(args: &ServeDescribeArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let line = context.command_line.clone();
    match CallsDescription::read(&args.requests)? {
        Some(found) => described(args, context, (&found, &found.table(), &found.html(&line))),
        None => {
            let found = Description::read(&args.requests)?;
            described(args, context, (&found, &found.table(), &found.html(&line)))
        }
    }
}

fn described<T: Serialize>(
    args: &ServeDescribeArgs,
    context: &mut Context<'_>,
    (found, table, html): (&T, &Table, &str),
) -> Result<(), Error> {
    if !args.words.quiet {
        context.say(table.to_terminal().trim_end())?;
    }
    if let Some(path) = &args.page.html {
        atomic_file::write(path, html.as_bytes())?;
    }
    match &args.data.json {
        Some(path) => context.write_json(path, found),
        None => Ok(()),
    }
}

fn mixed(args: &ServeMixedArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let seed = args.report.seed();
    let (comparison, words) = match (args.search, &args.to) {
        (Some(simulations), Some(to)) => {
            args.target.check("to", to)?;
            let mut settings = AutoscalerSearch {
                hits_pct: args.hits_pct,
                tune_days: args.tune_days.into(),
                judge_days: args.judge_days.into(),
                without: args.without.clone(),
                ..AutoscalerSearch::default()
            };
            settings.search.simulations = simulations;
            let watcher = bars(args.report.quiet());
            let found = search_autoscaler(&args.mixed, &settings, seed, &watcher)?;
            atomic_file::write(to, found.tree.to_json().as_bytes())?;
            let text = found.tree.to_text();
            let words = format!("\n\n{}\n{}\n{}", text.trim_end(), found.verdict(), to.display());
            (found.judged, words)
        }
        _ => {
            let watcher = bars(args.report.quiet());
            let compared = compare_mixed(&args.mixed, &args.autoscaler, seed, &watcher)?;
            (compared, String::new())
        }
    };
    if !args.report.quiet() {
        context.say(&format!("{}{words}", comparison.table().to_terminal().trim_end()))?;
    }
    if let Some(path) = &args.page.html {
        atomic_file::write(path, comparison.html(&context.command_line).as_bytes())?;
    }
    match args.report.json() {
        Some(path) => context.write_json(path, &comparison),
        None => Ok(()),
    }
}

fn search(args: &ServeSearchArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(learner) = args.learner {
        return train(args, learner, context);
    }
    args.target.check("to", &args.to)?;
    say_account(&args.serving, args.report.quiet(), context)?;
    let mut settings = RoutingSearch {
        rates: args.rates.clone(),
        judge_lists: args.judge_lists.into(),
        without: args.without.clone(),
        ..RoutingSearch::default()
    };
    settings.search.simulations = args.simulations;
    settings.search.leaves_max = args.leaves.into();
    let watcher = bars(args.report.quiet());
    let found = search_router(&args.serving, &settings, args.report.seed(), &watcher)?;
    atomic_file::write(&args.to, found.tree.to_json().as_bytes())?;
    if !args.report.quiet() {
        say_judged(&found.judged, context)?;
        context.say(&format!(
            "\n{}\n{}\n{}",
            found.tree.to_text().trim_end(),
            found.verdict(),
            args.to.display()
        ))?;
    }
    match args.report.json() {
        Some(path) => context.write_json(path, &found.judged),
        None => Ok(()),
    }
}

fn train(args: &ServeSearchArgs, learner: Learner, context: &mut Context<'_>) -> Result<(), Error> {
    let mut settings = RoutingTraining {
        rates: args.rates.clone(),
        teacher: args.teacher.clone(),
        leaves: args.leaves.into(),
        judge_lists: args.judge_lists.into(),
        ..RoutingTraining::default()
    };
    settings.train.learner = learner;
    settings.train.num_updates = args.updates;
    settings.train.evolution.num_pairs = args.pairs.into();
    settings.train.network.hidden = args.hidden.into();
    settings.train.network.context = args.hidden.into();
    say_account(&args.serving, args.report.quiet(), context)?;
    let listening = context.stop.listen();
    let stop = Arc::clone(&context.stop);
    let watcher =
        bars(args.report.quiet()).stopped_by(move |_, _| stop.asked().map(|signal| Stopped { signal }));
    let found = train_router(&args.serving, &settings, args.report.seed(), &args.to, &watcher)?;
    drop(listening);
    if !args.report.quiet() {
        say_judged(&found.judged, context)?;
        context.say(&format!("\n{}\n{}", found.verdict(), args.to.display()))?;
    }
    match args.report.json() {
        Some(path) => context.write_json(path, &found.judged),
        None => Ok(()),
    }
}

fn say_judged(judged: &[(f64, Comparison)], context: &mut Context<'_>) -> Result<(), Error> {
    for (rate, table) in judged {
        let table = table.table().to_terminal();
        context.say(&format!("\n{rate} times the rate\n{}", table.trim_end()))?;
    }
    Ok(())
}

fn generate(args: &ServeGenerateArgs, context: &mut Context<'_>) -> Result<(), Error> {
    args.target.check("to", &args.to)?;
    say_account(&args.serving, args.report.quiet(), context)?;
    let lists = args
        .serving
        .draw(Seed(args.report.seed()).child("serving", 0), 1, 1.0)?;
    write(&args.to, &lists[0])?;
    if args.report.quiet() {
        return Ok(());
    }
    let (num, rate) = (lists[0].rows().len(), lists[0].rate_per_s());
    context.say(&format!(
        "{num} requests, {rate:.1} a second\n{}",
        args.to.display()
    ))
}

fn functions(args: &ServeFunctionsArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let (Some(simulations), Some(to)) = (args.search, &args.to) {
        return search_functions(args, (simulations, to), context);
    }
    let loads = compare_dispatchers(&args.functions, &args.policy, &args.loads, args.report.seed())?;
    if !args.report.quiet() {
        let tables = loads.at.iter().map(|(_, at)| at.table());
        say_tables(loads.table().into_iter().chain(tables), context)?;
    }
    if let Some(path) = &args.page.html {
        atomic_file::write(path, loads.html(&context.command_line).as_bytes())?;
    }
    match (args.report.json(), loads.at.as_slice()) {
        (Some(path), [(_, only)]) => context.write_json(path, only),
        (Some(path), several) => context.write_json(path, &several),
        (None, _) => Ok(()),
    }
}

fn say_tables(tables: impl Iterator<Item = Table>, context: &mut Context<'_>) -> Result<(), Error> {
    let all: Vec<String> = tables
        .map(|table| table.to_terminal().trim_end().to_string())
        .collect();
    context.say(&all.join("\n\n"))
}

fn search_functions(
    args: &ServeFunctionsArgs,
    (simulations, to): (u64, &Path),
    context: &mut Context<'_>,
) -> Result<(), Error> {
    args.target.check("to", to)?;
    let mut settings = DispatchSearch {
        judge_lists: args.judge_lists.into(),
        without: args.without.clone(),
        ..DispatchSearch::default()
    };
    settings.search.simulations = simulations;
    let watcher = bars(args.report.quiet());
    let found = search_dispatcher(&args.functions, &settings, args.report.seed(), &watcher)?;
    atomic_file::write(to, found.tree.to_json().as_bytes())?;
    if !args.report.quiet() {
        let (table, text) = (found.judged.table().to_terminal(), found.tree.to_text());
        context.say(&format!(
            "{}\n\n{}\n{}\n{}",
            table.trim_end(),
            text.trim_end(),
            found.verdict(),
            to.display()
        ))?;
    }
    match args.report.json() {
        Some(path) => context.write_json(path, &found.judged),
        None => Ok(()),
    }
}
