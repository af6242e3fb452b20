//! The generator: a workload from a profile and its settings.
//!
//! Each work of the profile, each demand of it, and what tells jobs of one demand apart (cores, types that they accept, the model that
//! they train, spot or guaranteed) is a kind of job. A run of jobs draws its kind, its tenant and user and its run times; starts of
//! runs follow the hour, the weekday and a wandering rate.

use std::borrow::Cow;

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, ModelClass, Resources, TenantSpec};
use pleach_scheduler::physics::storage::Storage;
use pleach_scheduler::portable_math::pow;

use super::arrivals::Shape;
use super::even;
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::{Ends, Outcomes};
use super::pick;
use super::profile::{Constraints, Demand, Odds, Profile, Work, row};
use super::profile_config::ProfileConfig;
use super::quantiles::Curve;
use super::site::{
    any_class, capacity, gang_max, kinds_that_fit, scaled_cluster, tenants, tenants_with_room,
};
use crate::Error;
use crate::classes::facts_of;
use crate::plans::{Gang, Gpu, Model, Trained, Training, class_of, elastic_of};
use crate::seed::Seed;
use crate::{JobSpec, Outcome, Workload};

pub(super) fn generate(config: &ProfileConfig, seed: Seed) -> Result<Workload, Error> {
    let profile = &*config.profile;
    let cluster = config.cluster();
    let (classes, kinds) = config.kinds(&cluster)?;
    let length_max = profile
        .runs
        .length_max
        .unwrap_or(u32::MAX)
        .min(config.run_length_max);
    let habits = Habits {
        users: (profile.runs.users, profile.runs.user_exponent),
        run_time_correlation: profile.runs.run_time_correlation,
        length_max: (length_max as usize).min((config.num_jobs / 10).max(1)),
        run_time_s_max: config.run_time_s_max,
    };
    let kinds = kinds_that_fit(&cluster, &classes, kinds);
    if kinds.is_empty() {
        let hint = "more or larger nodes hold some of its jobs";
        let value = format!("{} of {}", config.num_nodes, profile.name);
        return Err(crate::config(
            "generator.num_nodes",
            value,
            "nodes that hold a job of the profile",
            hint,
        ));
    }
    let mix = Mix::new(kinds, habits);
    let arrivals = &profile.arrivals;
    let is_even = profile.even_from.is_some_and(|from| config.num_jobs >= from);
    let plan = Plan {
        name: &profile.name,
        num_jobs: config.num_jobs,
        is_even,
        load: config.load,
        user_limits: config.user_limits,
        shape: Shape {
            profile: config
                .daily_profile
                .then_some((&arrivals.hours, &arrivals.weekdays)),
            sigma: if config.bursty { arrivals.sigma } else { 0.0 },
            correlation: arrivals.correlation,
        },
        gaps_s: &profile.runs.gaps_s,
    };
    let mut workload = lay_out(&plan, &mix, cluster, classes, seed)?;
    if let Some(odds) = &profile.odds {
        draw_ends(&mut workload, odds, is_even, seed);
    }
    if !profile.models.is_empty() {
        workload.fill_class_facts(false);
    }
    Ok(workload)
}

/// How each job ends, by how long it ran and on how many GPUs: what fails fails early, what is stopped is large.
fn draw_ends(workload: &mut Workload, odds: &Odds, is_even: bool, seed: Seed) {
    let mut rng = seed.stream("ends", 0);
    let chances = |job: &JobSpec| {
        let minutes = job.run_time_s.max(1.0) / 60.0;
        let gpu_hours = job.gpus() * minutes / 60.0;
        let weights = [
            1.0,
            odds.failed.0 * pow(minutes, -odds.failed.1),
            odds.cancelled.0 * pow(gpu_hours, odds.cancelled.1),
        ];
        (gpu_hours, weights)
    };
    let jobs = &mut workload.jobs;
    let ends = match is_even {
        true => even::ends(&jobs.iter().map(chances).collect::<Vec<_>>()),
        false => jobs.iter().map(|job| pick(&chances(job).1, &mut rng)).collect(),
    };
    for (job, end) in jobs.iter_mut().zip(ends) {
        job.outcome = [Outcome::Completed, Outcome::Failed, Outcome::Killed][end];
    }
}

