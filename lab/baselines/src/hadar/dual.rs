//! Which jobs run in a round: a dynamic programme over the queue, each job taken at the best offer that the jobs before it leave,
//! or passed over; the sum of payoffs counts.
//!
//! Plans that leave the same GPUs free are one plan, the better one: what follows is the same for both. That keeps the
//! programme exact. The number of plans that are carried on is limited (a beam): half of them are those with the best sum
//! so far, half those whose sum could still become the best if every later job got its best utility at no price.
//!
//! # Deviations
//! - The queue is ordered by the best utility per GPU, then by arrival, so that the beam sees the best jobs first; the
//!   published order is not known to us.
//! - The beam is ours.

use pleach_scheduler::cluster::Cluster;

use super::find_alloc::{Offer, Rooms, find_alloc};
use super::market::{Market, Stock};
use super::utility::Request;

/// What an offer costs besides the nodes that it looks at, in nodes: measured, about.
pub(crate) const OFFER_LOOKS: usize = 100;

/// Limits of the search, counted, so that no plan depends on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most plans that are carried on from job to job.
    pub beam: usize,
    /// Most nodes that are looked at in all, an offer counting as [`OFFER_LOOKS`] more; with many jobs and nodes the beam is
    /// narrower, but never below 1.
    pub num_looks_max: usize,
}

/// The jobs that run, and what is left.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Index into the requests, and where. In the order of the queue.
    pub picks: Vec<(usize, Offer)>,
    /// What stays free.
    pub stock: Stock,
}

/// A plan on its way through the queue.
#[derive(Clone, Debug)]
struct Partial {
    stock: Stock,
    /// Of what is free, so that equal plans are found without comparing all of them.
    hash: u64,
    payoff: f64,
    /// `payoff` and the most that later jobs could add.
    bound: f64,
    /// Its last pick in the list of all picks.
    last: Option<usize>,
}

/// The queue: requests by best utility per GPU, then by arrival.
#[must_use]
pub fn queue(requests: &[Request]) -> Vec<usize> {
    let mut queue: Vec<usize> = (0..requests.len()).collect();
    let density: Vec<f64> = requests.iter().map(Request::best_density).collect();
    queue.sort_by(|a, b| density[*b].total_cmp(&density[*a]).then(a.cmp(b)));
    queue
}

/// The best plan that the beam finds.
#[must_use]
pub(crate) fn best_plan(
    market: Market<'_>,
    requests: &[Request],
    queue: &[usize],
    stock: Stock,
    limits: Limits,
) -> Plan {
    let cluster = market.cluster;
    let later = Later::new(requests, queue);
    let num_looks = queue.len() * (cluster.nodes().len() + OFFER_LOOKS);
    let width = (limits.num_looks_max / num_looks.max(1)).clamp(1, limits.beam.max(1));
    let mut picks: Vec<(Option<usize>, usize, Offer)> = Vec::new();
    let mut rooms = Rooms::new();
    let mut plans = vec![Partial {
        stock,
        hash: 0,
        payoff: 0.0,
        bound: 0.0,
        last: None,
    }];
    for (position, index) in queue.iter().enumerate() {
        let request = &requests[*index];
        let num_before = plans.len();
        for at in 0..num_before {
            let plan = &plans[at];
            if plan.stock.num_free < request.num_gpus
                || !plan.stock.has_quota(cluster, request, request.num_gpus)
            {
                continue;
            }
            let offer = find_alloc(market, &plan.stock, request, &mut rooms);
            let Some(offer) = offer.filter(|offer| offer.payoff > 0.0) else {
                continue;
            };
            let mut taken = plan.clone();
            taken.take(cluster, request, &offer);
            picks.push((plan.last, *index, offer));
            taken.last = Some(picks.len() - 1);
            plans.push(taken);
        }
        if plans.len() > num_before {
            for plan in &mut plans {
                plan.bound = plan.payoff + later.most(position + 1, plan.stock.num_free);
            }
            merge(&mut plans);
            narrow(&mut plans, width);
        }
        if plans.iter().all(|plan| plan.stock.num_free == 0) {
            break;
        }
    }
    let best = plans
        .into_iter()
        .reduce(|best, plan| if plan.payoff > best.payoff { plan } else { best });
    let Some(best) = best else {
        unreachable!("the plan that takes no job is always there");
    };
    let mut chosen = Vec::new();
    let mut last = best.last;
    while let Some(at) = last {
        let (before, index, offer) = picks[at].clone();
        chosen.push((index, offer));
        last = before;
    }
    chosen.reverse();
    Plan {
        picks: chosen,
        stock: best.stock,
    }
}

