//! Pollux's experiment with jobs that stay elastic: six applications, each of them a training of known length that runs on
//! any number of GPUs at its goodput there.
//!
//! What a job has to do is a number of useful samples; how long that takes on the gang that it asks for is its run time, so
//! rigid schedulers can run the same jobs. Gangs are those to which the experiment's users had tuned their jobs.
//!
//! # Source
//! Qiao et al., OSDI 2021, and its released artefact (Apache-2.0): useful samples are the iterations at the initial batch of
//! its recorded trainings; shares and gangs are counted in its eight job lists of 160 jobs in 8 h. Without `ncf` the split is
//! Sia's (SOSP 2023): 0.78 small, 0.154 medium, 0.046 large, 0.02 extra large. Throughput and noise scale:
//! `pleach_scheduler::physics::goodput`. Speeds of GPU types other than the T4 are *assumed*, as for `sia-*`.
//!
//! Not here: the hour of the day (the lists have a busy sixth hour; arrivals are Poisson).

use pleach_scheduler::cluster_spec::{ClusterSpec, ElasticJob, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::physics::goodput::Elastic;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{ConfigError, Time};

use super::poisson::set_arrivals;
use super::sia;
use super::{limits, pick};
use crate::Error;
use crate::seed::Seed;
use crate::{JobSpec, NUM_JOBS_MAX, Outcome, RUN_TIME_S_MAX, Workload, config};

settings! {
    /// Parameters of `pollux`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PolluxConfig {
        /// Jobs to draw, 1 to 10,000,000.
        pub num_jobs: usize = 160, in 1..=NUM_JOBS_MAX;
        /// Clusters of 64 GPUs that are put together, 1 to 10,000.
        pub num_clusters: u32 = 1, in 1..=10_000;
        /// Whether the cluster has three GPU types (Sia's); else all are T4 (Pollux's).
        pub heterogeneous: bool = false;
        /// Whether the short recommender jobs take part; Sia's lists leave them out.
        pub ncf: bool = true;
        /// Mean arrival rate; none, in files 0, = from the load.
        #[serde(with = "super::rate")]
        pub jobs_per_hour: Option<f64> = Some(20.0), in 1e-3..=1e6;
        /// Work of the gangs that are asked for over capacity, where no rate is given, 0.001 to 100.
        pub load: f64 = 0.8, in 0.001..=100.0;
        /// Most GPUs that a job may be given, 1 to 4096.
        pub gpus_max: u32 = 64, in 1..=4096;
        /// Longest run time on the gang that is asked for, s, at least 60: jobs beyond it are drawn again.
        pub run_time_s_max: f64 = 1e6, in 60.0..=RUN_TIME_S_MAX;
        /// Whether jobs carry a time limit.
        pub user_limits: bool = true;
    }
}

/// A training that is run again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Application {
    /// Name in the lists and in [`pleach_scheduler::physics::goodput::POLLUX_MODELS`].
    pub name: &'static str,
    /// Iterations at the initial batch until the training is done.
    pub iterations: f64,
    /// Jobs in the eight lists, and in Sia's split in thousandths.
    jobs: [f64; 2],
    /// (GPUs, jobs) in the eight lists.
    gangs: &'static [(u32, u32)],
}

/// The six applications.
pub const APPLICATIONS: [Application; 6] = [
    Application {
        name: "cifar10",
        iterations: 39_063.0,
        jobs: [495.0, 780.0],
        gangs: &[(6, 134), (8, 119), (12, 133), (16, 109)],
    },
    Application {
        name: "ncf",
        iterations: 194_174.0,
        jobs: [503.0, 0.0],
        gangs: &[(1, 503)],
    },
    Application {
        name: "bert",
        iterations: 14_774.0,
        jobs: [86.0, 77.0],
        gangs: &[(6, 23), (8, 18), (12, 20), (16, 25)],
    },
    Application {
        name: "deepspeech2",
        iterations: 28_536.0,
        jobs: [111.0, 77.0],
        gangs: &[(6, 34), (8, 34), (12, 43)],
    },
    Application {
        name: "yolov3",
        iterations: 103_444.0,
        jobs: [59.0, 46.0],
        gangs: &[(4, 59)],
    },
    Application {
        name: "imagenet",
        iterations: 576_526.0,
        jobs: [26.0, 20.0],
        gangs: &[(24, 9), (32, 9), (48, 8)],
    },
];

/// Points at which the goodput of a growing noise scale is taken.
const NUM_POINTS: u32 = 100;

impl Application {
    /// Its profile.
    ///
    /// # Errors
    /// A name that is no model, which is a fault of this table.
    pub fn profile(&self) -> Result<Elastic, ConfigError> {
        Elastic::from_name(self.name)
    }

    /// How long the whole training takes on so many GPUs of nodes of this size, s; none where it cannot run so.
    #[must_use]
    pub fn run_time_s(&self, profile: &Elastic, num_gpus: u32, node_gpus: u32) -> Option<f64> {
        let num_nodes = num_gpus.div_ceil(node_gpus.max(1));
        let samples = self.iterations * f64::from(profile.initial_batch) / f64::from(NUM_POINTS);
        let mut seconds = 0.0;
        for point in 0..NUM_POINTS {
            // The noise scale grows with the part of the samples that is done.
            let noise = profile.noise((f64::from(point) + 0.5) / f64::from(NUM_POINTS));
            seconds += samples / profile.best(num_gpus, num_nodes, noise)?.goodput;
        }
        Some(seconds)
    }
}

/// A row of a list: seconds, application, GPUs that are asked for.
pub type Row<'a> = (f64, &'a str, u32);

