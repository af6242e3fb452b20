//! Fragmentation gradient descent: a task goes where it adds least to what the tasks to come cannot use.
//!
//! Tasks are taken by arrival; those that do not fit are passed over; nothing is ever moved. A task of one part of a GPU may
//! go to any GPU that has so much left, one of whole GPUs to free GPUs of one node. Other scores for the same search are
//! the rivals of the paper's evaluation.
//!
//! # Source
//! Weng et al., Beware of Fragmentation (ATC'23), section 4.2, and hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0),
//! read for its behaviour: the released score is 100 · sigmoid(-growth / 1000), whose largest value is the least growth.
//!
//! # Deviations
//! - The mix of tasks is counted as they come, and counted anew when there are a twentieth more (*ours*); the paper takes a
//!   known mix. Classes beyond the most frequent 95 % do not count, as in the released code (from memory).
//! - Every task has GPUs: tasks of CPU alone do not exist here.
//! - A gang that no node could hold, or whose tasks may not all share one, is spread by the cluster's own placement.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::{Cluster, Demand, NodeState, Placement, Slice};
use pleach_scheduler::{ConfigError, JobId, NodeId, Planner, PolicyError};
use serde::{Deserialize, Serialize};

use super::fragment::{Room, TaskClass};
use super::mix::{Mix, any_tenant};
use super::rivals;
use crate::shared::allocate_by_priority::tightest;
use crate::shared::settings::check;

/// Settings of [`Fgd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FgdConfig {
    /// What decides where a task goes.
    pub score: Score,
    /// Part of the tasks seen that the classes which count make up, 0 to 1.
    pub covers: f64,
    /// The mix is counted anew when there are so many more tasks, as a part, 0 to 10. *Ours.*
    pub relearn: f64,
}

/// What decides where a task goes; least wins, ties to the lowest node and GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// Growth of the expected fragmentation.
    #[default]
    Fgd,
    /// What the node has left afterwards over CPU, memory and GPUs, each as a part of the largest node's.
    BestFit,
    /// Dot product of what the task wants and what the node has, in the same parts.
    DotProduct,
    /// A shared GPU before a free one on a node in use before an idle node; within that, the least left.
    GpuPacking,
    /// A node whose tasks all ask for as many GPUs and as much of each, then one with some such, an idle one, the others; within that,
    /// the least left.
    GpuClustering,
    /// The lowest node, the lowest GPU.
    FirstFit,
}

impl Default for FgdConfig {
    fn default() -> FgdConfig {
        FgdConfig {
            score: Score::Fgd,
            covers: 0.95,
            relearn: 0.05,
        }
    }
}

/// Where a task would go on a node, and what that scores.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    score: f64,
    gpus: u64,
}

/// What a node was last seen with, and the choices worked out for it since.
#[derive(Clone, Debug, Default)]
struct Seen {
    room: Room,
    /// Fragmentation by the present mix; none = not worked out.
    fragmentation: Option<f64>,
    choices: BTreeMap<Demand, Option<Choice>>,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Fgd {
    config: FgdConfig,
    mix: Mix,
    /// `[node]`
    seen: Vec<Seen>,
    /// Demands that found no place since anything was last given back.
    refused: BTreeSet<Demand>,
}

impl Fgd {
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: FgdConfig) -> Result<Fgd, ConfigError> {
        let ok = (0.0..=1.0).contains(&config.covers);
        check("fgd", "covers", config.covers, ok, "0 to 1")?;
        let ok = (0.0..=10.0).contains(&config.relearn);
        check("fgd", "relearn", config.relearn, ok, "0 to 10")?;
        Ok(Fgd {
            mix: Mix::new(config.covers, config.relearn),
            config,
            seen: Vec::new(),
            refused: BTreeSet::new(),
        })
    }

    /// Counts a mix that is known beforehand: the jobs of `cluster`, which is thrown away. Later jobs count as well.
    pub fn learn(&mut self, cluster: &Cluster) {
        self.mix.look(cluster);
    }

    /// Notes what has changed on the nodes.
    fn look(&mut self, cluster: &Cluster) {
        self.seen.resize_with(cluster.nodes().len(), Seen::default);
        if self.mix.look(cluster) {
            for seen in &mut self.seen {
                seen.fragmentation = None;
                seen.choices.clear();
            }
        }
        for node in 0..self.seen.len() {
            if self.see(cluster, NodeId(node as u32)) {
                self.refused.clear();
            }
        }
    }

    /// Looks at one node again. Says whether it has anything more than before.
    fn see(&mut self, cluster: &Cluster, node: NodeId) -> bool {
        let room = Room::of(cluster, node);
        let seen = &mut self.seen[node.index()];
        let gained = room.has_more_than(&seen.room);
        if room != seen.room {
            *seen = Seen {
                room,
                ..Seen::default()
            };
        }
        gained
    }

