//! `pleach evaluate`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::EvaluationConfig;
use pleach_experiments::evaluate::flag_values;

use super::RunArgs;

/// Compares policies. Every policy meets every workload with every seed, so results come in pairs.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach evaluate                                       all heuristics on the default workload
  pleach evaluate --policy fifo,srtf --seeds 10 --reference fifo
  pleach evaluate --policy srtf,tiresias,tiresias-gittins --preemption
  pleach evaluate --policy srtf --policy runs/mine/tree.json --workload philly-like --load 0.9
  pleach evaluate --workload trace.csv --format philly --cluster cluster.toml --from-day 30 --days 7
  pleach evaluate --estimates lognormal:1 --preemption --restart-cost-s 30 --html report.html
  pleach evaluate --workload Pleach/GavelMulti-v1 --policy best-type-delay,runs/mine --ablate
  pleach evaluate --workload Pleach/GavelMulti-v1 --policy runs/mine --seeds 20 --regret

The ratio column is the geometric mean of paired ratios of --metric (the average JCT) with a 95 % bootstrap interval.
Fewer than ten pairs are a hint and not a result: give --seeds 10, or --window-days for a trace, of which
nothing is drawn.")]
pub struct EvaluateArgs {
    /// What is compared.
    #[command(flatten)]
    pub config: EvaluationConfig,
    /// Also compare with one thing after the other taken away (the cost of loose placements, differences of GPU types, sharing,
    /// preemption, what is known of run times, restarts, sizes, cores): where does a gain come from?
    #[arg(long)]
    pub ablate: bool,
    /// Also say what can be won, and which part of it each policy wins: beside the best rule, what a search of N simulations a list
    /// (300) finds that sees the list
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "300", value_parser = flag_values::whole::<u32>(0..=1_000_000))]
    pub regret: Option<u32>,
    /// Also write one CSV row for each (policy, workload, seed) to this file; with --out they are in its folder anyway
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Also write the report to this file: as data where it ends in .json, as words in .txt, else as a page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Also write which job ran where and when, by the ending as .csv, .csv.gz, .parquet, or .json for Perfetto: `pleach verify` checks it,
    /// `pleach watch` shows it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub schedule: Option<PathBuf>,
    /// Seed, output and machine.
    #[command(flatten)]
    pub run: RunArgs,
}

impl EvaluateArgs {
    /// What is compared, with the seed.
    #[must_use]
    pub fn config(&self) -> EvaluationConfig {
        EvaluationConfig {
            seed: self.run.seed(),
            ..self.config.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser as _;
    use pleach_env::workload::import::Format;

    fn parse(line: &str) -> Result<EvaluateArgs, String> {
        match Cli::try_parse_from(line.split_whitespace())
            .map_err(|error| error.to_string())?
            .command
        {
            Some(Command::Evaluate(args)) => Ok(args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn policies_may_be_repeated_or_listed() {
        let args = parse("pleach evaluate --policy fifo,srtf --policy tree.json").unwrap();
        assert_eq!(args.config.policy, ["fifo", "srtf", "tree.json"]);
        assert_eq!(args.config.workload.workload, ["Pleach/Philly-v0"]);
    }

    #[test]
    fn every_format_of_the_importer_is_a_value() {
        for format in Format::all() {
            let args = parse(&format!("pleach evaluate --format {}", format.word())).unwrap();
            assert_eq!(args.config.workload.format, Some(format));
        }
    }

    #[test]
    fn no_flags_are_the_defaults_of_the_library() {
        assert_eq!(
            parse("pleach evaluate").unwrap().config(),
            EvaluationConfig::default()
        );
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_allowed_set() {
        for (flags, word) in [
            ("--load 0", "0.01 to 10"),
            ("--estimates guess", "lognormal:SIGMA"),
            ("--format x", "philly"),
            ("--sharing x", "time-slice"),
        ] {
            let said = parse(&format!("pleach evaluate {flags}")).unwrap_err();
            assert!(said.contains(word), "{said}");
        }
        assert!(parse("pleach evaluate --seeds 0").is_err());
        assert!(parse("pleach evaluate --force --resume").is_err());
    }

    #[test]
    fn where_results_go_and_how_many_threads_make_them_is_no_part_of_the_configuration() {
        let line = "pleach evaluate --load 0.9 --estimates oracle";
        let one = parse(&format!("{line} --threads 1 --out a --json b --html c --quiet")).unwrap();
        let two = parse(&format!("{line} --threads 8")).unwrap();
        let value = |args: &EvaluateArgs| serde_json::to_value(args.config()).unwrap();
        assert_eq!(value(&one), value(&two));
        assert_eq!(value(&one)["workload"]["load"], 0.9);
        assert_eq!(value(&one)["scheduling"]["estimates"], "oracle");
        // As it has always been written: folders are named after it.
        assert_eq!(
            toml::to_string(&one.config()).unwrap(),
            "policy = []\nmetric = \"avg_jct_s\"\nseeds = 10\n\n[workload]\nworkload = [\"Pleach/Philly-v0\"]\n\
             virtual_clusters = false\nload = 0.9\n\n[scheduling]\npreemption = false\nmixed_types = false\n\
             estimates = \"oracle\"\n"
        );
    }
}
