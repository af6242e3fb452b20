//! Why jobs wait: the waiting time of each job, divided into causes that sum to it exactly.
//!
//! The Philly study (Jeon et al., USENIX ATC 2019, section 3.1 and table 2) asks of every delayed job whether it waits for
//! its fair share or because of fragmentation: *fair share* where the tenant would exceed its quota with this gang,
//! *fragmentation* otherwise, that is, where there is quota left and yet no acceptable placement. We divide the second further, by what the
//! cluster has free while the job waits, in this order:
//!
//! | cause | the gang waits because |
//! |---|---|
//! | [`WaitCause::FairShare`] | GPUs its tenant holds + the gang > the tenant's quota |
//! | [`WaitCause::Availability`] | no GPU type that it can use has so many free GPUs |
//! | [`WaitCause::Fragmentation`] | so many are free, but not on as few nodes and racks as the cluster could offer, or without the cores and memory they need |
//! | [`WaitCause::HeldBack`] | they are free as tightly as can be, and the scheduler kept them: a blocking queue, a reservation |
//!
//! [`Waits::philly`] folds the last three into Philly's second. In Philly a job that finds no tight placement keeps waiting; here a
//! policy may also accept a loose one, and then the gang does not wait at all.
//!
//! Jobs of one tenant, gang size and set of GPU types share a cause, so an event costs one look at each waiting
//! *demand*; a demand's clocks run, and a job takes the difference between leaving and entering. Clocks are integers, so
//! the causes sum to the waiting time to the microsecond. What is refused: guessing what the job *would* have waited without
//! the others; a cause is a state of the cluster and no counterfactual.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Demand, Slice, Template};
use pleach_scheduler::{ClassId, JobId, Time};

/// Why a gang waits at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitCause {
    /// Its tenant would exceed its quota.
    FairShare,
    /// Too few GPUs are free.
    Availability,
    /// Enough GPUs are free, but not tightly.
    Fragmentation,
    /// The scheduler could have started it and did not.
    HeldBack,
}

impl WaitCause {
    /// All causes, in the order in which they are asked for.
    pub const ALL: [WaitCause; 4] = [
        WaitCause::FairShare,
        WaitCause::Availability,
        WaitCause::Fragmentation,
        WaitCause::HeldBack,
    ];

    /// The word used in tables and files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            WaitCause::FairShare => "fair-share",
            WaitCause::Availability => "capacity",
            WaitCause::Fragmentation => "fragmentation",
            WaitCause::HeldBack => "held-back",
        }
    }
}

/// A waiting time by cause, in the order of [`WaitCause::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits([Time; 4]);

impl Waits {
    /// The part of one cause.
    #[must_use]
    pub fn of(&self, cause: WaitCause) -> Time {
        self.0[cause as usize]
    }

    /// All causes together: the whole time in the queue.
    #[must_use]
    pub fn total(&self) -> Time {
        self.0.iter().fold(Time::ZERO, |sum, part| sum + *part)
    }

    /// Philly's two causes: (fair share, fragmentation).
    #[must_use]
    pub fn philly(&self) -> (Time, Time) {
        let fair_share = self.of(WaitCause::FairShare);
        (fair_share, self.total() - fair_share)
    }

    /// The cause with the longest part, the first of equals; none where nothing was waited.
    #[must_use]
    pub fn main(&self) -> Option<WaitCause> {
        let longest = self
            .0
            .iter()
            .copied()
            .max()
            .filter(|longest| *longest > Time::ZERO)?;
        WaitCause::ALL
            .into_iter()
            .find(|cause| self.of(*cause) == longest)
    }

    fn add(&mut self, cause: WaitCause, span: Time) {
        let part = &mut self.0[cause as usize];
        *part = *part + span;
    }

    fn add_difference(&mut self, later: &Waits, earlier: &Waits) {
        for (index, part) in self.0.iter_mut().enumerate() {
            *part = *part + (later.0[index] - earlier.0[index]);
        }
    }
}

/// The waiting jobs of one demand.
#[derive(Clone, Debug)]
struct Group {
    demand: Demand,
    /// Its first job, which stands for all: they ask for the same.
    first: JobId,
    class: ClassId,
    num_waiting: u32,
    /// Present cause; none between the first job's arrival and the end of that instant.
    cause: Option<WaitCause>,
    since: Time,
    clocks: Waits,
}

impl Group {
    /// Brings the clock of the present cause up to `now`.
    fn wind(&mut self, now: Time) {
        if let Some(cause) = self.cause {
            self.clocks.add(cause, now - self.since);
        }
        self.since = now;
    }
}

/// One job's account.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Row of its group.
    group: usize,
    /// The group's clocks when it began to wait.
    entered: Waits,
    /// What it waited up to the last time it left the queue.
    waits: Waits,
}

