//! The steps of `pleach sweep`, from their flags to what they print and the exit code. The work of a unit is given.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use super::emit::emit;
use super::say::say;
use crate::flags::is_standard_output;
use crate::flags::sweep::{GatherArgs, PlanArgs, SweepCommand, SweepRunArgs, UnitArgs};
use crate::progress::bars;
use pleach_experiments::error::{EXIT_AGAIN, EXIT_DONE, EXIT_FAILED, Error};
use pleach_experiments::run_folder::atomic_file::write_json;
use pleach_experiments::sweep::UnitError;
use pleach_experiments::sweep::engine::{self, EngineConfig};
use pleach_experiments::sweep::gather::{self, GatherConfig};
use pleach_experiments::sweep::grid::Grid;
use pleach_experiments::sweep::index_list;
use pleach_experiments::sweep::manifest::{Manifest, UnitSpec};
use pleach_experiments::sweep::page::PlotConfig;
use pleach_experiments::sweep::rungs::{Place, places};
use pleach_experiments::sweep::status::Status;
use pleach_experiments::sweep::unit::{Ending, Work, run_unit};

/// Variables that batch systems put a unit's index into, in the order of asking.
pub const INDEX_VARIABLES: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

/// Checks a unit's configuration without running it.
pub type Check<'a> = dyn Fn(&UnitSpec) -> Result<(), UnitError> + 'a;

/// Runs a step. `variable` reads the environment, `print` is where the words go.
///
/// # Errors
/// As the step; the exit code of an error is [`Error::exit_code`].
pub fn dispatch(
    command: &SweepCommand,
    check: &Check<'_>,
    work: &Work<'_>,
    variable: impl Fn(&str) -> Option<String>,
    print: &mut dyn Write,
) -> Result<u8, Error> {
    match command {
        SweepCommand::Plan(args) => plan(args, check, print),
        SweepCommand::Run(args) => run(args, work, print),
        SweepCommand::Unit(args) => unit(args, work, variable, print),
        SweepCommand::Gather(args) => gather(args, print),
        SweepCommand::Emit(args) => emit(args, print),
    }
}

/// Writes the manifest of a grid, every unit checked.
///
/// # Errors
/// [`Error::Problem`] and [`Error::Problem`] where the grid or a unit cannot be used or another manifest is in the way.
pub fn plan(args: &PlanArgs, check: &Check<'_>, print: &mut dyn Write) -> Result<u8, Error> {
    let grid = Grid::read(&args.config)?;
    let before_at = |path: &Path| Manifest::read(path).ok().filter(|_| !args.target.force);
    let known = args.out.as_deref().zip(args.out.as_deref().and_then(before_at));
    let manifest = match &known {
        Some((path, before)) => grid.plan_more(before, path.parent().unwrap_or(path))?,
        None => grid.plan()?,
    };
    let mut checked = None;
    for index in 0..manifest.num_units() {
        let spec = manifest.unit(index)?;
        // Seeds turn fastest: units that set the same stand together.
        if checked.as_ref() == Some(&spec.config) {
            continue;
        }
        // The error names key, value and what is allowed: it stands behind the place, in the words that it has.
        check(&spec).map_err(|error| {
            let said = error.to_string();
            let said = said.strip_prefix("config: ").unwrap_or(&said);
            Error::data(&args.config, format!("unit {index}: {said}"))
        })?;
        checked = Some(spec.config);
    }
    let path = args.out.clone().unwrap_or_else(|| default_path(&manifest));
    let before = before_at(&path).filter(|before| manifest.goes_on_from(before));
    Error::refuse_if(
        path.exists() && before.is_none() && !args.target.force,
        "out",
        path.display(),
        "a new file, the same manifest, or the same with more draws",
        "Another sweep is there: give another --out, or --force to replace its manifest.",
    )?;
    manifest.write(&path)?;
    if !args.words.quiet {
        let (num, last) = (manifest.num_units(), manifest.num_units() - 1);
        // The results of those that were there stay.
        let known = before.map_or(0, |before| before.num_units());
        let first = if known < num { known } else { 0 };
        say(
            print,
            &format!("{num} units in {}\nto run: {first}-{last}\n", path.display()),
        )?;
    }
    Ok(EXIT_DONE)
}

