//! `pleach` with more in it: a policy, an order, a reward, a generator, a learner and a world of one's own, by name in every command.
//!
//! ```text
//! own evaluate --policy sjf,aged-sjf,deal:aged-sjf,widest-first --workload bursty --preemption
//! own train --workload bursty --warm-start aged-sjf --reward '-idle_gpu_hours - jobs_in_system_s / total_run_s'
//! own train --learner bandit --workload bursty
//! own distill --teacher aged-sjf --workload bursty
//! own evaluate --workload packing
//! ```
//!
//! Each stands in a file of its own; here they get their names.

mod generator;
mod learner;
mod order;
mod packing;
mod policy;
mod reward;

use std::process::ExitCode;

use pleach_cli::{Plugins, main_with};

fn main() -> ExitCode {
    let own = Plugins::new()
        .policy(policy::INFO, policy::make)
        .planner(order::ENTRY)
        .reward("idle_gpu_hours", reward::idle_gpu_hours)
        .generator(generator::BURSTY)
        .learner(&learner::Bandit)
        .world(packing::KIND);
    main_with(own)
}