impl Partial {
    fn take(&mut self, cluster: &Cluster, request: &Request, offer: &Offer) {
        for slice in &offer.placement {
            self.hash ^= self.hash_of(slice.node.index());
        }
        self.stock.take(cluster, request, &offer.placement);
        for slice in &offer.placement {
            self.hash ^= self.hash_of(slice.node.index());
        }
        self.payoff += offer.payoff;
    }

    /// Of what is free on a node (the finaliser of MurmurHash3).
    fn hash_of(&self, node: usize) -> u64 {
        let left = &self.stock.free.nodes()[node];
        let parts = [left.free, u64::from(left.cpu_milli), u64::from(left.memory_mib)];
        parts.into_iter().fold(node as u64 + 1, |hash, part| {
            let mut mixed = (hash ^ part).wrapping_mul(0xff51_afd7_ed55_8ccd);
            mixed ^= mixed >> 33;
            mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            mixed ^ (mixed >> 33)
        })
    }

    fn leaves_the_same(&self, other: &Partial) -> bool {
        self.hash == other.hash
            && self.stock.quotas == other.stock.quotas
            && self.stock.free.nodes() == other.stock.free.nodes()
    }
}

/// Of plans that leave the same the one with the better sum; of equal sums the first, which takes fewer of the later jobs.
fn merge(plans: &mut Vec<Partial>) {
    let mut order: Vec<usize> = (0..plans.len()).collect();
    order.sort_by(|a, b| {
        let (a_plan, b_plan) = (&plans[*a], &plans[*b]);
        let by_sum = b_plan.payoff.total_cmp(&a_plan.payoff);
        a_plan.hash.cmp(&b_plan.hash).then(by_sum).then(a.cmp(b))
    });
    let mut keep = vec![true; plans.len()];
    for run in order.chunk_by(|a, b| plans[*a].hash == plans[*b].hash) {
        for (position, at) in run.iter().enumerate() {
            let is_known = |other: &usize| keep[*other] && plans[*other].leaves_the_same(&plans[*at]);
            if run[..position].iter().any(is_known) {
                keep[*at] = false;
            }
        }
    }
    let mut at = 0;
    plans.retain(|_| {
        at += 1;
        keep[at - 1]
    });
}

/// The better half by sum, the others by what the sum could become. The order among the plans stays.
fn narrow(plans: &mut Vec<Partial>, width: usize) {
    if plans.len() <= width {
        return;
    }
    let mut order: Vec<usize> = (0..plans.len()).collect();
    order.sort_by(|a, b| plans[*b].payoff.total_cmp(&plans[*a].payoff).then(a.cmp(b)));
    order[width.div_ceil(2)..].sort_by(|a, b| plans[*b].bound.total_cmp(&plans[*a].bound).then(a.cmp(b)));
    let mut keep = vec![false; plans.len()];
    for at in &order[..width] {
        keep[*at] = true;
    }
    let mut at = 0;
    plans.retain(|_| {
        at += 1;
        keep[at - 1]
    });
}

/// The most that the jobs from a position of the queue on could add: the GPUs that are free at the best utilities.
struct Later {
    /// Sums over the queue from its front, GPUs and utilities. `[position]`
    sums: Vec<(u64, f64)>,
}

