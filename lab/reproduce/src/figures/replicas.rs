//! The law of a replica's steps held to published measurements that it was not fitted to, and its fit to others.

mod fit;
mod rows;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::quantile;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::run_folder::atomic_file::read_text;
use pleach_serving::llm::GPUS;

use self::fit::Fitted;
use self::rows::{Held, MOST_PART, Row};
use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Target};

const SOURCE: &str = "InferenceX by way of ai-dynamo/aiconfigurator, TensorRT-LLM's performance pages, dstackai/benchmarks, each row with its own";

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: "replicas",
        title: "Steps of a replica against measured throughput and times per token and to the first",
        source: SOURCE,
        setup: "rows of --data (measured/serving.csv) marked to judge by, beside those to fit by; models, GPUs and engines that the program \
                knows, whole replicas of one node, no speculation. As many requests at once as the row says, or as memory holds. The targets \
                are goals of ours",
        run: judged,
    },
    Benchmark {
        id: "replicas-fit",
        title: "Constants of a replica's steps, fitted anew",
        source: SOURCE,
        setup: "rows of --data marked to fit by give the constants of the program's table; the rows to judge by say what the law is worth \
                where it has seen nothing of a model, a GPU type, a source or a set-up",
        run: fitted,
    },
];

/// Where the rows lie in a folder of published data.
const ROWS: &str = "measured/serving.csv";
/// Bytes of them at most.
const ROWS_BYTES_MAX: u64 = 64 << 20;
/// Some rows, each with its source.
const SAMPLE: &str = include_str!("replicas.csv");

/// Rows, those that the law can be held to, and how many are left out, by reason.
struct Measured {
    rows: Vec<Row>,
    held: Vec<Held>,
    left_out: BTreeMap<&'static str, usize>,
}

impl Measured {
    /// Of a folder, or those that the program has.
    fn read(folder: Option<&Path>) -> Result<Measured, Error> {
        let path = folder.map_or_else(|| PathBuf::from("replicas.csv"), |folder| folder.join(ROWS));
        let wrong = |error: csv::Error| Error::data(&path, error.to_string());
        let text = match folder {
            Some(_) => read_text(&path, ROWS_BYTES_MAX)?,
            None => SAMPLE.to_string(),
        };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<Row> = reader.deserialize().collect::<Result<_, _>>().map_err(wrong)?;
        let (mut held, mut left_out) = (Vec::new(), BTreeMap::new());
        for (place, row) in rows.iter().enumerate() {
            match row.held(place) {
                Ok(one) => held.push(one),
                Err(why) => *left_out.entry(why).or_default() += 1,
            }
        }
        let measured = Measured { rows, held, left_out };
        for half in ["judge", "calibrate"] {
            if measured.half(half).is_empty() {
                let hint = "Without --data the program takes rows of its own.";
                return Err(Error::config(
                    "data",
                    "no such row",
                    format!("rows to {half} by"),
                    hint,
                ));
            }
        }
        Ok(measured)
    }

    /// Rows marked to judge by or to fit by.
    fn half(&self, half: &str) -> Vec<&Held> {
        let held = self.held.iter();
        held.filter(|held| self.rows[held.row].half == half).collect()
    }

    /// Groups of a row.
    fn groups(&self, held: &Held) -> [String; 9] {
        let row = &self.rows[held.row];
        let part = if held.is_mixture() {
            "mixtures of experts"
        } else {
            "dense"
        };
        let copies = if held.server.num_copies > 1 {
            "copies of attention"
        } else {
            "split attention"
        };
        [
            "all".into(),
            part.into(),
            copies.into(),
            held.kind.name().into(),
            format!("GPU {}", row.gpu),
            format!("model {}", row.model),
            format!("engine {}", held.server.engine.name),
            format!("precision {}", row.precision),
            format!("source {}", source(row)),
        ]
    }

    fn table_left_out(&self) -> (String, Table) {
        let left = self.left_out.iter();
        let left = left.map(|(why, num)| vec![(*why).to_string(), num.to_string()]);
        ("Rows left out".into(), table(&["why", "rows"], left.collect()))
    }
}

/// Who published a row.
fn source(row: &Row) -> &str {
    row.source.split([':', ' ', '@']).next().unwrap_or_default()
}

fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        header: header.iter().map(ToString::to_string).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// Errors in %, sorted.
#[derive(Default)]
struct Errors(Vec<f64>);

impl Errors {
    fn add(&mut self, error: f64) {
        let error = 100.0 * error.abs();
        let place = self.0.partition_point(|other| *other < error);
        self.0.insert(place, error);
    }

    fn part(&self, part: f64) -> f64 {
        quantile(&self.0, part).unwrap_or_default()
    }

