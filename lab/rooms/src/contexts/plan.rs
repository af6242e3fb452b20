//! What is the same for all frames of a task: budgets and times by stage and context.

use super::{Gpu, Stage, Task};

/// What is the same for all frames of a task.
pub(super) struct Plan {
    /// Mean work of each unit, fs.
    pub work: Vec<u64>,
    pub is_high: Vec<bool>,
    /// Budgets by stage, and their sums, µs.
    pub budget_us: Vec<u64>,
    pub stacked_us: Vec<u64>,
    /// By stage and context, µs.
    pub occupied_us: Vec<Vec<u64>>,
    /// Least occupied time of a stage and those after it, µs.
    pub rest_us: Vec<u64>,
    /// By context, fs of work per µs.
    pub speed_max: Vec<u64>,
}

impl Plan {
    /// Budgets are parts of 99 % of the period by occupied times in the largest context (SGPRS's released code).
    pub fn new(task: &Task, gpu: &Gpu, is_whole: bool, num_tasks: usize) -> Plan {
        let network = &task.network;
        let whole = gpu.work(network);
        let (work, is_high): (Vec<u64>, Vec<bool>) = if is_whole {
            (vec![whole], vec![false])
        } else {
            let of = |stage: &Stage| (whole / 1_000 * u64::from(stage.permille), stage.is_high);
            network.stages().iter().map(of).unzip()
        };
        let contexts = 0..gpu.contexts().len();
        let of_stage = |work: &u64| -> Vec<u64> {
            let time = |context| gpu.occupied_us(network, context, *work, num_tasks);
            contexts.clone().map(time).collect()
        };
        let occupied_us: Vec<Vec<u64>> = work.iter().map(of_stage).collect();
        let least = |times: &Vec<u64>| times.iter().copied().min().unwrap_or(1);
        let sum: u64 = occupied_us.iter().map(least).sum();
        let budget = |times: &Vec<u64>| {
            (u128::from(task.period_us) * 99 * u128::from(least(times)) / (100 * u128::from(sum.max(1))))
                as u64
        };
        let mut rest_us: Vec<u64> = occupied_us.iter().map(least).collect();
        for stage in (1..rest_us.len()).rev() {
            rest_us[stage - 1] += rest_us[stage];
        }
        let budget_us: Vec<u64> = occupied_us.iter().map(budget).collect();
        let mut stacked = 0;
        let stack = |budget: &u64| {
            stacked += budget;
            stacked
        };
        Plan {
            stacked_us: budget_us.iter().map(stack).collect(),
            speed_max: contexts.map(|context| gpu.speed_max(network, context)).collect(),
            work,
            is_high,
            budget_us,
            occupied_us,
            rest_us,
        }
    }
}
