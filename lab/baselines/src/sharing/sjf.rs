//! Shortest job first without preemption, on shared GPUs where there are not enough free ones: SJF-BSBF and SJF-FFS.
//!
//! Jobs are looked at from the shortest rest on, and none blocks those behind. A job that fits on free GPUs takes them.
//! Otherwise it takes all that are free and, for the rest of its gang, GPUs that have one resident:
//!
//! - *best sharing benefit first* asks for each resident whether the two had better share or follow each other
//!   ([`MeanEnds`]), and takes the GPUs of those with which sharing is better, least mean end first; if they are too few
//!   it waits;
//! - *first fit sharing* takes the first, whichever jobs have them.
//!
//! # Source
//! SJF-BSBF (WiseShare, IWQoS'24; arXiv 2407.13088), Algorithm 1 and the rule of the released scheduler: at most two jobs
//! on a GPU, each resident is tested by itself (a gang may come to lie beside several), and with the newcomer's rest
//! alone, whatever its placement costs it.
//!
//! # Deviations
//! - It plans at every event instead of every 10 to 30 s. Between events sharing can only become worse, so nothing is missed.
//! - No sub-batches: the published algorithm may run a newcomer with its batch in parts, which saves memory and changes
//!   the interference; a class here has one memory and one load.
//! - Free GPUs are placed as everywhere here (tightest on the fastest type), not on the least loaded servers; the
//!   variants that consolidate shared gangs (`-S`) are left out.
//! - Of several GPU types a gang is gathered on the fastest that can hold it; the paper has one type.
//! - Jobs that reserve CPU or memory, or ask for parts of a GPU, do not share.

use pleach_scheduler::cluster::{Cluster, Placement, Sharing};
use pleach_scheduler::physics::interference::MeanEnds;
use pleach_scheduler::{GpuTypeId, JobId, Planner, PolicyError};
use serde::{Deserialize, Serialize};

use super::hosts::{Host, Hosts, can_share, gathered};
use crate::shared::allocate_by_priority::tightest;
use crate::shared::pair_speeds::PairSpeeds;

/// Settings of [`SjfSharing`]: there are none, the rule has no constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SjfSharingConfig {}

/// Which residents a newcomer may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    FirstFit,
    BestBenefit,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct SjfSharing {
    rule: Rule,
    speeds: PairSpeeds,
    slices: Vec<pleach_scheduler::cluster::Slice>,
}

impl SjfSharing {
    /// SJF-BSBF: best sharing benefit first.
    #[must_use]
    pub(crate) fn best_benefit(_config: SjfSharingConfig) -> SjfSharing {
        SjfSharing::new(Rule::BestBenefit)
    }

    /// SJF-FFS: first fit sharing.
    #[must_use]
    pub(crate) fn first_fit(_config: SjfSharingConfig) -> SjfSharing {
        SjfSharing::new(Rule::FirstFit)
    }

    fn new(rule: Rule) -> SjfSharing {
        SjfSharing {
            rule,
            speeds: PairSpeeds::default(),
            slices: Vec::new(),
        }
    }

    /// GPUs for a job that does not fit on free ones.
    fn beside(&mut self, cluster: &Cluster, hosts: &Hosts, id: JobId) -> Option<Placement> {
        let (job, demand) = (cluster.job(id), cluster.demand(id));
        let speed = &cluster.class(job.request.class).speed;
        let mut types: Vec<GpuTypeId> = cluster.types_in(job.types).collect();
        types.sort_by(|a, b| speed[b.index()].total_cmp(&speed[a.index()]));
        types.into_iter().find_map(|kind| {
            let num_free = cluster.num_free_of(kind);
            if num_free >= demand.num_gpus || num_free + hosts.num_of(kind) < demand.num_gpus {
                return None;
            }
            let chosen = self.partners(cluster, hosts, id, kind, demand.num_gpus - num_free);
            let placement = gathered(cluster, kind, demand.num_gpus, chosen.into_iter())?;
            let facts = cluster.job_facts(id, &placement);
            let tight = !cluster.capabilities().consolidated || facts.num_nodes == facts.num_nodes_min;
            (facts.rate > 0.0 && tight).then_some(placement)
        })
    }

