//! Training jobs and a service of a language model on the same GPUs: days, and autoscalers that play them.

use pleach_env::mixed::{MixedResult, ServiceSpec, simulate_mixed};
use pleach_env::workload::JobSpec;
use pleach_env::{Seed, SimConfig, Workload};
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{Problem, Time, heuristics};
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Autoscaler, Decision, Fleet, Requests, Router, Targets, by_name, capacity_per_s};
use rand::RngExt as _;

use super::ServiceSettings;
use super::timeline::{MixedDay, Played, Timeline};
use crate::WorkloadSource;
use crate::error::Error;
use crate::progress::{Progress, Watcher};
use crate::worlds::requests::read;

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

/// A day: its requests and its jobs.
pub struct Day {
    requests: Requests,
    /// Rates of the parts of a day, 1/s, as the days before had them.
    pub(super) usual_per_s: Vec<f64>,
    workload: Workload,
    seed: u64,
}

/// What to do about sizes that do not fit.
const HINT: &str = "Take more or larger nodes, or smaller gangs and replicas.";

/// Requests in a step of progress. *Ours*: some hundredths of a second.
const STEP_REQUESTS: usize = 4_096;

impl Day {
    /// Steps of progress that its play reports.
    pub(super) fn num_steps(&self) -> usize {
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
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        self.num_routed += 1;
        if self.num_routed.is_multiple_of(STEP_REQUESTS) {
            self.watcher.tell(Progress::Step);
        }
        self.inner.route(decision)
    }
}

/// A cluster with its service, ready to play days.
pub struct MixedBench {
    pub(super) config: ServiceSettings,
    fleet: Fleet,
    /// Requests that are not drawn, from midnight on.
    requests: Option<Requests>,
    /// Jobs that are not drawn, on their own cluster.
    jobs: Option<Workload>,
    /// Requests a second that a replica serves within the targets.
    pub capacity_per_s: f64,
}

impl MixedBench {
    /// Checks the settings and measures what a replica serves.
    ///
    /// # Errors
    /// A setting that cannot be used.
    pub fn new(config: &ServiceSettings) -> Result<MixedBench, Error> {
        config.check_at("", HINT)?;
        let num_gpus = config.nodes * config.gpus_per_node;
        for (key, value, most) in [
            ("gang", config.gang, num_gpus),
            ("replica_gpus", config.replica_gpus.into(), config.gpus_per_node),
        ] {
            Error::refuse_if(
                config.jobs.is_none() && value > most,
                key,
                value,
                format_args!("1 to {most}"),
                HINT,
            )?;
        }
        heuristics::by_name(&config.policy)?;
        by_name(&config.router, 0)?;
        let jobs = config
            .jobs
            .as_deref()
            .map(|name| given_jobs(name, config))
            .transpose()?;
        let replica_gpus = u32::from(config.replica_gpus);
        let num_replicas: u32 = match &jobs {
            None => config.nodes * (config.gpus_per_node / replica_gpus),
            Some(workload) => {
                let groups = workload.cluster.node_groups.iter();
                groups
                    .map(|group| group.count * (group.gpus_per_node / replica_gpus))
                    .sum()
            }
        };
        let fleet = Fleet {
            pace: config.server()?.pace()?,
            num_replicas: num_replicas as usize,
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
            requests: config
                .requests
                .as_deref()
                .map(|path| Ok::<_, Error>(read(path)?.requests))
                .transpose()?,
            jobs,
            fleet,
            capacity_per_s,
        })
    }

    fn num_gpus(&self) -> u32 {
        match &self.jobs {
            Some(workload) => workload.cluster.num_gpus() as u32,
            None => self.config.nodes * self.config.gpus_per_node,
        }
    }

    /// A day of a seed, with so many times the requests.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn day(&self, seed: Seed, load: f64) -> Result<Day, Error> {
        let span_s = 3_600.0 * self.config.hours;
        let rate_per_s = self.requests.as_ref().map(Requests::rate_per_s);
        let generator = RequestGenerator {
            num_requests: pleach_serving::llm::REQUESTS_MAX as u32,
            rate_per_s: load * rate_per_s.unwrap_or(self.config.rate_per_s),
            burst: self.config.burst,
            is_daily: true,
            span_s: Some(span_s),
            ..RequestGenerator::default()
        };
        Ok(Day {
            requests: match &self.requests {
                Some(given) => given.faster(load)?,
                None => generator.draw(seed.child("requests", 0))?,
            },
            usual_per_s: usual(&generator, seed)?,
            workload: self.jobs.clone().unwrap_or_else(|| self.jobs(seed)),
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
        self.play_watched(day, autoscaler, &Watcher::silent())
    }

    /// The same, with a step reported for every [`STEP_REQUESTS`] that are routed.
    ///
    /// # Errors
    /// As [`MixedBench::play`].
    pub(super) fn play_watched(
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
        let timeline = Timeline::of(&result, &day.requests, self.fleet.targets, self.num_gpus());
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
    pub(super) fn gpu_h(&self) -> f64 {
        f64::from(self.num_gpus()) * self.config.hours
    }
}

/// A list of jobs beside the service.
fn given_jobs(name: &str, config: &ServiceSettings) -> Result<Workload, Error> {
    let source = WorkloadSource {
        cluster: config.cluster.clone(),
        ..WorkloadSource::of(name)
    };
    Ok(source.workload(source.only("played")?, Seed(0))?.0)
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
