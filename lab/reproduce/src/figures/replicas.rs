//! The law of a replica's steps held to published measurements that it was not fitted to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::quantile;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::run_folder::atomic_file::read_text;
use pleach_serving::llm::{Pace, s_of_ps};
use serde::Deserialize;

use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Target};

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "replicas",
    title: "Steps of a replica against measured throughput and time per token",
    source: "InferenceX by way of ai-dynamo/aiconfigurator, TensorRT-LLM's performance pages, dstackai/benchmarks, each row with its own",
    setup: "rows of --data (measured/serving.csv) marked to judge by, whose model, GPU and precision the program knows. Tensor parallel in \
            one node, no speculation. As many requests at once as the row says, or as memory holds. The targets are goals of ours",
    run: judged,
}];

/// Where the rows lie in a folder of published data.
const ROWS: &str = "measured/serving.csv";
/// Bytes of them at most.
const ROWS_BYTES_MAX: u64 = 64 << 20;
/// Some rows, each with its source.
const SAMPLE: &str = include_str!("replicas.csv");
/// Names of models and what they are here; sizes of one family have the same shape.
const MODELS: [(&str, &str); 11] = [
    ("Llama3-8B", "llama-3-8b"),
    ("Llama3.1-8B", "llama-3-8b"),
    ("Llama3-70B", "llama-3-70b"),
    ("Llama3.1-70B", "llama-3-70b"),
    ("Llama3.3-70B", "llama-3-70b"),
    ("Llama3.1-405B", "llama-3-405b"),
    ("Mistral-7B", "mistral-7b"),
    ("Mixtral-8x7B", "mixtral-8x7b"),
    ("Qwen2.5-72B", "qwen-2.5-72b"),
    ("Qwen3-32B", "qwen-3-32b"),
    ("QwQ-32B", "qwen-3-32b"),
];

/// One measurement, of what this reads.
#[derive(Debug, Deserialize)]
struct Row {
    half: String,
    model: String,
    gpu: String,
    #[serde(deserialize_with = "csv::invalid_option")]
    num_gpus: Option<u32>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tp: Option<u32>,
    mode: String,
    precision: String,
    spec: String,
    load: String,
    #[serde(deserialize_with = "csv::invalid_option")]
    isl: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    osl: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    concurrency: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    out_tok_s: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    out_tok_s_gpu: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tpot_ms: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tpot_p50_ms: Option<f64>,
    note: String,
    source: String,
}

/// What a row says, and what the law makes of it; else why it is left out.
fn held(row: &Row) -> Result<f64, &'static str> {
    let known = MODELS.iter().find(|(name, _)| *name == row.model);
    let (_, model) = known.ok_or("another model")?;
    let precision = match row.precision.as_str() {
        "bf16" | "fp16" => "bf16",
        "fp8" => "fp8",
        _ => return Err("another precision"),
    };
    let is_plain = row.mode == "agg" && !row.spec.contains("MTP") && !row.note.contains("attention DP");
    if !is_plain || row.tp != row.num_gpus || row.load.contains("open") || row.load.starts_with("MLPerf") {
        return Err("pools, speculation, copies or an open load");
    }
    let num_gpus = row.num_gpus.ok_or("no number of GPUs")?;
    let pace =
        Pace::kept_in(precision, model, &row.gpu, num_gpus).map_err(|_| "another GPU, or it does not fit")?;
    let (prompt, output) = row.isl.zip(row.osl).ok_or("no lengths")?;
    let cap = pace.kv_tokens as f64 / (prompt + output / 2.0);
    let is_most = row.load.contains("offline max");
    let at_once = match (is_most, row.concurrency) {
        (true, _) => cap.min(2048.0),
        (false, Some(num)) => num.min(cap),
        _ => return Err("no number of requests"),
    };
    if at_once < 1.0 {
        return Err("not one request fits");
    }
    let batch = at_once as u64;
    let decode_s = s_of_ps(pace.step(batch, (at_once * (prompt + output / 2.0)) as u64, 0));
    let prompts_s = at_once * prompt / output * s_of_ps(pace.prompt_token_ps);
    let tpot_s = decode_s + prompts_s;
    let per_gpu = row.out_tok_s_gpu.map(|rate| rate * f64::from(num_gpus));
    let measured_tpot_s = row.tpot_ms.or(row.tpot_p50_ms).map(|ms| ms / 1e3);
    match (measured_tpot_s, row.out_tok_s.or(per_gpu).filter(|_| is_most)) {
        (Some(measured), _) if measured > 0.0 => Ok((tpot_s / measured - 1.0).abs()),
        (_, Some(measured)) if measured > 0.0 => Ok((at_once / tpot_s / measured - 1.0).abs()),
        _ => Err("neither time per token nor throughput at most load"),
    }
}