    /// The residents that a job may join on a type, in the order in which their GPUs are taken; no more than it needs.
    fn partners<'a>(
        &mut self,
        cluster: &Cluster,
        hosts: &'a Hosts,
        id: JobId,
        kind: GpuTypeId,
        num_gpus: u32,
    ) -> Vec<&'a Host> {
        let of_type = hosts.iter().filter(|(_, host)| host.kind == kind);
        let mut order: Vec<(f64, usize)> = match self.rule {
            Rule::FirstFit => of_type.map(|(index, _)| (0.0, index)).collect(),
            Rule::BestBenefit => {
                let job = cluster.job(id);
                let speed = cluster.class(job.request.class).speed[kind.index()];
                let alone_s = job.remaining_s_at(cluster.now()) / speed;
                let ends = |host: &Host| {
                    let own = self.speeds.of(cluster, id, host.job, kind);
                    let other = self.speeds.of(cluster, host.job, id, kind);
                    MeanEnds::of(alone_s, host.alone_s, own, other)
                };
                let tested = of_type.map({
                    let mut ends = ends;
                    move |(index, host)| (ends(host), index)
                });
                tested
                    .filter(|(ends, _)| ends.favour_sharing())
                    .map(|(ends, index)| (ends.share_s, index))
                    .collect()
            }
        };
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut chosen, mut rest) = (Vec::new(), num_gpus);
        for (_, index) in order {
            if rest == 0 {
                break;
            }
            let host = hosts.get(index);
            if cluster.can_live_beside(id, host.job, kind) {
                rest = rest.saturating_sub(host.num_gpus());
                chosen.push(host);
            }
        }
        chosen
    }
}

