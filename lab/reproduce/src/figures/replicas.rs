//! The law of a replica's steps held to published measurements that it was not fitted to, and its fit to others.

mod fit;
mod measured;
mod rows;
mod seen;

use std::collections::{BTreeMap, BTreeSet};

use pleach_experiments::error::Error;
use pleach_serving::llm::GPUS;

use self::fit::Fitted;
use self::measured::{Errors, Measured, table};
use self::rows::MOST_PART;
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
        setup: "rows of --data marked to fit by give the constants of the program's table. Rows to judge by say what they are worth where \
                nothing of a model, a GPU type, a source or a set-up was seen",
        run: fitted,
    },
];

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
    let all = measured.half("judge");
    let num_large = all.iter().filter(|held| held.server.pace().is_err()).count();
    findings.push(format!(
        "{num_large} of {} rows to judge by are in no error: by the program's account the model leaves no room for keys and values.",
        all.len()
    ));
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
                "Constants: constants.csv of pleach-serving; of an engine overhead, request, efficiency, steps and s a token before the queue".into(),
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
