//! Training jobs and a service of a language model on the same GPUs: days, and autoscalers that play them.

mod compare;
mod environment;
mod page;
mod search;
#[cfg(test)]
mod tests;
mod timeline;
mod tuned;

use std::path::Path;

use clap::Args;
use pleach_env::mixed::{MixedResult, ServiceSpec, simulate_mixed};
use pleach_env::workload::JobSpec;
use pleach_env::{Seed, SimConfig, Workload};
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use pleach_scheduler::{ConfigError, Time, heuristics};
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    AUTOSCALING, Autoscaler, Decision, Fleet, Pace, Requests, Router, ScorerAutoscaler, Targets, autoscaler,
    by_name, capacity_per_s,
};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::tree_over;
use crate::error::Error;
use crate::evaluate::flag_values;
use crate::progress::{Progress, Watcher};

use timeline::Played;

pub use compare::{MixedComparison, MixedRow, compare_mixed, compare_mixed_on};
pub use environment::Scaling;
pub use search::{AutoscalerSearch, SearchedAutoscaler, search_autoscaler};
pub use timeline::{MixedDay, Timeline};

/// Shortest and longest training job, h. *Assumed.*
const JOB_H: [f64; 2] = [2.0, 6.0];
/// Work of all jobs over what the GPUs could do in the time, so that jobs always wait. *Assumed.*
const WORK: f64 = 1.25;

/// Days before of which the usual rates are the mean, parts of a day, and requests that are drawn of each such day: the rate is
/// scaled down to them, and what is counted up again. *Assumed.*
const DAYS_BEFORE: u64 = 7;
const PARTS: usize = 96;
const REQUESTS_BEFORE: f64 = 50_000.0;
/// A day, s.
const DAY_S: f64 = 86_400.0;

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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = flag_values::whole::<u16>(1..=100),
        help_heading = "Requests")]
    pub lists: u16,
    /// Language model: llama-3-8b, mistral-7b, qwen-2.5-7b, qwen-2.5-14b, llama-3-70b, mixtral-8x7b
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
    /// GPUs of a replica, all of one node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u8>(1..=8),
        help_heading = "Service")]
    pub replica_gpus: u8,
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
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = flag_values::whole::<u32>(1..=512),
        help_heading = "Training")]
    pub nodes: u32,
    /// GPUs of each node
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = flag_values::whole::<u32>(1..=8),
        help_heading = "Training")]
    pub gpus_per_node: u32,
    /// GPUs of each training job
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u32>(1..=4096),
        help_heading = "Training")]
    pub gang: u32,
    /// What a restart costs a job, s
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = flag_values::not_negative, help_heading = "Training")]
    pub restart_s: f64,
    /// Work between two checkpoints, s: a job that is stopped loses what it did since [default: it saves first]
    #[arg(long, value_name = "S", value_parser = flag_values::positive, help_heading = "Training")]
    pub checkpoint_s: Option<f64>,
    /// Scheduler of the jobs on the GPUs that are left: a heuristic by name
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
            replica_gpus: 1,
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
            checkpoint_s: None,
            policy: "fifo".into(),
        }
    }
}

/// A day: its requests and its jobs.
pub struct Day {
    requests: Requests,
    /// Rates of the parts of a day, 1/s, as the days before had them.
    usual_per_s: Vec<f64>,
    workload: Workload,
    seed: u64,
}

/// Requests of a step that is told. *Ours*: some hundredths of a second.
const STEP_REQUESTS: usize = 4_096;

impl Day {
    /// Steps that its play tells.
    fn num_steps(&self) -> usize {
        self.requests.rows().len() / STEP_REQUESTS
    }
}

/// A router that tells how far a day is.
struct Counted<'a> {
    inner: Box<dyn Router>,
    num_routed: usize,
    watcher: &'a Watcher,
}

impl Router for Counted<'_> {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, ConfigError> {
        self.num_routed += 1;
        if self.num_routed.is_multiple_of(STEP_REQUESTS) {
            self.watcher.tell(Progress::Step);
        }
        self.inner.route(decision)
    }
}

/// A cluster with its service, ready to play days.
pub struct MixedBench {
    config: MixedConfig,
    fleet: Fleet,
    /// Requests a second that a replica serves within the targets.
    pub capacity_per_s: f64,
}

