//! Limits of associations and qualities of service: a job over one is passed over, closes nothing and gets no reservation.

use std::collections::BTreeMap;

use super::nodes::Ask;

/// What a limit allows at once; none: no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// GPUs.
    pub gpus: Option<u64>,
    /// CPU, thousandths of a core.
    pub cpu_milli: Option<u64>,
    /// Nodes, counted once for each job.
    pub nodes: Option<u64>,
    /// Jobs.
    pub jobs: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    gpus: u64,
    cpu_milli: u64,
    nodes: u64,
    jobs: u64,
}

impl Used {
    fn of(ask: &Ask) -> Used {
        let nodes = u64::from(ask.nodes);
        Used {
            gpus: nodes * u64::from(ask.of_each.gpus),
            cpu_milli: nodes * ask.of_each.cpu_milli,
            nodes,
            jobs: 1,
        }
    }

    fn with(self, other: Used) -> Used {
        Used {
            gpus: self.gpus + other.gpus,
            cpu_milli: self.cpu_milli + other.cpu_milli,
            nodes: self.nodes + other.nodes,
            jobs: self.jobs + other.jobs,
        }
    }
}

/// What running jobs use of each limit. A limit that holds for each user apart has a group for each, by a number that its maker
/// gives.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Limits by their number.
    limits: Vec<Allowed>,
    used: BTreeMap<(usize, u32), Used>,
}

impl Usage {
    /// Nothing is used.
    #[must_use]
    pub fn of(limits: Vec<Allowed>) -> Usage {
        Usage {
            limits,
            used: BTreeMap::new(),
        }
    }

    /// Counts a job that runs.
    pub fn add(&mut self, ask: &Ask, counts: &[(usize, u32)]) {
        for place in counts {
            let used = self.used.entry(*place).or_default();
            *used = used.with(Used::of(ask));
        }
    }

    /// Counts it no longer.
    pub fn take_back(&mut self, ask: &Ask, counts: &[(usize, u32)]) {
        let of = Used::of(ask);
        for place in counts {
            let used = self.used.entry(*place).or_default();
            used.gpus -= of.gpus;
            used.cpu_milli -= of.cpu_milli;
            used.nodes -= of.nodes;
            used.jobs -= of.jobs;
        }
    }

    /// Whether a job may start by the limits that bound it.
    #[must_use]
    pub fn allows(&self, ask: &Ask, bounds: &[(usize, u32)]) -> bool {
        bounds.iter().all(|place| {
            let used = self.used.get(place).copied().unwrap_or_default();
            let then = used.with(Used::of(ask));
            let allowed = self.limits[place.0];
            let within = |then: u64, most: Option<u64>| most.is_none_or(|most| then <= most);
            within(then.gpus, allowed.gpus)
                && within(then.cpu_milli, allowed.cpu_milli)
                && within(then.nodes, allowed.nodes)
                && within(then.jobs, allowed.jobs)
        })
    }
}
