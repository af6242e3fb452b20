//! How often which class of tasks comes: counted as jobs arrive.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, Demand};
use pleach_scheduler::{JobId, TenantId};

use super::fragment::TaskClass;

/// The classes of tasks seen so far.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Part of all jobs that the classes which count must make up, 0 to 1.
    covers: f64,
    /// Part by which the number of jobs must grow before the classes are counted anew.
    relearn: f64,
    counts: BTreeMap<Demand, u64>,
    num_seen: usize,
    num_learnt: usize,
    classes: Vec<TaskClass>,
}

impl Mix {
    /// The most frequent classes that make up a part `covers` of all jobs, counted anew whenever there are a part `relearn`
    /// more of them.
    #[must_use]
    pub fn new(covers: f64, relearn: f64) -> Mix {
        Mix {
            covers,
            relearn,
            counts: BTreeMap::new(),
            num_seen: 0,
            num_learnt: 0,
            classes: Vec::new(),
        }
    }

    /// Counts the jobs that came. Says whether the classes have changed.
    pub fn look(&mut self, cluster: &Cluster) -> bool {
        for id in self.num_seen..cluster.jobs().len() {
            let demand = any_tenant(cluster.demand(JobId(id as u32)));
            *self.counts.entry(demand).or_default() += 1;
        }
        self.num_seen = cluster.jobs().len();
        let due = self.num_learnt as f64 * (1.0 + self.relearn);
        if self.num_seen == self.num_learnt || (self.num_seen as f64) < due {
            return false;
        }
        self.num_learnt = self.num_seen;
        let mut frequent: Vec<(u64, Demand)> = self
            .counts
            .iter()
            .map(|(demand, count)| (*count, *demand))
            .collect();
        frequent.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let enough = self.covers * self.num_seen as f64;
        let (mut sum, mut kept) = (0, 0);
        while kept < frequent.len() && (sum as f64) < enough {
            sum += frequent[kept].0;
            kept += 1;
        }
        let rows = frequent[..kept].iter();
        self.classes = rows
            .map(|(count, demand)| TaskClass::of(cluster, *demand, *count as f64 / sum as f64))
            .collect();
        true
    }

    /// The classes, most frequent first.
    #[must_use]
    pub fn classes(&self) -> &[TaskClass] {
        &self.classes
    }
}

/// A demand without regard to its tenant.
pub(super) fn any_tenant(demand: Demand) -> Demand {
    Demand {
        tenant: TenantId(0),
        ..demand
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{preemptive_cluster, submit};

    #[test]
    fn rare_classes_do_not_count_and_the_rest_sums_to_one() {
        // 18 single GPUs, 1 pair, 1 gang of 4: with 0.95 the last is left out.
        let mut cluster = preemptive_cluster(1, 4);
        let mut mix = Mix::new(0.95, 0.1);
        for num_gpus in [vec![1; 18], vec![2, 4]].concat() {
            submit(&mut cluster, num_gpus, 1e3);
        }
        assert!(mix.look(&cluster));
        let classes: Vec<(u32, f64)> = mix
            .classes()
            .iter()
            .map(|class| (class.num_gpus, class.popularity))
            .collect();
        assert_eq!(classes, [(1, 18.0 / 19.0), (2, 1.0 / 19.0)]);
        // One more of 20 is half of a tenth; two more are a tenth.
        submit(&mut cluster, 4, 1e3);
        assert!(!mix.look(&cluster));
        submit(&mut cluster, 4, 1e3);
        assert!(mix.look(&cluster));
        assert_eq!(mix.classes().len(), 2);
        assert_eq!(mix.classes()[1].num_gpus, 4, "three of 22 now");
    }
}