impl MixedBench {
    /// Checks the settings and measures what a replica serves.
    ///
    /// # Errors
    /// A setting that cannot be used.
    pub fn new(config: &MixedConfig) -> Result<MixedBench, Error> {
        // Settings come by flags, which have these ranges, and by name, which have none.
        let num_gpus = config.nodes.saturating_mul(config.gpus_per_node);
        for (key, value, most) in [
            ("nodes", config.nodes, 512),
            ("gpus_per_node", config.gpus_per_node, 8),
            ("gang", config.gang, num_gpus.min(4_096)),
            ("replica_gpus", config.replica_gpus.into(), config.gpus_per_node),
        ] {
            if !(1..=most).contains(&value) {
                let allowed = format!("1 to {most}");
                return Err(Error::config(
                    key,
                    value,
                    allowed,
                    "Take more or larger nodes, or smaller gangs and replicas.",
                ));
            }
        }
        heuristics::by_name(&config.policy)?;
        by_name(&config.router, 0)?;
        let fleet = Fleet {
            pace: Pace::split(&config.model, &config.gpu, u32::from(config.replica_gpus))?,
            num_replicas: (config.nodes * (config.gpus_per_node / u32::from(config.replica_gpus))) as usize,
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
            config: config.clone(),
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
            usual_per_s: usual(&generator, seed)?,
            workload: self.jobs(seed),
            seed: seed.child("router", 0).0,
        })
    }

    /// More work than the GPUs can do, all of it there at the beginning.
    fn jobs(&self, seed: Seed) -> Workload {
        let (config, mut rng) = (&self.config, seed.stream("jobs", 0));
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
                // Stopped jobs are given no time: any state is too much to save.
                checkpoint_interval_s: config.checkpoint_s,
                state_gib: f64::from(u8::from(config.checkpoint_s.is_some())),
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
    pub fn play(&self, day: &Day, autoscaler: &mut dyn Autoscaler) -> Result<Played, Error> {
        self.play_watched(day, autoscaler, &Watcher::nobody())
    }

    /// The same, with a step told for every [`STEP_REQUESTS`] that are routed.
    ///
    /// # Errors
    /// As [`MixedBench::play`].
    fn play_watched(
        &self,
        day: &Day,
        autoscaler: &mut dyn Autoscaler,
        watcher: &Watcher,
    ) -> Result<Played, Error> {
        let mut router = Counted {
            inner: by_name(&self.config.router, day.seed)?,
            num_routed: 0,
            watcher,
        };
        let mut policy = heuristics::by_name(&self.config.policy)?;
        let sim = SimConfig {
            capabilities: Capabilities {
                restart_cost_s: self.config.restart_s,
                checkpoint_interval_s: self.config.checkpoint_s,
                stop_grace_s: self.config.checkpoint_s.map(|_| 0.0),
                ..Capabilities::DEFAULT
            },
            ..SimConfig::default()
        };
        let service = ServiceSpec {
            requests: &day.requests,
            fleet: &self.fleet,
            replica_gpus: self.config.replica_gpus,
            router: &mut router,
            autoscaler,
            load_s: self.config.load_s,
            grace_s: self.config.grace_s,
            usual_per_s: &day.usual_per_s,
            record_routes: false,
        };
        let until = Some(Time::from_secs_f64(3_600.0 * self.config.hours));
        let result = simulate_mixed(&day.workload, &sim, &mut policy, vec![service], until)?;
        let num_gpus = self.config.nodes * self.config.gpus_per_node;
        let timeline = Timeline::of(&result, &day.requests, self.fleet.targets, num_gpus);
        Ok((self.figures(&result), timeline))
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

    /// GPUs x hours of a day.
    fn gpu_h(&self) -> f64 {
        f64::from(self.config.nodes * self.config.gpus_per_node) * self.config.hours
    }

    /// The autoscaler of a name, or a tree by file.
    ///
    /// # Errors
    /// One that is not there.
    pub fn autoscaler(&self, name: &str) -> Result<Box<dyn Autoscaler>, Error> {
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "json") {
            let tree = tree_over(&AUTOSCALING, path)?;
            return Ok(Box::new(ScorerAutoscaler::of_tree(&tree, self.capacity_per_s)?));
        }
        Ok(autoscaler(name, self.capacity_per_s)?)
    }
}

/// The rates that are usual at each part of a day: the mean of the days before.
fn usual(day: &RequestGenerator, seed: Seed) -> Result<Vec<f64>, Error> {
    let factor = (day.rate_per_s * DAY_S / REQUESTS_BEFORE).max(1.0);
    let before = RequestGenerator {
        rate_per_s: day.rate_per_s / factor,
        span_s: Some(DAY_S),
        ..day.clone()
    };
    let part_s = DAY_S / PARTS as f64;
    let mut rates = vec![0.0; PARTS];
    for number in 0..DAYS_BEFORE {
        let list = before.draw(seed.child("days before", number))?;
        for request in list.rows() {
            rates[(request.arrival_s / part_s) as usize % PARTS] += factor / (part_s * DAYS_BEFORE as f64);
        }
    }
    Ok(rates)
}
