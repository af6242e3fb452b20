//! Where a gang is worth most, given what is free and what it costs: the subroutine FIND_ALLOC of Hadar.
//!
//! Types are admitted one by one, fastest first; the slowest that is used sets the pace. With each set of types two places
//! are looked at: the fewest nodes, and the cheapest GPUs wherever they are. A running job may also stay where it is. The
//! place with the largest payoff wins: utility at the pace there, less the price of its GPUs.
//!
//! # Deviations
//! - The penalty of spreading is what the placement does to the job's pace, not a price of its own.
//! - Staying costs no restart; moving does, in the believed end.
//! - A gang only mixes types on each of which it would fit alone; where the cluster cannot mix types, one type at a time.
//! - Ties: staying, fewer nodes, the faster type, the lower node.

use std::cmp::Ordering;

use pleach_scheduler::cluster::{JobState, Placement};
use pleach_scheduler::{ActionKind, GpuTypeId, NodeId};

use super::market::{Market, Stock};
use super::utility::Request;
use crate::shared::what_if::FreeResources;

/// A place for a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its GPUs.
    pub placement: Placement,
    /// Its pace there, reference seconds per second.
    pub rate: f64,
    /// Utility less the price of the GPUs.
    pub payoff: f64,
    /// Whether it runs there already.
    pub stays: bool,
}

/// Scratch memory: nodes with room, (price, room, node).
pub type Rooms = Vec<(f64, u32, NodeId)>;

/// The best place for a job, whatever the sign of its payoff; none if it fits nowhere.
#[must_use]
pub(crate) fn find_alloc(
    market: Market<'_>,
    stock: &Stock,
    request: &Request,
    rooms: &mut Rooms,
) -> Option<Offer> {
    let (cluster, free) = (market.cluster, &stock.free);
    let speeds = &cluster.class(request.class).speed;
    let is_open = |kind: &GpuTypeId| stock.num_free_of[kind.index()] > 0;
    let mut kinds: Vec<GpuTypeId> = cluster.types_in(request.types).filter(is_open).collect();
    kinds.sort_by(|a, b| speeds[b.index()].total_cmp(&speeds[a.index()]));
    let mixes = cluster.capabilities().can(ActionKind::MixTypes);
    let mut best: Option<Offer> = None;
    let job = cluster.job(request.id);
    if job.state == JobState::Running && free.has(&job.placement, cluster.shape(job.granted)) {
        consider(&mut best, offer(market, free, request, job.placement.clone()));
    }
    rooms.clear();
    let mut num_rooms = 0;
    for kind in &kinds {
        if !mixes {
            rooms.clear();
            num_rooms = 0;
        }
        let before = rooms.len();
        for node in &market.nodes_of[kind.index()] {
            if free.nodes()[node.index()].free != 0 {
                let room = free.hosts(*node, request.shape);
                if room > 0 {
                    rooms.push((market.prices.at(free, node.index()), room, *node));
                    num_rooms += room;
                }
            }
        }
        if rooms.len() == before || num_rooms < request.num_gpus {
            continue;
        }
        let by_price = |a: &(f64, u32, NodeId), b: &(f64, u32, NodeId)| a.0.total_cmp(&b.0);
        let single = rooms.iter().filter(|(_, room, _)| *room >= request.num_gpus);
        let single = single
            .min_by(|a, b| by_price(a, b).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)))
            .copied();
        let cheapest = rooms.iter().map(|room| room.0).fold(f64::INFINITY, f64::min);
        match single {
            // The cheapest GPUs are all on one node: both places are the same.
            Some(room) if room.0 <= cheapest => {
                let slice = free.lowest(room.2, request.num_gpus);
                consider(
                    &mut best,
                    offer(market, free, request, Placement::from_slice(&[slice])),
                );
                continue;
            }
            Some(room) => {
                let slice = free.lowest(room.2, request.num_gpus);
                consider(
                    &mut best,
                    offer(market, free, request, Placement::from_slice(&[slice])),
                );
            }
            None => {
                rooms.sort_by(|a, b| b.1.cmp(&a.1).then(by_price(a, b)).then(a.2.cmp(&b.2)));
                let placement = fill(free, rooms, request.num_gpus);
                consider(&mut best, offer(market, free, request, placement));
            }
        }
        rooms.sort_by(|a, b| by_price(a, b).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        let placement = fill(free, rooms, request.num_gpus);
        consider(&mut best, offer(market, free, request, placement));
    }
    best
}

/// Takes nodes in this order until the gang is whole.
fn fill(free: &FreeResources, rooms: &Rooms, num_gpus: u32) -> Placement {
    let (mut placement, mut rest) = (Placement::new(), num_gpus);
    for (_, room, node) in rooms {
        let take = rest.min(*room);
        if take > 0 {
            placement.push(free.lowest(*node, take));
            rest -= take;
        }
    }
    placement
}

/// What a place is worth; none if the job would stand still there.
fn offer(market: Market<'_>, free: &FreeResources, request: &Request, placement: Placement) -> Option<Offer> {
    let cluster = market.cluster;
    let job = cluster.job(request.id);
    let facts = cluster.job_facts(request.id, &placement);
    if facts.rate <= 0.0 {
        return None;
    }
    let stays = job.state == JobState::Running && job.placement == placement;
    let start_s = if stays {
        0.0
    } else {
        cluster.start_cost_s(request.id, facts.gpu_type)
    };
    let cost = placement
        .iter()
        .map(|slice| market.prices.at(free, slice.node.index()) * f64::from(slice.num_gpus()));
    let cost: f64 = cost.sum();
    Some(Offer {
        rate: facts.rate,
        payoff: request.utility(start_s + request.rest_s / facts.rate) - cost,
        stays,
        placement,
    })
}

