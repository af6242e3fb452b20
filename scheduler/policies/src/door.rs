//! The door: a place in words becomes policies.

use pleach_scheduler::Problem;
use std::path::{Path, PathBuf};

use pleach_dealing::Entry;
use pleach_scheduler::heuristics;
use pleach_scheduler::tree::{Bundle, MANIFEST_FILE};
use serde_json::Value;

use crate::file::{Learned, PolicyFile};
use crate::names::own_names;
use crate::own::{self, OwnPolicy, own_planners, own_policies};
use crate::place::{DEALT, is_path, prefix_and_place, words_of};
use crate::refusal::{alone, without_laboratory};
use crate::rivals::{RIVALS, Rival};
use crate::spec::PolicySpec;
use crate::{IN_FOLDERS, USE_THE_FILE, artefacts, label_and_place};

/// Published planners of the laboratory. They plan in the simulator alone: some need a solver or random numbers, and those with a
/// memory key it by rows of tables, which a daemon makes anew in every round. A program that has not registered them knows them
/// by name all the same, and a test of the laboratory holds this list to its own.
#[rustfmt::skip]
pub const LABORATORY: [&str; 39] = [
    "philly", "drf", "tiresias", "tiresias-gittins", "themis", "synergy-fair", "synergy-greedy",
    "synergy-tune", "synergy-opt", "gavel-las", "gavel-las-packed", "gavel-makespan", "gavel-makespan-packed",
    "gavel-ftf", "gavel-ftf-packed", "gavel-fifo", "gavel-fifo-packed", "gavel-gandiva", "gavel-cost",
    "gavel-cost-packed",
    "gavel-hierarchical", "gavel-hierarchical-packed", "gavel-las-fast", "gavel-las-fast-packed", "allox", "hadar",
    "hadare", "pollux", "sia", "elastic-dp", "bftrainer", "sjf-ffs", "sjf-bsbf", "gandiva", "indolent", "hfta", "muri",
    "fgd", "a-srpt",
];

/// What to do in place of a process over a pipe, which earlier versions asked.
const OVER_A_PIPE: &str = "Policies over a pipe are gone: pleach.evaluate and pleach.distill of Python take a function, a network of \
                           another program is an ONNX file, and a program of your own registers policies (docs/tutorials).";

/// Opens policies: heuristics, dealers, files and folders, and what else it was given.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    planners: &'static [&'static [Entry]],
    simulates: bool,
    /// Opens files of other forms; none: there are none.
    others: Option<OtherFiles>,
}

/// The policy of a file that is of a form of its own, or none.
pub type OtherFiles = fn(&Path) -> Option<Result<PolicySpec, Problem>>;

impl Door {
    /// The door of programs that drive a cluster.
    pub const CLUSTER: Door = Door {
        planners: &[pleach_dealing::ENTRIES],
        simulates: false,
        others: None,
    };
    /// The door of programs that simulate: evaluations, tournaments, sweeps, explanations and Python.
    pub const SIMULATOR: Door = Door {
        planners: &[pleach_dealing::BACKFILLING, pleach_dealing::ENTRIES],
        simulates: true,
        others: None,
    };

    /// The same, which opens files of other forms too.
    #[must_use]
    pub const fn with_files(self, others: OtherFiles) -> Door {
        Door {
            others: Some(others),
            ..self
        }
    }

