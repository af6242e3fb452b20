//! `run`: round after round, until a signal ends it.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pleach_daemon::log::one_line;
use pleach_daemon::{Error, Service, Settings};

use crate::arguments::Run;
use crate::now_s;

/// Flags that signals raise.
pub struct Wishes {
    /// To end.
    stop: Arc<AtomicBool>,
    /// To read the policy again.
    reload: Arc<AtomicBool>,
}

impl Wishes {
    /// Hears SIGTERM, SIGINT and SIGHUP from now on.
    pub fn hear() -> Wishes {
        let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
            for (signal, flag) in [(SIGHUP, &reload), (SIGTERM, &stop), (SIGINT, &stop)] {
                if let Err(error) = signal_hook::flag::register(signal, Arc::clone(flag)) {
                    tracing::error!("signal {signal} cannot be heard: {error}");
                }
            }
        }
        Wishes { stop, reload }
    }

    fn is_any(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.reload.load(Ordering::Relaxed)
    }
}

/// Runs the command.
pub fn run(settings: Settings, args: &Run, wishes: Wishes) -> Result<ExitCode, Error> {
    let tick = Duration::from_secs_f64(settings.tick_s);
    let mut service = Service::new(settings, &args.policy, args.shadow)?;
    introduce(&service, args, tick);
    let mut last = Vec::new();
    loop {
        let began = Instant::now();
        if wishes.reload.swap(false, Ordering::Relaxed) {
            match service.reload() {
                Ok(()) => tracing::info!(
                    "the policy was read again: {}; the configuration is that of the start",
                    service.status().policy
                ),
                Err(error) => tracing::error!("the policy stays: {}", one_line(&error.to_string())),
            }
        }
        let notes = service.round(now_s());
        // What goes on from round to round is said once.
        for text in notes.iter().filter(|text| !last.contains(*text)) {
            tracing::warn!("{}", one_line(text));
        }
        last = notes;
        let is_last = args
            .rounds
            .is_some_and(|rounds| service.status().num_rounds >= rounds);
        while began.elapsed() < tick && !is_last && !wishes.is_any() {
            thread::sleep(Duration::from_millis(20).min(tick.saturating_sub(began.elapsed())));
        }
        if wishes.stop.load(Ordering::Relaxed) || is_last {
            let num = service.status().num_waiting;
            if !args.shadow && num > 0 {
                tracing::warn!(
                    "ends; {num} jobs stay held: start it again, or run `pleach-scheduler hand-back`"
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Says what is driven by what, after what an operator should know of it.
fn introduce(service: &Service, args: &Run, tick: Duration) {
    let status = service.status();
    for warning in &status.warnings {
        tracing::warn!("{}", one_line(warning));
    }
    let mode = if args.shadow {
        "decides and touches nothing"
    } else {
        "drives"
    };
    tracing::info!(
        "{} {mode} partition {} ({} rounds a minute)",
        status.policy,
        status.partition,
        60.0 / tick.as_secs_f64()
    );
}
