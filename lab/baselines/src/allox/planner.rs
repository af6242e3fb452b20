//! Jobs matched to (GPU, place from the end of its queue).
//!
//! A job that runs in the k-th place from the end of a GPU's queue delays itself and the k - 1 behind it by its processing
//! time, and all wait until the GPU is free, so what the choice adds to the sum of all completion times is
//! `k x processing time + time until the GPU is free`, whatever else runs there. The order that is best for the mean JCT is
//! therefore a bipartite matching of least cost, solved anew at every arrival and end. The first of each queue whose GPU is
//! free starts; no job is stopped.
//!
//! # Source
//! Le et al., EuroSys'20, as Gavel's released code uses it (stanford-futuredata/gavel at c4fa400, policy `allox`): every
//! worker is a machine, running jobs stay, `alpha` = 1.
//!
//! # Deviations
//! - Gavel's code knows gangs of one GPU only. A gang of s here is s times as long on one GPU's queue, which gives it a type
//!   and a place; when its turn comes it starts as soon as its type has s free GPUs, and until then no later job
//!   starts on that type (else gangs would starve).
//! - Of more than `jobs_max` waiting jobs the shortest are matched: the others would not be first in any queue.
//! - On a type with N GPUs, queues of more than `waiting / N` + 3 places are not looked at.
//! - An idle cluster starts the earliest job that fits, should the matched ones not fit for lack of CPU, memory or quota.
//!
//! How it is found without looking at every GPU: the file `matching`.

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Placement, Template};
use pleach_scheduler::{ConfigError, GpuTypeId, JobId, Planner, PolicyError};
use serde::{Deserialize, Serialize};

use super::matching::{Machine, matching};
use crate::shared::allocate_by_priority::tightest;
use crate::shared::allocation::start_fractions;
use crate::shared::settings::check;
use crate::shared::what_if::is_whole_gpu_job;

/// Settings of [`Allox`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlloxConfig {
    /// Part of the waiting jobs that are matched, those that came first; less than all is fairer and slower. 0 to 1, not 0.
    pub alpha: f64,
    /// Most jobs that are matched at once, 1 to 2,000. *Assumed.*
    pub jobs_max: usize,
}

