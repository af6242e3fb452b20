//! Muri: jobs whose resources complement each other share GPUs, round by round.
//!
//! When a round begins, jobs are taken from the least remaining GPU time on until the GPUs would be full twice over. Where that
//! is more than fits once, jobs of equal gangs are paired so that most gets done, that is so that the sum of the pairs' speeds is
//! largest; pairs that do no more than one job alone are not made. The groups then get the GPUs in the order of their first
//! jobs, larger gangs are placed first, and jobs that stay on the same GPUs are not touched.
//!
//! # Source
//! Zhao et al., SIGCOMM'22, Muri-S (known run times). Muri weighs a pair by how busy it keeps all resources; that is the sum of
//! the two speeds over the number of resources ([`pleach_scheduler::physics::interleave`]), so the sum of speeds is the same
//! weight, wherever the speeds come from: a table made from stage times, measured pairs, or the rule of interference.
//!
//! # Deviations
//! - Pairs only; Muri chains up to four jobs, one for each resource. A GPU here has two whole-GPU jobs at most.
//! - A heavy matching by kinds of jobs with exchanges instead of Blossom's exact one: at least half of the best gain
//!   (`matching`), in time that does not grow with the square of the jobs.
//! - Rounds of 360 s are those of Gavel (*assumed*); Muri-L, without run times, is left out.

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Sharing, Slice};
use pleach_scheduler::{ActionKind, ConfigError, GpuTypeId, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::hosts::can_share;
use super::matching::pair_up;
use crate::shared::allocate_by_priority::start_what_fits;
use crate::shared::allocation::{Allocation, Grant, apply, start_fractions};
use crate::shared::pair_speeds::PairSpeeds;
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// Settings of [`Muri`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MuriConfig {
    /// Length of a round, s, 1 to 1e6.
    pub round_s: f64,
    /// A pair is made if the sum of its speeds is above this, 1 to 2.
    pub sum_above: f64,
}

