//! Deals for drivers whose tables are made anew in every round, as a daemon's are.
//!
//! Here nothing is remembered: what a deal hangs on beside the tables, whether it may move jobs and what estimates have been
//! worth, comes with the call. A job that moves is stopped in one round and started in a later one.

use std::fmt::Write as _;
use std::sync::Arc;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{ActionKind, GpuTypeId, JobId, PolicyError, Problem};

use super::deal::{Lookups, asks_of, movable};
use super::formula::{Formula, FormulaOrder};
use super::order::{ClassicOrder, Order, Priority};
use super::passes::PassOrder;
use super::planner::allocate;
use super::rules::DealingRules;
use super::scored::{ScoredOrder, scored_rules};
use super::trust::Trust;
use super::{DealingConfig, passes_rules, reference_formula};
use crate::allocation::apply_stops_first;

/// Terms of a score that are shown, the heaviest first. *Assumed*: as many as a person takes in.
const NUM_TOLD: usize = 6;

/// Deals in an order, without a memory.
#[derive(Clone, Debug)]
pub struct RoundDealer {
    name: String,
    rules: DealingRules,
    by: By,
}

#[derive(Clone, Debug)]
enum By {
    Classic(Priority, DealingConfig),
    Formula(Box<Formula>),
    Policy(MakePolicy),
    Scored(MakeOrder),
}

/// Makes fresh copies of a policy.
#[derive(Clone)]
struct MakePolicy(Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>);

/// Makes fresh copies of a learned order.
#[derive(Clone)]
struct MakeOrder(Arc<dyn Fn() -> Result<ScoredOrder, Problem> + Send + Sync>);

impl std::fmt::Debug for MakeOrder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("MakeOrder")
    }
}

impl std::fmt::Debug for MakePolicy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("MakePolicy")
    }
}

impl RoundDealer {
    /// The names of [`RoundDealer::by_name`]. `gittins-deal` is not among them: it would have to remember all that ended.
    pub const NAMES: [&str; 5] = ["belief-deal", "index", "las-deal", "rate-deal", "srtf-deal"];

