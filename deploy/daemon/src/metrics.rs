//! Figures for Prometheus, over HTTP on a port of the loopback address: `GET /metrics` in the OpenMetrics text format. There too
//! `GET /v1/when`, forecasts of starts.
//!
//! A thread of its own answers one caller at a time, from the text of the last round: a slow caller delays no round.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::error::Error;
use crate::forecasts::Served;
use crate::leases::LeaseStatus;
use crate::round_facts::DecidedBy;
use crate::state::Status;

/// Longest request that is read, bytes.
const REQUEST_MAX: usize = 4096;
/// Longest time for a caller, from its first byte to its last.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause where no caller can be accepted, for the want of file descriptors for example.
const PAUSE: Duration = Duration::from_millis(100);
/// The text before the first round: nothing, as OpenMetrics writes it.
const NOTHING: &str = "# EOF\n";

/// The figures, and the port that serves them.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    text: Arc<Mutex<String>>,
    address: Option<SocketAddr>,
    counters: [Counter; 7],
    jobs: [Gauge; 7],
    oldest: Gauge,
    last_round: Gauge,
    drift: Gauge<f64, AtomicU64>,
    times: [Histogram; 3],
    /// Exported from the first round with leases on; only a driver that knows leases has any.
    leases: Option<(Counter, [Gauge; 3])>,
    /// Each from the first round on in which it is known; where it is known no longer, it is no number.
    known: [Option<Gauge<f64, AtomicU64>>; 5],
    served: Served,
}

impl Metrics {
    /// Figures that no port serves yet; `left_alone` is name and meaning of the one that counts such jobs. A caller with a server
    /// of its own serves [`Metrics::text`] there.
    #[must_use]
    pub fn new(left_alone: (&'static str, &'static str)) -> Metrics {
        let mut registry = Registry::with_prefix("pleach");
        let counters = [
            ("rounds", "Rounds since the daemon began"),
            ("rounds_failed", "Rounds that failed"),
            (
                "rounds_by_fallback",
                "Rounds that the fallback answered, or that the policy left to it",
            ),
            (
                "decisions_sent",
                "Starts and preemptions that were sent; in shadow mode, decided",
            ),
            (
                "decisions_by_fallback",
                "Those of the decisions sent that the fallback made",
            ),
            ("log_lines_lost", "Lines that the decision log could not take"),
            ("jobs_started", "Jobs that were seen to begin to run"),
        ];
        let counters = counters.map(|(name, help)| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        });
        let jobs = [
            ("jobs_waiting", "Jobs that wait for the daemon"),
            ("jobs_placed", "Jobs that run or were let go"),
            left_alone,
            ("gpus_idle", "GPUs that no job had after the last round"),
            (
                "jobs_fitting",
                "Jobs that waited after the last round and would have fitted on the idle GPUs",
            ),
            (
                "decided_by",
                "Who decided the last round: 0 the policy, 1 another rule because it steps aside, 2 the fallback",
            ),
            (
                "rival",
                "1 where another daemon was seen to drive the same jobs within ten minutes",
            ),
        ];
        let jobs = jobs.map(|(name, help)| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        });
        let oldest = Gauge::default();
        let help = "For how long the oldest job that waits has waited";
        registry.register_with_unit("oldest_wait", help, Unit::Seconds, oldest.clone());
        let last_round = Gauge::default();
        let help = "When the last round began, Unix time";
        registry.register_with_unit("last_round", help, Unit::Seconds, last_round.clone());
        let drift = Gauge::default();
        let help = "Stability index of the last decisions; NaN until there is one";
        registry.register("drift_psi", help, drift.clone());
        let times = [
            ("observe", "Time for observing the batch system"),
            ("decide", "Time for deciding"),
            ("apply", "Time for carrying out"),
        ];
        let times = times.map(|(name, help)| {
            // 0.1 ms to 6.6 s.
            let histogram = Histogram::new(exponential_buckets(1e-4, 3.0, 11));
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
            histogram
        });
        Metrics {
            registry,
            text: Arc::new(Mutex::new(NOTHING.to_owned())),
            address: None,
            counters,
            jobs,
            oldest,
            last_round,
            drift,
            times,
            leases: None,
            known: Default::default(),
            served: Served::default(),
        }
    }

    /// Listens on 127.0.0.1; port 0 takes one that is free.
    ///
    /// # Errors
    /// A port that cannot be had.
    pub fn listen(&mut self, port: u16) -> Result<(), Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listen = || -> std::io::Result<(TcpListener, SocketAddr)> {
            let listener = listener?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen().map_err(|source| Error::File {
            path: format!("127.0.0.1:{port}").into(),
            source,
        })?;
        self.address = Some(address);
        let shared = (self.text(), self.served());
        thread::spawn(move || serve(listener.incoming(), (&shared.0, &shared.1)));
        Ok(())
    }

    /// Forecasts of starts as they are served.
    #[must_use]
    pub fn served(&self) -> Served {
        self.served.clone()
    }

    /// The figures of the last round, in the OpenMetrics text format.
    #[must_use]
    pub fn text(&self) -> Arc<Mutex<String>> {
        Arc::clone(&self.text)
    }

    /// Where it listens, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Takes in a round that has ended, with the forecasts that are served.
    pub fn publish(&mut self, status: &Status) {
        let starts = self.served.starts();
        let starts = starts.as_deref();
        let is_failed = status.num_failed > self.counters[1].get();
        let totals = [
            status.num_rounds,
            status.num_failed,
            status.num_fallbacks,
            status.num_starts,
            status.num_starts_by_fallback,
            status.num_lines_lost,
            status.truth.num_started,
        ];
        for (counter, total) in self.counters.iter().zip(totals) {
            let counter: &AtomicU64 = counter.inner();
            counter.store(total, Ordering::Relaxed);
        }
        let truth = &status.truth;
        let decided_by = match truth.decided_by {
            DecidedBy::Policy => 0,
            DecidedBy::Another => 1,
            DecidedBy::Fallback => 2,
        };
        let nums = [
            status.num_waiting,
            status.num_placed,
            status.num_foreign,
            truth.num_gpus_idle as usize,
            truth.num_jobs_fitting,
            decided_by,
            usize::from(status.rival.is_some()),
        ];
        self.oldest
            .set(truth.oldest.as_ref().map_or(0, |oldest| oldest.wait_s));
        for (gauge, num) in self.jobs.iter().zip(nums) {
            gauge.set(i64::try_from(num).unwrap_or(i64::MAX));
        }
        self.last_round.set(status.at_s);
        self.drift.set(status.drift_psi.unwrap_or(f64::NAN));
        let times = [status.observe_s, status.decide_s, status.apply_s];
        // The times of a round that failed are those of the round before.
        for (histogram, time_s) in self.times.iter().zip(times).filter(|_| !is_failed) {
            histogram.observe(time_s);
        }
        let broken = status.promise.as_ref().map(|promise| promise.broken.is_some());
        let known = [
            (
                "jobs_unheld",
                "Jobs that came and were not held, and went ahead of the others",
                status.num_unheld,
            ),
            (
                "promise_broken",
                "1 where jobs wait longer than was promised of the policy, so that the fallback decides",
                broken.map(usize::from),
            ),
            (
                "forecast_age_seconds",
                "How old the forecasts of starts are",
                starts.map(|starts| starts.age_s(status.at_s) as usize),
            ),
            (
                "forecast_held_percent",
                "Part of the last forecasts of starts whose 80 % interval held",
                starts.map(|starts| (100.0 * starts.held).round() as usize),
            ),
            (
                "forecast_jobs",
                "Jobs that wait and have a forecast of their start",
                starts.map(|starts| starts.jobs.len()),
            ),
        ];
        for (gauge, (name, help, num)) in self.known.iter_mut().zip(known) {
            if gauge.is_none() && num.is_none() {
                continue;
            }
            let gauge = gauge.get_or_insert_with(|| {
                let gauge = Gauge::default();
                self.registry.register(name, help, gauge.clone());
                gauge
            });
            gauge.set(num.map_or(f64::NAN, |num| num as f64));
        }
        if let Some(leases) = &status.leases {
            self.publish_leases(leases);
        }
        let mut text = String::new();
        // A `String` takes all that is written to it.
        if encode(&mut text, &self.registry).is_ok() {
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }
}

