//! What it is worth to end a job at a time, and the prices of GPUs that follow from it.
//!
//! # Source
//! Hadar (IPDPS'24; arXiv 2503.10918), from a secondary description: utility functions that do not increase with time,
//! and the exponential prices of the primal-dual family of online schedulers that it belongs to (OASiS, INFOCOM'18).

use pleach_scheduler::cluster::{Cluster, Shape};
use pleach_scheduler::{ClassId, GpuTypeId, JobId, Time};
use serde::{Deserialize, Serialize};

use crate::shared::what_if::FreeResources;
use pleach_scheduler::portable_math::pow;

/// What a schedule is to be good at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Utility {
    /// A job's work over the time from its arrival to its end: `E N / d`.
    #[default]
    EffectiveThroughput,
    /// The pace of a job, weighted by what is left of it over what is left of the longest: long jobs first.
    Makespan,
    /// The pace of a job, weighted by its finish-time fairness: jobs that sharing has hurt first.
    FinishTimeFairness,
}

/// What a plan looks at in a job. Times of the reference run are times on the reference type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The job.
    pub id: JobId,
    /// Its model class.
    pub class: ClassId,
    /// GPUs that it needs at once.
    pub num_gpus: u32,
    /// What each comes with.
    pub shape: Shape,
    /// Types on which its gang fits, as a bit mask.
    pub types: u64,
    /// Since when it is in the cluster, s.
    pub age_s: f64,
    /// All of its work, s of the reference run.
    pub work_s: f64,
    /// What is left of it, s of the reference run.
    pub rest_s: f64,
    /// Its speed on its fastest type.
    pub speed_max: f64,
    /// Its speed on its slowest type.
    pub speed_min: f64,
    /// Weight of its pace; 0 where the utility is that of effective throughput.
    pub weight: f64,
}

impl Request {
    /// Utility of ending after `more_s` from now, in GPUs of the reference type.
    #[must_use]
    pub fn utility(&self, more_s: f64) -> f64 {
        let gang = f64::from(self.num_gpus);
        if self.weight > 0.0 {
            gang * self.weight * self.rest_s / more_s
        } else {
            gang * self.work_s / (self.age_s + more_s)
        }
    }

    /// Best utility per GPU: on its fastest type from now on.
    #[must_use]
    pub(crate) fn best_density(&self) -> f64 {
        self.utility(self.rest_s / self.speed_max) / f64::from(self.num_gpus)
    }
}

/// The jobs that wait or run and are not left out, by arrival.
#[must_use]
pub fn requests(cluster: &Cluster, utility: Utility, takes_part: impl Fn(JobId) -> bool) -> Vec<Request> {
    let now = cluster.now();
    let request = |id: JobId| {
        let job = cluster.job(id);
        let speeds = &cluster.class(job.request.class).speed;
        let speeds = cluster.types_in(job.types).map(|kind| speeds[kind.index()]);
        let (speed_min, speed_max) = speeds.fold((f64::INFINITY, 0.0_f64), |(min, max), speed| {
            (min.min(speed), max.max(speed))
        });
        Request {
            id,
            class: job.request.class,
            num_gpus: job.request.num_gpus,
            shape: cluster.shape(job.shape),
            types: job.types,
            age_s: (now - job.submit).as_secs_f64(),
            work_s: job.work_s(),
            rest_s: job.remaining_s_at(now),
            speed_max,
            speed_min,
            weight: 0.0,
        }
    };
    let active = cluster.active().into_iter().filter(|id| takes_part(*id));
    let mut requests: Vec<Request> = active.map(request).collect();
    let longest_s = requests.iter().map(|request| request.rest_s).fold(1.0, f64::max);
    let share = f64::from(cluster.num_gpus()) / requests.len().max(1) as f64;
    for request in &mut requests {
        request.weight = match utility {
            Utility::EffectiveThroughput => 0.0,
            Utility::Makespan => request.rest_s / longest_s,
            Utility::FinishTimeFairness => {
                let ideal_s =
                    request.work_s / request.speed_max / (share / f64::from(request.num_gpus)).min(1.0);
                (request.age_s + request.rest_s / request.speed_max) / ideal_s
            }
        };
    }
    requests
}

/// The price of a GPU of every node: `U_min (U_max / U_min)^(taken / all)`, so that an idle node admits anyone and the last
/// GPU hardly anyone.
#[derive(Clone, Debug)]
pub struct Prices {
    /// Prices by the number of GPUs taken. `[node]` is a row of `[taken]`; equal nodes share one.
    rows: Vec<Vec<f64>>,
    /// `[node]`
    row_of: Vec<usize>,
}

