//! `run`: the controller on this thread, the server on one of its own, so that a decision delays no answer.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pleach_daemon::operator::RunArgs;
use pleach_daemon::pulse::Pulse;
use pleach_daemon::rounds::{self, Host, Wish};
use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::controller::Kubernetes;
use pleach_kubernetes::lease::Held;
use pleach_kubernetes::server::{Server, Shared};
use pleach_kubernetes::{Error, Settings};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};

use crate::host::{block_on, now_s, runtime};

/// Time in which the pods that come with a first one are made: a Job's controller makes some tens in it. *Ours*.
const SETTLE: Duration = Duration::from_millis(100);
/// Least time between the beginnings of two rounds because a pod came or ended. *Ours*: a quarter of the default of `tick_s`.
const SOONEST: Duration = Duration::from_millis(500);

/// Signals, and what has changed.
struct Around {
    wishes: mpsc::Receiver<Wish>,
    /// Notified when the webhook has held a pod, and of what the watches show.
    changes: Arc<Notify>,
    tick: Duration,
}

impl Host for Around {
    fn now_s(&self) -> i64 {
        now_s()
    }

    async fn pause(&mut self, most: Duration) -> Option<Wish> {
        let began = Instant::now();
        // What a round took is rested at least, so that changes without end take half of the time.
        let took = self.tick.saturating_sub(most);
        let least = SOONEST.saturating_sub(took).max(took).max(SETTLE).min(most);
        let came = async {
            self.changes.notified().await;
            tokio::time::sleep(SETTLE.max(least.saturating_sub(began.elapsed()))).await;
        };
        let heard = async {
            tokio::select! {
                wish = self.wishes.recv() => Some(wish),
                () = came => None,
            }
        };
        let wish = match tokio::time::timeout(most, heard).await {
            Ok(None) => return None,
            Ok(Some(wish)) => wish,
            Err(_) => None,
        };
        if wish.is_none() {
            // Once no signal can come any more, the time between rounds holds all the same.
            tokio::time::sleep(most.saturating_sub(began.elapsed())).await;
        }
        wish
    }
}

/// A runtime in which signals are heard.
pub struct Hearing {
    runtime: Runtime,
    wishes: mpsc::Receiver<Wish>,
}

impl Hearing {
    /// Hears SIGTERM, SIGINT and SIGHUP from now on.
    pub fn begin() -> Result<Hearing, Error> {
        let runtime = runtime()?;
        let wishes = {
            let _in_it = runtime.enter();
            signals()
        };
        Ok(Hearing { runtime, wishes })
    }
}

/// Runs the command.
pub fn run(settings: Settings, args: &RunArgs, hearing: Hearing) -> Result<ExitCode, Error> {
    settings.validate()?;
    hearing.runtime.block_on(drive(settings, args, hearing.wishes))
}

async fn drive(
    mut settings: Settings,
    args: &RunArgs,
    wishes: mpsc::Receiver<Wish>,
) -> Result<ExitCode, Error> {
    // In a cluster the name of the pod, which no other one has; elsewhere the process tells two of a machine apart.
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "pleach".into());
    settings.identity = format!("{host}_{}", std::process::id());
    let cluster = Cluster::infer(&settings).await?;
    let tick = Duration::from_secs_f64(settings.tick_s);
    let watched = cluster.clone();
    let mut driver = Kubernetes::driver(settings, cluster, &args.policy, args.shadow)?;
    let text = driver.metrics_text();
    let system = driver.system();
    let shared = Shared::new(system.settings(), system.view(), text, args.shadow)?;
    let shared = shared.map(|shared| shared.with_forecasts(driver.served()));
    if let Some(shared) = &shared {
        serve(shared.clone())?;
    }
    if let Some(lease) = driver.system().lease() {
        renew(lease, driver.system().settings().clone(), driver.pulse());
    }
    let changes = shared.as_ref().map_or_else(Arc::default, Shared::arrivals);
    let mut around = Around {
        wishes,
        changes: Arc::clone(&changes),
        tick,
    };
    watched.watch(&changes);
    rounds::run(&mut driver, &mut around, tick, args.rounds).await?;
    if let Err(error) = driver.system().give_lease_back().await {
        tracing::warn!("the Lease was not given back, and ends by itself: {error}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Renews the Lease on a thread of its own, with a client of its own: a list that takes long, or is long to read, delays it not.
fn renew(lease: Held, settings: Settings, pulse: Pulse) {
    std::thread::spawn(move || {
        let renewed = block_on(async {
            let cluster = Cluster::infer(&settings).await?;
            lease.renew(&cluster, &pulse, now_s).await;
            Ok(())
        });
        if let Err(error) = renewed {
            tracing::error!("the Lease is renewed by rounds alone: {error}");
        }
    });
}

/// Starts the server; an address that cannot be had is an error before the first round.
fn serve(shared: Shared) -> Result<(), Error> {
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let served = block_on(async {
            match Server::listen(shared).await {
                Ok(server) => {
                    let _ = told.send(Ok(server.address()));
                    server.run().await;
                }
                Err(error) => {
                    let _ = told.send(Err(error));
                }
            }
            Ok(())
        });
        if let Err(error) = served {
            tracing::error!("{error}");
        }
    });
    match heard.recv() {
        Ok(Ok(Ok(address))) => tracing::info!("listens on {address}"),
        Ok(Ok(Err(error))) => tracing::warn!("listens: {error}"),
        Ok(Err(error)) => return Err(error),
        Err(_) => tracing::error!("the server has ended"),
    }
    Ok(())
}

#[cfg(unix)]
fn signals() -> mpsc::Receiver<Wish> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = mpsc::channel(8);
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    let [Ok(mut term), Ok(mut int), Ok(mut hup)] = kinds.map(signal) else {
        tracing::error!("signals cannot be heard");
        return receiver;
    };
    tokio::spawn(async move {
        loop {
            let wish = tokio::select! {
                _ = term.recv() => Wish::End,
                _ = int.recv() => Wish::End,
                _ = hup.recv() => Wish::Reload,
            };
            if sender.send(wish).await.is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(not(unix))]
fn signals() -> mpsc::Receiver<Wish> {
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = sender.send(Wish::End).await;
        }
    });
    receiver
}