impl Metrics {
    fn publish_leases(&mut self, leases: &LeaseStatus) {
        let registry = &mut self.registry;
        let (stopped, gauges) = self.leases.get_or_insert_with(|| {
            let stopped = Counter::default();
            let help = "Jobs that were stopped so that replicas of services have GPUs";
            registry.register("jobs_stopped_for_leases", help, stopped.clone());
            let gauges = [
                ("leases_waiting", "Replicas of services that wait for GPUs"),
                ("leases_placed", "Replicas of services that run or were let go"),
                ("gpus_leased", "GPUs that these hold"),
            ];
            let gauges = gauges.map(|(name, help)| {
                let gauge = Gauge::default();
                registry.register(name, help, gauge.clone());
                gauge
            });
            (stopped, gauges)
        });
        stopped.inner().store(leases.num_stopped, Ordering::Relaxed);
        let nums = [leases.num_waiting, leases.num_placed, leases.num_gpus as usize];
        for (gauge, num) in gauges.iter().zip(nums) {
            gauge.set(i64::try_from(num).unwrap_or(i64::MAX));
        }
    }
}

fn serve(callers: impl Iterator<Item = std::io::Result<TcpStream>>, told: (&Mutex<String>, &Served)) {
    for caller in callers {
        match caller {
            // A caller that breaks off is none of our errors.
            Ok(caller) => drop(answer(caller, told)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// The time until `end`.
///
/// # Errors
/// There is none left.
fn left(end: Instant) -> std::io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

fn answer(mut caller: TcpStream, (text, served): (&Mutex<String>, &Served)) -> std::io::Result<()> {
    // One limit for all reads and writes: a caller that sends byte by byte gets no more time than others.
    let end = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut part = [0; 512];
    while request.len() < REQUEST_MAX && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        caller.set_read_timeout(Some(left(end)?))?;
        match caller.read(&mut part)? {
            0 => break,
            num => request.extend_from_slice(&part[..num]),
        }
    }
    let line = String::from_utf8_lossy(&request);
    let asked = line
        .strip_prefix("GET /v1/when")
        .and_then(|rest| rest.split_once(' '));
    let forecasts = asked.and_then(|(query, _)| served.answer(query));
    let (code, kind, body) = if let Some(body) = forecasts {
        ("200 OK", "application/json", body)
    } else if request.starts_with(b"GET /metrics ") {
        let body = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            body,
        )
    } else {
        let body = "GET /metrics, or /v1/when?job=ID where there is a forecast\n";
        ("404 Not Found", "text/plain", body.to_owned())
    };
    let num = body.len();
    let reply = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {num}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut rest = reply.as_bytes();
    while !rest.is_empty() {
        caller.set_write_timeout(Some(left(end)?))?;
        match caller.write(rest)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            num => rest = &rest[num..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(port: u16) -> Result<Metrics, Error> {
        let mut metrics = Metrics::new(("jobs_left_alone", "Jobs that are left alone"));
        metrics.listen(port).map(|()| metrics)
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut caller = TcpStream::connect(address).unwrap();
        caller.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        caller.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_round_can_be_read_on_loopback_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut metrics = listening(0).unwrap();
        let address = metrics.address().unwrap();
        assert!(address.ip().is_loopback());
        let before = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(
            before.starts_with("HTTP/1.1 200") && before.ends_with("\r\n\r\n# EOF\n"),
            "{before}"
        );
        for rounds in 1..=2 {
            let status = Status {
                num_rounds: rounds,
                num_waiting: 7,
                at_s: 1_795_000_000,
                drift_psi: (rounds == 2).then_some(0.25),
                decide_s: 0.002,
                leases: (rounds == 2).then_some(LeaseStatus {
                    num_placed: 3,
                    num_gpus: 12,
                    num_waiting: 2,
                    num_stopped: 5,
                }),
                ..Status::default()
            };
            if rounds == 2 {
                let text = r#"{"version":1,"made_s":1794999960,"method":"trees","policy":"easy","held":0.75,"num_held":9,"jobs":{},"requests":[]}"#;
                std::fs::write(folder.path().join("when.json"), text).unwrap();
                let mut forecasts = crate::forecasts::Forecasts::of(folder.path(), metrics.served());
                assert_eq!(forecasts.look(status.at_s), None);
            }
            metrics.publish(&status);
        }
        let text = ask(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        for line in [
            "HTTP/1.1 200 OK",
            "pleach_rounds_total 2",
            "pleach_jobs_waiting 7",
            "pleach_last_round_seconds 1795000000",
            "pleach_decide_seconds_count 2",
            "pleach_drift_psi 0.25",
            "pleach_jobs_stopped_for_leases_total 5",
            "pleach_leases_waiting 2",
            "pleach_leases_placed 3",
            "pleach_gpus_leased 12",
            "pleach_forecast_age_seconds 40",
            "pleach_forecast_held_percent 75",
            "pleach_forecast_jobs 0",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        // Forecasts that are gone have no age.
        std::fs::remove_file(folder.path().join("when.json")).unwrap();
        let mut forecasts = crate::forecasts::Forecasts::of(folder.path(), metrics.served());
        assert_eq!(forecasts.look(1_795_000_001), None);
        metrics.publish(&Status::default());
        let text = ask(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        for name in ["age_seconds", "held_percent", "jobs"] {
            let line = format!("\npleach_forecast_{name} NaN\n");
            assert!(text.contains(&line), "{line} is not in {text}");
        }
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, &"x".repeat(REQUEST_MAX)).starts_with("HTTP/1.1 404"));
        let port = address.port();
        assert!(
            listening(port)
                .unwrap_err()
                .to_string()
                .contains(&port.to_string())
        );
    }

    #[test]
    fn a_caller_that_sends_byte_by_byte_is_left_after_a_second() {
        let metrics = listening(0).unwrap();
        let mut caller = TcpStream::connect(metrics.address().unwrap()).unwrap();
        // Four seconds in all, and never one without a byte.
        let is_left = (0..40).any(|_| {
            thread::sleep(Duration::from_millis(100));
            caller.write_all(b"x").is_err()
        });
        assert!(is_left);
        assert!(ask(metrics.address().unwrap(), "GET /metrics HTTP/1.1\r\n\r\n").contains("# EOF"));
    }

    #[test]
    fn callers_that_cannot_be_accepted_keep_no_core_busy() {
        let began = Instant::now();
        let told = (&Mutex::default(), &Served::default());
        serve((0..3).map(|_| Err(ErrorKind::Other.into())), told);
        assert!(began.elapsed() >= 3 * PAUSE);
    }
}