/// Runs all missing units on this machine. Exit code 1 if one failed, 75 if all that failed may succeed later.
///
/// # Errors
/// As [`engine::run`].
pub fn run(args: &SweepRunArgs, work: &Work<'_>, print: &mut dyn Write) -> Result<u8, Error> {
    let manifest = Manifest::read(&args.place.manifest)?;
    let only = args
        .index
        .as_ref()
        .map(|list| index_list::expand(list, manifest.num_units()))
        .transpose()?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let config = EngineConfig {
        num_threads: args.machine.threads.map_or(cores, usize::from),
        num_retries: usize::from(args.retries),
    };
    let bars = bars(args.machine.words.quiet);
    let report = engine::run(&manifest, args.place.out(), config, only.as_deref(), work, &bars)?;
    if !args.machine.words.quiet {
        let (done, before, failed) = (report.num_done, report.num_skipped, report.failed.len());
        let elsewhere = match report.num_elsewhere {
            0 => String::new(),
            num => format!(", {num} by other processes"),
        };
        say(
            print,
            &format!("{done} units done, {before} were done before{elsewhere}, {failed} failed\n"),
        )?;
        say(print, &Status::of(&manifest, args.place.out()).to_string())?;
    }
    Ok(match report.failed.as_slice() {
        [] => EXIT_DONE,
        failed
            if failed
                .iter()
                .all(|(_, error)| matches!(error, UnitError::Temporary(_))) =>
        {
            EXIT_AGAIN
        }
        _ => EXIT_FAILED,
    })
}

/// Runs one unit; the exit code tells the batch system what to do next.
///
/// # Errors
/// [`Error::Problem`] where no index is given or it is not in the manifest, [`Error::Problem`].
pub fn unit(
    args: &UnitArgs,
    work: &Work<'_>,
    variable: impl Fn(&str) -> Option<String>,
    print: &mut dyn Write,
) -> Result<u8, Error> {
    let manifest = Manifest::read(&args.place.manifest)?;
    let index = match args.index {
        Some(index) => index,
        None => index_from(variable)?,
    };
    let place = places(&manifest, args.place.out()).get(index).copied();
    if let Some((words, code)) = match place {
        Some(Place::Pruned) => Some(("is pruned: its configuration did not come so far", EXIT_DONE)),
        Some(Place::Waits) => Some(("waits: the rung before is not decided yet", EXIT_AGAIN)),
        Some(Place::Runs) | None => None,
    } {
        say(print, &format!("unit {index} {words}\n"))?;
        return Ok(code);
    }
    let ending = run_unit(&manifest.unit(index)?, args.place.out(), work)?;
    let words = match &ending {
        Ending::Skipped => "was done before".to_string(),
        Ending::Done => "done".to_string(),
        Ending::Busy => "is left to another process, which is at work on it".to_string(),
        Ending::Failed(error) => format!("failed: {error}"),
    };
    say(print, &format!("unit {index} {words}\n"))?;
    Ok(ending.exit_code())
}

/// Prints the state of a sweep.
///
/// # Errors
/// As [`Manifest::read`], and [`Error::Problem`].
fn status(args: &GatherArgs, print: &mut dyn Write) -> Result<u8, Error> {
    let manifest = Manifest::read(&args.place.manifest)?;
    let status = Status::of(&manifest, args.place.out());
    match &args.json {
        Some(path) if is_standard_output(path) => {
            let text = serde_json::to_string_pretty(&status)
                .map_err(|error| Error::Failed(format!("the status cannot be written as JSON: {error}")))?;
            say(print, &format!("{text}\n"))?;
            return Ok(EXIT_DONE);
        }
        Some(path) => write_json(path, &status)?,
        None => {}
    }
    let words = if args.missing {
        format!("{}\n", status.array())
    } else {
        status.to_string()
    };
    say(print, &words)?;
    Ok(EXIT_DONE)
}

