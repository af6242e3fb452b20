//! Policies on workloads with seeds: which jobs, cluster and policies, the runs, and what they are worth.

pub mod ablation;
pub mod cluster_flag;
pub mod condition;
pub mod day;
pub mod estimate_source;
pub mod evaluation;
pub mod flag_values;
pub mod gain;
pub mod idle;
pub mod instances;
pub mod interval;
pub mod metric;
#[cfg(test)]
mod own_list_tests;
pub mod results;
pub mod run;
pub mod sim_config;
pub mod stand_in;
pub mod stats;
pub mod table;
pub mod workload_source;

mod named_env;