/// The workload of a list, on 64 GPUs of one type or of Sia's three; gangs are cut to what one type and `gpus_max` hold.
///
/// # Errors
/// An application that is not known, or an invalid list.
pub fn of_list(name: &str, rows: &[Row<'_>], heterogeneous: bool, gpus_max: u32) -> Result<Workload, Error> {
    let cluster = sia::cluster(heterogeneous, 1);
    let mut workload = Workload {
        name: name.into(),
        classes: classes(&cluster, gpus_max)?,
        jobs: Vec::new(),
        cluster,
    };
    for (number, (submit_s, application, num_gpus)) in rows.iter().enumerate() {
        let Some(class) = APPLICATIONS.iter().position(|known| known.name == *application) else {
            let names = APPLICATIONS.map(|known| known.name).join(", ");
            return Err(config(
                "application",
                application,
                &names,
                "see docs/workloads.md",
            ));
        };
        let job = job(&workload, number, class, *num_gpus)?;
        workload.jobs.push(JobSpec {
            submit: Time::from_secs_f64(submit_s.max(0.0)),
            ..job
        });
    }
    workload.jobs.sort_by_key(|job| job.submit);
    workload.validate()?;
    Ok(workload)
}

fn classes(cluster: &ClusterSpec, gpus_max: u32) -> Result<Vec<ModelClass>, Error> {
    let speed = sia::speeds(cluster);
    let classes = APPLICATIONS.iter().map(|application| {
        let profile = application.profile()?;
        Ok(ModelClass {
            name: application.name.into(),
            speed: speed.clone(),
            locality: LocalityFactors::PHILLY,
            elastic: Some(ElasticJob {
                gpus_max,
                profile: profile.into(),
            }),
            ..ModelClass::default()
        })
    });
    classes.collect()
}

/// A job of an application, submitted at once.
fn job(workload: &Workload, number: usize, class: usize, num_gpus: u32) -> Result<JobSpec, Error> {
    let groups = &workload.cluster.node_groups;
    let node_gpus = groups.iter().map(|group| group.gpus_per_node).max().unwrap_or(1);
    let of_type = |name: &str| -> u32 {
        let of_type = groups.iter().filter(|group| group.gpu_type == name);
        of_type.map(|group| group.count * group.gpus_per_node).sum()
    };
    let largest = workload
        .cluster
        .gpu_types
        .iter()
        .map(|gpu| of_type(&gpu.name))
        .max();
    let application = &APPLICATIONS[class];
    let profile = application.profile()?;
    let elastic = ElasticJob {
        gpus_max: num_gpus.max(1),
        profile: profile.into(),
    };
    let most = workload.classes[class]
        .elastic
        .map_or(1, |elastic| elastic.gpus_max);
    let mut num_gpus = num_gpus.min(largest.unwrap_or(1)).min(most).max(1);
    while num_gpus > 1 && !elastic.can_hold(num_gpus) {
        num_gpus -= 1;
    }
    // Where nodes differ the fewest nodes are those of the largest, as the cluster counts them.
    let run_time_s = application
        .run_time_s(&profile, num_gpus, node_gpus)
        .unwrap_or(RUN_TIME_S_MAX);
    Ok(JobSpec {
        id: format!("{}-{number}", application.name),
        submit: Time::ZERO,
        num_gpus,
        run_time_s,
        estimate_s: None,
        tenant: 0,
        class: class as u16,
        user: None,
        outcome: Outcome::Completed,
        resources: Resources::WHOLE_GPU,
        observed: None,
    })
}

impl PolluxConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.check_at("generator", "see docs/workloads.md")
    }
}

pub(super) fn generate(parameters: &PolluxConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = sia::cluster(parameters.heterogeneous, parameters.num_clusters);
    let mut workload = Workload {
        name: "pollux".into(),
        classes: classes(&cluster, parameters.gpus_max)?,
        jobs: Vec::new(),
        cluster,
    };
    // Every gang of every application that is short enough, with its weight.
    let (mut kinds, mut weights) = (Vec::new(), Vec::new());
    for (class, application) in APPLICATIONS.iter().enumerate() {
        let jobs = application.jobs[usize::from(!parameters.ncf)];
        let all: u32 = application.gangs.iter().map(|(_, jobs)| jobs).sum();
        for (num_gpus, of_gang) in application.gangs {
            let job = job(&workload, 0, class, *num_gpus)?;
            if job.run_time_s <= parameters.run_time_s_max {
                kinds.push(job);
                weights.push(jobs * f64::from(*of_gang) / f64::from(all));
            }
        }
    }
    Error::refuse_if(
        weights.iter().sum::<f64>() == 0.0,
        "generator.run_time_s_max",
        parameters.run_time_s_max,
        "long enough for one of the applications",
        "the shortest takes minutes",
    )?;
    let mut rng = seed.stream("jobs", 0);
    for number in 0..parameters.num_jobs {
        let job = &kinds[pick(&weights, &mut rng)];
        let factor = limits::draw_factor(&mut rng);
        let name = APPLICATIONS[usize::from(job.class)].name;
        workload.jobs.push(JobSpec {
            id: format!("{name}-{number}"),
            estimate_s: parameters
                .user_limits
                .then(|| limits::limit_s(job.run_time_s, factor)),
            ..job.clone()
        });
    }
    set_arrivals(&mut workload, parameters.jobs_per_hour, parameters.load, seed)?;
    Ok(workload)
}

#[cfg(test)]
#[path = "pollux_tests.rs"]
mod tests;
