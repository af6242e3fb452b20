//! A unit of a sweep: a table of settings in the words of a command, so whatever a command takes can be swept, and is refused as the
//! command refuses it. Of evaluations and trainings the table is read as the struct that their flags fill.
//!
//! `command = "train"` says which; without it a unit is one policy of `evaluate`. What a unit learned is played on lists that all
//! units share: `judge`, in the words of `evaluate`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{io, iter};

use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _};
use pleach_agents::Device;
use pleach_experiments::EvaluationConfig;
use pleach_experiments::command::flags::RunArgs;
use pleach_experiments::command::own_commands;
use pleach_experiments::command::stop::Stop;
use pleach_experiments::door::{BEST_CHECKPOINT, TREE_FILE};
use pleach_experiments::error::Error;
use pleach_experiments::removed::{Place, instead};
use pleach_experiments::sweep::judge;
use pleach_experiments::sweep::{UnitError, UnitSpec, policy_unit};
use pleach_experiments::train::{TrainRequest, Training, begin_from};
use pleach_scheduler::heuristics::nearest_of;
use serde_json::{Map, Value, json};

use super::{Context, calibrate, distill, index, twin};
use crate::flags::{Cli, Command, given};
use crate::progress::bars;

/// What the sweep says itself, beside where results go and how the machine is used.
const OWN: [&str; 4] = ["seed", "extend", "set", "judge"];
/// What of `evaluate` compares several, of which a unit has one.
const OF_COMPARISONS: [&str; 3] = ["metric", "reference", "seeds"];
/// Commands that a unit may be, beside those that the program registered.
const COMMANDS: [&str; 6] = ["evaluate", "train", "distill", "index", "calibrate", "twin"];
/// All of them.
fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS
        .into_iter()
        .chain(own_commands().iter().map(|own| own.name))
}

/// What a unit does.
enum Work {
    /// Plays a policy.
    Policy(Box<EvaluationConfig>),
    /// Trains.
    Training(Box<TrainRequest>, Device, RunArgs),
    /// Any other command, with its command line and the flags that this gives.
    Command(Box<Command>, Vec<String>, Vec<String>),
}

/// A unit, parsed.
struct Unit {
    name: String,
    work: Work,
    /// Of a command that learns: where its policy is, and on what that is judged.
    learned: Option<(PathBuf, EvaluationConfig)>,
}

/// Refuses a unit before anything runs.
///
/// # Errors
/// A command, setting or value that cannot be used.
pub fn check(spec: &UnitSpec) -> Result<(), UnitError> {
    // Nothing is there yet, so it is judged on what is.
    let unit = Unit::of(spec, Path::new("run"), false)?;
    match &unit.work {
        Work::Policy(config) => policy_unit::check(config),
        Work::Training(request, ..) => Ok(request.settings()?.validate()?),
        Work::Command(..) => Ok(()),
    }?;
    unit.learned.map_or(Ok(()), |(_, config)| judge::check(&config))
}

/// Runs a unit; what it makes is in its folder below `out`, in a folder named after its hash.
///
/// # Errors
/// As [`check`], and what the command fails by.
pub fn work(spec: &UnitSpec, out: &Path) -> Result<Value, UnitError> {
    let inner = run_of(spec.index, &spec.hash);
    let run = out.join(&inner);
    let unit = Unit::of(spec, &run, true)?;
    if let Work::Policy(config) = &unit.work {
        return policy_unit::work(config, spec.seed);
    }
    let mut value = Map::new();
    value.insert("command".into(), unit.name.as_str().into());
    value.insert("run".into(), inner.into());
    if let (Work::Training(request, device, args), Some((index, hash))) = (&unit.work, &spec.below) {
        let Training { settings, seed, .. } = Training::of(request, args, None)?.on(*device, 1)?;
        begin_from(&out.join(run_of(*index, hash)), &settings, seed, &run)?;
    }
    let report = unit.run()?;
    if let Some((place, config)) = &unit.learned {
        value.extend(judge::judge(config, place, spec.is_rung)?);
    }
    if !report.is_null() {
        value.insert("report".into(), report);
    }
    Ok(Value::Object(value))
}

/// Where a unit's command writes, below the sweep's folder.
fn run_of(index: usize, hash: &str) -> String {
    format!("units/{index}/run-{}", &hash[..8])
}

