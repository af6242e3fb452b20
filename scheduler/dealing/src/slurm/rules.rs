//! A site's settings with its names as numbers: partitions, limits and factors of a job.

use std::collections::BTreeMap;

use pleach_scheduler::JobLabels;

use super::config::{Each, Limit, Partition, Preempt, Qos, Scope, SlurmConfig};
use super::factors::Facts;
use super::features::{licences, matching};
use super::limits::{Allowed, Usage};
use super::nodes::{NodeSet, Nodes, Room};
use super::schedule::{Group, State, Waiting};

/// (limit, group of it).
type Places = Vec<(usize, u32)>;

/// The rules of a site on its nodes.
#[derive(Clone, Debug)]
pub struct Rules {
    config: SlurmConfig,
    partitions: Vec<NodeSet>,
    limits: Vec<Allowed>,
    groups: BTreeMap<(usize, String), u32>,
    nodes: Nodes,
}

impl Rules {
    /// The rules on these nodes; nodes that are not there count for nothing. `more` are limits beside those of the settings:
    /// places that the caller gives name them by their number behind those.
    #[must_use]
    pub fn new(config: &SlurmConfig, nodes: Nodes, more: Vec<Allowed>) -> Rules {
        let mut config = config.clone();
        if config.partitions.is_empty() {
            config.partitions.push(Partition::default());
        }
        let num_nodes = nodes.all.len();
        let of = |partition: &Partition| match partition.nodes.as_slice() {
            [] => NodeSet::of(0..num_nodes),
            some => NodeSet::of(
                some.iter()
                    .map(|node| *node as usize)
                    .filter(|node| *node < num_nodes),
            ),
        };
        let allowed = |limit: &Limit| Allowed {
            gpus: limit.gpus.map(u64::from),
            cpu_milli: limit.cpus.map(|cpus| u64::from(cpus) * 1000),
            nodes: limit.nodes.map(u64::from),
            jobs: limit.jobs.map(u64::from),
        };
        Rules {
            partitions: config.partitions.iter().map(of).collect(),
            limits: config.limits.iter().map(allowed).chain(more).collect(),
            groups: BTreeMap::new(),
            nodes,
            config,
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &SlurmConfig {
        &self.config
    }

    /// Empty nodes under these rules.
    #[must_use]
    pub fn state(&self) -> State {
        let usage = Usage::of(self.limits.clone());
        let mut state = State::new(self.nodes.clone(), usage, self.partitions.clone());
        state.groups = self.groups_of_jobs();
        state.licences = self.config.licences.values().copied().collect();
        state
    }

    /// Which jobs go for which.
    fn groups_of_jobs(&self) -> Vec<Group> {
        let (partitions, qos) = (&self.config.partitions, &self.config.qos);
        let below = |tier: u32| {
            let goes = move |of: &&Partition| of.preemptable && of.tier < tier;
            (0..)
                .zip(partitions)
                .filter(move |(_, of)| goes(of))
                .map(|(place, _)| place)
                .collect()
        };
        let named = |of: &Qos| {
            let is_named = |other: &&Qos| of.preempts.contains(&other.name);
            (0..)
                .zip(qos)
                .filter(|(_, other)| is_named(other))
                .map(|(place, _)| place)
                .collect()
        };
        match self.config.preempt {
            Preempt::None => Vec::new(),
            Preempt::Partition => partitions
                .iter()
                .map(|of| Group {
                    rank: of.tier,
                    preempts: below(of.tier),
                })
                .collect(),
            Preempt::Qos => qos
                .iter()
                .map(|of| Group {
                    rank: of.priority,
                    preempts: named(of),
                })
                .collect(),
        }
    }

    /// The group of a job, see [`State::groups`].
    #[must_use]
    pub fn group(&self, partition: usize, labels: JobLabels<'_>) -> usize {
        let mut all = self.config.qos.iter();
        match self.config.preempt {
            Preempt::Qos => all
                .position(|qos| qos.name == qos_of(labels))
                .unwrap_or(usize::MAX),
            _ => partition,
        }
    }

    /// The partition of a name; the first where there is none of it.
    #[must_use]
    pub fn partition(&self, name: &str) -> usize {
        let mut all = self.config.partitions.iter();
        all.position(|partition| partition.name == name).unwrap_or(0)
    }

    /// The nodes that a job may have: those of its partition with the features for which it asks. What is no rule about single nodes
    /// bounds nothing.
    #[must_use]
    pub fn among(&self, partition: usize, labels: JobLabels<'_>) -> NodeSet {
        let mut among = self.partitions[partition].clone();
        if let Some(has) = matching(labels.constraint, &self.config.features) {
            among.keep(&NodeSet::of(
                (0..).zip(has).filter(|(_, has)| *has).map(|(node, _)| node),
            ));
        }
        among
    }

    /// The licences that a job takes, by their places in [`State::licences`]. The list says that it ran: of those that are not known
    /// here, or too few, it takes none.
    #[must_use]
    pub fn licences(&self, labels: JobLabels<'_>) -> Vec<(usize, u64)> {
        let asked = licences(labels.licences).unwrap_or_default();
        let place = |(name, num): &(&str, u64)| {
            let mut all = self.config.licences.iter().enumerate();
            all.find(|(_, (known, most))| known == name && num <= *most)
                .map(|(place, _)| (place, *num))
        };
        asked.iter().filter_map(place).collect()
    }

    /// `PriorityTier` of a partition.
    #[must_use]
    pub fn tier(&self, partition: usize) -> u32 {
        self.config.partitions[partition].tier
    }

    /// The limits that bound a job, and those that count it.
    #[must_use]
    pub fn places(&mut self, labels: JobLabels<'_>) -> (Places, Places) {
        let (mut bounds, mut counts) = (Places::new(), Places::new());
        let qos = qos_of(labels);
        for (number, limit) in self.config.limits.iter().enumerate() {
            let is_of = |scope: &Scope| {
                let has =
                    |names: &[String], name: &str| names.is_empty() || names.iter().any(|of| of == name);
                has(&scope.users, labels.user) && has(&scope.accounts, labels.account) && has(&scope.qos, qos)
            };
            let (is_bound, is_counted) = (is_of(&limit.bounds), is_of(&limit.counts));
            if !is_bound && !is_counted {
                continue;
            }
            let mut group = String::new();
            for each in &limit.each {
                group += match each {
                    Each::User => labels.user,
                    Each::Account => labels.account,
                };
                group.push('\n');
            }
            let next = self.groups.len() as u32;
            let place = (number, *self.groups.entry((number, group)).or_insert(next));
            bounds.extend(is_bound.then_some(place));
            counts.extend(is_counted.then_some(place));
        }
        (bounds, counts)
    }

    /// Billing units of a job. Where a list does not say its cores, it has one with each GPU (*assumed*): shares of use are the
    /// same for any other number.
    #[must_use]
    pub fn billing(&self, job: &Waiting) -> f64 {
        let [cpu, gpu, memory_gib] = self.config.partitions[job.partition].billing;
        let each = job.ask.of_each;
        let cores = match each.cpu_milli {
            0 => f64::from(each.gpus),
            milli => milli as f64 / 1000.0,
        };
        let of_each = cpu * cores + gpu * f64::from(each.gpus) + memory_gib * each.memory_mib as f64 / 1024.0;
        f64::from(job.ask.nodes) * of_each
    }

    /// What the factors of a job are made of, but for its age and its user's share. Cores that a list does not say count as none:
    /// in proportion to GPUs they explain less of the recorded starts (64 in place of 80 % of one list), for most jobs ask for
    /// fewer.
    #[must_use]
    pub fn facts(&self, job: &Waiting, labels: JobLabels<'_>) -> Facts {
        let nodes = f64::from(job.ask.nodes);
        let sum = |set: &NodeSet, of: fn(&Room) -> f64| -> f64 {
            let total: f64 = set.iter().map(|node| of(&self.nodes.all[node])).sum();
            total.max(1.0)
        };
        let all = NodeSet::of(0..self.nodes.all.len());
        let own = &self.partitions[job.partition];
        let gpus = |room: &Room| f64::from(room.gpus);
        let cpu_milli = nodes * job.ask.of_each.cpu_milli as f64;
        let cpu = |room: &Room| room.cpu_milli as f64;
        let part = |value: u32, all: &mut dyn Iterator<Item = u32>| {
            f64::from(value) / f64::from(all.max().unwrap_or(0).max(1))
        };
        let partitions = &self.config.partitions;
        let qos = self.config.qos.iter().find(|qos| qos.name == qos_of(labels));
        Facts {
            nodes: nodes / self.nodes.all.len().max(1) as f64,
            cpus_of_cluster: cpu_milli / sum(&all, cpu),
            cpus: cpu_milli / sum(own, cpu),
            gpus: nodes * f64::from(job.ask.of_each.gpus) / sum(own, gpus),
            partition: part(
                partitions[job.partition].job_factor,
                &mut partitions.iter().map(|partition| partition.job_factor),
            ),
            qos: part(
                qos.map_or(0, |qos| qos.priority),
                &mut self.config.qos.iter().map(|qos| qos.priority),
            ),
            ..Facts::default()
        }
    }
}

/// Its quality of service; Slurm's own where it names none.
fn qos_of(labels: JobLabels<'_>) -> &str {
    if labels.qos.is_empty() {
        "normal"
    } else {
        labels.qos
    }
}
