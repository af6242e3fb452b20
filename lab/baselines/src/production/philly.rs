//! Philly's production scheduler: virtual clusters with quotas, gangs that insist on locality for a while and then relax it.
//!
//! Virtual clusters (tenants) are looked at from the one that uses least of its quota, their jobs by arrival; a job that
//! finds no acceptable place is passed over. At first a gang accepts only the fewest nodes, within one rack if one can hold
//! it; after so many tries any nodes of one rack; after as many again anything. A virtual cluster may use more than its
//! quota while others leave GPUs idle. Where the cluster is nearly full, a virtual cluster that is below its quota gets
//! room back from the one that is furthest above: its newest jobs are stopped.
//!
//! # Source
//! Jeon et al. (ATC'19), section 2.3 and 3.1, as a rule; the rule's details beyond the paper's words are *assumed*: tries
//! every two minutes (a gang acquires GPUs for two to three minutes, gives up, and backs off for two), 32 tries a level.
//!
//! # Deviations
//! - A waiting job is offered whatever comes free at once; only its tries are counted by the clock.
//! - Quotas are restored for one job at a time, only if that job then runs, and only by jobs without which their virtual
//!   cluster still has its quota: otherwise two virtual clusters could stop each other for ever.
//! - An idle cluster has nothing better to wait for, so there anything is accepted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Demand, JobState, Placement, PlacementFacts, Slice};
use pleach_scheduler::{ActionKind, ConfigError, JobId, NodeId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::victims::room_for;
use crate::shared::allocate_by_priority::tightest;
use crate::shared::settings::check;
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// Settings of [`Philly`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PhillyConfig {
    /// Time between two tries of a waiting job, s, 1 to 1e6.
    pub retry_s: f64,
    /// Tries after which a job accepts the next looser locality. *Assumed.*
    pub relax_after: u32,
    /// Part of the GPUs in use from which on jobs are stopped to restore quotas, 0 to 1; above 1 = never.
    pub preempt_above: f64,
    /// Whether a gang that fits one node goes to the emptiest node of the emptiest rack, as the study ranks them; else where least is
    /// left over.
    pub emptiest_first: bool,
}

impl Default for PhillyConfig {
    fn default() -> PhillyConfig {
        PhillyConfig {
            retry_s: 120.0,
            relax_after: 32,
            preempt_above: 0.9,
            emptiest_first: false,
        }
    }
}

impl PhillyConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        let retry_s = self.retry_s;
        let ok = (1.0..=1e6).contains(&retry_s);
        check("philly", "retry_s", retry_s, ok, "1 to 1e6")?;
        let part = self.preempt_above;
        let ok = (0.0..=1e9).contains(&part);
        check("philly", "preempt_above", part, ok, "0 to 1, or more for never")
    }
}

/// What a gang accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Locality {
    /// The fewest nodes, in one rack if one can hold it.
    Tightest,
    /// One rack.
    Rack,
    /// Anything.
    Any,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Philly {
    config: PhillyConfig,
    /// Since when each pending job waits.
    waits_since: BTreeMap<JobId, Time>,
    wake: Option<Time>,
}