impl Unit {
    /// `is_there` where the run's folder has what the command wrote, or will have before it is read.
    fn of(spec: &UnitSpec, run: &Path, is_there: bool) -> Result<Unit, Error> {
        let refuse = |hint: &str| Error::config("unit", &spec.config, "a table of settings", hint);
        let mut config = spec
            .config
            .as_object()
            .cloned()
            .ok_or_else(|| refuse("Mend the grid."))?;
        let judged = config.remove("judge");
        let name = match config.remove("command") {
            None => "evaluate".to_string(),
            Some(Value::String(name)) if commands().any(|known| known == name) => name,
            Some(other) => {
                let known: Vec<&str> = commands().collect();
                let nearest = nearest_of(&known, &other.to_string()).unwrap_or_default();
                let hint = format!("Did you mean {nearest}?");
                return Err(Error::config("command", other, known.join(", "), hint));
            }
        };
        let place = match name.as_str() {
            "train" => Some(run.join(BEST_CHECKPOINT)),
            "distill" => Some(run.join(TREE_FILE)),
            "index" => Some(run.join("index.json")),
            _ => None,
        };
        let learned = match (place, judged) {
            (Some(place), judged) => Some((place, judge_of(&name, &config, judged, run, is_there)?)),
            (None, None) => None,
            (None, Some(judged)) => {
                let hint = "Only what train, distill and index learn is judged: leave it out.";
                return Err(Error::config("judge", judged, format!("none with {name}"), hint));
            }
        };
        let work = match name.as_str() {
            "evaluate" => policy(config)?,
            "train" => training(config, spec.seed, run)?,
            _ => command(&name, &config, spec.seed, run)?,
        };
        Ok(Unit { name, work, learned })
    }

    /// Runs the command; what it says of itself with `--json`, null where it has no such flag.
    fn run(&self) -> Result<Value, Error> {
        let (mut data, began) = (Vec::new(), Instant::now());
        let mut context = Context {
            command_line: match &self.work {
                Work::Command(_, line, _) => format!("pleach {}", line.join(" ")),
                _ => format!("pleach {}", self.name),
            },
            given: match &self.work {
                Work::Command(.., given) => given.clone(),
                _ => Vec::new(),
            },
            clock: &|| began.elapsed().as_secs_f64(),
            stopwatch: &|| began.elapsed(),
            print: &mut io::sink(),
            data: &mut data,
            // A sweep that is asked to end ends at once: every file is whole, and a training goes on from its newest checkpoint.
            bars,
            stop: Arc::new(Stop::default()),
        };
        match &self.work {
            Work::Training(request, device, args) => {
                Training::of(request, args, None)?
                    .on(*device, 1)?
                    .run(&mut context)?;
            }
            Work::Policy(_) => {}
            Work::Command(command, ..) => match command.as_ref() {
                Command::Distill(args) => distill::run(args, &mut context)?,
                Command::Index(args) => index::run(args, &mut context)?,
                Command::Calibrate(args) => calibrate::run(args, &mut context)?,
                Command::Own(own) => (own.command.run)(&own.given, &mut context)?,
                Command::Twin(args) => twin::run(args, &mut context)?,
                _ => return Err(Error::Failed(format!("{} is not run as a unit", self.name))),
            },
        }
        if data.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&data)
            .map_err(|error| Error::Failed(format!("the results of {} are no JSON: {error}", self.name)))
    }
}

/// Refuses what the sweep says itself.
fn refuse_own(key: &str, value: &Value) -> Error {
    let hint = "The sweep says it itself, or a unit has no use for it: take it out.";
    Error::config(key, show(value), "none in a unit", hint)
}

/// One policy of an evaluation; fifo where none is named.
fn policy(mut config: Map<String, Value>) -> Result<Work, Error> {
    let is_own = |key: &str| OF_COMPARISONS.contains(&key) || is_own("evaluate", key);
    if let Some((key, value)) = config.iter().find(|(key, _)| is_own(key)) {
        return Err(refuse_own(key, value));
    }
    config.entry("policy").or_insert_with(|| "fifo".into());
    Ok(Work::Policy(Box::new(EvaluationConfig::of_table(config)?)))
}

/// A training in the unit's folder, which goes on where it was broken off.
fn training(mut config: Map<String, Value>, seed: u64, run: &Path) -> Result<Work, Error> {
    let device = config.remove("device");
    if let Some((key, value)) = config.iter().find(|(key, _)| is_own("train", key)) {
        return Err(refuse_own(key, value));
    }
    let named = |name: &Value| {
        let known = Device::ALL.map(Device::name).join(", ");
        let found = name.as_str().and_then(Device::named);
        found.ok_or_else(|| Error::config("device", show(name), known, "cpu is everywhere."))
    };
    let mut args = RunArgs::default();
    args.report.draws.seed = seed;
    args.report.data.json = Some("-".into());
    args.report.machine.words.quiet = true;
    args.out = Some(run.to_path_buf());
    args.resume = true;
    let device = device.as_ref().map_or(Ok(Device::Cpu), named)?;
    Ok(Work::Training(
        Box::new(TrainRequest::of_table(config)?),
        device,
        args,
    ))
}