impl Default for AlloxConfig {
    fn default() -> AlloxConfig {
        AlloxConfig {
            alpha: 1.0,
            jobs_max: 128,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Allox {
    config: AlloxConfig,
}

impl Allox {
    /// A planner.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: AlloxConfig) -> Result<Allox, ConfigError> {
        let alpha = config.alpha;
        check(
            "allox",
            "alpha",
            alpha,
            alpha > 0.0 && alpha <= 1.0,
            "above 0, at most 1",
        )?;
        let ok = (1..=2000).contains(&config.jobs_max);
        check("allox", "jobs_max", config.jobs_max, ok, "1 to 2000")?;
        Ok(Allox { config })
    }

    /// The waiting jobs that are matched, by arrival.
    fn waiting(&self, cluster: &Cluster) -> Vec<JobId> {
        let mut waiting: Vec<JobId> = cluster
            .pending()
            .filter(|id| is_whole_gpu_job(cluster.job(*id)))
            .collect();
        waiting.sort_unstable();
        let part = (waiting.len() as f64 * self.config.alpha).ceil() as usize;
        waiting.truncate(part.max(1));
        if waiting.len() > self.config.jobs_max {
            let shortest = |id: &JobId| types(cluster, *id).map(|kind| time_us(cluster, *id, kind)).min();
            waiting.sort_by_key(|id| (shortest(id), *id));
            waiting.truncate(self.config.jobs_max);
            waiting.sort_unstable();
        }
        waiting
    }
}

/// The types on which a job can run.
fn types(cluster: &Cluster, id: JobId) -> impl Iterator<Item = GpuTypeId> + use<> {
    cluster.types_in(cluster.job(id).types)
}

/// What a job has still to do on a type, GPU·µs; at most about a year's worth on a thousand GPUs.
fn time_us(cluster: &Cluster, id: JobId, kind: GpuTypeId) -> i64 {
    let job = cluster.job(id);
    let speed = cluster.class(job.request.class).speed[kind.index()].max(1e-9);
    let remaining_s = job.remaining_s_at(cluster.now());
    (remaining_s * f64::from(job.request.num_gpus) / speed * 1e6).clamp(1.0, 3e16 / 4096.0) as i64
}

/// The whole GPUs of nodes that are up.
fn machines(cluster: &Cluster) -> Vec<Machine> {
    let mut machines = Vec::new();
    for node in cluster.nodes().iter().filter(|node| node.state == NodeState::Up) {
        for gpu in 0..node.num_gpus {
            let is_free = node.free >> gpu & 1 == 1;
            let owner = cluster.gpus()[(node.first_gpu + gpu) as usize];
            let busy_us = match owner {
                _ if is_free => 0,
                Some(id) => (cluster.job(id).expected_finish - cluster.now())
                    .0
                    .clamp(1, 1 << 50),
                // Shared, or cut into fractions: it may never be whole again.
                None => continue,
            };
            machines.push(Machine {
                gpu_type: node.gpu_type,
                busy_us,
            });
        }
    }
    machines
}

/// The time of each job on each type, none where it cannot run. `[job][type]`
fn times_us(cluster: &Cluster, jobs: &[JobId]) -> Vec<Vec<Option<i64>>> {
    let of_job = |id: &JobId| {
        let kinds = 0..cluster.num_types();
        let of_type = |kind: usize| {
            let can_run = cluster.job(*id).types >> kind & 1 == 1;
            can_run.then(|| time_us(cluster, *id, GpuTypeId(kind as u8)))
        };
        kinds.map(of_type).collect()
    };
    jobs.iter().map(of_job).collect()
}

impl Planner for Allox {
    fn name(&self) -> &str {
        "allox"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        start_fractions(cluster);
        let jobs = self.waiting(cluster);
        let machines = machines(cluster);
        if jobs.is_empty() || machines.iter().all(|machine| machine.busy_us > 0) {
            return Ok(());
        }
        let matched = matching(&times_us(cluster, &jobs), &machines);
        // The first in the queue of each GPU: the one farthest from its end.
        let mut first: Vec<Option<(i64, JobId)>> = vec![None; machines.len()];
        for (id, place) in jobs.iter().zip(matched) {
            if let Some(place) = place {
                let first = &mut first[place.gpu];
                if first.is_none_or(|(from_end, _)| place.from_end > from_end) {
                    *first = Some((place.from_end, *id));
                }
            }
        }
        let firsts = first
            .iter()
            .zip(&machines)
            .filter(|(_, machine)| machine.busy_us == 0);
        let firsts = firsts.filter_map(|(first, machine)| first.map(|(_, id)| (id, machine.gpu_type)));
        let mut now: Vec<(JobId, GpuTypeId)> = firsts.collect();
        now.sort_unstable();
        let mut is_held = vec![false; cluster.num_types()];
        let mut slices = Vec::new();
        for (id, kind) in now {
            let demand = cluster.demand(id);
            if is_held[kind.index()] || !cluster.has_room(demand) {
                continue;
            }
            slices.clear();
            if cluster.fitting_types(demand) >> kind.0 & 1 == 1
                && cluster.place_job(Template::Fastest, kind, id, &mut slices)
            {
                cluster.start(id, Placement::from_slice(&slices));
            } else {
                is_held[kind.index()] = true;
            }
        }
        if cluster.num_running() == 0 {
            start_any(cluster);
        }
        Ok(())
    }
}

/// Starts the earliest waiting job that fits.
fn start_any(cluster: &mut Cluster) {
    let mut waiting: Vec<JobId> = cluster.pending().collect();
    waiting.sort_unstable();
    let mut slices = Vec::new();
    for id in waiting {
        if let Some(placement) = tightest(cluster, id, &mut slices) {
            debug_assert_eq!(cluster.job(id).state, JobState::Pending);
            cluster.start(id, placement);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::matching::Place;
    use super::*;
    use crate::test_clusters::{multi_type_cluster, place, preemptive_cluster, running, submit};
    use proptest::prelude::*;

    fn allox() -> Allox {
        Allox::new(AlloxConfig::default()).unwrap()
    }

    #[test]
    fn short_jobs_first_and_the_slow_gpu_only_for_whom_it_pays() {
        // One slow GPU (1) and one fast (4); jobs of 100, 400 and 40 s. Best: the fast one runs 40 (10 s), 100 (35 s) and
        // 400 (135 s): 180 in all; with 40 on the slow one 25 + 125 + 40 = 190, with 100 there 10 + 110 + 100 = 220.
        let mut cluster = multi_type_cluster(&[1.0, 4.0], 1);
        for work_s in [100.0, 400.0, 40.0] {
            submit(&mut cluster, 1, work_s);
        }
        let mut planner = allox();
        planner.plan(&mut cluster).unwrap();
        assert_eq!(running(&cluster), [2]);
        assert_eq!(cluster.job(JobId(2)).gpu_type, GpuTypeId(1));
        // A fourth job of 20 s: behind the 10 s that are left it would end after 15 s and push the others back by 5 each,
        // 25 in all; the slow GPU takes 20 s and delays no job.
        submit(&mut cluster, 1, 20.0);
        planner.plan(&mut cluster).unwrap();
        assert_eq!(running(&cluster), [2, 3]);
        assert_eq!(cluster.job(JobId(3)).gpu_type, GpuTypeId(0));
    }

    #[test]
    fn a_gang_whose_turn_it_is_holds_its_type_until_it_fits() {
        // Two GPUs, one busy for 1,000 s. A gang of 2 with 10 s to do is first on the free one; a later job of 500 s waits.
        let mut cluster = preemptive_cluster(1, 2);
        let busy = submit(&mut cluster, 1, 1000.0);
        place(&mut cluster, busy);
        submit(&mut cluster, 2, 10.0);
        submit(&mut cluster, 1, 500.0);
        let mut planner = allox();
        planner.plan(&mut cluster).unwrap();
        assert_eq!(running(&cluster), [0]);
        cluster.finish(busy);
        planner.plan(&mut cluster).unwrap();
        assert_eq!(running(&cluster), [1]);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let wrong = AlloxConfig {
            alpha: 0.0,
            ..AlloxConfig::default()
        };
        let text = Allox::new(wrong).unwrap_err().to_string();
        assert!(text.contains("allox.alpha"), "{text}");
    }

    /// The least sum of completion times of jobs of one GPU, by trying every GPU and every order.
    fn least(times_us: &[Vec<i64>], free_us: &[i64], left: u32) -> i64 {
        // Jobs are appended to queues in every order.
        let jobs = (0..times_us.len()).filter(|job| left >> job & 1 == 1);
        let choices = jobs.flat_map(|job| (0..free_us.len()).map(move |gpu| (job, gpu)));
        let costs = choices.map(|(job, gpu)| {
            let mut free_us = free_us.to_vec();
            free_us[gpu] += times_us[job][gpu];
            free_us[gpu] + least(times_us, &free_us, left & !(1 << job))
        });
        costs.min().unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_matching_is_as_good_as_the_best_of_all_orders(
            work in proptest::collection::vec(1_u32..50, 1..6),
            speeds in proptest::collection::vec(1_u32..5, 2),
            busy_s in 0_u32..60,
        ) {
            let speeds: Vec<f64> = speeds.into_iter().map(f64::from).collect();
            let mut cluster = multi_type_cluster(&speeds, 1);
            for work_s in &work {
                submit(&mut cluster, 1, f64::from(*work_s));
            }
            let jobs: Vec<JobId> = (0..work.len()).map(|id| JobId(id as u32)).collect();
            let mut machines = machines(&cluster);
            machines[0].busy_us = i64::from(busy_s) * 1_000_000;
            let matched = matching(&times_us(&cluster, &jobs), &machines);
            let cost = |(id, place): (&JobId, &Option<Place>)| {
                let place = place.unwrap();
                let machine = machines[place.gpu];
                place.from_end * time_us(&cluster, *id, machine.gpu_type) + machine.busy_us
            };
            let sum: i64 = jobs.iter().zip(&matched).map(cost).sum();
            let times: Vec<Vec<i64>> = jobs
                .iter()
                .map(|id| machines.iter().map(|machine| time_us(&cluster, *id, machine.gpu_type)).collect())
                .collect();
            let free: Vec<i64> = machines.iter().map(|machine| machine.busy_us).collect();
            prop_assert_eq!(sum, least(&times, &free, (1 << work.len()) - 1));
        }
    }
}