/// Merges the results.
///
/// # Errors
/// As [`gather::gather`].
pub fn gather(args: &GatherArgs, print: &mut dyn Write) -> Result<u8, Error> {
    if args.status || args.missing || args.json.is_some() {
        return status(args, print);
    }
    let manifest = Manifest::read(&args.place.manifest)?;
    let plot = PlotConfig {
        metric: args.metric.clone(),
        x: args.x.clone(),
    };
    let config = GatherConfig {
        partial: args.partial,
        plot,
        reference: args.reference.clone(),
        mlflow: args.mlflow.clone(),
    };
    let gathered = gather::gather(&manifest, args.place.out(), &config)?;
    if args.words.quiet {
        return Ok(EXIT_DONE);
    }
    if let Some(leaderboard) = &gathered.leaderboard {
        say(print, &format!("{}\n", leaderboard.to_terminal()))?;
    }
    for path in &gathered.paths {
        say(print, &format!("{}\n", path.display()))?;
    }
    Ok(EXIT_DONE)
}

fn index_from(variable: impl Fn(&str) -> Option<String>) -> Result<usize, Error> {
    for name in INDEX_VARIABLES {
        if let Some(value) = variable(name) {
            let hint = "The batch system set it; it counts from 0.";
            return value
                .trim()
                .parse()
                .map_err(|_| Error::config(name, &value, "a number from 0", hint));
        }
    }
    Err(Error::config(
        "index",
        "nothing",
        "a number from 0",
        "Give --index K, or run it as an array job.",
    ))
}

