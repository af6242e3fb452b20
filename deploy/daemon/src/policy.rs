//! Policies: read, checked against this program and this cluster, and replaced as a whole.

use pleach_dealing::Ranker;
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::decision::Action;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{
    ActionKind, ActionSet, Capabilities, Cluster, DecisionPoint, PolicyError, Problem, Provenance, TreePolicy,
};

use crate::config::{EstimateSettings, EstimatesFrom, RoundSettings};
use crate::dealing::Dealing;
use crate::error::Error;
use crate::fleet;
use crate::record::Planned;
use crate::snapshot::Snapshot;

/// The fallback where neither the settings nor the tree's file name one.
pub const FALLBACK: &str = "easy";

/// The warning about a dealer where running jobs may not be stopped.
const ONLY_FILLS: &str = "it deals the GPUs of running jobs anew, which `preemption = true` allows; here it only fills free GPUs in \
                          its order, which is little better than any other";

/// What decides.
pub enum Decider {
    /// Candidate by candidate.
    Policy(Box<dyn Policy>),
    /// All jobs at once.
    Dealing(Box<Dealing>),
    /// The order of the waiting jobs, and the stops beside it where those are allowed.
    Order(Box<Ranking>),
}

/// What ranks the waiting jobs.
#[derive(Debug)]
pub struct Ranking {
    /// Their order.
    pub ranker: Ranker,
    /// What says which running jobs are stopped; none where none may be, and of a policy that would stop none.
    deals: Option<Dealing>,
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
    /// The rule to which a network leaves clusters of several GPU types; none: it decides on all.
    pub of_several_types: Option<String>,
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
        let opened = Loaded::opened(&PolicySpec::heuristic(name)?, Capabilities::default())?;
        Ok(Loaded {
            warnings: Vec::new(),
            ..opened
        })
    }

    /// A policy for a way of driving: where that is by order, one that ranks.
    ///
    /// # Errors
    /// As [`Loaded::of`]; an order (`order:`) where jobs are held and let go.
    pub fn driving(text: &str, settings: &RoundSettings) -> Result<Loaded, Error> {
        let (spec, capabilities) = (Door::CLUSTER.open_one(text)?, fleet::capabilities(settings));
        match (settings.drive.is_order(), spec.orders_by()) {
            (true, None) => {
                let name = spec.own_name().to_owned();
                let opened =
                    Loaded::opened_to((&spec.ordered()?, capabilities), settings.stops_beside_order)?;
                Ok(Loaded { name, ..opened })
            }
            (false, Some(_)) => {
                let allowed = "a policy that says which job starts where";
                let hint = "set `drive = \"order\"`, or leave `order:` out";
                Err(Problem::new("policy", text, allowed, hint).into())
            }
            _ => Loaded::opened_to((&spec, capabilities), settings.stops_beside_order),
        }
    }

    /// Why it leaves a cluster to another rule, in words; none where it decides itself.
    #[must_use]
    pub fn aside(&self, cluster: &Cluster) -> Option<String> {
        if let Some(tree) = &self.tree {
            return tree.tree().aside(cluster, &self.name);
        }
        let (other, num) = (self.of_several_types.as_ref()?, cluster.num_types());
        (num > 1).then(|| {
            format!(
                "{other} decides: the cluster has {num} GPU types, and {} was judged on 1",
                self.name
            )
        })
    }

    /// Why it would leave the whole cluster of a snapshot, all GPUs free, to another rule; none where it decides itself.
    ///
    /// # Errors
    /// Settings that do not fit what was seen.
    pub fn aside_on(&self, snapshot: &Snapshot, settings: &RoundSettings) -> Result<Option<String>, Error> {
        let fleet = fleet::empty(snapshot, settings)?;
        Ok(fleet.and_then(|fleet| self.aside(&fleet.cluster)))
    }

    /// What answers where this policy fails or is late: the heuristic of the settings, else the one of the tree's file, else
    /// [`FALLBACK`].
    ///
    /// # Errors
    /// An unknown name.
    pub fn fallback(&self, settings: &RoundSettings) -> Result<Loaded, Error> {
        let of_file = self.tree.as_ref().and_then(|tree| tree.tree().fallback());
        let name = settings.fallback.as_deref().or(of_file).unwrap_or(FALLBACK);
        let opened = Loaded::driving(name, settings)?;
        Ok(Loaded {
            warnings: Vec::new(),
            ..opened
        })
    }

    /// A policy as every door opens it ([`Door::open`]), by name, file or folder.
    ///
    /// # Errors
    /// What is no policy, and one that needs what this cluster cannot do or that plans in the simulator alone.
    pub fn of(text: &str, capabilities: Capabilities) -> Result<Loaded, Error> {
        Loaded::opened(&Door::CLUSTER.open_one(text)?, capabilities)
    }

    /// A policy that was opened.
    ///
    /// # Errors
    /// As [`Loaded::of`].
    pub fn opened(spec: &PolicySpec, capabilities: Capabilities) -> Result<Loaded, Error> {
        Loaded::opened_to((spec, capabilities), false)
    }

    /// The same, which stops running jobs beside an order where `stops` says so.
    fn opened_to((spec, capabilities): (&PolicySpec, Capabilities), stops: bool) -> Result<Loaded, Error> {
        spec.check(capabilities)?;
        // What deals by the passes of a policy explains itself and steps aside as that one does.
        let ordered = spec.orders_by();
        let inner = ordered.unwrap_or(spec);
        let judged = inner.deals_by().unwrap_or(inner);
        if ordered.is_none() {
            judged.check_in_daemons()?;
        }
        let tree = judged.tree_policy().cloned();
        let network = judged.network_policy();
        let of_several_types = network.and_then(|network| network.one_type_only().map(str::to_owned));
        // A tree was checked.
        let missing = match judged.is_planner() || tree.is_some() || ordered.is_some() {
            true => ActionSet::NONE,
            false => judged.does_without(capabilities)?,
        };
        let not_offered = missing
            .iter()
            .map(|kind| format!("it may choose {}, which is not offered here", kind.phrase()));
        let only_fills = (spec.is_planner() && ordered.is_none() && !capabilities.can(ActionKind::Preempt))
            .then(|| ONLY_FILLS.to_owned());
        Ok(Loaded {
            decider: match (ordered, spec.is_planner()) {
                (Some(ordered), _) => {
                    let deals = if stops { deals_beside(ordered)? } else { None };
                    let ranker = ordered.ranker()?;
                    Decider::Order(Box::new(Ranking { ranker, deals }))
                }
                (None, true) => Decider::Dealing(Box::new(Dealing::new(spec.round_dealer()?))),
                (None, false) => Decider::Policy(spec.policy()?),
            },
            name: spec.own_name().to_owned(),
            warnings: not_offered
                .chain(only_fills)
                .chain(not_in_order(ordered, stops)?)
                .collect(),
            tree,
            of_several_types,
        })
    }

    /// The dealer, if it is one.
    #[must_use]
    pub fn dealing(&self) -> Option<&Dealing> {
        match &self.decider {
            Decider::Dealing(dealing) => Some(dealing),
            Decider::Order(ranking) => ranking.deals.as_ref(),
            Decider::Policy(_) => None,
        }
    }

    /// The dealer, if it is one.
    pub fn dealing_mut(&mut self) -> Option<&mut Dealing> {
        match &mut self.decider {
            Decider::Dealing(dealing) => Some(dealing),
            Decider::Order(ranking) => ranking.deals.as_mut(),
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
        match &self.decider {
            Decider::Policy(policy) if self.tree.is_none() => Ok(policy.reason(*point, choice)),
            _ => explained(self.tree.as_ref(), point, choice),
        }
    }
}

