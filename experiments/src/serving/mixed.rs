//! Training jobs and a service of a language model on the same GPUs: autoscalers on the same lists, with paired intervals.

use clap::Args;
use pleach_env::mixed::{MixedResult, ServiceSpec, simulate_mixed};
use pleach_env::workload::JobSpec;
use pleach_env::{Seed, SimConfig, Workload};
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use pleach_scheduler::{Time, heuristics};
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Autoscaler, Fleet, Pace, Requests, Targets, autoscaler, by_name, capacity_per_s};
use rand::RngExt as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::flag_values;
use crate::evaluate::stats::{bootstrap_mean, mean};
use crate::evaluate::table::Table;

/// Shortest and longest training job, h. *Assumed.*
const JOB_H: [f64; 2] = [2.0, 6.0];
/// Work of all jobs over what the GPUs could do in the time, so that jobs always wait. *Assumed.*
const WORK: f64 = 1.25;

/// A cluster, a day of requests and the jobs beside them.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixedConfig {
    /// Time to play from midnight on, h
    #[arg(long, value_name = "H", default_value_t = 24.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub hours: f64,
    /// Requests a second, mean of the day; they follow the hours of the day
    #[arg(long, value_name = "RATE", default_value_t = 36.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub rate_per_s: f64,
    /// Spread of the logarithm of the rate from minute to minute, 0 to 3
    #[arg(long, value_name = "X", default_value_t = 0.22, value_parser = flag_values::not_negative, help_heading = "Requests")]
    pub burst: f64,
    /// Days to draw, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100),
        help_heading = "Requests")]
    pub lists: u16,
    /// Language model: llama-3-8b, mistral-7b, qwen-2.5-7b, qwen-2.5-14b
    #[arg(
        long,
        value_name = "NAME",
        default_value = "llama-3-8b",
        help_heading = "Service"
    )]
    pub model: String,
    /// GPU type of the cluster: H100, A100, L40S
    #[arg(long, value_name = "NAME", default_value = "H100", help_heading = "Service")]
    pub gpu: String,
    /// Router by name with settings after colons
    #[arg(
        long,
        value_name = "NAME",
        default_value = "least-tokens",
        help_heading = "Service"
    )]
    pub router: String,
    /// Time between two looks of the gateway at all replicas, s
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = flag_values::not_negative, help_heading = "Service")]
    pub scrape_s: f64,
    /// From the grant of a GPU until its replica takes requests, s
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = flag_values::not_negative, help_heading = "Service")]
    pub load_s: f64,
    /// What a replica that is taken back is given to serve what it has, s
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = flag_values::not_negative, help_heading = "Service")]
    pub grace_s: f64,
    /// Target of the time to the first token, s
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = flag_values::positive, help_heading = "Targets")]
    pub ttft_s: f64,
    /// Target of the mean time between two later tokens, s
    #[arg(long, value_name = "S", default_value_t = 0.05, value_parser = flag_values::positive, help_heading = "Targets")]
    pub tpot_s: f64,
    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=512),
        help_heading = "Training")]
    pub nodes: u32,
    /// GPUs of each node
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=8),
        help_heading = "Training")]
    pub gpus_per_node: u32,
    /// GPUs of each training job
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = "Training")]
    pub gang: u32,
    /// What a restart costs a job, s
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = flag_values::not_negative, help_heading = "Training")]
    pub restart_s: f64,
    /// Who schedules the jobs on the GPUs that are left: a heuristic by name
    #[arg(long, value_name = "NAME", default_value = "fifo", help_heading = "Training")]
    pub policy: String,
}

impl Default for MixedConfig {
    fn default() -> MixedConfig {
        MixedConfig {
            hours: 24.0,
            rate_per_s: 36.0,
            burst: 0.22,
            lists: 3,
            model: "llama-3-8b".into(),
            gpu: "H100".into(),
            router: "least-tokens".into(),
            scrape_s: 1.0,
            load_s: 60.0,
            grace_s: 30.0,
            ttft_s: 1.0,
            tpot_s: 0.05,
            nodes: 2,
            gpus_per_node: 8,
            gang: 1,
            restart_s: 60.0,
            policy: "fifo".into(),
        }
    }
}

/// A day: its requests and its jobs.
pub struct Day {
    requests: Requests,
    workload: Workload,
    seed: u64,
}

/// A cluster with its service, ready to play days.
pub struct MixedBench<'a> {
    config: &'a MixedConfig,
    fleet: Fleet,
    /// Requests a second that a replica serves within the targets.
    pub capacity_per_s: f64,
}