/// Keeps the better offer; of equal ones the first.
fn consider(best: &mut Option<Offer>, offer: Option<Offer>) {
    let Some(offer) = offer else {
        return;
    };
    let is_better = best.as_ref().is_none_or(|best| {
        let order = offer.payoff.total_cmp(&best.payoff);
        let order = order.then(offer.stays.cmp(&best.stays));
        let order = order.then(best.placement.len().cmp(&offer.placement.len()));
        order.then(offer.rate.total_cmp(&best.rate)) == Ordering::Greater
    });
    if is_better {
        *best = Some(offer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hadar::market::nodes_of;
    use crate::hadar::utility::{Prices, Utility, requests};
    use crate::test_clusters::{multi_type_cluster, place, submit};
    use pleach_scheduler::cluster::Cluster;
    use pleach_scheduler::{JobId, Time};

    const ROUND: Time = Time(360_000_000);

    /// The best place of a job where some nodes have GPUs taken, (node, number).
    fn found(cluster: &Cluster, taken: &[(u32, u32)], id: u32) -> Option<Offer> {
        let requests = requests(cluster, Utility::EffectiveThroughput, |_| true);
        let prices = Prices::new(cluster, &requests, 1.0, ROUND);
        let request = requests.iter().find(|request| request.id == JobId(id)).unwrap();
        let nodes_of = nodes_of(cluster);
        let market = Market {
            cluster,
            prices: &prices,
            nodes_of: &nodes_of,
        };
        let mut stock = Stock::new(cluster, true);
        for (node, num) in taken {
            let slice = stock.free.lowest(NodeId(*node), *num);
            stock.take(cluster, request, &Placement::from_slice(&[slice]));
        }
        find_alloc(market, &stock, request, &mut Rooms::new())
    }

    fn on(offer: &Offer) -> Vec<(u32, u32)> {
        let slices = offer.placement.iter();
        slices.map(|slice| (slice.node.0, slice.num_gpus())).collect()
    }

    #[test]
    fn an_idle_cluster_gives_the_fastest_type() {
        // Nodes of 2 GPUs at speeds 1 and 3.
        let mut cluster = multi_type_cluster(&[1.0, 3.0], 2);
        submit(&mut cluster, 2, 3600.0);
        let offer = found(&cluster, &[], 0).unwrap();
        assert_eq!((on(&offer), offer.rate, offer.stays), (vec![(1, 2)], 3.0, false));
        // Utility 2 x 3,600 / 1,200 = 6. The cheapest price is a quarter of U(3,600) / (2 x 10 rounds): 2 / 80 a GPU.
        assert!((offer.payoff - (6.0 - 0.05)).abs() < 1e-12, "{}", offer.payoff);
    }

    #[test]
    fn a_gang_mixes_types_at_the_pace_of_the_slowest_when_no_type_has_room_for_it() {
        // One GPU of each type is taken: a gang of 2 gets one of each, at speed 1.
        let mut cluster = multi_type_cluster(&[1.0, 3.0], 2);
        submit(&mut cluster, 2, 3600.0);
        let offer = found(&cluster, &[(0, 1), (1, 1)], 0).unwrap();
        assert_eq!((on(&offer), offer.rate), (vec![(0, 1), (1, 1)], 1.0));
        // 2 x 3,600 / 3,600 = 2, less two GPUs of half-taken nodes: the mean of 1 / 40 and the best price, 1 x 3.
        let price = (0.025_f64 * 3.0).sqrt();
        assert!(
            (offer.payoff - (2.0 - 2.0 * price)).abs() < 1e-12,
            "{}",
            offer.payoff
        );
        // With a GPU more taken it fits nowhere.
        assert_eq!(found(&cluster, &[(0, 2), (1, 1)], 0), None);
    }

    #[test]
    fn a_nearly_full_fast_node_can_be_dearer_than_an_idle_slow_one() {
        // Speeds 1 and 1.05, nodes of 4. Three fast GPUs are taken: the last costs nearly the best utility.
        let mut cluster = multi_type_cluster(&[1.0, 1.05], 4);
        submit(&mut cluster, 1, 3600.0);
        assert_eq!(on(&found(&cluster, &[], 0).unwrap()), [(1, 1)]);
        assert_eq!(on(&found(&cluster, &[(1, 3)], 0).unwrap()), [(0, 1)]);
    }

    #[test]
    fn a_running_job_stays_where_another_place_is_as_good() {
        let mut cluster = multi_type_cluster(&[1.0, 1.0], 2);
        submit(&mut cluster, 1, 3600.0);
        place(&mut cluster, JobId(0));
        cluster.preempt(JobId(0));
        let slice = pleach_scheduler::cluster::Slice {
            node: NodeId(1),
            gpus: 0b10,
        };
        cluster.start(JobId(0), Placement::from_slice(&[slice]));
        let offer = found(&cluster, &[], 0).unwrap();
        assert!(offer.stays);
        assert_eq!(offer.placement[0], slice);
    }
}
