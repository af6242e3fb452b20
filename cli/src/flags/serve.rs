//! `pleach serve`: flags.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args, Subcommand};
use pleach_agents::Learner;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::serving::functions::FunctionsConfig;
use pleach_experiments::serving::{MixedConfig, PoolsConfig, ServingConfig};

use super::train::learner_named;
use super::{ForceFlag, JsonFlag, PageFlag, QuietFlag, ReportFlags};

/// Serving: which replica of a language model gets a request, how many GPUs a service leases beside training jobs, which slices of
/// GPUs run functions (docs/serving.md).
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach serve evaluate                                    16 replicas, facts a second old
  pleach serve search --refuse --rate-per-s 200 --to router.json
  pleach serve generate --turns 4 --to requests.csv")]
pub struct ServeArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ServeCommand,
}

/// What to do with requests.
#[derive(Clone, Debug, Subcommand)]
pub enum ServeCommand {
    /// Compare routers on the same requests
    #[command(after_help = "\
Examples:
  pleach serve evaluate --router round-robin,least-tokens:own=false,least-ttft
  pleach serve evaluate --rates 0.8,1,1.2,1.4 --html routers.html
  pleach serve evaluate --tpot-s 0.015 --pools 4:12,6:10,8:8 --router least-ttft
  pleach serve evaluate --model llama-3-70b --replica-gpus 4 --replicas 4 --rate-per-s 20
  pleach serve evaluate --requests AzureLLMInferenceTrace_conv.csv.gz --faster 36 --refuse --router least-ttft:shed=1,router.json")]
    Evaluate(ServeEvaluateArgs),
    /// Search for a tree that routes, or train a network, and judge it against the strongest rule
    #[command(after_help = "\
Examples:
  pleach serve search --to router.json                     a few minutes
  pleach serve search --refuse --rate-per-s 200 --gateways 4 --to router.json
  pleach serve search --learner evolution --to routed      a network, and a tree made of it
  pleach export router.json --to gie")]
    Search(ServeSearchArgs),
    /// Tell how a list of requests or of calls comes, how long they are, and what conversations hold
    #[command(after_help = "\
Examples:
  pleach serve describe AzureLLMInferenceTrace_conv.csv.gz
  pleach serve describe conversation_trace.jsonl.gz --html requests.html
  pleach serve describe 1000_inv.csv.gz                    Azure Functions 2019, run times beside it")]
    Describe(ServeDescribeArgs),
    /// Compare autoscalers that lease GPUs of a cluster that trains
    #[command(after_help = "\
Examples:
  pleach serve mixed                                       3 days, 16 GPUs: a static split, reactive, forecast, a bound
  pleach serve mixed --hours 6 --lists 1 --autoscaler static:replicas=8,reactive:target=1:down=300
  pleach serve mixed --gang 4 --restart-s 180
  pleach serve mixed --search 400 --to autoscaler.json     an autoscaler that is learned, against tuned rules")]
    Mixed(ServeMixedArgs),
    /// Draw a list of requests into a file
    #[command(after_help = "\
Examples:
  pleach serve generate --rate-per-s 50 --num-requests 100000 --to requests.csv")]
    Generate(ServeGenerateArgs),
    /// Compare dispatchers of applications, graphs of functions on slices of GPUs, or search for a tree that dispatches
    #[command(after_help = "\
Examples:
  pleach serve functions --setting strict-light
  pleach serve functions --surface infless --policy esg,esg:wait=true,nexus,edf
  pleach serve functions --loads 0.8,1,1.2,1.4 --html dispatchers.html
  pleach serve functions --requests lora_request_trace.csv.gz --nodes 2 --sharing mig --policy edf,edf:cold=false
  pleach serve functions --load 1.4 --late shed --search 2000 --to dispatcher.json")]
    Functions(ServeFunctionsArgs),
}

/// `pleach serve functions`.
#[derive(Args, Clone, Debug)]
pub struct ServeFunctionsArgs {
    /// Dispatchers by name with settings after colons, or trees by file, repeated or with commas: esg, infless, fast-gshare, orion,
    /// aquatope, clockwork, nexus, edf, fastest
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',', action = ArgAction::Append,
        default_value = "esg,infless,fast-gshare,orion,aquatope,clockwork,nexus,edf,fastest")]
    pub policy: Vec<String>,
    /// Times the load, repeated or with commas: hits and cost over the load
    #[arg(long, value_name = "X", value_delimiter = ',', action = ArgAction::Append, default_value = "1",
        value_parser = flag_values::positive)]
    pub loads: Vec<f64>,
    /// Search for a tree instead, playing so many lists at least, and judge it against the best tuned rule
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u64>(1..=10_000_000), requires = "to",
        conflicts_with_all = ["loads", "html", "policy"], help_heading = "Search")]
    pub search: Option<u64>,
    /// Tree to write, NAME.json
    #[arg(long, value_name = "FILE", requires = "search", help_heading = "Search")]
    pub to: Option<PathBuf>,
    /// Lists on which the tree is judged
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = flag_values::whole::<u16>(1..=1000),
        requires = "search", help_heading = "Search")]
    pub judge_lists: u16,
    /// Columns that the tree may not read, repeated or with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', action = ArgAction::Append, requires = "search",
        help_heading = "Search")]
    pub without: Vec<String>,
    /// Requests and machines.
    #[command(flatten)]
    pub functions: FunctionsConfig,
    /// Whether a file there may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// A page.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

