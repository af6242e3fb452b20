//! Policies: read, checked against this program and this cluster, and replaced as a whole.

use std::path::Path;

use pleach_dealing::{Formula, RoundDealer};
use pleach_network::LearnedPolicy;
use pleach_scheduler::decision::Action;
use pleach_scheduler::heuristics::HeadOfLine;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::tree::{Bundle, Tree};
use pleach_scheduler::{
    ActionKind, ActionSet, Capabilities, Cluster, DecisionPoint, PolicyError, Provenance, TreePolicy,
    heuristics,
};
use serde::de::IgnoredAny;

use crate::config::{EstimateSettings, EstimatesFrom, RoundSettings};
use crate::dealing::Dealing;
use crate::error::Error;
use crate::files;
use crate::fleet;
use crate::record::Planned;
use crate::snapshot::Snapshot;

/// Who answers where nobody says who.
pub const FALLBACK: &str = "easy";

/// Largest file of a tree or an index that is read, bytes; each has a bound of its own beside it.
const JSON_MAX: u64 = 16 << 20;

/// What stands before a policy by whose passes GPUs are dealt.
pub const DEALT: &str = "deal:";

/// What decides.
pub enum Decider {
    /// Candidate by candidate.
    Policy(Box<dyn Policy>),
    /// All jobs at once.
    Dealing(Box<Dealing>),
}

/// A policy that may decide on this cluster.
pub struct Loaded {
    /// What decides.
    pub decider: Decider,
    /// The same tree again, which explains; none for networks and heuristics.
    pub tree: Option<TreePolicy>,
    /// Its name, for logs.
    pub name: String,
    /// What an operator should know of it; empty = nothing.
    pub warnings: Vec<String>,
    /// Where it leaves clusters to another rule; none: it decides on all.
    pub narrow: Option<Narrow>,
}

