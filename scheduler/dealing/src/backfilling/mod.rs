//! Backfilling with a slot for every waiting job, and as Slurm does it; and kube-scheduler. They plan in the simulator alone: what they remember is
//! keyed by rows of the tables, which a daemon makes anew in every round.

mod calendar;
mod conservative;

pub use conservative::{Conservative, ConservativeConfig};

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ActionSet, Planner, Problem};
use serde_json::Value;

use crate::entry::Entry;
use crate::kubernetes::{Kubernetes, KubernetesConfig};
use crate::kueue::{Kueue, KueueConfig};
use crate::settings;
use crate::slurm::{Slurm, SlurmConfig};

/// What the schedulers of sites run and no daemon of ours drives.
pub const BACKFILLING: &[Entry] = &[
    Entry {
        info: Info {
            name: "conservative",
            family: "backfilling",
            citation: "Mu'alem & Feitelson TPDS'01",
            knows: "arrival, gang size, run time",
            decides: "a slot for every waiting job; a job that delays none goes ahead",
        },
        requirements: ActionSet::NONE,
        defaults: settings::defaults::<ConservativeConfig>,
        make: |value| {
            Ok(Box::new(Conservative::new(settings::read(
                "conservative",
                value,
            )?)?))
        },
    },
    Entry {
        info: Info {
            name: "slurm",
            family: "backfilling",
            citation: "Slurm 22.05: sched/backfill, priority/multifactor",
            knows: "arrival, gang size, time limit, user, account, partition, QOS",
            decides: "what the site's own Slurm does by its slurm.conf: main scheduler, backfill, priorities, limits",
        },
        requirements: ActionSet::NONE,
        defaults: settings::defaults::<SlurmConfig>,
        make: |value| Ok(Box::new(Slurm::new(settings::read("slurm", value)?)?)),
    },
    kubernetes(
        "kubernetes",
        "what the site's kube-scheduler does: retries by last refusal and backoff, nodes by score, pods of gangs one by one",
        |value| {
            Ok(Box::new(Kubernetes::new(
                settings::read("kubernetes", value)?,
                false,
            )?))
        },
    ),
    kubernetes(
        "kubernetes-gangs",
        "the same with native PodGroups: pods of a gang all or none",
        |value| {
            Ok(Box::new(Kubernetes::new(
                settings::read("kubernetes-gangs", value)?,
                true,
            )?))
        },
    ),
    Entry {
        info: Info {
            name: "kueue",
            family: "kube-scheduler",
            citation: "Kueue 0.17",
            knows: "arrival, pods with their CPU and memory, namespace, queue, priority class",
            decides: "what the site's own Kueue admits by its objects: quotas, cohorts, both strategies, preemption, fair sharing",
        },
        requirements: ActionSet::NONE,
        defaults: settings::defaults::<KueueConfig>,
        make: |value| Ok(Box::new(Kueue::new(settings::read("kueue", value)?)?)),
    },
];

/// A row of kube-scheduler.
const fn kubernetes(
    name: &'static str,
    decides: &'static str,
    make: fn(&Value) -> Result<Box<dyn Planner>, Problem>,
) -> Entry {
    Entry {
        info: Info {
            name,
            family: "kube-scheduler",
            citation: "Kubernetes 1.36: kube-scheduler",
            knows: "arrival, pods with their CPU and memory, priority class",
            decides,
        },
        requirements: ActionSet::NONE,
        defaults: settings::defaults::<KubernetesConfig>,
        make,
    }
}
