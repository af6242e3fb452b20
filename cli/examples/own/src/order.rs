//! An order of all waiting jobs: a number of each, the least first. Along it jobs start that fit, and GPUs are held back for the first
//! that does not.

use pleach_cli::dealing::{Entry, InOrder, Ranker};
use pleach_cli::scheduler::cluster::Cluster;
use pleach_cli::scheduler::heuristics::Info;
use pleach_cli::scheduler::{ActionSet, JobId};

/// What it is and how it is made. An order with settings reads them from the value (`--policy-config`).
pub const ENTRY: Entry = Entry {
    info: Info {
        name: "widest-first",
        family: "queueing",
        citation: "an example",
        knows: "gang size",
        decides: "the widest gang or its reservation, then what does not delay it",
    },
    requirements: ActionSet::NONE,
    defaults: || Default::default(),
    make: |_| {
        Ok(Box::new(InOrder::new(
            "widest-first",
            Ranker::by_order("widest-first", narrowness),
        )))
    },
};

fn narrowness(cluster: &Cluster, id: JobId) -> f64 {
    -f64::from(cluster.job(id).request.num_gpus)
}