/// Up to where a policy decides itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// The most GPU types of such a cluster.
    pub gpu_types_max: u32,
    /// Who decides on others.
    pub other: String,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Loaded")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// A heuristic.
    ///
    /// # Errors
    /// An unknown name.
    pub fn heuristic(name: &str) -> Result<Loaded, Error> {
        Ok(Loaded {
            decider: Decider::Policy(heuristics::by_name(name)?),
            tree: None,
            name: name.to_owned(),
            warnings: Vec::new(),
            narrow: None,
        })
    }

    /// Why it leaves a cluster to another rule, in words; none where it decides itself.
    #[must_use]
    pub fn aside(&self, cluster: &Cluster) -> Option<String> {
        let (narrow, num) = (self.narrow.as_ref()?, cluster.num_types());
        (num > narrow.gpu_types_max as usize).then(|| {
            format!(
                "{} decides: the cluster has {num} GPU types, and {} was judged on {}",
                narrow.other, self.name, narrow.gpu_types_max
            )
        })
    }

    /// Why it would leave a whole cluster as it was seen to another rule, whoever holds what; none where it decides itself.
    ///
    /// # Errors
    /// Settings that do not fit what was seen.
    pub fn aside_on(&self, snapshot: &Snapshot, settings: &RoundSettings) -> Result<Option<String>, Error> {
        let fleet = fleet::empty(snapshot, settings)?;
        Ok(fleet.and_then(|fleet| self.aside(&fleet.cluster)))
    }

    /// Who answers where this policy fails or is late: the heuristic of the settings, else the one that the tree's file names, else
    /// [`FALLBACK`].
    ///
    /// # Errors
    /// A heuristic of the file that this cluster cannot carry out.
    pub fn fallback(&self, settings: &RoundSettings, capabilities: Capabilities) -> Result<Loaded, Error> {
        let named = self.tree.as_ref().and_then(|tree| tree.tree().fallback());
        match (&settings.fallback, named) {
            (Some(name), _) => Loaded::heuristic(name),
            (None, Some(name)) => Loaded::of(name, capabilities).map_err(|error| Error::Policy {
                path: self.name.clone().into(),
                reason: format!(
                    "its fallback cannot be used: {error}. Name another one: `fallback` of the settings wins"
                ),
            }),
            (None, None) => Loaded::heuristic(FALLBACK),
        }
    }

    /// A policy by the name of a heuristic or of a dealer, the file of a tree or of an index (`.json`) or of a network,
    /// or the folder of a bundle; after `deal:` what deals by the passes of such a policy.
    ///
    /// # Errors
    /// A file that cannot be read, another feature schema, actions that this cluster cannot carry out.
    pub fn of(text: &str, capabilities: Capabilities) -> Result<Loaded, Error> {
        let loaded = Loaded::open(text, capabilities)?;
        let left_out = match &loaded.decider {
            Decider::Policy(policy) => policy.needs().actions.difference(ActionSet::IN_DAEMONS),
            Decider::Dealing(_) => ActionSet::NONE,
        };
        match left_out.iter().next() {
            None => Ok(loaded),
            Some(kind) => Err(Error::Policy {
                path: text.into(),
                reason: format!(
                    "{} needs {}, which no daemon carries out: the simulator does",
                    loaded.name,
                    kind.phrase()
                ),
            }),
        }
    }

    fn open(text: &str, capabilities: Capabilities) -> Result<Loaded, Error> {
        let path = Path::new(text);
        let refuse = |reason: String| Error::Policy {
            path: path.to_owned(),
            reason,
        };
        if let Some(inner) = text.strip_prefix(DEALT) {
            return Loaded::dealt(inner, capabilities);
        }
        if heuristics::names().contains(&text) {
            let policy = heuristics::by_name(text)?;
            let able = ActionSet::IN_DAEMONS.intersection(policy.needs().actions);
            return match able.difference(capabilities.actions()).iter().next() {
                Some(kind) => Err(refuse(format!(
                    "it needs {}, which this cluster does not allow; see `preemption`",
                    kind.phrase()
                ))),
                None => Loaded::heuristic(text),
            };
        }
        if let Some(dealer) = RoundDealer::by_name(text) {
            return Ok(Loaded::dealer(dealer, capabilities));
        }
        if path.is_dir() {
            let bundle = Bundle::open(path).map_err(|error| refuse(error.to_string()))?;
            return Loaded::tree(text, bundle.tree, capabilities);
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            // Whose text is no JSON cannot be told from one another.
            let words = files::text(path, JSON_MAX)?;
            serde_json::from_str::<IgnoredAny>(&words)
                .map_err(|error| refuse(format!("no JSON, as a tree or an index is: {error}")))?;
            if Formula::is_in(path).map_err(|error| refuse(error.to_string()))? {
                let formula = Formula::load(path).map_err(|error| refuse(error.to_string()))?;
                let name = path
                    .file_stem()
                    .map_or(text.into(), |name| name.to_string_lossy());
                let dealer = RoundDealer::by_formula(&name, formula)?;
                return Ok(Loaded::dealer(dealer, capabilities));
            }
            let tree = Tree::load(path).map_err(|error| refuse(error.to_string()))?;
            return Loaded::tree(text, tree, capabilities);
        }
        let network = LearnedPolicy::load(path).map_err(|error| refuse(error.to_string()))?;
        let name = path
            .file_name()
            .map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned());
        let missing = network.needs().actions.difference(capabilities.actions());
        let warnings = missing
            .iter()
            .map(|kind| format!("it may choose {}, which is not offered here", kind.phrase()));
        Ok(Loaded {
            warnings: warnings.collect(),
            narrow: network.one_type_only().map(|other| Narrow {
                gpu_types_max: 1,
                other: other.to_owned(),
            }),
            decider: Decider::Policy(Box::new(network)),
            tree: None,
            name,
        })
    }

    /// What deals by the passes of a policy, as if all leases had ended.
    fn dealt(inner: &str, capabilities: Capabilities) -> Result<Loaded, Error> {
        let loaded = Loaded::of(inner, capabilities)?;
        let name = format!("{DEALT}{}", loaded.name);
        let dealer = match (&loaded.decider, &loaded.tree) {
            (Decider::Dealing(_), _) => {
                return Err(Error::Policy {
                    path: inner.into(),
                    reason: format!("it deals by itself: leave `{DEALT}` out"),
                });
            }
            (_, Some(tree)) => {
                let tree = tree.clone();
                RoundDealer::by_policy(&name, move || Box::new(tree.clone()))
            }
            _ => match heuristics::names().iter().find(|known| **known == inner) {
                Some(known) => {
                    heuristics::by_name(known)?;
                    // It is known: nobody else ever answers.
                    let make = || heuristics::by_name(known).unwrap_or_else(|_| Box::new(HeadOfLine::fifo()));
                    RoundDealer::by_policy(&name, make)
                }
                None => {
                    let network = LearnedPolicy::load(Path::new(inner));
                    let network = network.map_err(|error| Error::Policy {
                        path: inner.into(),
                        reason: error.to_string(),
                    })?;
                    RoundDealer::by_policy(&name, move || Box::new(network.clone()))
                }
            },
        };
        let of_dealer = Loaded::dealer(dealer, capabilities);
        let warnings = [loaded.warnings, of_dealer.warnings].concat();
        Ok(Loaded {
            name,
            decider: of_dealer.decider,
            warnings,
            ..loaded
        })
    }

    /// A dealer. Where running jobs may not be stopped it fills free GPUs in its order, and says so.
    #[must_use]
    pub fn dealer(dealer: RoundDealer, capabilities: Capabilities) -> Loaded {
        let only_fills = "it deals the GPUs of running jobs anew, which `preemption = true` allows; here it only fills free GPUs in \
                          its order, which is little better than any other";
        let warnings = (!capabilities.can(ActionKind::Preempt)).then(|| only_fills.to_owned());
        Loaded {
            name: dealer.name().to_owned(),
            decider: Decider::Dealing(Box::new(Dealing::new(dealer))),
            tree: None,
            warnings: warnings.into_iter().collect(),
            narrow: None,
        }
    }

    /// The dealer, if it is one.
    #[must_use]
    pub fn dealing(&self) -> Option<&Dealing> {
        match &self.decider {
            Decider::Dealing(dealing) => Some(dealing),
            Decider::Policy(_) => None,
        }
    }

    /// The dealer, if it is one.
    pub fn dealing_mut(&mut self) -> Option<&mut Dealing> {
        match &mut self.decider {
            Decider::Dealing(dealing) => Some(dealing),
            Decider::Policy(_) => None,
        }
    }

    /// Tells a dealer of the jobs that the batch system would not stop at Unix time `now_s`.
    pub fn hear(&mut self, decisions: &[Planned], now_s: i64) {
        let Some(dealing) = self.dealing_mut() else { return };
        let is_refused = |planned: &&Planned| {
            planned.decision.action == Action::Preempt && planned.outcome.starts_with("refused")
        };
        for planned in decisions.iter().filter(is_refused) {
            dealing.refused(planned.job(), now_s);
        }
    }

    /// A dealer that takes another one's place remembers what that one did.
    pub fn goes_on_from(&mut self, other: &Loaded) {
        if let (Some(mine), Some(dealing)) = (self.dealing_mut(), other.dealing()) {
            mine.remember(dealing.memory().clone());
        }
    }

    /// A tree.
    ///
    /// # Errors
    /// Actions that this cluster cannot carry out.
    pub fn tree(shown: &str, tree: Tree, capabilities: Capabilities) -> Result<Loaded, Error> {
        tree.check_against(shown, capabilities)
            .map_err(|error| Error::Policy {
                path: shown.into(),
                reason: error.to_string(),
            })?;
        let name = tree.meta().name.clone();
        let narrow = tree.gpu_types_max().map(|gpu_types_max| Narrow {
            gpu_types_max,
            other: tree.fallback().unwrap_or_default().to_owned(),
        });
        let tree = TreePolicy::new(tree);
        Ok(Loaded {
            decider: Decider::Policy(Box::new(tree.clone())),
            tree: Some(tree),
            name,
            warnings: Vec::new(),
            narrow,
        })
    }

    /// What an operator should know of it with these settings: its own warnings, and whether it was trained with other estimates
    /// of run times than it is given here, with what to do about it.
    #[must_use]
    pub fn warnings_with(&self, estimates: &EstimateSettings) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        let of_tree = self.tree.as_ref().map(|tree| &tree.tree().meta().estimates);
        let trained_with = of_tree.map_or(&[][..], Vec::as_slice);
        let (given, other, here) = match estimates.from {
            EstimatesFrom::Limit => (Provenance::UserLimit, "history", "only time limits are known"),
            EstimatesFrom::History => (
                Provenance::Predicted,
                "limit",
                "they are predicted from ended jobs",
            ),
        };
        if trained_with.is_empty() || trained_with.contains(&given) {
            return warnings;
        }
        let is_other =
            trained_with.contains(&Provenance::UserLimit) || trained_with.contains(&Provenance::Predicted);
        let fix = match (is_other, estimates.from) {
            (true, _) => format!("set `from = \"{other}\"` in `[estimates]`"),
            (false, EstimatesFrom::Limit) => {
                "`from = \"history\"` in `[estimates]` comes nearer, training with `--estimates user` fits"
                    .into()
            }
            (false, EstimatesFrom::History) => "training with `--estimates history` fits".into(),
        };
        warnings.push(format!(
            "it was trained with estimates of the kind {trained_with:?}; here {here} ({given:?}): {fix}"
        ));
        warnings
    }

    /// Why a candidate of a decision point that the policy scored is where it is: the leaf that decides, then a line for each
    /// condition; none of networks and heuristics.
    ///
    /// # Errors
    /// As `score`: where the observation was not filled.
    pub fn explained(&self, point: &DecisionPoint<'_>, choice: usize) -> Result<Option<String>, PolicyError> {
        let Some(tree) = &self.tree else {
            return Ok(None);
        };
        let text = tree.explain(point, choice)?.to_string();
        // Its first line names rows of tables, which mean nothing outside.
        let (first, path) = text.split_once('\n').unwrap_or((&text, ""));
        let decided = first.split_once(": ").map_or("", |(_, decided)| decided);
        Ok(Some(format!("{decided}\n{path}").trim_end().to_owned()))
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