impl ProfileConfig {
    fn cluster(&self) -> ClusterSpec {
        let profile = &*self.profile;
        let chosen = profile.gpus.get(&self.gpus);
        let machines = chosen.map_or(&profile.machines, |fleet| &fleet.machines);
        let mut cluster = if machines.is_empty() {
            ClusterSpec::uniform(self.num_nodes, self.gpus_per_node, self.nodes_per_rack)
        } else {
            scaled_cluster(machines, self.num_nodes, self.nodes_per_rack)
        };
        cluster.fabric = chosen.map(|fleet| fleet.fabric).or(profile.fabric);
        if let (Some(fabric), Some(nodes)) = (&mut cluster.fabric, profile.pod_nodes) {
            fabric.between.racks_per_pod = nodes.div_ceil(self.nodes_per_rack);
            fabric.between.pod_oversubscription = self.pod_oversubscription;
        }
        if let Some(store) = profile.store_gb_s {
            let store = store * (f64::from(capacity(&cluster)) / 2000.0).max(1.0);
            cluster.storage = Some(Storage {
                read_gb_s: store,
                write_gb_s: store,
                ..Storage::default()
            });
        }
        if !profile.tenants.rows.is_empty() {
            cluster.tenants = self.tenants(&cluster);
            cluster.borrowing = self.borrowing;
        }
        cluster
    }

    fn tenants(&self, cluster: &ClusterSpec) -> Vec<TenantSpec> {
        let rows = &self.profile.tenants.rows;
        let num = if self.num_tenants == 0 {
            rows.len()
        } else {
            self.num_tenants
        };
        let shares: Vec<f64> = rows[..num].iter().map(|row| row.quota).collect();
        let mut named = tenants(&shares, capacity(cluster));
        for (tenant, row) in named.iter_mut().zip(rows) {
            if let Some(name) = &row.name {
                tenant.name.clone_from(name);
            }
        }
        named.extend(self.profile.spot.is_some().then(|| TenantSpec {
            name: "spot".into(),
            quota_gpus: 0,
        }));
        named
    }

    /// Classes, and the kinds of jobs that have them.
    fn kinds(&self, cluster: &ClusterSpec) -> Result<(Vec<ModelClass>, Vec<Kind<'_>>), Error> {
        let largest = gang_max(cluster, self.gang_max);
        let sets = self
            .profile
            .constraints
            .as_ref()
            .map(|sets| self.type_sets(sets, cluster));
        let (mut classes, sets) = sets.unwrap_or_default();
        let mut kinds = Vec::new();
        for (number, work) in self.profile.works.iter().enumerate() {
            let is_there = |name: &String| cluster.gpu_types.iter().any(|gpu| gpu.name == *name);
            if !work.gpu_type.as_ref().is_none_or(is_there) {
                continue;
            }
            // Without models and sets a work is a class.
            if sets.is_empty() && work.models.is_empty() {
                classes.push(ModelClass {
                    name: work.name.clone(),
                    ..any_class(cluster, self.locality)
                });
            }
            let of_work = classes.len().saturating_sub(1);
            for demand in work
                .mix
                .iter()
                .filter(|row| row.jobs > 0.0 && row.gpus <= largest)
            {
                let models = row(&work.models, demand.gpus).map_or(&[][..], Vec::as_slice);
                let first = classes.len();
                for model in models {
                    classes.push(self.class(work, demand, model, cluster)?);
                }
                // Share of the jobs by class.
                let by_class: Vec<(usize, f64)> = match (sets.is_empty(), models.len()) {
                    (false, _) => sets
                        .iter()
                        .map(|shares| shares[column_of(demand)])
                        .enumerate()
                        .collect(),
                    (true, 0) => vec![(of_work, 1.0)],
                    (true, num) => (first..first + num).map(|class| (class, 1.0)).collect(),
                };
                let part = models.len().max(1) as f64;
                for (cores, share) in self.cores(work, demand) {
                    for (class, of_class) in by_class.iter().filter(|(_, share)| *share > 0.0) {
                        let jobs = demand.jobs * share * of_class / part;
                        self.push(
                            &mut kinds,
                            (number, work),
                            demand,
                            (cores, jobs),
                            *class as u16,
                            cluster,
                        );
                    }
                }
            }
        }
        Ok((classes, kinds))
    }