/// Any other command: what it writes is in the unit's folder.
fn command(name: &str, config: &Map<String, Value>, seed: u64, run: &Path) -> Result<Work, Error> {
    let shown = |path: &Path| path.display().to_string();
    let mut line = vec![name.to_owned()];
    line.extend(flags(name, config)?);
    match name {
        "distill" => line.extend([format!("--out={}", shown(run)), "--resume".into()]),
        "index" => line.extend([
            format!("--to={}", shown(&run.join("index.json"))),
            "--force".into(),
        ]),
        _ => {}
    }
    let takes = |flag: &str| argument(name, flag).is_some();
    line.extend(takes("quiet").then(|| "--quiet".to_string()));
    line.extend(takes("json").then(|| "--json=-".to_string()));
    line.extend(takes("seed").then(|| format!("--seed={seed}")));
    let (command, given) = parsed(&line)?;
    Ok(Work::Command(Box::new(command), line, given))
}

/// Whether the sweep says a flag itself: where results go, how the machine is used, and what has no meaning in a unit.
fn is_own(name: &str, key: &str) -> bool {
    let flag = argument(name, &flag_of(key));
    let heading = flag.and_then(|flag| flag.get_help_heading().map(str::to_owned));
    OWN.contains(&key) || heading.is_some_and(|heading| heading == "Output" || heading == "Machine")
}

/// On what a policy is judged: what `judge` says; where that names no workload, those that it was learned on.
fn judge_of(
    name: &str,
    config: &Map<String, Value>,
    judged: Option<Value>,
    run: &Path,
    is_there: bool,
) -> Result<EvaluationConfig, Error> {
    let mut table = match judged {
        None => Map::new(),
        Some(Value::Object(table)) => table,
        Some(other) => {
            let hint = "For example judge.seeds = 10, judge.policy = [\"sjf\"].";
            return Err(Error::config(
                "judge",
                other,
                "a table of flags of evaluate",
                hint,
            ));
        }
    };
    if !table.contains_key("workload") {
        match name {
            "train" if is_there => {
                table.insert("workload".into(), json!(run.join("settings.toml")));
            }
            "train" => {}
            _ => {
                let is_shared = |key: &str| {
                    name == "distill"
                        && argument("evaluate", &flag_of(key)).is_some()
                        && !is_own("evaluate", key)
                };
                let of_unit = config
                    .iter()
                    .filter(|(key, _)| *key == "workload" || is_shared(key));
                let of_unit: Vec<_> = of_unit.map(|(key, value)| (key.clone(), value.clone())).collect();
                for (key, value) in of_unit {
                    table.entry(key).or_insert(value);
                }
                // Of one's own list the part that nothing was learned on.
                let is_list = |name: &Value| name.as_str().is_some_and(|name| Path::new(name).is_file());
                if table.get("workload").is_some_and(|one| match one {
                    Value::Array(names) => names.iter().any(is_list),
                    one => is_list(one),
                }) {
                    table.entry("split").or_insert(Value::from("test"));
                }
                if name == "index" {
                    table.entry("preemption").or_insert(Value::Bool(true));
                }
            }
        }
    }
    let seed = table.remove("seed");
    let is_own = |key: &str| ["metric", "reference"].contains(&key) || is_own("evaluate", key);
    if let Some((key, value)) = table.iter().find(|(key, _)| is_own(key)) {
        return Err(refuse_own(key, value));
    }
    let mut config = EvaluationConfig::of_table(table)?;
    if let Some(seed) = seed {
        let allowed = "a whole number";
        let number = seed.as_u64();
        config.seed = number.ok_or_else(|| Error::config("judge.seed", seed, allowed, "For example 1."))?;
    }
    Ok(config)
}

/// The command of a line, and the flags that it gives.
fn parsed(line: &[String]) -> Result<(Command, Vec<String>), Error> {
    let words = iter::once("pleach").chain(line.iter().map(String::as_str));
    let whole = Cli::command();
    let matches = whole.clone().try_get_matches_from(words);
    let matches = matches.map_err(|error| refused(&error, &line[0]))?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| refused(&error, &line[0]))?;
    let none = || Error::Failed("a unit without a command".into());
    Ok((cli.command.ok_or_else(none)?, given(&whole, &matches)))
}

