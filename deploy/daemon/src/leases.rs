//! Leases: replicas of services, which run without end, go before all jobs, and are stopped for none.
//!
//! Which jobs are leases is for an operator to say, and for a batch system to report ([`Terms::is_lease`]). Waiting leases are
//! placed before the policy is asked, an earlier one before a later one: on free GPUs; else they wait for GPUs whose jobs are
//! already being stopped; else, where jobs may be stopped, on those of the jobs whose stop loses least, by the simulator's rule
//! ([`Cluster::find_room`]); else free GPUs of one node are kept for them. A lease for which jobs are stopped is let go in a
//! later round, once the GPUs are free: nothing is lost where a driver ends in between. No job is stopped for a lease that then
//! cannot have its GPUs. A job that is stopped waits for the next round, for it still runs in this one.
//!
//! [`Terms::is_lease`]: crate::snapshot::Terms::is_lease

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::{Demand, Placement, Room, Slice};
use pleach_scheduler::decision::Action;
use pleach_scheduler::record::JobRecord;
use pleach_scheduler::{Cluster, JobId, NodeId};
use serde::{Deserialize, Serialize};

use crate::config::RoundSettings;
use crate::decided::planned;
use crate::fleet::{Fleet, keep};
use crate::memory::Memory;
use crate::record::Planned;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// Most times that a round looks for jobs to stop; leases beyond that get free GPUs alone, and are looked at first in the next
/// round, where the earlier ones wait for GPUs that are being given back. *Ours*: each is a look at every job that runs, and each
/// stop a request to the batch system. A count and not a time: a round that was written down is decided again to the same bits.
const SEARCHES_MAX: usize = 100;

/// Leases of the last round, for an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeaseStatus {
    /// Leases that run or were let go.
    pub num_placed: usize,
    /// GPUs that these hold.
    pub num_gpus: u32,
    /// Leases that wait.
    pub num_waiting: usize,
    /// Jobs that were stopped for leases since the driver began.
    pub num_stopped: u64,
}

impl LeaseStatus {
    /// Of a snapshot; none where there are no leases and never were.
    #[must_use]
    pub fn of(snapshot: &Snapshot, before: Option<&LeaseStatus>) -> Option<LeaseStatus> {
        let mut leases = snapshot.jobs.iter().filter(|job| job.terms.is_lease).peekable();
        if before.is_none() && leases.peek().is_none() {
            return None;
        }
        let mut status = LeaseStatus {
            num_stopped: before.map_or(0, |before| before.num_stopped),
            ..LeaseStatus::default()
        };
        for lease in leases {
            match lease.phase {
                Phase::Running | Phase::Released { .. } => {
                    status.num_placed += 1;
                    status.num_gpus = status.num_gpus.saturating_add(lease.num_gpus());
                }
                Phase::Waiting | Phase::Loose => status.num_waiting += 1,
                Phase::Blocked { .. } | Phase::Foreign { .. } => {}
            }
        }
        Some(status)
    }

    /// Takes in what became of the stops for leases: counts those that were sent, and remembers jobs that could not be stopped.
    pub(crate) fn hear(&mut self, planned: &[Planned], memory: &mut Memory, now_s: i64) {
        let stops = planned
            .iter()
            .filter(|planned| planned.decision.action == Action::Preempt);
        for planned in stops {
            if planned.outcome == "sent" {
                self.num_stopped += 1;
            } else if planned.outcome.starts_with("refused") {
                memory.not_stopped(planned.job(), now_s);
            }
        }
    }

    /// What an operator reads of it.
    #[must_use]
    pub fn told(&self) -> String {
        format!(
            "\nleases: {} hold {} GPU(s), {} wait; {} job(s) were stopped for leases",
            self.num_placed, self.num_gpus, self.num_waiting, self.num_stopped
        )
    }
}