impl<'a> MixedBench<'a> {
    /// Checks the settings and measures what a replica serves.
    ///
    /// # Errors
    /// A setting that cannot be used.
    pub fn new(config: &'a MixedConfig) -> Result<MixedBench<'a>, Error> {
        let num_gpus = config.nodes * config.gpus_per_node;
        if config.gang > num_gpus {
            let allowed = format!("1 to {num_gpus}");
            return Err(Error::config("gang", config.gang, allowed, "Take more nodes."));
        }
        heuristics::by_name(&config.policy)?;
        by_name(&config.router, 0)?;
        let fleet = Fleet {
            pace: Pace::of(&config.model, &config.gpu)?,
            num_replicas: num_gpus as usize,
            num_gateways: 1,
            scrape_s: config.scrape_s,
            targets: Targets {
                ttft_s: config.ttft_s,
                tpot_s: config.tpot_s,
            },
            may_refuse: false,
        };
        fleet.check()?;
        let capacity_per_s = capacity_per_s(&fleet, &RequestGenerator::default())?;
        Ok(MixedBench {
            config,
            fleet,
            capacity_per_s,
        })
    }

    /// A day of a seed.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn day(&self, seed: Seed) -> Result<Day, Error> {
        let span_s = 3_600.0 * self.config.hours;
        let generator = RequestGenerator {
            num_requests: pleach_serving::llm::REQUESTS_MAX as u32,
            rate_per_s: self.config.rate_per_s,
            burst: self.config.burst,
            is_daily: true,
            span_s: Some(span_s),
            ..RequestGenerator::default()
        };
        Ok(Day {
            requests: generator.draw(seed.child("requests", 0))?,
            workload: self.jobs(seed),
            seed: seed.child("router", 0).0,
        })
    }

    /// More work than the GPUs can do, all of it there at the beginning.
    fn jobs(&self, seed: Seed) -> Workload {
        let (config, mut rng) = (self.config, seed.stream("jobs", 0));
        let num_gpus = f64::from(config.nodes * config.gpus_per_node);
        let mut left_gpu_h = WORK * num_gpus * config.hours;
        let mut jobs = Vec::new();
        while left_gpu_h > 0.0 {
            let hours = rng.random_range(JOB_H[0]..JOB_H[1]);
            let id = format!("job-{}", jobs.len());
            jobs.push(JobSpec::new(id, Time::ZERO, config.gang, 3_600.0 * hours));
            left_gpu_h -= f64::from(config.gang) * hours;
        }
        Workload {
            name: "training".into(),
            cluster: ClusterSpec::uniform(config.nodes, config.gpus_per_node, config.nodes),
            classes: vec![ModelClass {
                name: "training".into(),
                speed: vec![1.0],
                locality: LocalityFactors::NONE,
                ..ModelClass::default()
            }],
            jobs,
        }
    }

    /// Plays a day.
    ///
    /// # Errors
    /// A policy that fails.
    pub fn play(&self, day: &Day, autoscaler: &mut dyn Autoscaler) -> Result<MixedDay, Error> {
        let mut router = by_name(&self.config.router, day.seed)?;
        let mut policy = heuristics::by_name(&self.config.policy)?;
        let sim = SimConfig {
            capabilities: Capabilities {
                restart_cost_s: self.config.restart_s,
                ..Capabilities::DEFAULT
            },
            ..SimConfig::default()
        };
        let service = ServiceSpec {
            requests: &day.requests,
            fleet: &self.fleet,
            router: router.as_mut(),
            autoscaler,
            load_s: self.config.load_s,
            grace_s: self.config.grace_s,
            record_routes: false,
        };
        let until = Some(Time::from_secs_f64(3_600.0 * self.config.hours));
        let result = simulate_mixed(&day.workload, &sim, &mut policy, vec![service], until)?;
        Ok(self.figures(&result))
    }

    fn figures(&self, result: &MixedResult) -> MixedDay {
        let service = &result.services[0];
        let training = result.training;
        MixedDay {
            num_requests: service.outcome.requests.len() as f64,
            hits_pct: 100.0 * service.outcome.hit_share(self.fleet.targets),
            training_gpu_h: training.done_gpu_s / 3_600.0,
            held_gpu_h: training.held_gpu_s / 3_600.0,
            serving_gpu_h: service.leased_gpu_s / 3_600.0,
            idle_gpu_h: result.idle_gpu_s / 3_600.0,
            lost_gpu_h: (training.held_gpu_s - training.done_gpu_s) / 3_600.0,
            moves: service.grants.len() as f64,
            preemptions: service.num_preemptions as f64,
            returned: service.num_returned as f64,
        }
    }

    /// The autoscaler of a name.
    ///
    /// # Errors
    /// One that is not there.
    pub fn autoscaler(&self, name: &str) -> Result<Box<dyn Autoscaler>, Error> {
        Ok(autoscaler(name, self.capacity_per_s)?)
    }
}

/// What a day came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MixedDay {
    /// Requests.
    pub num_requests: f64,
    /// Share of requests within both targets, %.
    pub hits_pct: f64,
    /// Work of jobs that was done and kept, GPU·h.
    pub training_gpu_h: f64,
    /// Held by jobs, GPU·h.
    pub held_gpu_h: f64,
    /// Held by replicas, GPU·h.
    pub serving_gpu_h: f64,
    /// Held by nobody, GPU·h.
    pub idle_gpu_h: f64,
    /// Held by jobs for starts and for work that was lost again, GPU·h.
    pub lost_gpu_h: f64,
    /// GPUs that were leased, one after another.
    pub moves: f64,
    /// Jobs that were stopped for them.
    pub preemptions: f64,
    /// Requests that went back to the gateway.
    pub returned: f64,
}