    /// Every name that the door opens, in the order of the tables.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let heuristics = heuristics::names().iter().copied();
        let planners = self.planners().map(|entry| entry.info.name);
        let rivals = RIVALS.iter().map(|rival| rival.info.name);
        let own = own_policies().iter().map(|own| own.info.name);
        heuristics.chain(planners).chain(rivals).chain(own).collect()
    }

    /// Its planners: those that the program registered, which plan in the simulator alone, then those that every program has.
    pub fn planners(self) -> impl Iterator<Item = &'static Entry> {
        let own = own_planners().iter().filter(move |_| self.simulates);
        own.chain(self.planners.iter().copied().flatten())
    }

    /// The planner of a name, if there is one.
    #[must_use]
    pub fn find(self, name: &str) -> Option<&'static Entry> {
        self.planners().find(|entry| entry.info.name == name)
    }

    /// Why a name that is known elsewhere is not opened here; none for other names.
    fn known_elsewhere(self, name: &str) -> Option<Problem> {
        let is_of_simulator = Door::SIMULATOR.find(name).is_some() || LABORATORY.contains(&name);
        let refused = match self.simulates {
            true => without_laboratory(name),
            false => alone(name),
        };
        (is_of_simulator && self.find(name).is_none()).then_some(refused)
    }

    /// A planner by name, with settings other than the published ones; `null` for those.
    ///
    /// # Errors
    /// A name that is no planner's, or settings that it refuses.
    pub fn planner(self, name: &str, settings: Value) -> Result<PolicySpec, Problem> {
        match self.find(name) {
            Some(entry) => PolicySpec::planner(entry, settings),
            None => Err(self.known_elsewhere(name).unwrap_or_else(|| unknown(name))),
        }
    }

    /// Opens `NAME` or `PATH`, any of them after `deal:` or `order:`, or any of these after `LABEL=`. A path is a checkpoint, an
    /// ONNX model, a policy file, a formula, or the folder of a run or a bundle with any of them.
    ///
    /// # Errors
    /// A name that is none and no file; a file that is no policy of this version; a finished run with another policy than it
    /// ended with.
    pub fn open(self, text: &str) -> Result<Vec<PolicySpec>, Problem> {
        let (label, place) = label_and_place(text);
        if let (Some(prefix), inner) = prefix_and_place(place) {
            let opened = self.open(inner)?;
            if label.is_some() && opened.len() > 1 {
                return Err(several(text));
            }
            let made = opened.into_iter().map(|policy| {
                let made = match prefix {
                    DEALT => policy.dealt(),
                    _ => policy.ordered(),
                };
                Ok(made?.named(label))
            });
            return made.collect();
        }
        if heuristics::names().contains(&place) {
            return Ok(vec![PolicySpec::heuristic(place)?.named(label)]);
        }
        if let Some(rival) = Rival::find(place) {
            return Ok(vec![rival.open()?.named(label)]);
        }
        if let Some(own) = own_policies().iter().find(|own| own.info.name == place) {
            return Ok(vec![PolicySpec::made(place, own.make).named(label)]);
        }
        let is_name = self.find(place).is_some() || self.known_elsewhere(place).is_some();
        let path = Path::new(place);
        match () {
            () if is_name => Ok(vec![self.planner(place, Value::Null)?.named(label)]),
            () if path.is_dir() => folder(path, label),
            () if path.exists() => {
                let other = self.others.and_then(|others| others(path));
                Ok(vec![other.unwrap_or_else(|| file(path))?.named(label)])
            }
            () => Err(unknown(place)),
        }
    }

    /// Opens a place of one policy.
    ///
    /// # Errors
    /// As [`Door::open`]; a folder with several.
    pub fn open_one(self, text: &str) -> Result<PolicySpec, Problem> {
        let mut found = self.open(text)?;
        match (found.pop(), found.len()) {
            (Some(only), 0) => Ok(only),
            _ => Err(several(text)),
        }
    }

    /// Opens several; none given means all heuristics. Files without a label whose policies have the same name are named by their
    /// folders; what is the same even then gets a number at its end.
    ///
    /// # Errors
    /// As [`Door::open`]; the same one twice.
    pub fn open_all(self, texts: &[String]) -> Result<Vec<PolicySpec>, Problem> {
        if texts.is_empty() {
            let named = |name: &&str| PolicySpec::heuristic(name);
            return heuristics::names().iter().map(named).collect();
        }
        let mut opened: Vec<(PolicySpec, Vec<String>)> = Vec::new();
        for (place, text) in texts.iter().enumerate() {
            Problem::refuse_if(
                texts[..place].contains(text),
                "policy",
                text,
                "each policy once",
                format_args!("To play it twice, give it a name of its own: again={text}."),
            )?;
            let policies = self.open(text)?;
            let is_one_of_several = policies.len() > 1;
            let with_words = policies.into_iter().map(|policy| {
                let words = words_of(text, is_one_of_several.then_some(policy.name()));
                (policy, words)
            });
            opened.extend(with_words);
        }
        let mut all = Vec::new();
        for policy in own_names(opened) {
            policy.join(&mut all);
        }
        Ok(all)
    }
}