    /// One of [`RoundDealer::NAMES`] with its defaults; none for another name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<RoundDealer> {
        let priority = match name {
            "index" => return RoundDealer::by_formula(name, reference_formula().ok()?).ok(),
            "belief-deal" => Priority::Believed,
            "las-deal" => Priority::LeastService,
            "rate-deal" => Priority::Rate,
            "srtf-deal" => Priority::ShortestRest,
            _ => return None,
        };
        let config = DealingConfig::of(priority);
        Some(RoundDealer {
            name: name.to_owned(),
            rules: config.rules,
            by: By::Classic(priority, config),
        })
    }

    /// Deals by a formula.
    ///
    /// # Errors
    /// A formula that this version cannot read.
    pub fn by_formula(name: &str, formula: Formula) -> Result<RoundDealer, Problem> {
        formula.validate(name)?;
        Ok(RoundDealer {
            name: name.to_owned(),
            rules: formula.rules,
            by: By::Formula(Box::new(formula)),
        })
    }

    /// Deals by the passes of a policy ([`PassOrder`]), by [`passes_rules`]; `make` gives fresh copies of it.
    #[must_use]
    pub fn by_policy(name: &str, make: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> RoundDealer {
        RoundDealer {
            name: name.to_owned(),
            rules: passes_rules(),
            by: By::Policy(MakePolicy(Arc::new(make))),
        }
    }

    /// Deals by what was learned, by [`scored_rules`]; `make` gives fresh copies of its order.
    ///
    /// # Errors
    /// As `make`.
    pub fn by_scores(
        name: &str,
        make: impl Fn() -> Result<ScoredOrder, Problem> + Send + Sync + 'static,
    ) -> Result<RoundDealer, Problem> {
        make()?;
        Ok(RoundDealer {
            name: name.to_owned(),
            rules: scored_rules()?,
            by: By::Scored(MakeOrder(Arc::new(make))),
        })
    }

    /// The same under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> RoundDealer {
        name.clone_into(&mut self.name);
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How GPUs are dealt.
    #[must_use]
    pub fn rules(&self) -> &DealingRules {
        &self.rules
    }

    fn order(&self, trust: Trust) -> Result<Box<dyn Order>, PolicyError> {
        Ok(match &self.by {
            By::Classic(priority, config) => {
                Box::new(ClassicOrder::new(*priority, config.order).trusting(trust))
            }
            By::Formula(formula) => Box::new(FormulaOrder::new(formula).trusting(trust)),
            By::Policy(make) => Box::new(PassOrder::new((make.0)())),
            By::Scored(make) => {
                let order = (make.0)().map_err(|_| PolicyError::Foreign)?;
                Box::new(order.trusting(trust))
            }
        })
    }

    /// Makes one deal and carries it out on the tables. Where it does not move, or the cluster cannot preempt, free GPUs are
    /// filled and all running jobs stay. `stays` are running jobs that cannot be stopped; they must not share GPUs with others.
    ///
    /// # Errors
    /// A policy that cannot be asked; nothing is carried out then.
    pub fn deal(
        &self,
        cluster: &mut Cluster,
        trust: Trust,
        moves: bool,
        stays: &[JobId],
    ) -> Result<(), PolicyError> {
        let moves = moves && self.rules.preempt && cluster.capabilities().can(ActionKind::Preempt);
        let mut order = self.order(trust)?;
        let mut lookups = Lookups::default();
        let allocation = allocate(cluster, &self.rules, order.as_mut(), &mut lookups, moves, stays)?;
        apply_stops_first(cluster, &allocation);
        Ok(())
    }

    /// The scores of jobs on these tables, for a deal that moves or for one that fills.
    ///
    /// # Errors
    /// A policy that cannot be asked.
    pub fn scores(&self, cluster: &Cluster, trust: Trust, moves: bool) -> Result<Scores, PolicyError> {
        let mut order = self.order(trust)?;
        let moves = moves && self.rules.preempt && cluster.capabilities().can(ActionKind::Preempt);
        let movable = match moves {
            true => movable(cluster, &self.rules, &[]),
            false => Vec::new(),
        };
        order.look(cluster, &movable)?;
        if matches!(self.by, By::Scored(_)) {
            let asks = asks_of(cluster, &self.rules, &mut Lookups::default(), &movable);
            order.scores(cluster, &asks)?;
        }
        Ok(Scores { order })
    }
}

/// What jobs are worth to a dealer, for explanations.
pub struct Scores {
    order: Box<dyn Order>,
}

impl std::fmt::Debug for Scores {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Scores").finish_non_exhaustive()
    }
}

impl Scores {
    /// The score of a job on a type, as the gang that it asked for.
    #[must_use]
    pub fn of(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        self.order.of_job(cluster, id) + self.order.of_type(cluster, id, kind)
    }

    /// The same in words: the sum, and its heaviest terms a line each.
    #[must_use]
    pub fn told(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> String {
        let mut terms = self.order.terms(cluster, id, kind);
        terms.retain(|(_, value)| value.abs() >= 0.005);
        terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let score = self.of(cluster, id, kind);
        if let [(words, _)] = terms.as_slice()
            && score == f64::NEG_INFINITY
        {
            return format!("no score: {words}");
        }
        let mut text = format!("score {score:.2}");
        let num_others = terms.len().saturating_sub(NUM_TOLD);
        for (means, value) in terms.iter().take(NUM_TOLD) {
            let _ = write!(text, "\n  {value:+8.2}  {means}");
        }
        if num_others > 0 {
            let rest: f64 = terms.iter().skip(NUM_TOLD).map(|(_, value)| value).sum();
            let _ = write!(text, "\n  {rest:+8.2}  {num_others} others");
        }
        text
    }
}