/// An autoscaler on all days.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixedRow {
    /// Its name.
    pub autoscaler: String,
    /// Of each day.
    pub days: Vec<MixedDay>,
    /// Training over the first row's, less 1, %, mean of days; none for the first.
    pub more_training_pct: Option<f64>,
    /// Its 95 % interval; none with one day.
    pub more_training_interval: Option<(f64, f64)>,
}

impl MixedRow {
    fn over(&self, figure: impl Fn(&MixedDay) -> f64) -> f64 {
        mean(&self.days.iter().map(figure).collect::<Vec<_>>())
    }

    /// Mean share of hits, %.
    #[must_use]
    pub fn hits_pct(&self) -> f64 {
        self.over(|day| day.hits_pct)
    }

    /// Mean training, GPU·h.
    #[must_use]
    pub fn training_gpu_h(&self) -> f64 {
        self.over(|day| day.training_gpu_h)
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixedComparison {
    /// Requests a second that a replica serves within the targets.
    pub capacity_per_s: f64,
    /// GPUs x hours of a day.
    pub gpu_h: f64,
    /// In the order given.
    pub rows: Vec<MixedRow>,
}

/// Plays all autoscalers on all days.
///
/// # Errors
/// An autoscaler or a setting that cannot be used.
pub fn compare_mixed(config: &MixedConfig, names: &[String], seed: u64) -> Result<MixedComparison, Error> {
    let bench = MixedBench::new(config)?;
    for name in names {
        bench.autoscaler(name)?;
    }
    let seeds = (0..u64::from(config.lists)).map(|list| Seed(seed).child("mixed", list));
    let days = seeds.map(|seed| bench.day(seed)).collect::<Result<Vec<_>, _>>()?;
    compare_mixed_on(&bench, &days, names)
}

/// The same on given days.
///
/// # Errors
/// An autoscaler that cannot be used.
pub fn compare_mixed_on(
    bench: &MixedBench<'_>,
    days: &[Day],
    names: &[String],
) -> Result<MixedComparison, Error> {
    let runs: Vec<(&String, &Day)> = names
        .iter()
        .flat_map(|name| days.iter().map(move |day| (name, day)))
        .collect();
    let played = runs
        .par_iter()
        .map(|(name, day)| bench.play(day, bench.autoscaler(name)?.as_mut()));
    let played: Vec<MixedDay> = played.collect::<Result<_, Error>>()?;
    let first: Vec<f64> = played[..days.len()]
        .iter()
        .map(|day| day.training_gpu_h)
        .collect();
    let rows = names
        .iter()
        .zip(played.chunks(days.len()))
        .enumerate()
        .map(|(place, (name, of_days))| {
            let more: Vec<f64> = of_days
                .iter()
                .zip(&first)
                .map(|(day, first)| 100.0 * (day.training_gpu_h / first - 1.0))
                .collect();
            MixedRow {
                autoscaler: name.clone(),
                days: of_days.to_vec(),
                more_training_pct: (place > 0).then(|| mean(&more)),
                more_training_interval: bootstrap_mean(&more, 0.95).filter(|_| place > 0),
            }
        });
    Ok(MixedComparison {
        capacity_per_s: bench.capacity_per_s,
        gpu_h: f64::from(bench.config.nodes * bench.config.gpus_per_node) * bench.config.hours,
        rows: rows.collect(),
    })
}

impl MixedComparison {
    /// Hits and training first.
    #[must_use]
    pub fn table(&self) -> Table {
        let first = &self.rows[0].autoscaler;
        let header = [
            "autoscaler",
            "hits %",
            "training GPU h",
            "% over the first",
            "serving GPU h",
            "moves",
            "preempted",
            "lost GPU h",
            "returned",
        ];
        let rows = self.rows.iter().map(|row| {
            let more = match (row.more_training_pct, row.more_training_interval) {
                (Some(more), Some((low, high))) => format!("{more:+.1} [{low:+.1}, {high:+.1}]"),
                (Some(more), None) => format!("{more:+.1}"),
                _ => String::new(),
            };
            vec![
                row.autoscaler.clone(),
                format!("{:.2}", row.hits_pct()),
                format!("{:.1}", row.training_gpu_h()),
                more,
                format!("{:.1}", row.over(|day| day.serving_gpu_h)),
                format!("{:.0}", row.over(|day| day.moves)),
                format!("{:.0}", row.over(|day| day.preemptions)),
                format!("{:.1}", row.over(|day| day.lost_gpu_h)),
                format!("{:.0}", row.over(|day| day.returned)),
            ]
        });
        let num_requests = self.rows[0].over(|day| day.num_requests);
        Table {
            header: header.map(str::to_string).to_vec(),
            rows: rows.collect(),
            notes: vec![
                format!(
                    "mean over {} days of {:.0} requests and {:.0} GPU h; the first is {first}",
                    self.rows[0].days.len(),
                    num_requests,
                    self.gpu_h
                ),
                format!(
                    "a replica serves {:.2} requests a second within the targets; training: work done and kept; lost: starts \
                     and lost work",
                    self.capacity_per_s
                ),
            ],
        }
    }
}
