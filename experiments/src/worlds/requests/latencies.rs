//! A site's own latencies: two factors on the law of its servers, fitted to every second row of a file and judged on the others.
//!
//! Rows are what a benchmark of a server prints: requests at once, tokens of a prompt and of an answer, mean time between tokens and to
//! the first one. Each row is played in a closed loop; the factors ([`Server::own_levels`]) are fitted to the times per token alone.

use std::path::Path;

use pleach_scheduler::portable_math::{exp, ln};
use pleach_serving::llm::{Pace, Server, closed_loop};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::stats::quantile;
use crate::evaluate::table::Table;
use crate::report::{Block, Report};
use crate::run_folder::atomic_file::read_text;
use crate::worlds::world::Description;

/// Bytes of a file, and rows of it, at most.
const BYTES_MAX: u64 = 1 << 20;
const ROWS_MAX: usize = 1_000;
/// Rows at least: two to fit two factors to, two to judge by.
const ROWS_MIN: usize = 4;
/// Requests at once and tokens of a row, at most.
const AT_ONCE_MAX: u32 = 1_024;
const TOKENS_MAX: u32 = 131_072;
/// Steps of the server in one play of all rows, at most: a fit plays them some fifty times.
const STEPS_MAX: u64 = 10_000_000;
/// Factors that are tried.
const LEVELS: (f64, f64) = (0.1, 10.0);
/// Ways from a pair of factors to others. Both may have to move at once: slow layers look like little bandwidth in some rows.
const WAYS: [[f64; 2]; 8] = [
    [1.0, 0.0],
    [-1.0, 0.0],
    [0.0, 1.0],
    [0.0, -1.0],
    [1.0, 1.0],
    [-1.0, -1.0],
    [1.0, -1.0],
    [-1.0, 1.0],
];
/// A miss counts at most so much, so that no row decides alone.
const MISS_MAX: f64 = 1.0;

/// One measurement.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Row {
    at_once: u32,
    prompt_tokens: u32,
    output_tokens: u32,
    tpot_s: f64,
    #[serde(default)]
    ttft_s: Option<f64>,
}

/// What a fit came to.
#[derive(Clone, Debug, Serialize)]
struct Fit {
    overhead_level: f64,
    efficiency_level: f64,
    /// Relative errors of rows that were not fitted: as the engine is, and with the factors.
    judged: [Errors; 2],
    num_fitted: usize,
    num_judged: usize,
}

/// Relative errors, %: median and largest; none where nothing was measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Errors {
    tpot: Option<[f64; 2]>,
    ttft: Option<[f64; 2]>,
}

/// Fits the factors of a server to a file, and says what they are worth.
///
/// # Errors
/// A file that cannot be read, rows that the server cannot hold, too few of them.
pub(super) fn describe(server: Server, path: &Path) -> Result<Description, Error> {
    let pace = server.pace()?;
    let rows = read(path, &pace)?;
    let (fitted, judged): (Vec<_>, Vec<_>) = rows.iter().enumerate().partition(|(place, _)| place % 2 == 0);
    let of = |rows: Vec<(usize, &Row)>| rows.into_iter().map(|(_, row)| *row).collect::<Vec<Row>>();
    let (fitted, judged) = (of(fitted), of(judged));
    let levels = levels(server, &fitted)?;
    let with = |own_levels| Server { own_levels, ..server }.pace();
    let fit = Fit {
        overhead_level: levels[0],
        efficiency_level: levels[1],
        judged: [errors(&pace, &judged), errors(&with(levels)?, &judged)],
        num_fitted: fitted.len(),
        num_judged: judged.len(),
    };
    shown(&fit)
}

fn shown(fit: &Fit) -> Result<Description, Error> {
    let cells = |errors: &Errors| {
        let both = [errors.tpot, errors.ttft];
        both.map(|of| of.map_or("-".into(), |[median, most]| format!("{median:.1}, {most:.1}")))
    };
    let row = |name: &str, errors: &Errors| [name.to_string()].into_iter().chain(cells(errors)).collect();
    let header = ["law", "time per token: error, %", "to the first token"].map(str::to_string);
    let set = format!(
        "--set overhead_level={:.3} --set efficiency_level={:.3} plays this server.",
        fit.overhead_level, fit.efficiency_level
    );
    let judged = format!(
        "Median and largest error of {} rows that were not fitted; {} were.",
        fit.num_judged, fit.num_fitted
    );
    let table = Table {
        header: header.to_vec(),
        rows: vec![
            row("as the engine is", &fit.judged[0]),
            row("fitted", &fit.judged[1]),
        ],
        notes: vec![judged, set],
    };
    Ok(Description {
        said: table.to_terminal().trim_end().to_string(),
        report: Report::new("A server by its latencies").section("Figures", [Block::from(table)]),
        json: serde_json::to_value(fit).map_err(|error| Error::Failed(error.to_string()))?,
    })
}