/// All rows of a folder, or those that the program has.
fn rows(folder: Option<&Path>) -> Result<Vec<Row>, Error> {
    let path = folder.map_or_else(|| PathBuf::from("replicas.csv"), |folder| folder.join(ROWS));
    let wrong = |error: csv::Error| Error::data(&path, error.to_string());
    let text = match folder {
        Some(_) => read_text(&path, ROWS_BYTES_MAX)?,
        None => SAMPLE.to_string(),
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().map_err(wrong)
}

fn judged(effort: &Effort) -> Result<Reproduction, Error> {
    let (mut errors, mut out) = (
        BTreeMap::<String, Vec<f64>>::new(),
        BTreeMap::<&str, usize>::new(),
    );
    for row in rows(effort.data.as_deref())?
        .iter()
        .filter(|row| row.half == "judge")
    {
        match held(row) {
            Ok(error) => {
                let source = row.source.split([':', ' ', '@']).next().unwrap_or_default();
                let model = format!("{} {}", row.model, row.precision);
                for group in [
                    "all".into(),
                    format!("GPU {}", row.gpu),
                    model,
                    format!("source {source}"),
                ] {
                    errors.entry(group).or_default().push(100.0 * error);
                }
            }
            Err(why) => *out.entry(why).or_default() += 1,
        }
    }
    errors
        .values_mut()
        .for_each(|errors| errors.sort_unstable_by(f64::total_cmp));
    if errors.is_empty() {
        let hint = "Without --data the program takes rows of its own.";
        return Err(Error::config("data", "no such row", "rows to judge by", hint));
    }
    let part = |errors: &[f64], part: f64| quantile(errors, part).unwrap_or_default();
    let line = |(group, errors): (&String, &Vec<f64>)| {
        vec![
            group.clone(),
            errors.len().to_string(),
            show(part(errors, 0.5)),
            show(part(errors, 0.9)),
        ]
    };
    let table = |header: &[&str], rows: Vec<Vec<String>>| Table {
        header: header.iter().map(ToString::to_string).collect(),
        rows,
        notes: Vec::new(),
    };
    let left = out
        .iter()
        .map(|(why, num)| vec![(*why).to_string(), num.to_string()]);
    let all = &errors["all"];
    let figure = |what: &str, of: f64, high: f64| {
        Figure::exact(what, part(all, of), Target::Between { low: 0.0, high })
    };
    let lines = errors.iter().map(line).collect();
    let sample = "Without --data these are the rows that the program has, a few of each GPU.".to_string();
    Ok(Reproduction {
        figures: vec![
            figure("median relative error, %", 0.5, 12.0),
            figure("90 % of the relative errors are below, %", 0.9, 35.0),
        ],
        tables: vec![
            (
                "Errors".into(),
                table(
                    &["rows of", "rows", "median error, %", "90 % are below, %"],
                    lines,
                ),
            ),
            ("Rows left out".into(), table(&["why", "rows"], left.collect())),
        ],
        findings: effort.data.is_none().then_some(sample).into_iter().collect(),
        ..Reproduction::default()
    })
}