impl Planner for SjfSharing {
    fn name(&self) -> &str {
        match self.rule {
            Rule::FirstFit => "sjf-ffs",
            Rule::BestBenefit => "sjf-bsbf",
        }
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        let key = |id: JobId| (cluster.job(id).remaining_s_at(now), id);
        let mut order: Vec<(f64, JobId)> = cluster.pending().map(key).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let shares = cluster.capabilities().sharing != Sharing::Off;
        let mut hosts: Option<Hosts> = None;
        for (_, id) in order {
            let mut placement = tightest(cluster, id, &mut self.slices);
            if placement.is_none() && shares && can_share(cluster, id) && cluster.has_room(cluster.demand(id))
            {
                let hosts = hosts.get_or_insert_with(|| Hosts::of(cluster));
                placement = self.beside(cluster, hosts, id);
            }
            if let Some(placement) = placement {
                cluster.start(id, placement);
                if let Some(hosts) = &mut hosts {
                    hosts.started(cluster, id);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cluster, plan_at, start_on, submit_as};
    use super::*;
    use crate::test_clusters::submit;

    fn bsbf() -> SjfSharing {
        SjfSharing::best_benefit(SjfSharingConfig {})
    }

    fn ffs() -> SjfSharing {
        SjfSharing::first_fit(SjfSharingConfig {})
    }

    #[test]
    fn equal_jobs_share_below_a_slow_down_of_one_and_a_half_and_first_fit_always_does() {
        for (slower, shares) in [(1.0, true), (1.499, true), (1.501, false), (2.0, false)] {
            for (mut planner, expected) in [(bsbf(), shares), (ffs(), true)] {
                let mut cluster = cluster(1, 1, slower);
                for _ in 0..2 {
                    submit(&mut cluster, 1, 100.0);
                }
                let running = plan_at(&mut planner, &mut cluster, 0.0);
                assert_eq!(running.len() == 2, expected, "{} at {slower}", planner.name());
            }
        }
    }

    #[test]
    fn free_gpus_come_first_and_shorter_jobs_before_longer_ones() {
        let mut cluster = cluster(1, 2, 1.1);
        for estimate_s in [300.0, 100.0, 200.0] {
            submit(&mut cluster, 1, estimate_s);
        }
        // Jobs 1 and 2 are shorter and take a GPU each; job 0 (300 s) shares. Each pair at 1 / 1.1:
        // beside job 1 (100 s): 150 + (1 - 1 / 2.2) x 110 = 210; beside job 2 (200 s): 150 + 0.5454 x 220 = 270.
        let running = plan_at(&mut bsbf(), &mut cluster, 0.0);
        let on = |gpus| vec![(0, gpus)];
        assert_eq!(running, [(0, on(0b1)), (1, on(0b1)), (2, on(0b10))]);
    }

    #[test]
    fn the_pair_with_the_least_mean_end_is_chosen_and_first_fit_takes_the_first() {
        // GPU 0: 100 s left, GPU 1: 20 s. The newcomer has 10 s; at 0.8 it leaves first, after 12.5 s:
        // beside the first (50 + 0.6 x 12.5) = 57.5, beside the second 10 + 7.5 = 17.5.
        for (mut planner, gpu) in [(bsbf(), 0b10), (ffs(), 0b1)] {
            let mut cluster = cluster(1, 2, 1.25);
            for (estimate_s, gpus) in [(100.0, 0b1), (20.0, 0b10)] {
                let id = submit(&mut cluster, 1, estimate_s);
                start_on(&mut cluster, id, gpus);
            }
            let newcomer = submit(&mut cluster, 1, 10.0);
            let running = plan_at(&mut planner, &mut cluster, 0.0);
            assert_eq!(running[2], (newcomer.0, vec![(0, gpu)]));
        }
    }

    #[test]
    fn a_gang_takes_what_is_free_and_the_rest_from_several_partners() {
        // GPU 0: a job of 400 s, GPUs 1 and 2: one of 50 s, GPU 3 free. A gang of 3 with 100 s at 1 / 1.2.
        let mut cluster = cluster(1, 4, 1.2);
        for (num_gpus, estimate_s, gpus) in [(1, 400.0, 0b1), (2, 50.0, 0b110)] {
            let id = submit(&mut cluster, num_gpus, estimate_s);
            start_on(&mut cluster, id, gpus);
        }
        let gang = submit(&mut cluster, 3, 100.0);
        // Least mean end first: the one of 50 s gives both its GPUs.
        let running = plan_at(&mut bsbf(), &mut cluster, 0.0);
        assert_eq!(running[2], (gang.0, vec![(0, 0b1110)]));
        // A gang of 2 finds GPU 0 (one resident) and GPU 3 (the gang's alone): two partners, no more.
        let last = submit(&mut cluster, 2, 10.0);
        let running = plan_at(&mut bsbf(), &mut cluster, 0.0);
        assert_eq!(running[3], (last.0, vec![(0, 0b1001)]));
        submit(&mut cluster, 1, 1.0);
        assert_eq!(
            plan_at(&mut ffs(), &mut cluster, 0.0).len(),
            4,
            "two residents everywhere"
        );
    }

    #[test]
    fn a_gang_waits_where_too_few_residents_gain_and_takes_no_part_of_what_it_needs() {
        // Speeds of 1 / 1.6. Beside 1,000 s the newcomer of 100 s gains, beside 40 s it had better wait:
        // 50 + (1 - 1 / 3.2) x 64 = 94 against 90.
        let mut cluster = cluster(1, 2, 1.6);
        for (estimate_s, gpus) in [(1000.0, 0b1), (40.0, 0b10)] {
            let id = submit(&mut cluster, 1, estimate_s);
            start_on(&mut cluster, id, gpus);
        }
        submit(&mut cluster, 2, 100.0);
        assert_eq!(plan_at(&mut bsbf(), &mut cluster, 0.0).len(), 2);
        let mut greedy = cluster.clone();
        assert_eq!(plan_at(&mut ffs(), &mut greedy, 0.0).len(), 3);
        // When the short one has gone, its GPU is free and the long one gains still.
        cluster.advance(pleach_scheduler::Time::from_secs_f64(40.0));
        cluster.finish(JobId(1));
        assert_eq!(plan_at(&mut bsbf(), &mut cluster, 40.0).len(), 2);
    }

    #[test]
    fn memory_that_does_not_fit_beside_the_best_partner_sends_the_job_to_the_next() {
        let mut cluster = cluster(1, 2, 1.1);
        for (estimate_s, gib, gpus) in [(20.0, 25.0, 0b1), (100.0, 10.0, 0b10)] {
            let id = submit_as(&mut cluster, 0, 1, estimate_s, gib);
            start_on(&mut cluster, id, gpus);
        }
        let newcomer = submit_as(&mut cluster, 0, 1, 10.0, 8.0);
        let running = plan_at(&mut bsbf(), &mut cluster, 0.0);
        assert_eq!(
            running[2],
            (newcomer.0, vec![(0, 0b10)]),
            "25 + 8 GiB are more than 32"
        );
    }

    #[test]
    fn where_nothing_can_be_shared_it_is_shortest_job_first() {
        let mut cluster = crate::test_clusters::preemptive_cluster(1, 1);
        for estimate_s in [50.0, 20.0] {
            submit(&mut cluster, 1, estimate_s);
        }
        assert_eq!(plan_at(&mut ffs(), &mut cluster, 0.0), [(1, vec![(0, 0b1)])]);
    }
}
