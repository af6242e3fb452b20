//! Whoever can be compared: a heuristic or a planner by name, a trained network or a tree by file, or all policies of a
//! run's folder.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use pleach_baselines::Entry;
use pleach_baselines::dealing::policy_planner;
use pleach_network::LearnedPolicy;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::tree::{Bundle, MANIFEST_FILE, Tree, TreePolicy};
use pleach_scheduler::{ActionKind, ActionSet, Planner, PolicyPlanner, heuristics};

use crate::error::Error;
use crate::evaluate::policy_file::PolicyFile;
use crate::evaluate::policy_names::told_apart;
use crate::evaluate::requirement_flags::requirement_flags;
use crate::run_folder;

/// The network that a training run found best, in its folder.
pub(crate) const BEST_CHECKPOINT: &str = "network.ckpt";
/// What to do about a policy that is not the one that its run made.
pub(crate) const USE_THE_FILE: &str =
    "Put the run's own file back, or give this file itself instead of the folder if it is meant.";
/// The tree that a distillation gave, in its folder.
pub const TREE_FILE: &str = "tree.json";
/// What stands before a policy by whose passes GPUs are dealt.
const DEALT: &str = "deal:";
/// What a deal makes use of in a cluster.
const DEALS: ActionSet = ActionSet::of(ActionKind::Preempt).with(ActionKind::Share);
/// Every policy that a run's folder may hold.
const IN_FOLDERS: [&str; 2] = [BEST_CHECKPOINT, TREE_FILE];

/// A policy that can be made anew for every run.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Heuristic(&'static str),
    Network(Box<LearnedPolicy>),
    Tree(Box<TreePolicy>),
    Planner(&'static Entry, serde_json::Value),
    Made(Maker),
    /// Deals by the passes of another.
    Dealt(Box<PolicySpec>),
}

/// Makes fresh copies of a policy of the caller's own.
#[derive(Clone)]
struct Maker(Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>);

impl fmt::Debug for Maker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Maker")
    }
}

impl PolicySpec {
    /// A heuristic by name.
    ///
    /// # Errors
    /// An unknown name; the error lists the known ones.
    pub fn heuristic(name: &str) -> Result<PolicySpec, Error> {
        heuristics::by_name(name)?;
        let known = heuristics::names().iter().find(|known| **known == name);
        let kind = Kind::Heuristic(known.copied().unwrap_or_default());
        Ok(PolicySpec {
            name: name.to_string(),
            kind,
        })
    }

    /// A planner by name, with settings other than the published ones; `null` for those.
    ///
    /// # Errors
    /// An unknown name, or settings that it refuses.
    pub fn planner(name: &str, settings: serde_json::Value) -> Result<PolicySpec, Error> {
        pleach_baselines::make(name, &settings)?;
        let entry =
            pleach_baselines::find(name).ok_or_else(|| Error::Failed(format!("{name} is no planner")))?;
        Ok(PolicySpec {
            name: name.to_string(),
            kind: Kind::Planner(entry, settings),
        })
    }

    /// A trained network.
    #[must_use]
    pub fn network(name: &str, policy: LearnedPolicy) -> PolicySpec {
        PolicySpec {
            name: name.to_string(),
            kind: Kind::Network(Box::new(policy)),
        }
    }

    /// A tree.
    ///
    /// # Errors
    /// A tree that this version cannot run.
    pub fn tree(name: &str, tree: Tree) -> Result<PolicySpec, Error> {
        let policy = TreePolicy::new(tree);
        Ok(PolicySpec {
            name: name.to_string(),
            kind: Kind::Tree(Box::new(policy)),
        })
    }

