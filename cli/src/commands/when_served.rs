//! `pleach when http://HOST:PORT`: what a running daemon serves, asked once.
//!
//! # What is deliberately not here
//! TLS: the daemon for Slurm serves its own machine, without; the server of `pleach-kubernetes` wants a client's certificate.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use pleach_experiments::error::Error;
use pleach_experiments::when::Served;

use crate::commands::Context;
use crate::flags::WhenArgs;

/// What makes the first argument an address.
pub(super) const SCHEME: &str = "http://";
/// Flags that it reads.
const READ: [&str; 5] = ["gpus", "job", "json", "quiet", "time"];
/// Time for an answer, all in all, and its length, bytes. *Ours*.
const PATIENCE: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 4 << 20;

/// Asks a daemon for a job that waits, or for a usual request.
///
/// # Errors
/// Flags that need a list; a daemon that does not answer, or has no such forecast.
pub fn run(args: &WhenArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let is_read = |flag: &&String| READ.contains(&flag.as_str());
    if let Some(flag) = context.given.iter().find(|flag| !is_read(flag)) {
        let hint = "Ask the list that the daemon's capture writes.";
        return Err(Error::config(
            flag,
            &args.list,
            "a list, not a running daemon",
            hint,
        ));
    }
    let query = match &args.job {
        Some(id)
            if id
                .bytes()
                .all(|letter| letter.is_ascii_alphanumeric() || b"-_.+".contains(&letter)) =>
        {
            format!("?job={id}")
        }
        Some(id) => {
            let allowed = "a number of Slurm's, or the job_id of the list";
            return Err(Error::config(
                "job",
                id,
                allowed,
                "squeue, or the daemon's capture, names it.",
            ));
        }
        None => String::new(),
    };
    let failed = |words: String| Error::Temporary(format!("{}: {words}", args.list));
    let body = get(&args.list, &format!("/v1/when{query}")).map_err(failed)?;
    let served =
        Served::read(&body).map_err(|words| failed(format!("its answer is not understood: {words}")))?;
    if !args.report.quiet() {
        context.say(&served.words(&args.ask())?)?;
    }
    let json = args.report.json();
    json.map_or(Ok(()), |path| context.write_json(path, &served.body))
}

/// The body of an answer.
fn get(address: &str, path: &str) -> Result<Vec<u8>, String> {
    let host = address
        .strip_prefix(SCHEME)
        .unwrap_or(address)
        .trim_end_matches('/');
    let places = host.to_socket_addrs();
    let places = places.map_err(|error| format!("no such host, or no port: {error}"))?;
    let end = Instant::now() + PATIENCE;
    let asked = move || -> std::io::Result<Vec<u8>> {
        // A name may be of several addresses, of which one serves.
        let mut streams = places.map(|place| TcpStream::connect_timeout(&place, PATIENCE / 4));
        let refused = || Err(ErrorKind::ConnectionRefused.into());
        let mut stream = streams.find(Result::is_ok).unwrap_or_else(refused)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // Of the old version no answer comes in pieces.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        loop {
            // One limit for all reads: a server that sends byte by byte gets no more time than others.
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut part)? {
                0 => return Ok(bytes),
                num if bytes.len() + num > BYTES_MAX => return Err(ErrorKind::FileTooLarge.into()),
                num => bytes.extend_from_slice(&part[..num]),
            }
        }
    };
    let bytes = asked().map_err(|error| format!("no answer: {error}"))?;
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n");
    let head = head.ok_or("it does not speak HTTP")?;
    let code = std::str::from_utf8(&bytes[..head])
        .ok()
        .and_then(|text| text.split(' ').nth(1));
    match code {
        Some("200") => Ok(bytes[head + 4..].to_vec()),
        Some("404") => Err("no forecast: the job does not wait or is new, or no forecaster runs".into()),
        _ => Err("it serves no forecasts".into()),
    }
}