impl Default for MuriConfig {
    fn default() -> MuriConfig {
        MuriConfig {
            round_s: 360.0,
            sum_above: 1.0,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Muri {
    config: MuriConfig,
    timer: RoundTimer,
    speeds: PairSpeeds,
}

/// A job that may run in this round, and where.
#[derive(Clone, Copy, Debug)]
struct Entrant {
    id: JobId,
    kind: GpuTypeId,
    num_gpus: u32,
    shares: bool,
}

/// One job or two on the same GPUs.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Position of its first job in the order of jobs.
    rank: usize,
    jobs: (JobId, Option<JobId>),
    kind: GpuTypeId,
    num_gpus: u32,
}

impl Muri {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: MuriConfig) -> Result<Muri, ConfigError> {
        let round_s = config.round_s;
        check(
            "muri",
            "round_s",
            round_s,
            (1.0..=1e6).contains(&round_s),
            "1 to 1e6 s",
        )?;
        let sum = config.sum_above;
        check("muri", "sum_above", sum, (1.0..=2.0).contains(&sum), "1 to 2")?;
        Ok(Muri {
            config,
            timer: RoundTimer::new(Time::from_secs_f64(round_s)),
            speeds: PairSpeeds::default(),
        })
    }

    /// The groups that get the GPUs of this round, by rank.
    fn groups(&mut self, cluster: &Cluster, free: &FreeResources, order: &[JobId]) -> Vec<Group> {
        let capacity: Vec<u32> = (0..cluster.num_types())
            .map(|kind| free.num_free_of(GpuTypeId(kind as u8)))
            .collect();
        let layers = if cluster.capabilities().sharing == Sharing::Off {
            1
        } else {
            2
        };
        let entrants = entrants(cluster, &capacity, order, layers);
        let mut wanted = vec![0; capacity.len()];
        for entrant in &entrants {
            wanted[entrant.kind.index()] += entrant.num_gpus;
        }
        let is_short = |kind: GpuTypeId| wanted[kind.index()] > capacity[kind.index()];
        // Buckets of equal gangs on one type; a job that cannot or need not share is a group by itself.
        let mut buckets: std::collections::BTreeMap<(GpuTypeId, u32), Vec<JobId>> = [].into();
        let mut pairs: Vec<(JobId, Option<JobId>)> = Vec::new();
        for entrant in &entrants {
            if entrant.shares && is_short(entrant.kind) {
                buckets
                    .entry((entrant.kind, entrant.num_gpus))
                    .or_default()
                    .push(entrant.id);
            } else {
                pairs.push((entrant.id, None));
            }
        }
        for ((kind, _), jobs) in &buckets {
            pairs.extend(pair_up(cluster, jobs, |one, other| {
                if !cluster.can_live_beside(one, other, *kind) {
                    return 0.0;
                }
                let sum =
                    self.speeds.of(cluster, one, other, *kind) + self.speeds.of(cluster, other, one, *kind);
                sum - self.config.sum_above
            }));
        }
        let rank_of: std::collections::BTreeMap<JobId, (usize, Entrant)> = entrants
            .iter()
            .enumerate()
            .map(|(rank, entrant)| (entrant.id, (rank, *entrant)))
            .collect();
        let mut groups: Vec<Group> = pairs
            .into_iter()
            .map(|jobs| {
                let (first, entrant) = rank_of[&jobs.0];
                let second = jobs.1.map_or(first, |id| rank_of[&id].0);
                Group {
                    rank: first.min(second),
                    jobs,
                    kind: entrant.kind,
                    num_gpus: entrant.num_gpus,
                }
            })
            .collect();
        groups.sort_unstable_by_key(|group| group.rank);
        let mut left = capacity;
        groups.retain(|group| {
            let has = &mut left[group.kind.index()];
            let fits = *has >= group.num_gpus;
            *has -= if fits { group.num_gpus } else { 0 };
            fits
        });
        groups
    }
}

/// Jobs in their order while the GPUs of a type are not full so many times over, and while their tenants have quota left.
fn entrants(cluster: &Cluster, capacity: &[u32], order: &[JobId], layers: u32) -> Vec<Entrant> {
    let mut left: Vec<u32> = capacity.iter().map(|num| num * layers).collect();
    let mut quota: Vec<u64> = vec![u64::MAX; cluster.tenants().len()];
    if !cluster.borrowing() {
        for (quota, tenant) in quota.iter_mut().zip(cluster.tenants()) {
            *quota = (u64::from(tenant.quota_gpus) * 1000).saturating_sub(tenant.used_milli);
        }
        for id in order
            .iter()
            .filter(|id| cluster.job(**id).state == JobState::Running)
        {
            let job = cluster.job(*id);
            quota[job.request.tenant.index()] += job.milli_held();
        }
    }
    let mut entrants = Vec::new();
    for &id in order {
        let job = cluster.job(id);
        let (num_gpus, shares) = (job.request.num_gpus, layers > 1 && can_share(cluster, id));
        // A job that cannot share takes all layers.
        let takes = if shares { num_gpus } else { num_gpus * layers };
        let quota = &mut quota[job.request.tenant.index()];
        let milli = u64::from(num_gpus) * 1000;
        let speed = &cluster.class(job.request.class).speed;
        let open = cluster
            .types_in(job.types)
            .filter(|kind| left[kind.index()] >= takes);
        let runs_on = |kind: &GpuTypeId| job.state == JobState::Running && job.gpu_type == *kind;
        let better = |a: GpuTypeId, b: GpuTypeId| {
            if !runs_on(&a) && (runs_on(&b) || speed[b.index()] > speed[a.index()]) {
                b
            } else {
                a
            }
        };
        let Some(kind) = open.reduce(better).filter(|_| *quota >= milli) else {
            continue;
        };
        left[kind.index()] -= takes;
        *quota = quota.saturating_sub(milli);
        entrants.push(Entrant {
            id,
            kind,
            num_gpus,
            shares,
        });
    }
    entrants
}

/// Whether all nodes of a running job are open.
fn is_open(cluster: &Cluster, id: JobId) -> bool {
    let up = |slice: &Slice| cluster.nodes()[slice.node.index()].state == NodeState::Up;
    cluster.job(id).placement.iter().all(up)
}

/// Where every group goes: first those with a member that runs keep its GPUs, then larger gangs first.
fn lay_out(cluster: &Cluster, free: &mut FreeResources, groups: &[Group], allocation: &mut Allocation) {
    let members = |group: &Group| [Some(group.jobs.0), group.jobs.1].into_iter().flatten();
    let mut rest: Vec<&Group> = Vec::new();
    for group in groups {
        let stays = members(group).find(|id| {
            let job = cluster.job(*id);
            let shape = cluster.shape(job.granted);
            job.state == JobState::Running && job.gpu_type == group.kind && free.has(&job.placement, shape)
        });
        match stays {
            Some(id) => {
                let (placement, granted) = (cluster.job(id).placement.clone(), cluster.job(id).granted);
                free.take(&placement, cluster.shape(granted));
                allocation.extend(members(group).map(|id| (id, Grant::gang(placement.clone()))));
            }
            None => rest.push(group),
        }
    }
    rest.sort_by_key(|group| (std::cmp::Reverse(group.num_gpus), group.rank));
    for group in rest {
        let shape = cluster.shape(cluster.job(group.jobs.0).shape);
        if let Some(placement) = free.tightest(group.kind, group.num_gpus, shape) {
            free.take(&placement, shape);
            allocation.extend(members(group).map(|id| (id, Grant::gang(placement.clone()))));
        }
    }
}

impl Planner for Muri {
    fn name(&self) -> &str {
        "muri"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        start_fractions(cluster);
        if !self.timer.begins(cluster) {
            return Ok(());
        }
        let now = cluster.now();
        // A job on a node that takes no new jobs stays where it is.
        let mut allocation = Allocation::new();
        let mut order: Vec<(f64, JobId)> = Vec::new();
        for id in cluster.active() {
            let job = cluster.job(id);
            if !is_whole_gpu_job(job) {
                continue;
            }
            if job.state == JobState::Running && !is_open(cluster, id) {
                allocation.insert(id, Grant::gang(job.placement.clone()));
            } else {
                let gpu_time_s = job.remaining_s_at(now) * f64::from(job.request.num_gpus);
                order.push((gpu_time_s, id));
            }
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let order: Vec<JobId> = order.into_iter().map(|(_, id)| id).collect();
        if cluster.capabilities().can(ActionKind::Preempt) {
            let mut free = FreeResources::without(
                cluster,
                order
                    .iter()
                    .copied()
                    .filter(|id| cluster.job(*id).state == JobState::Running),
            );
            let groups = self.groups(cluster, &free, &order);
            lay_out(cluster, &mut free, &groups, &mut allocation);
            apply(cluster, &allocation);
        }
        // What is left, by the same order: gangs that found no place above may be smaller than what is free now.
        start_what_fits(cluster, &order);
        // Where there are no pairs and no job waits the order decides nothing: all fit on the types where they run, so no
        // jobs are paired, and each keeps its own GPUs.
        let is_alone = cluster.running().all(|id| !cluster.job(id).is_sharing);
        self.timer.settle(cluster, is_alone);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.timer.rests()
    }
}

#[cfg(test)]
mod tests {
    use super::super::interleave::interleaved_pairs;
    use super::super::tests::{class, cluster_of, plan_at, submit_as};
    use super::*;
    use pleach_scheduler::cluster_spec::ClusterSpec;

