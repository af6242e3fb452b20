//! `pleach train`: flags.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::RunArgs;
use super::number;

/// Trains a network. Everything that shapes the result is in the configuration; flags override single values of it.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach train                                          PPO on Pleach/Philly-v0
  pleach train --env Pleach/Philly-v0 --env-steps 5000000 --num-envs 64 --out runs/mine
  pleach train --algorithm imitation --teacher srtf     learn to do as a heuristic does
  pleach train --warm-start srtf                        imitate first, then improve
  pleach train --config train.toml --device cuda
  pleach train --out runs/mine --resume                 go on after an interruption

On the CPU the same seed gives the same bytes on any number of threads, resumed or not. On a GPU it does not.")]
pub struct TrainArgs {
    /// Environment id, as Gymnasium writes it
    #[arg(long, value_name = "ID", default_value = "Pleach/Philly-v0")]
    pub env: String,
    /// Configuration in TOML; unknown keys are refused [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How to learn
    #[arg(long, value_enum, default_value_t = Algorithm::Ppo)]
    pub algorithm: Algorithm,
    /// Whom to imitate: a policy by name or file
    #[arg(long, value_name = "NAME|PATH", required_if_eq("algorithm", "imitation"))]
    pub teacher: Option<String>,
    /// Imitate this policy before PPO begins
    #[arg(long, value_name = "NAME|PATH")]
    pub warm_start: Option<String>,
    /// Decisions to train for [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub env_steps: Option<u64>,
    /// Environments that step together [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub num_envs: Option<u32>,
    /// Offered load [default: from the environment]
    #[arg(long, value_name = "LOAD", value_parser = number::load)]
    pub load: Option<f64>,
    /// Evaluate on held-out seeds every so many updates; 0 for never
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub evaluate_every: u32,
    /// Keep a checkpoint every so many updates; the last one is always kept
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub checkpoint_every: u32,
    /// Where the network runs
    #[arg(long, value_enum, default_value_t = Device::Cpu, help_heading = "Machine")]
    pub device: Device,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Proximal policy optimisation with masked actions
    Ppo,
    /// Copy a teacher's choices
    Imitation,
}

/// Where the network runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Processor; bit-reproducible
    Cpu,
    /// Any GPU through Vulkan, Metal or DirectX
    Wgpu,
    /// NVIDIA GPU
    Cuda,
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use clap::Parser as _;

    #[test]
    fn imitation_needs_a_teacher() {
        let parse = |line: &str| Cli::try_parse_from(line.split_whitespace());
        assert!(
            parse("pleach train --algorithm imitation")
                .unwrap_err()
                .to_string()
                .contains("--teacher")
        );
        assert!(parse("pleach train --algorithm imitation --teacher srtf").is_ok());
        assert!(
            parse("pleach train --device tpu")
                .unwrap_err()
                .to_string()
                .contains("wgpu")
        );
    }
}