    /// A kind of job; two where some of them are spot jobs.
    fn push<'a>(
        &'a self,
        kinds: &mut Vec<Kind<'a>>,
        (number, work): (usize, &'a Work),
        demand: &Demand,
        (cpu_cores, jobs): (f64, f64),
        class: u16,
        cluster: &ClusterSpec,
    ) {
        let profile = &*self.profile;
        let spot = profile.spot.as_ref();
        // Share of the jobs, and their share of long jobs over that of all.
        let parts = match spot {
            Some(spot) => vec![
                (
                    false,
                    1.0 - spot.share,
                    (1.0 - spot.share * spot.long) / (1.0 - spot.share),
                ),
                (true, spot.share, spot.long),
            ],
            None => vec![(false, 1.0, 1.0)],
        };
        for (is_spot, part, long) in parts {
            let weights = |tenant: usize| match (profile.tenants.rows.get(tenant), is_spot) {
                (Some(_), true) => 0.0,
                (Some(row), false) => row.weight * row.jobs[self.column(number, demand)],
                (None, is_spot) => f64::from(u8::from(is_spot || spot.is_none())),
            };
            kinds.push(Kind {
                jobs: jobs * part,
                num_gpus: demand.gpus,
                resources: Resources {
                    gpu_milli: if self.sharing { demand.gpu_milli } else { 1000 },
                    cpu_cores,
                    memory_gib: demand.memory_gib,
                    ..Resources::WHOLE_GPU
                },
                class,
                run_times: run_times(profile, work, demand, long),
                outcomes: match row(&work.ends, demand.gpus) {
                    Some(&Ends::Shares { killed, failed }) => Outcomes::Shares { killed, failed },
                    Some(Ends::Leaning(shares)) => {
                        let by_level = profile.ends_by_run_time.as_ref();
                        by_level.map_or(Outcomes::Unknown, |by_level| Outcomes::Leaning {
                            shares,
                            by_level,
                        })
                    }
                    None => Outcomes::Unknown,
                },
                lengths: row(&work.runs, demand.gpus)
                    .filter(|_| self.bursty)
                    .unwrap_or(&Lengths::One),
                tenants: tenants_with_room(cluster, demand.gpus, weights),
            });
        }
    }

    /// Column of a tenant's jobs.
    fn column(&self, work: usize, demand: &Demand) -> usize {
        let bounds = &self.profile.tenants.jobs_up_to;
        match bounds.is_empty() {
            true => work,
            false => bounds
                .iter()
                .position(|up_to| demand.gpus <= *up_to)
                .unwrap_or(bounds.len()),
        }
    }

    /// CPU cores for each GPU, and the share of the jobs that ask for so many.
    fn cores(&self, work: &Work, demand: &Demand) -> Vec<(f64, f64)> {
        match row(&work.cpu_cores, demand.gpus) {
            Some(rows) if self.cpu_requests => rows.clone(),
            _ => vec![(demand.cpu_cores, 1.0)],
        }
    }

    /// The classes of sets of types that some node of the cluster can run, any type first, and the share of each by column.
    fn type_sets(&self, sets: &Constraints, cluster: &ClusterSpec) -> (Vec<ModelClass>, Vec<[f64; 3]>) {
        let pods = |column: usize| -> f64 { sets.sets.iter().map(|set| f64::from(set.pods[column])).sum() };
        let published = [0, 1, 2].map(|column| {
            let typed = pods(column);
            (typed, typed + f64::from(sets.any[column]))
        });
        // The share of each column moves with the share of all.
        let typed = published.map(|(typed, all)| (typed / all * self.typed_share / sets.share).min(1.0));
        let any = any_class(cluster, self.locality);
        let (mut classes, mut shares) = (vec![any.clone()], vec![typed.map(|typed| 1.0 - typed)]);
        for set in &sets.sets {
            let accepts = |gpu: &GpuTypeSpec| f64::from(u8::from(set.types.contains(&gpu.name)));
            let speed: Vec<f64> = cluster.gpu_types.iter().map(accepts).collect();
            if self.typed_share == 0.0 || speed.iter().all(|speed| *speed == 0.0) {
                continue;
            }
            classes.push(ModelClass {
                name: set.types.join("|"),
                speed,
                ..any.clone()
            });
            shares.push(
                [0, 1, 2].map(|column| typed[column] * f64::from(set.pods[column]) / published[column].0),
            );
        }
        (classes, shares)
    }

