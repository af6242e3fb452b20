//! `pleach distill --teacher`: one tree from a teacher.

use std::path::Path;

use pleach_env::Split;
use pleach_scheduler::tree::Tree;

use super::shared::{CONFIG_BYTES_MAX, Page, Setup, write_tree};
use crate::commands::Context;
use crate::flags::DistillArgs;
use crate::progress::bars;
use pleach_experiments::distill::prune;
use pleach_experiments::door::{PolicySpec, label_and_place};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::evaluation::COLUMNS;
use pleach_experiments::evaluate::results::{PolicyRun, Results};
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::judge::{Lists, PARTS, Rivals, markdown};
use pleach_experiments::run_folder::atomic_file::read_text;
use pleach_experiments::run_folder::{CONFIG_FILE, RunFolder, SETTINGS_FILE};
use pleach_experiments::train::CHECKPOINTS;
use pleach_experiments::train::objective::{self, Objective};
use pleach_experiments::train::validation::{Validation, mean_ratio};

/// Lists of each part, unless another number is given.
const PART_LISTS: u16 = 12;
/// Workloads on which the tree is chosen.
const NUM_VALIDATION: usize = 32;

/// Distils a teacher to one tree.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let objective = objective(args)?;
    let other = Some(&objective).filter(|objective| **objective != objective::avg_jct());
    let setup = Setup::of(args, &[])?;
    let teacher = setup.teacher()?;
    let folder = setup.folder("distill", other, context)?;
    if let Some(line) = advice(args).filter(|_| !setup.quiet) {
        context.say(&line)?;
    }
    let validation = Validation::by(&objective, &setup.env, setup.seed, NUM_VALIDATION)?;
    let watcher = bars(setup.quiet);
    let distilled = watcher.part("distill", 0, || {
        prune(
            &setup.env,
            teacher,
            &setup.config,
            &validation,
            setup.seed,
            &watcher,
        )
    })?;
    write_tree(&folder, &distilled.tree)?;
    folder.write_json("distill.json", &distilled.report)?;
    let mut words = distilled.tree.to_text();
    words.push_str(&parts(&setup, &folder, (teacher, &distilled.tree))?);
    let settings = toml::to_string_pretty(&setup.config).unwrap_or_default();
    let page = Page {
        title: "A tree from a policy",
        settings: &settings,
        words: &words,
        objective: &objective,
    };
    let compared = setup.compared(&distilled.tree, &folder, (page, context))?;
    let table = Table::compare(&compared.results, &COLUMNS);
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !setup.quiet {
        context.say(&table.to_terminal())?;
        if let Some(objective) = other {
            context.say(&on_test_seeds(
                objective,
                &compared.results,
                &compared.tree,
                teacher.name(),
            ))?;
        }
        context.say(&words)?;
        if let Some(verdict) = &compared.verdict {
            context.say(verdict)?;
        }
        let agreement = 100.0 * distilled.report.result.fidelity.agreement;
        context.say(&format!(
            "fidelity {agreement:.1} %; written to {}",
            place.display()
        ))?;
    }
    Ok(())
}

/// What the tree and its teacher are worth on lists of other lengths and at low loads, in words; kept in `parts.json`.
fn parts(
    setup: &Setup<'_>,
    folder: &RunFolder,
    (teacher, tree): (&PolicySpec, &Tree),
) -> Result<String, Error> {
    let num_lists = setup.args.part_lists.unwrap_or(PART_LISTS);
    if num_lists == 0 {
        return Ok(String::new());
    }
    let bars = bars(setup.quiet);
    let drawn = (setup.seed, "distill/parts");
    let (env, num_lists) = (setup.env.in_split(Split::Test), num_lists.into());
    let lists = Lists::draw(&env, &PARTS, drawn, num_lists, Rivals::Heuristics, &bars)?;
    let tree = PolicySpec::tree("tree", tree.clone());
    let mut rows = Vec::new();
    for (name, policy) in [("tree", &tree), (teacher.name(), teacher)] {
        rows.push((name.to_string(), lists.rows(&lists.all(policy)?)));
    }
    folder.write_json("parts.json", &rows)?;
    let table = markdown(&rows[0].1, &rows);
    Ok(format!(
        "\nAverage JCT over the best heuristic of each part, {num_lists} lists each:\n\n{table}"
    ))
}