impl Philly {
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: PhillyConfig) -> Result<Philly, ConfigError> {
        config.validate()?;
        Ok(Philly {
            config,
            waits_since: BTreeMap::new(),
            wake: None,
        })
    }

    /// Notes since when each job waits: from its submission, or from when it was last stopped.
    fn look(&mut self, cluster: &Cluster) {
        let mut waits_since = BTreeMap::new();
        for id in cluster.pending() {
            let job = cluster.job(id);
            let new = if job.first_start.is_none() {
                job.submit
            } else {
                cluster.now()
            };
            let since = self.waits_since.get(&id).copied().unwrap_or(new);
            waits_since.insert(id, since);
        }
        self.waits_since = waits_since;
    }

    /// Tries that a job has made.
    fn num_tries(&self, now: Time, id: JobId) -> i64 {
        let since = self.waits_since.get(&id).copied().unwrap_or(now);
        (now - since).0 / Time::from_secs_f64(self.config.retry_s).0.max(1)
    }

    fn accepts(&self, now: Time, id: JobId) -> Locality {
        let relax_after = i64::from(self.config.relax_after);
        match self.num_tries(now, id) {
            tries if tries < relax_after => Locality::Tightest,
            tries if tries < 2 * relax_after => Locality::Rack,
            _ => Locality::Any,
        }
    }

    /// When the next job relaxes its locality, or makes its first try at having its quota restored.
    fn next_change(&self, now: Time) -> Option<Time> {
        let retry = Time::from_secs_f64(self.config.retry_s);
        let relax_after = i64::from(self.config.relax_after);
        let steps = [1, relax_after, 2 * relax_after];
        let changes = self.waits_since.values().filter_map(|since| {
            let at = steps.map(|tries| Time(since.0.saturating_add(retry.0.saturating_mul(tries))));
            at.into_iter().filter(|at| *at > now).min()
        });
        changes.min()
    }

    /// Starts what fits and finds its locality, virtual cluster by virtual cluster. Returns the jobs that were not started.
    fn start(&self, cluster: &mut Cluster) -> Vec<JobId> {
        let mut queues: Vec<Vec<JobId>> = vec![Vec::new(); cluster.tenants().len()];
        for id in self.waits_since.keys() {
            queues[cluster.job(*id).request.tenant.index()].push(*id);
        }
        let mut order: Vec<usize> = (0..queues.len()).filter(|at| !queues[*at].is_empty()).collect();
        order.sort_by(|a, b| {
            let used = |at: &usize| cluster.tenants()[*at].use_ratio();
            used(a).total_cmp(&used(b))
        });
        // Only starts happen here, so what finds no place once finds none later.
        let mut refused: Vec<(Demand, Locality)> = Vec::new();
        let (mut left, mut slices) = (Vec::new(), Vec::new());
        let now = cluster.now();
        for id in order.into_iter().flat_map(|at| std::mem::take(&mut queues[at])) {
            let (demand, accepts) = (cluster.demand(id), self.accepts(now, id));
            let class_free = cluster.num_running() > 0 && refused.contains(&(demand, accepts));
            let found = if class_free {
                None
            } else {
                tightest(cluster, id, &mut slices)
            };
            match found.map(|placement| self.placed(cluster, id, placement)) {
                Some(placement)
                    if cluster.num_running() == 0 || locality(cluster, id, &placement) <= accepts =>
                {
                    cluster.start(id, placement);
                }
                _ => {
                    if !class_free {
                        refused.push((demand, accepts));
                    }
                    left.push(id);
                }
            }
        }
        left
    }

    /// Where a gang goes that has a placement.
    fn placed(&self, cluster: &Cluster, id: JobId, found: Placement) -> Placement {
        let job = cluster.job(id);
        if !self.config.emptiest_first || found.len() > 1 || !is_whole_gpu_job(job) {
            return found;
        }
        let (slice, free) = (found[0], FreeResources::without(cluster, []));
        let (num_gpus, shape) = (slice.num_gpus(), cluster.shape(job.shape));
        let kind = cluster.nodes()[slice.node.index()].gpu_type;
        let nodes = cluster.nodes().iter().enumerate();
        let nodes = nodes.map(|(index, node)| (node, NodeId(index as u32)));
        let room = nodes.filter(|(node, id)| node.gpu_type == kind && free.hosts(*id, shape) >= num_gpus);
        let emptiest = room.max_by_key(|(node, id)| {
            let left = cluster.racks()[node.rack.index()].num_free;
            (left, node.free.count_ones(), Reverse(*id))
        });
        emptiest.map_or(found, |(_, node)| {
            Placement::from_slice(&[free.lowest(node, num_gpus)])
        })
    }

    /// Stops the newest jobs of virtual clusters above their quotas until a waiting job of one below its own has room.
    fn restore_quota(&self, cluster: &mut Cluster, left: &[JobId]) {
        let up = f64::from(cluster.num_gpus() - cluster.num_withheld());
        let used: f64 = cluster.tenants().iter().map(|tenant| tenant.used_gpus()).sum();
        if !cluster.capabilities().can(ActionKind::Preempt) || used < self.config.preempt_above * up {
            return;
        }
        for &id in left {
            let job = cluster.job(id);
            let tenant = cluster.tenant(job.request.tenant);
            let due = tenant.used_milli + u64::from(job.request.num_gpus) * 1000
                <= u64::from(tenant.quota_gpus) * 1000;
            if !due || !is_whole_gpu_job(job) || self.num_tries(cluster.now(), id) == 0 {
                continue;
            }
            if let Some((victims, placement)) = room_for(cluster, id) {
                for victim in victims {
                    cluster.preempt(victim);
                }
                cluster.start(id, placement);
            }
        }
    }
}

/// How tight a placement is.
fn locality(cluster: &Cluster, id: JobId, placement: &[Slice]) -> Locality {
    let request = &cluster.job(id).request;
    let (class, tasks) = (request.class, request.resources.tasks);
    let facts: PlacementFacts = cluster.facts(class, tasks, placement);
    let most = cluster.node_gpus_max_of(facts.gpu_type).max(1);
    let fewest = match tasks.is_any() {
        true => facts.num_gpus.div_ceil(most),
        false => facts.num_nodes_min,
    };
    let of_type = cluster
        .racks()
        .iter()
        .filter(|rack| rack.gpu_type == facts.gpu_type);
    let one_rack = of_type.map(|rack| rack.num_gpus).max().unwrap_or(0) >= facts.num_gpus;
    if facts.num_nodes <= fewest && (facts.num_racks == 1 || !one_rack) {
        Locality::Tightest
    } else if facts.num_racks == 1 {
        Locality::Rack
    } else {
        Locality::Any
    }
}