impl Later {
    fn new(requests: &[Request], queue: &[usize]) -> Later {
        let mut sums = vec![(0, 0.0)];
        for index in queue {
            let request = &requests[*index];
            let (gpus, utility) = sums[sums.len() - 1];
            let more = request.best_density() * f64::from(request.num_gpus);
            sums.push((gpus + u64::from(request.num_gpus), utility + more));
        }
        Later { sums }
    }

    /// The queue is sorted by utility per GPU, so this is the fractional knapsack.
    fn most(&self, first: usize, num_free: u32) -> f64 {
        let (gpus, utility) = self.sums[first];
        let limit = gpus + u64::from(num_free);
        let end = self.sums.partition_point(|sum| sum.0 <= limit) - 1;
        let (end_gpus, end_utility) = self.sums[end];
        let rest = self.sums.get(end + 1).map_or(0.0, |next| {
            (next.1 - end_utility) * (limit - end_gpus) as f64 / (next.0 - end_gpus) as f64
        });
        end_utility - utility + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hadar::market::nodes_of;
    use crate::hadar::utility::{Prices, Utility, requests};
    use crate::test_clusters::{multi_type_cluster, submit};
    use pleach_scheduler::{JobId, Time};
    use proptest::prelude::*;

    const WIDE: Limits = Limits {
        beam: 1 << 20,
        num_looks_max: usize::MAX,
    };

    struct Round {
        cluster: Cluster,
        requests: Vec<Request>,
        prices: Prices,
    }

    /// Jobs (GPUs, work s, age s) on one node for each speed.
    fn round(speeds: &[f64], gpus_per_node: u32, jobs: &[(u32, f64, f64)], utility: Utility) -> Round {
        let mut cluster = multi_type_cluster(speeds, gpus_per_node);
        let mut by_age: Vec<&(u32, f64, f64)> = jobs.iter().collect();
        by_age.sort_by(|a, b| b.2.total_cmp(&a.2));
        for (num_gpus, work_s, age_s) in by_age {
            cluster.advance(Time::from_secs_f64(1000.0 - age_s));
            submit(&mut cluster, *num_gpus, *work_s);
        }
        cluster.advance(Time::from_secs_f64(1000.0));
        let requests = requests(&cluster, utility, |_| true);
        let prices = Prices::new(&cluster, &requests, 1.0, Time::from_secs_f64(360.0));
        Round {
            cluster,
            requests,
            prices,
        }
    }

    fn with<T>(round: &Round, f: impl FnOnce(Market<'_>) -> T) -> T {
        f(Market {
            cluster: &round.cluster,
            prices: &round.prices,
            nodes_of: &nodes_of(&round.cluster),
        })
    }

    fn plan(round: &Round, limits: Limits) -> Plan {
        let (queue, stock) = (queue(&round.requests), Stock::new(&round.cluster, true));
        with(round, |market| {
            best_plan(market, &round.requests, &queue, stock, limits)
        })
    }

    fn payoff(plan: &Plan) -> f64 {
        plan.picks.iter().map(|(_, offer)| offer.payoff).sum()
    }

    /// The best sum of payoffs of all sets of jobs, each taken in turn at its best offer.
    fn best_of_all_sets(round: &Round) -> f64 {
        let queue = queue(&round.requests);
        let mut best = 0.0_f64;
        for set in 0..1_u32 << queue.len() {
            let mut stock = Stock::new(&round.cluster, true);
            let mut sum = 0.0;
            let chosen = queue.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
            let all = chosen.map(|(_, index)| &round.requests[*index]).all(|request| {
                let offer = with(round, |market| {
                    find_alloc(market, &stock, request, &mut Rooms::new())
                });
                offer.filter(|offer| offer.payoff > 0.0).is_some_and(|offer| {
                    stock.take(&round.cluster, request, &offer.placement);
                    sum += offer.payoff;
                    true
                })
            });
            if all {
                best = best.max(sum);
            }
        }
        best
    }

    #[test]
    fn the_best_set_is_not_the_greedy_one() {
        // A node of 4. A gang of 3 with the best utility per GPU leaves one GPU; two gangs of 2 are worth more together.
        // Utilities at ages of 0, 10, 10 s and 100 s of work: 3 x 1, and 2 x 100 / 110 = 1.82 each.
        let round = round(
            &[1.0],
            4,
            &[(3, 100.0, 0.0), (2, 100.0, 10.0), (2, 100.0, 10.0)],
            Utility::default(),
        );
        let plan = plan(&round, WIDE);
        let picked: Vec<JobId> = plan
            .picks
            .iter()
            .map(|(index, _)| round.requests[*index].id)
            .collect();
        assert_eq!(picked, [JobId(0), JobId(1)], "the older ones, by arrival");
        assert_eq!(payoff(&plan), best_of_all_sets(&round));
        // A beam of one is greedy in the sum so far: it keeps the gang of 3, then no other job fits.
        let narrow = Limits { beam: 1, ..WIDE };
        let greedy = super::tests::plan(&round, narrow);
        assert_eq!(greedy.picks.len(), 1);
        assert!(payoff(&greedy) < payoff(&plan));
    }

    #[test]
    fn plans_that_leave_the_same_are_one_plan() {
        // Ten equal jobs of one GPU on a node of 10: 11 numbers of free GPUs, not 1,024 sets.
        let jobs = vec![(1, 100.0, 0.0); 10];
        let round = round(&[1.0], 10, &jobs, Utility::default());
        let small = Limits { beam: 11, ..WIDE };
        assert_eq!(payoff(&plan(&round, small)), best_of_all_sets(&round));
    }

    #[test]
    fn what_later_jobs_could_add_is_the_fractional_knapsack() {
        // Densities 1 (2 GPUs), 0.5 (4 GPUs). With 4 GPUs free: 2 + half of 2.
        let round = round(
            &[1.0],
            6,
            &[(2, 100.0, 0.0), (4, 100.0, 100.0)],
            Utility::default(),
        );
        let queue = queue(&round.requests);
        let later = Later::new(&round.requests, &queue);
        assert_eq!(later.most(0, 4), 3.0);
        assert_eq!(later.most(0, 6), 4.0);
        assert_eq!(later.most(1, 100), 2.0);
        assert_eq!(later.most(2, 100), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn without_a_limit_the_plan_is_the_best_of_all_sets_of_jobs(
            jobs in prop::collection::vec((1_u32..4, 10.0_f64..2000.0, 0.0_f64..1000.0), 1..8),
            speeds in prop::collection::vec(0.2_f64..4.0, 1..3),
            which in 0_usize..3,
        ) {
            let utility = [Utility::EffectiveThroughput, Utility::Makespan, Utility::FinishTimeFairness][which];
            let round = round(&speeds, 4, &jobs, utility);
            let best = best_of_all_sets(&round);
            let exact = plan(&round, WIDE);
            prop_assert!((payoff(&exact) - best).abs() <= 1e-9 * best.max(1.0), "{} {best}", payoff(&exact));
            // A beam can only do worse, and never takes what is taken.
            let narrow = plan(&round, Limits { beam: 4, ..WIDE });
            prop_assert!(payoff(&narrow) <= best * (1.0 + 1e-9));
            let held: u32 = narrow.picks.iter().map(|(index, _)| round.requests[*index].num_gpus).sum();
            let nodes = narrow.stock.free.nodes().iter();
            let free: u32 = nodes.map(crate::shared::what_if::NodeFree::num_free).sum();
            prop_assert_eq!(free, narrow.stock.num_free);
            prop_assert_eq!(held + free, 4 * speeds.len() as u32);
        }
    }
}