/// What the tree is chosen and pruned by.
fn objective(args: &DistillArgs) -> Result<Objective, Error> {
    match args.objective.as_slice() {
        [] => Ok(objective::avg_jct()),
        terms => objective::parse(terms),
    }
}

/// What the tree is worth by its objective on the workloads that it is reported on.
fn on_test_seeds(objective: &Objective, results: &Results, tree: &str, teacher: &str) -> String {
    let of = |policy: &str| -> Vec<PolicyRun> {
        let runs = results.runs().iter().filter(|run| run.policy == policy);
        runs.cloned().collect()
    };
    let ratio = mean_ratio(objective, &of(tree), &of(teacher));
    let words = objective::in_words(objective);
    format!("{tree}: {ratio:.3} of the {words} of {teacher}")
}

/// A hint, where no objective is given and the teacher was made for another one than the average JCT, by which the tree is
/// chosen. It says how to choose the tree by the teacher's.
fn advice(args: &DistillArgs) -> Option<String> {
    let teacher = args.teacher.as_deref()?;
    let own = objective_of(Path::new(label_and_place(teacher).1))?;
    if !args.objective.is_empty() || own == objective::avg_jct() {
        return None;
    }
    Some(format!(
        "{} was made for {}, and the tree is chosen by {}; by the same with: --objective {}",
        teacher,
        objective::in_words(&own),
        objective::in_words(&objective::avg_jct()),
        objective::as_flag(&own)
    ))
}

/// The objective of the run that a policy is of: that of its folder, or of the folder that its file is in. None for what is in no
/// run's folder, and where an earlier version wrote it down in another form: it is for advice only.
fn objective_of(teacher: &Path) -> Option<Objective> {
    let mut folder = teacher;
    if teacher.is_file() {
        folder = teacher.parent()?;
        if folder.file_name().is_some_and(|name| name == CHECKPOINTS) {
            folder = folder.parent()?;
        }
    }
    let of_file = |name: &str| {
        let text = read_text(&folder.join(name), CONFIG_BYTES_MAX).ok()?;
        let mut settings: toml::Table = toml::from_str(&text).ok()?;
        settings.remove("objective")?.try_into().ok()
    };
    [SETTINGS_FILE, CONFIG_FILE].into_iter().find_map(of_file)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::{Cli, Command};

    fn advice(teacher: &Path, flags: &str) -> Option<String> {
        let place = teacher.display().to_string();
        let words = ["pleach", "distill", "--teacher", &place];
        match Cli::try_parse_from(words.into_iter().chain(flags.split_whitespace()))
            .unwrap()
            .command
        {
            Some(Command::Distill(args)) => super::advice(&args),
            _ => unreachable!(),
        }
    }

    #[test]
    fn a_teacher_that_was_made_for_something_else_is_told_of_once() {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("mine");
        let checkpoint = run.join(CHECKPOINTS).join("update-00000001.ckpt");
        std::fs::create_dir_all(run.join(CHECKPOINTS)).unwrap();
        std::fs::write(&checkpoint, "").unwrap();
        let write = |name: &str, text: &str| std::fs::write(run.join(name), text).unwrap();
        assert_eq!(advice(Path::new("sjf"), ""), None);
        assert_eq!(advice(&run, ""), None, "a folder without settings");
        write("config.toml", "[objective]\nmakespan_s = 1.0\n");
        assert!(advice(&run, "").unwrap().ends_with("--objective makespan_s=1"));
        write(
            "settings.toml",
            "num_envs = 4\nobjective = { avg_jct_s = 1.0, p99_jct_s = 0.2 }",
        );
        for place in [&run, &checkpoint] {
            let said = advice(place, "").unwrap();
            assert!(
                said.ends_with(
                    "was made for avg_jct_s x p99_jct_s^0.2, and the tree is chosen by average JCT; \
                     by the same with: --objective avg_jct_s=1,p99_jct_s=0.2"
                ),
                "{said}"
            );
        }
        assert_eq!(advice(&run, "--objective avg_jct_s=1"), None);
        write("settings.toml", "[objective]\navg_jct_s = 1.0\n");
        assert_eq!(advice(&run, ""), None);
    }
}