/// Places the waiting leases in the tables; the decisions for them in their order, or none if it was too late, which is asked
/// before each. Leases that still wait and jobs that are stopped are in [`Fleet::left_out`].
///
/// [`Fleet::left_out`]: crate::fleet::Fleet::left_out
#[must_use]
pub fn place(
    fleet: &mut Fleet,
    snapshot: &Snapshot,
    memory: &Memory,
    settings: &RoundSettings,
    is_late: &mut dyn FnMut() -> bool,
) -> Option<Vec<Planned>> {
    let waiting = std::mem::take(&mut fleet.leases);
    if waiting.is_empty() {
        return Some(Vec::new());
    }
    let may_be_stopped = |job: &&JobSeen| job.phase == Phase::Running && !memory.stays(job.id);
    let running = snapshot.jobs.iter().filter(|_| settings.preemption);
    let running = running.filter(may_be_stopped);
    let mut round = Leases {
        stoppable: running.filter_map(|job| fleet.cluster.find(job.id)).collect(),
        leaving: (0..)
            .map(NodeId)
            .zip(&fleet.nodes)
            .filter_map(|(id, name)| Some((id, *snapshot.site.leaving.get(name)?)))
            .collect(),
        vacated: BTreeMap::new(),
        hopeless: BTreeSet::new(),
        searches_left: SEARCHES_MAX,
        planned: Vec::new(),
    };
    for record in &waiting {
        if is_late() {
            return None;
        }
        if let Err(why) = round.place(fleet, record) {
            fleet.left_out.insert(record.job, why);
        }
    }
    // What else these jobs held is the policy's once they have left.
    for (node, gpus) in round.vacated {
        let gpus = gpus & fleet.cluster.nodes()[node.index()].free;
        if gpus != 0 {
            fleet.cluster.keep(&[Slice { node, gpus }]);
        }
    }
    // They run until they have left: nothing of theirs can start before.
    for planned in &round.planned {
        if planned.decision.action == Action::Preempt {
            fleet.cluster.withdraw(planned.decision.row);
            let why = "it is being stopped for a lease";
            fleet.left_out.insert(planned.job(), why.to_owned());
        }
    }
    Some(round.planned)
}

/// The leases of a round under way.
struct Leases {
    /// Jobs that may be stopped.
    stoppable: BTreeSet<JobId>,
    /// GPUs of jobs that are already being stopped, without those for which a lease of this round waits.
    leaving: BTreeMap<NodeId, u32>,
    /// GPUs of jobs that are stopped in this round.
    vacated: BTreeMap<NodeId, u64>,
    /// Demands for which there is no room, as long as no other job is stopped.
    hopeless: BTreeSet<Demand>,
    /// How often jobs to stop may still be looked for.
    searches_left: usize,
    planned: Vec<Planned>,
}

impl Leases {
    /// Places a lease; why it waits, where it does.
    fn place(&mut self, fleet: &mut Fleet, record: &JobRecord) -> Result<(), String> {
        let cluster = &mut fleet.cluster;
        let demand = cluster.demand_of(&record.request);
        let demand = demand.map_err(|error| format!("it is a lease, and {error}"))?;
        if !self.hopeless.contains(&demand) {
            if let Some(room) = cluster.find_room(demand, &|_| false) {
                return self.grant(fleet, record, &room);
            }
            if let Some(node) = self.leaving_for(cluster, demand) {
                let why = format!(
                    "it is a lease and waits for GPUs of {}",
                    fleet.nodes[node.index()]
                );
                return Err(why + " that are being given back");
            }
            if !self.stoppable.is_empty() {
                let Some(left) = self.searches_left.checked_sub(1) else {
                    let why = "it is a lease, and for earlier ones jobs to stop were looked for";
                    return Err(format!("{why} {SEARCHES_MAX} times, as often as in a round"));
                };
                self.searches_left = left;
            }
            if let Some(room) = cluster.find_room(demand, &|id| self.stoppable.contains(&id)) {
                return self.grant(fleet, record, &room);
            }
            self.hopeless.insert(demand);
        }
        let kept = keep_most(cluster, demand, &self.leaving);
        let on = kept.map_or_else(String::new, |node| {
            let name = &fleet.nodes[node.index()];
            format!("; free GPUs of {name} are kept for it")
        });
        Err(format!("it is a lease, and no node has the GPUs for it{on}"))
    }