/// What is wrong with a flag, by the name of the setting that it is.
fn refused(error: &clap::Error, command: &str) -> Error {
    let of = |kind| error.get(kind).map(ToString::to_string);
    let said = error.render().to_string();
    let said = said.split("\n\nUsage").next().unwrap_or_default();
    let said = said.split("\n\nFor more information").next().unwrap_or_default();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let help = format!("pleach {command} --help lists the flags.");
    let (Some(flag), Some(value)) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue)) else {
        return Error::config("command", command, said.replace('\n', " ").trim(), help);
    };
    let key = flag.split_whitespace().next().unwrap_or_default();
    let key = key.trim_start_matches("--").replace('-', "_");
    let allowed = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => values.join(", "),
        // What a parser of ours says stands behind the flag.
        _ => {
            let said = said.split_once("': ").map_or(said, |(_, said)| said);
            said.replace('\n', " ").trim().to_string()
        }
    };
    let hint = match of(ContextKind::SuggestedValue) {
        Some(nearest) => format!("Did you mean {nearest}?"),
        None => help,
    };
    Error::config(key, value, allowed, hint)
}

fn flag_of(key: &str) -> String {
    key.replace('_', "-")
}

/// The flag of a command, if it has one of this name.
fn argument(name: &str, flag: &str) -> Option<clap::Arg> {
    let cli = Cli::command();
    let command = cli.find_subcommand(name)?;
    command
        .get_arguments()
        .find(|one| one.get_long() == Some(flag))
        .cloned()
}

/// The settings of a table as flags of a command.
fn flags(name: &str, table: &Map<String, Value>) -> Result<Vec<String>, Error> {
    let mut line = Vec::new();
    for (key, value) in table {
        if is_own(name, key) {
            return Err(refuse_own(key, value));
        }
        let flag = argument(name, &flag_of(key)).ok_or_else(|| unknown(name, key, value))?;
        line.extend(as_flag(key, &flag, value)?);
    }
    Ok(line)
}

fn unknown(name: &str, key: &str, value: &Value) -> Error {
    let cli = Cli::command();
    let arguments = cli
        .find_subcommand(name)
        .into_iter()
        .flat_map(clap::Command::get_arguments);
    let flags = arguments
        .filter_map(clap::Arg::get_long)
        .filter(|flag| !is_own(name, flag));
    let mut known: Vec<String> = flags.map(|flag| flag.replace('-', "_")).collect();
    known.retain(|known| known != "help" && known != "version");
    known.sort();
    known.dedup();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let nearest = nearest_of(&names, key).unwrap_or_default();
    let hint = instead(Place::Flag, key).map_or_else(|| format!("Did you mean {nearest}?"), str::to_owned);
    Error::config(key, show(value), names.join(", "), hint)
}

fn as_flag(key: &str, argument: &clap::Arg, value: &Value) -> Result<Vec<String>, Error> {
    let flag = flag_of(key);
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Bool(true) => Ok(vec![format!("--{flag}")]),
            Value::Bool(false) => Ok(Vec::new()),
            other => Err(Error::config(key, show(other), "true or false", "Mend the grid.")),
        };
    }
    match (value, argument.get_value_delimiter()) {
        (Value::Array(list), _) if list.is_empty() => Ok(Vec::new()),
        (Value::Array(list), Some(delimiter)) => {
            let words: Vec<String> = list.iter().map(show).collect();
            Ok(vec![format!("--{flag}={}", words.join(&delimiter.to_string()))])
        }
        (Value::Array(list), None) => Ok(list
            .iter()
            .map(|value| format!("--{flag}={}", show(value)))
            .collect()),
        (value, _) => Ok(vec![format!("--{flag}={}", show(value))]),
    }
}

/// A value as a flag has it: texts without quotes, tables in TOML.
fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => in_toml(other),
    }
}