/// The rows of a file that a server of this pace can be held to.
fn read(path: &Path, pace: &Pace) -> Result<Vec<Row>, Error> {
    let wrong = |said: String| Error::data(path, said);
    let text = read_text(path, BYTES_MAX)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let (mut rows, mut num_steps) = (Vec::new(), 0);
    for (place, row) in reader.deserialize::<Row>().enumerate() {
        let line = place + 2;
        let row = row.map_err(|error| {
            wrong(format!(
                "line {line}: {error}; allowed are the columns at_once, prompt_tokens, output_tokens, tpot_s and ttft_s, which may be left out"
            ))
        })?;
        check(&row, pace).map_err(|said| wrong(format!("line {line}: {said}")))?;
        num_steps += steps(&row, pace);
        if num_steps > STEPS_MAX {
            return Err(wrong(format!(
                "line {line}: {num_steps} steps of the server so far; allowed are {STEPS_MAX}: leave long answers out"
            )));
        }
        rows.push(row);
        if rows.len() > ROWS_MAX {
            return Err(wrong(format!("more than {ROWS_MAX} rows: cut it")));
        }
    }
    if rows.len() < ROWS_MIN {
        return Err(wrong(format!(
            "{} rows: allowed are {ROWS_MIN} to {ROWS_MAX}",
            rows.len()
        )));
    }
    Ok(rows)
}

/// About how many steps the server plays for a row, ten answers for each request at once: those of answers, as many beside each other as
/// fit, and those of prompts.
fn steps(row: &Row, pace: &Pace) -> u64 {
    let [at_once, prompt, output] = [row.at_once, row.prompt_tokens, row.output_tokens].map(u64::from);
    let fit = (pace.kv_tokens / (prompt + output)).max(1);
    10 * (at_once.div_ceil(fit) * output + at_once * prompt.div_ceil(pace.prompt_room(0)))
}

fn check(row: &Row, pace: &Pace) -> Result<(), String> {
    let whole = |name: &str, value: u32, least: u32, most: u32| match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("{name} = {value}: allowed is {least} to {most}")),
    };
    whole("at_once", row.at_once, 1, AT_ONCE_MAX)?;
    whole("prompt_tokens", row.prompt_tokens, 1, TOKENS_MAX)?;
    // An answer of one token has no time between tokens.
    whole("output_tokens", row.output_tokens, 2, TOKENS_MAX)?;
    for (name, value) in [("tpot_s", Some(row.tpot_s)), ("ttft_s", row.ttft_s)] {
        if let Some(value) = value.filter(|value| !(1e-6..=1e4).contains(value)) {
            return Err(format!(
                "{name} = {value}: allowed is 0.000001 to 10000, in seconds"
            ));
        }
    }
    let tokens = u64::from(row.prompt_tokens) + u64::from(row.output_tokens);
    match tokens <= pace.kv_tokens {
        true => Ok(()),
        false => Err(format!(
            "{tokens} tokens: allowed are the {} whose keys and values this server holds; give its GPUs and precision by --set",
            pace.kv_tokens
        )),
    }
}

/// Logarithms of what the law says over what was measured: of the time per token, and of that to the first.
fn misses(pace: &Pace, row: &Row) -> (f64, Option<f64>) {
    let [ttft_s, tpot_s] = closed_loop(pace, row.at_once, || (row.prompt_tokens, row.output_tokens));
    (
        ln(tpot_s / row.tpot_s),
        row.ttft_s.map(|measured_s| ln(ttft_s / measured_s)),
    )
}