    /// Rows, median and 90th percentile.
    fn cells(&self) -> [String; 3] {
        if self.0.is_empty() {
            return ["0".into(), "-".into(), "-".into()];
        }
        [
            self.0.len().to_string(),
            show(self.part(0.5)),
            show(self.part(0.9)),
        ]
    }
}

const TTFT: &str = "time to the first token, at most 4 at once";

/// Errors of one half by group.
fn errors(measured: &Measured, half: &str) -> BTreeMap<String, Errors> {
    let mut errors = BTreeMap::<String, Errors>::new();
    for held in measured.half(half) {
        let Ok(pace) = held.server.pace() else { continue };
        let error = held.predicted(&pace, MOST_PART) / held.measured - 1.0;
        for group in measured.groups(held) {
            errors.entry(group).or_default().add(error);
        }
        if let Some(ttft_s) = held.low_ttft_s() {
            errors
                .entry(TTFT.into())
                .or_default()
                .add(held.played(&pace)[0] / ttft_s - 1.0);
        }
    }
    errors
}

fn judged(effort: &Effort) -> Result<Reproduction, Error> {
    let measured = Measured::read(effort.data.as_deref())?;
    let [judged, fitted] = ["judge", "calibrate"].map(|half| errors(&measured, half));
    let none = Errors::default();
    let line = |(group, errors): (&String, &Errors)| {
        let fitted = fitted.get(group).unwrap_or(&none);
        let cells = errors.cells().into_iter().chain(fitted.cells());
        [group.clone()].into_iter().chain(cells).collect()
    };
    let of = |group: &str| judged.get(group).unwrap_or(&none);
    let figure =
        |what: &str, value: f64, high: f64| Figure::exact(what, value, Target::Between { low: 0.0, high });
    let seen: BTreeSet<&str> = measured.held.iter().map(|held| held.server.gpu.name).collect();
    let unseen = GPUS.iter().filter(|gpu| !seen.contains(gpu.name));
    let unseen: Vec<&str> = unseen.map(|gpu| gpu.name).collect();
    let mut findings = vec![format!(
        "No row has these GPU types, so what the program says of them is an extrapolation: {}.",
        unseen.join(", ")
    )];
    if effort.data.is_none() {
        findings.push("Without --data these are the rows that the program has, a few of each GPU.".into());
    }
    Ok(Reproduction {
        figures: vec![
            figure("median relative error, %", of("all").part(0.5), 12.0),
            figure(
                "90 % of the relative errors are below, %",
                of("all").part(0.9),
                35.0,
            ),
            figure("dense models: median, %", of("dense").part(0.5), 10.0),
            figure(
                "mixtures of experts: median, %",
                of("mixtures of experts").part(0.5),
                13.0,
            ),
            figure(
                "time to the first token, at most 4 at once: median, %",
                of(TTFT).part(0.5),
                30.0,
            ),
        ],
        tables: vec![
            (
                "Errors".into(),
                table(
                    &[
                        "rows of",
                        "judged rows",
                        "median error, %",
                        "90 % are below, %",
                        "fitted rows",
                        "median, %",
                        "90 %, %",
                    ],
                    judged.iter().map(line).collect(),
                ),
            ),
            measured.table_left_out(),
        ],
        findings,
        ..Reproduction::default()
    })
}

fn fitted(effort: &Effort) -> Result<Reproduction, Error> {
    let measured = Measured::read(effort.data.as_deref())?;
    let fitted = Fitted::of(&measured.half("calibrate"));
    let mut all = Errors::default();
    measured
        .half("judge")
        .iter()
        .for_each(|held| all.add(fitted.error(held)));
    let header = [
        "kind",
        "name",
        "layer",
        "expert layer",
        "reduce",
        "exchange",
        "request",
        "reduce byte",
        "exchange byte",
        "weights",
        "experts",
        "kv",
        "dense",
        "mixture",
        "attention",
    ];
    let unseen = seen::unseen(&measured, effort.smoke);
    let most = format!(
        "Measurements of the most reach {:.3} of their steady throughput.",
        fitted.most_part()
    );
    Ok(Reproduction {
        figures: vec![Figure::exact("median relative error of rows to judge by, %", all.part(0.5), Target::Record)],
        tables: vec![
            (
                "Constants: constants.csv of pleach-serving; of an engine overhead, request, efficiency, time before the queue".into(),
                table(&header, fitted.rows()),
            ),
            (
                "Errors where nothing of it was fitted".into(),
                table(&["never seen", "judged rows", "median error, %", "90 % are below, %"], unseen),
            ),
            measured.table_left_out(),
        ],
        findings: vec![most],
        ..Reproduction::default()
    })
}