/// `runs/sweep-<name>-<hash>/sweep.json`.
fn default_path(manifest: &Manifest) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = manifest.name().chars().take(40).map(plain).collect();
    Path::new("runs")
        .join(format!("sweep-{name}-{}", &manifest.hash()[..8]))
        .join("sweep.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser as _;
    use serde_json::{Value, json};
    use std::fs;

    struct Sweep {
        folder: tempfile::TempDir,
    }

    impl Sweep {
        fn new(grid: &str) -> Sweep {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("grid.toml"), grid).unwrap();
            Sweep { folder }
        }

        /// Runs a step with `@` for the folder; gives the exit code and what was printed.
        fn step(&self, line: &str, work: &Work<'_>, variable: Option<(&str, &str)>) -> (u8, String) {
            let line = line.replace('@', &self.folder.path().display().to_string());
            let words = ["pleach", "sweep"].into_iter().chain(line.split_whitespace());
            let Some(Command::Sweep(args)) = Cli::try_parse_from(words).unwrap().command else {
                panic!()
            };
            let check = |spec: &UnitSpec| match spec.config["load"].as_f64() {
                Some(load) if load > 0.0 => Ok(()),
                _ => Err(UnitError::Config("load must be above 0".into())),
            };
            let read = |name: &str| {
                variable
                    .filter(|pair| pair.0 == name)
                    .map(|pair| pair.1.to_string())
            };
            let mut printed = Vec::new();
            match dispatch(&args.command, &check, work, read, &mut printed) {
                Ok(code) => (code, String::from_utf8(printed).unwrap()),
                Err(error) => (error.exit_code(), error.to_string()),
            }
        }
    }

    fn work(spec: &UnitSpec) -> Result<Value, UnitError> {
        match spec.index {
            3 => Err(UnitError::Temporary("busy".into())),
            _ => Ok(json!({"avg_jct_s": spec.config["load"]})),
        }
    }

    #[test]
    fn a_sweep_goes_from_grid_to_page() {
        let sweep = Sweep::new("name = 'x'\nseeds = 2\n[grid]\nload = [0.5, 0.8]");
        let (code, said) = sweep.step("plan --config @/grid.toml --out @/s/sweep.json", &work, None);
        assert!(
            code == 0 && said.starts_with("4 units in ") && said.ends_with("to run: 0-3\n"),
            "{said}"
        );
        let unit = "unit --manifest @/s/sweep.json";
        assert_eq!(
            sweep.step(unit, &work, Some(("SLURM_ARRAY_TASK_ID", "1"))),
            (0, "unit 1 done\n".into())
        );
        assert_eq!(
            sweep.step(unit, &work, Some(("JOB_COMPLETION_INDEX", "1"))).1,
            "unit 1 was done before\n"
        );
        let missing = "gather --manifest @/s/sweep.json --missing";
        assert_eq!(sweep.step(missing, &work, None), (0, "0,2-3\n".into()));
        let run = "run --manifest @/s/sweep.json --threads 2 --quiet";
        assert_eq!(sweep.step(run, &work, None).0, EXIT_AGAIN);
        let gather = "gather --manifest @/s/sweep.json";
        assert!(sweep.step(gather, &work, None).1.contains("missing are 3"));
        assert_eq!(
            sweep.step(run, &|_| Ok(json!({"avg_jct_s": 1.0})), None).0,
            EXIT_DONE
        );
        let (code, said) = sweep.step(gather, &work, None);
        assert!(
            code == 0 && said.contains("leaderboard.csv") && said.contains("avg JCT vs all"),
            "{said}"
        );
        assert!(sweep.folder.path().join("s/results.html").exists());
    }

    #[test]
    fn a_sweep_takes_more_draws_and_those_that_ran_stay() {
        let text =
            |draws: usize| format!("name = 'x'\ndraws = {draws}\n[draw]\nload = {{ uniform = [0.5, 1] }}");
        let sweep = Sweep::new(&text(2));
        let plan = "plan --config @/grid.toml --out @/sweep.json";
        assert!(sweep.step(plan, &work, None).1.contains("to run: 0-1"));
        let read = || Manifest::read(&sweep.folder.path().join("sweep.json")).unwrap();
        let before = read();
        let grid = |draws: usize| fs::write(sweep.folder.path().join("grid.toml"), text(draws)).unwrap();
        grid(5);
        let (code, said) = sweep.step(plan, &work, None);
        assert!(
            code == 0 && said.contains("5 units") && said.contains("to run: 2-4"),
            "{said}"
        );
        assert!(read().goes_on_from(&before));
        assert_eq!(sweep.step(plan, &work, None).0, 0, "the same again");
        grid(1);
        assert_eq!(sweep.step(plan, &work, None).0, 2, "fewer are another sweep");
    }

    #[test]
    fn a_unit_that_cannot_run_is_found_when_it_is_planned() {
        let sweep = Sweep::new("name = 'x'\n[grid]\nload = [0.5, 0]");
        let (code, said) = sweep.step("plan --config @/grid.toml --out @/sweep.json", &work, None);
        assert!(
            code == 2 && said.contains("grid.toml: unit 1: load must be above 0"),
            "{said}"
        );
        assert!(!sweep.folder.path().join("sweep.json").exists());
    }

    #[test]
    fn another_manifest_is_not_replaced_without_force() {
        let sweep = Sweep::new("name = 'x'\n[grid]\nload = [0.5]");
        let plan = "plan --config @/grid.toml --out @/sweep.json --quiet";
        assert_eq!(sweep.step(plan, &work, None), (0, String::new()));
        assert_eq!(sweep.step(plan, &work, None).0, 0);
        fs::write(
            sweep.folder.path().join("grid.toml"),
            "name = 'x'\n[grid]\nload = [0.7]",
        )
        .unwrap();
        assert_eq!(sweep.step(plan, &work, None).0, 2);
        assert_eq!(sweep.step(&format!("{plan} --force"), &work, None).0, 0);
    }

    #[test]
    fn a_unit_without_a_usable_index_is_bad_configuration() {
        let sweep = Sweep::new("name = 'x'\n[grid]\nload = [0.5]");
        sweep.step("plan --config @/grid.toml --out @/sweep.json", &work, None);
        let unit = "unit --manifest @/sweep.json";
        assert_eq!(sweep.step(unit, &work, None).0, 2);
        assert_eq!(sweep.step(unit, &work, Some(("SLURM_ARRAY_TASK_ID", "x"))).0, 2);
        assert_eq!(sweep.step(unit, &work, Some(("SLURM_ARRAY_TASK_ID", "1"))).0, 2);
        assert_eq!(
            sweep
                .step("unit --index 0 --manifest @/nothing.json", &work, None)
                .0,
            2
        );
    }

    #[test]
    fn the_default_folder_is_named_by_sweep_and_hash_and_cannot_lead_elsewhere() {
        let grid: Grid = toml::from_str("name = '../../x'\n[grid]\nload = [1]").unwrap();
        let path = default_path(&grid.plan().unwrap());
        assert_eq!(path.components().count(), 3);
        assert!(
            path.display().to_string().starts_with("runs/sweep-------x-"),
            "{}",
            path.display()
        );
    }
}
