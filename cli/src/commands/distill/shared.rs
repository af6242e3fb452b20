//! What every way of distilling shares: what its flags say, the run's folder, the tree's files, the comparison on test seeds.

use std::path::Path;

use pleach_distill::DistillConfig;
use pleach_env::{EnvConfig, Split};
use pleach_experiments::door::{DOOR, PolicySpec, TREE_FILE};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::idle::idle_env;
use pleach_experiments::evaluate::instances::{episodes, seeds};
use pleach_experiments::evaluate::results::Results;
use pleach_experiments::evaluate::run::Runner;
use pleach_experiments::evaluate::stand_in::stand_ins;
use pleach_experiments::progress::Watcher;
use pleach_experiments::report::{Block, compared};
use pleach_experiments::run_folder::RunFolder;
use pleach_experiments::run_folder::atomic_file::read_toml;
use pleach_experiments::train::env_description;
use pleach_experiments::train::objective::Objective;
use pleach_experiments::train::verdict;
use pleach_experiments::twin::doubt_of;
use pleach_scheduler::heuristics;
use pleach_scheduler::tree::Tree;
use serde::Serialize;

use crate::commands::Context;
use crate::flags::{DistillArgs, MonotoneFlag};
use crate::progress::bars;

/// Largest configuration, bytes.
pub(super) const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Seeds that a tree is reported on, unless another number is given.
const TEST_SEEDS: u32 = 10;

/// What makes two distillations the same: the flags, and what the file of `--config` says.
#[derive(Serialize)]
struct Settings<'a> {
    args: &'a DistillArgs,
    distill: &'a DistillConfig,
    /// Left out where it is the average JCT alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<&'a Objective>,
}

/// What the flags say, read once: where a tree is made, and from which teacher.
pub(super) struct Setup<'a> {
    pub(super) args: &'a DistillArgs,
    pub(super) env: EnvConfig,
    pub(super) config: DistillConfig,
    /// A run's folder may hold a network and a tree; the network is the teacher. None in a search without one.
    pub(super) teacher: Option<PolicySpec>,
    pub(super) seed: u64,
    pub(super) quiet: bool,
}