/// `pleach serve evaluate`.
#[derive(Args, Clone, Debug)]
pub struct ServeEvaluateArgs {
    /// Routers by name with settings after colons, or trees by file, repeated or with commas; the first is what others are held
    /// against: round-robin, random, two-choices, least-requests, least-tokens, least-ttft, headroom, sessions, weighted
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',', action = ArgAction::Append,
        default_value = "round-robin,two-choices,least-requests,least-tokens,least-ttft,headroom,sessions,weighted")]
    pub router: Vec<String>,
    /// Rates over that of the requests, repeated or with commas: hits over the rate
    #[arg(long, value_name = "X", value_delimiter = ',', action = ArgAction::Append, default_value = "1",
        value_parser = flag_values::positive)]
    pub rates: Vec<f64>,
    /// Tell of a request of the first list of the first rate, by its number, why each tree among the routers sent it where it did
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<usize>(0..=10_000_000))]
    pub explain: Option<usize>,
    /// Requests and replicas.
    #[command(flatten)]
    pub serving: ServingConfig,
    /// Pools.
    #[command(flatten)]
    pub pools: PoolsConfig,
    /// A page.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

/// `pleach serve describe`.
#[derive(Args, Clone, Debug)]
pub struct ServeDescribeArgs {
    /// A list of requests (docs/serving.md) or of calls of functions (docs/serving-functions.md)
    pub requests: PathBuf,
    /// A page.
    #[command(flatten)]
    pub page: PageFlag,
    /// Results as JSON.
    #[command(flatten)]
    pub data: JsonFlag,
    /// How much is said.
    #[command(flatten)]
    pub words: QuietFlag,
}

/// `pleach serve search`.
#[derive(Args, Clone, Debug)]
pub struct ServeSearchArgs {
    /// Tree to write, NAME.json; with --learner the folder of a training, where one that was stopped goes on
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Lists to play at least
    #[arg(long, value_name = "N", default_value_t = 6_000, value_parser = flag_values::whole::<u64>(1..=10_000_000),
        help_heading = "Search")]
    pub simulations: u64,
    /// Most leaves, 2 to 256
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u16>(2..=256),
        help_heading = "Search")]
    pub leaves: u16,
    /// Rates over that of the requests, repeated or with commas
    #[arg(long, value_name = "X", value_delimiter = ',', action = ArgAction::Append, default_value = "0.9,1,1.1",
        value_parser = flag_values::positive, help_heading = "Search")]
    pub rates: Vec<f64>,
    /// Lists of each rate on which the result is judged
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = flag_values::whole::<u16>(1..=1000),
        help_heading = "Search")]
    pub judge_lists: u16,
    /// Columns that the tree may not read, repeated or with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', action = ArgAction::Append, help_heading = "Search")]
    pub without: Vec<String>,
    /// A network, and a tree made of it, in place of a search. evolution: strategies over whole lists; ppo: rewards of each request
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(["evolution", "ppo"]).try_map(learner_named), conflicts_with_all = ["without", "simulations"],
        help_heading = "Training")]
    pub learner: Option<Learner>,
    /// Generations, or updates of PPO, 0 to 100,000; 0: imitation alone
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = flag_values::whole::<u64>(0..=100_000),
        requires = "learner", help_heading = "Training")]
    pub updates: u64,
    /// Antithetic pairs of a generation, 1 to 4,096
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = flag_values::whole::<u16>(1..=4096),
        requires = "learner", help_heading = "Training")]
    pub pairs: u16,
    /// Width of the network, a multiple of 8 from 8 to 1,024
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u16>(8..=1024),
        requires = "learner", help_heading = "Training")]
    pub hidden: u16,
    /// Tree to imitate first [default: the best rule by hand]
    #[arg(long, value_name = "FILE", requires = "learner", help_heading = "Training")]
    pub teacher: Option<PathBuf>,
    /// Requests and replicas.
    #[command(flatten)]
    pub serving: ServingConfig,
    /// Whether a file there may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

/// `pleach serve mixed`.
#[derive(Args, Clone, Debug)]
pub struct ServeMixedArgs {
    /// Autoscalers by name with settings after colons, or trees by file, repeated or with commas; the first is what others are held
    /// against: static, reactive, forecast, seasonal, lyra, oracle
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',', action = ArgAction::Append,
        default_value = "static:replicas=8,reactive:target=0.85,reactive:target=0.7,forecast:target=0.85,lyra:target=0.85,oracle:target=0.85")]
    pub autoscaler: Vec<String>,
    /// Search for a tree instead, playing so many days at least, and judge it against the tuned rules at equal hits
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u64>(1..=10_000_000), requires = "to",
        conflicts_with = "autoscaler", help_heading = "Search")]
    pub search: Option<u64>,
    /// Tree to write, NAME.json
    #[arg(long, value_name = "FILE", requires = "search", help_heading = "Search")]
    pub to: Option<PathBuf>,
    /// Share of requests within both targets at which training is compared, %
    #[arg(long, value_name = "X", default_value_t = 99.9, value_parser = flag_values::positive,
        requires = "search", help_heading = "Search")]
    pub hits_pct: f64,
    /// Days on which rules are tuned, and on which the tree is chosen
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = flag_values::whole::<u16>(1..=100),
        requires = "search", help_heading = "Search")]
    pub tune_days: u16,
    /// Days on which the tree is judged
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = flag_values::whole::<u16>(1..=1000),
        requires = "search", help_heading = "Search")]
    pub judge_days: u16,
    /// Columns that the tree may not read, repeated or with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', action = ArgAction::Append, requires = "search",
        help_heading = "Search")]
    pub without: Vec<String>,
    /// Requests, service and jobs.
    #[command(flatten)]
    pub mixed: MixedConfig,
    /// Whether a file there may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// A page.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

/// `pleach serve generate`.
#[derive(Args, Clone, Debug)]
pub struct ServeGenerateArgs {
    /// File to write, CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Requests; replicas do not matter.
    #[command(flatten)]
    pub serving: ServingConfig,
    /// Whether a file there may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}