    /// Starts a lease in the tables, and stops the jobs that have to leave before it can. Nothing has changed where it is refused.
    fn grant(&mut self, fleet: &mut Fleet, record: &JobRecord, room: &Room) -> Result<(), String> {
        let cluster = &mut fleet.cluster;
        let admitted = cluster.admit_lease(record);
        let admitted = admitted.map_err(|error| format!("it is a lease, and {error}"))?;
        for (job, _) in &room.stopped {
            cluster.preempt(*job);
            // More may be free now than the lease takes.
            self.hopeless.clear();
        }
        cluster.start(admitted, room.placement.clone());
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        let stops = decisions
            .iter()
            .filter(|decision| decision.action == Action::Preempt);
        for slice in stops.flat_map(|decision| &decision.placement) {
            *self.vacated.entry(slice.node).or_default() |= slice.gpus;
        }
        let is_vacated =
            |slice: &Slice| self.vacated.get(&slice.node).copied().unwrap_or(0) & slice.gpus != 0;
        let waits = room.placement.iter().any(is_vacated);
        for mut decision in decisions {
            let loss = room.stopped.iter().find(|(id, _)| *id == decision.row);
            let why = match (loss, waits) {
                (Some((_, loss_gpu_s)), _) => format!(
                    "stopped for the lease {}: of the jobs that could make room for it this loses least, {loss_gpu_s:.0} GPU s\n",
                    record.job
                ),
                (None, true) => {
                    decision.action = Action::Reserve;
                    decision.placement = Placement::new();
                    "a lease, before all jobs: let go once its GPUs are free\n".to_owned()
                }
                (None, false) => "a lease, before all jobs, on free GPUs\n".to_owned(),
            };
            let planned = planned(fleet, decision, &why);
            self.planned.push(Planned {
                // Of a lease nothing is believed.
                estimate_s: planned.estimate_s.filter(|_| loss.is_some()),
                ..planned
            });
        }
        Ok(())
    }

    /// The node where least of what is being given back is enough for a lease, with what is free there, which is kept for it.
    fn leaving_for(&mut self, cluster: &mut Cluster, demand: Demand) -> Option<NodeId> {
        let wanted = |node: NodeId| {
            demand
                .num_gpus
                .saturating_sub(cluster.nodes()[node.index()].num_free())
        };
        let open = self.leaving.iter().filter(|(node, num)| {
            let wanted = wanted(**node);
            cluster.is_open_to(demand, **node) && wanted <= **num
        });
        let (num, node) = open.map(|(node, _)| (wanted(*node), *node)).min()?;
        if let Some(left) = self.leaving.get_mut(&node) {
            *left -= num;
        }
        keep(cluster, node, demand.num_gpus);
        Some(node)
    }
}

/// Keeps the free GPUs of the node for a lease that lacks fewest of them; none where no node could have it or has anything free.
fn keep_most(cluster: &mut Cluster, demand: Demand, leaving: &BTreeMap<NodeId, u32>) -> Option<NodeId> {
    let nodes = (0..).map(NodeId).zip(cluster.nodes());
    let open = nodes.filter(|(id, node)| {
        let is_large = node.num_gpus >= demand.num_gpus && node.num_free() > 0;
        is_large && cluster.is_open_to(demand, *id)
    });
    let has = |(id, node): (NodeId, &pleach_scheduler::cluster::Node)| {
        let num = node.num_free() + leaving.get(&id).copied().unwrap_or(0);
        (std::cmp::Reverse(num), id)
    };
    let (_, node) = open.map(has).min()?;
    keep(cluster, node, demand.num_gpus);
    Some(node)
}