/// Divides waiting time into causes while a world runs.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    groups: Vec<Group>,
    rows: BTreeMap<Demand, usize>,
    /// Rows of groups with waiting jobs, in no particular order.
    active: Vec<usize>,
    /// `[num_jobs so far]`
    accounts: Vec<Account>,
    scratch: Vec<Slice>,
}

impl Attribution {
    /// A job has joined the queue: submitted or preempted.
    pub(crate) fn entered(&mut self, cluster: &Cluster, id: JobId) {
        let demand = cluster.demand(id);
        let next = self.groups.len();
        let row = *self.rows.entry(demand).or_insert(next);
        if row == next {
            self.groups.push(Group {
                demand,
                first: id,
                class: cluster.job(id).request.class,
                num_waiting: 0,
                cause: None,
                since: Time::ZERO,
                clocks: Waits::default(),
            });
        }
        let group = &mut self.groups[row];
        group.wind(cluster.now());
        if group.num_waiting == 0 {
            self.active.push(row);
        }
        group.num_waiting += 1;
        if self.accounts.len() <= id.index() {
            self.accounts.resize(id.index() + 1, Account::default());
        }
        let account = &mut self.accounts[id.index()];
        (account.group, account.entered) = (row, group.clocks);
    }

    /// A job has left the queue.
    pub(crate) fn left(&mut self, now: Time, id: JobId) {
        let account = &mut self.accounts[id.index()];
        let group = &mut self.groups[account.group];
        group.wind(now);
        account.waits.add_difference(&group.clocks, &account.entered);
        group.num_waiting -= 1;
        if group.num_waiting == 0 {
            group.cause = None;
            let row = account.group;
            self.active.retain(|other| *other != row);
        }
    }

    /// All is decided at the present instant: finds the cause that holds from now on.
    pub(crate) fn settle(&mut self, cluster: &Cluster) {
        for &row in &self.active {
            let group = &mut self.groups[row];
            let cause = cause(cluster, group, &mut self.scratch);
            if group.cause != Some(cause) {
                group.wind(cluster.now());
                group.cause = Some(cause);
            }
        }
    }

    /// What each job waited up to the last time that it left the queue, by job. `[num_jobs submitted]`
    #[must_use]
    pub fn waits(&self) -> Vec<Waits> {
        self.accounts.iter().map(|account| account.waits).collect()
    }
}

/// The cause that keeps a waiting demand from running now.
fn cause(cluster: &Cluster, group: &Group, scratch: &mut Vec<Slice>) -> WaitCause {
    let (demand, tenant) = (group.demand, cluster.tenant(group.demand.tenant));
    let milli = u64::from(demand.num_gpus) * u64::from(cluster.shape(demand.shape).gpu_milli);
    if tenant.used_milli + milli > u64::from(tenant.quota_gpus) * 1000 {
        return WaitCause::FairShare;
    }
    let mut cause = WaitCause::Availability;
    for kind in cluster.types_in(demand.types) {
        scratch.clear();
        if cluster.place_job(Template::Fastest, kind, group.first, scratch) {
            let tasks = cluster.shape(demand.shape).tasks;
            let facts = cluster.facts(group.class, tasks, scratch);
            let one_rack = facts.num_racks <= 1 || !one_rack_could_hold(cluster, demand);
            if facts.num_nodes <= facts.num_nodes_min && one_rack {
                return WaitCause::HeldBack;
            }
            cause = WaitCause::Fragmentation;
        } else if cluster.num_free_of(kind) >= demand.num_gpus {
            // GPUs without cores or memory beside them.
            cause = WaitCause::Fragmentation;
        }
    }
    cause
}

/// Whether some rack of a type that the demand can use holds the gang when it is empty.
fn one_rack_could_hold(cluster: &Cluster, demand: Demand) -> bool {
    let usable = |rack: &&pleach_scheduler::cluster::Rack| demand.types >> rack.gpu_type.index() & 1 == 1;
    let racks = cluster.racks().iter().filter(usable);
    racks.map(|rack| rack.num_gpus).max().unwrap_or(0) >= demand.num_gpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_cause_is_the_longest_and_phillys_two_hold_all() {
        let mut waits = Waits::default();
        assert_eq!((waits.main(), waits.total()), (None, Time::ZERO));
        waits.add(WaitCause::Availability, Time(3));
        waits.add(WaitCause::HeldBack, Time(5));
        waits.add(WaitCause::FairShare, Time(5));
        assert_eq!(waits.main(), Some(WaitCause::FairShare));
        assert_eq!(waits.philly(), (Time(5), Time(8)));
        assert_eq!(waits.total(), Time(13));
    }
}
