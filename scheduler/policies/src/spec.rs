//! All that can decide: a heuristic, a planner, a network, a tree, a formula, what deals by the passes of one of them, or a
//! policy of the caller's own. It is made anew for every run, and says what it needs, reads and explains.

use std::fmt;
use std::sync::Arc;

use pleach_dealing::{
    DEALS, Entry, InOrder, Ranker, RoundDealer, formula_of, policy_planner, scored_planner,
};
use pleach_network::LearnedPolicy;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::formula::{FormulaPolicy, ScoreFormula};
use pleach_scheduler::policy::Policy;
use pleach_scheduler::tree::{Tree, TreeError, TreePolicy};
use pleach_scheduler::{ActionSet, Lens, Planner, PolicyPlanner, Problem, heuristics};
use serde_json::Value;

use crate::file::Learned;
use crate::place::{DEALT, ORDERED};
use crate::refusal::{alone, not_in_daemons};

/// The planner that a formula is for.
const INDEX: &str = "index";
/// What to do in place of dealing by the passes of a network, which never saw a running job as it learned.
const LEARNED_TO_START: &str =
    "A network that learned to start jobs deals badly: train one with --workload deals.";
/// What a planner is not.
const CHOOSES: &str = "a policy that chooses among candidates: a heuristic, a network, a tree or a formula";