impl Prices {
    /// From the requests of a round. `eta` scales the lowest price, `round` is the unit of the longest run time.
    #[must_use]
    pub fn new(cluster: &Cluster, requests: &[Request], eta: f64, round: Time) -> Prices {
        // If all were run one after the other on their slowest types.
        let horizon_s: f64 = requests
            .iter()
            .map(|request| request.rest_s / request.speed_min)
            .sum();
        // `(U_min, U_max)` of each type, per GPU.
        let limits = (0..cluster.num_types()).map(|kind| {
            let can_use = requests.iter().filter(|request| request.types >> kind & 1 == 1);
            let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
            for request in can_use {
                let gang = f64::from(request.num_gpus);
                let best = match request.weight {
                    0.0 => request.speed_max,
                    _ => request.best_density(),
                };
                most = most.max(best);
                let rounds = (request.work_s / request.speed_min / round.as_secs_f64()).max(1.0);
                least = least.min(request.utility(horizon_s) / (rounds * gang * 4.0 * eta));
            }
            (least.min(most), most)
        });
        let limits: Vec<(f64, f64)> = limits.collect();
        let (mut keys, mut rows): (Vec<(GpuTypeId, u32)>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let row_of = cluster.nodes().iter().map(|node| {
            let key = (node.gpu_type, node.num_gpus);
            keys.iter().position(|other| *other == key).unwrap_or_else(|| {
                let taken = 0..=node.num_gpus;
                let price = |taken: u32| price(limits[key.0.index()], f64::from(taken) / f64::from(key.1));
                rows.push(taken.map(price).collect());
                keys.push(key);
                keys.len() - 1
            })
        });
        let row_of = row_of.collect();
        Prices { rows, row_of }
    }

    /// Price of a GPU of a node as a plan leaves it.
    #[must_use]
    pub fn at(&self, free: &FreeResources, node: usize) -> f64 {
        let row = &self.rows[self.row_of[node]];
        let num_free = free.nodes()[node].num_free() as usize;
        row[row.len() - 1 - num_free]
    }
}

/// Price where a part of a node is taken; 0 on a type that no job can use.
fn price((least, most): (f64, f64), part: f64) -> f64 {
    if most > 0.0 && least > 0.0 {
        least * pow(most / least, part)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{multi_type_cluster, submit};
    use pleach_scheduler::NodeId;

    fn all(_: JobId) -> bool {
        true
    }

    #[test]
    fn effective_throughput_is_work_over_the_time_in_the_cluster() {
        // Speeds 1 and 2. A gang of 2 with 400 s of work that came 100 s ago and has not run.
        let mut cluster = multi_type_cluster(&[1.0, 2.0], 4);
        submit(&mut cluster, 2, 400.0);
        cluster.advance(Time::from_secs_f64(100.0));
        let request = requests(&cluster, Utility::EffectiveThroughput, all)[0];
        assert_eq!(
            (request.age_s, request.rest_s, request.speed_max),
            (100.0, 400.0, 2.0)
        );
        // On the fast type it ends after 200 s: 2 x 400 / 300.
        assert_eq!(request.utility(200.0), 800.0 / 300.0);
        assert_eq!(request.best_density(), 400.0 / 300.0);
        assert!(request.utility(201.0) < request.utility(200.0));
    }

    #[test]
    fn makespan_weighs_by_what_is_left_and_fairness_by_what_sharing_has_cost() {
        // 4 GPUs, two jobs of 1 GPU: each has a share of 2 GPUs and would run as fast alone.
        let mut cluster = multi_type_cluster(&[1.0], 4);
        submit(&mut cluster, 1, 1000.0);
        submit(&mut cluster, 1, 250.0);
        cluster.advance(Time::from_secs_f64(500.0));
        let makespan = requests(&cluster, Utility::Makespan, all);
        assert_eq!([makespan[0].weight, makespan[1].weight], [1.0, 0.25]);
        // A pace of 1 from now on: the weight itself.
        assert_eq!(makespan[1].utility(250.0), 0.25);
        let fairness = requests(&cluster, Utility::FinishTimeFairness, all);
        assert_eq!([fairness[0].weight, fairness[1].weight], [1.5, 3.0]);
    }

    #[test]
    fn prices_rise_from_the_worst_utility_to_the_best_as_a_node_fills() {
        // One type, 4 GPUs. Jobs of 3,600 s (1 GPU) and 360 s (2 GPUs), just arrived; rounds of 360 s; eta 1.
        let mut cluster = multi_type_cluster(&[1.0], 4);
        submit(&mut cluster, 1, 3600.0);
        submit(&mut cluster, 2, 360.0);
        let round = Time::from_secs_f64(360.0);
        let requests = requests(&cluster, Utility::EffectiveThroughput, all);
        let prices = Prices::new(&cluster, &requests, 1.0, round);
        // Best: a pace of 1 for both. Worst: all after 3,960 s; 3,600 / 3,960 over 10 rounds, or 360 / 3,960 over 1 round:
        // the same, 0.0909; a quarter of it.
        let mut free = FreeResources::emptied(&cluster);
        assert!((prices.at(&free, 0) - 1.0 / 44.0).abs() < 1e-12);
        free.take(&[free.lowest(NodeId(0), 2)], requests[0].shape);
        // Half taken: the geometric mean.
        assert!((prices.at(&free, 0) - (1.0_f64 / 44.0).sqrt()).abs() < 1e-12);
        free.take(&[free.lowest(NodeId(0), 2)], requests[0].shape);
        assert!((prices.at(&free, 0) - 1.0).abs() < 1e-12);
        // A larger eta lowers the first price.
        let cheaper = Prices::new(&cluster, &requests, 10.0, round);
        let idle = FreeResources::emptied(&cluster);
        assert!((cheaper.at(&idle, 0) - 1.0 / 440.0).abs() < 1e-12);
    }
}
