//! The law of training plans held to published steps that its levels were not fitted to, and the law of starts to published
//! starts.

mod fit;
mod row;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use pleach_env::workload::classes::facts_of;
use pleach_env::workload::plans::{
    Basis, GPUS, Gpu, Model, Precision, STACKS, Stack, Trained, Training, level,
};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::quantile;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::run_folder::atomic_file::read_text;
use pleach_scheduler::physics::overheads::{Moved, Overheads};
use pleach_scheduler::physics::storage::Storage;

use self::fit::{fitted, judged, judged_unseen, plain};
use self::row::Published;
use self::rows::{Rows, SAMPLE};
use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Target};

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "plans",
    title: "Steps of large trainings against published ones, and their starts",
    source: "MosaicML's llm-foundry, NVIDIA's Megatron-Bridge and NeMo, MLPerf training, torchtitan, Primus, papers; each row has its own",
    setup: "rows of --data (measured/training.csv, world/llm_rows.csv) of the half that levels were not fitted to, with the published plan or \
            else the best one. The targets are goals of ours; starts are those of MLPerf's logs and of MegaScale (NSDI'24)",
    run: held_to_rows,
}];

/// Where the rows lie in a folder of published data.
const FILES: [&str; 2] = ["measured/training.csv", "world/llm_rows.csv"];
/// Bytes of a file at most.
const BYTES_MAX: u64 = 64 << 20;
/// Tokens of a sequence that count as long.
const LONG: u32 = 8_192;
/// Columns of levels.
const LEVELS: [&str; 6] = [
    "software",
    "GPU type",
    "bits",
    "what is trained",
    "part of the peak",
    "rows",
];
/// Models without experts.
const DENSE: &str = "dense, adapters among them";
/// GPU types that a site may have today.
const TYPES: [&str; 11] = [
    "A100", "H100", "H200", "B200", "B300", "GB200", "GB300", "MI300X", "MI325X", "MI350X", "MI355X",
];
/// Seconds of a warm container and imports, which MLPerf's logs do not count.
const CONTAINER_S: f64 = 32.0;

/// Starts: what, a model of the classes, GPUs, least, median and most seconds.
///
/// # Source
/// Logs of MLPerf training 4.1 to 5.1, `init_start` to `init_stop`: 21, 18 and 59 starts; for 405B also the 11 of NVIDIA's own.
const STARTS: [(&str, &str, u32, [f64; 3]); 4] = [
    (
        "pre-training of Llama 3.1 405B, NVIDIA",
        "llama-405b",
        2048,
        [250.0, 374.0, 587.0],
    ),
    (
        "pre-training of Llama 3.1 405B, all",
        "llama-405b",
        1024,
        [250.0, 470.0, 1100.0],
    ),
    ("pre-training of Llama 3.1 8B", "llama-8b", 64, [6.4, 86.0, 210.0]),
    (
        "Llama 2 70B, adapters",
        "llama-70b-lora",
        64,
        [27.0, 110.0, 424.0],
    ),
];

/// All rows of a folder, or those that the program has.
fn rows(folder: Option<&Path>) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    let Some(folder) = folder else {
        rows.add(SAMPLE)
            .map_err(|error| Error::data(Path::new("plans.csv"), error.to_string()))?;
        return Ok(rows);
    };
    for file in FILES {
        let path = folder.join(file);
        let text = read_text(&path, BYTES_MAX)?;
        rows.add(&text)
            .map_err(|error| Error::data(&path, error.to_string()))?;
    }
    Ok(rows)
}

