//! `run`: round after round, until a signal ends it.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pleach_daemon::operator::RunArgs;
use pleach_daemon::rounds::{self, Host, Wish};
use pleach_daemon::slurm::Slurm;
use pleach_daemon::wait::block_on;
use pleach_daemon::{Error, Settings};

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
}

impl Host for Wishes {
    fn now_s(&self) -> i64 {
        now_s()
    }

    async fn pause(&mut self, most: Duration) -> Option<Wish> {
        let began = Instant::now();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Some(Wish::End);
            }
            if self.reload.swap(false, Ordering::Relaxed) {
                return Some(Wish::Reload);
            }
            let left = most.saturating_sub(began.elapsed());
            if left.is_zero() {
                return None;
            }
            thread::sleep(Duration::from_millis(20).min(left));
        }
    }
}

/// Runs the command.
pub fn run(settings: &Settings, args: &RunArgs, mut wishes: Wishes) -> Result<ExitCode, Error> {
    let tick = Duration::from_secs_f64(settings.tick_s);
    let mut driver = Slurm::driver(settings, &args.policy, args.shadow)?;
    block_on(rounds::run(&mut driver, &mut wishes, tick, args.rounds))?;
    Ok(ExitCode::SUCCESS)
}