fn in_toml(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn spec(config: Value) -> UnitSpec {
        UnitSpec {
            index: 0,
            params: Default::default(),
            replicate: 0,
            seed: 7,
            hash: "0123456789".into(),
            config,
            is_rung: false,
            below: None,
        }
    }

    fn work_of(config: Value) -> Work {
        Unit::of(&spec(config), Path::new("run"), true).unwrap().work
    }

    #[test]
    fn a_training_is_read_as_the_struct_that_its_flags_fill_and_keys_of_settings_toml() {
        let Work::Training(request, device, args) = work_of(json!({"command": "train",
            "env": "Pleach/GavelMulti-v1", "env_steps": 0, "train": {"ppo": {"clip": 0.1}},
            "objective": {"makespan_s": 1.0}, "prior": "sjf", "load": 0.7, "device": "cpu"}))
        else {
            panic!()
        };
        let settings = request.settings().unwrap();
        let flags = "--env Pleach/GavelMulti-v1 --env-steps 0 --load 0.7 --set train.ppo.clip=0.1 --set prior=sjf \
                     --set objective={makespan_s=1.0}";
        let words = ["pleach", "train"].into_iter().chain(flags.split_whitespace());
        let Some(Command::Train(same)) = Cli::try_parse_from(words).unwrap().command else {
            panic!()
        };
        assert_eq!(settings, same.request.settings().unwrap());
        assert_eq!(settings.train.ppo.clip, 0.1);
        assert_eq!(device, Device::Cpu);
        assert_eq!(
            (args.seed(), args.resume, args.out.as_deref()),
            (7, true, Some(Path::new("run")))
        );
    }

    #[test]
    fn other_commands_are_asked_in_their_flags() {
        let Work::Command(_, line, _) =
            work_of(json!({"command": "index", "workload": ["a", "b"], "generations": 3}))
        else {
            panic!()
        };
        assert!(line.contains(&"--workload=a,b".to_string()), "{line:?}");
    }

    #[test]
    fn what_was_swept_before_is_read_as_it_was() {
        let Work::Policy(config) = work_of(
            json!({"policy": "srtf", "workload": "philly-like", "num_jobs": 30,
            "load": 0.8, "from_day": 0.0, "preemption": true, "actions": [], "restart_cost_s": 5.0,
            "estimates": {"model": "log-normal", "sigma": 0.5, "bias": 1.0}, "virtual_clusters": false,
            "scheduling": {"overheads": "zero"}}),
        ) else {
            panic!()
        };
        assert_eq!(
            (config.workload.num_jobs, config.workload.load),
            (Some(30), Some(0.8))
        );
        assert_eq!(config.scheduling.restart_cost_s, Some(5.0));
        assert!(config.scheduling.preemption && config.scheduling.estimates.is_some());
    }

    #[test]
    fn a_setting_that_there_is_not_is_answered_with_those_that_there_are() {
        for (config, words) in [
            (json!({"polcy": "sjf"}), "Did you mean policy?"),
            (json!({"command": "trian"}), "Did you mean train?"),
            (json!({"command": "train", "learning_rte": 0.1}), "Allowed is "),
            (
                json!({"command": "train", "trian": {"num_updates": 1}}),
                "Did you mean train?",
            ),
            (
                json!({"command": "train", "train": {"num_updtes": 1}}),
                "Did you mean num_updates?",
            ),
            (
                json!({"command": "train", "out": "x"}),
                "The sweep says it itself",
            ),
            (
                json!({"command": "train", "judge": {"sseeds": 3}}),
                "Did you mean seeds?",
            ),
            (
                json!({"command": "train", "judge": {"policy": "sfj"}}),
                "Did you mean sjf?",
            ),
            (json!({"command": "twin", "judge": {}}), "none with twin"),
            (json!({"load": 99}), "0.01 to 10"),
            (json!({"policy": ["sjf", "fifo"]}), "one policy in a unit"),
            (json!({"preemption": 1}), "expected a boolean"),
            (
                json!({"workload": "requests", "load": 0.5}),
                "load = given: allowed is none of this world",
            ),
            (
                json!({"workload": "service", "preemption": true}),
                "preemption = given",
            ),
        ] {
            let said = check(&spec(config.clone())).unwrap_err();
            assert!(said.to_string().contains(words), "{config}: {said}");
            assert_eq!(said.exit_code(), 2, "{config}");
        }
    }

    #[test]
    fn a_training_of_no_steps_is_judged_beside_others_and_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"command": "train", "env_steps": 0, "num_jobs": 20, "warm_start": "sjf", "num_validation": 2,
            "train": {"imitation": {"num_epochs": 1}}, "warm_start_steps": 50, "dagger_rounds": 0, "judge": {"seeds": 2, "policy": ["sjf", "srtf"]}});
        let spec = spec(config);
        let value = work(&spec, folder.path()).unwrap();
        assert_eq!(value["judged"].as_array().map(Vec::len), Some(6));
        assert_eq!(value["judged"][2]["stand_in"], "as sjf: no preemption");
        assert!(
            value["metrics"]["avg_jct_s"]
                .as_f64()
                .is_some_and(|jct_s| jct_s > 0.0)
        );
        assert!(folder.path().join("units/0/run-01234567/network.ckpt").is_file());
        assert_eq!(work(&spec, folder.path()).unwrap(), value);
    }
}