fn held_to_rows(effort: &Effort) -> Result<Reproduction, Error> {
    let rows = rows(effort.data.as_deref())?;
    let errors: Vec<f64> = rows
        .rows
        .iter()
        .map(|row| 100.0 * judged(row, &STACKS).0)
        .collect();
    if !rows.rows.iter().any(|row| row.is_judge) {
        let hint = "Without --data the program takes rows of its own.";
        return Err(Error::config("data", "no such row", "rows to judge by", hint));
    }
    let mut figures = Vec::new();
    for (name, is, goals) in [
        (DENSE, is_dense as fn(&Published) -> bool, Some([8.0, 30.0])),
        ("experts", has_experts, Some([16.0, 45.0])),
        ("above 8,192 tokens", is_long, None),
    ] {
        // A sample has one row of each kind, so the unusual ones count too much for a verdict.
        let goals = goals.filter(|_| effort.data.is_some());
        let goal = |at: usize| {
            goals.map_or(Target::Record, |goals| Target::Between {
                low: 0.0,
                high: goals[at],
            })
        };
        let here = quantiles(&rows.rows, &errors, |row| row.is_judge && is(row));
        for (at, what) in [
            "median relative error, %",
            "90 % of the relative errors are below, %",
        ]
        .into_iter()
        .enumerate()
        {
            if let Some(error) = here.1.get(at) {
                figures.push(Figure::exact(format!("{name}: {what}"), *error, goal(at)));
            }
        }
    }
    let sample =
        "Without --data these are the rows that the program has: one of each kind, so there is no verdict."
            .to_string();
    let mut findings = vec![
        "Published rows hold good plans alone: what a bad plan costs is priced by the links and by no row."
            .to_string(),
        "The law is off by four times as much where a site's software is not among the published ones."
            .to_string(),
    ];
    findings.extend(effort.data.is_none().then_some(sample));
    let left_out = rows
        .left_out
        .iter()
        .map(|(why, num)| vec![(*why).to_string(), num.to_string()]);
    Ok(Reproduction {
        figures: [figures, start_figures()].concat(),
        tables: vec![
            (
                "Errors of the half that judges beside the half that was fitted".into(),
                by_group(&rows.rows, &errors),
            ),
            (
                "Other laws on the same rows".into(),
                other_laws(&rows.rows, &errors),
            ),
            (
                "Levels of the fitted half: data/stacks.csv of pleach-workloads".into(),
                table(&LEVELS, levels(&rows.rows)),
            ),
            (
                "Rows left out".into(),
                table(&["why", "rows"], left_out.collect()),
            ),
            ("Extrapolated: types and bits without a row".into(), without_row()),
            (
                "Extrapolated: settings in which no row judges".into(),
                without_judge(&rows.rows),
            ),
            (
                "Starts, s: published by the stack, and the law's without its container".into(),
                starts(),
            ),
        ],
        findings,
        ..Reproduction::default()
    })
}

fn has_experts(row: &Published) -> bool {
    row.training.model.experts.is_some()
}

fn is_dense(row: &Published) -> bool {
    !has_experts(row)
}

fn is_long(row: &Published) -> bool {
    row.training.sequence > LONG
}

/// What a row trains, in a word.
fn kind(row: &Published) -> &'static str {
    match (has_experts(row), row.training.trained) {
        (true, _) => "experts",
        (false, Trained::All) => "dense",
        (false, Trained::Adapters) => "adapters",
    }
}

/// Number of such rows, and median and 90 % quantile of their errors where there is one.
fn quantiles(rows: &[Published], errors: &[f64], is: impl Fn(&Published) -> bool) -> (usize, Vec<f64>) {
    let here = rows.iter().zip(errors).filter(|(row, _)| is(row));
    let mut here: Vec<f64> = here.map(|(_, error)| *error).collect();
    here.sort_unstable_by(f64::total_cmp);
    let at = [0.5, 0.9].into_iter().filter_map(|part| quantile(&here, part));
    (here.len(), at.collect())
}

fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        header: header.iter().map(ToString::to_string).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// The words by which a row is counted.
fn groups(row: &Published) -> Vec<String> {
    let (length, planned) = (
        if is_long(row) { "above" } else { "up to" },
        if row.is_planned { "published" } else { "searched" },
    );
    let mut groups = vec![
        "all".into(),
        kind(row).into(),
        format!("{length} 8,192 tokens"),
        format!("GPU {}", row.gpu),
        format!("{} bits", row.training.precision.bits()),
        format!("source {}", row.source),
        format!("plan {planned}"),
    ];
    groups.push(if has_experts(row) {
        format!("experts of {}", row.training.model.name)
    } else {
        format!("software {}", row.software)
    });
    groups.extend(is_dense(row).then(|| DENSE.to_string()));
    groups
}

fn by_group(rows: &[Published], errors: &[f64]) -> Table {
    let mut halves: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for (row, error) in rows.iter().zip(errors) {
        for group in groups(row) {
            halves.entry(group).or_default()[usize::from(!row.is_judge)].push(*error);
        }
    }
    let line = |(group, halves): (String, [Vec<f64>; 2])| {
        let mut line = vec![group];
        for mut half in halves {
            half.sort_unstable_by(f64::total_cmp);
            line.push(half.len().to_string());
            line.extend([0.5, 0.9].map(|part| quantile(&half, part).map_or_else(|| "-".into(), show)));
        }
        line
    };
    let header = [
        "rows of",
        "judge",
        "median error, %",
        "90 % below, %",
        "fitted",
        "median error, %",
        "90 % below, %",
    ];
    table(&header, halves.into_iter().map(line).collect())
}

/// The law beside one without structure, and beside itself where the software is not known.
fn other_laws(rows: &[Published], errors: &[f64]) -> Table {
    let mut without = vec![f64::NAN; rows.len()];
    for (number, error) in plain(rows) {
        without[number] = 100.0 * error;
    }
    let unseen: Vec<f64> = rows
        .iter()
        .map(|row| 100.0 * judged_unseen(row, &STACKS).0)
        .collect();
    let judges: Vec<Published> = rows
        .iter()
        .zip(&without)
        .filter(|(row, error)| row.is_judge && error.is_finite())
        .map(|(row, _)| row.clone())
        .collect();
    let same = |errors: &[f64]| -> Vec<f64> {
        let here = rows.iter().zip(errors).zip(&without);
        here.filter(|((row, _), without)| row.is_judge && without.is_finite())
            .map(|((_, error), _)| *error)
            .collect()
    };
    let mut lines = Vec::new();
    for (name, errors, knows_experts) in [
        ("the law", same(errors), true),
        (
            "one part of the peak for each type, bits and what is trained",
            same(&without),
            true,
        ),
        ("the law, software not seen", same(&unseen), false),
    ] {
        for (kind, is) in [
            (DENSE, is_dense as fn(&Published) -> bool),
            ("experts", has_experts),
            ("above 8,192 tokens", is_long),
        ] {
            if knows_experts || kind == DENSE {
                let (num, at) = quantiles(&judges, &errors, is);
                let mut line = vec![format!("{name}: {kind}"), num.to_string()];
                line.extend(at.into_iter().map(show));
                lines.push(line);
            }
        }
    }
    table(&["law", "judge", "median error, %", "90 % below, %"], lines)
}

/// The rows of `data/stacks.csv`.
fn levels(rows: &[Published]) -> Vec<Vec<String>> {
    let line = |stack: Stack| {
        let numbers = [format!("{:.3}", stack.level), stack.num_rows.to_string()];
        let bits = stack.bits.to_string();
        [stack.software, stack.gpu, bits, stack.what]
            .into_iter()
            .chain(numbers)
            .collect()
    };
    fitted(rows).into_iter().map(line).collect()
}

/// From what the levels of each type come where no row covers it.
fn without_row() -> Table {
    let mut lines = Vec::new();
    for name in TYPES {
        let Some(gpu) = GPUS.iter().find(|gpu| gpu.name == name) else {
            continue;
        };
        for precision in Precision::EACH
            .into_iter()
            .filter(|precision| gpu.peak(*precision) > 0.0)
        {
            for (what, model, trained) in [
                ("dense", "llama-70b", Trained::All),
                ("adapters", "llama-70b", Trained::Adapters),
                ("experts", "mixtral-8x7b", Trained::All),
            ] {
                lines.extend(carried(gpu, precision, what, model, trained));
            }
        }
    }
    table(&["type", "bits", "what", "level", "level comes"], lines)
}

