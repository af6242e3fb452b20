//! Forecasts that a daemon serves: `pleach when http://HOST:PORT`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::day::DAY_S;
use pleach_experiments::evaluate::metric::show_seconds;
use serde_json::Value;

use crate::commands::Context;
use crate::flags::WhenArgs;

/// Longest answer that is read, bytes, and longest time without a byte of it.
const BYTES_MAX: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for a job that waits, or for the least request that is as large as the one that is meant.
///
/// # Errors
/// A daemon that does not answer, or has no such forecast.
pub(super) fn run(address: &str, args: &WhenArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let address = address.trim_end_matches('/');
    let refuse =
        |reason: String, hint: &str| Error::config("list", format!("http://{address}"), reason, hint);
    let query = args
        .job
        .as_ref()
        .map_or(String::new(), |job| format!("?job={job}"));
    let reply = ask(address, &format!("/v1/when{query}"))
        .map_err(|error| refuse(format!("a daemon that answers: {error}"), "Set metrics_port."))?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
    let found: Option<Value> = serde_json::from_str(body).ok();
    let hint = "Does `pleach when --answers` write into the folder of the daemon?";
    let Some(found) = found.filter(|_| head.starts_with("HTTP/1.1 200")) else {
        return Err(refuse("a daemon that has such a forecast".into(), hint));
    };
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(f64::NAN);
    let is_enough = |of: &&Value| {
        let limit_s = args.time.map_or(0.0, |days| days * DAY_S);
        let gpus = args.gpus.map_or(0.0, f64::from);
        args.job.is_some()
            || number(of, "gpus") >= gpus && of["time_s"].as_f64().is_none_or(|time_s| time_s >= limit_s)
    };
    let forecasts = found["forecasts"].as_array().into_iter().flatten();
    let Some(of) = forecasts.into_iter().find(is_enough) else {
        return Err(refuse(
            "a forecast of so large a request".into(),
            "Ask a list of the site.",
        ));
    };
    if !args.report.quiet() {
        let what = match &args.job {
            Some(job) => format!("job {job}"),
            None => {
                let limit = of["time_s"].as_f64().map_or("any time".to_owned(), show_seconds);
                format!("{} GPUs for {limit}", number(of, "gpus"))
            }
        };
        let [from_s, to_s] = [0, 1].map(|end| of["within_s"][end].as_f64().unwrap_or(f64::NAN));
        context.say(&format!(
            "{what}: starts in {}   80 %: {} to {}   at once: {:.0} %",
            show_seconds(number(of, "median_s")),
            show_seconds(from_s),
            show_seconds(to_s),
            100.0 * number(of, "at_once")
        ))?;
        let old = if found["is_fresh"] == true {
            ""
        } else {
            ": too old to count on"
        };
        context.say(&format!(
            "made {} ago{old}; the 80 % interval held {:.0} % of the last {} jobs here",
            show_seconds(number(&found, "age_s")),
            100.0 * number(&found, "held"),
            number(&found, "num_held")
        ))?;
    }
    args.report
        .json()
        .map_or(Ok(()), |path| context.write_json(path, &found))
}

fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