    /// The class of a model on a gang: by its plan where one is known; on the type of its work alone, where that has one.
    fn class(
        &self,
        work: &Work,
        demand: &Demand,
        model: &str,
        cluster: &ClusterSpec,
    ) -> Result<ModelClass, Error> {
        let share = if demand.gpu_milli < 1000 { " half" } else { "" };
        let name = format!("{} x{}{share}: {model}", work.name, demand.gpus);
        let at = work.gpu_type.as_ref();
        let at = at.and_then(|name| cluster.gpu_types.iter().position(|gpu| gpu.name == *name));
        // For an unknown GPU type no plan is known.
        let plan = self.profile.models.get(model);
        let plan = plan.filter(|_| at.is_none_or(|at| Gpu::of(&cluster.gpu_types[at].name).is_some()));
        let mut class = match plan {
            Some(plan) => {
                let batch = plan
                    .batch
                    .unwrap_or((2 * demand.gpus.next_power_of_two()).clamp(256, 2048));
                let trained = if plan.adapters {
                    Trained::Adapters
                } else {
                    Trained::All
                };
                let training = Training {
                    trained,
                    ..Training::all(Model::from_name(&plan.plan)?, batch)
                };
                let mut alone = cluster.clone();
                if let Some(at) = at {
                    alone
                        .gpu_types
                        .retain(|gpu| gpu.name == cluster.gpu_types[at].name);
                }
                let made = class_of(&name, &Gang::new(training, demand.gpus), &alone)?;
                let gang = demand.gpus;
                let sizes = [gang / 4, gang / 2, gang, 2 * gang, 4 * gang];
                let elastic = match self.elastic && work.elastic {
                    true => elastic_of(&training, gang, &sizes, &made, &alone)?,
                    false => None,
                };
                ModelClass {
                    locality: self.locality,
                    elastic,
                    ..made
                }
            }
            None => self.whole(name, model, cluster),
        };
        if let Some(at) = at {
            class.speed = vec![0.0; cluster.gpu_types.len()];
            class.speed[at] = 1.0;
        }
        Ok(class)
    }

    /// The class of a model of which no plan is known: as fast on every type that has the memory that is published for it.
    fn whole(&self, name: String, model: &str, cluster: &ClusterSpec) -> ModelClass {
        let needs_gb = facts_of(model).map_or(0.0, |facts| facts.gpu_memory_gb);
        let holds = |gpu: &GpuTypeSpec| f64::from(u8::from(needs_gb <= gpu.memory_gib));
        ModelClass {
            name,
            speed: cluster.gpu_types.iter().map(holds).collect(),
            ..any_class(cluster, self.locality)
        }
    }
}

/// Run times of a demand's jobs: as published for its gang, or a part of them long.
fn run_times<'a>(profile: &'a Profile, work: &'a Work, demand: &Demand, part: f64) -> Cow<'a, Curve> {
    let Some(long) = &profile.long else {
        return row(&work.run_times, demand.size())
            .map_or_else(|| Cow::Owned(Curve::default()), Cow::Borrowed);
    };
    let share = demand.long * work.long_times * part;
    let short = row(&long.short, demand.gpus).map_or(&[][..], Vec::as_slice);
    let of_short = short.last().copied().unwrap_or(1.0);
    let short = short.iter().map(|level| level / of_short * (1.0 - share));
    let beyond = long.levels.iter().map(|level| 1.0 - share * (1.0 - level));
    Cow::Owned(Curve::new(short.chain(beyond).collect(), long.seconds.clone()))
}

/// Column of a table: a share of a GPU, one GPU, more.
fn column_of(demand: &Demand) -> usize {
    demand.size().min(2) as usize
}
