//! A job that is asked about, and what could be asked for instead.

use std::collections::BTreeMap;

use pleach_env::workload::{JobSpec, Observed, Workload, num_gpus_by_type};
use pleach_scheduler::cluster_spec::ModelClass;
use pleach_scheduler::{Tasks, Time};
use serde::Deserialize;

use crate::error::Error;
use crate::evaluate::metric::show_seconds;

/// Other partitions and types that are tried. *Ours*.
const TRIED: usize = 3;
/// GPUs of a job, at most.
const GPUS_MAX: u32 = 1 << 20;

/// What a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// GPUs, at least 1.
    pub gpus: u32,
    /// Time limit, s.
    pub time_s: Option<f64>,
    /// Nodes, evenly; none: as few as it takes.
    pub nodes: Option<u32>,
    /// Partition or queue.
    pub partition: Option<String>,
    /// GPU type.
    pub gpu_type: Option<String>,
    /// The user, as the list has it.
    pub user: Option<String>,
    /// A job that waits already, by its id in the list; then nothing else is asked.
    pub job: Option<String>,
    /// What could be asked for instead; none: what is usual.
    pub instead: Option<Vec<Ask>>,
}

/// A job in words and as a list has it.
type Named = (String, JobSpec);

impl Ask {
    /// Refuses what the list's cluster does not have.
    ///
    /// # Errors
    /// The first of these, with what is there.
    pub fn check(&self, workload: &Workload) -> Result<(), Error> {
        let types = &workload.cluster.gpu_types;
        if let Some(wanted) = &self.gpu_type
            && !types.iter().any(|kind| kind.name == *wanted)
        {
            let names: Vec<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
            let hint = "Leave it out for any.";
            return Err(Error::config("type", wanted, names.join(", "), hint));
        }
        let partitions = partitions(workload);
        if let Some(wanted) = &self.partition
            && !partitions.contains_key(wanted.as_str())
        {
            let names: Vec<&str> = partitions.keys().copied().collect();
            let hint = "Leave it out where the list names none.";
            return Err(Error::config("partition", wanted, names.join(", "), hint));
        }
        let most = num_gpus_by_type(&workload.cluster);
        let of_type = |(kind, num): (usize, &u32)| {
            let is_wanted = self
                .gpu_type
                .as_ref()
                .is_none_or(|wanted| types[kind].name == *wanted);
            if is_wanted { *num } else { 0 }
        };
        let most = most
            .iter()
            .enumerate()
            .map(of_type)
            .max()
            .unwrap_or(0)
            .min(GPUS_MAX);
        Error::refuse_if(
            !(1..=most).contains(&self.gpus),
            "gpus",
            self.gpus,
            format_args!("1 to {most}"),
            "A gang runs on one GPU type.",
        )?;
        if let Some(nodes) = self.nodes
            && (nodes == 0 || !self.gpus.is_multiple_of(nodes) || self.gpus / nodes > 64)
        {
            let allowed = format!("a divisor of {}, with at most 64 GPUs on each node", self.gpus);
            return Err(Error::config(
                "nodes",
                nodes,
                allowed,
                "Leave it out for as few as it takes.",
            ));
        }
        self.instead
            .iter()
            .flatten()
            .try_for_each(|other| other.check(workload))
    }