    /// Readers and computers complement each other (speeds 1 and 1); two readers or two computers take turns.
    fn cluster(num_gpus: u32) -> Cluster {
        let classes = [class("reads", 0.5), class("computes", 0.5)];
        let stages = [("reads", vec![3.0, 1.0]), ("computes", vec![1.0, 3.0])];
        let mut spec = ClusterSpec::uniform(1, num_gpus, 1);
        spec.pairs = interleaved_pairs("GPU", &stages);
        let capabilities = cluster_of(1, 1, &classes, &[]).capabilities();
        Cluster::new(&spec, &classes, capabilities).unwrap()
    }

    fn muri() -> Muri {
        Muri::new(MuriConfig::default()).unwrap()
    }

    #[test]
    fn complementary_jobs_of_equal_gangs_are_paired_where_gpus_are_short() {
        let mut cluster = cluster(2);
        let mut planner = muri();
        // Two readers, two computers: a reader and a computer on each GPU.
        for class in [0, 0, 1, 1] {
            submit_as(&mut cluster, class, 1, 1000.0, 1.0);
        }
        let running = plan_at(&mut planner, &mut cluster, 0.0);
        let on = |id: usize| running[id].1[0].1;
        assert_eq!((running.len(), on(0), on(1)), (4, on(2), on(3)));
        assert_ne!(on(0), on(1));
        assert!((0..4).all(|id| cluster.job(JobId(id)).rate == 1.0));
        // Nothing changes in the next round, and no job is stopped.
        assert_eq!(plan_at(&mut planner, &mut cluster, 360.0), running);
        assert!((0..4).all(|id| cluster.job(JobId(id)).num_preemptions == 0));
    }

    #[test]
    fn jobs_that_fit_once_or_do_not_gain_are_left_alone() {
        let mut roomy = cluster(2);
        for class in [0, 1] {
            submit_as(&mut roomy, class, 1, 1000.0, 1.0);
        }
        let running = plan_at(&mut muri(), &mut roomy, 0.0);
        assert_ne!(running[0].1, running[1].1, "two GPUs for two jobs");
        // Beside each other two readers need 3 + 3 for what takes 4 alone: 2/3 each, 4/3 in all, which is more than one.
        // A pair must do more than 1.5 here.
        let mut equal = cluster(1);
        for _ in 0..2 {
            submit_as(&mut equal, 0, 1, 1000.0, 1.0);
        }
        let mut strict = Muri::new(MuriConfig {
            sum_above: 1.5,
            ..MuriConfig::default()
        })
        .unwrap();
        assert_eq!(plan_at(&mut strict, &mut equal.clone(), 0.0).len(), 1);
        assert_eq!(plan_at(&mut muri(), &mut equal, 0.0).len(), 2);
    }

    #[test]
    fn least_remaining_gpu_time_goes_first_and_longer_jobs_are_stopped() {
        let mut cluster = cluster(2);
        let mut planner = muri();
        submit_as(&mut cluster, 0, 2, 1000.0, 40.0 / 2.0);
        assert_eq!(plan_at(&mut planner, &mut cluster, 0.0).len(), 1);
        // A gang of two readers of 100 s has no memory left beside it (20 + 20 GiB): it takes its place when the round ends.
        submit_as(&mut cluster, 0, 2, 100.0, 20.0);
        assert_eq!(plan_at(&mut planner, &mut cluster, 100.0)[0].0, 0);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(360.0)));
        let running = plan_at(&mut planner, &mut cluster, 360.0);
        assert_eq!((running.len(), running[0].0), (1, 1));
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let wrong = MuriConfig {
            round_s: 0.0,
            ..MuriConfig::default()
        };
        let text = Muri::new(wrong).unwrap_err().to_string();
        assert!(text.contains("muri.round_s"), "{text}");
    }
}