impl<'a> Setup<'a> {
    /// `leaves` are the sizes to try where neither a flag nor a file names some.
    ///
    /// # Errors
    /// An environment, a configuration or a teacher that cannot be used.
    pub(super) fn of(args: &'a DistillArgs, leaves: &[usize]) -> Result<Setup<'a>, Error> {
        let config = config(args, leaves)?;
        let env = args.workload.env(&args.scheduling)?;
        env.validate()?;
        let teacher = match &args.teacher {
            Some(teacher) => Some(DOOR.open(teacher)?.remove(0)),
            None => None,
        };
        if let Some(teacher) = &teacher {
            teacher.check(env.sim.capabilities)?;
        }
        Ok(Setup {
            args,
            env,
            config,
            teacher,
            seed: args.run.seed(),
            quiet: args.run.quiet(),
        })
    }

    /// The teacher.
    ///
    /// # Errors
    /// Without one. Only a search may go without; the flags of all other ways ask for a teacher.
    pub(super) fn teacher(&self) -> Result<&PolicySpec, Error> {
        let none = || Error::config("teacher", "none", "a policy", "Give --teacher NAME|PATH.");
        self.teacher.as_ref().ok_or_else(none)
    }

    /// The folder of a run of this command; says how a list of one's own is split.
    ///
    /// # Errors
    /// A folder in the way.
    pub(super) fn folder(
        &self,
        command: &str,
        objective: Option<&Objective>,
        context: &mut Context<'_>,
    ) -> Result<RunFolder, Error> {
        let settings = Settings {
            args: self.args,
            distill: &self.config,
            objective,
        };
        let run = &self.args.run;
        let folder = RunFolder::open(command, &settings, self.seed, run.out.as_deref(), run.existing())?;
        if let Some(split) = env_description::split(&self.env).filter(|_| !self.quiet) {
            context.say(&split)?;
        }
        if !self.quiet
            && let Some(doubt) = doubt_of(&self.env, &Watcher::silent())?
        {
            context.say(&doubt)?;
        }
        if !self.quiet
            && let Some(idle) = idle_env(&self.env, self.seed)?
        {
            context.say(&idle)?;
        }
        Ok(folder)
    }

    /// The tree beside all heuristics and its teacher on test seeds, with results and a report in the folder.
    ///
    /// # Errors
    /// A policy that cannot be played, a full disk.
    pub(super) fn compared(
        &self,
        tree: &Tree,
        folder: &RunFolder,
        (page, context): (Page<'_>, &mut Context<'_>),
    ) -> Result<Compared, Error> {
        let (teacher, made) = (self.teacher.as_ref(), tree);
        let mut policies = DOOR.open_all(&[])?;
        let others = teacher.filter(|teacher| !policies.iter().any(|policy| policy.name() == teacher.name()));
        policies.extend(others.cloned());
        // `tree-2` where the teacher is a tree of that name.
        PolicySpec::tree("tree", tree.clone()).join(&mut policies);
        let tree = policies[policies.len() - 1].name().to_string();
        let num_seeds = self.args.test_seeds.unwrap_or(TEST_SEEDS);
        let env = self.env.in_split(Split::Test);
        let instances = episodes(&env, &seeds(self.seed, "test", num_seeds as usize))?;
        let mut sim = self.env.sim.clone();
        sim.record_utilisation = true;
        let bars = bars(self.quiet);
        let runs = Runner::new(&sim)
            .watched("compare", &bars)
            .run(&instances, &policies)?;
        let results = Results::new("distill", runs, teacher.map(PolicySpec::name))?
            .with_stand_ins(stand_ins(&policies, &instances, &sim));
        let verdict = self.verdict(&results, &tree, page.objective);
        let words = format!(
            "{}{}",
            page.words,
            verdict
                .as_deref()
                .map_or(String::new(), |words| format!("\n{words}\n"))
        );
        let report = compared(page.title, &results)
            .section("The tree", [made.into(), Block::Code(words)])
            .section(
                "What to do with the tree",
                [Block::Code(next_steps(Path::new(TREE_FILE)))],
            )
            .made_by(&context.command_line, page.settings);
        report.write(&folder.file("report.html")?)?;
        results.write_json(&folder.file("results.json")?)?;
        results.write_csv(&folder.file("results.csv")?)?;
        if let Some(path) = self.args.run.json() {
            context.write_json(path, &results)?;
        }
        Ok(Compared {
            results,
            tree,
            verdict,
        })
    }

    /// Which policy is ahead of the tree on the test seeds, and what to try; none where no policy is.
    fn verdict(&self, results: &Results, tree: &str, objective: &Objective) -> Option<String> {
        let (rival, ratio) = verdict::leader(results, tree, heuristics::names(), objective)?;
        let mut to_try = vec!["more --leaves".to_string()];
        match &self.teacher {
            Some(teacher) if !self.args.search => {
                let worth = verdict::leader(results, teacher.name(), &[&rival], objective);
                let is_behind = worth.and_then(|(_, ratio)| verdict::ahead(&rival, ratio));
                if let Some(is_behind) = is_behind {
                    to_try = vec![format!("another teacher: {is_behind} of {} too", teacher.name())];
                }
                to_try.push("a tree that is searched for (--search --teacher)".to_string());
            }
            _ => to_try.push("more --simulations".to_string()),
        }
        verdict::in_words(true, verdict::ahead(&rival, ratio), &to_try)
    }
}

/// The tree, for the scheduler and for readers.
pub(in crate::commands) fn write_tree(folder: &RunFolder, tree: &Tree) -> Result<(), Error> {
    folder.write(TREE_FILE, tree.to_json().as_bytes())?;
    folder.write("tree.txt", tree.to_text().as_bytes())?;
    folder.write("tree.dot", tree.to_dot().as_bytes())?;
    Ok(())
}

/// What to do with a tree, a command a line.
pub(in crate::commands) fn next_steps(tree: &Path) -> String {
    let tree = tree.display();
    format!(
        "The scheduler reads {tree}; tree.txt beside it says it in words.\n\
         on jobs of your own        pleach evaluate --workload jobs.csv --policy fifo,sjf,{tree}\n\
         why a job was passed over  pleach explain {tree} --workload jobs.csv --why-not ID\n\
         beside Slurm               pleach-scheduler run --policy {tree} --shadow     (starts nothing; docs/deploy-slurm.md)\n\
         beside Kubernetes          pleach-kubernetes run --policy {tree} --shadow    (docs/deploy-kubernetes.md)\n\
         a tree for your cluster    pleach run site.toml --init sacct.txt --nodes nodes.txt"
    )
}

/// A tree beside others on test seeds.
pub(super) struct Compared {
    pub(super) results: Results,
    /// The tree's name there.
    pub(super) tree: String,
    /// Which policy is ahead of it, and what to try; none where no policy is.
    pub(super) verdict: Option<String>,
}

/// What a report says beside the results.
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) settings: &'a str,
    pub(super) words: &'a str,
    /// What the tree is compared by.
    pub(super) objective: &'a Objective,
}

/// The settings of the flags. `leaves` are the sizes to try where neither a flag nor a file names some.
fn config(args: &DistillArgs, leaves: &[usize]) -> Result<DistillConfig, Error> {
    let mut config = match &args.config {
        Some(path) => read_toml(path, CONFIG_BYTES_MAX)?,
        None if leaves.is_empty() => DistillConfig::default(),
        None => DistillConfig {
            leaves: leaves.to_vec(),
            ..DistillConfig::default()
        },
    };
    if !args.leaves.is_empty() {
        config.leaves = args.leaves.iter().map(|leaves| usize::from(*leaves)).collect();
    }
    if let Some(depth) = args.depth {
        config.cart.depth_max = usize::from(depth);
    }
    if !args.monotone.is_empty() {
        config.monotone = MonotoneFlag::all_of(&args.monotone);
    }
    if let Some(rounds) = args.rounds {
        config.rounds = usize::from(rounds);
    }
    if let Some(episodes) = args.episodes {
        config.episodes = episodes as usize;
    }
    config.validate()?;
    Ok(config)
}