    /// A policy of the caller's own, for example one in another language; `make` gives a fresh one for every run.
    #[must_use]
    pub fn made(name: &str, make: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> PolicySpec {
        PolicySpec {
            name: name.to_string(),
            kind: Kind::Made(Maker(Arc::new(make))),
        }
    }

    /// What deals by its passes, as if all leases had ended ([`pleach_baselines::dealing::PassOrder`]).
    ///
    /// # Errors
    /// A planner, which chooses among no candidates.
    pub fn dealt(self) -> Result<PolicySpec, Error> {
        self.policy()?;
        Ok(PolicySpec {
            name: format!("{DEALT}{}", self.name),
            kind: Kind::Dealt(Box::new(self)),
        })
    }

    /// Name in tables and files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A fresh planner; every policy is one.
    ///
    /// # Errors
    /// As [`PolicySpec::heuristic`]; not in practice, for name and settings were checked.
    pub fn make_planner(&self) -> Result<Box<dyn Planner>, Error> {
        match &self.kind {
            Kind::Planner(entry, settings) => (entry.make)(settings).map_err(Error::from),
            Kind::Dealt(inner) => Ok(Box::new(policy_planner(&self.name, inner.policy()?)?)),
            _ => Ok(Box::new(PolicyPlanner::new(self.policy()?))),
        }
    }

    /// Whether it plans whole instants and cannot be asked about a candidate.
    #[must_use]
    pub fn is_planner(&self) -> bool {
        matches!(self.kind, Kind::Planner(..) | Kind::Dealt(_))
    }

    /// Whether no lower bound of a workload holds for it, see [`Entry::copies_jobs`].
    #[must_use]
    pub fn copies_jobs(&self) -> bool {
        matches!(&self.kind, Kind::Planner(entry, _) if entry.copies_jobs())
    }

    /// Name of the heuristic that it is, whatever its label; none of other kinds.
    #[must_use]
    pub fn heuristic_name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Heuristic(name) => Some(name),
            _ => None,
        }
    }

    /// Whether it is a trained network.
    #[must_use]
    pub fn is_network(&self) -> bool {
        matches!(self.kind, Kind::Network(_))
    }

    /// What it makes use of in a cluster. A policy does without where it must, a planner only where its entry says so.
    ///
    /// # Errors
    /// As [`PolicySpec::policy`]; not in practice.
    pub fn asks(&self) -> Result<ActionSet, Error> {
        match &self.kind {
            Kind::Planner(entry, _) => return Ok(entry.requirements),
            Kind::Dealt(_) => return Ok(DEALS),
            _ => {}
        }
        Ok(self.policy()?.needs().actions.intersection(ActionSet::OPTIONAL))
    }

    /// A fresh policy.
    ///
    /// # Errors
    /// A planner, which chooses among no candidates.
    pub fn policy(&self) -> Result<Box<dyn Policy>, Error> {
        Ok(match &self.kind {
            Kind::Heuristic(name) => heuristics::by_name(name)?,
            Kind::Network(policy) => Box::new((**policy).clone()),
            Kind::Tree(policy) => Box::new((**policy).clone()),
            Kind::Made(maker) => (maker.0)(),
            Kind::Planner(..) | Kind::Dealt(_) => {
                return Err(Error::config(
                    "policy",
                    &self.name,
                    "a policy that chooses among candidates: a heuristic, a network or a tree",
                    format!("{} plans whole rounds; pleach evaluate compares it.", self.name),
                ));
            }
        })
    }

    /// Refuses a tree or a planner that needs what the cluster cannot do.
    ///
    /// # Errors
    /// The capability that is missing.
    pub fn check(&self, capabilities: Capabilities) -> Result<(), Error> {
        match &self.kind {
            Kind::Tree(policy) => policy
                .tree()
                .check_against(&self.name, capabilities)
                .map_err(|error| {
                    let missing = policy
                        .tree()
                        .meta()
                        .needs
                        .actions
                        .difference(capabilities.actions());
                    let flags = requirement_flags(missing).join(" and ");
                    let allowed = "a tree that asks for no more than the cluster can do";
                    Error::config("policy", &self.name, allowed, format!("{error}; see {flags}"))
                }),
            Kind::Planner(entry, _) => {
                let required = entry.requirements.difference(entry.does_without());
                let missing = required.difference(capabilities.actions());
                if missing.is_empty() {
                    return Ok(());
                }
                let allowed = "a planner that asks for no more than the cluster can do";
                Err(Error::config(
                    "policy",
                    &self.name,
                    allowed,
                    format!("It needs {}.", requirement_flags(missing).join(" and ")),
                ))
            }
            // Where nobody may be stopped a deal fills free GPUs.
            Kind::Dealt(inner) => inner.check(capabilities),
            Kind::Heuristic(_) | Kind::Network(_) | Kind::Made(_) => Ok(()),
        }
    }

    /// The tree or the formula in words, if this is one.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.kind {
            Kind::Tree(policy) => Some(policy.tree().to_text()),
            Kind::Dealt(inner) => inner.text(),
            Kind::Planner(entry, formula) if entry.info.name == "index" => {
                let formula = pleach_baselines::dealing::formula_of(formula).ok()?;
                Some(formula.text())
            }
            _ => None,
        }
    }

    /// Opens `NAME`, `PATH`, `deal:NAME`, `deal:PATH`, or any of them after `LABEL=`. A path is a checkpoint, a policy file, or the folder of a run with either.
    ///
    /// # Errors
    /// A name that is no heuristic and no file; a file that is neither a checkpoint nor a policy file of this version; a finished run
    /// with another policy than it ended with.
    pub fn open(spec: &str) -> Result<Vec<PolicySpec>, Error> {
        let (label, place) = label_and_place(spec);
        if let Some(inner) = place.strip_prefix(DEALT) {
            let opened = PolicySpec::open(inner)?.into_iter();
            return opened.map(|policy| Ok(policy.dealt()?.named(label))).collect();
        }
        let path = Path::new(place);
        if heuristics::names().contains(&place) {
            let policy = PolicySpec::heuristic(place)?;
            return Ok(vec![policy.named(label)]);
        }
        if pleach_baselines::find(place).is_some() {
            let policy = PolicySpec::planner(place, serde_json::Value::Null)?;
            return Ok(vec![policy.named(label)]);
        }
        if path.is_dir() {
            let files: Vec<PathBuf> = IN_FOLDERS
                .iter()
                .map(|file| path.join(file))
                .filter(|file| file.exists())
                .collect();
            if files.is_empty() {
                let allowed = format!("a folder with {}", IN_FOLDERS.join(" or "));
                return Err(Error::config(
                    "policy",
                    place,
                    allowed,
                    "Give the folder of a finished run.",
                ));
            }
            run_folder::verify(path, &IN_FOLDERS, USE_THE_FILE)?;
            if path.join(MANIFEST_FILE).exists() {
                // A bundle: what the daemon would refuse is refused here too.
                Bundle::open(path).map_err(|error| Error::data(path, error.to_string()))?;
            }
            let named = |file: &PathBuf| Ok(open_file(file)?.named(label.filter(|_| files.len() == 1)));
            return files.iter().map(named).collect();
        }
        if path.exists() {
            return Ok(vec![open_file(path)?.named(label)]);
        }
        let known: Vec<&'static str> = heuristics::names()
            .iter()
            .copied()
            .chain(pleach_baselines::names())
            .collect();
        let allowed = format!(
            "{}, or a checkpoint, a policy file or a run's folder",
            known.join(", ")
        );
        let nearest = heuristics::nearest_of(&known, place).unwrap_or("fifo");
        Err(Error::config(
            "policy",
            format!("{place} (there is no such name or file)"),
            allowed,
            format!("Did you mean {nearest}?"),
        ))
    }

    /// Gives a planner settings of its own, by its name in tables: `settings` has one table for each.
    ///
    /// # Errors
    /// A table for a name that is no planner among them, or settings that a planner refuses.
    pub(crate) fn configure(all: &mut [PolicySpec], settings: &serde_json::Value) -> Result<(), Error> {
        let tables = settings.as_object().into_iter().flatten();
        for (name, table) in tables {
            let planner = all
                .iter_mut()
                .find(|policy| policy.name == *name && policy.is_planner());
            let Some(policy) = planner else {
                return Err(Error::config(
                    "policy-config",
                    name,
                    "a table for each planner that --policy names",
                    "Give it to --policy, or take its table out.",
                ));
            };
            if let Kind::Planner(entry, own) = &mut policy.kind {
                (entry.make)(table)?;
                *own = table.clone();
            }
        }
        Ok(())
    }

    /// Opens several; none given means all heuristics. Files without a label whose policies have the same name are named by their
    /// folders ([`own_names`]); what is the same even then gets a number at its end.
    ///
    /// # Errors
    /// As [`PolicySpec::open`]; the same one twice.
    pub fn open_all(specs: &[String]) -> Result<Vec<PolicySpec>, Error> {
        if specs.is_empty() {
            let named = |name: &&str| PolicySpec::heuristic(name);
            return heuristics::names().iter().map(named).collect();
        }
        let mut opened: Vec<(PolicySpec, Vec<String>)> = Vec::new();
        for (place, spec) in specs.iter().enumerate() {
            if specs[..place].contains(spec) {
                let hint = format!("To play it twice, give it a name of its own: again={spec}.");
                return Err(Error::config("policy", spec, "each policy once", hint));
            }
            let policies = PolicySpec::open(spec)?;
            let is_one_of_several = policies.len() > 1;
            let with_words = policies.into_iter().map(|policy| {
                let words = words_of(spec, is_one_of_several.then_some(policy.name()));
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

    /// Adds it to others, under its name or, where somebody has that, with the first free number from 2 at its end.
    pub fn join(mut self, all: &mut Vec<PolicySpec>) {
        let name = self.name.clone();
        let mut number = 2;
        while all.iter().any(|other| other.name == self.name) {
            self.name = format!("{name}-{number}");
            number += 1;
        }
        all.push(self);
    }

    /// Whether numbers of a decision point are not enough for it: a heuristic, a planner, a network that corrects a
    /// heuristic or has one on standby.
    #[must_use]
    pub fn reads_cluster(&self) -> bool {
        match &self.kind {
            Kind::Heuristic(_) | Kind::Planner(..) | Kind::Dealt(_) => true,
            Kind::Network(policy) => policy.reads_cluster(),
            Kind::Tree(_) | Kind::Made(_) => false,
        }
    }

    /// The tree, if this is one.
    #[must_use]
    pub fn tree_policy(&self) -> Option<&TreePolicy> {
        match &self.kind {
            Kind::Tree(policy) => Some(policy),
            _ => None,
        }
    }

    /// The same under another name, if there is one.
    #[must_use]
    pub fn named(mut self, label: Option<&str>) -> PolicySpec {
        if let Some(label) = label {
            self.name = label.to_string();
        }
        self
    }
}

/// The two parts of `LABEL=PATH`; all of it is the path where there is no label.
#[must_use]
pub fn label_and_place(spec: &str) -> (Option<&str>, &str) {
    match spec.split_once('=') {
        Some((label, place)) if !label.is_empty() => (Some(label), place),
        _ => (None, spec),
    }
}

/// By what a policy from a file can be told from others of its name: the last folders of its path, and its file where that has a
/// name of its own. `kind` comes after them, for one of several policies of a folder. Nothing for what has a label or is no file.
fn words_of(spec: &str, kind: Option<&str>) -> Vec<String> {
    let (label, place) = label_and_place(spec);
    let place = Path::new(place.strip_prefix(DEALT).unwrap_or(place));
    if label.is_some() || !place.exists() {
        return Vec::new();
    }
    let parts = place.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let mut words: Vec<String> = parts.collect();
    if place.is_file()
        && words
            .last()
            .is_some_and(|name| IN_FOLDERS.contains(&name.as_str()))
    {
        words.pop();
    } else if place.is_file() {
        let stem = place
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        words.pop();
        words.push(stem);
    }
    words.extend(kind.map(str::to_string));
    words
}

/// Names policies that share a name with another by words of their places.
fn own_names(opened: Vec<(PolicySpec, Vec<String>)>) -> Vec<PolicySpec> {
    let (policies, words): (Vec<PolicySpec>, Vec<Vec<String>>) = opened.into_iter().unzip();
    let names: Vec<&str> = policies.iter().map(PolicySpec::name).collect();
    match told_apart(&names, &words, DEALT) {
        Some(names) => {
            let named = policies.into_iter().zip(names);
            named.map(|(policy, name)| policy.named(Some(&name))).collect()
        }
        None => policies,
    }
}

/// The policy of a file.
fn open_file(path: &Path) -> Result<PolicySpec, Error> {
    match PolicyFile::open(path)? {
        PolicyFile::Formula(formula) => PolicySpec::planner("index", formula),
        PolicyFile::Tree(tree) => PolicySpec::tree("tree", *tree),
        PolicyFile::Network(policy) => Ok(PolicySpec::network("network", policy.named("network"))),
    }
}

#[cfg(test)]
mod tests;