    /// The best place for a job; none if no node has room.
    fn best(&mut self, cluster: &Cluster, id: JobId, demand: Demand, largest: [f64; 3]) -> Option<Slice> {
        let class = TaskClass::of(cluster, demand, 1.0);
        if class.num_gpus < demand.num_gpus || !may_share_a_node(cluster, demand) {
            return None;
        }
        let mut best: Option<(f64, Slice)> = None;
        for number in 0..self.seen.len() {
            let node = NodeId(number as u32);
            let known = self.seen[number].choices.get(&demand).copied();
            let choice = known.unwrap_or_else(|| {
                let choice = self.choose(cluster, id, node, &class, largest);
                self.seen[number].choices.insert(demand, choice);
                choice
            });
            if let Some(Choice { score, gpus }) = choice
                && best.is_none_or(|(least, _)| score < least)
            {
                best = Some((score, Slice { node, gpus }));
            }
        }
        best.map(|(_, slice)| slice)
    }

    /// The best GPUs of one node.
    fn choose(
        &mut self,
        cluster: &Cluster,
        id: JobId,
        node: NodeId,
        class: &TaskClass,
        largest: [f64; 3],
    ) -> Option<Choice> {
        let seen = &mut self.seen[node.index()];
        let room = &seen.room;
        if cluster.nodes()[node.index()].state != NodeState::Up || !room.holds(class) {
            return None;
        }
        let takes =
            |gpu: &u32| room.gpus[*gpu as usize] >= class.gpu_milli && cluster.takes_gpu(id, node, *gpu);
        let mut open: Vec<u32> = (0..room.gpus.len() as u32).filter(takes).collect();
        if open.len() < class.num_gpus as usize {
            return None;
        }
        // Least left first, of equals the lowest.
        open.sort_by_key(|gpu| (room.gpus[*gpu as usize], *gpu));
        let mask = |gpus: &[u32]| gpus.iter().fold(0_u64, |mask, gpu| mask | 1 << gpu);
        let candidates: Vec<u64> = if class.num_gpus == 1 && class.gpu_milli < 1000 {
            open.dedup_by_key(|gpu| room.gpus[*gpu as usize]);
            open.iter().map(|gpu| 1 << gpu).collect()
        } else {
            vec![mask(&open[..class.num_gpus as usize])]
        };
        let mix = self.mix.classes();
        let before = match (self.config.score, seen.fragmentation) {
            (Score::Fgd, None) => *seen.fragmentation.insert(room.fragmentation(mix)),
            (Score::Fgd, Some(known)) => known,
            _ => 0.0,
        };
        let tier = match self.config.score {
            Score::GpuClustering => rivals::cluster_tier(cluster, node, class),
            _ => 0.0,
        };
        let node = &cluster.nodes()[node.index()];
        let score = |gpus: u64| match self.config.score {
            Score::Fgd => room.without(class, gpus).fragmentation(mix) - before,
            Score::BestFit => rivals::best_fit(&room.without(class, gpus), largest),
            Score::DotProduct => rivals::dot_product(room, class, largest),
            Score::GpuPacking => rivals::gpu_packing(room, node.num_gpus, gpus),
            Score::GpuClustering => tier + f64::from(room.gpus.iter().sum::<u32>()),
            Score::FirstFit => 0.0,
        };
        let scored = candidates.into_iter().map(|gpus| Choice {
            score: score(gpus),
            gpus,
        });
        // Strictly less: of equal ones the GPU with least left.
        scored.reduce(|best, other| if other.score < best.score { other } else { best })
    }

    /// Whether any node that is up could hold the whole gang if it were empty.
    fn fits_a_node(cluster: &Cluster, demand: Demand) -> bool {
        let class = TaskClass::of(cluster, demand, 1.0);
        class.num_gpus == demand.num_gpus
            && may_share_a_node(cluster, demand)
            && cluster.nodes().iter().any(|node| {
                let room = Room {
                    gpu_type: node.gpu_type.0,
                    cpu_milli: u64::from(node.cpu_milli),
                    memory_mib: u64::from(node.memory_mib),
                    gpus: vec![1000; node.num_gpus as usize],
                };
                node.state == NodeState::Up && room.holds(&class)
            })
    }
}

/// Whether one node may have the whole gang.
fn may_share_a_node(cluster: &Cluster, demand: Demand) -> bool {
    let tasks = cluster.shape(demand.shape).tasks;
    tasks.num_on(demand.num_gpus) == demand.num_gpus
}

impl Planner for Fgd {
    fn name(&self) -> &str {
        "fgd"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.look(cluster);
        let mut pending: Vec<JobId> = cluster.pending().collect();
        pending.sort_unstable();
        let largest = rivals::largest(cluster);
        let mut slices = Vec::new();
        for id in pending {
            let asked = cluster.demand(id);
            let demand = any_tenant(asked);
            if self.refused.contains(&demand) || !cluster.has_room(asked) {
                continue;
            }
            let on_one = self.best(cluster, id, demand, largest);
            let placement = match on_one {
                Some(slice) => Some(Placement::from_slice(&[slice])),
                None if Fgd::fits_a_node(cluster, demand) => None,
                None => tightest(cluster, id, &mut slices),
            };
            let Some(placement) = placement else {
                self.refused.insert(demand);
                continue;
            };
            let nodes: Vec<NodeId> = placement.iter().map(|slice| slice.node).collect();
            cluster.start(id, placement);
            for node in nodes {
                self.see(cluster, node);
            }
        }
        Ok(())
    }
}