/// The factors with the least mean miss: up or down by a step, each alone or both, while that helps, in ever smaller steps.
fn levels(server: Server, rows: &[Row]) -> Result<[f64; 2], Error> {
    let loss = |own_levels: [f64; 2]| -> Result<f64, Error> {
        let pace = Server { own_levels, ..server }.pace()?;
        // Times to the first token hang on how a benchmark begins: fitted to, they spoil the steps.
        let of = |row: &Row| misses(&pace, row).0.abs().min(MISS_MAX);
        Ok(rows.iter().map(of).sum::<f64>() / rows.len() as f64)
    };
    let mut levels = [1.0, 1.0];
    let mut best = loss(levels)?;
    let mut step = 0.4;
    while step > 0.01 {
        let mut is_better = false;
        for by in WAYS {
            let other = [0, 1].map(|place| (levels[place] * exp(step * by[place])).clamp(LEVELS.0, LEVELS.1));
            let found = loss(other)?;
            if found < best {
                (levels, best, is_better) = (other, found, true);
                break;
            }
        }
        if !is_better {
            step *= 0.5;
        }
    }
    Ok(levels)
}

fn errors(pace: &Pace, rows: &[Row]) -> Errors {
    let all: Vec<_> = rows.iter().map(|row| misses(pace, row)).collect();
    let of = |misses: Vec<f64>| {
        let mut errors: Vec<f64> = misses
            .iter()
            .map(|miss| 100.0 * (exp(*miss) - 1.0).abs())
            .collect();
        errors.sort_by(f64::total_cmp);
        Some([quantile(&errors, 0.5)?, *errors.last()?])
    };
    Errors {
        tpot: of(all.iter().map(|(tpot, _)| *tpot).collect()),
        ttft: of(all.iter().filter_map(|(_, ttft)| *ttft).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::of("vllm", "llama-3-8b", "H100", 1).unwrap()
    }

    fn said(text: &str) -> Result<Description, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("measured.csv");
        std::fs::write(&path, text).unwrap();
        describe(server(), &path).map_err(|error| error.to_string())
    }

    /// A server whose layers take half as long again and whose memory gives four fifths, as a benchmark would print it.
    #[test]
    fn factors_of_a_slower_server_are_found_and_rows_that_were_not_fitted_are_met() {
        let own = Server {
            own_levels: [1.5, 0.8],
            ..server()
        };
        let mut text = String::from("at_once,prompt_tokens,output_tokens,tpot_s,ttft_s\n");
        for (at_once, prompt, output) in
            (0..16).map(|row| (1_u32 << (row / 2), 100 + 300 * (row % 3), 50 + 40 * (row % 4)))
        {
            let [ttft_s, tpot_s] = closed_loop(&own.pace().unwrap(), at_once, || (prompt, output));
            text += &format!("{at_once},{prompt},{output},{tpot_s},{ttft_s}\n");
        }
        let found = said(&text).unwrap();
        let number = |key: &str| found.json[key].as_f64().unwrap();
        assert!((number("overhead_level") - 1.5).abs() < 0.15, "{}", found.json);
        assert!((number("efficiency_level") - 0.8).abs() < 0.08, "{}", found.json);
        let of = |place: usize| found.json["judged"][place]["tpot"][0].as_f64().unwrap();
        assert!(of(0) > 15.0 && of(1) < 2.0, "{}", found.json);
        assert!(found.said.contains("--set overhead_level="), "{}", found.said);
    }

    #[test]
    fn files_that_are_no_measurements_are_refused_with_the_line() {
        let head = "at_once,prompt_tokens,output_tokens,tpot_s\n";
        for (text, part) in [
            ("a,b\n1,2\n".to_string(), "allowed are the columns at_once"),
            (format!("{head}1,100,50,0.01\n"), "1 rows: allowed are 4"),
            (
                format!("{head}1,100,50,0.01\n0,100,50,0.01\n"),
                "line 3: at_once = 0",
            ),
            (format!("{head}1,100,50,NaN\n"), "line 2: tpot_s = NaN"),
            (format!("{head}1,100,50,-1\n"), "line 2: tpot_s = -1"),
            (format!("{head}1,100,50,many\n"), "line 2"),
            (format!("{head}1,999999999999,50,0.1\n"), "line 2"),
            (
                format!("{head}1,100,1,0.01\n"),
                "line 2: output_tokens = 1: allowed is 2 to",
            ),
            (
                format!("{head}{}", "1,100,100000,0.01\n".repeat(11)),
                "steps of the server so far; allowed are 10000000",
            ),
            (
                format!("{head}{}", "1000,60000,2,0.01\n".repeat(1000)),
                "steps of the server so far",
            ),
            ("x".repeat(2 << 20), "larger than"),
        ] {
            let refused = said(&text).err().unwrap();
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
}