/// Says which policies and planners a program has; once, before any is opened.
///
/// # Errors
/// A name that is taken or is none; a second call.
pub fn register(policies: Vec<OwnPolicy>, planners: Vec<Entry>) -> Result<(), Problem> {
    let mut known = Door::SIMULATOR.names();
    let infos = policies.iter().map(|own| own.info);
    for info in infos.chain(planners.iter().map(|own| own.info)) {
        let is_name = !info.name.is_empty() && !info.name.contains([',', ':', '=', '/', '.']);
        Problem::refuse_if(
            !is_name || known.contains(&info.name),
            "policy",
            info.name,
            "a name without , : = / . that no other policy has",
            "Give it another name.",
        )?;
        known.push(info.name);
    }
    Problem::refuse_if(
        !own::keep(policies, planners),
        "policy",
        "registered again",
        "once in a program",
        "Name all of them in one call.",
    )
}

/// The policies of a run's folder, or of a bundle.
fn folder(path: &Path, label: Option<&str>) -> Result<Vec<PolicySpec>, Problem> {
    let files: Vec<PathBuf> = IN_FOLDERS
        .iter()
        .map(|file| path.join(file))
        .filter(|file| file.exists())
        .collect();
    Problem::refuse_if(
        files.is_empty(),
        "policy",
        path.display(),
        format_args!("a folder with {}", IN_FOLDERS.join(" or ")),
        "Give the folder of a finished run.",
    )?;
    artefacts::verify(path, &IN_FOLDERS, USE_THE_FILE)?;
    if path.join(MANIFEST_FILE).exists() {
        Bundle::open(path).map_err(|error| Problem::data(path, error.to_string()))?;
    }
    if let (Some(label), true) = (label, files.len() > 1) {
        return Err(several(&format!("{label}={}", path.display())));
    }
    let named = |one: &PathBuf| Ok(file(one)?.named(label));
    files.iter().map(named).collect()
}

/// The policy of a file.
fn file(path: &Path) -> Result<PolicySpec, Problem> {
    let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    match PolicyFile::open(path)? {
        PolicyFile::Index(formula) => {
            let opened = Door::CLUSTER.planner("index", formula)?;
            Ok(opened.of_file(name(path.file_stem())))
        }
        PolicyFile::Formula(formula) => Ok(PolicySpec::formula("formula", *formula)),
        PolicyFile::Tree(tree) => Ok(PolicySpec::tree("tree", *tree)),
        PolicyFile::Network(policy) => {
            let opened = PolicySpec::network("network", policy.named("network"));
            Ok(opened.of_file(name(path.file_name())))
        }
        PolicyFile::Deal(learned) => {
            let of_file = match &learned {
                Learned::Tree(tree) => tree.meta().name.clone(),
                Learned::Network(_) => name(path.file_name()),
            };
            Ok(PolicySpec::deals(learned).of_file(of_file))
        }
    }
}

/// Several policies where one is meant, or is given a name.
fn several(text: &str) -> Problem {
    let hint = format!("It holds {}: give the file itself.", IN_FOLDERS.join(" and "));
    Problem::new("policy", text, "a place of one policy", hint)
}

/// A name that is none: the known ones, and a guess; of what is written as a path, that it is not there.
fn unknown(place: &str) -> Problem {
    let is_pipe = place.starts_with("pipe:") || place.starts_with("pipe@");
    if is_path(place) && !is_pipe {
        let folder = Path::new(place)
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let hint = match folder.filter(|folder| !folder.is_dir()) {
            Some(folder) => format!("There is no folder {} either.", folder.display()),
            None => "Names of policies: pleach policies.".to_owned(),
        };
        return Problem::new(
            "policy",
            format!("{place} (there is no such file)"),
            "a checkpoint, an ONNX model, a policy file or the folder of a run that is there, or a name",
            hint,
        );
    }
    let known = Door::SIMULATOR.names();
    let hint = match is_pipe {
        true => OVER_A_PIPE.to_owned(),
        false => {
            let nearest = heuristics::nearest_of(&known, place).unwrap_or("fifo");
            format!("Did you mean {nearest}?")
        }
    };
    Problem::new(
        "policy",
        format!("{place} (there is no such name or file)"),
        format!(
            "{}, or a checkpoint, a policy file or a run's folder",
            known.join(", ")
        ),
        hint,
    )
}

#[cfg(test)]
mod tests;
