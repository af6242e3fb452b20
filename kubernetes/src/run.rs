//! `run`: the controller on this thread, the server on one of its own, so that a decision delays no answer.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::controller::Controller;
use pleach_kubernetes::server::{Server, Shared};
use pleach_kubernetes::{Error, Settings};
use tokio::sync::mpsc;

use crate::arguments::Run;
use crate::host::{block_on, now_s};

/// What a signal asks for.
enum Wish {
    End,
    Reload,
}

/// Runs the command.
pub fn run(settings: Settings, args: &Run) -> Result<ExitCode, Error> {
    settings.validate()?;
    block_on(rounds(settings, args))
}

async fn rounds(settings: Settings, args: &Run) -> Result<ExitCode, Error> {
    // Before all else: a SIGHUP in the first moments would end the program.
    let mut wishes = signals();
    let cluster = Cluster::infer(&settings).await?;
    let tick = Duration::from_secs_f64(settings.tick_s);
    let mut controller = Controller::new(settings, cluster, &args.policy, args.shadow)?;
    let text = controller.metrics_text();
    let shared = Shared::new(
        controller.settings(),
        &args.policy,
        controller.view(),
        text,
        args.shadow,
    )?;
    if let Some(shared) = &shared {
        serve(shared.clone())?;
    }
    let status = controller.status();
    let mode = if args.shadow {
        "decides and touches nothing"
    } else {
        "drives"
    };
    tracing::info!("{} {mode}: {}", status.policy, status.partition);
    for warning in &status.warnings {
        tracing::warn!("{warning}");
    }
    let mut last = Vec::new();
    loop {
        let began = Instant::now();
        let notes = controller.round(now_s()).await;
        // What goes on from round to round is said once.
        for text in notes.iter().filter(|text| !last.contains(*text)) {
            tracing::warn!("{text}");
        }
        last = notes;
        let is_last = args
            .rounds
            .is_some_and(|rounds| controller.status().num_rounds >= rounds);
        let pause = tick.saturating_sub(began.elapsed());
        let wish = match is_last {
            true => Some(Wish::End),
            false => tokio::time::timeout(pause, wishes.recv()).await.ok().flatten(),
        };
        match wish {
            None => {}
            Some(Wish::Reload) => match controller
                .reload()
                .and_then(|()| shared.as_ref().map_or(Ok(()), Shared::reload))
            {
                Ok(()) => tracing::info!(
                    "the policy was read again: {}; the configuration is that of the start",
                    controller.status().policy
                ),
                Err(error) => tracing::error!("the policy stays: {error}"),
            },
            Some(Wish::End) => {
                let num = controller.status().num_waiting;
                if !args.shadow && num > 0 {
                    tracing::warn!(
                        "ends; {num} jobs stay held: start it again, or run `pleach-kubernetes hand-back`"
                    );
                }
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Starts the server; an address that cannot be had is told before the first round.
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