fn carried(
    gpu: &Gpu,
    precision: Precision,
    what: &str,
    model: &str,
    trained: Trained,
) -> Option<Vec<String>> {
    let training = Training {
        precision,
        trained,
        ..Training::all(Model::from_name(model).ok()?, 1)
    };
    let (level, basis) = level(gpu, &training);
    let is_there = basis == Basis::Measured || what == "experts" && basis == Basis::OtherModels;
    let bits = precision.bits().to_string();
    (!is_there).then(|| {
        vec![
            gpu.name.into(),
            bits,
            what.into(),
            format!("{level:.2}"),
            basis.to_string(),
        ]
    })
}

/// Settings of what is trained, bits and length that no row judges.
fn without_judge(rows: &[Published]) -> Table {
    let mut lines = Vec::new();
    for what in ["dense", "adapters", "experts"] {
        for precision in Precision::EACH {
            for (length, is_of_length) in [("up to 8,192 tokens", false), ("above 8,192 tokens", true)] {
                let bits = precision.bits();
                let is_here = |row: &&Published| {
                    row.is_judge
                        && kind(row) == what
                        && row.training.precision.bits() == bits
                        && is_long(row) == is_of_length
                };
                if rows.iter().filter(is_here).count() == 0 {
                    lines.push(vec![what.into(), bits.to_string(), length.into()]);
                }
            }
        }
    }
    table(&["what", "bits", "sequences"], lines)
}

/// The law's start of a class without its container.
fn start_s(model: &str, num_gpus: u32) -> f64 {
    let moved = Moved {
        state_bytes: 0.0,
        kind: 0,
        num_gpus,
        warm_up_s: facts_of(model).map_or(0.0, |facts| facts.warm_up_s),
        reads_first: false,
        storage: Storage::SHARED,
    };
    Overheads::ByClass.start_s(moved) - CONTAINER_S
}

fn start_figures() -> Vec<Figure> {
    let figure = |(what, model, num_gpus, [least, _, most]): (&str, &str, u32, [f64; 3])| {
        let target = Target::Between {
            low: least,
            high: most,
        };
        Figure::exact(
            format!("start of {what}, {num_gpus} GPUs, s"),
            start_s(model, num_gpus),
            target,
        )
    };
    let connects = start_s("", 2048);
    let tuned = Target::Between { low: 0.0, high: 5.0 };
    let mut figures: Vec<Figure> = STARTS.into_iter().map(figure).collect();
    figures.push(Figure::exact(
        "connections of 2,048 GPUs, tuned (MegaScale), s",
        connects,
        tuned,
    ));
    figures
}

fn starts() -> Table {
    let line = |(what, model, num_gpus, published): (&str, &str, u32, [f64; 3])| {
        let mut line = vec![what.to_string(), num_gpus.to_string()];
        line.extend(published.map(show));
        line.push(show(start_s(model, num_gpus)));
        line
    };
    let mut lines: Vec<Vec<String>> = STARTS.into_iter().map(line).collect();
    // MegaScale: Megatron-LM's own, the first mending, and tuned.
    let connections = [
        ("connections, MegaScale", 2048, ["under 5", "361", "1,047"]),
        ("connections, MegaScale", 10_000, ["-", "under 30", "-"]),
    ];
    for (what, num_gpus, published) in connections {
        let mut line = vec![what.to_string(), num_gpus.to_string()];
        line.extend(published.map(String::from));
        line.push(show(start_s("", num_gpus)));
        lines.push(line);
    }
    table(&["start", "GPUs", "least", "median", "most", "the law"], lines)
}
