//! Plays a list of jobs on the simulated cluster, with or without a batch system between. One CSV row for each job, as
//! `daemon/tests/compare_slurm.py rows` prints them of a real Slurm.
//!
//! `batch_rows LIST ARM POLICY CLUSTER BATCH_SYSTEM`: LIST is a canonical CSV, POLICY a heuristic or a tree's file, CLUSTER a
//! description in TOML, BATCH_SYSTEM `none`, `slurm` or a TOML file of its times. Node n is called `gN`, from 1.

use std::error::Error;
use std::path::Path;

use pleach_env::batch_system::BatchSystem;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::world::World;
use pleach_env::{JobOutcome, Seed};
use pleach_scheduler::cluster::{Capabilities, JobState};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::tree::{Tree, TreePolicy};
use pleach_scheduler::{JobId, heuristics};

fn policy_of(text: &str) -> Result<Box<dyn Policy>, Box<dyn Error>> {
    Ok(match text.ends_with(".json") {
        true => Box::new(TreePolicy::new(Tree::load(Path::new(text))?)),
        false => heuristics::by_name(text)?,
    })
}

fn batch_system_of(text: &str) -> Result<Option<BatchSystem>, Box<dyn Error>> {
    Ok(match text {
        "none" => None,
        path if path.ends_with(".toml") => Some(toml::from_str(&std::fs::read_to_string(path)?)?),
        name => Some(BatchSystem::from_name(name)?),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, list, arm, policy, cluster, batch_system] = &args[..] else {
        return Err("batch_rows LIST ARM POLICY CLUSTER BATCH_SYSTEM".into());
    };
    let options = ImportOptions {
        cluster: Some(toml::from_str(&std::fs::read_to_string(cluster)?)?),
        ..ImportOptions::default()
    };
    let (workload, _) = import(Path::new(list), &options)?;
    let model = EstimateModel::UserLimit { default_s: 86_400.0 };
    let estimates = model.estimates(&workload, Seed(0));
    let capabilities = Capabilities {
        consolidated: true,
        ..Capabilities::DEFAULT
    };
    let mut world = World::new(&workload, capabilities, &estimates)?;
    if let Some(batch_system) = batch_system_of(batch_system)? {
        world.set_batch_system(&batch_system)?;
    }
    let (mut policy, mut pass) = (policy_of(policy)?, Pass::new());
    world.set_tick(policy.needs().tick);
    let mut nodes = vec![String::new(); workload.jobs.len()];
    while !world.is_over() {
        world.advance();
        if !world.may_decide() {
            continue;
        }
        if world.cluster().num_pending() > 0 {
            pass.run(world.cluster_mut(), &mut policy)?;
        }
        for (row, names) in nodes.iter_mut().enumerate() {
            let cluster = world.cluster();
            if row < cluster.jobs().len() && cluster.job(JobId(row as u32)).state == JobState::Running {
                let slices = cluster.job(JobId(row as u32)).placement.iter();
                *names = slices
                    .map(|slice| format!("g{}", slice.node.0 + 1))
                    .collect::<Vec<_>>()
                    .join(" ");
            }
        }
        world.carry_out();
    }
    for ((job, outcome), nodes) in workload.jobs.iter().zip(world.outcomes()).zip(&nodes) {
        let JobOutcome {
            submit_s,
            first_start_s,
            finish_s,
            num_gpus,
            ..
        } = outcome;
        let (id, run_time_s, limit_s) = (&job.id, job.run_time_s, job.estimate_s.unwrap_or(0.0));
        println!(
            "{list},{arm},{id},,{num_gpus},{run_time_s},{limit_s},{submit_s},{first_start_s:.2},{finish_s:.2},{nodes}"
        );
    }
    Ok(())
}