impl Planner for Philly {
    fn name(&self) -> &str {
        "philly"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.look(cluster);
        let left = self.start(cluster);
        self.restore_quota(cluster, &left);
        let waits = |id: &JobId| cluster.job(*id).state == JobState::Pending;
        self.waits_since.retain(|id, _| waits(id));
        // A job that was stopped just now waits from now on.
        for id in cluster.pending() {
            self.waits_since.entry(id).or_insert(cluster.now());
        }
        self.wake = self.next_change(cluster.now());
        Ok(())
    }

    fn wake_at(&self, _cluster: &Cluster) -> Option<Time> {
        self.wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::running;
    use crate::test_clusters::{cluster_of, submit_for};
    use pleach_scheduler::cluster_spec::{ClusterSpec, TenantSpec};

    /// Racks of two nodes of 4 GPUs; virtual clusters with these quotas.
    fn racks(num_nodes: u32, quotas: &[u32]) -> Cluster {
        let mut spec = ClusterSpec::uniform(num_nodes, 4, 2);
        let quotas = quotas.iter().enumerate();
        spec.tenants = quotas
            .map(|(number, quota_gpus)| TenantSpec {
                name: format!("vc{number}"),
                quota_gpus: *quota_gpus,
            })
            .collect();
        cluster_of(&spec)
    }

    fn put(cluster: &mut Cluster, tenant: u16, slices: &[(u32, u64)]) -> JobId {
        let num_gpus = slices.iter().map(|(_, gpus)| gpus.count_ones()).sum();
        let id = submit_for(cluster, tenant, num_gpus, 1e6);
        let slices = slices.iter().map(|(node, gpus)| Slice {
            node: NodeId(*node),
            gpus: *gpus,
        });
        cluster.start(id, slices.collect::<Placement>());
        id
    }

    fn at(planner: &mut Philly, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    fn philly() -> Philly {
        Philly::new(PhillyConfig::default()).unwrap()
    }

    #[test]
    fn a_gang_waits_for_one_node_then_takes_one_rack_then_anything() {
        // Node 0 and 1 (rack 0) have 1 GPU free each, node 2 (rack 1) one: a pair finds 2 GPUs in rack 0.
        let mut cluster = racks(4, &[16]);
        for (node, gpus) in [(0, 0b111), (1, 0b111), (2, 0b111), (3, 0b1111)] {
            put(&mut cluster, 0, &[(node, gpus)]);
        }
        let mut planner = philly();
        let pair = submit_for(&mut cluster, 0, 2, 1e3);
        let three = submit_for(&mut cluster, 0, 3, 1e3);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 1, 2, 3]);
        // 32 tries, one every 120 s: after 3,840 s the pair takes one rack.
        assert_eq!(at(&mut planner, &mut cluster, 3839.0), [0, 1, 2, 3]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(3840.0)));
        assert_eq!(at(&mut planner, &mut cluster, 3840.0), [0, 1, 2, 3, pair.0]);
        assert_eq!(cluster.job_facts(pair, &cluster.job(pair).placement).num_racks, 1);
        // Job 3 on node 3 ends: the gang of 3 has a node to itself at once.
        cluster.finish(JobId(3));
        assert!(at(&mut planner, &mut cluster, 3900.0).contains(&three.0));
        assert_eq!(cluster.job(three).placement.len(), 1);
    }

    #[test]
    fn after_both_levels_a_gang_goes_over_racks() {
        let mut cluster = racks(4, &[16]);
        for (node, gpus) in [(0, 0b111), (1, 0b1111), (2, 0b111), (3, 0b1111)] {
            put(&mut cluster, 0, &[(node, gpus)]);
        }
        let mut planner = philly();
        let pair = submit_for(&mut cluster, 0, 2, 1e3);
        for now_s in [0.0, 3840.0, 7679.0] {
            assert_eq!(at(&mut planner, &mut cluster, now_s), [0, 1, 2, 3]);
        }
        assert!(at(&mut planner, &mut cluster, 7680.0).contains(&pair.0));
    }

    /// Node 0 has one GPU free and node 1 all four (rack 0); nodes 2 and 3 have three each (rack 1, the emptier one).
    #[test]
    fn emptiest_first_takes_the_emptiest_node_of_the_emptiest_rack() {
        for (emptiest_first, node) in [(false, 0), (true, 2)] {
            let mut cluster = racks(4, &[16]);
            for (node, gpus) in [(0, 0b111), (2, 0b1), (3, 0b1)] {
                put(&mut cluster, 0, &[(node, gpus)]);
            }
            let config = PhillyConfig {
                emptiest_first,
                ..PhillyConfig::default()
            };
            let id = submit_for(&mut cluster, 0, 1, 1e3);
            at(&mut Philly::new(config).unwrap(), &mut cluster, 0.0);
            assert_eq!(cluster.job(id).placement[0].node, NodeId(node));
        }
    }

    #[test]
    fn small_jobs_overtake_a_gang_that_waits() {
        let mut cluster = racks(2, &[8]);
        put(&mut cluster, 0, &[(0, 0b111)]);
        let gang = submit_for(&mut cluster, 0, 8, 1e3);
        let small = submit_for(&mut cluster, 0, 1, 1e3);
        let runs = at(&mut philly(), &mut cluster, 0.0);
        assert!(!runs.contains(&gang.0) && runs.contains(&small.0));
    }

    #[test]
    fn a_virtual_cluster_below_its_quota_gets_it_back_from_the_newest_job_of_the_one_furthest_above() {
        // 8 GPUs, quotas of 4. VC 0 borrows all: jobs 0 (since 0 s, 4 GPUs), 1 (10 s, 2) and 2 (20 s, 2).
        let mut cluster = racks(2, &[4, 4]);
        put(&mut cluster, 0, &[(0, 0b1111)]);
        cluster.advance(Time::from_secs_f64(10.0));
        put(&mut cluster, 0, &[(1, 0b11)]);
        cluster.advance(Time::from_secs_f64(20.0));
        put(&mut cluster, 0, &[(1, 0b1100)]);
        let mut planner = philly();
        let due = submit_for(&mut cluster, 1, 2, 1e3);
        // Its first try is over after 120 s.
        assert_eq!(at(&mut planner, &mut cluster, 20.0), [0, 1, 2]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(140.0)));
        assert_eq!(at(&mut planner, &mut cluster, 140.0), [0, 1, due.0]);
        assert_eq!(cluster.job(JobId(2)).num_preemptions, 1);
        // A gang of 4 would take VC 1 above its quota (2 + 4 > 4): it waits.
        submit_for(&mut cluster, 1, 4, 1e3);
        assert_eq!(at(&mut planner, &mut cluster, 500.0), [0, 1, due.0]);
    }

    #[test]
    fn a_job_that_is_started_and_stopped_in_one_round_did_not_run() {
        // 8 GPUs, quotas of 4. VC 0 has node 0 and half of node 1. Its next job of 2 starts and makes the cluster full; then VC 1's gang
        // of 4, which has tried once, gets node 1 back: from the job of this round and from that before it.
        let mut cluster = racks(2, &[4, 4]);
        put(&mut cluster, 0, &[(0, 0b1111)]);
        put(&mut cluster, 0, &[(1, 0b11)]);
        let due = submit_for(&mut cluster, 1, 4, 1e3);
        let mut planner = philly();
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 1]);
        cluster.advance(Time::from_secs_f64(150.0));
        let late = submit_for(&mut cluster, 0, 2, 1e3);
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        decisions.clear();
        assert_eq!(at(&mut planner, &mut cluster, 200.0), [0, due.0]);
        assert_eq!(cluster.job(JobId(1)).num_preemptions, 1);
        let row = cluster.job(late);
        assert_eq!((row.num_preemptions, row.first_start), (0, None));
        cluster.take_decisions(&mut decisions);
        let told: Vec<JobId> = decisions.iter().map(|decision| decision.row).collect();
        assert_eq!(told, [JobId(1), due]);
    }

    #[test]
    fn nobody_is_stopped_on_a_cluster_that_is_not_full() {
        // 10 of 12 GPUs are used: 83 %. A due gang of 4 waits although VC 0 is above its quota of 4.
        let mut cluster = racks(3, &[4, 8]);
        put(&mut cluster, 0, &[(0, 0b1111)]);
        put(&mut cluster, 0, &[(1, 0b111)]);
        put(&mut cluster, 0, &[(2, 0b111)]);
        let gang = submit_for(&mut cluster, 1, 4, 1e3);
        let mut planner = philly();
        at(&mut planner, &mut cluster, 0.0);
        assert_eq!(at(&mut planner, &mut cluster, 1000.0), [0, 1, 2]);
        // One more job and it is full: 12 of 12.
        put(&mut cluster, 0, &[(1, 0b1000)]);
        put(&mut cluster, 0, &[(2, 0b1000)]);
        assert!(at(&mut planner, &mut cluster, 2000.0).contains(&gang.0));
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let wrong = PhillyConfig {
            retry_s: 0.0,
            ..PhillyConfig::default()
        };
        let text = Philly::new(wrong).unwrap_err().to_string();
        assert!(text.contains("philly.retry_s"), "{text}");
    }
}
