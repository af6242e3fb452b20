//! When GPUs are dealt: at events, but not more often than every so many seconds, and at times without one; in between free GPUs
//! are filled.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{ActionKind, JobId, Planner, PolicyError, Problem, Time};

use super::deal::{Lookups, Opened, deal, open};
use super::order::Order;
use super::rules::DealingRules;
use crate::allocation::{Allocation, apply, start_fractions};
use crate::settings::DEFAULT_HINT;

/// A planner that deals GPUs in an order.
#[derive(Debug)]
pub struct Dealer<O> {
    name: String,
    rules: DealingRules,
    order: O,
    lookups: Lookups,
    /// When GPUs were last dealt.
    dealt: Option<Time>,
    /// Whether something may have happened since.
    is_behind: bool,
}

impl<O: Order> Dealer<O> {
    /// A planner of a name.
    ///
    /// # Errors
    /// A rule out of its range.
    pub fn new(name: &str, rules: DealingRules, order: O) -> Result<Dealer<O>, Problem> {
        rules.check_at(&format!("{name}.rules"), DEFAULT_HINT)?;
        Ok(Dealer {
            name: name.to_string(),
            rules,
            order,
            lookups: Lookups::default(),
            dealt: None,
            is_behind: false,
        })
    }

    /// The first half of a plan: fractions of GPUs start, the order looks at the cluster, and what may be dealt is listed.
    ///
    /// # Errors
    /// As [`Order::look`].
    pub fn open(&mut self, cluster: &mut Cluster) -> Result<Opened, PolicyError> {
        let least = Time::from_secs_f64(self.rules.deal_min_s);
        let is_due = self.may_move(cluster) && self.dealt.is_none_or(|dealt| cluster.now() >= dealt + least);
        start_fractions(cluster);
        open(
            cluster,
            &self.rules,
            &mut self.order,
            &mut self.lookups,
            (is_due, &[]),
        )
    }

    /// The second half: deals by these scores, in the places of what may be dealt, larger first; minus infinity is not dealt.
    pub fn close(&mut self, cluster: &mut Cluster, opened: &Opened, scores: &[f64]) {
        let allocation = deal(cluster, &self.rules, &mut self.lookups, opened, scores);
        apply(cluster, &allocation);
        if opened.is_due {
            self.dealt = Some(cluster.now());
        }
        self.is_behind = self.may_move(cluster) && !opened.is_due;
    }

    fn may_move(&self, cluster: &Cluster) -> bool {
        self.rules.preempt && cluster.capabilities().can(ActionKind::Preempt)
    }

    /// Its order.
    pub fn order(&mut self) -> &mut O {
        &mut self.order
    }
}

/// Whether a running job could run better: on another type, on a tighter seat, alone, or on GPUs that are free.
fn could_run_better(cluster: &Cluster, rules: &DealingRules, id: JobId) -> bool {
    let job = cluster.job(id);
    let class = job.request.class;
    let speed = cluster.class(class).speed[job.gpu_type.index()];
    let elastic = cluster.class(class).elastic.as_ref().filter(|_| rules.resize);
    // Growth that does not pay for a restart yet may do so later.
    let could_grow = elastic
        .is_some_and(|elastic| job.num_held < elastic.gpus_max && cluster.num_free_of(job.gpu_type) > 0);
    job.is_sharing
        || could_grow
        || speed < cluster.best_speed_of(class)
        || (job.placement.len() > 1 && cluster.job_facts(id, &job.placement).locality < 1.0)
}

/// Looks at the cluster, starts fractions and makes one deal; nothing of it is carried out yet. Where it does not move, all
/// running jobs stay; else `stays` do, which must not share GPUs with others.
///
/// # Errors
/// As [`Order::look`].
pub(super) fn allocate(
    cluster: &mut Cluster,
    rules: &DealingRules,
    order: &mut dyn Order,
    lookups: &mut Lookups,
    moves: bool,
    stays: &[JobId],
) -> Result<Allocation, PolicyError> {
    start_fractions(cluster);
    let opened = open(cluster, rules, order, lookups, (moves, stays))?;
    let scores = order.scores(cluster, &opened.asks)?;
    Ok(deal(cluster, rules, lookups, &opened, &scores))
}

impl<O: Order> Planner for Dealer<O> {
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let opened = self.open(cluster)?;
        let scores = self.order.scores(cluster, &opened.asks)?;
        self.close(cluster, &opened, &scores);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let dealt = self.dealt.filter(|_| cluster.num_running() > 0)?;
        if self.is_behind {
            return Some(dealt + Time::from_secs_f64(self.rules.deal_min_s));
        }
        let is_settled = || {
            cluster.num_pending() == 0
                && !cluster
                    .running()
                    .any(|id| could_run_better(cluster, &self.rules, id))
        };
        let latest = self.rules.deal_max_s.max(self.rules.deal_min_s);
        (!is_settled()).then(|| dealt + Time::from_secs_f64(latest))
    }
}