    /// In words: `8 GPUs for 12.0 h in partition long`.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = match self.gpus {
            1 => "1 GPU".to_owned(),
            gpus => format!("{gpus} GPUs"),
        };
        if let Some(nodes) = self.nodes {
            words.push_str(&format!(" on {nodes} nodes"));
        }
        if let Some(time_s) = self.time_s {
            words.push_str(&format!(" for {}", show_seconds(time_s)));
        }
        if let Some(partition) = &self.partition {
            words.push_str(&format!(" in partition {partition}"));
        }
        if let Some(kind) = &self.gpu_type {
            words.push_str(&format!(" of {kind}"));
        }
        words
    }

    /// The job, and what could be asked for instead: half the GPUs, half the time, another partition, another type. With them the
    /// classes of the list and those of jobs that are bound to a type.
    #[must_use]
    pub fn with_alternatives(&self, workload: &Workload) -> (Vec<ModelClass>, Vec<Named>) {
        let mut asks = vec![self.clone()];
        asks.extend(self.instead.iter().flatten().cloned());
        let mut add = |change: &dyn Fn(&mut Ask)| {
            let mut other = self.clone();
            change(&mut other);
            if self.instead.is_none() && other != *self && other.check(workload).is_ok() {
                asks.push(other);
            }
        };
        add(&|ask| {
            ask.gpus = (ask.gpus / 2).max(1);
            ask.nodes = ask.nodes.map(|nodes| (nodes / 2).max(1));
        });
        add(&|ask| ask.time_s = ask.time_s.map(|time_s| time_s / 2.0));
        let partitions = partitions(workload);
        if self.partition.is_some() {
            let mut names: Vec<(&str, usize)> = partitions.into_iter().collect();
            names.sort_by_key(|(name, num)| (std::cmp::Reverse(*num), *name));
            for (name, _) in names.into_iter().take(TRIED) {
                add(&|ask| ask.partition = Some(name.to_owned()));
            }
        }
        for kind in workload.cluster.gpu_types.iter().take(TRIED) {
            if workload.cluster.gpu_types.len() > 1 {
                add(&|ask| ask.gpu_type = Some(kind.name.clone()));
            }
        }
        let mut classes = workload.classes.clone();
        let named = asks
            .iter()
            .map(|ask| (ask.words(), ask.spec(workload, &mut classes)));
        let named = named.collect();
        (classes, named)
    }

    /// The job as the list would have it: account and quality of service are those of the user's last job, the class that of most
    /// jobs.
    fn spec(&self, workload: &Workload, classes: &mut Vec<ModelClass>) -> JobSpec {
        let of_user = |job: &&JobSpec| self.user.is_some() && job.user == self.user;
        let last = workload.jobs.iter().rev().find(of_user);
        let mut num_of = vec![0; workload.classes.len()];
        workload
            .jobs
            .iter()
            .for_each(|job| num_of[usize::from(job.class)] += 1);
        let common = (0..num_of.len()).max_by_key(|class| num_of[*class]).unwrap_or(0);
        let mut class = last.map_or(common, |job| usize::from(job.class));
        if let Some(wanted) = &self.gpu_type {
            let mut bound = classes[class].clone();
            for (speed, kind) in bound.speed.iter_mut().zip(&workload.cluster.gpu_types) {
                *speed = if kind.name == *wanted {
                    speed.max(1e-6)
                } else {
                    0.0
                };
            }
            class = classes.len();
            classes.push(bound);
        }
        let mut spec = JobSpec {
            estimate_s: self.time_s,
            user: self.user.clone(),
            tenant: last.map_or(0, |job| job.tenant),
            class: class as u16,
            ..JobSpec::new("asked", Time::ZERO, self.gpus, 1.0)
        };
        if let Some(nodes) = self.nodes {
            spec.resources.tasks = Tasks {
                tasks_per_node_max: 1,
                nodes_max: nodes as u16,
                ..Tasks::of((self.gpus / nodes) as u8)
            };
        }
        let before = last.and_then(|job| job.observed.as_deref());
        let partition = self.partition.clone();
        spec.observed = Some(Box::new(Observed {
            start: Time::ZERO,
            partition: partition.unwrap_or_else(|| before.map_or(String::new(), |of| of.partition.clone())),
            qos: before.map_or(String::new(), |of| of.qos.clone()),
            ..Observed::default()
        }));
        spec
    }
}

/// Partitions of a list with the jobs of each.
fn partitions(workload: &Workload) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for observed in workload.jobs.iter().filter_map(|job| job.observed.as_deref()) {
        if !observed.partition.is_empty() {
            *found.entry(observed.partition.as_str()).or_default() += 1;
        }
    }
    found
}