/// A policy that can be made anew for every run.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// Name in tables.
    name: String,
    /// Name in the logs of programs that drive a cluster, where it is another one.
    own: Option<String>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Heuristic(&'static str),
    Network(Box<LearnedPolicy>),
    Tree(Box<TreePolicy>),
    Formula(Box<FormulaPolicy>),
    Planner(&'static Entry, Value),
    Made(Maker),
    /// Deals by the scores of what was learned.
    Deals(Learned),
    /// Deals by the passes of another.
    Dealt(Box<PolicySpec>),
    /// Starts jobs in the order of another.
    Ordered(Box<PolicySpec>),
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
    pub fn heuristic(name: &str) -> Result<PolicySpec, Problem> {
        heuristics::by_name(name)?;
        let known = heuristics::names().iter().find(|known| **known == name);
        let kind = Kind::Heuristic(known.copied().unwrap_or_default());
        Ok(PolicySpec::of(name, kind))
    }

    fn of(name: &str, kind: Kind) -> PolicySpec {
        PolicySpec {
            name: name.to_string(),
            own: None,
            kind,
        }
    }

    /// A planner with settings other than the published ones; `null` for those.
    ///
    /// # Errors
    /// Settings that it refuses.
    pub fn planner(entry: &'static Entry, settings: Value) -> Result<PolicySpec, Problem> {
        (entry.make)(&settings)?;
        Ok(PolicySpec::of(entry.info.name, Kind::Planner(entry, settings)))
    }

    /// A trained network.
    #[must_use]
    pub fn network(name: &str, policy: LearnedPolicy) -> PolicySpec {
        PolicySpec::of(name, Kind::Network(Box::new(policy)))
    }

    /// A tree.
    #[must_use]
    pub fn tree(name: &str, tree: Tree) -> PolicySpec {
        let own = tree.meta().name.clone();
        PolicySpec::of(name, Kind::Tree(Box::new(TreePolicy::new(tree)))).of_file(own)
    }

    /// A formula.
    #[must_use]
    pub fn formula(name: &str, formula: ScoreFormula) -> PolicySpec {
        let own = formula.name.clone();
        PolicySpec::of(name, Kind::Formula(Box::new(FormulaPolicy::new(formula)))).of_file(own)
    }

    /// A policy of the caller's own, for example one in another language; `make` gives a fresh one for every run.
    #[must_use]
    pub fn made(name: &str, make: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> PolicySpec {
        PolicySpec::of(name, Kind::Made(Maker(Arc::new(make))))
    }

    /// What deals by the scores that it learned to give the rows of a deal.
    #[must_use]
    pub(crate) fn deals(learned: Learned) -> PolicySpec {
        let name = match &learned {
            Learned::Tree(_) => "tree-deal",
            Learned::Network(_) => "network-deal",
        };
        PolicySpec::of(name, Kind::Deals(learned))
    }

    /// What deals by its passes, as if all leases had ended ([`pleach_dealing::PassOrder`]).
    ///
    /// # Errors
    /// A planner, which chooses among no candidates; a network, which learned from starts what a deal never asks.
    pub fn dealt(self) -> Result<PolicySpec, Problem> {
        if let Kind::Network(_) = self.kind {
            let shown = format!("{DEALT}{}", self.name);
            let allowed = "a heuristic, a formula or a tree, or without it a network that learned to deal";
            return Err(Problem::new("policy", shown, allowed, LEARNED_TO_START));
        }
        Problem::refuse_if(
            self.is_planner(),
            "policy",
            format_args!("{DEALT}{}", self.name),
            CHOOSES,
            format_args!("{} plans whole rounds by itself: leave `{DEALT}` out.", self.name),
        )?;
        let name = format!("{DEALT}{}", self.name);
        let own = Some(format!("{DEALT}{}", self.own_name()));
        Ok(PolicySpec {
            name,
            own,
            kind: Kind::Dealt(Box::new(self)),
        })
    }

    /// What starts jobs in its order and carries out nothing else of it ([`pleach_dealing::InOrder`]).
    ///
    /// # Errors
    /// As [`PolicySpec::ranker`]; what is one already.
    pub fn ordered(self) -> Result<PolicySpec, Problem> {
        Problem::refuse_if(
            matches!(self.kind, Kind::Ordered(_)),
            "policy",
            format_args!("{ORDERED}{}", self.name),
            "a policy or a dealer",
            "Once is enough.",
        )?;
        self.ranker()?;
        let name = format!("{ORDERED}{}", self.name);
        let own = Some(format!("{ORDERED}{}", self.own_name()));
        Ok(PolicySpec {
            name,
            own,
            kind: Kind::Ordered(Box::new(self)),
        })
    }

    /// What ranks all waiting jobs by it: a policy by its choices, a dealer by its scores.
    ///
    /// # Errors
    /// A planner that has no order, or plans in the simulator alone.
    pub fn ranker(&self) -> Result<Ranker, Problem> {
        match &self.kind {
            Kind::Dealt(inner) | Kind::Ordered(inner) => inner.ranker(),
            Kind::Planner(..) | Kind::Deals(_) => Ok(Ranker::by_scores(self.round_dealer()?)),
            _ => Ok(Ranker::by_policy(self.policy()?)),
        }
    }

    /// The kinds of actions that it would take and that an order says nothing of.
    ///
    /// # Errors
    /// As [`PolicySpec::policy`]; not in practice.
    pub fn lost_in_order(&self) -> Result<ActionSet, Problem> {
        match &self.kind {
            Kind::Dealt(_) | Kind::Deals(_) => Ok(DEALS),
            Kind::Ordered(inner) => inner.lost_in_order(),
            Kind::Planner(entry, _) => Ok(entry.requirements),
            _ => Ok(self.policy()?.needs().actions),
        }
    }

    /// The same, which came from a file of this name.
    #[must_use]
    pub(crate) fn of_file(mut self, name: String) -> PolicySpec {
        self.own = Some(name);
        self
    }

    /// Name in the logs of programs that drive a cluster: that in the file of a tree, the file's name of a network or formula.
    #[must_use]
    pub fn own_name(&self) -> &str {
        self.own.as_deref().unwrap_or(&self.name)
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
    pub fn make_planner(&self) -> Result<Box<dyn Planner>, Problem> {
        match &self.kind {
            Kind::Planner(entry, settings) => (entry.make)(settings),
            Kind::Deals(learned) => Ok(Box::new(scored_planner(&self.name, learned.order()?)?)),
            Kind::Dealt(inner) => Ok(Box::new(policy_planner(&self.name, inner.policy()?)?)),
            Kind::Ordered(inner) => Ok(Box::new(InOrder::new(&self.name, inner.ranker()?))),
            _ => Ok(Box::new(PolicyPlanner::new(self.policy()?))),
        }
    }

    /// Whether it plans whole instants and cannot be asked about a candidate.
    #[must_use]
    pub fn is_planner(&self) -> bool {
        matches!(
            self.kind,
            Kind::Planner(..) | Kind::Deals(_) | Kind::Dealt(_) | Kind::Ordered(_)
        )
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
    pub fn asks(&self) -> Result<ActionSet, Problem> {
        match &self.kind {
            Kind::Planner(entry, _) => return Ok(entry.requirements),
            Kind::Dealt(_) | Kind::Deals(_) => return Ok(DEALS),
            Kind::Ordered(_) => return Ok(ActionSet::NONE),
            _ => {}
        }
        Ok(self.policy()?.needs().actions.intersection(ActionSet::OPTIONAL))
    }

    /// A fresh policy.
    ///
    /// # Errors
    /// A planner, which chooses among no candidates.
    pub fn policy(&self) -> Result<Box<dyn Policy>, Problem> {
        Ok(match &self.kind {
            Kind::Heuristic(name) => heuristics::by_name(name)?,
            Kind::Network(policy) => Box::new((**policy).clone()),
            Kind::Tree(policy) => Box::new((**policy).clone()),
            Kind::Formula(policy) => Box::new((**policy).clone()),
            Kind::Made(maker) => (maker.0)(),
            Kind::Planner(..) | Kind::Deals(_) | Kind::Dealt(_) | Kind::Ordered(_) => {
                let hint = format!("{} plans whole rounds; pleach evaluate compares it.", self.name);
                return Err(Problem::new("policy", &self.name, CHOOSES, hint));
            }
        })
    }

    /// Refuses a tree or a planner that needs what the cluster cannot do.
    ///
    /// # Errors
    /// The capability that is missing.
    pub fn check(&self, capabilities: Capabilities) -> Result<(), Problem> {
        let refused = |checked: Result<(), TreeError>, needed: ActionSet| {
            let Err(error) = checked else { return Ok(()) };
            let flags = requirement_flags(needed.difference(capabilities.actions())).join(" and ");
            let allowed = "a policy that asks for no more than the cluster can do";
            let hint = format!("{error}; see {flags}, in a daemon its settings (`preemption = true`)");
            Err(Problem::new("policy", &self.name, allowed, hint))
        };
        match &self.kind {
            Kind::Tree(policy) => refused(
                policy.tree().check_against(&self.name, capabilities),
                policy.tree().meta().needs.actions,
            ),
            Kind::Formula(policy) => refused(
                policy.formula().check_against(&self.name, capabilities),
                policy.formula().needs().actions,
            ),
            Kind::Planner(entry, _) => {
                let required = entry.requirements.difference(entry.does_without());
                let missing = required.difference(capabilities.actions());
                Problem::refuse_if(
                    !missing.is_empty(),
                    "policy",
                    &self.name,
                    "a planner that asks for no more than the cluster can do",
                    format_args!("It needs {}.", requirement_flags(missing).join(" and ")),
                )
            }
            // Where jobs cannot be preempted a deal fills free GPUs.
            Kind::Dealt(inner) => inner.check(capabilities),
            // What it would do besides is not carried out anywhere.
            Kind::Ordered(inner) => inner.check(capabilities.with_actions(inner.lost_in_order()?)),
            Kind::Heuristic(_) | Kind::Network(_) | Kind::Made(_) | Kind::Deals(_) => Ok(()),
        }
    }

    /// Refuses a policy that chooses what no daemon carries out.
    ///
    /// # Errors
    /// The first such kind of action, in words.
    pub fn check_in_daemons(&self) -> Result<(), Problem> {
        let chooses = match self.is_planner() {
            true => ActionSet::NONE,
            false => self.policy()?.needs().actions,
        };
        match chooses.difference(ActionSet::IN_DAEMONS).iter().next() {
            None => Ok(()),
            Some(kind) => Err(not_in_daemons(self.own_name(), kind.phrase())),
        }
    }

    /// The tree or the formula in words, if this is one.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.kind {
            Kind::Tree(policy) => Some(policy.tree().to_text()),
            Kind::Formula(policy) => Some(policy.formula().in_words()),
            Kind::Deals(Learned::Tree(tree)) => Some(tree.to_text()),
            Kind::Dealt(inner) | Kind::Ordered(inner) => inner.text(),
            Kind::Planner(entry, formula) if entry.info.name == INDEX => {
                Some(formula_of(formula).ok()?.text())
            }
            _ => None,
        }
    }

    /// Whether numbers of a decision point are not enough for it: a heuristic, a planner, a network that corrects a
    /// heuristic or has one on standby.
    #[must_use]
    pub fn reads_cluster(&self) -> bool {
        match &self.kind {
            Kind::Heuristic(_) | Kind::Planner(..) | Kind::Deals(_) | Kind::Dealt(_) | Kind::Ordered(_) => {
                true
            }
            Kind::Network(policy) => policy.reads_cluster(),
            Kind::Tree(_) | Kind::Formula(_) | Kind::Made(_) => false,
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

    /// The formula, if this is one.
    #[must_use]
    pub fn formula_policy(&self) -> Option<&FormulaPolicy> {
        match &self.kind {
            Kind::Formula(policy) => Some(policy),
            _ => None,
        }
    }

    /// The network, if this is one.
    #[must_use]
    pub fn network_policy(&self) -> Option<&LearnedPolicy> {
        match &self.kind {
            Kind::Network(policy) => Some(policy),
            _ => None,
        }
    }

    /// Whose passes it deals by, if it does.
    #[must_use]
    pub fn deals_by(&self) -> Option<&PolicySpec> {
        match &self.kind {
            Kind::Dealt(inner) => Some(inner),
            _ => None,
        }
    }

    /// In whose order it starts jobs, if it does no more than that.
    #[must_use]
    pub fn orders_by(&self) -> Option<&PolicySpec> {
        match &self.kind {
            Kind::Ordered(inner) => Some(inner),
            _ => None,
        }
    }

    /// What it would like to do and does without on such a cluster. Trees and published planners do without nothing
    /// ([`PolicySpec::check`]).
    ///
    /// # Errors
    /// As [`PolicySpec::policy`]; not in practice.
    pub fn does_without(&self, capabilities: Capabilities) -> Result<ActionSet, Problem> {
        let wanted = match &self.kind {
            Kind::Planner(entry, _) => entry.does_without(),
            Kind::Dealt(_) | Kind::Deals(_) => DEALS,
            Kind::Ordered(_) => ActionSet::NONE,
            _ => self.policy()?.needs().actions,
        };
        Ok(wanted.difference(capabilities.actions()))
    }

    /// A dealer that works in rounds and remembers nothing between them, as programs that drive a cluster need it.
    ///
    /// # Errors
    /// What is no dealer, or one that plans in the simulator alone.
    pub fn round_dealer(&self) -> Result<RoundDealer, Problem> {
        let name = self.own_name();
        match &self.kind {
            Kind::Planner(entry, formula) if entry.info.name == INDEX && !formula.is_null() => {
                Ok(RoundDealer::by_formula(name, formula_of(formula)?)?)
            }
            Kind::Planner(entry, Value::Null) => {
                let dealer = RoundDealer::by_name(entry.info.name);
                Ok(dealer.ok_or_else(|| alone(entry.info.name))?.named(name))
            }
            Kind::Deals(learned) => {
                let learned = learned.clone();
                RoundDealer::by_scores(name, move || learned.order())
            }
            Kind::Dealt(inner) => {
                let inner = inner.clone();
                // It chooses among candidates, or it would not be dealt by: the other branch is never taken.
                let make = move || {
                    inner
                        .policy()
                        .unwrap_or_else(|_| Box::new(heuristics::head_of_line("fifo", Lens::Arrival)))
                };
                Ok(RoundDealer::by_policy(name, make))
            }
            _ => Err(alone(name)),
        }
    }

    /// The same under another name, if there is one.
    #[must_use]
    pub fn named(mut self, label: Option<&str>) -> PolicySpec {
        if let Some(label) = label {
            self.name = label.to_string();
            self.own = None;
        }
        self
    }
}

/// The flags of the command line that give what a planner requires, in the order in which `pleach evaluate --help` lists them.
#[must_use]
pub fn requirement_flags(required: ActionSet) -> Vec<&'static str> {
    required.iter().filter_map(|kind| kind.row().flag).collect()
}

mod settings;
#[cfg(test)]
mod tests;