/// As [`Loaded::explained`], by the tree alone.
pub(crate) fn explained(
    tree: Option<&TreePolicy>,
    point: &DecisionPoint<'_>,
    choice: usize,
) -> Result<Option<String>, PolicyError> {
    match tree {
        Some(tree) => Ok(Some(tree.explain(point, choice)?.reason())),
        None => Ok(None),
    }
}

/// What stops running jobs beside the order of a policy: a dealer itself, or the deal by its passes of one that preempts; none of
/// others.
fn deals_beside(ordered: &PolicySpec) -> Result<Option<Dealing>, Error> {
    let dealer = match ordered.is_planner() {
        true => ordered.round_dealer()?,
        false if ordered.lost_in_order()?.contains(ActionKind::Preempt) => {
            ordered.clone().dealt()?.round_dealer()?
        }
        false => return Ok(None),
    };
    Ok(Some(Dealing::new(dealer)))
}

/// What of a policy is not carried out where only its order is, in one line; none where all of it is carried out.
fn not_in_order(ordered: Option<&PolicySpec>, stops: bool) -> Result<Option<String>, Error> {
    let Some(ordered) = ordered else {
        return Ok(None);
    };
    let lost = match stops {
        true => ordered
            .lost_in_order()?
            .difference(ActionSet::of(ActionKind::Preempt)),
        false => ordered.lost_in_order()?,
    };
    let phrases: Vec<&str> = lost.iter().map(ActionKind::phrase).collect();
    Ok((!lost.is_empty()).then(|| {
        format!(
            "no more than its order is carried out, not {}: the batch system starts what fits, and only its own backfill holds GPUs \
             back",
            phrases.join(", ")
        )
    }))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
